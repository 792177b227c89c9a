// SPDX-License-Identifier: BSD-2-Clause
// One test for each mistake that reviewers found in earlier attempts at lag credit, and for each
// known failure of other schedulers. Every test fails if the mistake is put into hv/sched.
// sources: hv/sched/rq.c hv/sched/pick.c hv/sched/core.c hv/sched/account.c
// sources: hv/sched/yield.c hv/sched/balance.c hv/sched/knobs.c hv/lib/fmt.c hv/lib/knob.c
#include "tests/sim/world.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* @n busy vCPUs of equal weight on pCPU 0, one of them running for a little while. */
static struct world *busy(u32 n)
{
	struct world *w = world_new(2);

	for (u32 i = 0; i < n; i++)
		wake(w, world_single(w, 1024, 0), 0);
	run(w, 0, 20 * MSEC);
	return w;
}

static struct sched_vcpu *some_queued(struct world *w)
{
	struct sched_vcpu *latest = NULL;

	/* The one with the least lag: it needs help most. */
	for (u32 i = 0; i < w->nr_vcpus; i++) {
		struct sched_vcpu *v = &w->vcpus[i];

		if (v->state == SCHED_QUEUED &&
		    (!latest || (s64)(v->se.vruntime - latest->se.vruntime) > 0))
			latest = v;
	}
	return latest;
}

static void a_queued_key_is_taken_out_of_the_sum_changed_and_put_back(void **state)
{
	static const char *const policies[] = {"credit", "transfer", "auto", "deboost"};

	for (u32 p = 0; p < ARRAY_SIZE(policies); p++) {
		struct world *w = busy(5);

		assert_int_equal(sched_knob_set(&w->knobs, "yield_policy", policies[p]), 0);
		w->knobs.yield_resched_min_ns = 0;
		for (u32 i = 0; i < 50; i++) {
			struct sched_timeline *tl = &w->rqs[0].root;
			struct exact x;
			s64 sum = 0;

			w->now += 50 * USEC;
			yield_to(w, w->rqs[0].curr, some_queued(w)); /* ends in sched_check() */
			exact_read(&x, tl);
			for (u32 j = 0; j < x.n; j++) {
				if (x.se[j] != tl->curr)
					sum += (s64)(x.se[j]->vruntime - tl->zero_vruntime) *
					       (s64)x.se[j]->weight;
			}
			assert_int_equal(sum, tl->sum_w_vruntime);
			pick(w, 0);
		}
		free(w);
	}
}

/* `group`: the VM's entity is current on the root, so credit to it shifts current in place. */
static void current_moves_v_d_and_vprot_together(void **state)
{
	struct world *w = world_new(1);
	struct sched_group *vm = world_group(w, 1024);
	struct sched_vcpu *me, *target;
	struct sched_entity *group_se = &w->group_rqs[0][0].se;
	u64 v, d, vprot;
	s64 moved;

	w->knobs.sched_mode = SCHED_MODE_GROUP;
	w->knobs.yield_policy = SCHED_YIELD_CREDIT;
	wake(w, world_vcpu(w, vm, 0, 0), 0);
	wake(w, world_vcpu(w, vm, 0, 0), 0);
	wake(w, world_single(w, 1024, 0), 0);
	pick(w, 0);
	while (w->rqs[0].curr->group != vm)
		run(w, 0, 100 * USEC);
	me = w->rqs[0].curr;
	target = me == &w->vcpus[0] ? &w->vcpus[1] : &w->vcpus[0];
	w->now += 300 * USEC;
	begin(w, 0);
	sched_update_curr(&w->rqs[0]);
	entity_set_lag(&w->rqs[0].root, group_se, -(s64)(500 * USEC), &w->knobs);
	end(&w->rqs[0]);
	/* An expired protection, as after most of the slice. */
	group_se->vprot = group_se->vruntime - 1000;
	v = group_se->vruntime;
	d = group_se->deadline;
	vprot = group_se->vprot;
	/* A rate limit in force: nobody but the credit touches vprot. */
	w->rqs[0].yield_last_resched = w->now;
	yield_to(w, me, target);
	moved = (s64)(group_se->vruntime - v);
	assert_true(moved < 0); /* credited */
	assert_true((s64)(group_se->deadline - d) == moved);
	assert_true((s64)(group_se->vprot - vprot) == moved);
	/* Moving v alone would have revived the protection. */
	assert_false(entity_protected(group_se));
	free(w);
}

static void shifting_current_alone_keeps_protection_as_it_was(void **state)
{
	struct world *w = busy(3);
	struct run_queue *rq = &w->rqs[0];
	struct sched_entity *se = &rq->curr->se;

	for (u32 expired = 0; expired < 2; expired++) {
		se->vprot = expired ? se->vruntime - 1 : se->vruntime + 1;
		entity_shift(&rq->root, se, -(s64)(2 * MSEC));
		assert_int_equal(entity_protected(se), !expired);
		entity_shift(&rq->root, se, 3 * MSEC);
		assert_int_equal(entity_protected(se), !expired);
	}
	free(w);
}

static void a_relative_deadline_is_marked_only_if_it_will_be_consumed(void **state)
{
	for (u32 on = 0; on < 2; on++) {
		struct world *w = busy(4);
		struct sched_vcpu *target;
		u64 request;

		w->knobs.PLACE_REL_DEADLINE = on;
		w->knobs.yield_policy = SCHED_YIELD_CREDIT;
		target = some_queued(w);
		/* Part of its request is used up. */
		timeline_erase(&w->rqs[0].root, &target->se);
		target->se.deadline -= 200 * USEC;
		timeline_insert(&w->rqs[0].root, &target->se);
		request = target->se.deadline - target->se.vruntime;
		yield_to(w, w->rqs[0].curr, target);
		assert_false(target->se.rel_deadline);
		if (on)
			assert_int_equal(target->se.deadline - target->se.vruntime, request);
		else
			assert_int_equal(target->se.deadline - target->se.vruntime,
					 calc_delta_fair(target->se.slice, &target->se));

		/* And leaving for another pCPU: marked or not, the deadline there is absolute. */
		migrate(w, target, 1);
		assert_false(target->se.rel_deadline);
		assert_true(target->se.deadline - target->se.vruntime <=
			    calc_delta_fair(target->se.slice, &target->se));

		/* Blocking ends the request: nothing to keep. */
		pick(w, 1);
		block(w, 1);
		assert_false(target->se.rel_deadline);
		free(w);
	}
}

static void a_relative_deadline_is_consumed_even_if_the_feature_goes_off_meanwhile(void **state)
{
	struct world *w = busy(4);
	struct sched_vcpu *v = some_queued(w);
	struct run_queue *rq = begin(w, 0);

	sched_update_curr(rq);
	sched_dequeue(rq, v, 0);
	assert_true(v->se.rel_deadline);
	w->knobs.PLACE_REL_DEADLINE = false;
	sched_enqueue(rq, v, 0);
	assert_false(v->se.rel_deadline);
	assert_true(v->se.deadline - v->se.vruntime <= calc_delta_fair(v->se.slice, &v->se));
	end(rq);
	free(w);
}

static void max_slice_of_a_leaf_is_reset_on_insertion(void **state)
{
	struct world *w = world_new(2);
	struct sched_vcpu *small[6], *large;

	/* Above a vCPU with a long slice, an inner node learns its max_slice. */
	large = world_vcpu(w, world_group(w, 1024), 0, 90 * MSEC);
	for (u32 i = 0; i < 6; i++) {
		small[i] = world_single(w, 1024, 0);
		wake(w, small[i], 0);
	}
	wake(w, large, 0);
	pick(w, 0);
	assert_true(timeline_max_slice(&w->rqs[0].root) == 90 * MSEC);
	migrate(w, large, 1);
	assert_true(timeline_max_slice(&w->rqs[0].root) == 700 * USEC);
	/* Everybody goes through the tree once more; then the bound is that of short slices. */
	run(w, 0, 50 * MSEC);
	assert_true(timeline_max_slice(&w->rqs[0].root) == 700 * USEC);
	assert_int_equal(entity_lag_limit(&w->rqs[0].root, &small[0]->se, &w->knobs), 1700 * USEC);

	/* The case itself: an entity that was an inner node comes back as a leaf. */
	small[0]->se.max_slice = (u32)(90 * MSEC);
	small[0]->se.min_slice = 1;
	if (small[0]->state == SCHED_RUNNING)
		run(w, 0, 1 * MSEC);
	migrate(w, small[0], 1);
	migrate(w, small[0], 0);
	assert_int_equal(timeline_max_slice(&w->rqs[0].root), 700 * USEC);
	assert_int_equal(timeline_min_slice(&w->rqs[0].root), 700 * USEC);
	free(w);
}

/* Runs @fn in a child, where it must end in BUG(). */
static void expect_bug(void (*fn)(struct world *), struct world *w)
{
	int status;
	pid_t child = fork();

	if (!child) {
		close(2);
		signal(SIGABRT, SIG_DFL);
		fn(w);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void begin_twice(struct world *w)
{
	begin(w, 0);
	begin(w, 0);
}

static void use_outside(struct world *w)
{
	w->now += MSEC;
	sched_update_curr(&w->rqs[0]);
}

static void the_clock_is_set_once_per_lock_section(void **state)
{
	struct world *w = busy(2);
	struct run_queue *rq = &w->rqs[0];
	u64 before = rq->clock;

	sched_begin(rq, w->now + MSEC);
	assert_int_equal(rq->clock, before + MSEC);
	/* All of one section sees one time: whatever is charged is charged up to it. */
	sched_update_curr(rq);
	assert_int_equal(rq->curr->exec_start, rq->clock);
	sched_pick_next(rq);
	assert_int_equal(rq->clock, before + MSEC);
	sched_end(rq);
	/* A clock that goes back (two pCPUs) does not. */
	sched_begin(rq, w->now);
	assert_int_equal(rq->clock, before + MSEC);
	sched_end(rq);
	assert_false(rq->in_section);
	/* Twice in one section, or use before it: caught at once in debug builds. */
	expect_bug(begin_twice, w);
	expect_bug(use_outside, w);
	free(w);
}

static void a_woken_never_preempted_vcpu_is_a_good_target(void **state)
{
	static const char *const policies[] = {"credit", "transfer", "auto"};

	for (u32 p = 0; p < ARRAY_SIZE(policies); p++) {
		struct world *w = busy(4);
		struct sched_vcpu *fresh = world_single(w, 1024, 0), *me;

		sched_knob_set(&w->knobs, "yield_policy", policies[p]);
		/* It has only just come: it never ran, so it was never preempted. */
		wake(w, fresh, 0);
		assert_int_equal(fresh->stats.nr_preempted, 0);
		me = w->rqs[0].curr;
		assert_true(yield_to(w, me, fresh) & SCHED_DID_LOCAL);
		assert_ptr_equal(pick(w, 0), fresh);
		assert_int_equal(fresh->stats.yield_hit, 1);
		free(w);
	}
}

/* ---- known failures of others ---- */

static void a_yield_loop_does_not_run_away_with_the_deadline(void **state)
{
	struct world *w = busy(3);
	struct run_queue *rq = &w->rqs[0];
	struct sched_vcpu *me = rq->curr;

	for (u32 i = 0; i < 1000; i++) {
		begin(w, 0);
		sched_yield_self(rq);
		end(rq);
		/* Never more than one request beyond v, never more than its legal lag behind V. */
		assert_true(me->se.deadline - me->se.vruntime <=
			    calc_delta_fair(me->se.slice, &me->se));
		assert_true((s64)(me->se.vruntime - timeline_avg(&rq->root)) <=
			    entity_lag_limit(&rq->root, &me->se, &w->knobs));
	}
	/* And the same one is not picked again. */
	assert_ptr_not_equal(pick(w, 0), me);
	/* Nor is it punished for a thousand yields more than for one. */
	run(w, 0, 5 * MSEC);
	assert_true(w->now - me->last_ran <= 5 * MSEC);
	assert_true(me->stats.nr_switches >= 2);
	free(w);
}

static void yields_in_a_loop_alternate(void **state)
{
	struct world *w = busy(2);
	struct sched_vcpu *last = w->rqs[0].curr;
	u32 switches = 0;

	for (u32 i = 0; i < 1000; i++) {
		struct sched_vcpu *next;

		w->now += 10 * USEC;
		begin(w, 0);
		sched_yield_self(&w->rqs[0]);
		end(&w->rqs[0]);
		next = pick(w, 0);
		switches += next != last;
		last = next;
	}
	assert_true(switches > 300);
	assert_true(llabs((s64)(w->vcpus[0].stats.run_ns - w->vcpus[1].stats.run_ns)) <
		    (s64)(25 * MSEC));
	free(w);
}

static void virtual_time_does_not_go_stale_while_one_runs_alone(void **state)
{
	static const u32 weights[] = {2, 1024, 262144};

	for (u32 i = 0; i < ARRAY_SIZE(weights); i++) {
		struct world *w = world_new(1);
		struct sched_vcpu *a = world_single(w, weights[i], 0);
		struct sched_vcpu *b = world_single(w, 1024, 0);
		u64 a_before;

		wake(w, b, 0);
		pick(w, 0);
		w->now += MSEC;
		wake(w, a, 0);
		run(w, 0, 3 * MSEC);
		while (w->rqs[0].curr != b)
			run(w, 0, 100 * USEC);
		block(w, 0);
		run(w, 0, 10 * MSEC);
		assert_ptr_equal(w->rqs[0].curr, a);
		/* A week alone, looked at every hour or not at all. */
		assert_int_equal(sched_slice_end(&w->rqs[0]), SCHED_NEVER);
		for (u32 h = 0; h < 84; h++) {
			w->now += 3600 * SEC;
			pick(w, 0);
		}
		w->now += 84 * 3600 * SEC;
		wake(w, b, 0);
		assert_true(llabs(lag_of_vcpu(w, b)) <= (s64)(1700 * USEC));
		/* Neither has to make up for the week: from here on they share by weight. */
		a_before = a->stats.run_ns;
		run(w, 0, 4 * SEC);
		assert_true(a->stats.run_ns - a_before <
			    4 * SEC * weights[i] / (weights[i] + 1024) + 3 * MSEC);
		assert_true(a->stats.run_ns - a_before + 3 * MSEC >
			    4 * SEC * weights[i] / (weights[i] + 1024));
		free(w);
	}
}

static void the_zero_point_follows_while_many_run(void **state)
{
	struct world *w = busy(4);
	struct sched_timeline *tl = &w->rqs[0].root;
	u64 zero;

	/* A minute in which nobody comes or goes. */
	run(w, 0, 60 * SEC);
	zero = tl->zero_vruntime;
	assert_true((s64)(timeline_avg(tl) - zero) < (s64)(2 * MSEC));
	free(w);
}

static void a_machine_that_stood_still_for_hours_goes_on_fairly(void **state)
{
	struct world *w = busy(3);
	u64 run_before;

	w->now += 5 * 3600 * SEC; /* a paused nested guest; one vCPU "ran" all the time */
	pick(w, 0);
	run(w, 0, 30 * SEC);
	/* The debt of that one is bounded, so that it runs again within some seconds. */
	for (u32 i = 0; i < 3; i++) {
		run_before = w->vcpus[i].stats.run_ns;
		run(w, 0, 100 * MSEC);
		assert_true(w->vcpus[i].stats.run_ns - run_before > 25 * MSEC);
	}
	free(w);
}

static void who_enters_an_empty_queue_does_not_start_at_zero(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_single(w, 1024, 0), *b = world_single(w, 1024, 0);
	u64 b_before;

	wake(w, a, 0);
	wake(w, b, 0);
	run(w, 0, 10 * SEC);
	while (w->rqs[0].root.nr_queued)
		block(w, 0);
	w->now += SEC;
	/* The queue is empty. Whoever comes is at the queue's time, not at 0. */
	wake(w, a, 0);
	assert_true(a->se.vruntime > 4 * SEC);
	pick(w, 0);
	w->now += 50 * MSEC;
	wake(w, b, 0);
	b_before = b->stats.run_ns;
	run(w, 0, 100 * MSEC);
	assert_true(llabs((s64)(b->stats.run_ns - b_before) - (s64)(50 * MSEC)) < (s64)(2 * MSEC));
	free(w);
}

static void a_new_vcpu_on_a_busy_pcpu_takes_its_share_and_no_more(void **state)
{
	struct world *w = busy(3);
	struct sched_vcpu *fresh;

	run(w, 0, 60 * SEC); /* the others have a long history */
	fresh = world_single(w, 1024, 0);
	wake(w, fresh, 0);
	run(w, 0, 400 * MSEC);
	assert_true(llabs((s64)fresh->stats.run_ns - (s64)(100 * MSEC)) < (s64)(2 * MSEC));
	free(w);
}

/* Sleeping at the right moment must not wash off a debt, with and without DELAY_DEQUEUE. */
static void short_sleeps_do_not_cheat(void **state)
{
	for (u32 delay = 0; delay < 2; delay++) {
		struct world *w = world_new(1);
		struct sched_vcpu *cheat = world_single(w, 1024, 0);
		struct sched_vcpu *honest = world_single(w, 1024, 0);

		w->knobs.DELAY_DEQUEUE = delay;
		wake(w, honest, 0);
		wake(w, cheat, 0);
		pick(w, 0);
		while (w->now < 5 * SEC) {
			u64 stop = sched_slice_end(&w->rqs[0]);

			if (w->rqs[0].curr == cheat) {
				/* Runs nearly all of its slice, then sleeps for a moment. */
				w->now += 680 * USEC;
				block(w, 0);
				w->now += 5 * USEC;
				wake(w, cheat, 0);
				pick(w, 0);
			} else {
				w->now = stop == SCHED_NEVER ? w->now + MSEC : stop;
				pick(w, 0);
			}
		}
		assert_true(cheat->stats.run_ns < 2 * SEC + 40 * MSEC);
		assert_true(cheat->stats.run_ns > 18 * SEC / 10);
		free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_queued_key_is_taken_out_of_the_sum_changed_and_put_back),
	    cmocka_unit_test(current_moves_v_d_and_vprot_together),
	    cmocka_unit_test(shifting_current_alone_keeps_protection_as_it_was),
	    cmocka_unit_test(a_relative_deadline_is_marked_only_if_it_will_be_consumed),
	    cmocka_unit_test(
		a_relative_deadline_is_consumed_even_if_the_feature_goes_off_meanwhile),
	    cmocka_unit_test(max_slice_of_a_leaf_is_reset_on_insertion),
	    cmocka_unit_test(the_clock_is_set_once_per_lock_section),
	    cmocka_unit_test(a_woken_never_preempted_vcpu_is_a_good_target),
	    cmocka_unit_test(a_yield_loop_does_not_run_away_with_the_deadline),
	    cmocka_unit_test(yields_in_a_loop_alternate),
	    cmocka_unit_test(virtual_time_does_not_go_stale_while_one_runs_alone),
	    cmocka_unit_test(the_zero_point_follows_while_many_run),
	    cmocka_unit_test(a_machine_that_stood_still_for_hours_goes_on_fairly),
	    cmocka_unit_test(who_enters_an_empty_queue_does_not_start_at_zero),
	    cmocka_unit_test(a_new_vcpu_on_a_busy_pcpu_takes_its_share_and_no_more),
	    cmocka_unit_test(short_sleeps_do_not_cheat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
