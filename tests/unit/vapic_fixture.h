/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A VM of interrupt controllers for the host tests: some vlapics, their map, and an edge that
 * records what the model asks of it. Include it once, in the test's only C file.
 */
#ifndef VLAG_TESTS_VAPIC_FIXTURE_H
#define VLAG_TESTS_VAPIC_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "hv/apic/vapic_edge.h"
#include "hv/apic/vlapic.h"
#include "hv/lib/string.h"

#define FIX_VCPUS 40

static struct vlapic fix_cpu[FIX_VCPUS];
static u32 fix_tpr[FIX_VCPUS];
static struct apic_map fix_map;
static struct ipi_track_knobs fix_knobs;

/* What the edge was asked. */
static u32 fix_kicks[FIX_VCPUS];
static u32 fix_map_updates;
static u32 fix_eois[256]; /* broadcast, by vector */
static struct vlapic *fix_last_kick;

void vapic_kick(struct vlapic *target)
{
	fix_kicks[target->index]++;
	fix_last_kick = target;
}

#ifndef FIX_OWN_BROADCAST_EOI
void vapic_broadcast_eoi(struct vlapic *from, u8 vector)
{
	fix_eois[vector]++;
}
#endif

void vapic_map_changed(struct vlapic *lapic)
{
	fix_map_updates++;
	apic_map_update(lapic->map);
}

static __maybe_unused void fix_forget_kicks(void)
{
	memset(fix_kicks, 0, sizeof(fix_kicks));
	fix_last_kick = NULL;
}

/* @n vCPUs with APIC ids 0..n-1, vCPU 0 is the BSP; after reset. */
static __maybe_unused void fix_reset(u32 n, bool x2apic)
{
	u32 i;

	memset(fix_cpu, 0, sizeof(fix_cpu));
	memset(fix_tpr, 0, sizeof(fix_tpr));
	memset(fix_eois, 0, sizeof(fix_eois));
	fix_knobs = (struct ipi_track_knobs){.window = 1000000, .enabled = true};
	apic_map_setup(&fix_map, &fix_knobs);
	for (i = 0; i < n; i++)
		vlapic_setup(&fix_cpu[i], &fix_map, i, &fix_tpr[i]);
	for (i = 0; i < n; i++)
		vlapic_reset(&fix_cpu[i], x2apic, i == 0);
	fix_forget_kicks();
	fix_map_updates = 0;
}

static __maybe_unused void fix_write(struct vlapic *l, u32 reg, u64 value)
{
	if (l->mode == VLAPIC_X2APIC)
		assert_true(vlapic_msr_write(l, X2APIC_MSR(reg), value, 0));
	else
		vlapic_mmio_write(l, reg, value, 0);
}

static __maybe_unused u64 fix_read(struct vlapic *l, u32 reg)
{
	u64 value;

	if (l->mode != VLAPIC_X2APIC)
		return vlapic_mmio_read(l, reg, 0);
	assert_true(vlapic_msr_read(l, X2APIC_MSR(reg), 0, &value));
	return value;
}

/* As fix_reset(), then software-enabled as a kernel does it. */
static __maybe_unused void fix_online(u32 n, bool x2apic)
{
	u32 i;

	fix_reset(n, x2apic);
	for (i = 0; i < n; i++) {
		fix_cpu[i].wait_for_sipi = false;
		fix_write(&fix_cpu[i], APIC_SVR, 0x1ff);
	}
}

/* An ICR write in the mode of @l; @dest is the APIC id or the logical destination. */
static __maybe_unused void fix_ipi(struct vlapic *l, u32 dest, u32 low, u64 now)
{
	if (l->mode == VLAPIC_X2APIC) {
		assert_true(vlapic_msr_write(l, MSR_X2APIC_ICR, (u64)dest << 32 | low, now));
		return;
	}
	vlapic_mmio_write(l, APIC_ICR2, dest << 24, now);
	vlapic_mmio_write(l, APIC_ICR, low, now);
}

static __maybe_unused bool fix_in_irr(const struct vlapic *l, u8 vector)
{
	return bit_test(l->irr, vector);
}

static __maybe_unused void fix_clear_irr(void)
{
	u32 i;

	for (i = 0; i < fix_map.nr_vcpus; i++)
		memset(fix_cpu[i].irr, 0, sizeof(fix_cpu[i].irr));
}

/* A bit per vCPU that has @vector in its IRR. */
static __maybe_unused u64 fix_who_has(u8 vector)
{
	u64 who = 0;
	u32 i;

	for (i = 0; i < fix_map.nr_vcpus; i++)
		if (fix_in_irr(&fix_cpu[i], vector))
			who |= BIT(i);
	return who;
}

/* Delivers the pending vector of @l and returns it. */
static __maybe_unused int fix_take(struct vlapic *l, u64 now)
{
	int vector = vlapic_pending(l);

	if (vector >= 0)
		vlapic_accept(l, vector, now);
	return vector;
}

/* A small deterministic generator. */
static u64 fix_seed = 1;
static __maybe_unused u32 fix_random(u32 below)
{
	fix_seed ^= fix_seed << 13;
	fix_seed ^= fix_seed >> 7;
	fix_seed ^= fix_seed << 17;
	return (fix_seed >> 11) % below;
}

#endif
