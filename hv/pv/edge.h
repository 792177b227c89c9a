/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the KVM interface meets vCPUs, VMX and the scheduler: the hooks that the run loop and the
 * exit handlers call. What the records and MSRs mean is in steal.h, clock.h and msr.h.
 */
#ifndef VLAG_PV_EDGE_H
#define VLAG_PV_EDGE_H

#include "hv/knobs.h"
#include "hv/vm/vcpu.h"

/* At the VM's creation, before its CPUID table: what it is offered. */
void pv_vm_create(struct vm *vm);

/* At every start of the VM, its vCPUs off and its clock set. */
void pv_vm_start(struct vm *vm);

/* The monitor's figures: sums of @vm up to now. Any pCPU, no run queue locked. */
struct pv_sums pv_vm_sums(const struct vm *vm);

/* Stolen time of @vm since it was started, in 1/1000 of all its possible vCPUs' time; 0 unless it
 * runs. */
u32 pv_vm_steal_permille(const struct vm *vm);

/* Ends the intervals of the VMs' means that are over. Boot CPU, now and then. */
void pv_poll(void);

/* The guest TSC of @v jumped: its clock must not. */
void pv_tsc_changed(struct vcpu *v);

/* MSR handlers; false: #GP. */
bool pv_rdmsr(struct vcpu *v, u32 msr, u64 *value);
bool pv_wrmsr(struct vcpu *v, u32 msr, u64 value);

/* The out-of-line parts of the hooks. */
void pv_flush_tlb(struct vcpu *v);

/*
 * Before an entry that follows a visit to the scheduler: @v is loaded here, nothing stands against
 * entering it, v->halted is still as it was. @run_delay_ns: how long @v was runnable and not
 * running, all in all.
 */
static inline void pv_sched_in(struct vcpu *v, u64 run_delay_ns)
{
	if (unlikely(READ_ONCE(v->pv.unhalted)) && v->halted)
		WRITE_ONCE(v->pv.unhalted, false); /* it has done its work */
	if (unlikely(steal_sched_in(&v->pv.steal, run_delay_ns)))
		pv_flush_tlb(v);
}

/*
 * @v has left its pCPU for another vCPU or for idle. Under the run queue's lock: once that is given
 * up, another pCPU may run @v. A vCPU that halted counts as preempted only if the knob says so.
 */
static inline void pv_sched_out(struct vcpu *v)
{
	if (!v->halted || knobs.steal_preempted_halted)
		steal_sched_out(&v->pv.steal);
}

/* Does a PV unhalt end the HLT that @v executes? Then it is used up. */
static inline bool pv_take_unhalt(struct vcpu *v)
{
	if (likely(!READ_ONCE(v->pv.unhalted)))
		return false;
	WRITE_ONCE(v->pv.unhalted, false);
	return true;
}

#endif
