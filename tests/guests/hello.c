/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what the loader passed, and checks the state that Multiboot 1 promises at the entry. */
#include "tests/guests/lib/guest.h"

static void print_memory(const struct mb_info *info)
{
	u64 end = info->mmap_addr + info->mmap_length, ram = 0;

	printf("memory: lower %u KiB, upper %u KiB\n", info->mem_lower, info->mem_upper);
	for (u64 at = info->mmap_addr; at < end;) {
		const struct mb_mmap *e = (const struct mb_mmap *)at;

		printf("mmap: 0x%llx-0x%llx type %u\n", (unsigned long long)e->base,
		       (unsigned long long)(e->base + e->length), e->type);
		if (e->type == 1)
			ram += e->length;
		at += e->size + sizeof(e->size);
	}
	CHECK(ram >= 8 * MiB, "only %llu bytes of RAM in the memory map", (unsigned long long)ram);
}

static u32 sum(u32 start, u32 end)
{
	u32 s = 0;

	for (u32 at = start; at < end; at++)
		s += *(const u8 *)(u64)at;
	return s;
}

static void print_modules(const struct mb_info *info)
{
	const struct mb_module *m = (const struct mb_module *)(u64)info->mods_addr;

	for (u32 i = 0; i < info->mods_count; i++)
		printf("module: %s %u bytes, sum %u\n", (const char *)(u64)m[i].string,
		       m[i].end - m[i].start, sum(m[i].start, m[i].end));
	CHECK(arg("modules", info->mods_count) == info->mods_count, "%u modules", info->mods_count);
}

int guest_main(void)
{
	const struct mb_info *info = multiboot_info();

	printf("cmdline: %s\n", cmdline());
	if (info->flags & MB_INFO_LOADER_NAME)
		printf("loader: %s\n", (const char *)(u64)info->boot_loader_name);
	printf("hypervisor: %s\n", hypervisor());
	CHECK((boot_regs.cr0 & 0x80000001) == 1, "CR0 is %x at the entry", boot_regs.cr0);
	CHECK((boot_regs.eflags & 0x20200) == 0, "EFLAGS is %x at the entry", boot_regs.eflags);
	CHECK(info->flags & MB_INFO_MEMORY, "no memory information");
	CHECK(info->flags & MB_INFO_MMAP, "no memory map");
	print_memory(info);
	if (info->flags & MB_INFO_MODULES)
		print_modules(info);
	CHECK(ud2_safe() == 6, "UD2 does not raise #UD");
	return 0;
}
