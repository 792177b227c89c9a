/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the knobs of directed yield, from the lists in knobs.h. */
#include "hv/spin/knobs.h"

static const struct knob_info infos[] = {
#define X(...) KNOB_SWITCH_INFO(spin_knobs, __VA_ARGS__)
    SPIN_SWITCHES(X)
#undef X
#define X(...) KNOB_NUMBER_INFO(spin_knobs, __VA_ARGS__)
	SPIN_NUMBERS(X)
#undef X
#define X(name, type, dflt, text) KNOB_CHOICE_INFO(spin_knobs, name, SPIN_##type, dflt, text)
	    SPIN_CHOICES(X)
#undef X
};

const struct knob_table spin_knob_table = {
    .title = "Directed yield",
    .text = "Those of hv/spin ([directed-yield.md](directed-yield.md)); windows and gaps are in "
	    "TSC ticks.\n",
    .knob = infos,
    .nr = ARRAY_SIZE(infos),
};
