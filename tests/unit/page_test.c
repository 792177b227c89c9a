/* SPDX-License-Identifier: BSD-2-Clause */
/* The physical page allocator. */
// sources: hv/page.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hv/page.h"

static struct page_pool pool;

static void setup(void)
{
	static const struct mem_range ranges[] = {
	    {0, 0xa0000, MEM_FREE, 0},
	    {0x100000, 0x700000, MEM_FREE, 0},
	    {0x800000, 0x100000, MEM_BOOT, 0},
	    {0x900000, 0x10000000, MEM_FREE, 0},
	    {0x100000000ull, 0x40000000, MEM_FREE, 0},
	};

	page_pool_init(&pool, ranges, ARRAY_SIZE(ranges));
}

static void only_free_memory_above_1_mib_counts(void **state)
{
	setup();
	assert_int_equal(pool.nr, 3);
	assert_int_equal(pool.total, 0x700000 + 0x10000000 + 0x40000000);
}

static void small_runs_come_from_the_bottom(void **state)
{
	setup();
	assert_int_equal(page_pool_take(&pool, 1, 4096, 0, PAGES_HV), 0x100000);
	assert_int_equal(page_pool_take(&pool, 4097, 4096, 0, PAGES_HV), 0x101000);
	assert_int_equal(page_pool_take(&pool, 4096, 4096, 0, PAGES_HV), 0x103000);
	assert_int_equal(pool.used[PAGES_HV], 4 * 4096);
}

static void what_alignment_leaves_over_is_used_later(void **state)
{
	setup();
	page_pool_take(&pool, 4096, 4096, 0, PAGES_HV);
	assert_int_equal(page_pool_take(&pool, 2 * MiB, 2 * MiB, 0, PAGES_GUEST), 0x200000);
	assert_int_equal(page_pool_take(&pool, 4096, 4096, 0, PAGES_HV), 0x101000);
}

static void limits_are_kept(void **state)
{
	setup();
	assert_int_equal(page_pool_take(&pool, 0x20000000, 4096, 0, PAGES_GUEST), 0x100000000ull);
	assert_int_equal(page_pool_take(&pool, 0x20000000, 4096, 4 * GiB, PAGES_GUEST), 0);
	assert_int_equal(page_pool_take(&pool, 0x40000000, 4096, 0, PAGES_GUEST), 0);
	assert_int_equal(page_pool_take(&pool, 0, 4096, 0, PAGES_HV), 0);
	assert_int_equal(page_pool_take(&pool, UINT64_MAX, 4096, 0, PAGES_HV), 0);
	assert_int_equal(page_pool_take(&pool, UINT64_MAX - 8192, 4096, 0, PAGES_HV), 0);
}

/* Whatever is taken: runs never overlap, lie in free ranges, and sums add up. */
static void random_runs_never_overlap(void **state)
{
	static struct {
		u64 at, size;
	} got[4000];
	u64 sum = 0, left;
	u32 n = 0;

	setup();
	srand(1);
	for (u32 i = 0; i < 4000; i++) {
		u64 size = (1 + rand() % 64) * 4096ull, align = 4096ull << rand() % 12;
		u64 at = page_pool_take(&pool, size, align, 0, PAGES_HV);

		if (!at)
			continue;
		assert_true(IS_ALIGNED(at, align));
		for (u32 k = 0; k < n; k++)
			assert_true(at + size <= got[k].at || got[k].at + got[k].size <= at);
		assert_true((at >= 0x100000 && at + size <= 0x800000) ||
			    (at >= 0x900000 && at + size <= 0x10900000) ||
			    (at >= 0x100000000ull && at + size <= 0x140000000ull));
		got[n].at = at;
		got[n++].size = size;
		sum += size;
	}
	left = page_pool_free(&pool, NULL);
	assert_int_equal(sum, pool.used[PAGES_HV]);
	assert_int_equal(left + sum, pool.total);
	assert_true(n > 200); /* the number of free pieces is bounded: not all 4000 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_free_memory_above_1_mib_counts),
	    cmocka_unit_test(small_runs_come_from_the_bottom),
	    cmocka_unit_test(what_alignment_leaves_over_is_used_later),
	    cmocka_unit_test(limits_are_kept),
	    cmocka_unit_test(random_runs_never_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
