/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the guest local APIC share with one another and with nobody else. */
#ifndef VLAG_APIC_VLAPIC_INTERNAL_H
#define VLAG_APIC_VLAPIC_INTERNAL_H

#include "hv/apic/vlapic.h"

#define VLAPIC_MIN_VECTOR 16

/* ICR (SDM 11.6.1, 11.12.9). */
#define ICR_VECTOR 0xffull
#define ICR_DELIVERY(icr) ((icr) >> 8 & 7)
#define ICR_DELIVERY_MASK (7ull << 8)
#define ICR_LOGICAL BIT(11)
#define ICR_BUSY BIT(12)
#define ICR_ASSERT VLAPIC_ICR_ASSERT
#define ICR_LEVEL VLAPIC_ICR_LEVEL
#define ICR_SHORTHAND(icr) ((icr) >> 18 & 3)
#define ICR_SHORTHAND_MASK (3ull << 18)
/* Bit 12 is no longer defined in x2APIC mode, but hardware takes it and so do we. */
#define ICR_X2APIC_RESERVED (0xfff00000ull | BIT(17) | BIT(16) | BIT(13))

enum icr_shorthand { ICR_DEST, ICR_SELF, ICR_ALL, ICR_OTHERS };

/* SVR (11.9). Bit 9, the focus check, is kept for what older kernels write. */
#define SVR_ENABLE BIT(8)
#define SVR_NO_BROADCAST_EOI BIT(12)
#define SVR_VALID 0x13ffu
#define SVR_RESET 0xffu

/* LVT (11.5.1). */
#define LVT_VECTOR 0xffu
#define LVT_DELIVERY(lvt) ((lvt) >> 8 & 7)
#define LVT_STATUS (1u << 12)
#define LVT_REMOTE_IRR (1u << 14)
#define LVT_LEVEL (1u << 15)
#define LVT_MASKED (1u << 16)
#define LVT_TIMER_MODE(lvt) ((lvt) >> 17 & 3)
#define LVT_READ_ONLY (LVT_STATUS | LVT_REMOTE_IRR)

/* ESR (11.5.3). */
#define ESR_SEND_ILLEGAL (1u << 5)
#define ESR_RECEIVE_ILLEGAL (1u << 6)
#define ESR_ILLEGAL_REGISTER (1u << 7)

/* The APIC ids that share an x2APIC cluster. */
static inline u32 x2apic_ldr(u32 id)
{
	return (id >> 4) << 16 | 1u << (id & 15);
}

/* Delivers the interrupt of an LVT entry if it is not masked. Anyone; @kick unless the owner. */
void vlapic_lvt_deliver(struct vlapic *l, enum vlapic_lvt which, bool kick);

/* Notes errors in the ESR and raises the error interrupt for those that were not there. Anyone. */
void vlapic_error(struct vlapic *l, u32 bits, bool kick);

/* Posts an INIT or a start-up IPI. Anyone. Kicks. */
void vlapic_post_init(struct vlapic *l);
void vlapic_post_sipi(struct vlapic *l, u8 vector);

/* Sends what the ICR holds to @dest (in the form of l->mode). Owner. */
void vlapic_send_ipi(struct vlapic *l, u64 icr, u32 dest, u64 now);

/* The vCPU index in @set that follows @after (-1 for the first), or -1. */
static inline int apic_set_next(const struct apic_set *set, int after)
{
	u32 i = after + 1;

	while (i < set->words * 64) {
		u64 word = set->word[i / 64] >> i % 64;

		if (word)
			return i + ffs64(word);
		i = ALIGN_DOWN(i, 64) + 64;
	}
	return -1;
}

#define APIC_SET_FOREACH(i, set)                                                                   \
	for ((i) = apic_set_next(set, -1); (i) >= 0; (i) = apic_set_next(set, i))

/* Removes from @set those that do not accept fixed interrupts (software-disabled). */
void apic_map_keep_accepting(const struct apic_map *map, struct apic_set *set);

/* Reduces @set, which is not empty, to the one that takes a lowest-priority message. */
void apic_map_keep_lowest(struct apic_map *map, struct apic_set *set);

/* All enabled APICs but @except (NULL for none). */
void apic_map_all(const struct apic_map *map, const struct vlapic *except, struct apic_set *set);

/* Timer registers. Owner. */
void vlapic_timer_cancel(struct vlapic *l);
void vlapic_timer_write_lvt(struct vlapic *l, u32 lvt);
void vlapic_timer_write_tmict(struct vlapic *l, u32 count, u64 now);
void vlapic_timer_write_tdcr(struct vlapic *l, u32 tdcr, u64 now);
u32 vlapic_timer_tmcct(const struct vlapic *l, u64 now);

#endif
