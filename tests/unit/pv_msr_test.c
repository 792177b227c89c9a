/* SPDX-License-Identifier: BSD-2-Clause */
/* The features and MSRs of the KVM interface: kvmclock in both numberings, poll control, and what
 * is not offered. Steal time has its own test. */
// sources: hv/pv/msr.c hv/pv/clock.c hv/pv/steal.c hv/lib/string.c
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hv/config/config.h"
#include "hv/pv/msr.h"

#define HZ 2600000000ull

static u8 ram[8192];
static struct guest_mem mem = {.nr_slots = 1, .slots = {{0, sizeof(ram), ram}}};
static struct pv_vm vm;
static struct pv_vcpu v;

static const u32 system_time[] = {MSR_KVM_SYSTEM_TIME, MSR_KVM_SYSTEM_TIME_NEW};
static const u32 wall_clock[] = {MSR_KVM_WALL_CLOCK, MSR_KVM_WALL_CLOCK_NEW};

static int setup(void **state)
{
	memset(ram, 0, sizeof(ram));
	vm = (struct pv_vm){.features = CFG_PV_DEFAULT,
			    .stable = true,
			    .scale = pvclock_scale(HZ),
			    .mem = &mem,
			    .tsc_base = 1000000,
			    .epoch_ns = 1234567890123456789ull};
	pv_vcpu_start(&v, 0);
	return 0;
}

static bool wr(u32 msr, u64 value)
{
	struct pv_wrmsr w = {.tsc_offset = -500};

	return pv_msr_write(&vm, &v, msr, value, &w);
}

static u64 rd(u32 msr)
{
	u64 value = ~0ull;

	assert_true(pv_msr_read(&vm, &v, msr, &value));
	return value;
}

static struct pvclock_vcpu_time_info time_at(u64 gpa)
{
	struct pvclock_vcpu_time_info r;

	memcpy(&r, ram + gpa, sizeof(r));
	return r;
}

/* What a guest computes at guest TSC @tsc. */
static u64 guest_ns(const struct pvclock_vcpu_time_info *r, u64 tsc)
{
	u64 delta = tsc - r->tsc_timestamp;

	delta = r->tsc_shift < 0 ? delta >> -r->tsc_shift : delta << r->tsc_shift;
	return r->system_time + (u64)((u128)delta * r->tsc_to_system_mul >> 32);
}

static void features_follow_the_config(void **state)
{
	static const struct {
		u32 pv, bits;
	} each[] = {
	    {CFG_PV_CLOCK, BIT(0) | BIT(3) | BIT(24)},
	    {CFG_PV_STEAL, BIT(5)},
	    {CFG_PV_UNHALT, BIT(7)},
	    {CFG_PV_IPI, BIT(11)},
	    {CFG_PV_POLL, BIT(12)},
	    {CFG_PV_YIELD, BIT(13)},
	    {CFG_PV_TLBFLUSH, 0}, /* needs the steal record */
	    {CFG_PV_TLBFLUSH | CFG_PV_STEAL, BIT(9) | BIT(5)},
	};

	assert_int_equal(pv_cpuid_features(0, true), BIT(1));
	for (u32 i = 0; i < ARRAY_SIZE(each); i++)
		assert_int_equal(pv_cpuid_features(each[i].pv, true), each[i].bits | BIT(1));
	/* PV EOI (6), async page faults (4, 10, 14) are never there; flush and IPIs only if asked.
	 */
	assert_int_equal(
	    pv_cpuid_features(UINT32_MAX, true) & (BIT(4) | BIT(6) | BIT(10) | BIT(14)), 0);
	assert_int_equal(pv_cpuid_features(CFG_PV_DEFAULT, true) & (BIT(9) | BIT(11)), 0);
	assert_int_equal(pv_cpuid_features(CFG_PV_DEFAULT, false) & BIT(24), 0);
}

static void what_is_not_offered_is_not_there(void **state)
{
	u64 value;

	for (u32 msr = 0x4b564d00; msr <= 0x4b564d0f; msr++) {
		vm.features = 0;
		assert_false(pv_msr_read(&vm, &v, msr, &value));
		assert_false(wr(msr, 0));
		vm.features = UINT32_MAX;
		if (msr != MSR_KVM_ASYNC_PF_EN && msr != MSR_KVM_PV_EOI_EN &&
		    msr <= MSR_KVM_POLL_CONTROL)
			continue;
		assert_false(pv_msr_read(&vm, &v, msr, &value));
		assert_false(wr(msr, 0));
	}
	vm.features = 0;
	assert_false(wr(MSR_KVM_SYSTEM_TIME, 0));
	assert_false(pv_msr_read(&vm, &v, MSR_KVM_WALL_CLOCK, &value));
}

static void system_time_is_filled_when_the_write_returns(void **state)
{
	for (u32 i = 0; i < 2; i++) {
		struct pvclock_vcpu_time_info r;
		u32 version = time_at(0x100).version;

		assert_true(wr(system_time[i], 0x100 | 1));
		assert_int_equal(rd(system_time[i]), 0x101);
		r = time_at(0x100);
		assert_int_equal(r.version & 1, 0);
		assert_true(r.version > version);
		assert_int_equal(r.tsc_timestamp, 1000000 - 500);
		assert_int_equal(r.flags, PVCLOCK_TSC_STABLE);
		/* An hour is an hour, to 10^-9. */
		assert_in_range(guest_ns(&r, r.tsc_timestamp + 3600 * HZ), 3599999996000ull,
				3600000000000ull);
	}
}

static void the_stable_bit_is_there_only_when_it_is_true(void **state)
{
	vm.stable = false;
	wr(MSR_KVM_SYSTEM_TIME_NEW, 0x101);
	assert_int_equal(time_at(0x100).flags, 0);
}

static void system_time_takes_any_address(void **state)
{
	static const u64 ignored[] = {sizeof(ram), sizeof(ram) - 16, 1ull << 51, ~1ull};
	u8 zeros[sizeof(ram)] = {0};

	for (u32 i = 0; i < ARRAY_SIZE(ignored); i++) {
		assert_true(wr(MSR_KVM_SYSTEM_TIME_NEW, ignored[i] | 1));
		assert_int_equal(rd(MSR_KVM_SYSTEM_TIME_NEW), ignored[i] | 1);
		pv_clock_update(&vm, &v, 0);
	}
	assert_true(wr(MSR_KVM_SYSTEM_TIME_NEW, 0x100)); /* off */
	pv_clock_update(&vm, &v, 0);
	assert_memory_equal(ram, zeros, sizeof(ram));
	assert_true(wr(MSR_KVM_SYSTEM_TIME_NEW, 0x102 | 1)); /* unaligned, over no boundary */
	assert_int_not_equal(time_at(0x102).tsc_to_system_mul, 0);
	assert_int_equal(ram[0x101], 0);
	assert_int_equal(ram[0x102 + 32], 0);
	assert_true(wr(MSR_KVM_SYSTEM_TIME_NEW, 0xffe | 1)); /* over a page boundary */
	assert_int_equal(time_at(0xffe).tsc_timestamp, 1000000 - 500);
}

static void the_clock_does_not_jump_with_the_tsc(void **state)
{
	struct pvclock_vcpu_time_info before, after;
	u64 host = 5 * HZ;

	wr(MSR_KVM_SYSTEM_TIME_NEW, 0x101);
	before = time_at(0x100);
	pv_clock_update(&vm, &v, -(s64)host);
	after = time_at(0x100);
	assert_int_equal(guest_ns(&before, host - 500), guest_ns(&after, 0));
	assert_int_equal(after.version, before.version + 2);
}

static void init_switches_system_time_off(void **state)
{
	struct pvclock_vcpu_time_info before;

	wr(MSR_KVM_SYSTEM_TIME_NEW, 0x101);
	before = time_at(0x100);
	pv_vcpu_init(&v);
	pv_clock_update(&vm, &v, 12345);
	assert_memory_equal(&before, ram + 0x100, sizeof(before));
	assert_int_equal(rd(MSR_KVM_SYSTEM_TIME_NEW), 0);
}

static void the_wall_clock_is_written_once(void **state)
{
	for (u32 i = 0; i < 2; i++) {
		struct pvclock_wall_clock w = {.version = 3};

		memcpy(ram + 0x203, &w, sizeof(w)); /* what lay there, at an odd address */
		assert_true(wr(wall_clock[i], 0x203));
		memcpy(&w, ram + 0x203, sizeof(w));
		assert_int_equal(w.version, 6);
		assert_int_equal(w.sec, 1234567890);
		assert_int_equal(w.nsec, 123456789);
		assert_int_equal(rd(wall_clock[1 - i]), 0x203);
	}
}

static void a_wall_clock_outside_of_ram_or_at_0_is_ignored(void **state)
{
	u8 zeros[sizeof(ram)] = {0};

	assert_true(wr(MSR_KVM_WALL_CLOCK_NEW, 0));
	assert_true(wr(MSR_KVM_WALL_CLOCK_NEW, sizeof(ram) - 8));
	assert_true(wr(MSR_KVM_WALL_CLOCK_NEW, ~0ull));
	assert_memory_equal(ram, zeros, sizeof(ram));
}

static void poll_control_has_one_bit_which_is_set_at_first(void **state)
{
	assert_int_equal(rd(MSR_KVM_POLL_CONTROL), 1);
	assert_true(wr(MSR_KVM_POLL_CONTROL, 0));
	for (u32 bit = 1; bit < 64; bit++)
		assert_false(wr(MSR_KVM_POLL_CONTROL, BIT(bit) | 1));
	assert_int_equal(rd(MSR_KVM_POLL_CONTROL), 0);
	pv_vcpu_init(&v); /* INIT leaves it, a new start does not */
	assert_int_equal(rd(MSR_KVM_POLL_CONTROL), 0);
	pv_vcpu_start(&v, 0);
	assert_int_equal(rd(MSR_KVM_POLL_CONTROL), 1);
}

static void steal_time_goes_through(void **state)
{
	struct pv_wrmsr w = {.run_delay_ns = 321, .flush_tlb = true};

	assert_true(pv_msr_write(&vm, &v, MSR_KVM_STEAL_TIME, 0x301 & ~0x3eull, &w));
	assert_false(w.flush_tlb);
	assert_int_equal(rd(MSR_KVM_STEAL_TIME), 0x301);
	assert_int_equal(((struct kvm_steal_time *)(ram + 0x300))->steal, 321);
	assert_false(pv_msr_write(&vm, &v, MSR_KVM_STEAL_TIME, 0x303, &w));
}

static void scales_are_exact_for_all_rates(void **state)
{
	static const u64 rates[] = {1000000,	49999000,   50000000,	1000000000,
				    1000000001, 2000000000, 2000000001, 5123456789ull};

	for (u32 i = 0; i < ARRAY_SIZE(rates); i++) {
		struct pvclock_scale c = pvclock_scale(rates[i]);
		struct pvclock_vcpu_time_info r = {.tsc_to_system_mul = c.mul,
						   .tsc_shift = c.shift};

		assert_true(c.mul >= 0x7ffffff0);
		assert_in_range(guest_ns(&r, 100 * rates[i]), 99999999900ull, 100000000000ull);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(features_follow_the_config, setup),
	    cmocka_unit_test_setup(what_is_not_offered_is_not_there, setup),
	    cmocka_unit_test_setup(system_time_is_filled_when_the_write_returns, setup),
	    cmocka_unit_test_setup(the_stable_bit_is_there_only_when_it_is_true, setup),
	    cmocka_unit_test_setup(system_time_takes_any_address, setup),
	    cmocka_unit_test_setup(the_clock_does_not_jump_with_the_tsc, setup),
	    cmocka_unit_test_setup(init_switches_system_time_off, setup),
	    cmocka_unit_test_setup(the_wall_clock_is_written_once, setup),
	    cmocka_unit_test_setup(a_wall_clock_outside_of_ram_or_at_0_is_ignored, setup),
	    cmocka_unit_test_setup(poll_control_has_one_bit_which_is_set_at_first, setup),
	    cmocka_unit_test_setup(steal_time_goes_through, setup),
	    cmocka_unit_test_setup(scales_are_exact_for_all_rates, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
