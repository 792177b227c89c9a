/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer queue of a pCPU: a tree ordered by expiry. Pure: nothing here reads a clock or arms
 * hardware. */
#include "hv/timer.h"

static int timer_cmp(struct timer *a, struct timer *b)
{
	if (a->expires != b->expires)
		return a->expires < b->expires ? -1 : 1;
	return a < b ? -1 : a > b;
}

RB_GENERATE_INTERNAL(timer_tree, timer, node, timer_cmp, static __maybe_unused)

void timer_queue_init(struct timer_queue *q)
{
	q->lock = (struct spinlock){0};
	RB_INIT(&q->tree);
	q->next = UINT64_MAX;
}

static void update_next(struct timer_queue *q)
{
	struct timer *first = RB_MIN(timer_tree, &q->tree);

	WRITE_ONCE(q->next, first ? first->expires : UINT64_MAX);
}

static void remove_locked(struct timer_queue *q, struct timer *t)
{
	RB_REMOVE(timer_tree, &q->tree, t);
	WRITE_ONCE(t->queue, NULL);
	update_next(q);
}

void timer_cancel(struct timer *t)
{
	struct timer_queue *q;

	while ((q = READ_ONCE(t->queue))) {
		spin_lock(&q->lock);
		if (t->queue == q)
			remove_locked(q, t);
		spin_unlock(&q->lock);
	}
}

bool timer_set(struct timer_queue *q, struct timer *t, u64 expires)
{
	bool first;

	timer_cancel(t);
	spin_lock(&q->lock);
	t->expires = expires;
	WRITE_ONCE(t->queue, q);
	RB_INSERT(timer_tree, &q->tree, t);
	first = expires < q->next;
	if (first)
		WRITE_ONCE(q->next, expires);
	spin_unlock(&q->lock);
	return first;
}

void timers_run(struct timer_queue *q, u64 now)
{
	while (READ_ONCE(q->next) <= now) {
		struct timer *t;

		spin_lock(&q->lock);
		t = RB_MIN(timer_tree, &q->tree);
		if (t && t->expires <= now)
			remove_locked(q, t);
		else
			t = NULL;
		spin_unlock(&q->lock);
		if (!t)
			break;
		t->fn(t, now);
	}
}
