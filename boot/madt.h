/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPUs that the ACPI tables list. Pure. */
#ifndef VLAG_BOOT_MADT_H
#define VLAG_BOOT_MADT_H

#include "boot/boot_info.h"

/* Physical memory: @size readable bytes at @addr, or NULL. */
typedef const void *(*phys_read_fn)(void *ctx, u64 addr, size_t size);

struct cpu_list {
	struct boot_cpu *cpus;
	u32 nr, max;
	u32 nr_lost; /* enabled CPUs that did not fit */
};

/* Adds a CPU, unless it is there already. */
void cpu_list_add(struct cpu_list *list, u32 apic_id, bool is_bsp);

/* Puts the CPU with @apic_id in front and marks it, and only it, as the BSP; adds it if need be
 * (in place of the last, if the list is full). */
void cpu_list_set_bsp(struct cpu_list *list, u32 apic_id);

/*
 * Follows the RSDP at physical address @rsdp through XSDT or RSDT to the MADT (ACPI 6.5, 5.2.5 to
 * 5.2.12) and adds the enabled CPUs to @list. Every table is checked: length, checksum, bounds.
 * Returns 0, E_NOENT (no MADT) or E_FORMAT, with *@why naming the table at fault.
 */
int madt_find_cpus(u64 rsdp, phys_read_fn read, void *ctx, struct cpu_list *list, const char **why);

#endif
