/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The local APIC timer in its three modes, in whichever APIC mode the guest starts: how often it
 * fires, when, and what stops it. Argument: lax=1 for Bochs itself, which does not clear the
 * deadline.
 */
#include "tests/guests/lib/bench.h"

#define VECTOR 0x60
#define TDCR_1 0xb
#define TDCR_16 0x3
#define PATIENCE 10 /* times the expected wait, then an interrupt is lost */
#define PERIODS 20
#define DISTANCES 50 /* of deadlines, in a millisecond */

static volatile u32 taken;
static volatile u64 stamp;
static u64 period; /* timer counts, and TSC ticks for about 1 ms */
static u64 tsc_per_ms;

static void on_timer(struct frame *f)
{
	stamp = rdtsc();
	taken++;
	apic_eoi();
}

/* Waits, interrupts on, until @n interrupts have come; spins or halts. */
static void wait_taken(u32 n, bool halt)
{
	u64 start = rdtsc();

	while (taken < n) {
		CHECK(rdtsc() - start < PATIENCE * (n + 1) * tsc_per_ms, "%u of %u interrupts",
		      taken, n);
		if (halt)
			sti_hlt();
		else
			sti();
		cli();
	}
}

/* Interrupts on for @ms; none more may come. */
static void expect_silence(u32 ms, const char *when)
{
	u32 before = taken;

	sti();
	delay_ticks(ms * tsc_per_ms);
	cli();
	CHECK(taken == before, "%u interrupts %s", taken - before, when);
}

/* How many counts of the timer, at divide 1, a millisecond has. */
static void calibrate(void)
{
	u64 t;

	tsc_per_ms = tsc_hz() / 1000;
	apic_write(APIC_LVT_TIMER, LVT_MASKED);
	apic_write(APIC_TDCR, TDCR_1);
	apic_write(APIC_TMICT, ~0u);
	t = rdtsc();
	while (rdtsc() - t < 4 * tsc_per_ms)
		;
	period = (~0u - apic_read(APIC_TMCCT)) / 4;
	apic_write(APIC_TMICT, 0);
	CHECK(period > 100, "the timer counts %llu in 1 ms", (unsigned long long)period);
	CHECK(apic_read(APIC_TMCCT) == 0, "a stopped timer shows %u", apic_read(APIC_TMCCT));
}

static void one_shot(bool halt)
{
	u64 start;

	taken = 0;
	apic_write(APIC_LVT_TIMER, VECTOR);
	start = rdtsc();
	apic_write(APIC_TMICT, period);
	wait_taken(1, halt);
	/* 5 % for the two clocks, whose rates are known from measurements. */
	CHECK(stamp - start > tsc_per_ms * 95 / 100, "one-shot fires after %llu of %llu ticks",
	      (unsigned long long)(stamp - start), (unsigned long long)tsc_per_ms);
	CHECK(apic_read(APIC_TMCCT) == 0, "the count is not 0 after the shot");
	expect_silence(3, "after a one-shot");
}

static void divided(void)
{
	u64 start;

	taken = 0;
	apic_write(APIC_TDCR, TDCR_16);
	start = rdtsc();
	apic_write(APIC_TMICT, period / 16);
	wait_taken(1, false);
	CHECK(stamp - start > tsc_per_ms * 90 / 100,
	      "divided by 16, fires after %llu of %llu ticks", (unsigned long long)(stamp - start),
	      (unsigned long long)tsc_per_ms);
	apic_write(APIC_TDCR, TDCR_1);
}

static void periodic(void)
{
	u64 first, total;

	taken = 0;
	apic_write(APIC_LVT_TIMER, LVT_PERIODIC | VECTOR);
	apic_write(APIC_TMICT, period);
	wait_taken(1, false);
	first = stamp;
	wait_taken(1 + PERIODS, true);
	total = (stamp - first) / PERIODS;
	printf("lapic-timer: period of %llu ticks, wanted %llu\n", (unsigned long long)total,
	       (unsigned long long)tsc_per_ms);
	CHECK(total > tsc_per_ms * 90 / 100, "the period is %llu, not %llu ticks",
	      (unsigned long long)total, (unsigned long long)tsc_per_ms);
	apic_write(APIC_TMICT, 0);
	sti(); /* one may be pending */
	delay_ticks(1000);
	cli();
	expect_silence(3, "after a count of 0");
	apic_write(APIC_LVT_TIMER, LVT_MASKED | LVT_PERIODIC | VECTOR);
	apic_write(APIC_TMICT, period);
	expect_silence(3, "from a masked timer");
	apic_write(APIC_TMICT, 0);
}

/* Whatever the distance, and whether the CPU spins or sleeps. The handler begins with RDTSC. */
static void never_early(void)
{
	apic_write(APIC_LVT_TIMER, LVT_DEADLINE | BENCH_VECTOR);
	for (u32 i = 0; i < 2 * DISTANCES; i++) {
		u32 before = bench_taken;
		u64 at = rdtsc() + 1000 + i * tsc_per_ms / DISTANCES;

		wrmsr(MSR_TSC_DEADLINE, at);
		while (bench_taken == before) {
			CHECK(rdtsc() < at + PATIENCE * tsc_per_ms, "deadline %u is lost", i);
			if (i % 2)
				sti_hlt();
			else
				sti();
			cli();
		}
		CHECK(bench_stamp >= at, "deadline %u fires %llu ticks early", i,
		      (unsigned long long)(at - bench_stamp));
	}
	apic_write(APIC_LVT_TIMER, LVT_DEADLINE | VECTOR);
}

static void deadline(void)
{
	u64 at;

	if (!apic_has_deadline()) {
		printf("lapic-timer: no TSC deadline mode\n");
		return;
	}
	apic_write(APIC_LVT_TIMER, LVT_DEADLINE | VECTOR);
	for (u32 halt = 0; halt < 2; halt++) {
		taken = 0;
		at = rdtsc() + tsc_per_ms;
		wrmsr(MSR_TSC_DEADLINE, at);
		CHECK(rdmsr(MSR_TSC_DEADLINE) == at, "the deadline does not read back");
		wait_taken(1, halt);
		CHECK(stamp >= at, "the deadline fires %llu ticks early",
		      (unsigned long long)(at - stamp));
		CHECK(rdmsr(MSR_TSC_DEADLINE) == 0 || arg("lax", 0),
		      "the deadline is not 0 after it fired");
	}
	never_early();
	taken = 0;
	wrmsr(MSR_TSC_DEADLINE, 1); /* long past */
	wait_taken(1, false);
	wrmsr(MSR_TSC_DEADLINE, rdtsc() + tsc_per_ms);
	wrmsr(MSR_TSC_DEADLINE, 0);
	expect_silence(3, "after the deadline was disarmed");
	wrmsr(MSR_TSC_DEADLINE, rdtsc() + tsc_per_ms);
	apic_write(APIC_LVT_TIMER, VECTOR); /* a change of mode disarms too */
	expect_silence(3, "after leaving deadline mode");
	apic_write(APIC_TMICT, 0);
}

int guest_main(void)
{
	irq_set(VECTOR, on_timer);
	gate_set(BENCH_VECTOR, bench_handler);
	calibrate();
	printf("lapic-timer: %s, %llu counts and %llu TSC ticks in 1 ms\n",
	       x2apic ? "x2APIC" : "xAPIC", (unsigned long long)period,
	       (unsigned long long)tsc_per_ms);
	one_shot(false);
	one_shot(true);
	divided();
	periodic();
	deadline();
	return 0;
}
