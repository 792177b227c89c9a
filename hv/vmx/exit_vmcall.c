/* SPDX-License-Identifier: BSD-2-Clause */
/* VMCALL: the registers of a KVM hypercall. What the calls do is hv/pv/hypercall.c's. */
#include "hv/pcpu.h"
#include "hv/pv/hypercall.h"
#include "hv/tracepoint.h"
#include "hv/vm/run.h"
#include "hv/vmx/exit.h"

#define AR_L BIT(13)

static bool in_long_mode(void)
{
	return (vmread32(VMCS_GUEST_CS_AR) & AR_L) && (vmread64(VMCS_GUEST_EFER) & EFER_LMA);
}

/* A spin that ends at once: the guest says for whom. */
static enum exit_action yield_to(struct vcpu *v, struct vcpu *target)
{
	struct spin_walk w;
	bool leaves;

	if (!spin_start(&w, &v->spin, true, 0, rdtsc()))
		return EXIT_RESUME;
	w.target = &target->spin;
	w.class = SPIN_CLASS_HINT;
	leaves = vcpu_yield_to(v, &w);
	spin_stop(&w, leaves);
	if (unlikely(tracing(TRACE_SPIN)))
		trace_spin(v, &w, 0, w.now);
	return leaves ? EXIT_LEAVE : EXIT_RESUME;
}

/* What the hypercall that has just been answered has to do with the trace. */
static __attribute__((noinline)) void trace_hypercall(struct vcpu *v, const struct hypercall *call)
{
	u32 icr = (u32)call->arg[3];
	s64 receivers = (s64)v->regs[RAX];

	if (call->nr == KVM_HC_SEND_IPI && receivers > 0 && (icr >> 8 & 7) == APIC_DM_FIXED)
		trace_ipis(v, (u8)icr, (u32)receivers, call->now - v->tsc_offset);
}

/* Not inlined: its struct would cost the other ones, too. */
static __attribute__((noinline)) enum exit_action known_call(struct vcpu *v)
{
	struct hypercall call = {
	    .nr = v->regs[RAX],
	    .arg = {v->regs[RBX], v->regs[RCX], v->regs[RDX], v->regs[RSI]},
	    .long_mode = in_long_mode(),
	    .cpl = guest_cpl(),
	    .features = v->vm->pv.features,
	};

	call.now = vcpu_guest_tsc(v, rdtsc());
	v->regs[RAX] = hypercall_run(&v->lapic, &call);
	skip_instruction();
	if (unlikely(tracing(TRACE_IPI)))
		trace_hypercall(v, &call);
	if (call.yield_to)
		return yield_to(v, container_of(call.yield_to, struct vcpu, lapic));
	/* An IPI to itself. */
	return vlapic_has_work(&v->lapic) ? vcpu_deliver(v) : EXIT_RESUME;
}

enum exit_action exit_vmcall(struct vcpu *v)
{
	/* Nothing that there is: no need for the arguments. */
	if (unlikely((u32)v->regs[RAX] > KVM_HC_SCHED_YIELD)) {
		v->regs[RAX] = -(u64)(guest_cpl() ? KVM_EPERM : KVM_ENOSYS);
		return resume_after();
	}
	return known_call(v);
}
