/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wake-ups that were lost once. mode=
 *	1	an IPI that a halted CPU's TPR holds back must not hide a later one that wakes it
 *	2	an NMI to a CPU that has not started yet must not hide INIT and SIPI
 *	4	a device timer that another CPU programs must come while CPU 0 sleeps
 *	3	an APIC that is disabled while something waits under its TPR: the guest goes on
 * All but 3 need two CPUs.
 */
#include "tests/guests/lib/guest.h"

#define VEC_LOW 0x40
#define VEC_HIGH 0x90
#define VEC_PIT 0x50
#define SOON 2000000ull	     /* ticks until the other side surely sleeps */
#define TIMEOUT 100000000ull /* ticks */

enum { MODE_TPR = 1, MODE_NMI, MODE_OFF, MODE_PIT };

static u32 ready, got_high, ticked;

static void on_low(struct frame *f)
{
	apic_eoi();
}

static void on_high(struct frame *f)
{
	WRITE_ONCE(got_high, 1);
	apic_eoi();
}

static void on_pit(struct frame *f)
{
	WRITE_ONCE(ticked, 1);
	apic_eoi();
}

static void sleep_under_tpr(u64 unused)
{
	apic_write(APIC_TPR, 0x80);
	WRITE_ONCE(ready, 1);
	while (!READ_ONCE(got_high)) {
		sti_hlt();
		cli();
	}
	apic_write(APIC_TPR, 0);
	sti();
	pause();
	cli();
}

static int tpr(void)
{
	u64 start;

	irq_set(VEC_LOW, on_low);
	irq_set(VEC_HIGH, on_high);
	CHECK(smp_start() >= 2, "two CPUs are needed");
	smp_run(1, sleep_under_tpr, 0);
	while (!READ_ONCE(ready))
		pause();
	delay_ticks(SOON);
	apic_icr(smp_apic_id(1), ICR_FIXED | VEC_LOW);
	delay_ticks(SOON);
	apic_icr(smp_apic_id(1), ICR_FIXED | VEC_HIGH);
	start = rdtsc();
	while (!READ_ONCE(got_high)) {
		CHECK(rdtsc() - start < TIMEOUT, "the second IPI does not wake the CPU");
		pause();
	}
	smp_wait(1);
	return 0;
}

static int nmi(void)
{
	u32 ids[MAX_CPUS];

	CHECK(acpi_cpus(ids, MAX_CPUS) >= 2, "two CPUs are needed");
	apic_icr(ids[1], ICR_NMI);
	delay_ticks(SOON);
	CHECK(smp_start() >= 2, "the other CPU does not start after the NMI");
	return 0;
}

static void program_pit(u64 unused)
{
	u64 start;

	delay_ticks(SOON);
	outb(0x43, 0x30); /* channel 0, mode 0, 4096 counts: 3.4 ms */
	outb(0x40, 0x00);
	outb(0x40, 0x10);
	start = rdtsc();
	while (!READ_ONCE(ticked)) {
		CHECK(rdtsc() - start < TIMEOUT, "the PIT's interrupt does not come");
		pause();
	}
}

static int pit(void)
{
	pic_mask();
	irq_set(VEC_PIT, on_pit);
	CHECK(smp_start() >= 2, "two CPUs are needed");
	ioapic_route(2, VEC_PIT, apic_id());
	smp_run(1, program_pit, 0);
	while (!READ_ONCE(ticked)) {
		sti_hlt();
		cli();
	}
	smp_wait(1);
	return 0;
}

static int off(void)
{
	apic_write(APIC_TPR, 0x80);
	apic_self_ipi(VEC_LOW);
	wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) & ~(APIC_BASE_EN | APIC_BASE_EXTD));
	outb(0x80, 0); /* an exit and an entry */
	return 0;
}

int guest_main(void)
{
	switch (arg("mode", 0)) {
	case MODE_TPR:
		return tpr();
	case MODE_NMI:
		return nmi();
	case MODE_OFF:
		return off();
	case MODE_PIT:
		return pit();
	}
	test_fail("mode=1 (TPR), 2 (NMI), 3 (APIC off) or 4 (PIT) is needed");
}
