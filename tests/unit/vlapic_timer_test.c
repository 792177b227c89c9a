/* SPDX-License-Identifier: BSD-2-Clause */
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c
/* The timer of the guest local APIC: three modes, the divider, masks, lateness, reset. */
#include "tests/unit/vapic_fixture.h"

static struct vlapic *l = &fix_cpu[0];

#define ONESHOT 0x00000u
#define PERIODIC 0x20000u
#define DEADLINE 0x40000u
#define MASKED 0x10000u
#define VECTOR 0xef
#define DIVIDE_1 0xb

static void wr(u32 reg, u32 value, u64 now)
{
	assert_true(vlapic_msr_write(l, X2APIC_MSR(reg), value, now));
}

static u64 rd(u32 reg, u64 now)
{
	u64 value;

	assert_true(vlapic_msr_read(l, X2APIC_MSR(reg), now, &value));
	return value;
}

static void start(u32 mode, u32 tdcr, u32 count, u64 now)
{
	fix_online(1, true);
	wr(APIC_LVT_TIMER, mode | VECTOR, now);
	wr(APIC_TDCR, tdcr, now);
	wr(APIC_TMICT, count, now);
}

/* Takes the timer's interrupt: 1 if there was one. */
static int fired(void)
{
	int vector = fix_take(l, 0);

	if (vector < 0)
		return 0;
	assert_int_equal(vector, VECTOR);
	vlapic_eoi(l, 0);
	return 1;
}

static void one_shot_fires_once_at_its_time(void **state)
{
	start(ONESHOT, DIVIDE_1, 1000, 5000);
	assert_int_equal(vlapic_timer_deadline(l), 6000);
	vlapic_timer_expired(l, 5999);
	assert_int_equal(fired(), 0);
	vlapic_timer_expired(l, 6000);
	assert_int_equal(fired(), 1);
	assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
	vlapic_timer_expired(l, 100000);
	assert_int_equal(fired(), 0);
	assert_int_equal(rd(APIC_TMICT, 6000), 1000);
}

static void every_divide_configuration_divides_as_it_says(void **state)
{
	static const struct {
		u32 tdcr, divide;
	} table[] = {{0x0, 2},	{0x1, 4},  {0x2, 8},   {0x3, 16},
		     {0x8, 32}, {0x9, 64}, {0xa, 128}, {0xb, 1}};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		start(ONESHOT, table[i].tdcr, 0xffffffff, 7);
		assert_int_equal(vlapic_timer_deadline(l), 7 + 0xffffffffull * table[i].divide);
		assert_int_equal(rd(APIC_TDCR, 0), table[i].tdcr);
	}
	fix_online(1, true);
	wr(APIC_TMICT, 10, 0); /* the divider after reset is 2 */
	assert_int_equal(vlapic_timer_deadline(l), 20);
}

static void current_count_falls_from_the_initial_count_to_zero(void **state)
{
	start(ONESHOT, 0x1, 100, 1000); /* by 4 */
	assert_int_equal(rd(APIC_TMCCT, 1000), 100);
	assert_int_equal(rd(APIC_TMCCT, 1003), 100);
	assert_int_equal(rd(APIC_TMCCT, 1004), 99);
	assert_int_equal(rd(APIC_TMCCT, 1399), 1);
	assert_int_equal(rd(APIC_TMCCT, 1400), 0);
	assert_int_equal(rd(APIC_TMCCT, 9999), 0);
}

static void initial_count_zero_stops_the_timer(void **state)
{
	start(PERIODIC, DIVIDE_1, 100, 0);
	wr(APIC_TMICT, 0, 50);
	assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
	assert_int_equal(rd(APIC_TMCCT, 50), 0);
	vlapic_timer_expired(l, 1000);
	assert_int_equal(fired(), 0);
}

static void periodic_does_not_drift_when_it_is_served_late(void **state)
{
	u64 now, n;

	start(PERIODIC, DIVIDE_1, 1000, 0);
	for (n = 1; n <= 1000; n++) {
		now = vlapic_timer_deadline(l);
		assert_int_equal(now, n * 1000);
		vlapic_timer_expired(l, now + n % 999);
		assert_int_equal(fired(), 1);
	}
}

static void periods_missed_are_one_interrupt_and_keep_the_phase(void **state)
{
	start(PERIODIC, DIVIDE_1, 10, 0);
	vlapic_timer_expired(l, 12345678901ull);
	assert_int_equal(fired(), 1);
	assert_int_equal(vlapic_timer_deadline(l), 12345678910ull);
	vlapic_timer_expired(l, 12345678910ull); /* exactly on time */
	assert_int_equal(vlapic_timer_deadline(l), 12345678920ull);
	vlapic_timer_expired(l, 12345678930ull); /* exactly one late */
	assert_int_equal(vlapic_timer_deadline(l), 12345678940ull);
}

static void periodic_current_count_reloads_even_before_it_is_served(void **state)
{
	start(PERIODIC, DIVIDE_1, 100, 0);
	assert_int_equal(rd(APIC_TMCCT, 99), 1);
	assert_int_equal(rd(APIC_TMCCT, 100), 100);
	assert_int_equal(rd(APIC_TMCCT, 130), 70);
	assert_int_equal(rd(APIC_TMCCT, 1030), 70);
}

static void masked_timer_runs_silently(void **state)
{
	start(PERIODIC | MASKED, DIVIDE_1, 100, 0);
	vlapic_timer_expired(l, 100);
	assert_int_equal(fired(), 0);
	assert_int_equal(vlapic_timer_deadline(l), 200);
	wr(APIC_LVT_TIMER, PERIODIC | VECTOR, 150);
	vlapic_timer_expired(l, 200);
	assert_int_equal(fired(), 1);

	start(DEADLINE | MASKED, DIVIDE_1, 0, 0);
	vlapic_write_tsc_deadline(l, 500);
	vlapic_timer_expired(l, 500);
	assert_int_equal(fired(), 0);
	assert_int_equal(vlapic_read_tsc_deadline(l), 0);
}

static void tsc_deadline_fires_once_and_reads_zero_after(void **state)
{
	start(DEADLINE, DIVIDE_1, 0, 0);
	l->timer_changed = false;
	vlapic_write_tsc_deadline(l, 5000);
	assert_true(l->timer_changed);
	assert_int_equal(vlapic_read_tsc_deadline(l), 5000);
	assert_int_equal(vlapic_timer_deadline(l), 5000);
	vlapic_timer_expired(l, 4999);
	assert_int_equal(fired(), 0);
	l->timer_changed = false;
	vlapic_timer_expired(l, 5000);
	assert_true(l->timer_changed);
	assert_int_equal(fired(), 1);
	assert_int_equal(vlapic_read_tsc_deadline(l), 0);
	vlapic_timer_expired(l, 6000);
	assert_int_equal(fired(), 0);
}

static void tsc_deadline_zero_disarms_and_the_past_fires_at_once(void **state)
{
	start(DEADLINE, DIVIDE_1, 0, 0);
	vlapic_write_tsc_deadline(l, 5000);
	vlapic_write_tsc_deadline(l, 0);
	assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
	vlapic_write_tsc_deadline(l, 1);
	assert_true(vlapic_timer_deadline(l) <= 9000);
	vlapic_timer_expired(l, 9000);
	assert_int_equal(fired(), 1);
}

static void tsc_deadline_is_ignored_in_the_other_modes(void **state)
{
	start(ONESHOT, DIVIDE_1, 100, 0);
	vlapic_write_tsc_deadline(l, 5000);
	assert_int_equal(vlapic_read_tsc_deadline(l), 0);
	assert_int_equal(vlapic_timer_deadline(l), 100);
}

static void initial_count_is_ignored_in_tsc_deadline_mode(void **state)
{
	start(DEADLINE, DIVIDE_1, 100, 0);
	assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
	assert_int_equal(rd(APIC_TMICT, 0), 0);
	assert_int_equal(rd(APIC_TMCCT, 0), 0);
}

static void change_to_or_from_tsc_deadline_disarms(void **state)
{
	start(PERIODIC, DIVIDE_1, 100, 0);
	wr(APIC_LVT_TIMER, DEADLINE | VECTOR, 10);
	assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
	vlapic_write_tsc_deadline(l, 5000);
	wr(APIC_LVT_TIMER, ONESHOT | VECTOR, 10);
	assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
	assert_int_equal(rd(APIC_TMCCT, 10), 0);
}

static void change_between_one_shot_and_periodic_counts_on(void **state)
{
	start(ONESHOT, DIVIDE_1, 100, 0);
	wr(APIC_LVT_TIMER, PERIODIC | VECTOR, 10);
	assert_int_equal(vlapic_timer_deadline(l), 100);
	vlapic_timer_expired(l, 100);
	assert_int_equal(vlapic_timer_deadline(l), 200);
	wr(APIC_LVT_TIMER, ONESHOT | VECTOR, 110);
	vlapic_timer_expired(l, 200);
	assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
}

static void divider_change_keeps_the_current_count(void **state)
{
	start(ONESHOT, DIVIDE_1, 1000, 0);
	wr(APIC_TDCR, 0x0, 400); /* by 2, 600 counts left */
	assert_int_equal(rd(APIC_TMCCT, 400), 600);
	assert_int_equal(vlapic_timer_deadline(l), 400 + 1200);
}

static void rewriting_the_same_mode_does_not_restart(void **state)
{
	start(DEADLINE, DIVIDE_1, 0, 0);
	vlapic_write_tsc_deadline(l, 5000);
	wr(APIC_LVT_TIMER, DEADLINE | 0x40, 10);
	assert_int_equal(vlapic_timer_deadline(l), 5000);
}

static void reserved_timer_mode_stops_it(void **state)
{
	start(PERIODIC, DIVIDE_1, 100, 0);
	wr(APIC_LVT_TIMER, 0x60000 | VECTOR, 10);
	assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
	wr(APIC_TMICT, 100, 10);
	assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
	assert_int_equal(rd(APIC_TMCCT, 20), 0);
}

static void illegal_vector_is_an_error_and_no_interrupt(void **state)
{
	start(ONESHOT, DIVIDE_1, 100, 0);
	wr(APIC_LVT_TIMER, 0x0f, 0);
	vlapic_timer_expired(l, 100);
	assert_int_equal(vlapic_pending(l), -1);
	wr(APIC_ESR, 0, 0);
	assert_int_equal(rd(APIC_ESR, 0), 0x40);
}

static void software_disable_silences_it(void **state)
{
	start(PERIODIC, DIVIDE_1, 100, 0);
	wr(APIC_SVR, 0xff, 0);
	vlapic_timer_expired(l, 100);
	assert_false(vlapic_has_work(l));
}

static void tsc_jump_moves_counters_and_not_the_tsc_deadline(void **state)
{
	start(PERIODIC, DIVIDE_1, 100, 1000);
	vlapic_set_tsc_offset(l, 500000);
	assert_int_equal(vlapic_timer_deadline(l), 501100);
	assert_int_equal(rd(APIC_TMCCT, 501040), 60);
	vlapic_set_tsc_offset(l, -300);
	assert_int_equal(vlapic_timer_deadline(l), 800);

	start(DEADLINE, DIVIDE_1, 0, 0);
	vlapic_write_tsc_deadline(l, 5000);
	vlapic_set_tsc_offset(l, 500000);
	assert_int_equal(vlapic_timer_deadline(l), 5000);
}

static void reset_cancels_it_in_every_mode(void **state)
{
	static const u32 modes[] = {ONESHOT, PERIODIC, DEADLINE};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		start(modes[i], DIVIDE_1, 100, 0);
		vlapic_write_tsc_deadline(l, 100);
		assert_int_equal(vlapic_timer_deadline(l), 100);
		vlapic_reset(l, true, true);
		assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
		vlapic_timer_expired(l, 100);
		assert_false(vlapic_has_work(l));
		assert_int_equal(vlapic_read_tsc_deadline(l), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_shot_fires_once_at_its_time),
	    cmocka_unit_test(every_divide_configuration_divides_as_it_says),
	    cmocka_unit_test(current_count_falls_from_the_initial_count_to_zero),
	    cmocka_unit_test(initial_count_zero_stops_the_timer),
	    cmocka_unit_test(periodic_does_not_drift_when_it_is_served_late),
	    cmocka_unit_test(periods_missed_are_one_interrupt_and_keep_the_phase),
	    cmocka_unit_test(periodic_current_count_reloads_even_before_it_is_served),
	    cmocka_unit_test(masked_timer_runs_silently),
	    cmocka_unit_test(tsc_deadline_fires_once_and_reads_zero_after),
	    cmocka_unit_test(tsc_deadline_zero_disarms_and_the_past_fires_at_once),
	    cmocka_unit_test(tsc_deadline_is_ignored_in_the_other_modes),
	    cmocka_unit_test(initial_count_is_ignored_in_tsc_deadline_mode),
	    cmocka_unit_test(change_to_or_from_tsc_deadline_disarms),
	    cmocka_unit_test(change_between_one_shot_and_periodic_counts_on),
	    cmocka_unit_test(divider_change_keeps_the_current_count),
	    cmocka_unit_test(rewriting_the_same_mode_does_not_restart),
	    cmocka_unit_test(reserved_timer_mode_stops_it),
	    cmocka_unit_test(illegal_vector_is_an_error_and_no_interrupt),
	    cmocka_unit_test(software_disable_silences_it),
	    cmocka_unit_test(tsc_jump_moves_counters_and_not_the_tsc_deadline),
	    cmocka_unit_test(reset_cancels_it_in_every_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
