/* SPDX-License-Identifier: BSD-2-Clause */
/* Exceptions and interrupts: the IDT, handlers by vector, and the end of a guest that faults. */
#include "tests/guests/lib/guest.h"

#define CODE64 0x08

struct gate {
	u16 offset0, selector;
	u8 ist, type;
	u16 offset16;
	u32 offset32, reserved;
};

struct fixup {
	u64 at, to;
};

void trap(struct frame *frame);
extern const u8 isr_stubs[256][16];
extern const struct fixup fixups[], fixups_end[];

static struct gate idt[256];
static irq_handler handlers[256];

static void set(u8 vector, u64 entry)
{
	idt[vector] = (struct gate){
	    .offset0 = entry,
	    .selector = CODE64,
	    .type = 0x8e, /* interrupt gate */
	    .offset16 = entry >> 16,
	    .offset32 = entry >> 32,
	};
}

void gate_set(u8 vector, void (*entry)(void))
{
	set(vector, (u64)entry);
}

void irq_set(u8 vector, irq_handler handler)
{
	handlers[vector] = handler;
	set(vector, (u64)isr_stubs[vector]);
}

void idt_init(void)
{
	for (u32 i = 0; i < 256; i++)
		set(i, (u64)isr_stubs[i]);
}

void idt_load(void)
{
	struct {
		u16 limit;
		u64 base;
	} __packed idtr = {sizeof(idt) - 1, (u64)idt};

	__asm__ volatile("lidt %0" ::"m"(idtr));
}

static __noreturn void die(const struct frame *f)
{
	u64 cr2;

	__asm__ volatile("mov %%cr2, %0" : "=r"(cr2));
	printf("cpu %u vector %llu error %llx rip %llx rsp %llx rflags %llx cr2 %llx\n", smp_cpu(),
	       (unsigned long long)f->vector, (unsigned long long)f->error,
	       (unsigned long long)f->rip, (unsigned long long)f->rsp,
	       (unsigned long long)f->rflags, (unsigned long long)cr2);
	printf("rax %llx rbx %llx rcx %llx rdx %llx rsi %llx rdi %llx rbp %llx r8 %llx\n",
	       (unsigned long long)f->rax, (unsigned long long)f->rbx, (unsigned long long)f->rcx,
	       (unsigned long long)f->rdx, (unsigned long long)f->rsi, (unsigned long long)f->rdi,
	       (unsigned long long)f->rbp, (unsigned long long)f->r8);
	test_fail("unexpected %s %llu at %llx", f->vector < 32 ? "exception" : "interrupt",
		  (unsigned long long)f->vector, (unsigned long long)f->rip);
}

void trap(struct frame *f)
{
	if (handlers[f->vector]) {
		handlers[f->vector](f);
		return;
	}
	for (const struct fixup *x = fixups; x < fixups_end; x++) {
		if (f->vector < 32 && f->rip == x->at) {
			f->rip = x->to;
			f->rax = f->vector;
			return;
		}
	}
	die(f);
}
