/* SPDX-License-Identifier: BSD-2-Clause */
/* Segment, interrupt and task tables of a pCPU, and the trap frame that the stubs in traps.asm
 * leave. */
#ifndef VLAG_X86_DESC_H
#define VLAG_X86_DESC_H

#include "hv/lib/types.h"

#define SEL_CODE 0x08
#define SEL_DATA 0x10
#define SEL_TSS 0x18

/* Interrupt stacks: one each for what may strike anywhere (SDM vol. 3, 6.14.5). */
enum { IST_NONE, IST_NMI, IST_MC, IST_DF, NR_ISTS };

/* Vectors of our own interrupts, above everything a legacy device could raise. */
#define VEC_KICK 0xf0
#define VEC_TIMER 0xf1
#define VEC_SPURIOUS 0xff

struct tss {
	u32 reserved0;
	u64 rsp[3];
	u64 reserved1;
	u64 ist[7];
	u64 reserved2;
	u16 reserved3;
	u16 iomap_base;
} __packed;

struct cpu_tables {
	u64 gdt[5] __aligned(16); /* null, code, data, TSS (two slots) */
	struct tss tss;
};

struct desc_ptr {
	u16 limit;
	u64 base;
} __packed;

struct trap_frame {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax;
	u64 vector, error;
	u64 rip, cs, rflags, rsp, ss;
};

/* Fills @t; @ist[1..3] are the tops of the interrupt stacks. */
void desc_build(struct cpu_tables *t, const u64 ist[NR_ISTS]);

/* Loads GDT, segments, TSS and the (shared) IDT on this CPU. */
void desc_load(struct cpu_tables *t);

/* Address and limit of the IDT, for HOST_IDTR. */
struct desc_ptr desc_idt(void);

#endif
