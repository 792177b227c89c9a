/* SPDX-License-Identifier: BSD-2-Clause */
/* The report port, and the monitor's means of a VM's time. */
// sources: hv/pv/report.c hv/pv/view.c hv/lib/fmt.c hv/lib/string.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hv/pv/report.h"
#include "hv/pv/view.h"

static struct pv_report r;
static char text[256];

static int setup(void **state)
{
	memset(&r, 0, sizeof(r));
	return 0;
}

static const char *shown(void)
{
	report_text(&r, text, sizeof(text));
	return text;
}

static void a_set_is_shown_when_it_is_complete(void **state)
{
	assert_string_equal(shown(), "-");
	report_write(&r, 0x00000003, 4);
	assert_string_equal(shown(), "-");
	report_write(&r, 0xff000001, 4);
	assert_string_equal(shown(), "0-1");
	assert_int_equal(r.by, REPORT_STEALD);
	report_write(&r, 0x0000000d, 4);
	report_write(&r, 0xff000002, 4);
	assert_string_equal(shown(), "0,2-3");
	assert_int_equal(r.by, REPORT_KERNEL);
	report_write(&r, 0xff000000, 4);
	assert_string_equal(shown(), "-");
}

static void words_cover_all_vcpus_and_those_not_written_count_as_0(void **state)
{
	for (u32 n = 0; n <= 10; n++)
		report_write(&r, n << 24 | 0xffffff, 256);
	report_write(&r, 0xff000001, 256);
	assert_string_equal(shown(), "0-255");
	report_write(&r, 1u << 24 | 1, 256);
	report_write(&r, 10u << 24 | BIT(15), 256); /* vCPU 255 */
	report_write(&r, 10u << 24 | BIT(15) | BIT(16), 256);
	report_write(&r, 0xff000001, 256);
	assert_string_equal(shown(), "24,255");
}

static void nonsense_changes_nothing(void **state)
{
	report_write(&r, 0x00000003, 4);
	report_write(&r, 0xff000001, 4);
	for (u32 kind = 11; kind < 0xff; kind++)
		report_write(&r, kind << 24 | 0xffffff, 4);
	assert_string_equal(shown(), "0-1");
	report_write(&r, 0xff000001, 4); /* empty */
	report_write(&r, 0x00fffff0, 4); /* only vCPUs that there are not */
	report_write(&r, 0xff000002, 4);
	assert_string_equal(shown(), "0-1");
	assert_int_equal(r.by, REPORT_STEALD);
	assert_int_equal(r.nr_bad, 2);
	report_write(&r, 0x00000008, 4);
	report_write(&r, 0xff000007, 4); /* no such order, but it ends the draft */
	report_write(&r, 0xff000001, 4);
	assert_string_equal(shown(), "0-1");
	assert_int_equal(r.nr_good, 1);
}

static void a_long_set_is_cut_not_overrun(void **state)
{
	char small[8];

	for (u32 n = 0; n <= 10; n++)
		report_write(&r, n << 24 | 0x555555, 256);
	report_write(&r, 0xff000001, 256);
	report_text(&r, small, sizeof(small));
	assert_string_equal(small, "0,2,4,6");
}

static void steal_is_a_share_of_all_possible_cpus(void **state)
{
	struct pv_sums a = {.at_ns = 5000, .run_ns = 100, .delay_ns = 7};
	struct pv_sums b = {.at_ns = a.at_ns + 2000000000,
			    .run_ns = a.run_ns + 3000000000,
			    .delay_ns = a.delay_ns + 1000000000};

	assert_int_equal(pv_means_between(&a, &b, 2).steal_permille, 250);
	assert_int_equal(pv_means_between(&a, &b, 4).steal_permille, 125);
	assert_int_equal(pv_means_between(&a, &b, 4).runnable_centi, 200);
	assert_int_equal(pv_means_between(&a, &a, 4).steal_permille, 0);
	assert_int_equal(pv_means_between(&b, &a, 4).runnable_centi, 0);
}

static void a_year_of_256_vcpus_fits(void **state)
{
	u64 year = 365ull * 86400 * 1000000000;
	struct pv_sums a = {0},
		       b = {.at_ns = year, .delay_ns = 256 * year / 2, .run_ns = 256 * year / 2};

	assert_int_equal(pv_means_between(&a, &b, 256).steal_permille, 500);
	assert_int_equal(pv_means_between(&a, &b, 256).runnable_centi, 25600);
}

static void means_are_of_whole_intervals(void **state)
{
	struct pv_view view;
	struct pv_sums now = {.at_ns = 1000};

	pv_view_start(&view, &now);
	now = (struct pv_sums){.at_ns = 900000, .delay_ns = 450000};
	pv_view_step(&view, &now, 1000000, 1);
	assert_int_equal(view.mean.steal_permille, 0);
	now = (struct pv_sums){.at_ns = 1001000, .delay_ns = 500000};
	pv_view_step(&view, &now, 1000000, 1);
	assert_int_equal(view.mean.steal_permille, 500);
	now = (struct pv_sums){.at_ns = 2001000, .delay_ns = 500000, .run_ns = 1000000};
	pv_view_step(&view, &now, 1000000, 1);
	assert_int_equal(view.mean.steal_permille, 0);
	assert_int_equal(view.mean.runnable_centi, 100);
	assert_int_equal(view.start.at_ns, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_set_is_shown_when_it_is_complete, setup),
	    cmocka_unit_test_setup(words_cover_all_vcpus_and_those_not_written_count_as_0, setup),
	    cmocka_unit_test_setup(nonsense_changes_nothing, setup),
	    cmocka_unit_test_setup(a_long_set_is_cut_not_overrun, setup),
	    cmocka_unit_test(steal_is_a_share_of_all_possible_cpus),
	    cmocka_unit_test(a_year_of_256_vcpus_fits),
	    cmocka_unit_test(means_are_of_whole_intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
