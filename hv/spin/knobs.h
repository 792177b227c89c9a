/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every switch of pause-loop exits and directed yield, in three lists: switches, numbers, choices.
 * Names, defaults and rules that exist in KVM are KVM's. The struct and its table
 * (hv/lib/knob.h) come from these lists; a new knob is one line here. All may be changed
 * while guests run: each is one word, read once per decision.
 */
#ifndef VLAG_SPIN_KNOBS_H
#define VLAG_SPIN_KNOBS_H

#include "hv/lib/knob.h"
#include "hv/lib/types.h"

/* X(name, default, text) */
#define SPIN_SWITCHES(X)                                                                           \
	X(enable_relaxed_boost, true,                                                              \
	  "a spinner in kernel mode may yield to a vCPU preempted in user mode if there is no "    \
	  "better one")

/* X(name, default, least, largest, text); ticks of the TSC */
#define SPIN_NUMBERS(X)                                                                            \
	X(ple_gap, 128, 0, UINT32_MAX,                                                             \
	  "PAUSEs at most this far apart, in TSC ticks, belong to one loop; with ple=pause on "    \
	  "top "                                                                                   \
	  "of what an exit takes")                                                                 \
	X(ple_window, 4096, 0, UINT32_MAX,                                                         \
	  "a loop of PAUSEs that lasts longer than this, in TSC ticks, is a spin")                 \
	X(ple_window_grow, 2, 0, UINT32_MAX,                                                       \
	  "each exit multiplies the vCPU's window by this; from ple_window on it is added; 0: "    \
	  "the "                                                                                   \
	  "window stays")                                                                          \
	X(ple_window_shrink, 0, 0, UINT32_MAX,                                                     \
	  "getting a pCPU divides the window by this; from ple_window on it is subtracted; 0: "    \
	  "back to ple_window")                                                                    \
	X(ple_window_max, UINT32_MAX, 0, UINT32_MAX, "the window never grows beyond this")

/* X(name, type, default, text): a word out of the list SPIN_<type> */
#define SPIN_CHOICES(X)                                                                            \
	X(ple, PLE, SPIN_PLE_AUTO, "how a vCPU that spins with PAUSE is noticed")                  \
	X(candidate_policy, POLICY, SPIN_POLICY_EXACT, "to which vCPU a spinner yields")           \
	X(dy_tries, TRIES, SPIN_TRIES_3, "directed yields that one spin may try in vain")

/* X(value, word, text) */
#define SPIN_PLE(X)                                                                                \
	X(SPIN_PLE_AUTO, "auto", "hw where the CPU has pause-loop exiting, else pause")            \
	X(SPIN_PLE_HW, "hw", "pause-loop exiting of the CPU (CPL 0 only)")                         \
	X(SPIN_PLE_PAUSE, "pause", "PAUSE exiting while somebody waits for the pCPU")              \
	X(SPIN_PLE_OFF, "off", "not at all")

#define SPIN_POLICY(X)                                                                             \
	X(SPIN_POLICY_KVM, "kvm", "round robin after the last boosted, preempted in kernel only")  \
	X(SPIN_POLICY_IPI, "ipi",                                                                  \
	  "IPI receivers, pending interrupts, preempted in kernel; round robin within each")       \
	X(SPIN_POLICY_EXACT, "exact",                                                              \
	  "outstanding receivers, hints, pending interrupts, kernel mode; the oldest first")

#define SPIN_TRIES(X)                                                                              \
	X(SPIN_TRIES_3, "3", "three")                                                              \
	X(SPIN_TRIES_LOG2, "log2", "log2 of the VM's vCPUs + 1, from 3 to 10")                     \
	X(SPIN_TRIES_MIN8, "min8", "all other vCPUs of the VM, 8 at most")

#define X(value, word, text) value,
enum spin_ple_mode { SPIN_PLE(X) };
enum spin_policy_id { SPIN_POLICY(X) SPIN_POLICIES };
enum spin_tries { SPIN_TRIES(X) };
#undef X

struct spin_knobs {
#define X(name, dflt, text) bool name;
	SPIN_SWITCHES(X)
#undef X
#define X(name, dflt, least, largest, text) u64 name;
	SPIN_NUMBERS(X)
#undef X
#define X(name, type, dflt, text) u32 name;
	SPIN_CHOICES(X)
#undef X
};

extern const struct knob_table spin_knob_table;

/* All defaults. */
static inline void spin_knobs_init(struct spin_knobs *knobs)
{
	knob_table_init(&spin_knob_table, knobs);
}

/* As knob_table_set() and knob_table_get(), without a text. */
static inline int spin_knob_set(struct spin_knobs *knobs, const char *name, const char *value)
{
	return knob_table_set(&spin_knob_table, knobs, name, value, NULL, 0);
}

static inline int spin_knob_get(const struct spin_knobs *knobs, const char *name, char *buf,
				size_t size)
{
	return knob_table_get(&spin_knob_table, knobs, name, buf, size);
}

#endif
