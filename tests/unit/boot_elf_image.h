/* SPDX-License-Identifier: BSD-2-Clause */
/* A small sound static PIE, @f, for the tests and the fuzzer of boot/elf.c. */
#ifndef VLAG_TESTS_BOOT_ELF_IMAGE_H
#define VLAG_TESTS_BOOT_ELF_IMAGE_H

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "hv/lib/types.h"

#define BASE 0x7fff0000ull

/*
 * File and memory layout: code at 0x1000 (in the file at 0x400), data at 0x2000 (0x600), 0x300
 * bytes of it in the file, 0x1000 in memory. The dynamic section and the relocations are in the
 * data.
 */
static struct file {
	Elf64_Ehdr h;
	Elf64_Phdr code, data, dynamic;
	Elf64_Shdr sections[3];
	u8 gap1[0x400 - sizeof(Elf64_Ehdr) - 3 * sizeof(Elf64_Phdr) - 3 * sizeof(Elf64_Shdr)];
	u8 text[0x200];
	union {
		struct {
			u64 words[16];
			Elf64_Dyn dyn[8];
			Elf64_Rela rela[3];
			u64 relr[3];
		};
		u8 bytes[0x300];
	} d;
	Elf64_Sym symbols[2];
	char strings[16];
} f;

#define IN_DATA(field) (0x2000 + offsetof(struct file, field) - offsetof(struct file, d))

static void make_elf(void)
{
	memset(&f, 0, sizeof(f));
	memcpy(f.h.e_ident, "\177ELF\2\1\1", 7);
	f.h.e_type = ET_DYN;
	f.h.e_machine = EM_X86_64;
	f.h.e_entry = 0x1010;
	f.h.e_phoff = offsetof(struct file, code);
	f.h.e_phentsize = sizeof(Elf64_Phdr);
	f.h.e_phnum = 3;
	f.h.e_shoff = offsetof(struct file, sections);
	f.h.e_shentsize = sizeof(Elf64_Shdr);
	f.h.e_shnum = 3;
	f.code = (Elf64_Phdr){PT_LOAD, PF_R | PF_X, offsetof(struct file, text), 0x1000, 0, 0x200,
			      0x200,   0x1000};
	f.data = (Elf64_Phdr){PT_LOAD, PF_R | PF_W, offsetof(struct file, d), 0x2000, 0, 0x300,
			      0x1000,  0x1000};
	f.dynamic = (Elf64_Phdr){.p_type = PT_DYNAMIC,
				 .p_offset = offsetof(struct file, d.dyn),
				 .p_vaddr = IN_DATA(d.dyn),
				 .p_filesz = sizeof(f.d.dyn),
				 .p_memsz = sizeof(f.d.dyn)};
	f.sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				     .sh_offset = offsetof(struct file, symbols),
				     .sh_size = sizeof(f.symbols),
				     .sh_link = 2,
				     .sh_entsize = sizeof(Elf64_Sym)};
	f.sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				     .sh_offset = offsetof(struct file, strings),
				     .sh_size = sizeof(f.strings)};
	memset(f.text, 0x90, sizeof(f.text));
	f.d.words[0] = 0x1111;
	f.d.dyn[0] = (Elf64_Dyn){DT_RELA, {IN_DATA(d.rela)}};
	f.d.dyn[1] = (Elf64_Dyn){DT_RELASZ, {sizeof(f.d.rela)}};
	f.d.dyn[2] = (Elf64_Dyn){DT_RELAENT, {sizeof(Elf64_Rela)}};
	f.d.rela[0] = (Elf64_Rela){0x2008, R_X86_64_RELATIVE, 0x1010};
	f.d.rela[1] = (Elf64_Rela){0, R_X86_64_NONE, 0};
	f.d.rela[2] = (Elf64_Rela){0x2ff8, R_X86_64_RELATIVE, 0x2000}; /* last word of the image */
}

#endif
