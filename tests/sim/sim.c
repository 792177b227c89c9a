/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * build/sim: runs a simulated machine (machine.h) and prints what came of it, as a table or as one
 * JSON object per line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hv/lib/errors.h"
#include "tests/sim/machine.h"

#define MAX_SPECS 4096

struct request {
	struct machine_options opt;
	struct sched_knobs knobs;
	struct vm_spec vms[MAX_SPECS];
	u32 nr_vms;
	u64 run_ns;
	const char *policies[SCHED_YIELD_POLICIES];
	u32 nr_policies;
	bool json, per_vm, knob_list;
};

static const char usage[] =
    "usage: sim [OPTION]... VMS...\n"
    "  VMS              COUNTxVCPUS:LOAD[:weight=N][:slice_us=N], for example 3x4:ipi\n"
    "                   loads: busy halt ipi lock token\n"
    "  --pcpus N        pCPUs (4)\n"
    "  --ms N           simulated time (2000)\n"
    "  --knob NAME=VAL  any scheduler knob, repeatable; --knobs lists them\n"
    "  --policy LIST    yield policies to compare, comma-separated, or all (the knob's)\n"
    "  --candidate exact|round|none   how a spinner finds its target (exact)\n"
    "  --ple-us N       spinning before a pause-loop exit (10)\n"
    "  --compute-us N   mean compute time between IPIs, locks, halts (50)\n"
    "  --hold-us N      lock and token hold time, IPI handler time (5)\n"
    "  --seed N         random seed (1)\n"
    "  --json           one JSON object per line instead of the table\n"
    "  --per-vm         a line per VM, too\n"
    "  --check          check every invariant after every event (slow)\n";

static void die(const char *what, const char *value, const char *right)
{
	fprintf(stderr, "sim: %s '%s': %s\n", what, value, right);
	exit(2);
}

static u64 number(const char *what, const char *text, u64 least, u64 most)
{
	char *rest;
	u64 n = strtoull(text, &rest, 10);

	if (!*text || *rest || *text == '-' || n < least || n > most) {
		char right[64];

		snprintf(right, sizeof(right), "must be a number from %llu to %llu",
			 (unsigned long long)least, (unsigned long long)most);
		die(what, text, right);
	}
	return n;
}

static void parse_vms(struct request *r, char *text)
{
	struct vm_spec spec = {.weight = SCHED_WEIGHT_DEFAULT};
	char *copy = strdup(text), *x = strchr(text, 'x'), *part, *save = NULL;
	u64 count;

	if (!x)
		die("VMs", copy, "must be COUNTxVCPUS:LOAD");
	*x = 0;
	count = number("number of VMs", text, 1, MAX_SPECS);
	part = strtok_r(x + 1, ":", &save);
	spec.nr_vcpus = (u32)number("vCPUs", part ? part : "", 1, 4096);
	part = strtok_r(NULL, ":", &save);
	for (spec.load = 0; part && spec.load < NR_LOADS; spec.load++) {
		if (!strcmp(part, load_names[spec.load]))
			break;
	}
	if (!part || spec.load == NR_LOADS)
		die("VMs", copy, "the load must be busy, halt, ipi, lock or token");
	while ((part = strtok_r(NULL, ":", &save))) {
		if (!strncmp(part, "weight=", 7))
			spec.weight =
			    (u32)number("weight", part + 7, SCHED_WEIGHT_MIN, SCHED_WEIGHT_MAX);
		else if (!strncmp(part, "slice_us=", 9))
			spec.slice_ns = 1000 * number("slice_us", part + 9, 100, 100000);
		else
			die("VM option", part, "must be weight=N or slice_us=N");
	}
	for (; count; count--) {
		if (r->nr_vms == MAX_SPECS)
			die("VMs", copy, "more than 4096 VMs");
		r->vms[r->nr_vms++] = spec;
	}
	free(copy);
}

static void parse_knob(struct request *r, char *text)
{
	char *eq = strchr(text, '='), err[160];

	if (!eq)
		die("knob", text, "must be NAME=VALUE; --knobs lists them");
	*eq = 0;
	if (!knob_find(&sched_knob_table, text))
		die("knob", text, "there is none of that name; --knobs lists them");
	if (knob_table_set(&sched_knob_table, &r->knobs, text, eq + 1, err, sizeof(err)))
		die("knob", text, err);
}

static void parse_policies(struct request *r, char *text)
{
	const struct knob_info *info = knob_find(&sched_knob_table, "yield_policy");
	char *save = NULL;

	if (!strcmp(text, "all")) {
		for (r->nr_policies = 0; info->words[r->nr_policies]; r->nr_policies++)
			r->policies[r->nr_policies] = info->words[r->nr_policies];
		return;
	}
	for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		struct sched_knobs scratch = r->knobs;

		if (sched_knob_set(&scratch, "yield_policy", word) ||
		    r->nr_policies == SCHED_YIELD_POLICIES)
			die("policy", word,
			    "must be all, or some of forfeit deboost credit transfer auto");
		r->policies[r->nr_policies++] = word;
	}
}

static void print_knobs(const struct sched_knobs *knobs)
{
	char value[64];

	for (u32 n = 0; n < sched_knob_table.nr; n++) {
		const struct knob_info *i = &sched_knob_table.knob[n];

		sched_knob_get(knobs, i->name, value, sizeof(value));
		printf("%-24s %-12s %s\n", i->name, value, i->text);
		for (u32 c = 0; i->words[c]; c++)
			printf("%-24s %-12s   %s\n", "", i->words[c], i->word_texts[c]);
	}
}

static void parse(struct request *r, int argc, char **argv)
{
	/* The base slice depends on --pcpus, and --knob comes on top of that. */
	for (int i = 1; i + 1 < argc; i++) {
		if (!strcmp(argv[i], "--pcpus"))
			r->opt.nr_pcpus = (u32)number("--pcpus", argv[i + 1], 1, 65536);
	}
	sched_knobs_init(&r->knobs, r->opt.nr_pcpus);
	for (int i = 1; i < argc; i++) {
		char *arg = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";

		if (arg[0] != '-') {
			parse_vms(r, arg);
			continue;
		}
		if (!strcmp(arg, "--json")) {
			r->json = true;
			continue;
		} else if (!strcmp(arg, "--per-vm")) {
			r->per_vm = true;
			continue;
		} else if (!strcmp(arg, "--check")) {
			r->opt.check = true;
			continue;
		} else if (!strcmp(arg, "--knobs")) {
			r->knob_list = true;
			continue;
		} else if (!strcmp(arg, "--help")) {
			fputs(usage, stdout);
			exit(0);
		}
		i++;
		if (!strcmp(arg, "--pcpus"))
			;
		else if (!strcmp(arg, "--ms"))
			r->run_ns = 1000000 * number(arg, value, 1, 100000000);
		else if (!strcmp(arg, "--knob"))
			parse_knob(r, value);
		else if (!strcmp(arg, "--policy"))
			parse_policies(r, value);
		else if (!strcmp(arg, "--ple-us"))
			r->opt.ple_ns = 1000 * number(arg, value, 1, 1000000);
		else if (!strcmp(arg, "--compute-us"))
			r->opt.compute_ns = 1000 * number(arg, value, 1, 1000000);
		else if (!strcmp(arg, "--hold-us"))
			r->opt.hold_ns = 1000 * number(arg, value, 1, 1000000);
		else if (!strcmp(arg, "--seed"))
			r->opt.seed = number(arg, value, 0, UINT64_MAX - 1);
		else if (!strcmp(arg, "--candidate") && !strcmp(value, "exact"))
			r->opt.candidate = CANDIDATE_EXACT;
		else if (!strcmp(arg, "--candidate") && !strcmp(value, "round"))
			r->opt.candidate = CANDIDATE_ROUND;
		else if (!strcmp(arg, "--candidate") && !strcmp(value, "none"))
			r->opt.candidate = CANDIDATE_NONE;
		else if (!strcmp(arg, "--candidate"))
			die(arg, value, "must be exact, round or none");
		else
			die("option", arg, "there is none of that name; see --help");
	}
}

/* ---- results ---- */

struct result {
	const char *policy;
	u64 ops, spin_ns, run_ns, share_least, share_most, err_max, vm_err_max;
	struct hist latency;
	struct sched_stats stats;
	u64 events;
	double seconds; /* of this computer */
};

static void collect(struct result *res, const struct machine *m)
{
	u64 all = 0;

	res->stats = machine_stats(m);
	res->events = m->nr_events;
	res->share_least = UINT64_MAX;
	for (u32 i = 0; i < m->nr_vms; i++)
		all += vm_run_ns(&m->vms[i]);
	for (u32 i = 0; i < m->nr_vms; i++) {
		const struct svm *vm = &m->vms[i];
		u64 share = all ? (u64)((u128)vm_run_ns(vm) * 1000000 / all) : 0;

		res->ops += vm_ops(vm);
		res->spin_ns += vm_spin_ns(vm);
		res->share_least = min(res->share_least, share);
		res->share_most = max(res->share_most, share);
		res->err_max = max(res->err_max, vm_fair_err_max(vm));
		res->vm_err_max = max(res->vm_err_max, vm->group.fair.err_max_ns);
		hist_merge(&res->latency, &vm->latency);
	}
	res->run_ns = all;
}

static double percent(u64 part, u64 all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void print_row(const struct request *r, const struct result *res, bool first)
{
	const struct sched_stats *s = &res->stats;
	double secs = (double)r->run_ns / 1e9;

	if (r->json) {
		printf("{\"policy\":\"%s\",\"ops_per_s\":%.0f,\"spin_percent\":%.2f,"
		       "\"latency_p50_ns\":%llu,\"latency_p99_ns\":%llu,\"latency_mean_ns\":%llu,"
		       "\"fair_err_max_ns\":%llu,\"vm_fair_err_max_ns\":%llu,"
		       "\"vm_share_least_percent\":%.3f,\"vm_share_most_percent\":%.3f",
		       res->policy, (double)res->ops / secs, percent(res->spin_ns, res->run_ns),
		       (unsigned long long)hist_quantile(&res->latency, 500),
		       (unsigned long long)hist_quantile(&res->latency, 990),
		       (unsigned long long)hist_mean(&res->latency),
		       (unsigned long long)res->err_max, (unsigned long long)res->vm_err_max,
		       (double)res->share_least / 10000, (double)res->share_most / 10000);
#define X(field, text) printf(",\"" #field "\":%llu", (unsigned long long)s->field);
		SCHED_COUNTERS(X)
#undef X
		printf(",\"events\":%llu,\"host_seconds\":%.2f}\n", (unsigned long long)res->events,
		       res->seconds);
		return;
	}
	if (first)
		printf("%-9s %9s %6s %9s %9s %9s %10s %10s %15s %9s %6s %7s %9s %7s\n", "policy",
		       "ops/s", "spin%", "mean us", "p50 us", "p99 us", "err max ms", "VM err ms",
		       "VM share %", "yields/s", "hit%", "limit%", "switch/s", "migr/s");
	printf("%-9s %9.0f %6.2f %9.1f %9.1f %9.1f %10.2f %10.2f %6.2f .. %5.2f %9.0f %6.1f %7.1f "
	       "%9.0f %7.0f\n",
	       res->policy, (double)res->ops / secs, percent(res->spin_ns, res->run_ns),
	       (double)hist_mean(&res->latency) / 1e3,
	       (double)hist_quantile(&res->latency, 500) / 1e3,
	       (double)hist_quantile(&res->latency, 990) / 1e3, (double)res->err_max / 1e6,
	       (double)res->vm_err_max / 1e6, (double)res->share_least / 10000,
	       (double)res->share_most / 10000, (double)s->yield_attempted / secs,
	       percent(s->yield_hit, s->yield_done), percent(s->yield_limited, s->yield_done),
	       (double)s->nr_switches / secs, (double)s->nr_migrations / secs);
}

static void print_vms(const struct request *r, const struct machine *m, u64 all)
{
	for (u32 i = 0; i < m->nr_vms; i++) {
		const struct svm *vm = &m->vms[i];

		if (r->json)
			printf("{\"vm\":%u,\"load\":\"%s\",\"weight\":%u,\"share_percent\":%.3f,"
			       "\"ops\":%llu,\"fair_err_max_ns\":%llu}\n",
			       i, load_names[vm->spec.load], vm->spec.weight,
			       percent(vm_run_ns(vm), all), (unsigned long long)vm_ops(vm),
			       (unsigned long long)vm->group.fair.err_max_ns);
		else
			printf("  VM %-4u %-6s weight %-6u share %6.2f %%  ops %-10llu "
			       "fair_err_max %.2f ms\n",
			       i, load_names[vm->spec.load], vm->spec.weight,
			       percent(vm_run_ns(vm), all), (unsigned long long)vm_ops(vm),
			       (double)vm->group.fair.err_max_ns / 1e6);
	}
}

static void run_one(const struct request *r, const char *policy, bool first)
{
	struct sched_knobs knobs = r->knobs;
	struct result res = {.policy = policy};
	clock_t start = clock();
	struct machine *m;

	sched_knob_set(&knobs, "yield_policy", policy);
	m = machine_new(&r->opt, &knobs, r->vms, r->nr_vms);
	machine_run(m, r->run_ns);
	res.seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	collect(&res, m);
	print_row(r, &res, first);
	if (r->per_vm)
		print_vms(r, m, res.run_ns);
	if (!r->json && r->opt.nr_pcpus > 64)
		printf("  %llu events in %.1f s\n", (unsigned long long)res.events, res.seconds);
	machine_free(m);
}

int main(int argc, char **argv)
{
	static struct request r;
	char policy[32];

	machine_options_init(&r.opt);
	r.run_ns = 2000000000;
	parse(&r, argc, argv);
	if (r.knob_list) {
		print_knobs(&r.knobs);
		return 0;
	}
	if (!r.nr_vms) {
		fputs(usage, stderr);
		return 2;
	}
	if (!r.nr_policies) {
		sched_knob_get(&r.knobs, "yield_policy", policy, sizeof(policy));
		r.policies[r.nr_policies++] = policy;
	}
	for (u32 i = 0; i < r.nr_policies; i++)
		run_one(&r, r.policies[i], i == 0);
	return 0;
}
