/* SPDX-License-Identifier: BSD-2-Clause */
/* Loading a guest: tells the formats apart, and holds what they share. See load.h. */
#include "hv/vm/load.h"

#include "hv/lib/bug.h"
#include "hv/lib/errors.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"
#include "hv/vm/e820.h"
#include "hv/vm/load_internal.h"
#include "hv/vm/multiboot.h"

/* VMCS access rights (SDM vol. 3, table 25-2): present, DPL 0, 4 KiB granularity. */
#define ACCESS_CODE_64 0xa09b
#define ACCESS_CODE_32 0xc09b
#define ACCESS_DATA 0xc093
#define ACCESS_TSS_BUSY 0x8b
#define ACCESS_UNUSABLE 0x10000

/* The selectors that Linux asks for; Multiboot leaves them open. */
#define SELECTOR_CODE 0x10
#define SELECTOR_DATA 0x18

/* BIOS data area: where firmware says how much low memory there is. Linux looks there. */
#define BDA_EBDA_SEGMENT 0x40e
#define BDA_BASE_MEMORY_KIB 0x413

int load_fail(struct load *l, int code, const char *key, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fmt_vprint(l->err, l->errsz, fmt, args);
	va_end(args);
	l->state->bad_key = key;
	return code;
}

u64 load_ram_end(const struct load *l)
{
	return min(l->mem->slots[0].size, GUEST_LOW_MAX);
}

u32 load_u32(const u8 *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

void load_segments(struct cpu_boot_state *state, bool code32)
{
	state->cs = (struct boot_segment){
	    .selector = SELECTOR_CODE,
	    .access = code32 ? ACCESS_CODE_32 : ACCESS_CODE_64,
	    .limit = ~0u,
	};
	state->data = (struct boot_segment){
	    .selector = SELECTOR_DATA,
	    .access = ACCESS_DATA,
	    .limit = ~0u,
	};
	state->tr = (struct boot_segment){.access = ACCESS_TSS_BUSY, .limit = 0x67};
	state->ldtr = (struct boot_segment){.access = ACCESS_UNUSABLE};
}

static void write_bda(struct guest_mem *mem)
{
	u16 segment = GUEST_EBDA >> 4, kib = GUEST_EBDA >> 10;

	memcpy(guest_ptr(mem, BDA_EBDA_SEGMENT, 2), &segment, 2);
	memcpy(guest_ptr(mem, BDA_BASE_MEMORY_KIB, 2), &kib, 2);
}

/* The kernel is of no format that we load: say what it looks like. */
static int unknown_format(struct load *l)
{
	const struct load_file *k = &l->req->kernel;
	u32 magic = k->size >= 4 ? load_u32(k->data) : 0;

	if (magic == ELF_MAGIC)
		return load_fail(
		    l, E_UNSUPP, "kernel",
		    "%s: an ELF file without a Multiboot 1 header in its first %u bytes; "
		    "for Linux give the bzImage, not vmlinux",
		    k->name, MB_SEARCH);
	if ((magic & 0xffff) == 0x8b1f)
		return load_fail(
		    l, E_UNSUPP, "kernel",
		    "%s: a gzip file; give the bzImage or the Multiboot image that is in it",
		    k->name);
	return load_fail(l, E_FORMAT, "kernel",
			 "%s: neither a Linux x86 bzImage nor a Multiboot 1 image (%llu bytes)",
			 k->name, (unsigned long long)k->size);
}

int load_guest(struct guest_mem *mem, const struct load_request *req, struct cpu_boot_state *state,
	       char *err, size_t errsz)
{
	struct load l = {.mem = mem, .req = req, .state = state, .err = err, .errsz = errsz};

	BUG_ON((req->kernel.size && !req->kernel.data) || !req->cmdline ||
	       req->nr_modules > CFG_MAX_MODULES);
	BUG_ON(mem->nr_slots == 0 || load_ram_end(&l) <= GUEST_HIGH_RAM);

	memset(state, 0, sizeof(*state));
	state->rflags = 2;
	write_bda(mem);
	if (linux_detect(&req->kernel))
		return linux_load(&l);
	if (multiboot_detect(&req->kernel))
		return multiboot_load(&l);
	return unknown_format(&l);
}
