/* SPDX-License-Identifier: BSD-2-Clause */
/* kvmclock: see clock.h. Records may lie at odd addresses, so they are written with memcpy(). */
#include "hv/pv/clock.h"

#include "hv/lib/math.h"
#include "hv/lib/string.h"

#define SYSTEM_TIME_ENABLE 1ull

#define compiler_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

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
		s.mul = shl_div(1000000000, 32, hz << s.shift);
	return s;
}

static void put_version(void *rec, u32 version)
{
	compiler_barrier();
	memcpy(rec, &version, sizeof(version));
	compiler_barrier();
}

void pv_clock_msr_write(struct pv_clock *c, const struct guest_mem *mem, u64 value)
{
	c->msr = value;
	c->rec = NULL;
	if (value & SYSTEM_TIME_ENABLE)
		c->rec = guest_ptr(mem, value & ~SYSTEM_TIME_ENABLE,
				   sizeof(struct pvclock_vcpu_time_info));
}

void pv_clock_fill(struct pv_clock *c, u64 tsc_zero, struct pvclock_scale scale, bool stable)
{
	struct pvclock_vcpu_time_info r = {
	    .version = c->version + 1,
	    .tsc_timestamp = tsc_zero,
	    .tsc_to_system_mul = scale.mul,
	    .tsc_shift = scale.shift,
	    .flags = stable ? PVCLOCK_TSC_STABLE : 0,
	};

	if (!c->rec)
		return;
	c->version += 2;
	put_version(c->rec, r.version);
	memcpy(c->rec, &r, sizeof(r));
	put_version(c->rec, c->version);
}

void pv_wall_clock_write(const struct guest_mem *mem, u64 gpa, u64 epoch_ns)
{
	struct pvclock_wall_clock w = {.sec = epoch_ns / 1000000000, .nsec = epoch_ns % 1000000000};
	void *rec = gpa ? guest_ptr(mem, gpa, sizeof(w)) : NULL;

	if (!rec)
		return;
	memcpy(&w.version, rec, sizeof(w.version));
	w.version += 1 + (w.version & 1);
	put_version(rec, w.version);
	memcpy(rec, &w, sizeof(w));
	put_version(rec, w.version + 1);
}
