/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer queue of a pCPU. */
// sources: hv/timer.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hv/timer.h"

static struct timer_queue q, q2;
static struct timer t[100];
static u64 fired[1000], nr_fired;

static void record(struct timer *timer, u64 now)
{
	fired[nr_fired++] = timer->expires;
}

static void again(struct timer *timer, u64 now)
{
	nr_fired++;
	timer_set(&q, timer, now + 10);
}

static int setup(void **state)
{
	timer_queue_init(&q);
	timer_queue_init(&q2);
	nr_fired = 0;
	for (u32 i = 0; i < ARRAY_SIZE(t); i++)
		t[i] = (struct timer){.fn = record};
	return 0;
}

static void an_empty_queue_has_no_next(void **state)
{
	assert_int_equal(q.next, UINT64_MAX);
	timers_run(&q, UINT64_MAX - 1);
	assert_int_equal(nr_fired, 0);
}

static void timers_fire_in_order_and_not_early(void **state)
{
	srand(7);
	for (u32 i = 0; i < 100; i++)
		timer_set(&q, &t[i], 100 + rand() % 1000);
	timers_run(&q, 600);
	for (u32 i = 0; i < nr_fired; i++) {
		assert_true(fired[i] <= 600);
		assert_true(i == 0 || fired[i - 1] <= fired[i]);
	}
	assert_true(q.next > 600);
	timers_run(&q, 2000);
	assert_int_equal(nr_fired, 100);
	assert_int_equal(q.next, UINT64_MAX);
}

static void setting_again_moves_and_cancelling_removes(void **state)
{
	timer_set(&q, &t[0], 50);
	timer_set(&q, &t[0], 70);
	assert_int_equal(q.next, 70);
	timer_set(&q, &t[1], 60);
	timer_cancel(&t[1]);
	timer_cancel(&t[1]);
	assert_int_equal(q.next, 70);
	timer_set(&q2, &t[0], 80);
	assert_int_equal(q.next, UINT64_MAX);
	assert_int_equal(q2.next, 80);
	timers_run(&q, 1000);
	assert_int_equal(nr_fired, 0);
	timers_run(&q2, 1000);
	assert_int_equal(nr_fired, 1);
}

static void a_callback_may_set_its_timer_again(void **state)
{
	t[0].fn = again;
	timer_set(&q, &t[0], 100);
	timers_run(&q, 100);
	assert_int_equal(nr_fired, 1);
	assert_int_equal(q.next, 110);
	timers_run(&q, 135);
	assert_int_equal(nr_fired, 2);
	assert_int_equal(q.next, 145);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(an_empty_queue_has_no_next, setup),
	    cmocka_unit_test_setup(timers_fire_in_order_and_not_early, setup),
	    cmocka_unit_test_setup(setting_again_moves_and_cancelling_removes, setup),
	    cmocka_unit_test_setup(a_callback_may_set_its_timer_again, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
