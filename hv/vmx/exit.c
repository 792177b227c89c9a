/* SPDX-License-Identifier: BSD-2-Clause */
/* Dispatch of VM exits, and the exits that concern the vCPU as a whole: interrupts, time, HLT,
 * death. */
#include "hv/vmx/exit.h"

#include <stdarg.h>

#include "hv/apic/lapic.h"
#include "hv/console.h"
#include "hv/main.h"
#include "hv/lib/fmt.h"
#include "hv/pcpu.h"
#include "hv/pv/edge.h"
#include "hv/traps.h"
#include "hv/vm/run.h"
#include "hv/vmx/vmx.h"

static enum exit_action exit_unknown(struct vcpu *v)
{
	return vcpu_kill(v, "unexpected VM exit, reason 0x%x, qualification 0x%lx",
			 vmread32(VMCS_EXIT_REASON), vmreadn(VMCS_EXIT_QUALIFICATION));
}

/* Padded with exit_unknown(), so that nothing needs to be checked but the range. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const exit_handler handlers[NR_EXIT_REASONS] = {[0 ... NR_EXIT_REASONS - 1] = exit_unknown,
#define X(number, name, handler) [number] = handler,
						       EXIT_REASONS(X)
#undef X
};
#pragma GCC diagnostic pop

const char *exit_reason_name(u32 reason)
{
	static const char *const names[NR_EXIT_REASONS] = {
#define X(number, name, handler) [number] = #name,
	    EXIT_REASONS(X)
#undef X
	};
	return reason < NR_EXIT_REASONS && names[reason] ? names[reason] : "?";
}

/* entry.asm relies on these. */
_Static_assert(offsetof(struct vcpu, regs) == 0, "vcpu.regs");
_Static_assert(offsetof(struct vcpu, requests) == 16 * 8, "vcpu.requests");
_Static_assert(offsetof(struct pcpu, exit_rsp) == 8, "pcpu.exit_rsp");
_Static_assert(offsetof(struct pcpu, loaded) == 16, "pcpu.loaded");

static __attribute__((noinline)) enum exit_action exit_and_arm(struct vcpu *v, u32 reason)
{
	vcpu_arm(v, rdtsc());
	return handlers[reason](v);
}

/* Ends in a jump to the handler: the path from exit to entry is counted in instructions. */
enum exit_action vmx_exit(struct vcpu *v, u32 reason)
{
	reason &= 0xffff;
	if (unlikely(reason >= NR_EXIT_REASONS)) {
		v->nr_exits++;
		return exit_unknown(v);
	}
	if (unlikely(count_exit(v, reason)))
		return exit_and_arm(v, reason);
	return handlers[reason](v);
}

enum exit_action vmx_exit_again(struct vcpu *v)
{
	return handlers[vmread32(VMCS_EXIT_REASON) & 0xffff](v);
}

enum exit_action vmx_exit_requests(struct vcpu *v, enum exit_action action)
{
	return action == EXIT_LEAVE ? action : vcpu_requests(v);
}

enum exit_action vcpu_requests(struct vcpu *v)
{
	u64 requests = READ_ONCE(v->requests);
	enum exit_action action = EXIT_RESUME;

	if (unlikely(requests & (REQ_STOP | REQ_RESCHED))) {
		__atomic_and_fetch(&v->requests, ~(u64)REQ_RESCHED, __ATOMIC_SEQ_CST);
		return EXIT_LEAVE;
	}
	if (requests & REQ_TIMER) {
		__atomic_and_fetch(&v->requests, ~(u64)REQ_TIMER, __ATOMIC_SEQ_CST);
		action = vcpu_time_passed(v, v->halted ? this_pcpu()->wake_advance : 0);
	}
	if (READ_ONCE(v->requests) & REQ_EVENT)
		action |= vcpu_deliver(v);
	return action;
}

void vcpu_check_timer(struct vcpu *v, u64 now, u64 advance)
{
	u64 deadline = vlapic_timer_deadline(&v->lapic), due = deadline - v->tsc_offset;

	if (deadline == VLAPIC_TIMER_NONE || due > now + advance)
		return;
	COUNT(v, cnt_timer_irqs);
	v->not_before = due;
	vlapic_timer_expired(&v->lapic, max(deadline, vcpu_guest_tsc(v, now)));
	vcpu_request(v, REQ_EVENT);
}

enum exit_action vcpu_time_passed(struct vcpu *v, u64 advance)
{
	struct pcpu *p = this_pcpu();
	u64 now = rdtsc();

	vcpu_check_timer(v, now, advance);
	if (unlikely(READ_ONCE(p->timers.next) <= now))
		timers_run(&p->timers, now);
	if (p->id == 0 && now >= p->next_poll) {
		boot_cpu_poll();
		p->next_poll = now + host_poll_ticks;
	}
	if (now >= pcpu_slice_end(p, now))
		return EXIT_LEAVE;
	vcpu_arm(v, now);
	return EXIT_RESUME;
}

/*
 * Entering the guest takes at least so many ticks: the instructions of entry.asm from the return of
 * vmx_exit() to VMRESUME, which is the shorter one of both ways. No CPU runs them, and the entry
 * itself, in less.
 */
#define ENTRY_TICKS 20

/*
 * The interrupt of a timer is ready to be entered with: wait until the guest gets it, if it is
 * entered now, at the moment that it is due and not before. @advance learns from how late or early
 * that is: up at once, down slowly, as the way here is not always equally long.
 */
void timer_wait(struct vcpu *v, u64 *advance)
{
	u64 enter_at = v->not_before - ENTRY_TICKS;
	s64 late = rdtsc() - enter_at;

	if (late <= 0)
		*advance -= min(*advance, (u64)-late / 8);
	else if ((u64)late < timer_advance_max) /* else it waited for the CPU */
		*advance = min(*advance + late, timer_advance_max);
	while ((s64)(rdtsc() - enter_at) < 0)
		;
	v->not_before = 0;
}

enum exit_action exit_preemption_timer(struct vcpu *v)
{
	enum exit_action action = vcpu_time_passed(v, this_pcpu()->timer_advance);

	if (READ_ONCE(v->requests) & REQ_EVENT)
		action |= vcpu_deliver(v);
	if (v->not_before)
		timer_wait(v, &this_pcpu()->timer_advance);
	return action;
}

enum exit_action exit_external_interrupt(struct vcpu *v)
{
	u32 vector = vmread32(VMCS_EXIT_INTR_INFO) & INTR_VECTOR;

	host_interrupt(vector);
	if (vector != VEC_KICK)
		return vcpu_time_passed(v, 0);
	/* Who kicks has set a request before, or a timer that is now the first. */
	if (READ_ONCE(this_pcpu()->timers.next) < v->armed_tsc)
		vcpu_arm(v, rdtsc());
	return EXIT_RESUME;
}

enum exit_action exit_hlt(struct vcpu *v)
{
	skip_instruction();
	v->halted = true;
	v->halted_if = vmreadn(VMCS_GUEST_RFLAGS) & RFLAGS_IF;
	if (v->halted_if && vlapic_pending(&v->lapic) >= 0) {
		v->halted = false;
		vcpu_set_window(v, false); /* HLT was executed with IF = 1: no need to wait */
		return vcpu_deliver(v);
	}
	if (unlikely(pv_take_unhalt(v))) {
		v->halted = false;
		return EXIT_RESUME;
	}
	return EXIT_LEAVE;
}

enum exit_action exit_nop(struct vcpu *v)
{
	return resume_after();
}

/* INIT and SIPI signals at the pCPU are the hypervisor's own business; none is sent after boot. */
enum exit_action exit_ignore(struct vcpu *v)
{
	return EXIT_RESUME;
}

enum exit_action exit_undefined(struct vcpu *v)
{
	inject_exception(v, VEC_UD);
	return EXIT_RESUME;
}

enum exit_action exit_rdpmc(struct vcpu *v)
{
	return fault_gp(v);
}

enum exit_action exit_triple_fault(struct vcpu *v)
{
	vm_stop(v->vm, VM_END_TRIPLE_FAULT, 0, "vCPU %u at RIP 0x%lx", v->id,
		vmreadn(VMCS_GUEST_RIP));
	return EXIT_LEAVE;
}

enum exit_action exit_task_switch(struct vcpu *v)
{
	return vcpu_kill(v, "hardware task switch, which is not supported");
}

enum exit_action exit_entry_failed(struct vcpu *v)
{
	return vcpu_kill(v, "VM entry failed: reason 0x%x, qualification %lu",
			 vmread32(VMCS_EXIT_REASON), vmreadn(VMCS_EXIT_QUALIFICATION));
}

enum exit_action vcpu_kill(struct vcpu *v, const char *fmt, ...)
{
	char text[sizeof(v->vm->end_text)];
	va_list args;

	va_start(args, fmt);
	fmt_vprint(text, sizeof(text), fmt, args);
	va_end(args);
	vm_stop(v->vm, VM_END_KILLED, 0, "vCPU %u: %s", v->id, text);
	vcpu_dump(v, console_out());
	return EXIT_LEAVE;
}
