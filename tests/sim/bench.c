/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the scheduler's hot paths cost in instructions, by the number of vCPUs on the run queue. Run
 * by tests/sim/bench-sched under callgrind: each operation has one function here that is not
 * inlined, whose inclusive count is divided by the number of calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hv/sched/sched.h"

#define CALLS 2000

static struct sched_knobs knobs;
static struct run_queue rq, other;
static struct sched_group *groups;
static struct sched_vcpu *vcpus;
static u32 n;
static u64 now = 1000000;
static u64 seed = 88172645463325252ull;

static u64 rnd(u64 below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 16) % below;
}

#define OP __attribute__((noinline, noclone, no_icf))

/* The end of a slice, another vCPU is due: put, pick, set. */
static OP void op_switch(void)
{
	sched_begin(&rq, now);
	sched_pick_next(&rq);
	sched_end(&rq);
}

/* The end of a slice, the same vCPU goes on (only one is queued). */
static OP void op_pick_same(void)
{
	sched_begin(&rq, now);
	sched_pick_next(&rq);
	sched_end(&rq);
}

static OP void op_block_pick(void)
{
	sched_begin(&rq, now);
	sched_block(&rq);
	sched_pick_next(&rq);
	sched_end(&rq);
}

static OP bool op_wake(struct sched_vcpu *v)
{
	bool resched;

	sched_begin(&rq, now);
	sched_wake_claim(&rq, v, 0);
	resched = sched_wake(&rq, v);
	sched_end(&rq);
	return resched;
}

/* From a wake-up on an idle pCPU to the vCPU that it runs: the path of wake IPI -> guest. */
static OP void op_wake_idle_pick(struct sched_vcpu *v)
{
	sched_begin(&rq, now);
	sched_wake_claim(&rq, v, 0);
	sched_wake(&rq, v);
	sched_pick_next(&rq);
	sched_end(&rq);
}

static OP void op_yield_to(struct sched_vcpu *target)
{
	sched_begin(&rq, now);
	sched_yield_to(&rq, &rq, rq.curr, target);
	sched_end(&rq);
}

static OP void op_migrate(struct sched_vcpu *v)
{
	sched_begin(&rq, now);
	sched_begin(&other, now);
	sched_migrate(&rq, &other, v);
	sched_end(&other);
	sched_end(&rq);
}

static struct sched_vcpu *some(u32 state)
{
	u32 start = (u32)rnd(n);

	for (u32 i = 0; i < n; i++) {
		struct sched_vcpu *v = &vcpus[(start + i) % n];

		if (v->state == state && v->cpu == 0)
			return v;
	}
	return NULL;
}

/* As the operations, under names that are not counted. */
static void set_up_wake(struct sched_vcpu *v)
{
	sched_begin(&rq, now);
	sched_wake_claim(&rq, v, 0);
	sched_wake(&rq, v);
	sched_end(&rq);
}

static void set_up_switch(void)
{
	sched_begin(&rq, now);
	sched_pick_next(&rq);
	sched_end(&rq);
}

static void set_up(u32 mode)
{
	sched_knobs_init(&knobs, 1);
	knobs.sched_mode = mode;
	knobs.yield_resched_min_ns = 0;
	knobs.DELAY_DEQUEUE = false; /* block means leaving: the dearer path */
	sched_rq_init(&rq, 0, &knobs, now);
	sched_rq_init(&other, 1, &knobs, now);
	groups = calloc(n, sizeof(*groups));
	vcpus = calloc(n, sizeof(*vcpus));
	for (u32 i = 0; i < n; i++) {
		struct sched_group *g = &groups[i / 4];

		if (i % 4 == 0)
			sched_group_init(g, i, 512 + (u32)rnd(2048),
					 calloc(2, sizeof(struct sched_group_rq)), 2);
		sched_vcpu_init(&vcpus[i], g, i, 1024, 0, 0, NULL);
		set_up_wake(&vcpus[i]);
	}
	sched_begin(&rq, now);
	sched_pick_next(&rq);
	sched_end(&rq);
	for (u32 i = 0; i < 4 * n; i++) {
		now += 100000 + rnd(700000);
		set_up_switch();
	}
}

int main(int argc, char **argv)
{
	const char *op = argc > 2 ? argv[1] : "";

	n = argc > 2 ? (u32)atoi(argv[2]) : 0;
	if (!n || argc < 4) {
		fprintf(stderr, "usage: bench switch|wake|block|yield|migrate|idle|same VCPUS "
				"vcpu|group|flat [POLICY]\n");
		return 2;
	}
	set_up(!strcmp(argv[3], "group")  ? SCHED_MODE_GROUP
	       : !strcmp(argv[3], "flat") ? SCHED_MODE_FLAT
					  : SCHED_MODE_VCPU);
	if (argc > 4 && sched_knob_set(&knobs, "yield_policy", argv[4]))
		return 2;
	if (!strcmp(op, "idle") || !strcmp(op, "same")) {
		while (rq.nr_running > !strcmp(op, "same")) {
			sched_begin(&rq, now);
			sched_block(&rq);
			sched_pick_next(&rq);
			sched_end(&rq);
		}
	}
	for (u32 i = 0; i < CALLS; i++) {
		now += 50000 + rnd(700000);
		if (!strcmp(op, "switch")) {
			now += 700000;
			op_switch();
		} else if (!strcmp(op, "same")) {
			op_pick_same();
		} else if (!strcmp(op, "wake") || !strcmp(op, "block")) {
			struct sched_vcpu *v = rq.curr;

			op_block_pick();
			now += 30000;
			op_wake(v);
			set_up_switch();
		} else if (!strcmp(op, "idle")) {
			op_wake_idle_pick(&vcpus[0]);
			now += 30000;
			op_block_pick();
		} else if (!strcmp(op, "yield")) {
			op_yield_to(some(SCHED_QUEUED));
			set_up_switch();
		} else if (!strcmp(op, "migrate")) {
			struct sched_vcpu *v = some(SCHED_QUEUED);

			op_migrate(v);
			sched_begin(&rq, now);
			sched_begin(&other, now);
			sched_migrate(&other, &rq, v);
			sched_end(&other);
			sched_end(&rq);
		} else {
			fprintf(stderr, "bench: no operation '%s'\n", op);
			return 2;
		}
	}
	return 0;
}
