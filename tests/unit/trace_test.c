/* SPDX-License-Identifier: BSD-2-Clause */
/* The trace: what is written is read, what was overwritten is counted, and nothing is read half. */
// sources: hv/trace.c hv/spin/spin.c hv/spin/policy.c hv/spin/ple.c hv/spin/knobs.c
// sources: hv/apic/ipi_track.c hv/lib/fmt.c hv/lib/knob.c
// libs: -lpthread
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hv/spin/spin.h"
#include "hv/trace.h"

#define RECORDS 16u

static struct trace_record records[RECORDS];
static struct trace_ring ring;

static int set_up(void **state)
{
	memset(records, 0, sizeof(records));
	trace_init(&ring, records, RECORDS);
	return 0;
}

/* All that is left, as "time time ...", and how many were lost before. */
static const char *times(u64 pos, u64 *lost)
{
	static char text[1024];
	struct trace_record r;
	int n = 0;

	text[0] = 0;
	*lost = 0;
	while (trace_next(&ring, &pos, &r, lost))
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%llu", n ? " " : "",
			      (unsigned long long)r.time);
	return text;
}

static u32 evaluated;

static u64 time_now(void)
{
	return ++evaluated;
}

static void nothing_is_traced_or_evaluated_until_it_is_switched_on(void **state)
{
	u64 lost;

	trace(&ring, TRACE_WAKE, time_now(), 1, 2, 3);
	assert_int_equal(evaluated, 0);
	trace_enable(&ring, BIT(TRACE_IPI));
	trace(&ring, TRACE_WAKE, time_now(), 1, 2, 3);
	trace(&ring, TRACE_IPI, time_now(), 1, 2, 3, 64, 1);
	assert_int_equal(evaluated, 1);
	assert_string_equal(times(0, &lost), "1");
	trace_enable(&ring, 0);
	trace(&ring, TRACE_IPI, time_now(), 1, 2, 3, 64, 1);
	assert_string_equal(times(0, &lost), "1");
}

static void a_ring_without_memory_stays_off(void **state)
{
	struct trace_ring none = {0};
	struct trace_record r;
	u64 pos = 0, lost = 0;

	trace_enable(&none, TRACE_ALL);
	trace(&none, TRACE_WAKE, 1, 1, 2, 3);
	assert_false(trace_next(&none, &pos, &r, &lost));
	assert_int_equal(trace_last(&none, 5), 0);
}

static void the_newest_overwrite_the_oldest(void **state)
{
	u64 lost;

	trace_enable(&ring, TRACE_ALL);
	for (u32 i = 1; i <= RECORDS; i++)
		trace(&ring, TRACE_WAKE, i, 0, 0, i);
	assert_string_equal(times(0, &lost), "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16");
	assert_int_equal(lost, 0);
	for (u32 i = 17; i <= 20; i++)
		trace(&ring, TRACE_WAKE, i, 0, 0, i);
	assert_string_equal(times(0, &lost), "5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
	assert_int_equal(lost, 4);
	assert_string_equal(times(trace_last(&ring, 3), &lost), "18 19 20");
	assert_int_equal(lost, 0);
	assert_string_equal(times(20, &lost), "");
	assert_int_equal(trace_last(&ring, 1000), 4);
}

static void a_record_being_written_is_not_shown(void **state)
{
	u64 lost;

	trace_enable(&ring, TRACE_ALL);
	for (u32 i = 1; i <= RECORDS; i++)
		trace(&ring, TRACE_WAKE, i, 0, 0, i);
	records[0].seq = 0; /* its writer is in the middle */
	assert_string_equal(times(0, &lost), "2 3 4 5 6 7 8 9 10 11 12 13 14 15 16");
	assert_int_equal(lost, 1);
}

static void a_line_says_what_happened(void **state)
{
	struct trace_record r;
	u64 pos = 0, lost = 0;
	char line[200], small[20];
	int n;

	trace_enable(&ring, TRACE_ALL);
	trace(&ring, TRACE_SPIN, 123456789012345ull, 3, 255, 4096, 1, 2, 17, SPIN_CLASS_RECEIVER,
	      1);
	trace(&ring, TRACE_SWITCH, 5, TRACE_NO_VM, 0, 3, TRACE_NONE, 0, 0);
	assert_true(trace_next(&ring, &pos, &r, &lost));
	n = trace_format(&r, 2, line, sizeof(line));
	assert_string_equal(line, "trace 2 123456789012345 spin 3/255 spun=4096 kernel=1 seen=2 "
				  "target=17 rule=receiver yielded=1");
	assert_int_equal(n, strlen(line));
	assert_int_equal(trace_format(&r, 2, small, sizeof(small)), n);
	assert_string_equal(small, "trace 2 12345678901");
	assert_int_equal(trace_format(&r, 2, small, 0), n);
	assert_true(trace_next(&ring, &pos, &r, &lost));
	trace_format(&r, 0, line, sizeof(line));
	assert_string_equal(line, "trace 0 5 switch - prev_vm=3 prev_vcpu=- runnable=0 waiting=0");
}

static void every_event_has_a_word_and_is_found_by_it(void **state)
{
	for (u32 e = 0; e < NR_TRACE_EVENTS; e++) {
		assert_int_equal(trace_event_of(trace_word(e)), e);
		assert_true(strlen(trace_text(e)) > 0);
		assert_non_null(trace_arg_name(e, 0));
		assert_null(trace_arg_name(e, TRACE_ARGS));
	}
	assert_int_equal(trace_event_of("nonsense"), -1);
	assert_string_equal(trace_word(NR_TRACE_EVENTS), "?");
	assert_null(trace_arg_name(NR_TRACE_EVENTS, 0));
}

/* ---- a reader beside the writer ---- */

#define WRITES 200000u

static void *writer(void *arg)
{
	for (u32 i = 1; i <= WRITES; i++) {
		u32 a = i * 3, b = i * 5, c = i * 7;

		trace(&ring, i % NR_TRACE_EVENTS, i, i, i >> 16, a, b, c, i, i, i);
		if (i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void nothing_is_read_half_while_it_is_overwritten(void **state)
{
	struct trace_record r;
	u64 pos = 0, lost = 0, seen = 0, last = 0;
	pthread_t thread;

	trace_enable(&ring, TRACE_ALL);
	assert_int_equal(pthread_create(&thread, NULL, writer, NULL), 0);
	while (pos < WRITES) {
		if (!trace_next(&ring, &pos, &r, &lost)) {
			sched_yield();
			continue;
		}
		seen++;
		assert_true(r.time > last);
		last = r.time;
		assert_int_equal(r.seq, r.time);
		assert_int_equal(r.event, r.time % NR_TRACE_EVENTS);
		assert_int_equal(r.vm, r.time & 0xffff);
		assert_int_equal(r.vcpu, r.time >> 16);
		assert_int_equal(r.arg[0], (u32)r.time * 3);
		assert_int_equal(r.arg[1], (u32)r.time * 5);
		assert_int_equal(r.arg[2], (u32)r.time * 7);
		assert_int_equal(r.arg[5], r.time);
	}
	pthread_join(thread, NULL);
	assert_int_equal(seen + lost, WRITES);
	assert_true(seen > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(nothing_is_traced_or_evaluated_until_it_is_switched_on, set_up),
	    cmocka_unit_test_setup(a_ring_without_memory_stays_off, set_up),
	    cmocka_unit_test_setup(the_newest_overwrite_the_oldest, set_up),
	    cmocka_unit_test_setup(a_record_being_written_is_not_shown, set_up),
	    cmocka_unit_test_setup(a_line_says_what_happened, set_up),
	    cmocka_unit_test_setup(every_event_has_a_word_and_is_found_by_it, set_up),
	    cmocka_unit_test_setup(nothing_is_read_half_while_it_is_overwritten, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
