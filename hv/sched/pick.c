/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Earliest eligible virtual deadline first: which entity of a timeline is next, and how long it is
 * then protected. Nothing here changes the tree.
 */
#include "hv/sched/internal.h"

/*
 * The tree is a search tree by deadline and a heap by (minimum) vruntime. Everything in a left
 * subtree has an earlier deadline than its parent, so: go left while somebody there is eligible,
 * else take the node itself, else go right. One of the two always holds, because the mean of a set
 * is never below its minimum.
 */
static struct sched_entity *tree_pick(struct sched_timeline *tl, const struct timeline_mean *mean)
{
	struct sched_entity *se = RB_ROOT(&tl->tree);

	while (se) {
		struct sched_entity *left = RB_LEFT(se, node);

		if (left && mean_eligible(mean, left->min_vruntime)) {
			se = left;
			continue;
		}
		if (mean_eligible(mean, se->vruntime))
			return se;
		se = RB_RIGHT(se, node);
	}
	return NULL;
}

struct sched_entity *timeline_pick_of_many(struct sched_timeline *tl, bool protect,
					   const struct sched_knobs *knobs)
{
	struct sched_entity *curr = tl->curr, *best;
	struct timeline_mean mean = timeline_mean(tl);

	if (unlikely(tl->next) && protect && knobs->PICK_BUDDY &&
	    mean_eligible(&mean, tl->next->vruntime - (u64)tl->advance))
		return tl->next;
	if (curr && !mean_eligible(&mean, curr->vruntime)) {
		if (unlikely(tl->early) && protect && entity_protected(curr))
			return curr;
		curr = NULL;
	}
	if (curr && protect && entity_protected(curr))
		return curr;
	best = tree_pick(tl, &mean);
	if (!best || (curr && vdiff(curr->deadline, best->deadline) < 0))
		best = curr;
	return best;
}

void entity_protect_among(struct sched_timeline *tl, struct sched_entity *se,
			  const struct sched_knobs *knobs)
{
	u64 slice = knobs->RUN_TO_PARITY ? timeline_min_slice(tl) : knobs->min_quantum_ns;
	u64 vprot;

	if (slice >= se->slice)
		return;
	vprot = se->vruntime + calc_delta_fair(slice, se);
	if (vdiff(vprot, se->deadline) < 0)
		se->vprot = vprot;
}

void entity_protect_early(struct sched_entity *se, const struct sched_knobs *knobs)
{
	u64 vprot = se->vruntime + calc_delta_fair(knobs->yield_early_ns, se);

	if (vdiff(vprot, se->vprot) < 0)
		se->vprot = vprot;
}
