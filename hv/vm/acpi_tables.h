/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest's ACPI tables: RSDP, RSDT, XSDT, FADT, FACS, MADT and the DSDT that iasl compiles from
 * dsdt.asl. They say what hv/dev emulates and which vCPUs there are, and nothing else. Pure.
 */
#ifndef VLAG_VM_ACPI_TABLES_H
#define VLAG_VM_ACPI_TABLES_H

#include "hv/lib/types.h"
#include "hv/vm/guest_mem.h"

#define ACPI_TABLES_GPA 0xe0000ull /* the RSDP, on a 16-byte boundary where BIOSes keep it */
#define ACPI_TABLES_END 0x100000ull

struct acpi_request {
	u32 nr_cpus;	     /* 1..CFG_MAX_VCPUS: vCPUs that run (or may be started) at boot */
	u32 max_cpus;	     /* >= @nr_cpus: the rest are listed as "online capable" spares */
	const u32 *apic_ids; /* of each of the @max_cpus; NULL: vCPU n has id n */
};

/*
 * Writes the tables into @mem from ACPI_TABLES_GPA up. @rsdp gets the RSDP's guest-physical
 * address. Returns 0, or E_RANGE if they do not fit below ACPI_TABLES_END, E_INVAL for a bad
 * @req, E_FAULT if there is no RAM there.
 */
int acpi_tables_build(struct guest_mem *mem, const struct acpi_request *req, u64 *rsdp);

#endif
