/* SPDX-License-Identifier: BSD-2-Clause */
// sources: guest-support/load/steald_policy.c
/* When steald folds, what it folds, and what it reports. */
#include "guest-support/load/steald_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 1000000000ull

static struct cpuset set_of(const char *text)
{
	struct cpuset set;

	assert_true(cpuset_parse(text, &set));
	return set;
}

static void assert_set(const struct cpuset *set, const char *expected)
{
	char text[CPUSET_TEXT];

	cpuset_format(set, text);
	assert_string_equal(text, expected);
}

/* Every CPU is a core of its own. */
static struct steald_cpus cpus_of(const char *active)
{
	struct steald_cpus cpus = {.active = set_of(active), .preferred = set_of(active)};

	for (unsigned int cpu = 0; cpu < STEALD_CPUS; cpu++)
		cpus.core[cpu] = (uint16_t)cpu;
	return cpus;
}

static struct steald_policy policy(unsigned int possible)
{
	return (struct steald_policy){
	    .low_threshold = 200, .high_threshold = 500, .possible = possible};
}

static void lists_are_read_and_written(void **state)
{
	struct cpuset set = set_of("0-3,6,64-65,255\n");

	assert_int_equal(cpuset_count(&set), 8);
	assert_set(&set, "0-3,6,64-65,255");
	set = set_of("\n");
	assert_int_equal(cpuset_count(&set), 0);
	assert_set(&set, "");
	set = set_of("0-255");
	assert_set(&set, "0-255");
}

static void lists_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = {"256", "3-1",	 "a",  "1,", ",1",
					  "1-",	 "1--2", "1 ", "-1", "99999999999"};
	struct cpuset set;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(cpuset_parse(bad[i], &set));
}

static void the_longest_list_fits(void **state)
{
	struct cpuset set = {{0}};
	char text[CPUSET_TEXT];

	for (unsigned int cpu = 1; cpu < STEALD_CPUS; cpu += 2)
		cpuset_put(&set, cpu, true);
	cpuset_format(&set, text);
	assert_true(strlen(text) < CPUSET_TEXT - 1);
	set = set_of(text);
	assert_int_equal(cpuset_count(&set), 128);
}

static void the_first_sample_only_looks(void **state)
{
	struct steald_policy p = policy(1);
	unsigned int ratio;

	assert_int_equal(steald_sample(&p, 5 * SECOND, 4 * SECOND, &ratio), STEALD_KEEP);
	assert_int_equal(ratio, 0);
}

/* One second of four CPUs with @stolen ns. */
static enum steald_move after_a_second(uint64_t stolen, unsigned int *ratio)
{
	struct steald_policy p = policy(4);

	steald_sample(&p, SECOND, SECOND, ratio);
	return steald_sample(&p, 2 * SECOND, SECOND + stolen, ratio);
}

static void it_folds_above_high_unfolds_at_low_and_keeps_between(void **state)
{
	unsigned int ratio;

	assert_int_equal(after_a_second(0, &ratio), STEALD_UNFOLD);
	assert_int_equal(ratio, 0);
	assert_int_equal(after_a_second(80 * 1000000, &ratio), STEALD_UNFOLD);
	assert_int_equal(ratio, 200);
	assert_int_equal(after_a_second(81 * 1000000, &ratio), STEALD_KEEP);
	assert_int_equal(after_a_second(200 * 1000000, &ratio), STEALD_KEEP);
	assert_int_equal(ratio, 500);
	assert_int_equal(after_a_second(201 * 1000000, &ratio), STEALD_FOLD);
	assert_int_equal(after_a_second(4 * SECOND, &ratio), STEALD_FOLD);
	assert_int_equal(ratio, 10000);
}

static void possible_cpus_that_are_off_dilute_the_ratio(void **state)
{
	struct steald_policy p = policy(128);
	unsigned int ratio;

	steald_sample(&p, SECOND, 0, &ratio);
	/* Half the time of 8 CPUs: the example of the series' documentation. */
	assert_int_equal(steald_sample(&p, 2 * SECOND, 4 * SECOND, &ratio), STEALD_KEEP);
	assert_int_equal(ratio, 312);
}

static void steal_that_goes_back_counts_as_none(void **state)
{
	struct steald_policy p = policy(1);
	unsigned int ratio;

	steald_sample(&p, SECOND, 5 * SECOND, &ratio);
	assert_int_equal(steald_sample(&p, 2 * SECOND, SECOND, &ratio), STEALD_UNFOLD);
	assert_int_equal(ratio, 0);
	/* And the next sample starts from there. */
	assert_int_equal(steald_sample(&p, 3 * SECOND, SECOND + SECOND / 2, &ratio), STEALD_FOLD);
	assert_int_equal(ratio, 5000);
}

static void a_sample_too_soon_is_not_taken(void **state)
{
	struct steald_policy p = policy(1);
	unsigned int ratio;

	steald_sample(&p, SECOND, 0, &ratio);
	assert_int_equal(steald_sample(&p, SECOND + 999999, SECOND, &ratio), STEALD_KEEP);
	assert_int_equal(steald_sample(&p, 2 * SECOND, SECOND / 2, &ratio), STEALD_FOLD);
	assert_int_equal(ratio, 5000);
}

static void folding_takes_the_last_cpu_and_leaves_the_first(void **state)
{
	struct steald_cpus cpus = cpus_of("0-3");

	assert_true(steald_fold(&cpus));
	assert_set(&cpus.preferred, "0-2");
	assert_true(steald_fold(&cpus));
	assert_true(steald_fold(&cpus));
	assert_set(&cpus.preferred, "0");
	assert_false(steald_fold(&cpus));
	assert_set(&cpus.preferred, "0");
}

static void unfolding_gives_the_first_missing_cpu_back(void **state)
{
	struct steald_cpus cpus = cpus_of("0-3");

	assert_false(steald_unfold(&cpus));
	cpus.preferred = set_of("0");
	assert_true(steald_unfold(&cpus));
	assert_set(&cpus.preferred, "0-1");
	assert_true(steald_unfold(&cpus));
	assert_true(steald_unfold(&cpus));
	assert_set(&cpus.preferred, "0-3");
	assert_false(steald_unfold(&cpus));
}

static void siblings_go_and_come_together(void **state)
{
	struct steald_cpus cpus = cpus_of("0-7");

	/* 0 and 4 are one core, 1 and 5, ... */
	for (unsigned int cpu = 0; cpu < 8; cpu++)
		cpus.core[cpu] = (uint16_t)(cpu % 4);
	assert_true(steald_fold(&cpus));
	assert_set(&cpus.preferred, "0-2,4-6");
	assert_true(steald_fold(&cpus));
	assert_true(steald_fold(&cpus));
	assert_set(&cpus.preferred, "0,4");
	assert_false(steald_fold(&cpus));
	assert_true(steald_unfold(&cpus));
	assert_set(&cpus.preferred, "0-1,4-5");
}

static void the_core_that_stays_may_hold_the_last_cpu(void **state)
{
	struct steald_cpus cpus = cpus_of("0-3");

	cpus.core[3] = cpus.core[0];
	assert_true(steald_fold(&cpus));
	assert_set(&cpus.preferred, "0-1,3");
}

static void only_active_cpus_come_back(void **state)
{
	struct steald_cpus cpus = cpus_of("0-3");

	cpus.core[3] = cpus.core[2];
	cpus.active = set_of("0-2");
	cpus.preferred = set_of("0-1");
	assert_true(steald_unfold(&cpus));
	assert_set(&cpus.preferred, "0-2");
}

static void hotplug_is_followed(void **state)
{
	struct steald_cpus cpus = cpus_of("0-3");
	struct cpuset active = set_of("0-1,3");

	cpus.preferred = set_of("0-2");
	steald_follow(&cpus, &active);
	assert_set(&cpus.preferred, "0-1");
	/* 2 comes back and is preferred; 3 was folded and stays so. */
	active = set_of("0-3");
	steald_follow(&cpus, &active);
	assert_set(&cpus.preferred, "0-2");
	/* Nothing that is preferred is left. */
	active = set_of("3");
	steald_follow(&cpus, &active);
	assert_set(&cpus.preferred, "3");
}

static void a_report_has_24_cpus_a_word(void **state)
{
	struct cpuset set = set_of("0-1,23-24,255");

	assert_int_equal(steald_report_word(&set, 0), 0x00800003);
	assert_int_equal(steald_report_word(&set, 1), 0x01000001);
	assert_int_equal(steald_report_word(&set, 2), 0x02000000);
	assert_int_equal(steald_report_word(&set, 10), 0x0a008000);
	assert_int_equal(REPORT_WORDS, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lists_are_read_and_written),
	    cmocka_unit_test(lists_that_are_none_are_refused),
	    cmocka_unit_test(the_longest_list_fits),
	    cmocka_unit_test(the_first_sample_only_looks),
	    cmocka_unit_test(it_folds_above_high_unfolds_at_low_and_keeps_between),
	    cmocka_unit_test(possible_cpus_that_are_off_dilute_the_ratio),
	    cmocka_unit_test(steal_that_goes_back_counts_as_none),
	    cmocka_unit_test(a_sample_too_soon_is_not_taken),
	    cmocka_unit_test(folding_takes_the_last_cpu_and_leaves_the_first),
	    cmocka_unit_test(unfolding_gives_the_first_missing_cpu_back),
	    cmocka_unit_test(siblings_go_and_come_together),
	    cmocka_unit_test(the_core_that_stays_may_hold_the_last_cpu),
	    cmocka_unit_test(only_active_cpus_come_back),
	    cmocka_unit_test(hotplug_is_followed),
	    cmocka_unit_test(a_report_has_24_cpus_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
