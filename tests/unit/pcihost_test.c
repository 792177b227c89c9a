/* SPDX-License-Identifier: BSD-2-Clause */
/* The guests' PCI bus: what a kernel finds when it probes mechanism 1 and scans the bus. */
// sources: hv/dev/pcihost.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "hv/dev/pcihost.h"
#include "hv/dev/ports.h"

#define ENABLE 0x80000000u
#define BUS_DEVICE(bus, device, function) ((bus) << 16 | (device) << 11 | (function) << 8)

static struct pcihost pci;

static int setup(void **state)
{
	pcihost_reset(&pci);
	return 0;
}

/* As a kernel reads @size bytes of register @reg. */
static u32 config(u32 where, u32 reg, unsigned size)
{
	u32 mask = size == 4 ? UINT32_MAX : (1u << 8 * size) - 1;

	pcihost_write_address(&pci, 4, ENABLE | where | (reg & 0xfc));
	return pcihost_read_data(&pci, PORT_PCI_DATA + (reg & 3), size) & mask;
}

static void the_address_reads_back_as_a_double_word_only(void **state)
{
	pcihost_write_address(&pci, 4, ENABLE | 0x123454);
	assert_int_equal(pcihost_read_address(&pci, 4), ENABLE | 0x123454);
	assert_int_equal(pcihost_read_address(&pci, 1), UINT32_MAX);
	assert_int_equal(pcihost_read_address(&pci, 2), UINT32_MAX);
	pcihost_write_address(&pci, 1, 0x11);
	pcihost_write_address(&pci, 2, 0x1111);
	assert_int_equal(pcihost_read_address(&pci, 4), ENABLE | 0x123454);
}

static void bits_of_the_address_that_are_not_there_read_zero(void **state)
{
	pcihost_write_address(&pci, 4, UINT32_MAX);
	assert_int_equal(pcihost_read_address(&pci, 4), 0x80fffffc);
}

static void the_bridge_has_class_and_vendor_in_every_width(void **state)
{
	assert_int_equal(config(0, 0x0a, 2), 0x0600);
	assert_int_equal(config(0, 0x0b, 1), 0x06);
	assert_int_equal(config(0, 0x08, 4), 0x06000000);
	assert_int_equal(config(0, 0x00, 2), 0x8086);
	assert_int_equal(config(0, 0x00, 4) & 0xffff, 0x8086);
	assert_int_equal(config(0, 0x00, 4) >> 16, config(0, 0x02, 2));
}

static void the_bridge_has_no_functions_resources_or_capabilities(void **state)
{
	assert_int_equal(config(0, 0x04, 4), 0); /* command and status */
	assert_int_equal(config(0, 0x0e, 1), 0); /* header type: a device with one function */
	for (u32 reg = 0x0c; reg < 0x100; reg += 4)
		assert_int_equal(config(0, reg, 4), 0);
}

static void nothing_else_is_on_any_bus(void **state)
{
	for (u32 where = 0x100; where < 1 << 24; where += 0x100) {
		if (config(where, 0, 4) != UINT32_MAX || config(where, 0x0a, 2) != 0xffff)
			fail_msg("something is at %06x", where);
	}
}

static void without_the_enable_bit_nothing_answers(void **state)
{
	pcihost_write_address(&pci, 4, 8);
	assert_int_equal(pcihost_read_data(&pci, PORT_PCI_DATA, 4), UINT32_MAX);
}

static void an_access_across_the_end_reads_ones(void **state)
{
	pcihost_write_address(&pci, 4, ENABLE);
	assert_int_equal(pcihost_read_data(&pci, PORT_PCI_DATA + 1, 4), UINT32_MAX);
	assert_int_equal(pcihost_read_data(&pci, PORT_PCI_DATA + 3, 2), UINT32_MAX);
}

static void reset_clears_the_address(void **state)
{
	pcihost_write_address(&pci, 4, ENABLE);
	pcihost_reset(&pci);
	assert_int_equal(pcihost_read_address(&pci, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(the_address_reads_back_as_a_double_word_only, setup),
	    cmocka_unit_test_setup(bits_of_the_address_that_are_not_there_read_zero, setup),
	    cmocka_unit_test_setup(the_bridge_has_class_and_vendor_in_every_width, setup),
	    cmocka_unit_test_setup(the_bridge_has_no_functions_resources_or_capabilities, setup),
	    cmocka_unit_test_setup(nothing_else_is_on_any_bus, setup),
	    cmocka_unit_test_setup(without_the_enable_bit_nothing_answers, setup),
	    cmocka_unit_test_setup(an_access_across_the_end_reads_ones, setup),
	    cmocka_unit_test_setup(reset_clears_the_address, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
