/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A virtual CPU. "Owner" below is the pCPU that runs it or last ran it (v->sched.cpu); a field
 * without a note is the owner's.
 *
 * Its state is the scheduler's (hv/sched/sched.h draws it): BLOCKED covers HLT, waiting for SIPI
 * (lapic.wait_for_sipi) and, with .off, a VM that does not run. To block, the owner says BLOCKED
 * under the lock of its run queue and only then looks once more at vcpu_wakeable(); a waker sets
 * its bit first and looks at the state then: no wake-up is lost.
 *
 * Its registers are in a CPU (.loaded_on), perhaps still the last one's; vcpu_load() gets them from
 * there.
 */
#ifndef VLAG_VM_VCPU_H
#define VLAG_VM_VCPU_H

#include "hv/apic/vlapic.h"
#include "hv/counters.h"
#include "hv/lib/types.h"
#include "hv/spin/spin.h"
#include "hv/pcpu.h"
#include "hv/pv/msr.h"
#include "hv/sched/sched.h"
#include "hv/timer.h"
#include "hv/vm/vm.h"
#include "hv/vmx/reasons.h"

/* Indices into vcpu.regs: the order in which instructions number them. */
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

/* Bits of vcpu.requests: things to look at before the next entry. Set by anyone, cleared by the
 * owner. */
enum {
	REQ_EVENT = 1 << 0, /* interrupts, NMI, INIT, SIPI: vcpu_deliver() */
	REQ_TIMER =
	    1 << 1, /* the LAPIC timer's deadline has passed, or moved before what is armed */
	REQ_RESCHED = 1 << 2, /* back to the scheduler */
	REQ_STOP = 1 << 3,    /* the VM is ending: never enter again */
};

#define LAST_EXITS 16

/* MSRs that the CPU does not switch and guests reach without an exit: moved when a pCPU changes
 * vCPU. */
#define SWITCHED_MSRS(X)                                                                           \
	X(STAR)                                                                                    \
	X(LSTAR)                                                                                   \
	X(CSTAR)                                                                                   \
	X(FMASK)                                                                                   \
	X(KERNEL_GS_BASE)                                                                          \
	X(TSC_AUX)

enum {
#define X(name) SWITCHED_##name,
	SWITCHED_MSRS(X)
#undef X
	    NR_SWITCHED_MSRS
};

struct vcpu {
	u64 regs[16]; /* offset 0: entry.asm. regs[RSP] is unused, the VMCS has it */
	u64 requests; /* REQ_*; atomic */
	u64 nr_exits;
	u64 exits[NR_EXIT_REASONS];
	u8 last_exits[LAST_EXITS];
	u64 counters[NR_VCPU_COUNTERS];

	struct vm *vm; /* constant, as id, vmcs_pa, lapic.id */
	u32 id;
	bool launched;	   /* VMRESUME, not VMLAUNCH */
	bool fresh;	   /* power-up state not written yet: done when its pCPU first loads it */
	bool halted;	   /* executed HLT and nothing has ended that yet */
	bool halted_if;	   /* RFLAGS.IF at that HLT */
	u32 tpr_threshold; /* as in the VMCS */
	u32 proc_controls; /* as in the VMCS */
	u64 armed_tsc;	   /* host TSC at which the preemption timer is to fire; see vcpu_arm() */
	u64 not_before;	   /* host TSC before which the guest must not be entered: its timer was
			      handled early */
	s64 tsc_offset;	   /* guest TSC - host TSC */
	u64 tsc_adjust;	   /* IA32_TSC_ADJUST */

	struct sched_vcpu sched;
	struct spin_vcpu spin;	 /* hv/spin/spin.h says who may write it */
	u32 ple_generation;	 /* of the knobs that its VMCS follows: exit_pause.c */
	bool ple_hw;		 /* pause-loop exiting */
	bool ple_soft;		 /* PAUSE exiting while somebody waits for the pCPU */
	bool off;		 /* its VM does not run; rq_lock */
	struct pcpu *loaded_on;	 /* whose registers hold it, NULL: it is in memory. Set and cleared
				    by that pCPU */
	struct pcpu *host_state; /* whose host state its VMCS holds, NULL at first */
	struct timer timer;	 /* fires at the LAPIC deadline while it sleeps */

	struct vlapic lapic;
	u8 *vapic_page; /* TPR lives here */
	u64 vmcs_pa;
	void *xsave; /* guest x87/SSE/AVX state while not loaded */
	u64 xcr0;
	u64 msrs[NR_SWITCHED_MSRS];
	u64 dr[4], dr6;
	u64 cr2;
	u64 misc_enable;
	struct pv_vcpu pv;

	u64 nr_switches;
	struct stats_base *stats_base; /* hv/stats.c; NULL: no `stats reset` */
};

/* Sets request bits; returns what was set before. A full barrier. */
static inline u64 vcpu_request(struct vcpu *v, u64 bits)
{
	return __atomic_fetch_or(&v->requests, bits, __ATOMIC_SEQ_CST);
}

static inline u64 vcpu_guest_tsc(const struct vcpu *v, u64 host_tsc)
{
	return host_tsc + v->tsc_offset;
}

static inline struct pcpu *vcpu_pcpu(const struct vcpu *v)
{
	return pcpus[READ_ONCE(v->sched.cpu)];
}

static inline struct vcpu *vcpu_of_sched(struct sched_vcpu *s)
{
	return s ? container_of(s, struct vcpu, sched) : NULL;
}

/* How long @v was runnable and not running, ns: exact for a vCPU that runs, for others as of their
 * last change of state. */
static inline u64 vcpu_run_delay_ns(const struct vcpu *v)
{
	return v->sched.stats.run_delay_ns;
}

#define COUNT(v, name) ((v)->counters[name]++)

/* How many pages vcpu_create() takes. */
u64 vcpu_pages(void);

/* Allocates vCPU @id of @vm with its VMCS; call on the boot CPU while booting. */
struct vcpu *vcpu_create(struct vm *vm, u32 id);

/* Makes @v's VMCS, FPU state and MSRs the ones in this pCPU. */
void vcpu_load(struct vcpu *v);

/* The first state of @v after power-up or machine reset: everything that INIT leaves alone. The
 * VMCS must be loaded. */
void vcpu_power_up(struct vcpu *v);

/* Interrupt-window and NMI-window exiting on or off. */
void vcpu_set_window(struct vcpu *v, bool on);
void vcpu_set_nmi_window(struct vcpu *v, bool on);

/* PAUSE exiting on or off. */
void vcpu_set_pause_exiting(struct vcpu *v, bool on);

/* Writes the secondary processor-based controls: the LAPIC's mode and v->ple_hw are in them. */
void vcpu_update_controls2(struct vcpu *v);

/* After a change of the LAPIC's mode: which of its registers the CPU virtualizes. */
void vcpu_update_apic_mode(struct vcpu *v);

/* State components that guests may have (XCR0). */
u64 xcr0_guest_mask(void);

/* Takes whatever vCPU is loaded here out of the CPU into memory, so that another pCPU may load it.
 */
void vcpu_unload_current(void);

/* Is there anything that ends HLT or the wait for SIPI? Owner, or with its run queue locked. */
bool vcpu_wakeable(const struct vcpu *v, u64 now);

/* Arms the preemption timer for the earliest of all that concerns @v. */
void vcpu_arm(struct vcpu *v, u64 now);

/* The LAPIC timer may have moved: arms for it if it now comes before what is armed. */
void vcpu_timer_changed(struct vcpu *v);

/* Architectural start states. The VMCS must be loaded. */
struct cpu_boot_state;
void vcpu_set_boot_state(struct vcpu *v, const struct cpu_boot_state *s);
void vcpu_set_init_state(struct vcpu *v);
void vcpu_set_sipi_state(struct vcpu *v, u8 vector);

/* Registers of a vCPU (loaded here) for `dump vcpu` and fatal exits. */
struct out;
void vcpu_dump(struct vcpu *v, struct out *out);

#endif
