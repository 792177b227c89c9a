/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the walk from the RSDP to the MADT. The input is XORed over a sound set of tables; unless
 * its first byte is odd the checksums are then made right, so that what they protect is reached.
 */
// sources: boot/madt.c
#include <stdlib.h>

#include "boot/madt.h"
#include "hv/lib/bug.h"
#include "tests/unit/boot_madt_tables.h"

#define MAX_CPUS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Hands out exact copies, so that ASan sees a read behind what was asked for. */
static void *copies[64];
static u32 nr_copies;

static const void *mem_read(void *ctx, u64 addr, size_t size)
{
	if (addr > sizeof(mem) || size > sizeof(mem) - addr || nr_copies == 64)
		return NULL;
	copies[nr_copies] = malloc(size);
	memcpy(copies[nr_copies], mem + addr, size);
	return copies[nr_copies++];
}

static void fix_table(u32 at)
{
	u32 size;

	memcpy(&size, mem + at + 4, 4);
	if (size >= 36 && size <= sizeof(mem) - at)
		fix_sum(at, size, at + 9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct boot_cpu cpus[MAX_CPUS];
	struct cpu_list list = {.cpus = cpus, .max = MAX_CPUS};
	const char *why = NULL;

	make_tables();
	for (size_t i = 1; i < size && i - 1 < sizeof(mem) - RSDP; i++)
		mem[RSDP + i - 1] ^= data[i];
	if (!size || !(data[0] & 1)) {
		fix_table(MADT);
		fix_table(ROOT);
		fix_sum(RSDP, 20, RSDP + 8);
		fix_sum(RSDP, 36, RSDP + 32);
	}
	if (madt_find_cpus(RSDP, mem_read, NULL, &list, &why))
		BUG_ON(!why || list.nr);
	BUG_ON(list.nr > MAX_CPUS);
	cpu_list_set_bsp(&list, size ? data[0] : 0);
	BUG_ON(list.nr < 1 || list.nr > MAX_CPUS || !cpus[0].is_bsp);
	for (u32 i = 1; i < list.nr; i++) {
		BUG_ON(cpus[i].is_bsp);
		for (u32 j = 0; j < i; j++)
			BUG_ON(cpus[i].apic_id == cpus[j].apic_id);
	}
	while (nr_copies)
		free(copies[--nr_copies]);
	return 0;
}
