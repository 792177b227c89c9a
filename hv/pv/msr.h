/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The KVM paravirtual features of a VM: what CPUID offers and the MSRs behind it, with KVM's
 * answers to bad values (ABI: Linux Documentation/virt/kvm/x86/cpuid.rst, msr.rst). Pure; the edge
 * with vCPUs, clocks and VMX is hv/pv/edge.h.
 *
 * Never offered: PV EOI (it would hide EOIs from the IPI recorder), asynchronous page faults (there
 * are none) and KVM_HINTS_REALTIME (vCPUs are preempted here).
 */
#ifndef VLAG_PV_MSR_H
#define VLAG_PV_MSR_H

#include "hv/lib/types.h"
#include "hv/pv/clock.h"
#include "hv/pv/steal.h"

#define MSR_KVM_WALL_CLOCK 0x11
#define MSR_KVM_SYSTEM_TIME 0x12
#define MSR_KVM_WALL_CLOCK_NEW 0x4b564d00
#define MSR_KVM_SYSTEM_TIME_NEW 0x4b564d01
#define MSR_KVM_ASYNC_PF_EN 0x4b564d02
#define MSR_KVM_STEAL_TIME 0x4b564d03
#define MSR_KVM_PV_EOI_EN 0x4b564d04
#define MSR_KVM_POLL_CONTROL 0x4b564d05

/* Embedded in struct vm. */
struct pv_vm {
	u32 features;		    /* CFG_PV_*; constant, as are the next three */
	bool stable;		    /* see pv_clock_fill() */
	struct pvclock_scale scale; /* of the guest's TSC */
	const struct guest_mem *mem;
	u64 tsc_base;	    /* host TSC at VM time 0; set when the VM starts, as the next */
	u64 epoch_ns;	    /* wall clock at VM time 0 */
	u64 wall_clock_msr; /* one for all vCPUs; any vCPU */
};

/* Embedded in struct vcpu; the owner's unless a field says otherwise. */
struct pv_vcpu {
	struct pv_steal steal;
	struct pv_clock clock;
	u64 poll_control;
	bool unhalted; /* PV unhalt: ends the HLT that it is in, or else the next one. Set by anyone
			*/
};

/* EAX of CPUID leaf 0x40000001 for a VM with the CFG_PV_* bits @pv. */
u32 pv_cpuid_features(u32 pv, bool stable);

/* The VM starts with @v having waited @run_delay_ns in earlier lives. */
void pv_vcpu_start(struct pv_vcpu *v, u64 run_delay_ns);

/* Power-up, reset or INIT: steal time, system time and a pending unhalt go (KVM does the same). */
void pv_vcpu_init(struct pv_vcpu *v);

/* The vCPU's TSC is the host's plus @tsc_offset: fills its clock's record, if it has one. */
void pv_clock_update(const struct pv_vm *vm, struct pv_vcpu *v, s64 tsc_offset);

/* What a WRMSR depends on and may ask for. */
struct pv_wrmsr {
	s64 tsc_offset;	  /* guest TSC - host TSC */
	u64 run_delay_ns; /* what the vCPU waited so far */
	bool flush_tlb;	  /* set if its TLB must be flushed before the next entry */
};

/* False: #GP. */
bool pv_msr_read(const struct pv_vm *vm, const struct pv_vcpu *v, u32 msr, u64 *value);
bool pv_msr_write(struct pv_vm *vm, struct pv_vcpu *v, u32 msr, u64 value, struct pv_wrmsr *w);

#endif
