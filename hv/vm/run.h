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

/*
 * How long @v was runnable and not running, in ns: exact for the vCPU that runs on this pCPU, for
 * others as of their last change of state. No lock.
 */
u64 vcpu_run_delay_ns(const struct vcpu *v);

/* The same and how long it ran, up to now. Takes the lock of its run queue. */
void vcpu_times_ns(struct vcpu *v, u64 *run_ns, u64 *delay_ns);

/* What it is doing at this moment, which may be over when the caller looks at it. */
bool vcpu_is_running(const struct vcpu *v);
bool vcpu_is_waiting(const struct vcpu *v); /* runnable and not running */

/* Makes @p look at its queue and its call. */
void pcpu_kick(struct pcpu *p);

/* Puts @v, which is OFF, on its pCPU's queue (or to HALTED with @halted). */
void vcpu_start(struct vcpu *v, bool halted);

/* Runs @fn(@arg) on @p, in its loop, and waits for it (forever: every pCPU comes back within
 * host_poll_ticks). */
void pcpu_call(struct pcpu *p, void (*fn)(void *arg), void *arg);

#endif
