/* SPDX-License-Identifier: BSD-2-Clause */
/* The guest's ACPI tables: found as an operating system finds them, checked byte by byte where it
 * matters, and disassembled by iasl where it is installed. */
// sources: hv/vm/acpi_tables.c build/hv/vm/dsdt.c
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hv/config/config.h"
#include "hv/dev/ports.h"
#include "hv/lib/errors.h"
#include "hv/vm/acpi_tables.h"

#define RAM (2 * MiB)

struct vm {
	struct guest_mem mem;
	u8 *ram;
	u64 rsdp;
};

static int setup(void **state)
{
	struct vm *vm = calloc(1, sizeof(*vm));

	vm->ram = malloc(RAM);
	memset(vm->ram, 0xa5, RAM); /* the builder must not rely on zeroed memory */
	vm->mem = (struct guest_mem){.nr_slots = 1, .slots = {{0, RAM, vm->ram}}};
	*state = vm;
	return 0;
}

static int teardown(void **state)
{
	struct vm *vm = *state;

	free(vm->ram);
	free(vm);
	return 0;
}

static u64 get(const u8 *p, int bytes)
{
	u64 v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (u64)p[i] << (8 * i);
	return v;
}

static u8 sum(const u8 *p, u64 len)
{
	u8 s = 0;

	while (len--)
		s += *p++;
	return s;
}

static void build(struct vm *vm, u32 nr, u32 max, const u32 *ids)
{
	struct acpi_request req = {.nr_cpus = nr, .max_cpus = max, .apic_ids = ids};

	assert_int_equal(acpi_tables_build(&vm->mem, &req, &vm->rsdp), 0);
}

/* Walks from the RSDP through RSDT (@wide false) or XSDT, checking lengths and sums on the way. */
static const u8 *find(const struct vm *vm, const char *signature, bool wide)
{
	const u8 *rsdp = vm->ram + vm->rsdp;
	u64 root_gpa = wide ? get(rsdp + 24, 8) : get(rsdp + 16, 4);
	const u8 *root = vm->ram + root_gpa;
	int width = wide ? 8 : 4;
	u64 len = get(root + 4, 4);

	assert_memory_equal(root, wide ? "XSDT" : "RSDT", 4);
	assert_int_equal(sum(root, len), 0);
	for (u64 i = 36; i < len; i += width) {
		u64 gpa = get(root + i, width);
		const u8 *t = vm->ram + gpa;

		assert_in_range(gpa, ACPI_TABLES_GPA, ACPI_TABLES_END - 1);
		assert_int_equal(sum(t, get(t + 4, 4)), 0);
		if (!memcmp(t, signature, 4))
			return t;
	}
	return NULL;
}

static void the_rsdp_is_where_a_bios_keeps_it(void **state)
{
	struct vm *vm = *state;
	const u8 *r;

	build(vm, 1, 1, NULL);
	r = vm->ram + vm->rsdp;
	assert_in_range(vm->rsdp, 0xe0000, 0xfffff);
	assert_int_equal(vm->rsdp % 16, 0);
	assert_memory_equal(r, "RSD PTR ", 8);
	assert_int_equal(r[15], 2);
	assert_int_equal(sum(r, 20), 0);
	assert_int_equal(get(r + 20, 4), 36);
	assert_int_equal(sum(r, 36), 0);
}

static void both_roots_lead_to_the_same_tables(void **state)
{
	struct vm *vm = *state;

	build(vm, 2, 2, NULL);
	assert_non_null(find(vm, "FACP", false));
	assert_ptr_equal(find(vm, "FACP", false), find(vm, "FACP", true));
	assert_non_null(find(vm, "APIC", false));
	assert_ptr_equal(find(vm, "APIC", false), find(vm, "APIC", true));
}

static void the_fadt_names_the_ports_that_are_emulated(void **state)
{
	struct vm *vm = *state;
	const u8 *f, *dsdt, *facs;

	build(vm, 1, 1, NULL);
	f = find(vm, "FACP", true);
	assert_int_equal(f[8], 5);
	assert_int_equal(get(f + 4, 4), 268);
	assert_int_equal(get(f + 46, 2), IRQ_SCI);
	assert_int_equal(get(f + 48, 4), 0); /* no SMI_CMD: already in ACPI mode */
	assert_int_equal(get(f + 56, 4), PORT_PM1A_EVT);
	assert_int_equal(get(f + 64, 4), PORT_PM1A_CNT);
	assert_int_equal(get(f + 76, 4), PORT_PM_TMR);
	assert_int_equal(f[88], 4);
	assert_int_equal(f[89], 2);
	assert_int_equal(f[91], 4);
	assert_int_equal(get(f + 109, 2), 1 | 4); /* legacy devices, no VGA, no 8042, an RTC */
	assert_int_equal(get(f + 112, 4) & (1 << 8 | 1 << 10 | 1 << 20), 1 << 8 | 1 << 10);
	assert_int_equal(f[116], 1);
	assert_int_equal(get(f + 120, 8), PORT_RESET);
	assert_int_equal(f[128], RESET_VALUE);
	assert_int_equal(get(f + 132, 8), 0); /* with both, Linux reads the FACS twice */
	assert_int_equal(get(f + 140, 8), get(f + 40, 4));
	assert_int_equal(get(f + 148 + 4, 8), PORT_PM1A_EVT);
	assert_int_equal(get(f + 172 + 4, 8), PORT_PM1A_CNT);
	assert_int_equal(get(f + 208 + 4, 8), PORT_PM_TMR);
	facs = vm->ram + get(f + 36, 4);
	assert_memory_equal(facs, "FACS", 4);
	assert_int_equal(get(f + 36, 4) % 64, 0);
	dsdt = vm->ram + get(f + 40, 4);
	assert_memory_equal(dsdt, "DSDT", 4);
	assert_int_equal(sum(dsdt, get(dsdt + 4, 4)), 0);
}

/* What the MADT says, counted. */
struct madt {
	u32 cpus, enabled, spare, ioapics, overrides, nmis;
	u32 ids[CFG_MAX_VCPUS];
	u8 type_of[CFG_MAX_VCPUS];
};

static void read_override(const u8 *e)
{
	u32 gsi = get(e + 4, 4), flags = get(e + 8, 2);

	assert_int_equal(e[2], 0);
	if (e[3] == 0) {
		assert_int_equal(gsi, 2);
		assert_int_equal(flags, 0);
	} else {
		assert_int_equal(e[3], IRQ_SCI);
		assert_int_equal(gsi, IRQ_SCI);
		assert_int_equal(flags, 0xd);
	}
}

static void read_cpu(struct madt *m, u8 type, u32 uid, u32 id, u32 flags)
{
	assert_int_equal(uid, m->cpus);
	m->type_of[m->cpus] = type;
	m->ids[m->cpus++] = id;
	m->enabled += flags == 1;
	m->spare += flags == 2;
}

static struct madt read_madt(const struct vm *vm)
{
	struct madt m = {0};
	const u8 *t = find(vm, "APIC", true), *end = t + get(t + 4, 4), *e;

	assert_int_equal(get(t + 36, 4), 0xfee00000);
	assert_int_equal(get(t + 40, 4), 1);
	for (e = t + 44; e < end; e += e[1]) {
		assert_in_range(e[1], 6, end - e);
		switch (e[0]) {
		case 0:
			read_cpu(&m, 0, e[2], e[3], get(e + 4, 4));
			break;
		case 1:
			assert_int_equal(get(e + 4, 4), 0xfec00000);
			assert_int_equal(get(e + 8, 4), 0);
			m.ioapics++;
			break;
		case 2:
			read_override(e);
			m.overrides++;
			break;
		case 9:
			read_cpu(&m, 9, get(e + 12, 4), get(e + 4, 4), get(e + 8, 4));
			break;
		case 4:
		case 10:
			m.nmis++;
			break;
		default:
			fail_msg("MADT entry of type %u", e[0]);
		}
	}
	assert_ptr_equal(e, end);
	return m;
}

static void the_madt_lists_every_vcpu_and_no_others(void **state)
{
	struct vm *vm = *state;
	struct madt m;

	build(vm, 4, 4, NULL);
	m = read_madt(vm);
	assert_int_equal(m.cpus, 4);
	assert_int_equal(m.enabled, 4);
	assert_int_equal(m.ioapics, 1);
	assert_int_equal(m.overrides, 2);
	assert_int_equal(m.nmis, 1);
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(m.ids[i], i);
}

static void spares_are_listed_only_when_asked_for(void **state)
{
	struct vm *vm = *state;
	struct madt m;

	build(vm, 2, 5, NULL);
	m = read_madt(vm);
	assert_int_equal(m.cpus, 5);
	assert_int_equal(m.enabled, 2);
	assert_int_equal(m.spare, 3);
}

static void ids_above_254_are_x2apic_entries(void **state)
{
	struct vm *vm = *state;
	struct madt m;

	build(vm, CFG_MAX_VCPUS, CFG_MAX_VCPUS, NULL);
	m = read_madt(vm);
	assert_int_equal(m.cpus, CFG_MAX_VCPUS);
	assert_int_equal(m.type_of[254], 0);
	assert_int_equal(m.type_of[255], 9);
	assert_int_equal(m.ids[255], 255);
	assert_int_equal(m.nmis, 2);
}

static void apic_ids_may_differ_from_numbers(void **state)
{
	static const u32 ids[] = {0, 2, 300, 254};
	struct vm *vm = *state;
	struct madt m;

	build(vm, 4, 4, ids);
	m = read_madt(vm);
	assert_memory_equal(m.ids, ids, sizeof(ids));
	assert_int_equal(m.type_of[2], 9);
	assert_int_equal(m.type_of[3], 0);
}

static void bad_requests_are_refused(void **state)
{
	struct vm *vm = *state;
	struct acpi_request req = {.nr_cpus = 0, .max_cpus = 1};

	assert_int_equal(acpi_tables_build(&vm->mem, &req, &vm->rsdp), E_INVAL);
	req = (struct acpi_request){.nr_cpus = 3, .max_cpus = 2};
	assert_int_equal(acpi_tables_build(&vm->mem, &req, &vm->rsdp), E_INVAL);
	/* So many CPUs that the space ends: nothing may be written past it. */
	req = (struct acpi_request){.nr_cpus = 20000, .max_cpus = 20000};
	assert_int_equal(acpi_tables_build(&vm->mem, &req, &vm->rsdp), E_RANGE);
	assert_int_equal(vm->ram[ACPI_TABLES_END], 0xa5);
	vm->mem.slots[0].size = ACPI_TABLES_GPA;
	req = (struct acpi_request){.nr_cpus = 1, .max_cpus = 1};
	assert_int_equal(acpi_tables_build(&vm->mem, &req, &vm->rsdp), E_FAULT);
}

/* Runs `iasl -d` on a copy of @t in @dir; true if what it wrote holds @text and no complaint. */
static bool disassembles(const char *dir, const u8 *t, const char *text)
{
	char cmd[512], name[8] = {0};
	FILE *f;
	int len;

	memcpy(name, t, 4);
	snprintf(cmd, sizeof(cmd), "%s/%s.aml", dir, name);
	f = fopen(cmd, "wb");
	assert_non_null(f);
	len = fwrite(t, 1, get(t + 4, 4), f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(len, get(t + 4, 4));
	snprintf(cmd, sizeof(cmd),
		 "cd %s && iasl -d %s.aml >%s.log 2>&1 && grep -q '%s' %s.dsl && "
		 "! grep -iE 'error|warning|invalid|incorrect|unknown' %s.log %s.dsl",
		 dir, name, name, text, name, name, name);
	return system(cmd) == 0;
}

static void iasl_disassembles_every_table(void **state)
{
	struct vm *vm = *state;
	char dir[] = "/tmp/vlag-acpi-XXXXXX", cmd[64];
	const u8 *fadt;

	if (system("command -v iasl >/dev/null"))
		skip();
	build(vm, CFG_MAX_VCPUS, CFG_MAX_VCPUS, NULL);
	fadt = find(vm, "FACP", true);
	assert_non_null(mkdtemp(dir));
	assert_true(disassembles(dir, fadt, "PM Timer Block"));
	assert_true(disassembles(dir, find(vm, "APIC", true), "I/O Apic"));
	assert_true(disassembles(dir, vm->ram + get(fadt + 40, 4), "PNP0501"));
	assert_true(disassembles(dir, vm->ram + get(fadt + 36, 4), "FACS"));
	assert_true(disassembles(dir, vm->ram + get(vm->ram + vm->rsdp + 24, 8), "XSDT"));
	assert_true(disassembles(dir, vm->ram + get(vm->ram + vm->rsdp + 16, 4), "RSDT"));
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(the_rsdp_is_where_a_bios_keeps_it),
	    T(both_roots_lead_to_the_same_tables),
	    T(the_fadt_names_the_ports_that_are_emulated),
	    T(the_madt_lists_every_vcpu_and_no_others),
	    T(spares_are_listed_only_when_asked_for),
	    T(ids_above_254_are_x2apic_entries),
	    T(apic_ids_may_differ_from_numbers),
	    T(bad_requests_are_refused),
	    T(iasl_disassembles_every_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
