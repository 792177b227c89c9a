/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPIs to another CPU by the thousand, none lost and none twice, whatever the target is doing:
 * running with interrupts on, with interrupts off, halted, or on its way between them. With fewer
 * pCPUs than vCPUs it is queued most of the time. n= IPIs for each.
 */
#include "tests/guests/lib/guest.h"

#define VECTOR 0x40 /* of CPU 0; that of CPU n is n above */
#define MAX 8

enum { SPINS, IF_OFF, HALTS, MIXED, NR_TARGETS };
static const char *const names[] = {"spinning", "interrupts off", "halting", "mixed"};

static u32 taken[MAX], stop, ready;
static u64 n;

static void on_ipi(struct frame *f)
{
	apic_eoi();
	__atomic_add_fetch(&taken[f->vector - VECTOR], 1, __ATOMIC_SEQ_CST);
}

/* One round of the target, interrupts off before and after it. */
static void once(u32 what, u32 round)
{
	switch (what) {
	case SPINS:
		sti();
		for (u32 i = 0; i < 50; i++)
			barrier();
		break;
	case IF_OFF: /* sent with interrupts off, taken in the one moment when they are on */
		for (u32 i = 0; i < 100 + round % 37; i++)
			barrier();
		__asm__ volatile("sti; nop" ::: "memory");
		break;
	case HALTS:
		if (!READ_ONCE(stop))
			sti_hlt();
		break;
	case MIXED:
		once(round % 3, round);
		break;
	}
	cli();
}

static void target(u64 what)
{
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	for (u32 round = 0; !READ_ONCE(stop); round++)
		once(what, round);
}

static void send_all(u32 cpu, u32 cpus, const char *what)
{
	u32 *mine = &taken[smp_cpu()], base = *mine;

	for (u32 i = 1; i <= n; i++) {
		apic_icr(smp_apic_id(cpu), ICR_FIXED | (VECTOR + smp_cpu()));
		wait_count(mine, base + i, what);
		/* So that each comes at another moment of the target's loop. */
		for (u32 k = 0; k < i % 61; k++)
			barrier();
	}
}

static void one_target(u32 what)
{
	stop = ready = 0;
	smp_run(1, target, what);
	wait_count(&ready, 1, "targets");
	send_all(1, 2, names[what]);
	stop = 1;
	apic_icr(smp_apic_id(1), ICR_FIXED | VECTOR); /* it may be halted */
	smp_wait(1);
	wait_count(&taken[0], (n + 1) * (what + 1), names[what]);
}

static void both_ways(u64 cpus)
{
	sti();
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	wait_count(&ready, cpus, "CPUs that are ready");
	send_all((smp_cpu() + 1) % cpus, cpus, "to the next CPU");
	__atomic_sub_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (READ_ONCE(ready))
		pause();
}

int guest_main(void)
{
	u32 cpus;

	n = arg("n", 1000);
	for (u32 i = 0; i < MAX; i++)
		irq_set(VECTOR + i, on_ipi);
	cpus = smp_start();
	CHECK(cpus > 1 && cpus <= MAX, "2 to %u CPUs are needed", MAX);
	for (u32 what = 0; what < NR_TARGETS; what++)
		one_target(what);
	ready = 0;
	taken[0] = 0;
	for (u32 i = 1; i < cpus; i++)
		smp_run(i, both_ways, cpus);
	both_ways(cpus);
	for (u32 i = 0; i < cpus; i++)
		CHECK(taken[i] == n, "CPU %u: %u of %llu", i, taken[i], (unsigned long long)n);
	printf("ipi-target: %u CPUs, %llu each\n", cpus, (unsigned long long)n);
	return 0;
}
