// SPDX-License-Identifier: BSD-2-Clause
// The books: counters, histograms, idle time, fairness errors, weights.
// sources: hv/sched/rq.c hv/sched/pick.c hv/sched/core.c hv/sched/account.c
// sources: hv/sched/yield.c hv/sched/balance.c hv/sched/knobs.c hv/lib/fmt.c hv/lib/knob.c
#include "tests/sim/world.h"

static void histograms_and_counters_tell_the_story(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_single(w, 1024, 0), *b = world_single(w, 1024, 0);

	wake(w, a, 0);
	wake(w, b, 0);
	run(w, 0, SEC);
	assert_true(a->stats.nr_switches > 700 && a->stats.nr_switches < 720);
	assert_int_equal(hist_count(&a->wait), a->stats.nr_switches);
	assert_in_range(a->wait.max, 690 * USEC, 710 * USEC);
	assert_in_range(a->slice.max, 690 * USEC, 710 * USEC);
	while (w->rqs[0].curr != a)
		run(w, 0, 100 * USEC);
	block(w, 0);
	assert_int_equal(a->stats.nr_voluntary, 1);
	assert_int_equal(a->stats.nr_preempted + a->stats.nr_voluntary, a->stats.nr_switches);
	assert_int_equal(w->rqs[0].stats.nr_switches, a->stats.nr_switches + b->stats.nr_switches);
	assert_int_equal(a->stats.nr_wakeups, 1);
	free(w);
}

static void idle_time_is_counted(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_single(w, 1024, 0);

	w->now += 3 * SEC;
	wake(w, a, 0);
	pick(w, 0);
	w->now += SEC;
	block(w, 0);
	w->now += 2 * SEC;
	wake(w, a, 0);
	pick(w, 0);
	assert_int_equal(w->rqs[0].idle_ns, 5 * SEC);
	assert_int_equal(w->rqs[0].stats.run_ns, SEC);
	free(w);
}

static void fair_errors_add_up_and_can_be_reset(void **state)
{
	struct world *w = world_new(1);
	struct sched_group *vm = world_group(w, 1024);
	struct sched_vcpu *a = world_vcpu(w, vm, 0, 0), *b = world_vcpu(w, vm, 0, 0);
	struct sched_vcpu *c = world_single(w, 1024, 0);

	wake(w, a, 0);
	wake(w, b, 0);
	wake(w, c, 0);
	run(w, 0, SEC);
	begin(w, 0);
	sched_update_curr(&w->rqs[0]);
	for (u32 i = 0; i < 3; i++)
		account_settle(&w->rqs[0], &w->vcpus[i]);
	end(&w->rqs[0]);
	assert_int_equal(vm->fair.err_ns, a->fair.err_ns + b->fair.err_ns);
	/* Received = ideal over all, but for rounding. */
	assert_true(llabs(vm->fair.err_ns + c->fair.err_ns) < 100);
	assert_true(a->fair.err_max_ns > 100 * USEC && a->fair.err_max_ns < 1500 * USEC);
	begin(w, 0);
	sched_fair_reset(&w->rqs[0], a);
	end(&w->rqs[0]);
	assert_int_equal(a->fair.err_max_ns, 0);
	assert_int_equal(vm->fair.err_ns, b->fair.err_ns);
	free(w);
}

static void nice_steps_are_a_factor_of_a_quarter(void **state)
{
	assert_int_equal(sched_nice_to_weight(0), 1024);
	assert_int_equal(sched_nice_to_weight(-1), 1280);
	assert_int_equal(sched_nice_to_weight(5), 336); /* 1024 / 1.25^5 = 335.5 */
	assert_int_equal(sched_nice_to_weight(19), 15);
	assert_in_range(sched_nice_to_weight(-20), 88700, 88900);
	assert_int_equal(sched_nice_to_weight(-100), sched_nice_to_weight(-20));
	assert_int_equal(sched_nice_to_weight(100), sched_nice_to_weight(19));
}

static void weights_are_clamped_to_the_legal_range(void **state)
{
	struct sched_group g;

	sched_group_init(&g, 0, 0, NULL, 0);
	assert_int_equal(g.weight, SCHED_WEIGHT_MIN);
	sched_group_set_weight(&g, UINT32_MAX);
	assert_int_equal(g.weight, SCHED_WEIGHT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(histograms_and_counters_tell_the_story),
	    cmocka_unit_test(idle_time_is_counted),
	    cmocka_unit_test(fair_errors_add_up_and_can_be_reset),
	    cmocka_unit_test(nice_steps_are_a_factor_of_a_quarter),
	    cmocka_unit_test(weights_are_clamped_to_the_legal_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
