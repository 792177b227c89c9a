/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest's I/O APIC: 24 pins, version 0x20 (with an EOI register), as a pure device model.
 * Source: the 82093AA data sheet and what later chipsets added. It sends through
 * apic_map_deliver().
 *
 * Lock: everything here is called under the VM's I/O APIC lock, which is the edge's. Targets are
 * kicked (vapic_kick()) under it.
 *
 * Lines carry assertion, not voltage: a device asserts its line whatever the polarity is. The
 * polarity bit of a redirection entry is kept and read back, and has no other effect: a guest that
 * programs the wrong one would hang on hardware, and works here.
 */
#ifndef VLAG_APIC_VIOAPIC_H
#define VLAG_APIC_VIOAPIC_H

#include "hv/lib/types.h"
#include "hv/apic/apic_map.h"

#define VIOAPIC_BASE 0xfec00000ull
#define VIOAPIC_SIZE 0x1000
#define VIOAPIC_PINS 24

/* Redirection entry. */
#define VIOAPIC_RTE_VECTOR 0xffull
#define VIOAPIC_RTE_DELIVERY(rte) ((rte) >> 8 & 7)
#define VIOAPIC_RTE_LOGICAL BIT(11)
#define VIOAPIC_RTE_STATUS BIT(12) /* read-only */
#define VIOAPIC_RTE_LOW BIT(13)
#define VIOAPIC_RTE_REMOTE_IRR BIT(14) /* read-only: accepted, waits for the EOI; level only */
#define VIOAPIC_RTE_LEVEL BIT(15)
#define VIOAPIC_RTE_MASKED BIT(16)
#define VIOAPIC_RTE_DEST(rte) ((rte) >> 56)

/* Embedded in struct vm. */
struct vioapic {
	struct apic_map *map;
	u64 rte[VIOAPIC_PINS];
	u32 asserted; /* a bit per pin */
	u8 index;     /* IOREGSEL */
	u8 id;	      /* 4 bits, changed by the guest */
	u8 reset_id;
	u64 sent[VIOAPIC_PINS]; /* interrupts accepted by a local APIC */
	u64 lost; /* sent, but no local APIC accepted: wrong destination or disabled */
};

/* @id: as in the MADT, 0..15. Ends in vioapic_reset(). */
void vioapic_setup(struct vioapic *io, struct apic_map *map, u8 id);

/* Power-up: all pins masked, all lines as they are taken to be low. */
void vioapic_reset(struct vioapic *io);

/* The line of @pin (< VIOAPIC_PINS) is asserted or not. An edge-triggered pin sends on the change
 * to asserted (and loses it while masked, as the data sheet says), a level-triggered one while it
 * is. */
void vioapic_set_irq(struct vioapic *io, u32 pin, bool asserted);

/* End of interrupt for @vector: broadcast by a local APIC (vapic_broadcast_eoi()). */
void vioapic_eoi(struct vioapic *io, u8 vector);

/* 32-bit accesses at @offset < VIOAPIC_SIZE: IOREGSEL at 0, IOWIN at 0x10, EOI at 0x40. */
u32 vioapic_read(const struct vioapic *io, u32 offset);
void vioapic_write(struct vioapic *io, u32 offset, u32 value);

#endif
