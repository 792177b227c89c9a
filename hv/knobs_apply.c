/* SPDX-License-Identifier: BSD-2-Clause */
/* The knobs in effect, and what follows from them in ticks. */
#include "hv/console.h"
#include "hv/knobs.h"
#include "hv/vm/run.h"
#include "hv/vm/vm.h"

struct hv_knobs knobs;
struct sched_knobs sched_knobs;
struct spin_knobs spin_knobs;

/* In the order of knob_tables[]. */
static void *const values[NR_KNOB_TABLES] = {&knobs, &sched_knobs, &spin_knobs};

static void apply(void)
{
	run_knobs_changed();
	vm_knobs_changed();
}

void knobs_init(const struct config *cfg, u32 nr_cpus)
{
	char err[160];

	knob_table_init(&hv_knob_table, &knobs);
	sched_knobs_init(&sched_knobs, nr_cpus);
	spin_knobs_init(&spin_knobs);
	for (u32 i = 0; i < cfg->nr_knobs; i++) {
		const struct cfg_knob *k = &cfg->knobs[i];

		if (knobs_parse(values, k->name, k->value, err, sizeof(err)))
			hv_warn("vlag.cfg:%u: [knobs] %s; it keeps its default", k->line, err);
	}
	apply();
}

int knob_set(const char *name, const char *value, char *err, size_t errsz)
{
	int ret = knobs_parse(values, name, value, err, errsz);

	if (!ret)
		apply();
	return ret;
}

void knob_value(u32 table, u32 i, char *buf, size_t size)
{
	const struct knob_table *t = knob_tables[table];

	knob_table_get(t, values[table], t->knob[i].name, buf, size);
}
