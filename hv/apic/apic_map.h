/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is addressed by an APIC destination: the map from APIC id and logical destination to the VM's
 * local APICs, the walk over all of them behind it, and the delivery of interrupt messages from
 * devices (IOAPIC, MSI). Messages from a local APIC's ICR are in vlapic_ipi.c.
 *
 * Readers take no lock. phys[] words and the vcpu[] array are always right (APIC ids are fixed; a
 * slot changes only when that APIC is enabled or disabled). The logical table is used only when
 * @seq is even and unchanged over the lookup; otherwise the reader walks and asks each APIC's
 * registers.
 */
#ifndef VLAG_APIC_APIC_MAP_H
#define VLAG_APIC_APIC_MAP_H

#include "hv/lib/types.h"
#include "hv/apic/ipi_track.h"

#define APIC_MAP_VCPUS 512
#define APIC_MAP_IDS 512 /* APIC ids 0..511 */
#define APIC_MAP_WORDS (APIC_MAP_VCPUS / 64)

#define APIC_BROADCAST_XAPIC 0xffu
#define APIC_BROADCAST_X2APIC 0xffffffffu

struct vlapic;

/* Delivery modes as in ICR, LVT, IOAPIC and MSI. */
enum apic_delivery {
	APIC_DM_FIXED = 0,
	APIC_DM_LOWEST = 1,
	APIC_DM_SMI = 2,
	APIC_DM_NMI = 4,
	APIC_DM_INIT = 5,
	APIC_DM_STARTUP = 6,
	APIC_DM_EXTINT = 7,
};

enum apic_logical {
	APIC_LOGICAL_WALK,    /* mixed or unusual: ask every APIC */
	APIC_LOGICAL_X2APIC,  /* all enabled APICs are in x2APIC mode: arithmetic on the id */
	APIC_LOGICAL_FLAT,    /* xAPIC flat, one bit each, no bit twice: logical[bit] */
	APIC_LOGICAL_CLUSTER, /* xAPIC cluster, likewise: logical[cluster * 4 + bit] */
};

/* Embedded in struct vm. Written under the VM's APIC map lock (the edge's). */
struct apic_map {
	struct vlapic *phys[APIC_MAP_IDS];   /* by APIC id; NULL if none or globally disabled */
	struct vlapic *vcpu[APIC_MAP_VCPUS]; /* by vCPU index; constant once the VM runs */
	struct vlapic *logical[60];
	u32 nr_vcpus;
	u32 seq;	 /* odd while the logical table is being written */
	u8 logical_mode; /* enum apic_logical */
	u32 lowest_next; /* lowest priority: rotates over the candidates; anyone, atomically */
	struct ipi_track_vm track;
	struct ipi_track *track_peer[APIC_MAP_VCPUS];
};

/* A message on the APIC bus from a device. */
struct apic_msg {
	u32 dest; /* 8 bits from IOAPIC and MSI */
	u8 vector;
	u8 delivery;  /* enum apic_delivery */
	bool logical; /* destination mode */
	bool level;   /* trigger mode */
};

/* A set of vCPUs by index. Only the first @words words exist. */
struct apic_set {
	u32 count, words;
	u64 word[APIC_MAP_WORDS];
};

/* Before the first vlapic_setup(). @knobs outlive the map. */
void apic_map_setup(struct apic_map *map, const struct ipi_track_knobs *knobs);

/* Rebuilds the tables after a change of an APIC's LDR, DFR, mode or enable. Under the map lock. */
void apic_map_update(struct apic_map *map);

/*
 * The enabled APICs that @dest addresses, whatever their software enable. @x2apic: @dest is the
 * 32-bit form of a sender in x2APIC mode (broadcast 0xffffffff), else the 8-bit form (broadcast
 * 0xff). Returns true if the map answered, false if the walk did.
 */
bool apic_map_resolve(struct apic_map *map, u32 dest, bool logical, bool x2apic,
		      struct apic_set *set);

/*
 * Delivers a device's message. Any pCPU, any lock but the map's. Returns how many APICs accepted
 * it: 0 means that it was lost (nobody addressed, or all software-disabled).
 */
u32 apic_map_deliver(struct apic_map *map, const struct apic_msg *msg);

#endif
