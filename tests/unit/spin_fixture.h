/* SPDX-License-Identifier: BSD-2-Clause */
/* A VM of vCPUs whose run states a test scripts, with real IPI trackers: for the tests of hv/spin.
 */
#ifndef VLAG_UNIT_SPIN_FIXTURE_H
#define VLAG_UNIT_SPIN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hv/spin/spin.h"

#define WINDOW 50000u /* ticks in which an IPI is not stale */

static struct spin_knobs knobs;
static struct ipi_track_knobs track_knobs = {.window = WINDOW, .enabled = true};
static struct ipi_track_vm track_vm = {.knobs = &track_knobs};
static struct spin_vm vm;
static struct spin_vcpu vcpu[CFG_MAX_VCPUS];
static struct spin_vcpu *vcpus[CFG_MAX_VCPUS];
static struct ipi_track track[CFG_MAX_VCPUS];
static struct ipi_track *tracks[CFG_MAX_VCPUS];
static struct ipi_counters ipi_counters[CFG_MAX_VCPUS];
static u64 now;

/* @n vCPUs, all blocked, with default knobs and @policy. */
static void vm_of(u32 n, enum spin_policy_id policy)
{
	now = 1000000;
	spin_knobs_init(&knobs);
	knobs.candidate_policy = policy;
	memset(ipi_counters, 0, sizeof(ipi_counters));
	track_vm.peer = tracks;
	track_vm.nr_peers = n;
	spin_vm_init(&vm, &knobs, vcpus, n);
	for (u32 i = 0; i < n; i++) {
		vcpus[i] = &vcpu[i];
		tracks[i] = &track[i];
		ipi_track_setup(&track[i], &track_vm, i, &ipi_counters[i]);
		spin_vcpu_init(&vcpu[i], &vm, i, &track[i]);
	}
}

/* What can happen to vCPU @i, as the edge tells it. */
static inline void run(u32 i)
{
	spin_sched_in(&vcpu[i], now);
}

static inline void preempt_kernel(u32 i)
{
	spin_sched_out(&vcpu[i], true);
}

static inline void preempt_user(u32 i)
{
	spin_sched_out(&vcpu[i], false);
}

static inline void wake(u32 i)
{
	spin_woken(&vcpu[i]);
}

/* An IPI: the tracker hears of it, and the interrupt is pending. */
static inline void ipi(u32 from, u32 to, u8 vector)
{
	ipi_track_sent(&track[from], &track[to], vector, now);
	spin_interrupt(&vcpu[to]);
}

/* All candidates of a spin of vCPU @me none of which works, as text: "3:receiver 5:kernel". */
static __maybe_unused const char *candidates(u32 me, bool in_kernel)
{
	static char text[16384];
	struct spin_walk w;
	int n = 0;

	text[0] = 0;
	if (!spin_start(&w, &vcpu[me], in_kernel, 0, now))
		return "";
	while (spin_next(&w)) {
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%u:%s", n ? " " : "",
			      w.target->index, spin_class_name(w.class));
		spin_tried(&w, false, false);
	}
	spin_stop(&w, false);
	return text;
}

/* The first candidate of a spin of @me, which gets the pCPU; -1: none. */
static inline int yield_from(u32 me, bool in_kernel)
{
	struct spin_walk w;
	int target = -1;

	if (!spin_start(&w, &vcpu[me], in_kernel, 0, now))
		return -1;
	if (spin_next(&w)) {
		target = (int)w.target->index;
		spin_tried(&w, true, false);
	}
	spin_stop(&w, target >= 0);
	if (target >= 0) {
		spin_sched_out(&vcpu[me], in_kernel);
		spin_outcome(&vcpu[target], true);
		run((u32)target);
	}
	return target;
}

#endif
