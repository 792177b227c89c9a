/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPU 0 sends CPU 1 an IPI and spins with PAUSE until it is acknowledged; CPU 1 and the CPUs after
 * it compute, so that on one pCPU all of them wait for their turn: only CPU 1 is of any use to the
 * spinner, and nothing but the IPI tells it from the others. Reports ticks from the IPI to its
 * acknowledgement, and until CPU 0 goes on, which is when it next has the pCPU. Arguments: n= IPIs
 * (1000), gap= instructions between two on average (1000), halt=1 CPU 1 halts between two instead
 * of computing.
 */
#include "tests/guests/lib/bench.h"

#define VEC 0x50

static u64 back[BENCH_MAX]; /* ticks until CPU 0 goes on */
static u64 answered;	    /* when, by the TSC */
static u32 acknowledged;
static bool halting;

static void on_ipi(struct frame *f)
{
	apic_eoi();
	WRITE_ONCE(answered, rdtsc());
	WRITE_ONCE(acknowledged, acknowledged + 1);
}

static void answer(u64 unused)
{
	for (;;) {
		if (halting) {
			sti_hlt();
			continue;
		}
		sti();
		barrier();
	}
}

static void compute(u64 unused)
{
	for (;;)
		barrier();
}

static void work(u64 n)
{
	for (u64 i = 0; i < n; i++)
		barrier();
}

int guest_main(void)
{
	u64 gap = arg("gap", 1000) / 3; /* three instructions a round */
	u32 cpus = smp_start();

	CHECK(cpus >= 2, "two CPUs are needed");
	halting = arg("halt", 0);
	irq_set(VEC, on_ipi);
	bench_init();
	for (u32 i = 1; i < cpus; i++)
		smp_run(i, i == 1 ? answer : compute, 0);
	for (u32 i = 0; i < bench_n; i++) {
		u64 sent;

		/* At another moment of the slice each time: a half to one and a half of the gap. */
		work(gap / 2 + gap * (i * 37 % 64) / 64);
		sent = rdtsc();
		apic_icr(smp_apic_id(1), ICR_FIXED | VEC);
		while (READ_ONCE(acknowledged) != i + 1)
			pause();
		back[i] = rdtsc() - sent;
		bench_samples[i] = READ_ONCE(answered) - sent;
	}
	bench_report_raw("ipi_to_ack");
	for (u32 i = 0; i < bench_n; i++)
		bench_samples[i] = back[i];
	bench_report_raw("ipi_to_return");
	printf("ipi-yield: %u CPUs, %u IPIs\n", cpus, bench_n);
	return 0;
}
