// SPDX-License-Identifier: BSD-2-Clause
// The knobs as text, their defaults, and the histogram.
// sources: hv/sched/knobs.c hv/lib/fmt.c hv/lib/knob.c
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hv/lib/errors.h"
#include "hv/lib/hist.h"
#include "hv/sched/knobs.h"

static void defaults_are_those_of_linux(void **state)
{
	struct sched_knobs k;

	sched_knobs_init(&k, 1);
	assert_true(k.PLACE_LAG && k.PLACE_DEADLINE_INITIAL && k.PLACE_REL_DEADLINE);
	assert_true(k.RUN_TO_PARITY && k.PREEMPT_SHORT && k.PICK_BUDDY && k.DELAY_DEQUEUE &&
		    k.DELAY_ZERO && k.WAKEUP_PREEMPTION && k.YIELD_TO_LAG_CREDIT);
	assert_int_equal(k.yield_resched_min_ns, 6000000);
	assert_int_equal(k.sched_mode, SCHED_MODE_VCPU);
}

static void the_base_slice_grows_with_the_pcpus_as_in_linux(void **state)
{
	static const struct {
		u32 pcpus;
		u64 us;
	} table[] = {{0, 700}, {1, 700}, {2, 1400}, {3, 1400}, {4, 2100}, {8, 2800}, {64, 2800}};
	struct sched_knobs k;

	for (u32 i = 0; i < ARRAY_SIZE(table); i++) {
		sched_knobs_init(&k, table[i].pcpus);
		assert_int_equal(k.base_slice_ns, table[i].us * 1000);
	}
}

static void every_knob_reads_back_what_was_set(void **state)
{
	struct sched_knobs k;
	char buf[64];
	u32 n = 0;

	sched_knobs_init(&k, 1);
	for (; n < sched_knob_table.nr; n++) {
		const struct knob_info *i = &sched_knob_table.knob[n];

		assert_true(i->text && i->text[0]);
		if (i->kind == KNOB_SWITCH) {
			assert_int_equal(sched_knob_set(&k, i->name, "off"), 0);
			assert_int_equal(sched_knob_get(&k, i->name, buf, sizeof(buf)), 0);
			assert_string_equal(buf, "off");
			assert_int_equal(sched_knob_set(&k, i->name, "1"), 0);
			sched_knob_get(&k, i->name, buf, sizeof(buf));
			assert_string_equal(buf, "on");
			assert_int_equal(sched_knob_set(&k, i->name, "yes"), E_INVAL);
		} else if (i->kind == KNOB_NUMBER) {
			assert_int_equal(sched_knob_set(&k, i->name, "1000000"), 0);
			sched_knob_get(&k, i->name, buf, sizeof(buf));
			assert_string_equal(buf, "1000000");
			assert_int_equal(sched_knob_set(&k, i->name, ""), E_INVAL);
			assert_int_equal(sched_knob_set(&k, i->name, "-1"), E_INVAL);
			assert_int_equal(sched_knob_set(&k, i->name, "7us"), E_INVAL);
			assert_int_equal(sched_knob_set(&k, i->name, "99999999999999999999999"),
					 E_RANGE);
			assert_int_equal(sched_knob_set(&k, i->name, "18446744073709551615"),
					 E_RANGE);
			sched_knob_get(&k, i->name, buf, sizeof(buf));
			assert_string_equal(buf, "1000000"); /* unchanged by errors */
		} else {
			for (u32 c = 0; i->words[c]; c++) {
				assert_true(i->word_texts[c][0]);
				assert_int_equal(sched_knob_set(&k, i->name, i->words[c]), 0);
				sched_knob_get(&k, i->name, buf, sizeof(buf));
				assert_string_equal(buf, i->words[c]);
			}
			assert_int_equal(sched_knob_set(&k, i->name, "nonsense"), E_INVAL);
			assert_int_equal(sched_knob_set(&k, i->name, ""), E_INVAL);
		}
	}
	assert_int_equal(n, 10 + 10 + 4);
	assert_int_equal(sched_knob_set(&k, "no_such_knob", "1"), E_NOENT);
	assert_int_equal(sched_knob_get(&k, "no_such_knob", buf, sizeof(buf)), E_NOENT);
}

static void the_policies_have_the_names_of_the_design(void **state)
{
	static const char *const words[] = {"forfeit", "deboost", "credit", "transfer", "auto"};
	struct sched_knobs k;

	sched_knobs_init(&k, 1);
	for (u32 i = 0; i < ARRAY_SIZE(words); i++) {
		assert_int_equal(sched_knob_set(&k, "yield_policy", words[i]), 0);
		assert_int_equal(k.yield_policy, i);
	}
}

static void the_histogram_counts_by_powers_of_two(void **state)
{
	struct hist h = {0}, g = {0};

	assert_int_equal(hist_quantile(&h, 500), 0);
	assert_int_equal(hist_bucket(0), 0);
	assert_int_equal(hist_bucket(1), 1);
	assert_int_equal(hist_bucket(2), 2);
	assert_int_equal(hist_bucket(3), 2);
	assert_int_equal(hist_bucket(4), 3);
	assert_int_equal(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
	for (u64 i = 1; i <= 1000; i++)
		hist_add(&h, i);
	assert_int_equal(hist_count(&h), 1000);
	assert_int_equal(hist_mean(&h), 500);
	assert_int_equal(h.max, 1000);
	assert_int_equal(hist_quantile(&h, 500), 511);
	assert_int_equal(hist_quantile(&h, 1000), 1000);
	assert_int_equal(hist_quantile(&h, 0), 1);
	hist_add(&g, 5000);
	hist_merge(&g, &h);
	assert_int_equal(hist_count(&g), 1001);
	assert_int_equal(g.max, 5000);
	assert_int_equal(g.sum, 500500 + 5000);
	for (u32 b = 0; b + 1 < HIST_BUCKETS; b++) {
		assert_int_equal(hist_bucket(hist_bucket_top(b)), b);
		assert_int_equal(hist_bucket(hist_bucket_top(b) + 1), b + 1);
	}
}

static void a_histogram_without_what_it_was_before(void **state)
{
	struct hist h = {0}, base, fresh = {0};

	hist_add(&h, 5);
	hist_add(&h, 100000);
	base = h;
	for (u64 i = 1; i <= 20; i++) {
		hist_add(&h, i);
		hist_add(&fresh, i);
	}
	hist_subtract(&h, &base);
	assert_int_equal(hist_count(&h), 20);
	assert_int_equal(h.sum, fresh.sum);
	assert_memory_equal(h.bucket, fresh.bucket, sizeof(h.bucket));
	assert_int_equal(h.max, 31); /* a bound: the top of the bucket of 20, not 100000 */
	base = h;
	hist_subtract(&h, &base);
	assert_int_equal(hist_count(&h), 0);
	assert_int_equal(h.max, 0);
	hist_add(&h, UINT64_MAX);
	base = (struct hist){0};
	hist_subtract(&h, &base);
	assert_true(h.max == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(defaults_are_those_of_linux),
	    cmocka_unit_test(the_base_slice_grows_with_the_pcpus_as_in_linux),
	    cmocka_unit_test(every_knob_reads_back_what_was_set),
	    cmocka_unit_test(the_policies_have_the_names_of_the_design),
	    cmocka_unit_test(the_histogram_counts_by_powers_of_two),
	    cmocka_unit_test(a_histogram_without_what_it_was_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
