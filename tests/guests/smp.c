/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts every CPU that the MADT names; each reports. Then all work at once, all get a broadcast
 * IPI, and one is stopped and started again, as CPU hotplug does it. Argument: cpus= how many
 * there have to be.
 */
#include "tests/guests/lib/guest.h"

#define VECTOR 0x60
#define ROUNDS 1000
#define PATIENCE 4000000000ull /* ticks */

static u32 counter, received, reported[MAX_CPUS];

static void report(u64 unused)
{
	printf("cpu %u: APIC id %u\n", smp_cpu(), apic_id());
	reported[smp_cpu()]++;
}

static void count(u64 rounds)
{
	while (rounds--)
		__atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST);
}

static void on_ipi(struct frame *f)
{
	__atomic_add_fetch(&received, 1, __ATOMIC_SEQ_CST);
	apic_eoi();
}

static void wait_for_ipi(u64 unused)
{
	u64 start = rdtsc();

	__atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST);
	sti();
	while (!READ_ONCE(received) && rdtsc() - start < PATIENCE)
		pause();
	cli();
}

static void run_on_others(u32 cpus, void (*job)(u64), u64 value)
{
	for (u32 i = 1; i < cpus; i++)
		smp_run(i, job, value);
}

static void wait_for_others(u32 cpus)
{
	for (u32 i = 1; i < cpus; i++)
		smp_wait(i);
}

static void broadcast(u32 cpus)
{
	u64 start = rdtsc();

	counter = 0;
	run_on_others(cpus, wait_for_ipi, 0);
	while (READ_ONCE(counter) < cpus - 1)
		pause();
	apic_icr(0, ICR_OTHERS | ICR_FIXED | VECTOR);
	while (READ_ONCE(received) < cpus - 1 && rdtsc() - start < PATIENCE)
		pause();
	CHECK(received == cpus - 1, "%u of %u CPUs got the broadcast", received, cpus - 1);
	wait_for_others(cpus);
}

int guest_main(void)
{
	u32 cpus = smp_start();

	CHECK(arg("cpus", cpus) == cpus, "%u CPUs in the MADT", cpus);
	report(0);
	for (u32 i = 1; i < cpus; i++) {
		smp_run(i, report, 0);
		smp_wait(i);
	}
	for (u32 i = 0; i < cpus; i++)
		CHECK(reported[i] == 1, "CPU %u reported %u times", i, reported[i]);

	run_on_others(cpus, count, ROUNDS);
	count(ROUNDS);
	wait_for_others(cpus);
	CHECK(counter == cpus * ROUNDS, "counted %u, not %u", counter, cpus * ROUNDS);

	irq_set(VECTOR, on_ipi);
	if (cpus > 1) {
		broadcast(cpus);
		smp_restart(cpus - 1);
		smp_run(cpus - 1, report, 0);
		smp_wait(cpus - 1);
		CHECK(reported[cpus - 1] == 2, "CPU %u did not come back", cpus - 1);
	}
	printf("smp: %u CPUs\n", cpus);
	return 0;
}
