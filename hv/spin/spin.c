/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directed yield: set-up, and beginning and end of a search. The hooks on the way of every switch
 * are inline in spin.h, the order of candidates is in policy.c.
 */
#include "hv/spin/spin.h"

#include "hv/lib/string.h"

static const char *const class_names[] = {
#define X(NAME, word, text) word,
    SPIN_CLASSES(X)
#undef X
};

_Static_assert(SPIN_COUNT_dy_relaxed - SPIN_COUNT_dy_receiver == SPIN_NR_CLASSES - 1 &&
		   SPIN_COUNT_dy_relaxed_hit - SPIN_COUNT_dy_receiver_hit == SPIN_NR_CLASSES - 1,
	       "one counter for each class, in their order");

const char *spin_class_name(u32 class)
{
	return class < SPIN_NR_CLASSES ? class_names[class] : "?";
}

void spin_vm_init(struct spin_vm *vm, const struct spin_knobs *knobs,
		  struct spin_vcpu *const *vcpus, u32 nr)
{
	u32 slots = 64;

	BUG_ON(!nr || nr > CFG_MAX_VCPUS);
	while (slots < 4 * nr)
		slots *= 2;
	memset(vm, 0, sizeof(*vm));
	vm->knobs = knobs;
	vm->vcpu = vcpus;
	vm->nr = nr;
	vm->slot_mask = slots - 1;
	vm->last_boosted = nr - 1;
}

void spin_vcpu_init(struct spin_vcpu *v, struct spin_vm *vm, u32 index, struct ipi_track *track)
{
	BUG_ON(index >= vm->nr);
	memset(v, 0, sizeof(*v));
	v->vm = vm;
	v->track = track;
	v->index = index;
	v->bit = BIT(index % 64);
	v->ready = &vm->ready[index / 64];
	v->pending = &vm->pending[index / 64];
	spin_ple_init(&v->ple, vm->knobs);
}

void spin_enter_spinning(struct spin_vcpu *v, bool in_kernel)
{
	if (!in_kernel) {
		spin_enter(v, SPIN_SPINNING_USER, SPIN_FIFO_USER);
		return;
	}
	bit_set_atomic(v->vm->spinning, v->index);
	spin_enter(v, SPIN_SPINNING, SPIN_NO_FIFO);
}

/* It spins no longer. */
static void spin_over(struct spin_vcpu *v)
{
	v->spinning = false;
	if (bit_test(v->vm->spinning, v->index))
		bit_clear_atomic(v->vm->spinning, v->index);
	if (v->vm->dy_eligible[v->index])
		WRITE_ONCE(v->vm->dy_eligible[v->index], 0);
}

void spin_reset(struct spin_vcpu *v)
{
	spin_over(v);
	v->hint = 0;
	v->left = 0;
	spin_ple_init(&v->ple, v->vm->knobs);
}

u64 spin_back(struct spin_vcpu *v, u64 now)
{
	u64 waited = now - v->left;

	spin_over(v);
	if (!v->left)
		return 0;
	v->left = 0;
	if ((s64)waited < 0) /* clocks of two pCPUs */
		waited = 0;
	v->stats.spin_wait_ticks += waited;
	hist_add(&v->wait, waited);
	return waited;
}

void spin_hint(struct spin_vcpu *me, u32 target, u64 now)
{
	if (target >= me->vm->nr || target == me->index)
		return;
	me->hint = target + 1;
	me->hint_time = now;
}

/* How many directed yields of one search may fail. */
static u32 tries_of(const struct spin_vm *vm)
{
	switch (READ_ONCE(vm->knobs->dy_tries)) {
	case SPIN_TRIES_LOG2:
		return clamp((u32)fls64(vm->nr + 1), 3u, (u32)SPIN_TRIES_MAX);
	case SPIN_TRIES_MIN8:
		return min(vm->nr - 1, 8u);
	default:
		return 3;
	}
}

bool spin_start(struct spin_walk *w, struct spin_vcpu *me, bool in_kernel, u64 spun, u64 now)
{
	struct spin_vm *vm = me->vm;
	u32 last;

	me->stats.spin_searches++;
	me->stats.spin_ticks += spun;
	if (!in_kernel)
		me->stats.spin_user++;
	if (!spin_any_ready(vm)) { /* the spinner itself runs */
		me->stats.spin_none++;
		return false;
	}
	me->spinning = true;
	w->target = NULL;
	w->class = 0;
	w->me = me;
	w->policy =
	    &spin_policies[min(READ_ONCE(vm->knobs->candidate_policy), (u32)SPIN_POLICIES - 1)];
	w->now = now;
	w->in_kernel = in_kernel;
	w->relaxed = READ_ONCE(vm->knobs->enable_relaxed_boost);
	w->stage = 0;
	w->begun = w->given = false;
	w->nr_tried = 0;
	w->tries = (u8)tries_of(vm);
	w->at = w->left = w->seen = 0;
	last = READ_ONCE(vm->last_boosted) + 1;
	w->start = last < vm->nr ? last : 0;
	w->expired = me->track ? me->track->count->ipi_expired : 0;
	return true;
}

void spin_tried(struct spin_walk *w, bool yielded, bool cross)
{
	struct spin_vcpu *me = w->me, *target = w->target;

	me->stats.directed_yield_attempted++;
	me->stats.at[SPIN_COUNT_dy_receiver + w->class]++;
	if (w->nr_tried < SPIN_TRIES_MAX)
		w->tried[w->nr_tried++] = (u8)target->index;
	if (!yielded) {
		w->tries--;
		return;
	}
	if (cross)
		me->stats.dy_cross_rq++;
	if (me->hint == target->index + 1)
		me->hint = 0;
	WRITE_ONCE(me->vm->last_boosted, target->index);
	target->boosted_by[target->boosts++ % SPIN_BOOSTS] = (u16)(w->class << 8 | me->index);
	w->given = true;
	w->tries = 0;
}

void spin_stop(struct spin_walk *w, bool leaves)
{
	struct spin_vcpu *me = w->me;

	if (me->track)
		me->stats.dy_stale += me->track->count->ipi_expired - w->expired;
	if (w->given)
		me->stats.spin_given++;
	else if (!w->nr_tried)
		me->stats.spin_none++;
	if (leaves)
		me->left = w->now;
	else
		spin_over(me);
}

/* Counts a hit for spinner and class @by. It may count on another pCPU meanwhile, but not these. */
static void count_hit(struct spin_vm *vm, u32 by)
{
	struct spin_stats *stats = &vm->vcpu[by & 0xff]->stats;

	__atomic_fetch_add(&stats->at[SPIN_COUNT_dy_receiver_hit + (by >> 8)], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&stats->directed_yield_successful, 1, __ATOMIC_RELAXED);
}

struct spin_vcpu *spin_outcome(struct spin_vcpu *target, bool ran)
{
	struct spin_vm *vm = target->vm;
	u32 nr = target->boosts, known = min(nr, (u32)SPIN_BOOSTS);

	if (!nr)
		return NULL;
	target->boosts = 0;
	for (u32 i = 0; ran && i < known; i++)
		count_hit(vm, target->boosted_by[i]);
	return vm->vcpu[target->boosted_by[(nr - 1) % SPIN_BOOSTS] & 0xff];
}
