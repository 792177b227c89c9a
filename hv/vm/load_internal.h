/* SPDX-License-Identifier: BSD-2-Clause */
/* What load.c and the two formats share. Not for others. */
#ifndef VLAG_VM_LOAD_INTERNAL_H
#define VLAG_VM_LOAD_INTERNAL_H

#include "hv/vm/load.h"

/* One load in progress. */
struct load {
	struct guest_mem *mem;
	const struct load_request *req;
	struct cpu_boot_state *state;
	char *err;
	size_t errsz;
};

/* Ends a load: writes the message, remembers the config key at fault, returns @code. */
int load_fail(struct load *l, int code, const char *key, const char *fmt, ...) __printf(4, 5);

/* End of the RAM that begins at 1 MiB: all that a loader uses. */
u64 load_ram_end(const struct load *l);

/* Segment registers of both modes; @code32 is false for a 64-bit code segment. */
void load_segments(struct cpu_boot_state *state, bool code32);

/* Reads a little-endian word from a file. The caller has checked the bounds. */
u32 load_u32(const u8 *p);

/* Whether the file is of this format, and its loader. */
bool linux_detect(const struct load_file *f);
int linux_load(struct load *l);
bool multiboot_detect(const struct load_file *f);
int multiboot_load(struct load *l);

#endif
