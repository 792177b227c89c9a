/* SPDX-License-Identifier: BSD-2-Clause */
/* boot/elf.c: a crafted static PIE, and what is said of broken ones. */
// sources: boot/elf.c
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "boot/elf.h"
#include "hv/lib/errors.h"
#include "tests/unit/boot_elf_image.h"

static u8 image[0x3000];
static struct elf_image img;
static const char *why;

static int setup(void **state)
{
	make_elf();
	memset(image, 0xcc, sizeof(image));
	why = NULL;
	return 0;
}

/* Opens an exact copy on the heap, so that ASan sees a read behind its end. */
static int open_bytes(size_t size)
{
	static u8 *copy;

	free(copy);
	copy = malloc(size);
	memcpy(copy, &f, size);
	return elf_open(&img, copy, size, &why);
}

static int load(void)
{
	int err = open_bytes(sizeof(f));

	return err ? err : elf_load(&img, image, BASE, &why);
}

static u64 word(u64 vaddr)
{
	u64 v;

	memcpy(&v, image + vaddr, sizeof(v));
	return v;
}

static void assert_refused(int err, const char *text)
{
	why = NULL;
	assert_int_equal(load(), err);
	assert_non_null(why);
	assert_non_null(strstr(why, text));
}

static void describes_the_image(void **state)
{
	assert_int_equal(open_bytes(sizeof(f)), 0);
	assert_int_equal(img.mem_size, 0x3000);
	assert_int_equal(img.entry, 0x1010);
	assert_int_equal(img.symtab, offsetof(struct file, symbols));
	assert_int_equal(img.symtab_size, sizeof(f.symbols));
	assert_int_equal(img.strtab, offsetof(struct file, strings));
	assert_int_equal(img.strtab_size, sizeof(f.strings));
}

static void copies_segments_and_clears_the_rest(void **state)
{
	assert_int_equal(load(), 0);
	assert_int_equal(image[0], 0);
	assert_int_equal(image[0xfff], 0);
	assert_int_equal(image[0x1000], 0x90);
	assert_int_equal(image[0x11ff], 0x90);
	assert_int_equal(image[0x1200], 0);
	assert_int_equal(word(0x2000), 0x1111);
	assert_int_equal(word(0x2300), 0); /* .bss */
}

static void applies_relative_relocations(void **state)
{
	assert_int_equal(load(), 0);
	assert_int_equal(word(0x2008), BASE + 0x1010);
	assert_int_equal(word(0x2ff8), BASE + 0x2000);
	assert_int_equal(word(0), 0); /* R_X86_64_NONE */
}

static void applies_compact_relocations(void **state)
{
	for (u32 i = 0; i < 16; i++)
		f.d.words[i] = i;
	f.d.dyn[3] = (Elf64_Dyn){DT_RELR, {IN_DATA(d.relr)}};
	f.d.dyn[4] = (Elf64_Dyn){DT_RELRSZ, {sizeof(f.d.relr)}};
	f.d.dyn[1].d_un.d_val = 0;		  /* no DT_RELA ones */
	f.d.relr[0] = 0x2010;			  /* words[2] */
	f.d.relr[1] = (1 << 1 | 1 << 3) << 1 | 1; /* words[4] and words[6] */
	f.d.relr[2] = 0x2ff8;
	assert_int_equal(load(), 0);
	for (u32 i = 0; i < 16; i++)
		assert_int_equal(word(0x2000 + 8 * i), i == 2 || i == 4 || i == 6 ? BASE + i : i);
	assert_int_equal(word(0x2ff8), BASE);
}

static void a_second_bitmap_continues_63_words_on(void **state)
{
	f.d.dyn[3] = (Elf64_Dyn){DT_RELR, {IN_DATA(d.relr)}};
	f.d.dyn[4] = (Elf64_Dyn){DT_RELRSZ, {sizeof(f.d.relr)}};
	f.d.dyn[1].d_un.d_val = 0;
	f.d.relr[0] = 0x2300; /* then words 0x2308 to 0x24f8, then from 0x2500 on */
	f.d.relr[1] = 1;
	f.d.relr[2] = 1 << 1 | 1;
	assert_int_equal(load(), 0);
	assert_int_equal(word(0x2300), BASE);
	assert_int_equal(word(0x2308 + 63 * 8), BASE);
	assert_int_equal(word(0x2308 + 62 * 8), 0);
}

static void without_dynamic_section_nothing_is_relocated(void **state)
{
	f.dynamic.p_type = PT_NULL;
	assert_int_equal(load(), 0);
	assert_int_equal(word(0x2008), 0);
}

static void files_of_other_kinds_are_refused(void **state)
{
	f.h.e_ident[0] = 'M';
	assert_refused(E_FORMAT, "ELF");
	setup(state);
	f.h.e_ident[EI_CLASS] = ELFCLASS32;
	assert_refused(E_FORMAT, "64-bit");
	setup(state);
	f.h.e_machine = EM_AARCH64;
	assert_refused(E_UNSUPP, "x86-64");
	setup(state);
	f.h.e_type = ET_EXEC;
	assert_refused(E_UNSUPP, "position-independent");
	setup(state);
	f.dynamic.p_type = PT_INTERP;
	assert_refused(E_UNSUPP, "dynamic linker");
	setup(state);
	f.d.dyn[3] = (Elf64_Dyn){DT_NEEDED, {1}};
	assert_refused(E_UNSUPP, "shared libraries");
}

static void every_truncation_is_noticed(void **state)
{
	/* Of what is needed; symbols and strings at the end are not. */
	for (size_t size = 0; size < offsetof(struct file, symbols); size++)
		assert_int_not_equal(open_bytes(size), 0);
	for (size_t size = offsetof(struct file, symbols); size < sizeof(f); size++) {
		assert_int_equal(open_bytes(size), 0);
		assert_int_equal(img.symtab_size, 0);
	}
	assert_int_equal(open_bytes(60), E_TRUNC);
}

static void impossible_segments_are_refused(void **state)
{
	f.data.p_memsz = 0x2ff;
	assert_refused(E_FORMAT, "impossible size");
	setup(state);
	f.data.p_vaddr = ~0xfffull;
	assert_refused(E_FORMAT, "impossible size");
	setup(state);
	f.data.p_memsz = 1ull << 40;
	assert_refused(E_FORMAT, "impossible size");
	setup(state);
	f.data.p_offset = ~0ull;
	assert_refused(E_TRUNC, "segments");
	setup(state);
	f.h.e_phoff = ~0ull - 10;
	assert_refused(E_TRUNC, "program headers");
	setup(state);
	f.h.e_phentsize = 32;
	assert_refused(E_FORMAT, "program headers");
}

static void the_entry_point_must_be_code(void **state)
{
	f.h.e_entry = 0x2000;
	assert_refused(E_FORMAT, "entry point");
	setup(state);
	f.h.e_entry = 0x1200; /* just behind it */
	assert_refused(E_FORMAT, "entry point");
	setup(state);
	f.h.e_phnum = 0;
	assert_refused(E_FORMAT, "entry point");
}

static void bad_relocations_are_refused(void **state)
{
	f.d.rela[0].r_info = R_X86_64_GLOB_DAT;
	assert_refused(E_UNSUPP, "R_X86_64_RELATIVE");
	setup(state);
	f.d.rela[2].r_offset = 0x2ff9;
	assert_refused(E_FORMAT, "outside the image");
	setup(state);
	f.d.dyn[0].d_un.d_ptr = 0x2ff0;
	assert_refused(E_FORMAT, "outside the image");
	setup(state);
	f.d.dyn[1].d_un.d_val = 25;
	assert_refused(E_FORMAT, "unknown size");
	setup(state);
	f.d.dyn[2].d_un.d_val = 16;
	assert_refused(E_FORMAT, "unknown size");
	setup(state);
	f.d.dyn[3] = (Elf64_Dyn){DT_PLTRELSZ, {24}};
	assert_refused(E_UNSUPP, "R_X86_64_RELATIVE");
	setup(state);
	f.d.dyn[3] = (Elf64_Dyn){DT_RELRSZ, {12}};
	assert_refused(E_FORMAT, "outside the image");
	setup(state);
	f.d.dyn[3] = (Elf64_Dyn){DT_RELRSZ, {8}};
	f.d.dyn[4] = (Elf64_Dyn){DT_RELR, {IN_DATA(d.relr)}};
	f.d.relr[0] = 0x2ffa;
	assert_refused(E_FORMAT, "outside the image");
}

static void unsound_symbols_are_left_out(void **state)
{
	f.sections[1].sh_size = ~0ull;
	assert_int_equal(load(), 0);
	assert_int_equal(img.symtab_size, 0);
	setup(state);
	f.sections[1].sh_link = 3;
	assert_int_equal(load(), 0);
	assert_int_equal(img.symtab_size, 0);
	setup(state);
	f.strings[15] = 'x'; /* names would run out of the table */
	assert_int_equal(load(), 0);
	assert_int_equal(img.strtab_size, 0);
	setup(state);
	f.h.e_shoff = ~0ull;
	assert_int_equal(load(), 0);
	assert_int_equal(img.symtab_size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(describes_the_image, setup),
	    cmocka_unit_test_setup(copies_segments_and_clears_the_rest, setup),
	    cmocka_unit_test_setup(applies_relative_relocations, setup),
	    cmocka_unit_test_setup(applies_compact_relocations, setup),
	    cmocka_unit_test_setup(a_second_bitmap_continues_63_words_on, setup),
	    cmocka_unit_test_setup(without_dynamic_section_nothing_is_relocated, setup),
	    cmocka_unit_test_setup(files_of_other_kinds_are_refused, setup),
	    cmocka_unit_test_setup(every_truncation_is_noticed, setup),
	    cmocka_unit_test_setup(impossible_segments_are_refused, setup),
	    cmocka_unit_test_setup(the_entry_point_must_be_code, setup),
	    cmocka_unit_test_setup(bad_relocations_are_refused, setup),
	    cmocka_unit_test_setup(unsound_symbols_are_left_out, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
