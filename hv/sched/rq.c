/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One timeline: the tree of entities by virtual deadline with its augmentation, and the arithmetic
 * of lag: saving, placing, shifting, reweighting. Nothing here knows of vCPUs, VMs or time.
 *
 * One rule holds everywhere: a queued entity's key is part of the sum, so it is taken out, changed
 * and put back; current is in no tree, and its v, d and vprot move together.
 */
#include "hv/sched/internal.h"

static void merge_slices(struct sched_entity *se, const struct sched_entity *below)
{
	se->min_slice = min(se->min_slice, below->min_slice);
	se->max_slice = max(se->max_slice, below->max_slice);
}

/*
 * Recomputes what @se says of its subtree. tree.h calls it where rotations and removals change a
 * node's children; ancestors are the business of timeline_link() and timeline_unlink().
 */
static inline void entity_augment(struct sched_entity *se)
{
	const struct sched_entity *left = RB_LEFT(se, node), *right = RB_RIGHT(se, node);
	u64 vruntime = se->vruntime, slices = both_slices(se->slice);

	se->slices = slices;
	if (left) {
		if (vdiff(left->min_vruntime, vruntime) < 0)
			vruntime = left->min_vruntime;
		if (unlikely(left->slices != slices))
			merge_slices(se, left);
	}
	if (right) {
		if (vdiff(right->min_vruntime, vruntime) < 0)
			vruntime = right->min_vruntime;
		if (unlikely(right->slices != slices))
			merge_slices(se, right);
	}
	se->min_vruntime = vruntime;
}

/* Equal deadlines keep the order of arrival: never 0. */
static inline int entity_cmp(const struct sched_entity *a, const struct sched_entity *b)
{
	return vdiff(a->deadline, b->deadline) < 0 ? -1 : 1;
}

#undef RB_AUGMENT
#define RB_AUGMENT(se) entity_augment(se)

/*
 * tree.h's rotations recompute three nodes each. A rotation does not change what the subtree holds,
 * so its new top takes over what the old one said, and one node is left to recompute.
 */
#define ROTATE(head, elm, tmp, near, far)                                                          \
	do {                                                                                       \
		(tmp) = near(elm, node);                                                           \
		if ((near(elm, node) = far(tmp, node)))                                            \
			RB_PARENT(far(tmp, node), node) = (elm);                                   \
		if (!(RB_PARENT(tmp, node) = RB_PARENT(elm, node)))                                \
			RB_ROOT(head) = (tmp);                                                     \
		else if ((elm) == RB_LEFT(RB_PARENT(elm, node), node))                             \
			RB_LEFT(RB_PARENT(elm, node), node) = (tmp);                               \
		else                                                                               \
			RB_RIGHT(RB_PARENT(elm, node), node) = (tmp);                              \
		far(tmp, node) = (elm);                                                            \
		RB_PARENT(elm, node) = (tmp);                                                      \
		(tmp)->min_vruntime = (elm)->min_vruntime;                                         \
		(tmp)->slices = (elm)->slices;                                                     \
		entity_augment(elm);                                                               \
	} while (0)

#undef RB_ROTATE_LEFT
#undef RB_ROTATE_RIGHT
#define RB_ROTATE_LEFT(head, elm, tmp, field) ROTATE(head, elm, tmp, RB_RIGHT, RB_LEFT)
#define RB_ROTATE_RIGHT(head, elm, tmp, field) ROTATE(head, elm, tmp, RB_LEFT, RB_RIGHT)
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
void timeline_link(struct sched_timeline *tl, struct sched_entity *se)
{
	struct sched_entity *parent, **link = &RB_ROOT(&tl->tree);
	u64 vruntime = se->vruntime, deadline = se->deadline, slices = se->slices;

	do {
		parent = *link;
		if (vdiff(vruntime, parent->min_vruntime) < 0)
			parent->min_vruntime = vruntime;
		if (unlikely(slices != parent->slices))
			merge_slices(parent, se);
		link = vdiff(deadline, parent->deadline) < 0 ? &RB_LEFT(parent, node)
							     : &RB_RIGHT(parent, node);
	} while (*link);
	RB_SET(se, parent, node);
	*link = se;
	if (RB_COLOR(parent, node) == RB_RED)
		sched_tree_RB_INSERT_COLOR(&tl->tree, se);
}

/*
 * With two children RB_REMOVE augments up to the root before it rotates. With fewer it stops at the
 * parent, and the rest of the way is ours: rotations never take a node off the path from the place
 * of the removal to the root.
 */
void timeline_unlink(struct sched_timeline *tl, struct sched_entity *se)
{
	struct sched_entity *up =
	    RB_LEFT(se, node) && RB_RIGHT(se, node) ? NULL : RB_PARENT(se, node);

	RB_REMOVE(sched_tree, &tl->tree, se);
	if (!up)
		return;
	while ((up = RB_PARENT(up, node)))
		entity_augment(up);
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
