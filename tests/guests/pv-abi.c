/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * KVM's paravirtual interface at its edges: MSRs with addresses that are bad, unaligned, beyond
 * memory, switched off and on again; every hypercall, and one that there is not. What the VM is not
 * offered must not be there. With two or more CPUs also PV unhalt and IPIs by hypercall.
 * Arguments: features= what leaf 0x40000001 must say, n= rounds.
 */
#include "tests/guests/lib/pv.h"

#define VECTOR 0x60
#define PATIENCE 400000000ull /* ticks */
#define BEYOND (1ull << 40)
#define JUNK 0x5a

static struct kvm_steal_time steal __aligned(64);
static u8 raw[128] __aligned(64);
static u32 received, rounds_done, ready;

static u64 memory_end(void)
{
	return MiB + multiboot_info()->mem_upper * KiB;
}

static bool all_junk(const void *p, u64 len)
{
	for (u64 i = 0; i < len; i++) {
		if (((const u8 *)p)[i] != JUNK)
			return false;
	}
	return true;
}

/* Neither read nor written by anybody. */
static void absent(u32 msr)
{
	u64 v;

	CHECK(rdmsr_safe(msr, &v) == GP, "RDMSR of %x does not raise #GP", msr);
	CHECK(wrmsr_safe(msr, 0) == GP, "WRMSR of 0 to %x does not raise #GP", msr);
	CHECK(wrmsr_safe(msr, (u64)raw | 1) == GP, "WRMSR to %x does not raise #GP", msr);
}

static void takes(u32 msr, u64 value)
{
	CHECK(wrmsr_safe(msr, value) == -1, "WRMSR of %llx to %x raises an exception",
	      (unsigned long long)value, msr);
	CHECK(rdmsr(msr) == value, "MSR %x reads %llx, not %llx", msr,
	      (unsigned long long)rdmsr(msr), (unsigned long long)value);
}

static void steal_time(void)
{
	u64 before;

	takes(MSR_KVM_STEAL_TIME, 0);
	for (u32 bit = 1; bit <= 5; bit++)
		CHECK(wrmsr_safe(MSR_KVM_STEAL_TIME, (u64)&steal | BIT(bit) | 1) == GP,
		      "bit %u of the steal time MSR does not raise #GP", bit);
	CHECK(rdmsr(MSR_KVM_STEAL_TIME) == 0, "a refused value is in the steal time MSR");
	takes(MSR_KVM_STEAL_TIME, BEYOND | 1);
	takes(MSR_KVM_STEAL_TIME, memory_end() | 1);
	takes(MSR_KVM_STEAL_TIME, ~0x3full | 1);
	takes(MSR_KVM_STEAL_TIME, (u64)&steal); /* not enabled */
	outb(PORT_POST, 0);
	CHECK(!steal.version && !steal.steal, "a record that is not enabled is written");

	/* What is there is added to; an odd version is left over from somebody who died. */
	steal.steal = before = 1ull << 50;
	steal.version = 7;
	steal.preempted = KVM_VCPU_PREEMPTED | KVM_VCPU_FLUSH_TLB;
	takes(MSR_KVM_STEAL_TIME, (u64)&steal | 1);
	CHECK(pv_steal_ns(&steal) >= before, "steal time went back");
	CHECK(!(steal.version & 1), "version %u is odd outside of an update", steal.version);
	CHECK(!READ_ONCE(steal.preempted), "a CPU that runs is marked as preempted");
	before = pv_steal_ns(&steal);
	takes(MSR_KVM_STEAL_TIME, 0);
	steal.version = 2;
	delay_ticks(20000000);
	CHECK(steal.version == 2 && steal.steal == before,
	      "a record that was switched off is written");
	takes(MSR_KVM_STEAL_TIME, (u64)&steal | 1);
	CHECK(pv_steal_ns(&steal) >= before, "steal time went back over off and on");
	/* The last whole record of memory. */
	takes(MSR_KVM_STEAL_TIME, (memory_end() - 64) | 1);
	takes(MSR_KVM_STEAL_TIME, 0);
}

static void system_time(u32 msr)
{
	struct pvclock_vcpu_time_info *r = (void *)(raw + 2); /* bit 0 is the switch */
	u64 last;

	memset(raw, JUNK, sizeof(raw));
	takes(msr, (u64)r);
	CHECK(all_junk(raw, sizeof(raw)), "system time is written although it is off");
	takes(msr, BEYOND | 1);
	takes(msr, ~0ull);
	takes(msr, (memory_end() - 16) | 1); /* half of it is beyond the end */
	takes(msr, (u64)r | 1);
	CHECK(all_junk(raw, 2) && all_junk(raw + 2 + sizeof(*r), 32),
	      "bytes beside it are written");
	CHECK(r->tsc_to_system_mul, "the record is not filled when WRMSR returns");
	last = pv_clock_ns(r);
	for (u32 i = 0; i < 1000; i++) {
		u64 now = pv_clock_ns(r);

		CHECK(now >= last, "the clock goes back");
		last = now;
		outb(PORT_POST, 0);
	}
	takes(msr, 0);
}

static void wall_clock(u32 msr)
{
	struct pvclock_wall_clock *r = (void *)(raw + 1);

	takes(msr, 0);
	takes(msr, BEYOND);
	takes(msr, memory_end() - 4);
	memset(raw, JUNK, sizeof(raw));
	takes(msr, (u64)r);
	CHECK(all_junk(raw, 1) && all_junk(raw + 1 + sizeof(*r), 32),
	      "bytes beside it are written");
	CHECK(!(r->version & 1), "version %u of the wall clock is odd", r->version);
	CHECK(r->nsec < 1000000000, "%u ns in a second", r->nsec);
}

static void msrs(u32 features)
{
	static const u32 old_and_new[2][2] = {{MSR_KVM_SYSTEM_TIME, MSR_KVM_WALL_CLOCK},
					      {MSR_KVM_SYSTEM_TIME_NEW, MSR_KVM_WALL_CLOCK_NEW}};

	absent(MSR_KVM_ASYNC_PF_EN);
	absent(MSR_KVM_PV_EOI_EN);
	absent(0x4b564d06);
	for (u32 i = 0; i < 2; i++) {
		if (!(features & FEATURE_CLOCK)) {
			absent(old_and_new[i][0]);
			absent(old_and_new[i][1]);
			continue;
		}
		system_time(old_and_new[i][0]);
		wall_clock(old_and_new[i][1]);
	}
	if (features & FEATURE_STEAL)
		steal_time();
	else
		absent(MSR_KVM_STEAL_TIME);
	if (!(features & FEATURE_POLL)) {
		absent(MSR_KVM_POLL_CONTROL);
		return;
	}
	CHECK(rdmsr(MSR_KVM_POLL_CONTROL) == 1, "polling is not allowed at first");
	takes(MSR_KVM_POLL_CONTROL, 0);
	CHECK(wrmsr_safe(MSR_KVM_POLL_CONTROL, 2) == GP, "reserved bit of poll control");
	takes(MSR_KVM_POLL_CONTROL, 1);
}

static void expect(s64 got, s64 wanted, const char *what)
{
	CHECK(got == wanted, "%s: %lld, not %lld", what, (long long)got, (long long)wanted);
}

static void hypercalls(u32 features)
{
	u32 me = apic_id();

	expect(hypercall(0xdead, 0, 0, 0, 0), -ENOSYS, "unknown");
	expect(hypercall(0, 0, 0, 0, 0), -ENOSYS, "number 0");
	expect(hypercall(BIT(32) | HC_VAPIC_POLL_IRQ, 0, 0, 0, 0), -ENOSYS,
	       "bit 32 in 64-bit mode");
	expect(hypercall(HC_VAPIC_POLL_IRQ, 0, 0, 0, 0), 0, "VAPIC_POLL_IRQ");
	if (features & FEATURE_YIELD) {
		expect(hypercall(HC_SCHED_YIELD, me, 0, 0, 0), 0, "SCHED_YIELD to itself");
		expect(hypercall(HC_SCHED_YIELD, ~0ull, 0, 0, 0), 0, "SCHED_YIELD to nobody");
	} else {
		expect(hypercall(HC_SCHED_YIELD, me, 0, 0, 0), -ENOSYS, "SCHED_YIELD");
	}
	if (features & FEATURE_UNHALT) {
		expect(hypercall(HC_KICK_CPU, 0, ~0ull, 0, 0), 0, "KICK_CPU of nobody");
		expect(hypercall(HC_KICK_CPU, 0, me, 0, 0), 0, "KICK_CPU of itself");
		__asm__ volatile("cli; hlt"); /* has just been ended */
	} else {
		expect(hypercall(HC_KICK_CPU, 0, me, 0, 0), -ENOSYS, "KICK_CPU");
	}
	if (!(features & FEATURE_IPI)) {
		expect(hypercall(HC_SEND_IPI, 1, 0, me, VECTOR), -ENOSYS, "SEND_IPI");
		return;
	}
	expect(hypercall(HC_SEND_IPI, ~0ull, ~0ull, 0xffffff00, VECTOR), 0, "SEND_IPI to nobody");
	expect(hypercall(HC_SEND_IPI, 1, 0, me, VECTOR | BIT(11)), -EINVAL, "logical SEND_IPI");
	expect(hypercall(HC_SEND_IPI, 1, 0, me, VECTOR | BIT(18)), -EINVAL, "SEND_IPI, shorthand");
	expect(hypercall(HC_SEND_IPI, 1, 0, me, ICR_INIT), -EINVAL, "SEND_IPI of INIT");
}

/* --- from user mode --- */

#define MSR_EFER 0xc0000080
#define EFER_SCE BIT(0)
#define MSR_STAR 0xc0000081
#define MSR_LSTAR 0xc0000082
#define KERNEL_CS 0x08ull
#define USER_CS 0x1bull /* SYSRET takes fixed descriptors: only its RPL matters */
#define PTE_USER BIT(2)
#define PTE_LARGE BIT(7)
#define ADDRESS_MASK 0x000ffffffffff000ull

static void make_user(u64 address)
{
	u64 table;

	__asm__ volatile("mov %%cr3, %0" : "=r"(table));
	for (u32 shift = 39; shift >= 12; shift -= 9) {
		u64 *entry = (u64 *)(table & ADDRESS_MASK) + (address >> shift & 511);

		*entry |= PTE_USER;
		if (shift < 39 && (*entry & PTE_LARGE))
			break;
		table = *entry;
	}
	__asm__ volatile("mov %%cr3, %0; mov %0, %%cr3" : "=r"(table)::"memory");
}

/* RAX of a hypercall without arguments from ring 3. No stack is used there. */
static s64 user_hypercall(u64 nr)
{
	u64 back;
	s64 ret;

	__asm__("lea 1f(%%rip), %0\n\t.subsection 1\n1:\tvmcall\n\tsyscall\n\t.previous"
		: "=r"(back));
	make_user(back);
	wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SCE);
	wrmsr(MSR_STAR, KERNEL_CS << 32 | USER_CS << 48);
	__asm__ volatile("lea 2f(%%rip), %%rax\n\t"
			 "mov %%rax, %%rdx\n\t"
			 "shr $32, %%rdx\n\t"
			 "mov %[lstar], %%ecx\n\t"
			 "wrmsr\n\t"
			 "mov %[user], %%rcx\n\t"
			 "mov %[nr], %%rax\n\t"
			 "mov $2, %%r11d\n\t"
			 "sysretq\n"
			 "2:\tmov %%rax, %[ret]"
			 : [ret] "=r"(ret)
			 : [user] "r"(back), [nr] "r"(nr), [lstar] "i"(MSR_LSTAR)
			 : "rax", "rcx", "rdx", "r11", "memory");
	return ret;
}

/* --- more than one CPU --- */

static void wait_until(u32 *what, u32 value, const char *text)
{
	u64 start = rdtsc();

	while (__atomic_load_n(what, __ATOMIC_ACQUIRE) != value) {
		CHECK(rdtsc() - start < PATIENCE, "%s: %u of %u", text, *what, value);
		pause();
	}
}

/* Halts with interrupts off: only a kick gets it on. */
static void halt_rounds(u64 rounds)
{
	cli();
	WRITE_ONCE(ready, 1);
	while (rounds--) {
		__asm__ volatile("hlt");
		__atomic_add_fetch(&rounds_done, 1, __ATOMIC_SEQ_CST);
	}
}

static void unhalt(u32 rounds)
{
	u32 id = smp_apic_id(1);

	smp_run(1, halt_rounds, rounds);
	/* A kick ends whatever HLT comes first: not that of the idle CPU. */
	wait_until(&ready, 1, "CPU 1 does not come");
	for (u32 i = 0; i < rounds; i++) {
		if (i % 3)
			delay_ticks(i % 3 * 3000); /* sometimes asleep, sometimes not yet */
		expect(hypercall(HC_KICK_CPU, 0, id, 0, 0), 0, "KICK_CPU");
		wait_until(&rounds_done, i + 1, "a kick was lost");
	}
	smp_wait(1);
}

static void on_ipi(struct frame *f)
{
	__atomic_add_fetch(&received, 1, __ATOMIC_SEQ_CST);
	apic_eoi();
}

static void ipis(u32 cpus, u32 rounds)
{
	u64 bits = 0;
	u32 sent = 0;

	irq_set(VECTOR, on_ipi);
	sti();
	for (u32 i = 0; i < cpus; i++)
		bits |= BIT(smp_apic_id(i)); /* the MADT's ids are small */
	for (u32 i = 0; i < rounds; i++) {
		expect(hypercall(HC_SEND_IPI, bits, 0, 0, VECTOR), cpus, "SEND_IPI to all");
		wait_until(&received, sent += cpus, "IPIs to all were lost");
		expect(hypercall(HC_SEND_IPI, 1, 0, smp_apic_id(cpus - 1), VECTOR), 1,
		       "SEND_IPI to one");
		wait_until(&received, ++sent, "an IPI to one was lost");
	}
	cli();
}

int guest_main(void)
{
	u32 features = pv_features(), rounds = arg("n", 200), cpus;

	CHECK(arg("features", features) == features, "CPUID offers %x", features);
	msrs(features);
	hypercalls(features);
	expect(user_hypercall(HC_VAPIC_POLL_IRQ), -EPERM, "VAPIC_POLL_IRQ from user mode");
	expect(user_hypercall(0xdead), -EPERM, "unknown, from user mode");
	cpus = smp_start();
	if (cpus > 1 && (features & FEATURE_UNHALT))
		unhalt(rounds);
	if (cpus > 1 && (features & FEATURE_IPI))
		ipis(cpus, rounds);
	printf("pv-abi: features %x, %u CPUs\n", features, cpus);
	return 0;
}
