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
#include "hv/tsc.h"
#include "hv/vm/vcpu.h"
#include "hv/vmx/exit.h"
#include "hv/vmx/vmx.h"
#include "hv/x86/cpu.h"

u64 host_poll_ticks, timer_advance_max;
static u64 slice_ticks;

void run_knobs_changed(void)
{
	WRITE_ONCE(host_poll_ticks, tsc_from_ns(knobs.host_poll_ns));
	WRITE_ONCE(slice_ticks, tsc_from_ns(knobs.slice_ns));
	WRITE_ONCE(timer_advance_max, tsc_from_ns(knobs.lapic_timer_advance_max_ns));
}

static void set_state(struct vcpu *v, enum vcpu_state state, u64 now)
{
	u64 ticks = now - v->since;

	if (v->state == VCPU_RUNNING)
		v->run_ticks += ticks;
	else if (v->state == VCPU_QUEUED)
		v->wait_ticks += ticks;
	v->state = state;
	v->since = now;
}

void pcpu_kick(struct pcpu *p)
{
	if (p != this_pcpu())
		lapic_send_fixed(p->apic_id, VEC_KICK);
}

/* p->runq.lock held. */
static void wake(struct pcpu *p, struct vcpu *v)
{
	COUNT(v, cnt_wakeups);
	set_state(v, VCPU_QUEUED, rdtsc());
	runq_queue(&p->runq, v);
	if (p->idle)
		pcpu_kick(p);
	else if (p->current) {
		/* Its timer knows no slice end while it is alone. */
		vcpu_request(p->current, REQ_TIMER);
		pcpu_kick(p);
	}
}

void vcpu_kick(struct vcpu *v)
{
	struct pcpu *p = READ_ONCE(v->pcpu);

	if (p == this_pcpu() && p->current == v)
		return; /* handled before it is entered again */
	/*
	 * No lock is needed to interrupt a vCPU that runs: the caller's bit was set with a full
	 * barrier before this look at the state, and put_current() says HALTED with one before it
	 * looks at the bits.
	 */
	if (READ_ONCE(v->state) == VCPU_RUNNING) {
		pcpu_kick(p);
		return;
	}
	spin_lock(&p->runq.lock);
	if (v->state == VCPU_HALTED)
		wake(p, v);
	else if (v->state == VCPU_RUNNING)
		pcpu_kick(p);
	spin_unlock(&p->runq.lock);
}

void vcpu_start(struct vcpu *v, bool halted)
{
	struct pcpu *p = v->pcpu;

	spin_lock(&p->runq.lock);
	BUG_ON(v->state != VCPU_OFF);
	v->since = rdtsc();
	v->state = VCPU_HALTED;
	v->halted = halted;
	v->halted_if = false;
	if (!halted)
		wake(p, v);
	spin_unlock(&p->runq.lock);
}

/* The vCPU that ran leaves the CPU: to HALTED if it waits and nothing came meanwhile, to OFF if its
 * VM ends, else to the queue. */
static void put_current(struct pcpu *p, struct vcpu *v, u64 now)
{
	p->current = NULL;
	if (READ_ONCE(v->requests) & REQ_STOP) {
		set_state(v, VCPU_OFF, now);
		return;
	}
	if (v->halted) {
		set_state(v, VCPU_HALTED, now);
		/*
		 * A waker either sees HALTED and takes the lock, or set its bit before this look.
		 * The request goes, or vapic_kick() would take it for a sign that somebody else has
		 * kicked; clearing it is also the full barrier that the look needs.
		 */
		__atomic_and_fetch(&v->requests, ~(u64)REQ_EVENT, __ATOMIC_SEQ_CST);
		if (!vcpu_wakeable(v, now)) {
			COUNT(v, cnt_halts);
			return;
		}
	} else {
		COUNT(v, cnt_preempted);
	}
	set_state(v, VCPU_QUEUED, now);
	runq_queue(&p->runq, v);
}

/* The deadline of a vCPU that is not running is one of its pCPU's timers. */
static void hand_timer_to_pcpu(struct pcpu *p, struct vcpu *v)
{
	u64 deadline = vlapic_timer_deadline(&v->lapic);

	if (v->state == VCPU_HALTED && deadline != VLAPIC_TIMER_NONE)
		timer_set(&p->timers, &v->timer, deadline - v->tsc_offset - p->wake_advance);
}

static struct vcpu *schedule(struct pcpu *p)
{
	struct vcpu *prev = p->current, *next;
	u64 now = rdtsc();
	bool off = false;

	spin_lock(&p->runq.lock);
	if (prev) {
		put_current(p, prev, now);
		off = prev->state == VCPU_OFF;
	}
	next = runq_pick(&p->runq);
	p->current = next;
	p->idle = !next;
	if (prev && prev != next && !off)
		pv_sched_out(prev);
	if (next) {
		set_state(next, VCPU_RUNNING, now);
		next->slice_end = now + slice_ticks;
	}
	spin_unlock(&p->runq.lock);
	if (prev && prev != next && !off)
		hand_timer_to_pcpu(p, prev);
	if (off && __atomic_sub_fetch(&prev->vm->nr_active, 1, __ATOMIC_SEQ_CST) == 0)
		vm_all_left(prev->vm);
	return next;
}

/* A call that another pCPU waits for. */
static void serve_call(struct pcpu *p)
{
	void (*fn)(void *arg) = __atomic_load_n(&p->call_fn, __ATOMIC_ACQUIRE);

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
	spin_lock(&p->runq.lock);
	v = p->current;
	if (v)
		vcpu_request(v, REQ_RESCHED);
	pcpu_kick(p);
	spin_unlock(&p->runq.lock);
	while (__atomic_load_n(&p->call_fn, __ATOMIC_ACQUIRE))
		cpu_relax();
}

/* --- what others want to know of a vCPU's time --- */

u64 vcpu_run_delay_ns(const struct vcpu *v)
{
	return tsc_to_ns(v->wait_ticks);
}

void vcpu_times_ns(struct vcpu *v, u64 *run_ns, u64 *delay_ns)
{
	struct pcpu *p = v->pcpu;
	u64 now;

	spin_lock(&p->runq.lock);
	now = rdtsc() - v->since;
	*run_ns = tsc_to_ns(v->run_ticks + (v->state == VCPU_RUNNING ? now : 0));
	*delay_ns = tsc_to_ns(v->wait_ticks + (v->state == VCPU_QUEUED ? now : 0));
	spin_unlock(&p->runq.lock);
}

bool vcpu_is_running(const struct vcpu *v)
{
	return READ_ONCE(v->state) == VCPU_RUNNING;
}

bool vcpu_is_waiting(const struct vcpu *v)
{
	return READ_ONCE(v->state) == VCPU_QUEUED;
}

/* Nobody to run: sleep until an interrupt. p->idle was set under the lock, so a waker sends one. */
static void idle(struct pcpu *p)
{
	u64 start = rdtsc(), wake_at = READ_ONCE(p->timers.next);

	if (p->id == 0) {
		if (start >= p->next_poll) {
			boot_cpu_poll();
			p->next_poll = start + host_poll_ticks;
		}
		wake_at = min(wake_at, p->next_poll);
	}
	if (wake_at != UINT64_MAX)
		lapic_timer_arm(wake_at);
	if (!READ_ONCE(p->runq.nr) && !READ_ONCE(p->call_fn))
		sti_hlt_cli();
	p->idle_ticks += rdtsc() - start;
	timers_run(&p->timers, rdtsc());
}

/* Runs @v until it leaves. */
static void run(struct vcpu *v)
{
	struct pcpu *p = v->pcpu;
	u64 now;

	vcpu_load(v);
	if (READ_ONCE(v->timer.queue))
		timer_cancel(&v->timer);
	if (v->fresh)
		vm_first_run(v);
	now = rdtsc();
	if (v->halted && !vcpu_wakeable(v, now))
		return; /* woken for nothing */
	if (vlapic_timer_deadline(&v->lapic) != VLAPIC_TIMER_NONE)
		vcpu_request(v, REQ_TIMER);
	else
		vcpu_arm(v, now);
	if (vlapic_has_work(&v->lapic))
		vcpu_request(v, REQ_EVENT);
	if (READ_ONCE(v->requests) && vcpu_requests(v) == EXIT_LEAVE)
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

		serve_call(p);
		if (v)
			run(v);
		else
			idle(p);
	}
}
