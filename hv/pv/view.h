/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the monitor shows of a VM's time: how much of it was stolen, and how many of its vCPUs were
 * runnable. Both are means over an interval, computed from the scheduler's exact sums, so nothing
 * is sampled. Pure.
 */
#ifndef VLAG_PV_VIEW_H
#define VLAG_PV_VIEW_H

#include "hv/lib/types.h"

/* Sums over a VM's vCPUs at one moment. */
struct pv_sums {
	u64 at_ns; /* any clock */
	u64 run_ns, delay_ns;
};

struct pv_means {
	/* Of all possible vCPUs' time, in 1/1000: what the guest's governor computes, too. */
	u32 steal_permille;
	u32 runnable_centi; /* running or waiting, 1/100 vCPUs */
};

/* Embedded in struct vm; boot CPU. */
struct pv_view {
	struct pv_sums start; /* when the VM was started */
	struct pv_sums last;  /* where the current interval began */
	struct pv_means mean; /* of the last whole interval */
};

/* From @a to the later @b, for a VM with @possible vCPUs. */
struct pv_means pv_means_between(const struct pv_sums *a, const struct pv_sums *b, u32 possible);

/* The VM starts. */
void pv_view_start(struct pv_view *view, const struct pv_sums *now);

/* Ends the interval if it is @interval_ns old. */
void pv_view_step(struct pv_view *view, const struct pv_sums *now, u64 interval_ns, u32 possible);

#endif
