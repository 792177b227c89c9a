/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a vCPU on a run queue: charged, put, picked, blocked, woken, moved. The arithmetic is
 * in rq.c, the choice in pick.c, the books in account.c, directed yields in yield.c.
 */
#include "hv/sched/internal.h"

#ifdef VLAG_DEBUG
void sched_section_check(struct run_queue *rq, bool open);
void sched_section_check(struct run_queue *rq, bool open)
{
	/* The clock is set exactly once per lock section, before the first use. */
	BUG_ON(rq->in_section == open);
	rq->in_section = open;
}
#endif

void sched_rq_init(struct run_queue *rq, u32 cpu, const struct sched_knobs *knobs, u64 now_ns)
{
	*rq = (struct run_queue){.cpu = cpu, .knobs = knobs, .clock = now_ns};
	timeline_init(&rq->root, 0);
	rq->fluid_clock = now_ns;
	rq->idle = true;
	rq->idle_since = now_ns;
	rq->balance_next = now_ns + knobs->balance_interval_ns;
}

void sched_update_curr(struct run_queue *rq)
{
	struct sched_vcpu *v = rq->curr;
	struct sched_entity *se;
	u64 ran;

	assert_section(rq);
	if (!v)
		return;
	ran = rq->clock - v->exec_start;
	if (!ran)
		return;
	v->exec_start = rq->clock;
	v->unsettled_ns += ran;
	sched_count(rq, v, run_ns, ran);
	/* The machine may have stood still for hours (a paused nested guest); virtual time must
	   stay where its products fit into 64 bits. */
	if (unlikely(ran > CHARGE_MAX_NS))
		ran = CHARGE_MAX_NS;
	se = &v->se;
	for (; se; se = se->parent) {
		se->vruntime += calc_delta_fair(ran, se);
		if (vdiff(se->vruntime, se->deadline) >= 0)
			entity_renew(se->timeline, se, rq->knobs);
	}
}

/* ---- weights ---- */

static void reweight_group(struct run_queue *rq, struct sched_group_rq *grq)
{
	u64 weight, load;

	/* Each is read once: what it is made of and what is remembered are the same, or a change
	   between the two would never be noticed. */
	grq->weight_seen = READ_ONCE(grq->group->weight);
	grq->load_seen = READ_ONCE(grq->group->load);
	weight = (u64)grq->weight_seen << LOAD_SHIFT;
	load = max(grq->load_seen, grq->load); /* racing with another pCPU */
	entity_reweight(&rq->root, &grq->se, load ? weight * grq->load / load : weight);
}

static inline bool group_stale(const struct sched_group_rq *grq)
{
	return grq->weight_seen != READ_ONCE(grq->group->weight) ||
	       grq->load_seen != READ_ONCE(grq->group->load);
}

/* The VM's weight or its number of runnable vCPUs may have changed, on any pCPU. */
static __attribute__((noinline)) void renew_share(struct run_queue *rq, struct sched_vcpu *v)
{
	u64 share = sched_share(v);

	if (share != v->contrib) {
		account_settle(rq, v);
		account_load(rq, rq->load + share - v->contrib);
		v->contrib = share;
	}
	if (v->se.parent)
		reweight_group(rq, group_rq_of(v->se.parent));
	else
		entity_reweight(&rq->root, &v->se, share);
}

static inline void refresh_share(struct run_queue *rq, struct sched_vcpu *v)
{
	if (unlikely(share_stale(v)) || (v->se.parent && group_stale(group_rq_of(v->se.parent))))
		renew_share(rq, v);
}

void sched_vcpu_set_weight(struct run_queue *rq, struct sched_vcpu *v, u32 weight)
{
	bool runnable = v->state == SCHED_QUEUED || v->state == SCHED_RUNNING;
	u32 old = v->weight;

	assert_section(rq);
	sched_update_curr(rq);
	weight = clamp(weight, 64u, 16384u);
	if (runnable) {
		account_settle(rq, v);
		__atomic_add_fetch(&v->group->load, (u64)weight - old, __ATOMIC_RELAXED);
		if (v->se.parent)
			group_rq_of(v->se.parent)->load += (u64)weight - old;
	}
	v->weight = weight;
	if (v->se.parent || !v->se.timeline)
		entity_reweight(v->se.timeline, &v->se, (u64)weight << LOAD_SHIFT);
	if (runnable)
		renew_share(rq, v);
	else
		v->weight_seen = 0;
	sched_arm(rq);
}

/* ---- on and off the timelines ---- */

/* Becomes runnable: counts in the loads, from now on the fluid scheduler serves it too. */
static inline void load_add(struct run_queue *rq, struct sched_vcpu *v)
{
	__atomic_add_fetch(&v->group->load, v->weight, __ATOMIC_RELAXED);
	if (v->se.parent)
		group_rq_of(v->se.parent)->load += v->weight;
	if (unlikely(share_stale(v)))
		v->contrib = sched_share(v);
	account_load(rq, rq->load + v->contrib);
	v->fluid_start = rq->fluid;
	WRITE_ONCE(rq->nr_running, rq->nr_running + 1);
}

/* The opposite; @v is settled. */
static inline void load_sub(struct run_queue *rq, struct sched_vcpu *v)
{
	account_load(rq, rq->load - v->contrib);
	__atomic_sub_fetch(&v->group->load, v->weight, __ATOMIC_RELAXED);
	if (v->se.parent)
		group_rq_of(v->se.parent)->load -= v->weight;
	WRITE_ONCE(rq->nr_running, rq->nr_running - 1);
}

static void level_add(struct sched_timeline *tl, struct sched_entity *se, u32 flags,
		      const struct sched_knobs *knobs)
{
	s64 vlag = knobs->PLACE_LAG && tl->nr_queued ? se->vlag : 0;

	entity_place(tl, se, vlag, flags & ENQUEUE_INITIAL, knobs);
	timeline_insert(tl, se);
	se->on_rq = true;
	tl->nr_queued++;
}

static void level_remove(struct sched_timeline *tl, struct sched_entity *se, u32 flags,
			 const struct sched_knobs *knobs)
{
	entity_save_lag(tl, se, knobs);
	se->delayed = false;
	if (!(flags & DEQUEUE_SLEEP) && knobs->PLACE_REL_DEADLINE) {
		se->deadline -= se->vruntime;
		se->rel_deadline = true;
	}
	if (tl->next == se)
		tl->next = NULL;
	if (tl->curr == se)
		tl->curr = NULL;
	else
		timeline_erase(tl, se);
	se->on_rq = false;
	tl->nr_queued--;
}

static __always_inline void enqueue(struct run_queue *rq, struct sched_vcpu *v, u32 flags)
{
	struct sched_group *group = v->group;
	struct sched_group_rq *grq = NULL;
	u64 weight;

	if (unlikely(v->mode != rq->knobs->sched_mode)) {
		v->mode = rq->knobs->sched_mode;
		v->weight_seen = 0; /* never the weight of a VM: the share is made anew */
	}
	if (v->mode == SCHED_MODE_GROUP && rq->cpu < group->nr_rqs)
		grq = &group->rqs[rq->cpu];
	v->rq = rq;
	v->se.parent = grq ? &grq->se : NULL;
	v->se.timeline = grq ? &grq->timeline : &rq->root;
	load_add(rq, v);
	weight = grq ? (u64)v->weight << LOAD_SHIFT : v->contrib;
	if (weight != v->se.weight)
		entity_reweight(v->se.timeline, &v->se, weight);
	level_add(v->se.timeline, &v->se, flags, rq->knobs);
	if (!grq)
		return;
	grq->se.timeline = &rq->root;
	reweight_group(rq, grq);
	if (!grq->se.on_rq)
		level_add(&rq->root, &grq->se, flags, rq->knobs);
}

void sched_enqueue(struct run_queue *rq, struct sched_vcpu *v, u32 flags)
{
	enqueue(rq, v, flags);
}

/* Off the timelines; the loads are load_sub()'s business. */
static void levels_remove(struct run_queue *rq, struct sched_vcpu *v, u32 flags)
{
	struct sched_entity *parent = v->se.parent;

	level_remove(v->se.timeline, &v->se, flags, rq->knobs);
	if (!parent)
		return;
	if (parent->child->nr_queued)
		reweight_group(rq, group_rq_of(parent));
	else
		level_remove(&rq->root, parent, flags, rq->knobs);
}

void sched_dequeue(struct run_queue *rq, struct sched_vcpu *v, u32 flags)
{
	account_settle(rq, v);
	load_sub(rq, v);
	levels_remove(rq, v, flags);
}

/* ---- putting and picking ---- */

/* From current into the tree, from the vCPU up to below @stop. */
static void put_levels(struct sched_entity *se, const struct sched_entity *stop)
{
	for (; se != stop; se = se->parent) {
		struct sched_timeline *tl = se->timeline;

		if (tl->curr != se)
			continue;
		tl->curr = NULL;
		timeline_insert(tl, se);
	}
}

/* @v, charged up to the clock, stops running; whether it stays queued is the caller's decision. */
static void leave_pcpu(struct run_queue *rq, struct sched_vcpu *v)
{
	account_settle(rq, v);
	hist_add(&v->slice, rq->clock - v->run_start);
	v->last_ran = rq->clock;
	rq->curr = NULL;
}

/* It no longer waits: that time was steal. */
static __always_inline void note_waited(struct run_queue *rq, struct sched_vcpu *v)
{
	/* The clocks of two pCPUs may differ a little. */
	u64 waited = (u64)max(vdiff(rq->clock, v->wait_start), (s64)0);

	hist_add(&v->wait, waited);
	sched_count(rq, v, run_delay_ns, waited);
}

static inline void preempted(struct run_queue *rq, struct sched_vcpu *v)
{
	v->wait_start = rq->clock;
	WRITE_ONCE(v->state, SCHED_QUEUED);
	sched_count(rq, v, nr_preempted, 1);
}

static void put_prev(struct run_queue *rq, struct sched_vcpu *v)
{
	leave_pcpu(rq, v);
	put_levels(&v->se, NULL);
	preempted(rq, v);
}

/* @v, which is current on its timelines, is what @rq runs from now on. */
static __always_inline void begin_run(struct run_queue *rq, struct sched_vcpu *v)
{
	v->fluid_run = rq->fluid;
	v->run_start = v->exec_start = rq->clock;
	WRITE_ONCE(v->state, SCHED_RUNNING);
	sched_count(rq, v, nr_switches, 1);
	rq->curr = v;
	if (rq->idle) {
		rq->idle = false;
		rq->idle_ns += rq->clock - rq->idle_since;
	}
}

/*
 * @next runs, and @prev if there is one waits. The tree gives before it takes: it stays one node
 * smaller, and small trees are what this is about.
 */
static void switch_to(struct run_queue *rq, struct sched_vcpu *prev, struct sched_vcpu *next)
{
	struct sched_entity *se, *stop = NULL;

	if (prev) {
		leave_pcpu(rq, prev);
		if (prev->se.timeline == next->se.timeline)
			stop = next->se.parent;
	}
	for (se = &next->se; se != stop; se = se->parent) {
		if (se->timeline->curr != se)
			timeline_erase(se->timeline, se);
	}
	if (prev) {
		put_levels(&prev->se, stop);
		preempted(rq, prev);
	}
	se = &next->se;
	for (; se; se = se->parent) {
		struct sched_timeline *tl = se->timeline;
		bool buddy = tl->next == se;

		if (tl->curr != se || !entity_protected(se)) {
			tl->curr = se;
			entity_protect(tl, se, rq->knobs);
			tl->early = buddy && tl->advance;
			if (unlikely(tl->early))
				entity_protect_early(se, rq->knobs);
		}
		if (unlikely(buddy))
			tl->next = NULL;
	}
	note_waited(rq, next);
	account_advance(rq);
	begin_run(rq, next);
	refresh_share(rq, next);
}

/* What runs goes on: it was compared with all others just now, so its protection starts anew. */
static void keep_curr(struct run_queue *rq, struct sched_vcpu *v)
{
	struct sched_entity *se = &v->se;

	refresh_share(rq, v);
	for (; se; se = se->parent) {
		if (se->timeline->next == se)
			se->timeline->next = NULL;
		if (!entity_protected(se)) {
			entity_protect(se->timeline, se, rq->knobs);
			se->timeline->early = false;
		}
	}
}

/* Down the levels to the vCPU that is due; the delayed ones that are found on the way have paid and
 * leave for good. */
static struct sched_vcpu *pick(struct run_queue *rq)
{
	while (rq->root.nr_queued) {
		struct sched_entity *se = timeline_pick(&rq->root, true, rq->knobs);

		while (se->child)
			se = timeline_pick(se->child, true, rq->knobs);
		if (likely(!se->delayed))
			return vcpu_of(se);
		levels_remove(rq, vcpu_of(se), DEQUEUE_SLEEP);
	}
	return NULL;
}

static void note_yield_hit(struct run_queue *rq, struct sched_vcpu *next)
{
	if (next && next == rq->yield_expect)
		sched_count(rq, next, yield_hit, rq->yield_expected);
	rq->yield_expect = NULL;
}

struct sched_vcpu *sched_pick_next(struct run_queue *rq)
{
	struct sched_vcpu *prev = rq->curr, *next;

	if (prev) {
		/* Nobody to compare it with: not even the charge is due. */
		if (rq->root.nr_queued == 1 && !prev->se.parent && !rq->root.next &&
		    !rq->yield_expect && prev->mode == rq->knobs->sched_mode) {
			rq->slice_end = SCHED_NEVER;
			return prev;
		}
		sched_update_curr(rq);
		if (unlikely(prev->mode != rq->knobs->sched_mode)) {
			/* sched_mode was changed: each vCPU moves over after its turn. */
			put_prev(rq, prev);
			sched_dequeue(rq, prev, 0);
			sched_enqueue(rq, prev, 0);
			prev = NULL;
		}
	}
	next = pick(rq);
	if (unlikely(rq->yield_expect))
		note_yield_hit(rq, next);
	if (unlikely(!next)) {
		if (!rq->idle) {
			rq->idle = true;
			rq->idle_since = rq->clock;
		}
	} else if (prev == next) {
		keep_curr(rq, prev);
	} else {
		switch_to(rq, prev, next);
	}
	sched_arm(rq);
	return next;
}

void sched_arm_among(struct run_queue *rq)
{
	u64 end = SCHED_NEVER;
	struct sched_entity *se;

	if (!rq->curr) {
		rq->slice_end = 0;
		return;
	}
	se = &rq->curr->se;
	for (; se; se = se->parent) {
		u64 until;
		s64 left;

		if (se->timeline->nr_queued < 2)
			continue;
		until = entity_protected(se) ? se->vprot : se->deadline;
		left = max(vdiff(until, se->vruntime), (s64)0);
		/* Rounded up: at that time the charge has reached it. */
		left = vtime_to_ns(left, se->weight) + 1 + (s64)(se->weight >> NICE_0_SHIFT);
		end = min(end, rq->clock + (u64)left);
	}
	rq->slice_end = end;
}

/* ---- blocking and waking ---- */

void sched_block(struct run_queue *rq)
{
	struct sched_vcpu *v = rq->curr;
	struct sched_timeline *tl;

	BUG_ON(!v);
	sched_update_curr(rq);
	tl = v->se.timeline;
	leave_pcpu(rq, v);
	load_sub(rq, v);
	sched_count(rq, v, nr_voluntary, 1);
	WRITE_ONCE(v->state, SCHED_BLOCKED);
	if (rq->knobs->DELAY_DEQUEUE && tl->nr_queued > 1 && !entity_eligible(tl, &v->se)) {
		entity_save_lag(tl, &v->se, rq->knobs);
		v->se.delayed = true;
		if (tl->next == &v->se)
			tl->next = NULL;
		sched_count(rq, v, nr_delayed, 1);
	} else {
		levels_remove(rq, v, DEQUEUE_SLEEP);
	}
	if (v->se.on_rq || v->se.parent)
		put_levels(&v->se, NULL);
	rq->slice_end = 0;
}

bool sched_remove(struct run_queue *rq, struct sched_vcpu *v)
{
	bool ran = v->state == SCHED_RUNNING;

	sched_update_curr(rq);
	if (ran)
		leave_pcpu(rq, v);
	if (v->state == SCHED_QUEUED) {
		note_waited(rq, v);
		account_settle(rq, v);
	}
	if (ran || v->state == SCHED_QUEUED)
		load_sub(rq, v);
	if (rq->yield_expect == v)
		rq->yield_expect = NULL;
	if (v->se.on_rq)
		levels_remove(rq, v, DEQUEUE_SLEEP);
	if (ran)
		put_levels(&v->se, NULL);
	WRITE_ONCE(v->state, SCHED_BLOCKED);
	sched_arm(rq);
	return ran;
}

bool sched_wake_claim(struct run_queue *rq, struct sched_vcpu *v, u32 cpu)
{
	assert_section(rq);
	if (v->state != SCHED_BLOCKED)
		return false;
	if (!v->se.on_rq)
		WRITE_ONCE(v->cpu, cpu);
	WRITE_ONCE(v->state, SCHED_WAKING);
	return true;
}

/* It blocked with negative lag and is still queued: what remains of the debt is kept. */
static void wake_delayed(struct run_queue *rq, struct sched_vcpu *v)
{
	struct sched_timeline *tl = v->se.timeline;
	bool cut = entity_save_lag(tl, &v->se, rq->knobs);

	v->se.delayed = false;
	load_add(rq, v);
	if (cut) {
		timeline_erase(tl, &v->se);
		entity_place(tl, &v->se, v->se.vlag, false, rq->knobs);
		timeline_insert(tl, &v->se);
	}
	if (v->se.parent)
		reweight_group(rq, group_rq_of(v->se.parent));
	else
		entity_reweight(tl, &v->se, v->contrib);
}

/* Both charged up to the clock. */
static bool preempts(struct run_queue *rq, struct sched_vcpu *v)
{
	const struct sched_knobs *knobs = rq->knobs;
	struct sched_entity *curr = &rq->curr->se, *woken = &v->se;
	struct sched_timeline *tl;

	if (!knobs->WAKEUP_PREEMPTION)
		return false;
	if (curr->timeline != woken->timeline) {
		/* They meet at the root. */
		curr = curr->parent ? curr->parent : curr;
		woken = woken->parent ? woken->parent : woken;
	}
	tl = curr->timeline;
	if (unlikely(woken->slice < curr->slice) && knobs->PREEMPT_SHORT &&
	    timeline_pick(tl, false, knobs) == woken) {
		entity_unprotect(curr);
		return true;
	}
	if (timeline_pick(tl, true, knobs) != curr)
		return true;
	if (!entity_protected(curr)) {
		entity_protect(tl, curr, knobs);
	} else if (unlikely(woken->slice < curr->slice) && knobs->RUN_TO_PARITY) {
		/* A shorter request has come: the protection shrinks to it. */
		u64 vprot = curr->vruntime + calc_delta_fair(woken->slice, curr);

		if (vdiff(vprot, curr->vprot) < 0)
			curr->vprot = vprot;
	}
	return false;
}

/*
 * @v, WAKING, comes to a run queue on which nobody is: there is nothing to compare and no lag to
 * keep, so it is current at once, and the pick that follows has only to say so.
 */
static void run_alone(struct run_queue *rq, struct sched_vcpu *v)
{
	struct sched_entity *se = &v->se;
	u64 vruntime = rq->root.zero_vruntime;

	v->rq = rq;
	se->parent = NULL;
	se->timeline = &rq->root;
	load_add(rq, v);
	if (v->contrib != se->weight)
		entity_set_weight(se, v->contrib);
	if (!se->custom_slice)
		se->slice = (u32)rq->knobs->base_slice_ns;
	se->vruntime = vruntime;
	se->deadline = vruntime + calc_delta_fair(se->slice, se);
	se->vprot = se->deadline;
	se->rel_deadline = false;
	se->on_rq = true;
	rq->root.curr = se;
	rq->root.nr_queued = 1;
	hist_add(&v->wait, 0);
	begin_run(rq, v);
	rq->slice_end = SCHED_NEVER;
}

bool sched_wake(struct run_queue *rq, struct sched_vcpu *v)
{
	assert_section(rq);
	if (rq->curr)
		sched_update_curr(rq);
	if (unlikely(v->state != SCHED_WAKING))
		return false; /* sched_remove() came in between */
	BUG_ON(v->cpu != rq->cpu);
	if (!rq->root.nr_queued && v->mode == rq->knobs->sched_mode &&
	    v->mode != SCHED_MODE_GROUP && v->rq) {
		sched_count(rq, v, nr_wakeups, 1);
		run_alone(rq, v);
		return true;
	}
	if (unlikely(v->se.on_rq))
		wake_delayed(rq, v);
	else
		enqueue(rq, v, v->rq ? 0 : ENQUEUE_INITIAL);
	v->wait_start = rq->clock;
	WRITE_ONCE(v->state, SCHED_QUEUED);
	sched_count(rq, v, nr_wakeups, 1);
	if (!rq->curr)
		return true;
	if (preempts(rq, v)) {
		sched_count(rq, v, nr_wakeup_preempt, 1);
		rq->slice_end = rq->clock;
		return true;
	}
	sched_arm(rq);
	return false;
}

bool sched_wakeup_preempt(struct run_queue *rq, struct sched_vcpu *v)
{
	if (!rq->curr)
		return true;
	sched_update_curr(rq);
	return preempts(rq, v);
}

bool sched_migrate(struct run_queue *from, struct run_queue *to, struct sched_vcpu *v)
{
	BUG_ON(v->state != SCHED_QUEUED || v->cpu != from->cpu || from == to);
	sched_update_curr(from);
	sched_update_curr(to);
	sched_dequeue(from, v, 0);
	if (from->yield_expect == v)
		from->yield_expect = NULL;
	WRITE_ONCE(v->cpu, to->cpu);
	sched_enqueue(to, v, 0);
	v->last_moved = to->clock;
	sched_count(to, v, nr_migrations, 1);
	sched_arm(from);
	if (sched_wakeup_preempt(to, v)) {
		to->slice_end = to->clock;
		return true;
	}
	sched_arm(to);
	return false;
}

/* ---- checking ---- */

static void check_tree(const struct sched_timeline *tl, const struct sched_entity *se, s64 *sum,
		       u64 *weight, u32 *count)
{
	const struct sched_entity *left = RB_LEFT(se, node), *right = RB_RIGHT(se, node);
	u64 least = se->vruntime;
	u32 longest = se->slice, shortest = se->slice;

	BUG_ON(!se->on_rq || se->timeline != tl || se->rel_deadline);
	if (left) {
		BUG_ON(RB_PARENT(left, node) != se || vdiff(left->deadline, se->deadline) > 0);
		check_tree(tl, left, sum, weight, count);
		least = vdiff(left->min_vruntime, least) < 0 ? left->min_vruntime : least;
		longest = max(longest, left->max_slice);
		shortest = min(shortest, left->min_slice);
	}
	if (right) {
		BUG_ON(RB_PARENT(right, node) != se || vdiff(right->deadline, se->deadline) < 0);
		check_tree(tl, right, sum, weight, count);
		least = vdiff(right->min_vruntime, least) < 0 ? right->min_vruntime : least;
		longest = max(longest, right->max_slice);
		shortest = min(shortest, right->min_slice);
	}
	BUG_ON(se->min_vruntime != least || se->max_slice != longest || se->min_slice != shortest);
	*sum += key_mul(entity_key(tl, se), se->weight);
	*weight += se->weight;
	(*count)++;
	if (se->child) {
		s64 below_sum = 0;
		u64 below_weight = 0;
		u32 below = 0;

		BUG_ON(!RB_ROOT(&se->child->tree) || se->child->curr);
		check_tree(se->child, RB_ROOT(&se->child->tree), &below_sum, &below_weight, &below);
		BUG_ON(below != se->child->nr_queued || below_weight != se->child->sum_weight ||
		       below_sum != se->child->sum_w_vruntime);
	}
}

static void check_timeline(const struct sched_timeline *tl)
{
	s64 sum = 0;
	u64 weight = 0;
	u32 count = 0;

	if (RB_ROOT(&tl->tree))
		check_tree(tl, RB_ROOT(&tl->tree), &sum, &weight, &count);
	BUG_ON(sum != tl->sum_w_vruntime || weight != tl->sum_weight);
	if (tl->curr) {
		BUG_ON(!tl->curr->on_rq || tl->curr->timeline != tl || tl->curr->rel_deadline);
		count++;
		if (tl->curr->child)
			check_timeline(tl->curr->child);
	}
	BUG_ON(count != tl->nr_queued);
	BUG_ON(tl->next && (!tl->next->on_rq || tl->next->delayed || tl->next->timeline != tl));
}

void sched_check(struct run_queue *rq)
{
	check_timeline(&rq->root);
	BUG_ON(rq->nr_running > 0 && !rq->load);
	BUG_ON(rq->curr && (rq->curr->state != SCHED_RUNNING || rq->curr->cpu != rq->cpu));
	BUG_ON(!!rq->curr != !!rq->root.curr);
}
