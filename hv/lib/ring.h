/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of bytes between exactly one producer and one consumer, which may run on different CPUs
 * without a lock. The indices run freely and are masked on use, so full and empty differ. Pure; the
 * storage belongs to the caller.
 */
#ifndef VLAG_LIB_RING_H
#define VLAG_LIB_RING_H

#include "hv/lib/bug.h"
#include "hv/lib/types.h"

struct byte_ring {
	u8 *buf;
	u32 size;		/* power of two; buf, size: fixed after ring_init() */
	u32 head;		/* bytes ever put; written by the producer */
	u32 tail __aligned(64); /* bytes ever taken; written by the consumer */
} __aligned(64);

/* @size is a power of two, at least 1; @buf stays the caller's. */
static inline void ring_init(struct byte_ring *ring, u8 *buf, u32 size)
{
	BUG_ON(size == 0 || (size & (size - 1)) != 0);
	ring->buf = buf;
	ring->size = size;
	ring->head = 0;
	ring->tail = 0;
}

/* Bytes that the consumer can take now; more may come at any time. Either side may ask. */
static inline u32 ring_used(const struct byte_ring *ring)
{
	return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
}

/* Bytes that the producer can put now; it only grows meanwhile. For the producer. */
static inline u32 ring_room(const struct byte_ring *ring)
{
	return ring->size - (ring->head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE));
}

/* Producer. False, and nothing happens, if the ring is full. */
static inline bool ring_put(struct byte_ring *ring, u8 byte)
{
	u32 head = ring->head;

	if (unlikely(head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) >= ring->size))
		return false;
	ring->buf[head & (ring->size - 1)] = byte;
	__atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

/* Consumer. False if the ring is empty. */
static inline bool ring_take(struct byte_ring *ring, u8 *byte)
{
	u32 tail = ring->tail;

	if (tail == __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE))
		return false;
	*byte = ring->buf[tail & (ring->size - 1)];
	__atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
	return true;
}

#endif
