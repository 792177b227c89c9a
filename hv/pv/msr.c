/* SPDX-License-Identifier: BSD-2-Clause */
/* CPUID features and MSRs of the KVM interface; see msr.h. */
#include "hv/pv/msr.h"

#include "hv/config/config.h"

#define FEATURE_CLOCKSOURCE BIT(0)
#define FEATURE_NOP_IO_DELAY BIT(1)
#define FEATURE_CLOCKSOURCE2 BIT(3)
#define FEATURE_STEAL_TIME BIT(5)
#define FEATURE_PV_UNHALT BIT(7)
#define FEATURE_PV_TLB_FLUSH BIT(9)
#define FEATURE_PV_SEND_IPI BIT(11)
#define FEATURE_POLL_CONTROL BIT(12)
#define FEATURE_PV_SCHED_YIELD BIT(13)
#define FEATURE_CLOCKSOURCE_STABLE BIT(24)

#define POLL_CONTROL_ENABLE 1ull

u32 pv_cpuid_features(u32 pv, bool stable)
{
	u32 features = FEATURE_NOP_IO_DELAY;

	if (pv & CFG_PV_CLOCK)
		features |= FEATURE_CLOCKSOURCE | FEATURE_CLOCKSOURCE2 |
			    (stable ? FEATURE_CLOCKSOURCE_STABLE : 0);
	if (pv & CFG_PV_STEAL)
		features |= FEATURE_STEAL_TIME;
	if (pv & CFG_PV_UNHALT)
		features |= FEATURE_PV_UNHALT;
	if (pv & CFG_PV_YIELD)
		features |= FEATURE_PV_SCHED_YIELD;
	if (pv & CFG_PV_POLL)
		features |= FEATURE_POLL_CONTROL;
	if (pv & CFG_PV_IPI)
		features |= FEATURE_PV_SEND_IPI;
	/* The flag that asks for the flush is in the steal-time record. */
	if ((pv & CFG_PV_TLBFLUSH) && (pv & CFG_PV_STEAL))
		features |= FEATURE_PV_TLB_FLUSH;
	return features;
}

void pv_vcpu_start(struct pv_vcpu *v, u64 run_delay_ns)
{
	*v = (struct pv_vcpu){.poll_control = POLL_CONTROL_ENABLE};
	steal_start(&v->steal, run_delay_ns);
}

void pv_vcpu_init(struct pv_vcpu *v)
{
	steal_off(&v->steal);
	v->clock.rec = NULL;
	v->clock.msr = 0;
	WRITE_ONCE(v->unhalted, false);
}

void pv_clock_update(const struct pv_vm *vm, struct pv_vcpu *v, s64 tsc_offset)
{
	/* One line for all vCPUs, whatever a guest wrote to its own TSC. */
	pv_clock_fill(&v->clock, vm->tsc_base + tsc_offset, vm->scale, vm->stable);
}

/* The CFG_PV_* bit that offers @msr, 0 if none does. */
static u32 feature_of(u32 msr)
{
	switch (msr) {
	case MSR_KVM_WALL_CLOCK:
	case MSR_KVM_SYSTEM_TIME:
	case MSR_KVM_WALL_CLOCK_NEW:
	case MSR_KVM_SYSTEM_TIME_NEW:
		return CFG_PV_CLOCK;
	case MSR_KVM_STEAL_TIME:
		return CFG_PV_STEAL;
	case MSR_KVM_POLL_CONTROL:
		return CFG_PV_POLL;
	default: /* asynchronous page faults, PV EOI, migration control */
		return 0;
	}
}

bool pv_msr_read(const struct pv_vm *vm, const struct pv_vcpu *v, u32 msr, u64 *value)
{
	if (!(vm->features & feature_of(msr)))
		return false;
	switch (msr) {
	case MSR_KVM_WALL_CLOCK:
	case MSR_KVM_WALL_CLOCK_NEW:
		*value = READ_ONCE(vm->wall_clock_msr);
		return true;
	case MSR_KVM_STEAL_TIME:
		*value = v->steal.msr;
		return true;
	case MSR_KVM_POLL_CONTROL:
		*value = v->poll_control;
		return true;
	default:
		*value = v->clock.msr;
		return true;
	}
}

bool pv_msr_write(struct pv_vm *vm, struct pv_vcpu *v, u32 msr, u64 value, struct pv_wrmsr *w)
{
	w->flush_tlb = false;
	if (!(vm->features & feature_of(msr)))
		return false;
	switch (msr) {
	case MSR_KVM_WALL_CLOCK:
	case MSR_KVM_WALL_CLOCK_NEW:
		WRITE_ONCE(vm->wall_clock_msr, value);
		pv_wall_clock_write(vm->mem, value, vm->epoch_ns);
		return true;
	case MSR_KVM_STEAL_TIME:
		return steal_msr_write(&v->steal, vm->mem, value, w->run_delay_ns, &w->flush_tlb);
	case MSR_KVM_POLL_CONTROL:
		if (value & ~POLL_CONTROL_ENABLE)
			return false;
		/* Kept for the reader: nothing polls here before it halts. */
		v->poll_control = value;
		return true;
	default:
		pv_clock_msr_write(&v->clock, vm->mem, value);
		pv_clock_update(vm, v, w->tsc_offset);
		return true;
	}
}
