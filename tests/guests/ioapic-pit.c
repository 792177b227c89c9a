/* SPDX-License-Identifier: BSD-2-Clause */
/* IRQ 0 by the MADT's override: PIT channel 0 through IOAPIC pin 2, edge-triggered. */
#include "tests/guests/lib/guest.h"

#define VECTOR 0x60
#define PIN 2
#define PIT_HZ 1193182ull
#define RATE 1193 /* 1 ms */
#define PERIODS 20
#define PATIENCE 50 /* times as long as it should take */

static volatile u32 taken;
static volatile u64 stamp;
static u64 tsc_per_ms;

static void on_pit(struct frame *f)
{
	stamp = rdtsc();
	taken++;
	apic_eoi();
}

static void program(u8 mode, u16 count)
{
	outb(PORT_PIT + 3, 0x30 | mode << 1); /* channel 0, both bytes */
	outb(PORT_PIT, count & 0xff);
	outb(PORT_PIT, count >> 8);
}

static void wait_taken(u32 n)
{
	u64 start = rdtsc();

	for (cli(); taken < n; cli()) {
		CHECK(rdtsc() - start < PATIENCE * (n + 1) * tsc_per_ms, "%u of %u interrupts",
		      taken, n);
		sti_hlt();
	}
}

static void expect_silence(const char *when)
{
	u32 before = taken;

	sti();
	delay_ticks(5 * tsc_per_ms);
	cli();
	CHECK(taken == before, "%u interrupts %s", taken - before, when);
}

int guest_main(void)
{
	u64 first, period;

	irq_set(VECTOR, on_pit);
	tsc_per_ms = tsc_hz() / 1000;
	printf("ioapic-pit: IOAPIC version %x\n", ioapic_read(1));
	CHECK((ioapic_read(1) >> 16 & 0xff) == 23, "the IOAPIC has %u pins, not 24",
	      (ioapic_read(1) >> 16 & 0xff) + 1);

	program(2, RATE); /* rate generator */
	ioapic_route(PIN, VECTOR, apic_id());
	wait_taken(1);
	first = stamp;
	wait_taken(1 + PERIODS);
	period = (stamp - first) / PERIODS;
	printf("ioapic-pit: period of %llu ticks, wanted %llu\n", (unsigned long long)period,
	       (unsigned long long)tsc_per_ms);
	CHECK(period > tsc_per_ms * 90 / 100 && period < tsc_per_ms * 2,
	      "the period is %llu ticks, not %llu", (unsigned long long)period,
	      (unsigned long long)tsc_per_ms);
	ioapic_route(PIN, 0, 0);
	sti();
	delay_ticks(1000);
	cli();
	expect_silence("from a masked pin");

	program(0, RATE); /* one shot: the output is low until then */
	ioapic_route(PIN, VECTOR, apic_id());
	taken = 0;
	program(0, RATE);
	wait_taken(1);
	expect_silence("after a one-shot");
	return 0;
}
