/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linux bzImage by the 64-bit boot protocol: the file's protected-mode part goes to the address
 * that it prefers, and its start-up code finds boot_params, the command line, a GDT and page
 * tables in low memory, where we put them.
 *
 * None of that needs to be reserved in the memory map: Linux copies boot_params and the command
 * line, and replaces GDT and page tables, before it hands out memory below 1 MiB; its decompressor
 * keeps clear of boot_params, command line and initrd by itself.
 */
#include "hv/lib/errors.h"
#include "hv/lib/string.h"
#include "hv/lib/fmt.h"
#include "hv/vm/e820.h"
#include "hv/vm/linux_boot.h"
#include "hv/vm/load_internal.h"

/* Our places in low memory; all are below GUEST_EBDA. */
#define LOW_PARAMS 0x7000ull
#define LOW_GDT 0x8000ull
#define LOW_STACK_TOP 0x9000ull /* in the GDT's page; Linux sets its own at once */
#define LOW_PML4 0x9000ull
#define LOW_PDPT 0xa000ull
#define LOW_PD 0xb000ull /* four pages */
#define LOW_CMDLINE 0x20000ull
#define LOW_CMDLINE_MAX (GUEST_EBDA - LOW_CMDLINE - 1)

#define MAPPED_GIB 4

#define CR0_PE BIT(0)
#define CR0_ET BIT(4)
#define CR0_NE BIT(5)
#define CR0_PG BIT(31)
#define CR4_PAE BIT(5)
#define EFER_LME BIT(8)
#define EFER_LMA BIT(10)
#define PTE_PRESENT BIT(0)
#define PTE_WRITE BIT(1)
#define PTE_LARGE BIT(7)

/* What the header says, checked. */
struct image {
	struct linux_setup setup;
	u64 setup_size;	 /* bytes of the file before the protected-mode part */
	u64 kernel_size; /* bytes of that part */
	u64 run_size;	 /* memory that it takes */
	u64 header_end;	 /* of the setup header in the file */
};

bool linux_detect(const struct load_file *f)
{
	return f->size >= LINUX_MAGIC_OFFSET + 4 &&
	       load_u32(f->data + LINUX_MAGIC_OFFSET) == LINUX_MAGIC;
}

/* The checks that need no more than the header. */
static int check_header(struct load *l, struct image *im)
{
	const struct load_file *k = &l->req->kernel;
	const struct linux_setup *s = &im->setup;

	if (s->boot_flag != LINUX_BOOT_FLAG)
		return load_fail(l, E_FORMAT, "kernel",
				 "%s: boot flag 0x%04x at 0x1fe; a bzImage has 0xaa55 there",
				 k->name, s->boot_flag);
	if (s->version < LINUX_MIN_VERSION)
		return load_fail(
		    l, E_UNSUPP, "kernel",
		    "%s: boot protocol %u.%02u is too old; 2.12 (Linux 3.8) or newer is needed",
		    k->name, s->version >> 8, s->version & 0xff);
	if (!(s->xloadflags & LINUX_XLF_KERNEL_64))
		return load_fail(l, E_UNSUPP, "kernel",
				 "%s: not an x86-64 kernel (32-bit only); CONFIG_64BIT is needed",
				 k->name);
	if (!(s->loadflags & LINUX_LOADED_HIGH))
		return load_fail(l, E_UNSUPP, "kernel",
				 "%s: a zImage (loaded below 1 MiB); a bzImage is needed", k->name);
	if (im->header_end < LINUX_SETUP_MIN_END)
		return load_fail(
		    l, E_FORMAT, "kernel",
		    "%s: setup header ends at 0x%llx; protocol %u.%02u has at least 0x%x", k->name,
		    (unsigned long long)im->header_end, s->version >> 8, s->version & 0xff,
		    LINUX_SETUP_MIN_END);
	return 0;
}

/* Sizes and the load address, against the file and the guest's RAM. */
static int check_layout(struct load *l, struct image *im)
{
	const struct load_file *k = &l->req->kernel;
	const struct linux_setup *s = &im->setup;
	u64 ram_end = load_ram_end(l);

	if (im->setup_size + im->kernel_size > k->size)
		return load_fail(l, E_TRUNC, "kernel", "%s: truncated at %llu bytes of %llu",
				 k->name, (unsigned long long)k->size,
				 (unsigned long long)(im->setup_size + im->kernel_size));
	if (im->kernel_size <= LINUX_ENTRY_64)
		return load_fail(
		    l, E_FORMAT, "kernel",
		    "%s: %llu bytes of kernel are too few for a bzImage, whose entry is "
		    "at 0x%x",
		    k->name, (unsigned long long)im->kernel_size, LINUX_ENTRY_64);
	if (s->pref_address < GUEST_HIGH_RAM || s->pref_address >= GUEST_LOW_MAX ||
	    !IS_ALIGNED(s->pref_address, 4096ull))
		return load_fail(l, E_FORMAT, "kernel",
				 "%s: wants to be loaded at 0x%llx; a page boundary from 0x%llx to "
				 "0x%llx is needed",
				 k->name, (unsigned long long)s->pref_address, GUEST_HIGH_RAM,
				 GUEST_LOW_MAX);
	if (s->pref_address + im->run_size > ram_end)
		return load_fail(
		    l, E_NOMEM, "memory",
		    "%llu MiB are too few for %s, which needs at least %llu MiB",
		    (unsigned long long)(ram_end / MiB), k->name,
		    (unsigned long long)(ALIGN_UP(s->pref_address + im->run_size, 2 * MiB) / MiB));
	return 0;
}

static int parse(struct load *l, struct image *im)
{
	const struct load_file *k = &l->req->kernel;
	u32 sects;
	int err;

	if (k->size < LINUX_SETUP_OFFSET + sizeof(im->setup))
		return load_fail(l, E_TRUNC, "kernel",
				 "%s: truncated at %llu bytes, inside the setup header", k->name,
				 (unsigned long long)k->size);
	memcpy(&im->setup, k->data + LINUX_SETUP_OFFSET, sizeof(im->setup));
	im->header_end = LINUX_MAGIC_OFFSET + im->setup.jump_offset;
	sects = im->setup.setup_sects ? im->setup.setup_sects : LINUX_DEFAULT_SETUP_SECTS;
	im->setup_size = (sects + 1) * LINUX_SECTOR;
	im->kernel_size = (u64)im->setup.syssize * 16;
	im->run_size = max((u64)im->setup.init_size, im->kernel_size);
	err = check_header(l, im);
	return err ? err : check_layout(l, im);
}

/*
 * As high as the kernel allows, so that it stays clear of what the kernel does near its own
 * address; below the kernel where there is more room.
 */
static int place_initrd(struct load *l, const struct image *im)
{
	const struct load_file *f = &l->req->initrd;
	u64 top = min((u64)im->setup.initrd_addr_max + 1, load_ram_end(l));
	u64 kernel_end = ALIGN_UP(im->setup.pref_address + im->run_size, 4096ull);
	u64 above = top > kernel_end ? ALIGN_DOWN(top, 4096ull) - kernel_end : 0;
	u64 below_top = min(top, (u64)im->setup.pref_address);
	u64 below =
	    below_top > GUEST_HIGH_RAM ? ALIGN_DOWN(below_top, 4096ull) - GUEST_HIGH_RAM : 0;
	u64 size = ALIGN_UP(f->size, 4096ull);

	if (size < f->size || (size > above && size > below))
		return load_fail(l, E_NOMEM, "initrd",
				 "%s: %llu KiB do not fit, %llu KiB are free below 0x%llx; "
				 "give the VM more memory",
				 f->name, (unsigned long long)(f->size / KiB + 1),
				 (unsigned long long)(max(above, below) / KiB),
				 (unsigned long long)top);
	l->state->initrd_gpa = (size <= above ? ALIGN_DOWN(top, 4096ull) : below_top) - size;
	l->state->initrd_size = f->size;
	memcpy(guest_ptr(l->mem, l->state->initrd_gpa, f->size), f->data, f->size);
	return 0;
}

static int place_cmdline(struct load *l, const struct image *im)
{
	u64 len = strlen(l->req->cmdline);
	u64 limit = im->setup.cmdline_size ? im->setup.cmdline_size : LINUX_DEFAULT_CMDLINE;

	limit = min(limit, LOW_CMDLINE_MAX);
	if (len > limit)
		return load_fail(
		    l, E_RANGE, "cmdline", "command line of %llu bytes; %s takes at most %llu",
		    (unsigned long long)len, l->req->kernel.name, (unsigned long long)limit);
	memcpy(guest_ptr(l->mem, LOW_CMDLINE, len + 1), l->req->cmdline, len + 1);
	return 0;
}

static void write_params(struct load *l, const struct image *im)
{
	u8 *p = guest_ptr(l->mem, LOW_PARAMS, LINUX_PARAMS_SIZE);
	struct linux_setup s = im->setup;
	struct e820_entry map[E820_MAX];
	u64 header = min(im->header_end - LINUX_SETUP_OFFSET, sizeof(s));

	s.type_of_loader = LINUX_LOADER_UNDEFINED;
	s.vid_mode = LINUX_VIDEO_NORMAL;
	s.code32_start = s.pref_address;
	s.ramdisk_image = l->state->initrd_gpa;
	s.ramdisk_size = l->state->initrd_size;
	s.cmd_line_ptr = LOW_CMDLINE;
	s.setup_data = 0;

	memset(p, 0, LINUX_PARAMS_SIZE);
	memcpy(p + LINUX_SETUP_OFFSET, &s, header);
	memcpy(p + LINUX_PARAMS_RSDP, &l->req->rsdp, sizeof(l->req->rsdp));
	p[LINUX_PARAMS_E820_COUNT] = e820_build(l->mem, map);
	memcpy(p + LINUX_PARAMS_E820, map, p[LINUX_PARAMS_E820_COUNT] * sizeof(map[0]));
}

/* GDT with the two selectors, and identity page tables with 2 MiB pages. */
static void write_tables(struct load *l)
{
	static const u64 gdt[] = {0, 0, 0x00af9b000000ffff, 0x00cf93000000ffff};
	u64 *pml4 = guest_ptr(l->mem, LOW_PML4, 4096);
	u64 *pdpt = guest_ptr(l->mem, LOW_PDPT, 4096);
	u64 *pd = guest_ptr(l->mem, LOW_PD, MAPPED_GIB * 4096);

	memset(guest_ptr(l->mem, LOW_GDT, 4096), 0, 4096);
	memcpy(guest_ptr(l->mem, LOW_GDT, sizeof(gdt)), gdt, sizeof(gdt));
	l->state->gdt_base = LOW_GDT;
	l->state->gdt_limit = sizeof(gdt) - 1;

	memset(pml4, 0, 4096);
	memset(pdpt, 0, 4096);
	pml4[0] = LOW_PDPT | PTE_WRITE | PTE_PRESENT;
	for (u64 i = 0; i < MAPPED_GIB; i++)
		pdpt[i] = (LOW_PD + i * 4096) | PTE_WRITE | PTE_PRESENT;
	for (u64 i = 0; i < MAPPED_GIB * 512; i++)
		pd[i] = i * 2 * MiB | PTE_LARGE | PTE_WRITE | PTE_PRESENT;
}

/* "Linux 6.1.0-13-amd64" for the console: the first word of the version text, if there is one. */
static void describe(struct load *l, const struct image *im)
{
	const struct load_file *k = &l->req->kernel;
	u64 off = (u64)im->setup.kernel_version + LINUX_VERSION_BASE;
	char *what = l->state->what;
	size_t n;

	str_copy(what, "Linux", sizeof(l->state->what));
	if (!im->setup.kernel_version)
		return;
	n = strlen(what);
	for (; off < im->setup_size && n < sizeof(l->state->what) - 1; off++) {
		if (k->data[off] <= ' ' || k->data[off] > '~')
			break;
		if (n == strlen("Linux"))
			what[n++] = ' ';
		what[n++] = k->data[off];
	}
	what[n] = 0;
}

static void set_state(struct load *l, const struct image *im)
{
	struct cpu_boot_state *st = l->state;

	st->mode = LOAD_LINUX_64;
	st->kernel_gpa = im->setup.pref_address;
	st->kernel_size = im->run_size;
	st->rip = im->setup.pref_address + LINUX_ENTRY_64;
	st->rsp = LOW_STACK_TOP;
	st->rsi = LOW_PARAMS;
	st->cr0 = CR0_PE | CR0_ET | CR0_NE | CR0_PG;
	st->cr3 = LOW_PML4;
	st->cr4 = CR4_PAE;
	st->efer = EFER_LME | EFER_LMA;
	load_segments(st, false);
}

int linux_load(struct load *l)
{
	const struct load_request *req = l->req;
	struct image im;
	int err = parse(l, &im);

	if (!err && req->nr_modules)
		err = load_fail(
		    l, E_INVAL, "modules",
		    "%s is a Linux kernel, which takes an initrd; modules are for Multiboot",
		    req->kernel.name);
	if (!err)
		err = place_cmdline(l, &im);
	if (!err && req->initrd.data && req->initrd.size)
		err = place_initrd(l, &im);
	if (err)
		return err;

	memcpy(guest_ptr(l->mem, im.setup.pref_address, im.kernel_size),
	       req->kernel.data + im.setup_size, im.kernel_size);
	write_tables(l);
	write_params(l, &im);
	set_state(l, &im);
	describe(l, &im);
	return 0;
}
