/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest's RAM as the hypervisor sees it: a few contiguous slots of guest-physical addresses.
 * Everything that reads or writes guest memory goes through guest_ptr(), which is the only bounds
 * check there is. Pure; filled once when the VM is made.
 */
#ifndef VLAG_VM_GUEST_MEM_H
#define VLAG_VM_GUEST_MEM_H

#include "hv/lib/types.h"

#define GUEST_MEM_SLOTS 4

/* RAM lies at [0, GUEST_LOW_MAX) and, what does not fit there, from 4 GiB up. Below,
 * 0xC0000000-0xFFFFFFFF is for MMIO. */
#define GUEST_LOW_MAX 0xC0000000ull

struct mem_slot {
	u64 gpa;  /* guest-physical base, 2 MiB aligned */
	u64 size; /* bytes, a multiple of 2 MiB */
	u8 *host; /* where it lies for the hypervisor */
};

struct guest_mem {
	u32 nr_slots;
	struct mem_slot slots[GUEST_MEM_SLOTS]; /* ascending by gpa; slot 0 starts at 0 */
};

/* Host pointer to [@gpa, @gpa + @len), or NULL if any of it is not RAM of one slot. @len > 0. */
static inline void *guest_ptr(const struct guest_mem *mem, u64 gpa, u64 len)
{
	for (u32 i = 0; i < mem->nr_slots; i++) {
		const struct mem_slot *s = &mem->slots[i];
		u64 off = gpa - s->gpa;

		if (off < s->size && len <= s->size - off)
			return s->host + off;
	}
	return NULL;
}

#endif
