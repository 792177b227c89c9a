/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What directed yield costs in instructions, by the number of vCPUs of the VM: the search for a
 * candidate in some situations, and the hooks on the way of a switch. Run by tests/sim/bench-spin
 * under callgrind: each operation has one function here that is not inlined, whose inclusive count
 * is divided by the number of calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hv/spin/spin.h"

#define CALLS 2000
#define OP __attribute__((noinline, noclone, no_icf))
#define V 0x40

static struct spin_knobs knobs;
static struct ipi_track_knobs track_knobs = {.window = 50000000, .enabled = true};
static struct ipi_track_vm track_vm = {.knobs = &track_knobs};
static struct spin_vm vm;
static struct spin_vcpu vcpu[CFG_MAX_VCPUS], *vcpus[CFG_MAX_VCPUS];
static struct ipi_track track[CFG_MAX_VCPUS], *tracks[CFG_MAX_VCPUS];
static struct ipi_counters counters[CFG_MAX_VCPUS];
static u64 now = 1000000;

/* From the exit to the chosen target, without the yield itself. */
static OP u32 op_search(struct spin_vcpu *me)
{
	struct spin_walk w;
	u32 target = UINT32_MAX;

	if (!spin_start(&w, me, true, 0, now))
		return target;
	if (spin_next(&w)) {
		target = w.target->index;
		spin_tried(&w, true, false);
	}
	spin_stop(&w, true);
	return target;
}

static OP void op_in(struct spin_vcpu *v)
{
	spin_sched_in(v, now);
}

static OP void op_out(struct spin_vcpu *v)
{
	spin_sched_out(v, true);
}

static OP void op_woken(struct spin_vcpu *v)
{
	spin_woken(v);
}

/* At a running vCPU, the usual case. */
static OP void op_interrupt(struct spin_vcpu *v)
{
	spin_interrupt(v);
}

static OP bool op_pause(struct spin_vcpu *v)
{
	return spin_ple_pause(&v->ple, &knobs, now);
}

static void preempt(u32 id, bool in_kernel)
{
	if (vm.how[id] == SPIN_GONE)
		spin_sched_out(&vcpu[id], in_kernel);
}

/* One round of @what: the vCPUs other than 0 get into the states of which it is about. */
static bool round_of(const char *what, u32 n, u32 round)
{
	u32 good = 1 + (round * 2654435761u >> 8) % (n - 1);

	if (!strcmp(what, "hooks")) {
		now += 500;
		op_in(&vcpu[good]);
		op_interrupt(&vcpu[good]);
		op_pause(&vcpu[good]);
		if (round % 2)
			op_out(&vcpu[good]);
		else
			op_woken(&vcpu[good]);
		return true;
	}
	/* The others wait, in user mode where the good one must be found among the bad. */
	for (u32 i = 1; i < n; i++)
		preempt(i, !strcmp(what, "receiver") || !strcmp(what, "oldest"));
	if (!strcmp(what, "receiver")) {
		ipi_track_sent(&track[0], &track[good], V, now);
	} else if (!strcmp(what, "pending")) {
		spin_interrupt(&vcpu[good]);
	} else if (!strcmp(what, "kernel")) {
		spin_sched_in(&vcpu[good], now);
		spin_sched_out(&vcpu[good], true);
	} else if (!strcmp(what, "none")) {
		for (u32 i = 1; i < n; i++)
			spin_sched_in(&vcpu[i], now);
	} else if (strcmp(what, "oldest")) {
		return false;
	}
	op_search(&vcpu[0]);
	if (!strcmp(what, "receiver")) {
		ipi_track_accept(&track[good], V, now);
		ipi_track_eoi(&track[good], V, now);
	}
	if (strcmp(what, "none"))
		spin_sched_in(&vcpu[good], now);
	spin_sched_in(&vcpu[0], now);
	return true;
}

int main(int argc, char **argv)
{
	u32 n = argc > 2 ? (u32)atoi(argv[2]) : 0;

	spin_knobs_init(&knobs);
	if (n < 2 || n > CFG_MAX_VCPUS || argc < 4 ||
	    spin_knob_set(&knobs, "candidate_policy", argv[3])) {
		fprintf(stderr, "usage: spin-bench receiver|pending|kernel|oldest|none|hooks VCPUS "
				"POLICY\n");
		return 2;
	}
	knobs.dy_tries = SPIN_TRIES_LOG2;
	track_vm.peer = tracks;
	track_vm.nr_peers = n;
	spin_vm_init(&vm, &knobs, vcpus, n);
	for (u32 i = 0; i < n; i++) {
		vcpus[i] = &vcpu[i];
		tracks[i] = &track[i];
		ipi_track_setup(&track[i], &track_vm, i, &counters[i]);
		spin_vcpu_init(&vcpu[i], &vm, i, &track[i]);
	}
	for (u32 i = 0; i < CALLS; i++) {
		if (!round_of(argv[1], n, i)) {
			fprintf(stderr, "spin-bench: no situation '%s'\n", argv[1]);
			return 2;
		}
	}
	return 0;
}
