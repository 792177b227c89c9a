/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timer of the guest local APIC (SDM 11.5.4): one-shot, periodic, TSC deadline. All three come
 * down to one number, timer_deadline, in guest TSC ticks; the hypervisor's edge sees to it that
 * vlapic_timer_expired() is called when it has passed.
 */
#include "hv/apic/vlapic.h"
#include "hv/apic/vlapic_internal.h"

static void set_deadline(struct vlapic *l, u64 deadline)
{
	WRITE_ONCE(l->timer_deadline, deadline);
	l->timer_changed = true;
}

void vlapic_timer_cancel(struct vlapic *l)
{
	set_deadline(l, VLAPIC_TIMER_NONE);
}

static bool counts_down(const struct vlapic *l)
{
	return l->timer_mode == VLAPIC_TIMER_ONESHOT || l->timer_mode == VLAPIC_TIMER_PERIODIC;
}

/* Ticks from the initial count to zero. */
static u64 period_ticks(const struct vlapic *l)
{
	return (u64)l->tmict << l->timer_shift;
}

u32 vlapic_timer_tmcct(const struct vlapic *l, u64 now)
{
	u64 ticks;

	if (!counts_down(l) || l->timer_deadline == VLAPIC_TIMER_NONE)
		return 0;
	if (now < l->timer_deadline)
		ticks = l->timer_deadline - now;
	else if (l->timer_mode == VLAPIC_TIMER_PERIODIC)
		/* Due, but the edge has not come to it yet: it counts on as hardware would. */
		ticks = period_ticks(l) - (now - l->timer_deadline) % period_ticks(l);
	else
		return 0;
	/* A count lasts for a whole division: the initial count is seen for the first one. */
	return (ticks + BIT(l->timer_shift) - 1) >> l->timer_shift;
}

void vlapic_timer_write_tmict(struct vlapic *l, u32 count, u64 now)
{
	if (l->timer_mode == VLAPIC_TIMER_DEADLINE)
		return; /* 11.5.4.1: ignored */
	l->tmict = count;
	set_deadline(l, count && counts_down(l) ? now + period_ticks(l) : VLAPIC_TIMER_NONE);
}

void vlapic_timer_write_lvt(struct vlapic *l, u32 lvt)
{
	u8 mode = LVT_TIMER_MODE(lvt);
	u8 old = l->timer_mode;

	l->timer_mode = mode;
	/* One-shot and periodic count on over the change; to and from TSC deadline disarms. */
	if (mode != old && (mode >= VLAPIC_TIMER_DEADLINE || old >= VLAPIC_TIMER_DEADLINE)) {
		l->tmict = 0;
		vlapic_timer_cancel(l);
	}
}

void vlapic_timer_write_tdcr(struct vlapic *l, u32 tdcr, u64 now)
{
	/* Bits 3, 1, 0: 000 divides by 2, ..., 110 by 128, 111 by 1. */
	u32 code = (tdcr & 3) | (tdcr >> 1 & 4);
	u32 left = vlapic_timer_tmcct(l, now);

	l->tdcr = tdcr;
	l->timer_shift = (code + 1) & 7;
	if (left)
		set_deadline(l, now + ((u64)left << l->timer_shift));
}

void vlapic_timer_expired(struct vlapic *l, u64 now)
{
	u64 next = VLAPIC_TIMER_NONE;

	if (now < l->timer_deadline)
		return;
	if (l->timer_mode == VLAPIC_TIMER_PERIODIC) {
		u64 period = period_ticks(l);

		next = l->timer_deadline + period;
		if (unlikely(next <= now))
			next += ((now - next) / period + 1) * period;
	}
	set_deadline(l, next);
	vlapic_lvt_deliver(l, VLAPIC_LVT_TIMER, false);
}

void vlapic_set_tsc_offset(struct vlapic *l, s64 offset)
{
	if (counts_down(l) && l->timer_deadline != VLAPIC_TIMER_NONE)
		set_deadline(l, l->timer_deadline + (u64)offset - (u64)l->tsc_offset);
	l->tsc_offset = offset;
}
