/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UART with interrupts in both directions, through the IOAPIC: reads a line (until CR or LF),
 * writes it back. Argument: lines= how many (1).
 */
#include "tests/guests/lib/guest.h"

#define VECTOR 0x60
#define IER 1
#define IIR 2
#define LSR 5
#define IER_RX 1
#define IER_TX 2
#define LSR_DR 1
#define LSR_THRE 0x20

static char in[256], out[300];
static volatile u32 in_len, out_len, out_at, irqs;
static volatile bool complete;

static void receive(void)
{
	while (inb(COM1 + LSR) & LSR_DR) {
		char c = inb(COM1);

		if (c == '\r' || c == '\n')
			complete = complete || in_len;
		else if (in_len < sizeof(in) && !complete)
			in[in_len++] = c;
	}
}

static void transmit(void)
{
	if (!(inb(COM1 + LSR) & LSR_THRE))
		return;
	if (out_at < out_len)
		outb(COM1, out[out_at++]);
	else
		outb(COM1 + IER, IER_RX);
}

static void on_irq(struct frame *f)
{
	/* Edge-triggered: the line must fall, so go on until nothing is pending. */
	while (!(inb(COM1 + IIR) & 1)) {
		irqs++;
		receive();
		transmit();
	}
	apic_eoi();
}

static void echo(void)
{
	u32 n = 0;

	for (const char *s = "console: got \""; *s; s++)
		out[n++] = *s;
	for (u32 i = 0; i < in_len; i++)
		out[n++] = in[i];
	out[n++] = '"';
	out[n++] = '\r';
	out[n++] = '\n';
	out_at = 0;
	out_len = n;
	outb(COM1 + IER, IER_RX | IER_TX);
	for (cli(); out_at < out_len; cli())
		sti_hlt();
	sti();
}

int guest_main(void)
{
	irq_set(VECTOR, on_irq);
	ioapic_route(IRQ_COM1, VECTOR, apic_id());
	for (u64 lines = arg("lines", 1); lines; lines--) {
		printf("console: type a line\n");
		outb(COM1 + 4, 0x0b); /* OUT2: lets the interrupt out */
		outb(COM1 + IER, IER_RX);
		for (cli(); !complete; cli())
			sti_hlt();
		sti();
		echo();
		CHECK(irqs > in_len / 16, "%u interrupts for %u characters", irqs, in_len);
		in_len = 0;
		complete = false;
	}
	cli();
	outb(COM1 + IER, 0);
	return 0;
}
