/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Task priority: an interrupt waits while its class is not above the TPR's, written through CR8 or
 * through the register (MSR or page, by the APIC's mode), and comes at the instruction that lowers
 * it. CR8 and TPR are two views of one value. Also for an IPI from another CPU, if there is one.
 */
#include "tests/guests/lib/guest.h"

#define LOW 0x31 /* classes 3, 5 and 9 */
#define MID 0x52
#define HIGH 0x93

static u32 taken;
static u8 order[16];

static void on_ipi(struct frame *f)
{
	order[taken % ARRAY_SIZE(order)] = f->vector;
	taken++;
	apic_eoi();
}

static void set_cr8(u32 class)
{
	write_cr8(class);
}

static void set_tpr(u32 class)
{
	apic_write(APIC_TPR, class << 4);
}

/* Lets pass what can pass, and then nothing more. */
static void expect(u32 n, const char *when)
{
	__asm__ volatile("sti; nop; nop" ::: "memory");
	cli();
	CHECK(taken == n, "%s: %u interrupts, not %u", when, taken, n);
}

static void steps(void (*set)(u32), const char *how)
{
	taken = 0;
	set(0xf);
	apic_self_ipi(LOW);
	apic_self_ipi(HIGH);
	apic_self_ipi(MID);
	expect(0, "TPR class 15");
	set(9);
	expect(0, "TPR class 9, its own");
	set(8);
	expect(1, "TPR class 8");
	set(5);
	expect(1, "TPR class 5");
	set(4);
	expect(2, "TPR class 4");
	set(3);
	expect(2, "TPR class 3");
	set(0);
	expect(3, "TPR class 0");
	CHECK(order[0] == HIGH && order[1] == MID && order[2] == LOW, "%s: order %x %x %x", how,
	      order[0], order[1], order[2]);
	/* With interrupts on, at the very instruction. */
	set(5);
	apic_self_ipi(MID);
	sti();
	delay_ticks(1000);
	CHECK(taken == 3, "%s: passes TPR class 5", how);
	set(4);
	barrier();
	CHECK(READ_ONCE(taken) == 4, "%s: does not come at once", how);
	cli();
	set(0);
}

static void two_views(void)
{
	apic_write(APIC_TPR, 0x47);
	CHECK(read_cr8() == 4, "TPR 47: CR8 is %llu", (unsigned long long)read_cr8());
	CHECK(apic_read(APIC_TPR) == 0x47, "TPR 47 reads %x", apic_read(APIC_TPR));
	CHECK(apic_read(APIC_PPR) == 0x47, "TPR 47: PPR is %x", apic_read(APIC_PPR));
	write_cr8(11);
	CHECK(apic_read(APIC_TPR) == 0xb0, "CR8 11: TPR is %x", apic_read(APIC_TPR));
	write_cr8(0);
	CHECK(apic_read(APIC_PPR) == 0, "PPR is %x", apic_read(APIC_PPR));
}

static u32 up, down, other_taken;

static void on_remote(struct frame *f)
{
	apic_eoi();
	__atomic_add_fetch(&other_taken, 1, __ATOMIC_SEQ_CST);
}

/* Interrupts on, TPR high until told. */
static void other(u64 cr8)
{
	void (*set)(u32) = cr8 ? set_cr8 : set_tpr;

	set(8);
	sti();
	WRITE_ONCE(up, 1);
	while (!READ_ONCE(down))
		pause();
	CHECK(!READ_ONCE(other_taken), "an IPI passes the TPR of a running CPU");
	set(0);
	wait_count(&other_taken, 2, "IPIs after the TPR fell");
}

static void remote(u32 cr8)
{
	up = down = other_taken = 0;
	smp_run(1, other, cr8);
	wait_count(&up, 1, "CPUs");
	apic_icr(smp_apic_id(1), ICR_FIXED | (MID + 1));
	apic_icr(smp_apic_id(1), ICR_FIXED | (LOW + 1));
	delay_ticks(20000);
	WRITE_ONCE(down, 1);
	smp_wait(1);
}

int guest_main(void)
{
	irq_set(LOW, on_ipi);
	irq_set(MID, on_ipi);
	irq_set(HIGH, on_ipi);
	irq_set(LOW + 1, on_remote);
	irq_set(MID + 1, on_remote);
	two_views();
	steps(set_cr8, "CR8");
	steps(set_tpr, "TPR");
	if (smp_start() > 1) {
		remote(0);
		remote(1);
	}
	return 0;
}
