/* SPDX-License-Identifier: BSD-2-Clause */
/* The Multiboot side of the guest loader. */
// sources: hv/vm/load.c hv/vm/load_linux.c hv/vm/load_multiboot.c hv/vm/e820.c
// sources: hv/lib/fmt.c hv/lib/string.c
#include "tests/unit/load_fixture.h"

#define RAM (16 * MiB)

static int setup(void **state)
{
	u8 *image = malloc(MB_SIZE);
	struct fixture *f;

	mb_make(image);
	f = fixture_new(RAM, 2 * MiB, "/hello.elf", image, MB_SIZE);
	f->req.cmdline = "count=3";
	*state = f;
	return 0;
}

static u8 *ram(const struct fixture *f, u64 gpa)
{
	return f->mem.slots[0].host + gpa;
}

static void an_elf_starts_in_protected_mode(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.mode, LOAD_MULTIBOOT_32);
	assert_int_equal(f->st.rip, MB_ENTRY);
	assert_int_equal(f->st.rax, 0x2badb002);
	assert_int_equal(f->st.cr0, 0x11);
	assert_int_equal(f->st.cr4 | f->st.efer | f->st.cr3, 0);
	assert_int_equal(f->st.rflags, 2);
	assert_int_equal(f->st.cs.access, 0xc09b);
	assert_int_equal(f->st.data.access, 0xc093);
	assert_int_equal(f->st.cs.limit, ~0u);
	assert_memory_equal(ram(f, 0x100000), f->image + MB_SEG_OFFSET, MB_SEG_FILESZ);
	for (u32 i = MB_SEG_FILESZ; i < MB_SEG_MEMSZ; i++)
		assert_int_equal(*ram(f, 0x100000 + i), 0);
	assert_int_equal(f->st.kernel_gpa, 0x100000);
	assert_int_equal(f->st.kernel_size, MB_SEG_MEMSZ);
}

static void the_information_lies_behind_the_image(void **state)
{
	struct fixture *f = *state;
	struct mb_info *info;

	assert_int_equal(load(f), 0);
	assert_in_range(f->st.rbx, 0x100000 + MB_SEG_MEMSZ, RAM - sizeof(*info));
	info = (struct mb_info *)ram(f, f->st.rbx);
	assert_int_equal(info->flags, 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 9);
	assert_int_equal(info->mem_lower, 639);
	assert_int_equal(info->mem_upper, 15 * 1024);
	assert_string_equal(ram(f, info->cmdline), "count=3");
	assert_string_equal(ram(f, info->boot_loader_name), "vlag");
	assert_int_equal(info->mods_count, 0);
}

static void the_memory_map_is_that_of_e820(void **state)
{
	struct fixture *f = *state;
	struct e820_entry map[E820_MAX];
	struct mb_info *info;
	u32 n, seen = 0;

	assert_int_equal(load(f), 0);
	info = (struct mb_info *)ram(f, f->st.rbx);
	n = e820_build(&f->mem, map);
	assert_int_equal(n, 5);
	for (u32 off = 0; off < info->mmap_length; seen++) {
		struct mb_mmap *e = (struct mb_mmap *)ram(f, info->mmap_addr + off);

		assert_int_equal(e->size, 20);
		assert_true(seen < n);
		assert_int_equal(e->base, map[seen].base);
		assert_int_equal(e->length, map[seen].size);
		assert_int_equal(e->type, map[seen].type);
		off += e->size + 4;
	}
	assert_int_equal(seen, n);
}

static void modules_lie_on_pages_with_their_names(void **state)
{
	struct fixture *f = *state;
	u8 *data = malloc(5000);
	struct mb_module *m;
	struct mb_info *info;

	memset(data, 0x31, 5000);
	f->req.nr_modules = 3;
	f->req.modules[0] = (struct load_file){"/a", data, 5000};
	f->req.modules[1] = (struct load_file){"/empty", data, 0};
	f->req.modules[2] = (struct load_file){"/b", data, 1};
	assert_int_equal(load(f), 0);
	info = (struct mb_info *)ram(f, f->st.rbx);
	assert_int_equal(info->mods_count, 3);
	m = (struct mb_module *)ram(f, info->mods_addr);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(m[i].start % 4096, 0);
		assert_int_equal(m[i].end - m[i].start, f->req.modules[i].size);
		assert_memory_equal(ram(f, m[i].start), data, f->req.modules[i].size);
		assert_string_equal(ram(f, m[i].string), f->req.modules[i].name);
		assert_true(m[i].start >= f->st.rbx + sizeof(*info));
	}
	assert_true(m[1].start >= m[0].end && m[2].start >= m[1].end);
	assert_int_equal(f->st.initrd_gpa, m[0].start);
	assert_int_equal(f->st.initrd_size, m[2].end - m[0].start);
	free(data);
}

static void a_module_that_does_not_fit_is_named(void **state)
{
	struct fixture *f = *state;
	u8 *data = calloc(1, RAM);

	f->req.nr_modules = 2;
	f->req.modules[0] = (struct load_file){"/small", data, 4096};
	f->req.modules[1] = (struct load_file){"/big", data, RAM};
	expect_error(f, E_NOMEM, "modules", "/big: 16385 KiB do not fit", "more memory");
	free(data);
}

static void modules_may_fill_ram_to_its_end(void **state)
{
	struct fixture *f = *state;
	u8 *data = calloc(1, RAM);
	u64 room;

	f->req.nr_modules = 1;
	f->req.modules[0] = (struct load_file){"/m", data, 1};
	assert_int_equal(load(f), 0);
	room = RAM - f->st.initrd_gpa;
	f->req.modules[0].size = room;
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.initrd_gpa + f->st.initrd_size, RAM);
	f->req.modules[0].size = room + 1;
	assert_int_equal(load(f), E_NOMEM);
	free(data);
}

static void several_segments_are_loaded(void **state)
{
	struct fixture *f = *state;
	struct elf32_segment *s = mb_segment(f->image);

	mb_elf(f->image)->phnum = 3;
	s[1] = (struct elf32_segment){.type = 6, .offset = ~0u, .memsz = ~0u}; /* not to load */
	s[2] = (struct elf32_segment){
	    .type = ELF_PT_LOAD,
	    .offset = MB_SEG_OFFSET + 4,
	    .vaddr = 0x300000,
	    .paddr = 0x300000,
	    .filesz = 16,
	    .memsz = 16,
	};
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.rip, MB_ENTRY);
	assert_memory_equal(ram(f, 0x300000), f->image + MB_SEG_OFFSET + 4, 16);
	assert_int_equal(*ram(f, 0x300010), 0xa5);
	assert_int_equal(f->st.kernel_size, 0x200010);
}

static void the_number_of_program_headers_is_bounded(void **state)
{
	struct fixture *f = *state;

	/* The table ends exactly where the file does. */
	mb_elf(f->image)->phnum = 64;
	mb_elf(f->image)->phoff = MB_SIZE - 64 * sizeof(struct elf32_segment);
	memset(f->image + mb_elf(f->image)->phoff, 0, 64 * sizeof(struct elf32_segment));
	*(struct elf32_segment *)(f->image + MB_SIZE - sizeof(struct elf32_segment)) =
	    *mb_segment(f->image);
	mb_flags(f->image, 0);
	assert_int_equal(load(f), 0);
	mb_elf(f->image)->phoff++;
	expect_error(f, E_TRUNC, "kernel", "truncated at 6144 bytes of 6145", "/hello.elf");
	mb_elf(f->image)->phnum = 65;
	expect_error(f, E_FORMAT, "kernel", "65 ELF program headers", "1 to 64");
}

static void a_command_line_that_is_too_long_is_refused(void **state)
{
	struct fixture *f = *state;
	char line[CFG_CMDLINE_MAX + 1];
	struct mb_info *info;

	memset(line, 'a', sizeof(line));
	line[CFG_CMDLINE_MAX] = 0;
	f->req.cmdline = line;
	expect_error(f, E_RANGE, "cmdline", "1024 bytes", "at most 1023");
	line[CFG_CMDLINE_MAX - 1] = 0;
	assert_int_equal(load(f), 0);
	info = (struct mb_info *)ram(f, f->st.rbx);
	assert_string_equal(ram(f, info->cmdline), line);
}

static void a_headerless_file_is_loaded_by_its_addresses(void **state)
{
	struct fixture *f = *state;
	struct mb_header *h = mb_header(f->image);

	memset(f->image, 0x11, MB_SEG_OFFSET); /* no ELF */
	mb_flags(f->image, MB_ADDRESSES);
	h->header_addr = 0x200100;
	h->load_addr = 0x200000; /* from 0x100 bytes before the header */
	h->load_end_addr = 0x200300;
	h->bss_end_addr = 0x202000;
	h->entry_addr = 0x200110;
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.rip, 0x200110);
	assert_memory_equal(ram(f, 0x200000), f->image + MB_SEG_OFFSET - 0x100, 0x300);
	for (u32 i = 0x300; i < 0x2000; i++)
		assert_int_equal(*ram(f, 0x200000 + i), 0);

	h->bss_end_addr = h->load_end_addr; /* no BSS */
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.kernel_size, 0x300);

	h->load_end_addr = 0; /* the whole rest of the file */
	h->bss_end_addr = 0;
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.kernel_size, 0x100 + MB_SEG_FILESZ);
	assert_int_equal(*ram(f, 0x200000 + 0x100 + MB_SEG_FILESZ - 1), f->image[MB_SIZE - 1]);
}

static void address_fields_that_contradict_are_refused(void **state)
{
	struct fixture *f = *state;
	struct mb_header *h = mb_header(f->image);

	mb_flags(f->image, MB_ADDRESSES);
	h->header_addr = 0x1fffff;
	h->load_addr = 0x200000;
	expect_error(f, E_FORMAT, "kernel", "header_addr 0x1fffff", "load_addr 0x200000");
	h->header_addr = 0x202000; /* would begin before the file */
	expect_error(f, E_FORMAT, "kernel", "header_addr 0x202000", "0x1000");
	h->header_addr = 0x200000;
	h->load_end_addr = 0x200000;
	h->bss_end_addr = 0;
	expect_error(f, E_FORMAT, "kernel", "ascending", "load_end 0x200000");
	h->load_end_addr = 0;
	h->bss_end_addr = 0x200000;
	expect_error(f, E_FORMAT, "kernel", "ascending", "bss_end 0x200000");
	h->load_end_addr = 0x1ff000;
	h->bss_end_addr = 0;
	expect_error(f, E_FORMAT, "kernel", "ascending", "load_end 0x1ff000");
	h->load_end_addr = 0x200100;
	h->bss_end_addr = 0x200080;
	expect_error(f, E_FORMAT, "kernel", "ascending", "bss_end 0x200080");
	h->load_end_addr = 0x200000 + MB_SEG_FILESZ + 1;
	h->bss_end_addr = 0;
	expect_error(f, E_TRUNC, "kernel", "truncated at 6144 bytes of 6145", "/hello.elf");
}

static void the_header_is_searched_in_the_first_8192_bytes(void **state)
{
	struct fixture *f = *state;
	u8 *image = calloc(1, 8192 + 12);
	u32 header[3] = {MB_HEADER_MAGIC, 0, -MB_HEADER_MAGIC};

	memcpy(image, f->image, MB_SEG_OFFSET);
	f->req.kernel = (struct load_file){"/late.elf", image, 8192 + 12};
	memcpy(image + 8192 - 12, header, 12);
	assert_int_equal(load(f), 0);
	memset(image + 8192 - 12, 0, 12);
	memcpy(image + 8192 - 8, header, 12);
	expect_error(f, E_UNSUPP, "kernel", "without a Multiboot 1 header", "8192");
	memcpy(image + 6, header, 12); /* not on a multiple of 4 */
	assert_int_equal(load(f), E_UNSUPP);
	free(image);
}

static void a_wrong_checksum_is_no_header(void **state)
{
	struct fixture *f = *state;

	mb_header(f->image)->checksum++;
	expect_error(f, E_UNSUPP, "kernel", "without a Multiboot 1 header", "/hello.elf");
}

static void address_fields_may_end_with_the_file(void **state)
{
	struct fixture *f = *state;
	u8 *image = malloc(32);
	struct mb_header h = {MB_HEADER_MAGIC,
			      MB_ADDRESSES,
			      -(u32)(MB_HEADER_MAGIC + MB_ADDRESSES),
			      0x200000,
			      0x200000,
			      0,
			      0,
			      0x200000};

	memcpy(image, &h, 32);
	f->req.kernel = (struct load_file){"/flat", image, 32};
	assert_int_equal(load(f), 0);
	f->req.kernel.size = 31;
	expect_error(f, E_TRUNC, "kernel", "/flat: truncated at 31 bytes of 32", "");
	free(image);
}

static void flags_that_cannot_be_served_are_refused(void **state)
{
	struct fixture *f = *state;

	mb_flags(f->image, MB_VIDEO_MODE);
	expect_error(f, E_UNSUPP, "kernel", "flags 0x4 (video mode)", "only 0x1");
	mb_flags(f->image, 0x8001);
	expect_error(f, E_UNSUPP, "kernel", "flags 0x8000 cannot", "only 0x1");
	mb_flags(f->image, 0x80000000); /* upper half: may be ignored */
	assert_int_equal(load(f), 0);
}

static void wrong_kinds_of_elf_are_named(void **state)
{
	struct fixture *f = *state;

	mb_elf(f->image)->class = ELF_CLASS_64;
	expect_error(f, E_UNSUPP, "kernel", "ELF64", "elf32-i386");
	mb_make(f->image);
	mb_elf(f->image)->machine = 40;
	expect_error(f, E_UNSUPP, "kernel", "machine 40", "i386 (3)");
	mb_make(f->image);
	mb_elf(f->image)->phnum = 0;
	expect_error(f, E_FORMAT, "kernel", "0 ELF program headers", "1 to 64");
	mb_make(f->image);
	mb_elf(f->image)->phoff = 0xfffffff0;
	expect_error(f, E_TRUNC, "kernel", "truncated at 6144 bytes of", "4294967312");
	mb_make(f->image);
	mb_elf(f->image)->magic = 0;
	expect_error(f, E_UNSUPP, "kernel", "must be ELF32", "address fields");
}

static void segments_outside_ram_or_file_are_refused(void **state)
{
	struct fixture *f = *state;
	struct elf32_segment *s = mb_segment(f->image);

	s->paddr = RAM - MB_SEG_MEMSZ + 1;
	expect_error(f, E_NOMEM, "memory", "0xffd001-0x1000001 lies outside of RAM", "0x1000000");
	s->paddr = 0xfffff000;
	expect_error(f, E_NOMEM, "memory", "0xfffff000-0x100002000", "outside");
	s->paddr = 0x100000;
	s->memsz = RAM;
	expect_error(f, E_NOMEM, "memory", "0x100000-0x1100000", "outside");
	s->memsz = MB_SEG_MEMSZ;
	s->paddr = 0x9fc00 - MB_SEG_MEMSZ; /* just fits below the EBDA */
	s->vaddr = s->paddr;
	mb_elf(f->image)->entry = s->paddr;
	assert_int_equal(load(f), 0);
	mb_elf(f->image)->entry = s->paddr + MB_SEG_MEMSZ;
	expect_error(f, E_FORMAT, "kernel", "entry 0x9fc00 lies outside", "0x9cc00-0x9fc00");
	s->paddr = 0x9e000; /* runs into the EBDA */
	expect_error(f, E_RANGE, "kernel", "0x9e000-0xa1000", "0-0x9fc00");
	s->paddr = 0x100000;
	s->filesz = MB_SEG_FILESZ + 1;
	expect_error(f, E_TRUNC, "kernel", "truncated at 6144 bytes of 6145", "/hello.elf");
	s->filesz = s->memsz = MB_SEG_FILESZ; /* no BSS */
	s->vaddr = s->paddr;
	mb_elf(f->image)->entry = s->paddr;
	assert_int_equal(load(f), 0);
	s->memsz = MB_SEG_MEMSZ;
	s->filesz = MB_SEG_MEMSZ + 1;
	expect_error(f, E_FORMAT, "kernel", "0x3001 bytes in the file", "0x3000");
}

static void an_entry_outside_of_the_image_is_refused(void **state)
{
	struct fixture *f = *state;

	mb_elf(f->image)->entry = 0xff000;
	expect_error(f, E_FORMAT, "kernel", "entry 0xff000", "0x100000-0x103000");
}

static void a_virtual_entry_is_translated(void **state)
{
	struct fixture *f = *state;

	mb_segment(f->image)->vaddr = 0xc0100000;
	mb_elf(f->image)->entry = 0xc0100020;
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.rip, MB_ENTRY);
}

static void an_image_below_1_mib_is_loaded(void **state)
{
	struct fixture *f = *state;
	struct elf32_segment *s = mb_segment(f->image);

	s->paddr = s->vaddr = 0x8000;
	mb_elf(f->image)->entry = 0x8020;
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.rip, 0x8020);
	assert_int_equal(f->st.rbx, 1 * MiB);
}

static void no_room_for_the_information_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct elf32_segment *s = mb_segment(f->image);

	s->paddr = s->vaddr = RAM - MB_SEG_MEMSZ;
	mb_elf(f->image)->entry = s->vaddr;
	expect_error(f, E_NOMEM, "memory", "no room", "0x1000000");
}

static void an_initrd_is_not_for_multiboot(void **state)
{
	struct fixture *f = *state;

	f->req.initrd = (struct load_file){"/initrd", f->image, 1};
	expect_error(f, E_INVAL, "initrd", "/hello.elf is a Multiboot image", "modules");
}

static void every_truncation_is_an_error_and_reads_nothing_beyond(void **state)
{
	struct fixture *f = *state;

	for (u64 n = 0; n < MB_SIZE; n++) {
		u8 *copy = malloc(n ? n : 1);

		memcpy(copy, f->image, n);
		f->req.kernel.data = copy;
		f->req.kernel.size = n;
		assert_true(load(f) < 0);
		free(copy);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(an_elf_starts_in_protected_mode),
	    T(the_information_lies_behind_the_image),
	    T(the_memory_map_is_that_of_e820),
	    T(modules_lie_on_pages_with_their_names),
	    T(a_module_that_does_not_fit_is_named),
	    T(modules_may_fill_ram_to_its_end),
	    T(several_segments_are_loaded),
	    T(the_number_of_program_headers_is_bounded),
	    T(a_command_line_that_is_too_long_is_refused),
	    T(a_headerless_file_is_loaded_by_its_addresses),
	    T(address_fields_that_contradict_are_refused),
	    T(the_header_is_searched_in_the_first_8192_bytes),
	    T(a_wrong_checksum_is_no_header),
	    T(address_fields_may_end_with_the_file),
	    T(flags_that_cannot_be_served_are_refused),
	    T(wrong_kinds_of_elf_are_named),
	    T(segments_outside_ram_or_file_are_refused),
	    T(an_entry_outside_of_the_image_is_refused),
	    T(a_virtual_entry_is_translated),
	    T(an_image_below_1_mib_is_loaded),
	    T(no_room_for_the_information_is_an_error),
	    T(an_initrd_is_not_for_multiboot),
	    T(every_truncation_is_an_error_and_reads_nothing_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
