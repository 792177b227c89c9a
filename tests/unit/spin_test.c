/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom a spinner yields to, for each candidate policy, under run states that the test scripts. */
// sources: hv/spin/spin.c hv/spin/policy.c hv/spin/ple.c hv/spin/knobs.c hv/apic/ipi_track.c
// sources: hv/lib/fmt.c hv/lib/knob.c
#include "tests/unit/spin_fixture.h"

#define ALL_POLICIES                                                                               \
	enum spin_policy_id policy = 0;                                                            \
	policy < SPIN_POLICIES;                                                                    \
	policy++
#define V 0x40
#define W 0x51

/* ---- every policy ---- */

static void a_vm_of_one_has_no_candidate(void **state)
{
	for (ALL_POLICIES) {
		vm_of(1, policy);
		run(0);
		assert_string_equal(candidates(0, true), "");
		assert_int_equal(vcpu[0].stats.spin_none, 1);
		assert_false(vcpu[0].spinning);
	}
}

static void a_running_vcpu_is_never_chosen(void **state)
{
	static const u32 sizes[] = {2, 64, 65, 256};

	for (ALL_POLICIES) {
		for (u32 s = 0; s < ARRAY_SIZE(sizes); s++) {
			vm_of(sizes[s], policy);
			for (u32 i = 0; i < sizes[s]; i++) {
				wake(i);
				run(i);
				if (i)
					ipi(0, i, V);
			}
			spin_hint(&vcpu[0], 1, now);
			assert_string_equal(candidates(0, true), "");
			assert_string_equal(candidates(0, false), "");
			assert_int_equal(vcpu[0].stats.spin_none, 2);
		}
	}
}

static void a_blocked_vcpu_is_never_chosen(void **state)
{
	for (ALL_POLICIES) {
		vm_of(3, policy);
		run(0);
		wake(1);
		run(1); /* and it halts: no call */
		ipi(0, 1, V);
		assert_string_equal(candidates(0, true), "");
	}
}

static void a_removed_vcpu_is_never_chosen(void **state)
{
	for (ALL_POLICIES) {
		vm_of(3, policy);
		run(0);
		wake(1);
		ipi(0, 1, V);
		spin_removed(&vcpu[1]);
		spin_removed(&vcpu[2]); /* was not there: nothing happens */
		assert_string_equal(candidates(0, true), "");
		wake(1);
		assert_int_equal(yield_from(0, true), 1);
	}
}

static void a_woken_vcpu_that_never_ran_is_chosen(void **state)
{
	static const u32 sizes[] = {2, 64, 256};

	for (ALL_POLICIES) {
		for (u32 s = 0; s < ARRAY_SIZE(sizes); s++) {
			u32 last = sizes[s] - 1;

			vm_of(sizes[s], policy);
			run(0);
			wake(last);
			assert_int_equal(yield_from(0, true), last);
			assert_int_equal(vcpu[0].stats.dy_woken, 1);
			assert_int_equal(vcpu[0].stats.dy_woken_hit, 1);
			assert_int_equal(vcpu[0].stats.directed_yield_successful, 1);
		}
	}
}

static void preempted_in_kernel_is_found_without_any_ipi(void **state)
{
	for (ALL_POLICIES) {
		vm_of(8, policy);
		for (u32 i = 0; i < 8; i++)
			run(i);
		preempt_user(1);
		preempt_user(2);
		preempt_kernel(5);
		preempt_user(7);
		assert_int_equal(yield_from(0, true), 5);
		assert_int_equal(vcpu[0].stats.dy_kernel_hit, 1);
	}
}

static void an_interrupt_that_waits_counts_as_kernel_mode(void **state)
{
	for (ALL_POLICIES) {
		vm_of(8, policy);
		for (u32 i = 0; i < 8; i++)
			run(i);
		preempt_user(1);
		preempt_user(6);
		spin_interrupt(&vcpu[6]);
		preempt_user(7);
		knobs.enable_relaxed_boost = false;
		assert_string_equal(candidates(0, true), "6:pending");
		assert_true(vcpu[0].stats.dy_skipped_cpl > 0);
	}
}

static void an_interrupt_pending_before_it_leaves_is_seen_by_the_look_after(void **state)
{
	vm_of(4, SPIN_POLICY_EXACT);
	run(0);
	run(1);
	spin_interrupt(&vcpu[1]); /* it runs: nothing is noted */
	assert_int_equal(vm.pending[0], 0);
	preempt_user(1);
	spin_interrupt(&vcpu[1]); /* the edge's look */
	assert_string_equal(candidates(0, true), "1:pending");
	run(1); /* takes it */
	preempt_user(1);
	assert_string_equal(candidates(0, true), "1:relaxed");
}

static void a_spinner_in_user_mode_asks_nobody_for_kernel_mode(void **state)
{
	for (ALL_POLICIES) {
		vm_of(4, policy);
		for (u32 i = 0; i < 4; i++)
			run(i);
		preempt_user(2);
		assert_string_equal(candidates(0, false), "2:preempted");
		assert_int_equal(vcpu[0].stats.spin_user, 1);
		assert_int_equal(vcpu[0].stats.dy_skipped_cpl, 0);
	}
}

static void relaxed_boost_is_a_switch(void **state)
{
	for (ALL_POLICIES) {
		vm_of(4, policy);
		for (u32 i = 0; i < 4; i++)
			run(i);
		preempt_user(2);
		assert_string_equal(candidates(0, true),
				    policy == SPIN_POLICY_KVM ? "" : "2:relaxed");
		knobs.enable_relaxed_boost = false;
		assert_string_equal(candidates(0, true), "");
	}
}

static void tries_end_a_search(void **state)
{
	static const struct {
		u32 n, three, log2, min8;
	} rows[] = {{2, 1, 1, 1}, {8, 3, 3, 7}, {64, 3, 6, 8}, {127, 3, 7, 8}, {256, 3, 8, 8}};

	for (ALL_POLICIES) {
		for (u32 r = 0; r < ARRAY_SIZE(rows); r++) {
			for (u32 tries = 0; tries < 3; tries++) {
				u32 want = tries == SPIN_TRIES_3      ? rows[r].three
					   : tries == SPIN_TRIES_LOG2 ? rows[r].log2
								      : rows[r].min8;
				vm_of(rows[r].n, policy);
				knobs.dy_tries = tries;
				run(0);
				for (u32 i = 1; i < rows[r].n; i++)
					wake(i);
				candidates(0, true);
				assert_int_equal(vcpu[0].stats.directed_yield_attempted, want);
				assert_int_equal(vcpu[0].stats.spin_none, 0);
			}
		}
	}
}

/* No candidate is offered twice in a search, whatever it is good for. */
static void nobody_is_tried_twice(void **state)
{
	for (ALL_POLICIES) {
		vm_of(4, policy);
		knobs.dy_tries = SPIN_TRIES_LOG2;
		for (u32 i = 0; i < 4; i++)
			run(i);
		preempt_user(1);
		preempt_kernel(2);
		ipi(0, 1, V);
		ipi(0, 2, V);
		ipi(0, 2, W);
		spin_hint(&vcpu[0], 2, now);
		candidates(0, true);
		assert_int_equal(vcpu[0].stats.directed_yield_attempted, 2);
	}
}

static void a_yield_that_worked_ends_the_search(void **state)
{
	for (ALL_POLICIES) {
		struct spin_walk w;

		vm_of(8, policy);
		run(0);
		wake(3);
		wake(4);
		assert_true(spin_start(&w, &vcpu[0], true, 777, now));
		assert_true(spin_next(&w));
		spin_tried(&w, true, true);
		assert_false(spin_next(&w));
		spin_stop(&w, true);
		assert_int_equal(vcpu[0].stats.dy_cross_rq, 1);
		assert_int_equal(vcpu[0].stats.spin_given, 1);
		assert_int_equal(vcpu[0].stats.spin_ticks, 777);
	}
}

/* What runs elsewhere is stopped for a spinner only by the policies of others, or if nobody waits
 * here. */
static void only_exact_spares_other_run_queues(void **state)
{
	for (ALL_POLICIES) {
		struct spin_walk w;

		vm_of(8, policy);
		run(0);
		wake(3);
		assert_true(spin_start(&w, &vcpu[0], true, 0, now));
		for (u32 class = 0; class < SPIN_NR_CLASSES; class ++) {
			bool guess = class == SPIN_CLASS_SPINNER || class == SPIN_CLASS_RELAXED;

			w.class = class;
			assert_true(spin_may_cross(&w, 1));
			assert_int_equal(spin_may_cross(&w, 2),
					 policy != SPIN_POLICY_EXACT || !guess);
		}
		spin_stop(&w, false);
	}
}

/* ---- exact and ipi: whom the spinner waits for ---- */

/* The guest of the issue: A sends to B and spins; B, C, D wait on the same pCPU, C and D longer. */
static void the_receiver_runs_next_every_time(void **state)
{
	for (enum spin_policy_id policy = SPIN_POLICY_IPI; policy < SPIN_POLICIES; policy++) {
		vm_of(4, policy);
		for (u32 round = 0; round < 100; round++) {
			u32 b = 1 + round % 3;

			for (u32 i = 0; i < 4; i++)
				run(i);
			for (u32 i = 1; i < 4; i++) {
				if (i != b)
					preempt_kernel(i);
			}
			preempt_user(b);
			ipi(0, b, V);
			assert_int_equal(yield_from(0, true), b);
			ipi_track_accept(&track[b], V, now);
			ipi_track_eoi(&track[b], V, now);
			assert_int_equal(vcpu[0].stats.dy_receiver_hit, round + 1);
		}
	}
}

static void the_kvm_policy_does_not_know_receivers(void **state)
{
	vm_of(4, SPIN_POLICY_KVM);
	for (u32 i = 0; i < 4; i++)
		run(i);
	preempt_user(3);
	preempt_kernel(1);
	preempt_kernel(2);
	ipi(0, 3, V);
	assert_int_equal(yield_from(0, true), 1);
	assert_int_equal(vcpu[0].stats.dy_receiver, 0);
}

static void several_outstanding_among_64_are_tried_oldest_first(void **state)
{
	vm_of(64, SPIN_POLICY_EXACT);
	for (u32 i = 0; i < 64; i++) {
		run(i);
		if (i)
			preempt_kernel(i);
	}
	ipi(0, 40, V);
	now++;
	ipi(0, 7, V);
	now++;
	ipi(0, 63, W);
	now++;
	ipi(0, 20, W);
	run(40); /* is served by now */
	assert_string_equal(candidates(0, true), "7:receiver 63:receiver 20:receiver");
	ipi_track_accept(&track[7], V, now);
	ipi_track_eoi(&track[7], V, now);
	assert_int_equal(yield_from(0, true), 63);
	assert_int_equal(vcpu[0].stats.dy_receiver_hit, 1);
}

static void the_ipi_policy_takes_receivers_round_robin(void **state)
{
	vm_of(64, SPIN_POLICY_IPI);
	for (u32 i = 0; i < 64; i++) {
		run(i);
		if (i)
			preempt_kernel(i);
	}
	ipi(0, 40, V);
	ipi(0, 7, V);
	ipi(0, 63, W);
	assert_string_equal(candidates(0, true), "7:receiver 40:receiver 63:receiver");
	assert_int_equal(yield_from(0, true), 7);
	preempt_kernel(7);
	run(0);
	assert_string_equal(candidates(0, true), "40:receiver 63:receiver 7:receiver");
}

static void who_waits_for_me_is_not_whom_i_wait_for(void **state)
{
	for (enum spin_policy_id policy = SPIN_POLICY_IPI; policy < SPIN_POLICIES; policy++) {
		vm_of(4, policy);
		for (u32 i = 0; i < 4; i++)
			run(i);
		ipi(3, 0, V);
		ipi(0, 2, V);
		preempt_kernel(3);
		preempt_kernel(2);
		ipi_track_accept(&track[0], V, now); /* my acknowledgement of 3's */
		ipi_track_eoi(&track[0], V, now);
		assert_int_equal(yield_from(0, true), 2);
		assert_int_equal(vcpu[0].stats.dy_receiver, 1);
	}
}

static void stale_entries_are_ignored_and_counted(void **state)
{
	for (enum spin_policy_id policy = SPIN_POLICY_IPI; policy < SPIN_POLICIES; policy++) {
		vm_of(64, policy);
		for (u32 i = 0; i < 64; i++) {
			run(i);
			if (i > 30)
				preempt_kernel(i);
		}
		ipi_track_sent(&track[0], &track[50], V, now);
		ipi_track_sent(&track[0], &track[51], V, now);
		now += WINDOW + 1;
		ipi_track_sent(&track[0], &track[60], V, now);
		assert_int_equal(yield_from(0, true), 60);
		assert_int_equal(vcpu[0].stats.dy_stale, 2);
		assert_int_equal(vcpu[0].stats.dy_receiver, 1);
	}
}

static void without_tracking_the_other_rules_remain(void **state)
{
	for (ALL_POLICIES) {
		vm_of(4, policy);
		for (u32 i = 0; i < 4; i++) {
			vcpu[i].track = NULL;
			run(i);
		}
		preempt_kernel(2);
		assert_int_equal(yield_from(0, true), 2);
	}
}

/* ---- exact ---- */

static void exact_goes_by_class(void **state)
{
	vm_of(16, SPIN_POLICY_EXACT);
	knobs.dy_tries = SPIN_TRIES_LOG2;
	for (u32 i = 0; i < 16; i++)
		run(i);
	preempt_user(1);
	preempt_kernel(2);
	preempt_user(3);
	preempt_user(4);
	ipi_track_sent(&track[0], &track[4], V, now);
	preempt_user(5);
	spin_interrupt(&vcpu[3]);
	spin_hint(&vcpu[0], 5, now);
	assert_string_equal(candidates(0, true), "4:receiver 5:hint 3:pending 2:kernel");
	run(3);
	run(4);
	run(5);
	wake(6);
	assert_string_equal(candidates(0, true), "2:kernel 6:woken 1:relaxed");
}

static void exact_finds_the_longest_preempted_in_kernel(void **state)
{
	u32 order[255];

	vm_of(256, SPIN_POLICY_EXACT);
	for (u32 i = 0; i < 256; i++)
		run(i);
	srand(5);
	for (u32 i = 0; i < 255; i++)
		order[i] = i + 1;
	for (u32 i = 254; i; i--) {
		u32 k = (u32)rand() % (i + 1), t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	for (u32 i = 0; i < 255; i++)
		preempt_kernel(order[i]);
	for (u32 i = 0; i < 255; i++) {
		assert_int_equal(yield_from(0, true), order[i]);
		run(0);
	}
	assert_string_equal(candidates(0, true), "");
}

static void order_is_kept_for_four_rounds_of_preemptions(void **state)
{
	vm_of(64, SPIN_POLICY_EXACT);
	for (u32 i = 0; i < 64; i++)
		run(i);
	preempt_kernel(9);
	for (u32 n = 0; n < 255; n++) {
		preempt_kernel(10);
		run(10);
	}
	preempt_kernel(11);
	assert_int_equal(yield_from(0, true), 9);
	run(0);
	assert_int_equal(yield_from(0, true), 11);
}

/* Spinners that gave their pCPU away come after the others, the next by number first, so that a
 * token goes round however the order was before. */
static void spinners_take_turns(void **state)
{
	static const u32 order[] = {3, 1, 2};

	vm_of(4, SPIN_POLICY_EXACT);
	for (u32 i = 0; i < 2; i++)
		run(i);
	wake(2);
	wake(3);
	assert_int_equal(yield_from(0, true), 2);
	assert_int_equal(yield_from(1, true), 3);
	for (u32 round = 0; round < 20; round++) {
		assert_int_equal(yield_from(2, true), 0);
		assert_int_equal(yield_from(3, true), 1);
		assert_int_equal(yield_from(0, true), 2);
		assert_int_equal(yield_from(1, true), 3);
	}
	preempt_kernel(3);
	assert_int_equal(yield_from(2, true), 3);
	assert_int_equal(vcpu[2].stats.dy_kernel, 1);

	/* 0 and then 3, 1, 2 gave theirs away; 0 got it back. */
	vm_of(4, SPIN_POLICY_EXACT);
	knobs.dy_tries = SPIN_TRIES_MIN8;
	run(0);
	for (u32 i = 0; i < 3; i++) {
		run(order[i]);
		wake(0);
		assert_int_equal(yield_from(order[i], true), 0);
	}
	assert_string_equal(candidates(0, true), "1:spinner 2:spinner 3:spinner");
}

static void a_spinner_with_an_unanswered_ipi_is_still_its_receiver(void **state)
{
	vm_of(4, SPIN_POLICY_EXACT);
	run(0);
	run(1);
	wake(2);
	assert_int_equal(yield_from(1, true), 2);
	wake(3);
	ipi(0, 1, V);
	assert_string_equal(candidates(0, true), "1:receiver 3:woken");
}

static void a_hint_holds_for_a_window_and_one_yield(void **state)
{
	vm_of(4, SPIN_POLICY_EXACT);
	run(0);
	wake(1);
	wake(2);
	wake(3);
	spin_hint(&vcpu[0], 3, now);
	assert_int_equal(yield_from(0, true), 3);
	preempt_kernel(3);
	run(0);
	assert_int_equal(yield_from(0, true), 1);
	run(0);
	spin_hint(&vcpu[0], 3, now);
	now += WINDOW + 1;
	assert_int_equal(yield_from(0, true), 2);
	run(0);
	spin_hint(&vcpu[0], 4, now); /* there is none */
	spin_hint(&vcpu[0], 0, now); /* itself */
	assert_int_equal(vcpu[0].hint, 0);
	spin_hint(&vcpu[0], UINT32_MAX, now);
	assert_int_equal(vcpu[0].hint, 0);
}

static void a_reset_forgets_the_hint_and_the_spin(void **state)
{
	vm_of(4, SPIN_POLICY_EXACT);
	run(0);
	wake(1);
	spin_hint(&vcpu[0], 3, now);
	assert_int_equal(yield_from(0, true), 1);
	spin_removed(&vcpu[0]);
	spin_reset(&vcpu[0]);
	wake(0);
	assert_int_equal(vm.how[0], SPIN_WOKEN);
	assert_int_equal(spin_sched_in(&vcpu[0], now + 99), 0);
	assert_int_equal(vcpu[0].hint, 0);
}

/* ---- kvm ---- */

static void kvm_goes_round_after_the_last_boosted(void **state)
{
	vm_of(6, SPIN_POLICY_KVM);
	run(0);
	for (u32 i = 1; i < 6; i++)
		wake(i);
	for (u32 i = 1; i < 6; i++) {
		assert_int_equal(yield_from(0, true), i);
		run(0);
	}
	assert_string_equal(candidates(0, true), "");
}

static void kvm_lets_a_spinner_have_every_second_turn(void **state)
{
	for (enum spin_policy_id policy = SPIN_POLICY_KVM; policy <= SPIN_POLICY_IPI; policy++) {
		vm_of(3, policy);
		run(0);
		run(1);
		wake(2);
		assert_int_equal(yield_from(1, true), 2); /* 1 spins and waits */
		assert_int_equal(yield_from(0, true), -1);
		assert_int_equal(vcpu[0].stats.dy_skipped_spinning, 1);
		assert_int_equal(yield_from(0, true), 1); /* its turn */
		assert_int_equal(vcpu[0].stats.dy_spinner_hit, 1);
		assert_false(vcpu[1].spinning); /* it runs again */
		assert_int_equal(vm.dy_eligible[1], 0);
	}
}

/* ---- the books ---- */

static void a_spinner_that_left_knows_how_long_it_waited(void **state)
{
	vm_of(2, SPIN_POLICY_EXACT);
	run(0);
	wake(1);
	assert_int_equal(yield_from(0, true), 1);
	now += 4321;
	assert_int_equal(spin_sched_in(&vcpu[0], now), 4321);
	assert_int_equal(vcpu[0].stats.spin_wait_ticks, 4321);
	assert_int_equal(hist_count(&vcpu[0].wait), 1);
	preempt_kernel(0); /* no spin this time */
	now += 100;
	assert_int_equal(spin_sched_in(&vcpu[0], now), 0);
}

static void a_target_that_did_not_run_next_is_no_success(void **state)
{
	struct spin_walk w;

	vm_of(4, SPIN_POLICY_EXACT);
	run(0);
	run(1);
	wake(2);
	for (u32 i = 0; i < 2; i++) { /* two spinners, one target */
		assert_true(spin_start(&w, &vcpu[i], true, 0, now));
		assert_true(spin_next(&w));
		spin_tried(&w, true, false);
		spin_stop(&w, false);
	}
	assert_ptr_equal(spin_outcome(&vcpu[2], false), &vcpu[1]);
	assert_null(spin_outcome(&vcpu[2], true));
	assert_int_equal(vcpu[0].stats.directed_yield_attempted, 1);
	assert_int_equal(vcpu[0].stats.directed_yield_successful, 0);
	assert_int_equal(vcpu[1].stats.directed_yield_successful, 0);
	/* An outcome that nobody asked for does not count for the next yield. */
	assert_true(spin_start(&w, &vcpu[0], true, 0, now));
	assert_true(spin_next(&w));
	spin_tried(&w, true, false);
	spin_stop(&w, false);
	run(2);
	assert_null(spin_outcome(&vcpu[2], true));
}

/* Each spinner counts its own success, under its own rule, and never more of them than it tried. */
static void several_spinners_may_boost_one_target(void **state)
{
	struct spin_walk w;

	vm_of(16, SPIN_POLICY_EXACT);
	for (u32 i = 0; i < 12; i++)
		run(i);
	wake(12);
	ipi_track_sent(&track[3], &track[12], V, now);
	for (u32 i = 0; i < 12; i++) {
		assert_true(spin_start(&w, &vcpu[i], true, 0, now));
		assert_true(spin_next(&w));
		spin_tried(&w, true, true);
		spin_stop(&w, false);
		if (i == 3) {
			assert_ptr_equal(spin_outcome(&vcpu[12], true), &vcpu[3]);
			for (u32 k = 0; k < 4; k++)
				assert_int_equal(vcpu[k].stats.directed_yield_successful, 1);
			assert_int_equal(vcpu[2].stats.dy_woken_hit, 1);
			assert_int_equal(vcpu[3].stats.dy_receiver_hit, 1);
			assert_int_equal(vcpu[3].stats.dy_woken_hit, 0);
		}
	}
	assert_ptr_equal(spin_outcome(&vcpu[12], true), &vcpu[11]);
	for (u32 i = 0; i < 12; i++)
		assert_int_equal(vcpu[i].stats.directed_yield_successful, 1);
}

static void of_very_many_spinners_the_last_count(void **state)
{
	struct spin_walk w;
	u32 hits = 0;

	vm_of(64, SPIN_POLICY_EXACT);
	for (u32 i = 0; i < 63; i++)
		run(i);
	wake(63);
	for (u32 i = 0; i < 63; i++) {
		assert_true(spin_start(&w, &vcpu[i], true, 0, now));
		assert_true(spin_next(&w));
		spin_tried(&w, true, true);
		spin_stop(&w, false);
	}
	assert_ptr_equal(spin_outcome(&vcpu[63], true), &vcpu[62]);
	for (u32 i = 0; i < 63; i++)
		hits += (u32)vcpu[i].stats.directed_yield_successful;
	assert_int_equal(hits, SPIN_BOOSTS);
	assert_int_equal(vcpu[62].stats.directed_yield_successful, 1);
}

static void every_class_has_a_name_and_its_counters(void **state)
{
	static const char *const names[] = {
#define X(name, text) #name,
	    SPIN_COUNTERS(X)
#undef X
	};
	char want[64];

	for (u32 c = 0; c < SPIN_NR_CLASSES; c++) {
		snprintf(want, sizeof(want), "dy_%s", spin_class_name(c));
		assert_string_equal(names[SPIN_COUNT_dy_receiver + c], want);
		snprintf(want, sizeof(want), "dy_%s_hit", spin_class_name(c));
		assert_string_equal(names[SPIN_COUNT_dy_receiver_hit + c], want);
	}
	assert_string_equal(spin_class_name(SPIN_NR_CLASSES), "?");
	for (u32 p = 0; p < SPIN_POLICIES; p++) {
		spin_knobs_init(&knobs);
		assert_int_equal(spin_knob_set(&knobs, "candidate_policy", spin_policies[p].name),
				 0);
		assert_int_equal(knobs.candidate_policy, p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_vm_of_one_has_no_candidate),
	    cmocka_unit_test(a_running_vcpu_is_never_chosen),
	    cmocka_unit_test(a_blocked_vcpu_is_never_chosen),
	    cmocka_unit_test(a_removed_vcpu_is_never_chosen),
	    cmocka_unit_test(a_woken_vcpu_that_never_ran_is_chosen),
	    cmocka_unit_test(preempted_in_kernel_is_found_without_any_ipi),
	    cmocka_unit_test(an_interrupt_that_waits_counts_as_kernel_mode),
	    cmocka_unit_test(an_interrupt_pending_before_it_leaves_is_seen_by_the_look_after),
	    cmocka_unit_test(a_spinner_in_user_mode_asks_nobody_for_kernel_mode),
	    cmocka_unit_test(relaxed_boost_is_a_switch),
	    cmocka_unit_test(tries_end_a_search),
	    cmocka_unit_test(nobody_is_tried_twice),
	    cmocka_unit_test(a_yield_that_worked_ends_the_search),
	    cmocka_unit_test(only_exact_spares_other_run_queues),
	    cmocka_unit_test(the_receiver_runs_next_every_time),
	    cmocka_unit_test(the_kvm_policy_does_not_know_receivers),
	    cmocka_unit_test(several_outstanding_among_64_are_tried_oldest_first),
	    cmocka_unit_test(the_ipi_policy_takes_receivers_round_robin),
	    cmocka_unit_test(who_waits_for_me_is_not_whom_i_wait_for),
	    cmocka_unit_test(stale_entries_are_ignored_and_counted),
	    cmocka_unit_test(without_tracking_the_other_rules_remain),
	    cmocka_unit_test(exact_goes_by_class),
	    cmocka_unit_test(exact_finds_the_longest_preempted_in_kernel),
	    cmocka_unit_test(order_is_kept_for_four_rounds_of_preemptions),
	    cmocka_unit_test(spinners_take_turns),
	    cmocka_unit_test(a_spinner_with_an_unanswered_ipi_is_still_its_receiver),
	    cmocka_unit_test(a_hint_holds_for_a_window_and_one_yield),
	    cmocka_unit_test(a_reset_forgets_the_hint_and_the_spin),
	    cmocka_unit_test(kvm_goes_round_after_the_last_boosted),
	    cmocka_unit_test(kvm_lets_a_spinner_have_every_second_turn),
	    cmocka_unit_test(a_spinner_that_left_knows_how_long_it_waited),
	    cmocka_unit_test(a_target_that_did_not_run_next_is_no_success),
	    cmocka_unit_test(several_spinners_may_boost_one_target),
	    cmocka_unit_test(of_very_many_spinners_the_last_count),
	    cmocka_unit_test(every_class_has_a_name_and_its_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
