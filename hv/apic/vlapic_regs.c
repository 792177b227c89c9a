/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registers of the guest local APIC, as the xAPIC page and as the x2APIC MSRs. Both go through
 * one read and one write function; what differs between the modes (which registers exist, what is
 * reserved, how an error shows) is decided before it.
 */
#include "hv/apic/vlapic.h"
#include "hv/apic/vlapic_internal.h"

#include "hv/apic/vapic_edge.h"

/* Integrated APIC, LVT entries 0..5, EOI broadcast can be suppressed (SDM 11.4.8). */
#define VERSION (0x14u | (VLAPIC_NR_LVT - 1) << 16 | 1u << 24)

static const u32 lvt_valid[VLAPIC_NR_LVT] = {
    [VLAPIC_LVT_TIMER] = 0x710ff, [VLAPIC_LVT_THERMAL] = 0x117ff, [VLAPIC_LVT_PMC] = 0x117ff,
    [VLAPIC_LVT_LINT0] = 0x1f7ff, [VLAPIC_LVT_LINT1] = 0x1f7ff,	  [VLAPIC_LVT_ERROR] = 0x110ff,
};

static bool is_lvt(u32 reg)
{
	return reg >= APIC_LVT_TIMER && reg <= APIC_LVT_ERROR;
}

static enum vlapic_lvt lvt_of(u32 reg)
{
	return (reg - APIC_LVT_TIMER) / 0x10;
}

/* Eight 32-bit registers with a bit per vector; @reg selects one. */
static u32 bitmap_read(const u64 *map, u32 reg)
{
	u32 i = reg >> 4 & 7;

	return READ_ONCE(map[i / 2]) >> i % 2 * 32;
}

static u32 isr_read(const struct vlapic *l, u32 reg)
{
	u64 isr[4] = {0};
	u32 i;

	for (i = 1; i <= l->isr_depth; i++)
		bit_set(isr, l->isr_stack[i]);
	return bitmap_read(isr, reg);
}

static u32 lvt_read(const struct vlapic *l, enum vlapic_lvt which)
{
	u32 lvt = l->lvt[which];

	if (which == VLAPIC_LVT_LINT0 && READ_ONCE(l->lint0_remote_irr))
		lvt |= LVT_REMOTE_IRR;
	return lvt;
}

/* The registers that both modes have. False: there is none, or it cannot be read. */
static bool reg_read(const struct vlapic *l, u32 reg, u64 now, u32 *value)
{
	if (is_lvt(reg)) {
		*value = lvt_read(l, lvt_of(reg));
		return true;
	}
	switch (reg) {
	case APIC_VERSION:
		*value = VERSION;
		return true;
	case APIC_TPR:
		*value = READ_ONCE(*l->tpr) & 0xff;
		return true;
	case APIC_PPR:
		*value = vlapic_ppr(l);
		return true;
	case APIC_SVR:
		*value = l->svr;
		return true;
	case APIC_ISR ... APIC_ISR + 0x70:
		*value = isr_read(l, reg);
		return true;
	case APIC_TMR ... APIC_TMR + 0x70:
		*value = bitmap_read(l->tmr, reg);
		return true;
	case APIC_IRR ... APIC_IRR + 0x70:
		*value = bitmap_read(l->irr, reg);
		return true;
	case APIC_ESR:
		*value = l->esr;
		return true;
	case APIC_ICR:
		*value = l->icr;
		return true;
	case APIC_TMICT:
		*value = l->tmict;
		return true;
	case APIC_TMCCT:
		*value = vlapic_timer_tmcct(l, now);
		return true;
	case APIC_TDCR:
		*value = l->tdcr;
		return true;
	default:
		return false;
	}
}

static void write_svr(struct vlapic *l, u32 value)
{
	u32 i;

	l->svr = value & SVR_VALID;
	if (!(value & SVR_ENABLE))
		for (i = 0; i < VLAPIC_NR_LVT; i++)
			WRITE_ONCE(l->lvt[i], l->lvt[i] | LVT_MASKED);
	WRITE_ONCE(l->accepts, l->mode != VLAPIC_DISABLED && (value & SVR_ENABLE));
}

static void write_lvt(struct vlapic *l, enum vlapic_lvt which, u32 value)
{
	u32 old = l->lvt[which];
	bool level;

	value &= lvt_valid[which] & ~LVT_READ_ONLY;
	if (!(l->svr & SVR_ENABLE))
		value |= LVT_MASKED;
	/* A full barrier: who raises a pin at the same time sees this, or we see the pin. */
	__atomic_store_n(&l->lvt[which], value, __ATOMIC_SEQ_CST);
	if (which == VLAPIC_LVT_TIMER)
		vlapic_timer_write_lvt(l, value);
	if (which != VLAPIC_LVT_LINT0)
		return;
	level = LVT_DELIVERY(value) == APIC_DM_FIXED && (value & LVT_LEVEL);
	if (!level)
		__atomic_store_n(&l->lint0_remote_irr, false, __ATOMIC_SEQ_CST);
	else if ((old & LVT_MASKED) && (READ_ONCE(l->events) & VLAPIC_EV_LINT0))
		vlapic_lvt_deliver(l, VLAPIC_LVT_LINT0, false);
}

/* The registers that both modes have, but the ICR. False: there is none, or it is read-only. */
static bool reg_write(struct vlapic *l, u32 reg, u32 value, u64 now)
{
	if (is_lvt(reg)) {
		write_lvt(l, lvt_of(reg), value);
		return true;
	}
	switch (reg) {
	case APIC_TPR:
		WRITE_ONCE(*l->tpr, value & 0xff);
		return true;
	case APIC_EOI:
		vlapic_eoi(l, now);
		return true;
	case APIC_SVR:
		write_svr(l, value);
		return true;
	case APIC_ESR:
		l->esr = __atomic_exchange_n(&l->esr_pending, 0, __ATOMIC_SEQ_CST);
		return true;
	case APIC_TMICT:
		vlapic_timer_write_tmict(l, value, now);
		return true;
	case APIC_TDCR:
		vlapic_timer_write_tdcr(l, value & 0xb, now);
		return true;
	default:
		return false;
	}
}

/* ---- x2APIC ---- */

/* The bits that may be set in a write of @reg; SDM 11.12.1.2, reserved bits fault. */
static u32 x2apic_valid(u32 reg)
{
	if (is_lvt(reg))
		return lvt_valid[lvt_of(reg)];
	switch (reg) {
	case APIC_TPR:
		return 0xff;
	case APIC_SVR:
		return SVR_VALID;
	case APIC_TDCR:
		return 0xb;
	case APIC_TMICT:
		return UINT32_MAX;
	default: /* EOI, ESR: only 0 */
		return 0;
	}
}

bool vlapic_msr_read(struct vlapic *l, u32 msr, u64 now, u64 *value)
{
	u32 reg = (msr - 0x800) << 4;
	u32 low;

	if (l->mode != VLAPIC_X2APIC || msr < 0x800 || msr > 0x8ff)
		return false;
	switch (reg) {
	case APIC_ICR:
		*value = l->icr;
		return true;
	case APIC_ID:
		*value = l->id;
		return true;
	case APIC_LDR:
		*value = x2apic_ldr(l->id);
		return true;
	}
	if (!reg_read(l, reg, now, &low))
		return false;
	*value = low;
	return true;
}

bool vlapic_msr_write(struct vlapic *l, u32 msr, u64 value, u64 now)
{
	u32 reg = (msr - 0x800) << 4;

	if (l->mode != VLAPIC_X2APIC || msr < 0x800 || msr > 0x8ff)
		return false;
	if (reg == APIC_ICR)
		return vlapic_x2apic_icr(l, value, now);
	if (reg == APIC_SELF_IPI)
		return vlapic_self_ipi(l, value);
	if (value & ~(u64)x2apic_valid(reg))
		return false;
	return reg_write(l, reg, value, now);
}

/* ---- xAPIC ---- */

u32 vlapic_mmio_read(struct vlapic *l, u32 offset, u64 now)
{
	u32 value;

	if (offset & 0xf)
		return 0; /* undefined */
	switch (offset) {
	case APIC_ID:
		return l->id << 24;
	case APIC_LDR:
		return l->ldr;
	case APIC_DFR:
		return l->dfr;
	case APIC_ICR2:
		return l->icr >> 32;
	case APIC_APR: /* not there since the Pentium 4 */
	case APIC_RRD:
	case APIC_EOI: /* write-only */
		return 0;
	}
	if (reg_read(l, offset, now, &value))
		return value;
	vlapic_error(l, ESR_ILLEGAL_REGISTER, false);
	return 0;
}

/* Those of which only xAPIC mode knows. False: not one of them. */
static bool xapic_write(struct vlapic *l, u32 reg, u32 value)
{
	switch (reg) {
	case APIC_LDR:
		WRITE_ONCE(l->ldr, value & 0xff000000);
		vapic_map_changed(l);
		return true;
	case APIC_DFR:
		WRITE_ONCE(l->dfr, value | 0x0fffffff);
		vapic_map_changed(l);
		return true;
	case APIC_ICR2:
		l->icr = (u64)(value & 0xff000000) << 32 | (u32)l->icr;
		return true;
	case APIC_ID: /* read-only, as on all that know x2APIC; see also the others of SDM table
			 11-1 */
	case APIC_VERSION:
	case APIC_APR:
	case APIC_PPR:
	case APIC_RRD:
	case APIC_ISR ... APIC_ISR + 0x70:
	case APIC_TMR ... APIC_TMR + 0x70:
	case APIC_IRR ... APIC_IRR + 0x70:
	case APIC_TMCCT:
		return true;
	default:
		return false;
	}
}

void vlapic_mmio_write(struct vlapic *l, u32 offset, u32 value, u64 now)
{
	if (likely(offset == APIC_EOI)) {
		vlapic_eoi(l, now);
		return;
	}
	if (offset & 0xf)
		return; /* undefined */
	if (offset == APIC_ICR) {
		l->icr = (l->icr & ~(u64)UINT32_MAX) | (value & ~ICR_BUSY);
		vlapic_send_ipi(l, value, l->icr >> 56, now);
		return;
	}
	if (!reg_write(l, offset, value, now) && !xapic_write(l, offset, value))
		vlapic_error(l, ESR_ILLEGAL_REGISTER, false);
}
