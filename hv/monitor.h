/* SPDX-License-Identifier: BSD-2-Clause */
/* The monitor: commands of the console and of the control port. Runs on the boot CPU, no lock held.
 */
#ifndef VLAG_MONITOR_H
#define VLAG_MONITOR_H

#include "hv/console.h"

/* Carries out one command line. Returns NULL, or a one-line text saying what is wrong with it. */
const char *monitor_run(const char *line, struct out *out);

#endif
