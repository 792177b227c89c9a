/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Printing the counters and histograms, as a table or as JSON. All walk the lists of hv/counters.h,
 * hv/vmx/reasons.h and ipi_track.h. Of a VM: the sums over its vCPUs.
 */
#include "hv/stats.h"

#include "hv/image.h"
#include "hv/lib/hist.h"
#include "hv/page.h"
#include "hv/pcpu.h"
#include "hv/pv/edge.h"
#include "hv/tsc.h"
#include "hv/vm/run.h"
#include "hv/vm/vcpu.h"
#include "hv/vmx/exit.h"
#include "hv/x86/cpu.h"

/* Every counter of a vCPU, wherever in struct vcpu its room keeps it. */
static const struct counter_info {
	const char *name, *text;
	u64 offset;
} vcpu_counters[] = {
#define X(id, name, text) {name, text, offsetof(struct vcpu, counters[id])},
    VCPU_COUNTERS(X)
#undef X
#define X(name, text) {#name, text, offsetof(struct vcpu, sched.stats.name)},
	SCHED_COUNTERS(X)
#undef X
	    {"fair_err_max_ns", "largest difference from an ideal fluid scheduler",
	     offsetof(struct vcpu, sched.fair.err_max_ns)},
#define X(name, text) {#name, text, offsetof(struct vcpu, lapic.count.name)},
    IPI_COUNTERS(X)
#undef X
#define X(name, text) {#name, text, offsetof(struct vcpu, spin.stats.name)},
	SPIN_COUNTERS(X)
#undef X
};

static const struct hist_info {
	const char *name, *unit, *text;
	u64 offset; /* in struct vcpu */
} vcpu_hists[] = {
#define X(member, name, unit, text) {name, unit, text, offsetof(struct vcpu, member)},
    VCPU_HISTS(X)
#undef X
};

static u64 counter(const struct vcpu *v, const struct counter_info *c)
{
	return *(const u64 *)((const u8 *)v + c->offset);
}

static u64 vm_counter(const struct vm *vm, const struct counter_info *c)
{
	u64 sum = 0;

	for (u32 k = 0; k < vm->nr_vcpus; k++)
		sum += counter(vm->vcpus[k], c);
	return sum;
}

/* Of vCPU number @vcpu, or of all with @vcpu = STATS_ALL. */
static struct hist vm_hist(const struct vm *vm, const struct hist_info *info, u32 vcpu)
{
	struct hist sum = {0};

	for (u32 k = 0; k < vm->nr_vcpus; k++) {
		if (vcpu == STATS_ALL || vcpu == k)
			hist_merge(&sum, (void *)((u8 *)vm->vcpus[k] + info->offset));
	}
	return sum;
}

static void table_line(struct out *out, const char *name, u64 value, const char *text)
{
	if (value)
		out_print(out, "  %-26s %12lu  %s\n", name, value, text);
}

static void vcpu_table(struct out *out, const struct vcpu *v)
{
	out_print(out, "%s/%u: %lu exits, ran %lu us, waited %lu us\n", v->vm->name, v->id,
		  v->nr_exits, v->sched.stats.run_ns / 1000, v->sched.stats.run_delay_ns / 1000);
	for (u32 i = 0; i < NR_EXIT_REASONS; i++)
		table_line(out, exit_reason_name(i), v->exits[i], "");
	for (const struct counter_info *c = vcpu_counters;
	     c < vcpu_counters + ARRAY_SIZE(vcpu_counters); c++)
		table_line(out, c->name, counter(v, c), c->text);
}

static void hist_line(struct out *out, const struct hist_info *info, const struct hist *h)
{
	out_print(out, "  %-26s %12lu  mean %lu, half <= %lu, 99 %% <= %lu, max %lu %s\n",
		  info->name, hist_count(h), hist_mean(h), hist_quantile(h, 500),
		  hist_quantile(h, 990), h->max, info->unit);
}

static void vm_table(struct out *out, const struct vm *vm)
{
	out_print(out, "%s: all its %u vCPUs together\n", vm->name, vm->nr_vcpus);
	for (const struct counter_info *c = vcpu_counters;
	     c < vcpu_counters + ARRAY_SIZE(vcpu_counters); c++)
		table_line(out, c->name, vm_counter(vm, c), c->text);
	for (u32 i = 0; i < ARRAY_SIZE(vcpu_hists); i++) {
		struct hist h = vm_hist(vm, &vcpu_hists[i], STATS_ALL);

		if (hist_count(&h))
			hist_line(out, &vcpu_hists[i], &h);
	}
}

void stats_table(struct out *out)
{
	vcpus_charge();
	for (u32 i = 0; i < nr_vms; i++) {
		for (u32 k = 0; k < vms[i]->nr_vcpus; k++)
			vcpu_table(out, vms[i]->vcpus[k]);
		vm_table(out, vms[i]);
	}
}

/* A bar of at most 40 characters, for the share of @n in @most. */
static void bar_line(struct out *out, u64 from, u64 to, u64 n, u64 most)
{
	static const char bar[] = "########################################";

	out_print(out, "  %12lu .. %-12lu %10lu %.*s\n", from, to, n,
		  (int)(n * (sizeof(bar) - 1) / most), bar);
}

void stats_hist(struct out *out, const struct vm *vm, u32 vcpu)
{
	for (u32 i = 0; i < ARRAY_SIZE(vcpu_hists); i++) {
		struct hist h = vm_hist(vm, &vcpu_hists[i], vcpu);
		u32 most = 1, first = HIST_BUCKETS, last = 0;

		for (u32 b = 0; b < HIST_BUCKETS; b++) {
			most = max(most, h.bucket[b]);
			if (h.bucket[b]) {
				first = min(first, b);
				last = b;
			}
		}
		out_print(out, "%s (%s), %s\n", vcpu_hists[i].name, vcpu_hists[i].unit,
			  vcpu_hists[i].text);
		hist_line(out, &vcpu_hists[i], &h);
		for (u32 b = first; b <= last; b++)
			bar_line(out, b ? hist_bucket_top(b - 1) + 1 : 0,
				 min(hist_bucket_top(b), h.max), h.bucket[b], most);
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
	json_u64(j, "pcpu", v->sched.cpu);
	json_u64(j, "run_ns", v->sched.stats.run_ns);
	json_u64(j, "wait_ns", v->sched.stats.run_delay_ns);
	json_u64(j, "switches", v->nr_switches);
	json_u64(j, "exits_total", v->nr_exits);
	json_open(j, "exits", '{');
	for (u32 i = 0; i < NR_EXIT_REASONS; i++) {
		if (v->exits[i])
			json_u64(j, exit_reason_name(i), v->exits[i]);
	}
	json_close(j, '}');
	json_open(j, "counters", '{');
	for (const struct counter_info *c = vcpu_counters;
	     c < vcpu_counters + ARRAY_SIZE(vcpu_counters); c++)
		json_u64(j, c->name, counter(v, c));
	json_close(j, '}');
	json_close(j, '}');
	out_write(j->out, "\n", 1);
}

/* Buckets that are not empty: [smallest value, how many]. */
static void json_hist(struct json *j, const struct hist_info *info, const struct hist *h)
{
	json_open(j, info->name, '{');
	json_text(j, "unit", info->unit);
	json_u64(j, "count", hist_count(h));
	json_u64(j, "sum", h->sum);
	json_u64(j, "max", h->max);
	json_u64(j, "p50", hist_quantile(h, 500));
	json_u64(j, "p99", hist_quantile(h, 990));
	json_open(j, "buckets", '[');
	for (u32 b = 0; b < HIST_BUCKETS; b++) {
		if (!h->bucket[b])
			continue;
		json_open(j, NULL, '[');
		out_print(j->out, "%lu,%u", b ? hist_bucket_top(b - 1) + 1 : 0, h->bucket[b]);
		json_close(j, ']');
	}
	json_close(j, ']');
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

static void json_vm(struct json *j, const struct vm *vm)
{
	json_open(j, NULL, '{');
	json_text(j, "name", vm->name);
	json_text(j, "state", vm_state_text(vm));
	json_steal(j, vm);
	json_open(j, "counters", '{');
	for (const struct counter_info *c = vcpu_counters;
	     c < vcpu_counters + ARRAY_SIZE(vcpu_counters); c++)
		json_u64(j, c->name, vm_counter(vm, c));
	json_close(j, '}');
	json_open(j, "histograms", '{');
	for (u32 i = 0; i < ARRAY_SIZE(vcpu_hists); i++) {
		struct hist h = vm_hist(vm, &vcpu_hists[i], STATS_ALL);

		json_hist(j, &vcpu_hists[i], &h);
	}
	json_close(j, '}');
	out_write(j->out, "\n", 1);
	json_open(j, "vcpus", '[');
	for (u32 k = 0; k < vm->nr_vcpus; k++)
		json_vcpu(j, vm->vcpus[k]);
	json_close(j, ']');
	json_close(j, '}');
}

static void json_pcpu(struct json *j, const struct pcpu *p)
{
	json_open(j, NULL, '{');
	json_u64(j, "id", p->id);
	json_u64(j, "apic_id", p->apic_id);
	json_s64(j, "tsc_skew", p->tsc_skew);
	json_u64(j, "idle_ns", tsc_to_ns(pcpu_idle_ticks(p)));
	json_u64(j, "switches", p->nr_switches);
	json_u64(j, "kicks", p->nr_kicks);
	json_u64(j, "timer_irqs", p->nr_timer_irqs);
	json_u64(j, "spurious_irqs", p->nr_spurious_irqs);
	json_close(j, '}');
}

void stats_json(struct out *out)
{
	struct json j = {.out = out};

	vcpus_charge();
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
	for (u32 i = 0; i < nr_vms; i++)
		json_vm(&j, vms[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	out_write(out, "\n", 1);
}
