/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exact model that the scheduler's tests compare with: the definitions of EEVDF (Stoica and
 * Abdel-Wahab, 1995) over a plain array, in 128-bit integers, so that nothing is rounded and
 * nothing is clever. It shares no arithmetic with hv/sched: it only reads v, d and w of each
 * entity.
 */
#ifndef VLAG_SIM_EXACT_H
#define VLAG_SIM_EXACT_H

#include "hv/sched/internal.h"

#define EXACT_MAX 8192

struct exact {
	struct sched_entity *se[EXACT_MAX];
	u32 n;
	u64 base;	  /* keys are v - base */
	s128 sum, weight; /* V = base + sum / weight */
};

static inline void exact_collect(struct exact *x, struct sched_entity *se)
{
	if (!se)
		return;
	exact_collect(x, RB_LEFT(se, node));
	x->se[x->n++] = se;
	exact_collect(x, RB_RIGHT(se, node));
}

static inline s128 exact_key(const struct exact *x, u64 v)
{
	return (s64)(v - x->base);
}

/* All that competes on @tl, and its mean. */
static inline void exact_read(struct exact *x, struct sched_timeline *tl)
{
	x->n = 0;
	x->sum = x->weight = 0;
	exact_collect(x, RB_ROOT(&tl->tree));
	if (tl->curr)
		x->se[x->n++] = tl->curr;
	x->base = x->n ? x->se[0]->vruntime : 0;
	for (u32 i = 0; i < x->n; i++) {
		x->sum += exact_key(x, x->se[i]->vruntime) * x->se[i]->weight;
		x->weight += x->se[i]->weight;
	}
}

static inline bool exact_eligible(const struct exact *x, const struct sched_entity *se)
{
	return exact_key(x, se->vruntime) * x->weight <= x->sum;
}

/* w (V - v) times W: 0 in sum over all, by definition. */
static inline s128 exact_lag(const struct exact *x, const struct sched_entity *se)
{
	return x->sum - exact_key(x, se->vruntime) * x->weight;
}

/* Lag in service time, ns, rounded towards 0. */
static inline s64 exact_lag_ns(const struct exact *x, const struct sched_entity *se)
{
	return (s64)(exact_lag(x, se) * (s64)se->weight / x->weight / (s64)BIT(NICE_0_SHIFT));
}

/* The earliest deadline among the eligible, the first in the order of arrival; NULL if none is. */
static inline struct sched_entity *exact_pick(const struct exact *x)
{
	struct sched_entity *best = NULL;

	for (u32 i = 0; i < x->n; i++) {
		if (exact_eligible(x, x->se[i]) &&
		    (!best || (s64)(x->se[i]->deadline - best->deadline) < 0))
			best = x->se[i];
	}
	return best;
}

#endif
