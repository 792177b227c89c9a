/* SPDX-License-Identifier: BSD-2-Clause */
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c hv/apic/vioapic.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c hv/apic/vpic.c
/*
 * All that a guest can do to its interrupt controllers, in any order with any value, on a VM with
 * the LAPICs, the IOAPIC and the PIC wired together as in the hypervisor. After every step the
 * invariants hold, and the map resolves every destination as the walk does.
 */
#include <stdlib.h>

#include "hv/apic/vapic_edge.h"
#include "hv/apic/vioapic.h"
#include "hv/apic/vlapic.h"
#include "hv/apic/vpic.h"
#include "hv/lib/string.h"

#define CPUS 5

static struct vlapic cpu[CPUS];
static u32 tpr[CPUS];
static struct apic_map map;
static struct vioapic io;
static struct vpic pic;
static struct ipi_track_knobs knobs;
static bool kicked[CPUS];
static u64 now;

void vapic_kick(struct vlapic *target)
{
	BUG_ON(target != &cpu[target->index]);
	kicked[target->index] = true;
}

void vapic_broadcast_eoi(struct vlapic *from, u8 vector)
{
	vioapic_eoi(&io, vector);
}

void vapic_map_changed(struct vlapic *lapic)
{
	apic_map_update(&map);
}

static const u8 *data, *end;

static u8 byte(void)
{
	return data < end ? *data++ : 0;
}

static u32 word(void)
{
	u32 low = byte(), high = byte();

	return low | high << 8;
}

/* A value that has a chance to mean something. */
static u64 value64(void)
{
	u64 low = word() | (u32)byte() << 16;

	return low | (u64)(byte() & 7) << 32 | (u64)byte() << 56;
}

static void check(const struct vlapic *l)
{
	int vector = vlapic_pending(l);
	u32 threshold = vlapic_tpr_threshold(l), depth;

	BUG_ON(l->irr[0] & 0xffff);
	BUG_ON(l->isr_depth > 15 || l->isr_stack[0]);
	for (depth = 1; depth <= l->isr_depth; depth++)
		BUG_ON(l->isr_stack[depth] >> 4 <= l->isr_stack[depth - 1] >> 4);
	BUG_ON(vector >= 0 && (vector >> 4 <= (int)vlapic_ppr(l) >> 4 || threshold));
	/* The VM entry checks that the threshold is not above VTPR (SDM 27.2.1.1). */
	BUG_ON(threshold > (*l->tpr & 0xff) >> 4);
	BUG_ON(vlapic_timer_deadline(l) != VLAPIC_TIMER_NONE &&
	       l->timer_mode == VLAPIC_TIMER_STOPPED);
	BUG_ON(l->mode == VLAPIC_DISABLED && l->accepts);
	BUG_ON(l->track.head - l->track.tail > UINT32_MAX / 2);
	BUG_ON(!vlapic_irr_any(l) && vector >= 0);
}

/* With an odd sequence number the map is not used: both must agree, always. */
static void check_map(u32 dest, bool logical, bool x2apic)
{
	struct apic_set by_map, by_walk;

	apic_map_resolve(&map, dest, logical, x2apic, &by_map);
	map.seq++;
	apic_map_resolve(&map, dest, logical, x2apic, &by_walk);
	map.seq--;
	BUG_ON(by_map.count != by_walk.count || by_map.words != by_walk.words);
	BUG_ON(memcmp(by_map.word, by_walk.word, by_map.words * sizeof(u64)));
	BUG_ON(by_map.count > CPUS);
}

static void any_register(struct vlapic *l)
{
	u64 value;

	switch (byte() % 4) {
	case 0:
		vlapic_mmio_read(l, word() & 0xfff, now);
		break;
	case 1:
		if (l->mode == VLAPIC_XAPIC)
			vlapic_mmio_write(l, byte() << 4, value64(), now);
		break;
	case 2:
		vlapic_msr_read(l, 0x800 + word() % 0x110, now, &value);
		break;
	case 3:
		vlapic_msr_write(l, 0x800 + byte() % 0x40, value64(), now);
		break;
	}
}

static void serve(struct vlapic *l)
{
	u8 vector;
	int next;

	while (vlapic_take_startup(l, &vector) != VLAPIC_STARTUP_NONE)
		;
	vlapic_take_nmi(l);
	if (vlapic_extint(l))
		vpic_accept(&pic);
	next = vlapic_pending(l);
	if (next >= 0)
		vlapic_accept(l, next, now);
	BUG_ON(next >= 0 && !l->isr_depth);
}

static void step(void)
{
	struct vlapic *l = &cpu[byte() % CPUS];
	u32 what = byte() % 16;

	switch (what) {
	case 0 ... 3:
		any_register(l);
		break;
	case 4:
		vlapic_eoi(l, now);
		break;
	case 5:
	case 6:
		serve(l);
		break;
	case 7:
		*l->tpr = byte();
		break;
	case 8:
		vlapic_set_base(l, VLAPIC_BASE | (byte() & 0xd) << 8);
		break;
	case 9:
		now += word() << (byte() & 31);
		if (now >= vlapic_timer_deadline(l))
			vlapic_timer_expired(l, now);
		BUG_ON(l->timer_deadline <= now);
		break;
	case 10:
		vlapic_set_tsc_offset(l, (s8)byte());
		break;
	case 11:
		vioapic_set_irq(&io, byte() % VIOAPIC_PINS, byte() & 1);
		break;
	case 12:
		vioapic_write(&io, byte() & 0x50, value64());
		vioapic_read(&io, byte() & 0x50);
		break;
	case 13:
		vpic_set_irq(&pic, byte() % VPIC_IRQS, byte() & 1);
		break;
	case 14: {
		static const u16 ports[] = {0x20, 0x21, 0xa0, 0xa1, 0x4d0, 0x4d1};

		vpic_write(&pic, ports[byte() % 6], byte());
		vpic_read(&pic, ports[byte() % 6]);
		break;
	}
	case 15:
		if (byte() & 1)
			vlapic_write_tsc_deadline(l, now + word());
		else
			vlapic_set_lint(l, 1, byte() & 1);
		break;
	}
}

int LLVMFuzzerTestOneInput(const u8 *bytes, size_t size);

int LLVMFuzzerTestOneInput(const u8 *bytes, size_t size)
{
	struct ipi_wait wait;
	u32 i, cursor;

	data = bytes;
	end = bytes + size;
	now = 1000;
	memset(tpr, 0, sizeof(tpr));
	knobs =
	    (struct ipi_track_knobs){.window = 100000, .enabled = true, .multicast = byte() & 1};
	i = byte();
	apic_map_setup(&map, &knobs);
	for (u32 n = 0; n < CPUS; n++)
		vlapic_setup(&cpu[n], &map, n * 5, &tpr[n]);
	for (u32 n = 0; n < CPUS; n++) {
		vlapic_reset(&cpu[n], i >> n & 1, n == 0);
		vlapic_virtual_wire(&cpu[n]);
	}
	vioapic_setup(&io, &map, 0);
	vpic_setup(&pic, &cpu[0]);

	while (data < end) {
		step();
		for (i = 0; i < CPUS; i++) {
			check(&cpu[i]);
			for (cursor = cpu[i].track.tail;
			     ipi_track_next(&cpu[i].track, now, &cursor, &wait);)
				BUG_ON(wait.receiver >= CPUS || wait.receiver == i ||
				       wait.vector < 16);
		}
		check_map(word() | (u32)(byte() & 1) << 16, byte() & 1, false);
		check_map(byte() & 1 ? UINT32_MAX : word(), true, true);
		BUG_ON(pic.output != !!(cpu[0].events & VLAPIC_EV_LINT0));
	}
	return 0;
}
