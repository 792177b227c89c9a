/* SPDX-License-Identifier: BSD-2-Clause */
/* The hypervisor's knobs by name. */
// sources: hv/knobs.c hv/lib/fmt.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hv/knobs.h"
#include "hv/lib/errors.h"

static struct hv_knobs k;
static char err[160];

static void a_number_within_its_bounds_is_taken(void **state)
{
	assert_int_equal(knob_parse(&k, "host_poll_ns", "100000", err, sizeof(err)), 0);
	assert_int_equal(k.host_poll_ns, 100000);
	assert_int_equal(knob_parse(&k, "host_poll_ns", "10000000", err, sizeof(err)), 0);
	assert_int_equal(k.host_poll_ns, 10000000);
}

static void a_number_out_of_range_is_refused_with_the_range(void **state)
{
	k.host_poll_ns = 5;
	assert_int_equal(knob_parse(&k, "host_poll_ns", "99999", err, sizeof(err)), E_RANGE);
	assert_string_equal(err,
			    "host_poll_ns: 99999 is out of range; 100000 to 10000000 are possible");
	assert_int_equal(knob_parse(&k, "host_poll_ns", "10000001", err, sizeof(err)), E_RANGE);
	assert_int_equal(k.host_poll_ns, 5);
}

static void words_that_are_no_numbers_are_refused(void **state)
{
	static const char *const bad[] = {"",	  "x", "1x", "-1", "99999999999999999999999",
					  "0x10", " 1"};

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(knob_parse(&k, "host_poll_ns", bad[i], err, sizeof(err)), E_INVAL);
}

static void switches_know_on_and_off(void **state)
{
	assert_int_equal(knob_parse(&k, "ipi_track_multicast", "on", err, sizeof(err)), 0);
	assert_true(k.ipi_track_multicast);
	assert_int_equal(knob_parse(&k, "ipi_track_multicast", "0", err, sizeof(err)), 0);
	assert_false(k.ipi_track_multicast);
	assert_int_equal(knob_parse(&k, "ipi_track_multicast", "2", err, sizeof(err)), E_INVAL);
	assert_string_equal(err, "ipi_track_multicast: \"2\" is not on or off");
}

static void an_unknown_name_is_said_so(void **state)
{
	assert_int_equal(knob_parse(&k, "slice", "1", err, sizeof(err)), E_NOENT);
	assert_non_null(strstr(err, "slice is not a knob"));
}

static void every_knob_is_listed_with_a_text_and_a_default_in_range(void **state)
{
	struct knob_info info, other;
	u32 n = 0;

	for (; knob_info(&k, n, &info); n++) {
		assert_true(strlen(info.text) > 10);
		assert_in_range(info.dflt, info.lo, info.hi);
		for (u32 i = 0; i < n; i++) {
			assert_true(knob_info(&k, i, &other));
			assert_string_not_equal(info.name, other.name);
		}
	}
	assert_true(n >= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_number_within_its_bounds_is_taken),
	    cmocka_unit_test(a_number_out_of_range_is_refused_with_the_range),
	    cmocka_unit_test(words_that_are_no_numbers_are_refused),
	    cmocka_unit_test(switches_know_on_and_off),
	    cmocka_unit_test(an_unknown_name_is_said_so),
	    cmocka_unit_test(every_knob_is_listed_with_a_text_and_a_default_in_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
