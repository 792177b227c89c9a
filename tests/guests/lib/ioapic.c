/* SPDX-License-Identifier: BSD-2-Clause */
/* The IOAPIC at its usual place, and the 8259s only to silence them. */
#include "tests/guests/lib/guest.h"

#define IOAPIC 0xfec00000ull
#define REDIRECTION 0x10

u32 ioapic_read(u32 reg)
{
	*(volatile u32 *)IOAPIC = reg;
	return *(volatile u32 *)(IOAPIC + 0x10);
}

void ioapic_write(u32 reg, u32 value)
{
	*(volatile u32 *)IOAPIC = reg;
	*(volatile u32 *)(IOAPIC + 0x10) = value;
}

void ioapic_route(u32 pin, u8 vector, u32 dest)
{
	ioapic_write(REDIRECTION + pin * 2, LVT_MASKED);
	ioapic_write(REDIRECTION + pin * 2 + 1, dest << 24);
	if (vector)
		ioapic_write(REDIRECTION + pin * 2, vector);
}

void pic_mask(void)
{
	outb(PORT_PIC1 + 1, 0xff);
	outb(PORT_PIC2 + 1, 0xff);
}
