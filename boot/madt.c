/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPUs that the ACPI tables list. Pure: memory is read through a function, and no table is
 * believed before its length and checksum are.
 */
#include "boot/madt.h"

#include "hv/lib/errors.h"
#include "hv/lib/string.h"

#define TABLE_MAX (1 * MiB) /* no firmware has larger ones; bounds the work */
#define HEADER_SIZE 36	    /* ACPI 6.5, 5.2.6 */
#define MADT_ENTRIES 44	    /* 5.2.12: header, LAPIC address, flags */

#define MADT_LAPIC 0
#define MADT_X2APIC 9
#define CPU_ENABLED 1u /* "online capable" ones are not there yet */

void cpu_list_add(struct cpu_list *list, u32 apic_id, bool is_bsp)
{
	for (u32 i = 0; i < list->nr; i++) {
		if (list->cpus[i].apic_id == apic_id)
			return;
	}
	if (list->nr == list->max) {
		list->nr_lost++;
		return;
	}
	list->cpus[list->nr++] = (struct boot_cpu){.apic_id = apic_id, .is_bsp = is_bsp};
}

void cpu_list_set_bsp(struct cpu_list *list, u32 apic_id)
{
	u32 at = list->nr;

	for (u32 i = 0; i < list->nr; i++) {
		list->cpus[i].is_bsp = 0;
		if (list->cpus[i].apic_id == apic_id)
			at = i;
	}
	if (at == list->max) {
		at--;
		list->nr_lost++;
	} else if (at == list->nr) {
		list->nr++;
	}
	memmove(&list->cpus[1], &list->cpus[0], at * sizeof(list->cpus[0]));
	list->cpus[0] = (struct boot_cpu){.apic_id = apic_id, .is_bsp = 1};
}

static u64 get(const u8 *p, u32 bytes)
{
	u64 v = 0;

	memcpy(&v, p, bytes);
	return v;
}

static bool sums_to_zero(const u8 *p, size_t n)
{
	u8 sum = 0;

	while (n--)
		sum += *p++;
	return sum == 0;
}

/* A whole table with a sound header and checksum, or NULL. */
static const u8 *table_at(u64 addr, phys_read_fn read, void *ctx, u32 *size)
{
	const u8 *t = addr ? read(ctx, addr, HEADER_SIZE) : NULL;

	if (!t)
		return NULL;
	*size = (u32)get(t + 4, 4);
	if (*size < HEADER_SIZE || *size > TABLE_MAX)
		return NULL;
	t = read(ctx, addr, *size);
	return t && sums_to_zero(t, *size) ? t : NULL;
}

/* The address of the XSDT, or of the RSDT where there is none (*@entry_size 8 or 4); 0 if the RSDP
 * is none. */
static u64 root_of(u64 rsdp, phys_read_fn read, void *ctx, u32 *entry_size)
{
	const u8 *r = rsdp ? read(ctx, rsdp, 20) : NULL;

	if (!r || memcmp(r, "RSD PTR ", 8) != 0 || !sums_to_zero(r, 20))
		return 0;
	*entry_size = 4;
	if (r[15] >= 2) {
		const u8 *extended = read(ctx, rsdp, 36);

		if (extended && sums_to_zero(extended, 36) && get(extended + 24, 8)) {
			*entry_size = 8;
			return get(extended + 24, 8);
		}
	}
	return get(r + 16, 4);
}

static void add_cpus(const u8 *madt, u32 size, struct cpu_list *list)
{
	u32 length;

	for (u32 at = MADT_ENTRIES; at + 2 <= size; at += length) {
		const u8 *e = madt + at;

		length = e[1];
		if (length < 2 || length > size - at)
			return; /* the checksum is right, so what came before counts */
		if (e[0] == MADT_LAPIC && length >= 8 && get(e + 4, 4) & CPU_ENABLED)
			cpu_list_add(list, e[3], false);
		if (e[0] == MADT_X2APIC && length >= 16 && get(e + 8, 4) & CPU_ENABLED)
			cpu_list_add(list, (u32)get(e + 4, 4), false);
	}
}

int madt_find_cpus(u64 rsdp, phys_read_fn read, void *ctx, struct cpu_list *list, const char **why)
{
	u32 root_size, entry_size = 0;
	u64 root_addr = root_of(rsdp, read, ctx, &entry_size);
	const u8 *root;

	*why = "RSDP";
	if (!root_addr)
		return E_FORMAT;
	*why = entry_size == 8 ? "XSDT" : "RSDT";
	root = table_at(root_addr, read, ctx, &root_size);
	if (!root || memcmp(root, *why, 4) != 0)
		return E_FORMAT;

	*why = "MADT";
	for (u32 at = HEADER_SIZE; at + entry_size <= root_size; at += entry_size) {
		u64 addr = get(root + at, entry_size);
		const u8 *t = addr ? read(ctx, addr, 4) : NULL;
		u32 size;

		if (!t || memcmp(t, "APIC", 4) != 0)
			continue;
		t = table_at(addr, read, ctx, &size);
		if (!t || size < MADT_ENTRIES)
			return E_FORMAT;
		add_cpus(t, size, list);
		return 0;
	}
	return E_NOENT;
}
