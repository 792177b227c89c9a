/* SPDX-License-Identifier: BSD-2-Clause */
/* boot/epoch.c against the C library's timegm(). */
// sources: boot/epoch.c
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#include "boot/epoch.h"

static void known_dates(void **state)
{
	assert_int_equal(epoch_seconds(1970, 1, 1, 0, 0, 1, 0), 1);
	assert_int_equal(epoch_seconds(2000, 2, 29, 12, 0, 0, 0), 951825600);
	assert_int_equal(epoch_seconds(2023, 11, 14, 22, 13, 20, 0), 1700000000);
}

static void every_day_until_2200_agrees_with_timegm(void **state)
{
	for (time_t t = 12345; t < 7258118400; t += 86400) {
		struct tm tm;

		gmtime_r(&t, &tm);
		assert_int_equal(epoch_seconds((u32)tm.tm_year + 1900, (u32)tm.tm_mon + 1,
					       (u32)tm.tm_mday, (u32)tm.tm_hour, (u32)tm.tm_min,
					       (u32)tm.tm_sec, 0),
				 t);
	}
}

static void the_zone_is_minutes_to_add_to_local_time(void **state)
{
	/* 23:13:20 in UTC+1, which UEFI calls -60. */
	assert_int_equal(epoch_seconds(2023, 11, 14, 23, 13, 20, -60), 1700000000);
	assert_int_equal(epoch_seconds(2023, 11, 14, 21, 43, 20, 30), 1700000000);
}

static void dates_that_do_not_exist_are_unknown(void **state)
{
	assert_int_equal(epoch_seconds(2023, 0, 1, 0, 0, 0, 0), 0);
	assert_int_equal(epoch_seconds(2023, 13, 1, 0, 0, 0, 0), 0);
	assert_int_equal(epoch_seconds(2023, 4, 31, 0, 0, 0, 0), 0);
	assert_int_equal(epoch_seconds(2023, 2, 29, 0, 0, 0, 0), 0);
	assert_int_equal(epoch_seconds(2100, 2, 29, 0, 0, 0, 0), 0);
	assert_int_equal(epoch_seconds(2023, 1, 0, 0, 0, 0, 0), 0);
	assert_int_equal(epoch_seconds(2023, 1, 1, 24, 0, 0, 0), 0);
	assert_int_equal(epoch_seconds(2023, 1, 1, 0, 60, 0, 0), 0);
	assert_int_equal(epoch_seconds(2023, 1, 1, 0, 0, 60, 0), 0);
	assert_int_equal(epoch_seconds(1969, 12, 31, 23, 59, 59, 0), 0);
	assert_int_equal(epoch_seconds(0, 1, 1, 0, 0, 0, 0), 0);
	assert_int_equal(epoch_seconds(2023, 1, 1, 0, 0, 0, 1441), 0);
	assert_int_equal(epoch_seconds(1970, 1, 1, 0, 0, 0, -60), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(known_dates),
	    cmocka_unit_test(every_day_until_2200_agrees_with_timegm),
	    cmocka_unit_test(the_zone_is_minutes_to_add_to_local_time),
	    cmocka_unit_test(dates_that_do_not_exist_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
