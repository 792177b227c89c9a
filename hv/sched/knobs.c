/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the scheduler's knobs, from the lists in knobs.h. */
#include "hv/sched/knobs.h"

#include "hv/lib/bits.h"

static const struct knob_info infos[] = {
#define X(...) KNOB_SWITCH_INFO(sched_knobs, __VA_ARGS__)
    SCHED_FEATURES(X)
#undef X
#define X(...) KNOB_NUMBER_INFO(sched_knobs, __VA_ARGS__)
	SCHED_NUMBERS(X)
#undef X
#define X(name, type, dflt, text) KNOB_CHOICE_INFO(sched_knobs, name, SCHED_##type, dflt, text)
	    SCHED_CHOICES(X)
#undef X
};

const struct knob_table sched_knob_table = {
    .title = "The scheduler",
    .text = "Those of hv/sched ([scheduler.md](scheduler.md)); defaults are for one pCPU.\n",
    .knob = infos,
    .nr = ARRAY_SIZE(infos),
};

void sched_knobs_init(struct sched_knobs *knobs, u32 nr_pcpus)
{
	knob_table_init(&sched_knob_table, knobs);
	/* Linux's logarithmic scaling: more pCPUs, longer slices, up to eight of them. */
	knobs->base_slice_ns *= 1 + (u64)fls64(clamp(nr_pcpus, 1u, 8u));
}
