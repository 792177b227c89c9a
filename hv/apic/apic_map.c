/* SPDX-License-Identifier: BSD-2-Clause */
/* APIC destinations: the tables, the walk behind them, and messages from devices. */
#include "hv/apic/apic_map.h"
#include "hv/apic/vlapic_internal.h"

#include "hv/apic/vapic_edge.h"
#include "hv/lib/string.h"

void apic_map_setup(struct apic_map *map, const struct ipi_track_knobs *knobs)
{
	memset(map, 0, sizeof(*map));
	map->track.knobs = knobs;
	map->track.peer = map->track_peer;
}

/* ---- Sets of vCPUs ---- */

static inline void set_clear(struct apic_set *set)
{
	set->count = set->words = 0;
}

static void set_add(struct apic_set *set, const struct vlapic *l)
{
	u32 i = l->index;

	while (set->words <= i / 64)
		set->word[set->words++] = 0;
	if (set->word[i / 64] & BIT(i % 64))
		return;
	set->word[i / 64] |= BIT(i % 64);
	set->count++;
}

void apic_map_all(const struct apic_map *map, const struct vlapic *except, struct apic_set *set)
{
	u32 i;

	set_clear(set);
	for (i = 0; i < map->nr_vcpus; i++)
		if (map->vcpu[i] != except && READ_ONCE(map->vcpu[i]->mode) != VLAPIC_DISABLED)
			set_add(set, map->vcpu[i]);
}

void apic_map_keep_accepting(const struct apic_map *map, struct apic_set *set)
{
	int i;

	APIC_SET_FOREACH(i, set)
	{
		if (READ_ONCE(map->vcpu[i]->accepts))
			continue;
		set->word[i / 64] &= ~BIT(i % 64);
		set->count--;
	}
}

void apic_map_keep_lowest(struct apic_map *map, struct apic_set *set)
{
	/* All count as equal in priority, so the arbitration takes turns: it must not look at the
	   PPR of an APIC that runs elsewhere. */
	u32 turn = __atomic_fetch_add(&map->lowest_next, 1, __ATOMIC_RELAXED) % set->count;
	int i;

	APIC_SET_FOREACH(i, set)
	{
		if (!turn--)
			break;
	}
	set_clear(set);
	set_add(set, map->vcpu[i]);
}

/* ---- Who is meant ---- */

/*
 * Logical destination, by the registers of the APIC itself. An 8-bit destination of all ones is the
 * broadcast for an APIC in x2APIC mode too; in xAPIC mode it is no special case, it just matches
 * every APIC that has an LDR.
 */
static bool match_logical(const struct vlapic *l, u32 dest, bool x2apic)
{
	u8 mode = READ_ONCE(l->mode);
	u32 ldr, dfr;

	if (mode == VLAPIC_DISABLED)
		return false;
	if (x2apic && dest == APIC_BROADCAST_X2APIC)
		return true;
	if (mode == VLAPIC_X2APIC) {
		if (!x2apic && dest == APIC_BROADCAST_XAPIC)
			return true;
		ldr = x2apic_ldr(l->id);
		return ldr >> 16 == dest >> 16 && (ldr & dest & 0xffff);
	}
	ldr = READ_ONCE(l->ldr) >> 24;
	dfr = READ_ONCE(l->dfr) >> 28;
	if (dest > 0xff)
		return false;
	if (dfr == 0xf)
		return ldr & dest;
	if (dfr != 0)
		return false;
	return (dest == APIC_BROADCAST_XAPIC || ldr >> 4 == dest >> 4) && (ldr & dest & 0xf);
}

static void resolve_walk(const struct apic_map *map, u32 dest, bool x2apic, struct apic_set *set)
{
	u32 i;

	set_clear(set);
	for (i = 0; i < map->nr_vcpus; i++)
		if (match_logical(map->vcpu[i], dest, x2apic))
			set_add(set, map->vcpu[i]);
}

/* @bits address slots of a table from @base on; slots past @size are empty. */
static void resolve_bits(struct vlapic *const *table, u32 size, u64 base, u32 bits,
			 struct apic_set *set)
{
	for (; bits; bits &= bits - 1) {
		u64 slot = base + ffs64(bits);
		const struct vlapic *l = slot < size ? READ_ONCE(table[slot]) : NULL;

		if (l)
			set_add(set, l);
	}
}

/* From the logical table. False: it cannot answer. */
static bool resolve_table(const struct apic_map *map, u32 dest, struct apic_set *set)
{
	switch (READ_ONCE(map->logical_mode)) {
	case APIC_LOGICAL_X2APIC:
		resolve_bits(map->phys, APIC_MAP_IDS, (u64)(dest >> 16) * 16, dest & 0xffff, set);
		return true;
	case APIC_LOGICAL_FLAT:
		if (dest > 0xff)
			return false;
		resolve_bits(map->logical, 8, 0, dest, set);
		return true;
	case APIC_LOGICAL_CLUSTER:
		if (dest >= 0xf0)
			return false;
		resolve_bits(map->logical, ARRAY_SIZE(map->logical), (dest >> 4) * 4, dest & 0xf,
			     set);
		return true;
	default:
		return false;
	}
}

bool apic_map_resolve(struct apic_map *map, u32 dest, bool logical, bool x2apic,
		      struct apic_set *set)
{
	u32 seq;

	set_clear(set);
	if (dest == (x2apic ? APIC_BROADCAST_X2APIC : APIC_BROADCAST_XAPIC) &&
	    (!logical || READ_ONCE(map->logical_mode) == APIC_LOGICAL_X2APIC)) {
		apic_map_all(map, NULL, set);
		return true;
	}
	if (!logical) {
		if (dest < APIC_MAP_IDS && READ_ONCE(map->phys[dest]))
			set_add(set, READ_ONCE(map->phys[dest]));
		return true;
	}

	seq = __atomic_load_n(&map->seq, __ATOMIC_ACQUIRE);
	if (!(seq & 1) && resolve_table(map, dest, set)) {
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (READ_ONCE(map->seq) == seq)
			return true;
	}
	resolve_walk(map, dest, x2apic, set);
	return false;
}

/* ---- The tables ---- */

/* The table slot of an xAPIC LDR under the common model @mode, or -1 if the table cannot say. */
static int logical_slot(u32 mode, u32 ldr, u32 dfr)
{
	if (mode == APIC_LOGICAL_FLAT)
		return dfr == 0xf && !(ldr & (ldr - 1)) ? ffs64(ldr) : -1;
	if (dfr != 0 || ldr >> 4 == 0xf)
		return -1;
	if (!(ldr & 0xf) || (ldr & 0xf & ((ldr & 0xf) - 1)))
		return -1;
	return (ldr >> 4) * 4 + ffs64(ldr & 0xf);
}

/* Fills @table from all enabled APICs; returns the mode in which it is right. */
static enum apic_logical logical_build(const struct apic_map *map, struct vlapic **table)
{
	u32 nr_x2apic = 0, nr_enabled = 0, mode = APIC_LOGICAL_WALK;
	u32 i;

	for (i = 0; i < map->nr_vcpus; i++) {
		struct vlapic *l = map->vcpu[i];
		u32 ldr = READ_ONCE(l->ldr) >> 24, dfr = READ_ONCE(l->dfr) >> 28;
		u8 lapic_mode = READ_ONCE(l->mode);
		int slot;

		nr_enabled += lapic_mode != VLAPIC_DISABLED;
		nr_x2apic += lapic_mode == VLAPIC_X2APIC;
		if (lapic_mode != VLAPIC_XAPIC || !ldr)
			continue;
		if (mode == APIC_LOGICAL_WALK)
			mode = dfr == 0xf ? APIC_LOGICAL_FLAT : APIC_LOGICAL_CLUSTER;
		slot = logical_slot(mode, ldr, dfr);
		if (slot < 0 || table[slot])
			return APIC_LOGICAL_WALK;
		table[slot] = l;
	}
	if (nr_x2apic)
		return nr_x2apic == nr_enabled ? APIC_LOGICAL_X2APIC : APIC_LOGICAL_WALK;
	return mode;
}

void apic_map_update(struct apic_map *map)
{
	struct vlapic *table[ARRAY_SIZE(map->logical)] = {NULL};
	enum apic_logical mode = logical_build(map, table);
	u32 i;

	for (i = 0; i < map->nr_vcpus; i++) {
		struct vlapic *l = map->vcpu[i];
		struct vlapic *entry = READ_ONCE(l->mode) == VLAPIC_DISABLED ? NULL : l;

		if (map->phys[l->id] != entry)
			WRITE_ONCE(map->phys[l->id], entry);
	}
	WRITE_ONCE(map->seq, map->seq + 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	WRITE_ONCE(map->logical_mode, mode);
	for (i = 0; i < ARRAY_SIZE(table); i++)
		WRITE_ONCE(map->logical[i], table[i]);
	__atomic_store_n(&map->seq, map->seq + 1, __ATOMIC_RELEASE);
}

/* ---- Messages from devices ---- */

static void deliver_one(struct vlapic *l, const struct apic_msg *msg)
{
	switch (msg->delivery) {
	case APIC_DM_NMI:
		vlapic_post_nmi(l);
		break;
	case APIC_DM_INIT:
		vlapic_post_init(l);
		break;
	default:
		if (msg->vector < VLAPIC_MIN_VECTOR)
			vlapic_error(l, ESR_RECEIVE_ILLEGAL, true);
		else if (vlapic_post(l, msg->vector, msg->level))
			vapic_kick(l);
		break;
	}
}

u32 apic_map_deliver(struct apic_map *map, const struct apic_msg *msg)
{
	bool fixed = msg->delivery == APIC_DM_FIXED || msg->delivery == APIC_DM_LOWEST;
	struct apic_set set;
	int i;

	if (!fixed && msg->delivery != APIC_DM_NMI && msg->delivery != APIC_DM_INIT)
		return 0;
	apic_map_resolve(map, msg->dest, msg->logical, false, &set);
	if (fixed)
		apic_map_keep_accepting(map, &set);
	if (!set.count)
		return 0;
	if (msg->delivery == APIC_DM_LOWEST)
		apic_map_keep_lowest(map, &set);
	APIC_SET_FOREACH(i, &set)
	{
		deliver_one(map->vcpu[i], msg);
	}
	return fixed && msg->vector < VLAPIC_MIN_VECTOR ? 0 : set.count;
}
