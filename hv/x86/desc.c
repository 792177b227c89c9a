/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds and loads GDT, TSS and IDT. What a trap then does is decided in hv/traps.c. */
#include "hv/x86/desc.h"

#include "hv/x86/cpu.h"

#define GDT_CODE64 0x00af9b000000ffffull
#define GDT_DATA 0x00cf93000000ffffull
#define TSS_AVAILABLE 0x89ull

struct idt_gate {
	u16 offset0, selector;
	u8 ist, type;
	u16 offset1;
	u32 offset2, reserved;
} __packed;

#define TRAP_STUB_SIZE 16
extern const char trap_stubs[]; /* 256 of TRAP_STUB_SIZE bytes each: traps.asm */

static struct idt_gate idt[256] __aligned(16);

void desc_build(struct cpu_tables *t, const u64 ist[NR_ISTS])
{
	u64 base = (u64)&t->tss;

	t->tss = (struct tss){.iomap_base = sizeof(struct tss)};
	for (int i = 1; i < NR_ISTS; i++)
		t->tss.ist[i - 1] = ist[i];
	t->gdt[0] = 0;
	t->gdt[SEL_CODE / 8] = GDT_CODE64;
	t->gdt[SEL_DATA / 8] = GDT_DATA;
	t->gdt[SEL_TSS / 8] = (sizeof(struct tss) - 1) | (base & 0xffffff) << 16 |
			      TSS_AVAILABLE << 40 | (base >> 24 & 0xff) << 56;
	t->gdt[SEL_TSS / 8 + 1] = base >> 32;
}

static void build_idt(void)
{
	for (int v = 0; v < 256; v++) {
		u64 at = (u64)trap_stubs + v * TRAP_STUB_SIZE;

		idt[v] = (struct idt_gate){
		    .offset0 = at,
		    .selector = SEL_CODE,
		    .ist = v == VEC_NMI	 ? IST_NMI
			   : v == VEC_MC ? IST_MC
			   : v == VEC_DF ? IST_DF
					 : 0,
		    .type = 0x8e,
		    .offset1 = at >> 16,
		    .offset2 = at >> 32,
		};
	}
}

struct desc_ptr desc_idt(void)
{
	return (struct desc_ptr){.limit = sizeof(idt) - 1, .base = (u64)idt};
}

void desc_load(struct cpu_tables *t)
{
	struct desc_ptr gdtr = {.limit = sizeof(t->gdt) - 1, .base = (u64)t->gdt};
	struct desc_ptr idtr = desc_idt();

	if (!idt[0].type)
		build_idt();
	__asm__ volatile("lgdt %0" : : "m"(gdtr));
	__asm__ volatile("pushq %0\n\t"
			 "leaq 1f(%%rip), %%rax\n\t"
			 "pushq %%rax\n\t"
			 "lretq\n"
			 "1:\n\t"
			 "mov %1, %%ds\n\t"
			 "mov %1, %%es\n\t"
			 "mov %1, %%ss\n\t"
			 "mov %1, %%fs\n\t"
			 "mov %1, %%gs"
			 :
			 : "i"(SEL_CODE), "r"(SEL_DATA)
			 : "rax", "memory");
	__asm__ volatile("ltr %w0" : : "r"(SEL_TSS));
	__asm__ volatile("lidt %0" : : "m"(idtr));
}
