/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hypervisor's own address space: RAM identity-mapped, never writable and executable at once,
 * page 0 and guard pages unmapped. Built once on the boot CPU, shared by all pCPUs; changed only
 * while booting.
 */
#ifndef VLAG_PAGING_H
#define VLAG_PAGING_H

#include "boot/boot_info.h"
#include "hv/lib/types.h"

#define PTE_P BIT(0)
#define PTE_W BIT(1)
#define PTE_PWT BIT(3)
#define PTE_PCD BIT(4)
#define PTE_PS BIT(7)
#define PTE_G BIT(8)
#define PTE_NX BIT(63)
#define PTE_ADDR 0x000ffffffffff000ull

#define MAP_RW (PTE_P | PTE_W | PTE_NX)
#define MAP_RO (PTE_P | PTE_NX)
#define MAP_RX PTE_P
#define MAP_IO (PTE_P | PTE_W | PTE_NX | PTE_PCD | PTE_PWT)
#define MAP_NONE 0

/* Builds the tables from @info's memory map and loads CR3. Needs page_pool_init() first. */
void paging_init(const struct boot_info *info);

/* Identity-maps [@start, @start + @size) (page aligned) with @flags (MAP_*); splits large pages as
 * needed. */
void paging_map(u64 start, u64 size, u64 flags);

/* Physical address of the top table, for the other CPUs and HOST_CR3. Below 4 GiB. */
u64 paging_cr3(void);

/* Turns on what the tables rely on (EFER.NXE, CR0.WP) and loads them. Every CPU calls it once. */
void paging_load(void);

/* Walks the tables and counts pages that are writable and executable: 0 in a healthy hypervisor. */
u64 paging_count_wx(void);

#endif
