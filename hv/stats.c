/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Printing the counters and histograms: as a table, as JSON, for Prometheus. All walk the lists of
 * hv/counters.h, hv/vmx/reasons.h and ipi_track.h. Of a VM: the sums over its vCPUs.
 */
#include "hv/stats.h"

#include "hv/image.h"
#include "hv/lib/fmt.h"
#include "hv/lib/hist.h"
#include "hv/lib/string.h"
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

/*
 * What had been counted at the last `stats reset`. Counters have one writer, which is not who
 * resets them, and some are more than a number to look at (the guest's steal time is the run
 * delay): so they run on, and this is taken off when they are printed. Boot CPU only.
 */
struct stats_base {
	u64 run_ns, run_delay_ns, nr_switches, nr_exits;
	u64 exits[NR_EXIT_REASONS];
	u64 counter[ARRAY_SIZE(vcpu_counters)];
	struct hist hist[ARRAY_SIZE(vcpu_hists)];
};

static struct pcpu_base {
	u64 idle_ticks, nr_switches, nr_kicks, nr_timer_irqs, nr_spurious_irqs;
} pcpu_base[MAX_PCPUS];

#define SINCE(v, field, now) ((now) - ((v)->stats_base ? (v)->stats_base->field : 0))
#define PCPU_SINCE(p, field) ((p)->field - pcpu_base[(p)->id].field)

static u64 idle_ns(const struct pcpu *p)
{
	return tsc_to_ns(pcpu_idle_ticks(p) - pcpu_base[p->id].idle_ticks);
}

static u64 run_ns(const struct vcpu *v)
{
	return SINCE(v, run_ns, v->sched.stats.run_ns);
}

static u64 run_delay_ns(const struct vcpu *v)
{
	return SINCE(v, run_delay_ns, v->sched.stats.run_delay_ns);
}

static u64 exits(const struct vcpu *v, u32 reason)
{
	return SINCE(v, exits[reason], v->exits[reason]);
}

static u64 raw_counter(const struct vcpu *v, const struct counter_info *c)
{
	return *(const u64 *)((const u8 *)v + c->offset);
}

/* A maximum: it cannot be taken apart, and stays. */
static bool is_maximum(const struct counter_info *c)
{
	return c->offset == offsetof(struct vcpu, sched.fair.err_max_ns);
}

static u64 counter(const struct vcpu *v, const struct counter_info *c)
{
	u64 now = raw_counter(v, c);

	return is_maximum(c) ? now : SINCE(v, counter[c - vcpu_counters], now);
}

static u64 vm_counter(const struct vm *vm, const struct counter_info *c)
{
	u64 sum = 0;

	for (u32 k = 0; k < vm->nr_vcpus; k++) {
		u64 value = counter(vm->vcpus[k], c);

		sum = is_maximum(c) ? max(sum, value) : sum + value;
	}
	return sum;
}

static const struct hist *raw_hist(const struct vcpu *v, const struct hist_info *info)
{
	return (const void *)((const u8 *)v + info->offset);
}

/* Since the reset. Of the maximum only a bound is known then. */
static struct hist histogram(const struct vcpu *v, const struct hist_info *info)
{
	struct hist h = *raw_hist(v, info);

	if (v->stats_base)
		hist_subtract(&h, &v->stats_base->hist[info - vcpu_hists]);
	return h;
}

/* Of vCPU number @vcpu, or of all with @vcpu = STATS_ALL. */
static struct hist vm_hist(const struct vm *vm, const struct hist_info *info, u32 vcpu)
{
	struct hist sum = {0};

	for (u32 k = 0; k < vm->nr_vcpus; k++) {
		struct hist h;

		if (vcpu != STATS_ALL && vcpu != k)
			continue;
		h = histogram(vm->vcpus[k], info);
		hist_merge(&sum, &h);
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
		  SINCE(v, nr_exits, v->nr_exits), run_ns(v) / 1000, run_delay_ns(v) / 1000);
	for (u32 i = 0; i < NR_EXIT_REASONS; i++)
		table_line(out, exit_reason_name(i), exits(v, i), "");
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

/* All exits of @v, by reason into @seen, of one moment: it may run meanwhile, and printing takes
 * long. Looks again while its two ways of counting disagree; returns the total of the other one. */
static u64 exits_at_once(const struct vcpu *v, u64 *seen)
{
	u64 sum, total;

	for (u32 tries = 0; tries < 64; tries++) {
		sum = 0;
		total = SINCE(v, nr_exits, READ_ONCE(v->nr_exits));
		for (u32 i = 0; i < NR_EXIT_REASONS; i++)
			sum += seen[i] = SINCE(v, exits[i], READ_ONCE(v->exits[i]));
		if (sum == total)
			break;
	}
	return total;
}

static void json_vcpu(struct json *j, const struct vcpu *v)
{
	u64 seen[NR_EXIT_REASONS], total = exits_at_once(v, seen);

	json_open(j, NULL, '{');
	json_u64(j, "id", v->id);
	json_u64(j, "pcpu", v->sched.cpu);
	json_u64(j, "run_ns", run_ns(v));
	json_u64(j, "wait_ns", run_delay_ns(v));
	json_u64(j, "switches", SINCE(v, nr_switches, v->nr_switches));
	json_u64(j, "exits_total", total);
	json_open(j, "exits", '{');
	for (u32 i = 0; i < NR_EXIT_REASONS; i++) {
		if (seen[i])
			json_u64(j, exit_reason_name(i), seen[i]);
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
	json_u64(j, "idle_ns", idle_ns(p));
	json_u64(j, "switches", PCPU_SINCE(p, nr_switches));
	json_u64(j, "kicks", PCPU_SINCE(p, nr_kicks));
	json_u64(j, "timer_irqs", PCPU_SINCE(p, nr_timer_irqs));
	json_u64(j, "spurious_irqs", PCPU_SINCE(p, nr_spurious_irqs));
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

/* --- Prometheus' text format: each metric with its help and type, then its samples --- */

static void prom_head(struct out *out, const char *name, const char *type, const char *text)
{
	out_print(out, "# HELP vlag_%s %s\n# TYPE vlag_%s %s\n", name, text, name, type);
}

/* Runs what follows for each vCPU of all VMs. */
#define FOR_EACH_VCPU(v)                                                                           \
	for (u32 _i = 0; _i < nr_vms; _i++)                                                        \
		for (u32 _k = 0; _k < vms[_i]->nr_vcpus && ((v) = vms[_i]->vcpus[_k]); _k++)

static void prom_vcpu(struct out *out, const char *name, const struct vcpu *v, u64 value)
{
	out_wait(out, 256);
	out_print(out, "vlag_%s{vm=\"%s\",vcpu=\"%u\"} %lu\n", name, v->vm->name, v->id, value);
}

static void prom_counter(struct out *out, const struct counter_info *c)
{
	bool gauge = is_maximum(c);
	const struct vcpu *v;
	char name[64];

	fmt_print(name, sizeof(name), "%s%s", c->name, gauge ? "" : "_total");
	prom_head(out, name, gauge ? "gauge" : "counter", c->text);
	FOR_EACH_VCPU(v)
	prom_vcpu(out, name, v, counter(v, c));
}

static void prom_exits(struct out *out)
{
	const struct vcpu *v;

	prom_head(out, "exits_total", "counter", "VM exits by reason");
	FOR_EACH_VCPU(v)
	{
		for (u32 i = 0; i < NR_EXIT_REASONS; i++) {
			if (!exits(v, i))
				continue;
			out_wait(out, 256);
			out_print(out,
				  "vlag_exits_total{vm=\"%s\",vcpu=\"%u\",reason=\"%s\"} %lu\n",
				  v->vm->name, v->id, exit_reason_name(i), exits(v, i));
		}
	}
}

/* Of each VM. Buckets up to the last that is not empty. */
static void prom_hist(struct out *out, const struct hist_info *info)
{
	char name[64];

	fmt_print(name, sizeof(name), "%s_%s", info->name, info->unit);
	prom_head(out, name, "histogram", info->text);
	for (u32 i = 0; i < nr_vms; i++) {
		struct hist h = vm_hist(vms[i], info, STATS_ALL);
		u64 count = hist_count(&h), below = 0;

		for (u32 b = 0; b < HIST_BUCKETS - 1 && below < count; b++) {
			below += h.bucket[b];
			out_wait(out, 256);
			out_print(out, "vlag_%s_bucket{vm=\"%s\",le=\"%lu\"} %lu\n", name,
				  vms[i]->name, hist_bucket_top(b), below);
		}
		out_print(out,
			  "vlag_%s_bucket{vm=\"%s\",le=\"+Inf\"} %lu\n"
			  "vlag_%s_sum{vm=\"%s\"} %lu\nvlag_%s_count{vm=\"%s\"} %lu\n",
			  name, vms[i]->name, count, name, vms[i]->name, h.sum, name, vms[i]->name,
			  count);
	}
}

static void prom_pcpus(struct out *out)
{
	prom_head(out, "pcpu_idle_ns_total", "counter", "time with nothing to run");
	for (u32 i = 0; i < nr_pcpus; i++)
		out_print(out, "vlag_pcpu_idle_ns_total{pcpu=\"%u\"} %lu\n", i, idle_ns(pcpus[i]));
#define X(field, name, text)                                                                       \
	prom_head(out, "pcpu_" name "_total", "counter", text);                                    \
	for (u32 i = 0; i < nr_pcpus; i++)                                                         \
		out_print(out, "vlag_pcpu_" name "_total{pcpu=\"%u\"} %lu\n", i,                   \
			  PCPU_SINCE(pcpus[i], field));
	X(nr_switches, "switches", "from one vCPU to another")
	X(nr_kicks, "kicks", "reschedule IPIs received")
	X(nr_timer_irqs, "timer_irqs", "interrupts of the host's LAPIC timer")
	X(nr_spurious_irqs, "spurious_irqs", "interrupts that nobody expected")
#undef X
}

static void prom_vms(struct out *out)
{
	prom_head(out, "vm_running", "gauge", "1 if the VM runs");
	for (u32 i = 0; i < nr_vms; i++)
		out_print(out, "vlag_vm_running{vm=\"%s\"} %u\n", vms[i]->name,
			  vms[i]->state == VM_RUNNING);
	prom_head(out, "vm_steal_ratio", "gauge", "share of the last interval that was stolen");
	for (u32 i = 0; i < nr_vms; i++)
		out_print(out, "vlag_vm_steal_ratio{vm=\"%s\"} %u.%03u\n", vms[i]->name,
			  vms[i]->view.mean.steal_permille / 1000,
			  vms[i]->view.mean.steal_permille % 1000);
}

void stats_prom(struct out *out)
{
	vcpus_charge();
	prom_head(out, "build_info", "gauge", "the hypervisor's version");
	out_print(out, "vlag_build_info{version=\"%s\"} 1\n", VLAG_VERSION);
	prom_head(out, "uptime_ns", "gauge", "time since the hypervisor started");
	out_print(out, "vlag_uptime_ns %lu\n", tsc_to_ns(rdtsc() - tsc_boot()));
	prom_pcpus(out);
	prom_vms(out);
	prom_exits(out);
	for (u32 i = 0; i < ARRAY_SIZE(vcpu_counters); i++)
		prom_counter(out, &vcpu_counters[i]);
	for (u32 i = 0; i < ARRAY_SIZE(vcpu_hists); i++)
		prom_hist(out, &vcpu_hists[i]);
}

/* --- reset --- */

void stats_init(void)
{
	for (u32 i = 0; i < nr_vms; i++) {
		struct vm *vm = vms[i];
		u64 size = sizeof(struct stats_base) * vm->nr_vcpus;
		struct stats_base *base;

		if (!size)
			continue; /* it could not be set up, which was said */
		base = (void *)page_pool_take(&pages, size, PAGE_SIZE, 0, PAGES_VCPU);
		if (!base) {
			hv_warn("vm %s: no memory left for stats reset", vm->name);
			continue;
		}
		memset(base, 0, size);
		for (u32 k = 0; k < vm->nr_vcpus; k++)
			vm->vcpus[k]->stats_base = &base[k];
	}
}

static void reset_vcpu(const struct vcpu *v)
{
	struct stats_base *base = v->stats_base;

	if (!base)
		return;
	base->run_ns = v->sched.stats.run_ns;
	base->run_delay_ns = v->sched.stats.run_delay_ns;
	base->nr_switches = v->nr_switches;
	base->nr_exits = v->nr_exits;
	memcpy(base->exits, v->exits, sizeof(base->exits));
	for (u32 i = 0; i < ARRAY_SIZE(vcpu_counters); i++)
		base->counter[i] = raw_counter(v, &vcpu_counters[i]);
	for (u32 i = 0; i < ARRAY_SIZE(vcpu_hists); i++)
		base->hist[i] = *raw_hist(v, &vcpu_hists[i]);
}

void stats_reset(void)
{
	const struct vcpu *v;

	vcpus_charge();
	FOR_EACH_VCPU(v)
	reset_vcpu(v);
	for (u32 i = 0; i < nr_pcpus; i++) {
		const struct pcpu *p = pcpus[i];

		pcpu_base[i] = (struct pcpu_base){pcpu_idle_ticks(p), p->nr_switches, p->nr_kicks,
						  p->nr_timer_irqs, p->nr_spurious_irqs};
	}
}
