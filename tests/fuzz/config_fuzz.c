/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the config parser with any bytes. Whatever they are: nothing exceeds the limits of
 * config.h, every string ends, values are in range, and errors are counted as they are reported.
 */
// sources: hv/config/config.c hv/config/value.c hv/lib/fmt.c hv/lib/string.c
#include <string.h>

#include "hv/config/config.h"
#include "hv/lib/bug.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static u32 nr_reported;

static void count(void *ctx, const char *line)
{
	size_t n = strlen(line);

	BUG_ON(strncmp(line, "vlag.cfg:", 9) != 0);
	for (size_t i = 0; i < n; i++)
		BUG_ON(line[i] != '\t' && (line[i] < ' ' || line[i] > '~'));
	nr_reported++;
}

static bool ends(const char *s, size_t size)
{
	return memchr(s, 0, size) != NULL;
}

static void check_vm(const struct cfg_vm *vm)
{
	BUG_ON(!vm->name[0] || !ends(vm->name, CFG_NAME_MAX));
	BUG_ON(!ends(vm->kernel, CFG_PATH_MAX) || !ends(vm->initrd, CFG_PATH_MAX));
	BUG_ON(!ends(vm->cmdline, CFG_CMDLINE_MAX));
	BUG_ON(vm->nr_modules > CFG_MAX_MODULES);
	for (u32 i = 0; i < vm->nr_modules; i++)
		BUG_ON(!vm->modules[i][0] || !ends(vm->modules[i], CFG_PATH_MAX));
	BUG_ON(vm->vcpus < 1 || vm->vcpus > CFG_MAX_VCPUS);
	BUG_ON(vm->max_vcpus < vm->vcpus || vm->max_vcpus > CFG_MAX_VCPUS);
	BUG_ON(vm->memory < 16 * MiB || vm->memory % (2 * MiB));
	BUG_ON(vm->weight < 2 || vm->weight > 262144);
	BUG_ON(vm->apic > CFG_APIC_XAPIC || vm->debug_exit > 0xffff);
	BUG_ON(vm->pv >> 7);
	BUG_ON(!vm->bad && !vm->kernel[0]);
	BUG_ON(!vm->bad && vm->initrd[0] && vm->nr_modules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config cfg;
	bool any_bad = false;
	u32 errors;

	memset(&cfg, 0xee, sizeof(cfg));
	nr_reported = 0;
	errors = config_parse(&cfg, "vlag.cfg", (const char *)data, size, count, NULL);
	BUG_ON(errors != nr_reported || cfg.nr_errors != errors);
	BUG_ON(cfg.nr_vms > CFG_MAX_VMS || cfg.nr_knobs > CFG_MAX_KNOBS);
	BUG_ON(cfg.console > CFG_PORT_COM2 || cfg.control > CFG_PORT_COM2);
	BUG_ON(cfg.control != CFG_PORT_NONE && cfg.control == cfg.console);
	BUG_ON(cfg.pcpus > CFG_MAX_PCPUS);
	for (u32 i = 0; i < cfg.nr_knobs; i++)
		BUG_ON(!ends(cfg.knobs[i].name, CFG_NAME_MAX) || !cfg.knobs[i].value[0] ||
		       !ends(cfg.knobs[i].value, CFG_VALUE_MAX));
	for (u32 i = 0; i < cfg.nr_vms; i++) {
		check_vm(&cfg.vms[i]);
		any_bad |= cfg.vms[i].bad;
		for (u32 j = 0; j < i; j++)
			BUG_ON(strcmp(cfg.vms[i].name, cfg.vms[j].name) == 0);
	}
	BUG_ON(any_bad && !errors);
	return 0;
}
