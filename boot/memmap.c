/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the firmware's memory map to boot_info.ranges. Pure: runs after ExitBootServices, without
 * memory of its own, and believes nothing about order, overlaps or alignment.
 */
#include "boot/memmap.h"

#include "hv/lib/bug.h"
#include "hv/lib/string.h"

#define PAGE 4096ull
#define LOW_END (1 * MiB)
#define ADDRESS_END (1ull << 52) /* no x86 CPU has more physical address bits */

/* UEFI 2.10, 7.2.1: EFI_MEMORY_TYPE and EFI_MEMORY_DESCRIPTOR. */
enum uefi_type {
	UEFI_LOADER_CODE = 1,
	UEFI_LOADER_DATA = 2,
	UEFI_BOOT_SERVICES_CODE = 3,
	UEFI_BOOT_SERVICES_DATA = 4,
	UEFI_CONVENTIONAL = 7,
	UEFI_ACPI_RECLAIM = 9,
	UEFI_ACPI_NVS = 10,
};
#define UEFI_ATTRIBUTE_SPECIAL_PURPOSE (1ull << 18)

struct uefi_descriptor {
	u32 type;
	u32 pad;
	u64 base;
	u64 virtual_base;
	u64 pages;
	u64 attributes;
};

static u64 end_of(const struct mem_range *r)
{
	return r->base + r->size;
}

/* Makes room for one more range: gives up the smallest that holds nothing of ours. */
static void evict(struct memmap *map)
{
	u32 victim = map->nr;

	for (u32 i = 0; i < map->nr; i++) {
		const struct mem_range *r = &map->ranges[i];

		if (r->type == MEM_IMAGE || r->type == MEM_BOOT)
			continue;
		if (victim == map->nr || r->size < map->ranges[victim].size)
			victim = i;
	}
	if (victim == map->nr) /* all hold something of ours: the last must do */
		victim--;
	map->nr_lost++;
	map->lost_bytes += map->ranges[victim].size;
	map->nr--;
	memmove(&map->ranges[victim], &map->ranges[victim + 1],
		(map->nr - victim) * sizeof(map->ranges[0]));
}

/* Merges range @i with the one before it if they touch and agree. */
static void merge_with_previous(struct memmap *map, u32 i)
{
	struct mem_range *r = &map->ranges[i];

	if (i == 0 || i >= map->nr || end_of(r - 1) != r->base || r[-1].type != r->type)
		return;
	r[-1].size += r->size;
	map->nr--;
	memmove(r, r + 1, (map->nr - i) * sizeof(*r));
}

/* Inserts [base, end), which overlaps nothing. */
static void insert(struct memmap *map, u64 base, u64 end, u32 type)
{
	u32 i = 0;

	if (base >= end)
		return;
	if (map->nr == map->max)
		evict(map);
	while (i < map->nr && map->ranges[i].base < base)
		i++;
	memmove(&map->ranges[i + 1], &map->ranges[i], (map->nr - i) * sizeof(map->ranges[0]));
	map->ranges[i] = (struct mem_range){.base = base, .size = end - base, .type = type};
	map->nr++;
	merge_with_previous(map, i + 1);
	merge_with_previous(map, i);
}

/* Takes [base, end) out of the range that overlaps it first; what sticks out stays. Returns false
 * if nothing overlaps. */
static bool cut(struct memmap *map, u64 base, u64 end, struct mem_range *overlap)
{
	for (u32 i = 0; i < map->nr; i++) {
		struct mem_range r = map->ranges[i];

		if (end_of(&r) <= base || r.base >= end)
			continue;
		map->nr--;
		memmove(&map->ranges[i], &map->ranges[i + 1],
			(map->nr - i) * sizeof(map->ranges[0]));
		overlap->base = max(r.base, base);
		overlap->size = min(end_of(&r), end) - overlap->base;
		overlap->type = r.type;
		insert(map, r.base, overlap->base, r.type);
		insert(map, end_of(overlap), end_of(&r), r.type);
		return true;
	}
	return false;
}

void memmap_set(struct memmap *map, u64 base, u64 size, enum mem_type type)
{
	u64 end = ALIGN_UP(min(base, ADDRESS_END) + min(size, ADDRESS_END), PAGE);
	struct mem_range overlap;

	base = ALIGN_DOWN(base, PAGE);
	if (!size)
		return;
	while (cut(map, base, end, &overlap))
		;
	insert(map, base, end, type);
}

/* Adds [base, end): where something is already, the more restrictive type (the larger) holds. */
static void add(struct memmap *map, u64 base, u64 end, u32 type)
{
	while (base < end) {
		struct mem_range overlap = {.base = end};
		u64 next = end;

		/* The first overlap, if any, splits [base, end) into before, in and after it. */
		for (u32 i = 0; i < map->nr; i++) {
			const struct mem_range *r = &map->ranges[i];

			if (end_of(r) <= base || r->base >= end)
				continue;
			overlap.base = max(r->base, base);
			next = min(end_of(r), end);
			overlap.type = max(r->type, type);
			break;
		}
		if (base < overlap.base) {
			insert(map, base, overlap.base, type);
			base = overlap.base;
			continue;
		}
		memmap_set(map, base, next - base, overlap.type);
		base = next;
	}
}

static enum mem_type type_of(const struct uefi_descriptor *d)
{
	switch (d->type) {
	case UEFI_CONVENTIONAL:
		return d->attributes & UEFI_ATTRIBUTE_SPECIAL_PURPOSE ? MEM_RESERVED : MEM_FREE;
	case UEFI_LOADER_CODE:
	case UEFI_LOADER_DATA:
	/* The stack, the page tables and the GDT that we run on are in these. */
	case UEFI_BOOT_SERVICES_CODE:
	case UEFI_BOOT_SERVICES_DATA:
		return MEM_BOOT;
	case UEFI_ACPI_RECLAIM:
	case UEFI_ACPI_NVS:
		return MEM_ACPI;
	default:
		return MEM_RESERVED;
	}
}

void memmap_add_uefi(struct memmap *map, const void *descriptors, size_t size,
		     size_t descriptor_size)
{
	if (descriptor_size < sizeof(struct uefi_descriptor))
		return;
	for (size_t at = 0; size - at >= descriptor_size; at += descriptor_size) {
		struct uefi_descriptor d;
		enum mem_type type;
		u64 base, end;

		memcpy(&d, (const char *)descriptors + at, sizeof(d));
		type = type_of(&d);
		if (d.base >= ADDRESS_END)
			continue;
		/* RAM is rounded inwards, what is not RAM outwards. */
		base = type == MEM_FREE ? ALIGN_UP(d.base, PAGE) : ALIGN_DOWN(d.base, PAGE);
		end = d.base + min(d.pages, ADDRESS_END / PAGE) * PAGE;
		end = type == MEM_FREE ? ALIGN_DOWN(end, PAGE) : ALIGN_UP(end, PAGE);
		end = min(end, ADDRESS_END);
		add(map, base, min(end, LOW_END), type == MEM_ACPI ? MEM_ACPI : MEM_RESERVED);
		add(map, max(base, LOW_END), end, type);
	}
}
