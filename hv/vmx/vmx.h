/* SPDX-License-Identifier: BSD-2-Clause */
/* VMX on this machine: what the CPU can do, and going into VMX operation. */
#ifndef VLAG_VMX_VMX_H
#define VLAG_VMX_VMX_H

#include "hv/lib/types.h"

/* Control words for every vCPU and the optional features behind them. Found on the boot CPU, then
 * constant. */
struct vmx_caps {
	u32 revision;
	u32 pin, proc, proc2, exit, entry;
	u64 cr0_fixed0, cr0_fixed1, cr4_fixed0, cr4_fixed1;
	u32 preemption_shift; /* the timer counts once each 2^shift TSC ticks */
	bool preemption_timer, save_preemption_timer;
	bool vpid, ept_1g, ept_2m, ept_ad, ple, pause_exit, virtual_nmi, tpr_shadow, apic_access,
	    x2apic_mode, rdtscp, invpcid;
};

extern struct vmx_caps vmx_caps;

/*
 * Checks everything that vlag needs of the CPU and fills vmx_caps; what is missing ends in
 * hv_fatal() with one line that names it, what is merely better to have in a warning. Boot CPU,
 * once.
 */
void vmx_check(void);

/* VMXON on this CPU (locking IA32_FEATURE_CONTROL if the firmware has not). False if the CPU
 * refuses. */
bool vmx_enable(void);

/* A zeroed VMCS region with its revision; physical address. */
u64 vmcs_alloc(void);

void vmcs_clear(u64 pa);
void vmcs_load(u64 pa);

void invept_context(u64 eptp);
void invvpid_context(u16 vpid);

int vmx_enter(void *vcpu, bool launched); /* entry.asm */
extern const char vmx_exit_entry[];

/* The page of the MSR bitmap: which MSRs a guest reaches without an exit. */
u64 msr_bitmap(bool x2apic);

#endif
