/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds and checks the hypervisor's identity page tables; see paging.h. Guests' tables (EPT) live
 * in hv/vmx/ept.c. */
#include "hv/paging.h"

#include "hv/image.h"
#include "hv/lib/bug.h"
#include "hv/lib/string.h"
#include "hv/page.h"
#include "hv/x86/cpu.h"

#define LAPIC_PAGE 0xfee00000ull
#define IOAPIC_PAGE 0xfec00000ull

static u64 *top;

static u64 *new_table(void)
{
	u64 pa = page_pool_take(&pages, PAGE_SIZE, PAGE_SIZE, 4 * GiB, PAGES_HV);

	if (!pa)
		BUG("no memory below 4 GiB for the hypervisor's page tables");
	return memset((void *)pa, 0, PAGE_SIZE);
}

/* Page size that an entry of @level maps: 1 = 4 KiB, 2 = 2 MiB, 3 = 1 GiB. */
static u64 level_size(int level)
{
	return PAGE_SIZE << (9 * (level - 1));
}

/* The table below @entry (of @level); a large page is split into equal small ones. */
static u64 *descend(u64 *entry, int level)
{
	if (*entry & PTE_PS) {
		u64 old = *entry, step = level_size(level - 1);
		u64 *table = new_table();

		for (int i = 0; i < 512; i++)
			table[i] = (level == 2 ? old & ~PTE_PS : old) + i * step;
		*entry = (u64)table | PTE_P | PTE_W;
	} else if (!(*entry & PTE_P)) {
		*entry = (u64)new_table() | PTE_P | PTE_W;
	}
	return (u64 *)(*entry & PTE_ADDR);
}

void paging_map(u64 start, u64 size, u64 flags)
{
	u64 va = start, end = start + size;

	BUG_ON(!IS_ALIGNED(start | size, PAGE_SIZE));
	while (va < end) {
		u64 *table = top;
		int level = 4;
		u64 *entry;

		for (;;) {
			u64 span = level_size(level);

			entry = &table[va >> (12 + 9 * (level - 1)) & 511];
			if (level == 1 || (level == 2 && IS_ALIGNED(va, span) && end - va >= span))
				break;
			table = descend(entry, level);
			level--;
		}
		*entry = flags ? va | flags | (level == 2 ? PTE_PS : 0) : 0;
		invlpg(va);
		va += level_size(level);
	}
}

u64 paging_cr3(void)
{
	return (u64)top;
}

void paging_load(void)
{
	wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_NXE);
	write_cr0((read_cr0() | CR0_WP | CR0_NE | CR0_MP) & ~(CR0_EM | CR0_TS));
	write_cr3((u64)top);
}

static void map_image(void)
{
	paging_map((u64)__text_start, __text_end - __text_start, MAP_RX);
	paging_map((u64)__rodata_start, __rodata_end - __rodata_start, MAP_RO);
	paging_map((u64)__data_start, __relro_end - __data_start, MAP_RO);
	paging_map((u64)__relro_end, __data_end - __relro_end, MAP_RW);
}

void paging_init(const struct boot_info *info)
{
	top = new_table();
	for (u32 i = 0; i < info->nr_ranges; i++) {
		const struct mem_range *r = &info->ranges[i];
		u64 flags = r->type == MEM_RESERVED ? MAP_NONE
			    : r->type == MEM_ACPI   ? MAP_RO
						    : MAP_RW;

		if (flags)
			paging_map(r->base, r->size, flags);
	}
	paging_map(LAPIC_PAGE, PAGE_SIZE, MAP_IO);
	paging_map(IOAPIC_PAGE, PAGE_SIZE, MAP_IO);
	map_image();
	paging_map(0, PAGE_SIZE, MAP_NONE);
	paging_load();
}

static u64 count_wx(const u64 *table, int level, bool writable, bool executable)
{
	u64 n = 0;

	for (int i = 0; i < 512; i++) {
		u64 e = table[i];
		bool w = writable && (e & PTE_W), x = executable && !(e & PTE_NX);

		if (!(e & PTE_P))
			continue;
		if (level == 1 || (e & PTE_PS))
			n += w && x;
		else
			n += count_wx((const u64 *)(e & PTE_ADDR), level - 1, w, x);
	}
	return n;
}

u64 paging_count_wx(void)
{
	return count_wx(top, 4, true, true);
}
