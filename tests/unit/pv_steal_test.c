/* SPDX-License-Identifier: BSD-2-Clause */
/* The steal-time record: what a guest reads over everything that can happen to its vCPU. */
// sources: hv/pv/steal.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hv/pv/steal.h"

static u8 ram[8192] __aligned(4096);
static struct guest_mem mem = {.nr_slots = 1, .slots = {{0, sizeof(ram), ram}}};
static struct pv_steal s;
static bool flush;

#define GPA 0x1040
static struct kvm_steal_time *const rec = (struct kvm_steal_time *)(ram + GPA);

static int setup(void **state)
{
	memset(ram, 0, sizeof(ram));
	steal_start(&s, 0);
	flush = false;
	return 0;
}

static bool wrmsr(u64 value, u64 delay)
{
	return steal_msr_write(&s, &mem, value, delay, &flush);
}

static void nothing_is_written_before_it_is_switched_on(void **state)
{
	u8 zeros[sizeof(ram)] = {0};

	steal_sched_out(&s);
	assert_false(steal_sched_in(&s, 1000));
	assert_true(wrmsr(GPA, 1000)); /* an address without the enable bit */
	steal_sched_out(&s);
	assert_false(steal_sched_in(&s, 2000));
	assert_memory_equal(ram, zeros, sizeof(ram));
}

static void reserved_bits_fault_and_change_nothing(void **state)
{
	assert_true(wrmsr(GPA | 1, 5));
	for (u32 bit = 1; bit <= 5; bit++)
		assert_false(wrmsr(GPA | BIT(bit) | 1, 5));
	assert_int_equal(s.msr, GPA | 1);
	assert_ptr_equal(s.rec, rec);
}

static void what_is_not_ram_is_taken_and_ignored(void **state)
{
	static const u64 bad[] = {sizeof(ram), 1ull << 52, ~0x3full};

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(wrmsr(bad[i] | 1, 1000 * i));
		assert_int_equal(s.msr, bad[i] | 1);
		steal_sched_out(&s);
		assert_false(steal_sched_in(&s, 1000 * i + 500));
	}
	assert_true(wrmsr((sizeof(ram) - 64) | 1, 9000)); /* the last record there is */
	assert_non_null(s.rec);
	assert_int_equal(s.rec->steal, 9000);
}

static void what_was_waited_is_added_and_the_version_is_even(void **state)
{
	rec->steal = 777;
	assert_true(wrmsr(GPA | 1, 0));
	assert_int_equal(rec->steal, 777);
	for (u32 i = 1; i <= 10; i++) {
		u32 before = rec->version;

		steal_sched_out(&s);
		assert_int_equal(rec->preempted, KVM_VCPU_PREEMPTED);
		assert_false(steal_sched_in(&s, i * 100));
		assert_int_equal(rec->preempted, 0);
		assert_int_equal(rec->steal, 777 + i * 100);
		assert_int_equal(rec->version, before + 2);
		assert_int_equal(rec->version & 1, 0);
	}
	assert_int_equal(rec->flags, 0);
}

static void no_wait_is_no_update(void **state)
{
	u32 version;

	wrmsr(GPA | 1, 100);
	version = rec->version;
	assert_false(steal_sched_in(&s, 100));
	steal_sched_out(&s); /* halted, or put back at once */
	assert_false(steal_sched_in(&s, 100));
	assert_int_equal(rec->version, version);
	assert_int_equal(rec->preempted, 0);
}

static void an_odd_version_that_was_left_behind_becomes_even(void **state)
{
	rec->version = 7;
	wrmsr(GPA | 1, 0);
	assert_int_equal(rec->version, 8);
	rec->version = UINT32_MAX;
	steal_sched_in(&s, 50);
	assert_int_equal(rec->version & 1, 0);
}

static void a_record_that_is_switched_off_rests_and_loses_nothing(void **state)
{
	wrmsr(GPA | 1, 100);
	assert_true(wrmsr(0, 100));
	steal_sched_out(&s);
	steal_sched_in(&s, 250);
	assert_int_equal(rec->steal, 100);
	assert_int_equal(rec->preempted, 0);
	wrmsr(GPA | 1, 300);
	assert_int_equal(rec->steal, 300);
}

/* CPU hotplug in Linux: off, INIT, SIPI, the same record again with what it held. */
static void init_ends_the_record_and_the_next_goes_on_from_it(void **state)
{
	u64 last = 0, delay = 0;

	for (u32 i = 0; i < 100; i++) {
		delay += i % 3 * 17;
		assert_true(wrmsr(GPA | 1, delay));
		assert_true(rec->steal >= last);
		delay += 11;
		steal_sched_out(&s);
		steal_sched_in(&s, delay);
		assert_true(rec->steal >= last + 11);
		last = rec->steal;
		steal_off(&s);
		assert_int_equal(s.msr, 0);
		delay += 5; /* on its way through INIT and SIPI */
		steal_sched_out(&s);
		steal_sched_in(&s, delay);
		assert_int_equal(rec->steal, last);
		assert_int_equal(rec->preempted, 0);
	}
	wrmsr(GPA | 1, delay);
	assert_int_equal(rec->steal, delay); /* every wait once, none twice */
}

static void a_new_life_of_the_vm_counts_from_its_start(void **state)
{
	wrmsr(GPA | 1, 5000);
	steal_start(&s, 6000);
	memset(ram, 0, sizeof(ram));
	wrmsr(GPA | 1, 6000);
	assert_int_equal(rec->steal, 0);
	steal_sched_in(&s, 6123);
	assert_int_equal(rec->steal, 123);
}

static void a_flush_that_was_asked_for_comes_once_at_the_next_entry(void **state)
{
	wrmsr(GPA | 1, 0);
	steal_sched_out(&s);
	rec->preempted |= KVM_VCPU_FLUSH_TLB; /* another vCPU */
	steal_sched_out(&s); /* woken for nothing and off again: the wish must not be lost */
	assert_int_equal(rec->preempted, KVM_VCPU_PREEMPTED | KVM_VCPU_FLUSH_TLB);
	assert_true(steal_sched_in(&s, 0));
	assert_int_equal(rec->preempted, 0);
	steal_sched_out(&s);
	assert_false(steal_sched_in(&s, 10));
}

static void moving_the_record_takes_a_flush_along(void **state)
{
	rec->preempted = KVM_VCPU_PREEMPTED | KVM_VCPU_FLUSH_TLB;
	wrmsr(GPA | 1, 0);
	assert_true(flush);
	assert_int_equal(rec->preempted, 0);
}

static void nothing_beside_the_record_is_touched(void **state)
{
	memset(ram, 0x5a, sizeof(ram));
	wrmsr(GPA | 1, 1);
	steal_sched_out(&s);
	steal_sched_in(&s, 2);
	for (u32 i = 0; i < sizeof(ram); i++) {
		if (i < GPA || i >= GPA + 17)
			assert_int_equal(ram[i], 0x5a);
	}
	assert_int_equal(rec->flags, 0x5a5a5a5a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(nothing_is_written_before_it_is_switched_on, setup),
	    cmocka_unit_test_setup(reserved_bits_fault_and_change_nothing, setup),
	    cmocka_unit_test_setup(what_is_not_ram_is_taken_and_ignored, setup),
	    cmocka_unit_test_setup(what_was_waited_is_added_and_the_version_is_even, setup),
	    cmocka_unit_test_setup(no_wait_is_no_update, setup),
	    cmocka_unit_test_setup(an_odd_version_that_was_left_behind_becomes_even, setup),
	    cmocka_unit_test_setup(a_record_that_is_switched_off_rests_and_loses_nothing, setup),
	    cmocka_unit_test_setup(init_ends_the_record_and_the_next_goes_on_from_it, setup),
	    cmocka_unit_test_setup(a_new_life_of_the_vm_counts_from_its_start, setup),
	    cmocka_unit_test_setup(a_flush_that_was_asked_for_comes_once_at_the_next_entry, setup),
	    cmocka_unit_test_setup(moving_the_record_takes_a_flush_along, setup),
	    cmocka_unit_test_setup(nothing_beside_the_record_is_touched, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
