/* SPDX-License-Identifier: BSD-2-Clause */
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c hv/apic/vpic.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c
/* The 8259A pair: what kernels probe, priorities, EOI, the cascade, spurious interrupts, LINT0. */
#include "tests/unit/vapic_fixture.h"

#include "hv/apic/vpic.h"

static struct vpic pic;
static struct vlapic *l = &fix_cpu[0];

static void wr(u16 port, u8 value)
{
	vpic_write(&pic, port, value);
}

/* As kernels initialise it: master at 0x30, slave at 0x38, nothing masked. */
static void init_with(u8 icw4)
{
	fix_reset(1, false);
	vlapic_virtual_wire(l);
	vpic_setup(&pic, l);
	wr(0x20, 0x11);
	wr(0x21, 0x30);
	wr(0x21, 0x04);
	wr(0x21, icw4);
	wr(0xa0, 0x11);
	wr(0xa1, 0x38);
	wr(0xa1, 0x02);
	wr(0xa1, icw4);
	wr(0x21, 0x00);
	wr(0xa1, 0x00);
}

static void init(void)
{
	init_with(0x01);
}

static void pulse(u32 irq)
{
	vpic_set_irq(&pic, irq, true);
	vpic_set_irq(&pic, irq, false);
}

/* The vector that the CPU gets, or -1 if INTR is low. */
static int take(void)
{
	return vlapic_extint(l) ? vpic_accept(&pic) : -1;
}

static u8 isr(u16 port)
{
	wr(port, 0x0b);
	return vpic_read(&pic, port);
}

static u8 irr(u16 port)
{
	wr(port, 0x0a);
	return vpic_read(&pic, port);
}

static void mask_register_answers_the_probe_of_kernels(void **state)
{
	fix_reset(1, false);
	vpic_setup(&pic, l);
	assert_int_equal(vpic_read(&pic, 0x21), 0xff);
	wr(0xa1, 0xff);
	wr(0x21, 0xfb);
	assert_int_equal(vpic_read(&pic, 0x21), 0xfb);
	assert_int_equal(vpic_read(&pic, 0xa1), 0xff);
}

static void nothing_comes_before_it_is_initialised_and_unmasked(void **state)
{
	fix_reset(1, false);
	vlapic_virtual_wire(l);
	vpic_setup(&pic, l);
	pulse(0);
	assert_int_equal(take(), -1);
	init();
	assert_int_equal(take(), -1); /* ICW1 dropped the old edge */
	wr(0x21, 0x01);
	pulse(0);
	assert_int_equal(take(), -1);
	assert_int_equal(irr(0x20), 0x01);
	wr(0x21, 0x00);
	assert_int_equal(take(), 0x30);
}

static void vectors_and_priorities_of_the_pair(void **state)
{
	static const u32 order[] = {0, 1, 8, 9, 10, 11, 12, 13, 14, 15, 3, 4, 5, 6, 7};
	u32 i;

	init();
	for (i = 0; i < ARRAY_SIZE(order); i++)
		pulse(order[ARRAY_SIZE(order) - 1 - i]);
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		assert_int_equal(take(), 0x30 + order[i]);
		if (order[i] >= 8)
			wr(0xa0, 0x20);
		wr(0x20, 0x20);
	}
	assert_int_equal(take(), -1);
	assert_int_equal(isr(0x20) | isr(0xa0) | irr(0x20) | irr(0xa0), 0);
}

static void lower_waits_for_eoi_and_higher_nests(void **state)
{
	init();
	pulse(4);
	assert_int_equal(take(), 0x34);
	pulse(5);
	assert_int_equal(take(), -1);
	pulse(1);
	assert_int_equal(take(), 0x31);
	assert_int_equal(isr(0x20), 0x12);
	wr(0x20, 0x20); /* non-specific: the highest */
	assert_int_equal(isr(0x20), 0x10);
	assert_int_equal(take(), -1);
	wr(0x20, 0x64); /* specific, IRQ 4 */
	assert_int_equal(take(), 0x35);
}

static void slave_waits_for_both_eois(void **state)
{
	init();
	pulse(8);
	assert_int_equal(take(), 0x38);
	assert_int_equal(isr(0x20), 0x04);
	assert_int_equal(isr(0xa0), 0x01);
	pulse(9);
	assert_int_equal(take(), -1);
	wr(0xa0, 0x60); /* specific EOI on the slave, then on the cascade, as Linux does */
	assert_int_equal(take(), -1);
	wr(0x20, 0x62);
	assert_int_equal(take(), 0x39);
}

static void special_fully_nested_lets_the_slave_interrupt_itself(void **state)
{
	init_with(0x11);
	pulse(12);
	assert_int_equal(take(), 0x3c);
	pulse(14);
	assert_int_equal(take(), -1);
	pulse(8);
	assert_int_equal(take(), 0x38);
}

static void request_that_went_away_is_spurious_7_or_15(void **state)
{
	init();
	wr(0x4d0, 0x20);
	vpic_set_irq(&pic, 5, true);
	assert_true(vlapic_extint(l));
	vpic_set_irq(&pic, 5, false);
	assert_int_equal(vpic_accept(&pic), 0x37);
	assert_int_equal(isr(0x20), 0);

	wr(0x4d1, 0x02);
	vpic_set_irq(&pic, 9, true);
	vpic_set_irq(&pic, 9, false);
	assert_int_equal(vpic_accept(&pic), 0x3f);
	assert_int_equal(isr(0xa0), 0);
	assert_int_equal(isr(0x20), 0x04); /* the master believed it: it wants its EOI */
}

static void level_comes_again_until_the_line_falls(void **state)
{
	init();
	wr(0x4d0, 0xff);
	wr(0x4d1, 0xff);
	assert_int_equal(vpic_read(&pic, 0x4d0), 0xf8);
	assert_int_equal(vpic_read(&pic, 0x4d1), 0xde);
	vpic_set_irq(&pic, 5, true);
	assert_int_equal(take(), 0x35);
	wr(0x20, 0x20);
	assert_int_equal(take(), 0x35);
	vpic_set_irq(&pic, 5, false);
	wr(0x20, 0x20);
	assert_int_equal(take(), -1);
}

static void edge_needs_a_rising_line(void **state)
{
	init();
	vpic_set_irq(&pic, 5, true);
	assert_int_equal(take(), 0x35);
	wr(0x20, 0x20);
	vpic_set_irq(&pic, 5, true);
	assert_int_equal(take(), -1);
	vpic_set_irq(&pic, 5, false);
	vpic_set_irq(&pic, 5, true);
	assert_int_equal(take(), 0x35);
}

static void auto_eoi_leaves_nothing_in_service(void **state)
{
	init_with(0x03);
	pulse(0);
	pulse(8);
	assert_int_equal(take(), 0x30);
	assert_int_equal(isr(0x20), 0);
	assert_int_equal(take(), 0x38);
	assert_int_equal(isr(0x20) | isr(0xa0), 0);
	assert_int_equal(take(), -1);
}

static void rotation_changes_who_is_first(void **state)
{
	init();
	pulse(3);
	assert_int_equal(take(), 0x33);
	wr(0x20, 0xa0); /* rotate on non-specific EOI: 3 becomes the lowest */
	pulse(1);
	pulse(4);
	assert_int_equal(take(), 0x34);
	wr(0x20, 0x20);
	assert_int_equal(take(), 0x31);
	wr(0x20, 0x20);
	wr(0x20, 0xc0); /* set priority: 0 is the lowest */
	pulse(0);
	pulse(7);
	assert_int_equal(take(), 0x37);
	wr(0x20, 0xe7); /* rotate on specific EOI */
	assert_int_equal(take(), 0x30);
}

static void special_mask_lets_lower_ones_through(void **state)
{
	init();
	pulse(1);
	assert_int_equal(take(), 0x31);
	pulse(6);
	assert_int_equal(take(), -1);
	wr(0x21, 0x02);
	wr(0x20, 0x68);
	assert_int_equal(take(), 0x36);
	wr(0x20, 0x48);
	assert_int_equal(isr(0x20), 0x42);
}

static void poll_command_acknowledges_by_a_read(void **state)
{
	init();
	pulse(6);
	vpic_set_irq(&pic, 7, true);
	wr(0x20, 0x0c);
	assert_int_equal(vpic_read(&pic, 0x20), 0x86);
	assert_int_equal(vpic_read(&pic, 0x20), 0x80); /* only one read: this is the IRR */
	assert_int_equal(isr(0x20), 0x40);
	assert_int_equal(take(), -1);
	wr(0x20, 0x0c);
	assert_int_equal(vpic_read(&pic, 0x20), 0x00);
}

static void output_follows_to_lint0_and_kicks_on_a_rise(void **state)
{
	init();
	fix_forget_kicks();
	vpic_set_irq(&pic, 0, true);
	assert_true(pic.output);
	assert_true(vlapic_has_work(l));
	assert_int_equal(fix_kicks[0], 1);
	wr(0x21, 0xff);
	assert_false(pic.output);
	assert_false(vlapic_has_work(l));
	wr(0x21, 0x00);
	assert_int_equal(take(), 0x30);
	assert_false(vlapic_has_work(l));
}

static void masked_lvt0_keeps_it_out(void **state)
{
	init();
	fix_write(l, APIC_LVT_LINT0, 0x10700);
	fix_forget_kicks();
	pulse(0);
	assert_int_equal(fix_kicks[0], 0);
	assert_int_equal(take(), -1);
	fix_write(l, APIC_LVT_LINT0, 0x700);
	assert_int_equal(take(), 0x30);
}

static void cascade_input_is_not_a_pin(void **state)
{
	init();
	vpic_set_irq(&pic, 2, true);
	assert_int_equal(take(), -1);
	assert_int_equal(irr(0x20), 0);
}

static void reset_masks_all_and_lowers_the_output(void **state)
{
	init();
	vpic_set_irq(&pic, 0, true);
	vpic_reset(&pic);
	assert_int_equal(take(), -1);
	assert_int_equal(vpic_read(&pic, 0x21), 0xff);
	assert_false(vlapic_has_work(l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(mask_register_answers_the_probe_of_kernels),
	    cmocka_unit_test(nothing_comes_before_it_is_initialised_and_unmasked),
	    cmocka_unit_test(vectors_and_priorities_of_the_pair),
	    cmocka_unit_test(lower_waits_for_eoi_and_higher_nests),
	    cmocka_unit_test(slave_waits_for_both_eois),
	    cmocka_unit_test(special_fully_nested_lets_the_slave_interrupt_itself),
	    cmocka_unit_test(request_that_went_away_is_spurious_7_or_15),
	    cmocka_unit_test(level_comes_again_until_the_line_falls),
	    cmocka_unit_test(edge_needs_a_rising_line),
	    cmocka_unit_test(auto_eoi_leaves_nothing_in_service),
	    cmocka_unit_test(rotation_changes_who_is_first),
	    cmocka_unit_test(special_mask_lets_lower_ones_through),
	    cmocka_unit_test(poll_command_acknowledges_by_a_read),
	    cmocka_unit_test(output_follows_to_lint0_and_kicks_on_a_rise),
	    cmocka_unit_test(masked_lvt0_keeps_it_out),
	    cmocka_unit_test(cascade_input_is_not_a_pin),
	    cmocka_unit_test(reset_masks_all_and_lowers_the_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
