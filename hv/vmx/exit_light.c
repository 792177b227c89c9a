/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Light exits: those of an IPI on its way from one running vCPU to another and of its EOI, and the
 * other hot ones that touch few of the guest's registers. entry.asm calls vmx_exit_light() with
 * only the registers stored that C may change; the others are still the guest's, and v->regs does
 * not know them. So nothing here may leave the vCPU, look at or change another register than RAX,
 * RCX, RDX, or call what might (a dump, INIT, the monitor). What is not the common case says
 * EXIT_FULL before it has done anything, and gets the ordinary handler.
 */
#include "hv/apic/lapic.h"
#include "hv/pcpu.h"
#include "hv/tracepoint.h"
#include "hv/vmx/exit.h"

/* INIT, SIPI, NMI and the PIC's interrupts go the long way: a request makes entry.asm take it. */
static inline enum exit_action deliver(struct vcpu *v)
{
	if (unlikely(READ_ONCE(v->lapic.events))) {
		vcpu_request(v, REQ_EVENT);
		return EXIT_RESUME;
	}
	return vcpu_deliver_vector(v);
}

static inline enum exit_action light_eoi(struct vcpu *v)
{
	if (unlikely(tracing(TRACE_EOI)))
		return EXIT_FULL; /* where it is traced */
	vlapic_eoi_at(&v->lapic, rdtsc());
	skip_instruction();
	/* What waited under it may be deliverable now. */
	return likely(!vlapic_irr_any(&v->lapic)) ? EXIT_RESUME : deliver(v);
}

static inline enum exit_action light_icr(struct vcpu *v)
{
	struct vlapic *to = vlapic_x2apic_unicast_target(&v->lapic, v->regs[RDX], v->regs[RAX]);

	if (unlikely(!to) || unlikely(tracing(TRACE_IPI)))
		return EXIT_FULL;
	vlapic_send_unicast(&v->lapic, to, rdtsc(), v->regs[RAX]);
	vlapic_sent_unicast(&v->lapic, edx_eax(v));
	return resume_after();
}

static inline enum exit_action light_self_ipi(struct vcpu *v)
{
	if (unlikely(v->lapic.mode != VLAPIC_X2APIC) ||
	    unlikely(!vlapic_self_ipi(&v->lapic, edx_eax(v))))
		return EXIT_FULL; /* it does the same, and then the #GP */
	skip_instruction();
	return deliver(v);
}

static inline enum exit_action light_deadline(struct vcpu *v)
{
	vlapic_write_tsc_deadline(&v->lapic, edx_eax(v));
	vcpu_timer_changed(v);
	return resume_after();
}

/* Another pCPU has set a request, most likely an interrupt to deliver, before it kicked. */
static inline enum exit_action kicked(struct vcpu *v)
{
	if (unlikely(READ_ONCE(v->requests) != REQ_EVENT))
		return EXIT_RESUME; /* entry.asm looks */
	__atomic_and_fetch(&v->requests, ~(u64)REQ_EVENT, __ATOMIC_SEQ_CST);
	return deliver(v);
}

static __attribute__((noinline)) enum exit_action arm_and_kicked(struct vcpu *v)
{
	vcpu_arm(v, rdtsc());
	return kicked(v);
}

static inline enum exit_action light_kick(struct vcpu *v)
{
	struct pcpu *p = this_pcpu();

	if (unlikely((u8)vmread32(VMCS_EXIT_INTR_INFO) != VEC_KICK) || unlikely(!lapic_x2apic))
		return EXIT_FULL;
	p->nr_kicks++;
	lapic_eoi_x2apic();
	/* Or a timer, which is now the first. */
	if (unlikely(READ_ONCE(p->timers.next) < v->armed_tsc))
		return arm_and_kicked(v);
	return kicked(v);
}

static __attribute__((noinline)) enum exit_action light_window(struct vcpu *v)
{
	vcpu_set_window(v, false);
	return deliver(v);
}

/* Each is a function of its own, so that none saves registers for the others. */
static __attribute__((noinline)) enum exit_action light_wrmsr(struct vcpu *v)
{
	u32 msr = v->regs[RCX];

	if (msr == MSR_X2APIC_ICR)
		return light_icr(v);
	if (msr == MSR_X2APIC_EOI)
		return likely(!edx_eax(v)) && likely(v->lapic.mode == VLAPIC_X2APIC) ? light_eoi(v)
										     : EXIT_FULL;
	if (msr == MSR_TSC_DEADLINE)
		return light_deadline(v);
	return msr == MSR_X2APIC_SELF_IPI ? light_self_ipi(v) : EXIT_FULL;
}

static __attribute__((noinline)) enum exit_action light_interrupt(struct vcpu *v, u32 reason)
{
	if (reason == EXIT_EXTERNAL_INTERRUPT)
		return light_kick(v);
	return reason == EXIT_INTERRUPT_WINDOW ? light_window(v) : EXIT_FULL;
}

static __attribute__((noinline)) enum exit_action light_and_arm(struct vcpu *v, u32 reason)
{
	vcpu_arm(v, rdtsc());
	return reason == EXIT_WRMSR ? light_wrmsr(v) : light_interrupt(v, reason);
}

enum exit_action vmx_exit_light(struct vcpu *v, u32 reason)
{
	if (unlikely(count_exit(v, reason)))
		return light_and_arm(v, reason);
	return reason == EXIT_WRMSR ? light_wrmsr(v) : light_interrupt(v, reason);
}
