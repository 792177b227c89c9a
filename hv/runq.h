/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue of runnable vCPUs of one pCPU: first in, first out. It stands where hv/sched's EEVDF
 * queue goes, with the same shape: queue, dequeue, pick, all under the queue's lock. Locks:
 * run-queue locks nest by pCPU number; inside one, nothing.
 */
#ifndef VLAG_RUNQ_H
#define VLAG_RUNQ_H

#include "hv/lib/lock.h"
#include "hv/lib/types.h"

struct vcpu;

struct runq {
	struct spinlock lock;
	u32 nr; /* queued, without the running one */
	struct vcpu *head, *tail;
};

/* All with @rq->lock held. */
void runq_queue(struct runq *rq, struct vcpu *v);
void runq_remove(struct runq *rq, struct vcpu *v);
struct vcpu *runq_pick(struct runq *rq); /* takes the first off the queue; NULL if empty */

#endif
