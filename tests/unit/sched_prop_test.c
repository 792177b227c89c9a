// SPDX-License-Identifier: BSD-2-Clause
// Properties that hold whatever happens: random arrivals, departures, weight changes, migrations,
// yields and knob changes, compared with the exact model (tests/sim/exact.h) after every step.
// SCHED_TEST_STEPS=N runs N steps per scenario instead of the usual number (make test-long).
// sources: hv/sched/rq.c hv/sched/pick.c hv/sched/core.c hv/sched/account.c
// sources: hv/sched/yield.c hv/sched/balance.c hv/sched/knobs.c hv/lib/fmt.c hv/lib/knob.c
#include "tests/sim/world.h"

/* What the test itself keeps of each vCPU, to compare the books with. */
struct ledger {
	u64 runnable_since, runnable_ns, run_ns;
	double ideal;
};

struct scenario {
	struct world *w;
	struct ledger led[WORLD_VCPUS];
	struct exact x;
	u64 clock[WORLD_RQS]; /* up to when the ledger is written */
	s64 worst_lag;
	u64 worst_wait;
};

static void near(double a, double b, double tolerance)
{
	if (a - b > tolerance || b - a > tolerance)
		fail_msg("%.3f is not within %.3f of %.3f", a, tolerance, b);
}

/* The pick, with and without protection, is what the definition says; V is the mean. */
static void check_timeline_exact(struct scenario *s, struct sched_timeline *tl)
{
	struct exact *x = &s->x;
	const struct sched_knobs *knobs = &s->w->knobs;
	struct sched_entity *best, *expected;
	s128 floor_v;

	exact_read(x, tl);
	if (!x->n)
		return;
	best = exact_pick(x);
	assert_non_null(best); /* somebody is always eligible */
	if (x->n > 1)
		assert_ptr_equal(timeline_pick(tl, false, knobs), best);
	expected = best;
	if (tl->curr && (exact_eligible(x, tl->curr) || tl->early) &&
	    (s64)(tl->curr->vruntime - tl->curr->vprot) < 0)
		expected = tl->curr;
	if (tl->next && knobs->PICK_BUDDY && exact_lag(x, tl->next) + tl->advance * x->weight >= 0)
		expected = tl->next;
	if (x->n > 1)
		assert_ptr_equal(timeline_pick(tl, true, knobs), expected);

	floor_v = x->sum >= 0 ? x->sum / x->weight : -((-x->sum + x->weight - 1) / x->weight);
	assert_int_equal(timeline_avg(tl), x->base + (u64)floor_v);

	for (u32 i = 0; i < x->n; i++) {
		s64 lag = exact_lag_ns(x, x->se[i]);

		assert_false(x->se[i]->rel_deadline);
		/* A request never ends further away than one slice, nor in the past of v. */
		assert_true((s64)(x->se[i]->deadline - x->se[i]->vruntime) >= 0);
		lag = lag < 0 ? -lag : lag;
		if (lag > s->worst_lag)
			s->worst_lag = lag;
		if (x->se[i]->child)
			check_timeline_exact(s, x->se[i]->child);
		exact_read(x, tl);
	}
}

/* Brings the ledger of pCPU @cpu up to now, before anything there changes. */
static void book(struct scenario *s, u32 cpu)
{
	struct world *w = s->w;
	struct run_queue *rq = &w->rqs[cpu];
	u64 dt = w->now - s->clock[cpu];
	double load = 0;

	s->clock[cpu] = w->now;
	if (!dt)
		return;
	for (u32 i = 0; i < w->nr_vcpus; i++) {
		struct sched_vcpu *v = &w->vcpus[i];

		if (v->cpu == cpu && (v->state == SCHED_QUEUED || v->state == SCHED_RUNNING))
			load += (double)v->contrib;
	}
	for (u32 i = 0; i < w->nr_vcpus; i++) {
		struct sched_vcpu *v = &w->vcpus[i];

		if (v->cpu != cpu || (v->state != SCHED_QUEUED && v->state != SCHED_RUNNING))
			continue;
		s->led[i].runnable_ns += dt;
		s->led[i].ideal += (double)dt * (double)v->contrib / load;
		if (rq->curr == v)
			s->led[i].run_ns += dt;
	}
}

static void check_books(struct scenario *s)
{
	struct world *w = s->w;

	for (u32 i = 0; i < w->nr_vcpus; i++) {
		struct sched_vcpu *v = &w->vcpus[i];
		struct run_queue *rq = begin(w, v->cpu);
		u64 delay = sched_run_delay_ns(rq, v), ran = sched_run_ns(rq, v);

		if (v->state == SCHED_QUEUED || v->state == SCHED_RUNNING) {
			sched_update_curr(rq);
			account_settle(rq, v);
		}
		end(rq);
		assert_int_equal(ran, s->led[i].run_ns);
		/* Steal: runnable and not running, to the nanosecond. */
		assert_int_equal(ran + delay, s->led[i].runnable_ns);
		near((double)v->fair.err_ns, (double)ran - s->led[i].ideal,
		     5000 + (double)ran / 100000);
		assert_true(v->fair.err_max_ns >= (u64)llabs(v->fair.err_ns));
	}
	for (u32 c = 0; c < w->nr_rqs; c++) {
		struct run_queue *rq = &w->rqs[c];
		u64 idle = rq->idle_ns + (rq->idle ? w->now - rq->idle_since : 0);

		assert_int_equal(rq->stats.run_ns + idle, w->now - SEC);
	}
}

static struct sched_vcpu *random_vcpu(struct world *w, u32 state, u32 cpu)
{
	u32 start = (u32)rnd(w, w->nr_vcpus);

	for (u32 i = 0; i < w->nr_vcpus; i++) {
		struct sched_vcpu *v = &w->vcpus[(start + i) % w->nr_vcpus];

		if (v->state == state && (cpu == SCHED_NO_CPU || v->cpu == cpu))
			return v;
	}
	return NULL;
}

/* The lag with which @v left is the lag that it has after it is back. */
static void wake_checked(struct scenario *s, struct sched_vcpu *v, u32 cpu)
{
	struct world *w = s->w;
	bool delayed = v->se.on_rq, fresh = !v->rq;
	s64 vlag = v->se.vlag;
	u64 weight = v->se.weight;
	struct sched_timeline *tl;
	struct run_queue *rq;

	book(s, v->cpu);
	book(s, cpu);
	rq = begin(w, v->cpu);
	assert_true(sched_wake_claim(rq, v, cpu));
	end(rq);
	rq = begin(w, v->cpu);
	sched_wake(rq, v);
	tl = v->se.timeline;
	if (!delayed && !fresh && w->knobs.PLACE_LAG && tl->nr_queued > 1) {
		s64 v_minus = (s64)(timeline_avg(tl) - v->se.vruntime);

		near((double)v_minus * (double)v->se.weight, (double)vlag * (double)weight,
		     3.0 * (double)(v->se.weight + weight));
	}
	end(rq);
	check_timeline_exact(s, &rq->root);
}

/* Saved lag is within its bound, always. */
static void check_saved(struct scenario *s, struct sched_vcpu *v, u64 max_slice)
{
	u64 limit = calc_delta_fair(max_slice + s->w->knobs.tick_ns, &v->se);

	assert_true(v->se.on_rq || (u64)llabs(v->se.vlag) <= limit + 2);
}

static void pick_checked(struct scenario *s, u32 cpu)
{
	struct world *w = s->w;
	struct sched_vcpu *next;

	book(s, cpu);
	next = pick(w, cpu);
	assert_ptr_equal(next, w->rqs[cpu].curr);
	assert_true(!next || (next->state == SCHED_RUNNING && next->cpu == cpu));
	/* Work conserving: idle only if nobody is runnable. */
	assert_true(next || !w->rqs[cpu].nr_running);
	for (u32 i = 0; i < w->nr_vcpus; i++) {
		struct sched_vcpu *v = &w->vcpus[i];

		if (v->state == SCHED_QUEUED && v->cpu == cpu &&
		    w->now - v->wait_start > s->worst_wait)
			s->worst_wait = w->now - v->wait_start;
	}
	check_timeline_exact(s, &w->rqs[cpu].root);
}

static void random_knob(struct world *w)
{
	static const char *const names[] = {"PLACE_LAG",	  "PLACE_DEADLINE_INITIAL",
					    "PLACE_REL_DEADLINE", "RUN_TO_PARITY",
					    "PREEMPT_SHORT",	  "PICK_BUDDY",
					    "DELAY_DEQUEUE",	  "DELAY_ZERO",
					    "WAKEUP_PREEMPTION",  "YIELD_TO_LAG_CREDIT"};
	static const char *const policies[] = {"forfeit", "deboost", "credit", "transfer", "auto"};
	static const char *const cross[] = {"off", "boost", "pull"};

	assert_int_equal(sched_knob_set(&w->knobs, names[rnd(w, ARRAY_SIZE(names))],
					chance(w, 75) ? "on" : "off"),
			 0);
	sched_knob_set(&w->knobs, "yield_policy", policies[rnd(w, 5)]);
	sched_knob_set(&w->knobs, "yield_cross_rq", cross[rnd(w, 3)]);
}

static void step(struct scenario *s, bool knobs_change, bool modes_change)
{
	struct world *w = s->w;
	u32 cpu = (u32)rnd(w, w->nr_rqs);
	struct run_queue *rq = &w->rqs[cpu];
	struct sched_vcpu *v, *t;
	u64 op = rnd(w, 100), stop = sched_slice_end(rq), longest;

	/* Time goes on: to the end of a slice, or some way into it. */
	if (stop > w->now && stop - w->now < 200 * MSEC && chance(w, 60))
		w->now = stop;
	else
		w->now += rnd(w, chance(w, 90) ? 300 * USEC : 5 * MSEC);
	for (u32 c = 0; c < w->nr_rqs; c++) {
		if (w->now >= sched_slice_end(&w->rqs[c]))
			pick_checked(s, c);
	}

	if (op < 30) {
		pick_checked(s, cpu);
	} else if (op < 45 && rq->curr) {
		book(s, cpu);
		v = rq->curr;
		longest = timeline_max_slice(v->se.timeline);
		block(w, cpu);
		check_saved(s, v, longest);
		check_timeline_exact(s, &rq->root);
	} else if (op < 65) {
		v = random_vcpu(w, SCHED_BLOCKED, SCHED_NO_CPU);
		if (v)
			wake_checked(s, v, cpu);
	} else if (op < 75) {
		v = random_vcpu(w, SCHED_QUEUED, SCHED_NO_CPU);
		if (v && v->cpu != cpu) {
			u32 from = v->cpu;

			book(s, from);
			book(s, cpu);
			migrate(w, v, cpu);
			check_timeline_exact(s, &w->rqs[from].root);
			check_timeline_exact(s, &rq->root);
		}
	} else if (op < 92 && rq->curr) {
		t = random_vcpu(w, SCHED_QUEUED, chance(w, 80) ? cpu : SCHED_NO_CPU);
		if (t) {
			u32 from = t->cpu;

			book(s, cpu);
			book(s, from);
			yield_to(w, rq->curr, t);
			check_timeline_exact(s, &w->rqs[from].root);
			pick_checked(s, cpu);
		}
	} else if (op < 94 && rq->curr) {
		book(s, cpu);
		begin(w, cpu);
		sched_yield_self(rq);
		end(rq);
		check_timeline_exact(s, &rq->root);
	} else if (op < 96) {
		v = &w->vcpus[rnd(w, w->nr_vcpus)];
		book(s, v->cpu);
		longest = v->se.on_rq ? timeline_max_slice(v->se.timeline) : 100 * MSEC;
		take_off(w, v);
		check_saved(s, v, longest);
		pick_checked(s, v->cpu);
	} else if (op < 98) {
		sched_group_set_weight(&w->groups[rnd(w, w->nr_groups)], 256u << rnd(w, 5));
		v = &w->vcpus[rnd(w, w->nr_vcpus)];
		book(s, v->cpu);
		begin(w, v->cpu);
		sched_vcpu_set_weight(&w->rqs[v->cpu], v, 512u << rnd(w, 3));
		end(&w->rqs[v->cpu]);
		check_timeline_exact(s, &w->rqs[v->cpu].root);
	} else if (knobs_change) {
		random_knob(w);
		if (modes_change && chance(w, 20))
			w->knobs.sched_mode = (u32)rnd(w, 3);
	}
}

static void run_scenario(u64 seed, u32 mode, bool knobs_change, bool modes_change, u64 nr_steps)
{
	struct scenario *s = calloc(1, sizeof(*s));
	struct world *w = s->w = world_new(3);

	w->seed ^= seed * 0x9e3779b97f4a7c15ull;
	w->knobs.sched_mode = mode;
	for (u32 g = 0; g < 7; g++) {
		struct sched_group *group = world_group(w, 256u << rnd(w, 5));

		for (u32 i = 0; i <= g % 5; i++)
			world_vcpu(w, group, (u32)rnd(w, 3),
				   chance(w, 70) ? 0 : 200 * USEC + rnd(w, 4 * MSEC));
	}
	for (u32 c = 0; c < 3; c++)
		s->clock[c] = w->now;
	for (u64 i = 0; i < nr_steps; i++) {
		step(s, knobs_change, modes_change);
		if (i % 256 == 0) {
			for (u32 c = 0; c < 3; c++)
				book(s, c);
			for (u32 c = 0; c < 3; c++) {
				begin(w, c);
				sched_update_curr(&w->rqs[c]);
				end(&w->rqs[c]);
			}
			check_books(s);
		}
	}
	print_message(
	    "  seed %llu: %.1f s of machine time, worst lag %lld us, worst wait %llu us\n",
	    (unsigned long long)seed, (double)(w->now - SEC) / 1e9, (long long)s->worst_lag / 1000,
	    (unsigned long long)s->worst_wait / 1000);
	/* Twice the legal bound of saved lag (longest slice 4.2 ms, tick 1 ms), and 5 ms by which
	   the steps above may overrun a slice. */
	assert_true(s->worst_lag < (s64)(2 * (4200 + 1000) * USEC + 5 * MSEC));
	/* Weights differ by a factor of 32, up to 21 vCPUs may crowd on one pCPU. */
	assert_true(s->worst_wait < SEC);
	free(w);
	free(s);
}

static void properties_hold_in_vcpu_mode(void **state)
{
	run_scenario(1, SCHED_MODE_VCPU, false, false, steps(170000));
}

static void properties_hold_in_group_mode(void **state)
{
	run_scenario(2, SCHED_MODE_GROUP, false, false, steps(170000));
}

static void properties_hold_in_flat_mode(void **state)
{
	run_scenario(3, SCHED_MODE_FLAT, false, false, steps(170000));
}

static void properties_hold_while_knobs_change(void **state)
{
	for (u64 seed = 10; seed < 13; seed++)
		run_scenario(seed, SCHED_MODE_VCPU, true, false, steps(170000));
}

static void properties_hold_while_modes_change(void **state)
{
	for (u64 seed = 20; seed < 23; seed++)
		run_scenario(seed, SCHED_MODE_VCPU, true, true, steps(170000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(properties_hold_in_vcpu_mode),
	    cmocka_unit_test(properties_hold_in_group_mode),
	    cmocka_unit_test(properties_hold_in_flat_mode),
	    cmocka_unit_test(properties_hold_while_knobs_change),
	    cmocka_unit_test(properties_hold_while_modes_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
