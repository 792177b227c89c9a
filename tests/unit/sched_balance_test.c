// SPDX-License-Identifier: BSD-2-Clause
// Placement and balancing: where a vCPU wakes up, what an idle pCPU pulls, what the periodic pass
// moves, and that affinity is never broken.
// sources: hv/sched/rq.c hv/sched/pick.c hv/sched/core.c hv/sched/account.c
// sources: hv/sched/yield.c hv/sched/balance.c hv/sched/knobs.c hv/lib/fmt.c hv/lib/knob.c
#include "tests/sim/world.h"

static void allow(struct world *w, struct sched_vcpu *v, u64 mask)
{
	w->affinity[v - w->vcpus][0] = mask;
}

/* ---- wake-up ---- */

static void a_wakeup_prefers_the_last_pcpu_if_it_is_idle(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v = world_single(w, 1024, 2);
	u64 idle = 0xf, online = 0xff;

	assert_int_equal(sched_select_cpu(&w->knobs, v, &idle, &online, 8), 2);
	free(w);
}

static void else_an_idle_one_else_the_last(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v = world_single(w, 1024, 2);
	u64 idle = BIT(1) | BIT(6), online = 0xff, none = 0;

	assert_int_equal(sched_select_cpu(&w->knobs, v, &idle, &online, 8), 6); /* from 2 on */
	idle = BIT(1);
	assert_int_equal(sched_select_cpu(&w->knobs, v, &idle, &online, 8), 1);
	assert_int_equal(sched_select_cpu(&w->knobs, v, &none, &online, 8), 2);
	/* balance=off: always the last one. */
	w->knobs.balance = SCHED_BALANCE_OFF;
	assert_int_equal(sched_select_cpu(&w->knobs, v, &idle, &online, 8), 2);
	free(w);
}

static void a_wakeup_respects_affinity_and_what_is_online(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v = world_single(w, 1024, 2);
	u64 idle = 0xff, online = 0xff, none = 0;

	allow(w, v, BIT(5) | BIT(7));
	assert_int_equal(sched_select_cpu(&w->knobs, v, &idle, &online, 8), 5);
	assert_int_equal(sched_select_cpu(&w->knobs, v, &none, &online, 8), 5);
	w->knobs.balance = SCHED_BALANCE_OFF;
	assert_int_equal(sched_select_cpu(&w->knobs, v, &none, &online, 8), 5);
	online = 0x80;
	assert_int_equal(sched_select_cpu(&w->knobs, v, &idle, &online, 8), 7);
	online = 0x0f;
	assert_int_equal(sched_select_cpu(&w->knobs, v, &idle, &online, 8), SCHED_NO_CPU);
	/* Bits beyond the last pCPU mean nothing. */
	online = UINT64_MAX;
	allow(w, v, BIT(40));
	assert_int_equal(sched_select_cpu(&w->knobs, v, &idle, &online, 8), SCHED_NO_CPU);
	free(w);
}

static void selection_agrees_with_a_plain_search_on_a_large_machine(void **state)
{
	struct world *w = world_new(1);
	struct sched_vcpu *v = world_single(w, 1024, 0);
	u64 idle[4], online[4], affinity[4];

	for (u32 round = 0; round < 20000; round++) {
		u32 nr = 1 + (u32)rnd(w, 256), last = (u32)rnd(w, nr), got, want = SCHED_NO_CPU;
		u32 sparse = (u32)rnd(w, 3);

		for (u32 i = 0; i < 4; i++) {
			idle[i] = rnd(w, UINT64_MAX) & rnd(w, UINT64_MAX);
			online[i] = rnd(w, UINT64_MAX) | rnd(w, UINT64_MAX);
			affinity[i] = rnd(w, UINT64_MAX);
			for (u32 k = 0; k < sparse; k++)
				affinity[i] &= rnd(w, UINT64_MAX) & rnd(w, UINT64_MAX);
		}
		v->affinity = affinity;
		v->cpu = last;
		got = sched_select_cpu(&w->knobs, v, idle, online, nr);
		for (u32 pass = 0; pass < 2 && want == SCHED_NO_CPU; pass++) {
			for (u32 i = 0; i < nr && want == SCHED_NO_CPU; i++) {
				u32 c = (last + i) % nr;

				if (bit_test(online, c) && bit_test(affinity, c) &&
				    (pass || bit_test(idle, c)))
					want = c;
			}
		}
		assert_int_equal(got, want);
	}
	free(w);
}

/* ---- idle pull ---- */

static struct sched_vcpu *pull(struct world *w, u32 to)
{
	u64 tried[1] = {0};
	struct sched_vcpu *v = NULL;
	u32 from;

	while (!v && (from = sched_pull_source(w->rq_ptrs, w->nr_rqs, to, tried)) != SCHED_NO_CPU) {
		struct run_queue *a = begin(w, from), *b = begin(w, to);

		assert_int_not_equal(from, to);
		v = sched_pull(a, b);
		end(a);
		end(b);
	}
	return v;
}

static void an_idle_pcpu_pulls_from_the_busiest(void **state)
{
	struct world *w = world_new(4);
	struct sched_vcpu *v;

	for (u32 i = 0; i < 2; i++)
		wake(w, world_single(w, 1024, 1), 1);
	for (u32 i = 0; i < 4; i++)
		wake(w, world_single(w, 1024, 3), 3);
	pick(w, 1);
	pick(w, 3);
	v = pull(w, 0);
	assert_non_null(v);
	assert_int_equal(v->cpu, 0);
	assert_int_equal(w->rqs[3].nr_running, 3);
	assert_ptr_equal(pick(w, 0), v);
	/* Not idle any more: nothing more. */
	assert_null(pull(w, 0));
	free(w);
}

static void a_lone_running_vcpu_is_not_pulled(void **state)
{
	struct world *w = world_new(2);

	wake(w, world_single(w, 1024, 1), 1);
	pick(w, 1);
	assert_null(pull(w, 0));
	w->knobs.balance = SCHED_BALANCE_OFF;
	wake(w, world_single(w, 1024, 1), 1);
	assert_null(pull(w, 0));
	free(w);
}

static void pull_takes_who_waits_longest_and_may_come(void **state)
{
	struct world *w = world_new(3);
	struct sched_vcpu *pinned = world_single(w, 1024, 1), *old = world_single(w, 1024, 1);
	struct sched_vcpu *young = world_single(w, 1024, 1), *first = world_single(w, 1024, 1);

	allow(w, pinned, BIT(1));
	wake(w, first, 1);
	pick(w, 1);
	wake(w, pinned, 1);
	w->now += 20 * USEC;
	wake(w, old, 1);
	w->now += 20 * USEC;
	wake(w, young, 1);
	assert_ptr_equal(pull(w, 0), old);
	assert_ptr_equal(pull(w, 2), young);
	pick(w, 0);
	block(w, 0);
	/* Only the pinned one is left waiting. */
	assert_null(pull(w, 0));
	free(w);
}

static void pull_goes_on_to_the_next_busiest_if_nobody_may_come(void **state)
{
	struct world *w = world_new(3);
	struct sched_vcpu *v;

	for (u32 i = 0; i < 4; i++) {
		v = world_single(w, 1024, 1);
		allow(w, v, BIT(1));
		wake(w, v, 1);
	}
	for (u32 i = 0; i < 2; i++)
		wake(w, world_single(w, 1024, 2), 2);
	v = pull(w, 0);
	assert_non_null(v);
	assert_int_equal(w->rqs[2].nr_running, 1);
	free(w);
}

static void pull_finds_vcpus_inside_groups(void **state)
{
	struct world *w = world_new(2);
	struct sched_group *vm = world_group(w, 1024);

	w->knobs.sched_mode = SCHED_MODE_GROUP;
	wake(w, world_vcpu(w, vm, 1, 0), 1);
	wake(w, world_vcpu(w, vm, 1, 0), 1);
	pick(w, 1); /* the VM is current on the root: its other vCPU is in no root tree */
	assert_non_null(pull(w, 0));
	free(w);
}

/* ---- the periodic pass ---- */

static struct sched_vcpu *balance(struct world *w, u32 me)
{
	u32 from = sched_balance_source(w->rq_ptrs, w->nr_rqs, me, w->now);
	struct sched_vcpu *v = NULL;

	if (from != SCHED_NO_CPU) {
		struct run_queue *a = begin(w, from), *b = begin(w, me);

		v = sched_balance_pull(a, b);
		end(a);
		end(b);
	}
	return v;
}

static void run_balanced(struct world *w, u64 ns)
{
	u64 until = w->now + ns;

	while (w->now < until) {
		w->now += 350 * USEC;
		for (u32 c = 0; c < w->nr_rqs; c++) {
			if (sched_balance_due(&w->rqs[c], w->now))
				balance(w, c);
			if (!pick(w, c) && pull(w, c))
				pick(w, c);
		}
	}
}

static void the_pass_evens_out_the_load(void **state)
{
	struct world *w = world_new(3);

	for (u32 i = 0; i < 9; i++)
		wake(w, world_single(w, 1024, 0), 0);
	for (u32 c = 0; c < 3; c++)
		pick(w, c);
	run_balanced(w, 100 * MSEC);
	for (u32 c = 0; c < 3; c++)
		assert_int_equal(w->rqs[c].nr_running, 3);
	free(w);
}

static void the_pass_weighs(void **state)
{
	struct world *w = world_new(2);
	u64 a, b;

	/* 3072 + 1024 + 1024 + 1024: the heavy one is as much as the three others. */
	wake(w, world_single(w, 3072, 0), 0);
	for (u32 i = 0; i < 3; i++)
		wake(w, world_single(w, 1024, 0), 0);
	run_balanced(w, 200 * MSEC);
	a = w->rqs[0].load;
	b = w->rqs[1].load;
	assert_int_equal(a, b);
	free(w);
}

static void three_on_two_take_turns(void **state)
{
	struct world *w = world_new(2);

	for (u32 i = 0; i < 3; i++)
		wake(w, world_single(w, 1024, i % 2), i % 2);
	run_balanced(w, 6 * SEC);
	for (u32 i = 0; i < 3; i++)
		assert_in_range(w->vcpus[i].stats.run_ns, 39 * SEC / 10, 41 * SEC / 10);
	/* In their time: a move every balance_rotate_ns or so, not at every pass. */
	assert_true(w->vcpus[0].stats.nr_migrations + w->vcpus[1].stats.nr_migrations +
			w->vcpus[2].stats.nr_migrations <
		    6 * SEC / w->knobs.balance_rotate_ns + 10);
	free(w);
}

static void without_full_the_pass_does_nothing(void **state)
{
	static const u32 policies[] = {SCHED_BALANCE_OFF, SCHED_BALANCE_IDLE};

	for (u32 p = 0; p < 2; p++) {
		struct world *w = world_new(2);

		w->knobs.balance = policies[p];
		for (u32 i = 0; i < 4; i++)
			wake(w, world_single(w, 1024, 0), 0);
		for (u32 i = 0; i < 20; i++) {
			w->now += 10 * MSEC;
			assert_null(balance(w, 1));
		}
		free(w);
	}
}

static void affinity_is_never_broken(void **state)
{
	u64 n = steps(60000);

	for (u32 mode = 0; mode < 3; mode++) {
		struct world *w = world_new(6);

		w->knobs.sched_mode = mode;
		w->knobs.balance_rotate_ns = 6 * MSEC;
		sched_knob_set(&w->knobs, "yield_cross_rq", "pull");
		for (u32 g = 0; g < 6; g++) {
			struct sched_group *vm = world_group(w, 512u << rnd(w, 3));

			for (u32 i = 0; i < 4; i++) {
				struct sched_vcpu *v = world_vcpu(w, vm, 0, 0);

				allow(w, v, 1 + rnd(w, 63));
				v->cpu = (u32)ffs64(v->affinity[0]);
			}
		}
		for (u64 i = 0; i < n / 3; i++) {
			u64 idle = 0, online = 0x3f;
			struct sched_vcpu *v = &w->vcpus[rnd(w, w->nr_vcpus)];
			u32 c = (u32)rnd(w, 6);

			w->now += rnd(w, 400 * USEC);
			for (u32 k = 0; k < 6; k++)
				idle |= w->rqs[k].curr ? 0 : BIT(k);
			if (v->state == SCHED_BLOCKED)
				wake(w, v, sched_select_cpu(&w->knobs, v, &idle, &online, 6));
			if (sched_balance_due(&w->rqs[c], w->now))
				balance(w, c);
			if (!pick(w, c) && pull(w, c))
				pick(w, c);
			if (w->rqs[c].curr && chance(w, 30)) {
				v = &w->vcpus[rnd(w, w->nr_vcpus)];
				yield_to(w, w->rqs[c].curr, v);
				pick(w, c);
			}
			if (w->rqs[c].curr && chance(w, 30))
				block(w, c);
			for (u32 k = 0; k < 6; k++) {
				if (w->rqs[k].curr)
					assert_true(sched_cpu_allowed(w->rqs[k].curr, k));
			}
			for (u32 k = 0; k < w->nr_vcpus; k++)
				assert_true(sched_cpu_allowed(&w->vcpus[k], w->vcpus[k].cpu));
		}
		free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_wakeup_prefers_the_last_pcpu_if_it_is_idle),
	    cmocka_unit_test(else_an_idle_one_else_the_last),
	    cmocka_unit_test(a_wakeup_respects_affinity_and_what_is_online),
	    cmocka_unit_test(selection_agrees_with_a_plain_search_on_a_large_machine),
	    cmocka_unit_test(an_idle_pcpu_pulls_from_the_busiest),
	    cmocka_unit_test(a_lone_running_vcpu_is_not_pulled),
	    cmocka_unit_test(pull_takes_who_waits_longest_and_may_come),
	    cmocka_unit_test(pull_goes_on_to_the_next_busiest_if_nobody_may_come),
	    cmocka_unit_test(pull_finds_vcpus_inside_groups),
	    cmocka_unit_test(the_pass_evens_out_the_load),
	    cmocka_unit_test(the_pass_weighs),
	    cmocka_unit_test(three_on_two_take_turns),
	    cmocka_unit_test(without_full_the_pass_does_nothing),
	    cmocka_unit_test(affinity_is_never_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
