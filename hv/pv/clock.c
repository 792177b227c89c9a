/* SPDX-License-Identifier: BSD-2-Clause */
/* kvmclock: see clock.h. Steal time joins it with its own file. */
#include "hv/pv/clock.h"

#include "hv/config/config.h"
#include "hv/lib/math.h"
#include "hv/tsc.h"
#include "hv/vm/vcpu.h"

#define MSR_WALL_CLOCK_OLD 0x11
#define MSR_SYSTEM_TIME_OLD 0x12
#define MSR_WALL_CLOCK_NEW 0x4b564d00
#define MSR_SYSTEM_TIME_NEW 0x4b564d01

#define FEATURE_CLOCKSOURCE BIT(0)
#define FEATURE_NOP_IO_DELAY BIT(1)
#define FEATURE_CLOCKSOURCE2 BIT(3)
#define FEATURE_CLOCKSOURCE_STABLE BIT(24)

#define SYSTEM_TIME_ENABLE 1ull

struct pvclock_wall_clock {
	u32 version, sec, nsec;
};

u32 pv_cpuid_features(u32 pv)
{
	u32 features = FEATURE_NOP_IO_DELAY;

	if (pv & CFG_PV_CLOCK)
		features |= FEATURE_CLOCKSOURCE | FEATURE_CLOCKSOURCE2 | FEATURE_CLOCKSOURCE_STABLE;
	return features;
}

struct pvclock_scale pvclock_scale(u64 hz)
{
	struct pvclock_scale s = {0};
	u64 rate = hz;

	/* mul is 10^9 * 2^32 / rate and must fit 32 bits with its top bit set: bring rate into
	 * (10^9, 2 * 10^9]. */
	while (rate > 2000000000ull) {
		rate >>= 1;
		s.shift--;
	}
	while (rate <= 1000000000ull) {
		rate <<= 1;
		s.shift++;
	}
	/* From the unshifted rate, so that no bit of it is lost. */
	if (s.shift < 0)
		s.mul = shl_div(1000000000, 32 - s.shift, hz);
	else
		s.mul = shl_div(1000000000, 32, rate);
	return s;
}

static bool write_system_time(struct vcpu *v, u64 value)
{
	struct pvclock_vcpu_time_info *r;
	struct pvclock_scale scale = pvclock_scale(tsc_hz());

	v->system_time_msr = value;
	if (!(value & SYSTEM_TIME_ENABLE))
		return true;
	/* An address outside of RAM is accepted and never written to, as KVM does. */
	r = guest_ptr(&v->vm->mem, value & ~SYSTEM_TIME_ENABLE, sizeof(*r));
	if (!r)
		return true;
	v->kvmclock_version += 2;
	WRITE_ONCE(r->version, v->kvmclock_version - 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* VM time 0 is host TSC tsc_base: one line for all vCPUs, whatever a guest wrote to its own
	 * TSC. */
	r->tsc_timestamp = v->vm->tsc_base + v->tsc_offset;
	r->system_time = 0;
	r->tsc_to_system_mul = scale.mul;
	r->tsc_shift = scale.shift;
	r->flags = PVCLOCK_TSC_STABLE;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	WRITE_ONCE(r->version, v->kvmclock_version);
	return true;
}

void pv_tsc_changed(struct vcpu *v)
{
	if (v->system_time_msr & SYSTEM_TIME_ENABLE)
		write_system_time(v, v->system_time_msr);
}

/* Time of day at VM time 0; the guest adds the system time. Filled once, on the write. */
static bool write_wall_clock(struct vcpu *v, u64 value)
{
	struct pvclock_wall_clock *r = guest_ptr(&v->vm->mem, value, sizeof(*r));

	v->wall_clock_msr = value;
	if (!r)
		return true;
	WRITE_ONCE(r->version, 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	r->sec = v->vm->epoch_ns / 1000000000;
	r->nsec = v->vm->epoch_ns % 1000000000;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	WRITE_ONCE(r->version, 2);
	return true;
}

bool pv_msr_read(struct vcpu *v, u32 msr, u64 *value)
{
	if (!(v->vm->cfg->pv & CFG_PV_CLOCK))
		return false;
	switch (msr) {
	case MSR_WALL_CLOCK_OLD:
	case MSR_WALL_CLOCK_NEW:
		*value = v->wall_clock_msr;
		return true;
	case MSR_SYSTEM_TIME_OLD:
	case MSR_SYSTEM_TIME_NEW:
		*value = v->system_time_msr;
		return true;
	default:
		return false;
	}
}

bool pv_msr_write(struct vcpu *v, u32 msr, u64 value)
{
	if (!(v->vm->cfg->pv & CFG_PV_CLOCK))
		return false;
	switch (msr) {
	case MSR_WALL_CLOCK_OLD:
	case MSR_WALL_CLOCK_NEW:
		return write_wall_clock(v, value);
	case MSR_SYSTEM_TIME_OLD:
	case MSR_SYSTEM_TIME_NEW:
		return write_system_time(v, value);
	default:
		return false;
	}
}
