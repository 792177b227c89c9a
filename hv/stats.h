/* SPDX-License-Identifier: BSD-2-Clause */
/* Printing the counters of all vCPUs. */
#ifndef VLAG_STATS_H
#define VLAG_STATS_H

#include "hv/console.h"

void stats_table(struct out *out);
void stats_json(struct out *out);

#endif
