/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A 16550A UART as its driver sees it (National Semiconductor PC16550D data sheet). What the guest
 * sends goes to a ring that the console empties at its own pace; there is no baud rate, so the
 * guest waits only for room in that ring. Pure model: no console policy here.
 *
 * The owner holds the VM's device lock around every call, except the consumer side of the ring,
 * which needs none. After every call (also reads) the owner looks at .irq, the level of the
 * interrupt line, and at .event_ns.
 */
#ifndef VLAG_DEV_UART_H
#define VLAG_DEV_UART_H

#include "hv/lib/ring.h"
#include "hv/lib/types.h"

#define UART_FIFO 16

struct uart {
	bool irq;	       /* interrupt line: high while a source is pending and OUT2 is on */
	u8 lsr;		       /* receive side bits; THRE and TEMT come from the ring */
	u8 ier, lcr, mcr, scr; /* registers as written */
	u8 fcr;		       /* enable and trigger bits */
	u8 msr;		       /* delta bits; the lines follow from mcr */
	u8 dll, dlm;	       /* divisor: kept, but it sets no speed */
	bool thri;	       /* the "THR empty" interrupt is pending */
	bool rx_timeout;       /* the "character timeout" interrupt is pending */
	bool tx_slow;	       /* a write to the data register needs more than to be passed on */
	bool tx_blocked;       /* the guest waits for room: see uart_tx_drained() */
	u8 rx_head, rx_count;  /* rx[]: head is the oldest byte */
	u8 rx[UART_FIFO];
	u64 event_ns; /* when uart_run() has to be called, UINT64_MAX for never */
	u64 thri_ns;  /* the two reasons for that */
	u64 timeout_ns;
	u64 tx_lost; /* bytes that the guest wrote although THRE was clear */
	u64 rx_lost; /* bytes pushed without room (overrun) */
	struct byte_ring *tx;
};

/* Power-on state. @tx: at least 2 * UART_FIFO bytes; this UART is its only producer. Also serves as
 * reset; what is in the ring stays there. */
void uart_init(struct uart *uart, struct byte_ring *tx);

/* @port: any of the eight; only its low three bits count. 8 bits wide: the owner splits wider
 * accesses as the ISA bus does, @size is 1, the result below 0x100. */
u32 uart_read(struct uart *uart, u16 port, unsigned size, u64 now_ns);
void uart_write(struct uart *uart, u16 port, unsigned size, u32 value, u64 now_ns);

/*
 * True for the two accesses of a console that prints: a read of LSR without errors in it, and a
 * write to THR that only goes into the ring. They need no time and change neither .irq nor
 * .event_ns, so the owner may skip all that belongs to that.
 */
static inline bool uart_access_is_plain(const struct uart *uart, u16 port, bool write)
{
	if (write)
		return !(port & 7) && !uart->tx_slow;
	return (port & 7) == 5 && !(uart->lsr & 0x1E);
}

/* How many bytes uart_rx_push() takes now without overrun: 0 in loopback mode. */
unsigned uart_rx_room(const struct uart *uart);

/* A byte arrives on the line. Without room it is lost and the guest sees an overrun error. */
void uart_rx_push(struct uart *uart, u8 byte, u64 now_ns);

/*
 * For the consumer of the ring, after it has taken bytes, without the lock: true if the guest waits
 * for room. It then takes the device lock and calls uart_tx_drained(), which raises the interrupt.
 */
bool uart_tx_waits(const struct uart *uart);
void uart_tx_drained(struct uart *uart, u64 now_ns);

static inline u64 uart_next_event(const struct uart *uart, u64 now_ns)
{
	return uart->event_ns;
}

/* To be called at or after uart_next_event(); harmless at any time. */
void uart_run(struct uart *uart, u64 now_ns);

#endif
