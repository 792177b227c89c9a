/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report port: a guest says which of its vCPUs it prefers (the protocol is in
 * docs/guest-abi.md). For people and figures only: no decision of the hypervisor depends on it.
 * Pure.
 */
#ifndef VLAG_PV_REPORT_H
#define VLAG_PV_REPORT_H

#include "hv/config/config.h"
#include "hv/lib/types.h"

#define REPORT_WORDS 5	      /* of 64 vCPUs */
#define REPORT_ID 0x47414c56u /* "VLAG": what a read of the port gives */

_Static_assert(REPORT_WORDS * 64 >= 264, "eleven words of 24 bits");

/* Who made the report. */
enum report_by { REPORT_NONE, REPORT_STEALD, REPORT_KERNEL };

/* Embedded in struct vm; its lock. */
struct pv_report {
	u64 draft[REPORT_WORDS];
	u64 set[REPORT_WORDS]; /* bit per vCPU; meaningful unless @by is REPORT_NONE */
	u32 by;		       /* enum report_by */
	u64 nr_good, nr_bad;   /* reports so far */
};

/* A 32-bit write to the port by a guest with @nr_vcpus. Any value is safe. */
void report_write(struct pv_report *r, u32 word, u32 nr_vcpus);

/* The set as text, "0-3,6", or "-" without a report. */
void report_text(const struct pv_report *r, char *buf, size_t size);

#endif
