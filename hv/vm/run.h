/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop of a pCPU: pick a vCPU, run it, handle what it exits for; sleep when there is none. */
#ifndef VLAG_VM_RUN_H
#define VLAG_VM_RUN_H

#include "hv/lib/types.h"

struct vcpu;
struct pcpu;

/* A running guest is interrupted at least this often (about 1 ms): bounds what a lost interrupt can
 * cost. Host TSC ticks. */
extern u64 host_poll_ticks;

/* No timer is handled earlier than this before it is due. Host TSC ticks. */
extern u64 timer_advance_max;

/* Takes over the knobs, in ticks; before the first vCPU runs, and after each change. */
void run_knobs_changed(void);

/* Never returns. */
__noreturn void pcpu_run(void);

/*
 * @v has something new to look at (its requests or its LAPIC say what; set before the call): wakes
 * it if it is halted, makes its pCPU exit if it runs. Any pCPU; takes the lock of its run queue.
 */
void vcpu_kick(struct vcpu *v);

/* How long @v has run and how long it was runnable and not running, up to now. Takes the lock of
 * its run queue. */
void vcpu_times_ns(struct vcpu *v, u64 *run_ns, u64 *delay_ns);

/* Brings the books up to now: charges every vCPU that runs, also one that has long run alone. Takes
 * the lock of each run queue in turn. */
void vcpus_charge(void);

/* How long @p was idle, up to now, host TSC ticks. Any pCPU; not exact to the last HLT. */
u64 pcpu_idle_ticks(const struct pcpu *p);

/*
 * Directed yield of @me, which runs here, to the candidate of @w; the outcome goes into @w. True if
 * @me must leave the pCPU now. Takes the locks of both run queues.
 */
struct spin_walk;
bool vcpu_yield_to(struct vcpu *me, struct spin_walk *w);

/* When the running vCPU of this pCPU @p must be rescheduled, host TSC; looks for balancing work on
 * the way. */
u64 pcpu_slice_end(struct pcpu *p, u64 now);

/* Sets up @p's run queue; boot CPU, before any vCPU is made. */
void pcpu_sched_init(struct pcpu *p);

/* Makes @p look at its queue and its call. */
void pcpu_kick(struct pcpu *p);

/* Puts @v, which is OFF, on its pCPU's queue (or leaves it blocked with @halted). */
void vcpu_start(struct vcpu *v, bool halted);

/* Does what other pCPUs wait for; to be called while waiting for one, and in the loop. */
void pcpu_serve(void);

/* Runs @fn(@arg) on @p, in its loop, and waits for it (forever: every pCPU comes back within
 * host_poll_ticks). */
void pcpu_call(struct pcpu *p, void (*fn)(void *arg), void *arg);

#endif
