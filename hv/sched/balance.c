/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which pCPU: on wake-up, when idle, and periodically. Affinity is never broken here. The searches
 * read other run queues without their locks (nr_running and load, single words); what they find is
 * a hint, and the functions that move something check again under both locks.
 */
#include "hv/lib/bits.h"
#include "hv/sched/internal.h"

/* Waiting vCPUs looked at by one pass: bounds the time under two locks. */
#define BALANCE_SCAN 64

bool sched_cpu_allowed(const struct sched_vcpu *v, u32 cpu)
{
	return !v->affinity || bit_test(v->affinity, cpu);
}

/* First pCPU from @start on, wrapping, that is in @a, @b and @v's affinity; words at a time. */
static u32 find_cpu(const struct sched_vcpu *v, const u64 *a, const u64 *b, u32 nr_cpus, u32 start)
{
	u32 nr_words = (nr_cpus + 63) / 64, first = start / 64;

	for (u32 i = 0; i <= nr_words; i++) {
		u32 w = (first + i) % nr_words;
		u64 found = READ_ONCE(a[w]) & READ_ONCE(b[w]);

		if (v->affinity)
			found &= v->affinity[w];
		if (i == 0)
			found &= UINT64_MAX << (start % 64);
		if (w == nr_words - 1 && nr_cpus % 64)
			found &= BIT(nr_cpus % 64) - 1;
		if (found)
			return w * 64 + (u32)ffs64(found);
	}
	return SCHED_NO_CPU;
}

u32 sched_select_cpu(const struct sched_knobs *knobs, const struct sched_vcpu *v, const u64 *idle,
		     const u64 *online, u32 nr_cpus)
{
	u32 last = READ_ONCE(v->cpu), cpu;
	bool stay = last < nr_cpus && bit_test(online, last) && sched_cpu_allowed(v, last);

	if (stay && (knobs->balance == SCHED_BALANCE_OFF || bit_test(idle, last)))
		return last;
	cpu = find_cpu(v, idle, online, nr_cpus, last < nr_cpus ? last : 0);
	if (cpu != SCHED_NO_CPU)
		return cpu;
	return stay ? last : find_cpu(v, online, online, nr_cpus, last < nr_cpus ? last : 0);
}

u32 sched_pull_source(struct run_queue *const *rqs, u32 nr_cpus, u32 me, u64 *tried)
{
	u32 best = SCHED_NO_CPU, most = 1;

	if (rqs[me]->knobs->balance == SCHED_BALANCE_OFF)
		return SCHED_NO_CPU;
	bit_set(tried, me);
	for (u32 i = 1; i < nr_cpus; i++) {
		u32 cpu = me + i < nr_cpus ? me + i : me + i - nr_cpus;
		u32 nr = READ_ONCE(rqs[cpu]->nr_running);

		if (nr > most && !bit_test(tried, cpu)) {
			most = nr;
			best = cpu;
		}
	}
	if (best != SCHED_NO_CPU)
		bit_set(tried, best);
	return best;
}

/* ---- candidates ---- */

struct scan {
	const struct run_queue *from, *to;
	bool (*better)(const struct scan *, const struct sched_vcpu *a, const struct sched_vcpu *b);
	struct sched_vcpu *best;
	u64 most; /* contribution above which a move does not help */
	u32 left;
};

static bool cache_hot(const struct run_queue *from, const struct sched_vcpu *v)
{
	return v->last_ran && from->clock - v->last_ran < from->knobs->balance_cost_ns;
}

/* Every waiting vCPU below @se, at most scan->left of them. */
static void scan_tree(struct scan *scan, struct sched_entity *se)
{
	struct sched_vcpu *v;

	if (!se || !scan->left)
		return;
	if (se->child) {
		scan_tree(scan, RB_ROOT(&se->child->tree));
	} else if (!se->delayed) {
		v = vcpu_of(se);
		scan->left--;
		if (v->contrib <= scan->most && sched_cpu_allowed(v, scan->to->cpu) &&
		    (!scan->best || scan->better(scan, v, scan->best)))
			scan->best = v;
	}
	scan_tree(scan, RB_LEFT(se, node));
	scan_tree(scan, RB_RIGHT(se, node));
}

static struct sched_vcpu *scan_waiting(struct scan *scan)
{
	const struct sched_timeline *root = &scan->from->root;

	scan->left = BALANCE_SCAN;
	scan_tree(scan, RB_ROOT(&root->tree));
	/* The running vCPU's group is in no tree, its other vCPUs are. */
	if (root->curr && root->curr->child)
		scan_tree(scan, RB_ROOT(&root->curr->child->tree));
	return scan->best;
}

/* Idle pull: cache-cold first, then the one that waits longest. */
static bool waits_longer(const struct scan *scan, const struct sched_vcpu *a,
			 const struct sched_vcpu *b)
{
	bool hot_a = cache_hot(scan->from, a), hot_b = cache_hot(scan->from, b);

	if (hot_a != hot_b)
		return hot_b;
	return vdiff(a->wait_start, b->wait_start) < 0;
}

/* Evening out: the largest that fits, then the one that has been here longest. */
static bool fits_better(const struct scan *scan, const struct sched_vcpu *a,
			const struct sched_vcpu *b)
{
	bool hot_a = cache_hot(scan->from, a), hot_b = cache_hot(scan->from, b);

	if (a->contrib != b->contrib)
		return a->contrib > b->contrib;
	if (hot_a != hot_b)
		return hot_b;
	return vdiff(a->last_moved, b->last_moved) < 0;
}

struct sched_vcpu *sched_pull(struct run_queue *from, struct run_queue *to)
{
	struct scan scan = {.from = from, .to = to, .better = waits_longer, .most = UINT64_MAX};
	struct sched_vcpu *v;

	assert_section(from);
	if (from->nr_running < 2 || to->nr_running)
		return NULL;
	v = scan_waiting(&scan);
	if (v)
		sched_migrate(from, to, v);
	return v;
}

/* ---- the periodic pass ---- */

u32 sched_balance_source(struct run_queue *const *rqs, u32 nr_cpus, u32 me, u64 now_ns)
{
	struct run_queue *rq = rqs[me];
	u64 most = READ_ONCE(rq->load);
	u32 best = SCHED_NO_CPU;

	/* A little irregular: a pass in step with the slices would always find the same vCPU
	   running, which is the one that it cannot move. */
	rq->balance_next =
	    now_ns + rq->knobs->balance_interval_ns +
	    ((now_ns * 0x9e3779b97f4a7c15ull >> 32) % (rq->knobs->balance_interval_ns / 4));
	if (rq->knobs->balance != SCHED_BALANCE_FULL)
		return SCHED_NO_CPU;
	for (u32 i = 1; i < nr_cpus; i++) {
		u32 cpu = me + i < nr_cpus ? me + i : me + i - nr_cpus;
		u64 load = READ_ONCE(rqs[cpu]->load);

		if (load > most && READ_ONCE(rqs[cpu]->nr_running) > 1) {
			most = load;
			best = cpu;
		}
	}
	if (best == SCHED_NO_CPU)
		rq->imbalance_since = 0;
	return best;
}

/*
 * Moving w from load F to load T helps if it brings them closer: w < F - T; best is half of that.
 * When nothing fits (three equal vCPUs on two pCPUs), somebody would stay the loser for ever: after
 * balance_rotate_ns the one that has not moved for longest goes, as long as the loads then just
 * change places: w <= F - T.
 */
struct sched_vcpu *sched_balance_pull(struct run_queue *from, struct run_queue *to)
{
	struct scan scan = {.from = from, .to = to, .better = fits_better};
	u64 diff, rotate = to->knobs->balance_rotate_ns;
	struct sched_vcpu *v;

	assert_section(from);
	assert_section(to);
	if (from->nr_running < 2 || from->load <= to->load)
		return NULL;
	diff = from->load - to->load;
	scan.most = diff / 2 + diff / 8;
	v = scan_waiting(&scan);
	if (!v && rotate) {
		if (!to->imbalance_since) {
			to->imbalance_since = max(to->clock, (u64)1);
		} else if (to->clock - to->imbalance_since >= rotate) {
			scan.most = diff;
			v = scan_waiting(&scan);
		}
	}
	if (v) {
		to->imbalance_since = from->imbalance_since = 0;
		sched_migrate(from, to, v);
	}
	return v;
}
