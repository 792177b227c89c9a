/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The candidate policies: in which order a spinner tries the vCPUs of its VM. Each policy is a list
 * of stages, each stage a function that offers its next candidate or none; a new policy is a list
 * and a line in the table at the end. Nothing here changes the state of a vCPU other than
 * dy_eligible.
 */
#include "hv/spin/spin.h"

typedef bool (*stage_fn)(struct spin_walk *w);

static bool offer(struct spin_walk *w, u32 id, enum spin_class class)
{
	w->target = w->me->vm->vcpu[id];
	w->class = class;
	return true;
}

static bool was_tried(const struct spin_walk *w, u32 id)
{
	for (u32 i = 0; i < w->nr_tried; i++) {
		if (w->tried[i] == id)
			return true;
	}
	return false;
}

static inline u32 how_of(const struct spin_walk *w, u32 id)
{
	return READ_ONCE(w->me->vm->how[id]);
}

static bool run_stages(struct spin_walk *w, const stage_fn *stages, u32 nr)
{
	while (w->stage < nr) {
		if (stages[w->stage](w))
			return true;
		w->stage++;
		w->begun = false;
	}
	return false;
}

/* True once for each stage. */
static bool begins(struct spin_walk *w)
{
	if (w->begun)
		return false;
	w->begun = true;
	return true;
}

/*
 * The next vCPU in both maps, round robin from w->start; -1 if there are no more. @map may be the
 * ready map itself.
 */
static int round_next(struct spin_walk *w, const u64 *map)
{
	const struct spin_vm *vm = w->me->vm;

	if (begins(w))
		w->at = 0;
	while (w->at < vm->nr) {
		u32 id = w->start + w->at, span;
		u64 word;

		if (id >= vm->nr)
			id -= vm->nr;
		word = (READ_ONCE(vm->ready[id / 64]) & READ_ONCE(map[id / 64])) >> (id % 64);
		if (word) {
			/* A bit beyond the VM's last vCPU is never set, one beyond the round's
			   end was looked at. */
			u32 skip = (u32)ffs64(word);

			w->at += skip + 1;
			if (w->at > vm->nr)
				return -1;
			w->seen++;
			return (int)(id + skip);
		}
		span = min(64 - id % 64, vm->nr - id);
		w->at += span;
	}
	return -1;
}

/*
 * The next vCPU of a FIFO, the one that waits longest first; -1 if there are no more. Positions
 * that are free and at least 64 behind the head stay so: nobody has to look at them again. (One
 * closer to it may have been claimed and not be marked yet.)
 */
static int fifo_next(struct spin_walk *w, u32 which)
{
	struct spin_vm *vm = w->me->vm;
	struct spin_fifo *f = &vm->fifo[which];
	bool first = begins(w);
	u32 head = 0;
	int id = -1;

	if (first) {
		head = READ_ONCE(f->head);
		w->left = min(head - READ_ONCE(f->tail), vm->slot_mask + 1);
		w->at = head - w->left;
	}
	while (w->left) {
		u32 slot = w->at & vm->slot_mask, span = min(64 - slot % 64, w->left);
		u64 word = READ_ONCE(f->live[slot / 64]) >> (slot % 64);
		u32 skip = word ? (u32)ffs64(word) : 64;

		if (skip < span) {
			id = READ_ONCE(f->id[slot + skip]);
			w->at += skip;
			w->left -= skip;
			break;
		}
		w->at += span;
		w->left -= span;
	}
	if (first && head - w->at < 64)
		WRITE_ONCE(f->tail, head - 64);
	else if (first)
		WRITE_ONCE(f->tail, w->at);
	if (id >= 0) {
		w->at++;
		w->left--;
		w->seen++;
	}
	return id;
}

/* ---- exact ---- */

static bool exact_receivers(struct spin_walk *w)
{
	struct ipi_track *t = w->me->track;
	struct ipi_wait wait;

	if (!t)
		return false;
	if (begins(w))
		w->at = t->tail;
	while (ipi_track_next(t, w->now, &w->at, &wait)) {
		w->seen++;
		if (wait.receiver < w->me->vm->nr && how_of(w, wait.receiver) != SPIN_GONE &&
		    !was_tried(w, wait.receiver))
			return offer(w, wait.receiver, SPIN_CLASS_RECEIVER);
	}
	return false;
}

static bool exact_hint(struct spin_walk *w)
{
	struct spin_vcpu *me = w->me;
	u32 id = me->hint - 1;

	if (likely(!me->hint) || !begins(w))
		return false;
	w->seen++;
	if (me->track && (s64)(w->now - me->hint_time) > (s64)me->track->knobs->window) {
		me->hint = 0;
		return false;
	}
	return how_of(w, id) != SPIN_GONE && !was_tried(w, id) && offer(w, id, SPIN_CLASS_HINT);
}

/* Does any waiting vCPU have an interrupt? Mostly not, and this is shorter than a round. */
static bool any_pending(const struct spin_vm *vm)
{
	for (u32 i = 0; i * 64 < vm->nr; i++) {
		if (READ_ONCE(vm->ready[i]) & READ_ONCE(vm->pending[i]))
			return true;
	}
	return false;
}

static bool exact_pending(struct spin_walk *w)
{
	int id;

	if (!any_pending(w->me->vm))
		return false;
	while ((id = round_next(w, w->me->vm->pending)) >= 0) {
		if (!was_tried(w, (u32)id))
			return offer(w, (u32)id, SPIN_CLASS_PENDING);
	}
	return false;
}

static bool exact_kernel(struct spin_walk *w)
{
	int id;

	while ((id = fifo_next(w, SPIN_FIFO_KERNEL)) >= 0) {
		u32 how = how_of(w, (u32)id);

		if ((how == SPIN_KERNEL || how == SPIN_WOKEN) && !was_tried(w, (u32)id))
			return offer(w, (u32)id,
				     how == SPIN_WOKEN ? SPIN_CLASS_WOKEN : SPIN_CLASS_KERNEL);
	}
	return false;
}

/*
 * Nothing is known of these, so the order is a guess: the next by number after the spinner, as what
 * guests hand on goes round by number more often than not, and whoever asks gets round to all.
 */
static bool exact_spinning(struct spin_walk *w)
{
	u32 after = w->me->index + 1;
	int id;

	if (!w->begun)
		w->start = after < w->me->vm->nr ? after : 0;
	while ((id = round_next(w, w->me->vm->spinning)) >= 0) {
		if (how_of(w, (u32)id) == SPIN_SPINNING && !was_tried(w, (u32)id))
			return offer(w, (u32)id, SPIN_CLASS_SPINNER);
	}
	return false;
}

/* Those preempted in user mode, for a search of the kind @in_kernel. */
static bool exact_user(struct spin_walk *w, bool in_kernel, enum spin_class class)
{
	int id;

	if (w->in_kernel != in_kernel)
		return false;
	while ((id = fifo_next(w, SPIN_FIFO_USER)) >= 0) {
		u32 how = how_of(w, (u32)id);

		if ((how != SPIN_USER && how != SPIN_SPINNING_USER) || was_tried(w, (u32)id))
			continue;
		if (in_kernel && !w->relaxed) {
			w->me->stats.dy_skipped_cpl++;
			return false;
		}
		return offer(w, (u32)id, class);
	}
	return false;
}

static bool exact_preempted(struct spin_walk *w)
{
	return exact_user(w, false, SPIN_CLASS_PREEMPTED);
}

static bool exact_relaxed(struct spin_walk *w)
{
	return exact_user(w, true, SPIN_CLASS_RELAXED);
}

/* A receiver, a named one, one with an interrupt is good even if it spins: it will answer. */
static bool exact_next(struct spin_walk *w)
{
	static const stage_fn stages[] = {exact_receivers, exact_hint,	    exact_pending,
					  exact_kernel,	   exact_preempted, exact_spinning,
					  exact_relaxed};

	return run_stages(w, stages, ARRAY_SIZE(stages));
}

/* ---- what kvm and ipi share ---- */

static bool spins(u32 how)
{
	return how == SPIN_SPINNING || how == SPIN_SPINNING_USER;
}

static bool user_mode(u32 how)
{
	return how == SPIN_USER || how == SPIN_SPINNING_USER;
}

/* Does not spin, or its turn has come. */
static bool eligible(const struct spin_walk *w, u32 id, u32 how)
{
	return !spins(how) || READ_ONCE(w->me->vm->dy_eligible[id]);
}

/* The same, and it is the other way round the next time: KVM's spin_loop and dy_eligible. */
static bool take_turn(struct spin_walk *w, u32 id, u32 how)
{
	u8 *flag = &w->me->vm->dy_eligible[id], was;

	if (!spins(how))
		return true;
	was = READ_ONCE(*flag);
	WRITE_ONCE(*flag, !was);
	if (!was)
		w->me->stats.dy_skipped_spinning++;
	return was;
}

static enum spin_class class_of(u32 how, enum spin_class user)
{
	return spins(how)	   ? SPIN_CLASS_SPINNER
	       : how == SPIN_WOKEN ? SPIN_CLASS_WOKEN
	       : user_mode(how)	   ? user
				   : SPIN_CLASS_KERNEL;
}

/* ---- kvm ---- */

static bool kvm_next(struct spin_walk *w)
{
	const struct spin_vm *vm = w->me->vm;
	int next;

	while ((next = round_next(w, vm->ready)) >= 0) {
		u32 id = (u32)next, how = how_of(w, id);
		bool pending = bit_test(vm->pending, id);

		if (how == SPIN_GONE)
			continue;
		if (w->in_kernel && user_mode(how) && !pending) {
			w->me->stats.dy_skipped_cpl++;
			continue;
		}
		if (!take_turn(w, id, how))
			continue;
		return offer(w, id,
			     pending ? SPIN_CLASS_PENDING : class_of(how, SPIN_CLASS_PREEMPTED));
	}
	return false;
}

/* ---- ipi ---- */

static void collect_receivers(struct spin_walk *w)
{
	struct ipi_track *t = w->me->track;
	struct ipi_wait wait;
	u32 cursor;

	for (u32 i = 0; i < SPIN_MAP_WORDS; i++)
		w->receivers[i] = 0;
	if (!t)
		return;
	cursor = t->tail;
	while (ipi_track_next(t, w->now, &cursor, &wait)) {
		if (wait.receiver < w->me->vm->nr)
			bit_set(w->receivers, wait.receiver);
	}
}

static bool ipi_in(struct spin_walk *w, const u64 *map, enum spin_class class)
{
	int next;

	while ((next = round_next(w, map)) >= 0) {
		u32 id = (u32)next, how = how_of(w, id);

		if (how != SPIN_GONE && eligible(w, id, how) && !was_tried(w, id))
			return offer(w, id, class);
	}
	return false;
}

static bool ipi_receivers(struct spin_walk *w)
{
	if (!w->begun)
		collect_receivers(w);
	return ipi_in(w, w->receivers, SPIN_CLASS_RECEIVER);
}

static bool ipi_pending(struct spin_walk *w)
{
	return ipi_in(w, w->me->vm->pending, SPIN_CLASS_PENDING);
}

static bool ipi_preempted(struct spin_walk *w)
{
	int next;

	while ((next = round_next(w, w->me->vm->ready)) >= 0) {
		u32 id = (u32)next, how = how_of(w, id);

		if (how == SPIN_GONE || was_tried(w, id))
			continue;
		if (w->in_kernel && user_mode(how)) {
			w->me->stats.dy_skipped_cpl++;
			continue;
		}
		if (take_turn(w, id, how))
			return offer(w, id, class_of(how, SPIN_CLASS_PREEMPTED));
	}
	return false;
}

static bool ipi_relaxed(struct spin_walk *w)
{
	int next;

	if (!w->in_kernel || !w->relaxed)
		return false;
	while ((next = round_next(w, w->me->vm->ready)) >= 0) {
		u32 id = (u32)next, how = how_of(w, id);

		/* The others were offered or passed over for spinning in the round before. */
		if (user_mode(how) && !was_tried(w, id) && take_turn(w, id, how))
			return offer(w, id, SPIN_CLASS_RELAXED);
	}
	return false;
}

static bool ipi_next(struct spin_walk *w)
{
	static const stage_fn stages[] = {ipi_receivers, ipi_pending, ipi_preempted, ipi_relaxed};

	return run_stages(w, stages, ARRAY_SIZE(stages));
}

const struct spin_policy spin_policies[SPIN_POLICIES] = {
    [SPIN_POLICY_KVM] = {"kvm", kvm_next},
    [SPIN_POLICY_IPI] = {"ipi", ipi_next},
    [SPIN_POLICY_EXACT] = {"exact", exact_next, .spares_others = true},
};
