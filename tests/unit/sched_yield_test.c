// SPDX-License-Identifier: BSD-2-Clause
// The yield policies: what each does to lags, who pays, and their limits.
// sources: hv/sched/rq.c hv/sched/pick.c hv/sched/core.c hv/sched/account.c
// sources: hv/sched/yield.c hv/sched/balance.c hv/sched/knobs.c hv/lib/fmt.c hv/lib/knob.c
#include "tests/sim/world.h"

static struct world *busy(const char *policy, u32 n, const u32 *weights)
{
	struct world *w = world_new(2);

	w->knobs.base_slice_ns = 700 * USEC;
	assert_int_equal(sched_knob_set(&w->knobs, "yield_policy", policy), 0);
	for (u32 i = 0; i < n; i++)
		wake(w, world_single(w, weights ? weights[i] : 1024, 0), 0);
	run(w, 0, 20 * MSEC);
	return w;
}

/* The queued vCPU with the least lag. */
static struct sched_vcpu *neediest(struct world *w)
{
	struct sched_vcpu *least = NULL;

	for (u32 i = 0; i < w->nr_vcpus; i++) {
		struct sched_vcpu *v = &w->vcpus[i];

		if (v->state == SCHED_QUEUED && v->cpu == 0 &&
		    (!least || lag_of_vcpu(w, v) < lag_of_vcpu(w, least)))
			least = v;
	}
	return least;
}

/* Sum of |lag| of all on pCPU 0 except @a and @b. */
static s64 lags_of_others(struct world *w, struct sched_vcpu *a, struct sched_vcpu *b, s64 *lags)
{
	s64 sum = 0;

	for (u32 i = 0; i < w->nr_vcpus; i++) {
		struct sched_vcpu *v = &w->vcpus[i];

		lags[i] = lag_of_vcpu(w, v);
		if (v != a && v != b)
			sum += lags[i];
	}
	return sum;
}

/* ---- forfeit ---- */

static void forfeit_picks_an_eligible_target_and_only_that(void **state)
{
	u32 eligible = 0, hits = 0, ineligible = 0, wrong = 0;
	struct world *w = busy("forfeit", 5, NULL);

	for (u32 i = 0; i < 300; i++) {
		struct sched_vcpu *me, *target;
		bool good;

		run(w, 0, 100 * USEC);
		me = w->rqs[0].curr;
		target = &w->vcpus[rnd(w, 5)];
		if (target == me)
			continue;
		yield_to(w, me, target);
		good = entity_eligible(&w->rqs[0].root, &target->se);
		pick(w, 0);
		if (good) {
			eligible++;
			hits += w->rqs[0].curr == target;
		} else {
			ineligible++;
			wrong += w->rqs[0].curr == target;
		}
	}
	assert_true(eligible > 20 && ineligible > 20);
	assert_int_equal(hits, eligible);
	assert_int_equal(wrong, 0);
	free(w);
}

/* ---- credit ---- */

static void credit_makes_the_target_run_next(void **state)
{
	for (u32 n = 2; n <= 32; n *= 2) {
		struct world *w = busy("credit", n, NULL);

		for (u32 i = 0; i < 50; i++) {
			struct sched_vcpu *me, *target;

			run(w, 0, 300 * USEC);
			me = w->rqs[0].curr;
			target = neediest(w);
			yield_to(w, me, target);
			assert_ptr_equal(pick(w, 0), target);
		}
		free(w);
	}
}

static void credit_gives_the_margin_within_the_legal_bound(void **state)
{
	static const struct {
		u32 nr, slices;
	} table[] = {{3, 4}, {4, 4}, {5, 6}, {8, 6}, {9, 8}, {16, 8}, {17, 12}};

	for (u32 i = 0; i < ARRAY_SIZE(table); i++) {
		for (u32 wide = 0; wide < 2; wide++) {
			struct world *w = busy("credit", table[i].nr, NULL);
			struct sched_vcpu *target = neediest(w);
			s64 margin = (s64)table[i].slices * 700 * (s64)USEC, limit;

			/* A wide bound shows the margin itself, the usual one clamps it. */
			if (wide)
				w->knobs.tick_ns = 10 * MSEC;
			limit = entity_lag_limit(&w->rqs[0].root, &target->se, &w->knobs);
			yield_to(w, w->rqs[0].curr, target);
			/* The forfeit after the credit moves V on by at most a slice. */
			assert_in_range((u64)lag_of_vcpu(w, target), (u64)min(margin, limit) - 2,
					(u64)min(margin, limit) + 700 * USEC);
			free(w);
		}
	}
}

static void credit_is_scaled_by_weight(void **state)
{
	static const u32 weights[] = {1024, 4096, 256};
	u64 received[3];

	for (u32 i = 1; i < 3; i++) {
		struct world *w = busy("credit", 3, weights);
		struct sched_vcpu *target = &w->vcpus[i];
		s64 lag;

		while (w->rqs[0].curr != &w->vcpus[0])
			run(w, 0, 100 * USEC);
		w->knobs.tick_ns = 10 * MSEC;
		lag = lag_of_vcpu(w, target);
		yield_to(w, &w->vcpus[0], target);
		received[i] = target->stats.yield_received_ns;
		/* In service time every weight gets the same: 4 slices. */
		assert_true(llabs((s64)received[i] - (4 * 700 * (s64)USEC - lag)) < 10);
		free(w);
	}
}

static void without_the_feature_credit_is_forfeit(void **state)
{
	struct world *w = busy("credit", 5, NULL);
	struct sched_vcpu *target = neediest(w);
	u64 v = target->se.vruntime;

	w->knobs.YIELD_TO_LAG_CREDIT = false;
	yield_to(w, w->rqs[0].curr, target);
	assert_int_equal(target->se.vruntime, v);
	assert_int_equal(target->stats.yield_received_ns, 0);
	free(w);
}

static void only_the_forced_reschedule_is_rate_limited(void **state)
{
	struct world *w = busy("credit", 5, NULL);
	struct run_queue *rq = &w->rqs[0];
	struct sched_vcpu *me = rq->curr, *target;
	u64 start = w->now;

	w->now += 10 * MSEC;
	yield_to(w, me, neediest(w)); /* the first is forced */
	assert_false(entity_protected(&me->se));
	assert_int_equal(me->stats.yield_limited, 0);
	pick(w, 0);
	for (u32 i = 0; i < 3; i++) {
		w->now += MSEC;
		pick(w, 0);
		me = rq->curr;
		/* It cannot forfeit, but it is protected: only force could unseat it. */
		me->se.vprot = me->se.vruntime + 100 * USEC;
		target = neediest(w);
		yield_to(w, me, target);
		assert_true(target->stats.yield_received_ns > 0); /* never limited */
		assert_int_equal(me->stats.yield_limited, 1);
		me->stats.yield_limited = 0;
		pick(w, 0);
	}
	w->now = start + 10 * MSEC + 6 * MSEC;
	pick(w, 0);
	me = rq->curr;
	yield_to(w, me, neediest(w));
	assert_int_equal(me->stats.yield_limited, 0);
	free(w);
}

static void the_credit_walk_stops_where_the_nomination_stopped(void **state)
{
	struct world *w = world_new(1);
	struct sched_group *vm = world_group(w, 1024);
	struct sched_vcpu *a, *b;
	struct sched_group_rq *grq = &w->group_rqs[0][0];
	u64 v;

	w->knobs.sched_mode = SCHED_MODE_GROUP;
	sched_knob_set(&w->knobs, "yield_policy", "credit");
	a = world_vcpu(w, vm, 0, 0);
	b = world_vcpu(w, vm, 0, 0);
	wake(w, a, 0);
	wake(w, b, 0);
	wake(w, world_single(w, 1024, 0), 0);
	run(w, 0, 10 * MSEC);
	while (w->rqs[0].curr != a)
		run(w, 0, 100 * USEC);
	w->now += 200 * USEC;
	begin(w, 0);
	sched_update_curr(&w->rqs[0]);
	/* The VM as a whole is behind; and as if its own entity could not be nominated. */
	entity_set_lag(&w->rqs[0].root, &grq->se, -(s64)(500 * USEC), &w->knobs);
	grq->se.delayed = true;
	v = grq->se.vruntime;
	sched_yield_to(&w->rqs[0], &w->rqs[0], a, b);
	assert_ptr_equal(grq->timeline.next, &b->se);
	assert_null(w->rqs[0].root.next);
	assert_int_equal(grq->se.vruntime, v);
	grq->se.delayed = false;
	/* And with it nominated, it is credited too. */
	sched_yield_to(&w->rqs[0], &w->rqs[0], a, b);
	assert_ptr_equal(w->rqs[0].root.next, &grq->se);
	assert_true((s64)(grq->se.vruntime - v) < 0);
	assert_true(entity_eligible(&w->rqs[0].root, &grq->se));
	/* Once more, and it is eligible already: no further credit. */
	v = grq->se.vruntime;
	sched_yield_to(&w->rqs[0], &w->rqs[0], a, b);
	assert_int_equal(grq->se.vruntime, v);
	end(&w->rqs[0]);
	free(w);
}

static void in_group_mode_the_credited_vcpu_of_the_same_vm_runs_next(void **state)
{
	struct world *w = world_new(1);
	u32 hits = 0, tries = 0;

	w->knobs.sched_mode = SCHED_MODE_GROUP;
	sched_knob_set(&w->knobs, "yield_policy", "credit");
	for (u32 g = 0; g < 3; g++) {
		struct sched_group *vm = world_group(w, 1024);

		for (u32 i = 0; i < 3; i++)
			wake(w, world_vcpu(w, vm, 0, 0), 0);
	}
	for (u32 i = 0; i < 200; i++) {
		struct sched_vcpu *me, *target;

		run(w, 0, 250 * USEC);
		me = w->rqs[0].curr;
		target = &w->vcpus[me->group->id * 3 + (me->id + 1 + rnd(w, 2)) % 3];
		if (target == me)
			continue;
		tries++;
		yield_to(w, me, target);
		hits += pick(w, 0) == target;
	}
	assert_int_equal(hits, tries);
	free(w);
}

/* ---- transfer ---- */

static void transfer_is_zero_sum_and_nobody_else_pays(void **state)
{
	static const u32 weights[] = {1024, 2048, 512, 1024, 3072};
	struct world *w = busy("transfer", 5, weights);
	u32 moved = 0;

	for (u32 i = 0; i < 400; i++) {
		struct sched_vcpu *me, *target;
		s64 before[WORLD_VCPUS], after[WORLD_VCPUS];
		struct exact x;
		s128 sum_before, sum_after;

		run(w, 0, rnd(w, 400 * USEC));
		me = w->rqs[0].curr;
		target = &w->vcpus[rnd(w, 5)];
		if (target == me)
			continue;
		lags_of_others(w, me, target, before);
		exact_read(&x, &w->rqs[0].root);
		sum_before = x.sum + x.weight * (s128)x.base;
		yield_to(w, me, target);
		exact_read(&x, &w->rqs[0].root);
		sum_after = x.sum + x.weight * (s128)x.base;
		lags_of_others(w, me, target, after);
		/* The weighted sum of all vruntimes, and with it V, stays but for rounding. */
		assert_true(sum_after - sum_before < (s128)4 * target->se.weight &&
			    sum_before - sum_after < (s128)4 * target->se.weight);
		for (u32 j = 0; j < 5; j++) {
			if (&w->vcpus[j] != me && &w->vcpus[j] != target)
				assert_true(llabs(after[j] - before[j]) <= 8);
		}
		/* What one gives, the other receives. */
		assert_true(llabs((before[me - w->vcpus] - after[me - w->vcpus]) -
				  (after[target - w->vcpus] - before[target - w->vcpus])) <= 16);
		/* Only positive lag is given. */
		if (before[me - w->vcpus] <= 0)
			assert_true(llabs(after[me - w->vcpus] - before[me - w->vcpus]) <= 8);
		else
			assert_true(after[me - w->vcpus] >= -8);
		moved += before[me - w->vcpus] - after[me - w->vcpus] > 1000;
		pick(w, 0);
	}
	assert_true(moved > 20);
	free(w);
}

static void transfer_respects_the_targets_bound(void **state)
{
	struct world *w = busy("transfer", 3, NULL);
	struct run_queue *rq = &w->rqs[0];
	struct sched_vcpu *me = rq->curr, *target = neediest(w);
	s64 limit = entity_lag_limit(&rq->root, &target->se, &w->knobs), left;

	begin(w, 0);
	entity_set_lag(&rq->root, &target->se, limit - 1000, &w->knobs);
	entity_set_lag(&rq->root, &me->se, limit - 1000, &w->knobs);
	end(rq);
	left = limit - lag_of_vcpu(w, target);
	yield_to(w, me, target);
	assert_true(lag_of_vcpu(w, target) <= limit + 8);
	assert_true((s64)target->stats.yield_received_ns <= max(left, (s64)0) + 8);
	free(w);
}

/* ---- deboost ---- */

static s64 penalty_of(u32 n, bool debounced)
{
	struct world *w = busy("deboost", n, NULL);
	struct run_queue *rq = &w->rqs[0];
	struct sched_vcpu *me = rq->curr, *target = neediest(w);
	s64 penalty;
	u64 v;

	/* Equal vruntimes: no need, the margin alone; and nothing to forfeit afterwards. */
	begin(w, 0);
	entity_shift(&rq->root, &target->se, (s64)(me->se.vruntime - target->se.vruntime));
	if (debounced) {
		rq->yield_last_from = target;
		rq->yield_last_to = me;
		rq->yield_last_pair = w->now - 100 * USEC;
	}
	end(rq);
	w->knobs.tick_ns = 10 * MSEC;
	v = me->se.vruntime;
	yield_to(w, me, target);
	penalty = (s64)(me->se.vruntime - v);
	free(w);
	return penalty;
}

static void deboost_takes_a_margin_that_depends_on_the_queue(void **state)
{
	/* About one slice for two, less for more; then the forfeit, if still eligible. */
	assert_true(penalty_of(2, false) >= 700 * (s64)USEC);
	assert_true(penalty_of(5, false) >= 437 * (s64)USEC);
	assert_true(penalty_of(20, false) >= 175 * (s64)USEC);
	assert_true(penalty_of(5, false) <= 2 * 700 * (s64)USEC + 10);
}

static void deboost_spares_the_reverse_pair(void **state)
{
	assert_true(penalty_of(5, true) <= penalty_of(5, false));
	assert_true(penalty_of(5, true) <= 700 * (s64)USEC + 10); /* the forfeit alone */
}

static void deboost_never_exceeds_the_legal_lag(void **state)
{
	struct world *w = busy("deboost", 6, NULL);
	struct run_queue *rq = &w->rqs[0];

	w->knobs.yield_resched_min_ns = 0;
	for (u32 i = 0; i < 200; i++) {
		struct sched_vcpu *me = rq->curr;

		w->now += 10 * USEC;
		yield_to(w, me, neediest(w));
		/* The others may since have moved V by a slice. */
		assert_true(lag_of_vcpu(w, me) >=
			    -entity_lag_limit(&rq->root, &me->se, &w->knobs) - 700 * (s64)USEC);
		if (i % 3)
			pick(w, 0);
	}
	free(w);
}

/* ---- auto ---- */

static void set_lag(struct world *w, struct sched_vcpu *v, s64 lag)
{
	entity_set_lag(v->se.timeline, &v->se, lag, &w->knobs);
}

/* Nobody's lag moves: the target runs before its time, and then waits until the others had theirs.
 */
static void auto_makes_the_target_run_next_and_it_pays_back(void **state)
{
	struct world *w = busy("auto", 6, NULL);
	struct run_queue *rq = &w->rqs[0];
	struct sched_vcpu *me = rq->curr, *target = neediest(w);
	s64 missing = -lag_of_vcpu(w, target);
	u64 start = w->now, ran = target->stats.run_ns;

	assert_true(missing > 0);
	set_lag(w, me, 0);
	missing = -lag_of_vcpu(w, target);
	yield_to(w, me, target);
	assert_in_range(-lag_of_vcpu(w, target), missing - 2, missing + 2);
	assert_ptr_equal(pick(w, 0), target);
	assert_null(rq->root.next);
	run(w, 0, 60 * MSEC);
	/* A sixth of the time, within a slice. */
	assert_true(llabs((s64)(target->stats.run_ns - ran) - (s64)((w->now - start) / 6)) <
		    700 * (s64)USEC);
	free(w);
}

/* It runs for yield_early_ns, and not at all if its lag would not be legal then. */
static void auto_lends_up_to_the_legal_lag(void **state)
{
	struct world *w = busy("auto", 6, NULL);
	struct run_queue *rq = &w->rqs[0];
	struct sched_vcpu *me = rq->curr, *target = neediest(w);
	s64 limit = entity_lag_limit(&rq->root, &target->se, &w->knobs);
	s64 early = (s64)w->knobs.yield_early_ns;
	u64 start;

	set_lag(w, me, -(s64)MSEC);
	set_lag(w, target, -limit + early - (s64)USEC);
	yield_to(w, me, target);
	assert_ptr_not_equal(pick(w, 0), target);
	free(w);

	w = busy("auto", 6, NULL);
	rq = &w->rqs[0];
	me = rq->curr;
	target = neediest(w);
	set_lag(w, me, -(s64)MSEC);
	set_lag(w, target, -limit + early + (s64)USEC);
	yield_to(w, me, target);
	assert_ptr_equal(pick(w, 0), target);
	start = w->now;
	while (rq->curr == target) {
		w->now += 10 * USEC;
		pick(w, 0); /* asked again and again: it is protected, although not eligible */
	}
	assert_int_equal(w->now - start, early);
	assert_true(lag_of_vcpu(w, target) >= -limit);
	free(w);
}

static void a_debt_is_not_slept_off(void **state)
{
	for (u32 delay = 0; delay < 2; delay++) {
		struct world *w = busy("auto", 6, NULL);
		struct run_queue *rq = &w->rqs[0];
		struct sched_vcpu *target = neediest(w);
		s64 lag;

		w->knobs.DELAY_DEQUEUE = delay;
		set_lag(w, rq->curr, 0);
		yield_to(w, rq->curr, target);
		assert_ptr_equal(pick(w, 0), target);
		w->now += 50 * USEC;
		lag = lag_of_vcpu(w, target);
		assert_true(lag < 0);
		block(w, 0);
		assert_true(target->se.vlag < 0);
		free(w);
	}
}

/* Again and again for the same target: its lag is never beyond the legal bound. */
static void loans_do_not_pile_up(void **state)
{
	struct world *w = busy("auto", 6, NULL);
	struct run_queue *rq = &w->rqs[0];
	struct sched_vcpu *target = neediest(w);

	w->knobs.yield_auto_min_ns = 0;
	for (u32 i = 0; i < 500; i++) {
		w->now += 30 * USEC;
		pick(w, 0);
		if (rq->curr != target)
			yield_to(w, rq->curr, target);
		assert_true(lag_of_vcpu(w, target) >=
			    -entity_lag_limit(&rq->root, &target->se, &w->knobs) - 30 * (s64)USEC);
	}
	free(w);
}

/* With loans on all the time, long-term shares hold: that is what credit cannot do. */
static void auto_keeps_shares_where_credit_does_not(void **state)
{
	u64 favourite[2];

	for (u32 i = 0; i < 2; i++) {
		struct world *w = busy(i ? "auto" : "credit", 4, NULL);
		struct run_queue *rq = &w->rqs[0];
		u64 start = w->now, before = w->vcpus[3].stats.run_ns;

		/* Two that yield to the fourth whenever they run, one that only computes. */
		while (w->now < start + 2 * SEC) {
			if (rq->curr == &w->vcpus[0] || rq->curr == &w->vcpus[1]) {
				w->now += 50 * USEC;
				yield_to(w, rq->curr, &w->vcpus[3]);
				pick(w, 0);
			} else {
				run(w, 0, 100 * USEC);
			}
		}
		favourite[i] = w->vcpus[3].stats.run_ns - before;
		print_message("  %s: the favourite ran %llu ms of 2000, the bystander %llu\n",
			      i ? "auto" : "credit", (unsigned long long)favourite[i] / 1000000,
			      (unsigned long long)w->vcpus[2].stats.run_ns / 1000000);
		free(w);
	}
	assert_true(favourite[1] < favourite[0]);
}

static void auto_follows_the_rate_of_yields(void **state)
{
	struct world *w = busy("auto", 4, NULL);
	struct run_queue *rq = &w->rqs[0];
	u64 limited = 0;

	/* A steady stream, every 100 us, passes: far below the fixed 6 ms. */
	for (u32 i = 0; i < 200; i++) {
		w->now += 100 * USEC;
		pick(w, 0);
		yield_to(w, rq->curr, neediest(w));
		pick(w, 0);
		if (i == 100)
			limited = rq->stats.yield_limited;
	}
	assert_int_equal(rq->stats.yield_limited, limited);
	/* A burst out of a slow stream is held back. */
	for (u32 i = 0; i < 50; i++) {
		w->now += 20 * MSEC;
		pick(w, 0);
		yield_to(w, rq->curr, neediest(w));
		pick(w, 0);
	}
	limited = rq->stats.yield_limited;
	for (u32 i = 0; i < 5; i++) {
		w->now += 10 * USEC;
		pick(w, 0);
		yield_to(w, rq->curr, neediest(w));
		pick(w, 0);
	}
	assert_true(rq->stats.yield_limited >= limited + 4);
	free(w);
}

/* ---- what may be yielded to, and where ---- */

static void nothing_is_done_for_who_runs_sleeps_or_is_oneself(void **state)
{
	struct world *w = busy("credit", 3, NULL);
	struct sched_vcpu *me = w->rqs[0].curr, *asleep = world_single(w, 1024, 0);
	struct sched_vcpu *elsewhere = world_single(w, 1024, 1);

	wake(w, elsewhere, 1);
	pick(w, 1);
	assert_int_equal(yield_to(w, me, me), 0);
	assert_int_equal(yield_to(w, me, asleep), 0);
	assert_int_equal(elsewhere->state, SCHED_RUNNING);
	assert_int_equal(yield_to(w, me, elsewhere), 0);
	assert_int_equal(me->stats.yield_attempted, 3);
	assert_int_equal(me->stats.yield_done, 0);
	free(w);
}

static struct world *two_pcpus(const char *cross, struct sched_vcpu **target)
{
	struct world *w = busy("credit", 2, NULL);
	struct sched_vcpu *other = world_single(w, 1024, 1);

	assert_int_equal(sched_knob_set(&w->knobs, "yield_cross_rq", cross), 0);
	wake(w, other, 1);
	*target = world_single(w, 1024, 1);
	wake(w, *target, 1);
	run(w, 1, 5 * MSEC);
	pick(w, 0);
	while ((*target)->state != SCHED_QUEUED)
		run(w, 1, 100 * USEC);
	pick(w, 0);
	return w;
}

static void cross_rq_off_leaves_it_alone(void **state)
{
	struct sched_vcpu *target;
	struct world *w = two_pcpus("off", &target);
	u64 v = target->se.vruntime;

	assert_int_equal(yield_to(w, w->rqs[0].curr, target), 0);
	assert_int_equal(target->se.vruntime, v);
	free(w);
}

static void cross_rq_boost_makes_it_run_there(void **state)
{
	struct sched_vcpu *target;
	struct world *w = two_pcpus("boost", &target);

	assert_true(yield_to(w, w->rqs[0].curr, target) & SCHED_KICK_REMOTE);
	assert_int_equal(target->cpu, 1);
	assert_ptr_equal(pick(w, 1), target);
	free(w);
}

static void cross_rq_pull_runs_it_here(void **state)
{
	struct sched_vcpu *target;
	struct world *w = two_pcpus("pull", &target);
	u32 what = yield_to(w, w->rqs[0].curr, target);

	assert_int_equal(what & (SCHED_PULLED | SCHED_DID_LOCAL), SCHED_PULLED | SCHED_DID_LOCAL);
	assert_int_equal(target->cpu, 0);
	assert_ptr_equal(pick(w, 0), target);
	assert_int_equal(target->stats.nr_migrations, 1);
	free(w);
}

static void cross_rq_pull_respects_affinity(void **state)
{
	struct sched_vcpu *target;
	struct world *w = two_pcpus("pull", &target);

	w->affinity[target - w->vcpus][0] = BIT(1);
	/* Not allowed here: helped there. */
	assert_int_equal(yield_to(w, w->rqs[0].curr, target) & (SCHED_PULLED | SCHED_KICK_REMOTE),
			 SCHED_KICK_REMOTE);
	assert_int_equal(target->cpu, 1);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(forfeit_picks_an_eligible_target_and_only_that),
	    cmocka_unit_test(credit_makes_the_target_run_next),
	    cmocka_unit_test(credit_gives_the_margin_within_the_legal_bound),
	    cmocka_unit_test(credit_is_scaled_by_weight),
	    cmocka_unit_test(without_the_feature_credit_is_forfeit),
	    cmocka_unit_test(only_the_forced_reschedule_is_rate_limited),
	    cmocka_unit_test(the_credit_walk_stops_where_the_nomination_stopped),
	    cmocka_unit_test(in_group_mode_the_credited_vcpu_of_the_same_vm_runs_next),
	    cmocka_unit_test(transfer_is_zero_sum_and_nobody_else_pays),
	    cmocka_unit_test(transfer_respects_the_targets_bound),
	    cmocka_unit_test(deboost_takes_a_margin_that_depends_on_the_queue),
	    cmocka_unit_test(deboost_spares_the_reverse_pair),
	    cmocka_unit_test(deboost_never_exceeds_the_legal_lag),
	    cmocka_unit_test(auto_makes_the_target_run_next_and_it_pays_back),
	    cmocka_unit_test(auto_lends_up_to_the_legal_lag),
	    cmocka_unit_test(a_debt_is_not_slept_off),
	    cmocka_unit_test(loans_do_not_pile_up),
	    cmocka_unit_test(auto_keeps_shares_where_credit_does_not),
	    cmocka_unit_test(auto_follows_the_rate_of_yields),
	    cmocka_unit_test(nothing_is_done_for_who_runs_sleeps_or_is_oneself),
	    cmocka_unit_test(cross_rq_off_leaves_it_alone),
	    cmocka_unit_test(cross_rq_boost_makes_it_run_there),
	    cmocka_unit_test(cross_rq_pull_runs_it_here),
	    cmocka_unit_test(cross_rq_pull_respects_affinity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
