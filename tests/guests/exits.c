/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Path lengths: what each thing that may exit costs, in ticks, from inside of the guest. With two
 * or more CPUs also IPIs between CPU 0 and CPU 1. In xAPIC mode the MMIO paths come first, then the
 * guest switches to x2APIC; a guest that starts in x2APIC mode does the MMIO paths only with
 * `xapic=1`. Other arguments: n= samples of each, near= and asleep= ticks (below).
 */
#include "hv/lib/string.h"
#include "tests/guests/lib/bench.h"

#define MSR_TSC_ADJUST 0x3b
#define MSR_FS_BASE 0xc0000100
#define KVM_ENOSYS (-1000l)
#define FAR_AWAY (1ull << 40)
#define NEAR 20000 /* ticks to a deadline that is waited for, if near= does not say another */
#define ASLEEP_TICKS 30000 /* ticks after which a CPU that halts is surely asleep, or asleep= */
#define SETTLE 2000	   /* ticks after which a CPU that spins is surely back in its loop */
#define EOI_VECTOR 0x52
#define END_VECTOR 0x53
#define PATIENCE 2000000000ull /* ticks; an interrupt that has not come by then is lost */

#define CR0_TS BIT(3)
#define CR4_PGE BIT(7)

static u64 eoi_ticks, near_ticks, asleep_ticks;
static u32 stop;   /* ends the other CPU's job */
static u32 asleep; /* CPU 1 is at its HLT, or a few instructions away */

static void timed_eoi(struct frame *f)
{
	u64 t = rdtsc();

	apic_eoi();
	eoi_ticks = rdtsc() - t;
}

/* Only to wake: bench_taken counts none of these. */
static void on_end(struct frame *f)
{
	apic_eoi();
}

/* Spins, interrupts on, until the handler has run once more than @before. No PAUSE: that may exit.
 */
static void wait_taken(u32 before)
{
	u64 start = rdtsc();

	while (bench_taken == before)
		CHECK(rdtsc() - start < PATIENCE, "an interrupt does not come");
}

static void spin_ticks(u64 ticks)
{
	u64 start = rdtsc();

	while (rdtsc() - start < ticks)
		;
}

static u64 read_cr0(void)
{
	u64 v;

	__asm__ volatile("mov %%cr0, %0" : "=r"(v));
	return v;
}

static u64 read_cr4(void)
{
	u64 v;

	__asm__ volatile("mov %%cr4, %0" : "=r"(v));
	return v;
}

/* What should not exit at all. */
static void no_exits(void)
{
	u64 cr0 = read_cr0(), cr4 = read_cr4(), v;

	BENCH("rdtsc", , rdtsc(), );
	BENCH("cr8_read", , __asm__ volatile("mov %%cr8, %0" : "=r"(v)::"memory"), );
	BENCH("cr8_write", , __asm__ volatile("mov %0, %%cr8" ::"r"(0ull) : "memory"), );
	__asm__ volatile("mov %%cr3, %0" : "=r"(v));
	BENCH("cr3_write", , __asm__ volatile("mov %0, %%cr3" ::"r"(v) : "memory"), );
	BENCH("cr4_pge_write", ,
	      __asm__ volatile("mov %0, %%cr4" ::"r"(cr4 ^ CR4_PGE)
			       : "memory"),
	      __asm__ volatile("mov %0, %%cr4" ::"r"(cr4)
			       : "memory"));
	BENCH("cr0_ts_write", ,
	      __asm__ volatile("mov %0, %%cr0" ::"r"(cr0 ^ CR0_TS)
			       : "memory"),
	      __asm__ volatile("mov %0, %%cr0" ::"r"(cr0)
			       : "memory"));
	BENCH("clts", , __asm__ volatile("clts" ::: "memory"), );
	BENCH("invlpg", , __asm__ volatile("invlpg (%0)" ::"r"(&stop) : "memory"), );
	BENCH("fs_base_write", , wrmsr(MSR_FS_BASE, 0), );
}

static void vmcall(void)
{
	long ret = 0;

	if (strcmp(hypervisor(), "KVMKVMKVM")) {
		bench_skip("vmcall_unknown", "CPUID does not say KVMKVMKVM");
		return;
	}
	BENCH("vmcall_unknown", ,
	      __asm__ volatile("vmcall"
			       : "=a"(ret)
			       : "a"(0xdead)
			       : "memory"), );
	CHECK(ret == KVM_ENOSYS, "VMCALL with an unknown number returns %ld", ret);
}

static void plain_exits(void)
{
	u32 r[4];
	u64 v;

	BENCH("cpuid", , cpuid(0, 0, r), );
	vmcall();
	BENCH("wbinvd", , __asm__ volatile("wbinvd" ::: "memory"), );
	BENCH("in_0x21", , inb(PORT_PIC1 + 1), );
	if (rdmsr_safe(MSR_TSC_ADJUST, &v) >= 0) {
		bench_skip("rdmsr_tsc_adjust", "no such MSR");
		return;
	}
	BENCH("rdmsr_tsc_adjust", , rdmsr(MSR_TSC_ADJUST), );
	BENCH("wrmsr_tsc_adjust", , wrmsr(MSR_TSC_ADJUST, v), );
}

static void apic_registers(void)
{
	if (x2apic) {
		BENCH("x2apic_read_id", , rdmsr(APIC_MSR(APIC_ID)), );
		BENCH("x2apic_read_tpr", , rdmsr(APIC_MSR(APIC_TPR)), );
		BENCH("x2apic_write_tpr", , wrmsr(APIC_MSR(APIC_TPR), 0), );
		BENCH("x2apic_eoi_none", , wrmsr(APIC_MSR(APIC_EOI), 0), );
	} else {
		volatile u32 *page = (volatile u32 *)APIC_MMIO;

		BENCH("xapic_read_id", , page[APIC_ID / 4], );
		BENCH("xapic_read_tpr", , page[APIC_TPR / 4], );
		BENCH("xapic_write_tpr", , page[APIC_TPR / 4] = 0, );
		BENCH("xapic_eoi_none", , page[APIC_EOI / 4] = 0, );
		/* Masked: the count is set, no interrupt comes. */
		BENCH("xapic_write_tmict", , page[APIC_TMICT / 4] = 1u << 30, );
		apic_write(APIC_TMICT, 0);
	}
}

#define NAME(what) (x2apic ? "x2apic_" what : "xapic_" what)

/* Inline, so that the sample is the write and no call around it. */
static inline void write_self_ipi(void)
{
	if (x2apic)
		wrmsr(APIC_MSR(APIC_SELF_IPI), BENCH_VECTOR);
	else
		*(volatile u32 *)(APIC_MMIO + APIC_ICR) = ICR_SELF | ICR_FIXED | BENCH_VECTOR;
}

/* The handlers look at nothing of ours, so the x2APIC needs no fence before it. In xAPIC mode this
 * is what a driver does: wait for the delivery status, two writes. */
static inline void write_icr(u32 dest, u8 vector)
{
	if (x2apic)
		wrmsr(APIC_MSR(APIC_ICR), (u64)dest << 32 | ICR_FIXED | vector);
	else
		apic_icr(dest, ICR_FIXED | vector);
}

static void self_ipi(void)
{
	u32 before = bench_taken;

	BENCH(NAME("self_ipi_if0"), , write_self_ipi(), sti(); wait_taken(before);
	      before = bench_taken; cli());
	for (u32 i = 0; i < bench_n; i++, before++) {
		sti();
		u64 t = rdtsc();
		write_self_ipi();
		wait_taken(before);
		bench_samples[i] = bench_stamp - t;
		cli();
	}
	bench_report(NAME("self_ipi_handler"));
	for (u32 i = 0; i < bench_n; i++, before++) {
		u64 t = rdtsc();
		write_self_ipi();
		sti();
		wait_taken(before);
		bench_samples[i] = bench_stamp - t;
		cli();
	}
	bench_report(NAME("cli_self_ipi_sti_handler"));
	BENCH(NAME("self_ipi_hlt_eoi"), , write_self_ipi(); sti_hlt(), cli();
	      CHECK(bench_taken == ++before, "HLT ended without the interrupt"));
	for (u32 i = 0; i < bench_n; i++) {
		eoi_ticks = 0;
		apic_self_ipi(EOI_VECTOR);
		sti();
		while (!READ_ONCE(eoi_ticks))
			;
		cli();
		bench_samples[i] = eoi_ticks;
	}
	bench_report(NAME("eoi_one"));
}

/* How late the interrupt came that was to come @at. */
static u64 overshoot(u64 at)
{
	CHECK(bench_stamp >= at, "the deadline fires %llu ticks early",
	      (unsigned long long)(at - bench_stamp));
	return bench_stamp - at;
}

static void deadline(void)
{
	u32 before;

	if (!apic_has_deadline()) {
		bench_skip("wrmsr_tsc_deadline", "no TSC deadline timer");
		return;
	}
	apic_write(APIC_LVT_TIMER, LVT_DEADLINE | BENCH_VECTOR);
	BENCH("wrmsr_tsc_deadline", , wrmsr(MSR_TSC_DEADLINE, _t + FAR_AWAY), );
	for (u32 i = 0; i < bench_n; i++) {
		before = bench_taken;
		u64 at = rdtsc() + near_ticks;
		wrmsr(MSR_TSC_DEADLINE, at);
		sti();
		wait_taken(before);
		cli();
		bench_samples[i] = overshoot(at);
	}
	bench_report_raw("deadline_overshoot_spin");
	for (u32 i = 0; i < bench_n; i++) {
		before = bench_taken;
		u64 at = rdtsc() + near_ticks;
		wrmsr(MSR_TSC_DEADLINE, at);
		sti_hlt();
		cli();
		CHECK(bench_taken == before + 1, "HLT ended without the deadline");
		bench_samples[i] = overshoot(at);
	}
	bench_report_raw("deadline_overshoot_hlt");
	apic_write(APIC_LVT_TIMER, LVT_MASKED);
}

static void spin_job(u64 unused)
{
	sti();
	while (!READ_ONCE(stop))
		;
	cli();
}

static void halt_job(u64 unused)
{
	while (!READ_ONCE(stop)) {
		WRITE_ONCE(asleep, 1);
		sti_hlt();
		cli();
		WRITE_ONCE(asleep, 0);
	}
}

/* Lets CPU 1 see `stop`; where it halts, an interrupt must wake it. */
static void end_job(void)
{
	WRITE_ONCE(stop, 1);
	write_icr(smp_apic_id(1), END_VECTOR);
	smp_wait(1);
	stop = 0;
}

/* What CPU 1 is doing when it gets an IPI. */
enum target {
	SPINNING,
	HALTING, /* on its way to HLT or there already, as it comes */
	ASLEEP,	 /* so long in HLT that its pCPU sleeps too */
};

static void wait_target(enum target target)
{
	if (target == ASLEEP) {
		while (!READ_ONCE(asleep))
			;
		spin_ticks(asleep_ticks);
	} else if (target == SPINNING) {
		spin_ticks(SETTLE);
	}
}

static void icr_to_remote(const char *write, const char *handler, enum target target)
{
	static u64 writes[BENCH_MAX];
	u32 dest = smp_apic_id(1), before = bench_taken;

	for (u32 i = 0; i < bench_n; i++, before++) {
		wait_target(target);
		CHECK(bench_taken == before, "an interrupt that nobody sent");
		u64 t = rdtsc();
		write_icr(dest, BENCH_VECTOR);
		writes[i] = rdtsc() - t;
		wait_taken(before);
		bench_samples[i] = bench_stamp - t;
	}
	bench_report(handler);
	memcpy(bench_samples, writes, bench_n * sizeof(writes[0]));
	bench_report(write);
}

/* CPU 1 answers each IPI with one to CPU 0, which waits spinning or halted, as its target does. */
static void round_trip(const char *name, enum target target)
{
	u32 dest = smp_apic_id(1), before = bench_taken;

	for (u32 i = 0; i < bench_n; i++, before++) {
		wait_target(target);
		CHECK(bench_taken == before, "an interrupt that nobody sent");
		u64 t = rdtsc();
		write_icr(dest, BENCH_REPLY_VECTOR);
		if (target == SPINNING) {
			sti();
			wait_taken(before);
		}
		while (bench_taken == before) {
			sti_hlt();
			cli();
		}
		bench_samples[i] = rdtsc() - t;
		cli();
	}
	bench_report(name);
}

static void two_cpus(void)
{
	bench_reply_icr = x2apic ? (u64)smp_apic_id(0) << 32 : (u64)smp_apic_id(0) << 56;
	bench_reply_icr |= ICR_FIXED | BENCH_VECTOR;

	smp_run(1, spin_job, 0);
	spin_ticks(asleep_ticks);
	icr_to_remote(NAME("icr_write_remote"), NAME("icr_remote_handler_spin"), SPINNING);
	round_trip(NAME("ipi_round_trip_spin"), SPINNING);
	end_job();
	smp_run(1, halt_job, 0);
	icr_to_remote(NAME("icr_write_remote_asleep"), NAME("icr_remote_handler_asleep"), ASLEEP);
	round_trip(NAME("ipi_round_trip_asleep"), ASLEEP);
	round_trip(NAME("ipi_round_trip_halt"), HALTING);
	end_job();
}

static void follow_mode(u64 x2)
{
	apic_set_mode(x2);
}

/* All CPUs, the others first: x2apic is the mode of all. */
static void switch_all(u32 cpus, bool x2)
{
	for (u32 i = 1; i < cpus; i++) {
		smp_run(i, follow_mode, x2);
		smp_wait(i);
		x2apic = !x2; /* CPU 0 is still there */
	}
	apic_set_mode(x2);
}

static void apic_paths(u32 cpus)
{
	apic_registers();
	self_ipi();
	if (cpus > 1)
		two_cpus();
}

int guest_main(void)
{
	u32 cpus = smp_start();

	gate_set(BENCH_VECTOR, bench_handler);
	gate_set(BENCH_REPLY_VECTOR, bench_reply_handler);
	irq_set(EOI_VECTOR, timed_eoi);
	irq_set(END_VECTOR, on_end);
	printf("exits: %u CPUs, %s, hypervisor %s\n", cpus, x2apic ? "x2APIC" : "xAPIC",
	       hypervisor());
	near_ticks = arg("near", NEAR);
	asleep_ticks = arg("asleep", ASLEEP_TICKS);
	bench_init();
	no_exits();
	plain_exits();
	deadline();
	apic_paths(cpus);
	if (!x2apic && apic_has_x2apic()) {
		switch_all(cpus, true);
		apic_paths(cpus);
	} else if (x2apic && arg("xapic", 0)) {
		switch_all(cpus, false);
		apic_paths(cpus);
	}
	return 0;
}
