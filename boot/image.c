/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the hypervisor, which this file carries (payload.asm), where it will run. */
#include "boot/elf.h"
#include "boot/loader.h"
#include "hv/lib/errors.h"
#include "hv/lib/string.h"

extern const u8 payload_start[] __attribute__((visibility("hidden")));
extern const u8 payload_end[] __attribute__((visibility("hidden")));

/* Symbols live behind the image in the same pages: they are needed as long as it runs. */
static void symbols_copy(const struct elf_image *img, struct boot_info *info)
{
	if (!img->symtab_size)
		return;
	info->symtab = info->image_base + info->image_size;
	info->symtab_size = img->symtab_size;
	info->strtab = info->symtab + info->symtab_size;
	info->strtab_size = img->strtab_size;
	memcpy((void *)info->symtab, img->file + img->symtab, img->symtab_size);
	memcpy((void *)info->strtab, img->file + img->strtab, img->strtab_size);
}

u64 image_load(struct boot_info *info)
{
	struct elf_image img;
	const char *why = "";
	u64 size;
	int err = elf_open(&img, payload_start, (size_t)(payload_end - payload_start), &why);

	if (err) {
		warn(info, "boot: the embedded vlag.elf %s; build vlag again", why);
		return 0;
	}
	size = img.mem_size + img.symtab_size + img.strtab_size;
	/* Below 4 GiB where possible: starting CPUs reach it before they have 64-bit addresses. */
	info->image_base = pages_alloc_code(size, 4 * GiB);
	if (!info->image_base)
		info->image_base = pages_alloc_code(size, 0);
	if (!info->image_base) {
		warn(info, "boot: no memory for the hypervisor; %llu KiB in one piece are needed",
		     (unsigned long long)size / 1024);
		return 0;
	}
	info->image_size = img.mem_size;
	err = elf_load(&img, (void *)info->image_base, info->image_base, &why);
	if (err) {
		warn(info, "boot: the embedded vlag.elf %s; build vlag again", why);
		return 0;
	}
	symbols_copy(&img, info);
	return info->image_base + img.entry;
}
