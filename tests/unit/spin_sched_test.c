/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Candidate policies and yield policies together, on real run queues with real IPI trackers: the
 * glue of the hypervisor's edge in small. One pCPU; A sends B an IPI and spins until B has
 * acknowledged it, while C and D compute.
 */
// sources: hv/spin/spin.c hv/spin/policy.c hv/spin/ple.c hv/spin/knobs.c hv/apic/ipi_track.c
// sources: hv/sched/rq.c hv/sched/pick.c hv/sched/core.c hv/sched/account.c hv/sched/yield.c
// sources: hv/sched/balance.c hv/sched/knobs.c hv/lib/fmt.c hv/lib/knob.c
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hv/sched/sched.h"
#include "hv/spin/spin.h"

enum { A, B, C, D, N };
#define V 0x40
#define SPIN_NS 4096u /* time until a spin is noticed */
#define ACK_NS 2000u  /* time that B needs to acknowledge */

static struct guest {
	struct sched_vcpu s;
	struct spin_vcpu spin;
	struct ipi_track track;
	struct ipi_counters count;
	bool kernel;
} guest[N];

static struct sched_knobs sched_knobs;
static struct spin_knobs spin_knobs;
static struct ipi_track_knobs track_knobs = {.window = 50000000, .enabled = true};
static struct ipi_track *tracks[N];
static struct ipi_track_vm track_vm = {.knobs = &track_knobs, .peer = tracks, .nr_peers = N};
static struct spin_vm spin_vm;
static struct spin_vcpu *spins[N];
static struct sched_group group;
static struct run_queue rq;
static u64 now;

static struct guest *guest_of(struct sched_vcpu *s)
{
	return container_of(s, struct guest, s);
}

/* What the edge does around sched_pick_next(), in its lock section. */
static void pick(void)
{
	struct sched_vcpu *prev = rq.curr, *expected = rq.yield_expect, *next;

	next = sched_pick_next(&rq);
	if (expected)
		spin_outcome(&guest_of(expected)->spin, next == expected);
	if (prev && prev != next)
		spin_sched_out(&guest_of(prev)->spin, guest_of(prev)->kernel);
	if (next)
		spin_sched_in(&guest_of(next)->spin, now);
}

static void schedule(void)
{
	sched_begin(&rq, now);
	pick();
	sched_end(&rq);
}

/* The running vCPU halts. */
static void halt(void)
{
	sched_begin(&rq, now);
	sched_block(&rq);
	pick();
	sched_end(&rq);
}

/* An interrupt for @g: true if it preempts. */
static bool interrupt(struct guest *g)
{
	bool resched = false;

	sched_begin(&rq, now);
	if (sched_wake_claim(&rq, &g->s, 0)) {
		spin_woken(&g->spin);
		resched = sched_wake(&rq, &g->s);
	}
	sched_end(&rq);
	spin_interrupt(&g->spin);
	return resched;
}

/* A PAUSE exit of the running vCPU. */
static void on_spin(struct guest *me)
{
	struct spin_walk w;
	u32 result = 0;

	sched_begin(&rq, now);
	if (spin_start(&w, &me->spin, me->kernel, SPIN_NS, now)) {
		while (spin_next(&w)) {
			result = sched_yield_to(&rq, &rq, &me->s,
						&container_of(w.target, struct guest, spin)->s);
			spin_tried(&w, result, false);
		}
		spin_stop(&w, result & SCHED_DID_LOCAL);
		if (result & SCHED_DID_LOCAL)
			pick();
	}
	sched_end(&rq);
}

static void set_up(enum spin_policy_id candidate, u32 yield)
{
	memset(guest, 0, sizeof(guest));
	now = 1000000;
	sched_knobs_init(&sched_knobs, 1);
	sched_knobs.yield_policy = yield;
	spin_knobs_init(&spin_knobs);
	spin_knobs.candidate_policy = candidate;
	sched_rq_init(&rq, 0, &sched_knobs, now);
	sched_group_init(&group, 0, 1024, NULL, 0);
	spin_vm_init(&spin_vm, &spin_knobs, spins, N);
	for (u32 i = 0; i < N; i++) {
		struct guest *g = &guest[i];

		spins[i] = &g->spin;
		tracks[i] = &g->track;
		g->kernel =
		    true; /* all, as in a tiny guest: nothing tells B from C and D but the IPI */
		sched_vcpu_init(&g->s, &group, i, 1024, 0, 0, NULL);
		ipi_track_setup(&g->track, &track_vm, i, &g->count);
		spin_vcpu_init(&g->spin, &spin_vm, i, &g->track);
		interrupt(g);
	}
	schedule();
}

/* Runs what runs until @who does, to the ends of slices. */
static void until_runs(struct guest *who)
{
	for (u32 i = 0; rq.curr != &who->s; i++) {
		assert_true(i < 1000);
		now = rq.slice_end == SCHED_NEVER ? now + 1000000 : max(now, rq.slice_end);
		schedule();
	}
}

struct result {
	u32 spins, served_next; /* spins, and those after which B was the next to run */
	u64 latency_ns;		/* mean, from the IPI to its acknowledgement */
};

static void acknowledge(u64 sent, struct result *r)
{
	now += ACK_NS;
	ipi_track_accept(&guest[B].track, V, now);
	ipi_track_eoi(&guest[B].track, V, now);
	r->latency_ns += now - sent;
}

/* @b_halts: B halts after each answer, and is woken by the next IPI; else it computes on. */
static struct result play(bool b_halts, u32 rounds)
{
	struct result r = {0};

	for (u32 i = 0; i < rounds; i++) {
		u64 sent;

		until_runs(&guest[A]);
		now += 1000;
		sent = now;
		ipi_track_sent(&guest[A].track, &guest[B].track, V, now);
		if (interrupt(&guest[B]))
			schedule();
		for (u32 n = 0; rq.curr != &guest[B].s; n++) {
			assert_true(n < 100000);
			if (rq.curr == &guest[A].s) {
				now += SPIN_NS;
				r.spins++;
				on_spin(&guest[A]);
				r.served_next += rq.curr == &guest[B].s;
			} else {
				now = max(now, rq.slice_end);
				schedule();
			}
		}
		acknowledge(sent, &r);
		if (b_halts)
			halt();
		sched_check(&rq);
	}
	r.latency_ns /= rounds;
	return r;
}

static const char *yield_name(u32 policy)
{
	static char text[16];
	struct sched_knobs k = {.yield_policy = policy};

	sched_knob_get(&k, "yield_policy", text, sizeof(text));
	return text;
}

static void print(const char *candidate, u32 yield, struct result r)
{
	print_message("    %-6s %-9s %5u spins, B next after %5.1f %%, IPI to EOI %8.1f us\n",
		      candidate, yield_name(yield), r.spins,
		      r.spins ? 100.0 * r.served_next / r.spins : 0, (double)r.latency_ns / 1000);
}

/* The policies that make their target eligible; forfeit and deboost do not. */
static bool makes_eligible(u32 yield)
{
	return yield == SCHED_YIELD_CREDIT || yield == SCHED_YIELD_AUTO;
}

static void who_knows_the_receiver_serves_it_next(void **state)
{
	for (u32 halts = 0; halts < 2; halts++) {
		print_message("  B %s\n", halts ? "halts between IPIs" : "computes between IPIs");
		for (u32 c = 0; c < SPIN_POLICIES; c++) {
			for (u32 y = 0; y < SCHED_YIELD_POLICIES; y++) {
				const struct spin_stats *s = &guest[A].spin.stats;
				struct result r;

				set_up(c, y);
				r = play(halts, 300);
				print(spin_policies[c].name, y, r);
				/* The counters say the same as the test saw. */
				assert_int_equal(s->spin_searches, r.spins);
				if (c == SPIN_POLICY_KVM)
					continue;
				assert_int_equal(s->dy_receiver, r.spins);
				assert_int_equal(s->dy_receiver_hit, r.served_next);
				assert_int_equal(s->directed_yield_successful, r.served_next);
				if (makes_eligible(y))
					assert_int_equal(r.served_next, r.spins);
			}
		}
	}
}

static void who_does_not_know_it_often_serves_another(void **state)
{
	struct result kvm, exact;

	set_up(SPIN_POLICY_EXACT, SCHED_YIELD_CREDIT);
	exact = play(false, 300);
	set_up(SPIN_POLICY_KVM, SCHED_YIELD_CREDIT);
	kvm = play(false, 300);
	assert_true(kvm.served_next < kvm.spins);
	assert_int_equal(guest[A].spin.stats.dy_receiver, 0);
	assert_true(kvm.latency_ns > exact.latency_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(who_knows_the_receiver_serves_it_next),
	    cmocka_unit_test(who_does_not_know_it_often_serves_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
