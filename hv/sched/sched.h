/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scheduler's interface: EEVDF run queues of vCPUs, one per pCPU (docs/scheduler.md). Pure C:
 * no x86, no globals, no clock, no allocation; the hypervisor's edge and the simulator (tests/sim)
 * bring the memory, the locks and the time.
 *
 * Locks. The edge has one lock per run queue. "rq: locked" below means: its lock is held and
 * sched_begin() was called in this lock section. Two run queues are locked in the order of their
 * pCPU numbers. What says "any" may be called without a lock.
 *
 * The life of a vCPU, and who calls what:
 *
 *	           sched_wake_claim          sched_wake             sched_pick_next
 *	 BLOCKED ------------------> WAKING ------------> QUEUED <----------------> RUNNING
 *	    ^                                               |                          |
 *	    |                 sched_remove                  |       sched_block        |
 *	    +-----------------------------------------------+--------------------------+
 *
 *	pCPU loop:  lock(rq); sched_begin(rq, now);
 *	            if (halted && !pending_interrupt) sched_block(rq);
 *	            next = sched_pick_next(rq);  end = sched_slice_end(rq);
 *	            sched_end(rq); unlock(rq);
 *	            enter `next` with the timer at min(end, its own timers), or idle if NULL
 *	            (before idling: sched_pull_source + sched_pull).
 *	waker:      make the interrupt pending (atomically), then
 *	            lock(rq of v->cpu); sched_begin; if (sched_wake_claim(rq, v, cpu)) ...; unlock;
 *	            lock(rq of cpu); sched_begin; resched = sched_wake(rq, v); unlock;
 *	            if (resched) kick(cpu).
 *	spinner:    lock(rqs); sched_begin; what = sched_yield_to(...); if (what & SCHED_DID_LOCAL)
 *	            sched_pick_next(rq); unlock; if (what & SCHED_KICK_REMOTE) kick(target's pCPU).
 */
#ifndef VLAG_SCHED_H
#define VLAG_SCHED_H

#include "hv/lib/hist.h"
#include "hv/lib/types.h"
#include "hv/sched/knobs.h"

#include <bsd/sys/tree.h>

#define SCHED_NO_CPU UINT32_MAX
#define SCHED_NEVER UINT64_MAX	  /* "no end": sched_slice_end() of a vCPU that runs alone */
#define SCHED_WEIGHT_DEFAULT 1024 /* Linux's scale: nice 0 */
#define SCHED_WEIGHT_MIN 2
#define SCHED_WEIGHT_MAX 262144

struct sched_timeline;
struct run_queue;

/*
 * What competes for a pCPU: a vCPU, or a VM's group on one pCPU. Owner of every field: the lock of
 * the run queue on which it lives. Virtual times are nanoseconds at weight 1024; they wrap, and are
 * compared by their signed difference.
 */
struct sched_entity {
	RB_ENTRY(sched_entity) node; /* in timeline->tree, by deadline, unless it is curr there */
	u64 vruntime;
	u64 deadline; /* relative to vruntime while rel_deadline and off the queue */
	/* of the subtree below this node */
	u64 min_vruntime;
	union {
		struct {
			u32 min_slice, max_slice;
		};
		u64 slices; /* both at once: usually all requests are equal */
	};

	u32 slice;	   /* request, ns */
	bool on_rq;	   /* on a timeline: in its tree or its curr */
	bool delayed;	   /* blocked, and still on the timeline to pay its lag (DELAY_DEQUEUE) */
	bool rel_deadline; /* deadline is relative: placement will keep it */
	bool custom_slice; /* slice does not follow base_slice_ns */
	u64 weight;	   /* scaled by 1024: nice 0 is 2^20 */
	u64 inv_weight;	   /* 2^52 / weight */
	u64 vprot;	   /* slice protection: runs undisturbed until vruntime reaches this */
	s64 vlag;	   /* V - vruntime when it left the queue */
	struct sched_timeline *timeline; /* the one on which it competes; NULL before */
	struct sched_entity *parent;	 /* group entity above, NULL at the root */
	struct sched_timeline *child;	 /* of a group entity: its vCPUs. NULL: this is a vCPU */
};

RB_HEAD(sched_tree, sched_entity);

/* Entities that compete with each other: the root of a run queue, or the vCPUs of a VM on it. */
struct sched_timeline {
	struct sched_tree tree;
	struct sched_entity *curr; /* the one that runs; on_rq, but not in the tree */
	struct sched_entity *next; /* buddy: nominated by a directed yield */
	s64 advance;		   /* how far *next may be behind V and be picked (virtual time) */
	u64 zero_vruntime;	   /* v0: keys are relative to it; kept near V */
	s64 sum_w_vruntime;	   /* sum of w_i (v_i - v0) over the tree */
	u64 sum_weight;		   /* sum of w_i over the tree */
	u32 nr_queued;		   /* tree and curr, delayed ones too */
	bool early; /* curr was picked before its time: protected although not eligible */
};

/* X(field, text): counters of a vCPU, each also summed up per run queue. */
#define SCHED_COUNTERS(X)                                                                          \
	X(run_ns, "time run")                                                                      \
	X(run_delay_ns, "time runnable and not running: steal")                                    \
	X(nr_switches, "times put on the pCPU")                                                    \
	X(nr_voluntary, "times it left because it blocked")                                        \
	X(nr_preempted, "times it left while runnable")                                            \
	X(nr_wakeups, "wake-ups")                                                                  \
	X(nr_wakeup_preempt, "wake-ups that preempted the running vCPU")                           \
	X(nr_delayed, "blocks that stayed queued to pay lag (DELAY_DEQUEUE)")                      \
	X(nr_migrations, "moves to another pCPU")                                                  \
	X(yield_attempted, "directed yields from here")                                            \
	X(yield_done, "directed yields for which the policy was applied")                          \
	X(yield_hit, "directed yields to it after which it was the next to run")                   \
	X(yield_limited, "directed yields whose forced reschedule or loan was rate-limited")       \
	X(yield_given_ns, "lag given away by directed yields, in service time")                    \
	X(yield_received_ns, "lag credited by directed yields, in service time")

struct sched_stats {
#define X(field, text) u64 field;
	SCHED_COUNTERS(X)
#undef X
};

/* Service received against the service of an ideal fluid scheduler, in ns. */
struct sched_fair {
	s64 err_ns;	/* received - ideal, since the last reset */
	u64 err_max_ns; /* the largest |err_ns| seen: the counter fair_err_max_ns */
};

/* A VM on one pCPU, for sched_mode=group. The edge provides one per pCPU and VM. */
struct sched_group_rq {
	struct sched_entity se;
	struct sched_timeline timeline;
	u64 load; /* sum of the weights of its runnable vCPUs here */
	struct sched_group *group;
	u32 weight_seen; /* the VM's weight and load of which that of se was made */
	u64 load_seen;
};

/* A VM. */
struct sched_group {
	u32 id;
	u32 weight;		/* Linux's scale; any pCPU reads, sched_group_set_weight writes */
	u64 load;		/* sum of the weights of its runnable vCPUs; atomic */
	struct sched_fair fair; /* sum over its vCPUs; err_ns atomic, err_max_ns racy */
	struct sched_group_rq *rqs; /* [nr_rqs], by pCPU number; NULL: `group` acts as `flat` */
	u32 nr_rqs;
};

enum sched_state { SCHED_BLOCKED, SCHED_WAKING, SCHED_QUEUED, SCHED_RUNNING };

/* A vCPU as the scheduler sees it; the edge embeds one in its struct vcpu. Lock: that of the run
 * queue of @cpu, unless a field says otherwise. */
struct sched_vcpu {
	struct sched_entity se;
	struct run_queue *rq;	   /* of @cpu once it was queued there */
	struct sched_group *group; /* constant */
	u32 id;			   /* constant: number within the VM */
	u32 weight;		   /* among the vCPUs of its VM: 64..16384, 1024 by default */
	u32 cpu;   /* where it is or was last; anyone may read (READ_ONCE), changes only with the
		      lock of the old run queue held */
	u32 state; /* enum sched_state; anyone may read (READ_ONCE) */
	u32 mode;  /* sched_mode under which it was queued */
	const u64 *affinity; /* bit per pCPU; the edge owns it; NULL: anywhere */

	u64 contrib;	  /* share of rq->load that is its own, scaled weight */
	u64 fluid_start;  /* rq->fluid at the last settlement */
	u64 fluid_run;	  /* rq->fluid when it was put on the pCPU, while RUNNING */
	u64 run_start;	  /* since when it runs */
	u64 exec_start;	  /* up to when it was charged */
	u64 wait_start;	  /* since when it waits, while QUEUED */
	u64 unsettled_ns; /* run since the last settlement */
	u64 ideal_rest;	  /* what rounding left of the ideal service, 2^-32 ns */
	u64 last_ran;	  /* when it last left the pCPU */
	u64 last_moved;	  /* when it last migrated */
	u32 weight_seen;  /* the VM's weight and load of which contrib was made */
	u64 load_seen;
	struct sched_fair fair;
	struct sched_stats stats;
	struct hist wait;  /* ns from runnable to running */
	struct hist slice; /* ns from running to not running */
};

/* A pCPU. Owner of every field: its lock. nr_running and load may be read by anyone (READ_ONCE). */
struct run_queue {
	struct sched_timeline root;
	struct sched_vcpu *curr; /* RUNNING here; NULL: idle, or between block and pick */
	const struct sched_knobs *knobs;
	u64 clock;     /* ns; set once per lock section by sched_begin() */
	u64 slice_end; /* see sched_slice_end() */
	u32 cpu;
	u32 nr_running; /* QUEUED and RUNNING vCPUs, not the delayed ones */
	u64 load;	/* sum of the contributions of the QUEUED and RUNNING vCPUs */
	u64 load_inv;	/* 2^52 / load */
	u64 fluid;	/* service of the ideal scheduler per unit of scaled weight, 2^-32 ns */
	u64 fluid_rest; /* what rounding left, 2^-52 ns */
	u64 fluid_clock;
	bool in_section; /* debug: between sched_begin and sched_end */

	/* directed yields */
	u64 yield_last_resched; /* when one was last forced */
	u64 yield_last;		/* when the last directed yield came */
	u64 yield_interval;	/* moving average of the time between them */
	const struct sched_vcpu *yield_last_from, *yield_last_to;
	u64 yield_last_pair;
	struct sched_vcpu *yield_expect; /* whom the next pick should find, for yield_hit */
	u32 yield_expected;		 /* by so many yields */

	/* balancing */
	u64 balance_next;    /* when the next pass is due */
	u64 imbalance_since; /* since when no move could mend it; 0: it is even */

	struct sched_stats stats;
	bool idle; /* the last pick found nobody */
	u64 idle_since;
	u64 idle_ns;
};

/* ---- set-up (single-threaded, before anything runs; no locks) ---- */

/* @knobs stays the caller's, is read at every decision and may be changed at any time. */
void sched_rq_init(struct run_queue *rq, u32 cpu, const struct sched_knobs *knobs, u64 now_ns);

/* @weight: SCHED_WEIGHT_MIN..MAX (clamped). @rqs: @nr_rqs of them, or NULL when `group` is not
 * needed; they stay the group's. */
void sched_group_init(struct sched_group *group, u32 id, u32 weight, struct sched_group_rq *rqs,
		      u32 nr_rqs);

/* A new vCPU of @group, BLOCKED, last on @cpu. @weight: 64..16384 among the VM's vCPUs (clamped).
 * @slice_ns 0: follow base_slice_ns, else clamped to 0.1..100 ms. @affinity: words of 64 pCPUs that
 * stay the caller's, or NULL. */
void sched_vcpu_init(struct sched_vcpu *v, struct sched_group *group, u32 id, u32 weight,
		     u64 slice_ns, u32 cpu, const u64 *affinity);

/* Weight of a nice value -20..19 (clamped): 1024 at 0, a factor of 1.25 per step. */
u32 sched_nice_to_weight(int nice);

/* ---- lock sections ---- */

/*
 * Opens / closes a lock section of @rq (lock held). sched_begin() sets the run queue's clock, the
 * only place where that happens; @now_ns earlier than the last time (clocks of two pCPUs) counts as
 * the last time.
 */
static inline void sched_begin(struct run_queue *rq, u64 now_ns)
{
#ifdef VLAG_DEBUG
	extern void sched_section_check(struct run_queue * rq, bool open);
	sched_section_check(rq, true);
#endif
	if (likely((s64)(now_ns - rq->clock) > 0))
		rq->clock = now_ns;
}

static inline void sched_end(struct run_queue *rq)
{
#ifdef VLAG_DEBUG
	extern void sched_section_check(struct run_queue * rq, bool open);
	sched_section_check(rq, false);
#endif
}

/* ---- running, blocking, waking (rq: locked) ---- */

/*
 * Charges the running vCPU up to the clock, puts it back if another one is due, and makes that one
 * RUNNING. Returns it (perhaps the same), NULL if nothing is runnable. O(log n).
 */
struct sched_vcpu *sched_pick_next(struct run_queue *rq);

/* Absolute time (of the clock given to sched_begin) until which the running vCPU may run
 * undisturbed: arm the timer for it, then sched_pick_next(). SCHED_NEVER when it is alone; 0 when
 * nothing runs. Valid until the next section that changes @rq; every such change that brings it
 * forward also tells the caller to reschedule. Any. */
static inline u64 sched_slice_end(const struct run_queue *rq)
{
	return rq->slice_end;
}

/* Charges the running vCPU up to the clock (accounting is exact after this). */
void sched_update_curr(struct run_queue *rq);

/* The running vCPU blocks (HLT and nothing pending: the caller checked under this lock, after the
 * last moment at which a waker could have missed it). Follow with sched_pick_next(). */
void sched_block(struct run_queue *rq);

/*
 * For an edge whose wakers read v->state without the lock and, if it is RUNNING, only kick: the
 * vCPU shows BLOCKED first, then the edge looks for pending interrupts, then sched_block() if there
 * are none, else sched_block_cancel() and on it goes. prepare is a full barrier between the two, as
 * setting an interrupt pending must be in the waker (tests/model/halt.pml, LOCKLESS).
 */
static inline void sched_block_prepare(struct run_queue *rq)
{
	__atomic_store_n(&rq->curr->state, SCHED_BLOCKED, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void sched_block_cancel(struct run_queue *rq)
{
	WRITE_ONCE(rq->curr->state, SCHED_RUNNING);
}

/* Takes @v off @rq whatever its state there (pause, reset, death): BLOCKED afterwards, its lag
 * kept. Returns true if it was running: then the caller owes a sched_pick_next(). */
bool sched_remove(struct run_queue *rq, struct sched_vcpu *v);

/*
 * First half of a wake-up: if @v, whose run queue @rq is locked, is BLOCKED, it becomes WAKING for
 * pCPU @cpu (from sched_select_cpu) and the caller must bring it there with sched_wake(). False if
 * it is awake already: then nothing is to be done, except to kick its pCPU when it is RUNNING. A
 * vCPU that blocked but still pays lag on @rq (DELAY_DEQUEUE) stays there: v->cpu says where.
 */
bool sched_wake_claim(struct run_queue *rq, struct sched_vcpu *v, u32 cpu);

/* Second half: queues the WAKING @v on @rq, that of v->cpu. Returns true if that pCPU must
 * reschedule: it is idle, or @v preempts what runs there. On a run queue with nobody else @v is
 * RUNNING at once; sched_pick_next() on that pCPU then returns it. */
bool sched_wake(struct run_queue *rq, struct sched_vcpu *v);

/* Would the queued @v preempt what runs on @rq? (sched_wake() asks this itself.) */
bool sched_wakeup_preempt(struct run_queue *rq, struct sched_vcpu *v);

/* The running vCPU forfeits the rest of its request, as sched_yield(2) would (a name that libc owns
 * in host builds). */
void sched_yield_self(struct run_queue *rq);

/* ---- directed yield ---- */

enum sched_yield_result {
	SCHED_DID_LOCAL = 1,   /* the yielder should leave its pCPU: sched_pick_next() */
	SCHED_KICK_REMOTE = 2, /* the target's pCPU must reschedule */
	SCHED_PULLED = 4,      /* the target was moved to the yielder's pCPU */
};

/*
 * @me, RUNNING on @rq, spins for @target, QUEUED on @target_rq (which may be @rq; both locked).
 * Applies knobs->yield_policy and, across run queues, knobs->yield_cross_rq. Returns a combination
 * of enum sched_yield_result, 0 if nothing was done (the target runs, sleeps, is @me, or is
 * elsewhere and may not be helped). A target that was just woken and never ran is as good as any.
 */
u32 sched_yield_to(struct run_queue *rq, struct run_queue *target_rq, struct sched_vcpu *me,
		   struct sched_vcpu *target);

/* ---- placement and balancing ---- */

/* Affinity of @v allows @cpu. Any. */
bool sched_cpu_allowed(const struct sched_vcpu *v, u32 cpu);

/*
 * Where @v should wake up: its last pCPU if that is idle, else an idle one, else the last one;
 * never one that its affinity or @online (bit per pCPU, @nr_cpus of them) excludes. @idle: bit per
 * idle pCPU, kept by the edge. SCHED_NO_CPU if the affinity allows no pCPU that is online. Any.
 */
u32 sched_select_cpu(const struct sched_knobs *knobs, const struct sched_vcpu *v, const u64 *idle,
		     const u64 *online, u32 nr_cpus);

/* Moves the QUEUED @v from @from to @to (both locked), lag and the rest of its request kept.
 * Affinity is the caller's business. Returns true if @to's pCPU must reschedule. */
bool sched_migrate(struct run_queue *from, struct run_queue *to, struct sched_vcpu *v);

/*
 * An idle pCPU looks for work: the run queue from which pCPU @me should try to pull, the busiest
 * first; SCHED_NO_CPU when there is none (left). @tried: nr_cpus bits, all 0 at the first call, in
 * which each answer is marked. Then lock both, sched_begin both, sched_pull(). Any.
 */
u32 sched_pull_source(struct run_queue *const *rqs, u32 nr_cpus, u32 me, u64 *tried);

/* Moves one waiting vCPU that may run on @to from @from (both locked). Returns it or NULL. */
struct sched_vcpu *sched_pull(struct run_queue *from, struct run_queue *to);

/* Is the periodic pass of @rq due? Cheap; the edge asks at every timer exit. Any (its own pCPU). */
static inline bool sched_balance_due(const struct run_queue *rq, u64 now_ns)
{
	return (s64)(now_ns - rq->balance_next) >= 0;
}

/*
 * Periodic pass of pCPU @me: the run queue to pull from, or SCHED_NO_CPU. Sets the time of the next
 * pass. Then lock both and sched_balance_pull(). Called by the owner of rqs[me], no lock.
 */
u32 sched_balance_source(struct run_queue *const *rqs, u32 nr_cpus, u32 me, u64 now_ns);

/* Moves the vCPU that evens out @from and @to best, if any does (both locked). Returns it or NULL;
 * then @to should reschedule if it is idle. */
struct sched_vcpu *sched_balance_pull(struct run_queue *from, struct run_queue *to);

/* ---- weights ---- */

/* Weight of a VM, clamped to the legal range; each run queue takes it over within a slice. Any. */
void sched_group_set_weight(struct sched_group *group, u32 weight);

/* Weight of @v among its VM's vCPUs (rq of v->cpu: locked), clamped to 64..16384. */
void sched_vcpu_set_weight(struct run_queue *rq, struct sched_vcpu *v, u32 weight);

/* ---- looking (rq: locked, after sched_update_curr for exact figures) ---- */

/* Time runnable and not running, the wait that is going on included. Monotonic. */
u64 sched_run_delay_ns(const struct run_queue *rq, const struct sched_vcpu *v);

/* Time run, what runs now included. */
u64 sched_run_ns(const struct run_queue *rq, const struct sched_vcpu *v);

/* Lag in service time, ns: what an ideal scheduler would have given it more. 0 when not queued. */
s64 sched_lag_ns(struct run_queue *rq, struct sched_vcpu *v);

/* Starts the fairness figures of @v anew. */
void sched_fair_reset(struct run_queue *rq, struct sched_vcpu *v);

/* Panics (BUG) if any invariant of @rq is broken; O(n), for tests and `make DEBUG=1`. */
void sched_check(struct run_queue *rq);

#endif
