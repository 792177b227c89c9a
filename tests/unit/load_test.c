/* SPDX-License-Identifier: BSD-2-Clause */
/* The Linux side of the guest loader and what both formats share. */
// sources: hv/vm/load.c hv/vm/load_linux.c hv/vm/load_multiboot.c hv/vm/e820.c
// sources: hv/lib/fmt.c hv/lib/string.c
#include "tests/unit/load_fixture.h"

#define RAM (32 * MiB)

static int setup(void **state)
{
	u8 *image = malloc(BZ_SIZE);
	struct fixture *f;

	bz_make(image);
	f = fixture_new(RAM, 0, "/vmlinuz", image, BZ_SIZE);
	f->req.cmdline = "console=ttyS0";
	f->req.rsdp = 0xe0000;
	*state = f;
	return 0;
}

static u64 get(const struct fixture *f, u64 gpa, int bytes)
{
	u64 v = 0;

	memcpy(&v, f->mem.slots[0].host + gpa, bytes);
	return v;
}

static void a_bzimage_starts_at_its_64_bit_entry(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.mode, LOAD_LINUX_64);
	assert_int_equal(f->st.rip, BZ_PREF + 0x200);
	assert_memory_equal(f->mem.slots[0].host + BZ_PREF, f->image + BZ_SETUP_SIZE, BZ_PAYLOAD);
	assert_int_equal(f->st.cs.selector, 0x10);
	assert_int_equal(f->st.cs.access, 0xa09b);
	assert_int_equal(f->st.data.selector, 0x18);
	assert_int_equal(f->st.rflags, 2);
	assert_int_equal(f->st.efer, 0x500);
	assert_int_equal(f->st.cr0 & 0x80000001, 0x80000001);
	assert_int_equal(f->st.cr4, 0x20);
	assert_string_equal(f->st.what, "Linux 6.1.0-test");
	assert_int_equal(f->st.kernel_gpa, BZ_PREF);
	assert_int_equal(f->st.kernel_size, BZ_INIT_SIZE);
}

/* Walks the page tables as a CPU would. */
static u64 translate(const struct fixture *f, u64 va)
{
	u64 table = f->st.cr3;

	for (int shift = 39; shift >= 21; shift -= 9) {
		u64 e = get(f, table + (va >> shift & 511) * 8, 8);

		assert_int_equal(e & 3, 3);
		assert_int_equal(e & 0x7c, 0);
		if (e & 0x80)
			return (e & 0xffffffffff000) + (va & ((1ull << shift) - 1));
		table = e & 0xffffffffff000;
	}
	fail();
	return 0;
}

static void the_first_4_gib_are_mapped_one_to_one(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f), 0);
	for (u64 va = 0; va < 4 * GiB; va += 0x1fffff)
		assert_int_equal(translate(f, va), va);
	assert_int_equal(translate(f, 4 * GiB - 1), 4 * GiB - 1);
	assert_int_equal(get(f, f->st.cr3 + 8, 8), 0);
	assert_int_equal(get(f, get(f, f->st.cr3, 8) - 3 + 4 * 8, 8), 0); /* the fifth GiB */
	assert_int_equal(get(f, 0xf000, 8), 0xa5a5a5a5a5a5a5a5);	  /* behind the tables */
}

static void the_gdt_agrees_with_the_segments(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.gdt_limit, 0x1f);
	/* Access rights of a descriptor: bits 40-47 and 52-55. */
	for (int sel = 0x10; sel <= 0x18; sel += 8) {
		u64 d = get(f, f->st.gdt_base + sel, 8);
		u32 access = (d >> 40 & 0xff) | (d >> 52 & 0xf) << 12;

		assert_int_equal(access, sel == 0x10 ? f->st.cs.access : f->st.data.access);
	}
	assert_int_equal(f->st.tr.access, 0x8b);
	assert_int_equal(f->st.ldtr.access, 0x10000);
}

static void boot_params_say_what_linux_must_know(void **state)
{
	struct fixture *f = *state;
	u64 p;

	bz_setup(f->image)->hardware_subarch = 0x1234;
	assert_int_equal(load(f), 0);
	p = f->st.rsi;
	assert_int_equal(p % 4096, 0);
	assert_int_equal(get(f, p + 0x1ef, 1), 0); /* the sentinel */
	assert_int_equal(get(f, p + 0x1f1, 1), BZ_SETUP_SECTS);
	assert_int_equal(get(f, p + 0x202, 4), LINUX_MAGIC);
	assert_int_equal(get(f, p + 0x210, 1), 0xff);
	assert_int_equal(get(f, p + 0x211, 1), 1);
	assert_int_equal(get(f, p + 0x218, 8), 0); /* no initrd */
	assert_int_equal(get(f, p + 0x23c, 4), 0x1234);
	assert_int_equal(get(f, p + 0x250, 8), 0);
	assert_int_equal(get(f, p + 0x258, 8), BZ_PREF);
	assert_int_equal(get(f, p + 0x070, 8), 0xe0000);
	assert_string_equal(f->mem.slots[0].host + get(f, p + 0x228, 4), "console=ttyS0");
	for (int i = 0; i < 0x40; i++) /* screen_info */
		assert_int_equal(get(f, p + i, 1), 0);
	/* BIOS data area: EBDA segment and base memory agree with the map. */
	assert_int_equal(get(f, 0x40e, 2) << 4, 0x9fc00);
	assert_int_equal(get(f, 0x413, 2), 639);
}

static void the_memory_map_is_in_boot_params(void **state)
{
	struct fixture *f = *state;
	static const u64 want[][3] = {
	    {0, 0x9fc00, 1},
	    {0x9fc00, 0x400, 2},
	    {0xa0000, 0x60000, 2},
	    {0x100000, 31 * MiB, 1},
	};

	assert_int_equal(load(f), 0);
	assert_int_equal(get(f, f->st.rsi + 0x1e8, 1), 4);
	for (u32 i = 0; i < 4; i++) {
		u64 e = f->st.rsi + 0x2d0 + i * 20;

		assert_int_equal(get(f, e, 8), want[i][0]);
		assert_int_equal(get(f, e + 8, 8), want[i][1]);
		assert_int_equal(get(f, e + 16, 4), want[i][2]);
	}
}

static void memory_above_4_gib_is_in_the_map(void **state)
{
	struct guest_mem mem = {
	    .nr_slots = 2,
	    .slots = {{0, GUEST_LOW_MAX, NULL}, {4 * GiB, 512 * MiB, NULL}},
	};
	struct e820_entry map[E820_MAX];

	assert_int_equal(e820_build(&mem, map), 5);
	assert_int_equal(map[3].base + map[3].size, GUEST_LOW_MAX);
	assert_int_equal(map[4].base, 4 * GiB);
	assert_int_equal(map[4].size, 512 * MiB);
	assert_int_equal(map[4].type, E820_RAM);
}

static void an_initrd_lies_as_high_as_the_kernel_allows(void **state)
{
	struct fixture *f = *state;
	u64 size = 100 * KiB + 5;
	u8 *initrd = malloc(size);

	memset(initrd, 0x77, size);
	f->req.initrd = (struct load_file){"/initrd", initrd, size};
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.initrd_gpa, ALIGN_DOWN(RAM - size, 4096));
	assert_int_equal(get(f, f->st.rsi + 0x218, 4), f->st.initrd_gpa);
	assert_int_equal(get(f, f->st.rsi + 0x21c, 4), size);
	assert_memory_equal(f->mem.slots[0].host + f->st.initrd_gpa, initrd, size);

	bz_setup(f->image)->initrd_addr_max = BZ_PREF + BZ_INIT_SIZE + MiB - 1;
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.initrd_gpa, ALIGN_DOWN(BZ_PREF + BZ_INIT_SIZE + MiB - size, 4096));
	free(initrd);
}

static void an_initrd_goes_below_the_kernel_where_there_is_more_room(void **state)
{
	struct fixture *f = *state;
	u64 size = 14 * MiB; /* exactly what is free above the kernel */
	u8 *initrd = calloc(1, 16 * MiB);

	f->req.initrd = (struct load_file){"/initrd", initrd, size};
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.initrd_gpa, BZ_PREF + BZ_INIT_SIZE);
	f->req.initrd.size = 15 * MiB; /* exactly what is free below it */
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.initrd_gpa, 1 * MiB);
	f->req.initrd.size = 15 * MiB + 1;
	expect_error(f, E_NOMEM, "initrd", "/initrd: 15361 KiB do not fit", "15360 KiB are free");
	free(initrd);
}

static void an_initrd_may_fill_all_that_is_free_above_the_kernel(void **state)
{
	struct fixture *f = *state;
	u8 *initrd = calloc(1, 16 * MiB);

	bz_setup(f->image)->pref_address = 8 * MiB;
	f->req.initrd = (struct load_file){"/initrd", initrd, 16 * MiB};
	f->mem.slots[0].size = 26 * MiB; /* 8 + 2 for the kernel, 16 above */
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.initrd_gpa, 10 * MiB);
	f->mem.slots[0].size = RAM;
	free(initrd);
}

static void an_empty_initrd_is_none(void **state)
{
	struct fixture *f = *state;

	f->req.initrd = (struct load_file){"/initrd", f->image, 0};
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.initrd_gpa, 0);
	f->req.initrd = (struct load_file){"/initrd", NULL, 5};
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.initrd_size, 0);
}

static void the_oldest_protocol_that_will_do_is_loaded(void **state)
{
	struct fixture *f = *state;
	struct linux_setup *s = bz_setup(f->image);

	s->version = 0x20c;
	s->jump_offset = 0x268 - LINUX_MAGIC_OFFSET;
	s->kernel_info_offset = 0x1234; /* behind the header: code, not to be copied */
	s->syssize = 0x210 / 16;
	s->pref_address = MiB;
	assert_int_equal(load(f), 0);
	assert_int_equal(f->st.rip, MiB + 0x200);
	assert_int_equal(get(f, f->st.rsi + 0x264, 4), s->handover_offset);
	assert_int_equal(get(f, f->st.rsi + 0x268, 4), 0);
	s->jump_offset--;
	expect_error(f, E_FORMAT, "kernel", "setup header ends at 0x267", "0x268");
	s->jump_offset++;
	s->syssize = 0x200 / 16;
	expect_error(f, E_FORMAT, "kernel", "512 bytes of kernel", "0x200");
}

static void a_truncated_bzimage_says_how_much_is_missing(void **state)
{
	struct fixture *f = *state;

	f->req.kernel.size = BZ_SIZE - 1;
	expect_error(f, E_TRUNC, "kernel", "/vmlinuz", "truncated at 6143 bytes of 6144");
	f->req.kernel.size = 0x220;
	expect_error(f, E_TRUNC, "kernel", "truncated at 544 bytes", "setup header");
}

static void every_truncation_is_an_error_and_reads_nothing_beyond(void **state)
{
	struct fixture *f = *state;

	for (u64 n = 0; n < BZ_SIZE; n++) {
		u8 *copy = malloc(n ? n : 1);

		memcpy(copy, f->image, n);
		f->req.kernel.data = copy;
		f->req.kernel.size = n;
		assert_true(load(f) < 0);
		assert_true(strlen(f->err) > 10);
		free(copy);
	}
}

static void trailing_bytes_after_the_kernel_are_left_out(void **state)
{
	struct fixture *f = *state;

	/* As with a signature that is appended to the file. */
	bz_setup(f->image)->syssize = BZ_PAYLOAD / 16 - 1;
	assert_int_equal(load(f), 0);
	assert_int_equal(get(f, BZ_PREF + BZ_PAYLOAD - 17, 1), f->image[BZ_SIZE - 17]);
	assert_int_equal(get(f, BZ_PREF + BZ_PAYLOAD - 16, 1), 0xa5);
}

static void wrong_kinds_of_kernel_are_named(void **state)
{
	struct fixture *f = *state;
	struct linux_setup *s = bz_setup(f->image);

	s->xloadflags = 0;
	expect_error(f, E_UNSUPP, "kernel", "not an x86-64 kernel", "32-bit only");
	bz_make(f->image);
	s->version = 0x20b;
	expect_error(f, E_UNSUPP, "kernel", "boot protocol 2.11 is too old", "2.12");
	bz_make(f->image);
	s->loadflags = 0;
	expect_error(f, E_UNSUPP, "kernel", "zImage", "bzImage is needed");
	bz_make(f->image);
	s->boot_flag = 0;
	expect_error(f, E_FORMAT, "kernel", "boot flag 0x0000", "0xaa55");
	bz_make(f->image);
	s->jump_offset = 0x10;
	expect_error(f, E_FORMAT, "kernel", "setup header ends at 0x212", "0x268");
	bz_make(f->image);
	s->syssize = 1;
	expect_error(f, E_FORMAT, "kernel", "16 bytes of kernel", "too few");
	memset(f->image, 'x', BZ_SIZE);
	expect_error(f, E_FORMAT, "kernel", "neither a Linux x86 bzImage", "6144 bytes");
	f->req.kernel = (struct load_file){"/empty", NULL, 0};
	expect_error(f, E_FORMAT, "kernel", "/empty: neither", "(0 bytes)");
	f->req.kernel = (struct load_file){"/vmlinuz", f->image, BZ_SIZE};
	memcpy(f->image, "\177ELF", 4);
	expect_error(f, E_UNSUPP, "kernel", "ELF file without a Multiboot", "bzImage, not vmlinux");
	memcpy(f->image, "\037\213", 2);
	expect_error(f, E_UNSUPP, "kernel", "gzip", "bzImage");
}

static void a_kernel_that_does_not_fit_says_how_much_it_needs(void **state)
{
	struct fixture *f = *state;

	f->mem.slots[0].size = 16 * MiB;
	expect_error(f, E_NOMEM, "memory", "16 MiB are too few", "at least 18 MiB");
	f->mem.slots[0].size = 18 * MiB;
	assert_int_equal(load(f), 0);
	f->mem.slots[0].size = RAM;
	bz_setup(f->image)->pref_address = ~0ull;
	expect_error(f, E_FORMAT, "kernel", "0xffffffffffffffff", "0x100000 to 0xc0000000");
	bz_setup(f->image)->pref_address = GUEST_LOW_MAX;
	expect_error(f, E_FORMAT, "kernel", "at 0xc0000000;", "0x100000 to 0xc0000000");
	bz_setup(f->image)->pref_address = 0x8000;
	expect_error(f, E_FORMAT, "kernel", "0x8000", "0x100000 to 0xc0000000");
	bz_setup(f->image)->pref_address = BZ_PREF;
	bz_setup(f->image)->init_size = ~0u;
	expect_error(f, E_NOMEM, "memory", "32 MiB are too few", "at least 4112 MiB");
}

static void a_command_line_that_is_too_long_is_refused(void **state)
{
	struct fixture *f = *state;
	char line[302];

	memset(line, 'a', sizeof(line));
	line[301] = 0;
	f->req.cmdline = line;
	bz_setup(f->image)->cmdline_size = 300;
	expect_error(f, E_RANGE, "cmdline", "301 bytes", "at most 300");
	line[300] = 0;
	assert_int_equal(load(f), 0);
	bz_setup(f->image)->cmdline_size = 0;
	expect_error(f, E_RANGE, "cmdline", "300 bytes", "at most 255");
	line[255] = 0;
	assert_int_equal(load(f), 0);
}

static void modules_are_not_for_linux(void **state)
{
	struct fixture *f = *state;

	f->req.nr_modules = 1;
	f->req.modules[0] = (struct load_file){"m", f->image, 1};
	expect_error(f, E_INVAL, "modules", "Linux", "initrd");
}

static void a_version_text_that_does_not_end_is_cut(void **state)
{
	struct fixture *f = *state;

	memset(f->image + 0x300, 'v', 0x100);
	assert_int_equal(load(f), 0);
	assert_int_equal(strlen(f->st.what), sizeof(f->st.what) - 1);
	bz_setup(f->image)->kernel_version = 0xffff;
	assert_int_equal(load(f), 0);
	assert_string_equal(f->st.what, "Linux");
}

static void a_short_error_buffer_is_not_overrun(void **state)
{
	struct fixture *f = *state;

	memset(f->err, '#', sizeof(f->err));
	f->req.kernel.size = 100;
	assert_int_equal(load_guest(&f->mem, &f->req, &f->st, f->err, 8), E_FORMAT);
	assert_int_equal(strlen(f->err), 7);
	assert_int_equal(f->err[8], '#');
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(a_bzimage_starts_at_its_64_bit_entry),
	    T(the_first_4_gib_are_mapped_one_to_one),
	    T(the_gdt_agrees_with_the_segments),
	    T(boot_params_say_what_linux_must_know),
	    T(the_memory_map_is_in_boot_params),
	    T(memory_above_4_gib_is_in_the_map),
	    T(an_initrd_lies_as_high_as_the_kernel_allows),
	    T(an_initrd_goes_below_the_kernel_where_there_is_more_room),
	    T(an_initrd_may_fill_all_that_is_free_above_the_kernel),
	    T(an_empty_initrd_is_none),
	    T(the_oldest_protocol_that_will_do_is_loaded),
	    T(a_truncated_bzimage_says_how_much_is_missing),
	    T(every_truncation_is_an_error_and_reads_nothing_beyond),
	    T(trailing_bytes_after_the_kernel_are_left_out),
	    T(wrong_kinds_of_kernel_are_named),
	    T(a_kernel_that_does_not_fit_says_how_much_it_needs),
	    T(a_command_line_that_is_too_long_is_refused),
	    T(modules_are_not_for_linux),
	    T(a_version_text_that_does_not_end_is_cut),
	    T(a_short_error_buffer_is_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
