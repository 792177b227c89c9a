/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks a guest's page tables (SDM vol. 3, chapter 4): linear to guest-physical addresses. Pure:
 * what it needs of the guest's state is given to it.
 */
#ifndef VLAG_VMX_GPT_H
#define VLAG_VMX_GPT_H

#include "hv/lib/types.h"
#include "hv/vm/guest_mem.h"

struct gpt_regs {
	u64 cr0, cr3, cr4, efer;
};

/* Bits of a page-fault error code, as far as the walk sets them. */
enum {
	GPT_PF_PRESENT = 1 << 0,
	GPT_PF_WRITE = 1 << 1,
	GPT_PF_USER = 1 << 2,
	GPT_PF_RSVD = 1 << 3,
};

/*
 * Translates @gla without any check of rights, for what the guest itself has just reached (its
 * instruction). Writes *@gpa, which need not be RAM.
 * Returns 0; E_FAULT if not mapped; E_RANGE if a table lies outside RAM; E_UNSUPP with 5-level
 * paging.
 */
int gpt_translate(const struct guest_mem *mem, const struct gpt_regs *regs, u64 gla, u64 *gpa);

/*
 * Translates @gla as the processor would for a data access, with rights, accessed and dirty bits.
 * @access: GPT_PF_WRITE, GPT_PF_USER (CPL 3). Protection keys, SMAP and SMEP are not looked at.
 * Returns as gpt_translate(); with E_FAULT, *@pf_error is the error code of the page fault to
 * inject (CR2 = @gla). E_BUSY if other vCPUs keep changing the entries: try again later.
 */
int gpt_access(const struct guest_mem *mem, const struct gpt_regs *regs, u64 gla, u32 access,
	       u64 *gpa, u32 *pf_error);

#endif
