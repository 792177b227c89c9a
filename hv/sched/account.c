/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who deserves how much, and who got it: the share of every vCPU by the mode, the service that an
 * ideal fluid scheduler would have given, and the difference. No decision is taken here.
 */
#include "hv/sched/internal.h"

static u64 clamp_weight(u64 weight, u64 least, u64 most)
{
	return clamp(weight, least, most);
}

void sched_group_init(struct sched_group *group, u32 id, u32 weight, struct sched_group_rq *rqs,
		      u32 nr_rqs)
{
	*group = (struct sched_group){.id = id, .rqs = rqs, .nr_rqs = rqs ? nr_rqs : 0};
	sched_group_set_weight(group, weight);
	for (u32 i = 0; i < group->nr_rqs; i++) {
		entity_init(&rqs[i].se, BIT(NICE_0_SHIFT), 0, false);
		rqs[i].se.child = &rqs[i].timeline;
		timeline_init(&rqs[i].timeline, 0);
		rqs[i].group = group;
		rqs[i].load = 0;
	}
}

void sched_vcpu_init(struct sched_vcpu *v, struct sched_group *group, u32 id, u32 weight,
		     u64 slice_ns, u32 cpu, const u64 *affinity)
{
	u32 slice = slice_ns ? (u32)clamp_weight(slice_ns, SLICE_MIN_NS, SLICE_MAX_NS) : 0;

	*v = (struct sched_vcpu){.group = group, .id = id, .cpu = cpu, .affinity = affinity};
	v->weight = (u32)clamp_weight(weight, 64, 16384);
	v->state = SCHED_BLOCKED;
	entity_init(&v->se, (u64)v->weight << LOAD_SHIFT, slice, slice != 0);
}

void sched_group_set_weight(struct sched_group *group, u32 weight)
{
	WRITE_ONCE(group->weight, (u32)clamp_weight(weight, SCHED_WEIGHT_MIN, SCHED_WEIGHT_MAX));
}

/* 1.25^n by repeated multiplication in 2^-20; exact enough that 40 steps stay within one part in a
 * thousand. */
u32 sched_nice_to_weight(int nice)
{
	u64 weight = (u64)SCHED_WEIGHT_DEFAULT << 20;

	nice = clamp(nice, -20, 19);
	for (; nice < 0; nice++)
		weight = weight * 5 / 4;
	for (; nice > 0; nice--)
		weight = weight * 4 / 5;
	return (u32)((weight + (1 << 19)) >> 20);
}

/* vcpu: the VM's weight for each of its vCPUs. group, flat: the VM's weight divided among its
 * runnable vCPUs, wherever they are; that is what the two levels of `group` amount to. */
u64 sched_share(struct sched_vcpu *v)
{
	u64 weight = v->weight_seen = READ_ONCE(v->group->weight), load, share;

	if (v->mode == SCHED_MODE_VCPU)
		return weight * v->weight;
	load = v->load_seen = READ_ONCE(v->group->load);
	if (load < v->weight)
		load = v->weight;
	share = (weight << LOAD_SHIFT) * v->weight / load;
	return share < 2 ? 2 : share;
}

static inline void note_max(struct sched_fair *fair, s64 err)
{
	u64 max_ns = fair->err_max_ns;

	/* |err| > max, in one comparison */
	if (unlikely((u64)err + max_ns > 2 * max_ns))
		fair->err_max_ns = (u64)(err < 0 ? -err : err);
}

/*
 * The error falls while @v waits and rises while it runs, so it is extreme at the two ends of a
 * run; both are looked at when the run is over. The VM's sum lags behind by what its waiting vCPUs
 * have not yet settled.
 */
void account_settle(struct run_queue *rq, struct sched_vcpu *v)
{
	s64 err = v->fair.err_ns, change;
	u64 start = v->fluid_start;
	u128 ideal;

	account_advance(rq);
	if (rq->curr == v) {
		ideal = (u128)v->contrib * (v->fluid_run - start);
		note_max(&v->fair, err - (s64)(ideal >> 32));
		v->fluid_run = rq->fluid;
	}
	v->fluid_start = rq->fluid;
	ideal = (u128)v->contrib * (rq->fluid - start) + v->ideal_rest;
	v->ideal_rest = (u32)ideal;
	change = (s64)v->unsettled_ns - (s64)(ideal >> 32);
	v->unsettled_ns = 0;
	v->fair.err_ns = err + change;
	note_max(&v->fair, err + change);
	err = __atomic_add_fetch(&v->group->fair.err_ns, change, __ATOMIC_RELAXED);
	note_max(&v->group->fair, err);
}

u64 sched_run_delay_ns(const struct run_queue *rq, const struct sched_vcpu *v)
{
	s64 now = v->state == SCHED_QUEUED ? vdiff(rq->clock, v->wait_start) : 0;

	return v->stats.run_delay_ns + (u64)max(now, (s64)0);
}

u64 sched_run_ns(const struct run_queue *rq, const struct sched_vcpu *v)
{
	return v->stats.run_ns + (v->state == SCHED_RUNNING ? rq->clock - v->exec_start : 0);
}

s64 sched_lag_ns(struct run_queue *rq, struct sched_vcpu *v)
{
	assert_section(rq);
	if (!v->se.on_rq)
		return 0;
	return vtime_to_ns(vdiff(timeline_avg(v->se.timeline), v->se.vruntime), v->se.weight);
}

void sched_fair_reset(struct run_queue *rq, struct sched_vcpu *v)
{
	if (v->state == SCHED_QUEUED || v->state == SCHED_RUNNING)
		account_settle(rq, v);
	__atomic_sub_fetch(&v->group->fair.err_ns, v->fair.err_ns, __ATOMIC_RELAXED);
	v->group->fair.err_max_ns = 0;
	v->fair = (struct sched_fair){0};
}
