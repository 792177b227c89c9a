/* SPDX-License-Identifier: BSD-2-Clause */
/* ACPI fixed hardware and the keyboard controller: power off, resets, probing. */
// sources: hv/dev/acpipm.c hv/dev/kbc.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "hv/dev/acpipm.h"
#include "hv/dev/kbc.h"
#include "hv/dev/ports.h"

static struct acpipm pm;
static struct kbc kbc;
static u64 now;

static int setup(void **state)
{
	now = 0;
	acpipm_init(&pm, now);
	kbc_init(&kbc);
	return 0;
}

static u32 pm_in(u16 port, unsigned size)
{
	return acpipm_read(&pm, port, size, now);
}

static void pm_out(u16 port, unsigned size, u32 value)
{
	acpipm_write(&pm, port, size, value, now);
}

static u8 kbc_in(u16 port)
{
	return (u8)kbc_read(&kbc, port, 1, now);
}

static void kbc_out(u16 port, u8 value)
{
	kbc_write(&kbc, port, 1, value, now);
}

static void test_timer_frequency_is_exact(void **state)
{
	assert_int_equal(pm_in(PORT_PM_TMR, 4), 0);
	now = 1000000000;
	assert_int_equal(pm_in(PORT_PM_TMR, 4), 3579545);
	now--;
	assert_int_equal(pm_in(PORT_PM_TMR, 4), 3579544);
	now = 86400 * 1000000000ull; /* a day: wraps at 32 bits */
	assert_int_equal(pm_in(PORT_PM_TMR, 4), (u32)(86400 * 3579545ull));
	assert_int_equal(pm_in(PORT_PM_TMR + 2, 2), (u32)(86400 * 3579545ull) >> 16);
}

static void test_always_in_acpi_mode(void **state)
{
	assert_int_equal(pm_in(PORT_PM1A_CNT, 2), 1);
	pm_out(PORT_PM1A_CNT, 2, 0);
	assert_int_equal(pm_in(PORT_PM1A_CNT, 2), 1);
}

static void test_s5_powers_off(void **state)
{
	u16 cnt = pm_in(PORT_PM1A_CNT, 2) & ~0x3c00;

	pm_out(PORT_PM1A_CNT, 2, cnt | ACPI_S5_TYP << 10); /* type first, as ACPICA does */
	assert_false(pm.poweroff);
	pm_out(PORT_PM1A_CNT, 2, cnt | ACPI_S5_TYP << 10 | 0x2000);
	assert_true(pm.poweroff);
	assert_int_equal(pm_in(PORT_PM1A_CNT, 2) & 0x2000, 0); /* SLP_EN reads 0 */
}

static void test_s5_by_the_high_byte_alone(void **state)
{
	pm_out(PORT_PM1A_CNT + 1, 1, ACPI_S5_TYP << 2 | 0x20);
	assert_true(pm.poweroff);
}

static void test_other_sleep_types_do_nothing(void **state)
{
	for (u32 type = 0; type < 8; type++)
		if (type != ACPI_S5_TYP)
			pm_out(PORT_PM1A_CNT, 2, type << 10 | 0x2000);
	assert_false(pm.poweroff);
}

static void test_power_button_raises_the_sci(void **state)
{
	acpipm_power_button(&pm, now);
	assert_false(pm.irq);
	pm_out(PORT_PM1A_EVT + 2, 2, 0x0100);
	assert_true(pm.irq);
	assert_int_equal(pm_in(PORT_PM1A_EVT, 4), 0x01000100);
	pm_out(PORT_PM1A_EVT, 2, 0x0001); /* another bit */
	assert_true(pm.irq);
	pm_out(PORT_PM1A_EVT, 2, 0x0100);
	assert_false(pm.irq);
	assert_int_equal(pm_in(PORT_PM1A_EVT, 2), 0);
}

static void test_enable_keeps_only_what_exists(void **state)
{
	pm_out(PORT_PM1A_EVT + 2, 2, 0xffff);
	assert_int_equal(pm_in(PORT_PM1A_EVT + 2, 2), 0x0721);
	pm_out(PORT_PM1A_EVT + 3, 1, 0);
	assert_int_equal(pm_in(PORT_PM1A_EVT + 2, 2), 0x0021);
}

static void test_timer_overflow(void **state)
{
	u64 half_ns = (2147483648ull * 1000000000 + 3579544) / 3579545, event;

	assert_true(acpipm_next_event(&pm, now) == UINT64_MAX);
	pm_out(PORT_PM1A_EVT + 2, 2, 0x0001);
	event = acpipm_next_event(&pm, now);
	assert_true(event == half_ns);
	now = event - 1;
	acpipm_run(&pm, now);
	assert_false(pm.irq);
	now = event;
	acpipm_run(&pm, now);
	assert_true(pm.irq);
	assert_int_equal(pm_in(PORT_PM_TMR, 4), 0x80000000);
	assert_true(acpipm_next_event(&pm, now) == UINT64_MAX);
	pm_out(PORT_PM1A_EVT, 2, 0x0001);
	assert_false(pm.irq);
	assert_true(acpipm_next_event(&pm, now) > now);
	/* without the enable bit it is only noted */
	pm_out(PORT_PM1A_EVT + 2, 2, 0);
	assert_true(acpipm_next_event(&pm, now) == UINT64_MAX);
	now += half_ns;
	assert_int_equal(pm_in(PORT_PM1A_EVT, 2), 1);
	assert_false(pm.irq);
}

static void test_reset_control_register(void **state)
{
	pm_out(PORT_RESET, 1, 0x02); /* which kind */
	assert_false(pm.reset);
	assert_int_equal(pm_in(PORT_RESET, 1), 0x02);
	pm_out(PORT_RESET, 1, 0x06);
	assert_true(pm.reset);
	setup(NULL);
	pm_out(PORT_RESET, 1, RESET_VALUE);
	assert_true(pm.reset);
	setup(NULL);
	pm_out(PORT_RESET, 1, 0x0e);
	assert_true(pm.reset);
	setup(NULL);
	pm_out(PORT_RESET, 1, 0x08);
	assert_false(pm.reset);
}

static void test_keyboard_reset(void **state)
{
	assert_int_equal(kbc_in(0x64) & 0x02, 0); /* never busy */
	kbc_out(0x64, 0xff);			  /* pulses nothing */
	assert_false(kbc.reset);
	kbc_out(0x64, 0xfe);
	assert_true(kbc.reset);
	setup(NULL);
	kbc_out(0x64, 0xd1);
	kbc_out(0x60, 0xdf); /* A20 on */
	assert_false(kbc.reset);
	kbc_out(0x64, 0xd1);
	kbc_out(0x60, 0xde);
	assert_true(kbc.reset);
}

static void test_port_92(void **state)
{
	assert_int_equal(kbc_in(0x92), 0x02);
	kbc_out(0x92, 0x02);
	assert_false(kbc.reset);
	kbc_out(0x92, 0x00);
	assert_int_equal(kbc_in(0x92) & 0x02, 0x02); /* A20 stays on */
	kbc_out(0x92, 0x03);
	assert_true(kbc.reset);
}

/* i8042_controller_check() to i8042_check_aux(): each answer is there at once. */
static void test_linux_probes_without_waiting(void **state)
{
	u8 ctr;

	assert_int_equal(kbc_in(0x64) & 0x01, 0); /* nothing to flush */
	kbc_out(0x64, 0xaa);
	assert_int_equal(kbc_in(0x64) & 0x01, 1);
	assert_int_equal(kbc_in(0x60), 0x55);
	assert_int_equal(kbc_in(0x64) & 0x01, 0);
	kbc_out(0x64, 0x20);
	assert_int_equal(kbc_in(0x64) & 0x01, 1);
	ctr = kbc_in(0x60);
	ctr = (ctr | 0x10) & ~0x01;
	kbc_out(0x64, 0x60);
	kbc_out(0x60, ctr);
	kbc_out(0x64, 0x20);
	assert_int_equal(kbc_in(0x60), ctr);
	kbc_out(0x64, 0xd3); /* AUX_LOOP must not come back as from a mouse */
	kbc_out(0x60, 0x5a);
	assert_int_equal(kbc_in(0x64) & 0x21, 0x01);
	assert_int_not_equal(kbc_in(0x60), 0x5a);
	kbc_out(0x64, 0xa9); /* AUX_TEST fails */
	assert_int_equal(kbc_in(0x60), 0x01);
}

static void test_a_missing_keyboard_answers_with_resend_and_an_interrupt(void **state)
{
	kbc_out(0x60, 0xf2);
	assert_true(kbc.irq);
	assert_int_equal(kbc_in(0x64) & 0x01, 1);
	assert_int_equal(kbc_in(0x60), 0xfe);
	assert_false(kbc.irq);
	kbc_out(0x64, 0x60);
	kbc_out(0x60, 0x00); /* interrupt off */
	kbc_out(0x60, 0xed);
	assert_false(kbc.irq);
	kbc_out(0x64, 0x60);
	kbc_out(0x60, 0x01);
	assert_true(kbc.irq);
	kbc_in(0x60);
	kbc_out(0x64, 0xaa); /* the controller's own answers raise none */
	assert_false(kbc.irq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_timer_frequency_is_exact, setup),
	    cmocka_unit_test_setup(test_always_in_acpi_mode, setup),
	    cmocka_unit_test_setup(test_s5_powers_off, setup),
	    cmocka_unit_test_setup(test_s5_by_the_high_byte_alone, setup),
	    cmocka_unit_test_setup(test_other_sleep_types_do_nothing, setup),
	    cmocka_unit_test_setup(test_power_button_raises_the_sci, setup),
	    cmocka_unit_test_setup(test_enable_keeps_only_what_exists, setup),
	    cmocka_unit_test_setup(test_timer_overflow, setup),
	    cmocka_unit_test_setup(test_reset_control_register, setup),
	    cmocka_unit_test_setup(test_keyboard_reset, setup),
	    cmocka_unit_test_setup(test_port_92, setup),
	    cmocka_unit_test_setup(test_linux_probes_without_waiting, setup),
	    cmocka_unit_test_setup(test_a_missing_keyboard_answers_with_resend_and_an_interrupt,
				   setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
