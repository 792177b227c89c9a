/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multiboot 1 (specification 0.6.96) and the parts of ELF32 that its images use: layouts and
 * numbers only. The tiny test guests include this header too.
 */
#ifndef VLAG_VM_MULTIBOOT_H
#define VLAG_VM_MULTIBOOT_H

#include "hv/lib/types.h"

#define MB_SEARCH 8192 /* the header lies within so many bytes, on a multiple of 4 */
#define MB_HEADER_MAGIC 0x1badb002
#define MB_LOADER_MAGIC 0x2badb002 /* EAX at the entry */

#define MB_PAGE_ALIGN BIT(0)	/* header flags: modules on page boundaries */
#define MB_MEMORY_INFO BIT(1)	/* memory information wanted */
#define MB_VIDEO_MODE BIT(2)	/* video mode wanted */
#define MB_ADDRESSES BIT(16)	/* the address fields are valid */
#define MB_MUST_KNOW 0x0000ffff /* a loader that does not know one of these must give up */

struct mb_header {
	u32 magic, flags, checksum;					     /* their sum is 0 */
	u32 header_addr, load_addr, load_end_addr, bss_end_addr, entry_addr; /* MB_ADDRESSES */
};

#define MB_INFO_MEMORY BIT(0)
#define MB_INFO_CMDLINE BIT(2)
#define MB_INFO_MODULES BIT(3)
#define MB_INFO_MMAP BIT(6)
#define MB_INFO_LOADER_NAME BIT(9)

struct mb_info {
	u32 flags;
	u32 mem_lower, mem_upper; /* KiB from 0 and from 1 MiB */
	u32 boot_device;
	u32 cmdline;
	u32 mods_count, mods_addr;
	u32 syms[4];
	u32 mmap_length, mmap_addr;
	u32 drives_length, drives_addr;
	u32 config_table;
	u32 boot_loader_name;
	u32 apm_table;
	u32 vbe[4];
	u32 framebuffer[8];
};

struct mb_module {
	u32 start, end; /* [start, end) */
	u32 string;
	u32 reserved;
};

struct mb_mmap {
	u32 size; /* of the rest of the entry */
	u64 base, length;
	u32 type; /* as E820 */
} __packed;

/* ELF32, little endian, i386, executable. */
#define ELF_MAGIC 0x464c457f
#define ELF_CLASS_32 1
#define ELF_CLASS_64 2
#define ELF_DATA_LSB 1
#define ELF_TYPE_EXEC 2
#define ELF_MACHINE_386 3
#define ELF_PT_LOAD 1

struct elf32_header {
	u32 magic;
	u8 class, data, version, pad[9];
	u16 type, machine;
	u32 version2, entry, phoff, shoff, flags;
	u16 ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};

struct elf32_segment {
	u32 type, offset, vaddr, paddr, filesz, memsz, flags, align;
};

_Static_assert(sizeof(struct elf32_header) == 52, "");
_Static_assert(sizeof(struct elf32_segment) == 32, "");
_Static_assert(sizeof(struct mb_mmap) == 24, "");
_Static_assert(offsetof(struct mb_info, boot_loader_name) == 64, "");

#endif
