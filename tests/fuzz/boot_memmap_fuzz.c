/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the conversion of the memory map against a model that knows one type for each page of a
 * small window around 1 MiB. Each 5 bytes are one descriptor, or one call of memmap_set():
 *	what, first page, pages, low and high bits of misalignment.
 */
// sources: boot/memmap.c
#include <string.h>

#include "boot/memmap.h"
#include "hv/lib/bug.h"

#define PAGES 320
#define WINDOW (1 * MiB - 64 * 4096) /* address of page 0 */
#define LOW_PAGES 64		     /* of them below 1 MiB */
#define NOTHING (-1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static s32 model[PAGES];
static struct mem_range ranges[64];
static struct memmap map;

/* The types as the contract in boot_info.h words them, not as memmap.c does. */
static enum mem_type type_of(u32 uefi)
{
	static const u8 types[] = {
	    [1] = MEM_BOOT, [2] = MEM_BOOT, [3] = MEM_BOOT,  [4] = MEM_BOOT,
	    [7] = MEM_FREE, [9] = MEM_ACPI, [10] = MEM_ACPI,
	};

	return uefi == 7 || (uefi < sizeof(types) && types[uefi]) ? types[uefi] : MEM_RESERVED;
}

static void add(u32 uefi, u32 first, u32 pages, u32 misalign)
{
	struct {
		u32 type, pad;
		u64 base, virtual_base, pages, attributes;
	} d = {uefi, 0, WINDOW + first * 4096ull + misalign, 0, pages, 0};
	s32 type = type_of(uefi);
	u32 last = first + pages; /* not included */

	memmap_add_uefi(&map, &d, sizeof(d), sizeof(d));
	if (misalign && type == MEM_FREE)
		first++;
	else if (misalign)
		last++;
	for (u32 i = first; i < last; i++) {
		s32 here = i < LOW_PAGES && type != MEM_ACPI ? MEM_RESERVED : type;

		model[i] = max(model[i], here);
	}
}

static void set(u32 type, u32 first, u32 pages)
{
	memmap_set(&map, WINDOW + first * 4096ull, pages * 4096ull, type);
	for (u32 i = first; i < first + pages; i++)
		model[i] = (s32)type;
}

static s32 type_at(u64 addr)
{
	for (u32 i = 0; i < map.nr; i++) {
		if (addr >= ranges[i].base && addr - ranges[i].base < ranges[i].size)
			return (s32)ranges[i].type;
	}
	return NOTHING;
}

static void check(void)
{
	BUG_ON(map.nr > map.max);
	for (u32 i = 0; i < map.nr; i++) {
		const struct mem_range *r = &ranges[i];

		BUG_ON(!r->size || r->base % 4096 || r->size % 4096);
		BUG_ON(i && r[-1].base + r[-1].size > r->base);
		BUG_ON(i && r[-1].base + r[-1].size == r->base && r[-1].type == r->type &&
		       !map.nr_lost);
	}
	for (u32 i = 0; i < PAGES; i++) {
		s32 got = type_at(WINDOW + i * 4096ull);

		/* A range that was given up in the middle of an operation is not there to win over
		 * what that operation adds. */
		BUG_ON(map.nr_lost ? got > model[i] : got != model[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (u32 i = 0; i < PAGES; i++)
		model[i] = NOTHING;
	/* A small map overflows, a large one never does. */
	map = (struct memmap){.ranges = ranges, .max = size % 2 ? 64 : 8};
	for (size_t i = 0; i + 5 <= size && i < 5 * 40; i += 5) {
		u32 what = data[i] % 32, first = data[i + 1], pages = data[i + 2] % 40;

		if (what < 20)
			add(what, first, pages, (data[i + 3] | data[i + 4] << 8) & 0xfff);
		else
			set(what % 5, first, pages);
		/* What was given up is gone from the map for later overlaps too. */
		if (map.nr_lost)
			break;
	}
	check();
	return 0;
}
