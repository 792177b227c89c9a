// SPDX-License-Identifier: BSD-2-Clause
// What the scheduler promises, one behaviour a test: shares in each mode, slices and protection,
// preemption, blocking and waking, the features.
// sources: hv/sched/rq.c hv/sched/pick.c hv/sched/core.c hv/sched/account.c
// sources: hv/sched/yield.c hv/sched/balance.c hv/sched/knobs.c hv/lib/fmt.c hv/lib/knob.c
#include "tests/sim/world.h"

static void within(u64 value, u64 expected, u64 per_mille)
{
	u64 off = value > expected ? value - expected : expected - value;

	if (off * 1000 > expected * per_mille)
		fail_msg("%llu is more than %llu per mille from %llu", (unsigned long long)value,
			 (unsigned long long)per_mille, (unsigned long long)expected);
}

static u64 vm_run(struct world *w, struct sched_group *g)
{
	u64 sum = 0;

	for (u32 i = 0; i < w->nr_vcpus; i++) {
		if (w->vcpus[i].group == g)
			sum += w->vcpus[i].stats.run_ns;
	}
	return sum;
}

/* All pCPUs run for @ns, each to the ends of its own slices. */
static void run_all(struct world *w, u64 ns)
{
	u64 until = w->now + ns;

	for (u32 c = 0; c < w->nr_rqs; c++)
		pick(w, c);
	while (w->now < until) {
		u64 stop = until;

		for (u32 c = 0; c < w->nr_rqs; c++) {
			if (w->rqs[c].curr)
				stop = min(stop, sched_slice_end(&w->rqs[c]));
		}
		w->now = stop;
		for (u32 c = 0; c < w->nr_rqs; c++) {
			if (!w->rqs[c].curr || sched_slice_end(&w->rqs[c]) <= w->now)
				pick(w, c);
		}
	}
	for (u32 c = 0; c < w->nr_rqs; c++) {
		begin(w, c);
		sched_update_curr(&w->rqs[c]);
		end(&w->rqs[c]);
	}
}

/* ---- shares ---- */

static void two_equal_vcpus_get_half_each(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_single(w, 1024, 0), *b = world_single(w, 1024, 0);

	wake(w, a, 0);
	wake(w, b, 0);
	run(w, 0, 2 * SEC);
	within(a->stats.run_ns, SEC, 2);
	within(b->stats.run_ns, SEC, 2);
	free(w);
}

static void double_weight_gets_two_thirds_in_each_mode(void **state)
{
	for (u32 mode = 0; mode < 3; mode++) {
		struct world *w = world_new(1);
		struct sched_vcpu *a = world_single(w, 2048, 0), *b = world_single(w, 1024, 0);

		w->knobs.sched_mode = mode;
		wake(w, a, 0);
		wake(w, b, 0);
		run(w, 0, 3 * SEC);
		within(a->stats.run_ns, 2 * SEC, 5);
		within(b->stats.run_ns, SEC, 5);
		free(w);
	}
}

static void a_vms_share_does_not_depend_on_its_vcpus_in_group_and_flat(void **state)
{
	for (u32 mode = 0; mode < 3; mode++) {
		struct world *w = world_new(1);
		struct sched_group *small = world_group(w, 1024), *large = world_group(w, 1024);

		w->knobs.sched_mode = mode;
		wake(w, world_vcpu(w, small, 0, 0), 0);
		for (u32 i = 0; i < 3; i++)
			wake(w, world_vcpu(w, large, 0, 0), 0);
		run(w, 0, 4 * SEC);
		within(vm_run(w, small), mode == SCHED_MODE_VCPU ? SEC : 2 * SEC, 10);
		within(vm_run(w, large), mode == SCHED_MODE_VCPU ? 3 * SEC : 2 * SEC, 10);
		free(w);
	}
}

static void three_vms_of_two_vcpus_on_two_pcpus_share_by_weight(void **state)
{
	static const u32 weights[][3] = {{1024, 1024, 1024}, {1024, 2048, 1024}, {512, 1024, 3072}};

	for (u32 mode = 0; mode < 3; mode++) {
		for (u32 k = 0; k < ARRAY_SIZE(weights); k++) {
			struct world *w = world_new(2);
			u64 sum = 0;

			w->knobs.sched_mode = mode;
			for (u32 g = 0; g < 3; g++) {
				struct sched_group *vm = world_group(w, weights[k][g]);

				wake(w, world_vcpu(w, vm, 0, 0), 0);
				wake(w, world_vcpu(w, vm, 1, 0), 1);
				sum += weights[k][g];
			}
			run_all(w, 6 * SEC);
			for (u32 g = 0; g < 3; g++)
				within(vm_run(w, &w->groups[g]), 12 * SEC * weights[k][g] / sum,
				       20);
			free(w);
		}
	}
}

static void shares_follow_who_is_runnable(void **state)
{
	/* flat and group divide a VM's weight among those of its vCPUs that want to run. */
	for (u32 mode = SCHED_MODE_GROUP; mode <= SCHED_MODE_FLAT; mode++) {
		struct world *w = world_new(1);
		struct sched_group *a = world_group(w, 1024), *b = world_group(w, 1024);
		struct sched_vcpu *sleepy;
		u64 before;

		w->knobs.sched_mode = mode;
		wake(w, world_vcpu(w, a, 0, 0), 0);
		for (u32 i = 0; i < 4; i++) {
			sleepy = world_vcpu(w, b, 0, 0);
			wake(w, sleepy, 0);
		}
		run(w, 0, SEC);
		for (u32 i = 2; i < 5; i++)
			take_off(w, &w->vcpus[i]);
		before = w->vcpus[1].stats.run_ns;
		run(w, 0, 2 * SEC);
		within(w->vcpus[1].stats.run_ns - before, SEC, 10);
		free(w);
	}
}

static void a_weight_change_takes_effect_within_slices(void **state)
{
	for (u32 mode = 0; mode < 3; mode++) {
		struct world *w = world_new(1);
		struct sched_vcpu *a = world_single(w, 1024, 0), *b = world_single(w, 1024, 0);
		u64 before;

		w->knobs.sched_mode = mode;
		wake(w, a, 0);
		wake(w, b, 0);
		run(w, 0, SEC);
		sched_group_set_weight(a->group, 3072);
		before = a->stats.run_ns;
		run(w, 0, 4 * SEC);
		within(a->stats.run_ns - before, 3 * SEC, 5);
		free(w);
	}
}

static void the_mode_may_change_while_it_runs(void **state)
{
	struct world *w = world_new(1);
	struct sched_group *small = world_group(w, 1024), *large = world_group(w, 1024);
	static const u32 modes[] = {SCHED_MODE_FLAT, SCHED_MODE_VCPU, SCHED_MODE_GROUP,
				    SCHED_MODE_VCPU, SCHED_MODE_FLAT, SCHED_MODE_GROUP};

	wake(w, world_vcpu(w, small, 0, 0), 0);
	for (u32 i = 0; i < 3; i++)
		wake(w, world_vcpu(w, large, 0, 0), 0);
	for (u32 i = 0; i < ARRAY_SIZE(modes); i++) {
		u64 before;

		w->knobs.sched_mode = modes[i];
		run(w, 0, 100 * MSEC);
		before = vm_run(w, small);
		run(w, 0, 2 * SEC);
		within(vm_run(w, small) - before, modes[i] == SCHED_MODE_VCPU ? SEC / 2 : SEC, 10);
		for (u32 j = 0; j < 4; j++)
			assert_int_equal(w->vcpus[j].mode, modes[i]);
	}
	free(w);
}

/* EEVDF's theorem for a fixed set: nobody is ever further from the ideal than one request. */
static void in_steady_state_lag_stays_within_one_request(void **state)
{
	struct world *w = world_new(1);
	struct exact x;
	s64 longest = 0;

	for (u32 i = 0; i < 12; i++) {
		u64 slice = 300 * USEC + rnd(w, 3 * MSEC);

		longest = max(longest, (s64)slice);
		wake(w, world_vcpu(w, world_group(w, 256u << rnd(w, 5)), 0, slice), 0);
	}
	run(w, 0, 200 * MSEC); /* away from the start, where all come at once */
	for (u32 i = 0; i < 20000; i++) {
		pick(w, 0);
		w->now = sched_slice_end(&w->rqs[0]);
		begin(w, 0);
		sched_update_curr(&w->rqs[0]);
		end(&w->rqs[0]);
		exact_read(&x, &w->rqs[0].root);
		for (u32 j = 0; j < x.n; j++) {
			s64 lag = exact_lag_ns(&x, x.se[j]);

			assert_true(lag <= longest && lag >= -longest);
		}
	}
	/* And so the error that the counters show is of the same size. */
	for (u32 i = 0; i < w->nr_vcpus; i++)
		assert_true((s64)w->vcpus[i].fair.err_max_ns < 3 * longest);
	free(w);
}

/* ---- slices, protection, preemption ---- */

static void alone_there_is_no_end_of_the_slice(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_single(w, 1024, 0);

	assert_int_equal(sched_slice_end(&w->rqs[0]), 0);
	assert_true(wake(w, a, 0)); /* idle: reschedule */
	assert_ptr_equal(pick(w, 0), a);
	assert_int_equal(sched_slice_end(&w->rqs[0]), SCHED_NEVER);
	block(w, 0);
	assert_int_equal(sched_slice_end(&w->rqs[0]), 0);
	free(w);
}

static void a_slice_ends_after_the_request(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_single(w, 1024, 0), *b = world_single(w, 1024, 0);
	struct sched_vcpu *first;

	w->knobs.PLACE_DEADLINE_INITIAL = false;
	wake(w, a, 0);
	wake(w, b, 0);
	first = pick(w, 0);
	assert_in_range(sched_slice_end(&w->rqs[0]) - w->now, 700 * USEC, 700 * USEC + 3);
	w->now = sched_slice_end(&w->rqs[0]);
	assert_ptr_not_equal(pick(w, 0), first);
	free(w);
}

static void the_first_request_is_half_a_slice(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_single(w, 1024, 0);

	wake(w, a, 0);
	assert_int_equal(a->se.deadline - a->se.vruntime, 350 * USEC);
	pick(w, 0);
	block(w, 0);
	wake(w, a, 0);
	assert_int_equal(a->se.deadline - a->se.vruntime, 700 * USEC);
	free(w);
}

static void a_waking_vcpu_ends_the_loneliness(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_single(w, 1024, 0), *b = world_single(w, 1024, 0);

	wake(w, a, 0);
	pick(w, 0);
	w->now += 10 * SEC;
	/* Either it preempts at once, or the running one has an end now, soon. */
	if (!wake(w, b, 0))
		assert_true(sched_slice_end(&w->rqs[0]) <= w->now + 700 * USEC + 3);
	free(w);
}

static struct world *long_and_short(struct sched_vcpu **l, struct sched_vcpu **s)
{
	struct world *w = world_new(1);

	*l = world_vcpu(w, world_group(w, 1024), 0, 20 * MSEC);
	*s = world_vcpu(w, world_group(w, 1024), 0, MSEC);
	/* A third keeps the queue honest: with two, the woken one is the only other. */
	wake(w, world_vcpu(w, world_group(w, 1024), 0, 20 * MSEC), 0);
	wake(w, *l, 0);
	run(w, 0, 100 * MSEC);
	while (w->rqs[0].curr != *l)
		run(w, 0, 100 * USEC);
	return w;
}

static void a_shorter_slice_preempts_despite_protection(void **state)
{
	for (u32 on = 0; on < 2; on++) {
		struct sched_vcpu *l, *s;
		struct world *w = long_and_short(&l, &s);

		w->knobs.PREEMPT_SHORT = on;
		w->now += 100 * USEC;
		begin(w, 0);
		sched_update_curr(&w->rqs[0]);
		/* Make it plainly protected and eligible: only PREEMPT_SHORT may unseat it. */
		entity_set_lag(&w->rqs[0].root, &l->se, MSEC, &w->knobs);
		l->se.vprot = l->se.vruntime + 5 * MSEC;
		end(&w->rqs[0]);
		assert_int_equal(wake(w, s, 0), on);
		if (on)
			assert_ptr_equal(pick(w, 0), s);
		else /* but the protection shrinks to the short slice */
			assert_true(sched_slice_end(&w->rqs[0]) <= w->now + MSEC + 3);
		free(w);
	}
}

static void without_wakeup_preemption_nothing_is_preempted_by_a_wakeup(void **state)
{
	struct sched_vcpu *l, *s;
	struct world *w = long_and_short(&l, &s);

	w->knobs.WAKEUP_PREEMPTION = false;
	assert_false(wake(w, s, 0));
	free(w);
}

static void run_to_parity_protects_to_the_shortest_slice(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_vcpu(w, world_group(w, 1024), 0, 10 * MSEC);
	struct sched_vcpu *b = world_vcpu(w, world_group(w, 1024), 0, 2 * MSEC);

	w->knobs.PLACE_DEADLINE_INITIAL = false;
	wake(w, a, 0);
	wake(w, b, 0);
	pick(w, 0);
	while (w->rqs[0].curr != a) {
		w->now = sched_slice_end(&w->rqs[0]);
		pick(w, 0);
	}
	assert_in_range(sched_slice_end(&w->rqs[0]) - w->now, 2 * MSEC, 2 * MSEC + 3);
	/* Without it the least quantum counts. */
	w->knobs.RUN_TO_PARITY = false;
	w->knobs.min_quantum_ns = 500 * USEC;
	do {
		w->now = sched_slice_end(&w->rqs[0]);
		pick(w, 0);
	} while (w->rqs[0].curr != a);
	assert_in_range(sched_slice_end(&w->rqs[0]) - w->now, 1, 500 * USEC + 3);
	free(w);
}

static void who_is_picked_again_is_protected_anew(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_vcpu(w, world_group(w, 1024), 0, 10 * MSEC);
	struct sched_vcpu *b = world_vcpu(w, world_group(w, 1024), 0, 2 * MSEC);
	struct run_queue *rq = &w->rqs[0];

	w->knobs.PLACE_DEADLINE_INITIAL = false;
	wake(w, a, 0);
	pick(w, 0);
	wake(w, b, 0);
	begin(w, 0);
	/* b is far in debt: a is picked whenever one asks. */
	entity_set_lag(&rq->root, &b->se, -(s64)(6 * MSEC), &w->knobs);
	end(rq);
	assert_ptr_equal(pick(w, 0), a);
	for (u32 i = 0; i < 3; i++) {
		w->now = sched_slice_end(rq);
		assert_ptr_equal(pick(w, 0), a);
		assert_true(entity_protected(&a->se));
		/* For the shortest slice again, not to the end of its own request. */
		assert_in_range(sched_slice_end(rq) - w->now, 1900 * USEC, 2 * MSEC + 5);
	}
	free(w);
}

static void protection_never_reaches_beyond_the_deadline(void **state)
{
	struct world *w = world_new(1);

	for (u32 i = 0; i < 4; i++)
		wake(w, world_vcpu(w, world_group(w, 1024), 0, MSEC * (1 + i)), 0);
	for (u32 i = 0; i < 3000; i++) {
		struct sched_entity *se;

		w->now += rnd(w, 600 * USEC);
		pick(w, 0);
		se = &w->rqs[0].curr->se;
		assert_true((s64)(se->vprot - se->deadline) <= 0);
		assert_true(sched_slice_end(&w->rqs[0]) > w->now);
	}
	free(w);
}

/* ---- blocking and waking ---- */

static void a_halted_vm_costs_nothing(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_single(w, 1024, 0), *b = world_single(w, 1024, 0);
	u64 before;

	wake(w, a, 0);
	wake(w, b, 0);
	run(w, 0, 10 * MSEC);
	while (w->rqs[0].curr != b)
		run(w, 0, 100 * USEC);
	block(w, 0);
	run(w, 0, 20 * MSEC); /* it may have had to pay */
	assert_int_equal(w->rqs[0].root.nr_queued, 1);
	assert_int_equal(sched_slice_end(&w->rqs[0]), SCHED_NEVER);
	before = sched_run_ns(&w->rqs[0], a);
	run(w, 0, SEC);
	begin(w, 0);
	assert_int_equal(sched_run_ns(&w->rqs[0], a) - before, SEC);
	/* No steal while halted. */
	assert_int_equal(sched_run_delay_ns(&w->rqs[0], b), b->stats.run_delay_ns);
	end(&w->rqs[0]);
	free(w);
}

/* A vCPU that blocks in debt: it ran nearly all of its slice. */
static struct sched_vcpu *blocks_in_debt(struct world *w, u64 ran)
{
	struct sched_vcpu *v;

	for (u32 i = 0; i < 4; i++)
		wake(w, world_single(w, 1024, 0), 0);
	run(w, 0, 50 * MSEC);
	/* To the start of a slice. */
	w->now = sched_slice_end(&w->rqs[0]);
	v = pick(w, 0);
	w->now += ran;
	block(w, 0);
	return v;
}

static void delay_dequeue_keeps_a_debtor_queued_until_it_has_paid(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v = blocks_in_debt(w, 600 * USEC);
	struct run_queue *rq = &w->rqs[0];
	u32 picks = 0;

	assert_int_equal(v->state, SCHED_BLOCKED);
	assert_true(v->se.on_rq && v->se.delayed);
	assert_true(v->se.vlag < 0);
	/* It is not runnable: no load, no steal, never picked. */
	assert_int_equal(rq->nr_running, 3);
	assert_int_equal(rq->load, 3ull << 20);
	while (v->se.on_rq && picks++ < 100) {
		w->now = sched_slice_end(rq);
		assert_ptr_not_equal(pick(w, 0), v);
	}
	assert_false(v->se.delayed);
	assert_int_equal(rq->root.nr_queued, 3);
	/* Paid: with DELAY_ZERO it leaves with no lag at all. */
	assert_int_equal(v->se.vlag, 0);
	assert_int_equal(v->stats.nr_delayed, 1);
	free(w);
}

static void without_delay_zero_a_delayed_vcpu_may_leave_with_credit(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v = blocks_in_debt(w, 600 * USEC);

	w->knobs.DELAY_ZERO = false;
	while (v->se.on_rq) {
		w->now = sched_slice_end(&w->rqs[0]);
		pick(w, 0);
	}
	assert_true(v->se.vlag >= 0);
	free(w);
}

static void waking_early_keeps_what_is_left_of_the_debt(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v = blocks_in_debt(w, 600 * USEC);
	s64 debt = v->se.vlag, left;

	w->now += 40 * USEC;
	pick(w, 0);
	assert_true(v->se.delayed);
	wake(w, v, 0);
	assert_false(v->se.delayed);
	assert_int_equal(v->state, SCHED_QUEUED);
	left = lag_of_vcpu(w, v);
	assert_true(left > debt && left < 0);
	assert_int_equal(w->rqs[0].nr_running, 4);
	free(w);
}

static void a_delayed_debt_never_grows(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v = blocks_in_debt(w, 600 * USEC);
	struct run_queue *rq = &w->rqs[0];
	s64 debt = v->se.vlag;

	/* V goes back: somebody comes with much positive lag. */
	for (u32 i = 0; i < 3; i++) {
		struct sched_vcpu *rich = world_single(w, 4096, 0);

		rich->rq = rq;
		rich->se.vlag = (s64)(400 * USEC);
		wake(w, rich, 0);
	}
	assert_true((s64)(timeline_avg(&rq->root) - v->se.vruntime) < debt);
	wake(w, v, 0);
	assert_true(lag_of_vcpu(w, v) >= debt - 2);
	free(w);
}

static void without_delay_dequeue_it_leaves_at_once_with_its_debt(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v;

	w->knobs.DELAY_DEQUEUE = false;
	v = blocks_in_debt(w, 600 * USEC);
	assert_false(v->se.on_rq);
	assert_true(v->se.vlag < 0);
	assert_int_equal(w->rqs[0].root.nr_queued, 3);
	w->now += SEC;
	pick(w, 0);
	wake(w, v, 0);
	assert_true(lag_of_vcpu(w, v) < 0);
	free(w);
}

static void without_place_lag_everybody_returns_at_zero(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v;

	w->knobs.DELAY_DEQUEUE = false;
	w->knobs.PLACE_LAG = false;
	v = blocks_in_debt(w, 600 * USEC);
	wake(w, v, 0);
	assert_true(llabs(lag_of_vcpu(w, v)) <= 2);
	free(w);
}

static void a_block_may_be_taken_back(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v = world_single(w, 1024, 0);
	struct run_queue *rq;

	wake(w, v, 0);
	pick(w, 0);
	w->now += MSEC;
	rq = begin(w, 0);
	sched_block_prepare(rq);
	assert_int_equal(v->state, SCHED_BLOCKED); /* what a waker without the lock sees */
	sched_block_cancel(rq);
	assert_int_equal(v->state, SCHED_RUNNING);
	end(rq);
	assert_ptr_equal(pick(w, 0), v);
	assert_int_equal(v->stats.nr_voluntary, 0);
	rq = begin(w, 0);
	sched_block_prepare(rq);
	sched_block(rq);
	assert_null(sched_pick_next(rq));
	end(rq);
	assert_int_equal(v->state, SCHED_BLOCKED);
	assert_int_equal(v->stats.run_ns, MSEC);
	assert_int_equal(v->fair.err_ns, 0); /* alone: all that it ran was its due */
	free(w);
}

static void only_one_waker_wins(void **state)
{
	struct world *w = world_new(2);
	struct sched_vcpu *v = world_single(w, 1024, 0);
	struct run_queue *rq = begin(w, 0);

	assert_true(sched_wake_claim(rq, v, 1));
	assert_false(sched_wake_claim(rq, v, 0));
	end(rq);
	assert_int_equal(v->cpu, 1);
	rq = begin(w, 1);
	assert_true(sched_wake(rq, v));
	/* Awake: no more to claim. */
	assert_false(sched_wake_claim(rq, v, 0));
	end(rq);
	assert_int_equal(w->rqs[1].nr_running, 1);
	free(w);
}

static void a_vcpu_removed_between_claim_and_wake_stays_off(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v = world_single(w, 1024, 0);
	struct run_queue *rq = begin(w, 0);

	sched_wake_claim(rq, v, 0);
	sched_remove(rq, v);
	assert_false(sched_wake(rq, v));
	end(rq);
	assert_int_equal(v->state, SCHED_BLOCKED);
	assert_int_equal(rq->root.nr_queued, 0);
	free(w);
}

static void a_migrant_keeps_its_lag_and_the_rest_of_its_request(void **state)
{
	struct world *w = world_new(2);
	u32 moved = 0;

	for (u32 i = 0; i < 10; i++)
		wake(w, world_single(w, 512u << rnd(w, 3), i % 2), i % 2);
	for (u32 i = 0; i < 2000; i++) {
		struct sched_vcpu *v = &w->vcpus[rnd(w, 10)];
		s64 lag, limit;
		u64 request;
		u32 to;

		run_all(w, rnd(w, 300 * USEC));
		if (v->state != SCHED_QUEUED)
			continue;
		to = !v->cpu;
		if (w->rqs[v->cpu].nr_running < 3)
			continue;
		lag = lag_of_vcpu(w, v);
		limit = vtime_to_ns(entity_lag_limit(&w->rqs[v->cpu].root, &v->se, &w->knobs),
				    v->se.weight);
		lag = clamp(lag, -limit, limit);
		request = v->se.deadline - v->se.vruntime;
		migrate(w, v, to);
		assert_true(llabs(lag_of_vcpu(w, v) - lag) <= 8);
		assert_int_equal(v->se.deadline - v->se.vruntime, request);
		moved++;
	}
	assert_true(moved > 300);
	free(w);
}

static void removing_the_running_vcpu_leaves_the_pcpu_to_others(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *a = world_single(w, 1024, 0), *b = world_single(w, 1024, 0);

	wake(w, a, 0);
	wake(w, b, 0);
	pick(w, 0);
	w->now += 100 * USEC;
	take_off(w, w->rqs[0].curr);
	assert_null(w->rqs[0].curr);
	assert_non_null(pick(w, 0));
	assert_int_equal(w->rqs[0].nr_running, 1);
	free(w);
}

/*
 * group: a VM's weight on a pCPU follows its load, also if that was another while it was made
 * there: a vCPU on another pCPU leaves its queue for a moment (a move, a change of the mode).
 */
static void a_groups_weight_follows_a_load_that_changed_for_a_moment(void **state)
{
	struct world *w = world_new(2);
	struct sched_group *vm;
	struct sched_vcpu *c;

	w->knobs.sched_mode = SCHED_MODE_GROUP;
	vm = world_group(w, 1024);
	wake(w, world_vcpu(w, vm, 0, 0), 0);
	wake(w, world_vcpu(w, vm, 1, 0), 1);
	c = world_vcpu(w, vm, 1, 0);
	wake(w, c, 1);
	vm->load -= 1024; /* the one on pCPU 0 is away */
	pick(w, 1);
	run(w, 1, 20 * MSEC);
	while (w->rqs[1].curr != c)
		run(w, 1, 100 * USEC);
	w->knobs.DELAY_DEQUEUE = false;
	sched_block(begin(w, 1));
	vm->load += 1024; /* back, before anybody here is picked */
	sched_pick_next(&w->rqs[1]);
	end(&w->rqs[1]);
	run(w, 1, 20 * MSEC);
	assert_int_equal(vm->rqs[1].se.weight, BIT(NICE_0_SHIFT) / 2);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(two_equal_vcpus_get_half_each),
	    cmocka_unit_test(double_weight_gets_two_thirds_in_each_mode),
	    cmocka_unit_test(a_vms_share_does_not_depend_on_its_vcpus_in_group_and_flat),
	    cmocka_unit_test(a_groups_weight_follows_a_load_that_changed_for_a_moment),
	    cmocka_unit_test(three_vms_of_two_vcpus_on_two_pcpus_share_by_weight),
	    cmocka_unit_test(shares_follow_who_is_runnable),
	    cmocka_unit_test(a_weight_change_takes_effect_within_slices),
	    cmocka_unit_test(the_mode_may_change_while_it_runs),
	    cmocka_unit_test(in_steady_state_lag_stays_within_one_request),
	    cmocka_unit_test(alone_there_is_no_end_of_the_slice),
	    cmocka_unit_test(a_slice_ends_after_the_request),
	    cmocka_unit_test(the_first_request_is_half_a_slice),
	    cmocka_unit_test(a_waking_vcpu_ends_the_loneliness),
	    cmocka_unit_test(a_shorter_slice_preempts_despite_protection),
	    cmocka_unit_test(without_wakeup_preemption_nothing_is_preempted_by_a_wakeup),
	    cmocka_unit_test(run_to_parity_protects_to_the_shortest_slice),
	    cmocka_unit_test(who_is_picked_again_is_protected_anew),
	    cmocka_unit_test(protection_never_reaches_beyond_the_deadline),
	    cmocka_unit_test(a_halted_vm_costs_nothing),
	    cmocka_unit_test(delay_dequeue_keeps_a_debtor_queued_until_it_has_paid),
	    cmocka_unit_test(without_delay_zero_a_delayed_vcpu_may_leave_with_credit),
	    cmocka_unit_test(waking_early_keeps_what_is_left_of_the_debt),
	    cmocka_unit_test(a_delayed_debt_never_grows),
	    cmocka_unit_test(without_delay_dequeue_it_leaves_at_once_with_its_debt),
	    cmocka_unit_test(without_place_lag_everybody_returns_at_zero),
	    cmocka_unit_test(a_block_may_be_taken_back),
	    cmocka_unit_test(only_one_waker_wins),
	    cmocka_unit_test(a_vcpu_removed_between_claim_and_wake_stays_off),
	    cmocka_unit_test(a_migrant_keeps_its_lag_and_the_rest_of_its_request),
	    cmocka_unit_test(removing_the_running_vcpu_leaves_the_pcpu_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
