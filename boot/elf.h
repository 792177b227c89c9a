/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loader for one kind of ELF file: the static PIE (x86-64, link address 0) that the hypervisor is.
 * Pure.
 */
#ifndef VLAG_BOOT_ELF_H
#define VLAG_BOOT_ELF_H

#include "hv/lib/types.h"

struct elf_image {
	const u8 *file;
	size_t file_size;
	u64 mem_size; /* of the loaded segments, from address 0: page aligned */
	u64 entry;    /* link address */

	/* Offsets in the file and sizes in bytes; all 0 if there are no symbols. */
	u64 symtab, symtab_size;
	u64 strtab, strtab_size;
};

/*
 * Checks @size bytes at @file and describes them in @img. Returns 0, or E_FORMAT, E_TRUNC,
 * E_UNSUPP with *@why saying what is wrong.
 */
int elf_open(struct elf_image *img, const void *file, size_t size, const char **why);

/*
 * Copies the segments to @dst (img->mem_size bytes) and relocates them to run at address @base.
 * Errors as elf_open().
 */
int elf_load(const struct elf_image *img, void *dst, u64 base, const char **why);

#endif
