/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exits and what their handlers share. A handler gets the vCPU whose VMCS is loaded, with
 * interrupts off and no lock held, and says whether to resume it at once or to go back to the
 * scheduler. One small file for each family: exit_*.c.
 */
#ifndef VLAG_VMX_EXIT_H
#define VLAG_VMX_EXIT_H

#include "hv/lib/types.h"
#include "hv/vm/vcpu.h"
#include "hv/vmx/vmcs.h"
#include "hv/x86/cpu.h"

/* EXIT_FULL: only from light handlers (exit_light.c). Bit 31, so that it is told from requests. */
enum exit_action { EXIT_RESUME, EXIT_LEAVE, EXIT_FULL = -0x7fffffff - 1 };

typedef enum exit_action (*exit_handler)(struct vcpu *v);

#define X(number, name, handler) enum exit_action handler(struct vcpu *v);
EXIT_REASONS(X)
#undef X

/* Called by entry.asm after every exit; and after that, if it says "leave" or there are requests.
 */
enum exit_action vmx_exit(struct vcpu *v, u32 reason);
enum exit_action vmx_exit_requests(struct vcpu *v, enum exit_action action);

/*
 * Called by entry.asm instead of vmx_exit() for the reasons that it has in LIGHT_EXITS, with only
 * the registers that C may change in v->regs. Resumes, or has done nothing but counting and says
 * EXIT_FULL: then all registers are stored and vmx_exit_again() is called.
 */
enum exit_action vmx_exit_light(struct vcpu *v, u32 reason);
enum exit_action vmx_exit_again(struct vcpu *v);

/*
 * Counts an exit. True: the caller calls vcpu_arm() first of all. The preemption timer stands still
 * while we are here; so that a guest that exits all the time does not outrun its timers and its
 * slice, every LAST_EXITS-th exit sets it by the clock.
 */
static inline bool count_exit(struct vcpu *v, u32 reason)
{
	u64 n = v->nr_exits++ % LAST_EXITS;

	v->last_exits[n] = reason;
	v->exits[reason]++;
	return !n;
}

const char *exit_reason_name(u32 reason);

/* Moves RIP past the instruction that exited, which ends blocking by STI and MOV SS. */
static inline void skip_instruction(void)
{
	u32 blocked;

	/* All 64 bits: the upper ones of a 32-bit field read as 0. */
	vmwriten(VMCS_GUEST_RIP, vmreadn(VMCS_GUEST_RIP) + vmread_raw(VMCS_EXIT_INSN_LEN));
	blocked = vmread32(VMCS_GUEST_INTERRUPTIBILITY);
	if (unlikely(blocked & (BLOCKED_BY_STI | BLOCKED_BY_MOV_SS)))
		vmwrite32(VMCS_GUEST_INTERRUPTIBILITY,
			  blocked & ~(u32)(BLOCKED_BY_STI | BLOCKED_BY_MOV_SS));
}

static inline enum exit_action resume_after(void)
{
	skip_instruction();
	return EXIT_RESUME;
}

static inline u64 edx_eax(const struct vcpu *v)
{
	return (u64)(u32)v->regs[RDX] << 32 | (u32)v->regs[RAX];
}

static inline void set_edx_eax(struct vcpu *v, u64 value)
{
	v->regs[RAX] = (u32)value;
	v->regs[RDX] = value >> 32;
}

/* Make the next entry deliver an exception (at the current RIP: it is a fault). */
void inject_exception(struct vcpu *v, u32 vector);
void inject_exception_error(struct vcpu *v, u32 vector, u32 error);
static inline enum exit_action fault_gp(struct vcpu *v)
{
	inject_exception_error(v, VEC_GP, 0);
	return EXIT_RESUME;
}

/* If the exit interrupted the delivery of an event, make the next entry deliver it again. */
void reinject_vectoring(struct vcpu *v);

/*
 * Looks at everything that waits for the vCPU (INIT, SIPI, NMI, PIC, LAPIC) and injects the first
 * that can be, or arranges for an exit when it can be. Clears REQ_EVENT first. Returns EXIT_LEAVE
 * if the vCPU went to wait for SIPI.
 */
enum exit_action vcpu_deliver(struct vcpu *v);

/*
 * The part of vcpu_deliver() that concerns the LAPIC's interrupts, for when no other event waits
 * (v->lapic.events is 0), none is set for the entry, and REQ_EVENT is cleared. Needs no register of
 * the guest. Returns EXIT_RESUME.
 */
enum exit_action vcpu_deliver_vector(struct vcpu *v);

/* Handles all v->requests. */
enum exit_action vcpu_requests(struct vcpu *v);

/* The LAPIC timer: if it is due within @advance host TSC ticks, its interrupt is pending now, and
 * the caller owes a timer_wait(). */
void vcpu_check_timer(struct vcpu *v, u64 now, u64 advance);

/*
 * The LAPIC timer, up to @advance ticks before it is due (then the caller owes a timer_wait()), the
 * pCPU's timers, the slice; then arms the preemption timer anew.
 */
enum exit_action vcpu_time_passed(struct vcpu *v, u64 advance);

/* Before an entry, if v->not_before is set: waits for it, and corrects *@advance by how late it has
 * become. */
void timer_wait(struct vcpu *v, u64 *advance);

/* CPL of the vCPU that is loaded: DPL of SS (SDM vol. 3, 24.4.1). */
static inline u32 guest_cpl(void)
{
	return vmread32(VMCS_GUEST_SS_AR) >> 5 & 3;
}

/* --- exit_pause.c --- */

/* Takes over the knobs; then every vCPU must come through pause_update(). */
void pause_knobs_changed(void);

/* Before an entry, after the scheduler chose @v: PAUSE exiting, hardware or software, as the knobs
 * ask for. */
void pause_update(struct vcpu *v);

/* @v's registers were loaded into a pCPU: its window shrinks, its loop is over. */
void pause_loaded(struct vcpu *v);

/*
 * The running @v waits for somebody (a pause loop of @spun ticks, or it said so): yields to the
 * best candidate that there is. @now: host TSC.
 */
enum exit_action vcpu_spins(struct vcpu *v, bool in_kernel, u64 spun, u64 now);

/* Kills the VM of @v with a message and a dump of the vCPU; others go on. */
enum exit_action vcpu_kill(struct vcpu *v, const char *fmt, ...) __printf(2, 3);

#endif
