/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multiboot 1: an ELF32 executable, or any file whose header carries the address fields. The
 * segments go where the image says, anywhere in RAM; after the highest of them come, page by page,
 * what the information structure needs and then the modules. Memory below 1 MiB stays the image's.
 */
#include "hv/lib/errors.h"
#include "hv/lib/string.h"
#include "hv/vm/e820.h"
#include "hv/vm/load_internal.h"
#include "hv/vm/multiboot.h"

#define LOADER_NAME "vlag"
#define MAX_SEGMENTS 64

#define CR0_PE BIT(0)
#define CR0_ET BIT(4)

/* What the image asks for. */
struct image {
	struct mb_header header;
	u64 header_offset; /* in the file */
	u64 low, high;	   /* the memory that its segments span */
	u64 above;	   /* end of the highest segment from 1 MiB up */
	u32 entry;
};

/* What the information structure points to, at @gpa in guest memory, written in one go. */
struct info_block {
	struct mb_info info;
	struct mb_mmap mmap[E820_MAX];
	struct mb_module modules[CFG_MAX_MODULES];
	char loader[sizeof(LOADER_NAME)];
	char names[CFG_MAX_MODULES][CFG_PATH_MAX];
	char cmdline[CFG_CMDLINE_MAX];
};

/* Finds the header. Bytes that only look like its magic number are passed over. */
static bool find_header(const struct load_file *f, u64 *offset)
{
	u64 end = min(f->size, (u64)MB_SEARCH);

	for (u64 i = 0; i + 12 <= end; i += 4) {
		if (load_u32(f->data + i) == MB_HEADER_MAGIC &&
		    load_u32(f->data + i) + load_u32(f->data + i + 4) + load_u32(f->data + i + 8) ==
			0) {
			*offset = i;
			return true;
		}
	}
	return false;
}

bool multiboot_detect(const struct load_file *f)
{
	u64 offset;

	return find_header(f, &offset);
}

/* Copies one segment and clears the rest of its memory. The file's bounds have been checked. */
static int load_segment(struct load *l, struct image *im, u64 gpa, const u8 *data, u64 filesz,
			u64 memsz)
{
	u64 end = gpa + memsz, ram_end = load_ram_end(l);
	u8 *p;

	if (end > GUEST_EBDA && (gpa < GUEST_HIGH_RAM || end > ram_end))
		return load_fail(
		    l, gpa < GUEST_HIGH_RAM ? E_RANGE : E_NOMEM,
		    gpa < GUEST_HIGH_RAM ? "kernel" : "memory",
		    "%s: segment 0x%llx-0x%llx lies outside of RAM, which is 0-0x%llx and "
		    "0x%llx-0x%llx",
		    l->req->kernel.name, (unsigned long long)gpa, (unsigned long long)end,
		    GUEST_EBDA, GUEST_HIGH_RAM, (unsigned long long)ram_end);
	p = guest_ptr(l->mem, gpa, memsz);
	memcpy(p, data, filesz);
	memset(p + filesz, 0, memsz - filesz);
	im->low = min(im->low, gpa);
	im->high = max(im->high, end);
	if (gpa >= GUEST_HIGH_RAM)
		im->above = max(im->above, end);
	return 0;
}

static int truncated(struct load *l, u64 need)
{
	return load_fail(l, E_TRUNC, "kernel", "%s: truncated at %llu bytes of %llu",
			 l->req->kernel.name, (unsigned long long)l->req->kernel.size,
			 (unsigned long long)need);
}

/* The header's address fields (flag 16), which win over the ELF header where both are there. */
static int load_by_addresses(struct load *l, struct image *im)
{
	const struct load_file *k = &l->req->kernel;
	const struct mb_header *h = &im->header;
	u64 before = (u64)h->header_addr - h->load_addr; /* of the header, in the loaded part */
	u64 start, filesz, memsz;

	if (h->header_addr < h->load_addr || before > im->header_offset)
		return load_fail(
		    l, E_FORMAT, "kernel",
		    "%s: Multiboot header_addr 0x%x does not fit load_addr 0x%x and the "
		    "header's place in the file, 0x%llx",
		    k->name, h->header_addr, h->load_addr, (unsigned long long)im->header_offset);
	start = im->header_offset - before;
	filesz = h->load_end_addr ? (u64)h->load_end_addr - h->load_addr : k->size - start;
	memsz = h->bss_end_addr ? (u64)h->bss_end_addr - h->load_addr : filesz;
	if ((h->load_end_addr && h->load_end_addr <= h->load_addr) ||
	    (h->bss_end_addr && (h->bss_end_addr <= h->load_addr || memsz < filesz)))
		return load_fail(
		    l, E_FORMAT, "kernel",
		    "%s: Multiboot addresses load 0x%x, load_end 0x%x, bss_end 0x%x are "
		    "not in ascending order",
		    k->name, h->load_addr, h->load_end_addr, h->bss_end_addr);
	if (filesz > k->size - start)
		return truncated(l, start + filesz);
	im->entry = h->entry_addr;
	return load_segment(l, im, h->load_addr, k->data + start, filesz, memsz);
}

static int check_elf(struct load *l, const struct elf32_header *e)
{
	const struct load_file *k = &l->req->kernel;

	if (e->magic != ELF_MAGIC)
		return load_fail(
		    l, E_UNSUPP, "kernel",
		    "%s: a Multiboot image must be ELF32 or have the address fields (flag "
		    "16)",
		    k->name);
	if (e->class != ELF_CLASS_32)
		return load_fail(
		    l, E_UNSUPP, "kernel",
		    "%s: ELF64; Multiboot 1 takes ELF32 (objcopy -O elf32-i386 makes one)",
		    k->name);
	if (e->data != ELF_DATA_LSB || e->machine != ELF_MACHINE_386 || e->type != ELF_TYPE_EXEC)
		return load_fail(
		    l, E_UNSUPP, "kernel",
		    "%s: ELF type %u for machine %u; an executable (2) for i386 (3) is "
		    "needed",
		    k->name, e->type, e->machine);
	if (e->phentsize != sizeof(struct elf32_segment) || e->phnum == 0 ||
	    e->phnum > MAX_SEGMENTS)
		return load_fail(l, E_FORMAT, "kernel",
				 "%s: %u ELF program headers of %u bytes; 1 to %u of 32 are needed",
				 k->name, e->phnum, e->phentsize, MAX_SEGMENTS);
	return 0;
}

static int load_elf_segment(struct load *l, struct image *im, const struct elf32_header *e,
			    const struct elf32_segment *s)
{
	const struct load_file *k = &l->req->kernel;

	if (s->type != ELF_PT_LOAD || s->memsz == 0)
		return 0;
	if (s->filesz > s->memsz)
		return load_fail(
		    l, E_FORMAT, "kernel",
		    "%s: ELF segment at 0x%x has 0x%x bytes in the file but only 0x%x in "
		    "memory",
		    k->name, s->paddr, s->filesz, s->memsz);
	if ((u64)s->offset + s->filesz > k->size)
		return truncated(l, (u64)s->offset + s->filesz);
	/* The entry is a virtual address. */
	if (e->entry - s->vaddr < s->memsz)
		im->entry = e->entry - s->vaddr + s->paddr;
	return load_segment(l, im, s->paddr, k->data + s->offset, s->filesz, s->memsz);
}

static int load_elf(struct load *l, struct image *im)
{
	const struct load_file *k = &l->req->kernel;
	struct elf32_header e = {0};
	struct elf32_segment s;
	int err;

	memcpy(&e, k->data, min(k->size, (u64)sizeof(e)));
	err = check_elf(l, &e);
	if (!err && (u64)e.phoff + e.phnum * sizeof(s) > k->size)
		err = truncated(l, (u64)e.phoff + e.phnum * sizeof(s));
	im->entry = e.entry;
	for (u32 i = 0; !err && i < e.phnum; i++) {
		memcpy(&s, k->data + e.phoff + i * sizeof(s), sizeof(s));
		err = load_elf_segment(l, im, &e, &s);
	}
	return err;
}

static int load_image(struct load *l, struct image *im)
{
	const struct load_file *k = &l->req->kernel;
	u32 unknown;
	int err;

	find_header(k, &im->header_offset);
	memcpy(&im->header, k->data + im->header_offset,
	       min(k->size - im->header_offset, (u64)sizeof(im->header)));
	unknown = im->header.flags & MB_MUST_KNOW & ~(u32)(MB_PAGE_ALIGN | MB_MEMORY_INFO);
	if (unknown)
		return load_fail(
		    l, E_UNSUPP, "kernel",
		    "%s: Multiboot header flags 0x%x%s cannot be served; only 0x1 (page "
		    "alignment), 0x2 (memory information) and 0x10000 (addresses) can",
		    k->name, unknown, unknown & MB_VIDEO_MODE ? " (video mode)" : "");
	if (!(im->header.flags & MB_ADDRESSES))
		err = load_elf(l, im);
	else if (k->size - im->header_offset < sizeof(im->header))
		err = truncated(l, im->header_offset + sizeof(im->header));
	else
		err = load_by_addresses(l, im);
	if (!err && (im->entry < im->low || im->entry >= im->high))
		err = load_fail(l, E_FORMAT, "kernel",
				"%s: entry 0x%x lies outside of what is loaded (0x%llx-0x%llx)",
				k->name, im->entry, (unsigned long long)im->low,
				(unsigned long long)im->high);
	return err;
}

/* Puts the modules at *@gpa and after, each on a page of its own, and moves *@gpa past them. */
static int place_modules(struct load *l, struct info_block *b, u64 *gpa)
{
	for (u32 i = 0; i < l->req->nr_modules; i++) {
		const struct load_file *f = &l->req->modules[i];
		u64 ram_end = load_ram_end(l);

		if (f->size > ram_end - *gpa)
			return load_fail(
			    l, E_NOMEM, "modules",
			    "%s: %llu KiB do not fit, %llu KiB are free from 0x%llx; give "
			    "the VM more memory",
			    f->name, (unsigned long long)(f->size / KiB + 1),
			    (unsigned long long)((ram_end - *gpa) / KiB), (unsigned long long)*gpa);
		b->modules[i].start = *gpa;
		b->modules[i].end = *gpa + f->size;
		if (i == 0)
			l->state->initrd_gpa = *gpa;
		l->state->initrd_size = *gpa + f->size - l->state->initrd_gpa;
		if (f->size)
			memcpy(guest_ptr(l->mem, *gpa, f->size), f->data, f->size);
		*gpa = min(ALIGN_UP(*gpa + f->size, 4096ull), ram_end);
	}
	return 0;
}

static void fill_memory_map(const struct load *l, struct info_block *b)
{
	struct e820_entry map[E820_MAX];
	u32 n = e820_build(l->mem, map);

	for (u32 i = 0; i < n; i++)
		b->mmap[i] = (struct mb_mmap){
		    .size = sizeof(b->mmap[i]) - sizeof(b->mmap[i].size),
		    .base = map[i].base,
		    .length = map[i].size,
		    .type = map[i].type,
		};
	b->info.mmap_length = n * sizeof(b->mmap[0]);
	b->info.mem_lower = GUEST_EBDA / KiB;
	b->info.mem_upper = (load_ram_end(l) - GUEST_HIGH_RAM) / KiB;
}

/* Everything but the modules' places, in guest memory at @gpa. */
static void fill_info(const struct load *l, struct info_block *b, u32 gpa)
{
	fill_memory_map(l, b);
	b->info.flags =
	    MB_INFO_MEMORY | MB_INFO_CMDLINE | MB_INFO_MODULES | MB_INFO_MMAP | MB_INFO_LOADER_NAME;
	b->info.mmap_addr = gpa + offsetof(struct info_block, mmap);
	b->info.cmdline = gpa + offsetof(struct info_block, cmdline);
	b->info.mods_count = l->req->nr_modules;
	b->info.mods_addr = gpa + offsetof(struct info_block, modules);
	b->info.boot_loader_name = gpa + offsetof(struct info_block, loader);
	str_copy(b->loader, LOADER_NAME, sizeof(b->loader));
	str_copy(b->cmdline, l->req->cmdline, sizeof(b->cmdline));
	for (u32 i = 0; i < l->req->nr_modules; i++) {
		str_copy(b->names[i], l->req->modules[i].name, sizeof(b->names[i]));
		b->modules[i].string =
		    gpa + offsetof(struct info_block, names) + i * sizeof(b->names[0]);
	}
}

static int place_info(struct load *l, const struct image *im)
{
	u64 gpa = ALIGN_UP(max(im->above, GUEST_HIGH_RAM), 4096ull);
	u64 next = ALIGN_UP(gpa + sizeof(struct info_block), 4096ull);
	struct info_block *b;
	int err;

	if (next > load_ram_end(l))
		return load_fail(l, E_NOMEM, "memory",
				 "%s ends at 0x%llx, which leaves no room below the end of RAM at "
				 "0x%llx for the Multiboot information",
				 l->req->kernel.name, (unsigned long long)im->above,
				 (unsigned long long)load_ram_end(l));
	b = guest_ptr(l->mem, gpa, sizeof(*b));
	memset(b, 0, sizeof(*b));
	err = place_modules(l, b, &next);
	if (err)
		return err;
	fill_info(l, b, gpa);
	l->state->rbx = gpa;
	return 0;
}

static void set_state(struct load *l, const struct image *im)
{
	struct cpu_boot_state *st = l->state;

	st->mode = LOAD_MULTIBOOT_32;
	st->kernel_gpa = im->low;
	st->kernel_size = im->high - im->low;
	st->rip = im->entry;
	st->rax = MB_LOADER_MAGIC;
	st->cr0 = CR0_PE | CR0_ET;
	load_segments(st, true);
	str_copy(st->what, "Multiboot", sizeof(st->what));
}

int multiboot_load(struct load *l)
{
	const struct load_request *req = l->req;
	struct image im = {.low = ~0ull};
	int err;

	if (req->initrd.data)
		return load_fail(
		    l, E_INVAL, "initrd",
		    "%s is a Multiboot image, which takes modules; an initrd is for Linux",
		    req->kernel.name);
	if (strlen(req->cmdline) >= CFG_CMDLINE_MAX)
		return load_fail(l, E_RANGE, "cmdline",
				 "command line of %llu bytes; at most %u fit",
				 (unsigned long long)strlen(req->cmdline), CFG_CMDLINE_MAX - 1);
	err = load_image(l, &im);
	if (!err)
		err = place_info(l, &im);
	if (!err)
		set_state(l, &im);
	return err;
}
