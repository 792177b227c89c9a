/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 16550A model: registers, FIFOs, interrupt priorities and loopback. Two things differ from a
 * chip on purpose. The transmitter is as fast as the ring behind it. And after the guest has
 * written a byte, the interrupt that says "empty again" comes a little later, unless the guest asks
 * first: a driver that polls IIR until it reads "none" thus gets one interrupt per burst, not two.
 */
#include "hv/dev/uart.h"

/* Registers, by the low three bits of the port. */
enum { REG_DATA, REG_IER, REG_IIR_FCR, REG_LCR, REG_MCR, REG_LSR, REG_MSR, REG_SCR };

enum { IER_RDI = 0x01, IER_THRI = 0x02, IER_RLSI = 0x04, IER_MSI = 0x08, IER_MASK = 0x0F };
enum {
	IIR_MSI = 0x00,
	IIR_NONE = 0x01,
	IIR_THRI = 0x02,
	IIR_RDI = 0x04,
	IIR_RLSI = 0x06,
	IIR_TIMEOUT = 0x0C,
	IIR_FIFO_ON = 0xC0
};
enum { FCR_ENABLE = 0x01, FCR_CLEAR_RX = 0x02, FCR_KEPT = 0xC9 };
enum { LCR_DLAB = 0x80 };
enum { MCR_DTR = 0x01, MCR_RTS = 0x02, MCR_OUT1 = 0x04, MCR_OUT2 = 0x08, MCR_LOOP = 0x10 };
enum { LSR_DR = 0x01, LSR_OE = 0x02, LSR_ERRORS = 0x1E, LSR_THRE = 0x20, LSR_TEMT = 0x40 };
enum { MSR_DELTAS = 0x0F, MSR_CTS = 0x10, MSR_DSR = 0x20, MSR_RI = 0x40, MSR_DCD = 0x80 };

/* Four characters of ten bits at 115200 baud, whatever divisor is set. */
#define RX_TIMEOUT_NS 347222u
/* From the last byte written to "empty": a burst of 16 every 100 us is far faster than any line. */
#define TX_EMPTY_NS 100000u

/* A driver that has seen THRE fills the whole FIFO without looking again. */
static inline bool tx_ready(const struct uart *uart)
{
	return ring_room(uart->tx) >= UART_FIFO;
}

static unsigned rx_capacity(const struct uart *uart)
{
	return uart->fcr & FCR_ENABLE ? UART_FIFO : 1;
}

static unsigned rx_trigger(const struct uart *uart)
{
	static const u8 level[] = {1, 4, 8, 14};

	return uart->fcr & FCR_ENABLE ? level[uart->fcr >> 6] : 1;
}

static u8 modem_lines(const struct uart *uart)
{
	u8 mcr = uart->mcr;

	if (!(mcr & MCR_LOOP)) /* something is always there, and it is always ready */
		return MSR_DCD | MSR_DSR | MSR_CTS;
	return (mcr & MCR_RTS ? MSR_CTS : 0) | (mcr & MCR_DTR ? MSR_DSR : 0) |
	       (mcr & MCR_OUT1 ? MSR_RI : 0) | (mcr & MCR_OUT2 ? MSR_DCD : 0);
}

/* The pending source of the highest priority, as IIR shows it. */
static u8 pending_source(const struct uart *uart)
{
	if (uart->ier & IER_RLSI && uart->lsr & LSR_ERRORS)
		return IIR_RLSI;
	if (uart->ier & IER_RDI && uart->rx_count >= rx_trigger(uart))
		return IIR_RDI;
	if (uart->ier & IER_RDI && uart->rx_timeout)
		return IIR_TIMEOUT;
	if (uart->ier & IER_THRI && uart->thri)
		return IIR_THRI;
	if (uart->ier & IER_MSI && uart->msr & MSR_DELTAS)
		return IIR_MSI;
	return IIR_NONE;
}

/* To be called after every change: lets expired timers act and brings .irq, .event_ns and .tx_slow
 * up to date. */
static void settle(struct uart *uart, u64 now_ns)
{
	if (uart->thri_ns <= now_ns) {
		uart->thri_ns = UINT64_MAX;
		uart->thri = true;
	}
	if (uart->timeout_ns <= now_ns) {
		uart->timeout_ns = UINT64_MAX;
		uart->rx_timeout = true;
	}
	uart->event_ns =
	    min(uart->thri_ns, uart->ier & IER_RDI ? uart->timeout_ns : (u64)UINT64_MAX);
	uart->irq =
	    (uart->mcr & (MCR_OUT2 | MCR_LOOP)) == MCR_OUT2 && pending_source(uart) != IIR_NONE;
	uart->tx_slow = uart->lcr & LCR_DLAB || uart->mcr & MCR_LOOP || uart->ier & IER_THRI;
}

/*
 * The guest wants to hear when there is room: at @when_ns if there is some, else when the consumer
 * has made some. The flag must be visible before the ring is looked at again, or the consumer could
 * take the last byte in between and see no one waiting; uart_tx_waits() is the other half.
 */
static void await_room(struct uart *uart, u64 when_ns)
{
	uart->thri = false;
	uart->thri_ns = UINT64_MAX;
	if (!tx_ready(uart)) {
		WRITE_ONCE(uart->tx_blocked, true);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!tx_ready(uart))
			return;
	}
	WRITE_ONCE(uart->tx_blocked, false);
	uart->thri_ns = when_ns;
}

static void rx_clear(struct uart *uart)
{
	uart->rx_head = 0;
	uart->rx_count = 0;
	uart->lsr &= ~LSR_DR;
	uart->rx_timeout = false;
	uart->timeout_ns = UINT64_MAX;
}

/* The receiver's silence starts again: after it, the guest is told of the bytes below the level. */
static void rx_restart_timeout(struct uart *uart, u64 now_ns)
{
	uart->rx_timeout = false;
	uart->timeout_ns = uart->rx_count && uart->rx_count < rx_trigger(uart)
			       ? now_ns + RX_TIMEOUT_NS
			       : UINT64_MAX;
}

static void rx_insert(struct uart *uart, u8 byte, u64 now_ns)
{
	if (uart->rx_count == rx_capacity(uart)) {
		uart->lsr |= LSR_OE;
		uart->rx_lost++;
		if (!(uart->fcr & FCR_ENABLE)) /* the holding register is overwritten */
			uart->rx[uart->rx_head] = byte;
		return;
	}
	uart->rx[(uart->rx_head + uart->rx_count) % UART_FIFO] = byte;
	uart->rx_count++;
	uart->lsr |= LSR_DR;
	rx_restart_timeout(uart, now_ns);
}

static u8 rx_remove(struct uart *uart, u64 now_ns)
{
	u8 byte = uart->rx[uart->rx_head];

	if (!uart->rx_count)
		return byte; /* the last one again, as on a chip */
	if (--uart->rx_count)
		uart->rx_head = (uart->rx_head + 1) % UART_FIFO;
	else
		uart->lsr &= ~LSR_DR;
	rx_restart_timeout(uart, now_ns);
	return byte;
}

static u8 read_iir(struct uart *uart)
{
	u8 source = pending_source(uart);

	if (source == IIR_NONE && uart->thri_ns != UINT64_MAX) {
		uart->thri_ns = UINT64_MAX; /* asked early: see the top of this file */
		source = IIR_THRI;
	} else if (source == IIR_THRI) {
		uart->thri = false;
	}
	return source | (uart->fcr & FCR_ENABLE ? IIR_FIFO_ON : 0);
}

static u32 __attribute__((noinline)) read_other(struct uart *uart, u16 reg, u64 now_ns)
{
	u8 value;

	switch (reg) {
	case REG_DATA:
		if (uart->lcr & LCR_DLAB)
			return uart->dll;
		value = rx_remove(uart, now_ns);
		break;
	case REG_IER:
		return uart->lcr & LCR_DLAB ? uart->dlm : uart->ier;
	case REG_IIR_FCR:
		value = read_iir(uart);
		break;
	case REG_LCR:
		return uart->lcr;
	case REG_MCR:
		return uart->mcr;
	case REG_LSR:
		value = uart->lsr | (tx_ready(uart) ? LSR_THRE | LSR_TEMT : 0);
		uart->lsr &= ~LSR_ERRORS;
		break;
	case REG_MSR:
		value = uart->msr | modem_lines(uart);
		uart->msr = 0;
		break;
	default:
		return uart->scr;
	}
	settle(uart, now_ns);
	return value;
}

u32 uart_read(struct uart *uart, u16 port, unsigned size, u64 now_ns)
{
	/* What a console does before each byte. */
	if (likely((port & 7) == REG_LSR && !(uart->lsr & LSR_ERRORS)))
		return uart->lsr | (tx_ready(uart) ? LSR_THRE | LSR_TEMT : 0);
	return read_other(uart, port & 7, now_ns);
}

static void transmit(struct uart *uart, u8 byte, u64 now_ns)
{
	if (uart->mcr & MCR_LOOP)
		rx_insert(uart, byte, now_ns);
	else if (!ring_put(uart->tx, byte))
		uart->tx_lost++;
	if (uart->ier & IER_THRI)
		await_room(uart, now_ns + TX_EMPTY_NS);
}

static void write_ier(struct uart *uart, u8 value, u64 now_ns)
{
	u8 changed = (uart->ier ^ value) & IER_MASK;

	uart->ier = value & IER_MASK;
	if (!(changed & IER_THRI))
		return;
	if (uart->ier & IER_THRI) {
		await_room(uart, now_ns); /* at once, if it is empty now */
	} else {
		uart->thri = false;
		uart->thri_ns = UINT64_MAX;
		WRITE_ONCE(uart->tx_blocked, false);
	}
}

static void write_fcr(struct uart *uart, u8 value)
{
	u8 fcr = value & FCR_ENABLE ? value & FCR_KEPT : 0;

	if ((uart->fcr ^ fcr) & FCR_ENABLE || value & FCR_CLEAR_RX)
		rx_clear(uart);
	uart->fcr = fcr;
}

static void write_mcr(struct uart *uart, u8 value)
{
	u8 old = modem_lines(uart), changed;

	uart->mcr = value & 0x1F;
	changed = old ^ modem_lines(uart);
	/* Ring counts on its way down only (TERI); the others both ways. */
	uart->msr |= (changed & (MSR_DCD | MSR_DSR | MSR_CTS)) >> 4 | (changed & old & MSR_RI) >> 4;
}

static void __attribute__((noinline)) write_other(struct uart *uart, u16 reg, u8 value, u64 now_ns)
{
	switch (reg) {
	case REG_DATA:
		if (uart->lcr & LCR_DLAB)
			uart->dll = value;
		else
			transmit(uart, value, now_ns);
		break;
	case REG_IER:
		if (uart->lcr & LCR_DLAB)
			uart->dlm = value;
		else
			write_ier(uart, value, now_ns);
		break;
	case REG_IIR_FCR:
		write_fcr(uart, value);
		break;
	case REG_LCR:
		uart->lcr = value;
		break;
	case REG_MCR:
		write_mcr(uart, value);
		break;
	case REG_SCR:
		uart->scr = value;
		return;
	default: /* LSR and MSR are not for writing */
		return;
	}
	settle(uart, now_ns);
}

void uart_write(struct uart *uart, u16 port, unsigned size, u32 value, u64 now_ns)
{
	if (unlikely(port & 7 || uart->tx_slow))
		write_other(uart, port & 7, (u8)value, now_ns);
	else if (unlikely(!ring_put(uart->tx, (u8)value)))
		uart->tx_lost++;
}

void uart_init(struct uart *uart, struct byte_ring *tx)
{
	BUG_ON(tx->size < 2 * UART_FIFO);
	*uart = (struct uart){
	    .tx = tx,
	    .dll = 1, /* 115200 baud */
	    .event_ns = UINT64_MAX,
	    .thri_ns = UINT64_MAX,
	    .timeout_ns = UINT64_MAX,
	};
}

unsigned uart_rx_room(const struct uart *uart)
{
	return uart->mcr & MCR_LOOP ? 0 : rx_capacity(uart) - uart->rx_count;
}

void uart_rx_push(struct uart *uart, u8 byte, u64 now_ns)
{
	if (uart->mcr & MCR_LOOP)
		uart->rx_lost++; /* the input pin is disconnected */
	else
		rx_insert(uart, byte, now_ns);
	settle(uart, now_ns);
}

bool uart_tx_waits(const struct uart *uart)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return READ_ONCE(uart->tx_blocked) && tx_ready(uart);
}

void uart_tx_drained(struct uart *uart, u64 now_ns)
{
	if (uart->tx_blocked)
		await_room(uart, now_ns);
	settle(uart, now_ns);
}

void uart_run(struct uart *uart, u64 now_ns)
{
	settle(uart, now_ns);
}
