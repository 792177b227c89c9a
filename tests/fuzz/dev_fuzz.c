/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest that writes anything to any port of the legacy devices at any time. Nothing may be read
 * or written out of bounds, and the promises of the headers hold: an event that was run lies in the
 * past no more, and running events as they come does not take for ever.
 */
// sources: hv/dev/uart.c hv/dev/pit.c hv/dev/rtc.c hv/dev/acpipm.c hv/dev/kbc.c
#include <stdlib.h>

#include "hv/dev/acpipm.h"
#include "hv/dev/kbc.h"
#include "hv/dev/pit.h"
#include "hv/dev/ports.h"
#include "hv/dev/rtc.h"
#include "hv/dev/uart.h"

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			bug(__FILE__, __LINE__, #cond);                                            \
	} while (0)

static struct byte_ring ring;
static u8 ring_buf[64];
static struct uart uart;
static struct pit pit;
static struct rtc rtc;
static struct acpipm pm;
static struct kbc kbc;
static u64 now;

static u32 reach_port(u16 port, unsigned size, bool write, u32 value)
{
#define REACH(dev, name)                                                                           \
	do {                                                                                       \
		if (!write)                                                                        \
			return name##_read(&dev, port, size, now);                                 \
		name##_write(&dev, port, size, value, now);                                        \
		return 0;                                                                          \
	} while (0)
	switch (port) {
	case PORT_COM1 ... PORT_COM1 + 7:
		REACH(uart, uart);
	case PORT_PIT ... PORT_PIT + 3:
	case PORT_NMI_SC:
		REACH(pit, pit);
	case PORT_RTC_INDEX:
	case PORT_RTC_DATA:
		REACH(rtc, rtc);
	case PORT_PM1A_EVT ... PORT_PM_TMR + 3:
	case PORT_RESET:
		REACH(pm, acpipm);
	default:
		REACH(kbc, kbc);
	}
#undef REACH
}

/* What is said to be plain may change nothing that the owner looks at. */
static u32 access_port(u16 port, unsigned size, bool write, u32 value)
{
	bool plain =
	    port >= PORT_COM1 && port <= PORT_COM1 + 7 && uart_access_is_plain(&uart, port, write);
	struct uart before = uart;
	u32 result = reach_port(port, size, write, value);

	CHECK(!plain || (uart.irq == before.irq && uart.event_ns == before.event_ns &&
			 uart.thri == before.thri && uart.tx_blocked == before.tx_blocked));
	return result;
}

static void run_events(void)
{
	if (uart_next_event(&uart, now) <= now) {
		uart_run(&uart, now);
		CHECK(uart_next_event(&uart, now) > now);
	}
	if (pit_next_event(&pit, now) <= now) {
		u64 edges = pit.edges;

		CHECK(pit_run(&pit, now) || pit.edges == edges);
		CHECK(pit_next_event(&pit, now) > now);
		CHECK(pit.reported == pit.edges && pit.missed < pit.edges + 1);
	}
	if (rtc_next_event(&rtc, now) <= now) {
		rtc_run(&rtc, now);
		CHECK(rtc_next_event(&rtc, now) > now);
		CHECK(rtc.irq); /* its events are interrupts */
	}
	if (acpipm_next_event(&pm, now) <= now) {
		acpipm_run(&pm, now);
		CHECK(acpipm_next_event(&pm, now) > now);
		CHECK(pm.irq);
	}
}

/* Runs all events of up to @ns as they come; their number is bounded by the devices. */
static void let_pass(u64 ns)
{
	u64 end = now + ns, runs = 0;

	for (;;) {
		u64 at = uart_next_event(&uart, now);

		at = min(at, pit_next_event(&pit, now));
		at = min(at, rtc_next_event(&rtc, now));
		at = min(at, acpipm_next_event(&pm, now));

		if (at > end)
			break;
		now = max(now, at);
		run_events();
		runs++;
	}
	CHECK(runs <= 10 + ns / PIT_MIN_EVENT_NS);
	now = end;
}

static void check_state(void)
{
	u32 lsr;

	CHECK(uart.rx_count <= UART_FIFO && uart.rx_head < UART_FIFO);
	CHECK(uart_rx_room(&uart) <= UART_FIFO);
	CHECK(ring_used(&ring) <= sizeof(ring_buf));
	CHECK(ring_used(&ring) + ring_room(&ring) == sizeof(ring_buf));
	lsr = uart.lsr;
	CHECK((lsr & 1) == (uart.rx_count > 0));
	CHECK(!uart.irq || (uart.mcr & 0x18) == 0x08);
	CHECK(!uart.irq || uart.ier);
	/* Who waits for room is told; who has been told does not wait. */
	CHECK(!uart.tx_blocked || (uart.ier & 2 && !uart.thri));
	for (unsigned i = 0; i < 3; i++)
		CHECK(pit.ch[i].mode <= 5 && pit.ch[i].count >= 1 && pit.ch[i].count <= 0x10000);
	CHECK(pm.cnt & 1);
}

/* Reads must give the same twice where the register has no side effect and time stands still. */
static void check_reads(void)
{
	static const u16 stable[] = {PORT_COM1 + 1, PORT_COM1 + 3, PORT_COM1 + 4, PORT_COM1 + 7,
				     PORT_NMI_SC,   PORT_PM1A_EVT, PORT_PM1A_CNT, PORT_RESET,
				     PORT_KBC_CMD,  PORT_FAST_A20};

	for (unsigned i = 0; i < ARRAY_SIZE(stable); i++)
		CHECK(access_port(stable[i], 1, false, 0) == access_port(stable[i], 1, false, 0));
	CHECK(access_port(PORT_PM_TMR, 4, false, 0) == access_port(PORT_PM_TMR, 4, false, 0));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u16 ports[] = {PORT_COM1,	       PORT_COM1 + 1,  PORT_COM1 + 2, PORT_COM1 + 3,
				    PORT_COM1 + 4,     PORT_COM1 + 5,  PORT_COM1 + 6, PORT_COM1 + 7,
				    PORT_PIT,	       PORT_PIT + 1,   PORT_PIT + 2,  PORT_PIT + 3,
				    PORT_NMI_SC,       PORT_RTC_INDEX, PORT_RTC_DATA, PORT_PM1A_EVT,
				    PORT_PM1A_EVT + 2, PORT_PM1A_CNT,  PORT_PM_TMR,   PORT_RESET,
				    PORT_KBC_DATA,     PORT_KBC_CMD,   PORT_FAST_A20};
	u8 byte;

	now = 0;
	ring_init(&ring, ring_buf, sizeof(ring_buf));
	uart_init(&uart, &ring);
	pit_init(&pit);
	rtc_init(&rtc, 1700000000, 128 * MiB, 0);
	acpipm_init(&pm, now);
	kbc_init(&kbc);

	for (; size >= 3; data += 3, size -= 3) {
		u8 what = data[0], value = data[1], delay = data[2];
		u32 lost = uart.tx_lost, used = ring_used(&ring);
		bool to_ring = false;

		if (what < 0xe0) {
			u16 port = ports[what % ARRAY_SIZE(ports)];
			bool write = what >= 0x70;

			to_ring =
			    write && port == PORT_COM1 && !(uart.lcr & 0x80) && !(uart.mcr & 0x10);
			if (port >= PORT_PM1A_EVT && port < PORT_RESET)
				access_port(port, 2, write, value << 8 | value);
			else
				access_port(port, 1, write, value);
		} else if (what < 0xf0) {
			uart_rx_push(&uart, value, now);
		} else if (what < 0xf8) {
			while (value-- && ring_take(&ring, &byte))
				;
			used = ring_used(&ring);
			if (uart_tx_waits(&uart))
				uart_tx_drained(&uart, now);
			CHECK(!uart_tx_waits(&uart));
		} else if (what == 0xf8) {
			acpipm_power_button(&pm, now);
		} else if (what == 0xf9) {
			rtc_reset(&rtc, now);
		}
		CHECK(ring_used(&ring) + uart.tx_lost == used + lost + to_ring);
		run_events();
		check_state();
		check_reads();
		/* from nothing to about 4 s, and rarely to half a year in one step */
		if (delay == 0xff && now < BIT(60))
			now += 1ull << 54;
		else if (delay & 0x80)
			now += 1ull << (delay & 31);
		else
			let_pass(1ull << (delay & 15));
		run_events();
	}
	return 0;
}
