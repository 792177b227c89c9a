/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directed yield: what yield_to(me, target) does with the run queue. Each policy is one function in
 * one table; all of them nominate the target as buddy first, which the pick honours when the target
 * is eligible. What they differ in is how they make it eligible, and who pays.
 *
 * Lags are handled in service units here, w (V - v), when they pass from one entity to another.
 */
#include "hv/sched/internal.h"

struct yield {
	struct run_queue *rq;	     /* of the yielder */
	struct run_queue *target_rq; /* the same, or another (boost) */
	struct sched_vcpu *me, *target;
	const struct sched_entity *nominated; /* the highest level at which the target is buddy */
	bool limited;			      /* no forced reschedule and no loan this time */
};

/* Makes @v's entity the buddy at every level up to the first that does not compete. Returns the
 * last one nominated. */
static const struct sched_entity *nominate(struct sched_vcpu *v)
{
	const struct sched_entity *last = NULL;
	struct sched_entity *se = &v->se;

	for (; se; se = se->parent) {
		if (!se->on_rq || se->delayed)
			break;
		se->timeline->next = se;
		se->timeline->advance = 0;
		last = se;
	}
	return last;
}

/*
 * The rest of the request is given up: v = d, and a new request after it. Only an eligible entity
 * has something to give up; without that test a loop of yields would carry the deadline away.
 */
static void forfeit(struct run_queue *rq, struct sched_entity *se)
{
	struct sched_timeline *tl = se->timeline;

	if (tl->nr_queued < 2 || !entity_eligible(tl, se))
		return;
	se->vruntime = se->deadline;
	entity_renew(tl, se, rq->knobs);
}

static s64 lag_of(struct sched_timeline *tl, const struct sched_entity *se)
{
	return vdiff(timeline_avg(tl), se->vruntime);
}

static void note_received(struct yield *y, s64 dv, u64 weight)
{
	s64 ns = vtime_to_ns(dv, weight);

	if (ns > 0)
		sched_count(y->target_rq, y->target, yield_received_ns, (u64)ns);
}

static void note_given(struct yield *y, s64 dv, u64 weight)
{
	s64 ns = vtime_to_ns(dv, weight);

	if (ns > 0)
		sched_count(y->rq, y->me, yield_given_ns, (u64)ns);
}

/* ---- forfeit ---- */

static void yield_forfeit(struct yield *y)
{
	u64 before = y->me->se.vruntime;

	forfeit(y->rq, &y->me->se);
	note_given(y, vdiff(y->me->se.vruntime, before), y->me->se.weight);
}

/* ---- deboost ---- */

/* A fraction of gran by the number that compete: the longer the queue, the less it takes to let
 * somebody else pass. */
static u64 by_queue(u64 gran, u32 nr, const u8 *sixteenths)
{
	u32 i = nr <= 2 ? 0 : nr == 3 ? 1 : nr <= 6 ? 2 : nr <= 8 ? 3 : nr <= 12 ? 4 : 5;

	return gran * sixteenths[i] / 16;
}

static void yield_deboost(struct yield *y)
{
	static const u8 margins[] = {16, 15, 10, 8, 6, 4};
	static const u8 caps[] = {96, 64, 40, 32, 24, 16};
	struct sched_entity *mine = &y->me->se, *theirs = &y->target->se;
	struct run_queue *rq = y->rq;
	struct sched_timeline *tl;
	u64 gran, cap;
	s64 need, penalty;

	/* The level that both share; across run queues there is none. */
	while (mine && theirs && mine->timeline != theirs->timeline) {
		mine = mine->parent;
		theirs = theirs->parent;
	}
	if (mine && theirs && mine != theirs && !y->limited) {
		tl = mine->timeline;
		gran = calc_delta_fair(rq->knobs->base_slice_ns, mine);
		need = max(vdiff(theirs->vruntime, mine->vruntime), (s64)0);
		penalty = need + need / 10 + (s64)by_queue(gran, tl->nr_queued, margins);
		if (rq->yield_last_from == y->target && rq->yield_last_to == y->me &&
		    rq->clock - rq->yield_last_pair <= rq->knobs->yield_debounce_ns)
			penalty = need; /* a yield back at once: no ping-pong of margins */
		cap = by_queue(gran, tl->nr_queued, caps);
		penalty = min(penalty, (s64)cap);
		/* Never beyond the legal lag. */
		penalty = min(penalty, lag_of(tl, mine) + entity_lag_limit(tl, mine, rq->knobs));
		if (penalty > 0) {
			mine->vruntime += (u64)penalty;
			entity_renew(tl, mine, rq->knobs);
			note_given(y, penalty, mine->weight);
		}
	}
	yield_forfeit(y);
}

/* ---- credit ---- */

static void yield_credit(struct yield *y)
{
	const struct sched_knobs *knobs = y->target_rq->knobs;
	struct sched_entity *se = &y->target->se;

	if (knobs->YIELD_TO_LAG_CREDIT) {
		/* Up every level that was nominated, and no further. */
		for (; se; se = se->parent) {
			struct sched_timeline *tl = se->timeline;
			u32 nr = tl->nr_queued;
			u32 slices = nr <= 4 ? 4 : nr <= 8 ? 6 : nr <= 16 ? 8 : 12;
			s64 margin = (s64)calc_delta_fair(knobs->base_slice_ns * slices, se);
			s64 lag = lag_of(tl, se);

			margin = min(margin, entity_lag_limit(tl, se, knobs));
			/* The target up to the margin; the levels above it only if they would
			   stop it. */
			if (tl->nr_queued > 1 && lag < (se->child ? 0 : margin)) {
				entity_set_lag(tl, se, margin, knobs);
				note_received(y, margin - lag, se->weight);
			}
			if (se == y->nominated)
				break;
		}
	}
	yield_forfeit(y);
}

/* ---- transfer ---- */

/*
 * Takes @mine's positive lag off it, as far as @theirs may receive it within its legal bound, and
 * returns how far @theirs is to be shifted for it (virtual time of @theirs, not yet done).
 */
static s64 take(struct yield *y, struct sched_entity *mine, struct sched_entity *theirs, s64 lag)
{
	struct sched_timeline *from = mine->timeline, *to = theirs->timeline;
	s64 give, room, paid;

	if (from->nr_queued < 2 || to->nr_queued < 2)
		return 0;
	room = entity_lag_limit(to, theirs, y->target_rq->knobs) - lag;
	give = key_mul(max(lag_of(from, mine), (s64)0), mine->weight);
	give = min(give, key_mul(max(room, (s64)0), theirs->weight));
	paid = give / (s64)mine->weight;
	if (paid <= 0)
		return 0;
	entity_shift(from, mine, paid);
	note_given(y, paid, mine->weight);
	return key_mul(paid, mine->weight) / (s64)theirs->weight;
}

static void give(struct yield *y, struct sched_entity *theirs, s64 received)
{
	if (received <= 0)
		return;
	entity_shift(theirs->timeline, theirs, -received);
	note_received(y, received, theirs->weight);
}

/* A new request where it stands; giving up more would not be zero-sum. */
static void start_over(struct yield *y)
{
	struct sched_entity *mine = &y->me->se;

	if (mine->timeline->nr_queued > 1)
		entity_renew(mine->timeline, mine, y->rq->knobs);
}

/*
 * The yielder's positive lag goes to the target: w (V - v) is taken at one and given at the other,
 * so on one run queue V does not move. With two levels and two run queues the VM's entity here also
 * gives to the VM's entity there.
 */
static void pass_lag(struct yield *y)
{
	struct sched_entity *mine = &y->me->se, *theirs = &y->target->se;

	for (; mine && theirs && mine != theirs; mine = mine->parent, theirs = theirs->parent)
		give(y, theirs, take(y, mine, theirs, lag_of(theirs->timeline, theirs)));
}

static void yield_transfer(struct yield *y)
{
	pass_lag(y);
	start_over(y);
}

/* ---- auto ---- */

/*
 * Transfer first. If the target is behind V still, it may run before its time all the same, on
 * every level that was nominated: for yield_early_ns, and only as long as its lag stays legal. What
 * it lacks it owes, and pays by waiting, as everybody does who has run more than his share;
 * nobody's vruntime is touched for that, so neither debts nor V can run away.
 */
static void yield_auto(struct yield *y)
{
	const struct sched_knobs *knobs = y->target_rq->knobs;
	struct sched_entity *se = &y->target->se;
	bool lending = !y->limited && knobs->YIELD_TO_LAG_CREDIT;

	pass_lag(y);
	for (; lending; se = se->parent) {
		s64 limit = entity_lag_limit(se->timeline, se, knobs);
		s64 early = (s64)calc_delta_fair(knobs->yield_early_ns, se);

		se->timeline->advance = max(limit - early, (s64)0);
		if (se == y->nominated)
			break;
	}
	start_over(y);
}

/* ---- the common part ---- */

static void (*const policies[])(struct yield *) = {
    [SCHED_YIELD_FORFEIT] = yield_forfeit, [SCHED_YIELD_DEBOOST] = yield_deboost,
    [SCHED_YIELD_CREDIT] = yield_credit,   [SCHED_YIELD_TRANSFER] = yield_transfer,
    [SCHED_YIELD_AUTO] = yield_auto,
};

/* The run queue's own pace of directed yields (in practice: of pause-loop exits), for `auto`. */
static void note_rate(struct run_queue *rq)
{
	s64 interval = min(rq->clock - rq->yield_last, (u64)1 << 40);

	rq->yield_interval += (u64)((interval - (s64)rq->yield_interval) / 8);
	rq->yield_last = rq->clock;
}

/*
 * Forced reschedules of one run queue: at most one per yield_resched_min_ns. `auto` follows the
 * rate instead: an eighth of the mean time between yields, so that a steady stream passes and only
 * what comes much faster than the stream is held back. (Simulated: a half or a quarter cost success
 * rate and latency, and saved nothing.)
 */
static bool rate_limited(struct run_queue *rq, u32 policy)
{
	u64 least = rq->knobs->yield_resched_min_ns;

	if (policy == SCHED_YIELD_FORFEIT)
		return false; /* the baseline knows no limit */
	if (policy == SCHED_YIELD_AUTO) {
		u64 pace = max(rq->yield_interval / 8, rq->knobs->yield_auto_min_ns);

		least = min(least, pace);
	}
	if (rq->yield_last_resched && rq->clock - rq->yield_last_resched < least)
		return true;
	rq->yield_last_resched = rq->clock;
	return false;
}

/* Ends the yielder's slice protection, so that the pick compares. `credit` does so on every level,
 * the zero-sum policies leave the VM its turn. */
static void unprotect(struct sched_vcpu *me, u32 policy)
{
	struct sched_entity *se = &me->se;

	if (policy == SCHED_YIELD_FORFEIT)
		return;
	for (; se; se = se->parent) {
		entity_unprotect(se);
		if (policy != SCHED_YIELD_CREDIT)
			break;
	}
}

static void remember(struct yield *y)
{
	struct run_queue *rq = y->target_rq;

	y->rq->yield_last_from = y->me;
	y->rq->yield_last_to = y->target;
	y->rq->yield_last_pair = y->rq->clock;
	if (rq->yield_expect != y->target)
		rq->yield_expected = 0;
	rq->yield_expect = y->target;
	rq->yield_expected++;
	sched_count(y->rq, y->me, yield_done, 1);
}

u32 sched_yield_to(struct run_queue *rq, struct run_queue *target_rq, struct sched_vcpu *me,
		   struct sched_vcpu *target)
{
	u32 policy = min(rq->knobs->yield_policy, (u32)SCHED_YIELD_POLICIES - 1);
	u32 cross = rq->knobs->yield_cross_rq, result = 0;
	struct yield y = {.rq = rq, .target_rq = target_rq, .me = me, .target = target};

	assert_section(rq);
	assert_section(target_rq);
	BUG_ON(rq->curr != me);
	sched_count(rq, me, yield_attempted, 1);
	if (me == target || target->state != SCHED_QUEUED || target->cpu != target_rq->cpu)
		return 0;
	if (rq != target_rq && cross == SCHED_CROSS_OFF)
		return 0;
	if (rq != target_rq && cross == SCHED_CROSS_PULL && sched_cpu_allowed(target, rq->cpu)) {
		sched_migrate(target_rq, rq, target);
		y.target_rq = target_rq = rq;
		result |= SCHED_PULLED;
	}
	sched_update_curr(rq);
	if (target_rq != rq)
		sched_update_curr(target_rq);
	note_rate(target_rq);
	y.limited = rate_limited(target_rq, policy);
	if (y.limited)
		sched_count(rq, me, yield_limited, 1);
	y.nominated = nominate(target);
	policies[policy](&y);
	remember(&y);

	if (target_rq == rq) {
		if (!y.limited)
			unprotect(me, policy);
		result |= SCHED_DID_LOCAL;
	} else {
		if (!y.limited)
			result |= SCHED_KICK_REMOTE;
		sched_arm(target_rq);
		if (rq->root.nr_queued > 1)
			result |= SCHED_DID_LOCAL;
	}
	sched_arm(rq);
	return result;
}

void sched_yield_self(struct run_queue *rq)
{
	BUG_ON(!rq->curr);
	sched_update_curr(rq);
	rq->root.next = NULL;
	rq->curr->se.timeline->next = NULL;
	forfeit(rq, &rq->curr->se);
	sched_arm(rq);
}
