/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loader for one kind of ELF file: the static PIE that the hypervisor is (System V gABI, chapters 4
 * and 5; x86-64 psABI, 4.4). Pure; every offset in the file is checked before it is used.
 */
#include "boot/elf.h"

#include "hv/lib/errors.h"
#include "hv/lib/string.h"

#define PAGE 4096ull
#define IMAGE_MAX (64 * MiB)

struct ehdr {
	u8 ident[16];
	u16 type, machine;
	u32 version;
	u64 entry, phoff, shoff;
	u32 flags;
	u16 ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};

struct phdr {
	u32 type, flags;
	u64 offset, vaddr, paddr, filesz, memsz, align;
};

struct shdr {
	u32 name, type;
	u64 flags, addr, offset, size;
	u32 link, info;
	u64 addralign, entsize;
};

struct rela {
	u64 offset, info, addend;
};

#define ET_DYN 3
#define EM_X86_64 62
#define PT_LOAD 1
#define PT_DYNAMIC 2
#define PT_INTERP 3
#define PF_X 1u
#define SHT_SYMTAB 2
#define SHT_STRTAB 3
#define SYM_SIZE 24

#define DT_NEEDED 1
#define DT_PLTRELSZ 2
#define DT_RELA 7
#define DT_RELASZ 8
#define DT_RELAENT 9
#define DT_RELSZ 18
#define DT_RELRSZ 35
#define DT_RELR 36
#define DT_MAX 37

#define R_X86_64_NONE 0
#define R_X86_64_RELATIVE 8

static int fail(int err, const char *text, const char **why)
{
	*why = text;
	return err;
}

/* Whether [offset, offset + size) lies within [0, limit). */
static bool within(u64 offset, u64 size, u64 limit)
{
	return offset <= limit && size <= limit - offset;
}

static struct ehdr header_of(const struct elf_image *img)
{
	struct ehdr h;

	memcpy(&h, img->file, sizeof(h));
	return h;
}

/* elf_open() has checked that the table is in the file. */
static struct phdr segment(const struct elf_image *img, const struct ehdr *h, u32 i)
{
	struct phdr p;

	memcpy(&p, img->file + h->phoff + (u64)i * sizeof(p), sizeof(p));
	return p;
}

static int check_header(const struct elf_image *img, const struct ehdr *h, const char **why)
{
	static const u8 ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1}; /* 64-bit, little endian, v1 */

	if (memcmp(h->ident, ident, sizeof(ident)) != 0)
		return fail(E_FORMAT, "is no 64-bit little-endian ELF file", why);
	if (h->machine != EM_X86_64)
		return fail(E_UNSUPP, "is not for x86-64", why);
	if (h->type != ET_DYN)
		return fail(E_UNSUPP, "is not position-independent (ET_DYN)", why);
	if (h->phentsize != sizeof(struct phdr))
		return fail(E_FORMAT, "has program headers of an unknown size", why);
	if (!within(h->phoff, (u64)h->phnum * sizeof(struct phdr), img->file_size))
		return fail(E_TRUNC, "ends before its program headers", why);
	return 0;
}

static int check_segments(struct elf_image *img, const struct ehdr *h, const char **why)
{
	bool entry_ok = false;

	for (u32 i = 0; i < h->phnum; i++) {
		struct phdr p = segment(img, h, i);

		if (p.type == PT_INTERP)
			return fail(E_UNSUPP, "wants a dynamic linker", why);
		if (p.type != PT_LOAD && p.type != PT_DYNAMIC)
			continue;
		if (!within(p.offset, p.filesz, img->file_size))
			return fail(E_TRUNC, "ends before its segments do", why);
		if (p.filesz > p.memsz || !within(p.vaddr, p.memsz, IMAGE_MAX))
			return fail(E_FORMAT, "has a segment of impossible size", why);
		if (p.type == PT_DYNAMIC)
			continue;
		img->mem_size = max(img->mem_size, ALIGN_UP(p.vaddr + p.memsz, PAGE));
		entry_ok |= p.flags & PF_X && h->entry >= p.vaddr && h->entry < p.vaddr + p.filesz;
	}
	if (!entry_ok)
		return fail(E_FORMAT, "has its entry point outside its code", why);
	img->entry = h->entry;
	return 0;
}

/* Without symbols the hypervisor runs as well: what is not sound is left out. */
static void find_symbols(struct elf_image *img, const struct ehdr *h)
{
	struct shdr sym, str;

	if (h->shentsize != sizeof(sym) ||
	    !within(h->shoff, (u64)h->shnum * sizeof(sym), img->file_size))
		return;
	for (u32 i = 0; i < h->shnum; i++) {
		memcpy(&sym, img->file + h->shoff + (u64)i * sizeof(sym), sizeof(sym));
		if (sym.type != SHT_SYMTAB || sym.entsize != SYM_SIZE || sym.link >= h->shnum)
			continue;
		memcpy(&str, img->file + h->shoff + (u64)sym.link * sizeof(str), sizeof(str));
		if (str.type != SHT_STRTAB || !within(sym.offset, sym.size, img->file_size) ||
		    !within(str.offset, str.size, img->file_size) || !str.size ||
		    img->file[str.offset + str.size - 1] != 0)
			continue;
		img->symtab = sym.offset;
		img->symtab_size = sym.size / SYM_SIZE * SYM_SIZE;
		img->strtab = str.offset;
		img->strtab_size = str.size;
		return;
	}
}

int elf_open(struct elf_image *img, const void *file, size_t size, const char **why)
{
	struct ehdr h;
	int err;

	memset(img, 0, sizeof(*img));
	img->file = file;
	img->file_size = size;
	if (size < sizeof(h))
		return fail(E_TRUNC, "is too short for an ELF file", why);
	h = header_of(img);
	err = check_header(img, &h, why);
	if (!err)
		err = check_segments(img, &h, why);
	if (!err)
		find_symbols(img, &h);
	return err;
}

static u64 load64(const u8 *image, u64 at)
{
	u64 v;

	memcpy(&v, image + at, sizeof(v));
	return v;
}

static void store64(u8 *image, u64 at, u64 v)
{
	memcpy(image + at, &v, sizeof(v));
}

static int apply_rela(const struct elf_image *img, u8 *dst, u64 base, u64 table, u64 size,
		      const char **why)
{
	for (u64 at = table; at - table < size; at += sizeof(struct rela)) {
		struct rela r;

		memcpy(&r, dst + at, sizeof(r));
		if (r.info == R_X86_64_NONE)
			continue;
		if (r.info != R_X86_64_RELATIVE)
			return fail(E_UNSUPP, "has a relocation that is not R_X86_64_RELATIVE",
				    why);
		if (!within(r.offset, 8, img->mem_size))
			return fail(E_FORMAT, "has a relocation outside the image", why);
		store64(dst, r.offset, base + r.addend);
	}
	return 0;
}

/* Compact relative relocations (gABI, SHT_RELR): an even word is an address to relocate, an odd one
 * a bitmap of which of the 63 words after the last address follow. */
static int apply_relr(const struct elf_image *img, u8 *dst, u64 base, u64 table, u64 size,
		      const char **why)
{
	u64 where = 0;

	for (u64 at = table; at - table < size; at += 8) {
		u64 entry = load64(dst, at), bits = entry & 1 ? entry >> 1 : 1;

		if (!(entry & 1))
			where = entry;
		for (u64 i = 0; bits; i++, bits >>= 1) {
			if (!(bits & 1))
				continue;
			if (!within(where, i * 8 + 8, img->mem_size))
				return fail(E_FORMAT, "has a relocation outside the image", why);
			store64(dst, where + i * 8, base + load64(dst, where + i * 8));
		}
		where += entry & 1 ? 63 * 8 : 8;
	}
	return 0;
}

static int relocate(const struct elf_image *img, u8 *dst, u64 base, const struct phdr *dynamic,
		    const char **why)
{
	u64 value[DT_MAX] = {0};
	int err;

	for (u64 i = 0; (i + 1) * 16 <= dynamic->filesz; i++) {
		const u8 *entry = img->file + dynamic->offset + i * 16;
		u64 tag = load64(entry, 0);

		if (!tag)
			break;
		if (tag < DT_MAX)
			value[tag] = load64(entry, 8);
		if (tag == DT_NEEDED)
			return fail(E_UNSUPP, "needs shared libraries", why);
	}
	if (value[DT_PLTRELSZ] || value[DT_RELSZ])
		return fail(E_UNSUPP, "has a relocation that is not R_X86_64_RELATIVE", why);
	if (value[DT_RELASZ] &&
	    (value[DT_RELAENT] != sizeof(struct rela) || value[DT_RELASZ] % sizeof(struct rela)))
		return fail(E_FORMAT, "has relocations of an unknown size", why);
	if (!within(value[DT_RELA], value[DT_RELASZ], img->mem_size) ||
	    !within(value[DT_RELR], value[DT_RELRSZ], img->mem_size) || value[DT_RELRSZ] % 8)
		return fail(E_FORMAT, "has its relocations outside the image", why);
	err = apply_rela(img, dst, base, value[DT_RELA], value[DT_RELASZ], why);
	if (!err)
		err = apply_relr(img, dst, base, value[DT_RELR], value[DT_RELRSZ], why);
	return err;
}

int elf_load(const struct elf_image *img, void *dst, u64 base, const char **why)
{
	struct ehdr h = header_of(img);
	int err = 0;

	memset(dst, 0, img->mem_size);
	for (u32 i = 0; i < h.phnum; i++) {
		struct phdr p = segment(img, &h, i);

		if (p.type == PT_LOAD)
			memcpy((u8 *)dst + p.vaddr, img->file + p.offset, p.filesz);
	}
	for (u32 i = 0; i < h.phnum && !err; i++) {
		struct phdr p = segment(img, &h, i);

		if (p.type == PT_DYNAMIC)
			err = relocate(img, dst, base, &p, why);
	}
	return err;
}
