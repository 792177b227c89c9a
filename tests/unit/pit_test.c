/* SPDX-License-Identifier: BSD-2-Clause */
/* The 8254 model: modes, latches, gate, edges of channel 0, and what kernels calibrate with. */
// sources: hv/dev/pit.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "hv/dev/pit.h"

static struct pit pit;
static u64 now;

static u8 in(u16 port)
{
	return (u8)pit_read(&pit, port, 1, now);
}

static void out(u16 port, u8 value)
{
	pit_write(&pit, port, 1, value, now);
}

/* To the first nanosecond of a tick, counted from 0. */
static void at_tick(u64 tick)
{
	now = tick / PIT_HZ * 1000000000 + (tick % PIT_HZ * 1000000000 + PIT_HZ - 1) / PIT_HZ;
}

static u16 read_word(u16 port)
{
	u8 low = in(port);

	return low | in(port) << 8;
}

static u16 latched(unsigned channel)
{
	out(0x43, channel << 6);
	return read_word(0x40 + channel);
}

static void program(unsigned channel, unsigned mode, u16 count)
{
	out(0x43, channel << 6 | 0x30 | mode << 1);
	out(0x40 + channel, (u8)count);
	out(0x40 + channel, count >> 8);
}

static bool out2(void)
{
	return in(0x61) >> 5 & 1;
}

static int setup(void **state)
{
	pit_init(&pit);
	at_tick(1000);
	return 0;
}

static void test_silent_until_programmed(void **state)
{
	assert_true(pit_next_event(&pit, now) == UINT64_MAX);
	now += 3600 * 1000000000ull;
	assert_false(pit_run(&pit, now));
	assert_int_equal(pit.edges, 0);
}

/* Loaded by the clock pulse after the write: the first period ends 1 + N ticks after it. */
static void test_mode_2_interrupts_without_drift(void **state)
{
	u64 first_tick = 1000 + 1 + 11932;

	program(0, 2, 11932);
	for (u64 i = 0; i < 1000; i++) {
		u64 event = pit_next_event(&pit, now);

		at_tick(first_tick + 11932 * i);
		assert_true(event == now);
		now--;
		assert_false(pit_run(&pit, now));
		now++;
		assert_true(pit_run(&pit, now));
		assert_false(pit_run(&pit, now));
	}
	assert_int_equal(pit.edges, 1000);
	assert_int_equal(pit.missed, 0);
	assert_true(now / 1000000 == 10000); /* 10 s and a little */
}

static void test_late_run_merges_edges(void **state)
{
	program(0, 2, 1193);
	at_tick(1001 + 1193 * 1000 + 5);
	assert_true(pit_run(&pit, now));
	assert_false(pit_run(&pit, now));
	assert_int_equal(pit.edges, 1000);
	assert_int_equal(pit.missed, 999);
	at_tick(1001 + 1193 * 1001);
	assert_true(pit_next_event(&pit, now) == now);
	now += 1000 * 86400 * 1000000000ull; /* 1000 days in one step */
	assert_true(pit_run(&pit, now));
	assert_int_equal(pit.edges, pit.missed + 2);
	assert_true(pit_next_event(&pit, now) > now);
}

static void test_a_tiny_period_does_not_flood(void **state)
{
	u64 runs = 0, start = now;

	program(0, 2, 2);
	while (now < start + 10000000) {
		u64 event = pit_next_event(&pit, now);

		assert_true(event > now || !runs);
		now = event > now ? event : now;
		pit_run(&pit, now);
		runs++;
	}
	assert_in_range(runs, 100, 201);
	assert_true(pit.edges > 5900 && pit.edges < 6000);
}

static void test_mode_0_interrupts_once(void **state)
{
	program(0, 0, 100);
	assert_false(pit.irq);
	at_tick(1001 + 99);
	assert_false(pit_run(&pit, now));
	at_tick(1001 + 100);
	assert_true(pit_run(&pit, now));
	assert_true(pit.irq);
	assert_true(pit_next_event(&pit, now) == UINT64_MAX);
	now += 1000000000;
	assert_false(pit_run(&pit, now));
	out(0x40, 50); /* writing a count starts it again */
	out(0x40, 0);
	assert_true(pit_next_event(&pit, now) > now);
	now += 1000000000;
	assert_true(pit_run(&pit, now));
}

/* Linux' one-shot clock event uses mode 4. */
static void test_mode_4_strobes_once(void **state)
{
	program(0, 4, 100);
	at_tick(1001 + 100);
	assert_false(pit_run(&pit, now));
	out(0x43, 0xe2); /* status of channel 0 */
	assert_int_equal(in(0x40), 0x38);
	at_tick(1001 + 101);
	assert_true(pit_run(&pit, now));
	out(0x43, 0xe2);
	assert_int_equal(in(0x40), 0xb8);
	assert_true(pit_next_event(&pit, now) == UINT64_MAX);
}

static void test_a_new_count_waits_for_the_end_of_the_period(void **state)
{
	program(0, 2, 1000);
	at_tick(1001 + 500);
	out(0x40, 200 & 0xff);
	out(0x40, 200 >> 8);
	out(0x43, 0xe2);
	assert_int_equal(in(0x40) & 0x40, 0x40); /* null count */
	assert_int_equal(latched(0), 500);
	at_tick(1001 + 1000);
	assert_true(pit_next_event(&pit, now) == now);
	assert_true(pit_run(&pit, now));
	assert_int_equal(latched(0), 200);
	at_tick(1001 + 1000 + 200);
	assert_true(pit_next_event(&pit, now) == now);
	assert_true(pit_run(&pit, now));
	at_tick(1001 + 1000 + 250);
	assert_int_equal(latched(0), 150);
	/* also when nobody runs it at the boundary */
	out(0x40, 100);
	out(0x40, 0);
	at_tick(1001 + 1000 + 400 + 100 + 30);
	assert_int_equal(latched(0), 70);
	assert_true(pit_run(&pit, now));
	assert_int_equal(pit.edges, 4);
}

static void test_mode_2_counts_down_to_one(void **state)
{
	program(2, 2, 3);
	out(0x61, 1);
	at_tick(1001);
	assert_int_equal(latched(2), 3);
	assert_true(out2());
	at_tick(1002);
	assert_int_equal(latched(2), 2);
	at_tick(1003);
	assert_int_equal(latched(2), 1);
	assert_false(out2());
	at_tick(1004);
	assert_int_equal(latched(2), 3);
	assert_true(out2());
}

static void test_mode_3_is_a_square_wave(void **state)
{
	unsigned high = 0;

	program(2, 3, 7);
	out(0x61, 1);
	for (u64 t = 0; t < 70; t++) {
		at_tick(1001 + t);
		high += out2();
		assert_int_equal(out2(), t % 7 < 4);
	}
	assert_int_equal(high, 40);
	program(2, 3, 100);
	at_tick(1070 + 1 + 10);
	assert_int_equal(latched(2), 80);
	at_tick(1070 + 1 + 60);
	assert_int_equal(latched(2), 80);
}

/* quick_pit_calibrate(): channel 2, mode 0, all ones, then the high byte is polled. */
static void test_linux_quick_calibration(void **state)
{
	u64 start;

	out(0x61, (in(0x61) & ~0x02) | 0x01);
	out(0x43, 0xb0);
	out(0x42, 0xff);
	out(0x42, 0xff);
	in(0x42);
	in(0x42);
	start = now;
	for (unsigned msb = 0xff; msb > 0xe0; msb--) {
		for (;;) {
			in(0x42);
			if (in(0x42) != msb)
				break;
			now += 3000;
		}
	}
	/* 0xffff down to 0xe0ff: 31 * 256 ticks */
	assert_in_range(now - start, 31 * 256 * 838ull, 31 * 256 * 839ull + 9000);
}

/* pit_calibrate_tsc(): mode 0, a count of some ms, wait for OUT 2 in port 0x61. */
static void test_linux_slow_calibration(void **state)
{
	u64 start = now;
	u16 latch = PIT_HZ / 100;

	out(0x61, (in(0x61) & ~0x02) | 0x01);
	out(0x43, 0xb0);
	out(0x42, latch & 0xff);
	out(0x42, latch >> 8);
	assert_false(out2());
	while (!out2())
		now += 100;
	assert_in_range(now - start, 10000000 - 1000, 10000000 + 2000);
	now += 10000000000ull;
	assert_true(out2());
}

static void test_gate_stops_and_resumes_mode_0(void **state)
{
	out(0x61, 1);
	program(2, 0, 1000);
	at_tick(1001 + 400);
	out(0x61, 0);
	at_tick(5000);
	assert_int_equal(latched(2), 600);
	assert_false(out2());
	out(0x61, 1);
	at_tick(5000 + 599);
	assert_int_equal(latched(2), 1);
	assert_false(out2());
	at_tick(5000 + 600);
	assert_true(out2());
	at_tick(5000 + 601);
	assert_int_equal(latched(2), 0xffff);
	assert_true(out2());
}

static void test_gate_restarts_modes_2_and_3(void **state)
{
	out(0x61, 1);
	program(2, 2, 1000);
	at_tick(1500);
	out(0x61, 0);
	assert_true(out2());
	at_tick(2000);
	assert_int_equal(latched(2), 1000);
	out(0x61, 1);
	at_tick(2001 + 999);
	assert_false(out2());
	assert_int_equal(latched(2), 1);
}

static void test_modes_1_and_5_wait_for_the_gate(void **state)
{
	program(2, 1, 100);
	at_tick(3000);
	assert_true(out2());
	out(0x61, 1);
	at_tick(3001);
	assert_false(out2());
	at_tick(3001 + 50);
	out(0x61, 0); /* retrigger */
	out(0x61, 1);
	at_tick(3052 + 99);
	assert_false(out2());
	at_tick(3052 + 100);
	assert_true(out2());
	out(0x61, 0);
	program(2, 5, 10);
	out(0x61, 1);
	at_tick(3152 + 1 + 10);
	assert_false(out2());
	at_tick(3152 + 1 + 11);
	assert_true(out2());
}

static void test_latch_holds_until_read(void **state)
{
	program(2, 0, 0x1234);
	out(0x61, 1);
	out(0x43, 0x80);
	at_tick(3000);
	out(0x43, 0x80); /* a second one is ignored */
	assert_int_equal(read_word(0x42), 0x1234);
	assert_int_equal(read_word(0x42), 0x1234 - 2000);
}

static void test_status_comes_before_the_count(void **state)
{
	program(2, 3, 0x4000);
	out(0x43, 0xc8); /* both of channel 2 */
	assert_int_equal(in(0x42), 0xb6);
	assert_int_equal(read_word(0x42), 0x4000);
	out(0x43, 0xb0);
	out(0x43, 0xe8);
	assert_int_equal(in(0x42), 0x70); /* no count yet, OUT low */
}

static void test_single_byte_access(void **state)
{
	out(0x61, 1);
	out(0x43, 0x90); /* channel 2, low byte only, mode 0 */
	out(0x42, 200);
	at_tick(1001 + 50);
	assert_int_equal(in(0x42), 150);
	assert_int_equal(in(0x42), 150);
	out(0x43, 0xa0); /* high byte only */
	out(0x42, 0x12);
	assert_int_equal(in(0x42), 0x12);
	assert_int_equal(in(0x42), 0x12);
	assert_false(out2());
}

static void test_bcd(void **state)
{
	out(0x61, 1);
	out(0x43, 0xb1);
	out(0x42, 0x00);
	out(0x42, 0x10); /* 1000 */
	at_tick(1001 + 1);
	assert_int_equal(latched(2), 0x999);
	at_tick(1001 + 1000);
	assert_true(out2());
	at_tick(1001 + 1001);
	assert_int_equal(latched(2), 0x9999);
}

static void test_count_0_is_65536(void **state)
{
	program(0, 2, 0);
	at_tick(1001 + 65535);
	assert_false(pit_run(&pit, now));
	assert_int_equal(latched(0), 1);
	at_tick(1001 + 65536);
	assert_true(pit_run(&pit, now));
}

static void test_port_61(void **state)
{
	u8 seen = 0;

	out(0x61, 0xff);
	assert_int_equal(in(0x61) & 0xcf, 0x0f);
	out(0x61, 0);
	assert_int_equal(in(0x61) & 0xcf, 0);
	for (int i = 0; i < 40; i++, now += 1000)
		seen |= 1 << (in(0x61) >> 4 & 1);
	assert_int_equal(seen, 3); /* the refresh bit toggles */
}

static void test_control_word_silences_channel_0(void **state)
{
	program(0, 2, 1000);
	at_tick(1001 + 1000);
	assert_true(pit_run(&pit, now));
	out(0x43, 0x30);
	assert_false(pit.irq);
	assert_true(pit_next_event(&pit, now) == UINT64_MAX);
	out(0x43, 0x34); /* OUT rises from mode 0's low: an edge, as on the chip */
	assert_true(pit_next_event(&pit, now) <= now);
	assert_true(pit_run(&pit, now));
	assert_true(pit_next_event(&pit, now) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_silent_until_programmed, setup),
	    cmocka_unit_test_setup(test_mode_2_interrupts_without_drift, setup),
	    cmocka_unit_test_setup(test_late_run_merges_edges, setup),
	    cmocka_unit_test_setup(test_a_tiny_period_does_not_flood, setup),
	    cmocka_unit_test_setup(test_mode_0_interrupts_once, setup),
	    cmocka_unit_test_setup(test_mode_4_strobes_once, setup),
	    cmocka_unit_test_setup(test_a_new_count_waits_for_the_end_of_the_period, setup),
	    cmocka_unit_test_setup(test_mode_2_counts_down_to_one, setup),
	    cmocka_unit_test_setup(test_mode_3_is_a_square_wave, setup),
	    cmocka_unit_test_setup(test_linux_quick_calibration, setup),
	    cmocka_unit_test_setup(test_linux_slow_calibration, setup),
	    cmocka_unit_test_setup(test_gate_stops_and_resumes_mode_0, setup),
	    cmocka_unit_test_setup(test_gate_restarts_modes_2_and_3, setup),
	    cmocka_unit_test_setup(test_modes_1_and_5_wait_for_the_gate, setup),
	    cmocka_unit_test_setup(test_latch_holds_until_read, setup),
	    cmocka_unit_test_setup(test_status_comes_before_the_count, setup),
	    cmocka_unit_test_setup(test_single_byte_access, setup),
	    cmocka_unit_test_setup(test_bcd, setup),
	    cmocka_unit_test_setup(test_count_0_is_65536, setup),
	    cmocka_unit_test_setup(test_port_61, setup),
	    cmocka_unit_test_setup(test_control_word_silences_channel_0, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
