/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bits in words and in arrays of 64-bit words ("bitmaps"), plain and atomic. An atomic operation is
 * a full barrier.
 */
#ifndef VLAG_LIB_BITS_H
#define VLAG_LIB_BITS_H

#include "hv/lib/types.h"

/* Index of the highest / lowest set bit; @x must not be 0. */
static inline int fls64(u64 x)
{
	return 63 - __builtin_clzll(x);
}

static inline int ffs64(u64 x)
{
	return __builtin_ctzll(x);
}

static inline bool bit_test(const u64 *map, u32 n)
{
	return READ_ONCE(map[n / 64]) >> (n % 64) & 1;
}

static inline void bit_set(u64 *map, u32 n)
{
	map[n / 64] |= BIT(n % 64);
}

static inline void bit_clear(u64 *map, u32 n)
{
	map[n / 64] &= ~BIT(n % 64);
}

/* Atomic; each returns whether the bit was set before. */
static inline bool bit_test_and_set(u64 *map, u32 n)
{
	u64 bit = BIT(n % 64);

	/* In this form GCC makes LOCK BTS of it. */
	return __atomic_fetch_or(&map[n / 64], bit, __ATOMIC_SEQ_CST) & bit;
}

static inline bool bit_test_and_clear(u64 *map, u32 n)
{
	u64 bit = BIT(n % 64);

	return __atomic_fetch_and(&map[n / 64], ~bit, __ATOMIC_SEQ_CST) & bit;
}

static inline void bit_set_atomic(u64 *map, u32 n)
{
	__atomic_or_fetch(&map[n / 64], BIT(n % 64), __ATOMIC_SEQ_CST);
}

static inline void bit_clear_atomic(u64 *map, u32 n)
{
	__atomic_and_fetch(&map[n / 64], ~BIT(n % 64), __ATOMIC_SEQ_CST);
}

#endif
