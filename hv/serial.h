/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's UARTs, polled: a ring of bytes to be sent, which serial_poll() feeds to the hardware
 * FIFO as it empties, so that nobody waits for the line. Locking is the caller's.
 */
#ifndef VLAG_SERIAL_H
#define VLAG_SERIAL_H

#include "hv/lib/types.h"

struct serial {
	u16 base; /* I/O port, 0: there is none */
	u8 *buf;
	u32 size; /* of buf, a power of two */
	u32 head, tail;
	u64 lost; /* bytes that did not fit */
};

/* Programs 115200 8N1 with FIFOs. Returns false (and leaves @s without a port) where no UART
 * answers. */
bool serial_init(struct serial *s, u16 base, u8 *buf, u32 size);

u32 serial_room(const struct serial *s);
static inline bool serial_empty(const struct serial *s)
{
	return s->head == s->tail;
}

/* Queues @n bytes; what does not fit is dropped and counted. */
void serial_write(struct serial *s, const char *text, size_t n);

/* Moves as many bytes to the hardware as its FIFO takes now. */
void serial_poll(struct serial *s);

/* Waits until everything is out on the line (bounded), and one character time more. */
void serial_drain(struct serial *s);

/* Next received byte, or -1. */
int serial_read(struct serial *s);

#endif
