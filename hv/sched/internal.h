/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of hv/sched share: virtual-time arithmetic and the operations on one timeline.
 * Nobody outside hv/sched and its tests includes this. Everything here needs the run queue's lock.
 */
#ifndef VLAG_SCHED_INTERNAL_H
#define VLAG_SCHED_INTERNAL_H

#include "hv/lib/bug.h"
#include "hv/sched/sched.h"

#define LOAD_SHIFT 10		       /* weights inside are scaled by this, as in Linux */
#define NICE_0_SHIFT (10 + LOAD_SHIFT) /* scaled weight of nice 0 is 2^20 */
#define INV_SHIFT (NICE_0_SHIFT + 32)  /* inv_weight = 2^52 / weight */
#define SLICE_MAX_NS 100000000u	       /* as Linux bounds custom slices */
#define SLICE_MIN_NS 100000u
#define CHARGE_MAX_NS (1ull << 32) /* virtual time charged at once */

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static inline struct sched_vcpu *vcpu_of(struct sched_entity *se)
{
	return container_of(se, struct sched_vcpu, se);
}

static inline struct sched_group_rq *group_rq_of(struct sched_entity *se)
{
	return container_of(se, struct sched_group_rq, se);
}

/* a - b of two virtual times or clocks, which wrap. */
static inline s64 vdiff(u64 a, u64 b)
{
	return (s64)(a - b);
}

/* Service time in ns -> virtual time of @se, and back; both round down. */
static inline u64 calc_delta_fair(u64 ns, const struct sched_entity *se)
{
	return (u64)((u128)ns * se->inv_weight >> 32);
}

static inline s64 vtime_to_ns(s64 dv, u64 weight)
{
	return (s64)((s128)dv * (s64)weight >> NICE_0_SHIFT);
}

static inline s64 entity_key(const struct sched_timeline *tl, const struct sched_entity *se)
{
	return vdiff(se->vruntime, tl->zero_vruntime);
}

/* key * weight must stay far from 2^63; see docs/scheduler.md, "Nothing overflows". */
static inline s64 key_mul(s64 key, u64 weight)
{
#ifdef VLAG_DEBUG
	s64 product;

	BUG_ON(__builtin_mul_overflow(key, (s64)weight, &product));
	BUG_ON((product >> 63) != (product >> 62));
#endif
	return key * (s64)weight;
}

/* v0 += delta; the sum follows. */
static inline void timeline_shift_zero(struct sched_timeline *tl, s64 delta)
{
	tl->sum_w_vruntime -= key_mul(delta, tl->sum_weight);
	tl->zero_vruntime += (u64)delta;
}

/* Weight of everything that competes, current included. */
static inline u64 timeline_weight(const struct sched_timeline *tl)
{
	return tl->sum_weight + (tl->curr ? tl->curr->weight : 0);
}

/* a / b rounded towards minus infinity, b > 0. */
static inline s64 div_floor(s64 a, s64 b)
{
	if (a < 0)
		a -= b - 1;
	return a / b;
}

/*
 * V, the weighted mean of the virtual runtimes of all that competes, rounded down so that an entity
 * at V is eligible. Moves v0 there: this is what keeps the keys small, and why every path that
 * places, saves lag or renews a deadline comes through here. An empty timeline stays where it was,
 * so that whoever enters next does not start at 0.
 */
static inline u64 timeline_avg(struct sched_timeline *tl)
{
	struct sched_entity *curr = tl->curr;
	s64 sum = tl->sum_w_vruntime, weight = (s64)tl->sum_weight;

	if (!weight) {
		if (curr)
			tl->zero_vruntime = curr->vruntime;
		return tl->zero_vruntime;
	}
	if (curr) {
		sum += key_mul(entity_key(tl, curr), curr->weight);
		weight += (s64)curr->weight;
	}
	timeline_shift_zero(tl, div_floor(sum, weight));
	return tl->zero_vruntime;
}

/* What an eligibility test needs, gathered once for many tests. */
struct timeline_mean {
	s64 sum, weight;
	u64 zero;
};

static inline struct timeline_mean timeline_mean(const struct sched_timeline *tl)
{
	struct timeline_mean m = {
	    .sum = tl->sum_w_vruntime,
	    .weight = (s64)tl->sum_weight,
	    .zero = tl->zero_vruntime,
	};

	if (tl->curr) {
		m.sum += key_mul(entity_key(tl, tl->curr), tl->curr->weight);
		m.weight += (s64)tl->curr->weight;
	}
	return m;
}

/* lag >= 0, that is v <= V, without dividing: sum of w_j (v_j - v0) >= (v - v0) sum of w_j. */
static inline bool mean_eligible(const struct timeline_mean *m, u64 vruntime)
{
	return (s128)vdiff(vruntime, m->zero) * m->weight <= m->sum;
}

static inline bool entity_eligible(const struct sched_timeline *tl, const struct sched_entity *se)
{
	struct timeline_mean m = timeline_mean(tl);

	return mean_eligible(&m, se->vruntime);
}

/* Longest and shortest request of all that competes; 0 and UINT32_MAX when nothing does. */
static inline u32 timeline_max_slice(const struct sched_timeline *tl)
{
	const struct sched_entity *root = RB_ROOT(&tl->tree);
	u32 slice = tl->curr ? tl->curr->slice : 0;

	return root ? max(slice, root->max_slice) : slice;
}

static inline u32 timeline_min_slice(const struct sched_timeline *tl)
{
	const struct sched_entity *root = RB_ROOT(&tl->tree);
	u32 slice = tl->curr ? tl->curr->slice : UINT32_MAX;

	return root ? min(slice, root->min_slice) : slice;
}

/* The legal lag of @se there is within plus/minus this (virtual time). */
static inline s64 entity_lag_limit(const struct sched_timeline *tl, const struct sched_entity *se,
				   const struct sched_knobs *knobs)
{
	return (s64)calc_delta_fair(timeline_max_slice(tl) + knobs->tick_ns, se);
}

/* ---- rq.c: the timeline ---- */

void timeline_init(struct sched_timeline *tl, u64 vruntime);
/* Into / out of a tree that has other nodes. */
void timeline_link(struct sched_timeline *tl, struct sched_entity *se);
void timeline_unlink(struct sched_timeline *tl, struct sched_entity *se);

static inline u64 both_slices(u32 slice)
{
	return (u64)slice << 32 | slice;
}

/* Into / out of the tree and the sums; on_rq, curr and nr_queued are the caller's. */
static inline void timeline_insert(struct sched_timeline *tl, struct sched_entity *se)
{
	tl->sum_w_vruntime += key_mul(entity_key(tl, se), se->weight);
	tl->sum_weight += se->weight;
	/* A leaf speaks for itself alone: whatever subtree it had before is gone. */
	se->min_vruntime = se->vruntime;
	se->slices = both_slices(se->slice);
	if (RB_ROOT(&tl->tree)) {
		timeline_link(tl, se);
		return;
	}
	RB_SET(se, NULL, node);
	RB_COLOR(se, node) = RB_BLACK;
	RB_ROOT(&tl->tree) = se;
}

static inline void timeline_erase(struct sched_timeline *tl, struct sched_entity *se)
{
	tl->sum_w_vruntime -= key_mul(entity_key(tl, se), se->weight);
	tl->sum_weight -= se->weight;
	if (tl->sum_weight)
		timeline_unlink(tl, se);
	else
		RB_ROOT(&tl->tree) = NULL;
}

void entity_init(struct sched_entity *se, u64 weight, u32 slice, bool custom_slice);
void entity_set_weight(struct sched_entity *se, u64 weight);
/* Weight of an entity that competes or not; its lag in service time and its request stay. */
void entity_reweight(struct sched_timeline *tl, struct sched_entity *se, u64 weight);
/* V - v within the legal bound, to se->vlag; returns whether the bound cut something off. */
bool entity_save_lag(struct sched_timeline *tl, struct sched_entity *se,
		     const struct sched_knobs *knobs);
/* Gives @se, which does not compete yet, its vruntime and deadline: its lag will be @vlag. */
void entity_place(struct sched_timeline *tl, struct sched_entity *se, s64 vlag, bool initial,
		  const struct sched_knobs *knobs);
/* Moves @se, which competes, by @dv: v, d and, for curr, vprot together. */
void entity_shift(struct sched_timeline *tl, struct sched_entity *se, s64 dv);
/* Moves @se, which competes with others, so that its lag is @vlag afterwards. */
void entity_set_lag(struct sched_timeline *tl, struct sched_entity *se, s64 vlag,
		    const struct sched_knobs *knobs);
/* The next request: deadline = vruntime + slice / weight. */
void entity_renew(struct sched_timeline *tl, struct sched_entity *se,
		  const struct sched_knobs *knobs);

/* ---- pick.c: who is next on one timeline ---- */

struct sched_entity *timeline_pick_of_many(struct sched_timeline *tl, bool protect,
					   const struct sched_knobs *knobs);
void entity_protect_among(struct sched_timeline *tl, struct sched_entity *se,
			  const struct sched_knobs *knobs);

/* @se was picked before its time: not for longer than the knob says. */
void entity_protect_early(struct sched_entity *se, const struct sched_knobs *knobs);

/* The eligible entity with the earliest deadline; with @protect slice protection and the buddy come
 * first. NULL only when nothing competes. */
static inline struct sched_entity *timeline_pick(struct sched_timeline *tl, bool protect,
						 const struct sched_knobs *knobs)
{
	if (tl->nr_queued > 1)
		return timeline_pick_of_many(tl, protect, knobs);
	return tl->curr ? tl->curr : RB_ROOT(&tl->tree);
}

/*
 * Once picked, an entity runs for the shortest request of the queue (RUN_TO_PARITY), or for
 * min_quantum_ns, before it is compared again; never beyond its deadline.
 */
static inline void entity_protect(struct sched_timeline *tl, struct sched_entity *se,
				  const struct sched_knobs *knobs)
{
	se->vprot = se->deadline;
	if (tl->nr_queued > 1)
		entity_protect_among(tl, se, knobs);
}

static inline bool entity_protected(const struct sched_entity *se)
{
	return vdiff(se->vruntime, se->vprot) < 0;
}

static inline void entity_unprotect(struct sched_entity *se)
{
	if (entity_protected(se))
		se->vprot = se->vruntime;
}

/* ---- core.c ---- */

#define ENQUEUE_INITIAL 1 /* never queued before */
#define DEQUEUE_SLEEP 1	  /* it blocks: its request ends */

void sched_enqueue(struct run_queue *rq, struct sched_vcpu *v, u32 flags);
void sched_dequeue(struct run_queue *rq, struct sched_vcpu *v, u32 flags);
void sched_arm_among(struct run_queue *rq);

/* Sets rq->slice_end for what runs now. */
static inline void sched_arm(struct run_queue *rq)
{
	if (rq->root.nr_queued > 1 || (rq->curr && rq->curr->se.parent))
		sched_arm_among(rq);
	else
		rq->slice_end = rq->curr ? SCHED_NEVER : 0;
}

/* ---- account.c: shares, and the ideal scheduler ---- */

/* Brings the fairness figures of a QUEUED or RUNNING @v, charged up to the clock, up to it. */
void account_settle(struct run_queue *rq, struct sched_vcpu *v);
/* The weight at which @v really competes on the machine, by its mode. */
u64 sched_share(struct sched_vcpu *v);

/* Has what sched_share() looked at changed since? */
static inline bool share_stale(const struct sched_vcpu *v)
{
	return v->weight_seen != READ_ONCE(v->group->weight) ||
	       (v->mode != SCHED_MODE_VCPU && v->load_seen != READ_ONCE(v->group->load));
}

/*
 * The fluid scheduler of a run queue serves all runnable vCPUs at once, each at the rate of its
 * share of the load. So one number per run queue, the service per unit of weight (fluid), says what
 * each deserved between any two moments: O(1) per event.
 */
static inline void account_advance(struct run_queue *rq)
{
	u64 dt = rq->clock - rq->fluid_clock;
	u128 grown;

	if (!dt)
		return;
	rq->fluid_clock = rq->clock;
	grown = (u128)dt * rq->load_inv + rq->fluid_rest; /* load_inv is 0 when nobody is there */
	rq->fluid += (u64)(grown >> 20);
	rq->fluid_rest = (u64)grown & (BIT(20) - 1);
}

static inline void account_load(struct run_queue *rq, u64 load)
{
	account_advance(rq);
	rq->load_inv = load ? BIT(52) / load : 0;
	WRITE_ONCE(rq->load, load);
}

#define sched_count(rq, v, field, n)                                                               \
	do {                                                                                       \
		(v)->stats.field += (n);                                                           \
		(rq)->stats.field += (n);                                                          \
	} while (0)

#ifdef VLAG_DEBUG
#define assert_section(rq) BUG_ON(!(rq)->in_section)
#else
#define assert_section(rq) ((void)(rq))
#endif

#endif
