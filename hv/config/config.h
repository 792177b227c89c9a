/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration file vlag.cfg (INI): what it may say, and its parser. Pure C: the boot loader,
 * the hypervisor and the host tests use it. The hypervisor sees only the parsed struct config (in
 * boot_info).
 *
 * Syntax: `[hypervisor]`, `[knobs]`, `[vm NAME]` sections, `key = value` lines, `#` or `;` comment
 * lines, a trailing ` #` comment is not stripped from values (command lines may hold it), CR LF
 * allowed, no continuation lines. Every error is one line `vlag.cfg:LINE: [section] key: what is
 * wrong; what would be right`. An error inside a [vm] marks only that VM bad; an error in
 * [hypervisor] or [knobs] leaves the default.
 */
#ifndef VLAG_CONFIG_H
#define VLAG_CONFIG_H

#include "hv/lib/types.h"

#define CFG_PATH_MAX 128
#define CFG_NAME_MAX 32
#define CFG_CMDLINE_MAX 1024
#define CFG_VALUE_MAX 64
#define CFG_MAX_VMS 32
#define CFG_MAX_MODULES 8
#define CFG_MAX_KNOBS 64
#define CFG_MAX_VCPUS 256 /* per VM */
#define CFG_MAX_PCPUS 256

enum cfg_port { CFG_PORT_NONE, CFG_PORT_COM1, CFG_PORT_COM2 };
enum cfg_apic { CFG_APIC_X2APIC, CFG_APIC_XAPIC }; /* mode of the guest's LAPIC at reset */

/* Paravirtual features, `pv = all | none | list`; the names are the words of the config file. */
#define CFG_PV_FEATURES(X)                                                                         \
	X(CLOCK, 0, "clock")   /* kvmclock, both MSR pairs, stable bit */                          \
	X(STEAL, 1, "steal")   /* steal time */                                                    \
	X(UNHALT, 2, "unhalt") /* PV unhalt, KVM_HC_KICK_CPU */                                    \
	X(YIELD, 3, "yield")   /* KVM_HC_SCHED_YIELD */                                            \
	X(IPI, 4, "ipi")       /* KVM_HC_SEND_IPI; off by default: hides IPIs from the recorder */ \
	X(TLBFLUSH, 5, "tlbflush") /* PV TLB flush; off by default, as above */                    \
	X(POLL, 6, "poll")	   /* poll control */

enum {
#define X(name, bit, word) CFG_PV_##name = 1u << (bit),
	CFG_PV_FEATURES(X)
#undef X
	/* What is offered where the config does not say. Bits are added as the hypervisor learns
	   the features. */
	CFG_PV_DEFAULT = CFG_PV_CLOCK | CFG_PV_STEAL | CFG_PV_UNHALT | CFG_PV_YIELD | CFG_PV_POLL,
};

struct cfg_knob {
	char name[CFG_NAME_MAX];
	char value[CFG_VALUE_MAX];
	u32 line;
};

struct cfg_vm {
	char name[CFG_NAME_MAX];   /* [A-Za-z0-9_-]+, unique */
	u32 line;		   /* of its section header */
	bool bad;		   /* an error was reported: do not start */
	bool stop_on_reset;	   /* `on_reset = restart | stop`, default restart */
	bool autostart;		   /* default true */
	char kernel[CFG_PATH_MAX]; /* bzImage or Multiboot ELF32; required; `\` or `/` separated,
				      from the volume's root */
	char initrd[CFG_PATH_MAX]; /* "" if none */
	char modules[CFG_MAX_MODULES][CFG_PATH_MAX]; /* `modules = a, b`: Multiboot modules */
	u32 nr_modules;
	char cmdline[CFG_CMDLINE_MAX]; /* rest of the line as it stands */
	u32 kernel_line, initrd_line, modules_line, vcpus_line, memory_line, affinity_line,
	    debug_exit_line; /* 0 where the key is absent */
	u32 vcpus;	     /* 1..CFG_MAX_VCPUS, default 1 */
	u32 max_vcpus;	     /* >= vcpus; default = vcpus */
	u64 memory; /* bytes; `128M`, `1G`; multiple of 2 MiB, at least 16 MiB; default 128 MiB */
	u32 weight; /* 2..262144, default 1024 (Linux's scale) */
	u64 affinity[CFG_MAX_PCPUS /
		     64]; /* bit per pCPU, `affinity = 0-3,6`; all ones by default */
	u32 apic;	  /* enum cfg_apic, default x2apic */
	u32 pv;		  /* CFG_PV_* */
	u32 debug_exit;	  /* port of the isa-debug-exit device, 0 if none; 1..0xffff */
};

struct config {
	/* [hypervisor] */
	u32 console;   /* enum cfg_port, default com1 */
	u32 control;   /* enum cfg_port, default none; the machine-readable monitor */
	u32 pcpus;     /* use at most so many; 0 = all */
	bool poweroff; /* `when_done = poweroff | monitor`: power off when the last VM has ended
			  (default poweroff) */
	struct cfg_knob knobs[CFG_MAX_KNOBS]; /* [knobs], in file order; names are checked by the
						 hypervisor's knob table */
	u32 nr_knobs;
	struct cfg_vm vms[CFG_MAX_VMS];
	u32 nr_vms;
	u32 nr_errors;
};

/* Called for each error or warning with a complete line without newline. */
typedef void (*cfg_report_fn)(void *ctx, const char *line);

/*
 * Parses @text of @len bytes (any bytes, no NUL needed; a UTF-8 BOM is skipped) into @cfg, which is
 * first set to the defaults.
 * @file names the file in messages. Reports each error through @report. Returns the number of
 * errors.
 */
u32 config_parse(struct config *cfg, const char *file, const char *text, size_t len,
		 cfg_report_fn report, void *ctx);

/* One key as the documentation shows it (docs/config.md is generated from these). */
struct cfg_key_help {
	const char *section, *name;
	const char *def;  /* default, "" if there is none */
	const char *help; /* a sentence or two */
	char values[160]; /* what may be written */
};

/* Describes key number @n, from 0, in the order of the documentation. Returns false after the last.
 */
bool config_key_help(u32 n, struct cfg_key_help *help);

#endif
