/* SPDX-License-Identifier: BSD-2-Clause */
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c hv/apic/vioapic.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c
/* The I/O APIC, connected to local APICs as in a VM: pins, trigger modes, remote IRR, EOI. */
#define FIX_OWN_BROADCAST_EOI
#include "tests/unit/vapic_fixture.h"

#include "hv/apic/vioapic.h"

static struct vioapic io;
static struct vlapic *l = &fix_cpu[0];

void vapic_broadcast_eoi(struct vlapic *from, u8 vector)
{
	fix_eois[vector]++;
	vioapic_eoi(&io, vector);
}

#define LEVEL 0x8000u
#define LOW 0x2000u
#define MASKED 0x10000u
#define REMOTE_IRR 0x4000u
#define V 0x51u

static u32 rd(u8 index)
{
	vioapic_write(&io, 0, index);
	assert_int_equal(vioapic_read(&io, 0), index);
	return vioapic_read(&io, 0x10);
}

static void wr(u8 index, u32 value)
{
	vioapic_write(&io, 0, index);
	vioapic_write(&io, 0x10, value);
}

static u32 low(u32 pin)
{
	return rd(0x10 + 2 * pin);
}

static void set_low(u32 pin, u32 value)
{
	wr(0x10 + 2 * pin, value);
}

static void set_high(u32 pin, u32 value)
{
	wr(0x11 + 2 * pin, value);
}

static void fresh(void)
{
	fix_online(4, true);
	vioapic_setup(&io, &fix_map, 9);
}

/* Takes and ends the interrupt of vCPU 0: the vector or -1. */
static int serve(void)
{
	int vector = fix_take(l, 0);

	if (vector >= 0)
		vlapic_eoi(l, 0);
	return vector;
}

static void registers_after_reset(void **state)
{
	u32 pin, index;

	fresh();
	assert_int_equal(rd(0), 9u << 24);
	assert_int_equal(rd(1), 0x00170020);
	assert_int_equal(rd(2), 9u << 24);
	for (pin = 0; pin < 24; pin++) {
		assert_int_equal(low(pin), MASKED);
		assert_int_equal(rd(0x11 + 2 * pin), 0);
	}
	for (index = 0x40; index < 0x100; index++)
		assert_int_equal(rd(index), 0);
	assert_int_equal(vioapic_read(&io, 0x40), 0);
}

static void id_is_writable_and_survives_no_reset(void **state)
{
	fresh();
	wr(0, 0xff000000);
	assert_int_equal(rd(0), 0x0f000000);
	vioapic_reset(&io);
	assert_int_equal(rd(0), 9u << 24);
}

static void entries_keep_only_what_exists(void **state)
{
	fresh();
	set_low(3, 0xffffffff);
	assert_int_equal(low(3), 0x1afff);
	set_high(3, 0xffffffff);
	assert_int_equal(rd(0x17), 0xff000000);
	assert_int_equal(low(3), 0x1afff);
	wr(1, 0xffffffff);
	assert_int_equal(rd(1), 0x00170020);
	wr(0x40, 0xffffffff); /* past the last pin */
	assert_int_equal(rd(0x40), 0);
}

static void edge_sends_once_per_assertion(void **state)
{
	fresh();
	set_low(4, V);
	vioapic_set_irq(&io, 4, true);
	vioapic_set_irq(&io, 4, true);
	assert_int_equal(serve(), V);
	assert_int_equal(serve(), -1);
	assert_int_equal(fix_eois[V], 0);
	assert_int_equal(low(4), V);
	vioapic_set_irq(&io, 4, false);
	vioapic_set_irq(&io, 4, true);
	assert_int_equal(serve(), V);
	assert_int_equal(io.sent[4], 2);
}

static void edge_while_masked_is_lost(void **state)
{
	fresh();
	set_low(4, V | MASKED);
	vioapic_set_irq(&io, 4, true);
	set_low(4, V);
	assert_int_equal(serve(), -1);
	vioapic_set_irq(&io, 4, false);
	vioapic_set_irq(&io, 4, true);
	assert_int_equal(serve(), V);
}

static void level_sends_again_after_eoi_while_asserted(void **state)
{
	fresh();
	set_low(9, V | LEVEL);
	vioapic_set_irq(&io, 9, true);
	assert_int_equal(low(9), V | LEVEL | REMOTE_IRR);
	assert_int_equal(fix_take(l, 0), V);
	vioapic_set_irq(&io, 9, false);
	vioapic_set_irq(&io, 9, true); /* while in service: nothing new */
	assert_false(fix_in_irr(l, V));
	vlapic_eoi(l, 0);
	assert_int_equal(low(9), V | LEVEL | REMOTE_IRR);
	assert_int_equal(fix_take(l, 0), V);
	vioapic_set_irq(&io, 9, false);
	vlapic_eoi(l, 0);
	assert_int_equal(low(9), V | LEVEL);
	assert_int_equal(serve(), -1);
	assert_int_equal(io.sent[9], 2);
}

static void level_waits_while_masked(void **state)
{
	fresh();
	set_low(9, V | LEVEL | MASKED);
	vioapic_set_irq(&io, 9, true);
	assert_int_equal(serve(), -1);
	set_low(9, V | LEVEL);
	assert_int_equal(fix_take(l, 0), V);
	/* Masked while pending: the EOI clears the remote IRR, the unmask sends again. */
	set_low(9, V | LEVEL | MASKED);
	assert_int_equal(low(9), V | LEVEL | MASKED | REMOTE_IRR);
	vlapic_eoi(l, 0);
	assert_int_equal(low(9), V | LEVEL | MASKED);
	assert_int_equal(serve(), -1);
	set_low(9, V | LEVEL);
	assert_int_equal(fix_take(l, 0), V);
	/* Masked and deasserted: nothing is left over. */
	set_low(9, V | LEVEL | MASKED);
	vioapic_set_irq(&io, 9, false);
	vlapic_eoi(l, 0);
	set_low(9, V | LEVEL);
	assert_int_equal(serve(), -1);
}

static void unmasking_while_in_service_does_not_send_twice(void **state)
{
	fresh();
	set_low(9, V | LEVEL);
	vioapic_set_irq(&io, 9, true);
	assert_int_equal(fix_take(l, 0), V);
	set_low(9, V | LEVEL | MASKED);
	set_low(9, V | LEVEL);
	assert_false(fix_in_irr(l, V));
	assert_int_equal(io.sent[9], 1);
}

static void polarity_is_kept_and_assertion_is_what_counts(void **state)
{
	fresh();
	set_low(9, V | LEVEL | LOW);
	assert_int_equal(serve(), -1);
	vioapic_set_irq(&io, 9, true);
	assert_int_equal(fix_take(l, 0), V);
	assert_int_equal(low(9), V | LEVEL | LOW | REMOTE_IRR);
}

static void directed_eoi_ends_it_and_a_broadcast_is_not_needed(void **state)
{
	fresh();
	fix_write(l, APIC_SVR, 0x11ff);
	set_low(9, V | LEVEL);
	vioapic_set_irq(&io, 9, true);
	assert_int_equal(fix_take(l, 0), V);
	vlapic_eoi(l, 0);
	assert_int_equal(fix_eois[V], 0);
	assert_int_equal(low(9), V | LEVEL | REMOTE_IRR);
	assert_int_equal(serve(), -1);
	vioapic_write(&io, 0x40, V);
	assert_int_equal(serve(), V);
	vioapic_set_irq(&io, 9, false);
	vioapic_write(&io, 0x40, V);
	assert_int_equal(low(9), V | LEVEL);
}

static void eoi_of_another_vector_changes_nothing(void **state)
{
	fresh();
	set_low(9, V | LEVEL);
	vioapic_set_irq(&io, 9, true);
	vioapic_eoi(&io, V + 1);
	vioapic_write(&io, 0x40, V - 1);
	assert_int_equal(low(9), V | LEVEL | REMOTE_IRR);
	assert_int_equal(io.sent[9], 1);
}

static void shared_vector_is_ended_on_every_pin(void **state)
{
	fresh();
	set_low(9, V | LEVEL);
	set_low(10, V | LEVEL);
	vioapic_set_irq(&io, 9, true);
	vioapic_set_irq(&io, 10, true);
	assert_int_equal(fix_take(l, 0), V);
	vioapic_set_irq(&io, 9, false);
	vioapic_set_irq(&io, 10, false);
	vlapic_eoi(l, 0);
	assert_int_equal(low(9), V | LEVEL);
	assert_int_equal(low(10), V | LEVEL);
}

static void switching_to_edge_and_back_ends_a_level_interrupt(void **state)
{
	fresh();
	set_low(9, V | LEVEL);
	vioapic_set_irq(&io, 9, true);
	assert_int_equal(fix_take(l, 0), V);
	set_low(9, V | MASKED);
	assert_int_equal(low(9), V | MASKED);
	set_low(9, V | LEVEL);
	assert_true(fix_in_irr(l, V));
}

static void undeliverable_level_is_sent_when_it_can_be(void **state)
{
	fresh();
	set_high(9, 0x77000000); /* nobody */
	set_low(9, V | LEVEL);
	vioapic_set_irq(&io, 9, true);
	assert_int_equal(low(9), V | LEVEL);
	assert_int_equal(io.lost, 1);
	set_high(9, 0x00000000);
	assert_int_equal(fix_take(l, 0), V);
}

static void destination_and_mode_come_from_the_entry(void **state)
{
	u32 i, count = 0;

	fresh();
	set_high(4, 0x02000000);
	set_low(4, V);
	vioapic_set_irq(&io, 4, true);
	assert_int_equal(fix_who_has(V), BIT(2));
	assert_int_equal(fix_kicks[2], 1);

	set_high(5, 0x0e000000);
	set_low(5, 0x900 | (V + 1)); /* lowest priority, logical */
	vioapic_set_irq(&io, 5, true);
	assert_int_equal(__builtin_popcountll(fix_who_has(V + 1)), 1);
	assert_int_equal(fix_who_has(V + 1) & BIT(0), 0);

	set_high(6, 0xff000000);
	set_low(6, V + 2);
	vioapic_set_irq(&io, 6, true);
	assert_int_equal(fix_who_has(V + 2), 0xf);

	set_high(7, 0x03000000);
	set_low(7, 0x8400); /* NMI, "level": edge all the same */
	vioapic_set_irq(&io, 7, true);
	for (i = 0; i < 4; i++)
		count += vlapic_take_nmi(&fix_cpu[i]);
	assert_int_equal(count, 1);
	assert_int_equal(low(7) & REMOTE_IRR, 0);
}

static void ipi_with_the_vector_of_a_level_pin_is_an_edge(void **state)
{
	/* An IPI with the vector of a level pin makes the local APIC see an edge: its EOI is not
	   broadcast, as on hardware. The pin's own interrupt does it. */
	fresh();
	set_low(9, V | LEVEL);
	vioapic_set_irq(&io, 9, true);
	assert_int_equal(fix_take(l, 0), V);
	vlapic_eoi(l, 0);
	assert_int_equal(fix_eois[V], 1);
	vioapic_set_irq(&io, 9, false);
	assert_int_equal(serve(), V);
	fix_ipi(l, 0, V, 0);
	assert_int_equal(serve(), V);
	assert_int_equal(fix_eois[V], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(registers_after_reset),
	    cmocka_unit_test(id_is_writable_and_survives_no_reset),
	    cmocka_unit_test(entries_keep_only_what_exists),
	    cmocka_unit_test(edge_sends_once_per_assertion),
	    cmocka_unit_test(edge_while_masked_is_lost),
	    cmocka_unit_test(level_sends_again_after_eoi_while_asserted),
	    cmocka_unit_test(level_waits_while_masked),
	    cmocka_unit_test(unmasking_while_in_service_does_not_send_twice),
	    cmocka_unit_test(polarity_is_kept_and_assertion_is_what_counts),
	    cmocka_unit_test(directed_eoi_ends_it_and_a_broadcast_is_not_needed),
	    cmocka_unit_test(eoi_of_another_vector_changes_nothing),
	    cmocka_unit_test(shared_vector_is_ended_on_every_pin),
	    cmocka_unit_test(switching_to_edge_and_back_ends_a_level_interrupt),
	    cmocka_unit_test(undeliverable_level_is_sent_when_it_can_be),
	    cmocka_unit_test(destination_and_mode_come_from_the_entry),
	    cmocka_unit_test(ipi_with_the_vector_of_a_level_pin_is_an_edge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
