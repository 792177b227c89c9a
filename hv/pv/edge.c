/* SPDX-License-Identifier: BSD-2-Clause */
/* The KVM interface's edge; see edge.h. */
#include "hv/pv/edge.h"

#include "hv/config/config.h"
#include "hv/lib/bits.h"
#include "hv/pcpu.h"
#include "hv/pv/hypercall.h"
#include "hv/tsc.h"
#include "hv/vm/run.h"
#include "hv/vmx/vmcs.h"
#include "hv/vmx/vmx.h"
#include "hv/x86/cpu.h"

/* Do the TSCs of all pCPUs that @vm may run on agree? */
static bool tsc_is_stable(const struct vm *vm)
{
	s64 first = 0;
	bool any = false;

	for (u32 i = 0; i < nr_pcpus; i++) {
		if (!bit_test(vm->cfg->affinity, i))
			continue;
		if (any && pcpus[i]->tsc_skew != first)
			return false;
		first = pcpus[i]->tsc_skew;
		any = true;
	}
	return true;
}

void pv_vm_create(struct vm *vm)
{
	vm->pv.features = vm->cfg->pv;
	vm->pv.stable = tsc_is_stable(vm);
	vm->pv.scale = pvclock_scale(tsc_hz());
	vm->pv.mem = &vm->mem;
}

void pv_vm_start(struct vm *vm)
{
	struct pv_sums sums;

	vm->pv.tsc_base = vm->tsc_base;
	vm->pv.epoch_ns = vm->epoch_ns;
	vm->pv.wall_clock_msr = 0;
	for (u32 i = 0; i < vm->nr_vcpus; i++)
		pv_vcpu_start(&vm->vcpus[i]->pv, vcpu_run_delay_ns(vm->vcpus[i]));
	sums = pv_vm_sums(vm);
	pv_view_start(&vm->view, &sums);
}

/* --- the monitor's view --- */

struct pv_sums pv_vm_sums(const struct vm *vm)
{
	struct pv_sums sums = {.at_ns = tsc_to_ns(rdtsc() - tsc_boot())};

	for (u32 i = 0; i < vm->nr_vcpus; i++) {
		u64 run, delay;

		vcpu_times_ns(vm->vcpus[i], &run, &delay);
		sums.run_ns += run;
		sums.delay_ns += delay;
	}
	return sums;
}

u32 pv_vm_steal_permille(const struct vm *vm)
{
	struct pv_sums sums;

	if (READ_ONCE(vm->state) != VM_RUNNING)
		return 0;
	sums = pv_vm_sums(vm);
	return pv_means_between(&vm->view.start, &sums, vm->cfg->max_vcpus).steal_permille;
}

void pv_poll(void)
{
	u64 now = tsc_to_ns(rdtsc() - tsc_boot());

	for (u32 i = 0; i < nr_vms; i++) {
		struct vm *vm = vms[i];
		struct pv_sums sums;

		if (READ_ONCE(vm->state) != VM_RUNNING ||
		    now - vm->view.last.at_ns < knobs.steal_interval_ns)
			continue;
		sums = pv_vm_sums(vm);
		pv_view_step(&vm->view, &sums, knobs.steal_interval_ns, vm->cfg->max_vcpus);
	}
}

/* --- vCPUs --- */

void pv_tsc_changed(struct vcpu *v)
{
	pv_clock_update(&v->vm->pv, &v->pv, v->tsc_offset);
}

bool pv_rdmsr(struct vcpu *v, u32 msr, u64 *value)
{
	return pv_msr_read(&v->vm->pv, &v->pv, msr, value);
}

bool pv_wrmsr(struct vcpu *v, u32 msr, u64 value)
{
	struct pv_wrmsr w = {.tsc_offset = v->tsc_offset, .run_delay_ns = vcpu_run_delay_ns(v)};

	if (!pv_msr_write(&v->vm->pv, &v->pv, msr, value, &w))
		return false;
	if (w.flush_tlb)
		pv_flush_tlb(v);
	return true;
}

/*
 * All linear mappings of the vCPU go. The INVVPID acts on this pCPU alone: what @v left behind on
 * others goes when it is loaded there (INVEPT, vcpu_load()). Without VPIDs every entry flushes.
 */
void pv_flush_tlb(struct vcpu *v)
{
	COUNT(v, cnt_pv_tlb_flushes);
	invvpid_context(vmread16(VMCS_VPID));
}

/* --- what hypercalls do (hypercall.h) --- */

void pv_unhalt(struct vlapic *target)
{
	struct vcpu *v = container_of(target, struct vcpu, lapic);

	/*
	 * One that runs finds the flag at its next HLT. If it is just about to block: it says so
	 * with a full barrier before it looks at the flag, and the flag is set with one before this
	 * look, so at least one of both sees the other.
	 */
	__atomic_store_n(&v->pv.unhalted, true, __ATOMIC_SEQ_CST);
	if (READ_ONCE(v->sched.state) != SCHED_RUNNING)
		vcpu_kick(v);
}

bool pv_hint(struct vlapic *from, struct vlapic *target)
{
	struct vcpu *v = container_of(from, struct vcpu, lapic);
	struct vcpu *dest = container_of(target, struct vcpu, lapic);

	spin_hint(&v->spin, dest->id, rdtsc());
	return READ_ONCE(dest->sched.state) == SCHED_QUEUED;
}
