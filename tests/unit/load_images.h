/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guest memory and the smallest valid images, for the tests and fuzzers of the loaders. The bzImage
 * has no kernel in it, only a setup header and a payload of known bytes.
 */
#ifndef VLAG_TESTS_LOAD_IMAGES_H
#define VLAG_TESTS_LOAD_IMAGES_H

#include <stdlib.h>
#include <string.h>

#include "hv/vm/guest_mem.h"
#include "hv/vm/linux_boot.h"
#include "hv/vm/multiboot.h"

#define BZ_SETUP_SECTS 3
#define BZ_SETUP_SIZE ((BZ_SETUP_SECTS + 1) * 512)
#define BZ_PAYLOAD 4096
#define BZ_SIZE (BZ_SETUP_SIZE + BZ_PAYLOAD)
#define BZ_PREF 0x1000000
#define BZ_INIT_SIZE 0x200000
#define BZ_VERSION "6.1.0-test (someone@somewhere) #1"

#define MB_ENTRY 0x100020
#define MB_SEG_OFFSET 0x1000
#define MB_SEG_FILESZ 0x800
#define MB_SEG_MEMSZ 0x3000
#define MB_SIZE (MB_SEG_OFFSET + MB_SEG_FILESZ)

/* RAM of @low bytes at 0 and @high bytes at 4 GiB, filled with a pattern. */
static inline struct guest_mem images_ram(u64 low, u64 high)
{
	struct guest_mem mem = {.nr_slots = high ? 2 : 1};

	mem.slots[0] = (struct mem_slot){0, low, malloc(low)};
	memset(mem.slots[0].host, 0xa5, low);
	if (high)
		mem.slots[1] = (struct mem_slot){4 * GiB, high, malloc(high)};
	return mem;
}

/*
 * The same without allocation and filling, for fuzzers: RAM of @low bytes that ends where the
 * 256 MiB allocation behind it ends, so that ASan sees what is written past it.
 */
static inline struct guest_mem images_ram_reused(u64 low)
{
	static u8 *ram;

	if (!ram)
		ram = malloc(256 * MiB);
	return (struct guest_mem){.nr_slots = 1, .slots = {{0, low, ram + 256 * MiB - low}}};
}

static inline void images_free(struct guest_mem *mem)
{
	for (u32 i = 0; i < mem->nr_slots; i++)
		free(mem->slots[i].host);
}

static inline struct linux_setup *bz_setup(u8 *image)
{
	return (struct linux_setup *)(image + LINUX_SETUP_OFFSET);
}

/* @image has BZ_SIZE bytes. */
static inline void bz_make(u8 *image)
{
	struct linux_setup *s = bz_setup(image);

	memset(image, 0, BZ_SETUP_SIZE);
	for (u32 i = 0; i < BZ_PAYLOAD; i++)
		image[BZ_SETUP_SIZE + i] = i * 7 + 1;
	memcpy(image, "MZ", 2);
	s->setup_sects = BZ_SETUP_SECTS;
	s->syssize = BZ_PAYLOAD / 16;
	s->boot_flag = LINUX_BOOT_FLAG;
	s->jump_offset = 0x26c - LINUX_MAGIC_OFFSET;
	s->magic = LINUX_MAGIC;
	s->version = 0x20f;
	s->kernel_version = 0x300 - LINUX_VERSION_BASE;
	strcpy((char *)image + 0x300, BZ_VERSION);
	s->loadflags = LINUX_LOADED_HIGH;
	s->initrd_addr_max = 0x7fffffff;
	s->kernel_alignment = 0x200000;
	s->relocatable_kernel = 1;
	s->xloadflags = LINUX_XLF_KERNEL_64;
	s->cmdline_size = 2047;
	s->hardware_subarch = 0;
	s->pref_address = BZ_PREF;
	s->init_size = BZ_INIT_SIZE;
}

static inline struct elf32_header *mb_elf(u8 *image)
{
	return (struct elf32_header *)image;
}

static inline struct elf32_segment *mb_segment(u8 *image)
{
	return (struct elf32_segment *)(image + sizeof(struct elf32_header));
}

static inline struct mb_header *mb_header(u8 *image)
{
	return (struct mb_header *)(image + MB_SEG_OFFSET);
}

static inline void mb_flags(u8 *image, u32 flags)
{
	struct mb_header *h = mb_header(image);

	h->magic = MB_HEADER_MAGIC;
	h->flags = flags;
	h->checksum = -(h->magic + h->flags);
}

/* An ELF32 file of MB_SIZE bytes: one segment at 1 MiB that begins with the Multiboot header. */
static inline void mb_make(u8 *image)
{
	struct elf32_header *e = mb_elf(image);
	struct elf32_segment *s = mb_segment(image);

	memset(image, 0, MB_SEG_OFFSET);
	for (u32 i = 0; i < MB_SEG_FILESZ; i++)
		image[MB_SEG_OFFSET + i] = i * 5 + 3;
	e->magic = ELF_MAGIC;
	e->class = ELF_CLASS_32;
	e->data = ELF_DATA_LSB;
	e->version = 1;
	e->type = ELF_TYPE_EXEC;
	e->machine = ELF_MACHINE_386;
	e->entry = MB_ENTRY;
	e->phoff = sizeof(*e);
	e->phentsize = sizeof(*s);
	e->phnum = 1;
	*s = (struct elf32_segment){
	    .type = ELF_PT_LOAD,
	    .offset = MB_SEG_OFFSET,
	    .vaddr = 0x100000,
	    .paddr = 0x100000,
	    .filesz = MB_SEG_FILESZ,
	    .memsz = MB_SEG_MEMSZ,
	};
	mb_flags(image, MB_PAGE_ALIGN | MB_MEMORY_INFO);
}

#endif
