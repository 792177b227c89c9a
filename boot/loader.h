/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the loader that talk to the firmware, and what they share. The pure parts (elf.h,
 * madt.h, memmap.h, epoch.h) do not include this.
 */
#ifndef VLAG_BOOT_LOADER_H
#define VLAG_BOOT_LOADER_H

#include <efi.h>

#include "boot/boot_info.h"

#define PAGE_SIZE 4096
#define NO_ADDRESS 0ull

/* Set once by efi_main(); not to be used after ExitBootServices. */
extern EFI_HANDLE efi_image;
extern EFI_SYSTEM_TABLE *efi_system;
extern EFI_BOOT_SERVICES *efi_boot;

/* main.c */

/* Pages for @size bytes below @limit (0: anywhere), which the hypervisor will see as MEM_BOOT.
 * NO_ADDRESS if there are none. */
u64 pages_alloc(u64 size, u64 limit);
/* The same, executable also where the firmware keeps data from being executed. */
u64 pages_alloc_code(u64 size, u64 limit);
void pages_free(u64 addr, u64 size);

/* say.c */

/* A line for the firmware's console only: what is going on. */
void say(const char *fmt, ...) __printf(1, 2);
/* A line for the console and for boot_info.messages: what the user must know. */
void warn(struct boot_info *info, const char *fmt, ...) __printf(2, 3);
/* For boot_info.messages only: when the firmware's console is gone. */
void note(struct boot_info *info, const char *fmt, ...) __printf(2, 3);
/* As warn(); a cfg_report_fn with @info as its context. */
void warn_line(void *info, const char *line);

/* files.c */

/* Reads \vlag.cfg into info->config, and all files that it names into info->files. What fails is
 * reported, and marks the VM that needs it bad. */
void files_read(struct boot_info *info);

/* cpus.c */

/* Fills info->cpus: from MP Services, else from the MADT at info->rsdp, else with this CPU only. */
void cpus_find(struct boot_info *info);

/* image.c */

/* Loads the hypervisor that this file carries; returns its entry point, or 0 having said why. */
u64 image_load(struct boot_info *info);

/* leave.c */

/* Ends the firmware's boot services and fills info->ranges. From here on no service may be called.
 * Returns false, having said why, if the firmware does not let go. */
bool leave_firmware(struct boot_info *info);

#endif
