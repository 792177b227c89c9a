/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one contract between the boot loader and the hypervisor.
 *
 * The loader (boot/) calls the ELF entry point of vlag.elf as
 *	void entry(struct boot_info *info)		(System V ABI: %rdi)
 * on the boot CPU in 64-bit mode with interrupts off, after ExitBootServices, on the firmware's
 * identity page tables, GDT and stack, which lie in memory that the map below marks MEM_BOOT. So do
 * this structure and the files, until the hypervisor gives them back. Addresses are physical and,
 * until the hypervisor has its own tables, also virtual.
 */
#ifndef VLAG_BOOT_INFO_H
#define VLAG_BOOT_INFO_H

#include "hv/config/config.h"
#include "hv/lib/types.h"

#define BOOT_INFO_MAGIC 0x676176746f6f62ull /* "bootvag" */
#define BOOT_INFO_VERSION 1

#define BOOT_MAX_CPUS 256
#define BOOT_MAX_RANGES 256
#define BOOT_MAX_FILES 64

enum mem_type {
	MEM_FREE,     /* RAM, the hypervisor's to allocate */
	MEM_BOOT,     /* RAM holding this structure, the files, the trampoline page and what the
			 firmware left (the stack and the tables at entry among it): free once they
			 are no longer needed */
	MEM_IMAGE,    /* RAM holding the hypervisor's loaded image, and its symbols behind it */
	MEM_ACPI,     /* ACPI tables (reclaimable) or NVS: read only, do not allocate */
	MEM_RESERVED, /* firmware, MMIO, RAM below 1 MiB and anything else */
};

struct mem_range {
	u64 base; /* page aligned */
	u64 size; /* bytes, a multiple of 4096 */
	u32 type; /* enum mem_type */
	u32 pad;
};

enum cpu_source { CPUS_MP_SERVICES, CPUS_MADT, CPUS_BSP_ONLY };

struct boot_cpu {
	u32 apic_id;
	u32 is_bsp; /* 1 for the CPU that runs the loader, which comes first in the list */
};

struct boot_file {
	char name[CFG_PATH_MAX]; /* as written in the config */
	u64 addr;		 /* page aligned; 0 when @error is set */
	u64 size;		 /* bytes */
	s32 error;		 /* 0, or enum vlag_error: E_NOENT, E_IO, E_NOMEM */
	u32 pad;
};

struct boot_info {
	u64 magic;
	u32 version;
	u32 size; /* sizeof(struct boot_info) as the loader knows it */

	u64 image_base, image_size; /* where vlag.elf's segments were loaded: page aligned,
				       contiguous, at link address 0 */
	u64 symtab, symtab_size;    /* its ELF .symtab and .strtab, for backtraces; 0 if absent.
				       They lie behind the segments, in MEM_IMAGE as well */
	u64 strtab, strtab_size;

	u64 rsdp;	  /* ACPI RSDP, 0 if there is none */
	u64 trampoline;	  /* one free page below 1 MiB for starting other CPUs, 0 if none was to be
			     had */
	u64 epoch_s;	  /* seconds since 1970-01-01 UTC by the firmware's clock, 0 if unknown */
	u64 tsc_at_start; /* RDTSC when the loader began */

	u32 nr_cpus;
	u32 cpu_source; /* enum cpu_source */
	struct boot_cpu cpus[BOOT_MAX_CPUS];

	u32 nr_ranges; /* sorted by base, no overlaps, neighbours of one type merged */
	u32 nr_files;
	struct mem_range ranges[BOOT_MAX_RANGES];
	struct boot_file files[BOOT_MAX_FILES];

	struct config config; /* what was read from \vlag.cfg; a VM with errors has .bad set */

	/* Warnings and errors of the loader and the config parser, one a line, NUL-terminated:
	 * shown on the console. */
	char messages[8192];
	u32 messages_len;
	u32 messages_lost; /* lines that did not fit */
};

#endif
