/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A level-triggered pin of the IOAPIC: the UART's line on pin 4, high while its transmitter is
 * empty and it may say so. Remote IRR and TMR while it is handled, again after an EOI that finds
 * the line high, nothing lost while masked, EOI by broadcast and by the IOAPIC's own register.
 */
#include "tests/guests/lib/guest.h"

#define VECTOR 0x71
#define PIN 4
#define REDIRECTION (0x10 + PIN * 2)
#define RTE_LEVEL BIT(15)
#define RTE_REMOTE_IRR BIT(14)
#define IOAPIC_EOI 0xfec00040ull
#define SVR 0x1ff
#define SVR_NO_BROADCAST BIT(12)
#define UART_IER (COM1 + 1)
#define UART_IIR (COM1 + 2)
#define UART_MCR (COM1 + 4)
#define IER_THRI 2

static u32 taken, lower_after; /* the handler takes the line down on this interrupt */
static bool direct, remote_irr, tmr;

static void line(bool high)
{
	outb(UART_IER, high ? IER_THRI : 0);
}

static bool is_remote_irr(void)
{
	return ioapic_read(REDIRECTION) & RTE_REMOTE_IRR;
}

static void on_level(struct frame *f)
{
	taken++;
	remote_irr = is_remote_irr();
	tmr = apic_bit(APIC_TMR, VECTOR);
	if (taken >= lower_after)
		line(false);
	apic_eoi();
	if (!direct)
		return;
	CHECK(is_remote_irr(), "an EOI is broadcast although the SVR forbids it");
	*(volatile u32 *)IOAPIC_EOI = VECTOR;
}

static void expect(u32 n, const char *when)
{
	sti();
	wait_count(&taken, n, when);
	delay_ticks(20000);
	cli();
	CHECK(taken == n, "%s: %u interrupts, not %u", when, taken, n);
	CHECK(!is_remote_irr(), "%s: remote IRR stays", when);
	taken = 0;
}

static void rounds(const char *how)
{
	lower_after = 1;
	line(true);
	expect(1, how);
	CHECK(remote_irr, "%s: no remote IRR while handled", how);
	CHECK(tmr, "%s: not in the TMR while handled", how);
	/* Still high at the EOI. */
	lower_after = 3;
	line(true);
	expect(3, how);
}

static void masked(void)
{
	u32 entry = ioapic_read(REDIRECTION);

	lower_after = 1;
	ioapic_write(REDIRECTION, entry | LVT_MASKED);
	line(true);
	expect(0, "masked");
	ioapic_write(REDIRECTION, entry);
	expect(1, "unmasked with the line high");
	ioapic_write(REDIRECTION, entry | LVT_MASKED);
	line(true);
	line(false);
	ioapic_write(REDIRECTION, entry);
	expect(0, "high and low again while masked");
}

/* Sent, then masked and low before it is taken: it comes all the same, once. */
static void late(void)
{
	u32 entry = ioapic_read(REDIRECTION);

	lower_after = 1;
	line(true);
	CHECK(is_remote_irr(), "no remote IRR for an interrupt that waits");
	ioapic_write(REDIRECTION, entry | LVT_MASKED);
	line(false);
	expect(1, "masked after it was sent");
	ioapic_write(REDIRECTION, entry);
	expect(0, "unmasked with the line low");
}

/* An edge-triggered interrupt of the same vector leaves the TMR clear, and its EOI the pin alone.
 */
static void edge(void)
{
	apic_self_ipi(VECTOR);
	lower_after = 1;
	expect(1, "self-IPI with the vector of the pin");
	CHECK(!tmr, "in the TMR although it is an edge");
}

int guest_main(void)
{
	irq_set(VECTOR, on_level);
	outb(UART_MCR, 0x0b); /* OUT2: the line reaches the IOAPIC */
	line(false);
	inb(UART_IIR);
	ioapic_route(PIN, VECTOR, apic_id());
	ioapic_write(REDIRECTION, RTE_LEVEL | VECTOR);
	rounds("EOI by broadcast");
	masked();
	late();
	edge();
	if (!(apic_read(APIC_VERSION) & BIT(24)) || (ioapic_read(1) & 0xff) < 0x20) {
		printf("ioapic-level: no directed EOI\n");
		return 0;
	}
	apic_write(APIC_SVR, SVR | SVR_NO_BROADCAST);
	direct = true;
	rounds("directed EOI");
	return 0;
}
