/* SPDX-License-Identifier: BSD-2-Clause */
/* First-in, first-out run queue; see runq.h. */
#include "hv/runq.h"

#include "hv/vm/vcpu.h"

void runq_queue(struct runq *rq, struct vcpu *v)
{
	v->next = NULL;
	v->prev = rq->tail;
	if (rq->tail)
		rq->tail->next = v;
	else
		rq->head = v;
	rq->tail = v;
	rq->nr++;
}

void runq_remove(struct runq *rq, struct vcpu *v)
{
	if (v->prev)
		v->prev->next = v->next;
	else
		rq->head = v->next;
	if (v->next)
		v->next->prev = v->prev;
	else
		rq->tail = v->prev;
	rq->nr--;
}

struct vcpu *runq_pick(struct runq *rq)
{
	struct vcpu *v = rq->head;

	if (v)
		runq_remove(rq, v);
	return v;
}
