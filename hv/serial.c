/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver of the host's 16550; see serial.h. */
#include "hv/serial.h"

#include "hv/lib/string.h"
#include "hv/x86/cpu.h"

#define REG_DATA 0
#define REG_IER 1
#define REG_FCR 2
#define REG_LCR 3
#define REG_MCR 4
#define REG_LSR 5
#define REG_SCRATCH 7
#define LCR_8N1 0x03
#define LCR_DLAB 0x80
#define LSR_DATA 0x01
#define LSR_THRE 0x20
#define LSR_TEMT 0x40
#define FIFO_DEPTH 16

bool serial_init(struct serial *s, u16 base, u8 *buf, u32 size)
{
	*s = (struct serial){.buf = buf, .size = size};
	outb(base + REG_SCRATCH, 0x5a);
	if (inb(base + REG_SCRATCH) != 0x5a)
		return false;
	s->base = base;
	outb(base + REG_IER, 0);
	outb(base + REG_LCR, LCR_DLAB);
	outb(base + REG_DATA, 1); /* 115200 */
	outb(base + REG_IER, 0);
	outb(base + REG_LCR, LCR_8N1);
	outb(base + REG_FCR, 0x07); /* on, both FIFOs cleared, interrupt at 1 byte */
	outb(base + REG_MCR, 0x03); /* DTR, RTS */
	return true;
}

u32 serial_room(const struct serial *s)
{
	return s->size - (s->head - s->tail);
}

void serial_write(struct serial *s, const char *text, size_t n)
{
	u32 fits = s->base ? min(n, (size_t)serial_room(s)) : 0;

	s->lost += n - fits;
	while (fits) {
		u32 at = s->head & (s->size - 1), piece = min(fits, s->size - at);

		memcpy(s->buf + at, text, piece);
		s->head += piece;
		text += piece;
		fits -= piece;
	}
}

void serial_poll(struct serial *s)
{
	if (!s->base || serial_empty(s) || !(inb(s->base + REG_LSR) & LSR_THRE))
		return;
	for (int i = 0; i < FIFO_DEPTH && !serial_empty(s); i++)
		outb(s->base + REG_DATA, s->buf[s->tail++ & (s->size - 1)]);
}

void serial_drain(struct serial *s)
{
	/* Bounded by spins, not by the clock, which may not run yet: a UART takes 90 us for a byte.
	 */
	for (u64 spins = 0; s->base && spins < 50000000; spins++) {
		u8 lsr = inb(s->base + REG_LSR);

		if (serial_empty(s) && (lsr & LSR_TEMT))
			return;
		if (lsr & LSR_THRE)
			serial_poll(s);
	}
}

int serial_read(struct serial *s)
{
	if (!s->base || !(inb(s->base + REG_LSR) & LSR_DATA))
		return -1;
	return inb(s->base + REG_DATA);
}
