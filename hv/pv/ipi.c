/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPIs sent by hypercall: one exit for up to 128 receivers. Counted and recorded like those that
 * are sent through the ICR (hv/apic/vlapic_ipi.c), so that the recorder loses as little as can be.
 */
#include "hv/apic/vapic_edge.h"
#include "hv/pv/hypercall.h"

#define ICR_LOGICAL BIT(11)
#define ICR_SHORTHAND (3ull << 18)
#define MIN_VECTOR 16

struct pv_ipi {
	struct vlapic *from;
	u64 now;
	u8 vector;
	bool nmi;
	u32 accepted;
	struct vlapic *only; /* the receiver, while there is but one */
};

static void post(struct pv_ipi *ipi, struct vlapic *to, bool record)
{
	struct vlapic *from = ipi->from;

	if (record && to != from)
		ipi_track_sent(&from->track, &to->track, ipi->vector, ipi->now - from->tsc_offset);
	if (vlapic_post(to, ipi->vector, false) && to != from)
		vapic_kick(to);
}

/* The first receiver waits in ->only until it is known whether it is the only one. */
static void send_one(struct pv_ipi *ipi, struct vlapic *to)
{
	if (ipi->nmi) {
		ipi->from->count.ipi_nmi++;
		ipi->accepted++;
		vlapic_post_nmi(to);
		return;
	}
	if (!READ_ONCE(to->accepts))
		return;
	if (ipi->accepted++) {
		bool record = ipi->from->map->track.knobs->multicast;

		if (ipi->only)
			post(ipi, ipi->only, record);
		ipi->only = NULL;
		post(ipi, to, record);
	} else {
		ipi->only = to;
	}
}

static void send_bits(struct pv_ipi *ipi, u64 bits, u64 first)
{
	for (; bits; bits &= bits - 1) {
		u64 id = first + ffs64(bits);
		struct vlapic *to = id < APIC_MAP_IDS ? READ_ONCE(ipi->from->map->phys[id]) : NULL;

		if (to)
			send_one(ipi, to);
	}
}

static void count(const struct pv_ipi *ipi)
{
	struct ipi_counters *c = &ipi->from->count;

	if (!ipi->accepted) {
		c->ipi_nowhere++;
		return;
	}
	if (ipi->nmi)
		return;
	c->ipi_fast++;
	if (ipi->accepted > 1)
		c->ipi_multicast++;
	else if (ipi->only == ipi->from)
		c->ipi_self++;
	else
		c->ipi_unicast++;
}

s64 pv_send_ipi(struct vlapic *l, u64 low, u64 high, u32 min, u64 icr, u32 width, u64 now)
{
	u32 delivery = icr >> 8 & 7;
	struct pv_ipi ipi = {.from = l, .now = now, .vector = icr, .nmi = delivery == APIC_DM_NMI};

	if ((icr & (ICR_LOGICAL | ICR_SHORTHAND)) ||
	    (delivery != APIC_DM_NMI && delivery != APIC_DM_FIXED) ||
	    (delivery == APIC_DM_FIXED && ipi.vector < MIN_VECTOR))
		return -KVM_EINVAL;
	send_bits(&ipi, low, min);
	send_bits(&ipi, high, (u64)min + width);
	count(&ipi);
	if (ipi.only)
		post(&ipi, ipi.only, true);
	return ipi.accepted;
}
