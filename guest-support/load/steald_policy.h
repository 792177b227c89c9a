/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What steald decides: sets of CPUs, when to fold and when to unfold. Pure: no files, no clock, no
 * system calls. The rules are those of the steal governor of the preferred-CPU series for Linux, so
 * that a stock kernel with steald and a patched one do the same.
 */
#ifndef GUEST_SUPPORT_STEALD_POLICY_H
#define GUEST_SUPPORT_STEALD_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEALD_CPUS 256
#define STEALD_WORDS (STEALD_CPUS / 64)

struct cpuset {
	uint64_t bits[STEALD_WORDS];
};

static inline bool cpuset_has(const struct cpuset *set, unsigned int cpu)
{
	return cpu < STEALD_CPUS && (set->bits[cpu / 64] >> cpu % 64 & 1);
}

static inline void cpuset_put(struct cpuset *set, unsigned int cpu, bool in)
{
	uint64_t bit = 1ull << cpu % 64;

	if (cpu < STEALD_CPUS)
		set->bits[cpu / 64] = in ? set->bits[cpu / 64] | bit : set->bits[cpu / 64] & ~bit;
}

unsigned int cpuset_count(const struct cpuset *set);
bool cpuset_equal(const struct cpuset *a, const struct cpuset *b);
struct cpuset cpuset_and(const struct cpuset *a, const struct cpuset *b);

/* Read a list such as "0-3,6\n". False if it is none, or names a CPU beyond STEALD_CPUS. An empty
 * list is an empty set. */
bool cpuset_parse(const char *text, struct cpuset *set);

#define CPUSET_TEXT 1024
/* Write @set as such a list, without a newline. */
void cpuset_format(const struct cpuset *set, char out[CPUSET_TEXT]);

struct steald_policy {
	/* Hundredths of a percent of the time of all possible CPUs: fold above high, unfold at low
	 * or below. */
	unsigned int low_threshold, high_threshold;
	unsigned int possible; /* CPUs that the steal time is a sum of */
	/* The last sample; 0: there was none. */
	uint64_t time_ns, steal_ns;
};

enum steald_move { STEALD_KEEP, STEALD_FOLD, STEALD_UNFOLD };

/* Take a sample: @steal_ns is the sum over all possible CPUs since boot. Returns what to do, and
 * the steal ratio in hundredths of a percent. The first sample, and one less than a millisecond
 * after the last, only says STEALD_KEEP. Steal that goes back counts as none. */
enum steald_move steald_sample(struct steald_policy *p, uint64_t time_ns, uint64_t steal_ns,
			       unsigned int *ratio);

/* The topology: @active are the CPUs that are online, core[cpu] names the core of a CPU (siblings
 * have the same number). */
struct steald_cpus {
	struct cpuset active, preferred;
	uint16_t core[STEALD_CPUS];
};

/* Take the last core away; the core of the first preferred CPU always stays. False if no other is
 * left. */
bool steald_fold(struct steald_cpus *cpus);
/* Give the first active core that is missing back. False if none is. */
bool steald_unfold(struct steald_cpus *cpus);
/* CPUs went off or came on line: those that came are preferred, those that went are not, and if
 * none is left, all active ones are. */
void steald_follow(struct steald_cpus *cpus, const struct cpuset *active);

/* The report port of docs/guest-abi.md. */
#define REPORT_PORT 0x560
#define REPORT_SIGNATURE 0x47414c56u
#define REPORT_CPUS_PER_WORD 24
#define REPORT_WORDS ((STEALD_CPUS + REPORT_CPUS_PER_WORD - 1) / REPORT_CPUS_PER_WORD)
#define REPORT_WITHDRAW 0xff000000u
#define REPORT_STEALD 0xff000001u
#define REPORT_KERNEL 0xff000002u

/* Word @n (below REPORT_WORDS) of a report of @set. */
uint32_t steald_report_word(const struct cpuset *set, unsigned int n);

#endif
