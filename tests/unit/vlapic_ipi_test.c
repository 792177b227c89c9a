/* SPDX-License-Identifier: BSD-2-Clause */
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c
/* IPIs and messages: destinations in every mode, shorthands, the map and the walk, the counters. */
#include "tests/unit/vapic_fixture.h"

static struct vlapic *l = &fix_cpu[0];

#define LOGICAL 0x800u
#define SELF (1u << 18)
#define ALL (2u << 18)
#define OTHERS (3u << 18)
#define LOWEST 0x100u
#define V 0x40u

/* Sends vector V and returns who got it. */
static u64 reached(struct vlapic *from, u32 dest, u32 low)
{
	fix_clear_irr();
	fix_forget_kicks();
	fix_ipi(from, dest, low | V, 0);
	return fix_who_has(V);
}

static u64 reached_by_device(u32 dest, bool logical, u32 delivery)
{
	struct apic_msg msg = {.dest = dest, .logical = logical, .delivery = delivery, .vector = V};
	u32 accepted;

	fix_clear_irr();
	accepted = apic_map_deliver(&fix_map, &msg);
	assert_int_equal(accepted, __builtin_popcountll(fix_who_has(V)));
	return fix_who_has(V);
}

static u64 all(u32 n)
{
	return BIT(n) - 1;
}

/* ---- Physical ---- */

static void physical_reaches_exactly_its_id(void **state)
{
	int x2apic;
	u32 i;

	for (x2apic = 0; x2apic < 2; x2apic++) {
		fix_online(FIX_VCPUS, x2apic);
		for (i = 1; i < FIX_VCPUS; i++) {
			assert_int_equal(reached(l, i, 0), BIT(i));
			assert_int_equal(fix_kicks[i], 1);
			assert_ptr_equal(fix_last_kick, &fix_cpu[i]);
		}
		assert_int_equal(reached(l, FIX_VCPUS, 0), 0);
		assert_int_equal(l->count.ipi_nowhere, 1);
		assert_int_equal(l->count.ipi_unicast, FIX_VCPUS - 1);
		assert_int_equal(l->count.ipi_fast, FIX_VCPUS - 1);
		assert_int_equal(l->count.ipi_slow, 0);
	}
}

static void apic_ids_need_not_be_vcpu_indices(void **state)
{
	fix_online(1, true);
	vlapic_setup(&fix_cpu[1], &fix_map, 300, &fix_tpr[1]);
	vlapic_reset(&fix_cpu[1], true, false);
	fix_write(&fix_cpu[1], APIC_SVR, 0x1ff);
	assert_int_equal(fix_read(&fix_cpu[1], APIC_ID), 300);
	assert_int_equal(fix_read(&fix_cpu[1], APIC_LDR), 18 << 16 | 1 << 12);
	assert_int_equal(reached(l, 300, 0), BIT(1));
	assert_int_equal(reached(l, 1, 0), 0);
	assert_int_equal(reached(l, 18 << 16 | 1 << 12, LOGICAL), BIT(1));
}

static void a_second_ipi_with_the_same_vector_does_not_kick_again(void **state)
{
	fix_online(2, true);
	fix_ipi(l, 1, V, 0);
	fix_ipi(l, 1, V, 0);
	assert_int_equal(fix_kicks[1], 1);
	assert_int_equal(fix_take(&fix_cpu[1], 0), V);
	assert_int_equal(fix_take(&fix_cpu[1], 0), -1);
	fix_ipi(l, 1, V, 0);
	assert_int_equal(fix_kicks[1], 2);
}

static void self_ipi_in_every_form_sets_the_irr_and_kicks_nobody(void **state)
{
	fix_online(2, true);
	l = &fix_cpu[1];
	assert_int_equal(reached(l, 1, 0), BIT(1));
	assert_int_equal(reached(l, 0, SELF), BIT(1));
	assert_int_equal(reached(l, 2, LOGICAL), BIT(1));
	fix_clear_irr();
	fix_write(l, APIC_SELF_IPI, V);
	assert_int_equal(fix_who_has(V), BIT(1));
	assert_int_equal(fix_kicks[1], 0);
	assert_int_equal(l->count.ipi_self, 4);
	assert_int_equal(l->count.ipi_unicast, 0);
	l = &fix_cpu[0];
}

static void xapic_icr_uses_the_high_half_written_before(void **state)
{
	fix_online(4, false);
	vlapic_mmio_write(l, APIC_ICR2, 2u << 24, 0);
	vlapic_mmio_write(l, APIC_ICR, V, 0);
	vlapic_mmio_write(l, APIC_ICR, V + 1, 0);
	assert_int_equal(fix_who_has(V), BIT(2));
	assert_int_equal(fix_who_has(V + 1), BIT(2));
	assert_int_equal(vlapic_mmio_read(l, APIC_ICR, 0), V + 1);
	assert_int_equal(vlapic_mmio_read(l, APIC_ICR2, 0), 2u << 24);
}

static void x2apic_icr_reads_back_without_the_busy_bit(void **state)
{
	fix_online(4, true);
	fix_ipi(l, 3, V | 0x5000, 0);
	assert_int_equal(fix_read(l, APIC_ICR), 3ull << 32 | V | 0x4000);
	assert_int_equal(fix_who_has(V), BIT(3));
}

static void level_and_assert_bits_do_not_make_a_fixed_ipi_level_triggered(void **state)
{
	fix_online(2, true);
	fix_ipi(l, 1, V | 0xc000, 0);
	assert_int_equal(fix_read(&fix_cpu[1], APIC_TMR + 0x20), 0);
	assert_true(fix_in_irr(&fix_cpu[1], V));
}

/* ---- Broadcast and shorthands ---- */

static void broadcast_destination_depends_on_the_senders_mode(void **state)
{
	fix_online(5, true);
	assert_int_equal(reached(l, 0xffffffff, 0), all(5));
	assert_int_equal(reached(l, 0xffffffff, LOGICAL), all(5));
	assert_int_equal(reached(l, 0xff, 0), 0); /* just an id that nobody has */
	assert_int_equal(l->count.ipi_broadcast, 2);
	fix_online(5, false);
	assert_int_equal(reached(l, 0xff, 0), all(5));
	assert_int_equal(l->count.ipi_broadcast, 1);
}

static void shorthands_reach_whom_they_say(void **state)
{
	int x2apic;

	for (x2apic = 0; x2apic < 2; x2apic++) {
		fix_online(5, x2apic);
		l = &fix_cpu[2];
		assert_int_equal(reached(l, 4, SELF), BIT(2));
		assert_int_equal(reached(l, 4, ALL), all(5));
		assert_int_equal(fix_kicks[2], 0);
		assert_int_equal(fix_kicks[3], 1);
		assert_int_equal(reached(l, 4, OTHERS), all(5) & ~BIT(2));
		assert_int_equal(l->count.ipi_broadcast, 2);
		l = &fix_cpu[0];
	}
}

static void all_but_self_reaches_36_cpus_with_an_nmi(void **state)
{
	u32 i;

	fix_online(37, true);
	fix_ipi(l, 0, OTHERS | 0x400, 0);
	assert_false(vlapic_take_nmi(l));
	for (i = 1; i < 37; i++)
		assert_true(vlapic_take_nmi(&fix_cpu[i]));
	assert_int_equal(l->count.ipi_nmi, 36);
}

static void invalid_combinations_send_nothing(void **state)
{
	static const u32 invalid[] = {
	    SELF | 0x100, SELF | 0x400,	  SELF | 0x500, SELF | 0x600, ALL | 0x100,
	    ALL | 0x400,  ALL | 0x500,	  ALL | 0x600,	0x200,	      0x300,
	    0x700,	  OTHERS | 0x700, 0x8500,
	};
	u32 i, n;

	fix_online(3, true);
	for (i = 0; i < ARRAY_SIZE(invalid); i++) {
		fix_ipi(l, 1, invalid[i] | V, 0);
		for (n = 0; n < 3; n++)
			assert_false(vlapic_has_work(&fix_cpu[n]));
	}
	assert_int_equal(l->count.ipi_invalid, ARRAY_SIZE(invalid));
}

static void software_disabled_ones_take_nmi_init_sipi_but_nothing_fixed(void **state)
{
	fix_online(3, true);
	fix_write(&fix_cpu[1], APIC_SVR, 0xff);
	assert_int_equal(reached(l, 0, OTHERS), BIT(2));
	fix_ipi(l, 0, OTHERS | 0x400, 0);
	assert_true(vlapic_take_nmi(&fix_cpu[1]));
	fix_ipi(l, 0, OTHERS | 0x4500, 0);
	assert_true(fix_cpu[1].events & VLAPIC_EV_INIT);
	assert_true(fix_cpu[2].events & VLAPIC_EV_INIT);
	assert_false(l->events & VLAPIC_EV_INIT);
}

/* ---- Logical ---- */

static void x2apic_logical_is_cluster_and_bits_of_the_id(void **state)
{
	fix_online(FIX_VCPUS, true);
	assert_int_equal(reached(l, 0x00000001, LOGICAL), BIT(0));
	assert_int_equal(reached(l, 0x00008000, LOGICAL), BIT(15));
	assert_int_equal(reached(l, 0x00010001, LOGICAL), BIT(16));
	assert_int_equal(reached(l, 0x0002ffff, LOGICAL), 0xffull << 32);
	assert_int_equal(reached(l, 0x00010a05, LOGICAL), 0xa05ull << 16);
	assert_int_equal(reached(l, 0x00030001, LOGICAL), 0);
	assert_int_equal(reached(l, 0x0fff0001, LOGICAL), 0);
	assert_int_equal(reached(l, 0x00000000, LOGICAL), 0);
	assert_int_equal(l->count.ipi_slow, 0);
	assert_int_equal(l->count.ipi_multicast, 2);
	assert_int_equal(l->count.ipi_unicast, 2);
	assert_int_equal(l->count.ipi_self, 1);
}

static void flat(u32 n)
{
	u32 i;

	fix_online(n, false);
	for (i = 0; i < n && i < 8; i++)
		fix_write(&fix_cpu[i], APIC_LDR, BIT(24 + i));
}

static void flat_logical_matches_any_common_bit(void **state)
{
	u32 dest;

	flat(8);
	assert_int_equal(fix_map.logical_mode, APIC_LOGICAL_FLAT);
	for (dest = 0; dest < 256; dest++) {
		assert_int_equal(reached(l, dest, LOGICAL), dest);
		assert_int_equal(reached_by_device(dest, true, 0), dest);
	}
	assert_int_equal(l->count.ipi_slow, 0);
}

static void flat_logical_broadcast_does_not_reach_who_has_no_ldr(void **state)
{
	flat(8);
	fix_write(&fix_cpu[5], APIC_LDR, 0);
	assert_int_equal(reached(l, 0xff, LOGICAL), all(8) & ~BIT(5));
}

static void cluster_logical_needs_the_cluster_and_a_bit(void **state)
{
	u32 i, bits;

	fix_online(FIX_VCPUS, false);
	for (i = 0; i < FIX_VCPUS; i++) {
		fix_write(&fix_cpu[i], APIC_DFR, 0);
		fix_write(&fix_cpu[i], APIC_LDR, (i / 4) << 28 | 1u << (24 + i % 4));
	}
	assert_int_equal(fix_map.logical_mode, APIC_LOGICAL_CLUSTER);
	for (i = 0; i < 10; i++)
		for (bits = 0; bits < 16; bits++)
			assert_int_equal(reached(l, i << 4 | bits, LOGICAL), (u64)bits << i * 4);
	assert_int_equal(reached(l, 0xa1, LOGICAL), 0);
	assert_int_equal(l->count.ipi_slow, 0);
	assert_int_equal(reached(l, 0xff, LOGICAL), all(FIX_VCPUS));
}

static void walk_answers_what_the_table_cannot(void **state)
{
	flat(4);
	fix_write(&fix_cpu[2], APIC_LDR, 0x06000000); /* two bits, one of them shared */
	assert_int_equal(fix_map.logical_mode, APIC_LOGICAL_WALK);
	assert_int_equal(reached(l, 2, LOGICAL), BIT(1) | BIT(2));
	assert_int_equal(reached(l, 4, LOGICAL), BIT(2));
	assert_int_equal(reached(l, 9, LOGICAL), BIT(0) | BIT(3));
	assert_int_equal(l->count.ipi_slow, 3);
	assert_int_equal(l->count.ipi_fast, 0);
}

static void mixed_modes_are_resolved_by_each_apics_own_registers(void **state)
{
	flat(4);
	assert_true(vlapic_set_base(&fix_cpu[0], VLAPIC_BASE | APIC_BASE_EN | APIC_BASE_EXTD));
	assert_int_equal(fix_map.logical_mode, APIC_LOGICAL_WALK);
	assert_int_equal(reached(l, 3, 0), BIT(3));
	assert_int_equal(reached(&fix_cpu[1], 0, 0), BIT(0));
	/* 32-bit destination: cluster 0 member 0 by its id, the others by their LDR. */
	assert_int_equal(reached(l, 0x09, LOGICAL), BIT(0) | BIT(3));
	assert_int_equal(reached(l, 0x10009, LOGICAL), 0);
	assert_int_equal(reached(l, 0xffffffff, LOGICAL), all(4));
	assert_int_equal(reached(l, 0xffffffff, 0), all(4));
	assert_int_equal(reached(&fix_cpu[1], 0xff, 0), all(4));
}

static void map_is_not_used_while_it_is_being_written(void **state)
{
	flat(4);
	fix_map.logical[2] = NULL; /* half written */
	fix_map.seq++;
	assert_int_equal(reached(l, 4, LOGICAL), BIT(2));
	assert_int_equal(l->count.ipi_slow, 1);
	fix_map.seq++;
	assert_int_equal(reached(l, 4, LOGICAL),
			 0); /* the table is believed again: it was broken */
}

static void a_disabled_apic_leaves_and_rejoins_the_map(void **state)
{
	flat(4);
	assert_true(vlapic_set_base(&fix_cpu[2], VLAPIC_BASE));
	assert_int_equal(reached(l, 2, 0), 0);
	assert_int_equal(reached(l, 0xf, LOGICAL), BIT(0) | BIT(1) | BIT(3));
	assert_int_equal(reached(l, 0, OTHERS), BIT(1) | BIT(3));
	assert_true(vlapic_set_base(&fix_cpu[2], VLAPIC_BASE | APIC_BASE_EN));
	fix_write(&fix_cpu[2], APIC_SVR, 0x1ff);
	assert_int_equal(reached(l, 2, 0), BIT(2));
}

/* ---- Lowest priority ---- */

static void lowest_priority_takes_turns_among_those_who_accept(void **state)
{
	u64 got[4] = {0};
	u32 i, n;

	flat(4);
	fix_write(&fix_cpu[1], APIC_SVR, 0xff);
	for (i = 0; i < 300; i++) {
		u64 who = reached(l, 0xf, LOGICAL | LOWEST);

		assert_int_equal(__builtin_popcountll(who), 1);
		got[ffs64(who)]++;
	}
	for (n = 0; n < 4; n++)
		assert_int_equal(got[n], n == 1 ? 0 : 100);
	assert_int_equal(__builtin_popcountll(reached_by_device(0xf, true, 1)), 1);
}

/* ---- Devices ---- */

static void device_messages_reach_x2apic_cpus_by_8_bit_destination(void **state)
{
	fix_online(20, true);
	assert_int_equal(reached_by_device(17, false, 0), BIT(17));
	assert_int_equal(reached_by_device(0xff, false, 0), all(20));
	assert_int_equal(reached_by_device(0x81, true, 0), BIT(0) | BIT(7));
	assert_int_equal(reached_by_device(0xff, true, 0), all(20));
	assert_int_equal(reached_by_device(40, false, 0), 0);
}

static void device_message_sets_the_trigger_mode(void **state)
{
	struct apic_msg msg = {.dest = 1, .vector = V, .level = true};

	fix_online(2, true);
	assert_int_equal(apic_map_deliver(&fix_map, &msg), 1);
	assert_int_equal(fix_kicks[1], 1);
	assert_int_equal(fix_read(&fix_cpu[1], APIC_TMR + 0x20), 1);
	fix_ipi(l, 1, V, 0);
	assert_int_equal(fix_read(&fix_cpu[1], APIC_TMR + 0x20), 0);
}

static void device_message_with_an_illegal_vector_is_lost_and_noted(void **state)
{
	struct apic_msg msg = {.dest = 1, .vector = 7};

	fix_online(2, true);
	assert_int_equal(apic_map_deliver(&fix_map, &msg), 0);
	assert_false(vlapic_has_work(&fix_cpu[1]));
	assert_int_equal(fix_cpu[1].esr_pending, 0x40);
}

static void device_nmi_and_init_arrive(void **state)
{
	struct apic_msg msg = {.dest = 1, .delivery = APIC_DM_NMI};

	fix_online(2, true);
	assert_int_equal(apic_map_deliver(&fix_map, &msg), 1);
	assert_true(vlapic_take_nmi(&fix_cpu[1]));
	msg.delivery = APIC_DM_INIT;
	assert_int_equal(apic_map_deliver(&fix_map, &msg), 1);
	assert_true(fix_cpu[1].events & VLAPIC_EV_INIT);
	msg.delivery = APIC_DM_SMI;
	assert_int_equal(apic_map_deliver(&fix_map, &msg), 0);
}

/* ---- The short way ---- */

static void the_short_way_takes_plain_unicasts_and_nothing_else(void **state)
{
	static const u32 others[] = {
	    LOGICAL | V,    SELF | V,	    ALL | V,	    OTHERS | V, LOWEST | V,
	    0x400 | V,	    0x500 | V,	    0x600 | V,	    0x8, /* an illegal vector */
	    (1u << 12) | V,					 /* busy */
	    (1u << 13) | V, (1u << 16) | V, (1u << 20) | V,
	};
	u32 i;

	fix_online(4, true);
	assert_ptr_equal(vlapic_x2apic_unicast_target(l, 2, V), &fix_cpu[2]);
	assert_ptr_equal(vlapic_x2apic_unicast_target(l, 2, 0xc000 | V), &fix_cpu[2]);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		assert_null(vlapic_x2apic_unicast_target(l, 2, others[i]));
	assert_null(vlapic_x2apic_unicast_target(l, 0, V)); /* itself */
	assert_null(vlapic_x2apic_unicast_target(l, 4, V)); /* nobody */
	assert_null(vlapic_x2apic_unicast_target(l, UINT32_MAX, V));
	fix_write(&fix_cpu[2], APIC_SVR, 0xff); /* software-disabled */
	assert_null(vlapic_x2apic_unicast_target(l, 2, V));
	fix_online(4, false);
	assert_null(vlapic_x2apic_unicast_target(l, 2, V));
}

/* Whatever is under way there: the short way and the long one leave the same behind. */
static void both_ways_do_the_same(void **state)
{
	static const struct {
		bool level, pending, other;
	} before[] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}, {0, 1, 1}};
	struct ipi_counters count[2];
	struct vlapic after[2];
	u32 i, way;

	for (i = 0; i < ARRAY_SIZE(before); i++) {
		for (way = 0; way < 2; way++) {
			fix_online(4, true);
			if (before[i].level)
				vlapic_post_trigger(&fix_cpu[2], V, true);
			if (before[i].pending)
				fix_ipi(l, 2, V, 10);
			if (before[i].other)
				fix_ipi(&fix_cpu[1], 2, V, 20);
			fix_forget_kicks();
			if (way) {
				vlapic_send_unicast(l, &fix_cpu[2], 100, V);
				vlapic_sent_unicast(l, 2ull << 32 | V);
			} else {
				/* A destination that only the long way resolves. */
				fix_ipi(l, 4, LOGICAL | V, 100);
				l->icr = 2ull << 32 | V;
			}
			count[way] = l->count;
			after[way] = fix_cpu[2];
			assert_int_equal(fix_kicks[2], !(before[i].level || before[i].pending ||
							 before[i].other));
		}
		assert_memory_equal(&count[0], &count[1], sizeof(count[0]));
		assert_memory_equal(&after[0], &after[1], sizeof(after[0]));
	}
}

/* ---- What the trace asks: to how many others, without sending ---- */

static u32 asked(u32 dest, u32 low, u32 *only)
{
	u64 before = fix_who_has(V), icr;
	u32 others;

	icr = (l->mode == VLAPIC_X2APIC ? (u64)dest << 32 : (u64)dest << 56) | low | V;
	*only = 99;
	others = vlapic_icr_receivers(l, icr, only);
	assert_int_equal(fix_who_has(V), before);
	return others;
}

static void the_number_of_receivers_is_known_before_they_are_sent_to(void **state)
{
	u32 only;

	for (int x2apic = 0; x2apic < 2; x2apic++) {
		fix_online(4, x2apic);
		fix_clear_irr();
		assert_int_equal(asked(2, 0, &only), 1);
		assert_int_equal(only, 2);
		assert_int_equal(asked(0, 0, &only), 0);
		assert_int_equal(asked(0, SELF, &only), 0);
		assert_int_equal(asked(7, 0, &only), 0);
		assert_int_equal(asked(x2apic ? UINT32_MAX : 0xff, 0, &only), 3);
		assert_int_equal(asked(0, ALL, &only), 3);
		assert_int_equal(asked(0, OTHERS, &only), 3);
		assert_int_equal(asked(2, 4 << 8, &only), 0);
		assert_int_equal(asked(0, 5 << 8 | OTHERS, &only), 0);
		assert_int_equal(asked(1, LOWEST, &only), 1);
		fix_write(&fix_cpu[2], APIC_SVR, 0xff); /* software-disabled */
		assert_int_equal(asked(2, 0, &only), 0);
		assert_int_equal(asked(0, OTHERS, &only), 2);
	}
}

static void a_vector_that_is_not_allowed_has_no_receivers(void **state)
{
	u32 only;

	fix_online(2, true);
	assert_int_equal(vlapic_icr_receivers(l, 1ull << 32 | 15, &only), 0);
	assert_int_equal(vlapic_icr_receivers(l, 1ull << 32 | 16, &only), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(physical_reaches_exactly_its_id),
	    cmocka_unit_test(apic_ids_need_not_be_vcpu_indices),
	    cmocka_unit_test(a_second_ipi_with_the_same_vector_does_not_kick_again),
	    cmocka_unit_test(self_ipi_in_every_form_sets_the_irr_and_kicks_nobody),
	    cmocka_unit_test(xapic_icr_uses_the_high_half_written_before),
	    cmocka_unit_test(x2apic_icr_reads_back_without_the_busy_bit),
	    cmocka_unit_test(level_and_assert_bits_do_not_make_a_fixed_ipi_level_triggered),
	    cmocka_unit_test(broadcast_destination_depends_on_the_senders_mode),
	    cmocka_unit_test(shorthands_reach_whom_they_say),
	    cmocka_unit_test(all_but_self_reaches_36_cpus_with_an_nmi),
	    cmocka_unit_test(invalid_combinations_send_nothing),
	    cmocka_unit_test(software_disabled_ones_take_nmi_init_sipi_but_nothing_fixed),
	    cmocka_unit_test(x2apic_logical_is_cluster_and_bits_of_the_id),
	    cmocka_unit_test(flat_logical_matches_any_common_bit),
	    cmocka_unit_test(flat_logical_broadcast_does_not_reach_who_has_no_ldr),
	    cmocka_unit_test(cluster_logical_needs_the_cluster_and_a_bit),
	    cmocka_unit_test(walk_answers_what_the_table_cannot),
	    cmocka_unit_test(mixed_modes_are_resolved_by_each_apics_own_registers),
	    cmocka_unit_test(map_is_not_used_while_it_is_being_written),
	    cmocka_unit_test(a_disabled_apic_leaves_and_rejoins_the_map),
	    cmocka_unit_test(lowest_priority_takes_turns_among_those_who_accept),
	    cmocka_unit_test(device_messages_reach_x2apic_cpus_by_8_bit_destination),
	    cmocka_unit_test(device_message_sets_the_trigger_mode),
	    cmocka_unit_test(device_message_with_an_illegal_vector_is_lost_and_noted),
	    cmocka_unit_test(device_nmi_and_init_arrive),
	    cmocka_unit_test(the_short_way_takes_plain_unicasts_and_nothing_else),
	    cmocka_unit_test(both_ways_do_the_same),
	    cmocka_unit_test(the_number_of_receivers_is_known_before_they_are_sent_to),
	    cmocka_unit_test(a_vector_that_is_not_allowed_has_no_receivers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
