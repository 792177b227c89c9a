/* SPDX-License-Identifier: BSD-2-Clause */
/* What steald decides; steald_policy.h says what each function promises. */
#include "steald_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NSEC_PER_MSEC 1000000ull

unsigned int cpuset_count(const struct cpuset *set)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < STEALD_WORDS; i++)
		n += (unsigned int)__builtin_popcountll(set->bits[i]);
	return n;
}

bool cpuset_equal(const struct cpuset *a, const struct cpuset *b)
{
	return !memcmp(a, b, sizeof(*a));
}

struct cpuset cpuset_and(const struct cpuset *a, const struct cpuset *b)
{
	struct cpuset out;

	for (unsigned int i = 0; i < STEALD_WORDS; i++)
		out.bits[i] = a->bits[i] & b->bits[i];
	return out;
}

/* A decimal number below STEALD_CPUS; moves @text behind it. */
static bool parse_cpu(const char **text, unsigned int *cpu)
{
	unsigned int value = 0;

	if (**text < '0' || **text > '9')
		return false;
	for (; **text >= '0' && **text <= '9'; (*text)++) {
		value = value * 10 + (unsigned int)(**text - '0');
		if (value >= STEALD_CPUS)
			return false;
	}
	*cpu = value;
	return true;
}

bool cpuset_parse(const char *text, struct cpuset *set)
{
	unsigned int first, last;

	memset(set, 0, sizeof(*set));
	if (*text == '\0' || *text == '\n')
		return true;
	for (;;) {
		if (!parse_cpu(&text, &first))
			return false;
		last = first;
		if (*text == '-') {
			text++;
			if (!parse_cpu(&text, &last) || last < first)
				return false;
		}
		for (unsigned int cpu = first; cpu <= last; cpu++)
			cpuset_put(set, cpu, true);
		if (*text != ',')
			return *text == '\0' || *text == '\n';
		text++;
	}
}

void cpuset_format(const struct cpuset *set, char out[CPUSET_TEXT])
{
	char *end = out;

	*out = '\0';
	for (unsigned int cpu = 0; cpu < STEALD_CPUS; cpu++) {
		unsigned int first = cpu;

		if (!cpuset_has(set, cpu))
			continue;
		while (cpuset_has(set, cpu + 1))
			cpu++;
		end += sprintf(end, "%s%u", end == out ? "" : ",", first);
		if (cpu > first)
			end += sprintf(end, "-%u", cpu);
	}
}

enum steald_move steald_sample(struct steald_policy *p, uint64_t time_ns, uint64_t steal_ns,
			       unsigned int *ratio)
{
	uint64_t elapsed = time_ns - p->time_ns, stolen = 0, unit;
	bool first = !p->time_ns;

	*ratio = 0;
	if (!first && elapsed < NSEC_PER_MSEC)
		return STEALD_KEEP;
	if (steal_ns > p->steal_ns)
		stolen = steal_ns - p->steal_ns;
	p->time_ns = time_ns;
	p->steal_ns = steal_ns;
	if (first)
		return STEALD_KEEP;
	/* A ten-thousandth of the time of all CPUs; a millisecond has 100 of them at least. */
	unit = elapsed * p->possible / 10000;
	*ratio = (unsigned int)(stolen / (unit ? unit : 1));
	if (*ratio > p->high_threshold)
		return STEALD_FOLD;
	return *ratio <= p->low_threshold ? STEALD_UNFOLD : STEALD_KEEP;
}

bool steald_fold(struct steald_cpus *cpus)
{
	unsigned int first = STEALD_CPUS, target = STEALD_CPUS;

	for (unsigned int cpu = 0; cpu < STEALD_CPUS; cpu++) {
		if (!cpuset_has(&cpus->preferred, cpu))
			continue;
		if (first == STEALD_CPUS)
			first = cpu;
		else if (cpus->core[cpu] != cpus->core[first])
			target = cpu;
	}
	if (target == STEALD_CPUS)
		return false;
	for (unsigned int cpu = 0; cpu < STEALD_CPUS; cpu++)
		if (cpus->core[cpu] == cpus->core[target])
			cpuset_put(&cpus->preferred, cpu, false);
	return true;
}

bool steald_unfold(struct steald_cpus *cpus)
{
	unsigned int missing = 0;

	while (missing < STEALD_CPUS &&
	       (!cpuset_has(&cpus->active, missing) || cpuset_has(&cpus->preferred, missing)))
		missing++;
	if (missing == STEALD_CPUS)
		return false;
	for (unsigned int cpu = 0; cpu < STEALD_CPUS; cpu++)
		if (cpus->core[cpu] == cpus->core[missing] && cpuset_has(&cpus->active, cpu))
			cpuset_put(&cpus->preferred, cpu, true);
	return true;
}

void steald_follow(struct steald_cpus *cpus, const struct cpuset *active)
{
	struct cpuset preferred = cpuset_and(&cpus->preferred, active);

	for (unsigned int cpu = 0; cpu < STEALD_CPUS; cpu++)
		if (cpuset_has(active, cpu) && !cpuset_has(&cpus->active, cpu))
			cpuset_put(&preferred, cpu, true);
	cpus->active = *active;
	cpus->preferred = cpuset_count(&preferred) ? preferred : *active;
}

uint32_t steald_report_word(const struct cpuset *set, unsigned int n)
{
	uint32_t word = n << REPORT_CPUS_PER_WORD;

	for (unsigned int i = 0; i < REPORT_CPUS_PER_WORD; i++)
		if (cpuset_has(set, n * REPORT_CPUS_PER_WORD + i))
			word |= 1u << i;
	return word;
}
