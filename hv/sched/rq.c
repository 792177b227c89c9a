/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One timeline: the tree of entities by virtual deadline with its augmentation, and the arithmetic
 * of lag: saving, placing, shifting, reweighting. Nothing here knows of vCPUs, VMs or time.
 *
 * One rule holds everywhere: a queued entity's key is part of the sum, so it is taken out, changed
 * and put back; current is in no tree, and its v, d and vprot move together.
 */
#include "hv/sched/internal.h"

/*
 * Recomputes what @se says of its subtree. tree.h calls it where rotations and removals change a
 * node's children; ancestors are the business of timeline_insert() and timeline_erase().
 */
static inline void entity_augment(struct sched_entity *se)
{
	const struct sched_entity *left = RB_LEFT(se, node), *right = RB_RIGHT(se, node);
	u64 vruntime = se->vruntime;
	u32 shortest = se->slice, longest = se->slice;

	if (left) {
		vruntime = vdiff(left->min_vruntime, vruntime) < 0 ? left->min_vruntime : vruntime;
		shortest = min(shortest, left->min_slice);
		longest = max(longest, left->max_slice);
	}
	if (right) {
		vruntime =
		    vdiff(right->min_vruntime, vruntime) < 0 ? right->min_vruntime : vruntime;
		shortest = min(shortest, right->min_slice);
		longest = max(longest, right->max_slice);
	}
	se->min_vruntime = vruntime;
	se->min_slice = shortest;
	se->max_slice = longest;
}

/* Equal deadlines keep the order of arrival: never 0. */
static inline int entity_cmp(const struct sched_entity *a, const struct sched_entity *b)
{
	return vdiff(a->deadline, b->deadline) < 0 ? -1 : 1;
}

#undef RB_AUGMENT
#define RB_AUGMENT(se) entity_augment(se)
RB_PROTOTYPE_INTERNAL(sched_tree, sched_entity, node, entity_cmp, static __maybe_unused)
RB_GENERATE_INTERNAL(sched_tree, sched_entity, node, entity_cmp, static __maybe_unused)

void timeline_init(struct sched_timeline *tl, u64 vruntime)
{
	*tl = (struct sched_timeline){.zero_vruntime = vruntime};
	RB_INIT(&tl->tree);
}

/*
 * RB_INSERT would leave the ancestors' augmentation stale; this descends by itself and merges the
 * newcomer into every node that it passes, so that the rotations find right values.
 */
void timeline_insert(struct sched_timeline *tl, struct sched_entity *se)
{
	struct sched_entity *parent = NULL, **link = &RB_ROOT(&tl->tree);
	u64 vruntime = se->vruntime, deadline = se->deadline;
	u32 slice = se->slice;

	tl->sum_w_vruntime += key_mul(entity_key(tl, se), se->weight);
	tl->sum_weight += se->weight;
	/* A leaf speaks for itself alone: whatever subtree it had before is gone. */
	se->min_vruntime = vruntime;
	se->min_slice = se->max_slice = slice;

	while (*link) {
		parent = *link;
		if (vdiff(vruntime, parent->min_vruntime) < 0)
			parent->min_vruntime = vruntime;
		if (slice < parent->min_slice)
			parent->min_slice = slice;
		if (slice > parent->max_slice)
			parent->max_slice = slice;
		link = vdiff(deadline, parent->deadline) < 0 ? &RB_LEFT(parent, node)
							     : &RB_RIGHT(parent, node);
	}
	RB_SET(se, parent, node);
	*link = se;
	sched_tree_RB_INSERT_COLOR(&tl->tree, se);
}

void timeline_erase(struct sched_timeline *tl, struct sched_entity *se)
{
	/* With two children RB_REMOVE augments up to the root before it rotates. With fewer it
	   stops at the parent, and the rest of the way is ours: rotations never take a node off
	   the path from the place of the removal to the root. */
	struct sched_entity *up =
	    RB_LEFT(se, node) && RB_RIGHT(se, node) ? NULL : RB_PARENT(se, node);

	RB_REMOVE(sched_tree, &tl->tree, se);
	for (; up; up = RB_PARENT(up, node))
		entity_augment(up);
	tl->sum_w_vruntime -= key_mul(entity_key(tl, se), se->weight);
	tl->sum_weight -= se->weight;
}

void entity_set_weight(struct sched_entity *se, u64 weight)
{
	if (weight < 2)
		weight = 2;
	se->weight = weight;
	se->inv_weight = BIT(INV_SHIFT) / weight;
}

void entity_init(struct sched_entity *se, u64 weight, u32 slice, bool custom_slice)
{
	*se = (struct sched_entity){.slice = slice, .custom_slice = custom_slice};
	entity_set_weight(se, weight);
}

/* dv * from / to for lags and requests, whose product with a weight is bounded. */
static s64 rescale(s64 dv, u64 from, u64 to)
{
	return key_mul(dv, from) / (s64)to;
}

/*
 * V does not move when w changes and w (V - v) is kept: before, w (V - v) + rest = 0; after, w' (V
 * - v') is the same number, so the sum is 0 at the same V.
 */
void entity_reweight(struct sched_timeline *tl, struct sched_entity *se, u64 weight)
{
	bool queued = se->on_rq && tl->curr != se;
	u64 old = se->weight, avg;
	s64 lag, request, protection;

	if (weight < 2)
		weight = 2;
	if (weight == old)
		return;
	if (!se->on_rq) {
		se->vlag = rescale(se->vlag, old, weight);
		if (se->rel_deadline)
			se->deadline = (u64)rescale((s64)se->deadline, old, weight);
		entity_set_weight(se, weight);
		return;
	}
	avg = timeline_avg(tl);
	lag = vdiff(avg, se->vruntime);
	request = vdiff(se->deadline, se->vruntime);
	protection = vdiff(se->vprot, se->vruntime);
	if (queued)
		timeline_erase(tl, se);
	se->vruntime = avg - (u64)rescale(lag, old, weight);
	se->deadline = se->vruntime + (u64)rescale(request, old, weight);
	se->vprot =
	    protection > 0 ? se->vruntime + (u64)rescale(protection, old, weight) : se->vruntime;
	if (se->delayed)
		se->vlag = rescale(se->vlag, old, weight);
	entity_set_weight(se, weight);
	if (queued)
		timeline_insert(tl, se);
}

bool entity_save_lag(struct sched_timeline *tl, struct sched_entity *se,
		     const struct sched_knobs *knobs)
{
	s64 lag = vdiff(timeline_avg(tl), se->vruntime);
	s64 limit = entity_lag_limit(tl, se, knobs);
	s64 legal = clamp(lag, -limit, limit);

	if (se->delayed) {
		/* Waiting off its debt must not make it larger, nor turn it into a credit. */
		legal = max(legal, se->vlag);
		if (knobs->DELAY_ZERO)
			legal = min(legal, (s64)0);
	}
	se->vlag = legal;
	return legal != lag;
}

/*
 * Adding @se moves V towards it, which would eat a part of its lag. With W and V before and v =
 * V - L the new mean is V' = V - w L / (W + w), so V' - v = L W / (W + w): to end with a lag of l,
 * place it at L = l (W + w) / W, which puts V' at V - l w / W.
 */
void entity_place(struct sched_timeline *tl, struct sched_entity *se, s64 vlag, bool initial,
		  const struct sched_knobs *knobs)
{
	u64 avg = timeline_avg(tl), weight = timeline_weight(tl), vslice;

	if (!se->custom_slice)
		se->slice = (u32)knobs->base_slice_ns;
	vslice = calc_delta_fair(se->slice, se);
	if (vlag && weight) {
		s64 moved = key_mul(vlag, se->weight) / (s64)weight;

		/* v0 goes to where V will be: a heavy newcomer moves V far. */
		timeline_shift_zero(tl, -moved);
		avg -= (u64)moved + (u64)vlag;
	}
	se->vruntime = avg;
	se->vprot = avg;
	if (se->rel_deadline) {
		se->rel_deadline = false;
		se->deadline += avg;
		return;
	}
	if (initial && knobs->PLACE_DEADLINE_INITIAL)
		vslice /= 2;
	se->deadline = avg + vslice;
}

void entity_shift(struct sched_timeline *tl, struct sched_entity *se, s64 dv)
{
	bool queued = tl->curr != se;

	if (queued)
		timeline_erase(tl, se);
	se->vruntime += (u64)dv;
	se->deadline += (u64)dv;
	/* vprot of a queued entity means nothing until it is picked; moving it along does no harm
	   and keeps "protected" and "not protected" as they were. */
	se->vprot += (u64)dv;
	if (queued)
		timeline_insert(tl, se);
}

void entity_set_lag(struct sched_timeline *tl, struct sched_entity *se, s64 vlag,
		    const struct sched_knobs *knobs)
{
	u64 rest = timeline_weight(tl) - se->weight, avg;
	s64 moved, dv;

	if (!rest)
		return; /* alone: its lag is 0, whatever one does */
	if (tl->curr != se) {
		timeline_erase(tl, se);
		/* Only where it will be consumed: entity_place() makes a new request otherwise. */
		if (knobs->PLACE_REL_DEADLINE) {
			se->deadline -= se->vruntime;
			se->rel_deadline = true;
		}
		entity_place(tl, se, vlag, false, knobs);
		timeline_insert(tl, se);
		return;
	}
	/* Current stays where it is, outside the tree: V' = V - w (l' - l) / (W - w). */
	avg = timeline_avg(tl);
	moved = key_mul(vlag - vdiff(avg, se->vruntime), se->weight) / (s64)rest;
	timeline_shift_zero(tl, -moved);
	dv = vdiff(avg - (u64)moved - (u64)vlag, se->vruntime);
	entity_shift(tl, se, dv);
}

void entity_renew(struct sched_timeline *tl, struct sched_entity *se,
		  const struct sched_knobs *knobs)
{
	if (!se->custom_slice)
		se->slice = (u32)knobs->base_slice_ns;
	se->deadline = se->vruntime + calc_delta_fair(se->slice, se);
	timeline_avg(tl);
}
