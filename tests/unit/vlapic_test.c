/* SPDX-License-Identifier: BSD-2-Clause */
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c
/* The guest local APIC: priorities, EOI, registers, modes, errors, INIT and SIPI, local pins. */
#include "tests/unit/vapic_fixture.h"

static struct vlapic *l = &fix_cpu[0];

static void post(u8 vector)
{
	assert_true(vlapic_post(l, vector, false));
}

/* ---- Priorities ---- */

static void nothing_is_pending_after_reset(void **state)
{
	fix_online(1, true);
	assert_false(vlapic_has_work(l));
	assert_int_equal(vlapic_pending(l), -1);
	assert_int_equal(vlapic_tpr_threshold(l), 0);
	assert_int_equal(vlapic_ppr(l), 0);
}

static void highest_vector_is_delivered_first(void **state)
{
	u32 order[] = {0xff, 0xc0, 0xbf, 0x80, 0x7f, 0x40, 0x3f, 0x21, 0x10};
	u32 i;

	fix_online(1, true);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		post(order[i]);
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		assert_int_equal(fix_take(l, 0), order[i]);
		vlapic_eoi(l, 0);
	}
	assert_int_equal(vlapic_pending(l), -1);
}

static void same_class_waits_for_eoi_and_higher_class_nests(void **state)
{
	fix_online(1, true);
	post(0x41);
	assert_int_equal(fix_take(l, 0), 0x41);
	post(0x4f);
	assert_int_equal(vlapic_pending(l), -1);
	post(0x50);
	assert_int_equal(fix_take(l, 0), 0x50);
	assert_int_equal(vlapic_ppr(l), 0x50);
	vlapic_eoi(l, 0);
	assert_int_equal(vlapic_ppr(l), 0x40);
	assert_int_equal(vlapic_pending(l), -1);
	vlapic_eoi(l, 0);
	assert_int_equal(fix_take(l, 0), 0x4f);
}

static void eoi_clears_exactly_the_highest_in_service(void **state)
{
	fix_online(1, true);
	post(0x31);
	fix_take(l, 0);
	post(0x95);
	fix_take(l, 0);
	assert_int_equal(fix_read(l, APIC_ISR + 0x10), 1u << 0x11);
	assert_int_equal(fix_read(l, APIC_ISR + 0x40), 1u << 0x15);
	fix_write(l, APIC_EOI, 0);
	assert_int_equal(fix_read(l, APIC_ISR + 0x10), 1u << 0x11);
	assert_int_equal(fix_read(l, APIC_ISR + 0x40), 0);
	fix_write(l, APIC_EOI, 0);
	fix_write(l, APIC_EOI, 0); /* one too many does nothing */
	assert_int_equal(fix_read(l, APIC_ISR + 0x10), 0);
	assert_int_equal(vlapic_ppr(l), 0);
}

static void fifteen_levels_nest(void **state)
{
	int class;

	fix_online(1, true);
	for (class = 1; class <= 15; class ++) {
		post(class * 16 + class % 3);
		assert_int_equal(fix_take(l, 0), class * 16 + class % 3);
	}
	for (class = 15; class >= 1; class --) {
		assert_int_equal(vlapic_ppr(l), class * 16);
		vlapic_eoi(l, 0);
	}
	assert_int_equal(vlapic_ppr(l), 0);
}

static void tpr_masks_its_class_and_below_without_an_exit(void **state)
{
	fix_online(1, true);
	post(0x55);
	*l->tpr = 0x50; /* as the CPU does it, behind our back */
	assert_int_equal(vlapic_pending(l), -1);
	assert_int_equal(vlapic_tpr_threshold(l), 5);
	*l->tpr = 0x4f;
	assert_int_equal(vlapic_tpr_threshold(l), 0);
	assert_int_equal(vlapic_pending(l), 0x55);
}

static void threshold_is_zero_when_the_isr_holds_it_back(void **state)
{
	fix_online(1, true);
	post(0x62);
	fix_take(l, 0);
	post(0x61);
	*l->tpr = 0x70;
	assert_int_equal(vlapic_tpr_threshold(l), 0);
	post(0x71);
	assert_int_equal(vlapic_tpr_threshold(l), 7);
	*l->tpr = 0;
	assert_int_equal(vlapic_tpr_threshold(l), 0);
	assert_int_equal(vlapic_pending(l), 0x71);
}

static void ppr_is_that_of_the_sdm(void **state)
{
	fix_online(1, true);
	post(0x35);
	fix_take(l, 0);
	*l->tpr = 0x2f;
	assert_int_equal(fix_read(l, APIC_PPR), 0x30);
	*l->tpr = 0x37;
	assert_int_equal(fix_read(l, APIC_PPR), 0x37);
	*l->tpr = 0x41;
	assert_int_equal(fix_read(l, APIC_PPR), 0x41);
}

static void software_disable_holds_what_is_pending_and_refuses_more(void **state)
{
	fix_online(2, true);
	post(0x40);
	fix_write(l, APIC_SVR, 0xff);
	assert_int_equal(vlapic_pending(l), 0x40);
	fix_ipi(&fix_cpu[1], 0, 0x41, 0);
	assert_false(fix_in_irr(l, 0x41));
	assert_int_equal(fix_kicks[0], 0);
	assert_int_equal(fix_cpu[1].count.ipi_nowhere, 1);
}

static void software_disable_masks_the_lvts_and_keeps_them_masked(void **state)
{
	fix_online(1, true);
	fix_write(l, APIC_LVT_LINT1, 0x400);
	assert_int_equal(fix_read(l, APIC_LVT_LINT1), 0x400);
	fix_write(l, APIC_SVR, 0xff);
	assert_int_equal(fix_read(l, APIC_LVT_LINT1), 0x10400);
	fix_write(l, APIC_LVT_LINT1, 0x400);
	assert_int_equal(fix_read(l, APIC_LVT_LINT1), 0x10400);
	fix_write(l, APIC_SVR, 0x1ff);
	assert_int_equal(fix_read(l, APIC_LVT_LINT1), 0x10400);
	fix_write(l, APIC_LVT_LINT1, 0x400);
	assert_int_equal(fix_read(l, APIC_LVT_LINT1), 0x400);
}

/* ---- Trigger mode ---- */

static void level_eoi_is_broadcast_and_edge_eoi_is_not(void **state)
{
	fix_online(1, true);
	vlapic_post(l, 0x60, true);
	assert_int_equal(fix_read(l, APIC_TMR + 0x30), 1);
	fix_take(l, 0);
	vlapic_eoi(l, 0);
	assert_int_equal(fix_eois[0x60], 1);
	post(0x60);
	assert_int_equal(fix_read(l, APIC_TMR + 0x30), 0);
	fix_take(l, 0);
	vlapic_eoi(l, 0);
	assert_int_equal(fix_eois[0x60], 1);
}

static void directed_eoi_suppresses_the_broadcast(void **state)
{
	fix_online(1, true);
	assert_int_equal(fix_read(l, APIC_VERSION), 0x01050014);
	fix_write(l, APIC_SVR, 0x11ff);
	vlapic_post(l, 0x60, true);
	fix_take(l, 0);
	vlapic_eoi(l, 0);
	assert_int_equal(fix_eois[0x60], 0);
}

/* ---- Registers ---- */

static void x2apic_registers_after_reset(void **state)
{
	static const struct {
		u32 reg;
		u64 value;
	} expected[] = {
	    {APIC_ID, 1},
	    {APIC_VERSION, 0x01050014},
	    {APIC_TPR, 0},
	    {APIC_PPR, 0},
	    {APIC_LDR, 2},
	    {APIC_SVR, 0xff},
	    {APIC_ISR, 0},
	    {APIC_ISR + 0x70, 0},
	    {APIC_TMR, 0},
	    {APIC_TMR + 0x70, 0},
	    {APIC_IRR, 0},
	    {APIC_IRR + 0x70, 0},
	    {APIC_ESR, 0},
	    {APIC_ICR, 0},
	    {APIC_LVT_TIMER, 0x10000},
	    {APIC_LVT_THERMAL, 0x10000},
	    {APIC_LVT_PMC, 0x10000},
	    {APIC_LVT_LINT0, 0x10000},
	    {APIC_LVT_LINT1, 0x10000},
	    {APIC_LVT_ERROR, 0x10000},
	    {APIC_TMICT, 0},
	    {APIC_TMCCT, 0},
	    {APIC_TDCR, 0},
	};
	bool readable[256] = {false};
	u64 value;
	u32 i;

	fix_reset(2, true);
	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_int_equal(fix_read(&fix_cpu[1], expected[i].reg), expected[i].value);
		readable[expected[i].reg >> 4] = true;
	}
	for (i = 0x10; i < 0x28; i++)
		readable[i] = true;
	for (i = 0; i < 256; i++)
		assert_int_equal(vlapic_msr_read(&fix_cpu[1], 0x800 + i, 0, &value), readable[i]);
	assert_false(vlapic_msr_read(&fix_cpu[1], 0x900, 0, &value));
	assert_false(vlapic_msr_read(&fix_cpu[1], 0x7ff, 0, &value));
}

static void x2apic_writes_fault_on_reserved_bits_and_read_only_registers(void **state)
{
	static const struct {
		u32 reg;
		u64 valid;
	} writable[] = {
	    {APIC_TPR, 0xff},
	    {APIC_EOI, 0},
	    {APIC_SVR, 0x13ff},
	    {APIC_ESR, 0},
	    {APIC_ICR, 0xffffffff000cdfff},
	    {APIC_LVT_TIMER, 0x710ff},
	    {APIC_LVT_THERMAL, 0x117ff},
	    {APIC_LVT_PMC, 0x117ff},
	    {APIC_LVT_LINT0, 0x1f7ff},
	    {APIC_LVT_LINT1, 0x1f7ff},
	    {APIC_LVT_ERROR, 0x110ff},
	    {APIC_TMICT, 0xffffffff},
	    {APIC_TDCR, 0xb},
	    {APIC_SELF_IPI, 0xff},
	};
	u32 reg, i, bit;

	fix_online(1, true);
	for (reg = 0; reg < 0x1000; reg += 0x10) {
		for (i = 0; i < ARRAY_SIZE(writable) && writable[i].reg != reg; i++)
			;
		if (i == ARRAY_SIZE(writable)) {
			assert_false(vlapic_msr_write(l, X2APIC_MSR(reg), 0, 0));
			continue;
		}
		assert_true(vlapic_msr_write(l, X2APIC_MSR(reg), 0, 0));
		for (bit = 0; bit < 64; bit++)
			assert_int_equal(vlapic_msr_write(l, X2APIC_MSR(reg), BIT(bit), 0),
					 writable[i].valid >> bit & 1);
	}
}

static void x2apic_msrs_fault_outside_of_x2apic_mode(void **state)
{
	u64 value;

	fix_online(1, false);
	assert_false(vlapic_msr_read(l, X2APIC_MSR(APIC_ID), 0, &value));
	assert_false(vlapic_msr_write(l, MSR_X2APIC_EOI, 0, 0));
	assert_false(vlapic_msr_write(l, MSR_X2APIC_ICR, 0x40030, 0));
}

static void xapic_registers_after_reset(void **state)
{
	struct vlapic *ap = &fix_cpu[3];

	fix_reset(4, false);
	assert_int_equal(fix_read(ap, APIC_ID), 3u << 24);
	assert_int_equal(fix_read(ap, APIC_VERSION), 0x01050014);
	assert_int_equal(fix_read(ap, APIC_LDR), 0);
	assert_int_equal(fix_read(ap, APIC_DFR), 0xffffffff);
	assert_int_equal(fix_read(ap, APIC_SVR), 0xff);
	assert_int_equal(fix_read(ap, APIC_LVT_LINT0), 0x10000);
	assert_int_equal(fix_read(ap, APIC_ICR2), 0);
	assert_int_equal(ap->esr_pending, 0);
}

static void xapic_writes_keep_only_what_exists(void **state)
{
	fix_online(1, false);
	fix_write(l, APIC_LDR, 0xffffffff);
	assert_int_equal(fix_read(l, APIC_LDR), 0xff000000);
	fix_write(l, APIC_DFR, 0);
	assert_int_equal(fix_read(l, APIC_DFR), 0x0fffffff);
	assert_int_equal(fix_map_updates, 2);
	fix_write(l, APIC_ICR2, 0xffffffff);
	assert_int_equal(fix_read(l, APIC_ICR2), 0xff000000);
	fix_write(l, APIC_LVT_TIMER, 0xffffffff);
	assert_int_equal(fix_read(l, APIC_LVT_TIMER), 0x700ff);
	fix_write(l, APIC_LVT_LINT0, 0xffffffff);
	assert_int_equal(fix_read(l, APIC_LVT_LINT0), 0x1a7ff);
	fix_write(l, APIC_SVR, 0xfffffdff);
	assert_int_equal(fix_read(l, APIC_SVR), 0x11ff);
	fix_write(l, APIC_TPR, 0xabc);
	assert_int_equal(fix_read(l, APIC_TPR), 0xbc);
	fix_write(l, APIC_ID, 0x55000000);
	assert_int_equal(fix_read(l, APIC_ID), 0);
	fix_write(l, APIC_TDCR, 0xffffffff);
	assert_int_equal(fix_read(l, APIC_TDCR), 0xb);
	fix_write(l, APIC_ICR,
		  0x000c1000 | 0x500 | 0x8000); /* INIT de-assert, delivery status set */
	assert_int_equal(fix_read(l, APIC_ICR), 0x000c8500);
	assert_int_equal(l->esr_pending, 0);
}

/* ---- Errors ---- */

static void xapic_access_of_a_reserved_offset_is_an_error(void **state)
{
	static const u32 reserved[] = {0x0, 0x10, 0x40, 0x290, 0x2f0, 0x3a0, 0x3f0, 0x400, 0xff0};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reserved); i++) {
		fix_online(1, false);
		assert_int_equal(fix_read(l, reserved[i]), 0);
		assert_int_equal(fix_read(l, APIC_ESR), 0); /* latched by a write only */
		fix_write(l, APIC_ESR, 0);
		assert_int_equal(fix_read(l, APIC_ESR), 0x80);
		fix_write(l, APIC_ESR, 0);
		assert_int_equal(fix_read(l, APIC_ESR), 0);
		fix_write(l, reserved[i], 1);
		fix_write(l, APIC_ESR, 0);
		assert_int_equal(fix_read(l, APIC_ESR), 0x80);
	}
}

static void error_interrupt_comes_once_per_new_error(void **state)
{
	fix_online(1, true);
	fix_write(l, APIC_LVT_ERROR, 0xfe);
	fix_write(l, APIC_SELF_IPI, 0x0f);
	assert_int_equal(fix_take(l, 0), 0xfe);
	vlapic_eoi(l, 0);
	fix_write(l, APIC_SELF_IPI, 0x0f);
	assert_int_equal(vlapic_pending(l), -1);
	fix_write(l, APIC_ESR, 0);
	assert_int_equal(fix_read(l, APIC_ESR), 0x60);
	fix_write(l, APIC_SELF_IPI, 0x0f);
	assert_int_equal(vlapic_pending(l), 0xfe);
}

static void illegal_vector_is_noted_at_both_ends(void **state)
{
	fix_online(2, true);
	fix_write(&fix_cpu[1], APIC_LVT_ERROR, 0xfe);
	fix_forget_kicks();
	fix_ipi(l, 1, 0x0f, 0);
	fix_write(l, APIC_ESR, 0);
	assert_int_equal(fix_read(l, APIC_ESR), 0x20);
	fix_write(&fix_cpu[1], APIC_ESR, 0);
	assert_int_equal(fix_read(&fix_cpu[1], APIC_ESR), 0x40);
	assert_false(fix_in_irr(&fix_cpu[1], 0x0f));
	assert_true(fix_in_irr(&fix_cpu[1], 0xfe));
	assert_int_equal(fix_kicks[1], 1);
}

static void illegal_vector_in_the_error_lvt_does_not_recurse(void **state)
{
	fix_online(1, true);
	fix_write(l, APIC_LVT_ERROR, 0x05);
	fix_write(l, APIC_SELF_IPI, 0x01);
	assert_int_equal(vlapic_pending(l), -1);
	fix_write(l, APIC_ESR, 0);
	assert_int_equal(fix_read(l, APIC_ESR), 0x60);
}

/* ---- Modes ---- */

#define BASE_OFF VLAPIC_BASE
#define BASE_X1 (VLAPIC_BASE | APIC_BASE_EN)
#define BASE_X2 (VLAPIC_BASE | APIC_BASE_EN | APIC_BASE_EXTD)
#define BASE_BAD (VLAPIC_BASE | APIC_BASE_EXTD)

static void mode_transitions_are_those_of_the_sdm(void **state)
{
	static const u64 to[] = {BASE_OFF, BASE_X1, BASE_X2, BASE_BAD};
	static const bool legal[3][4] = {
	    [VLAPIC_DISABLED] = {true, true, false, false},
	    [VLAPIC_XAPIC] = {true, true, true, false},
	    [VLAPIC_X2APIC] = {true, false, true, false},
	};
	u32 from, i;

	for (from = 0; from < 3; from++) {
		for (i = 0; i < 4; i++) {
			fix_reset(2, from == VLAPIC_X2APIC);
			l = &fix_cpu[1];
			if (from == VLAPIC_DISABLED)
				assert_true(vlapic_set_base(l, BASE_OFF));
			assert_int_equal(l->mode, from);
			assert_int_equal(vlapic_set_base(l, to[i]), legal[from][i]);
			assert_int_equal(vlapic_get_base(l), legal[from][i] ? to[i] : to[from]);
		}
	}
	l = &fix_cpu[0];
}

static void apic_base_refuses_reserved_bits_and_another_place(void **state)
{
	fix_reset(1, false);
	assert_int_equal(vlapic_get_base(l), BASE_X1 | APIC_BASE_BSP);
	assert_false(vlapic_set_base(l, BASE_X1 | BIT(0)));
	assert_false(vlapic_set_base(l, BASE_X1 | BIT(9)));
	assert_false(vlapic_set_base(l, BASE_X1 | BIT(52)));
	assert_false(vlapic_set_base(l, 0xfed00000 | APIC_BASE_EN));
	assert_true(vlapic_set_base(l, BASE_X1));
	assert_int_equal(vlapic_get_base(l), BASE_X1);
}

static void switching_to_x2apic_keeps_the_state(void **state)
{
	fix_online(2, false);
	post(0x77);
	post(0x33);
	fix_take(l, 0);
	fix_write(l, APIC_LVT_LINT1, 0x400);
	*l->tpr = 0x20;
	assert_true(vlapic_set_base(l, BASE_X2 | APIC_BASE_BSP));
	assert_int_equal(fix_read(l, APIC_ISR + 0x30), 1u << 0x17);
	assert_int_equal(fix_read(l, APIC_IRR + 0x10), 1u << 0x13);
	assert_int_equal(fix_read(l, APIC_LVT_LINT1), 0x400);
	assert_int_equal(fix_read(l, APIC_TPR), 0x20);
	assert_int_equal(fix_read(l, APIC_SVR), 0x1ff);
}

static void disabling_loses_the_state_and_refuses_messages(void **state)
{
	fix_online(2, true);
	post(0x77);
	fix_write(l, APIC_LVT_TIMER, 0x40000 | 0x50);
	vlapic_write_tsc_deadline(l, 1000);
	assert_true(vlapic_set_base(l, BASE_OFF | APIC_BASE_BSP));
	assert_false(vlapic_has_work(l));
	assert_int_equal(vlapic_timer_deadline(l), VLAPIC_TIMER_NONE);
	fix_ipi(&fix_cpu[1], 0, 0x41, 0);
	fix_ipi(&fix_cpu[1], 0, 0x400, 0);
	fix_ipi(&fix_cpu[1], 0, 0x500, 0);
	fix_ipi(&fix_cpu[1], 0, 0x400 | 3u << 18, 0);
	assert_false(vlapic_has_work(l));
	assert_true(vlapic_set_base(l, BASE_X1 | APIC_BASE_BSP));
	assert_int_equal(fix_read(l, APIC_SVR), 0xff);
}

/* ---- INIT and SIPI ---- */

static void init_keeps_the_mode_and_resets_the_rest(void **state)
{
	struct vlapic *ap = &fix_cpu[1];
	u8 vector;
	int x2apic;

	for (x2apic = 0; x2apic < 2; x2apic++) {
		fix_online(2, x2apic);
		fix_write(ap, APIC_LVT_LINT1, 0x400);
		fix_write(ap, APIC_LVT_TIMER, 0x20000 | 0x50);
		fix_write(ap, APIC_TMICT, 1000);
		*ap->tpr = 0x30;
		vlapic_post(ap, 0x60, true);
		fix_take(ap, 0);
		vlapic_post(ap, 0x61, false);
		fix_ipi(l, 1, 0x4500, 0);
		assert_int_equal(fix_kicks[1], 1);
		assert_int_equal(vlapic_take_startup(ap, &vector), VLAPIC_STARTUP_INIT);
		assert_int_equal(vlapic_take_startup(ap, &vector), VLAPIC_STARTUP_NONE);
		assert_true(ap->wait_for_sipi);
		assert_int_equal(ap->mode, x2apic ? VLAPIC_X2APIC : VLAPIC_XAPIC);
		assert_int_equal(fix_read(ap, APIC_ID), x2apic ? 1 : 1u << 24);
		assert_int_equal(fix_read(ap, APIC_SVR), 0xff);
		assert_int_equal(fix_read(ap, APIC_LVT_LINT1), 0x10000);
		assert_int_equal(fix_read(ap, APIC_TPR), 0);
		assert_int_equal(fix_read(ap, APIC_TMR + 0x30), 0);
		assert_int_equal(fix_read(ap, APIC_ISR + 0x30), 0);
		assert_int_equal(vlapic_timer_deadline(ap), VLAPIC_TIMER_NONE);
		assert_false(vlapic_has_work(ap));
	}
}

static void sipi_starts_only_a_vcpu_that_waits(void **state)
{
	struct vlapic *ap = &fix_cpu[1];
	u8 vector = 0;

	fix_reset(2, true);
	assert_true(ap->wait_for_sipi); /* from power-up on */
	fix_ipi(l, 1, 0x4600 | 0x9a, 0);
	assert_int_equal(vlapic_take_startup(ap, &vector), VLAPIC_STARTUP_SIPI);
	assert_int_equal(vector, 0x9a);
	assert_false(ap->wait_for_sipi);
	fix_ipi(l, 1, 0x4600 | 0x9b, 0);
	assert_int_equal(vlapic_take_startup(ap, &vector), VLAPIC_STARTUP_NONE);
	assert_int_equal(ap->events, 0);
	assert_int_equal(vector, 0x9a);
}

static void init_sipi_sipi_to_a_vcpu_that_gets_no_time_starts_it_once(void **state)
{
	struct vlapic *ap = &fix_cpu[1];
	u8 vector = 0;

	fix_online(2, true);
	fix_ipi(l, 1, 0x4500, 0);
	fix_ipi(l, 1, 0x8500, 0); /* the de-assert of older kernels */
	fix_ipi(l, 1, 0x4600 | 0x12, 0);
	fix_ipi(l, 1, 0x4600 | 0x12, 0);
	assert_int_equal(vlapic_take_startup(ap, &vector), VLAPIC_STARTUP_INIT);
	assert_int_equal(vlapic_take_startup(ap, &vector), VLAPIC_STARTUP_SIPI);
	assert_int_equal(vector, 0x12);
	assert_int_equal(vlapic_take_startup(ap, &vector), VLAPIC_STARTUP_NONE);
	assert_int_equal(l->count.ipi_init, 1);
	assert_int_equal(l->count.ipi_sipi, 2);
	assert_int_equal(l->count.ipi_invalid, 1);
}

static void first_of_two_sipis_is_the_one_that_starts(void **state)
{
	struct vlapic *ap = &fix_cpu[1];
	u8 vector = 0;

	fix_reset(2, true);
	fix_ipi(l, 1, 0x4600 | 0x12, 0);
	fix_ipi(l, 1, 0x4600 | 0x77, 0);
	assert_int_equal(vlapic_take_startup(ap, &vector), VLAPIC_STARTUP_SIPI);
	assert_int_equal(vector, 0x12);
}

static void init_wipes_out_the_sipi_and_the_nmi_before_it(void **state)
{
	struct vlapic *ap = &fix_cpu[1];
	u8 vector;

	fix_reset(2, true);
	fix_ipi(l, 1, 0x4600 | 0x12, 0);
	fix_ipi(l, 1, 0x4400, 0);
	fix_ipi(l, 1, 0x4500, 0);
	assert_int_equal(vlapic_take_startup(ap, &vector), VLAPIC_STARTUP_INIT);
	assert_int_equal(vlapic_take_startup(ap, &vector), VLAPIC_STARTUP_NONE);
	assert_false(vlapic_take_nmi(ap));
	assert_true(ap->wait_for_sipi);
}

static void init_of_the_bsp_does_not_wait_for_sipi(void **state)
{
	u8 vector;

	fix_online(2, true);
	fix_ipi(&fix_cpu[1], 0, 0x4500, 0);
	assert_int_equal(vlapic_take_startup(l, &vector), VLAPIC_STARTUP_INIT);
	assert_false(l->wait_for_sipi);
}

/* ---- NMI and the local pins ---- */

static void nmi_is_taken_once_and_collapses(void **state)
{
	fix_online(2, true);
	fix_ipi(&fix_cpu[1], 0, 0x4400, 0);
	fix_ipi(&fix_cpu[1], 0, 0x4400, 0);
	assert_int_equal(fix_kicks[0], 1);
	assert_true(vlapic_has_work(l));
	assert_true(vlapic_take_nmi(l));
	assert_false(vlapic_take_nmi(l));
	assert_false(vlapic_has_work(l));
}

static void nmi_reaches_a_software_disabled_apic(void **state)
{
	fix_reset(2, true);
	fix_ipi(&fix_cpu[1], 0, 0x4400, 0);
	assert_true(vlapic_take_nmi(l));
}

static void lint1_in_nmi_mode_gives_one_nmi_per_edge(void **state)
{
	fix_reset(1, true);
	vlapic_virtual_wire(l);
	vlapic_set_lint(l, 1, true);
	vlapic_set_lint(l, 1, true);
	assert_true(vlapic_take_nmi(l));
	assert_false(vlapic_take_nmi(l));
	vlapic_set_lint(l, 1, false);
	vlapic_set_lint(l, 1, true);
	assert_true(vlapic_take_nmi(l));
}

static void extint_follows_the_pin_the_mask_and_the_mode(void **state)
{
	fix_reset(1, false);
	vlapic_virtual_wire(l);
	assert_false(vlapic_extint(l));
	vlapic_set_lint(l, 0, true);
	assert_true(vlapic_extint(l));
	assert_int_equal(fix_kicks[0], 1);
	assert_int_equal(vlapic_pending(l), -1);
	fix_write(l, APIC_LVT_LINT0, 0x10700);
	assert_false(vlapic_extint(l));
	fix_write(l, APIC_LVT_LINT0, 0x700);
	assert_true(vlapic_extint(l));
	fix_write(l, APIC_SVR, 0xff); /* masks it */
	assert_false(vlapic_extint(l));
	assert_true(vlapic_set_base(l, BASE_OFF | APIC_BASE_BSP)); /* INTR goes past the APIC */
	assert_true(vlapic_extint(l));
	vlapic_set_lint(l, 0, false);
	assert_false(vlapic_extint(l));
}

static void lint0_fixed_edge_comes_once_per_edge(void **state)
{
	fix_online(1, true);
	fix_write(l, APIC_LVT_LINT0, 0x31);
	vlapic_set_lint(l, 0, true);
	vlapic_set_lint(l, 0, true);
	assert_int_equal(fix_take(l, 0), 0x31);
	vlapic_eoi(l, 0);
	assert_int_equal(vlapic_pending(l), -1);
	vlapic_set_lint(l, 0, false);
	vlapic_set_lint(l, 0, true);
	assert_int_equal(fix_take(l, 0), 0x31);
}

static void lint0_fixed_level_comes_again_while_the_pin_is_high(void **state)
{
	fix_online(1, true);
	fix_write(l, APIC_LVT_LINT0, 0x8031);
	vlapic_set_lint(l, 0, true);
	assert_int_equal(fix_read(l, APIC_LVT_LINT0), 0xc031);
	assert_int_equal(fix_take(l, 0), 0x31);
	vlapic_eoi(l, 0);
	assert_int_equal(fix_take(l, 0), 0x31);
	vlapic_set_lint(l, 0, false);
	vlapic_eoi(l, 0);
	assert_int_equal(vlapic_pending(l), -1);
	assert_int_equal(fix_read(l, APIC_LVT_LINT0), 0x8031);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nothing_is_pending_after_reset),
	    cmocka_unit_test(highest_vector_is_delivered_first),
	    cmocka_unit_test(same_class_waits_for_eoi_and_higher_class_nests),
	    cmocka_unit_test(eoi_clears_exactly_the_highest_in_service),
	    cmocka_unit_test(fifteen_levels_nest),
	    cmocka_unit_test(tpr_masks_its_class_and_below_without_an_exit),
	    cmocka_unit_test(threshold_is_zero_when_the_isr_holds_it_back),
	    cmocka_unit_test(ppr_is_that_of_the_sdm),
	    cmocka_unit_test(software_disable_holds_what_is_pending_and_refuses_more),
	    cmocka_unit_test(software_disable_masks_the_lvts_and_keeps_them_masked),
	    cmocka_unit_test(level_eoi_is_broadcast_and_edge_eoi_is_not),
	    cmocka_unit_test(directed_eoi_suppresses_the_broadcast),
	    cmocka_unit_test(x2apic_registers_after_reset),
	    cmocka_unit_test(x2apic_writes_fault_on_reserved_bits_and_read_only_registers),
	    cmocka_unit_test(x2apic_msrs_fault_outside_of_x2apic_mode),
	    cmocka_unit_test(xapic_registers_after_reset),
	    cmocka_unit_test(xapic_writes_keep_only_what_exists),
	    cmocka_unit_test(xapic_access_of_a_reserved_offset_is_an_error),
	    cmocka_unit_test(error_interrupt_comes_once_per_new_error),
	    cmocka_unit_test(illegal_vector_is_noted_at_both_ends),
	    cmocka_unit_test(illegal_vector_in_the_error_lvt_does_not_recurse),
	    cmocka_unit_test(mode_transitions_are_those_of_the_sdm),
	    cmocka_unit_test(apic_base_refuses_reserved_bits_and_another_place),
	    cmocka_unit_test(switching_to_x2apic_keeps_the_state),
	    cmocka_unit_test(disabling_loses_the_state_and_refuses_messages),
	    cmocka_unit_test(init_keeps_the_mode_and_resets_the_rest),
	    cmocka_unit_test(sipi_starts_only_a_vcpu_that_waits),
	    cmocka_unit_test(init_sipi_sipi_to_a_vcpu_that_gets_no_time_starts_it_once),
	    cmocka_unit_test(first_of_two_sipis_is_the_one_that_starts),
	    cmocka_unit_test(init_wipes_out_the_sipi_and_the_nmi_before_it),
	    cmocka_unit_test(init_of_the_bsp_does_not_wait_for_sipi),
	    cmocka_unit_test(nmi_is_taken_once_and_collapses),
	    cmocka_unit_test(nmi_reaches_a_software_disabled_apic),
	    cmocka_unit_test(lint1_in_nmi_mode_gives_one_nmi_per_edge),
	    cmocka_unit_test(extint_follows_the_pin_the_mask_and_the_mode),
	    cmocka_unit_test(lint0_fixed_edge_comes_once_per_edge),
	    cmocka_unit_test(lint0_fixed_level_comes_again_while_the_pin_is_high),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
