/* SPDX-License-Identifier: BSD-2-Clause */
/* The guest's memory map, built from its RAM slots. Knows no loader and no table format but E820.
 */
#include "hv/vm/e820.h"

#include "hv/lib/bug.h"

static u32 add(struct e820_entry *map, u32 n, u64 base, u64 end, u32 type)
{
	map[n] = (struct e820_entry){.base = base, .size = end - base, .type = type};
	return n + 1;
}

u32 e820_build(const struct guest_mem *mem, struct e820_entry map[E820_MAX])
{
	u32 n = 0;

	BUG_ON(mem->nr_slots == 0 || mem->nr_slots > GUEST_MEM_SLOTS);
	BUG_ON(mem->slots[0].gpa != 0 || mem->slots[0].size <= GUEST_HIGH_RAM);

	n = add(map, n, 0, GUEST_EBDA, E820_RAM);
	n = add(map, n, GUEST_EBDA, GUEST_LEGACY_HOLE, E820_RESERVED);
	n = add(map, n, GUEST_LEGACY_HOLE, GUEST_HIGH_RAM, E820_RESERVED);
	n = add(map, n, GUEST_HIGH_RAM, mem->slots[0].size, E820_RAM);
	for (u32 i = 1; i < mem->nr_slots; i++) {
		const struct mem_slot *s = &mem->slots[i];

		n = add(map, n, s->gpa, s->gpa + s->size, E820_RAM);
	}
	return n;
}
