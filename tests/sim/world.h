/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A handful of pCPUs, VMs and vCPUs for the scheduler's unit tests: set-up, one-line operations
 * that open and close the lock sections, and a small random generator. Every operation ends with
 * sched_check() on what it touched.
 */
#ifndef VLAG_SIM_WORLD_H
#define VLAG_SIM_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/exact.h"

#define WORLD_RQS 8
#define WORLD_GROUPS 64
#define WORLD_VCPUS 512

#define USEC 1000ull
#define MSEC 1000000ull
#define SEC 1000000000ull

struct world {
	struct sched_knobs knobs;
	u64 now;
	u32 nr_rqs, nr_groups, nr_vcpus;
	struct run_queue rqs[WORLD_RQS];
	struct run_queue *rq_ptrs[WORLD_RQS];
	struct sched_group groups[WORLD_GROUPS];
	struct sched_group_rq group_rqs[WORLD_GROUPS][WORLD_RQS];
	struct sched_vcpu vcpus[WORLD_VCPUS];
	u64 affinity[WORLD_VCPUS][1];
	u64 seed;
};

static inline u64 rnd(struct world *w, u64 below)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return (w->seed * 0x2545f4914f6cdd1dull >> 16) % below;
}

static inline bool chance(struct world *w, u64 percent)
{
	return rnd(w, 100) < percent;
}

/* A fresh world of @nr_rqs pCPUs; on the heap because it is large. Free it with free(). */
static inline struct world *world_new(u32 nr_rqs)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	sched_knobs_init(&w->knobs, 1);
	w->nr_rqs = nr_rqs;
	w->now = SEC;
	w->seed = 88172645463325252ull;
	for (u32 i = 0; i < nr_rqs; i++) {
		sched_rq_init(&w->rqs[i], i, &w->knobs, w->now);
		w->rq_ptrs[i] = &w->rqs[i];
	}
	return w;
}

static inline struct sched_group *world_group(struct world *w, u32 weight)
{
	u32 i = w->nr_groups++;

	sched_group_init(&w->groups[i], i, weight, w->group_rqs[i], w->nr_rqs);
	return &w->groups[i];
}

static inline struct sched_vcpu *world_vcpu(struct world *w, struct sched_group *g, u32 cpu,
					    u64 slice)
{
	struct sched_vcpu *v = &w->vcpus[w->nr_vcpus];

	w->affinity[w->nr_vcpus][0] = UINT64_MAX;
	sched_vcpu_init(v, g, w->nr_vcpus, 1024, slice, cpu, w->affinity[w->nr_vcpus]);
	w->nr_vcpus++;
	return v;
}

/* A VM of its own weight with one vCPU on @cpu. */
static inline struct sched_vcpu *world_single(struct world *w, u32 weight, u32 cpu)
{
	return world_vcpu(w, world_group(w, weight), cpu, 0);
}

static inline struct run_queue *begin(struct world *w, u32 cpu)
{
	sched_begin(&w->rqs[cpu], w->now);
	return &w->rqs[cpu];
}

static inline void end(struct run_queue *rq)
{
	sched_check(rq);
	sched_end(rq);
}

static inline bool wake(struct world *w, struct sched_vcpu *v, u32 cpu)
{
	struct run_queue *rq = begin(w, v->cpu);
	bool claimed = sched_wake_claim(rq, v, cpu), resched;

	end(rq);
	if (!claimed)
		return false;
	rq = begin(w, v->cpu);
	resched = sched_wake(rq, v);
	end(rq);
	return resched;
}

static inline struct sched_vcpu *pick(struct world *w, u32 cpu)
{
	struct run_queue *rq = begin(w, cpu);
	struct sched_vcpu *v = sched_pick_next(rq);

	end(rq);
	return v;
}

static inline struct sched_vcpu *block(struct world *w, u32 cpu)
{
	struct run_queue *rq = begin(w, cpu);
	struct sched_vcpu *v;

	sched_block(rq);
	sched_check(rq);
	v = sched_pick_next(rq);
	end(rq);
	return v;
}

static inline void take_off(struct world *w, struct sched_vcpu *v)
{
	struct run_queue *rq = begin(w, v->cpu);

	sched_remove(rq, v);
	end(rq);
}

static inline bool migrate(struct world *w, struct sched_vcpu *v, u32 to)
{
	struct run_queue *a = begin(w, v->cpu), *b = begin(w, to);
	bool resched = sched_migrate(a, b, v);

	end(a);
	end(b);
	return resched;
}

static inline u32 yield_to(struct world *w, struct sched_vcpu *me, struct sched_vcpu *target)
{
	struct run_queue *a = begin(w, me->cpu);
	struct run_queue *b = target->cpu == me->cpu ? a : begin(w, target->cpu);
	u32 result = sched_yield_to(a, b, me, target);

	if (a != b)
		end(b);
	end(a);
	return result;
}

/* Runs @cpu alone for @ns, rescheduling whenever a slice ends. */
static inline void run(struct world *w, u32 cpu, u64 ns)
{
	u64 until = w->now + ns;

	pick(w, cpu);
	while (w->now < until) {
		u64 stop = sched_slice_end(&w->rqs[cpu]);

		w->now = stop < until ? stop : until;
		pick(w, cpu);
	}
}

static inline s64 lag_of_vcpu(struct world *w, struct sched_vcpu *v)
{
	struct run_queue *rq = begin(w, v->cpu);
	s64 lag;

	sched_update_curr(rq);
	lag = sched_lag_ns(rq, v);
	end(rq);
	return lag;
}

static inline u64 steps(u64 normal)
{
	const char *s = getenv("SCHED_TEST_STEPS");

	return s ? strtoull(s, NULL, 0) : normal;
}

#endif
