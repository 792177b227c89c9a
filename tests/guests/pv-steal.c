/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steal time as the guest counts it. mode=
 *	0	busy: from the moment on that somebody steals, expect= permille of ms= are stolen,
 *		within tolerance=; then it goes on for as long again, for the others' sake
 *	1	alone: nothing is stolen while it works and exits, and for each sleep no more than
 *		the way from the timer to the entry
 *	2	idle: sleeps ms=, in n= pieces, while others are busy; being halted is not being
 *		stolen from
 *	3	hotplug: CPU 1 is stopped by INIT and started again, over and over; its record,
 *		switched off and on, never goes back, and neither does the clock
 *	4	flush: CPU 0 changes a mapping behind the back of CPU 1 while that is preempted, and
 *		leaves the TLB flush to its next entry; n= times
 */
#include "tests/guests/lib/pv.h"

#define VECTOR 0x70
#define NS_PER_MS 1000000ull
#define WARM_UP_NS (100 * NS_PER_MS) /* the others boot */
#define WAKE_UP_TICKS 1000	     /* from the timer to the entry, the hypervisor at work */
#define PATIENCE_NS (20000 * NS_PER_MS)

enum { MODE_BUSY, MODE_ALONE, MODE_IDLE, MODE_HOTPLUG, MODE_FLUSH };

static struct kvm_steal_time steal[2] __aligned(64);
static struct pvclock_vcpu_time_info clock[2] __aligned(32);
static u64 last_steal, last_ns;
static u32 sleeps;

static void switch_on(u64 cpu)
{
	wrmsr(MSR_KVM_SYSTEM_TIME_NEW, (u64)&clock[cpu] | 1);
	wrmsr(MSR_KVM_STEAL_TIME, (u64)&steal[cpu] | 1);
}

static u64 now_ns(void)
{
	return pv_clock_ns(&clock[0]);
}

static void spin_until(u64 ns)
{
	while (now_ns() < ns)
		;
}

static void busy(u64 ns)
{
	u64 expected = arg("expect", 500), tolerance = arg("tolerance", 20);
	u64 first = pv_steal_ns(&steal[0]), begin = now_ns(), stolen, start, got;

	while (pv_steal_ns(&steal[0]) == first)
		CHECK(now_ns() - begin < PATIENCE_NS, "nobody else wants this CPU");
	spin_until(now_ns() + WARM_UP_NS);
	first = pv_steal_ns(&steal[0]);
	start = now_ns();
	spin_until(start + ns);
	stolen = pv_steal_ns(&steal[0]) - first;
	got = stolen * 1000 / (now_ns() - start);
	spin_until(start + 2 * ns + WARM_UP_NS);
	printf("pv-steal: %llu permille stolen\n", (unsigned long long)got);
	CHECK(got + tolerance >= expected && got <= expected + tolerance,
	      "%llu permille stolen, not %llu", (unsigned long long)got,
	      (unsigned long long)expected);
}

static void on_timer(struct frame *f)
{
	apic_eoi();
}

static void sleep_ns(u64 ns)
{
	u64 end = now_ns() + ns;

	irq_set(VECTOR, on_timer);
	apic_write(APIC_LVT_TIMER, LVT_DEADLINE | VECTOR);
	wrmsr(MSR_TSC_DEADLINE, rdtsc() + ns * (tsc_hz() / 1000) / NS_PER_MS);
	while (now_ns() < end) {
		sti_hlt();
		cli();
		sleeps++;
		if (now_ns() < end) /* the yardsticks differ a little */
			wrmsr(MSR_TSC_DEADLINE, rdtsc() + tsc_hz() / 10000);
	}
}

static void alone(u64 ns)
{
	u64 first = pv_steal_ns(&steal[0]), start = now_ns(), stolen, ticks;

	spin_until(start + ns / 3);
	while (now_ns() < start + ns / 3 * 2)
		outb(PORT_POST, 0);
	stolen = pv_steal_ns(&steal[0]) - first;
	CHECK(!stolen, "%llu ns are stolen from a guest that is alone", (unsigned long long)stolen);
	for (u32 i = 0; i < 10; i++)
		sleep_ns(ns / 30);
	stolen = pv_steal_ns(&steal[0]) - first;
	ticks = stolen * (tsc_hz() / 1000) / NS_PER_MS;
	printf("pv-steal: %llu ns of %llu stolen, %u wake-ups\n", (unsigned long long)stolen,
	       (unsigned long long)(now_ns() - start), sleeps);
	CHECK(ticks <= sleeps * WAKE_UP_TICKS, "%llu ticks stolen in %u wake-ups",
	      (unsigned long long)ticks, sleeps);
}

static void idle(u64 ns)
{
	u64 first, start, stolen, pieces = arg("n", 1);

	tsc_hz();
	first = pv_steal_ns(&steal[0]);
	start = now_ns();
	for (u64 i = 0; i < pieces; i++)
		sleep_ns(ns / pieces);
	stolen = pv_steal_ns(&steal[0]) - first;
	printf("pv-steal: %llu permille stolen\n",
	       (unsigned long long)(stolen * 1000 / (now_ns() - start)));
	/* What it waited for its CPU when it woke. */
	CHECK(stolen * 1000 <= (now_ns() - start) * arg("expect", 50),
	      "%llu ns of %llu stolen while halted", (unsigned long long)stolen,
	      (unsigned long long)(now_ns() - start));
}

/* On CPU 1. */
static void one_life(u64 round)
{
	u64 ns, stolen;

	switch_on(1);
	ns = pv_clock_ns(&clock[1]);
	stolen = pv_steal_ns(&steal[1]);
	CHECK(ns >= last_ns, "round %llu: the clock went from %llu to %llu",
	      (unsigned long long)round, (unsigned long long)last_ns, (unsigned long long)ns);
	CHECK(stolen >= last_steal && stolen - last_steal < PATIENCE_NS,
	      "round %llu: steal went from %llu to %llu", (unsigned long long)round,
	      (unsigned long long)last_steal, (unsigned long long)stolen);
	while (pv_clock_ns(&clock[1]) < ns + NS_PER_MS)
		;
	last_ns = pv_clock_ns(&clock[1]);
	last_steal = pv_steal_ns(&steal[1]);
	CHECK(last_steal >= stolen, "steal went back while the CPU was on");
	if (round % 2) /* as Linux does; else INIT has to */
		wrmsr(MSR_KVM_STEAL_TIME, 0);
}

static void hotplug(u32 rounds)
{
	CHECK(smp_start() == 2, "two CPUs are needed");
	for (u32 i = 0; i < rounds; i++) {
		u32 version;

		smp_run(1, one_life, i);
		smp_wait(1);
		CHECK(now_ns() >= last_ns, "the clock of CPU 0 is behind that of CPU 1");
		smp_restart(1);
		version = READ_ONCE(steal[1].version);
		delay_ticks(100000);
		CHECK(READ_ONCE(steal[1].version) == version,
		      "round %u: INIT does not end the record", i);
	}
	printf("pv-steal: %llu ns stolen from CPU 1 in %u lives\n", (unsigned long long)last_steal,
	       rounds);
}

/* --- TLB flush --- */

#define WINDOW 0x40000000ull /* the address whose mapping changes: no RAM is there otherwise */
#define PDE_LARGE 0x83ull    /* present, writable, 2 MiB */
#define FRAME(i) (0x400000ull + (i)*0x200000)
#define ADDRESS_MASK 0x000ffffffffff000ull

static u32 allowed = BIT(0); /* which of the frames CPU 1 may see now, bit each */
static u32 stop, looks;

static u64 *window_entry(void)
{
	u64 *table, cr3;

	__asm__ volatile("mov %%cr3, %0" : "=r"(cr3));
	table = (u64 *)(cr3 & ADDRESS_MASK);
	table = (u64 *)(table[WINDOW >> 39 & 511] & ADDRESS_MASK);
	CHECK(!(table[WINDOW >> 30 & 511] & 0x80), "the window is in a page of 1 GiB");
	table = (u64 *)(table[WINDOW >> 30 & 511] & ADDRESS_MASK);
	return &table[WINDOW >> 21 & 511];
}

/* On CPU 1. */
static void look(u64 unused)
{
	const volatile u64 *window = (u64 *)WINDOW;

	switch_on(1);
	while (!READ_ONCE(stop)) {
		u32 may = __atomic_load_n(&allowed, __ATOMIC_ACQUIRE), seen = *window;

		may |= __atomic_load_n(&allowed, __ATOMIC_ACQUIRE);
		CHECK(may >> seen & 1, "CPU 1 sees frame %u through an old mapping", seen);
		WRITE_ONCE(looks, looks + 1);
	}
}

static bool ask_for_flush(void)
{
	u8 old = KVM_VCPU_PREEMPTED;

	return __atomic_compare_exchange_n(&steal[1].preempted, &old,
					   KVM_VCPU_PREEMPTED | KVM_VCPU_FLUSH_TLB, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void flush(u32 rounds)
{
	u64 *entry = window_entry();

	CHECK(pv_features() & FEATURE_TLBFLUSH, "CPUID offers no TLB flush");
	*(u64 *)FRAME(0) = 0;
	*(u64 *)FRAME(1) = 1;
	*entry = FRAME(0) | PDE_LARGE;
	__asm__ volatile("invlpg (%0)" ::"r"(WINDOW) : "memory");
	CHECK(smp_start() == 2, "two CPUs are needed");
	smp_run(1, look, 0);
	for (u32 i = 1; i <= rounds; i++) {
		u64 start = now_ns();
		u32 before = READ_ONCE(looks);

		/* Until it has used the mapping, so that it is in its TLB. */
		while (READ_ONCE(looks) == before)
			CHECK(now_ns() - start < PATIENCE_NS, "CPU 1 does not run");
		__atomic_store_n(&allowed, BIT(0) | BIT(1), __ATOMIC_SEQ_CST);
		*entry = FRAME(i % 2) | PDE_LARGE;
		/* CPU 0 runs, and there is but one pCPU. */
		CHECK(ask_for_flush(), "CPU 1 is not preempted: %u", steal[1].preempted);
		while (READ_ONCE(steal[1].preempted) & KVM_VCPU_FLUSH_TLB)
			CHECK(now_ns() - start < PATIENCE_NS, "CPU 1 does not come back");
		__atomic_store_n(&allowed, BIT(i % 2), __ATOMIC_SEQ_CST);
	}
	WRITE_ONCE(stop, 1);
	smp_wait(1);
	printf("pv-steal: %u mappings changed\n", rounds);
}

int guest_main(void)
{
	u32 wanted = FEATURE_CLOCK | FEATURE_STEAL;
	u64 ns = arg("ms", 300) * NS_PER_MS;

	CHECK((pv_features() & wanted) == wanted, "CPUID offers no clock or no steal time");
	switch_on(0);
	switch (arg("mode", MODE_BUSY)) {
	case MODE_BUSY:
		busy(ns);
		break;
	case MODE_ALONE:
		alone(ns);
		break;
	case MODE_IDLE:
		idle(ns);
		break;
	case MODE_FLUSH:
		flush(arg("n", 20));
		break;
	default:
		hotplug(arg("n", 20));
	}
	printf("pv-steal: record says %llu ns\n", (unsigned long long)pv_steal_ns(&steal[0]));
	return 0;
}
