/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the firmware's memory map to boot_info.ranges. Pure.
 */
#ifndef VLAG_BOOT_MEMMAP_H
#define VLAG_BOOT_MEMMAP_H

#include "boot/boot_info.h"

/* What is built: ranges sorted by base, without overlaps, neighbours of one type merged. */
struct memmap {
	struct mem_range *ranges;
	u32 nr, max;
	u32 nr_lost;	/* ranges given up because there was no room */
	u64 lost_bytes; /* their sizes */
};

/*
 * Adds the UEFI memory map (@size bytes of descriptors of @descriptor_size bytes each; UEFI 2.10,
 * 7.2.3 GetMemoryMap) to @map. Where descriptors overlap the more restrictive type holds. RAM below
 * 1 MiB becomes MEM_RESERVED: firmware and real-mode leftovers live there.
 */
void memmap_add_uefi(struct memmap *map, const void *descriptors, size_t size,
		     size_t descriptor_size);

/*
 * Says what the loader knows better: whole pages from @base, @size bytes (rounded up), are of @type
 * whatever was there before.
 */
void memmap_set(struct memmap *map, u64 base, u64 size, enum mem_type type);

#endif
