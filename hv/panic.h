/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of the hypervisor: what a bug prints before the machine stops. */
#ifndef VLAG_PANIC_H
#define VLAG_PANIC_H

#include "boot/boot_info.h"
#include "hv/x86/desc.h"

/* Remembers where the symbols lie. */
void panic_init(const struct boot_info *info);

__noreturn void panic_trap(const struct trap_frame *f);
void panic_nmi(const struct trap_frame *f);

/* Powers the machine off as far as it knows how, else halts this CPU for good. */
__noreturn void machine_poweroff(void);

/* Resets the machine (keyboard controller, 0xCF9, triple fault). */
__noreturn void machine_reboot(void);

#endif
