/* SPDX-License-Identifier: BSD-2-Clause */
/* The hypervisor's knobs in effect: what follows from them in ticks. */
#include "hv/console.h"
#include "hv/knobs.h"
#include "hv/lib/errors.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"
#include "hv/vm/run.h"
#include "hv/vm/vm.h"

struct hv_knobs knobs = {
#define X(name, dflt, lo, hi, text) .name = dflt,
    HV_NUMBERS(X)
#undef X
#define X(name, dflt, text) .name = dflt,
	HV_SWITCHES(X)
#undef X
};

struct sched_knobs sched_knobs;
struct spin_knobs spin_knobs;

static void apply(void)
{
	run_knobs_changed();
	vm_knobs_changed();
}

/* One line on what would be right for the scheduler's knob @name. */
static void sched_knob_explain(const char *name, const char *value, char *err, size_t errsz)
{
	const struct sched_knob_info *k;
	int n;

	for (u32 i = 0; (k = sched_knob_info(i)) && strcmp(k->name, name); i++)
		;
	if (!k)
		return;
	if (k->kind == SCHED_KNOB_FEATURE) {
		fmt_print(err, errsz, "%s: \"%s\" is not on or off", name, value);
	} else if (k->kind == SCHED_KNOB_NUMBER) {
		fmt_print(err, errsz, "%s: \"%s\" is not a number from %lu to %lu", name, value,
			  k->least, k->largest);
	} else {
		n = fmt_print(err, errsz, "%s: \"%s\" is none of", name, value);
		for (u32 i = 0; k->words[i] && (size_t)n < errsz; i++)
			n += fmt_print(err + n, errsz - n, " %s", k->words[i]);
	}
}

/* Ours first, then the scheduler's. */
static int set(const char *name, const char *value, char *err, size_t errsz)
{
	int ret = knob_parse(&knobs, name, value, err, errsz), sched;

	if (ret != E_NOENT)
		return ret;
	sched = sched_knob_set(&sched_knobs, name, value);
	if (sched == E_NOENT)
		sched = spin_knob_set(&spin_knobs, name, value);
	if (sched == E_NOENT)
		return ret; /* with the text of knob_parse() */
	if (sched)
		sched_knob_explain(name, value, err, errsz);
	return sched;
}

void knobs_init(const struct config *cfg, u32 nr_cpus)
{
	char err[160];

	sched_knobs_init(&sched_knobs, nr_cpus);
	spin_knobs_init(&spin_knobs);
	for (u32 i = 0; i < cfg->nr_knobs; i++) {
		const struct cfg_knob *k = &cfg->knobs[i];

		if (set(k->name, k->value, err, sizeof(err)))
			hv_warn("vlag.cfg:%u: [knobs] %s; it keeps its default", k->line, err);
	}
	apply();
}

int knob_set(const char *name, const char *value, char *err, size_t errsz)
{
	int ret = set(name, value, err, errsz);

	if (!ret)
		apply();
	return ret;
}
