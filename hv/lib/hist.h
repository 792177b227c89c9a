/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A histogram with one bucket per power of two, for times and counts: adding is a handful of
 * instructions, and quantiles are right to within a factor of two. Pure; one writer at a time (the
 * owner of what embeds it), readers may look at any moment and see a slightly torn picture.
 */
#ifndef VLAG_LIB_HIST_H
#define VLAG_LIB_HIST_H

#include "hv/lib/bits.h"
#include "hv/lib/types.h"

#define HIST_BUCKETS 64 /* so many that adding needs no bound */

/* Bucket 0 holds the value 0, bucket b >= 1 the values 2^(b-1) .. 2^b - 1; the last one also all
 * that is larger. All zeroes is an empty histogram. */
struct hist {
	u64 sum;
	u64 max;
	u32 bucket[HIST_BUCKETS];
};

static inline u32 hist_bucket(u64 value)
{
	/* 0, or one more than its highest bit; 63 for the largest. */
	return fls64(value | value << 1 | 1);
}

static inline void hist_add(struct hist *h, u64 value)
{
	h->sum += value;
	if (value > h->max)
		h->max = value;
	h->bucket[hist_bucket(value)]++;
}

/* Adds what @src holds to @dst. */
static inline void hist_merge(struct hist *dst, const struct hist *src)
{
	dst->sum += src->sum;
	dst->max = max(dst->max, src->max);
	for (u32 b = 0; b < HIST_BUCKETS; b++)
		dst->bucket[b] += src->bucket[b];
}

/* The largest value that bucket @b stands for. */
static inline u64 hist_bucket_top(u32 b)
{
	return b == HIST_BUCKETS - 1 ? UINT64_MAX : BIT(b) - 1;
}

static inline u64 hist_count(const struct hist *h)
{
	u64 count = 0;

	for (u32 b = 0; b < HIST_BUCKETS; b++)
		count += h->bucket[b];
	return count;
}

/* Takes off what @base, an earlier copy of @h, holds. Of the maximum then only a bound is known. */
static inline void hist_subtract(struct hist *h, const struct hist *base)
{
	u32 top = 0;

	h->sum -= base->sum;
	for (u32 b = 0; b < HIST_BUCKETS; b++) {
		h->bucket[b] -= base->bucket[b];
		if (h->bucket[b])
			top = b;
	}
	h->max = min(h->max, hist_bucket_top(top));
}

static inline u64 hist_mean(const struct hist *h)
{
	u64 count = hist_count(h);

	return count ? h->sum / count : 0;
}

/*
 * An upper bound of the @per_mille quantile (500: the median, 990: the 99th percentile): the top of
 * the bucket in which it lies, never above the largest value seen. 0 for an empty histogram.
 */
static inline u64 hist_quantile(const struct hist *h, u32 per_mille)
{
	u64 count = hist_count(h), rank = (count * per_mille + 999) / 1000, seen = 0;

	if (!count)
		return 0;
	if (!rank)
		rank = 1;
	for (u32 b = 0; b < HIST_BUCKETS; b++) {
		seen += h->bucket[b];
		if (seen >= rank)
			return min(hist_bucket_top(b), h->max);
	}
	return h->max;
}

#endif
