/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * KVM's hypercalls (ABI: Linux Documentation/virt/kvm/x86/hypercalls.rst): number in RAX, arguments
 * in RBX, RCX, RDX, RSI, result in RAX. Pure; what leaves the VM's interrupt controllers goes
 * through the two functions at the end, bound at link time.
 */
#ifndef VLAG_PV_HYPERCALL_H
#define VLAG_PV_HYPERCALL_H

#include "hv/apic/vlapic.h"
#include "hv/lib/types.h"

enum {
	KVM_HC_VAPIC_POLL_IRQ = 1,
	KVM_HC_KICK_CPU = 5,
	KVM_HC_SEND_IPI = 10,
	KVM_HC_SCHED_YIELD = 11,
};

#define KVM_EPERM 1
#define KVM_EINVAL 22
#define KVM_ENOSYS 1000

struct hypercall {
	u64 nr, arg[4];
	bool long_mode; /* the caller runs in 64-bit mode; else everything is 32 bits wide */
	u32 cpl;	/* of the caller */
	u32 features;	/* CFG_PV_* of the VM */
	u64 now;	/* the caller's guest TSC */
	struct vlapic *yield_to; /* set: who the caller would rather have run now, or NULL */
};

/*
 * Does what @call asks for on behalf of the vCPU of @l, on its pCPU. Returns the new RAX. The
 * caller's own LAPIC may have something to deliver afterwards.
 */
u64 hypercall_run(struct vlapic *l, struct hypercall *call);

/*
 * KVM_HC_SEND_IPI: the interrupt of @icr (fixed or NMI; the low half of an ICR without destination)
 * to the vCPUs with APIC ids @min + i for each bit i of @low and @min + @width + i for each bit i
 * of @high. Returns how many it reached, or -KVM_EINVAL. One receiver is recorded in the IPI
 * tracker as if the ICR had been written; several only with ipi_track_multicast.
 */
s64 pv_send_ipi(struct vlapic *l, u64 low, u64 high, u32 min, u64 icr, u32 width, u64 now);

/* --- the edge --- */

/* KVM_HC_KICK_CPU: ends the HLT of the vCPU of @target, or its next one. Any vCPU. */
void pv_unhalt(struct vlapic *target);

/*
 * The guest says that @from waits for @target (another vCPU of the VM), or has just let it go on.
 * Returns true if it would help to leave the pCPU now: @target can run and does not.
 */
bool pv_hint(struct vlapic *from, struct vlapic *target);

#endif
