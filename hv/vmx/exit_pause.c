/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PAUSE: how the CPU tells us that a vCPU spins, and the directed yield that follows. When it is a
 * spin, to whom to yield and what that does to the run queues is decided in hv/spin and hv/sched;
 * here are the VMCS fields, the clock and the order of the calls.
 */
#include "hv/knobs.h"
#include "hv/pcpu.h"
#include "hv/tracepoint.h"
#include "hv/vm/run.h"
#include "hv/vmx/exit.h"
#include "hv/vmx/vmx.h"

/* What the knobs ask for; vm_knobs_changed() sends every vCPU through pause_update(). */
static u32 ple_mode;
static u32 ple_generation = 1;

void pause_knobs_changed(void)
{
	u32 mode = spin_ple_mode(&spin_knobs, vmx_caps.ple);

	if (mode == SPIN_PLE_PAUSE && !vmx_caps.pause_exit)
		mode = SPIN_PLE_OFF;
	WRITE_ONCE(ple_mode, mode);
	WRITE_ONCE(ple_generation, ple_generation + 1);
}

void pause_update(struct vcpu *v)
{
	if (likely(v->ple_generation == READ_ONCE(ple_generation)))
		return;
	v->ple_generation = READ_ONCE(ple_generation);
	v->ple_hw = READ_ONCE(ple_mode) == SPIN_PLE_HW;
	v->ple_soft = READ_ONCE(ple_mode) == SPIN_PLE_PAUSE;
	spin_ple_init(&v->spin.ple, &spin_knobs);
	if (vmx_caps.ple) {
		vmwrite32(VMCS_PLE_GAP, spin_knobs.ple_gap);
		vmwrite32(VMCS_PLE_WINDOW, v->spin.ple.window);
	}
	vcpu_update_controls2(v);
	vcpu_set_pause_exiting(v, false);
}

void pause_loaded(struct vcpu *v)
{
	if (v->ple_hw && spin_ple_shrink(&v->spin.ple, &spin_knobs))
		vmwrite32(VMCS_PLE_WINDOW, v->spin.ple.window);
	spin_ple_left(&v->spin.ple);
}

enum exit_action vcpu_spins(struct vcpu *v, bool in_kernel, u64 spun, u64 now)
{
	struct spin_walk w;
	bool leaves = false;

	if (!spin_start(&w, &v->spin, in_kernel, spun, now)) {
		if (unlikely(tracing(TRACE_SPIN)))
			trace_spin(v, NULL, spun, now);
		return EXIT_RESUME;
	}
	while (!leaves && spin_next(&w))
		leaves = vcpu_yield_to(v, &w);
	spin_stop(&w, leaves);
	if (unlikely(tracing(TRACE_SPIN)))
		trace_spin(v, &w, spun, now);
	return leaves ? EXIT_LEAVE : EXIT_RESUME;
}

/* Is there anybody who would run if this pCPU were given away: here, or as far as a directed yield
 * reaches? */
static bool contended(const struct vcpu *v, const struct pcpu *p)
{
	if (READ_ONCE(p->rq.nr_running) > 1)
		return true;
	return sched_knobs.yield_cross_rq != SCHED_CROSS_OFF && spin_any_ready(&v->vm->spin);
}

enum exit_action exit_pause(struct vcpu *v)
{
	struct pcpu *p = this_pcpu();
	struct spin_vcpu *s = &v->spin;
	u64 now = rdtsc(), spun;

	skip_instruction();
	s->stats.spin_exits++;
	if (v->ple_soft) {
		u64 start = s->ple.loop_start;

		if (!spin_ple_pause(&s->ple, &spin_knobs, now)) {
			s->stats.spin_short++;
			return EXIT_RESUME;
		}
		spun = now - start;
	} else {
		spun = s->ple.window;
		if (spin_ple_grow(&s->ple, &spin_knobs))
			vmwrite32(VMCS_PLE_WINDOW, s->ple.window);
	}
	if (!contended(v, p)) {
		s->stats.spin_uncontended++;
		return EXIT_RESUME;
	}
	return vcpu_spins(v, guest_cpl() == 0, spun, now);
}
