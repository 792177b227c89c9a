/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interrupt command register (SDM 11.6): who sends what to whom. Every fixed IPI is counted by
 * kind and by path, and reported to the tracker, here and nowhere else.
 */
#include "hv/apic/vlapic.h"
#include "hv/apic/vlapic_internal.h"

#include "hv/apic/vapic_edge.h"

/* To one other vCPU that accepts: the tracker first, so that the acceptance finds the record. */
static void send_recorded(struct vlapic *from, struct vlapic *to, u8 vector, u64 now)
{
	ipi_track_sent(&from->track, &to->track, vector, now - from->tsc_offset);
	if (vlapic_post(to, vector, false))
		vapic_kick(to);
}

static inline void send_unrecorded(struct vlapic *from, struct vlapic *to, u8 vector)
{
	if (vlapic_post(to, vector, false) && to != from)
		vapic_kick(to);
}

static void send_self(struct vlapic *l, u8 vector)
{
	if (unlikely(vector < VLAPIC_MIN_VECTOR)) {
		vlapic_error(l, ESR_SEND_ILLEGAL | ESR_RECEIVE_ILLEGAL, false);
		return;
	}
	if (unlikely(!l->accepts)) {
		l->count.ipi_nowhere++;
		return;
	}
	l->count.ipi_self++;
	l->count.ipi_fast++;
	send_unrecorded(l, l, vector);
}

bool vlapic_self_ipi(struct vlapic *l, u64 value)
{
	if (value & ~ICR_VECTOR)
		return false;
	send_self(l, value);
	return true;
}

/*
 * The APIC that alone is meant by a logical destination, when it is one bit and every APIC is in
 * x2APIC mode; else NULL.
 */
static struct vlapic *x2apic_logical_one(const struct apic_map *map, u32 dest)
{
	u32 bits = dest & 0xffff, id = (dest >> 16) * 16;

	if (!bits || (bits & (bits - 1)) || id >= APIC_MAP_IDS ||
	    READ_ONCE(map->logical_mode) != APIC_LOGICAL_X2APIC)
		return NULL;
	return READ_ONCE(map->phys[id + ffs64(bits)]);
}

/* What the short way below does not know: a level-triggered interrupt of that vector was the last.
 */
static __attribute__((noinline)) void unicast_slow(struct vlapic *l, struct vlapic *to, u64 clock,
						   u8 vector)
{
	send_recorded(l, to, vector, clock + l->tsc_offset);
}

/* No call but the last: nothing needs to be saved. */
void vlapic_send_unicast(struct vlapic *l, struct vlapic *to, u64 clock, u8 vector)
{
	if (unlikely(bit_test(to->tmr, vector)) ||
	    unlikely(!ipi_track_sent_plain(&l->track, &to->track, vector, clock)))
		unicast_slow(l, to, clock, vector);
	else if (!bit_test_and_set(to->irr, vector))
		vapic_kick(to);
}

/* The map answers these, too: to itself, and one bit of a cluster. */
bool vlapic_x2apic_icr(struct vlapic *l, u64 icr, u64 now)
{
	u32 dest = icr >> 32;
	struct vlapic *to = vlapic_x2apic_unicast_target(l, dest, icr);

	if (to) {
		vlapic_send_unicast(l, to, now - l->tsc_offset, icr);
		vlapic_sent_unicast(l, icr);
		return true;
	}
	if (icr & ICR_X2APIC_RESERVED)
		return false;
	l->icr = icr & ~ICR_BUSY;
	if (!(icr & (ICR_DELIVERY_MASK | ICR_SHORTHAND_MASK)) && (u8)icr >= VLAPIC_MIN_VECTOR) {
		if (icr & ICR_LOGICAL)
			to = x2apic_logical_one(l->map, dest);
		else if (dest == l->id)
			to = l;
	}
	if (!to || !READ_ONCE(to->accepts)) {
		vlapic_send_ipi(l, icr, dest, now);
		return true;
	}
	l->count.ipi_fast++;
	if (to == l) {
		l->count.ipi_self++;
		vlapic_post(l, icr, false);
	} else {
		l->count.ipi_unicast++;
		send_recorded(l, to, icr, now);
	}
	return true;
}

/* Fixed or lowest priority, to the members of @set. */
static void send_fixed(struct vlapic *l, struct apic_set *set, u64 icr, bool broadcast, bool fast,
		       u64 now)
{
	bool lowest = ICR_DELIVERY(icr) == APIC_DM_LOWEST;
	struct apic_map *map = l->map;
	u8 vector = icr & ICR_VECTOR;
	bool record;
	int i;

	if (unlikely(vector < VLAPIC_MIN_VECTOR)) {
		vlapic_error(l, ESR_SEND_ILLEGAL, false);
		APIC_SET_FOREACH(i, set)
		{
			vlapic_error(map->vcpu[i], ESR_RECEIVE_ILLEGAL, map->vcpu[i] != l);
		}
		return;
	}
	apic_map_keep_accepting(map, set);
	if (!set->count) {
		l->count.ipi_nowhere++;
		return;
	}
	if (lowest)
		apic_map_keep_lowest(map, set);
	if (fast)
		l->count.ipi_fast++;
	else
		l->count.ipi_slow++;

	record = !lowest && map->track.knobs->multicast;
	if (broadcast) {
		l->count.ipi_broadcast++;
	} else if (set->count > 1) {
		l->count.ipi_multicast++;
	} else if (map->vcpu[apic_set_next(set, -1)] == l) {
		l->count.ipi_self++;
	} else {
		l->count.ipi_unicast++;
		record = !lowest;
	}
	APIC_SET_FOREACH(i, set)
	{
		struct vlapic *to = map->vcpu[i];

		if (record && to != l)
			send_recorded(l, to, vector, now);
		else
			send_unrecorded(l, to, vector);
	}
}

/* NMI, INIT, start-up. */
static void send_event(struct vlapic *l, const struct apic_set *set, u64 icr)
{
	int i;

	APIC_SET_FOREACH(i, set)
	{
		struct vlapic *to = l->map->vcpu[i];

		switch (ICR_DELIVERY(icr)) {
		case APIC_DM_NMI:
			l->count.ipi_nmi++;
			vlapic_post_nmi(to);
			break;
		case APIC_DM_INIT:
			l->count.ipi_init++;
			vlapic_post_init(to);
			break;
		case APIC_DM_STARTUP:
			l->count.ipi_sipi++;
			vlapic_post_sipi(to, icr & ICR_VECTOR);
			break;
		}
	}
	if (!set->count)
		l->count.ipi_nowhere++;
}

/* Does the combination do anything? SDM 11.6.1, table of valid combinations. */
static bool icr_valid(u64 icr)
{
	u32 shorthand = ICR_SHORTHAND(icr);

	switch (ICR_DELIVERY(icr)) {
	case APIC_DM_FIXED:
		return true;
	case APIC_DM_INIT:
		/* Level de-assert is not sent by any processor that has this kind of APIC. */
		if ((icr & ICR_LEVEL) && !(icr & ICR_ASSERT))
			return false;
		break;
	case APIC_DM_LOWEST:
	case APIC_DM_NMI:
	case APIC_DM_STARTUP:
		break;
	default: /* SMI: there is no SMM; reserved; ExtINT does not come from an ICR */
		return false;
	}
	return shorthand == ICR_DEST || shorthand == ICR_OTHERS;
}

void vlapic_send_ipi(struct vlapic *l, u64 icr, u32 dest, u64 now)
{
	bool x2apic = l->mode == VLAPIC_X2APIC;
	bool fast = true, broadcast = true;
	struct apic_set set;

	if (!icr_valid(icr)) {
		l->count.ipi_invalid++;
		return;
	}
	switch (ICR_SHORTHAND(icr)) {
	case ICR_SELF:
		send_self(l, icr);
		return;
	case ICR_ALL:
		apic_map_all(l->map, NULL, &set);
		break;
	case ICR_OTHERS:
		apic_map_all(l->map, l, &set);
		break;
	default:
		fast = apic_map_resolve(l->map, dest, icr & ICR_LOGICAL, x2apic, &set);
		broadcast = dest == (x2apic ? APIC_BROADCAST_X2APIC : APIC_BROADCAST_XAPIC);
		break;
	}
	if (ICR_DELIVERY(icr) <= APIC_DM_LOWEST)
		send_fixed(l, &set, icr, broadcast, fast, now);
	else
		send_event(l, &set, icr);
}

u32 vlapic_icr_receivers(struct vlapic *l, u64 icr, u32 *only)
{
	bool x2apic = l->mode == VLAPIC_X2APIC;
	struct apic_set set;
	u32 others = 0;
	int i;

	if (ICR_DELIVERY(icr) > APIC_DM_LOWEST || (icr & ICR_VECTOR) < VLAPIC_MIN_VECTOR ||
	    !icr_valid(icr) || ICR_SHORTHAND(icr) == ICR_SELF)
		return 0;
	if (ICR_SHORTHAND(icr) == ICR_DEST)
		apic_map_resolve(l->map, x2apic ? icr >> 32 : icr >> 56, icr & ICR_LOGICAL, x2apic,
				 &set);
	else
		apic_map_all(l->map, l, &set);
	apic_map_keep_accepting(l->map, &set);
	APIC_SET_FOREACH(i, &set)
	{
		if (l->map->vcpu[i] == l)
			continue;
		others++;
		*only = (u32)i;
	}
	return others;
}
