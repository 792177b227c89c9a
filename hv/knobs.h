/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hypervisor's knobs: one list of numbers, one of switches; and the tables of all rooms, from
 * which the [knobs] section of vlag.cfg, the monitor's `knob` command and the documentation come. A
 * new knob is one line. All may be changed while guests run: each is one word, read once for each
 * decision.
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

extern const struct knob_table hv_knob_table;

/* All knobs there are: one entry for each room. */
#define NR_KNOB_TABLES 3u
extern const struct knob_table *const knob_tables[NR_KNOB_TABLES];

/*
 * Sets the knob @name, wherever it is; values[i] is the struct of knob_tables[i]. Returns as
 * knob_table_set(). Pure.
 */
int knobs_parse(void *const values[NR_KNOB_TABLES], const char *name, const char *value, char *err,
		size_t errsz);

/* Applies the config's [knobs], reporting what is wrong with its line. After the clock is known. */
void knobs_init(const struct config *cfg, u32 nr_cpus);

/* Sets one at run time and makes it take effect. Returns as knob_table_set(). */
int knob_set(const char *name, const char *value, char *err, size_t errsz);

/* The value in effect of the @i-th knob of knob_tables[@table], as text. */
void knob_value(u32 table, u32 i, char *buf, size_t size);

#endif
