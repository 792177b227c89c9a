/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directed yield: to which vCPU of its VM should a vCPU that spins give its pCPU? This is the state
 * from which that is answered, and the answer; what the yield then does to the run queues is
 * hv/sched/yield.c, how a spin is noticed is ple.h (docs/directed-yield.md). Pure: no x86, no
 * globals, no clock, no locks; several pCPUs call at the same time, and all that they share is
 * written by single atomic operations. It is a hint and never correctness: who looks while others
 * change it may get a candidate that runs by now, and sched_yield_to() refuses that one.
 *
 * The edge calls, with the lock of the vCPU's run queue but for spin_interrupt():
 *
 *	spin_woken(v)		a wake-up was queued; then spin_interrupt(v) if one waits
 *	spin_sched_in(v)	v was put on a pCPU, or stays on it
 *	spin_sched_out(v)	v left it, still runnable; then spin_interrupt(v) if one waits
 *	spin_removed(v)		v was runnable and is taken away: reset, pause, stop
 *	spin_interrupt(v)	an interrupt for v was made pending; from any pCPU
 *
 * A vCPU that blocks needs no call: it runs when it does. Migration needs none either.
 *
 *	if (spin_start(&w, me, in_kernel, spun, now)) {
 *		while (!left && spin_next(&w)) {
 *			on another run queue, and !spin_may_cross(&w, nr)? the next one
 *			lock both; r = sched_yield_to(..., w.target);
 *			spin_tried(&w, r != 0, cross); unlock; ...
 *		}
 *		spin_stop(&w, left);
 *	}
 */
#ifndef VLAG_SPIN_SPIN_H
#define VLAG_SPIN_SPIN_H

#include "hv/apic/ipi_track.h"
#include "hv/config/config.h"
#include "hv/lib/bits.h"
#include "hv/lib/bug.h"
#include "hv/lib/hist.h"
#include "hv/lib/types.h"
#include "hv/spin/knobs.h"
#include "hv/spin/ple.h"

#define SPIN_MAP_WORDS (CFG_MAX_VCPUS / 64)
#define SPIN_FIFO_SLOTS (4 * CFG_MAX_VCPUS)
#define SPIN_TRIES_MAX 10
#define SPIN_BOOSTS                                                                                \
	8 /* yields to one target of which the spinners are remembered; power of two               \
	   */

/* X(NAME, word, text): why a candidate was chosen; the counters dy_* follow this order. */
#define SPIN_CLASSES(X)                                                                            \
	X(RECEIVER, "receiver", "it has not acknowledged an IPI of the spinner")                   \
	X(HINT, "hint", "the guest named it in a hypercall")                                       \
	X(PENDING, "pending", "an interrupt waits for it")                                         \
	X(KERNEL, "kernel", "it was preempted in kernel mode")                                     \
	X(WOKEN, "woken", "it was woken and has not run since")                                    \
	X(PREEMPTED, "preempted", "it was preempted in user mode, and so does the spinner spin")   \
	X(SPINNER, "spinner", "it spins itself, and its turn has come")                            \
	X(RELAXED, "relaxed", "it was preempted in user mode, and nobody better waits")

enum spin_class {
#define X(NAME, word, text) SPIN_CLASS_##NAME,
	SPIN_CLASSES(X)
#undef X
	    SPIN_NR_CLASSES
};

/* X(name, text): counters of a vCPU, as spinner. Its own pCPU writes them, but for the hits. */
#define SPIN_COUNTERS(X)                                                                           \
	X(spin_exits, "PAUSE exits")                                                               \
	X(spin_short, "of them in a loop shorter than the window (ple=pause)")                     \
	X(spin_uncontended, "of them with nobody waiting for that pCPU: returned at once")         \
	X(spin_user, "searches for a candidate that began in user mode")                           \
	X(spin_searches, "searches for a candidate")                                               \
	X(spin_none, "of them that found none")                                                    \
	X(spin_given, "of them after which a directed yield was applied")                          \
	X(spin_ticks, "TSC ticks spun before searches, as far as known")                           \
	X(spin_wait_ticks, "TSC ticks from giving the pCPU to running again")                      \
	X(directed_yield_attempted, "directed yields tried")                                       \
	X(directed_yield_successful, "directed yields after which the target ran next")            \
	X(dy_receiver, "tried: receiver of an outstanding IPI")                                    \
	X(dy_hint, "tried: named by the guest")                                                    \
	X(dy_pending, "tried: interrupt pending")                                                  \
	X(dy_kernel, "tried: preempted in kernel mode")                                            \
	X(dy_woken, "tried: woken, not run since")                                                 \
	X(dy_preempted, "tried: preempted in user mode, for a spinner in user mode")               \
	X(dy_spinner, "tried: spinning itself")                                                    \
	X(dy_relaxed, "tried: preempted in user mode, for a spinner in kernel mode")               \
	X(dy_receiver_hit, "ran next: receiver of an outstanding IPI")                             \
	X(dy_hint_hit, "ran next: named by the guest")                                             \
	X(dy_pending_hit, "ran next: interrupt pending")                                           \
	X(dy_kernel_hit, "ran next: preempted in kernel mode")                                     \
	X(dy_woken_hit, "ran next: woken, not run since")                                          \
	X(dy_preempted_hit, "ran next: preempted in user mode, for a spinner in user mode")        \
	X(dy_spinner_hit, "ran next: spinning itself")                                             \
	X(dy_relaxed_hit, "ran next: preempted in user mode, for a spinner in kernel mode")        \
	X(dy_skipped_cpl, "candidates passed over because they were preempted in user mode")       \
	X(dy_skipped_spinning, "candidates passed over because they spin (policies kvm and ipi)")  \
	X(dy_cross_rq, "directed yields applied to another run queue")                             \
	X(dy_stale, "outstanding IPIs dropped as too old while looking for receivers")

enum spin_counter {
#define X(name, text) SPIN_COUNT_##name,
	SPIN_COUNTERS(X)
#undef X
	    SPIN_NR_COUNTERS
};

/* The same counters by name and by number. */
struct spin_stats {
	union {
		struct {
#define X(name, text) u64 name;
			SPIN_COUNTERS(X)
#undef X
		};
		u64 at[SPIN_NR_COUNTERS];
	};
};

/* How a vCPU came to be runnable and not running. */
enum spin_how {
	SPIN_GONE, /* it runs, or it is not runnable */
	SPIN_WOKEN,
	SPIN_KERNEL,	    /* preempted at CPL 0 */
	SPIN_USER,	    /* preempted at CPL > 0 */
	SPIN_SPINNING,	    /* gave its pCPU away in a spin at CPL 0 */
	SPIN_SPINNING_USER, /* ... at CPL > 0 */
};

/*
 * Waiting vCPUs in the order in which they began to wait: a ring of slots, each claimed by one
 * atomic bit, so that coming, going and finding the oldest cost the same for any number of vCPUs.
 * Exact until as many have come after a waiting one as the ring has slots (four for each vCPU of
 * the VM, at least 64); then it counts as new.
 */
struct spin_fifo {
	u32 head; /* next position, not reduced; atomic */
	u32 tail; /* nobody waits at positions before it; a hint */
	u64 live[SPIN_FIFO_SLOTS / 64];
	u8 id[SPIN_FIFO_SLOTS]; /* who claimed the slot */
};

enum { SPIN_FIFO_KERNEL, SPIN_FIFO_USER, SPIN_NR_FIFOS, SPIN_NO_FIFO };

struct spin_vcpu;

/* Of a VM. Anyone writes, by the atomic operations below, unless a field says otherwise. */
struct spin_vm {
	const struct spin_knobs *knobs; /* constant */
	struct spin_vcpu *const *vcpu;	/* constant: by index */
	u32 nr;				/* constant: 1..CFG_MAX_VCPUS */
	u32 slot_mask;			/* constant: slots in use of each FIFO, less one */
	u32 last_boosted;		/* policies kvm and ipi start after it; racy */
	u64 ready[SPIN_MAP_WORDS];	/* runnable and not running */
	u64 pending[SPIN_MAP_WORDS]; /* ... and an interrupt waits for it; says nothing about others
				      */
	u64 spinning[SPIN_MAP_WORDS];  /* ... and gave its pCPU away in a spin at CPL 0 */
	u8 how[CFG_MAX_VCPUS];	       /* enum spin_how; lock of the vCPU's run queue */
	u8 dy_eligible[CFG_MAX_VCPUS]; /* policies kvm and ipi: spins, and its turn has come; racy
					*/
	struct spin_fifo fifo[SPIN_NR_FIFOS];
};

/* Of a vCPU. Owner: the pCPU that runs it, or the lock of its run queue. */
struct spin_vcpu {
	struct spin_vm *vm;	 /* constant */
	struct ipi_track *track; /* constant; NULL: no receivers are known */
	u64 bit;		 /* constant: its bit in *ready and *pending */
	u64 *ready, *pending;	 /* constant: its words of the VM's maps */
	u64 *live;		 /* its word of the FIFO in which it waits; NULL: it is in none */
	u16 slot;		 /* in that FIFO */
	u32 index;		 /* constant: in vm->vcpu[] */
	bool spinning;		 /* from spin_start() to spin_stop() or, if it left, to sched_in */
	u32 hint;		 /* vCPU named by the guest + 1, 0: none */
	u64 hint_time;
	u64 left; /* when it gave its pCPU away in a spin, 0: not */
	/* as target, under its run queue's lock: how many yields to it have no outcome yet, and the
	   last of them, class << 8 | spinner each */
	u32 boosts;
	u16 boosted_by[SPIN_BOOSTS];
	struct spin_ple ple;
	struct spin_stats stats;
	struct hist wait; /* ticks from giving the pCPU away in a spin to running again */
};

/* ---- set-up (single-threaded) ---- */

/* @vcpus: @nr pointers that stay the caller's, may be filled later but before the VM runs. */
void spin_vm_init(struct spin_vm *vm, const struct spin_knobs *knobs,
		  struct spin_vcpu *const *vcpus, u32 nr);

/* vCPU number @index, not runnable. @track may be NULL. */
void spin_vcpu_init(struct spin_vcpu *v, struct spin_vm *vm, u32 index, struct ipi_track *track);

/* ---- the state of the VM's vCPUs ---- */

static inline void spin_fifo_add(struct spin_vcpu *v, struct spin_fifo *f)
{
	u64 *word, bit;
	u32 slot;

	do {
		slot = __atomic_fetch_add(&f->head, 1, __ATOMIC_RELAXED) & v->vm->slot_mask;
		word = &f->live[slot / 64];
		bit = BIT(slot % 64);
	} while (unlikely(__atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST) & bit));
	WRITE_ONCE(f->id[slot], (u8)v->index);
	v->slot = (u16)slot;
	v->live = word;
}

/* @v waits from now on, in @fifo or in none. */
static inline void spin_enter(struct spin_vcpu *v, u32 how, u32 fifo)
{
	struct spin_vm *vm = v->vm;

	DEBUG_ON(vm->how[v->index] != SPIN_GONE);
	if (unlikely(READ_ONCE(*v->pending) & v->bit))
		__atomic_and_fetch(v->pending, ~v->bit, __ATOMIC_SEQ_CST);
	WRITE_ONCE(vm->how[v->index], (u8)how);
	if (fifo != SPIN_NO_FIFO)
		spin_fifo_add(v, &vm->fifo[fifo]);
	/* A full barrier: whoever makes an interrupt pending after this sees it, and one that was
	   made pending before is seen by the caller's look after this. */
	__atomic_or_fetch(v->ready, v->bit, __ATOMIC_SEQ_CST);
}

/* @v no longer waits. */
static inline void spin_leave(struct spin_vcpu *v)
{
	if (v->vm->how[v->index] == SPIN_GONE)
		return;
	WRITE_ONCE(v->vm->how[v->index], SPIN_GONE);
	if (likely(v->live))
		__atomic_and_fetch(v->live, ~BIT(v->slot % 64), __ATOMIC_SEQ_CST);
	__atomic_and_fetch(v->ready, ~v->bit, __ATOMIC_SEQ_CST);
	v->live = NULL;
	/* Its bit in pending counts for nothing now, and goes when it next waits. */
}

/* Does any vCPU of @vm wait? */
static inline bool spin_any_ready(const struct spin_vm *vm)
{
	for (u32 i = 0; i < (vm->nr + 63) / 64; i++) {
		if (READ_ONCE(vm->ready[i]))
			return true;
	}
	return false;
}

/* Out of line: @v runs again after a spin in which it gave its pCPU away. Returns for how long it
 * waited, ticks. */
u64 spin_back(struct spin_vcpu *v, u64 now);

/* @v runs; also to be called if it was looked at whether it should go on, and it does. Returns the
 * ticks that it waited if it gave its pCPU away in a spin, else 0: for the trace. */
static inline u64 spin_sched_in(struct spin_vcpu *v, u64 now)
{
	spin_leave(v);
	v->boosts = 0;
	return unlikely(v->spinning) ? spin_back(v, now) : 0;
}

/* Out of line: @v gives its pCPU away in a spin. */
void spin_enter_spinning(struct spin_vcpu *v, bool in_kernel);

/* @v leaves its pCPU and stays runnable. @in_kernel: its CPL is 0. Look for a pending interrupt
 * after this. */
static inline void spin_sched_out(struct spin_vcpu *v, bool in_kernel)
{
	if (unlikely(v->spinning))
		spin_enter_spinning(v, in_kernel);
	else if (in_kernel)
		spin_enter(v, SPIN_KERNEL, SPIN_FIFO_KERNEL);
	else
		spin_enter(v, SPIN_USER, SPIN_FIFO_USER);
}

/* @v, which was blocked, is runnable. */
static inline void spin_woken(struct spin_vcpu *v)
{
	spin_enter(v, SPIN_WOKEN, SPIN_FIFO_KERNEL);
}

/* @v was runnable and is not any more, without having run. */
static inline void spin_removed(struct spin_vcpu *v)
{
	spin_leave(v);
}

/* An interrupt is pending at @v, made so with a full barrier before this. Any pCPU. */
static inline void spin_interrupt(struct spin_vcpu *v)
{
	if (unlikely(READ_ONCE(*v->ready) & v->bit) && !(READ_ONCE(*v->pending) & v->bit))
		__atomic_or_fetch(v->pending, v->bit, __ATOMIC_SEQ_CST);
}

/* INIT or reset of @v, on its own pCPU: what it waited for is no more. */
void spin_reset(struct spin_vcpu *v);

/*
 * The guest said on @me that vCPU @target (its index, not its APIC id) matters (KVM_HC_SCHED_YIELD,
 * KVM_HC_KICK_CPU). Holds for ipi_window_ns, and for one yield. A @target that does not exist is
 * ignored. Owner of @me.
 */
void spin_hint(struct spin_vcpu *me, u32 target, u64 now);

/* ---- a spin ---- */

struct spin_policy;

/* A search for a candidate; on the stack of the pCPU. */
struct spin_walk {
	/* the answer of spin_next() */
	struct spin_vcpu *target;
	u32 class; /* enum spin_class */

	struct spin_vcpu *me;
	const struct spin_policy *policy;
	u64 now;
	bool in_kernel;
	bool relaxed; /* enable_relaxed_boost when it began */
	u8 stage;     /* of the policy */
	bool begun;   /* the stage */
	bool given;
	u8 nr_tried;
	u8 tries;     /* that may still fail */
	u32 at, left; /* where the stage goes on, how many it may still look at */
	u32 start;    /* round robin begins here */
	u32 seen;     /* candidates looked at: for the trace */
	u64 expired;  /* the tracker's counter when it began */
	u8 tried[SPIN_TRIES_MAX];
	u64 receivers[SPIN_MAP_WORDS]; /* policy ipi only */
};

/* One candidate policy. */
struct spin_policy {
	const char *name; /* of the knob */
	bool (*next)(struct spin_walk *w);
	/* Does not stop what runs on another pCPU for a target that only spins itself, while
	 * somebody waits on the spinner's own. */
	bool spares_others;
};

extern const struct spin_policy spin_policies[SPIN_POLICIES];

/* May the yield to w->target, which waits on another run queue, be tried? @nr_here: vCPUs that run
 * or wait on the spinner's own. If not, go on with spin_next(); it was no try. */
static inline bool spin_may_cross(const struct spin_walk *w, u32 nr_here)
{
	return w->class < SPIN_CLASS_SPINNER || nr_here <= 1 || !w->policy->spares_others;
}

/*
 * @me, RUNNING, spins: begins a search. @in_kernel: its CPL is 0. @spun: ticks that it has spun, as
 * far as known. @now: the clock of the tracker, host TSC. False if no vCPU of the
 * VM waits. After true, spin_stop() must follow.
 */
bool spin_start(struct spin_walk *w, struct spin_vcpu *me, bool in_kernel, u64 spun, u64 now);

/* The next candidate into w->target and w->class; false when there are no more or the tries are
 * used up. */
static inline bool spin_next(struct spin_walk *w)
{
	return w->tries && w->policy->next(w);
}

/*
 * What became of the directed yield to w->target, under its run queue's lock: @yielded if
 * sched_yield_to() did something, @cross if on another run queue. After a yield that worked the
 * search is over.
 */
void spin_tried(struct spin_walk *w, bool yielded, bool cross);

/* The search is over; @leaves if @me gives its pCPU away now: then it counts as spinning until it
 * runs again. */
void spin_stop(struct spin_walk *w, bool leaves);

/*
 * The run queue on which @target was boosted has picked: @ran if it picked @target. Where this
 * comes from: run_queue.yield_expect before sched_pick_next(). Before spin_sched_in(@target), under
 * that run queue's lock. Returns the last spinner, or NULL if no outcome was open: for the trace.
 */
struct spin_vcpu *spin_outcome(struct spin_vcpu *target, bool ran);

/* The word and the text of a class and of a counter: for tables. */
const char *spin_class_name(u32 class);

#endif
