/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A spin lock: one word, no fairness, interrupts are off in the hypervisor anyway.
 *
 * Lock order (outer first): vm->lock (devices, APIC map) -> run-queue locks by pCPU number ->
 * nothing. The console lock is a leaf: nothing is taken inside it.
 */
#ifndef VLAG_LIB_LOCK_H
#define VLAG_LIB_LOCK_H

#include "hv/lib/types.h"

struct spinlock {
	u32 locked;
};

static inline bool spin_trylock(struct spinlock *l)
{
	return !__atomic_exchange_n(&l->locked, 1, __ATOMIC_ACQUIRE);
}

static inline void spin_lock(struct spinlock *l)
{
	while (unlikely(!spin_trylock(l))) {
		while (READ_ONCE(l->locked))
			__builtin_ia32_pause();
	}
}

static inline void spin_unlock(struct spinlock *l)
{
	__atomic_store_n(&l->locked, 0, __ATOMIC_RELEASE);
}

#endif
