/* SPDX-License-Identifier: BSD-2-Clause */
/* Printing the counters and histograms of all vCPUs. */
#ifndef VLAG_STATS_H
#define VLAG_STATS_H

#include "hv/console.h"

#define STATS_ALL UINT32_MAX

struct vm;

void stats_table(struct out *out);
void stats_json(struct out *out);
/* In Prometheus' text format: counters of vCPUs and pCPUs, histograms of VMs. */
void stats_prom(struct out *out);

/* From now on all of these count from 0, but maxima. Boot CPU, as stats_init(), which comes when
 * all VMs were made. */
void stats_reset(void);
void stats_init(void);

/* Every histogram of @vm with a bar for each bucket: of vCPU number @vcpu, or of all together with
 * STATS_ALL. */
void stats_hist(struct out *out, const struct vm *vm, u32 vcpu);

#endif
