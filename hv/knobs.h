/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hypervisor's knobs: one list of numbers, one of switches. The [knobs] section of vlag.cfg,
 * the monitor's `knob` command and the documentation come from them; a new knob is one line. All
 * may be changed while guests run: each is one word, read once for each decision.
 */
#ifndef VLAG_KNOBS_H
#define VLAG_KNOBS_H

#include "hv/config/config.h"
#include "hv/lib/types.h"
#include "hv/sched/knobs.h"
#include "hv/spin/knobs.h"

/* X(name, default, least, largest, text); nanoseconds where the name ends in _ns */
#define HV_NUMBERS(X)                                                                              \
	X(steal_interval_ns, 1000000000, 10000000, 3600000000000,                                  \
	  "the monitor's steal ratio and runnable vCPUs of a VM are means over this long")         \
	X(host_poll_ns, 1000000, 100000, 10000000,                                                 \
	  "a running guest is interrupted at least this often: console, and what a lost "          \
	  "interrupt may cost")                                                                    \
	X(lapic_timer_advance_max_ns, 20000, 0, 1000000,                                           \
	  "a guest's timer is handled at most this much (or 4096 ticks, if that is more) early, "  \
	  "to be entered on time; 0: never early")                                                 \
	X(ipi_window_ns, 50000000, 0, 10000000000,                                                 \
	  "an unacknowledged IPI older than this is no longer waited for")

/* X(name, default, text) */
#define HV_SWITCHES(X)                                                                             \
	X(steal_preempted_halted, false,                                                           \
	  "steal time: a vCPU that halted counts as preempted, as in KVM before 5.19")             \
	X(ipi_tracking_enabled, true, "record who waits for the acknowledgement of which IPI")     \
	X(ipi_track_multicast, false, "record every receiver of an IPI to several vCPUs")

struct hv_knobs {
#define X(name, dflt, lo, hi, text) u64 name;
	HV_NUMBERS(X)
#undef X
#define X(name, dflt, text) bool name;
	HV_SWITCHES(X)
#undef X
};

extern struct hv_knobs knobs;
extern struct sched_knobs sched_knobs; /* hv/sched/knobs.h has their list */
extern struct spin_knobs spin_knobs;   /* hv/spin/knobs.h */

/* One knob, for printing. */
struct knob_info {
	const char *name, *text;
	u64 value, dflt, lo, hi;
	bool is_switch;
};

/* The @n-th knob, in the order of the lists; false if there are no more. Pure. */
bool knob_info(const struct hv_knobs *k, u32 n, struct knob_info *info);

/*
 * Sets knob @name of @k from the text @value (a number, or on/off/1/0). Returns 0, or an enum
 * vlag_error with one line in @err that says what would be right. Pure.
 */
int knob_parse(struct hv_knobs *k, const char *name, const char *value, char *err, size_t errsz);

/* Applies the config's [knobs], reporting what is wrong with its line. After the clock is known. */
void knobs_init(const struct config *cfg, u32 nr_cpus);

/* Sets one at run time and makes it take effect. Returns as knob_parse(). */
int knob_set(const char *name, const char *value, char *err, size_t errsz);

#endif
