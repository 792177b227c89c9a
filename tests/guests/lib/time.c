/* SPDX-License-Identifier: BSD-2-Clause */
/* PIT channel 2 as the yardstick, and the TSC. */
#include "tests/guests/lib/guest.h"

#define PATIENCE 2000000000ull /* ticks; what has not come by then is lost */
#define PIT_HZ 1193182ull

void pit_start(u16 ticks)
{
	outb(PORT_NMI_SC, (inb(PORT_NMI_SC) & 0x0c) | 1); /* gate on, speaker off */
	outb(PORT_PIT + 3, 0xb0);			  /* channel 2, both bytes, mode 0 */
	outb(PORT_PIT + 2, ticks & 0xff);
	outb(PORT_PIT + 2, ticks >> 8);
}

bool pit_done(void)
{
	return inb(PORT_NMI_SC) & 0x20;
}

u64 tsc_hz(void)
{
	static u64 hz;
	const u16 ticks = PIT_HZ / 100;
	u64 start;

	if (!hz) {
		pit_start(ticks);
		start = rdtsc();
		while (!pit_done())
			;
		hz = (rdtsc() - start) * PIT_HZ / ticks;
	}
	return hz;
}

void delay_ticks(u64 tsc_ticks)
{
	u64 start = rdtsc();

	while (rdtsc() - start < tsc_ticks)
		pause();
}

void wait_count(const u32 *count, u32 value, const char *what)
{
	u64 start = rdtsc();
	u32 now;

	while ((now = READ_ONCE(*count)) != value) {
		CHECK(now < value, "%s: %u, not %u", what, now, value);
		CHECK(rdtsc() - start < PATIENCE, "%s: %u of %u, and no more", what, now, value);
		pause();
	}
}
