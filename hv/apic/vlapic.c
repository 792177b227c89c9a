/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest local APIC: its life (setup, reset, INIT, mode), priorities, and what arrives at it
 * from outside. Registers are in vlapic_regs.c, the ICR in vlapic_ipi.c, the timer in
 * vlapic_timer.c.
 */
#include "hv/apic/vlapic.h"
#include "hv/apic/vlapic_internal.h"

#include "hv/apic/vapic_edge.h"
#include "hv/lib/string.h"

void vlapic_setup(struct vlapic *l, struct apic_map *map, u32 id, u32 *tpr)
{
	BUG_ON(id >= APIC_MAP_IDS || map->nr_vcpus >= APIC_MAP_VCPUS);
	memset(l, 0, sizeof(*l));
	l->id = id;
	l->tpr = tpr;
	l->map = map;
	l->index = map->nr_vcpus++;
	map->vcpu[l->index] = l;
	map->track_peer[l->index] = &l->track;
	map->track.nr_peers = map->nr_vcpus;
	ipi_track_setup(&l->track, &map->track, l->index, &l->count);
}

/* After a change of mode or SVR. */
static void update_accepts(struct vlapic *l)
{
	WRITE_ONCE(l->accepts, l->mode != VLAPIC_DISABLED && (l->svr & SVR_ENABLE));
	l->unicast_ids = l->mode == VLAPIC_X2APIC ? APIC_MAP_IDS : 0;
}

/* SDM 11.4.7.1: what power-up, INIT and global disable have in common. The mode and the id stay. */
static void reset_registers(struct vlapic *l)
{
	u32 i;

	l->svr = SVR_RESET;
	update_accepts(l);
	for (i = 0; i < ARRAY_SIZE(l->irr); i++) {
		__atomic_store_n(&l->irr[i], 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&l->tmr[i], 0, __ATOMIC_SEQ_CST);
	}
	l->isr_depth = 0;
	l->isr_stack[0] = 0;
	for (i = 0; i < VLAPIC_NR_LVT; i++)
		WRITE_ONCE(l->lvt[i], LVT_MASKED);
	WRITE_ONCE(l->lint0_remote_irr, false);
	WRITE_ONCE(l->ldr, 0);
	WRITE_ONCE(l->dfr, UINT32_MAX);
	WRITE_ONCE(l->esr_pending, 0);
	l->esr = 0;
	l->icr = 0;
	*l->tpr = 0;
	l->timer_mode = VLAPIC_TIMER_ONESHOT;
	l->tmict = 0;
	l->tdcr = 0;
	l->timer_shift = 1;
	vlapic_timer_cancel(l);
	ipi_track_reset(&l->track);
}

void vlapic_reset(struct vlapic *l, bool x2apic, bool bsp)
{
	WRITE_ONCE(l->mode, x2apic ? VLAPIC_X2APIC : VLAPIC_XAPIC);
	l->bsp = bsp;
	l->wait_for_sipi = !bsp;
	reset_registers(l);
	/* The pins are not ours to change. */
	__atomic_fetch_and(&l->events, VLAPIC_EV_LINT0 | VLAPIC_EV_LINT1, __ATOMIC_SEQ_CST);
	vapic_map_changed(l);
}

void vlapic_virtual_wire(struct vlapic *l)
{
	l->svr = SVR_RESET | SVR_ENABLE;
	WRITE_ONCE(l->lvt[VLAPIC_LVT_LINT0], APIC_DM_EXTINT << 8);
	WRITE_ONCE(l->lvt[VLAPIC_LVT_LINT1], APIC_DM_NMI << 8);
	update_accepts(l);
}

u64 vlapic_get_base(const struct vlapic *l)
{
	u64 base = VLAPIC_BASE;

	if (l->bsp)
		base |= APIC_BASE_BSP;
	if (l->mode != VLAPIC_DISABLED)
		base |= APIC_BASE_EN;
	if (l->mode == VLAPIC_X2APIC)
		base |= APIC_BASE_EXTD;
	return base;
}

bool vlapic_set_base(struct vlapic *l, u64 value)
{
	static const u8 modes[4] = {
	    [0] = VLAPIC_DISABLED,
	    [APIC_BASE_EN >> 10] = VLAPIC_XAPIC,
	    [(APIC_BASE_EN | APIC_BASE_EXTD) >> 10] = VLAPIC_X2APIC,
	};
	u32 bits = value >> 10 & 3;
	u8 mode = modes[bits];

	if ((value & ~(APIC_BASE_BSP | APIC_BASE_EXTD | APIC_BASE_EN)) != VLAPIC_BASE)
		return false;
	if (bits == APIC_BASE_EXTD >> 10)
		return false;
	if (l->mode == VLAPIC_X2APIC && mode == VLAPIC_XAPIC)
		return false;
	if (l->mode == VLAPIC_DISABLED && mode == VLAPIC_X2APIC)
		return false;
	l->bsp = value & APIC_BASE_BSP;
	if (mode == l->mode)
		return true;
	/* Both ends of the disabled state: nothing posted meanwhile may survive. */
	if (mode == VLAPIC_DISABLED || l->mode == VLAPIC_DISABLED)
		reset_registers(l);
	l->icr = (u32)l->icr;
	WRITE_ONCE(l->mode, mode);
	update_accepts(l);
	vapic_map_changed(l);
	return true;
}

/* ---- Priorities (SDM 11.8.3, 11.8.4) ---- */

/* The highest vector in the IRR, or -1. */
static int highest_irr(const struct vlapic *l)
{
	int i;

	for (i = 3; i >= 0; i--) {
		u64 word = READ_ONCE(l->irr[i]);

		if (word)
			return i * 64 + fls64(word);
	}
	return -1;
}

static inline u32 in_service_vector(const struct vlapic *l)
{
	return l->isr_stack[l->isr_depth];
}

u32 vlapic_ppr(const struct vlapic *l)
{
	u32 tpr = READ_ONCE(*l->tpr) & 0xff;
	u32 isrv = in_service_vector(l);

	return tpr >> 4 >= isrv >> 4 ? tpr : isrv & 0xf0;
}

u32 vlapic_tpr_threshold(const struct vlapic *l)
{
	u32 class, tpr;
	int vector;

	if (likely(!vlapic_irr_any(l)))
		return 0;
	vector = highest_irr(l);
	class = vector >> 4;
	tpr = (READ_ONCE(*l->tpr) & 0xff) >> 4;
	/* Deliverable at once, or held back by what is in service: the EOI exits anyway. */
	if (vector < 0 || class > tpr || class <= in_service_vector(l) >> 4)
		return 0;
	return class;
}

/* ---- What arrives ---- */

static void post_fixed(struct vlapic *l, u8 vector, bool level, bool kick)
{
	if (vector < VLAPIC_MIN_VECTOR)
		vlapic_error(l, ESR_RECEIVE_ILLEGAL, kick);
	else if (READ_ONCE(l->accepts) && vlapic_post(l, vector, level) && kick)
		vapic_kick(l);
}

static void post_event(struct vlapic *l, u32 event, bool kick)
{
	if (!(__atomic_fetch_or(&l->events, event, __ATOMIC_SEQ_CST) & event) && kick)
		vapic_kick(l);
}

void vlapic_post_nmi(struct vlapic *l)
{
	post_event(l, VLAPIC_EV_NMI, true);
}

void vlapic_post_init(struct vlapic *l)
{
	u32 old = READ_ONCE(l->events);
	u32 new;

	/* What came before the INIT has no effect after it. */
	do
		new = (old & (VLAPIC_EV_LINT0 | VLAPIC_EV_LINT1)) | VLAPIC_EV_INIT;
	while (!__atomic_compare_exchange_n(&l->events, &old, new, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST));
	vapic_kick(l);
}

void vlapic_post_sipi(struct vlapic *l, u8 vector)
{
	u32 old = READ_ONCE(l->events);

	/* The first one starts the vCPU, however late it gets to it; a second one is ignored. */
	do {
		if (old & VLAPIC_EV_SIPI)
			return;
	} while (!__atomic_compare_exchange_n(&l->events, &old, old | VLAPIC_EV_SIPI | vector,
					      false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	vapic_kick(l);
}

enum vlapic_startup vlapic_take_startup(struct vlapic *l, u8 *vector)
{
	u32 old;

	if (likely(!(READ_ONCE(l->events) & (VLAPIC_EV_INIT | VLAPIC_EV_SIPI))))
		return VLAPIC_STARTUP_NONE;
	if (__atomic_fetch_and(&l->events, ~(u32)VLAPIC_EV_INIT, __ATOMIC_SEQ_CST) &
	    VLAPIC_EV_INIT) {
		reset_registers(l);
		l->wait_for_sipi = !l->bsp;
		vapic_map_changed(l);
		return VLAPIC_STARTUP_INIT;
	}
	old = __atomic_fetch_and(&l->events, ~(u32)(VLAPIC_EV_SIPI | 0xff), __ATOMIC_SEQ_CST);
	if (!(old & VLAPIC_EV_SIPI) || !l->wait_for_sipi)
		return VLAPIC_STARTUP_NONE;
	l->wait_for_sipi = false;
	*vector = old;
	return VLAPIC_STARTUP_SIPI;
}

void vlapic_error(struct vlapic *l, u32 bits, bool kick)
{
	u32 old = __atomic_fetch_or(&l->esr_pending, bits, __ATOMIC_SEQ_CST);

	/* An illegal vector in the error LVT itself comes back here once, then its bit is set. */
	if (bits & ~old)
		vlapic_lvt_deliver(l, VLAPIC_LVT_ERROR, kick);
}

void vlapic_lvt_deliver(struct vlapic *l, enum vlapic_lvt which, bool kick)
{
	u32 lvt = READ_ONCE(l->lvt[which]);
	bool level = which == VLAPIC_LVT_LINT0 && (lvt & LVT_LEVEL);

	if (lvt & LVT_MASKED)
		return;
	switch (LVT_DELIVERY(lvt)) {
	case APIC_DM_FIXED:
		if (level && __atomic_exchange_n(&l->lint0_remote_irr, true, __ATOMIC_SEQ_CST))
			return;
		post_fixed(l, lvt & LVT_VECTOR, level, kick);
		break;
	case APIC_DM_NMI:
		post_event(l, VLAPIC_EV_NMI, kick);
		break;
	default: /* ExtINT is the level of LINT0, see vlapic_extint(); SMI and INIT reach nothing */
		break;
	}
}

void vlapic_set_lint(struct vlapic *l, u32 pin, bool level)
{
	u32 event = pin ? VLAPIC_EV_LINT1 : VLAPIC_EV_LINT0;

	if (!level) {
		__atomic_fetch_and(&l->events, ~event, __ATOMIC_SEQ_CST);
		return;
	}
	if (__atomic_fetch_or(&l->events, event, __ATOMIC_SEQ_CST) & event)
		return;
	vlapic_lvt_deliver(l, pin ? VLAPIC_LVT_LINT1 : VLAPIC_LVT_LINT0, true);
	if (!pin && vlapic_extint(l))
		vapic_kick(l);
}

bool vlapic_extint(const struct vlapic *l)
{
	u32 lvt = READ_ONCE(l->lvt[VLAPIC_LVT_LINT0]);

	if (!(READ_ONCE(l->events) & VLAPIC_EV_LINT0))
		return false;
	if (READ_ONCE(l->mode) == VLAPIC_DISABLED)
		return true;
	return !(lvt & LVT_MASKED) && LVT_DELIVERY(lvt) == APIC_DM_EXTINT;
}

static void eoi_level(struct vlapic *l, u8 vector)
{
	u32 lvt = l->lvt[VLAPIC_LVT_LINT0];

	if (READ_ONCE(l->lint0_remote_irr) && (lvt & LVT_VECTOR) == vector) {
		__atomic_store_n(&l->lint0_remote_irr, false, __ATOMIC_SEQ_CST);
		if (READ_ONCE(l->events) & VLAPIC_EV_LINT0)
			vlapic_lvt_deliver(l, VLAPIC_LVT_LINT0, false);
	}
	if (!(l->svr & SVR_NO_BROADCAST_EOI))
		vapic_broadcast_eoi(l, vector);
}

void vlapic_eoi_level(struct vlapic *l, u8 vector, u64 clock)
{
	ipi_track_eoi(&l->track, vector, clock);
	eoi_level(l, vector);
}

bool vlapic_post_trigger(struct vlapic *l, u8 vector, bool level)
{
	/* Before the IRR: the EOI looks at it. */
	if (level)
		bit_set_atomic(l->tmr, vector);
	else
		bit_clear_atomic(l->tmr, vector);
	return !bit_test_and_set(l->irr, vector);
}
