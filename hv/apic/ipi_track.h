/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IPI tracker: who waits for the acknowledgement of which IPI by whom. It is a hint for
 * directed yield, never correctness. Nothing here delivers anything, and nothing here reads a
 * clock.
 *
 * Two separate sides per vCPU, so that acknowledging an incoming IPI cannot erase what this vCPU
 * waits for itself:
 *
 *   sent[]        as a sender: a ring of outstanding (receiver, vector, time), one word each
 *   pending[]     as a receiver, by vector: who sent the interrupt that waits in the IRR
 *   in_service[]  as a receiver, by vector: who sent the interrupt that is in service
 *
 * The acceptance (IRR to ISR) moves pending[v] to in_service[v], and the EOI of v clears exactly
 * the entry that in_service[v] names, if it is still the same send (same time): an IPI with the
 * same vector that came meanwhile is in pending[v] and in another slot, and stays.
 *
 * Lockless: every entry is one word. sent[] is filled by its owner only and cleared by owner and
 * receivers (compare and swap); pending[] is written by any sender and taken by its owner;
 * in_service[] is its owner's. Two senders that race for one (receiver, vector) leave one of them
 * in pending[]; the entry of the other is found dead when neither pending[v] nor in_service[v] is
 * set.
 *
 * Time is in ticks of one clock for the whole VM. 45 bits of it are kept.
 */
#ifndef VLAG_APIC_IPI_TRACK_H
#define VLAG_APIC_IPI_TRACK_H

#include "hv/lib/hist.h"
#include "hv/lib/types.h"

#define IPI_TRACK_VCPUS 1024 /* what the words have room for */
#define IPI_TRACK_SLOTS 256u

/* The knobs, shared by all VMs; may change at run time. */
struct ipi_track_knobs {
	u64 window;	/* ticks; an entry older than this is stale. ipi_window_ns in ticks */
	bool enabled;	/* ipi_tracking_enabled */
	bool multicast; /* ipi_track_multicast: record every receiver of a multi-destination IPI */
};

/* One list: name, text. All written by the owner of the struct ipi_counters only. */
#define IPI_COUNTERS(X)                                                                            \
	X(ipi_unicast, "fixed IPIs sent to one other vCPU")                                        \
	X(ipi_multicast, "fixed IPIs sent to several vCPUs by destination")                        \
	X(ipi_broadcast, "fixed IPIs sent to all or all other vCPUs")                              \
	X(ipi_self, "self-IPIs sent")                                                              \
	X(ipi_nowhere, "IPIs sent that no vCPU accepted")                                          \
	X(ipi_nmi, "NMI IPIs sent")                                                                \
	X(ipi_init, "INIT IPIs sent")                                                              \
	X(ipi_sipi, "start-up IPIs sent")                                                          \
	X(ipi_invalid, "ICR writes that the SDM calls invalid or that have no effect")             \
	X(ipi_fast, "fixed IPIs resolved by the map")                                              \
	X(ipi_slow, "fixed IPIs resolved by the walk over all vCPUs")                              \
	X(ipi_tracked, "receivers recorded as outstanding")                                        \
	X(ipi_expired, "outstanding receivers dropped as older than ipi_window_ns")                \
	X(ipi_coalesced, "outstanding receivers dropped as acknowledged through a later IPI")      \
	X(ipi_overwritten, "outstanding receivers lost because the ring was full")                 \
	X(eoi_matched, "EOIs that cleared the entry of the IPI's sender")                          \
	X(eoi_unmatched, "EOIs of interrupts that are not recorded IPIs")

struct ipi_counters {
#define X(name, text) u64 name;
	IPI_COUNTERS(X)
#undef X
	struct hist send_to_delivery, send_to_eoi; /* at the receiver, ticks; hv/counters.h */
};

struct ipi_track;

/* Per VM: finds a vCPU's tracker by its index. Constant once the VM runs. */
struct ipi_track_vm {
	const struct ipi_track_knobs *knobs;
	struct ipi_track **peer; /* by vCPU index */
	u32 nr_peers;
};

/* Per vCPU. */
struct ipi_track {
	struct ipi_track_vm *vm;
	const struct ipi_track_knobs *knobs;
	struct ipi_counters *count;
	u64 id;		/* index, in its place in the words, and their valid bit */
	u32 index;	/* of this vCPU in vm->peer[] */
	u32 head, tail; /* owner: ring positions, not reduced; live ones in [tail, head) */
	u64 sent[IPI_TRACK_SLOTS]; /* owner fills, anyone clears */
	u64 pending[256];	   /* anyone writes, owner takes */
	u64 in_service[256];	   /* owner */
};

/* An outstanding receiver. */
struct ipi_wait {
	u32 receiver; /* vCPU index */
	u8 vector;
	u64 age; /* ticks since it was sent */
};

void ipi_track_setup(struct ipi_track *t, struct ipi_track_vm *vm, u32 index,
		     struct ipi_counters *count);

/*
 * INIT or reset of the vCPU, on its own pCPU: forgets what it sent, what it received, and every
 * entry of another vCPU that waits for it.
 */
void ipi_track_reset(struct ipi_track *t);

/*
 * @from, on its own pCPU, is about to set @vector in the IRR of @to (another vCPU): record it. Call
 * it before the IRR bit is set, so that the acceptance finds it.
 */
void ipi_track_sent(struct ipi_track *from, struct ipi_track *to, u8 vector, u64 now);

#define IPI_TRACK_TIME_SHIFT 19 /* of the time in the words; ipi_track.c has the rest */

/*
 * ipi_track_sent() for the common case, on the way of every IPI: the slot is free, and nobody
 * else's IPI with that vector waits there. False: it is not, and nothing was done.
 */
static inline bool ipi_track_sent_plain(struct ipi_track *from, struct ipi_track *to, u8 vector,
					u64 now)
{
	u64 *sent = &from->sent[(u8)from->head], *pending = &to->pending[vector];

	if (unlikely(!from->knobs->enabled) || unlikely(READ_ONCE(*sent)) ||
	    unlikely(READ_ONCE(*pending)))
		return false;
	now <<= IPI_TRACK_TIME_SHIFT;
	WRITE_ONCE(*sent, now | to->id | vector);
	WRITE_ONCE(*pending, now | from->id | (u8)from->head);
	from->head++;
	from->count->ipi_tracked++;
	return true;
}

/* The out-of-line parts of ipi_track_accept() and ipi_track_eoi(). */
void ipi_track_accept_sent(struct ipi_track *t, u8 vector, u64 now);
void ipi_track_eoi_sent(struct ipi_track *t, u8 vector, u64 now);

/* @vector moved from the IRR to the ISR, on the receiver's pCPU. */
static inline void ipi_track_accept(struct ipi_track *t, u8 vector, u64 now)
{
	if (READ_ONCE(t->pending[vector]))
		ipi_track_accept_sent(t, vector, now);
}

/* EOI of @vector, on the receiver's pCPU. */
static inline void ipi_track_eoi(struct ipi_track *t, u8 vector, u64 now)
{
	if (t->in_service[vector])
		ipi_track_eoi_sent(t, vector, now);
	else
		t->count->eoi_unmatched++;
}

/* Who sent the recorded IPI @vector that is in service at @t: index of the vCPU, -1 if none is. */
int ipi_track_sender(const struct ipi_track *t, u8 vector);

/*
 * The outstanding receivers of @t, oldest first, on its own pCPU. Start with *@cursor = t->tail;
 * each call that returns true fills @out. Drops (and counts) what is stale or acknowledged on the
 * way.
 */
bool ipi_track_next(struct ipi_track *t, u64 now, u32 *cursor, struct ipi_wait *out);

#endif
