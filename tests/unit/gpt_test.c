/* SPDX-License-Identifier: BSD-2-Clause */
/* Guest page-table walks in every paging mode, over tables that the test builds in a small RAM. */
// sources: hv/vmx/gpt.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hv/lib/errors.h"
#include "hv/vmx/gpt.h"

enum { P = 1, W = 2, U = 4, A = 0x20, D = 0x40, PS = 0x80 };
#define NX BIT(63)
#define LOW (2 * MiB)
#define HIGH_GPA (4 * GiB)
#define HIGH (2 * MiB)

static u8 *ram; /* the low slot, then the high one */
static struct guest_mem mem;
static struct gpt_regs regs;

static int setup(void **state)
{
	ram = calloc(1, LOW + HIGH);
	mem = (struct guest_mem){.nr_slots = 2,
				 .slots = {{0, LOW, ram}, {HIGH_GPA, HIGH, ram + LOW}}};
	regs = (struct gpt_regs){.cr0 = 0x80010001, .cr3 = 0x1000, .cr4 = 0x20, .efer = 0xd01};
	return 0;
}

static int teardown(void **state)
{
	free(ram);
	return 0;
}

static void put64(u64 gpa, u64 value)
{
	memcpy(guest_ptr(&mem, gpa, 8), &value, 8);
}

static u64 get64(u64 gpa)
{
	u64 value;

	memcpy(&value, guest_ptr(&mem, gpa, 8), 8);
	return value;
}

static void put32(u64 gpa, u32 value)
{
	memcpy(guest_ptr(&mem, gpa, 4), &value, 4);
}

static u32 get32(u64 gpa)
{
	u32 value;

	memcpy(&value, guest_ptr(&mem, gpa, 4), 4);
	return value;
}

static void maps_to(u64 gla, u64 expect)
{
	u64 gpa = 0, gpa2 = 0;
	u32 pf;

	assert_int_equal(gpt_translate(&mem, &regs, gla, &gpa), 0);
	assert_true(gpa == expect);
	assert_int_equal(gpt_access(&mem, &regs, gla, 0, &gpa2, &pf), 0);
	assert_true(gpa2 == expect);
}

static void fails(u64 gla, int err, u32 expect_pf)
{
	u64 gpa;
	u32 pf = 0;

	assert_int_equal(gpt_translate(&mem, &regs, gla, &gpa), err);
	assert_int_equal(gpt_access(&mem, &regs, gla, 0, &gpa, &pf), err);
	if (err == E_FAULT)
		assert_int_equal(pf, expect_pf);
}

/* 0xffffffff81234567 -> PML4 511, PDPT 510, PD 9, PT 52 */
#define KERNEL 0xffffffff81234567ull

static void map_kernel(u64 leaf)
{
	put64(0x1000 + 511 * 8, 0x2000 | P | W);
	put64(0x2000 + 510 * 8, 0x3000 | P | W);
	put64(0x3000 + 9 * 8, 0x4000 | P | W);
	put64(0x4000 + 0x34 * 8, leaf);
}

static void test_no_paging(void **state)
{
	regs.cr0 = 1;
	regs.efer = 0;
	maps_to(0xfee000b0, 0xfee000b0);
}

static void test_four_levels(void **state)
{
	map_kernel(0x123456789000 | P | NX);
	maps_to(KERNEL, 0x123456789567);
	fails(KERNEL + 0x1000, E_FAULT, 0);
	fails(0x1234, E_FAULT, 0);
}

static void test_large_pages(void **state)
{
	put64(0x1000, 0x2000 | P);
	put64(0x2000, 0x3000 | P);
	put64(0x2000 + 8, 0x140000000 | P | PS | NX | BIT(12)); /* bit 12 is PAT */
	put64(0x3000 + 8, 0x40600000 | P | PS | BIT(12));
	maps_to(0x3abcde, 0x407abcde);
	maps_to(0x7abcdef1, 0x17abcdef1);
}

static void test_each_level_may_be_absent(void **state)
{
	static const u64 entries[] = {0x1000 + 511 * 8, 0x2000 + 510 * 8, 0x3000 + 9 * 8,
				      0x4000 + 0x34 * 8};

	for (unsigned i = 0; i < 4; i++) {
		map_kernel(0x5000 | P);
		maps_to(KERNEL, 0x5567);
		put64(entries[i], get64(entries[i]) & ~(u64)P);
		fails(KERNEL, E_FAULT, 0);
		put64(entries[i], UINT64_MAX & ~(u64)P);
		fails(KERNEL, E_FAULT, 0);
	}
}

static void test_tables_above_4g_and_with_ignored_bits(void **state)
{
	put64(0x1000 + 511 * 8, (HIGH_GPA + 0x2000) | P | NX | BIT(52));
	put64(HIGH_GPA + 0x2000 + 510 * 8, 0x3000 | P | BIT(62));
	put64(0x3000 + 9 * 8, (HIGH_GPA + 0x4000) | P);
	put64(HIGH_GPA + 0x4000 + 0x34 * 8, 0x7000 | P);
	maps_to(KERNEL, 0x7567);
	regs.cr3 |= 0xfff; /* PCID */
	maps_to(KERNEL, 0x7567);
}

static void test_tables_outside_ram_are_refused(void **state)
{
	map_kernel(0x5000 | P);
	put64(0x3000 + 9 * 8, LOW | P);
	fails(KERNEL, E_RANGE, 0);
	put64(0x3000 + 9 * 8, (HIGH_GPA + HIGH) | P);
	fails(KERNEL, E_RANGE, 0);
	put64(0x3000 + 9 * 8, 0xffffffffff000 | P);
	fails(KERNEL, E_RANGE, 0);
	regs.cr3 = 0xfee00000;
	fails(KERNEL, E_RANGE, 0);
}

static void test_reserved_page_size_bits(void **state)
{
	u64 gpa;
	u32 pf;

	map_kernel(0x5000 | P);
	put64(0x1000 + 511 * 8, 0x2000 | P | PS);
	assert_int_equal(gpt_access(&mem, &regs, KERNEL, 0, &gpa, &pf), E_FAULT);
	assert_int_equal(pf, GPT_PF_PRESENT | GPT_PF_RSVD);
}

static void test_five_levels_are_not_supported(void **state)
{
	regs.cr4 |= BIT(12);
	fails(KERNEL, E_UNSUPP, 0);
}

static void test_32_bit_paging(void **state)
{
	regs.efer = 0;
	regs.cr4 = 0x10;
	put32(0x1000 + 0x3fb * 4, 0x2000 | P);
	put32(0x2000 + 0x200 * 4, 0xfee00000 | P);
	maps_to(0xfee000b0, 0xfee000b0);
	put32(0x1000 + 0x300 * 4, 0x00c00000 | P | PS);
	maps_to(0xc0123456, 0x00d23456);
	put32(0x1000 + 0x300 * 4, 0x00c06000 | P | PS); /* PSE-36: bits 32 and 33 */
	maps_to(0xc0123456, 0x300d23456);
	fails(0x1000, E_FAULT, 0);
	regs.cr4 = 0; /* PS means nothing: it is a table */
	put32(0x1000 + 0x300 * 4, 0x00003000 | P | PS);
	put32(0x3000 + 0x123 * 4, 0x00abc000 | P);
	maps_to(0xc0123456, 0x00abc456);
}

static void test_pae_paging(void **state)
{
	regs.efer = 0;
	regs.cr3 = 0x1020;
	put64(0x1020 + 3 * 8, 0x2000 | P);
	put64(0x2000, 0x3000 | P | W);
	put64(0x3000 + 0x123 * 8, 0x123456000 | P | NX);
	put64(0x2000 + 8, 0x240000000 | P | PS);
	maps_to(0xc0123456, 0x123456456);
	maps_to(0xc0212345, 0x240012345);
	fails(0x1000, E_FAULT, 0);
	assert_true(get64(0x1020 + 3 * 8) == (0x2000 | P)); /* no accessed bit in a PDPTE */
	assert_true(get64(0x2000) == (0x3000 | P | W | A));
}

static void test_rights(void **state)
{
	u64 gpa;
	u32 pf;

	map_kernel(0x5000 | P);
	assert_int_equal(gpt_access(&mem, &regs, KERNEL, GPT_PF_WRITE, &gpa, &pf), E_FAULT);
	assert_int_equal(pf, GPT_PF_PRESENT | GPT_PF_WRITE);
	assert_int_equal(gpt_access(&mem, &regs, KERNEL, GPT_PF_USER, &gpa, &pf), E_FAULT);
	assert_int_equal(pf, GPT_PF_PRESENT | GPT_PF_USER);
	regs.cr0 &= ~BIT(16); /* without WP a supervisor writes everywhere, a user does not */
	assert_int_equal(gpt_access(&mem, &regs, KERNEL, GPT_PF_WRITE, &gpa, &pf), 0);
	put64(0x1000 + 511 * 8, 0x2000 | P | U);
	put64(0x2000 + 510 * 8, 0x3000 | P | W | U);
	put64(0x3000 + 9 * 8, 0x4000 | P | W | U);
	put64(0x4000 + 0x34 * 8, 0x5000 | P | W | U);
	assert_int_equal(gpt_access(&mem, &regs, KERNEL, GPT_PF_USER, &gpa, &pf), 0);
	assert_int_equal(gpt_access(&mem, &regs, KERNEL, GPT_PF_USER | GPT_PF_WRITE, &gpa, &pf),
			 E_FAULT);
	assert_int_equal(pf, GPT_PF_PRESENT | GPT_PF_USER | GPT_PF_WRITE);
	assert_int_equal(gpt_access(&mem, &regs, 0, GPT_PF_USER | GPT_PF_WRITE, &gpa, &pf),
			 E_FAULT);
	assert_int_equal(pf, GPT_PF_USER | GPT_PF_WRITE);
}

static void test_accessed_and_dirty_bits(void **state)
{
	u64 gpa;
	u32 pf;

	map_kernel(0x5000 | P | W);
	assert_int_equal(gpt_translate(&mem, &regs, KERNEL, &gpa), 0);
	assert_true(get64(0x4000 + 0x34 * 8) == (0x5000 | P | W));
	assert_int_equal(gpt_access(&mem, &regs, KERNEL, 0, &gpa, &pf), 0);
	assert_true(get64(0x4000 + 0x34 * 8) == (0x5000 | P | W | A));
	assert_true(get64(0x1000 + 511 * 8) == (0x2000 | P | W | A));
	assert_int_equal(gpt_access(&mem, &regs, KERNEL, GPT_PF_WRITE, &gpa, &pf), 0);
	assert_true(get64(0x4000 + 0x34 * 8) == (0x5000 | P | W | A | D));
	assert_true(get64(0x3000 + 9 * 8) == (0x4000 | P | W | A));
	/* none where the access faults */
	map_kernel(0x5000 | P);
	assert_int_equal(gpt_access(&mem, &regs, KERNEL, GPT_PF_WRITE, &gpa, &pf), E_FAULT);
	assert_true(get64(0x4000 + 0x34 * 8) == (0x5000 | P));
	/* 4-byte entries leave their neighbour alone */
	regs.efer = 0;
	regs.cr4 = 0x10;
	put32(0x1000, 0x2000 | P | W);
	put32(0x1004, 0xabcdef00);
	put32(0x2000, 0x5000 | P | W);
	assert_int_equal(gpt_access(&mem, &regs, 0x10, GPT_PF_WRITE, &gpa, &pf), 0);
	assert_int_equal(get32(0x2000), 0x5000 | P | W | A | D);
	assert_int_equal(get32(0x1000), 0x2000 | P | W | A);
	assert_int_equal(get32(0x1004), 0xabcdef00);
}

/* The short walk and the general one agree on random tables. */
static void test_both_walks_agree(void **state)
{
	u64 x = 88172645463325252ull;
	unsigned mapped = 0;

#define RANDOM() (x ^= x << 13, x ^= x >> 7, x ^= x << 17)
	for (int round = 0; round < 200; round++) {
		/* 8 pages of entries that mostly lead to one of these pages */
		for (u64 gpa = 0x1000; gpa < 0x9000; gpa += 8) {
			u64 r = RANDOM(), entry = 0x1000 + (r & 7) * 0x1000;

			entry |= r >> 32 & 0xe7e; /* without PS */
			entry |= (r >> 8 & 15) ? P : 0;
			entry |= (r >> 12 & 7) ? 0 : PS;
			entry |= (r >> 16 & 63) ? 0 : NX;
			entry ^= (r >> 24 & 63) ? 0 : HIGH_GPA;
			put64(gpa, entry);
		}
		for (int i = 0; i < 200; i++) {
			u64 gla = RANDOM(), fast = 0, slow = 0;
			u32 pf;
			int err = gpt_translate(&mem, &regs, gla, &fast);
			int err2 = gpt_access(&mem, &regs, gla, 0, &slow, &pf);

			if (err2 == E_FAULT && pf & GPT_PF_RSVD)
				continue;
			assert_int_equal(err, err2);
			assert_true(err || fast == slow);
			mapped += !err;
		}
	}
	assert_true(mapped > 1000);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(test_no_paging),
	    TEST(test_four_levels),
	    TEST(test_large_pages),
	    TEST(test_each_level_may_be_absent),
	    TEST(test_tables_above_4g_and_with_ignored_bits),
	    TEST(test_tables_outside_ram_are_refused),
	    TEST(test_reserved_page_size_bits),
	    TEST(test_five_levels_are_not_supported),
	    TEST(test_32_bit_paging),
	    TEST(test_pae_paging),
	    TEST(test_rights),
	    TEST(test_accessed_and_dirty_bits),
	    TEST(test_both_walks_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
