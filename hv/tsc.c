/* SPDX-License-Identifier: BSD-2-Clause */
/* Measuring the TSC; see tsc.h. */
#include "hv/tsc.h"

#include "hv/lib/bug.h"
#include "hv/lib/math.h"
#include "hv/x86/cpu.h"

#define PIT_HZ 1193182u
#define PIT_CH2 0x42
#define PIT_CMD 0x43
#define PORT_B 0x61
#define PORT_B_GATE2 BIT(0)
#define PORT_B_SPEAKER BIT(1)
#define PORT_B_OUT2 BIT(5)
#define PIT_CH2_MODE0                                                                              \
	0xb0 /* channel 2, low then high byte, mode 0: output rises when the count is over */
#define CALIBRATE_MS 20
#define SYNC_ROUNDS 64

static u64 hz;
u64 tsc_zero, tsc_ns_mult, tsc_tick_mult;

/* TSC ticks in one PIT one-shot of CALIBRATE_MS. */
static u64 measure_once(void)
{
	u32 count = PIT_HZ * CALIBRATE_MS / 1000;
	u64 t0, spins = 0;

	outb(PORT_B, (inb(PORT_B) & ~PORT_B_SPEAKER) | PORT_B_GATE2);
	outb(PIT_CMD, PIT_CH2_MODE0);
	outb(PIT_CH2, count & 0xff);
	outb(PIT_CH2, count >> 8);
	t0 = rdtsc();
	while (!(inb(PORT_B) & PORT_B_OUT2)) {
		if (++spins > 1ull << 32)
			BUG("the PIT does not count: the TSC cannot be calibrated");
	}
	return rdtsc() - t0;
}

void tsc_init(void)
{
	u64 best = UINT64_MAX;

	/* Anything that disturbs makes it longer, so the shortest of a few is the truth. */
	for (int i = 0; i < 3; i++)
		best = min(best, measure_once());
	hz = best * 1000 / CALIBRATE_MS;
	BUG_ON(hz < 1000000);
	tsc_ns_mult = shl_div(1000000000, 32, hz);
	tsc_tick_mult = shl_div(hz, 32, 1000000000);
	tsc_zero = rdtsc();
}

u64 tsc_hz(void)
{
	return hz;
}

void tsc_delay_us(u32 us)
{
	u64 end = rdtsc() + tsc_from_ns(us * 1000ull);

	while (rdtsc() < end)
		cpu_relax();
}

/* One word that both sides count up in turn; the primary's stamp is read between two of the
 * secondary's. */
static u64 turn, stamp;

void tsc_sync_prepare(void)
{
	WRITE_ONCE(turn, 0);
}

bool tsc_sync_primary(u64 deadline)
{
	for (u64 i = 0; i < SYNC_ROUNDS; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != 2 * i + 1) {
			if (i == 0 && rdtsc() > deadline)
				return false;
			cpu_relax();
		}
		WRITE_ONCE(stamp, rdtsc());
		__atomic_store_n(&turn, 2 * i + 2, __ATOMIC_RELEASE);
	}
	return true;
}

s64 tsc_sync_secondary(void)
{
	u64 best_trip = UINT64_MAX;
	s64 skew = 0;

	for (u64 i = 0; i < SYNC_ROUNDS; i++) {
		u64 before = rdtsc(), after;

		__atomic_store_n(&turn, 2 * i + 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != 2 * i + 2)
			cpu_relax();
		after = rdtsc();
		if (after - before < best_trip) {
			best_trip = after - before;
			skew = (s64)(before + best_trip / 2 - READ_ONCE(stamp));
		}
	}
	/* Less than the trip itself cannot be told from none. */
	return skew < 0 ? ((u64)-skew <= best_trip ? 0 : skew)
			: ((u64)skew <= best_trip ? 0 : skew);
}
