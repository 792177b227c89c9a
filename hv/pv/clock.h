/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The KVM paravirtual clock (ABI: Linux Documentation/virt/kvm/x86/msr.rst, cpuid.rst): the
 * features that CPUID offers and the MSRs behind them.
 */
#ifndef VLAG_PV_CLOCK_H
#define VLAG_PV_CLOCK_H

#include "hv/lib/types.h"

struct vcpu;
struct vm;

/* EAX of CPUID leaf 0x40000001 for a VM with the CFG_PV_* bits @pv. */
u32 pv_cpuid_features(u32 pv);

/* The record that a guest's pvclock reads; 32 bytes. */
struct pvclock_vcpu_time_info {
	u32 version; /* odd while being written */
	u32 pad0;
	u64 tsc_timestamp; /* guest TSC at ... */
	u64 system_time;   /* ... this ns */
	u32 tsc_to_system_mul;
	s8 tsc_shift;
	u8 flags;
	u8 pad[2];
};

#define PVCLOCK_TSC_STABLE 1

struct pvclock_scale {
	u32 mul;
	s8 shift;
};

/* ns = ((ticks << shift) * mul) >> 32 for a TSC of @hz (a negative shift shifts right). Pure. */
struct pvclock_scale pvclock_scale(u64 hz);

/* The guest TSC of @v jumped: its clock must not. */
void pv_tsc_changed(struct vcpu *v);

/* MSR handlers; false: #GP. */
bool pv_msr_read(struct vcpu *v, u32 msr, u64 *value);
bool pv_msr_write(struct vcpu *v, u32 msr, u64 value);

#endif
