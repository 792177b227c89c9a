/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CPU that sends to itself, in every way that its APIC mode has: each arrives once, as edge
 * triggered, in the IRR while interrupts are off and in the ISR while it is handled. Then what is
 * not allowed: vectors below 16, reserved bits, a software-disabled APIC.
 */
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

#define VECTOR 0x61
#define ENABLED_SVR 0x1ff
#define ESR_SEND_ILLEGAL 0x20
#define ESR_RECEIVE_ILLEGAL 0x40
#define GP 13

static u32 taken;
static bool in_isr;

static void on_ipi(struct frame *f)
{
	in_isr = apic_bit(APIC_ISR, VECTOR) && !apic_bit(APIC_IRR, VECTOR) &&
		 !apic_bit(APIC_TMR, VECTOR);
	taken++;
	apic_eoi();
}

/* One IPI is under way with interrupts off. */
static void arrives(const char *how)
{
	CHECK(apic_bit(APIC_IRR, VECTOR), "%s: not in the IRR", how);
	CHECK(!taken, "%s: comes with interrupts off", how);
	sti();
	wait_count(&taken, 1, how);
	cli();
	CHECK(in_isr, "%s: not (alone) in the ISR while handled", how);
	CHECK(!apic_bit(APIC_ISR, VECTOR) && !apic_bit(APIC_IRR, VECTOR), "%s: there again", how);
	taken = 0;
}

static void does_not(const char *how)
{
	CHECK(!apic_bit(APIC_IRR, VECTOR), "%s: in the IRR", how);
	sti();
	delay_ticks(2000);
	cli();
	CHECK(!taken, "%s: comes", how);
}

static u32 logical_id(void)
{
	if (x2apic)
		return apic_read(APIC_LDR);
	apic_write(APIC_DFR, ~0u);
	apic_write(APIC_LDR, 0x04000000);
	return 0x04;
}

static void every_way(void)
{
	apic_icr(0, ICR_SELF | ICR_FIXED | VECTOR);
	arrives("shorthand self");
	apic_icr(0, ICR_ALL | ICR_FIXED | VECTOR);
	arrives("shorthand all");
	apic_icr(apic_id(), ICR_FIXED | VECTOR);
	arrives("own id");
	apic_icr(apic_id(), ICR_LOWEST | ICR_FIXED | VECTOR);
	arrives("own id, lowest priority");
	apic_icr(logical_id(), ICR_LOGICAL | ICR_FIXED | VECTOR);
	arrives("own logical id");
	apic_icr(x2apic ? ~0u : 0xff, ICR_FIXED | VECTOR);
	arrives("broadcast");
	if (x2apic) {
		wrmsr(APIC_MSR(APIC_SELF_IPI), VECTOR);
		arrives("SELF_IPI");
	}
	/* Twice before it is taken is once. */
	apic_self_ipi(VECTOR);
	apic_self_ipi(VECTOR);
	arrives("two at once");
	apic_icr(0, ICR_OTHERS | ICR_FIXED | VECTOR);
	does_not("shorthand others");
	apic_icr(0x7e, ICR_FIXED | VECTOR);
	does_not("another id");
}

static void illegal(void)
{
	u64 value;

	if (!strcmp(hypervisor(), "TCGTCGTCGTCG"))
		return; /* which looks at none of it */
	apic_write(APIC_ESR, 0);
	apic_icr(0, ICR_SELF | ICR_FIXED | 8);
	apic_write(APIC_ESR, 0);
	CHECK(apic_read(APIC_ESR) == (ESR_SEND_ILLEGAL | ESR_RECEIVE_ILLEGAL),
	      "ESR is %x after vector 8", apic_read(APIC_ESR));
	apic_write(APIC_ESR, 0);
	CHECK(!apic_read(APIC_ESR), "ESR stays %x", apic_read(APIC_ESR));
	apic_icr(0, ICR_SELF | ICR_FIXED | ICR_LOWEST | VECTOR);
	does_not("lowest priority to self, which is not valid");

	apic_write(APIC_SVR, ENABLED_SVR & ~0x100u);
	apic_self_ipi(VECTOR);
	does_not("software-disabled");
	apic_write(APIC_SVR, ENABLED_SVR);
	does_not("enabled again");
	if (!x2apic)
		return;
	CHECK(wrmsr_safe(APIC_MSR(APIC_SELF_IPI), 0x100 | VECTOR) == GP, "SELF_IPI, reserved bit");
	CHECK(rdmsr_safe(APIC_MSR(APIC_SELF_IPI), &value) == GP, "SELF_IPI is write-only");
	CHECK(wrmsr_safe(APIC_MSR(APIC_ICR), ICR_SELF | 1u << 20 | VECTOR) == GP,
	      "ICR, reserved bit");
	does_not("a write that faults");
}

int guest_main(void)
{
	irq_set(VECTOR, on_ipi);
	apic_write(APIC_SVR, ENABLED_SVR);
	every_way();
	illegal();
	return 0;
}
