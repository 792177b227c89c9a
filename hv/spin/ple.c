/* SPDX-License-Identifier: BSD-2-Clause */
/* Noticing that a vCPU spins: the arithmetic of ple.h. Nothing here touches a VMCS or a clock. */
#include "hv/spin/ple.h"

static bool set_window(struct spin_ple *p, u64 window)
{
	bool changed = p->window != window;

	p->window = (u32)window;
	return changed;
}

bool spin_ple_grow(struct spin_ple *p, const struct spin_knobs *k)
{
	u64 base = READ_ONCE(k->ple_window), by = READ_ONCE(k->ple_window_grow);
	u64 window = p->window;

	if (!by)
		return set_window(p, base);
	/* Both are below 2^32, so nothing overflows before the bound. */
	window = by < base ? window * by : window + by;
	return set_window(p, min(window, READ_ONCE(k->ple_window_max)));
}

bool spin_ple_shrink(struct spin_ple *p, const struct spin_knobs *k)
{
	u64 base = READ_ONCE(k->ple_window), by = READ_ONCE(k->ple_window_shrink);
	u64 window = p->window;

	if (!by)
		return set_window(p, base);
	if (by < base)
		window /= by;
	else
		window -= min(by, window);
	return set_window(p, max(window, base));
}

bool spin_ple_pause(struct spin_ple *p, const struct spin_knobs *k, u64 now)
{
	u64 apart = now - p->last;
	bool sane = (s64)apart >= 0; /* else it came from a pCPU whose clock is ahead */

	p->last = now;
	if (sane && apart < p->least_apart)
		p->least_apart = apart;
	if (!p->pauses || !sane ||
	    apart - p->least_apart > READ_ONCE(k->ple_gap) + p->least_apart / 2) {
		p->pauses = 1;
		p->loop_start = now;
		return false;
	}
	p->pauses++;
	if (now - p->loop_start <= p->window)
		return false;
	p->pauses = 0;
	return true;
}
