/* SPDX-License-Identifier: BSD-2-Clause */
/* boot/madt.c: ACPI tables in a small fake memory, sound and broken in every field. */
// sources: boot/madt.c
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "boot/madt.h"
#include "hv/lib/errors.h"
#include "tests/unit/boot_madt_tables.h"

static struct boot_cpu cpus[4];
static struct cpu_list list;
static const char *why;

static const void *mem_read(void *ctx, u64 addr, size_t size)
{
	return addr <= sizeof(mem) && size <= sizeof(mem) - addr ? mem + addr : NULL;
}

static int setup(void **state)
{
	make_tables();
	list = (struct cpu_list){.cpus = cpus, .max = 4};
	why = NULL;
	return 0;
}

static int find(void)
{
	return madt_find_cpus(RSDP, mem_read, NULL, &list, &why);
}

static void assert_fails(int err, const char *table)
{
	assert_int_equal(find(), err);
	assert_string_equal(why, table);
	assert_int_equal(list.nr, 0);
}

static void finds_the_enabled_cpus_through_the_xsdt(void **state)
{
	assert_int_equal(find(), 0);
	assert_int_equal(list.nr, 3);
	assert_int_equal(cpus[0].apic_id, 4);
	assert_int_equal(cpus[1].apic_id, 6);
	assert_int_equal(cpus[2].apic_id, 0x1234);
}

static void finds_them_through_the_rsdt_of_acpi_1(void **state)
{
	put(ROOT + 36, OTHER, 4);
	put(ROOT + 40, MADT, 4);
	finish_table(ROOT, "RSDT", 44);
	put(RSDP + 16, ROOT, 4);
	finish_rsdp(0);
	assert_int_equal(find(), 0);
	assert_int_equal(list.nr, 3);
}

static void a_cpu_listed_twice_counts_once(void **state)
{
	add_x2apic(4, 1);
	finish_table(MADT, "APIC", madt_size);
	assert_int_equal(find(), 0);
	assert_int_equal(list.nr, 3);
}

static void cpus_that_do_not_fit_are_counted(void **state)
{
	add_lapic(20, 1);
	add_lapic(21, 1);
	add_lapic(22, 1);
	finish_table(MADT, "APIC", madt_size);
	assert_int_equal(find(), 0);
	assert_int_equal(list.nr, 4);
	assert_int_equal(list.nr_lost, 2);
}

static void a_bad_rsdp_is_named(void **state)
{
	mem[RSDP + 1] = 'X';
	assert_fails(E_FORMAT, "RSDP");
	setup(state);
	mem[RSDP + 8]++;
	assert_fails(E_FORMAT, "RSDP");
}

static void no_rsdp_is_an_error_not_a_crash(void **state)
{
	assert_int_equal(madt_find_cpus(0, mem_read, NULL, &list, &why), E_FORMAT);
	assert_int_equal(madt_find_cpus(~0ull, mem_read, NULL, &list, &why), E_FORMAT);
	assert_int_equal(madt_find_cpus(sizeof(mem) - 19, mem_read, NULL, &list, &why), E_FORMAT);
}

static void a_bad_extended_checksum_falls_back_to_the_rsdt(void **state)
{
	mem[RSDP + 32]++;
	assert_fails(E_FORMAT, "RSDT"); /* which is at 0xdead here */
}

static void a_bad_root_table_is_named(void **state)
{
	mem[ROOT + 9]++;
	assert_fails(E_FORMAT, "XSDT");
	setup(state);
	finish_table(ROOT, "XSDX", 52);
	assert_fails(E_FORMAT, "XSDT");
	setup(state);
	put(ROOT + 4, 35, 4);
	assert_fails(E_FORMAT, "XSDT");
	setup(state);
	put(ROOT + 4, 0xffffffff, 4);
	assert_fails(E_FORMAT, "XSDT");
}

static void a_bad_madt_is_named(void **state)
{
	mem[MADT + madt_size - 1] ^= 0x80;
	assert_fails(E_FORMAT, "MADT");
	setup(state);
	finish_table(MADT, "APIC", 43);
	assert_fails(E_FORMAT, "MADT");
}

static void a_missing_madt_is_not_found(void **state)
{
	finish_table(ROOT, "XSDT", 44);
	assert_fails(E_NOENT, "MADT");
	setup(state);
	put(ROOT + 44, 0, 8);
	finish_table(ROOT, "XSDT", 52);
	assert_fails(E_NOENT, "MADT");
	setup(state);
	put(ROOT + 36, 0x123456789000, 8); /* unreadable: not a reason to miss what follows */
	finish_table(ROOT, "XSDT", 52);
	assert_int_equal(find(), 0);
	assert_int_equal(list.nr, 3);
}

static void an_entry_of_impossible_length_ends_the_list(void **state)
{
	mem[MADT + 44 + 8 + 1] = 0; /* the second entry: would loop for ever */
	finish_table(MADT, "APIC", madt_size);
	assert_int_equal(find(), 0);
	assert_int_equal(list.nr, 1);
	setup(state);
	mem[MADT + 44 + 8 + 1] = 255;
	finish_table(MADT, "APIC", madt_size);
	assert_int_equal(find(), 0);
	assert_int_equal(list.nr, 1);
	setup(state);
	mem[MADT + 44 + 1] = 4; /* too short for its kind: what is in it is not believed */
	put(MADT + 48, 0x0400, 2);
	finish_table(MADT, "APIC", madt_size);
	assert_int_equal(find(), 0);
	assert_int_not_equal(list.cpus[0].apic_id, 4);
}

static void the_boot_cpu_comes_first_and_alone_is_marked(void **state)
{
	find();
	cpu_list_set_bsp(&list, 6);
	assert_int_equal(list.nr, 3);
	assert_int_equal(cpus[0].apic_id, 6);
	assert_int_equal(cpus[0].is_bsp, 1);
	assert_int_equal(cpus[1].apic_id, 4);
	assert_int_equal(cpus[1].is_bsp, 0);
	assert_int_equal(cpus[2].apic_id, 0x1234);
}

static void a_boot_cpu_that_was_not_listed_is_added(void **state)
{
	cpu_list_set_bsp(&list, 7);
	assert_int_equal(list.nr, 1);
	assert_int_equal(cpus[0].apic_id, 7);
	find();
	assert_int_equal(list.nr, 4);
	cpu_list_set_bsp(&list, 99); /* full: the last gives way */
	assert_int_equal(list.nr, 4);
	assert_int_equal(list.nr_lost, 1);
	assert_int_equal(cpus[0].apic_id, 99);
	assert_int_equal(cpus[1].apic_id, 7);
	assert_int_equal(cpus[1].is_bsp, 0);
	assert_int_equal(cpus[3].apic_id, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(finds_the_enabled_cpus_through_the_xsdt, setup),
	    cmocka_unit_test_setup(finds_them_through_the_rsdt_of_acpi_1, setup),
	    cmocka_unit_test_setup(a_cpu_listed_twice_counts_once, setup),
	    cmocka_unit_test_setup(cpus_that_do_not_fit_are_counted, setup),
	    cmocka_unit_test_setup(a_bad_rsdp_is_named, setup),
	    cmocka_unit_test_setup(no_rsdp_is_an_error_not_a_crash, setup),
	    cmocka_unit_test_setup(a_bad_extended_checksum_falls_back_to_the_rsdt, setup),
	    cmocka_unit_test_setup(a_bad_root_table_is_named, setup),
	    cmocka_unit_test_setup(a_bad_madt_is_named, setup),
	    cmocka_unit_test_setup(a_missing_madt_is_not_found, setup),
	    cmocka_unit_test_setup(an_entry_of_impossible_length_ends_the_list, setup),
	    cmocka_unit_test_setup(the_boot_cpu_comes_first_and_alone_is_marked, setup),
	    cmocka_unit_test_setup(a_boot_cpu_that_was_not_listed_is_added, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
