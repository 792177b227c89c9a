/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers of a pCPU: things to do at a TSC value when no vCPU's own deadline does them (a halted
 * vCPU's LAPIC timer, a VM's PIT and RTC, the console). Times are host TSC ticks. A queue's lock
 * may be taken from any pCPU; callbacks run on the queue's own pCPU without the lock.
 */
#ifndef VLAG_TIMER_H
#define VLAG_TIMER_H

#include <bsd/sys/tree.h>

#include "hv/lib/lock.h"
#include "hv/lib/types.h"

struct timer;
typedef void (*timer_fn)(struct timer *t, u64 now);

struct timer {
	RB_ENTRY(timer) node;
	u64 expires;
	timer_fn fn;
	struct timer_queue
	    *queue; /* where it is queued, NULL if nowhere; written under that queue's lock */
};

RB_HEAD(timer_tree, timer);

struct timer_queue {
	struct spinlock lock;
	struct timer_tree tree;
	u64 next; /* earliest expiry, UINT64_MAX if none; may be read without the lock */
};

void timer_queue_init(struct timer_queue *q);

/*
 * Queues @t on @q for @expires, taking it from wherever it was. Returns whether it is now the
 * first: if @q is another pCPU's, that one must be kicked, as what it has armed may come too late.
 */
bool timer_set(struct timer_queue *q, struct timer *t, u64 expires);
void timer_cancel(struct timer *t);

/* Calls all that is due at @now. Own pCPU only. */
void timers_run(struct timer_queue *q, u64 now);

#endif
