/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one instruction after STI and after MOV SS, in which no interrupt comes: to the instruction,
 * with and without an exit in it. And STI; HLT by the thousand, with an IPI or a timer that comes
 * at every moment around it: none is slept through. Argument: n=.
 */
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

#define VECTOR 0x60
#define TIMER 0x61
#define TDCR_1 0xb

static u32 taken, up, acks;
static u64 rip, n;

static void on_ipi(struct frame *f)
{
	rip = f->rip;
	taken++;
	apic_eoi();
}

/* An interrupt waits; runs @code, which has labels 1 and 2: it must come exactly at 2 of those. */
#define COMES_AT_2(what, code)                                                                     \
	do {                                                                                       \
		u64 _at, _ss;                                                                      \
		taken = 0;                                                                         \
		__asm__ volatile("mov %%ss, %0" : "=r"(_ss));                                      \
		apic_self_ipi(VECTOR);                                                             \
		__asm__ volatile("lea 2f(%%rip), %0\n" code "\n2: nop; nop; cli"                   \
				 : "=&r"(_at)                                                      \
				 : "r"(_ss)                                                        \
				 : "memory", "rax", "rbx", "rcx", "rdx", "cc");                    \
		CHECK(taken == 1, "%s: %u interrupts", what, taken);                               \
		CHECK(rip == _at, "%s: comes %lld bytes away from its place", what,                \
		      (long long)(rip - _at));                                                     \
	} while (0)

static void shadows(void)
{
	COMES_AT_2("STI", "sti; mov $1, %%eax");
	COMES_AT_2("STI and an exit", "xor %%eax, %%eax; sti; cpuid");
	COMES_AT_2("STI twice", "sti; sti");
	if (strcmp(hypervisor(), "TCGTCGTCGTCG")) { /* which forgets the second shadow */
		COMES_AT_2("STI and MOV SS", "sti; mov %1, %%ss; mov $1, %%eax");
		COMES_AT_2("STI, MOV SS and an exit", "xor %%eax, %%eax; sti; mov %1, %%ss; cpuid");
	}
	COMES_AT_2("POPF has no shadow", "pushf; orl $0x200, (%%rsp); popf");
	/* The other way round: what the shadow's instruction sends comes right after it. */
	if (x2apic) {
		u64 at;

		taken = 0;
		__asm__ volatile("lea 2f(%%rip), %0; sti; wrmsr\n2: nop; nop; cli"
				 : "=&r"(at)
				 : "c"(APIC_MSR(APIC_SELF_IPI)), "a"(VECTOR), "d"(0)
				 : "memory");
		CHECK(taken == 1 && rip == at, "self-IPI in the shadow of STI: %u, %lld bytes away",
		      taken, (long long)(rip - at));
	}
	/* STI; CLI lets nothing in. */
	taken = 0;
	apic_self_ipi(VECTOR);
	__asm__ volatile("sti; cli; nop; nop" ::: "memory");
	CHECK(!taken, "an interrupt between STI and CLI");
	/* In HLT right after STI, it ends HLT. */
	__asm__ volatile("lea 2f(%%rip), %%rax; mov %%rax, %0; sti; hlt\n2: cli"
			 : "=m"(up)
			 :
			 : "memory", "rax");
	CHECK(taken == 1, "STI; HLT: %u interrupts", taken);
	up = 0;
}

static void on_timer(struct frame *f)
{
	taken++;
	apic_eoi();
}

/* The timer fires before, in and after STI; HLT: at every tick of the first 1,500 after it was set,
 * and then the same with other code in between. A lost one would sleep for ever. */
static void timer_races(void)
{
	apic_write(APIC_LVT_TIMER, TIMER);
	apic_write(APIC_TDCR, TDCR_1);
	for (u64 i = 1; i <= n; i++) {
		taken = 0;
		apic_write(APIC_TMICT, 1 + i % 1500);
		for (u64 k = i / 1500; k--;)
			barrier();
		while (!taken) {
			sti_hlt();
			cli();
		}
		CHECK(taken == 1, "one-shot: %u interrupts", taken);
	}
	apic_write(APIC_LVT_TIMER, LVT_MASKED);
}

static void on_poke(struct frame *f)
{
	apic_eoi();
	__atomic_add_fetch(&acks, 1, __ATOMIC_SEQ_CST);
}

static u32 work, done;

/* As an idle loop does it: look for work with interrupts off, then STI; HLT. */
static void sleeper(u64 unused)
{
	WRITE_ONCE(up, 1);
	while (READ_ONCE(done) < n) {
		while (READ_ONCE(work) == done) {
			sti_hlt();
			cli();
		}
		__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
	}
	sti();
	pause();
	cli();
}

static void ipi_races(void)
{
	irq_set(VECTOR + 2, on_poke);
	smp_run(1, sleeper, 0);
	wait_count(&up, 1, "sleepers");
	for (u64 i = 1; i <= n; i++) {
		WRITE_ONCE(work, i);
		apic_icr(smp_apic_id(1), ICR_FIXED | (VECTOR + 2));
		wait_count(&done, i, "a CPU in STI; HLT");
		for (u64 k = 0; k < i % 211 * 4; k++)
			barrier();
	}
	smp_wait(1);
	CHECK(acks <= n, "%u interrupts of %llu IPIs", acks, (unsigned long long)n);
}

int guest_main(void)
{
	n = arg("n", 2000);
	irq_set(VECTOR, on_ipi);
	irq_set(TIMER, on_timer);
	shadows();
	timer_races();
	if (smp_start() > 1)
		ipi_races();
	return 0;
}
