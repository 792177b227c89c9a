/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry of the hypervisor, and what its boot CPU looks after while it runs. */
#ifndef VLAG_MAIN_H
#define VLAG_MAIN_H

#include "boot/boot_info.h"

/* Called by hv_entry (hv/x86/trampoline.asm) on the boot CPU. */
__noreturn void hv_main(const struct boot_info *boot_info);

/* The boot CPU's stack until its event loop. */
extern char boot_stack[];

/* About once a millisecond on the boot CPU, no lock held: the console, and powering off when all
 * VMs have ended. */
void boot_cpu_poll(void);

#endif
