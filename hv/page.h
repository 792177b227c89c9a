/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The physical page allocator: carves page runs off the free ranges that the loader found. Used
 * while booting and while VMs are made; nothing is ever given back (a VM that is reset keeps its
 * memory). Pure: addresses are only numbers here.
 */
#ifndef VLAG_PAGE_H
#define VLAG_PAGE_H

#include "boot/boot_info.h"
#include "hv/lib/types.h"

/* What pages are used for; the monitor shows the sums. */
#define PAGE_USES(X)                                                                               \
	X(PAGES_HV, "hypervisor")                                                                  \
	X(PAGES_PCPU, "pcpu")                                                                      \
	X(PAGES_TRACE, "trace")                                                                    \
	X(PAGES_VM, "vm")                                                                          \
	X(PAGES_VCPU, "vcpu")                                                                      \
	X(PAGES_GUEST, "guest RAM")

enum page_use {
#define X(name, text) name,
	PAGE_USES(X)
#undef X
	    NR_PAGE_USES
};

struct page_pool {
	u32 nr;
	struct {
		u64 start, end;
	} free[BOOT_MAX_RANGES];
	u64 total;		/* bytes that were free at the beginning */
	u64 used[NR_PAGE_USES]; /* bytes */
};

/* Takes the MEM_FREE ranges above 1 MiB. */
void page_pool_init(struct page_pool *pool, const struct mem_range *ranges, u32 nr);

/*
 * Takes @size bytes (rounded up to pages), aligned to @align (a power of two >= 4096), entirely
 * below @below (0: no limit). Small runs come from the lowest addresses. Returns the physical
 * address or 0. Contents are undefined. Boot CPU only.
 */
u64 page_pool_take(struct page_pool *pool, u64 size, u64 align, u64 below, enum page_use use);

/* Bytes still free, and the largest run of them when aligned to 2 MiB. */
u64 page_pool_free(const struct page_pool *pool, u64 *largest_2m);

/* The hypervisor's pool; page_alloc() zeroes what it takes and panics when there is none left. */
extern struct page_pool pages;
void *page_alloc(u64 size, u64 align, enum page_use use);
const char *page_use_text(enum page_use use);

#endif
