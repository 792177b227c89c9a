/* SPDX-License-Identifier: BSD-2-Clause */
/* All knobs by name. */
// sources: hv/knobs.c hv/sched/knobs.c hv/spin/knobs.c hv/lib/fmt.c hv/lib/knob.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hv/knobs.h"
#include "hv/lib/errors.h"

static struct hv_knobs k;
static struct sched_knobs sk;
static struct spin_knobs pk;
static void *const values[NR_KNOB_TABLES] = {&k, &sk, &pk};
static char err[160];

static int set(const char *name, const char *value)
{
	err[0] = 0;
	return knobs_parse(values, name, value, err, sizeof(err));
}

static void a_number_within_its_bounds_is_taken(void **state)
{
	assert_int_equal(set("host_poll_ns", "100000"), 0);
	assert_int_equal(k.host_poll_ns, 100000);
	assert_int_equal(set("host_poll_ns", "10000000"), 0);
	assert_int_equal(k.host_poll_ns, 10000000);
}

static void a_number_out_of_range_is_refused_with_the_range(void **state)
{
	k.host_poll_ns = 5;
	assert_int_equal(set("host_poll_ns", "99999"), E_RANGE);
	assert_string_equal(err, "host_poll_ns: \"99999\" is out of range; 100000 to 10000000 are "
				 "possible");
	assert_int_equal(set("host_poll_ns", "10000001"), E_RANGE);
	assert_int_equal(set("host_poll_ns", "99999999999999999999999"), E_RANGE);
	/* 2^64 + 100000: what is left of it would be in range */
	assert_int_equal(set("host_poll_ns", "18446744073709651616"), E_RANGE);
	assert_int_equal(k.host_poll_ns, 5);
}

static void words_that_are_no_numbers_are_refused(void **state)
{
	static const char *const bad[] = {"",	  "x", "1x", "-1", "99999999999999999999999x",
					  "0x10", " 1"};

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(set("host_poll_ns", bad[i]), E_INVAL);
	assert_string_equal(err, "host_poll_ns: \" 1\" is not a number; 100000 to 10000000 are "
				 "possible");
}

static void switches_know_on_and_off(void **state)
{
	assert_int_equal(set("ipi_track_multicast", "on"), 0);
	assert_true(k.ipi_track_multicast);
	assert_int_equal(set("ipi_track_multicast", "0"), 0);
	assert_false(k.ipi_track_multicast);
	assert_int_equal(set("ipi_track_multicast", "true"), 0);
	assert_true(k.ipi_track_multicast);
	assert_int_equal(set("ipi_track_multicast", "2"), E_INVAL);
	assert_string_equal(err, "ipi_track_multicast: \"2\" is not on or off");
	assert_true(k.ipi_track_multicast);
}

static void every_room_is_found_and_its_errors_say_what_would_be_right(void **state)
{
	assert_int_equal(set("yield_policy", "credit"), 0);
	assert_int_equal(sk.yield_policy, SCHED_YIELD_CREDIT);
	assert_int_equal(set("yield_policy", "more"), E_INVAL);
	assert_string_equal(err, "yield_policy: \"more\" is none of forfeit, deboost, credit, "
				 "transfer, auto");
	assert_int_equal(set("candidate_policy", "kvm"), 0);
	assert_int_equal(pk.candidate_policy, SPIN_POLICY_KVM);
	assert_int_equal(set("candidate_policy", "7"), E_INVAL);
	assert_string_equal(err, "candidate_policy: \"7\" is none of kvm, ipi, exact");
	assert_int_equal(set("ple_window", "4294967296"), E_RANGE);
	assert_string_equal(err, "ple_window: \"4294967296\" is out of range; 0 to 4294967295 are "
				 "possible");
	assert_int_equal(set("dy_tries", "log2"), 0);
	assert_int_equal(pk.dy_tries, SPIN_TRIES_LOG2);
}

static void an_unknown_name_is_said_so(void **state)
{
	assert_int_equal(set("slice", "1"), E_NOENT);
	assert_string_equal(err, "slice is not a knob; the monitor's `knob` lists them");
}

static void a_long_value_does_not_overrun_the_error_line(void **state)
{
	char value[300], small[16];

	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = 0;
	assert_int_equal(set("yield_policy", value), E_INVAL);
	assert_int_equal(strlen(err), sizeof(err) - 1);
	memset(small, 'y', sizeof(small));
	assert_int_equal(knobs_parse(values, "yield_policy", "z", small, 8), E_INVAL);
	assert_string_equal(small, "yield_p");
	assert_int_equal(small[8], 'y');
	assert_int_equal(knobs_parse(values, "yield_policy", "z", NULL, 0), E_INVAL);
}

/* Sets @info to what it reads as, and looks whether that changed a byte of the room's struct. */
static void assert_default_reads_back(u32 table, const struct knob_info *info)
{
	static const size_t size[NR_KNOB_TABLES] = {sizeof(k), sizeof(sk), sizeof(pk)};
	char text[32], before[1024];

	assert_true(size[table] <= sizeof(before));
	memcpy(before, values[table], size[table]);
	assert_int_equal(
	    knob_table_get(knob_tables[table], values[table], info->name, text, sizeof(text)), 0);
	assert_int_equal(set(info->name, text), 0);
	assert_memory_equal(before, values[table], size[table]);
}

static void every_knob_has_a_text_an_own_name_and_a_default_that_can_be_set(void **state)
{
	for (u32 t = 0; t < NR_KNOB_TABLES; t++) {
		knob_table_init(knob_tables[t], values[t]);
		assert_true(knob_tables[t]->nr > 0 && strlen(knob_tables[t]->text) > 10);
		for (u32 i = 0; i < knob_tables[t]->nr; i++) {
			const struct knob_info *info = &knob_tables[t]->knob[i];

			assert_true(strlen(info->text) > 10);
			if (info->kind == KNOB_NUMBER)
				assert_in_range(info->dflt, info->least, info->largest);
			for (u32 other = 0; other < NR_KNOB_TABLES; other++) {
				const struct knob_info *same =
				    knob_find(knob_tables[other], info->name);

				assert_ptr_equal(same, other == t ? info : NULL);
			}
			assert_default_reads_back(t, info);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_number_within_its_bounds_is_taken),
	    cmocka_unit_test(a_number_out_of_range_is_refused_with_the_range),
	    cmocka_unit_test(words_that_are_no_numbers_are_refused),
	    cmocka_unit_test(switches_know_on_and_off),
	    cmocka_unit_test(every_room_is_found_and_its_errors_say_what_would_be_right),
	    cmocka_unit_test(an_unknown_name_is_said_so),
	    cmocka_unit_test(a_long_value_does_not_overrun_the_error_line),
	    cmocka_unit_test(every_knob_has_a_text_an_own_name_and_a_default_that_can_be_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
