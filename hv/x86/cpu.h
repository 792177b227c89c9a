/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions of x86 that C does not know, one inline function each, and the architectural
 * numbers that go with them. */
#ifndef VLAG_X86_CPU_H
#define VLAG_X86_CPU_H

#include "hv/lib/types.h"

#define PAGE_SIZE 4096ul
#define PAGE_SIZE_2M (2 * MiB)
#define PAGE_SIZE_1G GiB

/* CR0, CR4, EFER, RFLAGS (SDM vol. 3, 2.5; vol. 1, 3.4.3) */
#define CR0_PE BIT(0)
#define CR0_MP BIT(1)
#define CR0_EM BIT(2)
#define CR0_TS BIT(3)
#define CR0_ET BIT(4)
#define CR0_NE BIT(5)
#define CR0_WP BIT(16)
#define CR0_NW BIT(29)
#define CR0_CD BIT(30)
#define CR0_PG BIT(31)

#define CR4_PAE BIT(5)
#define CR4_MCE BIT(6)
#define CR4_PGE BIT(7)
#define CR4_OSFXSR BIT(9)
#define CR4_OSXMMEXCPT BIT(10)
#define CR4_VMXE BIT(13)
#define CR4_SMXE BIT(14)
#define CR4_PCIDE BIT(17)
#define CR4_OSXSAVE BIT(18)
#define CR4_SMEP BIT(20)
#define CR4_SMAP BIT(21)

#define EFER_SCE BIT(0)
#define EFER_LME BIT(8)
#define EFER_LMA BIT(10)
#define EFER_NXE BIT(11)

#define RFLAGS_FIXED BIT(1)
#define RFLAGS_TF BIT(8)
#define RFLAGS_IF BIT(9)

/* Model-specific registers (SDM vol. 4) */
#define MSR_TSC 0x10
#define MSR_APIC_BASE 0x1b
#define MSR_FEATURE_CONTROL 0x3a
#define MSR_TSC_ADJUST 0x3b
#define MSR_SPEC_CTRL 0x48
#define MSR_PRED_CMD 0x49
#define MSR_BIOS_SIGN_ID 0x8b
#define MSR_PLATFORM_INFO 0xce
#define MSR_MTRRCAP 0xfe
#define MSR_ARCH_CAPABILITIES 0x10a
#define MSR_MISC_FEATURES_ENABLES 0x140
#define MSR_SYSENTER_CS 0x174
#define MSR_SYSENTER_ESP 0x175
#define MSR_SYSENTER_EIP 0x176
#define MSR_MCG_CAP 0x179
#define MSR_MCG_STATUS 0x17a
#define MSR_MISC_ENABLE 0x1a0
#define MSR_DEBUGCTL 0x1d9
#define MSR_MTRR_PHYSBASE0 0x200
#define MSR_MTRR_FIX64K 0x250
#define MSR_PAT 0x277
#define MSR_MTRR_DEF_TYPE 0x2ff
#define MSR_VMX_BASIC 0x480
#define MSR_VMX_PINBASED 0x481
#define MSR_VMX_PROCBASED 0x482
#define MSR_VMX_EXIT 0x483
#define MSR_VMX_ENTRY 0x484
#define MSR_VMX_MISC 0x485
#define MSR_VMX_CR0_FIXED0 0x486
#define MSR_VMX_CR0_FIXED1 0x487
#define MSR_VMX_CR4_FIXED0 0x488
#define MSR_VMX_CR4_FIXED1 0x489
#define MSR_VMX_PROCBASED2 0x48b
#define MSR_VMX_EPT_VPID_CAP 0x48c
#define MSR_VMX_TRUE_PINBASED 0x48d
#define MSR_VMX_TRUE_PROCBASED 0x48e
#define MSR_VMX_TRUE_EXIT 0x48f
#define MSR_VMX_TRUE_ENTRY 0x490
#define MSR_TSC_DEADLINE 0x6e0
#define MSR_X2APIC 0x800
#define MSR_XSS 0xda0
#define MSR_EFER 0xc0000080
#define MSR_STAR 0xc0000081
#define MSR_LSTAR 0xc0000082
#define MSR_CSTAR 0xc0000083
#define MSR_FMASK 0xc0000084
#define MSR_FS_BASE 0xc0000100
#define MSR_GS_BASE 0xc0000101
#define MSR_KERNEL_GS_BASE 0xc0000102
#define MSR_TSC_AUX 0xc0000103

#define APIC_BASE_BSP BIT(8)
#define APIC_BASE_EXTD BIT(10)
#define APIC_BASE_EN BIT(11)

/* Exception vectors (SDM vol. 3, table 6-1) */
enum {
	VEC_DE = 0,
	VEC_DB = 1,
	VEC_NMI = 2,
	VEC_BP = 3,
	VEC_UD = 6,
	VEC_NM = 7,
	VEC_DF = 8,
	VEC_TS = 10,
	VEC_NP = 11,
	VEC_SS = 12,
	VEC_GP = 13,
	VEC_PF = 14,
	VEC_AC = 17,
	VEC_MC = 18,
};

struct cpuid_regs {
	u32 eax, ebx, ecx, edx;
};

static inline struct cpuid_regs cpuid(u32 leaf, u32 subleaf)
{
	struct cpuid_regs r;

	__asm__ volatile("cpuid"
			 : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
			 : "a"(leaf), "c"(subleaf));
	return r;
}

static inline u64 rdmsr(u32 msr)
{
	u32 lo, hi;

	__asm__ volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
	return (u64)hi << 32 | lo;
}

static inline void wrmsr(u32 msr, u64 value)
{
	__asm__ volatile("wrmsr" : : "c"(msr), "a"((u32)value), "d"((u32)(value >> 32)) : "memory");
}

/* The time stamp counter. Not ordered against loads and stores around it: fine for timers and
 * statistics. */
static inline u64 rdtsc(void)
{
	u64 lo, hi; /* the CPU clears the upper halves */

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return hi << 32 | lo;
}

static inline void cpu_relax(void)
{
	__asm__ volatile("pause" : : : "memory");
}

static inline void outb(u16 port, u8 value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void outw(u16 port, u16 value)
{
	__asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static inline void outl(u16 port, u32 value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static inline u8 inb(u16 port)
{
	u8 v;

	__asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port));
	return v;
}

static inline u16 inw(u16 port)
{
	u16 v;

	__asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port));
	return v;
}

static inline u32 inl(u16 port)
{
	u32 v;

	__asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port));
	return v;
}

#define DEFINE_CR(n)                                                                               \
	static inline u64 read_cr##n(void)                                                         \
	{                                                                                          \
		u64 v;                                                                             \
                                                                                                   \
		__asm__ volatile("mov %%cr" #n ", %0" : "=r"(v));                                  \
		return v;                                                                          \
	}                                                                                          \
	static inline void write_cr##n(u64 v)                                                      \
	{                                                                                          \
		__asm__ volatile("mov %0, %%cr" #n : : "r"(v) : "memory");                         \
	}
DEFINE_CR(0)
DEFINE_CR(2)
DEFINE_CR(3)
DEFINE_CR(4)
#undef DEFINE_CR

static inline u64 read_rflags(void)
{
	u64 v;

	__asm__ volatile("pushfq; pop %0" : "=r"(v));
	return v;
}

static inline void cli(void)
{
	__asm__ volatile("cli" : : : "memory");
}

/* Waits for an interrupt; called and returns with interrupts off. STI's shadow closes the gap
 * before HLT. */
static inline void sti_hlt_cli(void)
{
	__asm__ volatile("sti; hlt; cli" : : : "memory");
}

__noreturn static inline void hlt_forever(void)
{
	for (;;)
		__asm__ volatile("cli; hlt");
}

static inline void invlpg(u64 va)
{
	__asm__ volatile("invlpg (%0)" : : "r"(va) : "memory");
}

static inline void xsetbv(u32 index, u64 value)
{
	__asm__ volatile("xsetbv" : : "c"(index), "a"((u32)value), "d"((u32)(value >> 32)));
}

static inline u64 xgetbv(u32 index)
{
	u32 lo, hi;

	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(index));
	return (u64)hi << 32 | lo;
}

#endif
