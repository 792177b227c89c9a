/* SPDX-License-Identifier: BSD-2-Clause */
/* The hypervisor's knobs in effect: what follows from them in ticks. */
#include "hv/console.h"
#include "hv/knobs.h"
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

static void apply(void)
{
	run_knobs_changed();
	vm_knobs_changed();
}

void knobs_init(const struct config *cfg)
{
	char err[160];

	for (u32 i = 0; i < cfg->nr_knobs; i++) {
		const struct cfg_knob *k = &cfg->knobs[i];

		if (knob_parse(&knobs, k->name, k->value, err, sizeof(err)))
			hv_warn("vlag.cfg:%u: [knobs] %s; it keeps its default", k->line, err);
	}
	apply();
}

int knob_set(const char *name, const char *value, char *err, size_t errsz)
{
	int ret = knob_parse(&knobs, name, value, err, errsz);

	if (!ret)
		apply();
	return ret;
}
