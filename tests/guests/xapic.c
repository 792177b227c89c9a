/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The local APIC's page through every form of instruction with which kernels touch it. The timer's
 * initial count, masked, is the register to write: it keeps all 32 bits. From x2APIC mode the
 * guest first changes to xAPIC mode.
 */
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

#define TMICT (APIC_MMIO + APIC_TMICT)
#define VECTOR 0x60

static volatile u32 taken;

static u32 read_plain(void)
{
	return *(volatile u32 *)TMICT;
}

#define EXPECT(what, want)                                                                         \
	do {                                                                                       \
		u32 _got = (what), _want = (want);                                                 \
		CHECK(_got == _want, "%s: %x, not %x", #what, _got, _want);                        \
	} while (0)

/* MOV from memory: plain, with SIB and displacements, into a high register, through FS, moffs. */
static void loads(u32 want)
{
	u64 base = APIC_MMIO, index = APIC_TMICT / 4, v = ~0ull;
	u32 r;

	__asm__ volatile("movl (%1), %0" : "=r"(r) : "r"(TMICT) : "memory");
	EXPECT(r, want);
	__asm__ volatile("movl (%1,%2,4), %0" : "=r"(r) : "r"(base), "r"(index) : "memory");
	EXPECT(r, want);
	__asm__ volatile("movl 0x380(%1), %0" : "=r"(r) : "r"(base) : "memory");
	EXPECT(r, want);
	__asm__ volatile("movl -0x10(%1), %0" : "=r"(r) : "r"(TMICT + 0x10) : "memory");
	EXPECT(r, want);
	__asm__ volatile("movl (%1), %%r13d; movl %%r13d, %0"
			 : "=r"(r)
			 : "r"(TMICT)
			 : "memory", "r13");
	EXPECT(r, want);
	__asm__ volatile("movq %2, %%r12; movl (%%r12,%1,4), %0"
			 : "=&r"(r)
			 : "r"(index), "r"(base)
			 : "memory", "r12");
	EXPECT(r, want);
	__asm__ volatile("movabsl 0xfee00380, %%eax" : "=a"(r)::"memory");
	EXPECT(r, want);
	__asm__ volatile("movl %1, %k0" : "+r"(v) : "m"(*(volatile u32 *)TMICT) : "memory");
	CHECK(v == want, "a 32-bit load does not clear the upper half: %llx",
	      (unsigned long long)v);
	wrmsr(0xc0000100, APIC_MMIO);
	__asm__ volatile("movl %%fs:0x380, %0" : "=r"(r)::"memory");
	EXPECT(r, want);
	wrmsr(0xc0000100, 0);
}

/* MOV to memory: from registers, an immediate, moffs; the 32-bit address size prefix. */
static void stores(void)
{
	u64 base = APIC_MMIO;

	__asm__ volatile("movl %0, (%1)" ::"r"(0x11223344), "r"(TMICT) : "memory");
	EXPECT(read_plain(), 0x11223344);
	__asm__ volatile("movl %0, %%r9d; movl %%r9d, 0x380(%1)" ::"r"(0x55667788), "r"(base)
			 : "memory", "r9");
	EXPECT(read_plain(), 0x55667788);
	__asm__ volatile("movl $0x89abcdef, 0x380(%0)" ::"r"(base) : "memory");
	EXPECT(read_plain(), 0x89abcdef);
	__asm__ volatile("movabsl %%eax, 0xfee00380" ::"a"(0x13572468) : "memory");
	EXPECT(read_plain(), 0x13572468);
	__asm__ volatile("movl %0, (%k1)" ::"r"(0x24681357), "r"(TMICT) : "memory");
	EXPECT(read_plain(), 0x24681357);
}

/* Read-modify-write, exchange, comparison. */
static void arithmetic(void)
{
	u64 m = TMICT;
	u32 r = 0xcafe0000;
	bool zero;

	*(volatile u32 *)m = 0xf0f0f0f0;
	__asm__ volatile("orl $0x0000000f, (%0)" ::"r"(m) : "memory", "cc");
	EXPECT(read_plain(), 0xf0f0f0ff);
	__asm__ volatile("andl %1, (%0)" ::"r"(m), "r"(0xffff0000) : "memory", "cc");
	EXPECT(read_plain(), 0xf0f00000);
	__asm__ volatile("addl $1, (%0)" ::"r"(m) : "memory", "cc");
	EXPECT(read_plain(), 0xf0f00001);
	__asm__ volatile("xchgl %0, (%1)" : "+r"(r) : "r"(m) : "memory");
	EXPECT(r, 0xf0f00001);
	EXPECT(read_plain(), 0xcafe0000);
	__asm__ volatile("cmpl $0xcafe0000, (%1); sete %0" : "=q"(zero) : "r"(m) : "memory", "cc");
	CHECK(zero, "CMP with memory");
	__asm__ volatile("testl $0x0000ffff, (%1); sete %0" : "=q"(zero) : "r"(m) : "memory", "cc");
	CHECK(zero, "TEST with memory");
	__asm__ volatile("xorl (%1), %0" : "+r"(r) : "r"(m) : "memory", "cc");
	EXPECT(r, 0xf0f00001 ^ 0xcafe0000);
}

static void strings(void)
{
	u32 buf[1] = {0x77665544};
	u64 d = TMICT, s = (u64)buf, n = 1;

	__asm__ volatile("movsl" : "+D"(d), "+S"(s)::"memory");
	EXPECT(read_plain(), 0x77665544);
	CHECK(d == TMICT + 4 && s == (u64)buf + 4, "MOVS does not advance");
	d = TMICT;
	__asm__ volatile("stosl" : "+D"(d) : "a"(0x01020304) : "memory");
	EXPECT(read_plain(), 0x01020304);
	d = (u64)buf;
	s = TMICT;
	__asm__ volatile("rep movsl" : "+D"(d), "+S"(s), "+c"(n)::"memory");
	EXPECT(buf[0], 0x01020304);
	CHECK(n == 0 && s == TMICT + 4, "REP MOVS does not end");
}

static void on_ipi(struct frame *f)
{
	taken++;
	/* As Linux does it: an immediate. */
	__asm__ volatile("movl $0, 0xb0(%0)" ::"r"(APIC_MMIO) : "memory");
}

static void interrupts(void)
{
	irq_set(VECTOR, on_ipi);
	apic_self_ipi(VECTOR);
	CHECK(apic_read(APIC_IRR + (VECTOR / 32) * 0x10) & 1u << VECTOR % 32, "IRR lacks the IPI");
	apic_write(APIC_TPR, VECTOR & 0xf0);
	sti();
	delay_ticks(10000);
	CHECK(!taken, "an interrupt passes a TPR of its own class");
	EXPECT(apic_read(APIC_PPR), VECTOR & 0xf0);
	apic_write(APIC_TPR, 0);
	for (u64 start = rdtsc(); !taken && rdtsc() - start < 100000000;)
		pause();
	cli();
	CHECK(taken == 1, "the self-IPI came %u times", taken);
}

static void errors(void)
{
	apic_write(APIC_ESR, 0);
	(void)apic_read(0x10); /* reserved */
	apic_write(APIC_ESR, 0);
	EXPECT(apic_read(APIC_ESR), 0x80); /* illegal register address */
	if (!strcmp(hypervisor(), "TCGTCGTCGTCG"))
		return; /* which never clears it */
	apic_write(APIC_ESR, 0);
	EXPECT(apic_read(APIC_ESR), 0);
}

int guest_main(void)
{
	if (x2apic)
		apic_set_mode(false);
	printf("xapic: id %u version %x\n", apic_id(), apic_read(APIC_VERSION));
	stores();
	loads(read_plain());
	arithmetic();
	strings();
	apic_write(APIC_TMICT, 0);
	interrupts();
	errors();
	return 0;
}
