// SPDX-License-Identifier: BSD-2-Clause
// Whole machines in the simulator: shares, progress, the price of the yield policies, scale.
// sources: hv/sched/rq.c hv/sched/pick.c hv/sched/core.c hv/sched/account.c
// sources: hv/sched/yield.c hv/sched/balance.c hv/sched/knobs.c hv/lib/fmt.c hv/lib/knob.c
// sources: tests/sim/machine.c
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/machine.h"

#define MSEC 1000000ull

static struct machine *machine(u32 pcpus, u32 mode, const char *policy, const struct vm_spec *vms,
			       u32 nr_vms, bool check)
{
	struct machine_options opt;
	struct sched_knobs knobs;

	machine_options_init(&opt);
	opt.nr_pcpus = pcpus;
	opt.check = check;
	sched_knobs_init(&knobs, pcpus);
	knobs.sched_mode = mode;
	assert_int_equal(sched_knob_set(&knobs, "yield_policy", policy), 0);
	return machine_new(&opt, &knobs, vms, nr_vms);
}

/* Share of VM @i in per mille of what all ran. */
static u64 share(const struct machine *m, u32 i)
{
	u64 all = 0;

	for (u32 j = 0; j < m->nr_vms; j++)
		all += vm_run_ns(&m->vms[j]);
	return vm_run_ns(&m->vms[i]) * 1000 / all;
}

static void busy_vms_share_by_weight_in_each_mode(void **state)
{
	static const struct vm_spec vms[] = {
	    {2, 1024, LOAD_BUSY, 0}, {2, 1024, LOAD_BUSY, 0}, {2, 1024, LOAD_BUSY, 0}};
	static const struct vm_spec weighted[] = {
	    {4, 2048, LOAD_BUSY, 0}, {4, 1024, LOAD_BUSY, 0}, {4, 1024, LOAD_BUSY, 0}};

	for (u32 mode = 0; mode < 3; mode++) {
		struct machine *m = machine(2, mode, "auto", vms, 3, true);

		machine_run(m, 4000 * MSEC);
		for (u32 i = 0; i < 3; i++)
			assert_in_range(share(m, i), 327, 340);
		machine_free(m);
		m = machine(4, mode, "auto", weighted, 3, true);
		machine_run(m, 4000 * MSEC);
		assert_in_range(share(m, 0), 490, 510);
		assert_in_range(share(m, 1), 245, 255);
		machine_free(m);
	}
}

static void a_vms_share_does_not_grow_with_its_vcpus(void **state)
{
	static const struct vm_spec vms[] = {{2, 1024, LOAD_BUSY, 0}, {8, 1024, LOAD_BUSY, 0}};

	for (u32 mode = SCHED_MODE_GROUP; mode <= SCHED_MODE_FLAT; mode++) {
		struct machine *m = machine(2, mode, "auto", vms, 2, true);

		machine_run(m, 4000 * MSEC);
		/* flat balances by the real shares; group by the same, two levels deep. */
		assert_in_range(share(m, 0), 480, 520);
		machine_free(m);
	}
}

/* Spinners beside computing VMs: the fair policies leave everybody his third. */
static void auto_and_transfer_are_fair_to_other_vms(void **state)
{
	static const enum load loads[] = {LOAD_IPI, LOAD_LOCK, LOAD_TOKEN};
	static const char *const policies[] = {"transfer", "auto"};

	for (u32 l = 0; l < 3; l++) {
		for (u32 p = 0; p < 2; p++) {
			for (u32 mode = 0; mode < 3; mode++) {
				struct vm_spec vms[] = {{4, 1024, loads[l], 0},
							{4, 1024, loads[l], 0},
							{4, 1024, LOAD_BUSY, 0}};
				struct machine *m = machine(4, mode, policies[p], vms, 3, true);

				machine_run(m, 1000 * MSEC);
				for (u32 i = 0; i < 3; i++)
					assert_in_range(share(m, i), 323, 344);
				machine_free(m);
			}
		}
	}
}

static void directed_yields_to_the_right_one_hit(void **state)
{
	static const struct vm_spec vms[] = {
	    {4, 1024, LOAD_IPI, 0}, {4, 1024, LOAD_IPI, 0}, {4, 1024, LOAD_IPI, 0}};
	struct machine *m = machine(4, SCHED_MODE_VCPU, "auto", vms, 3, true);
	struct sched_stats s;

	machine_run(m, 2000 * MSEC);
	s = machine_stats(m);
	print_message("  %llu of %llu directed yields: the target ran next\n",
		      (unsigned long long)s.yield_hit, (unsigned long long)s.yield_done);
	assert_true(s.yield_done > 10000);
	assert_true(s.yield_hit * 100 > s.yield_done * 95);
	machine_free(m);
}

/* Sixteen vCPUs of one VM that send each other IPIs, beside two VMs that compute. */
static u64 ops_of(enum candidate candidate)
{
	static const struct vm_spec vms[] = {
	    {16, 1024, LOAD_IPI, 0}, {4, 1024, LOAD_BUSY, 0}, {4, 1024, LOAD_BUSY, 0}};
	struct machine *m = machine(8, SCHED_MODE_VCPU, "auto", vms, 3, false);
	u64 ops;

	m->opt.candidate = candidate;
	machine_run(m, 1000 * MSEC);
	ops = vm_ops(&m->vms[0]);
	machine_free(m);
	return ops;
}

static void directed_yield_helps_and_knowing_the_target_helps_more(void **state)
{
	u64 none = ops_of(CANDIDATE_NONE), round = ops_of(CANDIDATE_ROUND);
	u64 exact = ops_of(CANDIDATE_EXACT);

	print_message("  operations: no directed yield %llu, round robin %llu, exact %llu\n",
		      (unsigned long long)none, (unsigned long long)round,
		      (unsigned long long)exact);
	assert_true(round > 3 * none);
	assert_true(exact * 10 > round * 11);
}

/* The price of credit, in numbers: with VM groups, VMs that spin push out one that computes. */
static void credit_pushes_out_who_does_not_spin_and_auto_does_not(void **state)
{
	static const struct vm_spec vms[] = {
	    {4, 1024, LOAD_IPI, 0}, {4, 1024, LOAD_IPI, 0}, {4, 1024, LOAD_BUSY, 0}};
	struct machine *credit = machine(4, SCHED_MODE_GROUP, "credit", vms, 3, true);
	struct machine *ours = machine(4, SCHED_MODE_GROUP, "auto", vms, 3, true);

	machine_run(credit, 1000 * MSEC);
	machine_run(ours, 1000 * MSEC);
	assert_true(share(credit, 2) < 100);
	assert_true(share(ours, 2) > 320);
	assert_true(credit->vms[2].group.fair.err_max_ns > 500 * MSEC);
	assert_true(ours->vms[2].group.fair.err_max_ns < 50 * MSEC);
	machine_free(credit);
	machine_free(ours);
}

/* Every vCPU gets on, with halts, IPIs and locks: no wake-up is lost. */
static void everybody_makes_progress(void **state)
{
	static const struct vm_spec vms[] = {{4, 1024, LOAD_HALT, 0},
					     {6, 512, LOAD_IPI, 0},
					     {4, 2048, LOAD_LOCK, 0},
					     {3, 1024, LOAD_TOKEN, 0},
					     {1, 1024, LOAD_BUSY, 0}};
	static const char *const policies[] = {"forfeit", "deboost", "credit", "transfer", "auto"};

	for (u32 p = 0; p < 5; p++) {
		for (u32 mode = 0; mode < 3; mode++) {
			struct machine *m = machine(4, mode, policies[p], vms, 5, true);
			u64 before[32];
			u32 n = 0;

			/* credit spares no VM that does not spin, see below. */
			if (p == SCHED_YIELD_CREDIT && mode == SCHED_MODE_GROUP) {
				machine_free(m);
				continue;
			}
			machine_run(m, 300 * MSEC);
			for (u32 i = 0; i < 5; i++) {
				for (u32 j = 0; j < vms[i].nr_vcpus; j++)
					before[n++] = m->vms[i].vcpus[j].ops;
			}
			machine_run(m, 1000 * MSEC);
			n = 0;
			for (u32 i = 0; i < 5; i++) {
				for (u32 j = 0; j < vms[i].nr_vcpus; j++)
					assert_true(m->vms[i].vcpus[j].ops > before[n++]);
			}
			machine_free(m);
		}
	}
}

static void the_same_seed_gives_the_same_run(void **state)
{
	static const struct vm_spec vms[] = {{4, 1024, LOAD_IPI, 0}, {4, 1024, LOAD_HALT, 0}};
	struct sched_stats s[2];

	for (u32 i = 0; i < 2; i++) {
		struct machine *m = machine(3, SCHED_MODE_FLAT, "auto", vms, 2, false);

		machine_run(m, 300 * MSEC);
		s[i] = machine_stats(m);
		machine_free(m);
	}
	assert_memory_equal(&s[0], &s[1], sizeof(s[0]));
}

static void a_machine_of_1024_pcpus_and_16384_vcpus(void **state)
{
	static struct vm_spec vms[512];

	for (u32 mode = 0; mode < 3; mode++) {
		struct machine *m;
		u64 all = 0, spread_least = UINT64_MAX, spread_most = 0;

		for (u32 i = 0; i < 512; i++)
			vms[i] = (struct vm_spec){32, 1024, LOAD_BUSY, 0};
		m = machine(1024, mode, "auto", vms, 512, false);
		machine_run(m, 100 * MSEC);
		for (u32 i = 0; i < 512; i++) {
			u64 ran = vm_run_ns(&m->vms[i]);

			all += ran;
			spread_least = min(spread_least, ran);
			spread_most = max(spread_most, ran);
		}
		/* No pCPU was idle (but for the first switch), and VMs got the same: */
		assert_true(all > 1024 * 99 * MSEC);
		/* All vCPUs of a VM have the same place in their queues, so VMs may differ by one
		   slice of each. */
		assert_true(spread_most - spread_least < 32 * m->knobs.base_slice_ns * 11 / 10);
		machine_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(busy_vms_share_by_weight_in_each_mode),
	    cmocka_unit_test(a_vms_share_does_not_grow_with_its_vcpus),
	    cmocka_unit_test(auto_and_transfer_are_fair_to_other_vms),
	    cmocka_unit_test(directed_yields_to_the_right_one_hit),
	    cmocka_unit_test(directed_yield_helps_and_knowing_the_target_helps_more),
	    cmocka_unit_test(credit_pushes_out_who_does_not_spin_and_auto_does_not),
	    cmocka_unit_test(everybody_makes_progress),
	    cmocka_unit_test(the_same_seed_gives_the_same_run),
	    cmocka_unit_test(a_machine_of_1024_pcpus_and_16384_vcpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
