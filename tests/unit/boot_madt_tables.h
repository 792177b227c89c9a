/* SPDX-License-Identifier: BSD-2-Clause */
/* A sound set of ACPI tables in a small memory, @mem, for the tests and the fuzzer of boot/madt.c.
 */
#ifndef VLAG_TESTS_BOOT_MADT_TABLES_H
#define VLAG_TESTS_BOOT_MADT_TABLES_H

#include <string.h>

#include "hv/lib/types.h"

#define RSDP 0x100
#define ROOT 0x200
#define OTHER 0x400
#define MADT 0x600

static u8 mem[0x1000];
static u32 madt_size;

static void put(u32 at, u64 value, u32 bytes)
{
	memcpy(mem + at, &value, bytes);
}

static void fix_sum(u32 at, u32 size, u32 sum_at)
{
	u8 sum = 0;

	mem[sum_at] = 0;
	for (u32 i = 0; i < size; i++)
		sum += mem[at + i];
	mem[sum_at] = (u8)-sum;
}

static void finish_table(u32 at, const char *signature, u32 size)
{
	memcpy(mem + at, signature, 4);
	put(at + 4, size, 4);
	fix_sum(at, size, at + 9);
}

static void finish_rsdp(u8 revision)
{
	memcpy(mem + RSDP, "RSD PTR ", 8);
	mem[RSDP + 15] = revision;
	put(RSDP + 20, 36, 4);
	fix_sum(RSDP, 20, RSDP + 8);
	fix_sum(RSDP, 36, RSDP + 32);
}

static void add_lapic(u8 apic_id, u32 flags)
{
	u8 *e = mem + MADT + madt_size;

	e[0] = 0, e[1] = 8, e[3] = apic_id;
	memcpy(e + 4, &flags, 4);
	madt_size += 8;
}

static void add_x2apic(u32 apic_id, u32 flags)
{
	u8 *e = mem + MADT + madt_size;

	e[0] = 9, e[1] = 16;
	memcpy(e + 4, &apic_id, 4);
	memcpy(e + 8, &flags, 4);
	madt_size += 16;
}

/* ACPI 2.0: CPUs 4, 6 and 0x1234, one disabled, one that may come later. */
static void make_tables(void)
{
	memset(mem, 0, sizeof(mem));
	madt_size = 44;
	add_lapic(4, 1);
	add_lapic(6, 1);
	mem[MADT + madt_size] = 1, mem[MADT + madt_size + 1] = 12; /* an IOAPIC */
	madt_size += 12;
	add_lapic(8, 0);
	add_lapic(10, 2);
	add_x2apic(0x1234, 1);
	add_x2apic(0x1235, 0);
	finish_table(MADT, "APIC", madt_size);
	finish_table(OTHER, "FACP", 100);
	put(ROOT + 36, OTHER, 8);
	put(ROOT + 44, MADT, 8);
	finish_table(ROOT, "XSDT", 52);
	put(RSDP + 16, 0xdead, 4); /* an RSDT that must not be followed */
	put(RSDP + 24, ROOT, 8);
	finish_rsdp(2);
}

#endif
