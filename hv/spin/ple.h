/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Noticing that a vCPU spins: the window of hardware pause-loop exiting, which adapts as in KVM,
 * and the software gap and window for CPUs without it (ple=pause), among them every nested KVM.
 * Pure arithmetic; the edge owns the VMCS fields and the clock.
 */
#ifndef VLAG_SPIN_PLE_H
#define VLAG_SPIN_PLE_H

#include "hv/lib/types.h"
#include "hv/spin/knobs.h"

/* Of a vCPU. Owner: its pCPU. */
struct spin_ple {
	u32 window; /* ticks: VMCS field PLE_WINDOW, and the window of ple=pause */
	/* ple=pause only */
	u32 pauses;	 /* PAUSE exits of the loop that goes on, 0: none */
	u64 loop_start;	 /* time of its first */
	u64 last;	 /* time of its last */
	u64 least_apart; /* shortest time ever seen between two PAUSE exits: what an exit takes */
};

static inline void spin_ple_init(struct spin_ple *p, const struct spin_knobs *k)
{
	*p = (struct spin_ple){.window = (u32)k->ple_window, .least_apart = UINT64_MAX};
}

/* What ple=auto means: SPIN_PLE_HW, SPIN_PLE_PAUSE or SPIN_PLE_OFF. `hw` on a CPU without
 * pause-loop exiting is `off`; the edge warns. */
static inline u32 spin_ple_mode(const struct spin_knobs *k, bool has_hw)
{
	u32 mode = READ_ONCE(k->ple);

	if (mode == SPIN_PLE_AUTO)
		return has_hw ? SPIN_PLE_HW : SPIN_PLE_PAUSE;
	return mode == SPIN_PLE_HW && !has_hw ? SPIN_PLE_OFF : mode;
}

/*
 * After a pause-loop exit / when the vCPU gets a pCPU. KVM's rules: a modifier of 0 means back to
 * ple_window, below ple_window it is a factor, from there on a summand; the bounds are
 * ple_window_max and ple_window. True if the window changed: the edge then writes the VMCS.
 */
bool spin_ple_grow(struct spin_ple *p, const struct spin_knobs *k);
bool spin_ple_shrink(struct spin_ple *p, const struct spin_knobs *k);

/*
 * ple=pause: a PAUSE exit at @now (host TSC). A PAUSE that follows the last one by no more than
 * the gap continues its loop, any other one starts a new loop. True if the loop has lasted longer
 * than the window: a spin; the next loop then starts with the next PAUSE.
 *
 * From exit to exit passes what the guest does and what the exit itself takes, which differs from
 * 500 ticks to 50,000 (nested). It is learned: the shortest distance ever seen stands for it, and
 * half of it is allowed for jitter. SDM vol. 3, 25.1.3 has the rule for hardware.
 */
bool spin_ple_pause(struct spin_ple *p, const struct spin_knobs *k, u64 now);

/* ple=pause: @p left the pCPU, so its loop is over (hardware starts anew at VM entry, too). */
static inline void spin_ple_left(struct spin_ple *p)
{
	p->pauses = 0;
}

#endif
