/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NMI IPIs: they come with interrupts off, whatever the TPR and what is in service, wake a halted
 * CPU, touch no APIC register, and wait while one is being handled, until IRET, as one.
 * Argument: rounds=.
 */
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

#define NMI 2
#define VECTOR 0xf1

static u32 nmis[MAX_CPUS], interrupted, up, stop;
static bool again, nested;

static void on_nmi(struct frame *f)
{
	static u32 depth[MAX_CPUS];
	u32 me = smp_cpu();

	nested |= depth[me]++ != 0;
	__atomic_add_fetch(&nmis[me], 1, __ATOMIC_SEQ_CST);
	if (again) { /* two more while this one is handled: they merge */
		again = false;
		apic_icr(apic_id(), ICR_NMI);
		apic_icr(apic_id(), ICR_NMI);
		for (u32 i = 0; i < 2000; i++)
			barrier();
	}
	depth[me]--;
}

/* In service while the NMI comes. */
static void on_ipi(struct frame *f)
{
	interrupted++;
	apic_icr(apic_id(), ICR_NMI);
	wait_count(&nmis[0], interrupted, "NMIs inside of a handler");
	CHECK(apic_bit(APIC_ISR, VECTOR), "an NMI changes the ISR");
	apic_eoi();
}

static void to_itself(void)
{
	write_cr8(15);
	apic_icr(apic_id(), ICR_NMI);
	wait_count(&nmis[0], 1, "NMI with interrupts off and TPR 15");
	write_cr8(0);
	for (u32 i = 0; i < 8; i++)
		CHECK(!apic_read(APIC_IRR + i * 0x10) && !apic_read(APIC_ISR + i * 0x10),
		      "an NMI shows in the IRR or ISR");
	nmis[0] = 0;
	irq_set(VECTOR, on_ipi);
	for (u32 i = 1; i <= 10; i++) {
		apic_self_ipi(VECTOR);
		sti();
		wait_count(&interrupted, i, "interrupts");
		cli();
	}
}

/* STI and MOV SS hold an interrupt back for one instruction; NMIs come in the end in any case. */
static void merge(void)
{
	nmis[0] = 0;
	again = true;
	apic_icr(apic_id(), ICR_NMI);
	wait_count(&nmis[0], 2, "NMIs, two of them sent while one is handled");
	delay_ticks(5000);
	CHECK(nmis[0] == 2, "%u NMIs, not 2", nmis[0]);
	CHECK(!nested, "an NMI interrupts the handler of one");
}

enum { SPINS, HALTED_IF_OFF, HALTED };

static void target(u64 how)
{
	WRITE_ONCE(up, 1);
	while (!READ_ONCE(stop)) {
		if (how == HALTED_IF_OFF)
			__asm__ volatile("hlt" ::: "memory");
		else if (how == HALTED)
			sti_hlt();
		else
			pause();
		cli();
	}
}

static void to_another(u32 how, const char *what)
{
	u32 rounds = arg("rounds", 200);

	up = stop = nmis[1] = 0;
	smp_run(1, target, how);
	wait_count(&up, 1, "targets");
	for (u32 i = 1; i <= rounds; i++) {
		apic_icr(smp_apic_id(1), ICR_NMI);
		wait_count(&nmis[1], i, what);
		for (u32 k = 0; k < i % 97; k++)
			barrier();
	}
	WRITE_ONCE(stop, 1);
	apic_icr(smp_apic_id(1), ICR_NMI);
	smp_wait(1);
	wait_count(&nmis[1], rounds + 1, what);
}

static void to_others(u32 cpus)
{
	memset(nmis, 0, sizeof(nmis));
	apic_icr(0, ICR_OTHERS | ICR_NMI);
	for (u32 i = 1; i < cpus; i++)
		wait_count(&nmis[i], 1, "NMIs to all others");
	delay_ticks(5000);
	CHECK(!nmis[0], "an NMI to all others comes to the sender");
}

int guest_main(void)
{
	u32 cpus;

	irq_set(NMI, on_nmi);
	to_itself();
	merge();
	cpus = smp_start();
	if (cpus > 1) {
		to_another(SPINS, "NMIs to a spinning CPU");
		to_another(HALTED_IF_OFF, "NMIs to a CPU halted with interrupts off");
		to_another(HALTED, "NMIs to a halted CPU");
		to_others(cpus);
	}
	CHECK(!nested, "an NMI interrupts the handler of one");
	return 0;
}
