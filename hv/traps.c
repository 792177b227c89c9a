/* SPDX-License-Identifier: BSD-2-Clause */
/* What interrupts and exceptions of the hypervisor itself do. Those of guests are VM exits and
 * never come here. */
#include "hv/traps.h"

#include "hv/apic/lapic.h"
#include "hv/panic.h"
#include "hv/pcpu.h"
#include "hv/x86/cpu.h"
#include "hv/x86/desc.h"

extern const char safe_rdmsr_insn[], safe_wrmsr_insn[], safe_fixup[];

void host_interrupt(u32 vector)
{
	struct pcpu *p = this_pcpu();

	switch (vector) {
	case VEC_KICK:
		p->nr_kicks++;
		lapic_eoi();
		break;
	case VEC_TIMER:
		p->nr_timer_irqs++;
		lapic_eoi();
		break;
	case VEC_SPURIOUS: /* is never in service */
		p->nr_spurious_irqs++;
		break;
	default:
		p->nr_spurious_irqs++;
		lapic_eoi();
	}
}

/* Called by traps.asm with interrupts off. */
void trap(struct trap_frame *f)
{
	if (f->vector == VEC_NMI) {
		panic_nmi(f); /* stops this CPU if another has panicked; otherwise the NMI was a
				 guest's or nobody's */
		return;
	}
	if (f->vector == VEC_GP &&
	    (f->rip == (u64)safe_rdmsr_insn || f->rip == (u64)safe_wrmsr_insn)) {
		f->rip = (u64)safe_fixup;
		return;
	}
	panic_trap(f);
}
