/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every switch of the scheduler, in three lists: features (Linux's names and defaults), numbers and
 * choices. The struct and its table (hv/lib/knob.h) come from these lists; a new knob is one line
 * here. All of them may be changed while the scheduler runs: each is one
 * word, read once per decision.
 */
#ifndef VLAG_SCHED_KNOBS_H
#define VLAG_SCHED_KNOBS_H

#include "hv/lib/knob.h"
#include "hv/lib/types.h"

/* X(name, default, text) */
#define SCHED_FEATURES(X)                                                                          \
	X(PLACE_LAG, true, "an entity returns with the lag with which it left")                    \
	X(PLACE_DEADLINE_INITIAL, true, "the first request of a new entity is half a slice")       \
	X(PLACE_REL_DEADLINE, true, "a migrated entity keeps the rest of its request")             \
	X(RUN_TO_PARITY, true,                                                                     \
	  "slice protection up to the shortest slice of the queue; off: min_quantum_ns")           \
	X(PREEMPT_SHORT, true, "a wake-up with a shorter slice cancels slice protection")          \
	X(PICK_BUDDY, true, "the nominated entity is picked first if it is eligible")              \
	X(DELAY_DEQUEUE, true,                                                                     \
	  "an entity that blocks with negative lag stays queued until it has paid")                \
	X(DELAY_ZERO, true, "such an entity gains no positive lag by staying")                     \
	X(WAKEUP_PREEMPTION, true, "a wake-up may preempt the running entity")                     \
	X(YIELD_TO_LAG_CREDIT, true,                                                               \
	  "directed yield may credit lag to its target (policy credit), or let it run early "      \
	  "(auto)")

/* X(name, default, least, largest, text); nanoseconds where the name ends in _ns */
#define SCHED_NUMBERS(X)                                                                           \
	X(base_slice_ns, 700000, 100000, 100000000,                                                \
	  "request length; the default is multiplied by 1 + ilog2(min(pCPUs, 8)) as in Linux")     \
	X(min_quantum_ns, 700000, 10000, 100000000, "slice protection without RUN_TO_PARITY")      \
	X(tick_ns, 1000000, 100000, 10000000,                                                      \
	  "granularity of time in the lag bound: longest slice + tick")                            \
	X(yield_resched_min_ns, 6000000, 0, 1000000000,                                            \
	  "least time between two forced reschedules of a run queue by directed yields")           \
	X(yield_debounce_ns, 300000, 0, 1000000000,                                                \
	  "deboost: a yield back within this time pays no margin")                                 \
	X(yield_auto_min_ns, 5000, 0, 1000000000,                                                  \
	  "auto: the rate limit never goes below this, nor above yield_resched_min_ns")            \
	X(yield_early_ns, 200000, 10000, 100000000,                                                \
	  "auto: a target that is not eligible may run this long before its time")                 \
	X(balance_interval_ns, 4000000, 100000, 10000000000, "time between balancing passes")      \
	X(balance_rotate_ns, 24000000, 0, 10000000000,                                             \
	  "an imbalance that no move can mend is passed on after this time; 0: never")             \
	X(balance_cost_ns, 250000, 0, 1000000000,                                                  \
	  "an entity that ran on its pCPU this recently is cache-hot and moved last")

/* X(name, type, default, text): a word out of the list SCHED_<type> */
#define SCHED_CHOICES(X)                                                                           \
	X(sched_mode, MODE, SCHED_MODE_VCPU, "what competes: vCPUs, VM groups, or flattened")      \
	X(yield_policy, YIELD, SCHED_YIELD_AUTO, "what a directed yield does")                     \
	X(yield_cross_rq, CROSS, SCHED_CROSS_BOOST, "directed yield to another run queue")         \
	X(balance, BALANCE, SCHED_BALANCE_FULL, "moving vCPUs between pCPUs")

/* X(value, word, text) */
#define SCHED_MODE(X)                                                                              \
	X(SCHED_MODE_VCPU, "vcpu", "every vCPU competes with its VM's weight")                     \
	X(SCHED_MODE_GROUP, "group", "two levels: VMs compete, then the vCPUs of one VM")          \
	X(SCHED_MODE_FLAT, "flat", "one level, the VM's weight divided among its runnable vCPUs")

#define SCHED_YIELD(X)                                                                             \
	X(SCHED_YIELD_FORFEIT, "forfeit", "nominate the target, forfeit the slice")                \
	X(SCHED_YIELD_DEBOOST, "deboost", "forfeit, after a bounded penalty for the yielder")      \
	X(SCHED_YIELD_CREDIT, "credit", "credit lag to the target, then forfeit")                  \
	X(SCHED_YIELD_TRANSFER, "transfer", "the yielder's lag goes to the target: zero-sum")      \
	X(SCHED_YIELD_AUTO, "auto", "transfer, and the target may run before its time")

#define SCHED_CROSS(X)                                                                             \
	X(SCHED_CROSS_OFF, "off", "a target on another run queue is left alone")                   \
	X(SCHED_CROSS_BOOST, "boost", "apply the policy there and make that pCPU reschedule")      \
	X(SCHED_CROSS_PULL, "pull", "move a queued target here and run it in the yielder's slot")

#define SCHED_BALANCE(X)                                                                           \
	X(SCHED_BALANCE_OFF, "off", "a vCPU stays on its pCPU")                                    \
	X(SCHED_BALANCE_IDLE, "idle", "wake-ups use idle pCPUs, an idle pCPU pulls")               \
	X(SCHED_BALANCE_FULL, "full", "idle, and a periodic pass evens out the load")

#define X(value, word, text) value,
enum sched_mode { SCHED_MODE(X) };
enum sched_yield_policy { SCHED_YIELD(X) SCHED_YIELD_POLICIES };
enum sched_cross_rq { SCHED_CROSS(X) };
enum sched_balance { SCHED_BALANCE(X) };
#undef X

struct sched_knobs {
#define X(name, dflt, text) bool name;
	SCHED_FEATURES(X)
#undef X
#define X(name, dflt, least, largest, text) u64 name;
	SCHED_NUMBERS(X)
#undef X
#define X(name, type, dflt, text) u32 name;
	SCHED_CHOICES(X)
#undef X
};

extern const struct knob_table sched_knob_table;

/* All defaults, for a machine of @nr_pcpus (the base slice grows with it, see base_slice_ns). */
void sched_knobs_init(struct sched_knobs *knobs, u32 nr_pcpus);

/* As knob_table_set() and knob_table_get(), without a text. */
static inline int sched_knob_set(struct sched_knobs *knobs, const char *name, const char *value)
{
	return knob_table_set(&sched_knob_table, knobs, name, value, NULL, 0);
}

static inline int sched_knob_get(const struct sched_knobs *knobs, const char *name, char *buf,
				 size_t size)
{
	return knob_table_get(&sched_knob_table, knobs, name, buf, size);
}

#endif
