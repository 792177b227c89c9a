/* SPDX-License-Identifier: BSD-2-Clause */
/* boot/memmap.c: what becomes of firmware memory maps, sound and unsound. */
// sources: boot/memmap.c
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "boot/memmap.h"

#define CONVENTIONAL 7
#define BS_CODE 3
#define BS_DATA 4
#define LOADER_DATA 2
#define RUNTIME 6
#define ACPI_TABLES 9
#define MMIO 11
#define PERSISTENT 14

/* EFI_MEMORY_DESCRIPTOR as firmware hands it out: 48 bytes each, not 40. */
struct descriptor {
	u32 type, pad;
	u64 base, virtual_base, pages, attributes, extra;
};

static struct mem_range ranges[8];
static struct memmap map;

static int setup(void **state)
{
	memset(ranges, 0xee, sizeof(ranges));
	map = (struct memmap){.ranges = ranges, .max = 8};
	return 0;
}

static void add(u32 type, u64 base, u64 size)
{
	struct descriptor d = {.type = type, .base = base, .pages = size / 4096};

	memmap_add_uefi(&map, &d, sizeof(d), sizeof(d));
}

static void assert_range(u32 i, u64 base, u64 end, u32 type)
{
	assert_true(i < map.nr);
	assert_int_equal(ranges[i].base, base);
	assert_int_equal(ranges[i].base + ranges[i].size, end);
	assert_int_equal(ranges[i].type, type);
}

static void a_plain_map_is_sorted_and_merged(void **state)
{
	const struct descriptor d[] = {
	    {.type = CONVENTIONAL, .base = 0x900000, .pages = 0x100},
	    {.type = BS_DATA, .base = 0x800000, .pages = 0x80},
	    {.type = BS_CODE, .base = 0x880000, .pages = 0x80},
	    {.type = CONVENTIONAL, .base = 0x100000, .pages = 0x700},
	    {.type = MMIO, .base = 0xfec00000, .pages = 1},
	};

	memmap_add_uefi(&map, d, sizeof(d), sizeof(d[0]));
	assert_int_equal(map.nr, 4);
	assert_range(0, 0x100000, 0x800000, MEM_FREE);
	assert_range(1, 0x800000, 0x900000, MEM_BOOT);
	assert_range(2, 0x900000, 0xa00000, MEM_FREE);
	assert_range(3, 0xfec00000, 0xfec01000, MEM_RESERVED);
}

static void types_mean_what_the_contract_says(void **state)
{
	add(ACPI_TABLES, 0x200000, 0x1000);
	add(RUNTIME, 0x300000, 0x1000);
	add(LOADER_DATA, 0x400000, 0x1000);
	add(PERSISTENT, 0x500000, 0x1000);
	assert_range(0, 0x200000, 0x201000, MEM_ACPI);
	assert_range(1, 0x300000, 0x301000, MEM_RESERVED);
	assert_range(2, 0x400000, 0x401000, MEM_BOOT);
	assert_range(3, 0x500000, 0x501000, MEM_RESERVED);
}

static void special_purpose_memory_is_not_allocated(void **state)
{
	struct descriptor d = {
	    .type = CONVENTIONAL, .base = 0x200000, .pages = 1, .attributes = 1ull << 18};

	memmap_add_uefi(&map, &d, sizeof(d), sizeof(d));
	assert_range(0, 0x200000, 0x201000, MEM_RESERVED);
}

static void ram_below_1_mib_is_reserved(void **state)
{
	add(CONVENTIONAL, 0, 0x200000);
	assert_int_equal(map.nr, 2);
	assert_range(0, 0, 0x100000, MEM_RESERVED);
	assert_range(1, 0x100000, 0x200000, MEM_FREE);
}

static void a_page_can_be_set_aside_in_the_middle(void **state)
{
	add(CONVENTIONAL, 0, 0xa0000);
	memmap_set(&map, 0x9f000, 4096, MEM_BOOT);
	assert_int_equal(map.nr, 2);
	assert_range(0, 0, 0x9f000, MEM_RESERVED);
	assert_range(1, 0x9f000, 0xa0000, MEM_BOOT);
	memmap_set(&map, 0x50000, 1, MEM_IMAGE);
	assert_int_equal(map.nr, 4);
	assert_range(1, 0x50000, 0x51000, MEM_IMAGE);
	assert_range(2, 0x51000, 0x9f000, MEM_RESERVED);
}

static void setting_covers_several_ranges_and_gaps(void **state)
{
	add(CONVENTIONAL, 0x200000, 0x2000);
	add(MMIO, 0x204000, 0x1000);
	add(CONVENTIONAL, 0x206000, 0x2000);
	memmap_set(&map, 0x201000, 0x6000, MEM_IMAGE);
	assert_int_equal(map.nr, 3);
	assert_range(0, 0x200000, 0x201000, MEM_FREE);
	assert_range(1, 0x201000, 0x207000, MEM_IMAGE);
	assert_range(2, 0x207000, 0x208000, MEM_FREE);
}

static void where_descriptors_overlap_the_stricter_one_holds(void **state)
{
	add(CONVENTIONAL, 0x200000, 0x4000);
	add(RUNTIME, 0x201000, 0x1000);
	add(BS_DATA, 0x200000, 0x8000);
	assert_int_equal(map.nr, 3);
	assert_range(0, 0x200000, 0x201000, MEM_BOOT);
	assert_range(1, 0x201000, 0x202000, MEM_RESERVED);
	assert_range(2, 0x202000, 0x208000, MEM_BOOT);
	add(CONVENTIONAL, 0x1ff000, 0x20000);
	assert_range(0, 0x1ff000, 0x200000, MEM_FREE);
	assert_range(2, 0x201000, 0x202000, MEM_RESERVED);
}

static void unaligned_ram_shrinks_and_unaligned_mmio_grows(void **state)
{
	add(CONVENTIONAL, 0x200800, 0x3000);
	add(MMIO, 0x300800, 0x1000);
	assert_int_equal(map.nr, 2);
	assert_range(0, 0x201000, 0x203000, MEM_FREE);
	assert_range(1, 0x300000, 0x302000, MEM_RESERVED);
}

static void impossible_addresses_are_dropped_or_cut(void **state)
{
	struct descriptor d = {.type = CONVENTIONAL, .base = 0x200000, .pages = ~0ull};

	add(CONVENTIONAL, 1ull << 52, 0x1000);
	add(MMIO, ~0xfffull, 0x1000);
	assert_int_equal(map.nr, 0);
	memmap_add_uefi(&map, &d, sizeof(d), sizeof(d));
	assert_range(0, 0x200000, 1ull << 52, MEM_FREE);
}

static void empty_descriptors_add_nothing(void **state)
{
	add(CONVENTIONAL, 0x200000, 0);
	assert_int_equal(map.nr, 0);
	add(CONVENTIONAL, 0x200000, 0x2000);
	memmap_set(&map, 0x201000, 0, MEM_BOOT); /* looped for ever once */
	assert_int_equal(map.nr, 1);
}

static void a_cut_off_last_descriptor_is_ignored(void **state)
{
	struct descriptor d[2] = {{.type = CONVENTIONAL, .base = 0x200000, .pages = 1},
				  {.type = CONVENTIONAL, .base = 0x400000, .pages = 1}};

	memmap_add_uefi(&map, d, sizeof(d) - 1, sizeof(d[0]));
	assert_int_equal(map.nr, 1);
	memmap_add_uefi(&map, d, sizeof(d), 8);
	assert_int_equal(map.nr, 1);
}

static void a_full_map_gives_up_its_smallest_foreign_range(void **state)
{
	memmap_set(&map, 0x200000, 0x1000, MEM_IMAGE);
	memmap_set(&map, 0x300000, 0x1000, MEM_BOOT);
	for (u64 i = 0; i < 6; i++)
		add(CONVENTIONAL, 0x1000000 * (i + 1), 0x10000 * (i + 1));
	assert_int_equal(map.nr, 8);
	assert_int_equal(map.nr_lost, 0);
	add(MMIO, 0xf0000000, 0x100000);
	assert_int_equal(map.nr, 8);
	assert_int_equal(map.nr_lost, 1);
	assert_int_equal(map.lost_bytes, 0x10000);
	assert_range(0, 0x200000, 0x201000, MEM_IMAGE);
	assert_range(1, 0x300000, 0x301000, MEM_BOOT);
	assert_range(2, 0x2000000, 0x2020000, MEM_FREE);
	assert_range(7, 0xf0000000, 0xf0100000, MEM_RESERVED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_plain_map_is_sorted_and_merged, setup),
	    cmocka_unit_test_setup(types_mean_what_the_contract_says, setup),
	    cmocka_unit_test_setup(special_purpose_memory_is_not_allocated, setup),
	    cmocka_unit_test_setup(ram_below_1_mib_is_reserved, setup),
	    cmocka_unit_test_setup(a_page_can_be_set_aside_in_the_middle, setup),
	    cmocka_unit_test_setup(setting_covers_several_ranges_and_gaps, setup),
	    cmocka_unit_test_setup(where_descriptors_overlap_the_stricter_one_holds, setup),
	    cmocka_unit_test_setup(unaligned_ram_shrinks_and_unaligned_mmio_grows, setup),
	    cmocka_unit_test_setup(impossible_addresses_are_dropped_or_cut, setup),
	    cmocka_unit_test_setup(empty_descriptors_add_nothing, setup),
	    cmocka_unit_test_setup(a_cut_off_last_descriptor_is_ignored, setup),
	    cmocka_unit_test_setup(a_full_map_gives_up_its_smallest_foreign_range, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
