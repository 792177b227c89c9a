/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steal-time record of one vCPU (ABI: Linux Documentation/virt/kvm/x86/msr.rst,
 * MSR_KVM_STEAL_TIME): its MSR, the version protocol, the `preempted` byte and the TLB flush that
 * other vCPUs ask for through it. Pure: how long the vCPU waited is an argument. Nothing here
 * decides what counts as waiting; that is the scheduler's run delay.
 */
#ifndef VLAG_PV_STEAL_H
#define VLAG_PV_STEAL_H

#include "hv/lib/types.h"
#include "hv/vm/guest_mem.h"

#define KVM_VCPU_PREEMPTED 1
#define KVM_VCPU_FLUSH_TLB 2

/* In guest memory, 64 bytes on a 64-byte boundary, so it never crosses a page. */
struct kvm_steal_time {
	u64 steal;    /* ns */
	u32 version;  /* odd while the hypervisor writes */
	u32 flags;    /* always 0; not ours to change */
	u8 preempted; /* KVM_VCPU_*; the guest adds FLUSH_TLB with a compare and swap */
	u8 pad8[3];
	u32 pad[11];
};

_Static_assert(sizeof(struct kvm_steal_time) == 64, "the ABI");

/* Per vCPU. The owner's, but for the moment between sched_out and sched_in: then whoever holds the
 * vCPU's run queue lock. */
struct pv_steal {
	struct kvm_steal_time *rec; /* NULL: switched off, or its address is not RAM */
	u64 told_ns;		    /* how much of the run delay a record was told of */
	u64 msr;		    /* as written */
	bool marked;		    /* rec->preempted may be set */
};

/* The VM starts: from here on time counts. @run_delay_ns: what the vCPU waited so far. */
void steal_start(struct pv_steal *s, u64 run_delay_ns);

/* Power-up, reset or INIT of the vCPU: the record is the guest's memory again. What is waited until
 * the next record goes into that. */
void steal_off(struct pv_steal *s);

/*
 * WRMSR. False, without any change, for reserved bits: #GP. An address that is not RAM is taken and
 * never written to, as in KVM. A record that is switched on is brought up to date at once;
 * *@flush_tlb is set if its `preempted` asked for a flush.
 */
bool steal_msr_write(struct pv_steal *s, const struct guest_mem *mem, u64 value, u64 run_delay_ns,
		     bool *flush_tlb);

/* The out-of-line part of steal_sched_in(); s->rec is not NULL. */
bool steal_update(struct pv_steal *s, u64 run_delay_ns);

/*
 * Before an entry after the vCPU may have been off its pCPU: adds what it waited to what the record
 * holds (the guest keeps it over CPU hotplug, and a decrease would be an enormous number to it) and
 * clears `preempted`. Returns true if the guest asked for a TLB flush of this vCPU: do it before
 * the entry.
 */
static inline bool steal_sched_in(struct pv_steal *s, u64 run_delay_ns)
{
	if (!s->rec || (!s->marked && run_delay_ns == s->told_ns))
		return false;
	return steal_update(s, run_delay_ns);
}

/* The vCPU was taken off its pCPU, and nobody else can have put it on another one yet. */
static inline void steal_sched_out(struct pv_steal *s)
{
	/* Set already: somebody may have added FLUSH_TLB meanwhile. */
	if (!s->rec || s->marked)
		return;
	s->marked = true;
	WRITE_ONCE(s->rec->preempted, KVM_VCPU_PREEMPTED);
}

#endif
