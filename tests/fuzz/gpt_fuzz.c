/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest's page tables and control registers are whatever the guest likes: no walk may leave its
 * RAM, and the walk that only translates agrees with the one that checks rights.
 */
// sources: hv/vmx/gpt.c
#include <stdlib.h>
#include <string.h>

#include "hv/lib/errors.h"
#include "hv/vmx/gpt.h"

#define PAGES 4

struct input {
	u32 cr3;
	u16 cr4;
	u8 flags;
	u8 access;
	u64 gla;
};

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in;
	struct gpt_regs regs;
	struct guest_mem mem;
	u64 gpa = 0, gpa2 = 0;
	u32 pf;
	u8 *ram;
	int err, err2;

	if (size < sizeof(in))
		return 0;
	memcpy(&in, data, sizeof(in));
	data += sizeof(in);
	size -= sizeof(in);
	ram = calloc(PAGES, 4096); /* ASan watches its end */
	for (unsigned i = 0; size && i < PAGES * 4096; i++)
		ram[i] = data[i % size];
	mem = (struct guest_mem){.nr_slots = 1, .slots = {{0, PAGES * 4096, ram}}};
	if (in.flags & 1) { /* and a second slot */
		mem.slots[0].size = PAGES / 2 * 4096;
		mem.slots[1] = (struct mem_slot){4 * GiB, PAGES / 2 * 4096, ram + PAGES / 2 * 4096};
		mem.nr_slots = 2;
	}
	regs = (struct gpt_regs){.cr0 = (in.flags & 2 ? 0 : BIT(31)) | (in.flags & 4 ? BIT(16) : 0),
				 .cr3 = in.cr3,
				 .cr4 = in.cr4,
				 .efer = in.flags & 8 ? BIT(10) : 0};
	if (!(regs.cr0 & BIT(31)))
		regs.efer = 0; /* LMA is on only with paging */
	err = gpt_translate(&mem, &regs, in.gla, &gpa);
	err2 = gpt_access(&mem, &regs, in.gla, in.access, &gpa2, &pf);
	if (!err2 && (err || gpa != gpa2))
		abort();
	if (err && err2 == 0)
		abort();
	if (err == E_BUSY || err2 == E_BUSY) /* nobody else is there */
		abort();
	if (err2 == E_FAULT && !err && !(pf & GPT_PF_PRESENT))
		abort();
	free(ram);
	return 0;
}
