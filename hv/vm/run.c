/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop of a pCPU and the states of vCPUs (vcpu.h draws them). Which vCPU comes next is
 * the run queue's decision, what an exit means is the exit handlers'.
 */
#include "hv/vm/run.h"

#include "hv/apic/lapic.h"
#include "hv/console.h"
#include "hv/main.h"
#include "hv/knobs.h"
#include "hv/lib/bug.h"
#include "hv/pcpu.h"
#include "hv/pv/edge.h"
#include "hv/tracepoint.h"
#include "hv/tsc.h"
#include "hv/vm/vcpu.h"
#include "hv/vmx/exit.h"
#include "hv/vmx/vmx.h"
#include "hv/x86/cpu.h"

/* A wake-up takes fewer ticks than this on any machine, but perhaps more than the knob's time on a
 * slow one: Bochs with 50 million instructions a second. */
#define WAKE_TICKS_MAX 4096ull

u64 host_poll_ticks, timer_advance_max;
static struct run_queue *run_queues[MAX_PCPUS]; /* by pCPU number: for balancing */

void run_knobs_changed(void)
{
	WRITE_ONCE(host_poll_ticks, tsc_from_ns(knobs.host_poll_ns));
	WRITE_ONCE(timer_advance_max,
		   knobs.lapic_timer_advance_max_ns
		       ? max(tsc_from_ns(knobs.lapic_timer_advance_max_ns), WAKE_TICKS_MAX)
		       : 0);
}

void pcpu_kick(struct pcpu *p)
{
	if (p != this_pcpu())
		lapic_send_fixed(p->apic_id, VEC_KICK);
}

/* --- the scheduler's lock sections; its clock is nanoseconds since boot --- */

static u64 sched_now(u64 tsc)
{
	return tsc_to_ns(tsc - tsc_boot());
}

void pcpu_sched_init(struct pcpu *p)
{
	sched_rq_init(&p->rq, p->id, &sched_knobs, sched_now(rdtsc()));
	run_queues[p->id] = &p->rq;
	p->slice_end = UINT64_MAX;
	bit_set(online_pcpus, p->id);
}

static void rq_lock(struct pcpu *p, u64 now)
{
	spin_lock(&p->rq_lock);
	sched_begin(&p->rq, sched_now(now));
}

static u64 slice_end_tsc(const struct pcpu *p)
{
	u64 end = sched_slice_end(&p->rq);

	return end == SCHED_NEVER ? UINT64_MAX : tsc_boot() + tsc_from_ns(end);
}

/* Closes the section; if what runs there may not run on as long as before, its pCPU must know. */
static void rq_unlock(struct pcpu *p, bool resched)
{
	u64 end = slice_end_tsc(p);
	struct vcpu *current = p->current;

	sched_end(&p->rq);
	if (current && (resched || end < p->slice_end))
		vcpu_request(current, resched ? REQ_RESCHED : REQ_TIMER);
	if (resched || (current && end < p->slice_end))
		pcpu_kick(p);
	p->slice_end = end;
	spin_unlock(&p->rq_lock);
}

/* Two run queues, by rising number. */
static void rq_lock_two(struct pcpu *a, struct pcpu *b, u64 now)
{
	rq_lock(a->id < b->id ? a : b, now);
	rq_lock(a->id < b->id ? b : a, now);
}

/* The run queue on which @v is: returns its pCPU, which cannot change until the section ends. */
static struct pcpu *rq_lock_of(struct vcpu *v, u64 now)
{
	for (;;) {
		struct pcpu *p = vcpu_pcpu(v);

		rq_lock(p, now);
		if (likely(vcpu_pcpu(v) == p))
			return p;
		rq_unlock(p, false); /* moved while we waited for the lock */
	}
}

/* --- waking --- */

/*
 * @v, WAKING, joins the queue of @p, whose section is open. Returns whether @p must still be told
 * to reschedule. One that sleeps is kicked first: it wakes up while we are busy here, and its pick
 * waits for the lock.
 */
static bool queue_woken(struct pcpu *p, struct vcpu *v, u64 now)
{
	bool asleep = bit_test(idle_pcpus, p->id), resched;

	if (asleep)
		pcpu_kick(p);
	resched = sched_wake(&p->rq, &v->sched) && !asleep;
	if (unlikely(tracing(TRACE_WAKE)))
		trace_wake(v, p, resched || asleep, now);
	if (v->sched.state == SCHED_QUEUED) {
		spin_woken(&v->spin);
		if (READ_ONCE(v->requests) & REQ_EVENT)
			spin_interrupt(&v->spin);
	}
	return resched;
}

/* @v is blocked, as far as a look without the lock tells. */
static void wake(struct vcpu *v)
{
	u64 now = rdtsc();
	struct pcpu *p = rq_lock_of(v, now), *there;
	u32 cpu = p->id;

	if (!bit_test(idle_pcpus, cpu)) /* else it is the first choice anyway */
		cpu = sched_select_cpu(&sched_knobs, &v->sched, idle_pcpus, online_pcpus, nr_pcpus);
	if (!sched_wake_claim(&p->rq, &v->sched, cpu == SCHED_NO_CPU ? p->id : cpu)) {
		if (v->sched.state == SCHED_RUNNING)
			pcpu_kick(p);
		rq_unlock(p, false);
		return;
	}
	COUNT(v, cnt_wakeups);
	there = vcpu_pcpu(v);
	if (there != p) {
		rq_unlock(p, false);
		rq_lock(there, now);
	}
	rq_unlock(there, queue_woken(there, v, now));
}

void vcpu_kick(struct vcpu *v)
{
	struct pcpu *p = vcpu_pcpu(v);

	if (p == this_pcpu() && p->current == v)
		return; /* handled before it is entered again */
	/*
	 * No lock is needed to interrupt a vCPU that runs: the caller's bit was set with a full
	 * barrier before this look at the state, and put_current() says BLOCKED with one before it
	 * looks at the bits. If it moves meanwhile, it sees the bit where it is entered next.
	 */
	if (READ_ONCE(v->sched.state) == SCHED_RUNNING)
		pcpu_kick(p);
	else
		wake(v);
}

void vcpu_start(struct vcpu *v, bool halted)
{
	BUG_ON(!v->off);
	v->halted = halted;
	v->halted_if = false;
	v->off = false;
	if (!halted)
		wake(v);
}

/* --- leaving a pCPU --- */

/* The vCPU that ran leaves the CPU: blocked if it waits and nothing came meanwhile, out of the
 * queues if its VM ends; otherwise the pick decides whether it goes on. */
static void put_current(struct pcpu *p, struct vcpu *v, u64 now)
{
	if (READ_ONCE(v->requests) & REQ_STOP) {
		sched_remove(&p->rq, &v->sched);
		v->off = true;
		return;
	}
	if (!v->halted)
		return;
	/*
	 * A waker either sees BLOCKED and takes the lock, or set its bit before this look. The
	 * request goes, or vapic_kick() would take it for a sign that somebody else has kicked.
	 */
	sched_block_prepare(&p->rq);
	__atomic_and_fetch(&v->requests, ~(u64)REQ_EVENT, __ATOMIC_SEQ_CST);
	if (vcpu_wakeable(v, now)) {
		sched_block_cancel(&p->rq);
		return;
	}
	COUNT(v, cnt_halts);
	sched_block(&p->rq);
}

/* The deadline of a vCPU that sleeps is one of its pCPU's timers. (Its registers are still loaded
 * here: it cannot have been entered elsewhere.) */
static void hand_timer_to_pcpu(struct pcpu *p, struct vcpu *v)
{
	u64 deadline = vlapic_timer_deadline(&v->lapic);

	if (v->halted && deadline != VLAPIC_TIMER_NONE)
		timer_set(&p->timers, &v->timer, deadline - v->tsc_offset - p->wake_advance);
}

/* Nothing to run here: look for a vCPU that waits elsewhere. */
static bool pull(struct pcpu *p, u64 now)
{
	u64 tried[MAX_PCPUS / 64] = {0};
	u32 from;

	if (nr_pcpus == 1 || sched_knobs.balance == SCHED_BALANCE_OFF)
		return false;
	while ((from = sched_pull_source(run_queues, nr_pcpus, p->id, tried)) != SCHED_NO_CPU) {
		struct sched_vcpu *got;

		rq_lock_two(p, pcpus[from], now);
		got = sched_pull(&pcpus[from]->rq, &p->rq);
		rq_unlock(pcpus[from], false);
		rq_unlock(p, false);
		if (got)
			return true;
	}
	return false;
}

/* The periodic pass: another pCPU may have one vCPU too many. */
static void balance(struct pcpu *p, u64 now)
{
	u32 from = sched_balance_source(run_queues, nr_pcpus, p->id, sched_now(now));

	if (from == SCHED_NO_CPU)
		return;
	rq_lock_two(p, pcpus[from], now);
	sched_balance_pull(&pcpus[from]->rq, &p->rq);
	rq_unlock(pcpus[from], false);
	rq_unlock(p, false);
}

bool vcpu_yield_to(struct vcpu *me, struct spin_walk *w)
{
	struct vcpu *target = container_of(w->target, struct vcpu, spin);
	struct pcpu *p = this_pcpu(), *there = vcpu_pcpu(target);
	u64 now = rdtsc();
	u32 did;

	if (there != p && !spin_may_cross(w, READ_ONCE(p->rq.nr_running)))
		return false;
	if (there == p) {
		rq_lock(p, now);
		did = sched_yield_to(&p->rq, &p->rq, &me->sched, &target->sched);
		spin_tried(w, did, false);
		rq_unlock(p, false);
	} else {
		rq_lock_two(p, there, now);
		/* If it has moved meanwhile, sched_yield_to() says so. */
		did = sched_yield_to(&p->rq, &there->rq, &me->sched, &target->sched);
		spin_tried(w, did, true);
		rq_unlock(there, did & SCHED_KICK_REMOTE);
		rq_unlock(p, false);
	}
	return did & (SCHED_DID_LOCAL | SCHED_PULLED);
}

u64 pcpu_slice_end(struct pcpu *p, u64 now)
{
	if (nr_pcpus > 1 && sched_balance_due(&p->rq, sched_now(now)))
		balance(p, now);
	return p->slice_end;
}

/* @prev, whose registers are still here, waits from now on. */
static void note_waits(struct vcpu *prev)
{
	spin_sched_out(&prev->spin, guest_cpl() == 0);
	if (vlapic_pending(&prev->lapic) >= 0)
		spin_interrupt(&prev->spin);
}

/* A directed yield has nominated @target; @next was picked. */
static __attribute__((noinline)) void yield_outcome(struct vcpu *target, const struct vcpu *next,
						    u64 now)
{
	const struct spin_vcpu *by = spin_outcome(&target->spin, next == target);

	if (by && tracing(TRACE_BOOST))
		trace_boost(target, by->index, next == target, now);
}

/* Decides who runs next. *@off: the VM of @prev ends, and this was its last moment on a pCPU. */
static struct vcpu *pick(struct pcpu *p, struct vcpu *prev, u64 now, bool *off)
{
	struct sched_vcpu *expected;
	struct vcpu *next;

	rq_lock(p, now);
	if (prev)
		put_current(p, prev, now);
	*off = prev && prev->off;
	expected = p->rq.yield_expect;
	next = vcpu_of_sched(sched_pick_next(&p->rq));
	if (unlikely(expected))
		yield_outcome(vcpu_of_sched(expected), next, now);
	if (prev && prev != next && prev->sched.state == SCHED_QUEUED)
		note_waits(prev);
	if (next) {
		u64 waited = spin_sched_in(&next->spin, now);

		if (unlikely(waited) && tracing(TRACE_BACK))
			trace_back(next, waited, now);
	}
	if (!next)
		bit_set_atomic(idle_pcpus, p->id);
	else if (bit_test(idle_pcpus, p->id))
		bit_clear_atomic(idle_pcpus, p->id);
	p->current = next;
	if (unlikely(tracing(TRACE_SWITCH)))
		trace_switch(p, prev, next, now);
	if (prev && prev != next && !*off)
		pv_sched_out(prev);
	p->slice_end = slice_end_tsc(p);
	sched_end(&p->rq);
	spin_unlock(&p->rq_lock);
	return next;
}

static struct vcpu *schedule(struct pcpu *p)
{
	struct vcpu *prev = p->current, *next;
	u64 now = rdtsc();
	bool off, ignored;

	next = pick(p, prev, now, &off);
	if (!next && pull(p, now))
		next = pick(p, NULL, now, &ignored);
	if (prev && prev != next && !off)
		hand_timer_to_pcpu(p, prev);
	if (off && __atomic_sub_fetch(&prev->vm->nr_active, 1, __ATOMIC_SEQ_CST) == 0)
		vm_all_left(prev->vm);
	return next;
}

/*
 * What other pCPUs wait for: a call, and the registers of a vCPU that moved away. Everybody who
 * waits for another pCPU calls this meanwhile, so that two do not wait for each other.
 */
void pcpu_serve(void)
{
	struct pcpu *p = this_pcpu();
	void (*fn)(void *arg) = __atomic_load_n(&p->call_fn, __ATOMIC_ACQUIRE);

	if (unlikely(p->loaded && p->loaded != p->current && vcpu_pcpu(p->loaded) != p))
		vcpu_unload_current();
	if (likely(!fn))
		return;
	fn(p->call_arg);
	__atomic_store_n(&p->call_fn, NULL, __ATOMIC_RELEASE);
}

void pcpu_call(struct pcpu *p, void (*fn)(void *arg), void *arg)
{
	struct vcpu *v;

	if (p == this_pcpu()) {
		fn(arg);
		return;
	}
	p->call_arg = arg;
	__atomic_store_n(&p->call_fn, fn, __ATOMIC_RELEASE);
	spin_lock(&p->rq_lock);
	v = p->current;
	if (v)
		vcpu_request(v, REQ_RESCHED);
	pcpu_kick(p);
	spin_unlock(&p->rq_lock);
	while (__atomic_load_n(&p->call_fn, __ATOMIC_ACQUIRE)) {
		pcpu_serve();
		cpu_relax();
	}
}

void vcpu_times_ns(struct vcpu *v, u64 *run_ns, u64 *delay_ns)
{
	struct pcpu *p = rq_lock_of(v, rdtsc());

	*run_ns = sched_run_ns(&p->rq, &v->sched);
	*delay_ns = sched_run_delay_ns(&p->rq, &v->sched);
	rq_unlock(p, false);
}

void vcpus_charge(void)
{
	for (u32 i = 0; i < nr_pcpus; i++) {
		rq_lock(pcpus[i], rdtsc());
		sched_update_curr(&pcpus[i]->rq);
		rq_unlock(pcpus[i], false);
	}
}

u64 pcpu_idle_ticks(const struct pcpu *p)
{
	u64 start = READ_ONCE(p->idle_start), now = rdtsc();

	return READ_ONCE(p->idle_ticks) + (start && now > start ? now - start : 0);
}

/* Nobody to run: sleep until an interrupt. This pCPU's bit in idle_pcpus was set under the lock, so
 * a waker sends one. */
static void idle(struct pcpu *p)
{
	u64 start = rdtsc(), wake_at = READ_ONCE(p->timers.next), now;

	if (p->id == 0) {
		if (start >= p->next_poll) {
			boot_cpu_poll();
			p->next_poll = start + host_poll_ticks;
		}
		wake_at = min(wake_at, p->next_poll);
	}
	if (wake_at != UINT64_MAX)
		lapic_timer_arm(wake_at);
	WRITE_ONCE(p->idle_start, start);
	if (!READ_ONCE(p->rq.nr_running) && !READ_ONCE(p->call_fn))
		sti_hlt_cli();
	now = rdtsc();
	WRITE_ONCE(p->idle_start, 0);
	WRITE_ONCE(p->idle_ticks, p->idle_ticks + now - start);
	if (unlikely(READ_ONCE(p->timers.next) <= now))
		timers_run(&p->timers, now);
}

/* Runs @v until it leaves. */
static void run(struct vcpu *v)
{
	struct pcpu *p = this_pcpu();
	u64 now;

	vcpu_load(v);
	if (READ_ONCE(v->timer.queue))
		timer_cancel(&v->timer);
	if (v->fresh)
		vm_first_run(v);
	pause_update(v);
	now = rdtsc();
	if (v->halted && !vcpu_wakeable(v, now))
		return; /* woken for nothing */
	vcpu_check_timer(v, now, v->halted ? p->wake_advance : 0);
	if (READ_ONCE(v->requests) & ~(u64)REQ_EVENT && vcpu_requests(v) == EXIT_LEAVE)
		return;
	vcpu_arm(v, now);
	if ((vlapic_has_work(&v->lapic) || READ_ONCE(v->requests) & REQ_EVENT) &&
	    vcpu_deliver(v) == EXIT_LEAVE)
		return;
	pv_sched_in(v, vcpu_run_delay_ns(v));
	if (!v->lapic.wait_for_sipi)
		v->halted = false;
	if (v->not_before)
		timer_wait(v, &p->wake_advance);
	if (unlikely(vmx_enter(v, v->launched)))
		vcpu_kill(v, "VM entry failed, VM-instruction error %u", vmread32(VMCS_INSN_ERROR));
	v->launched = true;
}

void pcpu_run(void)
{
	struct pcpu *p = this_pcpu();

	for (;;) {
		struct vcpu *v = schedule(p);

		pcpu_serve();
		if (v)
			run(v);
		else
			idle(p);
	}
}
