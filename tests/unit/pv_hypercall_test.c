/* SPDX-License-Identifier: BSD-2-Clause */
/* Hypercalls: who may call, what is not offered, widths, kicks, hints, and IPIs with their books.
 */
// sources: hv/pv/hypercall.c hv/pv/ipi.c
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c
#include "tests/unit/vapic_fixture.h"

#include "hv/config/config.h"
#include "hv/pv/hypercall.h"

#define V 0x60u
#define CPUS 6

static struct vlapic *unhalted, *hint_from, *hint_to;
static bool hint_answer;

void pv_unhalt(struct vlapic *target)
{
	unhalted = target;
}

bool pv_hint(struct vlapic *from, struct vlapic *target)
{
	hint_from = from;
	hint_to = target;
	return hint_answer;
}

static struct hypercall call;

static int setup(void **state)
{
	fix_online(CPUS, true);
	fix_forget_kicks();
	unhalted = hint_from = hint_to = NULL;
	hint_answer = false;
	call = (struct hypercall){.long_mode = true, .features = UINT32_MAX, .now = 1000};
	return 0;
}

static s64 do_call(u32 cpu, u64 nr, u64 a0, u64 a1, u64 a2, u64 a3)
{
	call.nr = nr;
	call.arg[0] = a0;
	call.arg[1] = a1;
	call.arg[2] = a2;
	call.arg[3] = a3;
	return (s64)hypercall_run(&fix_cpu[cpu], &call);
}

static s64 ipi(u64 low, u64 high, u64 min, u64 icr)
{
	return do_call(0, KVM_HC_SEND_IPI, low, high, min, icr);
}

static void only_kernels_may_call(void **state)
{
	for (call.cpl = 1; call.cpl <= 3; call.cpl++) {
		assert_int_equal(do_call(0, KVM_HC_VAPIC_POLL_IRQ, 0, 0, 0, 0), -KVM_EPERM);
		assert_int_equal(do_call(0, KVM_HC_KICK_CPU, 0, 1, 0, 0), -KVM_EPERM);
		assert_int_equal(do_call(0, 0xdead, 0, 0, 0, 0), -KVM_EPERM);
	}
	assert_null(unhalted);
}

static void unknown_numbers_and_what_is_not_offered(void **state)
{
	static const u64 unknown[] = {0, 2,  3,	 4,	 6,	     7,		 8,
				      9, 12, 13, 0xdead, UINT64_MAX, BIT(32) | 1};
	static const struct {
		u32 nr, feature;
	} optional[] = {{KVM_HC_KICK_CPU, CFG_PV_UNHALT},
			{KVM_HC_SCHED_YIELD, CFG_PV_YIELD},
			{KVM_HC_SEND_IPI, CFG_PV_IPI}};

	for (u32 i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_int_equal(do_call(0, unknown[i], 1, 1, 1, 1), -KVM_ENOSYS);
	for (u32 i = 0; i < ARRAY_SIZE(optional); i++) {
		call.features = ~optional[i].feature;
		assert_int_equal(do_call(0, optional[i].nr, 1, 1, 1, V), -KVM_ENOSYS);
	}
	assert_null(unhalted);
	assert_null(hint_from);
	assert_int_equal(fix_who_has(V), 0);
	call.features = 0;
	assert_int_equal(do_call(0, KVM_HC_VAPIC_POLL_IRQ, 0, 0, 0, 0), 0);
}

static void outside_of_64_bit_mode_everything_has_32_bits(void **state)
{
	call.long_mode = false;
	assert_int_equal(do_call(0, BIT(32) | KVM_HC_VAPIC_POLL_IRQ, 0, 0, 0, 0), 0);
	assert_int_equal(do_call(0, 0xdead, 0, 0, 0, 0), (u32)-KVM_ENOSYS);
	assert_int_equal(do_call(0, KVM_HC_KICK_CPU, 0, BIT(40) | 3, 0, 0), 0);
	assert_ptr_equal(unhalted, &fix_cpu[3]);
	/* The second word of a bitmap begins 32 ids behind the first. */
	fix_online(40, true);
	assert_int_equal(ipi(BIT(35) | BIT(1), BIT(2), 0, V), 2);
	assert_int_equal(fix_who_has(V), BIT(1) | BIT(34));
}

static void a_kick_ends_the_halt_and_names_who_matters(void **state)
{
	assert_int_equal(do_call(1, KVM_HC_KICK_CPU, 0, 4, 0, 0), 0);
	assert_ptr_equal(unhalted, &fix_cpu[4]);
	assert_ptr_equal(hint_from, &fix_cpu[1]);
	assert_ptr_equal(hint_to, &fix_cpu[4]);
	hint_answer = true; /* a kick is no wish to leave */
	do_call(1, KVM_HC_KICK_CPU, 0, 5, 0, 0);
	assert_null(call.yield_to);
}

static void a_kick_of_nobody_is_no_error(void **state)
{
	static const u64 nobody[] = {CPUS, APIC_MAP_IDS - 1, APIC_MAP_IDS, 0xffffffff, UINT64_MAX};

	for (u32 i = 0; i < ARRAY_SIZE(nobody); i++)
		assert_int_equal(do_call(0, KVM_HC_KICK_CPU, 0, nobody[i], 0, 0), 0);
	assert_null(unhalted);
	do_call(2, KVM_HC_KICK_CPU, 0, 2, 0, 0);
	assert_ptr_equal(unhalted, &fix_cpu[2]);
	assert_null(hint_from); /* nobody waits for itself */
}

static void a_yield_leaves_only_for_somebody_who_can_run(void **state)
{
	assert_int_equal(do_call(0, KVM_HC_SCHED_YIELD, 3, 0, 0, 0), 0);
	assert_ptr_equal(hint_to, &fix_cpu[3]);
	assert_null(call.yield_to);
	hint_answer = true;
	do_call(0, KVM_HC_SCHED_YIELD, 3, 0, 0, 0);
	assert_ptr_equal(call.yield_to, &fix_cpu[3]);
	do_call(0, KVM_HC_SCHED_YIELD, 0, 0, 0, 0);
	assert_null(call.yield_to);
	assert_int_equal(do_call(0, KVM_HC_SCHED_YIELD, UINT64_MAX, 0, 0, 0), 0);
	assert_null(call.yield_to);
}

static void ipis_reach_exactly_the_bits(void **state)
{
	assert_int_equal(ipi(BIT(1) | BIT(3) | BIT(5), 0, 0, V), 3);
	assert_int_equal(fix_who_has(V), BIT(1) | BIT(3) | BIT(5));
	assert_int_equal(fix_kicks[1] + fix_kicks[3] + fix_kicks[5], 3);
	assert_int_equal(fix_kicks[0] + fix_kicks[2] + fix_kicks[4], 0);
	fix_clear_irr();
	assert_int_equal(ipi(BIT(0) | BIT(1), 0, 4, V), 2); /* from id 4 up */
	assert_int_equal(fix_who_has(V), BIT(4) | BIT(5));
	fix_clear_irr();
	fix_online(FIX_VCPUS, true);
	/* ids 1 to 39 are there, 0 is left out */
	assert_int_equal(ipi(UINT64_MAX, UINT64_MAX, 1, V), FIX_VCPUS - 1);
	assert_false(fix_in_irr(&fix_cpu[0], V));
}

static void ids_that_are_not_there_are_left_out(void **state)
{
	assert_int_equal(ipi(UINT64_MAX, UINT64_MAX, 0xffffffff, V), 0);
	assert_int_equal(ipi(UINT64_MAX, UINT64_MAX, APIC_MAP_IDS - 4, V), 0);
	assert_int_equal(ipi(0, 0, 0, V), 0);
	assert_int_equal(fix_cpu[0].count.ipi_nowhere, 3);
	fix_write(&fix_cpu[2], APIC_SVR, 0xff); /* software-disabled */
	assert_int_equal(ipi(BIT(2) | BIT(3), 0, 0, V), 1);
	assert_int_equal(fix_who_has(V), BIT(3));
	assert_int_equal(fix_cpu[0].count.ipi_unicast, 1);
}

static void what_an_icr_must_not_say_here(void **state)
{
	static const u64 bad[] = {V | BIT(11), V | BIT(18), V | BIT(19), V | 1 << 8, 2 << 8,
				  5 << 8,      V | 6 << 8,  7 << 8,	 0,	     15};

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(ipi(UINT64_MAX, 0, 0, bad[i]), -KVM_EINVAL);
	for (u32 i = 0; i < CPUS; i++)
		assert_false(vlapic_has_work(&fix_cpu[i]));
	assert_int_equal(ipi(BIT(1), 0, 0, V | BIT(14)), 1); /* the assert bit is usual */
}

static u32 outstanding(u32 cpu)
{
	struct ipi_track *t = &fix_cpu[cpu].track;
	struct ipi_wait wait;
	u32 cursor = t->tail, n = 0;

	while (ipi_track_next(t, 1001, &cursor, &wait))
		n++;
	return n;
}

static void one_receiver_is_recorded_and_its_eoi_is_matched(void **state)
{
	assert_int_equal(ipi(BIT(4), 0, 0, V), 1);
	assert_int_equal(fix_cpu[0].count.ipi_unicast, 1);
	assert_int_equal(outstanding(0), 1);
	assert_int_equal(fix_take(&fix_cpu[4], 1001), V);
	vlapic_eoi(&fix_cpu[4], 1002);
	assert_int_equal(fix_cpu[4].count.eoi_matched, 1);
	assert_int_equal(outstanding(0), 0);
}

static void several_receivers_are_recorded_only_if_asked_for(void **state)
{
	assert_int_equal(ipi(BIT(1) | BIT(2) | BIT(3), 0, 0, V), 3);
	assert_int_equal(outstanding(0), 0);
	assert_int_equal(fix_cpu[0].count.ipi_multicast, 1);
	fix_clear_irr();
	fix_knobs.multicast = true;
	assert_int_equal(ipi(BIT(0) | BIT(1) | BIT(2), 0, 0, V), 3);
	assert_int_equal(outstanding(0), 2); /* never itself */
}

static void to_itself(void **state)
{
	assert_int_equal(ipi(BIT(0), 0, 0, V), 1);
	assert_int_equal(fix_cpu[0].count.ipi_self, 1);
	assert_int_equal(fix_kicks[0], 0);
	assert_int_equal(outstanding(0), 0);
	assert_int_equal(fix_take(&fix_cpu[0], 1001), V);
}

static void nmis(void **state)
{
	assert_int_equal(ipi(BIT(1) | BIT(2), 0, 0, APIC_DM_NMI << 8), 2);
	assert_true(vlapic_take_nmi(&fix_cpu[1]));
	assert_true(vlapic_take_nmi(&fix_cpu[2]));
	assert_false(vlapic_take_nmi(&fix_cpu[3]));
	assert_int_equal(fix_cpu[0].count.ipi_nmi, 2);
	assert_int_equal(outstanding(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(only_kernels_may_call, setup),
	    cmocka_unit_test_setup(unknown_numbers_and_what_is_not_offered, setup),
	    cmocka_unit_test_setup(outside_of_64_bit_mode_everything_has_32_bits, setup),
	    cmocka_unit_test_setup(a_kick_ends_the_halt_and_names_who_matters, setup),
	    cmocka_unit_test_setup(a_kick_of_nobody_is_no_error, setup),
	    cmocka_unit_test_setup(a_yield_leaves_only_for_somebody_who_can_run, setup),
	    cmocka_unit_test_setup(ipis_reach_exactly_the_bits, setup),
	    cmocka_unit_test_setup(ids_that_are_not_there_are_left_out, setup),
	    cmocka_unit_test_setup(what_an_icr_must_not_say_here, setup),
	    cmocka_unit_test_setup(one_receiver_is_recorded_and_its_eoi_is_matched, setup),
	    cmocka_unit_test_setup(several_receivers_are_recorded_only_if_asked_for, setup),
	    cmocka_unit_test_setup(to_itself, setup),
	    cmocka_unit_test_setup(nmis, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
