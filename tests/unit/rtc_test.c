/* SPDX-License-Identifier: BSD-2-Clause */
/* The RTC: calendar against the C library, both codings, setting, UIP, interrupts, memory bytes. */
// sources: hv/dev/rtc.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <cmocka.h>

#include "hv/dev/rtc.h"

enum { SEC, SEC_A, MIN, MIN_A, HOUR, HOUR_A, WDAY, DAY, MONTH, YEAR, A, B, C, D, CENTURY = 0x32 };
#define S 1000000000ull
#define EPOCH 1700000000 /* 2023-11-14 22:13:20, a Tuesday */

static struct rtc rtc;
static u64 now;

static u8 in(u8 reg)
{
	rtc_write(&rtc, 0x70, 1, reg | 0x80, now);
	return (u8)rtc_read(&rtc, 0x71, 1, now);
}

static void out(u8 reg, u8 value)
{
	rtc_write(&rtc, 0x70, 1, reg, now);
	rtc_write(&rtc, 0x71, 1, value, now);
}

static int setup(void **state)
{
	now = 0;
	rtc_init(&rtc, EPOCH, 128 * MiB, 0);
	return 0;
}

/* Lets time pass as an owner does, and says how often the line rose. */
static unsigned run_until(u64 end)
{
	unsigned edges = 0;
	bool was = rtc.irq;

	for (;;) {
		u64 event = rtc_next_event(&rtc, now);

		if (event > end)
			break;
		assert_true(event > now);
		now = event;
		rtc_run(&rtc, now);
		edges += rtc.irq && !was;
		was = rtc.irq;
	}
	now = end;
	return edges;
}

static u8 bcd(int n)
{
	return n / 10 << 4 | n % 10;
}

static void check_time(time_t t)
{
	struct tm tm;

	gmtime_r(&t, &tm);
	assert_int_equal(in(SEC), bcd(tm.tm_sec));
	assert_int_equal(in(MIN), bcd(tm.tm_min));
	assert_int_equal(in(HOUR), bcd(tm.tm_hour));
	assert_int_equal(in(WDAY), tm.tm_wday + 1);
	assert_int_equal(in(DAY), bcd(tm.tm_mday));
	assert_int_equal(in(MONTH), bcd(tm.tm_mon + 1));
	assert_int_equal(in(YEAR), bcd(tm.tm_year % 100));
	assert_int_equal(in(CENTURY), bcd(tm.tm_year / 100 + 19));
}

static void set_time(u8 century, u8 year, u8 month, u8 day, u8 hour, u8 min, u8 sec)
{
	u8 b = in(B);

	out(B, b | 0x80);
	out(SEC, sec);
	out(MIN, min);
	out(HOUR, hour);
	out(DAY, day);
	out(MONTH, month);
	out(YEAR, year);
	out(CENTURY, century);
	out(B, b);
}

static void test_power_on_state(void **state)
{
	assert_int_equal(in(A), 0x26);
	assert_int_equal(in(B), 0x02);
	assert_int_equal(in(C), 0x00);
	assert_int_equal(in(D), 0x80);
	assert_int_equal(rtc_read(&rtc, 0x70, 1, now), 0xff);
	check_time(EPOCH);
	now = 86400 * S;
	check_time(EPOCH + 86400);
	assert_true(rtc_next_event(&rtc, now) == UINT64_MAX);
}

static void test_calendar_agrees_with_the_c_library(void **state)
{
	u64 x = 88172645463325252ull;

	for (int i = 0; i < 20000; i++) {
		time_t t;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		t = x % 8000000000ull; /* 1970 to 2223 */
		rtc_init(&rtc, t, 0, 0);
		check_time(t);
	}
	for (int year = 1970; year < 2110; year++) {
		struct tm tm = {.tm_year = year - 1900, .tm_mon = 2, .tm_mday = 1};
		time_t t = timegm(&tm);

		rtc_init(&rtc, t - 1, 0, 0);
		check_time(t - 1);
		now = S;
		check_time(t);
		now = 0;
	}
}

static void test_binary_and_12_hour_modes(void **state)
{
	static const u8 hours[] = {0x92, 0x81, 0x91, 0x12, 0x01, 0x11}; /* 12 pm, 1 pm, .. */

	out(B, 0x06);
	assert_int_equal(in(HOUR), 22);
	assert_int_equal(in(YEAR), 23);
	assert_int_equal(in(CENTURY), 20);
	out(B, 0x04);
	assert_int_equal(in(HOUR), 0x80 | 10);
	out(B, 0x00);
	assert_int_equal(in(HOUR), 0x90);
	for (unsigned i = 0; i < ARRAY_SIZE(hours); i++) {
		out(HOUR, hours[i]);
		assert_int_equal(in(HOUR), hours[i]);
	}
	out(HOUR, 0x12);
	out(B, 0x02);
	assert_int_equal(in(HOUR), 0x00);
}

static void test_setting_the_time(void **state)
{
	now = 5 * S + 700000000;
	set_time(0x20, 0x31, 0x12, 0x31, 0x23, 0x59, 0x58);
	check_time(1956527998);
	now += 299999999; /* the second goes on where it was */
	check_time(1956527998);
	now += 1;
	check_time(1956527999);
	now += S;
	check_time(1956528000); /* 2032-01-01 */
	now += 365 * 86400 * S;
	check_time(1956528000 + 365 * 86400);
}

static void test_nothing_moves_while_set(void **state)
{
	out(B, 0x82);
	out(SEC, 0x30);
	now += 100 * S - 1000;
	assert_int_equal(in(SEC), 0x30);
	assert_int_equal(in(A)&0x80, 0);
	out(B, 0x02);
	assert_int_equal(in(SEC), 0x30);
	now += 1000;
	assert_int_equal(in(SEC), 0x31);
}

/* Linux sets the divider to reset as well: the next update comes half a second after its end. */
static void test_divider_reset_starts_a_half_second(void **state)
{
	now = 123456789;
	out(B, 0x82);
	out(A, 0x76);
	out(SEC, 0x10);
	now += 3 * S;
	out(B, 0x02);
	assert_int_equal(in(SEC), 0x10);
	now += 3 * S;
	assert_int_equal(in(SEC), 0x10);
	out(A, 0x26);
	assert_int_equal(in(SEC), 0x10);
	now += S / 2 - 1;
	assert_int_equal(in(SEC), 0x10);
	now += 1;
	assert_int_equal(in(SEC), 0x11);
}

static void test_writing_one_field_of_a_running_clock(void **state)
{
	out(MIN, 0x59);
	check_time(EPOCH + (59 - 13) * 60);
	now += 40 * S;
	check_time(EPOCH + (59 - 13) * 60 + 40);
}

static void test_nonsense_makes_some_date(void **state)
{
	set_time(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
	assert_int_equal(in(MONTH), 0x12);
	assert_int_equal(in(DAY), 0x31);
	set_time(0, 0, 0, 0, 0, 0, 0);
	assert_int_equal(in(MONTH), 0x01);
	assert_int_equal(in(DAY), 0x01);
	assert_int_equal(in(YEAR), 0x01);
	set_time(0x20, 0x23, 0x02, 0x30, 0, 0, 0); /* 30 February */
	assert_int_equal(in(MONTH), 0x03);
	assert_int_equal(in(DAY), 0x02);
}

/* UIP is on for the last 244 us of each second, so a reader that sees it off has that long. */
static void test_uip_is_short_and_never_sticks(void **state)
{
	unsigned on = 0;

	for (now = 0; now < 2 * S; now += 1000)
		on += in(A) >> 7;
	assert_in_range(on, 480, 492);
	now = 3 * S - 1;
	assert_int_equal(in(A) >> 7, 1);
	assert_int_equal(in(SEC), 0x22);
	now++;
	assert_int_equal(in(A) >> 7, 0);
	assert_int_equal(in(SEC), 0x23);
}

static void test_periodic_interrupt(void **state)
{
	out(B, 0x42);
	assert_true(rtc_next_event(&rtc, now) == 976563); /* 1/1024 s, rounded up */
	now = 976562;
	rtc_run(&rtc, now);
	assert_false(rtc.irq);
	now++;
	rtc_run(&rtc, now);
	assert_true(rtc.irq);
	assert_true(rtc_next_event(&rtc, now) == UINT64_MAX);
	assert_int_equal(in(C), 0xc0);
	assert_false(rtc.irq);
	assert_int_equal(in(C), 0x00);
	unsigned edges = 0;
	while (now < S) {
		edges += run_until(min(rtc_next_event(&rtc, now), S));
		in(C);
	}
	assert_int_equal(edges, 1023);
}

static void test_periodic_rates(void **state)
{
	static const u32 hz[] = {0,   256, 128, 8192, 4096, 2048, 1024, 512,
				 256, 128, 64,	32,   16,   8,	  4,	2};

	for (u8 rate = 0; rate < 16; rate++) {
		setup(NULL);
		out(B, 0x42);
		out(A, 0x20 | rate);
		if (!hz[rate]) {
			assert_true(rtc_next_event(&rtc, now) == UINT64_MAX);
			continue;
		}
		assert_true(rtc_next_event(&rtc, now) == (S + hz[rate] - 1) / hz[rate]);
	}
}

static void test_update_interrupt(void **state)
{
	now = S / 4;
	out(B, 0x12);
	assert_true(rtc_next_event(&rtc, now) == S);
	assert_int_equal(run_until(10 * S), 1); /* nobody reads C */
	assert_int_equal(in(C)&0x90, 0x90);
	assert_int_equal(run_until(11 * S), 1);
	out(B, 0x92); /* SET clears UIE */
	assert_int_equal(in(B), 0x82);
}

static void test_alarm(void **state)
{
	/* it is 22:13:20 */
	out(SEC_A, 0x10);
	out(MIN_A, 0x15);
	out(HOUR_A, 0x22);
	out(B, 0x22);
	assert_true(rtc_next_event(&rtc, now) == 110 * S);
	assert_int_equal(run_until(110 * S), 1);
	assert_int_equal(in(C)&0xa0, 0xa0);
	assert_true(rtc_next_event(&rtc, now) == (110 + 86400) * S);
	out(HOUR_A, 0x06);
	assert_true(rtc_next_event(&rtc, now) == (110 + 8 * 3600) * S);
	out(HOUR_A, 0xff); /* every hour */
	assert_true(rtc_next_event(&rtc, now) == (110 + 3600) * S);
	out(MIN_A, 0xc0); /* every minute */
	assert_true(rtc_next_event(&rtc, now) == 170 * S);
	out(SEC_A, 0xff); /* every second */
	assert_true(rtc_next_event(&rtc, now) == 111 * S);
	out(SEC_A, 0x77); /* never */
	assert_true(rtc_next_event(&rtc, now) == UINT64_MAX);
	out(SEC_A, 0x00);
	out(HOUR_A, 0x99);
	assert_true(rtc_next_event(&rtc, now) == UINT64_MAX);
}

static void test_alarm_is_found_second_by_second(void **state)
{
	static const u8 values[] = {0x00, 0x01, 0x30, 0x59, 0xff};

	for (unsigned i = 0; i < 125; i++) {
		u8 s = values[i % 5], m = values[i / 5 % 5],
		   h = i / 25 == 3 ? 0x23 : values[i / 25];
		u64 expect = UINT64_MAX;

		setup(NULL);
		out(SEC_A, s);
		out(MIN_A, m);
		out(HOUR_A, h);
		for (u64 t = 1; t <= 86400 && expect == UINT64_MAX; t++) {
			u64 tod = (EPOCH + t) % 86400;

			if ((h == 0xff || h == bcd(tod / 3600)) &&
			    (m == 0xff || m == bcd(tod / 60 % 60)) &&
			    (s == 0xff || s == bcd(tod % 60)))
				expect = t * S;
		}
		out(B, 0x22);
		assert_true(rtc_next_event(&rtc, now) == expect);
	}
}

static void test_flags_are_set_without_interrupts(void **state)
{
	now = 5 * S;
	assert_int_equal(in(C), 0x50);
	assert_false(rtc.irq);
	assert_int_equal(in(C), 0);
	out(SEC_A, 0xff), out(MIN_A, 0xff), out(HOUR_A, 0xff);
	now += S;
	rtc_run(&rtc, now);
	out(B, 0x22); /* enabling with the flag up raises the line */
	assert_true(rtc.irq);
}

static void test_reset_keeps_time_and_memory(void **state)
{
	set_time(0x20, 0x24, 0x02, 0x29, 0x12, 0x00, 0x00);
	out(0x0f, 0x0a);
	out(0x40, 0x77);
	out(B, 0x72);
	now += 2 * S;
	rtc_run(&rtc, now);
	assert_true(rtc.irq);
	rtc_reset(&rtc, now);
	assert_false(rtc.irq);
	assert_int_equal(in(B), 0x02);
	assert_int_equal(in(C), 0x00);
	assert_int_equal(in(0x0f), 0x0a);
	assert_int_equal(in(0x40), 0x77);
	check_time(1709208002);
}

static void test_memory_size_bytes(void **state)
{
	rtc_init(&rtc, 0, 3 * GiB, 5 * GiB);
	assert_int_equal(in(0x15) | in(0x16) << 8, 640);
	assert_int_equal(in(0x17) | in(0x18) << 8, 0xffff);
	assert_int_equal(in(0x30) | in(0x31) << 8, 0xffff);
	assert_int_equal(in(0x34) | in(0x35) << 8, (3 * GiB - 16 * MiB) / 65536);
	assert_int_equal(in(0x5b) | in(0x5c) << 8 | in(0x5d) << 16, 5 * GiB / 65536);
	rtc_init(&rtc, 0, 16 * MiB, 0);
	assert_int_equal(in(0x30) | in(0x31) << 8, 15 * 1024);
	assert_int_equal(in(0x34) | in(0x35) << 8, 0);
}

static void test_registers_c_and_d_are_read_only(void **state)
{
	out(C, 0xff);
	out(D, 0x00);
	assert_int_equal(in(C), 0);
	assert_int_equal(in(D), 0x80);
	out(A, 0xa6);
	assert_int_equal(in(A), 0x26);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_power_on_state, setup),
	    cmocka_unit_test_setup(test_calendar_agrees_with_the_c_library, setup),
	    cmocka_unit_test_setup(test_binary_and_12_hour_modes, setup),
	    cmocka_unit_test_setup(test_setting_the_time, setup),
	    cmocka_unit_test_setup(test_nothing_moves_while_set, setup),
	    cmocka_unit_test_setup(test_divider_reset_starts_a_half_second, setup),
	    cmocka_unit_test_setup(test_writing_one_field_of_a_running_clock, setup),
	    cmocka_unit_test_setup(test_nonsense_makes_some_date, setup),
	    cmocka_unit_test_setup(test_uip_is_short_and_never_sticks, setup),
	    cmocka_unit_test_setup(test_periodic_interrupt, setup),
	    cmocka_unit_test_setup(test_periodic_rates, setup),
	    cmocka_unit_test_setup(test_update_interrupt, setup),
	    cmocka_unit_test_setup(test_alarm, setup),
	    cmocka_unit_test_setup(test_alarm_is_found_second_by_second, setup),
	    cmocka_unit_test_setup(test_flags_are_set_without_interrupts, setup),
	    cmocka_unit_test_setup(test_reset_keeps_time_and_memory, setup),
	    cmocka_unit_test_setup(test_memory_size_bytes, setup),
	    cmocka_unit_test_setup(test_registers_c_and_d_are_read_only, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
