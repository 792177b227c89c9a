/* SPDX-License-Identifier: BSD-2-Clause */
/* When a vCPU counts as spinning: the adaptive window, the software loop, the knobs. */
// sources: hv/spin/ple.c hv/spin/knobs.c hv/lib/fmt.c hv/lib/knob.c
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hv/lib/errors.h"
#include "hv/spin/ple.h"

static struct spin_knobs knobs;
static struct spin_ple ple;

static int set_up(void **state)
{
	spin_knobs_init(&knobs);
	spin_ple_init(&ple, &knobs);
	return 0;
}

static void the_defaults_are_those_of_kvm(void **state)
{
	assert_int_equal(knobs.ple_gap, 128);
	assert_int_equal(knobs.ple_window, 4096);
	assert_int_equal(knobs.ple_window_grow, 2);
	assert_int_equal(knobs.ple_window_shrink, 0);
	assert_int_equal(knobs.ple_window_max, UINT32_MAX);
	assert_int_equal(ple.window, 4096);
}

static void the_window_doubles_and_goes_back(void **state)
{
	assert_true(spin_ple_grow(&ple, &knobs));
	assert_true(spin_ple_grow(&ple, &knobs));
	assert_int_equal(ple.window, 16384);
	assert_true(spin_ple_shrink(&ple, &knobs));
	assert_int_equal(ple.window, 4096);
	assert_false(spin_ple_shrink(&ple, &knobs)); /* no change: no VMWRITE */
}

static void the_window_stops_at_its_maximum(void **state)
{
	for (u32 i = 0; i < 40; i++)
		spin_ple_grow(&ple, &knobs);
	assert_int_equal(ple.window, UINT32_MAX);
	assert_false(spin_ple_grow(&ple, &knobs));
	knobs.ple_window_max = 10000;
	spin_ple_shrink(&ple, &knobs);
	spin_ple_grow(&ple, &knobs);
	spin_ple_grow(&ple, &knobs);
	assert_int_equal(ple.window, 10000);
}

static void a_modifier_below_the_window_is_a_factor_from_there_on_a_summand(void **state)
{
	knobs.ple_window_grow = knobs.ple_window_shrink = 4095;
	spin_ple_grow(&ple, &knobs);
	assert_int_equal(ple.window, 4096 * 4095);
	spin_ple_shrink(&ple, &knobs);
	assert_int_equal(ple.window, 4096);
	knobs.ple_window_grow = knobs.ple_window_shrink = 4096;
	spin_ple_grow(&ple, &knobs);
	spin_ple_grow(&ple, &knobs);
	assert_int_equal(ple.window, 3 * 4096);
	spin_ple_shrink(&ple, &knobs);
	assert_int_equal(ple.window, 2 * 4096);
	/* What would be below 0 is the least. */
	knobs.ple_window_shrink = UINT32_MAX;
	spin_ple_shrink(&ple, &knobs);
	assert_int_equal(ple.window, 4096);
	knobs.ple_window_grow = UINT32_MAX;
	spin_ple_grow(&ple, &knobs);
	assert_int_equal(ple.window, UINT32_MAX);
}

static void zero_means_the_window_stays(void **state)
{
	knobs.ple_window_grow = 0;
	assert_false(spin_ple_grow(&ple, &knobs));
	assert_int_equal(ple.window, 4096);
}

static void auto_takes_what_the_cpu_has(void **state)
{
	assert_int_equal(spin_ple_mode(&knobs, true), SPIN_PLE_HW);
	assert_int_equal(spin_ple_mode(&knobs, false), SPIN_PLE_PAUSE);
	knobs.ple = SPIN_PLE_HW;
	assert_int_equal(spin_ple_mode(&knobs, false), SPIN_PLE_OFF);
	knobs.ple = SPIN_PLE_PAUSE;
	assert_int_equal(spin_ple_mode(&knobs, true), SPIN_PLE_PAUSE);
	knobs.ple = SPIN_PLE_OFF;
	assert_int_equal(spin_ple_mode(&knobs, true), SPIN_PLE_OFF);
}

/* PAUSE exits @apart ticks apart until a spin is found; how many it takes, 0 if none in 1000. */
static u32 pauses_until_spin(u64 *now, u64 apart)
{
	for (u32 n = 1; n <= 1000; n++) {
		*now += apart;
		if (spin_ple_pause(&ple, &knobs, *now))
			return n;
	}
	return 0;
}

static void a_loop_longer_than_the_window_is_a_spin(void **state)
{
	u64 now = 1000000;

	/* The loop lasts n - 1 distances: the first that exceeds 4096 is 9 * 500. */
	assert_int_equal(pauses_until_spin(&now, 500), 10);
	assert_int_equal(pauses_until_spin(&now, 500), 10); /* starts anew */
	ple.window = 8192;
	assert_int_equal(pauses_until_spin(&now, 500), 18);
}

static void what_an_exit_takes_does_not_count_as_gap(void **state)
{
	u64 now = 1000000;

	/* Nested: 20,000 ticks for each exit. */
	assert_int_equal(pauses_until_spin(&now, 20000), 2);
	assert_int_equal(ple.least_apart, 20000);
}

static void pauses_far_apart_are_no_loop(void **state)
{
	u64 now = 1000000;

	pauses_until_spin(&now, 500);
	assert_int_equal(pauses_until_spin(&now, 500 + 250 + 128 + 1), 0);
	assert_int_equal(pauses_until_spin(&now, 500 + 250 + 128), 5);
	knobs.ple_gap = 1000;
	assert_int_equal(pauses_until_spin(&now, 500 + 250 + 1000), 4);
	knobs.ple_gap = 0;
	assert_int_equal(pauses_until_spin(&now, 751), 0);
}

static void a_break_starts_a_new_loop(void **state)
{
	u64 now = 1000000;

	for (u32 round = 0; round < 50; round++) {
		for (u32 i = 0; i < 9; i++) {
			now += 500;
			assert_false(spin_ple_pause(&ple, &knobs, now));
		}
		now += 5000;
	}
	for (u32 round = 0; round < 50; round++) {
		for (u32 i = 0; i < 9; i++) {
			now += 500;
			assert_false(spin_ple_pause(&ple, &knobs, now));
		}
		spin_ple_left(&ple); /* the vCPU left the pCPU */
	}
}

static void a_clock_that_goes_back_starts_a_new_loop(void **state)
{
	u64 now = 1000000;

	pauses_until_spin(&now, 500);
	for (u32 i = 0; i < 100; i++) {
		now -= 10000;
		assert_false(spin_ple_pause(&ple, &knobs, now));
	}
	assert_int_equal(ple.least_apart, 500);
}

static void every_knob_reads_back_what_was_set(void **state)
{
	char value[32], again[32];

	for (u32 i = 0; i < spin_knob_table.nr; i++) {
		const struct knob_info *info = &spin_knob_table.knob[i];

		assert_true(strlen(info->text) > 0);
		assert_int_equal(spin_knob_get(&knobs, info->name, value, sizeof(value)), 0);
		assert_int_equal(spin_knob_set(&knobs, info->name, value), 0);
		for (u32 n = 0; info->words[n]; n++) {
			assert_int_equal(spin_knob_set(&knobs, info->name, info->words[n]), 0);
			spin_knob_get(&knobs, info->name, again, sizeof(again));
			assert_string_equal(again, info->words[n]);
			assert_non_null(info->word_texts[n]);
		}
		assert_int_equal(spin_knob_set(&knobs, info->name, ""), E_INVAL);
		assert_int_equal(spin_knob_set(&knobs, info->name, "nonsense"), E_INVAL);
		if (info->kind == KNOB_NUMBER) {
			assert_int_equal(spin_knob_set(&knobs, info->name, "77"), 0);
			spin_knob_get(&knobs, info->name, again, sizeof(again));
			assert_string_equal(again, "77");
			assert_int_equal(spin_knob_set(&knobs, info->name, "4294967296"), E_RANGE);
			assert_int_equal(
			    spin_knob_set(&knobs, info->name, "99999999999999999999999"), E_RANGE);
			assert_int_equal(spin_knob_set(&knobs, info->name, "7x"), E_INVAL);
			spin_knob_get(&knobs, info->name, again, sizeof(again));
			assert_string_equal(again, "77");
		}
	}
	assert_int_equal(spin_knob_set(&knobs, "enable_relaxed_boost", "off"), 0);
	assert_false(knobs.enable_relaxed_boost);
	assert_int_equal(spin_knob_set(&knobs, "enable_relaxed_boost", "1"), 0);
	assert_true(knobs.enable_relaxed_boost);
	assert_int_equal(spin_knob_set(&knobs, "no_such", "1"), E_NOENT);
	assert_int_equal(spin_knob_get(&knobs, "no_such", value, sizeof(value)), E_NOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(the_defaults_are_those_of_kvm, set_up),
	    cmocka_unit_test_setup(the_window_doubles_and_goes_back, set_up),
	    cmocka_unit_test_setup(the_window_stops_at_its_maximum, set_up),
	    cmocka_unit_test_setup(a_modifier_below_the_window_is_a_factor_from_there_on_a_summand,
				   set_up),
	    cmocka_unit_test_setup(zero_means_the_window_stays, set_up),
	    cmocka_unit_test_setup(auto_takes_what_the_cpu_has, set_up),
	    cmocka_unit_test_setup(a_loop_longer_than_the_window_is_a_spin, set_up),
	    cmocka_unit_test_setup(what_an_exit_takes_does_not_count_as_gap, set_up),
	    cmocka_unit_test_setup(pauses_far_apart_are_no_loop, set_up),
	    cmocka_unit_test_setup(a_break_starts_a_new_loop, set_up),
	    cmocka_unit_test_setup(a_clock_that_goes_back_starts_a_new_loop, set_up),
	    cmocka_unit_test_setup(every_knob_reads_back_what_was_set, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
