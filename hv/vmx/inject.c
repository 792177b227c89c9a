/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Getting events into the guest (SDM vol. 3, 26.6): what was cut short by an exit first, then NMI,
 * PIC and LAPIC interrupts, one for each entry; interrupt- and NMI-window exits for what cannot be
 * injected yet. INIT and SIPI are handled here, too.
 */
#include "hv/pcpu.h"
#include "hv/vmx/exit.h"
#include "hv/vmx/vmx.h"

static bool entry_busy(void)
{
	return vmread32(VMCS_ENTRY_INTR_INFO) & INTR_VALID;
}

static void inject(struct vcpu *v, u32 info)
{
	COUNT(v, cnt_injected);
	/* That ends HLT, here and now: if the vCPU must leave before it is entered (its slice is
	 * over), it has nothing pending any more that would wake it again. */
	v->halted = false;
	vmwrite32(VMCS_ENTRY_INTR_INFO, info | INTR_VALID);
}

void inject_exception(struct vcpu *v, u32 vector)
{
	inject(v, vector | INTR_HW_EXCEPTION);
}

void inject_exception_error(struct vcpu *v, u32 vector, u32 error)
{
	/* In real mode exceptions have no error code (SDM vol. 3, 26.2.1.3). */
	bool real = !(vmreadn(VMCS_GUEST_CR0) & CR0_PE);

	vmwrite32(VMCS_ENTRY_ERROR_CODE, error);
	inject(v, vector | INTR_HW_EXCEPTION | (real ? 0 : INTR_HAS_ERROR));
}

void reinject_vectoring(struct vcpu *v)
{
	u32 info = vmread32(VMCS_IDT_VECTORING_INFO), type = info & INTR_TYPE_MASK;

	if (likely(!(info & INTR_VALID)))
		return;
	COUNT(v, cnt_reinjected);
	if (info & INTR_HAS_ERROR)
		vmwrite32(VMCS_ENTRY_ERROR_CODE, vmread32(VMCS_IDT_VECTORING_ERROR));
	if (type == INTR_SW_INTERRUPT || type == INTR_SW_EXCEPTION ||
	    type == INTR_PRIV_SW_EXCEPTION)
		vmwrite32(VMCS_ENTRY_INSN_LEN, vmread32(VMCS_EXIT_INSN_LEN));
	if (type ==
	    INTR_NMI) /* its blocking began when the delivery did: the entry starts it anew */
		vmwrite32(VMCS_GUEST_INTERRUPTIBILITY,
			  vmread32(VMCS_GUEST_INTERRUPTIBILITY) & ~(u32)BLOCKED_BY_NMI);
	vmwrite32(VMCS_ENTRY_INTR_INFO,
		  info & (INTR_VALID | INTR_TYPE_MASK | INTR_VECTOR | INTR_HAS_ERROR));
}

/* INIT and SIPI. Returns true if the vCPU must not run on. */
static bool deliver_startup(struct vcpu *v)
{
	enum vlapic_startup what;
	u8 vector;

	while ((what = vlapic_take_startup(&v->lapic, &vector)) != VLAPIC_STARTUP_NONE) {
		if (what == VLAPIC_STARTUP_INIT) {
			vcpu_set_init_state(v);
			v->halted = v->lapic.wait_for_sipi;
			v->halted_if = false;
		} else {
			vcpu_set_sipi_state(v, vector);
			v->halted = false;
		}
	}
	return v->lapic.wait_for_sipi;
}

static void deliver_nmi(struct vcpu *v, u32 blocked)
{
	u32 nmi_blocked = BLOCKED_BY_NMI | BLOCKED_BY_MOV_SS | BLOCKED_BY_STI;

	if (!(READ_ONCE(v->lapic.events) & VLAPIC_EV_NMI))
		return;
	if (!(blocked & nmi_blocked) && !entry_busy() && vlapic_take_nmi(&v->lapic)) {
		inject(v, VEC_NMI | INTR_NMI);
	}
	if (READ_ONCE(v->lapic.events) & VLAPIC_EV_NMI) {
		if (vmx_caps.virtual_nmi)
			vcpu_set_nmi_window(v, true);
		else
			vcpu_set_window(v, true);
	}
}

static int take_extint(struct vcpu *v)
{
	int vector;

	spin_lock(&v->vm->lock);
	vector = vpic_accept(&v->vm->pic);
	spin_unlock(&v->vm->lock);
	return vector;
}

/*
 * Before every entry: the CPU refuses a threshold above VTPR's class (SDM vol. 3, 26.2.1.1), so one
 * that was needed before must go as soon as the vector that waited can be delivered.
 */
static inline void set_tpr_threshold(struct vcpu *v, u32 threshold)
{
	if (likely(threshold == v->tpr_threshold))
		return;
	v->tpr_threshold = threshold;
	vmwrite32(VMCS_TPR_THRESHOLD, threshold);
}

/* IF, STI and MOV SS let an interrupt in. */
static inline bool is_open(void)
{
	return (vmreadn(VMCS_GUEST_RFLAGS) & RFLAGS_IF) &&
	       !(vmread32(VMCS_GUEST_INTERRUPTIBILITY) & (BLOCKED_BY_STI | BLOCKED_BY_MOV_SS));
}

static bool can_take_interrupt(void)
{
	return is_open() && !entry_busy();
}

/* Everything but the LAPIC's interrupts. Returns EXIT_LEAVE if the vCPU waits for SIPI now. */
static __attribute__((noinline)) enum exit_action deliver_events(struct vcpu *v, u32 events)
{
	if ((events & (VLAPIC_EV_INIT | VLAPIC_EV_SIPI)) && deliver_startup(v))
		return EXIT_LEAVE;
	if (events & VLAPIC_EV_NMI)
		deliver_nmi(v, vmread32(VMCS_GUEST_INTERRUPTIBILITY));
	if (!vlapic_extint(&v->lapic))
		return EXIT_RESUME;
	if (can_take_interrupt())
		inject(v, take_extint(v) | INTR_EXTERNAL);
	else
		vcpu_set_window(v, true);
	return EXIT_RESUME;
}

/* Nothing can be delivered, or not yet: asks for an exit when it can. */
static __attribute__((noinline)) enum exit_action deliver_later(struct vcpu *v)
{
	bool pending = vlapic_pending(&v->lapic) >= 0;

	set_tpr_threshold(v, pending ? 0 : vlapic_tpr_threshold(&v->lapic));
	if (pending)
		vcpu_set_window(v, true);
	return EXIT_RESUME;
}

enum exit_action vcpu_deliver_vector(struct vcpu *v)
{
	struct vlapic *l = &v->lapic;
	int vector = vlapic_highest_deliverable(l);

	if (unlikely(vector < 0) || unlikely(v->proc_controls & PROC_INTR_WINDOW) ||
	    unlikely(!is_open()))
		return deliver_later(v);
	set_tpr_threshold(v, 0);
	inject(v, vector | INTR_EXTERNAL);
	/* What is behind it in the IRR is of no higher class: it waits for the EOI, which exits. */
	vlapic_accept_irr(l, vector);
	vlapic_accepted(l, vector, rdtsc());
	return EXIT_RESUME;
}

enum exit_action vcpu_deliver(struct vcpu *v)
{
	u32 events;

	if (READ_ONCE(v->requests) & REQ_EVENT)
		__atomic_and_fetch(&v->requests, ~(u64)REQ_EVENT, __ATOMIC_SEQ_CST);
	events = READ_ONCE(v->lapic.events);
	if (unlikely(events) && deliver_events(v, events) == EXIT_LEAVE)
		return EXIT_LEAVE;
	return unlikely(entry_busy()) ? deliver_later(v) : vcpu_deliver_vector(v);
}

enum exit_action exit_interrupt_window(struct vcpu *v)
{
	vcpu_set_window(v, false);
	return vcpu_deliver(v);
}

enum exit_action exit_nmi_window(struct vcpu *v)
{
	vcpu_set_nmi_window(v, false);
	return vcpu_deliver(v);
}

enum exit_action exit_tpr_below_threshold(struct vcpu *v)
{
	return vcpu_deliver(v);
}

/* Exceptions that we intercept so that a guest cannot keep the CPU in event delivery for ever, and
 * what is really the host's. */
enum exit_action exit_exception(struct vcpu *v)
{
	u32 info = vmread32(VMCS_EXIT_INTR_INFO), vector = info & INTR_VECTOR;

	if ((info & INTR_TYPE_MASK) == INTR_NMI || vector == VEC_MC) {
		/* Let the host's handler have it; the IRET in there also ends the blocking of NMIs.
		 */
		if (vector == VEC_MC)
			__asm__ volatile("int $18");
		else
			__asm__ volatile("int $2");
		reinject_vectoring(v);
		return EXIT_RESUME;
	}
	if (vector == VEC_DB) {
		u64 dr6;

		__asm__ volatile("mov %%db6, %0" : "=r"(dr6));
		dr6 = (dr6 & ~0xe00full) | (vmreadn(VMCS_EXIT_QUALIFICATION) & 0xe00full);
		__asm__ volatile("mov %0, %%db6" : : "r"(dr6));
		vmwriten(VMCS_GUEST_DR7, vmreadn(VMCS_GUEST_DR7) & ~BIT(13));
		inject_exception(v, VEC_DB);
		return EXIT_RESUME;
	}
	inject_exception_error(v, vector, vmread32(VMCS_EXIT_INTR_ERROR));
	return EXIT_RESUME;
}
