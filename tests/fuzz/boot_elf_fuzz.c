/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the loader of vlag.elf. The input is XORed over a small sound file, so that each bit set
 * is one deviation; its first two bytes cut so many bytes off the end.
 */
// sources: boot/elf.c
#include <stdlib.h>

#include "boot/elf.h"
#include "hv/lib/bug.h"
#include "tests/unit/boot_elf_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_load(const struct elf_image *img)
{
	const char *why = NULL;
	u8 *memory;

	BUG_ON(img->mem_size == 0 || img->mem_size % 4096 || img->entry >= img->mem_size);
	BUG_ON(img->symtab + img->symtab_size > img->file_size);
	BUG_ON(img->strtab + img->strtab_size > img->file_size);
	BUG_ON(img->strtab_size && img->file[img->strtab + img->strtab_size - 1]);
	if (img->mem_size > 1 * MiB)
		return; /* sound, but slow to clear */
	memory = malloc(img->mem_size);
	if (elf_load(img, memory, BASE, &why))
		BUG_ON(!why);
	free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t cut = size >= 2 ? (data[0] | data[1] << 8) % (sizeof(f) + 1) : 0;
	const char *why = NULL;
	struct elf_image img;
	u8 *file;

	make_elf();
	for (size_t i = 2; i < size && i - 2 < sizeof(f); i++)
		((u8 *)&f)[i - 2] ^= data[i];
	file = malloc(sizeof(f) - cut ? sizeof(f) - cut : 1);
	memcpy(file, &f, sizeof(f) - cut);
	if (elf_open(&img, file, sizeof(f) - cut, &why))
		BUG_ON(!why);
	else
		try_load(&img);
	free(file);
	return 0;
}
