/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parser of vlag.cfg: lines, sections, and which keys there are. How a value is read lives in
 * value.c. Pure: no allocation, no globals; it believes nothing about its input.
 */
#include "hv/config/config.h"

#include "hv/config/value.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"

#define MAX_ERRORS 50 /* a file with more is not a config file */

enum section { SECT_NONE, SECT_SKIP, SECT_HYPERVISOR, SECT_KNOBS, SECT_VM };

#define HV(field) SECT_HYPERVISOR, offsetof(struct config, field), 0
#define VM(field) SECT_VM, offsetof(struct cfg_vm, field), 0
#define VM_LINE(field)                                                                             \
	SECT_VM, offsetof(struct cfg_vm, field), offsetof(struct cfg_vm, field##_line)

/* The one list of keys: the parser, its error messages and docs/config.md are made from it. */
static const struct cfg_key {
	const char *name;
	u32 section;
	u32 offset,
	    line_offset; /* in struct config or struct cfg_vm; line_offset 0: no such field */
	struct value_type type;
	const char *def; /* default, for the reader */
	const char *help;
} keys[] = {
    {"console",
     HV(console),
     {.kind = VALUE_WORD, .words = "none com1 com2"},
     "com1",
     "Serial port of the guests' consoles and the monitor."},
    {"control",
     HV(control),
     {.kind = VALUE_WORD, .words = "none com1 com2"},
     "none",
     "Serial port of the machine-readable monitor; not the console's."},
    {"pcpus",
     HV(pcpus),
     {.kind = VALUE_U32, .lo = 0, .hi = CFG_MAX_PCPUS},
     "0",
     "Use at most so many physical CPUs; 0 uses all."},
    {"when_done",
     HV(poweroff),
     {.kind = VALUE_BOOL_WORD, .words = "monitor poweroff"},
     "poweroff",
     "What to do when the last VM has ended: power the machine off, or stay in the monitor."},

    {"kernel",
     VM_LINE(kernel),
     {.kind = VALUE_TEXT, .hi = CFG_PATH_MAX},
     "",
     "File to boot: a Linux bzImage or a Multiboot 1 ELF32 image. Required. Paths are taken from "
     "the root of the volume that vlag was loaded from; `\\` and `/` both separate."},
    {"initrd",
     VM_LINE(initrd),
     {.kind = VALUE_TEXT, .hi = CFG_PATH_MAX},
     "",
     "Initial RAM disk of a Linux kernel. Not together with `modules`."},
    {"modules",
     VM_LINE(modules),
     {.kind = VALUE_PATHS,
      .count = offsetof(struct cfg_vm, nr_modules) - offsetof(struct cfg_vm, modules)},
     "",
     "Modules of a Multiboot kernel, separated by commas. Not together with `initrd`."},
    {"cmdline",
     VM(cmdline),
     {.kind = VALUE_TEXT, .hi = CFG_CMDLINE_MAX, .may_be_empty = true},
     "",
     "The kernel's command line: the rest of the line as it stands, `#` included."},
    {"vcpus",
     VM_LINE(vcpus),
     {.kind = VALUE_U32, .lo = 1, .hi = CFG_MAX_VCPUS},
     "1",
     "Virtual CPUs that are on when the VM starts."},
    {"max_vcpus",
     VM(max_vcpus),
     {.kind = VALUE_U32, .lo = 1, .hi = CFG_MAX_VCPUS},
     "as vcpus",
     "Virtual CPUs that the guest's tables list; not less than `vcpus`. There is nothing behind "
     "the "
     "spares; they dilute what a guest computes over its possible CPUs (docs/pv.md)."},
    {"memory",
     VM_LINE(memory),
     {.kind = VALUE_SIZE, .lo = 16 * MiB, .hi = 1024 * GiB, .step = 2 * MiB},
     "128M",
     "The VM's RAM."},
    {"weight",
     VM(weight),
     {.kind = VALUE_U32, .lo = 2, .hi = 262144},
     "1024",
     "Share of CPU time relative to other VMs, on Linux's scale: nice n is 1024 / 1.25^n, so 3125 "
     "for -5 and 336 for 5."},
    {"affinity",
     VM_LINE(affinity),
     {.kind = VALUE_CPUS},
     "all",
     "Physical CPUs that the VM's vCPUs may run on."},
    {"apic",
     VM(apic),
     {.kind = VALUE_WORD, .words = "x2apic xapic"},
     "x2apic",
     "Mode of the guest's local APIC at reset."},
    {"pv",
     VM(pv),
     {.kind = VALUE_PV},
     "clock, steal, unhalt, yield, poll",
     "Paravirtual (KVM) features that the guest is offered (docs/pv.md). `ipi` and `tlbflush` hide "
     "IPIs from the IPI recorder; `unhalt` makes Linux sleep on locks where it would spin."},
    {"debug_exit",
     VM_LINE(debug_exit),
     {.kind = VALUE_U32, .lo = 1, .hi = 0xffff},
     "none",
     "I/O port of a debug-exit device (QEMU's isa-debug-exit): a write ends the VM with a status."},
    {"on_reset",
     VM(stop_on_reset),
     {.kind = VALUE_BOOL_WORD, .words = "restart stop"},
     "restart",
     "What a reset by the guest does: start the VM again, or end it."},
    {"autostart",
     VM(autostart),
     {.kind = VALUE_BOOL},
     "yes",
     "Start the VM at boot; otherwise the monitor's `vm start` does."},
};

struct parser {
	struct config *cfg;
	const char *file;
	cfg_report_fn report;
	void *ctx;
	u32 line;
	enum section section;
	struct cfg_vm *vm; /* the current section's, for SECT_VM */
	u32 hypervisor_line, knobs_line;
	u32 seen[ARRAY_SIZE(keys)]; /* line of each key of [hypervisor] and of the current VM */
};

static const char *section_name(u32 section)
{
	return section == SECT_HYPERVISOR ? "hypervisor" : section == SECT_KNOBS ? "knobs" : "vm";
}

/* Reports an error at @line; @key may be empty. Whatever is being parsed counts as bad. */
static void __printf(4, 5) fail(struct parser *p, u32 line, struct text key, const char *fmt, ...)
{
	char out[512], where[CFG_NAME_MAX + 32] = "";
	bool in_section = p->section > SECT_SKIP;
	va_list args;
	int n;

	if (in_section)
		fmt_print(where, sizeof(where), " [%s%s%s]%s", section_name(p->section),
			  p->section == SECT_VM ? " " : "",
			  p->section == SECT_VM ? p->vm->name : "", key.n ? "" : ":");
	n = fmt_print(out, sizeof(out), "%s:%u:%s%s%.*s%s ", p->file, line, where, key.n ? " " : "",
		      (int)min(key.n, (size_t)CFG_NAME_MAX), key.s ? key.s : "", key.n ? ":" : "");
	n = min(n, (int)sizeof(out) - 1);
	va_start(args, fmt);
	fmt_vprint(out + n, sizeof(out) - (size_t)n, fmt, args);
	va_end(args);
	p->report(p->ctx, out);
	p->cfg->nr_errors++;
	if (p->section == SECT_VM)
		p->vm->bad = true;
}

static const struct text no_key;

/* "did you mean ...", or all that is possible: for keys of one section. */
static void suggest_key(u32 section, struct text word, char *buf, size_t size)
{
	const struct cfg_key *best = NULL;
	u32 best_distance = 3; /* more edits than two are another word */
	int n;

	for (const struct cfg_key *k = keys; k < keys + ARRAY_SIZE(keys); k++) {
		u32 d = k->section == section ? text_distance(word, k->name) : best_distance;

		if (d < best_distance) {
			best = k;
			best_distance = d;
		}
	}
	if (best) {
		fmt_print(buf, size, "did you mean \"%s\"?", best->name);
		return;
	}
	n = fmt_print(buf, size, "possible are");
	for (const struct cfg_key *k = keys; k < keys + ARRAY_SIZE(keys); k++) {
		if (k->section == section && (size_t)n < size)
			n += fmt_print(buf + n, size - (size_t)n, " %s", k->name);
	}
}

static void defaults_of_vm(struct cfg_vm *vm, u32 line)
{
	memset(vm, 0, sizeof(*vm));
	vm->line = line;
	vm->autostart = true;
	vm->vcpus = 1;
	vm->memory = 128 * MiB;
	vm->weight = 1024;
	memset(vm->affinity, 0xff, sizeof(vm->affinity));
	vm->apic = CFG_APIC_X2APIC;
	vm->pv = CFG_PV_DEFAULT;
}

static u32 *seen_of(struct parser *p, const char *name)
{
	for (u32 i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].name, name) == 0)
			return &p->seen[i];
	}
	return NULL;
}

static void end_of_hypervisor(struct parser *p)
{
	struct config *cfg = p->cfg;
	u32 line = *seen_of(p, "control");

	if (cfg->control == CFG_PORT_NONE || cfg->control != cfg->console)
		return;
	fail(p, line ? line : p->hypervisor_line, text_of("control"),
	     "the console has the same port; choose another one for one of them");
	cfg->control = CFG_PORT_NONE;
}

/* What can only be judged when the whole section is known. */
static void end_of_vm(struct parser *p)
{
	struct cfg_vm *vm = p->vm;
	u32 max_line = *seen_of(p, "max_vcpus");

	if (!vm->kernel_line)
		fail(p, vm->line, text_of("kernel"),
		     "is missing; name a bzImage or a Multiboot file");
	if (vm->initrd_line && vm->modules_line)
		fail(p, max(vm->initrd_line, vm->modules_line),
		     text_of(vm->initrd_line > vm->modules_line ? "initrd" : "modules"),
		     "does not go together with %s (line %u); a Linux kernel takes an initrd, a "
		     "Multiboot kernel takes modules",
		     vm->initrd_line > vm->modules_line ? "modules" : "initrd",
		     min(vm->initrd_line, vm->modules_line));
	if (max_line && vm->max_vcpus < vm->vcpus)
		fail(p, max_line, text_of("max_vcpus"), "%u is less than vcpus, which is %u",
		     vm->max_vcpus, vm->vcpus);
	if (vm->max_vcpus < vm->vcpus)
		vm->max_vcpus = vm->vcpus;
}

static void end_of_section(struct parser *p)
{
	if (p->section == SECT_HYPERVISOR)
		end_of_hypervisor(p);
	if (p->section == SECT_VM)
		end_of_vm(p);
	p->section = SECT_SKIP; /* until the header of the next proves good */
}

static void begin_vm(struct parser *p, struct text name)
{
	struct config *cfg = p->cfg;

	if (!name.n) {
		fail(p, p->line, no_key, "[vm] needs a name; write [vm NAME]");
		return;
	}
	if (!text_is_name(name, "_-") || name.n >= CFG_NAME_MAX) {
		fail(p, p->line, no_key,
		     "[vm %.*s] is no possible name; 1 to %d letters, digits, \"_\" and \"-\" are",
		     text_shown(name), CFG_NAME_MAX - 1);
		return;
	}
	for (u32 i = 0; i < cfg->nr_vms; i++) {
		if (text_equal(name, cfg->vms[i].name)) {
			fail(p, p->line, no_key,
			     "[vm %s] exists already (line %u); give each VM its own name",
			     cfg->vms[i].name, cfg->vms[i].line);
			return;
		}
	}
	if (cfg->nr_vms == CFG_MAX_VMS) {
		fail(p, p->line, no_key, "[vm %.*s] is one too many; at most %d VMs are possible",
		     text_shown(name), CFG_MAX_VMS);
		return;
	}
	p->section = SECT_VM;
	p->vm = &cfg->vms[cfg->nr_vms++];
	defaults_of_vm(p->vm, p->line);
	text_copy(p->vm->name, name, sizeof(p->vm->name));
	for (u32 i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys[i].section == SECT_VM)
			p->seen[i] = 0;
	}
}

static void begin_once(struct parser *p, enum section section, u32 *first_line)
{
	if (*first_line)
		fail(p, p->line, no_key, "[%s] exists already (line %u); put its keys there",
		     section_name(section), *first_line);
	else
		*first_line = p->line;
	p->section = section;
}

static void begin_section(struct parser *p, struct text line)
{
	struct text name = text_trim((struct text){line.s + 1, line.n - 1}), rest;

	if (!name.n || name.s[name.n - 1] != ']') {
		bool closed = name.n && memchr(name.s, ']', name.n);

		fail(p, p->line, no_key, "\"%.*s\" %s the closing \"]\"", text_shown(line),
		     closed ? "has something after" : "lacks");
		return;
	}
	name = text_trim((struct text){name.s, name.n - 1});
	if (text_equal(name, "hypervisor")) {
		begin_once(p, SECT_HYPERVISOR, &p->hypervisor_line);
	} else if (text_equal(name, "knobs")) {
		begin_once(p, SECT_KNOBS, &p->knobs_line);
	} else {
		struct text word = text_word(name, &rest);

		if (text_equal(word, "vm"))
			begin_vm(p, rest);
		else
			fail(p, p->line, no_key,
			     "[%.*s] is no known section; possible are [hypervisor], [knobs] and "
			     "[vm NAME]",
			     text_shown(name));
	}
}

static void parse_knob(struct parser *p, struct text key, struct text value)
{
	struct config *cfg = p->cfg;
	struct cfg_knob *knob;

	if (!text_is_name(key, "_") || key.n >= CFG_NAME_MAX) {
		fail(p, p->line, key,
		     "is no possible name of a knob; letters, digits and \"_\" are");
		return;
	}
	for (u32 i = 0; i < cfg->nr_knobs; i++) {
		if (text_equal(key, cfg->knobs[i].name)) {
			fail(p, p->line, key, "is set already (line %u)", cfg->knobs[i].line);
			return;
		}
	}
	if (!value.n || value.n >= CFG_VALUE_MAX) {
		fail(p, p->line, key, "a value of 1 to %d characters is needed", CFG_VALUE_MAX - 1);
		return;
	}
	if (cfg->nr_knobs == CFG_MAX_KNOBS) {
		fail(p, p->line, key, "is one too many; at most %d knobs are possible",
		     CFG_MAX_KNOBS);
		return;
	}
	knob = &cfg->knobs[cfg->nr_knobs++];
	text_copy(knob->name, key, sizeof(knob->name));
	text_copy(knob->value, value, sizeof(knob->value));
	knob->line = p->line;
}

static void parse_key(struct parser *p, struct text name, struct text value)
{
	char *base = p->section == SECT_VM ? (char *)p->vm : (char *)p->cfg;
	char why[320];

	for (u32 i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct cfg_key *k = &keys[i];

		if (k->section != p->section || !text_equal(name, k->name))
			continue;
		if (p->seen[i]) {
			fail(p, p->line, name, "is set already (line %u)", p->seen[i]);
			return;
		}
		p->seen[i] = p->line;
		if (k->line_offset)
			memcpy(base + k->line_offset, &p->line, sizeof(p->line));
		if (!value_parse(&k->type, value, base + k->offset, why, sizeof(why)))
			fail(p, p->line, name, "%s", why);
		return;
	}
	suggest_key(p->section, name, why, sizeof(why));
	fail(p, p->line, name, "is no known key; %s", why);
}

/* Returns false, having said so, if the line holds bytes that no console should be shown. */
static bool check_bytes(struct parser *p, struct text line)
{
	for (size_t i = 0; i < line.n; i++) {
		u8 c = (u8)line.s[i];

		if ((c >= ' ' && c < 0x7f) || c == '\t')
			continue;
		fail(p, p->line, no_key,
		     "column %zu holds the byte 0x%02x; only printable ASCII is possible outside "
		     "comments",
		     i + 1, c);
		return false;
	}
	return true;
}

static void parse_line(struct parser *p, struct text line)
{
	struct text key, value;
	const char *equals;

	line = text_trim(line);
	if (!line.n || line.s[0] == '#' || line.s[0] == ';')
		return;
	if (line.s[0] == '[')
		end_of_section(p);
	if (!check_bytes(p, line))
		return;
	if (line.s[0] == '[') {
		begin_section(p, line);
		return;
	}
	if (p->section == SECT_SKIP)
		return; /* its header was reported */
	if (p->section == SECT_NONE) {
		fail(
		    p, p->line, no_key,
		    "\"%.*s\" stands before the first section; begin with [hypervisor], [knobs] or "
		    "[vm NAME]",
		    text_shown(line));
		p->section = SECT_SKIP;
		return;
	}
	equals = memchr(line.s, '=', line.n);
	if (!equals) {
		fail(p, p->line, no_key, "\"%.*s\" has no \"=\"; write KEY = VALUE",
		     text_shown(line));
		return;
	}
	key = text_trim((struct text){line.s, (size_t)(equals - line.s)});
	value = text_trim((struct text){equals + 1, (size_t)(line.s + line.n - equals - 1)});
	if (!key.n)
		fail(p, p->line, no_key, "there is no key before the \"=\"; write KEY = VALUE");
	else if (p->section == SECT_KNOBS)
		parse_knob(p, key, value);
	else
		parse_key(p, key, value);
}

static bool is_utf16(const char *text, size_t len)
{
	return len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
}

u32 config_parse(struct config *cfg, const char *file, const char *text, size_t len,
		 cfg_report_fn report, void *ctx)
{
	struct parser p = {.cfg = cfg, .file = file, .report = report, .ctx = ctx, .line = 1};
	size_t at = 0;

	memset(cfg, 0, sizeof(*cfg));
	cfg->console = CFG_PORT_COM1;
	cfg->poweroff = true;

	if (is_utf16(text, len)) {
		fail(&p, 1, no_key, "the file is UTF-16; save it as plain ASCII or UTF-8");
		return cfg->nr_errors;
	}
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		at = 3;
	for (; at < len; p.line++) {
		const char *start = text + at;
		const char *newline = memchr(start, '\n', len - at);
		size_t n = newline ? (size_t)(newline - start) : len - at;

		at += n + 1;
		if (n && start[n - 1] == '\r')
			n--;
		parse_line(&p, (struct text){start, n});
		if (cfg->nr_errors >= MAX_ERRORS) {
			fail(&p, p.line, no_key,
			     "too many errors; the rest of the file is not read");
			break;
		}
	}
	end_of_section(&p);
	return cfg->nr_errors;
}

bool config_key_help(u32 n, struct cfg_key_help *help)
{
	const struct cfg_key *k = &keys[n];

	if (n >= ARRAY_SIZE(keys))
		return false;
	*help = (struct cfg_key_help){
	    .section = k->section == SECT_VM ? "vm NAME" : section_name(k->section),
	    .name = k->name,
	    .def = k->def,
	    .help = k->help,
	};
	value_describe(&k->type, help->values, sizeof(help->values));
	return true;
}
