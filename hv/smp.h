/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting the other CPUs. */
#ifndef VLAG_SMP_H
#define VLAG_SMP_H

#include "boot/boot_info.h"

/*
 * Starts the CPUs of @info's list one after another, at most @limit in all (0: no limit). Each
 * measures its TSC against ours, goes into VMX operation and waits for smp_release(). One that does
 * not answer is reported and left out.
 */
void smp_start(const struct boot_info *info, u32 limit);

/* Lets the started CPUs run vCPUs. */
void smp_release(void);

#endif
