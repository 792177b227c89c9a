/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VMCS fields (SDM vol. 3, appendix B) and their accessors. The width is part of each field's name
 * and of the accessor that takes it, so that a mismatch does not compile. All act on this pCPU's
 * current VMCS.
 */
#ifndef VLAG_VMX_VMCS_H
#define VLAG_VMX_VMCS_H

#include "hv/lib/types.h"

enum vmcs16 {
	VMCS_VPID = 0x0000,
	VMCS_GUEST_ES_SEL = 0x0800,
	VMCS_GUEST_CS_SEL = 0x0802,
	VMCS_GUEST_SS_SEL = 0x0804,
	VMCS_GUEST_DS_SEL = 0x0806,
	VMCS_GUEST_FS_SEL = 0x0808,
	VMCS_GUEST_GS_SEL = 0x080a,
	VMCS_GUEST_LDTR_SEL = 0x080c,
	VMCS_GUEST_TR_SEL = 0x080e,
	VMCS_HOST_ES_SEL = 0x0c00,
	VMCS_HOST_CS_SEL = 0x0c02,
	VMCS_HOST_SS_SEL = 0x0c04,
	VMCS_HOST_DS_SEL = 0x0c06,
	VMCS_HOST_FS_SEL = 0x0c08,
	VMCS_HOST_GS_SEL = 0x0c0a,
	VMCS_HOST_TR_SEL = 0x0c0c,
};

enum vmcs64 {
	VMCS_IO_BITMAP_A = 0x2000,
	VMCS_IO_BITMAP_B = 0x2002,
	VMCS_MSR_BITMAP = 0x2004,
	VMCS_TSC_OFFSET = 0x2010,
	VMCS_VIRTUAL_APIC_PAGE = 0x2012,
	VMCS_APIC_ACCESS_ADDR = 0x2014,
	VMCS_EPT_POINTER = 0x201a,
	VMCS_GUEST_PHYS_ADDR = 0x2400,
	VMCS_LINK_POINTER = 0x2800,
	VMCS_GUEST_DEBUGCTL = 0x2802,
	VMCS_GUEST_PAT = 0x2804,
	VMCS_GUEST_EFER = 0x2806,
	VMCS_GUEST_PDPTE0 = 0x280a,
	VMCS_HOST_PAT = 0x2c00,
	VMCS_HOST_EFER = 0x2c02,
};

enum vmcs32 {
	VMCS_PIN_CONTROLS = 0x4000,
	VMCS_PROC_CONTROLS = 0x4002,
	VMCS_EXCEPTION_BITMAP = 0x4004,
	VMCS_PF_ERROR_MASK = 0x4006,
	VMCS_PF_ERROR_MATCH = 0x4008,
	VMCS_CR3_TARGET_COUNT = 0x400a,
	VMCS_EXIT_CONTROLS = 0x400c,
	VMCS_EXIT_MSR_STORE_COUNT = 0x400e,
	VMCS_EXIT_MSR_LOAD_COUNT = 0x4010,
	VMCS_ENTRY_CONTROLS = 0x4012,
	VMCS_ENTRY_MSR_LOAD_COUNT = 0x4014,
	VMCS_ENTRY_INTR_INFO = 0x4016,
	VMCS_ENTRY_ERROR_CODE = 0x4018,
	VMCS_ENTRY_INSN_LEN = 0x401a,
	VMCS_TPR_THRESHOLD = 0x401c,
	VMCS_PROC_CONTROLS2 = 0x401e,
	VMCS_PLE_GAP = 0x4020,
	VMCS_PLE_WINDOW = 0x4022,
	VMCS_INSN_ERROR = 0x4400,
	VMCS_EXIT_REASON = 0x4402,
	VMCS_EXIT_INTR_INFO = 0x4404,
	VMCS_EXIT_INTR_ERROR = 0x4406,
	VMCS_IDT_VECTORING_INFO = 0x4408,
	VMCS_IDT_VECTORING_ERROR = 0x440a,
	VMCS_EXIT_INSN_LEN = 0x440c,
	VMCS_EXIT_INSN_INFO = 0x440e,
	VMCS_GUEST_ES_LIMIT = 0x4800,
	VMCS_GUEST_CS_LIMIT = 0x4802,
	VMCS_GUEST_SS_LIMIT = 0x4804,
	VMCS_GUEST_DS_LIMIT = 0x4806,
	VMCS_GUEST_FS_LIMIT = 0x4808,
	VMCS_GUEST_GS_LIMIT = 0x480a,
	VMCS_GUEST_LDTR_LIMIT = 0x480c,
	VMCS_GUEST_TR_LIMIT = 0x480e,
	VMCS_GUEST_GDTR_LIMIT = 0x4810,
	VMCS_GUEST_IDTR_LIMIT = 0x4812,
	VMCS_GUEST_ES_AR = 0x4814,
	VMCS_GUEST_CS_AR = 0x4816,
	VMCS_GUEST_SS_AR = 0x4818,
	VMCS_GUEST_DS_AR = 0x481a,
	VMCS_GUEST_FS_AR = 0x481c,
	VMCS_GUEST_GS_AR = 0x481e,
	VMCS_GUEST_LDTR_AR = 0x4820,
	VMCS_GUEST_TR_AR = 0x4822,
	VMCS_GUEST_INTERRUPTIBILITY = 0x4824,
	VMCS_GUEST_ACTIVITY = 0x4826,
	VMCS_GUEST_SYSENTER_CS = 0x482a,
	VMCS_PREEMPTION_TIMER = 0x482e,
	VMCS_HOST_SYSENTER_CS = 0x4c00,
};

enum vmcsnw {
	VMCS_CR0_MASK = 0x6000,
	VMCS_CR4_MASK = 0x6002,
	VMCS_CR0_SHADOW = 0x6004,
	VMCS_CR4_SHADOW = 0x6006,
	VMCS_EXIT_QUALIFICATION = 0x6400,
	VMCS_GUEST_LINEAR_ADDR = 0x640a,
	VMCS_GUEST_CR0 = 0x6800,
	VMCS_GUEST_CR3 = 0x6802,
	VMCS_GUEST_CR4 = 0x6804,
	VMCS_GUEST_ES_BASE = 0x6806,
	VMCS_GUEST_CS_BASE = 0x6808,
	VMCS_GUEST_SS_BASE = 0x680a,
	VMCS_GUEST_DS_BASE = 0x680c,
	VMCS_GUEST_FS_BASE = 0x680e,
	VMCS_GUEST_GS_BASE = 0x6810,
	VMCS_GUEST_LDTR_BASE = 0x6812,
	VMCS_GUEST_TR_BASE = 0x6814,
	VMCS_GUEST_GDTR_BASE = 0x6816,
	VMCS_GUEST_IDTR_BASE = 0x6818,
	VMCS_GUEST_DR7 = 0x681a,
	VMCS_GUEST_RSP = 0x681c,
	VMCS_GUEST_RIP = 0x681e,
	VMCS_GUEST_RFLAGS = 0x6820,
	VMCS_GUEST_PENDING_DBG = 0x6822,
	VMCS_GUEST_SYSENTER_ESP = 0x6824,
	VMCS_GUEST_SYSENTER_EIP = 0x6826,
	VMCS_HOST_CR0 = 0x6c00,
	VMCS_HOST_CR3 = 0x6c02,
	VMCS_HOST_CR4 = 0x6c04,
	VMCS_HOST_FS_BASE = 0x6c06,
	VMCS_HOST_GS_BASE = 0x6c08,
	VMCS_HOST_TR_BASE = 0x6c0a,
	VMCS_HOST_GDTR_BASE = 0x6c0c,
	VMCS_HOST_IDTR_BASE = 0x6c0e,
	VMCS_HOST_SYSENTER_ESP = 0x6c10,
	VMCS_HOST_SYSENTER_EIP = 0x6c12,
	VMCS_HOST_RSP = 0x6c14,
	VMCS_HOST_RIP = 0x6c16,
};

/* Pin-based controls */
#define PIN_EXTINT_EXIT BIT(0)
#define PIN_NMI_EXIT BIT(3)
#define PIN_VIRTUAL_NMI BIT(5)
#define PIN_PREEMPTION_TIMER BIT(6)

/* Primary processor-based controls */
#define PROC_INTR_WINDOW BIT(2)
#define PROC_TSC_OFFSET BIT(3)
#define PROC_HLT_EXIT BIT(7)
#define PROC_MWAIT_EXIT BIT(10)
#define PROC_RDPMC_EXIT BIT(11)
#define PROC_CR3_LOAD_EXIT BIT(15)
#define PROC_CR3_STORE_EXIT BIT(16)
#define PROC_TPR_SHADOW BIT(21)
#define PROC_NMI_WINDOW BIT(22)
#define PROC_MOV_DR_EXIT BIT(23)
#define PROC_IO_EXIT BIT(24)
#define PROC_MSR_BITMAP BIT(28)
#define PROC_MONITOR_EXIT BIT(29)
#define PROC_PAUSE_EXIT BIT(30)
#define PROC_SECONDARY BIT(31)

/* Secondary processor-based controls */
#define PROC2_APIC_ACCESS BIT(0)
#define PROC2_EPT BIT(1)
#define PROC2_RDTSCP BIT(3)
#define PROC2_X2APIC BIT(4)
#define PROC2_VPID BIT(5)
#define PROC2_WBINVD_EXIT BIT(6)
#define PROC2_UNRESTRICTED BIT(7)
#define PROC2_PLE BIT(10)
#define PROC2_INVPCID BIT(12)

/* VM-exit controls */
#define EXIT_SAVE_DEBUG BIT(2)
#define EXIT_HOST_64 BIT(9)
#define EXIT_ACK_INTERRUPT BIT(15)
#define EXIT_SAVE_PAT BIT(18)
#define EXIT_LOAD_PAT BIT(19)
#define EXIT_SAVE_EFER BIT(20)
#define EXIT_LOAD_EFER BIT(21)
#define EXIT_SAVE_PREEMPTION_TIMER BIT(22)

/* VM-entry controls */
#define ENTRY_LOAD_DEBUG BIT(2)
#define ENTRY_IA32E_GUEST BIT(9)
#define ENTRY_LOAD_PAT BIT(14)
#define ENTRY_LOAD_EFER BIT(15)

/* Interruption information (SDM vol. 3, 24.8.3, 24.9.2) */
#define INTR_VECTOR 0xffu
#define INTR_TYPE(t) ((u32)(t) << 8)
#define INTR_TYPE_MASK INTR_TYPE(7)
#define INTR_EXTERNAL INTR_TYPE(0)
#define INTR_NMI INTR_TYPE(2)
#define INTR_HW_EXCEPTION INTR_TYPE(3)
#define INTR_SW_INTERRUPT INTR_TYPE(4)
#define INTR_PRIV_SW_EXCEPTION INTR_TYPE(5)
#define INTR_SW_EXCEPTION INTR_TYPE(6)
#define INTR_HAS_ERROR BIT(11)
#define INTR_VALID BIT(31)

/* Guest interruptibility and activity state */
#define BLOCKED_BY_STI BIT(0)
#define BLOCKED_BY_MOV_SS BIT(1)
#define BLOCKED_BY_NMI BIT(3)
#define ACTIVITY_ACTIVE 0
#define ACTIVITY_HLT 1

static inline u64 vmread_raw(u64 field)
{
	u64 v;

	__asm__ volatile("vmread %1, %0" : "=r"(v) : "r"(field) : "cc");
	return v;
}

__noreturn void vmwrite_failed(u64 field, u64 value);

static inline void vmwrite_raw(u64 field, u64 value)
{
	bool fail;

	__asm__ volatile("vmwrite %1, %2" : "=@ccbe"(fail) : "r"(value), "r"(field) : "memory");
	if (unlikely(fail))
		vmwrite_failed(field, value);
}

static inline u16 vmread16(enum vmcs16 f)
{
	return vmread_raw(f);
}

static inline u32 vmread32(enum vmcs32 f)
{
	return vmread_raw(f);
}

static inline u64 vmread64(enum vmcs64 f)
{
	return vmread_raw(f);
}

static inline u64 vmreadn(enum vmcsnw f)
{
	return vmread_raw(f);
}

static inline void vmwrite16(enum vmcs16 f, u16 v)
{
	vmwrite_raw(f, v);
}

static inline void vmwrite32(enum vmcs32 f, u32 v)
{
	vmwrite_raw(f, v);
}

static inline void vmwrite64(enum vmcs64 f, u64 v)
{
	vmwrite_raw(f, v);
}

static inline void vmwriten(enum vmcsnw f, u64 v)
{
	vmwrite_raw(f, v);
}

#endif
