/* SPDX-License-Identifier: BSD-2-Clause */
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c
/*
 * The IPI tracker, through the registers that feed it: every rule, each known mistake of others,
 * and exact counts for known patterns.
 */
#include "tests/unit/vapic_fixture.h"

#define A (&fix_cpu[0])
#define B (&fix_cpu[1])
#define C (&fix_cpu[2])
#define V 0x40u
#define W 0x51u
#define LOGICAL 0x800u
#define OTHERS (3u << 18)

/* The outstanding receivers of @l as text, oldest first: "1:40 2:51". */
static const char *waits(struct vlapic *l, u64 now)
{
	static char text[4096];
	struct ipi_wait wait;
	u32 cursor = l->track.tail;
	int n = 0;

	text[0] = 0;
	while (ipi_track_next(&l->track, now, &cursor, &wait))
		n += snprintf(text + n, sizeof(text) - n, "%s%u:%x", n ? " " : "", wait.receiver,
			      wait.vector);
	return text;
}

static void accept(struct vlapic *l, u64 now)
{
	assert_true(fix_take(l, now) >= 0);
}

static void serve(struct vlapic *l, u64 now)
{
	accept(l, now);
	vlapic_eoi(l, now);
}

/* ---- The rules ---- */

static void unicast_is_outstanding_until_its_eoi(void **state)
{
	int x2apic;

	for (x2apic = 0; x2apic < 2; x2apic++) {
		fix_online(3, x2apic);
		fix_ipi(A, 1, V, 100);
		assert_string_equal(waits(A, 150), "1:40");
		assert_int_equal(ipi_track_sender(&B->track, V), -1); /* not in service yet */
		accept(B, 200);
		assert_int_equal(ipi_track_sender(&B->track, V), 0);
		assert_string_equal(waits(A, 250), "1:40");
		vlapic_eoi(B, 300);
		assert_int_equal(ipi_track_sender(&B->track, V), -1);
		assert_string_equal(waits(A, 350), "");
		assert_int_equal(A->count.ipi_tracked, 1);
		assert_int_equal(B->count.eoi_matched, 1);
		assert_int_equal(B->count.eoi_unmatched, 0);
		assert_int_equal(B->count.send_to_delivery.bucket[7], 1); /* 100 ticks */
		assert_int_equal(B->count.send_to_delivery.sum, 100);
		assert_int_equal(B->count.send_to_eoi.max, 200);
		assert_int_equal(B->count.send_to_eoi.bucket[8], 1); /* 200 ticks */
	}
}

static void several_receivers_are_outstanding_oldest_first(void **state)
{
	fix_online(4, true);
	fix_ipi(A, 2, V, 100);
	fix_ipi(A, 1, W, 200);
	fix_ipi(A, 3, V, 300);
	fix_ipi(A, 1, V, 400);
	assert_string_equal(waits(A, 500), "2:40 1:51 3:40 1:40");
	serve(B, 500); /* the higher one, W */
	assert_string_equal(waits(A, 600), "2:40 3:40 1:40");
	serve(C, 600);
	assert_string_equal(waits(A, 700), "3:40 1:40");
}

static void age_is_counted_from_the_send(void **state)
{
	struct ipi_wait wait;
	u32 cursor;

	fix_online(2, true);
	fix_ipi(A, 1, V, 1000);
	cursor = A->track.tail;
	assert_true(ipi_track_next(&A->track, 1234, &cursor, &wait));
	assert_int_equal(wait.age, 234);
	assert_int_equal(wait.receiver, 1);
	assert_int_equal(wait.vector, V);
	assert_false(ipi_track_next(&A->track, 1234, &cursor, &wait));
}

static void stale_entry_is_dropped_and_counted_once(void **state)
{
	fix_online(3, true);
	fix_knobs.window = 1000;
	fix_ipi(A, 1, V, 0);
	fix_ipi(A, 2, V, 500);
	assert_string_equal(waits(A, 1000), "1:40 2:40");
	assert_string_equal(waits(A, 1001), "2:40");
	assert_string_equal(waits(A, 1001), "2:40");
	assert_int_equal(A->count.ipi_expired, 1);
	serve(B, 1100);
	assert_int_equal(B->count.eoi_matched, 0);
	assert_int_equal(B->count.eoi_unmatched, 1);
	assert_int_equal(A->count.ipi_expired, 1);
}

static void clock_skew_between_cpus_does_not_make_an_entry_stale(void **state)
{
	fix_online(2, true);
	fix_ipi(A, 1, V, 5000);
	assert_string_equal(waits(A, 4990), "1:40");
	accept(B, 4995);
	assert_int_equal(B->count.send_to_delivery.bucket[0], 1);
}

static void guest_tsc_offsets_do_not_matter(void **state)
{
	fix_online(2, true);
	vlapic_set_tsc_offset(A, 1000000);
	vlapic_set_tsc_offset(B, -500);
	fix_ipi(A, 1, V, 1000000 + 5000);
	accept(B, 5256 - 500);
	assert_int_equal(B->count.send_to_delivery.bucket[9], 1);
	vlapic_eoi(B, 6024 - 500);
	assert_int_equal(B->count.send_to_eoi.bucket[11], 1);
}

static void long_uptime_does_not_confuse_the_window(void **state)
{
	u64 now = (1ull << 45) - 10;

	fix_online(2, true);
	fix_ipi(A, 1, V, now);
	assert_string_equal(waits(A, now + 100), "1:40");
	serve(B, now + 200);
	assert_int_equal(B->count.eoi_matched, 1);
	assert_int_equal(B->count.send_to_eoi.bucket[8], 1);
}

static void init_of_the_receiver_clears_what_others_wait_for(void **state)
{
	u8 vector;

	fix_online(3, true);
	fix_ipi(A, 1, V, 0);
	fix_ipi(A, 2, V, 0);
	fix_ipi(C, 1, V, 0); /* coalesces with A's */
	fix_ipi(A, 1, 0x4500, 0);
	vlapic_take_startup(B, &vector);
	/* Even when somebody sends the same vector to it at once. */
	fix_write(B, APIC_SVR, 0x1ff);
	fix_ipi(C, 1, V, 1);
	assert_string_equal(waits(A, 2), "2:40");
	assert_string_equal(waits(C, 2), "1:40");
}

static void init_of_the_receiver_forgets_who_sent_what_it_lost(void **state)
{
	u8 vector;

	fix_online(2, true);
	fix_ipi(A, 1, V, 0);
	fix_ipi(A, 1, 0x4500, 0);
	vlapic_take_startup(B, &vector);
	fix_write(B, APIC_SVR, 0x1ff);
	vlapic_post(B, V, false); /* a device's */
	serve(B, 1000);
	assert_int_equal(hist_count(&B->count.send_to_delivery), 0);
}

static void init_of_the_sender_clears_what_it_waits_for(void **state)
{
	u8 vector;

	fix_online(3, true);
	fix_ipi(A, 1, V, 0);
	fix_ipi(B, 0, 0x4500, 0);
	vlapic_take_startup(A, &vector);
	assert_string_equal(waits(A, 1), "");
	serve(B, 2); /* and the EOI finds nothing to clear */
	assert_int_equal(B->count.eoi_unmatched, 1);
	fix_write(A, APIC_SVR, 0x1ff);
	fix_ipi(A, 1, V, 3);
	assert_string_equal(waits(A, 4), "1:40");
}

static void knob_switches_it_off(void **state)
{
	fix_online(2, true);
	fix_knobs.enabled = false;
	fix_ipi(A, 1, V, 0);
	assert_string_equal(waits(A, 1), "");
	serve(B, 2);
	assert_int_equal(A->count.ipi_tracked, 0);
	assert_int_equal(A->count.ipi_unicast, 1);
	assert_int_equal(B->count.eoi_unmatched, 1);
}

/* ---- The known mistakes ---- */

static void eoi_of_an_incoming_ipi_does_not_erase_what_the_receiver_waits_for(void **state)
{
	fix_online(3, true);
	fix_ipi(B, 2, V, 0); /* B waits for C */
	fix_ipi(A, 1, V, 1); /* A sends to B */
	serve(B, 2);
	assert_string_equal(waits(B, 3), "2:40");
	assert_string_equal(waits(A, 3), "");
	/* And crosswise, the same vector both ways. */
	fix_ipi(A, 1, W, 4);
	fix_ipi(B, 0, W, 4);
	serve(B, 5);
	assert_string_equal(waits(B, 6), "2:40 0:51");
	serve(A, 7);
	assert_string_equal(waits(B, 8), "2:40");
}

static void unrelated_eoi_clears_nothing(void **state)
{
	fix_online(3, true);
	fix_ipi(A, 1, V, 0);
	vlapic_post(B, W, false); /* a device's interrupt, higher */
	serve(B, 1);
	assert_string_equal(waits(A, 2), "1:40");
	fix_ipi(B, 1, 0x61, 2); /* its own */
	serve(B, 3);
	assert_string_equal(waits(A, 4), "1:40");
	fix_ipi(C, 1, 0x71, 4); /* another sender's */
	serve(B, 5);
	assert_string_equal(waits(A, 6), "1:40");
	fix_ipi(A, 1, 0x81, 6); /* another one of the same sender */
	serve(B, 7);
	assert_string_equal(waits(A, 8), "1:40");
	serve(B, 9);
	assert_string_equal(waits(A, 9), "");
}

static void old_eoi_does_not_clear_a_newer_ipi_with_the_same_vector(void **state)
{
	fix_online(3, true);
	fix_ipi(A, 1, V, 0);
	accept(B, 10);
	fix_ipi(A, 1, V, 20); /* while the first is in service */
	assert_string_equal(waits(A, 30), "1:40 1:40");
	vlapic_eoi(B, 40);
	assert_string_equal(waits(A, 50), "1:40");
	serve(B, 60);
	assert_string_equal(waits(A, 70), "");
	assert_int_equal(B->count.eoi_matched, 2);

	/* The newer one from another sender. */
	fix_ipi(A, 1, V, 100);
	accept(B, 110);
	fix_ipi(C, 1, V, 120);
	vlapic_eoi(B, 130);
	assert_string_equal(waits(A, 140), "");
	assert_string_equal(waits(C, 140), "1:40");
}

static void self_ipi_is_never_recorded(void **state)
{
	fix_online(2, true);
	fix_ipi(A, 0, V, 0);
	serve(A, 1);
	fix_ipi(A, 0, V | 1u << 18, 0);
	serve(A, 1);
	fix_ipi(A, 1, V | LOGICAL, 0);
	serve(A, 1);
	fix_write(A, APIC_SELF_IPI, V);
	assert_string_equal(waits(A, 2), "");
	assert_int_equal(A->count.ipi_tracked, 0);
	assert_int_equal(A->count.ipi_self, 4);
}

static void multicast_is_not_recorded_as_unicast(void **state)
{
	fix_online(4, true);
	fix_ipi(A, 0x6, V | LOGICAL, 0);
	fix_ipi(A, 0, W | OTHERS, 0);
	fix_ipi(A, 0xffffffff, 0x61, 0);
	fix_ipi(A, 0, 0x71 | 2u << 18, 0);
	assert_string_equal(waits(A, 1), "");
	assert_int_equal(A->count.ipi_tracked, 0);
	assert_int_equal(A->count.ipi_multicast, 1);
	assert_int_equal(A->count.ipi_broadcast, 3);
	/* Self and one other are two destinations. */
	fix_ipi(A, 0x3, V | LOGICAL, 0);
	assert_string_equal(waits(A, 1), "");
	assert_int_equal(A->count.ipi_multicast, 2);
}

static void shorthand_to_a_single_other_vcpu_is_no_unicast(void **state)
{
	fix_online(2, true);
	fix_ipi(A, 0, V | OTHERS, 0);
	assert_string_equal(waits(A, 1), "");
	assert_int_equal(A->count.ipi_broadcast, 1);
}

static void slow_path_records_too(void **state)
{
	u32 i;

	fix_online(4, false);
	for (i = 0; i < 4; i++)
		fix_write(&fix_cpu[i], APIC_LDR, i < 2 ? 0x01000000 : BIT(24 + i));
	assert_int_equal(fix_map.logical_mode, APIC_LOGICAL_WALK);
	fix_ipi(A, 0x4, V | LOGICAL, 0);
	assert_int_equal(A->count.ipi_slow, 1);
	assert_string_equal(waits(A, 1), "2:40");
	serve(C, 2);
	assert_string_equal(waits(A, 3), "");
	assert_int_equal(C->count.eoi_matched, 1);
}

static void logical_destination_of_one_is_recorded(void **state)
{
	fix_online(20, true);
	fix_ipi(A, 1 << 16 | 0x4, V | LOGICAL, 0);
	assert_string_equal(waits(A, 1), "18:40");
	/* Two addressed, one of them does not accept: one receiver. */
	fix_write(B, APIC_SVR, 0xff);
	fix_ipi(A, 0x6, V | LOGICAL, 0);
	assert_string_equal(waits(A, 1), "18:40 2:40");
	assert_int_equal(A->count.ipi_unicast, 2);
}

static void nmi_init_sipi_lowest_and_devices_never_count(void **state)
{
	struct apic_msg msg = {.dest = 1, .vector = W};
	u8 vector;

	fix_online(2, true);
	fix_ipi(A, 1, 0x400, 0);
	fix_ipi(A, 1, V | 0x100, 0);
	apic_map_deliver(&fix_map, &msg);
	assert_string_equal(waits(A, 1), "");
	serve(B, 2);
	serve(B, 2);
	assert_int_equal(B->count.eoi_unmatched, 2);
	fix_ipi(A, 1, 0x4500, 0);
	fix_ipi(A, 1, 0x4610, 0);
	assert_string_equal(waits(A, 1), "");
	assert_int_equal(vlapic_take_startup(B, &vector), VLAPIC_STARTUP_INIT);
	assert_int_equal(A->count.ipi_tracked, 0);
}

static void ipi_that_nobody_accepts_is_not_recorded(void **state)
{
	fix_online(2, true);
	fix_write(B, APIC_SVR, 0xff);
	fix_ipi(A, 1, V, 0);
	fix_ipi(A, 7, V, 0);
	assert_string_equal(waits(A, 1), "");
	assert_int_equal(A->count.ipi_nowhere, 2);
}

/* ---- Coalescing ---- */

static void repeated_ipi_that_coalesced_is_one_entry(void **state)
{
	fix_online(2, true);
	fix_ipi(A, 1, V, 0);
	fix_ipi(A, 1, V, 10);
	fix_ipi(A, 1, V, 20);
	assert_string_equal(waits(A, 30), "1:40");
	serve(B, 40);
	assert_string_equal(waits(A, 50), "");
	assert_int_equal(A->count.ipi_coalesced, 2);
	assert_int_equal(B->count.eoi_matched, 1);
}

static void two_senders_that_coalesced_are_both_acknowledged(void **state)
{
	fix_online(3, true);
	fix_ipi(A, 1, V, 0);
	fix_ipi(C, 1, V, 10);
	assert_string_equal(waits(A, 20), "1:40");
	assert_string_equal(waits(C, 20), "1:40");
	accept(B, 30);
	assert_string_equal(waits(A, 40), "1:40");
	vlapic_eoi(B, 50);
	assert_int_equal(B->count.eoi_matched, 1); /* the last sender's */
	assert_string_equal(waits(C, 60), "");
	assert_string_equal(waits(A, 60), "");
	assert_int_equal(A->count.ipi_coalesced, 1);
	assert_int_equal(A->count.ipi_expired, 0);
}

/* ---- Multicast on ---- */

static void multicast_on_records_every_receiver_but_the_sender(void **state)
{
	fix_online(5, true);
	fix_knobs.multicast = true;
	fix_ipi(A, 0x7, V | LOGICAL, 0);
	assert_string_equal(waits(A, 1), "1:40 2:40");
	serve(C, 2);
	assert_string_equal(waits(A, 3), "1:40");
	fix_ipi(A, 0, W | OTHERS, 4);
	assert_string_equal(waits(A, 5), "1:40 1:51 2:51 3:51 4:51");
	assert_int_equal(A->count.ipi_tracked, 6);
}

static void ring_holds_all_receivers_of_a_wide_multicast(void **state)
{
	u32 i, n = 0, cursor;
	struct ipi_wait wait;

	fix_online(FIX_VCPUS, true);
	fix_knobs.multicast = true;
	for (i = 0; i < 6; i++)
		fix_ipi(A, 0, (V + i) | OTHERS, i);
	cursor = A->track.tail;
	while (ipi_track_next(&A->track, 10, &cursor, &wait))
		n++;
	assert_int_equal(n, 6 * (FIX_VCPUS - 1));
	assert_int_equal(A->count.ipi_overwritten, 0);
}

static void full_ring_forgets_the_oldest_and_counts_it(void **state)
{
	u32 i, n = 0, cursor;
	struct ipi_wait wait;

	fix_online(FIX_VCPUS, true);
	fix_knobs.multicast = true;
	for (i = 0; i < 8; i++) /* 312 */
		fix_ipi(A, 0, (V + i) | OTHERS, i);
	cursor = A->track.tail;
	while (ipi_track_next(&A->track, 10, &cursor, &wait))
		n++;
	assert_int_equal(n, IPI_TRACK_SLOTS);
	assert_int_equal(A->count.ipi_overwritten, 8 * 39 - IPI_TRACK_SLOTS);
	/* The EOIs of the forgotten ones clear nothing of their successors. */
	serve(B, 20);
	assert_int_equal(B->count.eoi_matched, 1);
	for (i = 0; i < 7; i++)
		serve(B, 21);
	cursor = A->track.tail;
	for (n = 0; ipi_track_next(&A->track, 22, &cursor, &wait);)
		n += wait.receiver == 1;
	assert_int_equal(n, 0);
}

static void ring_goes_round_and_counters_wrap(void **state)
{
	u32 i;

	fix_online(2, true);
	A->track.head = A->track.tail = UINT32_MAX - 100;
	for (i = 0; i < 1000; i++) {
		fix_ipi(A, 1, V, i);
		assert_string_equal(waits(A, i), "1:40");
		serve(B, i);
		assert_string_equal(waits(A, i), "");
	}
	assert_int_equal(B->count.eoi_matched, 1000);
}

static void never_looking_costs_nothing_and_loses_nothing(void **state)
{
	u32 i;

	fix_online(2, true);
	for (i = 0; i < 100000; i++) {
		fix_ipi(A, 1, V, i);
		serve(B, i);
	}
	fix_ipi(A, 1, W, i);
	assert_string_equal(waits(A, i), "1:51");
	assert_int_equal(A->count.ipi_overwritten + A->count.ipi_expired, 0);
	assert_int_equal(B->count.eoi_matched, 100000);
}

/* ---- Exact counts ---- */

static void counts_equal_a_known_pattern_exactly(void **state)
{
	u64 matched = 0, unmatched = 0, i, n;

	fix_online(8, true);
	for (i = 0; i < 1000; i++) {
		fix_ipi(A, 1 + i % 7, V, i * 100);
		serve(&fix_cpu[1 + i % 7], i * 100 + 50);
		if (i % 2 == 0) {
			fix_ipi(A, 0xfe, W | LOGICAL, i * 100);
			for (n = 1; n < 8; n++)
				serve(&fix_cpu[n], i * 100 + 60);
		}
		if (i % 5 == 0) {
			fix_ipi(A, 0, V, i * 100);
			serve(A, i * 100);
		}
	}
	for (i = 1; i < 8; i++) {
		matched += fix_cpu[i].count.eoi_matched;
		unmatched += fix_cpu[i].count.eoi_unmatched;
	}
	assert_int_equal(A->count.ipi_unicast, 1000);
	assert_int_equal(A->count.ipi_multicast, 500);
	assert_int_equal(A->count.ipi_self, 200);
	assert_int_equal(A->count.ipi_tracked, 1000);
	assert_int_equal(A->count.ipi_fast, 1700);
	assert_int_equal(A->count.ipi_slow, 0);
	assert_int_equal(matched, 1000);
	assert_int_equal(unmatched, 7 * 500);
	assert_int_equal(A->count.eoi_unmatched, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(unicast_is_outstanding_until_its_eoi),
	    cmocka_unit_test(several_receivers_are_outstanding_oldest_first),
	    cmocka_unit_test(age_is_counted_from_the_send),
	    cmocka_unit_test(stale_entry_is_dropped_and_counted_once),
	    cmocka_unit_test(clock_skew_between_cpus_does_not_make_an_entry_stale),
	    cmocka_unit_test(guest_tsc_offsets_do_not_matter),
	    cmocka_unit_test(long_uptime_does_not_confuse_the_window),
	    cmocka_unit_test(init_of_the_receiver_clears_what_others_wait_for),
	    cmocka_unit_test(init_of_the_receiver_forgets_who_sent_what_it_lost),
	    cmocka_unit_test(init_of_the_sender_clears_what_it_waits_for),
	    cmocka_unit_test(knob_switches_it_off),
	    cmocka_unit_test(eoi_of_an_incoming_ipi_does_not_erase_what_the_receiver_waits_for),
	    cmocka_unit_test(unrelated_eoi_clears_nothing),
	    cmocka_unit_test(old_eoi_does_not_clear_a_newer_ipi_with_the_same_vector),
	    cmocka_unit_test(self_ipi_is_never_recorded),
	    cmocka_unit_test(multicast_is_not_recorded_as_unicast),
	    cmocka_unit_test(shorthand_to_a_single_other_vcpu_is_no_unicast),
	    cmocka_unit_test(slow_path_records_too),
	    cmocka_unit_test(logical_destination_of_one_is_recorded),
	    cmocka_unit_test(nmi_init_sipi_lowest_and_devices_never_count),
	    cmocka_unit_test(ipi_that_nobody_accepts_is_not_recorded),
	    cmocka_unit_test(repeated_ipi_that_coalesced_is_one_entry),
	    cmocka_unit_test(two_senders_that_coalesced_are_both_acknowledged),
	    cmocka_unit_test(multicast_on_records_every_receiver_but_the_sender),
	    cmocka_unit_test(ring_holds_all_receivers_of_a_wide_multicast),
	    cmocka_unit_test(full_ring_forgets_the_oldest_and_counts_it),
	    cmocka_unit_test(ring_goes_round_and_counters_wrap),
	    cmocka_unit_test(never_looking_costs_nothing_and_loses_nothing),
	    cmocka_unit_test(counts_equal_a_known_pattern_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
