/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts of the hypervisor, and MSR accesses that may fault. */
#ifndef VLAG_TRAPS_H
#define VLAG_TRAPS_H

#include "hv/lib/types.h"
#include "hv/x86/desc.h"

/* Counts and acknowledges host interrupt @vector: from the IDT while idle, from the exit handler
 * otherwise. */
void host_interrupt(u32 vector);

void trap(struct trap_frame *f);

/* RDMSR and WRMSR that return false where the CPU raises #GP. */
bool rdmsr_safe(u32 msr, u64 *value);
bool wrmsr_safe(u32 msr, u64 value);

#endif
