/* SPDX-License-Identifier: BSD-2-Clause */
/* The physical page allocator; see page.h. Only arithmetic on ranges lives here. */
#include "hv/page.h"

void page_pool_init(struct page_pool *pool, const struct mem_range *ranges, u32 nr)
{
	*pool = (struct page_pool){0};
	for (u32 i = 0; i < nr && pool->nr < BOOT_MAX_RANGES; i++) {
		u64 start = max(ranges[i].base, (u64)MiB);
		u64 end = ranges[i].base + ranges[i].size;

		if (ranges[i].type != MEM_FREE || start >= end)
			continue;
		pool->free[pool->nr].start = start;
		pool->free[pool->nr].end = end;
		pool->nr++;
		pool->total += end - start;
	}
}

/* Removes [@at, @at + @size) from free range @i, which holds it; the rest stays as one or two
 * ranges. */
static bool carve(struct page_pool *pool, u32 i, u64 at, u64 size)
{
	u64 end = pool->free[i].end;

	if (at + size < end && at > pool->free[i].start) {
		if (pool->nr == BOOT_MAX_RANGES)
			return false;
		pool->free[pool->nr].start = at + size;
		pool->free[pool->nr].end = end;
		pool->nr++;
		pool->free[i].end = at;
	} else if (at > pool->free[i].start) {
		pool->free[i].end = at;
	} else {
		pool->free[i].start = at + size;
	}
	return true;
}

u64 page_pool_take(struct page_pool *pool, u64 size, u64 align, u64 below, enum page_use use)
{
	u64 best = UINT64_MAX;
	u32 best_i = 0;

	size = ALIGN_UP(size, 4096ull);
	if (!size || size < 4096)
		return 0;
	for (u32 i = 0; i < pool->nr; i++) {
		u64 at = ALIGN_UP(pool->free[i].start, align);
		u64 limit = below ? min(pool->free[i].end, below) : pool->free[i].end;

		if (at < pool->free[i].start || at >= limit || limit - at < size || at >= best)
			continue;
		best = at;
		best_i = i;
	}
	if (best == UINT64_MAX || !carve(pool, best_i, best, size))
		return 0;
	pool->used[use] += size;
	return best;
}

u64 page_pool_free(const struct page_pool *pool, u64 *largest_2m)
{
	u64 sum = 0, largest = 0;

	for (u32 i = 0; i < pool->nr; i++) {
		u64 at = ALIGN_UP(pool->free[i].start, 2 * MiB);
		u64 end = ALIGN_DOWN(pool->free[i].end, 2 * MiB);

		sum += pool->free[i].end - pool->free[i].start;
		if (at < end)
			largest = max(largest, end - at);
	}
	if (largest_2m)
		*largest_2m = largest;
	return sum;
}

const char *page_use_text(enum page_use use)
{
	static const char *const text[] = {
#define X(name, string) string,
	    PAGE_USES(X)
#undef X
	};
	return text[use];
}
