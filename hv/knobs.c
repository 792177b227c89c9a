/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the hypervisor's own knobs, and the list of all tables. Pure; what a change must set
 * in motion is in hv/knobs_apply.c. */
#include "hv/knobs.h"

#include "hv/lib/errors.h"

static const struct knob_info infos[] = {
#define X(...) KNOB_NUMBER_INFO(hv_knobs, __VA_ARGS__)
    HV_NUMBERS(X)
#undef X
#define X(...) KNOB_SWITCH_INFO(hv_knobs, __VA_ARGS__)
	HV_SWITCHES(X)
#undef X
};

const struct knob_table hv_knob_table = {
    .title = "The hypervisor",
    .text = "Clocks, steal time, who waits for which IPI.\n",
    .knob = infos,
    .nr = ARRAY_SIZE(infos),
};

const struct knob_table *const knob_tables[NR_KNOB_TABLES] = {
    &hv_knob_table,
    &sched_knob_table,
    &spin_knob_table,
};

int knobs_parse(void *const values[NR_KNOB_TABLES], const char *name, const char *value, char *err,
		size_t errsz)
{
	int ret = E_NOENT;

	for (u32 i = 0; i < NR_KNOB_TABLES && ret == E_NOENT; i++)
		ret = knob_table_set(knob_tables[i], values[i], name, value, err, errsz);
	return ret;
}
