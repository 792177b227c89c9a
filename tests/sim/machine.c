/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated machine: events in a heap, pCPUs that run vCPUs up to the next thing that happens,
 * guests as small state machines. No scheduling decision is taken here.
 */
#include "tests/sim/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hv/lib/bits.h"
#include "hv/lib/bug.h"

#define NOBODY UINT32_MAX
#define FOREVER UINT64_MAX

enum phase { COMPUTE, SPIN, HOLD, HALTED };

const char *const load_names[NR_LOADS] = {"busy", "halt", "ipi", "lock", "token"};

struct event {
	u64 time;
	u32 who; /* pCPU, or vCPU timer: nr_pcpus + running number over all VMs */
	struct svcpu *vcpu;
};

static void *alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p) {
		fprintf(stderr, "sim: out of memory for %zu bytes\n", n * size);
		exit(1);
	}
	return p;
}

void machine_options_init(struct machine_options *opt)
{
	*opt = (struct machine_options){
	    .nr_pcpus = 4,
	    .seed = 1,
	    .ple_ns = 10000,
	    .switch_ns = 2000,
	    .exit_ns = 1000,
	    .kick_ns = 1000,
	    .compute_ns = 50000,
	    .hold_ns = 5000,
	};
}

/* ---- random numbers and events ---- */

static u64 rnd(struct machine *m, u64 below)
{
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 7;
	m->seed ^= m->seed << 17;
	return (m->seed * 0x2545f4914f6cdd1dull >> 16) % below;
}

/* Half to one and a half of @mean. */
static u64 around(struct machine *m, u64 mean)
{
	return mean / 2 + rnd(m, mean + 1);
}

static bool earlier(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->who < b->who;
}

static void heap_push(struct machine *m, struct event e)
{
	size_t i = m->heap_len++;

	if (m->heap_len > m->heap_size) {
		m->heap_size = m->heap_size ? 2 * m->heap_size : 1024;
		m->heap = realloc(m->heap, m->heap_size * sizeof(*m->heap));
		if (!m->heap)
			exit(1);
	}
	for (; i && earlier(&e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = e;
}

static struct event heap_pop(struct machine *m)
{
	struct event top = m->heap[0], last = m->heap[--m->heap_len];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < m->heap_len) {
		if (child + 1 < m->heap_len && earlier(&m->heap[child + 1], &m->heap[child]))
			child++;
		if (!earlier(&m->heap[child], &last))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = last;
	return top;
}

static void pcpu_event_at(struct machine *m, u32 cpu, u64 time)
{
	if (time == FOREVER || time >= m->pcpus[cpu].event)
		return;
	m->pcpus[cpu].event = time;
	heap_push(m, (struct event){.time = time, .who = cpu});
}

/* ---- who is where ---- */

static struct svcpu *running(struct machine *m, u32 cpu)
{
	struct sched_vcpu *v = m->pcpus[cpu].rq.curr;

	return v ? container_of(v, struct svcpu, sched) : NULL;
}

static bool is_running(const struct svcpu *v)
{
	return v->sched.state == SCHED_RUNNING;
}

static void begin(struct machine *m, u32 cpu)
{
	sched_begin(&m->pcpus[cpu].rq, m->now);
}

static void end(struct machine *m, u32 cpu)
{
	if (m->opt.check)
		sched_check(&m->pcpus[cpu].rq);
	sched_end(&m->pcpus[cpu].rq);
}

/* ---- guests ---- */

static void wake(struct machine *m, struct svcpu *v);
static void set_timer(struct machine *m, u32 cpu);
static void progress(struct machine *m, struct spcpu *p, struct svcpu *v);

/* @v, which runs, is about to change: what it has done so far is booked, its event is made anew by
 * set_timer(). */
static void interrupt(struct machine *m, struct svcpu *v)
{
	struct spcpu *p = &m->pcpus[v->sched.cpu];

	progress(m, p, v);
	p->event = FOREVER;
}

static void compute(struct machine *m, struct svcpu *v, u64 mean)
{
	v->phase = COMPUTE;
	v->spinning = false;
	v->left = around(m, mean);
}

static void spin_for(struct machine *m, struct svcpu *v, u32 whom)
{
	v->phase = SPIN;
	v->spinning = true;
	v->waits_for = whom;
	v->spin_left = m->opt.ple_ns;
	v->wait_since = m->now;
}

/* Is what @v spins for there? */
static bool satisfied(struct machine *m, const struct svcpu *v)
{
	const struct svm *vm = &m->vms[v->vm];

	switch (vm->spec.load) {
	case LOAD_IPI:
		return v->acked;
	case LOAD_LOCK:
		return vm->lock_owner == NOBODY;
	case LOAD_TOKEN:
		return vm->token == v->index;
	default:
		return false;
	}
}

/* The spin is over: @v runs and sees it. */
static void got_it(struct machine *m, struct svcpu *v)
{
	struct svm *vm = &m->vms[v->vm];

	hist_add(&vm->latency, m->now - v->wait_since);
	v->spinning = false;
	v->waits_for = NOBODY;
	if (vm->spec.load == LOAD_IPI) {
		v->ops++;
		compute(m, v, m->opt.compute_ns);
		return;
	}
	if (vm->spec.load == LOAD_LOCK)
		vm->lock_owner = v->index;
	v->phase = HOLD;
	v->left = around(m, m->opt.hold_ns);
}

/* Something changed in @vm: running spinners notice at once, the others when they run. The first
 * in turn after @from takes a lock. */
static void notify(struct machine *m, struct svm *vm, u32 from)
{
	for (u32 i = 1; i <= vm->spec.nr_vcpus; i++) {
		struct svcpu *v = &vm->vcpus[(from + i) % vm->spec.nr_vcpus];

		if (v->phase == SPIN && is_running(v) && !v->irq_left && satisfied(m, v)) {
			interrupt(m, v);
			got_it(m, v);
			set_timer(m, v->sched.cpu);
		}
	}
}

/* An IPI reaches @target: handled first when it runs. */
static void deliver(struct machine *m, struct svcpu *target)
{
	bool runs = is_running(target);

	if (runs)
		interrupt(m, target);
	if (!target->irq) {
		target->irq = true;
		target->irq_left = m->opt.hold_ns;
	}
	if (runs)
		set_timer(m, target->sched.cpu);
	else if (target->sched.state == SCHED_BLOCKED)
		wake(m, target);
}

static void send_ipi(struct machine *m, struct svcpu *v)
{
	struct svm *vm = &m->vms[v->vm];
	u32 to = (v->index + 1 + (u32)rnd(m, max(vm->spec.nr_vcpus - 1, 1u))) % vm->spec.nr_vcpus;

	v->acked = to == v->index; /* alone: nothing to wait for */
	spin_for(m, v, to);
	if (to != v->index)
		deliver(m, &vm->vcpus[to]);
}

/* The handler is through: everybody who waits for @v has his answer. */
static void acknowledge(struct machine *m, struct svcpu *v)
{
	struct svm *vm = &m->vms[v->vm];

	v->irq = false;
	if (vm->spec.load != LOAD_IPI)
		return;
	for (u32 i = 0; i < vm->spec.nr_vcpus; i++) {
		if (vm->vcpus[i].waits_for == v->index)
			vm->vcpus[i].acked = true;
	}
	notify(m, vm, v->index);
}

/* The phase of @v, which runs, is over. */
static void next_phase(struct machine *m, struct svcpu *v)
{
	struct svm *vm = &m->vms[v->vm];
	enum phase phase = v->phase;

	switch (vm->spec.load) {
	case LOAD_BUSY:
		v->ops++;
		compute(m, v, 1000000);
		break;
	case LOAD_HALT:
		v->ops++;
		v->phase = HALTED;
		v->wake_at = m->now + around(m, 2 * m->opt.compute_ns);
		heap_push(m, (struct event){v->wake_at, m->opt.nr_pcpus, v});
		break;
	case LOAD_IPI:
		send_ipi(m, v);
		break;
	case LOAD_LOCK:
		if (phase == HOLD) {
			v->ops++;
			vm->lock_owner = NOBODY;
			compute(m, v, m->opt.compute_ns);
			notify(m, vm, v->index);
		} else {
			spin_for(m, v, vm->lock_owner);
		}
		break;
	default:
		if (phase == HOLD) {
			v->ops++;
			vm->token = (v->index + 1) % vm->spec.nr_vcpus;
			notify(m, vm, v->index);
		}
		spin_for(m, v, vm->token);
		break;
	}
	if (v->phase == SPIN && satisfied(m, v))
		got_it(m, v);
}

/* @v has run up to now since the last look. */
static void progress(struct machine *m, struct spcpu *p, struct svcpu *v)
{
	u64 ran = m->now > p->since ? m->now - p->since : 0, used;

	p->since = max(p->since, m->now);
	used = min(ran, v->irq_left);
	v->irq_left -= used;
	ran -= used;
	if (v->phase == SPIN) {
		v->spin_ns += ran;
		v->spin_left -= min(ran, v->spin_left);
	} else {
		v->left -= min(ran, v->left);
	}
}

/* ---- the hypervisor's edge ---- */

/* Arms the pCPU's next event for what runs there. */
static void set_timer(struct machine *m, u32 cpu)
{
	struct spcpu *p = &m->pcpus[cpu];
	struct svcpu *v = running(m, cpu);
	u64 work;

	if (!v)
		return;
	work = v->irq ? v->irq_left : v->phase == SPIN ? v->spin_left : v->left;
	if (!v->irq && v->phase == SPIN && m->opt.candidate == CANDIDATE_NONE)
		work = FOREVER / 4;
	work += max(p->since, m->now);
	work = min(work, p->kick_at);
	pcpu_event_at(m, cpu, min(work, sched_slice_end(&p->rq)));
}

static void go_idle(struct machine *m, u32 cpu);

/* Picks, and sets up what is to run. */
static void reschedule(struct machine *m, u32 cpu)
{
	struct spcpu *p = &m->pcpus[cpu];
	struct svcpu *before = running(m, cpu), *v;

	p->event = p->kick_at = FOREVER;
	if (sched_balance_due(&p->rq, m->now)) {
		u32 from = sched_balance_source(m->rqs, m->opt.nr_pcpus, cpu, m->now);

		if (from != SCHED_NO_CPU) {
			begin(m, from);
			begin(m, cpu);
			sched_balance_pull(&m->pcpus[from].rq, &p->rq);
			end(m, from);
			end(m, cpu);
		}
	}
	begin(m, cpu);
	sched_pick_next(&p->rq);
	end(m, cpu);
	v = running(m, cpu);
	if (!v) {
		go_idle(m, cpu);
		return;
	}
	bit_clear(m->idle, cpu);
	if (v != before) {
		p->since = m->now + m->opt.switch_ns;
		if (v->phase == HALTED)
			compute(m, v, m->opt.compute_ns);
		v->spin_left = m->opt.ple_ns;
		if (v->phase == SPIN && !v->irq_left && satisfied(m, v))
			got_it(m, v);
	}
	set_timer(m, cpu);
}

static void go_idle(struct machine *m, u32 cpu)
{
	struct spcpu *p = &m->pcpus[cpu];
	u32 from;

	memset(m->tried, 0, (m->opt.nr_pcpus + 63) / 64 * sizeof(*m->tried));
	while ((from = sched_pull_source(m->rqs, m->opt.nr_pcpus, cpu, m->tried)) != SCHED_NO_CPU) {
		struct sched_vcpu *v;

		begin(m, from);
		begin(m, cpu);
		v = sched_pull(&m->pcpus[from].rq, &p->rq);
		end(m, from);
		end(m, cpu);
		if (v) {
			reschedule(m, cpu);
			return;
		}
	}
	bit_set(m->idle, cpu);
	pcpu_event_at(m, cpu, p->rq.balance_next);
}

static void kick(struct machine *m, u32 cpu)
{
	m->pcpus[cpu].kick_at = min(m->pcpus[cpu].kick_at, m->now + m->opt.kick_ns);
	pcpu_event_at(m, cpu, m->pcpus[cpu].kick_at);
}

static void wake(struct machine *m, struct svcpu *v)
{
	u32 old = v->sched.cpu, cpu;
	bool resched;

	cpu = sched_select_cpu(&m->knobs, &v->sched, m->idle, m->online, m->opt.nr_pcpus);
	begin(m, old);
	BUG_ON(!sched_wake_claim(&m->pcpus[old].rq, &v->sched, cpu));
	end(m, old);
	cpu = v->sched.cpu;
	begin(m, cpu);
	resched = sched_wake(&m->pcpus[cpu].rq, &v->sched);
	end(m, cpu);
	if (resched) {
		/* pcpu.rq.slice_end says "now": the kick is on its way, nothing else. */
		kick(m, cpu);
	} else {
		set_timer(m, cpu);
	}
}

static struct svcpu *candidate(struct machine *m, struct svcpu *me)
{
	struct svm *vm = &m->vms[me->vm];

	if (m->opt.candidate == CANDIDATE_EXACT) {
		/* A lock's owner may have changed while this one did not look. */
		if (vm->spec.load == LOAD_LOCK)
			me->waits_for = vm->lock_owner;
		else if (vm->spec.load == LOAD_TOKEN)
			me->waits_for = vm->token;
		if (me->waits_for == NOBODY)
			return NULL;
		return vm->vcpus[me->waits_for].sched.state == SCHED_QUEUED
			   ? &vm->vcpus[me->waits_for]
			   : NULL;
	}
	for (u32 i = 1; i <= vm->spec.nr_vcpus; i++) {
		struct svcpu *v = &vm->vcpus[(me->turn + i) % vm->spec.nr_vcpus];

		if (v != me && v->sched.state == SCHED_QUEUED) {
			me->turn = v->index;
			return v;
		}
	}
	return NULL;
}

static void pause_loop_exit(struct machine *m, u32 cpu, struct svcpu *me)
{
	struct svcpu *target = candidate(m, me);
	u32 there, what;

	me->spin_left = m->opt.ple_ns;
	m->pcpus[cpu].since += m->opt.exit_ns;
	if (!target) {
		set_timer(m, cpu);
		return;
	}
	there = target->sched.cpu;
	begin(m, cpu);
	if (there != cpu)
		begin(m, there);
	what = sched_yield_to(&m->pcpus[cpu].rq, &m->pcpus[there].rq, &me->sched, &target->sched);
	if (there != cpu)
		end(m, there);
	end(m, cpu);
	if (what & SCHED_KICK_REMOTE)
		kick(m, there);
	if (what & SCHED_DID_LOCAL)
		reschedule(m, cpu);
	else
		set_timer(m, cpu);
}

/* Something is due on @cpu: the running vCPU's work, its slice, or a kick. */
static void pcpu_event(struct machine *m, u32 cpu)
{
	struct spcpu *p = &m->pcpus[cpu];
	struct svcpu *v = running(m, cpu);

	p->event = FOREVER;
	if (!v) {
		reschedule(m, cpu);
		return;
	}
	progress(m, p, v);
	if (v->irq && !v->irq_left && p->since <= m->now) {
		acknowledge(m, v);
		if (v->phase == SPIN && satisfied(m, v))
			got_it(m, v);
	}
	if (!v->irq && p->since <= m->now) {
		if (v->phase != SPIN && !v->left)
			next_phase(m, v);
		if (v->phase == HALTED) {
			begin(m, cpu);
			/* The edge's last look: an interrupt that came before the lock. */
			if (!v->irq)
				sched_block(&p->rq);
			end(m, cpu);
			reschedule(m, cpu);
			return;
		}
		if (v->phase == SPIN && !v->spin_left && m->opt.candidate != CANDIDATE_NONE) {
			if (m->now >= sched_slice_end(&p->rq))
				v->spin_left = m->opt.ple_ns;
			else {
				pause_loop_exit(m, cpu, v);
				return;
			}
		}
	}
	reschedule(m, cpu);
}

static void timer_event(struct machine *m, struct svcpu *v)
{
	if (v->phase == HALTED && v->sched.state == SCHED_BLOCKED && v->wake_at <= m->now)
		wake(m, v);
}

/* ---- the whole ---- */

struct machine *machine_new(const struct machine_options *opt, const struct sched_knobs *knobs,
			    const struct vm_spec *vms, u32 nr_vms)
{
	struct machine *m = alloc(1, sizeof(*m));
	u32 words = (opt->nr_pcpus + 63) / 64, cpu = 0;

	m->opt = *opt;
	m->knobs = *knobs;
	m->seed = opt->seed * 0x9e3779b97f4a7c15ull + 1;
	m->now = m->start = 1000000000;
	m->pcpus = alloc(opt->nr_pcpus, sizeof(*m->pcpus));
	m->rqs = alloc(opt->nr_pcpus, sizeof(*m->rqs));
	m->idle = alloc(words, sizeof(u64));
	m->online = alloc(words, sizeof(u64));
	m->tried = alloc(words, sizeof(u64));
	for (u32 i = 0; i < opt->nr_pcpus; i++) {
		m->rqs[i] = &m->pcpus[i].rq;
		m->pcpus[i].event = m->pcpus[i].kick_at = FOREVER;
		sched_rq_init(m->rqs[i], i, &m->knobs, m->now);
		bit_set(m->idle, i);
		bit_set(m->online, i);
	}
	m->nr_vms = nr_vms;
	m->vms = alloc(nr_vms, sizeof(*m->vms));
	for (u32 i = 0; i < nr_vms; i++) {
		struct svm *vm = &m->vms[i];
		bool levels = m->knobs.sched_mode == SCHED_MODE_GROUP;

		vm->spec = vms[i];
		vm->lock_owner = NOBODY;
		vm->vcpus = alloc(vms[i].nr_vcpus, sizeof(*vm->vcpus));
		sched_group_init(&vm->group, i, vms[i].weight,
				 levels ? alloc(opt->nr_pcpus, sizeof(struct sched_group_rq))
					: NULL,
				 opt->nr_pcpus);
		for (u32 j = 0; j < vms[i].nr_vcpus; j++) {
			struct svcpu *v = &vm->vcpus[j];

			v->vm = i;
			v->index = v->turn = j;
			v->waits_for = NOBODY;
			v->phase = HALTED;
			sched_vcpu_init(&v->sched, &vm->group, j, 1024, vms[i].slice_ns,
					cpu++ % opt->nr_pcpus, NULL);
			wake(m, v);
		}
	}
	return m;
}

void machine_run(struct machine *m, u64 ns)
{
	u64 until = m->now + ns;

	while (m->heap_len && m->heap[0].time <= until) {
		struct event e = heap_pop(m);

		m->now = e.time;
		if (e.vcpu) {
			timer_event(m, e.vcpu);
		} else if (m->pcpus[e.who].event == e.time) {
			pcpu_event(m, e.who);
		} else {
			continue; /* an event that was moved */
		}
		m->nr_events++;
	}
	m->now = until;
	for (u32 i = 0; i < m->opt.nr_pcpus; i++) {
		struct svcpu *v = running(m, i);

		begin(m, i);
		sched_update_curr(&m->pcpus[i].rq);
		end(m, i);
		if (v)
			progress(m, &m->pcpus[i], v);
	}
}

void machine_free(struct machine *m)
{
	for (u32 i = 0; i < m->nr_vms; i++) {
		free(m->vms[i].vcpus);
		free(m->vms[i].group.rqs);
	}
	free(m->pcpus);
	free(m->rqs);
	free(m->idle);
	free(m->online);
	free(m->tried);
	free(m->vms);
	free(m->heap);
	free(m);
}

u64 vm_run_ns(const struct svm *vm)
{
	u64 sum = 0;

	for (u32 i = 0; i < vm->spec.nr_vcpus; i++)
		sum += vm->vcpus[i].sched.stats.run_ns;
	return sum;
}

u64 vm_ops(const struct svm *vm)
{
	u64 sum = 0;

	for (u32 i = 0; i < vm->spec.nr_vcpus; i++)
		sum += vm->vcpus[i].ops;
	return sum;
}

u64 vm_spin_ns(const struct svm *vm)
{
	u64 sum = 0;

	for (u32 i = 0; i < vm->spec.nr_vcpus; i++)
		sum += vm->vcpus[i].spin_ns;
	return sum;
}

u64 vm_fair_err_max(const struct svm *vm)
{
	u64 most = 0;

	for (u32 i = 0; i < vm->spec.nr_vcpus; i++)
		most = max(most, vm->vcpus[i].sched.fair.err_max_ns);
	return most;
}

struct sched_stats machine_stats(const struct machine *m)
{
	struct sched_stats sum = {0};

	for (u32 i = 0; i < m->opt.nr_pcpus; i++) {
#define X(field, text) sum.field += m->pcpus[i].rq.stats.field;
		SCHED_COUNTERS(X)
#undef X
	}
	return sum;
}
