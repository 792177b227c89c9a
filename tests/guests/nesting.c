/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupts inside of interrupts: a higher class gets in, its own and lower ones wait; each EOI
 * ends the highest in service, whichever handler sends it; PPR and ISR say so at every step.
 */
#include "tests/guests/lib/guest.h"

#define CLASSES 14 /* 2..15 */

static u32 depth, taken;
static u8 log[64];

static void now(void)
{
	__asm__ volatile("sti; nop; nop" ::: "memory");
	cli();
}

static void note(u8 vector)
{
	log[taken % ARRAY_SIZE(log)] = vector;
	taken++;
}

/* From class to class up to the highest, every one in the handler of the one below. */
static void on_climb(struct frame *f)
{
	u8 vector = f->vector;
	u32 before;

	note(vector);
	depth++;
	CHECK(apic_read(APIC_PPR) == (vector & 0xf0), "PPR is %x in the handler of %x",
	      apic_read(APIC_PPR), vector);
	for (u32 v = 0x25; v <= vector; v += 0x10)
		CHECK(apic_bit(APIC_ISR, v), "%x is not in service in the handler of %x", v,
		      vector);
	before = taken;
	/* Its own class, and one below: they must wait. */
	apic_self_ipi((vector & 0xf0) | 0xf);
	now();
	CHECK(taken == before, "an interrupt of its own class gets into the handler of %x", vector);
	if (vector < 0xf0) {
		apic_self_ipi(vector + 0x10);
		now();
		CHECK(taken > before, "no interrupt of a higher class in the handler of %x",
		      vector);
	}
	depth--;
	apic_eoi();
	CHECK(!apic_bit(APIC_ISR, vector), "EOI leaves %x in service", vector);
}

/* What waited, of each class: comes as soon as its class is free. */
static void on_second(struct frame *f)
{
	note(f->vector);
	CHECK(apic_bit(APIC_ISR, f->vector), "%llx is not in service",
	      (unsigned long long)f->vector);
	apic_eoi();
}

static void climb(void)
{
	for (u32 c = 2; c < 16; c++) {
		irq_set(c << 4 | 5, on_climb);
		irq_set(c << 4 | 0xf, on_second);
	}
	apic_self_ipi(0x25);
	now();
	CHECK(taken == 2 * CLASSES && !depth, "%u interrupts, not %u", taken, 2 * CLASSES);
	for (u32 i = 0; i < CLASSES; i++) {
		CHECK(log[i] == ((i + 2) << 4 | 5), "number %u is %x", i, log[i]);
		/* Down again, from the highest. */
		CHECK(log[CLASSES + i] == ((15 - i) << 4 | 0xf), "number %u is %x", CLASSES + i,
		      log[CLASSES + i]);
	}
}

static void on_plain(struct frame *f)
{
	note(f->vector);
	apic_eoi();
}

/* All at once with interrupts off: from the highest to the lowest, over all four words of the IRR.
 */
static void order(void)
{
	static const u8 vectors[] = {0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xef, 0xf0, 0x20, 0x21};
	u32 last = 0x100;

	taken = 0;
	for (u32 i = 0; i < ARRAY_SIZE(vectors); i++) {
		irq_set(vectors[i], on_plain);
		apic_self_ipi(vectors[i]);
	}
	now();
	wait_count(&taken, ARRAY_SIZE(vectors), "all at once");
	for (u32 i = 0; i < taken; i++) {
		CHECK(log[i] < last, "%x comes after %x", log[i], last);
		last = log[i];
	}
}

/* EOIs that come early, late, or too often. */
static void on_outer(struct frame *f)
{
	note(f->vector);
	apic_self_ipi(0x90);
	now();
	/* The inner handler sent none: this one is the inner one's. */
	CHECK(apic_bit(APIC_ISR, 0x90) && apic_bit(APIC_ISR, 0x50), "both are in service");
	apic_eoi();
	CHECK(!apic_bit(APIC_ISR, 0x90) && apic_bit(APIC_ISR, 0x50), "EOI ends the lower one");
	CHECK(apic_read(APIC_PPR) == 0x50, "PPR is %x", apic_read(APIC_PPR));
	apic_eoi();
	CHECK(!apic_bit(APIC_ISR, 0x50) && !apic_read(APIC_PPR), "the second EOI ends nothing");
	apic_eoi(); /* nothing is in service: no effect */
}

static void on_inner(struct frame *f)
{
	note(f->vector);
}

static void eoi_order(void)
{
	taken = 0;
	irq_set(0x50, on_outer);
	irq_set(0x90, on_inner);
	apic_self_ipi(0x50);
	now();
	CHECK(taken == 2, "%u interrupts, not 2", taken);
	CHECK(!apic_read(APIC_PPR), "PPR is %x in the end", apic_read(APIC_PPR));
}

int guest_main(void)
{
	climb();
	order();
	eoi_order();
	return 0;
}
