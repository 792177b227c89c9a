/* SPDX-License-Identifier: BSD-2-Clause */
/* Building extended page tables; see ept.h. */
#include "hv/vmx/ept.h"

#include "hv/lib/bug.h"
#include "hv/page.h"
#include "hv/vmx/vmx.h"
#include "hv/x86/cpu.h"

#define EPT_RWX 7ull
#define EPT_WB (6ull << 3)
#define EPT_LARGE BIT(7)
#define EPT_ADDR 0x000ffffffffff000ull
#define EPTP_WB 6ull
#define EPTP_4_LEVELS (3ull << 3)
#define EPTP_AD BIT(6)

u64 ept_create(void)
{
	u64 top = (u64)page_alloc(PAGE_SIZE, PAGE_SIZE, PAGES_VM);

	return top | EPTP_WB | EPTP_4_LEVELS | (vmx_caps.ept_ad ? EPTP_AD : 0);
}

static bool page_fits(int level, u64 gpa, u64 hpa, u64 size)
{
	u64 span = PAGE_SIZE << (9 * (level - 1));
	bool possible =
	    level == 1 || (level == 2 && vmx_caps.ept_2m) || (level == 3 && vmx_caps.ept_1g);

	return possible && IS_ALIGNED(gpa | hpa, span) && size >= span;
}

void ept_map(u64 eptp, u64 gpa, u64 hpa, u64 size)
{
	BUG_ON(!IS_ALIGNED(gpa | hpa | size, PAGE_SIZE));
	while (size) {
		u64 *table = (u64 *)(eptp & EPT_ADDR);
		int level = 4;
		u64 span, *entry;

		for (;; level--) {
			span = PAGE_SIZE << (9 * (level - 1));
			entry = &table[gpa >> (12 + 9 * (level - 1)) & 511];
			if (page_fits(level, gpa, hpa, size))
				break;
			if (!*entry)
				*entry = (u64)page_alloc(PAGE_SIZE, PAGE_SIZE, PAGES_VM) | EPT_RWX;
			table = (u64 *)(*entry & EPT_ADDR);
		}
		*entry = hpa | EPT_RWX | EPT_WB | (level > 1 ? EPT_LARGE : 0);
		gpa += span;
		hpa += span;
		size -= span;
	}
}
