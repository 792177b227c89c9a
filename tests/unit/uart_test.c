/* SPDX-License-Identifier: BSD-2-Clause */
/* The UART model, register by register and as Linux' 8250 driver probes and uses it. */
// sources: hv/dev/uart.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "hv/dev/uart.h"

enum { DATA, IER, IIR, LCR, MCR, LSR, MSR, SCR, FCR = IIR };

static struct byte_ring ring;
static u8 ring_buf[64];
static struct uart uart;
static u64 now;

static u8 in(u16 reg)
{
	return (u8)uart_read(&uart, 0x3f8 + reg, 1, now);
}

static void out(u16 reg, u8 value)
{
	uart_write(&uart, 0x3f8 + reg, 1, value, now);
}

static void drain(unsigned n)
{
	u8 byte;

	while (n-- && ring_take(&ring, &byte))
		;
}

static void wait_ns(u64 ns)
{
	now += ns;
	if (uart_next_event(&uart, now) <= now)
		uart_run(&uart, now);
}

static int setup(void **state)
{
	now = 1000;
	ring_init(&ring, ring_buf, sizeof(ring_buf));
	uart_init(&uart, &ring);
	return 0;
}

/* As a driver in use: FIFOs on, trigger 8, interrupts reach the line. */
static void open_port(u8 ier)
{
	out(LCR, 0x03);
	out(FCR, 0x87);
	out(MCR, 0x0b);
	out(IER, ier);
}

static void test_power_on_state(void **state)
{
	assert_int_equal(in(IER), 0);
	assert_int_equal(in(IIR), 0x01);
	assert_int_equal(in(LCR), 0);
	assert_int_equal(in(MCR), 0);
	assert_int_equal(in(LSR), 0x60);
	assert_int_equal(in(MSR), 0xb0);
	assert_false(uart.irq);
	assert_true(uart_next_event(&uart, now) == UINT64_MAX);
}

static void test_registers_keep_what_is_written(void **state)
{
	out(SCR, 0x5a);
	assert_int_equal(in(SCR), 0x5a);
	out(IER, 0xff);
	assert_int_equal(in(IER), 0x0f);
	out(IER, 0);
	out(MCR, 0xef);
	assert_int_equal(in(MCR), 0x0f);
	out(LCR, 0x80);
	out(DATA, 0x34);
	out(IER, 0x12);
	assert_int_equal(in(DATA), 0x34);
	assert_int_equal(in(IER), 0x12);
	out(LCR, 0x03);
	assert_int_equal(in(IER), 0);
	assert_int_equal(ring_used(&ring), 0);
	out(LSR, 0xff);
	out(MSR, 0xff);
	assert_int_equal(in(LSR), 0x60);
	assert_int_equal(in(MSR), 0xb0);
}

static void test_what_is_written_arrives_in_order(void **state)
{
	u8 byte;

	for (int i = 0; i < 40; i++) {
		assert_int_equal(in(LSR), 0x60);
		out(DATA, (u8)(i * 7));
	}
	for (int i = 0; i < 40; i++) {
		assert_true(ring_take(&ring, &byte));
		assert_int_equal(byte, (u8)(i * 7));
	}
	assert_false(ring_take(&ring, &byte));
}

/* Linux' autoconfig(): IER bits stick, loopback mirrors MCR in MSR, IIR shows FIFOs, no EFR. */
static void test_linux_detects_a_16550a(void **state)
{
	out(IER, 0);
	assert_int_equal(in(IER), 0);
	out(IER, 0x0f);
	assert_int_equal(in(IER), 0x0f);
	out(IER, 0);

	out(MCR, 0x1a);
	assert_int_equal(in(MSR)&0xf0, 0x90);
	out(MCR, 0x00);

	out(LCR, 0xbf);
	out(FCR, 0);
	out(LCR, 0x00);
	out(FCR, 0x01);
	assert_int_equal(in(IIR) >> 6, 3);
	out(LCR, 0x80);
	assert_int_not_equal(in(FCR), 0);
	out(LCR, 0xe0); /* NatSemi: bit 4 must not follow MCR */
	assert_int_equal(in(FCR)&0x10, 0);
	out(LCR, 0x00);
	out(FCR, 0x21); /* no 64-byte FIFO */
	assert_int_equal(in(IIR)&0x20, 0);
	out(IER, 0x40); /* no XScale unit enable */
	assert_int_equal(in(IER), 0);
}

static void test_each_loopback_line(void **state)
{
	static const u8 lines[][2] = {{0x01, 0x20}, {0x02, 0x10}, {0x04, 0x40}, {0x08, 0x80}};

	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
		out(MCR, 0x10 | lines[i][0]);
		assert_int_equal(in(MSR)&0xf0, lines[i][1]);
	}
}

static void test_loopback_data_comes_back_and_does_not_go_out(void **state)
{
	open_port(0);
	out(MCR, 0x18);
	assert_int_equal(uart_rx_room(&uart), 0);
	out(DATA, 'x');
	assert_int_equal(ring_used(&ring), 0);
	assert_int_equal(in(LSR), 0x61);
	assert_int_equal(in(DATA), 'x');
	assert_int_equal(in(LSR), 0x60);
	out(IER, 0x01);
	out(DATA, 'y');
	wait_ns(1000000);
	assert_false(uart.irq); /* OUT2 does not reach its pin */
	uart_rx_push(&uart, 'z', now);
	assert_int_equal(uart.rx_lost, 1);
	assert_int_equal(in(DATA), 'y');
	assert_int_equal(in(LSR)&1, 0);
}

/* serial8250_do_startup(): the interrupt comes again when THRI is switched off and on. */
static void test_linux_thre_tests(void **state)
{
	out(FCR, 0x07);
	out(LCR, 0x03);
	out(IER, 0x02);
	assert_int_equal(in(IIR)&0x0f, 0x02);
	out(IER, 0x00);
	assert_int_equal(in(IIR)&0x0f, 0x01);
	out(IER, 0x02);
	assert_int_equal(in(IIR)&0x0f, 0x02);
	out(IER, 0x00);
	/* UART_BUG_TXEN */
	out(IER, 0x02);
	assert_int_equal(in(LSR), 0x60);
	assert_int_equal(in(IIR)&0x0f, 0x02);
	out(IER, 0x00);
	assert_false(uart.irq);
}

static void test_thri_is_acknowledged_by_reading_iir(void **state)
{
	open_port(0x02);
	assert_true(uart.irq);
	assert_int_equal(in(IIR), 0xc2);
	assert_false(uart.irq);
	assert_int_equal(in(IIR), 0xc1);
}

static void test_out2_gates_the_line(void **state)
{
	open_port(0x02);
	assert_true(uart.irq);
	out(MCR, 0x03);
	assert_false(uart.irq);
	assert_int_equal(uart_read(&uart, IER, 1, now), 0x02);
	out(MCR, 0x0b);
	assert_true(uart.irq);
}

/* A driver that writes 16 bytes per interrupt and polls IIR sees one edge for all of them. */
static void test_a_burst_is_one_interrupt(void **state)
{
	unsigned edges = 0, sent = 0;
	bool line = false;

#define WATCH() (edges += uart.irq && !line, line = uart.irq)
	open_port(0x02);
	WATCH();
	while (!(in(IIR)&1)) {
		WATCH();
		for (int i = 0; i < 16 && sent < 48; i++, sent++) {
			now += 4000;
			out(DATA, 'a');
			WATCH();
		}
		if (sent == 48)
			out(IER, 0);
		WATCH();
	}
	WATCH();
	assert_int_equal(sent, 48);
	assert_int_equal(edges, 1);
	wait_ns(1000000);
	WATCH();
	assert_int_equal(edges, 1);
#undef WATCH
}

static void test_a_driver_that_does_not_poll_gets_the_next_interrupt(void **state)
{
	open_port(0x02);
	in(IIR);
	out(DATA, 'a');
	assert_false(uart.irq);
	u64 event = uart_next_event(&uart, now);
	assert_true(event > now && event - now <= 1000000);
	wait_ns(event - now - 1);
	assert_false(uart.irq);
	wait_ns(1);
	assert_true(uart.irq);
	assert_int_equal(in(IIR), 0xc2);
	assert_true(uart_next_event(&uart, now) == UINT64_MAX);
}

static void test_no_byte_is_lost_by_a_driver_that_heeds_thre(void **state)
{
	u32 sent = 0;

	open_port(0);
	while (in(LSR)&0x20)
		for (int i = 0; i < 16; i++, sent++)
			out(DATA, (u8)sent);
	assert_int_equal(sent, 64);
	assert_int_equal(uart.tx_lost, 0);
	drain(15);
	assert_int_equal(in(LSR)&0x60, 0);
	drain(1);
	assert_int_equal(in(LSR)&0x60, 0x60);
	for (int i = 0; i < 17; i++) /* one that does not */
		out(DATA, 0);
	assert_int_equal(uart.tx_lost, 1);
}

static void test_plain_accesses_are_those_of_a_polling_console(void **state)
{
	open_port(0);
	assert_true(uart_access_is_plain(&uart, 0x3fd, false));
	assert_true(uart_access_is_plain(&uart, 0x3f8, true));
	assert_false(uart_access_is_plain(&uart, 0x3f8, false));
	assert_false(uart_access_is_plain(&uart, 0x3fa, false));
	assert_false(uart_access_is_plain(&uart, 0x3f9, true));
	out(IER, 0x02);
	assert_false(uart_access_is_plain(&uart, 0x3f8, true));
	out(IER, 0x00);
	out(LCR, 0x83);
	assert_false(uart_access_is_plain(&uart, 0x3f8, true));
	out(LCR, 0x03);
	out(MCR, 0x1b);
	assert_false(uart_access_is_plain(&uart, 0x3f8, true));
	out(MCR, 0x0b);
	for (int i = 0; i < 17; i++)
		uart_rx_push(&uart, 'x', now);
	assert_false(uart_access_is_plain(&uart, 0x3fd, false)); /* clears the overrun */
	in(LSR);
	assert_true(uart_access_is_plain(&uart, 0x3fd, false));
}

static void test_a_full_ring_interrupts_when_it_has_room_again(void **state)
{
	open_port(0x02);
	in(IIR);
	for (int i = 0; i < 64; i++)
		out(DATA, 'a');
	assert_int_equal(uart.tx_lost, 0);
	assert_int_equal(in(IIR), 0xc1);
	assert_true(uart_next_event(&uart, now) == UINT64_MAX);
	assert_false(uart_tx_waits(&uart));
	drain(15);
	assert_false(uart_tx_waits(&uart));
	drain(1);
	assert_true(uart_tx_waits(&uart));
	assert_false(uart.irq);
	uart_tx_drained(&uart, now);
	assert_true(uart.irq);
	assert_false(uart_tx_waits(&uart));
	assert_int_equal(in(IIR), 0xc2);
	/* Also when the interrupt is asked for while the ring is full. */
	out(IER, 0);
	for (int i = 0; i < 16; i++)
		out(DATA, 'a');
	out(IER, 0x02);
	assert_false(uart.irq);
	drain(64);
	assert_true(uart_tx_waits(&uart));
	uart_tx_drained(&uart, now);
	assert_true(uart.irq);
	out(IER, 0);
	assert_false(uart_tx_waits(&uart));
}

static void test_receive_trigger_levels(void **state)
{
	static const u8 fcr[] = {0x01, 0x41, 0x81, 0xc1}, level[] = {1, 4, 8, 14};

	for (unsigned i = 0; i < 4; i++) {
		setup(NULL);
		open_port(0x01);
		out(FCR, fcr[i]);
		for (unsigned n = 1; n <= 16; n++) {
			assert_int_equal(uart_rx_room(&uart), 17 - n);
			uart_rx_push(&uart, (u8)n, now);
			assert_int_equal(uart.irq, n >= level[i]);
		}
		assert_int_equal(in(IIR), 0xc4);
		for (unsigned n = 16; n >= 1; n--) {
			assert_int_equal(in(LSR), 0x61);
			assert_int_equal(uart.irq, n >= level[i]);
			assert_int_equal(in(DATA), 17 - n);
		}
		assert_int_equal(in(LSR), 0x60);
		assert_false(uart.irq);
	}
}

static void test_few_bytes_raise_a_timeout(void **state)
{
	open_port(0x01);
	uart_rx_push(&uart, 'a', now);
	assert_false(uart.irq);
	wait_ns(300000);
	uart_rx_push(&uart, 'b', now); /* starts it again */
	wait_ns(300000);
	assert_false(uart.irq);
	wait_ns(50000);
	assert_true(uart.irq);
	assert_int_equal(in(IIR), 0xcc);
	assert_true(uart.irq); /* only reading the data ends it */
	assert_int_equal(in(DATA), 'a');
	assert_false(uart.irq);
	wait_ns(400000);
	assert_true(uart.irq);
	assert_int_equal(in(DATA), 'b');
	assert_false(uart.irq);
	assert_true(uart_next_event(&uart, now) == UINT64_MAX);
}

static void test_bytes_that_waited_interrupt_when_enabled(void **state)
{
	open_port(0x00);
	uart_rx_push(&uart, 'a', now);
	assert_true(uart_next_event(&uart, now) == UINT64_MAX);
	wait_ns(1000000);
	out(IER, 0x01);
	assert_true(uart.irq);
	assert_int_equal(in(IIR), 0xcc);
}

static void test_without_fifo_one_byte_fits(void **state)
{
	open_port(0x05);
	out(FCR, 0);
	assert_int_equal(uart_rx_room(&uart), 1);
	uart_rx_push(&uart, 'a', now);
	assert_int_equal(in(IIR), 0x04);
	uart_rx_push(&uart, 'b', now);
	assert_int_equal(in(IIR), 0x06);
	assert_int_equal(in(LSR), 0x63);
	assert_int_equal(in(LSR), 0x61);
	assert_int_equal(in(DATA), 'b');
}

static void test_overrun_keeps_the_fifo_and_is_reported_once(void **state)
{
	open_port(0x05);
	for (int i = 0; i < 17; i++)
		uart_rx_push(&uart, (u8)i, now);
	assert_int_equal(uart.rx_lost, 1);
	assert_int_equal(in(IIR), 0xc6);
	assert_int_equal(in(LSR), 0x63);
	assert_int_equal(in(IIR), 0xc4);
	for (int i = 0; i < 16; i++)
		assert_int_equal(in(DATA), i);
	assert_int_equal(in(LSR), 0x60);
}

static void test_fifo_reset_and_switch_empty_it(void **state)
{
	open_port(0x01);
	uart_rx_push(&uart, 'a', now);
	out(FCR, 0x83);
	assert_int_equal(in(LSR), 0x60);
	uart_rx_push(&uart, 'a', now);
	out(FCR, 0x81);
	assert_int_equal(in(LSR), 0x61);
	out(FCR, 0x00);
	assert_int_equal(in(LSR), 0x60);
	wait_ns(1000000);
	assert_false(uart.irq);
}

static void test_priorities(void **state)
{
	open_port(0x0f);
	in(IIR);
	out(MCR, 0x18); /* CTS and DSR fall */
	out(MCR, 0x0b);
	in(IIR);
	out(DATA, 'a');
	wait_ns(200000);
	for (int i = 0; i < 17; i++)
		uart_rx_push(&uart, 'r', now);
	assert_int_equal(in(IIR), 0xc6);
	in(LSR);
	assert_int_equal(in(IIR), 0xc4);
	for (int i = 0; i < 16; i++)
		in(DATA);
	assert_int_equal(in(IIR), 0xc2);
	assert_int_equal(in(IIR), 0xc0);
	assert_true(uart.irq);
	assert_int_equal(in(MSR)&0x03, 0x03);
	assert_int_equal(in(IIR), 0xc1);
	assert_false(uart.irq);
}

static void test_ring_indicator_counts_only_falling(void **state)
{
	out(MCR, 0x10);
	in(MSR);
	out(MCR, 0x14);
	assert_int_equal(in(MSR), 0x40);
	out(MCR, 0x10);
	assert_int_equal(in(MSR), 0x04);
	assert_int_equal(in(MSR), 0x00);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_power_on_state, setup),
	    cmocka_unit_test_setup(test_registers_keep_what_is_written, setup),
	    cmocka_unit_test_setup(test_what_is_written_arrives_in_order, setup),
	    cmocka_unit_test_setup(test_linux_detects_a_16550a, setup),
	    cmocka_unit_test_setup(test_each_loopback_line, setup),
	    cmocka_unit_test_setup(test_loopback_data_comes_back_and_does_not_go_out, setup),
	    cmocka_unit_test_setup(test_linux_thre_tests, setup),
	    cmocka_unit_test_setup(test_thri_is_acknowledged_by_reading_iir, setup),
	    cmocka_unit_test_setup(test_out2_gates_the_line, setup),
	    cmocka_unit_test_setup(test_a_burst_is_one_interrupt, setup),
	    cmocka_unit_test_setup(test_a_driver_that_does_not_poll_gets_the_next_interrupt, setup),
	    cmocka_unit_test_setup(test_no_byte_is_lost_by_a_driver_that_heeds_thre, setup),
	    cmocka_unit_test_setup(test_plain_accesses_are_those_of_a_polling_console, setup),
	    cmocka_unit_test_setup(test_a_full_ring_interrupts_when_it_has_room_again, setup),
	    cmocka_unit_test_setup(test_receive_trigger_levels, setup),
	    cmocka_unit_test_setup(test_few_bytes_raise_a_timeout, setup),
	    cmocka_unit_test_setup(test_bytes_that_waited_interrupt_when_enabled, setup),
	    cmocka_unit_test_setup(test_without_fifo_one_byte_fits, setup),
	    cmocka_unit_test_setup(test_overrun_keeps_the_fifo_and_is_reported_once, setup),
	    cmocka_unit_test_setup(test_fifo_reset_and_switch_empty_it, setup),
	    cmocka_unit_test_setup(test_priorities, setup),
	    cmocka_unit_test_setup(test_ring_indicator_counts_only_falling, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
