/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guest page-table walks: a short one for 64-bit guests that only translates, and a general one for
 * all paging modes, rights, and accessed and dirty bits. Guests change their tables under us, so
 * each entry is read once and changed only by compare-and-exchange.
 */
#include "hv/vmx/gpt.h"

#include "hv/lib/errors.h"

enum {
	PTE_P = 1 << 0,
	PTE_W = 1 << 1,
	PTE_U = 1 << 2,
	PTE_A = 1 << 5,
	PTE_D = 1 << 6,
	PTE_PS = 1 << 7
};
#define PTE_ADDR 0x000ffffffffff000ull
#define CR0_WP BIT(16)
#define CR0_PG BIT(31)
#define CR4_PSE BIT(4)
#define CR4_PAE BIT(5)
#define CR4_LA57 BIT(12)
#define EFER_LMA BIT(10)

#define TRANSLATE_ONLY UINT32_MAX
#define MAX_LEVELS 4
#define MAX_TRIES 8

/* A page-table walk of some mode under way. */
struct walk {
	u64 gla;
	unsigned levels;     /* of this mode */
	unsigned index_bits; /* per level; the entry is 4 bytes with 10, else 8 */
	void *entries[MAX_LEVELS];
	u64 values[MAX_LEVELS]; /* as they were read */
	unsigned leaf;		/* level of the entry that maps the page, 0 is the lowest */
	u64 rights;		/* PTE_W, PTE_U of all levels together */
};

static void set_mode(struct walk *w, const struct gpt_regs *regs)
{
	if (regs->efer & EFER_LMA) {
		w->levels = 4;
		w->index_bits = 9;
	} else if (regs->cr4 & CR4_PAE) {
		w->levels = 3;
		w->index_bits = 9;
	} else {
		w->levels = 2;
		w->index_bits = 10;
	}
}

static bool is_leaf(const struct walk *w, const struct gpt_regs *regs, unsigned level, u64 entry)
{
	if (level == 0)
		return true;
	if (!(entry & PTE_PS))
		return false;
	if (w->levels == 2)
		return regs->cr4 & CR4_PSE;
	return true; /* where it is reserved, read_entries() has found out */
}

/* Reads the entries from the top down to the leaf. Returns 0, E_RANGE or E_FAULT. */
static int read_entries(struct walk *w, const struct guest_mem *mem, const struct gpt_regs *regs,
			u32 *pf_error)
{
	unsigned size = w->index_bits == 10 ? 4 : 8;
	u64 table = regs->cr3 & (w->levels == 3 ? 0xffffffe0ull : PTE_ADDR);

	if (w->levels == 2)
		table &= 0xfffff000;
	w->rights = PTE_W | PTE_U;
	for (unsigned level = w->levels - 1;; level--) {
		bool pdpte = w->levels == 3 && level == 2; /* of PAE paging: no rights, no A */
		u64 index = w->gla >> (12 + w->index_bits * level);
		void *at;
		u64 entry;

		index &= pdpte ? 3 : (1u << w->index_bits) - 1;
		at = guest_ptr(mem, table + index * size, size);
		if (!at)
			return E_RANGE;
		entry = size == 4 ? READ_ONCE(*(u32 *)at) : READ_ONCE(*(u64 *)at);
		w->entries[level] = pdpte ? NULL : at;
		w->values[level] = entry;
		if (!(entry & PTE_P))
			return E_FAULT;
		if (entry & PTE_PS && (pdpte || level == 3)) {
			*pf_error |= GPT_PF_PRESENT | GPT_PF_RSVD;
			return E_FAULT;
		}
		if (!pdpte)
			w->rights &= entry;
		w->leaf = level;
		if (is_leaf(w, regs, level, entry))
			return 0;
		table = entry & PTE_ADDR;
	}
}

static bool allowed(const struct walk *w, const struct gpt_regs *regs, u32 access)
{
	if (access & GPT_PF_USER && !(w->rights & PTE_U))
		return false;
	if (access & GPT_PF_WRITE && !(w->rights & PTE_W))
		return !(access & GPT_PF_USER) && !(regs->cr0 & CR0_WP);
	return true;
}

/* Sets the accessed bits and, for a write, the dirty bit; false if an entry has changed meanwhile.
 */
static bool mark_used(struct walk *w, bool write)
{
	for (unsigned level = w->leaf; level < w->levels; level++) {
		u64 old = w->values[level];
		u64 new = old | PTE_A | (write && level == w->leaf ? PTE_D : 0);
		u32 old32 = old;
		bool done;

		if (new == old || !w->entries[level])
			continue;
		if (w->index_bits == 10)
			done =
			    __atomic_compare_exchange_n((u32 *)w->entries[level], &old32, (u32) new,
							false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		else
			done =
			    __atomic_compare_exchange_n((u64 *)w->entries[level], &old, new, false,
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		if (!done)
			return false;
	}
	return true;
}

static u64 page_address(const struct walk *w)
{
	u64 offset = BIT(12 + w->index_bits * w->leaf) - 1;
	u64 entry = w->values[w->leaf], base = entry & PTE_ADDR & ~offset;

	if (w->index_bits == 10 && w->leaf == 1) /* PSE-36 */
		base |= (entry >> 13 & 0xff) << 32;
	return base | (w->gla & offset);
}

static int walk(const struct guest_mem *mem, const struct gpt_regs *regs, u64 gla, u32 access,
		u64 *gpa, u32 *pf_error)
{
	struct walk w = {.gla = gla};
	int err;

	*pf_error = access == TRANSLATE_ONLY ? 0 : access;
	if (!(regs->cr0 & CR0_PG)) {
		*gpa = gla;
		return 0;
	}
	if (regs->efer & EFER_LMA && regs->cr4 & CR4_LA57)
		return E_UNSUPP;
	set_mode(&w, regs);
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		err = read_entries(&w, mem, regs, pf_error);
		if (err)
			return err;
		*gpa = page_address(&w);
		if (access == TRANSLATE_ONLY)
			return 0;
		if (!allowed(&w, regs, access)) {
			*pf_error |= GPT_PF_PRESENT;
			return E_FAULT;
		}
		if (mark_used(&w, access & GPT_PF_WRITE))
			return 0;
	}
	return E_BUSY;
}

int gpt_access(const struct guest_mem *mem, const struct gpt_regs *regs, u64 gla, u32 access,
	       u64 *gpa, u32 *pf_error)
{
	return walk(mem, regs, gla, access & (GPT_PF_WRITE | GPT_PF_USER), gpa, pf_error);
}

static int __attribute__((noinline))
translate_slow(const struct guest_mem *mem, const struct gpt_regs *regs, u64 gla, u64 *gpa)
{
	u32 pf_error;

	return walk(mem, regs, gla, TRANSLATE_ONLY, gpa, &pf_error);
}

/*
 * The usual case straight through: 4 levels, all tables in the first RAM slot (which starts at 0),
 * no high bits set in upper entries. Whatever is not so, or not mapped, is left to the general
 * walk.
 */
int gpt_translate(const struct guest_mem *mem, const struct gpt_regs *regs, u64 gla, u64 *gpa)
{
	const u64 ram = mem->slots[0].size;
	const u8 *host = mem->slots[0].host;
	u64 entry = regs->cr3, table;
	u64 present = PTE_P; /* in every level */

/* Replaces .entry by the one below it; a table is page aligned, and so is the end of the slot. */
#define DESCEND(shift)                                                                             \
	do {                                                                                       \
		table = entry & ~0xfffull;                                                         \
		if (unlikely(table >= ram))                                                        \
			goto slow;                                                                 \
		entry = READ_ONCE(((const u64 *)(host + table))[gla >> (shift)&511]);              \
		present &= entry;                                                                  \
	} while (0)
#define FOUND(size) ((entry & PTE_ADDR & ~((size)-1)) | (gla & ((size)-1)))

	/* LMA implies that paging is on. */
	if (unlikely(!(regs->efer & EFER_LMA) || regs->cr4 & CR4_LA57))
		goto slow;
	DESCEND(39);
	DESCEND(30);
	if (unlikely(entry & PTE_PS)) {
		*gpa = FOUND(GiB);
	} else {
		DESCEND(21);
		if (entry & PTE_PS) {
			*gpa = FOUND(2 * MiB);
		} else {
			DESCEND(12);
			*gpa = FOUND(4 * KiB);
		}
	}
	if (likely(present))
		return 0;
slow:
	return translate_slow(mem, regs, gla, gpa);
#undef FOUND
#undef DESCEND
}
