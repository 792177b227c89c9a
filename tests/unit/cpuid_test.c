/* SPDX-License-Identifier: BSD-2-Clause */
/* What CPUID tells a guest, over a host that has everything and one that has little. */
// sources: hv/vmx/cpuid.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hv/vmx/cpuid.h"

static struct cpuid_table table;

/* All features there are; caches in leaf 4 subleaves 0 to 3; XSAVE components with sizes. */
static void rich_host(u32 leaf, u32 subleaf, u32 r[4])
{
	r[0] = r[1] = r[2] = r[3] = 0xffffffff;
	if (leaf == 0)
		r[0] = 0x20;
	else if (leaf == 4)
		r[0] = subleaf < 4 ? 0xfc1fc100 | (subleaf + 1) : 0;
	else if (leaf == 0xd && subleaf >= 2)
		r[0] = 256, r[1] = 576 + 256 * (subleaf - 2);
	else if (leaf == 0x80000000)
		r[0] = 0x80000008;
}

static void poor_host(u32 leaf, u32 subleaf, u32 r[4])
{
	r[0] = r[1] = r[2] = r[3] = 0;
	if (leaf == 0x80000000)
		r[0] = 0x80000004;
}

static const struct cpuid_entry *get(u32 leaf, u32 subleaf)
{
	const struct cpuid_entry *e = cpuid_find(&table, leaf, subleaf);

	assert_non_null(e);
	return e;
}

static void build(u32 vcpus, u64 xcr0, cpuid_fn host)
{
	struct cpuid_features f = {.nr_vcpus = vcpus,
				   .max_vcpus = vcpus,
				   .kvm = 0x0100000b,
				   .xcr0 = xcr0,
				   .rdtscp = true,
				   .invpcid = true};

	cpuid_build(&table, &f, host);
}

static void the_table_is_sorted_and_fits(void **state)
{
	build(256, 0xe7, rich_host);
	assert_in_range(table.nr, 20, CPUID_MAX_ENTRIES);
	for (u32 i = 1; i < table.nr; i++) {
		u64 a = (u64)table.entry[i - 1].leaf << 32 | table.entry[i - 1].subleaf;
		u64 b = (u64)table.entry[i].leaf << 32 | table.entry[i].subleaf;

		assert_true(a < b);
	}
}

static void no_guest_sees_vmx_monitor_or_machine_checks(void **state)
{
	build(1, 7, rich_host);
	assert_int_equal(get(1, 0)->ecx & (1 << 5 | 1 << 3 | 1 << 6 | 1 << 15), 0);
	assert_int_equal(get(1, 0)->edx & (1 << 7 | 1 << 14 | 1 << 22 | 1 << 29), 0);
	assert_int_equal(get(6, 0)->ecx, 0);	     /* no APERF/MPERF */
	assert_int_equal(get(0xd, 1)->eax & ~1u, 0); /* no XSAVES, XSAVEC */
}

static void what_we_emulate_is_there_even_on_a_poor_host(void **state)
{
	build(2, 3, poor_host);
	assert_int_equal(get(1, 0)->ecx & (1u << 21 | 1u << 24 | 1u << 31),
			 1u << 21 | 1u << 24 | 1u << 31);
	assert_int_equal(get(1, 0)->edx & 1 << 9, 1 << 9);
	assert_int_equal(get(6, 0)->eax, 4);
	assert_int_equal(get(0x80000007, 0)->edx, 1 << 8);
	assert_int_equal(get(0x80000000, 0)->eax, 0x80000008);
}

static void the_hypervisor_leaves_speak_kvm(void **state)
{
	build(1, 7, rich_host);
	assert_int_equal(get(0x40000000, 0)->ebx, 0x4b4d564b);
	assert_int_equal(get(0x40000000, 0)->ecx, 0x564b4d56);
	assert_int_equal(get(0x40000000, 0)->edx, 0x4d);
	assert_int_equal(get(0x40000001, 7)->eax, 0x0100000b);
	assert_null(cpuid_find(&table, 0x40000002, 0));
}

static void topology_leaves_agree(void **state)
{
	for (u32 n = 1; n <= 256; n++) {
		build(n, 7, rich_host);
		assert_int_equal(get(0xb, 0)->ebx, 1);
		assert_int_equal(get(0xb, 1)->ebx, n);
		assert_true(1u << get(0xb, 1)->eax >= n);
		assert_true(get(0xb, 1)->eax == 0 || 1u << (get(0xb, 1)->eax - 1) < n);
		assert_int_equal(get(1, 0)->edx >> 28 & 1, n > 1);
		assert_int_equal(get(4, 0)->eax >> 14 & 0xfff, 0); /* a cache serves one vCPU */
		if (n <= 64)
			assert_true((get(4, 0)->eax >> 26) + 1 >= n);
	}
}

static void ids_of_spares_are_in_the_same_package(void **state)
{
	struct cpuid_features f = {.nr_vcpus = 2, .max_vcpus = 8, .kvm = 1, .xcr0 = 7};

	cpuid_build(&table, &f, rich_host);
	assert_int_equal(get(0xb, 1)->ebx, 2);
	assert_int_equal(get(0xb, 1)->eax, 3);
	assert_int_equal(get(1, 0)->ebx >> 16 & 0xff, 8);
	assert_int_equal(get(4, 0)->eax >> 26, 7);
	f.nr_vcpus = 1;
	cpuid_build(&table, &f, rich_host);
	assert_int_equal(get(1, 0)->edx >> 28 & 1, 1);
}

static void avx512_is_only_shown_with_its_state(void **state)
{
	build(1, 7, rich_host);
	assert_int_equal(get(7, 0)->ebx & 1u << 16, 0);
	build(1, 0xe7, rich_host);
	assert_int_equal(get(7, 0)->ebx & 1u << 16, 1u << 16);
}

static void xsave_size_covers_the_enabled_components_only(void **state)
{
	build(1, 7, rich_host);
	assert_int_equal(get(0xd, 0)->eax, 7);
	assert_int_equal(get(0xd, 0)->ebx, 576 + 256);
	assert_null(cpuid_find(&table, 0xd, 5));
	build(1, 0xe7, rich_host);
	assert_int_equal(get(0xd, 0)->ebx, 576 + 256 * 5 + 256);
	assert_int_equal(get(0xd, 7)->eax, 256);
}

static void leaves_that_do_not_exist(void **state)
{
	build(1, 7, rich_host);
	assert_null(cpuid_find(&table, 3, 0));
	assert_null(cpuid_find(&table, 4, 4));
	assert_null(cpuid_find(&table, 0xb, 3));
	/* beyond the highest basic leaf, and in ranges that are nobody's: as the highest basic one
	 */
	assert_ptr_equal(cpuid_find(&table, 0x15, 0), get(0xd, 0));
	assert_ptr_equal(cpuid_find(&table, 0x80000010, 0), get(0xd, 0));
	assert_ptr_equal(cpuid_find(&table, 0xffffffff, 0), get(0xd, 0));
	/* subleaves of leaves that have none do not matter */
	assert_ptr_equal(cpuid_find(&table, 1, 99), get(1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_table_is_sorted_and_fits),
	    cmocka_unit_test(no_guest_sees_vmx_monitor_or_machine_checks),
	    cmocka_unit_test(what_we_emulate_is_there_even_on_a_poor_host),
	    cmocka_unit_test(the_hypervisor_leaves_speak_kvm),
	    cmocka_unit_test(topology_leaves_agree),
	    cmocka_unit_test(ids_of_spares_are_in_the_same_package),
	    cmocka_unit_test(avx512_is_only_shown_with_its_state),
	    cmocka_unit_test(xsave_size_covers_the_enabled_components_only),
	    cmocka_unit_test(leaves_that_do_not_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
