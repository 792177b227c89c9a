/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The candidate search against a naive model, under random histories of a VM's vCPUs; and the
 * shared state under threads. SPIN_TEST_STEPS makes it longer.
 */
// sources: hv/spin/spin.c hv/spin/policy.c hv/spin/ple.c hv/spin/knobs.c hv/apic/ipi_track.c
// sources: hv/lib/fmt.c hv/lib/knob.c
// libs: -lpthread
#include <pthread.h>
#include <sched.h>

#include "tests/unit/spin_fixture.h"

static u64 seed;

static u32 rnd(u32 below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (u32)((seed >> 16) % below);
}

static u32 steps(u32 usual)
{
	const char *text = getenv("SPIN_TEST_STEPS");

	return text ? (u32)atoi(text) : usual;
}

/* ---- the model: no bitmaps, no rings ---- */

enum what { BLOCKED, RUNNING, READY };

static struct model {
	enum what what;
	u32 how;
	u64 since;    /* number of the event with which it began to wait */
	bool pending; /* while READY */
	bool spinning;
	bool eligible;
	u32 waits_for[CFG_MAX_VCPUS]; /* receivers, in the order of sending */
	u64 sent_at[CFG_MAX_VCPUS];
	u32 nr_waits;
	int hint;
	u64 hint_at;
} model[CFG_MAX_VCPUS];

static u64 events;
static u32 last_boosted;

static u32 kind_of_fifo(u32 how)
{
	return how == SPIN_WOKEN || how == SPIN_KERNEL ? 0
	       : how == SPIN_SPINNING		       ? SPIN_NO_FIFO
						       : 1;
}

static void model_enter(u32 i, u32 how)
{
	model[i].what = READY;
	model[i].how = how;
	model[i].since = ++events;
	model[i].pending = false;
}

/* A list of "id:class" in the making. */
struct list {
	u32 id[512], class[512], n;
};

static void add(struct list *l, u32 id, u32 class)
{
	for (u32 i = 0; i < l->n; i++) {
		if (l->id[i] == id)
			return;
	}
	l->id[l->n] = id;
	l->class[l->n++] = class;
}

/* All of one FIFO, oldest first. */
static void add_fifo(struct list *l, u32 fifo, u32 class)
{
	u64 after = 0;

	for (;;) {
		int best = -1;

		for (u32 i = 0; i < vm.nr; i++) {
			if (model[i].what == READY && kind_of_fifo(model[i].how) == fifo &&
			    model[i].since > after &&
			    (best < 0 || model[i].since < model[best].since))
				best = (int)i;
		}
		if (best < 0)
			return;
		after = model[best].since;
		add(l, (u32)best,
		    !fifo && model[best].how == SPIN_WOKEN ? SPIN_CLASS_WOKEN : class);
	}
}

static void expect_exact(struct list *l, u32 me, bool in_kernel)
{
	struct model *m = &model[me];

	for (u32 i = 0; i < m->nr_waits; i++) {
		if (now - m->sent_at[i] <= WINDOW && model[m->waits_for[i]].what == READY)
			add(l, m->waits_for[i], SPIN_CLASS_RECEIVER);
	}
	if (m->hint >= 0 && now - m->hint_at <= WINDOW && model[m->hint].what == READY)
		add(l, (u32)m->hint, SPIN_CLASS_HINT);
	for (u32 n = 1; n <= vm.nr; n++) {
		u32 i = (last_boosted + n) % vm.nr;

		if (model[i].what == READY && model[i].pending)
			add(l, i, SPIN_CLASS_PENDING);
	}
	add_fifo(l, 0, SPIN_CLASS_KERNEL);
	if (!in_kernel)
		add_fifo(l, 1, SPIN_CLASS_PREEMPTED);
	for (u32 n = 1; n <= vm.nr; n++) {
		u32 i = (me + n) % vm.nr;

		if (model[i].what == READY && model[i].how == SPIN_SPINNING)
			add(l, i, SPIN_CLASS_SPINNER);
	}
	if (in_kernel && knobs.enable_relaxed_boost)
		add_fifo(l, 1, SPIN_CLASS_RELAXED);
}

/* As KVM's loop, with its side effect; @limit tries, of which all fail but perhaps the last. */
static void expect_kvm(struct list *l, bool in_kernel, u32 limit)
{
	for (u32 n = 1; n <= vm.nr && l->n < limit; n++) {
		u32 i = (last_boosted + n) % vm.nr;
		struct model *m = &model[i];
		bool user = m->how == SPIN_USER || m->how == SPIN_SPINNING_USER;

		if (m->what != READY || (user && in_kernel && !m->pending))
			continue;
		if (m->how == SPIN_SPINNING || m->how == SPIN_SPINNING_USER) {
			m->eligible = !m->eligible;
			if (m->eligible)
				continue;
		}
		add(l, i,
		    m->pending						      ? SPIN_CLASS_PENDING
		    : m->how == SPIN_SPINNING || m->how == SPIN_SPINNING_USER ? SPIN_CLASS_SPINNER
		    : m->how == SPIN_WOKEN				      ? SPIN_CLASS_WOKEN
		    : user						      ? SPIN_CLASS_PREEMPTED
									      : SPIN_CLASS_KERNEL);
	}
}

/* ---- a random history ---- */

static void step_run(u32 i)
{
	run(i);
	if (model[i].spinning)
		model[i].eligible = false;
	model[i].spinning = false;
	model[i].what = RUNNING;
}

static void step_leave(u32 i, bool in_kernel)
{
	u32 how = in_kernel ? SPIN_KERNEL : SPIN_USER;

	spin_sched_out(&vcpu[i], in_kernel);
	model_enter(i, model[i].spinning ? how + 2 : how);
}

/* One IPI at a time from each sender to each receiver; vectors differ by sender. */
static void step_ipi(u32 from, u32 to)
{
	struct model *m = &model[from];

	if (from == to)
		return;
	for (u32 i = 0; i < m->nr_waits; i++) {
		if (m->waits_for[i] == to)
			return;
	}
	if (m->nr_waits == IPI_TRACK_SLOTS - 1)
		return;
	ipi(from, to, (u8)(16 + from % 240));
	m->waits_for[m->nr_waits] = to;
	m->sent_at[m->nr_waits++] = now;
	if (model[to].what == READY)
		model[to].pending = true;
}

static void step_eoi(u32 to, u32 from)
{
	struct model *m = &model[from];

	for (u32 i = 0; i < m->nr_waits; i++) {
		if (m->waits_for[i] != to)
			continue;
		ipi_track_accept(&track[to], (u8)(16 + from % 240), now);
		ipi_track_eoi(&track[to], (u8)(16 + from % 240), now);
		m->nr_waits--;
		memmove(&m->waits_for[i], &m->waits_for[i + 1], (m->nr_waits - i) * sizeof(u32));
		memmove(&m->sent_at[i], &m->sent_at[i + 1], (m->nr_waits - i) * sizeof(u64));
		return;
	}
}

static void forget_stale(u32 me)
{
	struct model *m = &model[me];
	u32 kept = 0;

	for (u32 i = 0; i < m->nr_waits; i++) {
		if (now - m->sent_at[i] > WINDOW)
			continue;
		m->waits_for[kept] = m->waits_for[i];
		m->sent_at[kept++] = m->sent_at[i];
	}
	m->nr_waits = kept;
}

static void step_spin(u32 me)
{
	bool in_kernel = rnd(4), yields = rnd(2);
	struct list want = {.n = 0};
	struct spin_walk w;
	u32 n = 0, limit;

	knobs.enable_relaxed_boost = rnd(2);
	knobs.dy_tries = rnd(3);
	if (!spin_start(&w, &vcpu[me], in_kernel, 0, now)) {
		for (u32 i = 0; i < vm.nr; i++)
			assert_int_not_equal(model[i].what, READY);
		return;
	}
	limit = w.tries;
	if (knobs.candidate_policy == SPIN_POLICY_EXACT)
		expect_exact(&want, me, in_kernel);
	else
		expect_kvm(&want, in_kernel, yields ? 1 : limit);
	model[me].spinning = true;
	while (spin_next(&w)) {
		assert_true(n < want.n);
		assert_int_equal(w.target->index, want.id[n]);
		assert_int_equal(w.class, want.class[n]);
		n++;
		spin_tried(&w, yields, false);
	}
	assert_int_equal(n, min(want.n, yields ? 1 : limit));
	spin_stop(&w, w.given);
	if (model[me].hint >= 0 && (now - model[me].hint_at > WINDOW ||
				    (yields && n && (u32)model[me].hint == want.id[0])))
		model[me].hint = -1;
	if (!w.given) {
		model[me].spinning = model[me].eligible = false;
		return;
	}
	last_boosted = want.id[0];
	step_leave(me, in_kernel);
	step_run(want.id[0]);
}

static void check_maps(void)
{
	u32 in_fifo = 0, waiting = 0;

	for (u32 i = 0; i < CFG_MAX_VCPUS; i++) {
		bool is = i < vm.nr && model[i].what == READY;

		assert_int_equal(bit_test(vm.ready, i), is);
		assert_int_equal(bit_test(vm.spinning, i), is && model[i].how == SPIN_SPINNING);
		assert_int_equal(vm.how[i], is ? model[i].how : SPIN_GONE);
		if (!is)
			continue;
		assert_int_equal(bit_test(vm.pending, i), model[i].pending);
		if (vm.how[i] == SPIN_SPINNING) {
			assert_null(vcpu[i].live);
		} else {
			const struct spin_fifo *f = &vm.fifo[kind_of_fifo(vm.how[i])];

			waiting++;
			assert_true(bit_test(f->live, vcpu[i].slot));
			assert_int_equal(f->id[vcpu[i].slot], i);
		}
	}
	for (u32 f = 0; f < SPIN_NR_FIFOS; f++) {
		for (u32 slot = 0; slot < SPIN_FIFO_SLOTS; slot++)
			in_fifo += bit_test(vm.fifo[f].live, slot);
	}
	assert_int_equal(in_fifo, waiting);
}

static void history(u32 n, enum spin_policy_id policy, u32 nr_steps)
{
	vm_of(n, policy);
	memset(model, 0, sizeof(model));
	events = 0;
	last_boosted = n - 1;
	for (u32 i = 0; i < n; i++)
		model[i].hint = -1;
	for (u32 s = 0; s < nr_steps; s++) {
		u32 i = rnd(n);
		struct model *m = &model[i];

		now += rnd(300);
		/* Order is only promised for so many events. */
		for (u32 k = 0; k < n; k++) {
			if (model[k].what == READY && events - model[k].since > 2 * n + 40)
				step_run(k);
		}
		switch (rnd(10)) {
		case 0:
		case 1:
			if (m->what == RUNNING)
				step_leave(i, rnd(2));
			else if (m->what == READY && !rnd(3))
				step_run(i);
			break;
		case 2:
			if (m->what == READY)
				step_run(i);
			break;
		case 3:
			if (m->what == BLOCKED) {
				wake(i);
				model_enter(i, SPIN_WOKEN);
			} else if (m->what == RUNNING && !rnd(3)) {
				m->what = BLOCKED;
			}
			break;
		case 4:
			step_ipi(i, rnd(n));
			break;
		case 5:
			step_eoi(i, rnd(n));
			break;
		case 6:
			spin_interrupt(&vcpu[i]);
			m->pending |= m->what == READY;
			break;
		case 7:
			if (m->what == RUNNING && n > 1) {
				m->hint = (int)rnd(n);
				m->hint_at = now;
				if ((u32)m->hint == i)
					m->hint = (int)((i + 1) % n);
				spin_hint(&vcpu[i], (u32)m->hint, now);
			}
			break;
		case 8:
			if (m->what == READY && !rnd(8)) {
				spin_removed(&vcpu[i]);
				spin_reset(&vcpu[i]);
				m->what = BLOCKED;
				m->hint = -1;
				m->spinning = m->eligible = false;
			}
			break;
		default:
			if (m->what == RUNNING) {
				forget_stale(i);
				step_spin(i);
			}
		}
		if (s % 64 == 0)
			check_maps();
	}
	check_maps();
}

static void searches_agree_with_the_model(void **state)
{
	static const u32 sizes[] = {1, 2, 3, 8, 63, 64, 65, 200, 256};

	for (u32 round = 0; round < 3; round++) {
		for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
			seed = 88172645463325252ull + round * 977 + i;
			history(sizes[i], SPIN_POLICY_EXACT, steps(6000));
			history(sizes[i], SPIN_POLICY_KVM, steps(6000));
		}
	}
}

/* ---- threads ---- */

#define THREADS 4
#define NEVER 7u  /* this one is blocked for ever */
#define ALWAYS 9u /* this one waits for ever */

static bool stop;

/* The owner of every THREADS-th vCPU: switches, wakes, preempts, and lets them spin. */
static void *owner(void *arg)
{
	u32 me = (u32)(uintptr_t)arg;
	u64 x = 0x9e3779b97f4a7c15ull * (me + 1);
	bool running[CFG_MAX_VCPUS] = {0}, ready[CFG_MAX_VCPUS] = {0};
	struct spin_walk w;

	for (u32 s = 0; s < steps(60000); s++) {
		u32 i;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		i = (u32)(x >> 20) % (vm.nr / THREADS) * THREADS + me;
		spin_interrupt(&vcpu[(u32)(x >> 40) % vm.nr]);
		if (i == NEVER || i == ALWAYS)
			continue;
		if (running[i]) {
			assert_true(spin_start(&w, &vcpu[i], x & 1, 0, now));
			assert_true(spin_next(&w)); /* there is always one */
			assert_int_not_equal(w.target->index, NEVER);
			assert_int_not_equal(w.target->index, i);
			spin_tried(&w, false, false);
			spin_stop(&w, x & 2);
			if (x & 4)
				spin_sched_out(&vcpu[i], x & 8);
			running[i] = false;
			ready[i] = x & 4;
		} else if (ready[i]) {
			spin_sched_in(&vcpu[i], now);
			ready[i] = false;
			running[i] = true;
		} else {
			spin_woken(&vcpu[i]);
			ready[i] = true;
		}
	}
	for (u32 i = me; i < vm.nr; i += THREADS) {
		if (ready[i])
			spin_sched_in(&vcpu[i], now);
	}
	return NULL;
}

static void the_state_is_whole_after_threads_changed_it(void **state)
{
	pthread_t thread[THREADS];
	struct spin_walk w;

	for (enum spin_policy_id policy = 0; policy < SPIN_POLICIES; policy++) {
		vm_of(128, policy);
		wake(ALWAYS);
		for (u32 i = 0; i < THREADS; i++)
			assert_int_equal(
			    pthread_create(&thread[i], NULL, owner, (void *)(uintptr_t)i), 0);
		for (u32 i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		for (u32 word = 0; word < SPIN_MAP_WORDS; word++)
			assert_int_equal(vm.ready[word] | vm.spinning[word],
					 word ? 0 : BIT(ALWAYS));
		for (u32 f = 0; f < SPIN_NR_FIFOS; f++) {
			for (u32 slot = 0; slot < SPIN_FIFO_SLOTS; slot++)
				assert_int_equal(bit_test(vm.fifo[f].live, slot),
						 !f && slot == vcpu[ALWAYS].slot);
		}
		assert_true(spin_start(&w, &vcpu[0], true, 0, now));
		assert_true(spin_next(&w));
		assert_int_equal(w.target->index, ALWAYS);
		spin_stop(&w, false);
	}
}

/*
 * Somebody makes an interrupt pending while its target leaves the pCPU: the sender sees that it
 * waits, or the pCPU sees the interrupt. Never neither.
 */
static u32 interrupt, turn;

static void *sender(void *arg)
{
	for (u32 round = 1; !READ_ONCE(stop); round++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != 2 * round - 1) {
			if (READ_ONCE(stop))
				return NULL;
		}
		__atomic_store_n(&interrupt, 1, __ATOMIC_SEQ_CST);
		spin_interrupt(&vcpu[1]);
		__atomic_store_n(&turn, 2 * round, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void no_interrupt_is_overlooked(void **state)
{
	pthread_t thread;

	vm_of(2, SPIN_POLICY_EXACT);
	stop = false;
	turn = 0;
	assert_int_equal(pthread_create(&thread, NULL, sender, NULL), 0);
	for (u32 round = 1; round <= steps(2000); round++) {
		run(1);
		__atomic_store_n(&interrupt, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&turn, 2 * round - 1, __ATOMIC_RELEASE);
		for (volatile u32 i = 0; i < round % 97; i++)
			;
		preempt_kernel(1);
		if (__atomic_load_n(&interrupt, __ATOMIC_SEQ_CST))
			spin_interrupt(&vcpu[1]);
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != 2 * round)
			sched_yield();
		assert_true(bit_test(vm.pending, 1));
	}
	WRITE_ONCE(stop, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(searches_agree_with_the_model),
	    cmocka_unit_test(the_state_is_whole_after_threads_changed_it),
	    cmocka_unit_test(no_interrupt_is_overlooked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
