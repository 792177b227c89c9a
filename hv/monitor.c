/* SPDX-License-Identifier: BSD-2-Clause */
/* The monitor's commands: one table. What the numbers mean is said where they are counted
 * (hv/counters.h, hv/vmx/reasons.h). */
#include "hv/monitor.h"

#include "hv/apic/lapic.h"
#include "hv/image.h"
#include "hv/knobs.h"
#include "hv/lib/bug.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"
#include "hv/page.h"
#include "hv/panic.h"
#include "hv/paging.h"
#include "hv/pcpu.h"
#include "hv/pv/edge.h"
#include "hv/stats.h"
#include "hv/tracepoint.h"
#include "hv/tsc.h"
#include "hv/vm/load.h"
#include "hv/vm/run.h"
#include "hv/vm/vcpu.h"
#include "hv/vmx/vmx.h"
#include "hv/x86/cpu.h"

#define MAX_WORDS 8

struct command {
	const char *name, *args, *help;
	const char *(*run)(struct out *out, char **word, u32 n); /* word[0] is the name */
};

static const struct command commands[];
static const u32 nr_commands;

static const char *cmd_help(struct out *out, char **word, u32 n)
{
	for (u32 i = 0; i < nr_commands; i++)
		out_print(out, "%-8s %-34s %s\n", commands[i].name, commands[i].args,
			  commands[i].help);
	return NULL;
}

static struct vm *find_vm(const char *name)
{
	for (u32 i = 0; i < nr_vms; i++) {
		if (!strcmp(vms[i]->name, name))
			return vms[i];
	}
	return NULL;
}

static const char *list_vms(struct out *out)
{
	out_print(out,
		  "id name             state      vcpus  memory  steal  total runnable preferred  "
		  "loaded\n");
	for (u32 i = 0; i < nr_vms; i++) {
		const struct vm *vm = vms[i];
		const struct pv_means *mean = &vm->view.mean;
		u32 total = pv_vm_steal_permille(vm);
		char preferred[64];

		report_text(&vm->report, preferred, sizeof(preferred));
		out_print(out,
			  "%2u %-16s %-10s %5u %4llu MiB %3u.%u%% %3u.%u%% %5u.%02u %-9s  %s\n",
			  vm->id, vm->name, vm_state_text(vm), vm->nr_vcpus, vm->cfg->memory / MiB,
			  mean->steal_permille / 10, mean->steal_permille % 10, total / 10,
			  total % 10, mean->runnable_centi / 100, mean->runnable_centi % 100,
			  preferred, vm->boot_state->what[0] ? vm->boot_state->what : "-");
	}
	return NULL;
}

static const char *cmd_vm(struct out *out, char **word, u32 n)
{
	struct vm *vm;

	if (n == 1)
		return list_vms(out);
	if (n != 3)
		return "usage: vm, or vm start|stop|reset NAME";
	vm = find_vm(word[2]);
	if (!vm)
		return "there is no VM of that name; vm lists them";
	if (!strcmp(word[1], "start")) {
		if (vm->state == VM_BAD)
			return "its configuration is bad: see the console's messages";
		if (vm->state != VM_STOPPED)
			return "it is not stopped";
		return vm_start(vm) ? "it cannot be started: see the console's messages" : NULL;
	}
	if (strcmp(word[1], "stop") && strcmp(word[1], "reset"))
		return "usage: vm, or vm start|stop|reset NAME";
	if (vm->state != VM_RUNNING)
		return "it is not running";
	vm_stop(vm, word[1][0] == 's' ? VM_END_STOPPED : VM_END_RESET, 0, NULL);
	return NULL;
}

static const char *vcpu_state_text(const struct vcpu *v)
{
	static const char *const text[] = {"halted", "waking", "queued", "running"};

	if (v->off)
		return "off";
	return v->sched.state == SCHED_BLOCKED && v->lapic.wait_for_sipi ? "wait-sipi"
									 : text[v->sched.state];
}

static const char *cmd_vcpu(struct out *out, char **word, u32 n)
{
	vcpus_charge();
	out_print(out, "vm/vcpu              pcpu state      apic    run ms   wait ms      exits   "
		       "switches\n");
	for (u32 i = 0; i < nr_vms; i++) {
		for (u32 k = 0; k < vms[i]->nr_vcpus; k++) {
			const struct vcpu *v = vms[i]->vcpus[k];

			out_print(out, "%14s/%-5u %4u %-10s %4u %9lu %9lu %10lu %10lu\n",
				  vms[i]->name, k, v->sched.cpu, vcpu_state_text(v), v->lapic.id,
				  v->sched.stats.run_ns / 1000000,
				  v->sched.stats.run_delay_ns / 1000000, v->nr_exits,
				  v->nr_switches);
		}
	}
	return NULL;
}

static const char *cmd_pcpu(struct out *out, char **word, u32 n)
{
	out_print(out, "TSC %lu Hz, host APIC %s\n", tsc_hz(), lapic_x2apic ? "x2APIC" : "xAPIC");
	out_print(out, "pcpu apic state        skew    idle ms   switches      kicks  current\n");
	for (u32 i = 0; i < nr_pcpus; i++) {
		const struct pcpu *p = pcpus[i];
		const struct vcpu *v = READ_ONCE(p->current);

		out_print(out, "%4u %4u VMX on   %8ld %10lu %10lu %10lu  %s%s", i, p->apic_id,
			  p->tsc_skew, tsc_to_ns(pcpu_idle_ticks(p)) / 1000000, p->nr_switches,
			  p->nr_kicks, v ? v->vm->name : "idle", v ? "/" : "\n");
		if (v)
			out_print(out, "%u\n", v->id);
	}
	return NULL;
}

static const char *cmd_stats(struct out *out, char **word, u32 n)
{
	bool reset = n > 1 && !strcmp(word[n - 1], "reset");
	const char *form = n - reset > 1 ? word[1] : reset && n == 2 ? "" : "table";

	if (n - reset > 2)
		form = "?";
	if (!strcmp(form, "table"))
		stats_table(out);
	else if (!strcmp(form, "json"))
		stats_json(out);
	else if (!strcmp(form, "prom"))
		stats_prom(out);
	else if (*form)
		return "usage: stats [table|json|prom] [reset]";
	if (reset)
		stats_reset();
	return NULL;
}

/* Numbers of vCPUs: what is beyond any is no number. */
static bool parse_u32(const char *s, u32 *value)
{
	u64 n;

	if (!fmt_parse_u64(s, &n) || n > 1000000)
		return false;
	*value = (u32)n;
	return true;
}

static const char *cmd_hist(struct out *out, char **word, u32 n)
{
	u32 vcpu = STATS_ALL;
	struct vm *vm;

	if (n < 2 || n > 3 || (n == 3 && !parse_u32(word[2], &vcpu)))
		return "usage: hist VM [VCPU]";
	vm = find_vm(word[1]);
	if (!vm)
		return "there is no VM of that name; vm lists them";
	if (n == 3 && vcpu >= vm->nr_vcpus)
		return "it has no vCPU of that number; vcpu lists them";
	stats_hist(out, vm, vcpu);
	return NULL;
}

struct dump_args {
	struct vcpu *v;
	struct out *out;
};

/* On the vCPU's pCPU: its VMCS may be active only there. */
static void dump_there(void *arg)
{
	struct dump_args *a = arg;
	struct pcpu *p = this_pcpu();

	vmcs_load(a->v->vmcs_pa);
	vcpu_dump(a->v, a->out);
	if (p->loaded)
		vmcs_load(p->loaded->vmcs_pa);
}

static const char *cmd_dump(struct out *out, char **word, u32 n)
{
	struct dump_args a = {.out = out};
	struct pcpu *where;
	struct vm *vm;
	u32 id;

	if (n != 4 || strcmp(word[1], "vcpu") || !parse_u32(word[3], &id))
		return "usage: dump vcpu VM NUMBER";
	vm = find_vm(word[2]);
	if (!vm)
		return "there is no VM of that name; vm lists them";
	if (id >= vm->nr_vcpus)
		return "it has no vCPU of that number; vcpu lists them";
	a.v = vm->vcpus[id];
	if (!a.v->host_state)
		return "it has never run";
	where = __atomic_load_n(&a.v->loaded_on, __ATOMIC_ACQUIRE);
	pcpu_call(where ? where : this_pcpu(), dump_there, &a);
	return NULL;
}

/* The words of a choice, each with its meaning: for `knob NAME`. */
static void print_words(struct out *out, const struct knob_info *k)
{
	for (u32 i = 0; k->words[i]; i++)
		out_print(out, "%-28s %-12s %s\n", "", k->words[i], k->word_texts[i]);
}

static const char *cmd_knob(struct out *out, char **word, u32 n)
{
	static char err[160];
	char value[32];
	bool found = false;

	if (n > 3)
		return "usage: knob [NAME [VALUE]]";
	if (n == 3)
		return knob_set(word[1], word[2], err, sizeof(err)) ? err : NULL;
	for (u32 t = 0; t < NR_KNOB_TABLES; t++) {
		for (u32 i = 0; i < knob_tables[t]->nr; i++) {
			const struct knob_info *k = &knob_tables[t]->knob[i];

			if (n == 2 && strcmp(k->name, word[1]))
				continue;
			knob_value(t, i, value, sizeof(value));
			out_print(out, "%-28s %-12s %s\n", k->name, value, k->text);
			if (n == 2)
				print_words(out, k);
			found = true;
		}
	}
	return found ? NULL : "there is no knob of that name; knob lists them";
}

static const char *cmd_memory(struct out *out, char **word, u32 n)
{
	u64 largest, left = page_pool_free(&pages, &largest);

	for (u32 i = 0; i < NR_PAGE_USES; i++)
		out_print(out, "%-12s %10llu KiB\n", page_use_text(i), pages.used[i] / KiB);
	out_print(out, "%-12s %10llu KiB\n", "image", (u64)(__image_end - __image_start) / KiB);
	out_print(out, "%-12s %10llu KiB, at most %llu KiB in one piece\n", "free", left / KiB,
		  largest / KiB);
	out_print(out, "pages that are writable and executable: %lu\n", paging_count_wx());
	return NULL;
}

static const char *cmd_version(struct out *out, char **word, u32 n)
{
	out_print(out, "vlag %s, image at 0x%lx\n", VLAG_VERSION, (u64)__image_start);
	return NULL;
}

static const char *cmd_reboot(struct out *out, char **word, u32 n)
{
	hv_info("rebooting");
	console_drain();
	machine_reboot();
}

static const char *cmd_poweroff(struct out *out, char **word, u32 n)
{
	hv_info("powering off");
	console_drain();
	machine_poweroff();
}

/* For those who want to see one, and for the tests: a failed assertion, or a fault. */
static const char *cmd_panic(struct out *out, char **word, u32 n)
{
	if (n == 2 && !strcmp(word[1], "bug"))
		BUG("asked for by the monitor");
	if (n == 2 && !strcmp(word[1], "fault"))
		write_cr3(read_cr3() | BIT(63)); /* a reserved bit: #GP */
	return "usage: panic bug|fault";
}

static const struct command commands[] = {
    {"help", "", "this list", cmd_help},
    {"vm", "[start|stop|reset NAME]", "list the VMs, or act on one", cmd_vm},
    {"vcpu", "", "list the vCPUs: where they are, what they used", cmd_vcpu},
    {"pcpu", "", "list the pCPUs", cmd_pcpu},
    {"stats", "[table|json|prom] [reset]",
     "counters that are not zero; all as JSON, for Prometheus; then from 0", cmd_stats},
    {"hist", "VM [VCPU]", "the histograms of a VM, or of one vCPU", cmd_hist},
    {"dump", "vcpu VM NUMBER", "registers and last exits of a vCPU", cmd_dump},
    {"trace", "[on [EVENT...]|off|dump [RECORDS]]", "what is traced; switch, or print it",
     trace_command},
    {"knob", "[NAME [VALUE]]", "list the knobs, show or set one", cmd_knob},
    {"memory", "", "what the hypervisor's memory is used for", cmd_memory},
    {"version", "", "version and load address", cmd_version},
    {"panic", "bug|fault", "stop with a panic, to see what one looks like", cmd_panic},
    {"reboot", "", "reset the machine", cmd_reboot},
    {"poweroff", "", "power the machine off", cmd_poweroff},
};
static const u32 nr_commands = ARRAY_SIZE(commands);

const char *monitor_run(const char *line, struct out *out)
{
	char text[256], *word[MAX_WORDS];
	u32 n = 0;
	bool in_word = false;

	str_copy(text, line, sizeof(text));
	for (char *s = text; *s; s++) {
		if (*s == ' ' || *s == '\t') {
			*s = 0;
			in_word = false;
		} else if (!in_word) {
			if (n == MAX_WORDS)
				return "too many words; help lists the commands";
			word[n++] = s;
			in_word = true;
		}
	}
	if (!n)
		return NULL;
	for (u32 i = 0; i < nr_commands; i++) {
		if (!strcmp(commands[i].name, word[0]))
			return commands[i].run(out, word, n);
	}
	return "unknown command; help lists the commands";
}
