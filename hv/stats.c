/* SPDX-License-Identifier: BSD-2-Clause */
/* Printing the counters, as a table or as JSON. Both walk the lists of hv/counters.h,
 * hv/vmx/reasons.h and ipi_track.h. */
#include "hv/stats.h"

#include "hv/image.h"
#include "hv/page.h"
#include "hv/pcpu.h"
#include "hv/pv/edge.h"
#include "hv/tsc.h"
#include "hv/vm/vcpu.h"
#include "hv/vmx/exit.h"
#include "hv/x86/cpu.h"

static const char *const counter_name[] = {
#define X(id, name, text) name,
    VCPU_COUNTERS(X)
#undef X
};

static const char *const counter_text[] = {
#define X(id, name, text) text,
    VCPU_COUNTERS(X)
#undef X
};

static const char *const ipi_name[] = {
#define X(name, text) #name,
    IPI_COUNTERS(X)
#undef X
};

static const char *const ipi_text[] = {
#define X(name, text) text,
    IPI_COUNTERS(X)
#undef X
};

/* The counters of struct ipi_counters stand one after another, in the order of the list. */
static u64 ipi_counter(const struct vcpu *v, u32 i)
{
	return ((const u64 *)&v->lapic.count)[i];
}

static void table_line(struct out *out, const char *name, u64 value, const char *text)
{
	if (value)
		out_print(out, "  %-26s %12lu  %s\n", name, value, text);
}

static void vcpu_table(struct out *out, const struct vcpu *v)
{
	out_print(out, "%s/%u: %lu exits, ran %lu us, waited %lu us\n", v->vm->name, v->id,
		  v->nr_exits, tsc_to_ns(v->run_ticks) / 1000, tsc_to_ns(v->wait_ticks) / 1000);
	for (u32 i = 0; i < NR_EXIT_REASONS; i++)
		table_line(out, exit_reason_name(i), v->exits[i], "");
	for (u32 i = 0; i < NR_VCPU_COUNTERS; i++)
		table_line(out, counter_name[i], v->counters[i], counter_text[i]);
	for (u32 i = 0; i < ARRAY_SIZE(ipi_name); i++)
		table_line(out, ipi_name[i], ipi_counter(v, i), ipi_text[i]);
}

void stats_table(struct out *out)
{
	for (u32 i = 0; i < nr_vms; i++) {
		for (u32 k = 0; k < vms[i]->nr_vcpus; k++)
			vcpu_table(out, vms[i]->vcpus[k]);
	}
}

/* --- JSON: a small writer that knows when a comma is due --- */

struct json {
	struct out *out;
	bool comma;
};

static void json_key(struct json *j, const char *key)
{
	out_print(j->out, "%s\"%s\":", j->comma ? "," : "", key);
	j->comma = false;
}

static void json_open(struct json *j, const char *key, char bracket)
{
	if (key)
		json_key(j, key);
	else if (j->comma)
		out_write(j->out, ",", 1);
	out_write(j->out, &bracket, 1);
	j->comma = false;
}

static void json_close(struct json *j, char bracket)
{
	out_write(j->out, &bracket, 1);
	j->comma = true;
}

static void json_u64(struct json *j, const char *key, u64 value)
{
	json_key(j, key);
	out_print(j->out, "%lu", value);
	j->comma = true;
}

static void json_s64(struct json *j, const char *key, s64 value)
{
	json_key(j, key);
	out_print(j->out, "%ld", value);
	j->comma = true;
}

/* @text holds nothing that JSON would have to escape: names of the config, or our own. */
static void json_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	out_print(j->out, "\"%s\"", text);
	j->comma = true;
}

static void json_vcpu(struct json *j, const struct vcpu *v)
{
	json_open(j, NULL, '{');
	json_u64(j, "id", v->id);
	json_u64(j, "pcpu", v->pcpu->id);
	json_u64(j, "run_ns", tsc_to_ns(v->run_ticks));
	json_u64(j, "wait_ns", tsc_to_ns(v->wait_ticks));
	json_u64(j, "switches", v->nr_switches);
	json_u64(j, "exits_total", v->nr_exits);
	json_open(j, "exits", '{');
	for (u32 i = 0; i < NR_EXIT_REASONS; i++) {
		if (v->exits[i])
			json_u64(j, exit_reason_name(i), v->exits[i]);
	}
	json_close(j, '}');
	json_open(j, "counters", '{');
	for (u32 i = 0; i < NR_VCPU_COUNTERS; i++)
		json_u64(j, counter_name[i], v->counters[i]);
	for (u32 i = 0; i < ARRAY_SIZE(ipi_name); i++)
		json_u64(j, ipi_name[i], ipi_counter(v, i));
	json_close(j, '}');
	json_close(j, '}');
	out_write(j->out, "\n", 1);
}

static void json_pcpu(struct json *j, const struct pcpu *p)
{
	json_open(j, NULL, '{');
	json_u64(j, "id", p->id);
	json_u64(j, "apic_id", p->apic_id);
	json_s64(j, "tsc_skew", p->tsc_skew);
	json_u64(j, "idle_ns", tsc_to_ns(p->idle_ticks));
	json_u64(j, "switches", p->nr_switches);
	json_u64(j, "kicks", p->nr_kicks);
	json_u64(j, "timer_irqs", p->nr_timer_irqs);
	json_u64(j, "spurious_irqs", p->nr_spurious_irqs);
	json_close(j, '}');
}

/* What the guest is told as steal since its start, the mean of the last interval, and the guest's
 * own report. */
static void json_steal(struct json *j, const struct vm *vm)
{
	struct pv_sums sums = pv_vm_sums(vm);
	char preferred[64];

	report_text(&vm->report, preferred, sizeof(preferred));
	json_u64(j, "steal_ns", sums.delay_ns - vm->view.start.delay_ns);
	json_u64(j, "steal_permille", vm->view.mean.steal_permille);
	json_u64(j, "runnable_centi", vm->view.mean.runnable_centi);
	json_text(j, "preferred", preferred);
	json_u64(j, "preferred_reports", vm->report.nr_good);
	json_u64(j, "preferred_bad", vm->report.nr_bad);
}

void stats_json(struct out *out)
{
	struct json j = {.out = out};

	json_open(&j, NULL, '{');
	json_text(&j, "version", VLAG_VERSION);
	json_u64(&j, "tsc_hz", tsc_hz());
	json_u64(&j, "tsc", rdtsc());
	json_u64(&j, "uptime_ns", tsc_to_ns(rdtsc() - tsc_boot()));
	json_open(&j, "memory", '{');
	for (u32 i = 0; i < NR_PAGE_USES; i++)
		json_u64(&j, page_use_text(i), pages.used[i]);
	json_close(&j, '}');
	json_open(&j, "pcpus", '[');
	for (u32 i = 0; i < nr_pcpus; i++)
		json_pcpu(&j, pcpus[i]);
	json_close(&j, ']');
	json_open(&j, "vms", '[');
	for (u32 i = 0; i < nr_vms; i++) {
		json_open(&j, NULL, '{');
		json_text(&j, "name", vms[i]->name);
		json_text(&j, "state", vm_state_text(vms[i]));
		json_steal(&j, vms[i]);
		json_open(&j, "vcpus", '[');
		for (u32 k = 0; k < vms[i]->nr_vcpus; k++)
			json_vcpu(&j, vms[i]->vcpus[k]);
		json_close(&j, ']');
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	out_write(out, "\n", 1);
}
