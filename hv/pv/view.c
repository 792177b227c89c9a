/* SPDX-License-Identifier: BSD-2-Clause */
/* Means of a VM's time; see view.h. */
#include "hv/pv/view.h"

static u64 since(u64 a, u64 b)
{
	return (s64)(b - a) > 0 ? b - a : 0;
}

struct pv_means pv_means_between(const struct pv_sums *a, const struct pv_sums *b, u32 possible)
{
	u64 time = since(a->at_ns, b->at_ns);
	u64 steal = since(a->delay_ns, b->delay_ns), run = since(a->run_ns, b->run_ns);
	struct pv_means m = {0};

	/* In us: sums of 256 vCPUs over a year times 1000 fit. */
	time /= 1000;
	if (!time)
		return m;
	m.steal_permille = steal / 1000 * 1000 / (time * max(possible, 1u));
	m.runnable_centi = (steal + run) / 1000 * 100 / time;
	return m;
}

void pv_view_start(struct pv_view *view, const struct pv_sums *now)
{
	*view = (struct pv_view){.start = *now, .last = *now};
}

void pv_view_step(struct pv_view *view, const struct pv_sums *now, u64 interval_ns, u32 possible)
{
	if (since(view->last.at_ns, now->at_ns) < interval_ns)
		return;
	view->mean = pv_means_between(&view->last, now, possible);
	view->last = *now;
}
