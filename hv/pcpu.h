/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One struct pcpu per physical CPU, reached through GS: this_pcpu(). Unless a field says otherwise
 * only its own pCPU writes it.
 */
#ifndef VLAG_PCPU_H
#define VLAG_PCPU_H

#include "hv/config/config.h"
#include "hv/lib/lock.h"
#include "hv/lib/types.h"
#include "hv/sched/sched.h"
#include "hv/timer.h"
#include "hv/trace.h"
#include "hv/x86/desc.h"

#define MAX_PCPUS CFG_MAX_PCPUS
#define PCPU_STACK_SIZE (16 * KiB)
#define IST_STACK_SIZE (8 * KiB)

enum pcpu_state { PCPU_ABSENT, PCPU_STARTING, PCPU_ONLINE, PCPU_FAILED };

struct vcpu;

struct pcpu {
	struct pcpu *self; /* offset 0: this_pcpu() loads it from GS:0 */
	u64 exit_rsp; /* offset 8: stack of the exit handlers, set by vmx_enter() (hv/vmx/entry.asm)
		       */
	struct vcpu *loaded; /* offset 16: whose VMCS, FPU and MSRs are in this CPU, NULL at first
			      */

	u32 id;	     /* index into pcpus[], 0 is the boot CPU */
	u32 apic_id; /* of the host LAPIC */
	u32 state;   /* enum pcpu_state; the boot CPU reads it while starting this one */

	struct vcpu *current; /* who runs, NULL when idle; written under rq_lock */

	struct spinlock rq_lock; /* two are taken by rising pCPU number */
	struct run_queue rq;	 /* rq_lock */
	u64 slice_end;		 /* sched_slice_end() as host TSC; UINT64_MAX: no end */
	struct timer_queue timers;

	void (*call_fn)(void *arg); /* what another pCPU asks this one to do; pcpu_call() */
	void *call_arg;

	u64 next_poll; /* boot CPU: when boot_cpu_poll() is due, host TSC */
	/*
	 * How much earlier than a guest's deadline its timer is handled here, so that the interrupt
	 * arrives when it is due: with the guest running, and with the pCPU asleep. Host TSC ticks,
	 * learned (timer_wait()).
	 */
	u64 timer_advance, wake_advance;
	u64 vmxon_pa;
	u64 idle_ticks;	      /* TSC ticks spent in HLT, but for the HLT that goes on */
	u64 idle_start;	      /* since when that one goes on, host TSC; 0: this pCPU is not idle */
	u64 nr_switches;      /* vCPU to another vCPU */
	u64 nr_kicks;	      /* reschedule IPIs received */
	u64 nr_timer_irqs;    /* host LAPIC timer interrupts */
	u64 nr_spurious_irqs; /* anything unexpected */
	s64 tsc_skew;	      /* ticks against the boot CPU, measured when it started */

	struct trace_ring trace; /* hv/tracepoint.h */

	struct cpu_tables tables;
	u64 stack_top;
};

extern struct pcpu *pcpus[MAX_PCPUS];
extern u32 nr_pcpus; /* how many are online; fixed after boot */

static inline struct pcpu *this_pcpu(void)
{
	struct pcpu *p;

	__asm__("mov %%gs:0, %0" : "=r"(p));
	return p;
}

/* Bit per pCPU: has nothing to run, and sleeps or is about to. A waker must send an IPI. Atomic. */
extern u64 idle_pcpus[MAX_PCPUS / 64];
extern u64 online_pcpus[MAX_PCPUS / 64];

/* Allocates and fills the structure, stacks and tables of pCPU @id. */
struct pcpu *pcpu_create(u32 id, u32 apic_id);

/* Makes this CPU be @p: GDT, IDT, TSS, GS. */
void pcpu_install(struct pcpu *p);

#endif
