/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is meant: physical, broadcast, logical flat and cluster, shorthands, lowest priority. After
 * each IPI every CPU is asked how many it got: exactly those that were meant have one more. With
 * more than 16 CPUs there is a second x2APIC cluster.
 */
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

#define VECTOR 0x80
#define FLUSH 0x40 /* of a lower class: who has answered it has had all that came before */
#define DFR_FLAT 0xffffffffu
#define DFR_CLUSTER 0x0fffffffu
#define LOWEST_ROUNDS 12

static u32 got[MAX_CPUS], flushed, cpus;

static void on_ipi(struct frame *f)
{
	__atomic_add_fetch(&got[smp_cpu()], 1, __ATOMIC_SEQ_CST);
	apic_eoi();
}

static void on_flush(struct frame *f)
{
	apic_eoi();
	__atomic_add_fetch(&flushed, 1, __ATOMIC_SEQ_CST);
}

static void settle(void)
{
	flushed = 0;
	sti();
	for (u32 i = 0; i < cpus; i++)
		apic_icr(smp_apic_id(i), ICR_FIXED | FLUSH);
	wait_count(&flushed, cpus, "answers");
	cli();
}

static bool meant(u64 set, u32 cpu)
{
	return set >> smp_apic_id(cpu) & 1;
}

/* @set: of APIC ids. */
static void sends(u32 dest, u32 icr, u64 set, const char *what)
{
	memset(got, 0, sizeof(got));
	apic_icr(dest, icr | ICR_FIXED | VECTOR);
	settle();
	for (u32 i = 0; i < cpus; i++)
		CHECK(got[i] == meant(set, i), "%s: APIC id %u got %u", what, smp_apic_id(i),
		      got[i]);
}

static u64 all(void)
{
	u64 set = 0;

	for (u32 i = 0; i < cpus; i++)
		set |= 1ull << smp_apic_id(i);
	return set;
}

/* Exactly one of @set has each, and over time not always the same. */
static void lowest(u32 dest, u32 icr, u64 set, const char *what)
{
	u32 sum = 0, used = 0;

	memset(got, 0, sizeof(got));
	for (u32 n = 1; n <= LOWEST_ROUNDS; n++, sum = 0) {
		apic_icr(dest, icr | ICR_LOWEST | ICR_FIXED | VECTOR);
		settle();
		for (u32 i = 0; i < cpus; i++)
			sum += meant(set, i) ? got[i] : 0;
		CHECK(sum == n, "%s: %u of %u came to one of those meant", what, sum, n);
	}
	for (u32 i = 0; i < cpus; i++) {
		CHECK(meant(set, i) || !got[i], "%s: APIC id %u got %u", what, smp_apic_id(i),
		      got[i]);
		used += got[i] != 0;
	}
	/* TCG always takes the first. */
	CHECK(used > 1 || !strcmp(hypervisor(), "TCGTCGTCGTCG"), "%s: always the same CPU", what);
}

static void common(void)
{
	u64 mine = 1ull << apic_id();

	for (u32 i = 0; i < cpus; i++)
		sends(smp_apic_id(i), 0, 1ull << smp_apic_id(i), "physical");
	sends(0, ICR_SELF, mine, "self");
	sends(0, ICR_ALL, all(), "all");
	sends(0, ICR_OTHERS, all() & ~mine, "others");
	sends(x2apic ? ~0u : 0xff, 0, all(), "physical broadcast");
	sends(x2apic ? ~0u : 0xff, ICR_LOGICAL, all(), "logical broadcast");
	sends(0xe0, 0, 0, "an id that nobody has");
	sends(0, ICR_LOGICAL, 0, "an empty logical destination");
}

static void x2apic_cluster(void)
{
	sends(0x00000005, ICR_LOGICAL, all() & 0x5, "ids 0 and 2");
	sends(0x0000fffe, ICR_LOGICAL, all() & 0xfffe, "cluster 0 without id 0");
	sends(0x0001ffff, ICR_LOGICAL, all() & 0xffff0000, "cluster 1");
	sends(0x00010001, ICR_LOGICAL, all() & 0x10000, "id 16");
	sends(0x00020001, ICR_LOGICAL, 0, "a cluster that nobody is in");
	sends(0xff, ICR_LOGICAL, all() & 0xff, "0xff, which is no broadcast here");
	lowest(0x00000006, ICR_LOGICAL, 0x6, "lowest priority of ids 1 and 2");
}

static void set_logical(u64 cluster)
{
	u32 id = apic_id();

	apic_write(APIC_DFR, cluster ? DFR_CLUSTER : DFR_FLAT);
	/* In clusters of two. */
	apic_write(APIC_LDR, cluster ? (id / 2) << 28 | 1u << (24 + id % 2) : 1u << (24 + id));
}

static void on_every_cpu(void (*job)(u64), u64 value)
{
	job(value);
	for (u32 i = 1; i < cpus; i++) {
		smp_run(i, job, value);
		smp_wait(i);
	}
}

static void xapic_logical(void)
{
	on_every_cpu(set_logical, 0);
	for (u32 mask = 1; mask < 16; mask++)
		sends(mask, ICR_LOGICAL, all() & mask, "flat");
	lowest(0x0e, ICR_LOGICAL, all() & 0xe, "flat, lowest priority");
	on_every_cpu(set_logical, 1);
	for (u32 mask = 1; mask < 4; mask++) {
		sends(0x00 | mask, ICR_LOGICAL, all() & mask, "cluster 0");
		sends(0x10 | mask, ICR_LOGICAL, all() & mask << 2, "cluster 1");
	}
	sends(0x23, ICR_LOGICAL, 0, "a cluster that nobody is in");
	lowest(0x13, ICR_LOGICAL, all() & 0xc, "cluster, lowest priority");
	on_every_cpu(set_logical, 0);
}

/* Fixed interrupts do not reach an APIC that software has disabled. */
static void set_svr(u64 value)
{
	apic_write(APIC_SVR, value);
}

static void disabled(void)
{
	u32 last = cpus - 1;

	smp_run(last, set_svr, 0xff);
	smp_wait(last);
	cpus--; /* it cannot answer a flush either */
	memset(got, 0, sizeof(got));
	apic_icr(0, ICR_ALL | ICR_FIXED | VECTOR);
	apic_icr(smp_apic_id(last), ICR_FIXED | VECTOR);
	settle();
	cpus++;
	smp_restart(last);
	settle();
	for (u32 i = 0; i < cpus; i++)
		CHECK(got[i] == (i != last), "disabled: APIC id %u got %u", smp_apic_id(i), got[i]);
}

int guest_main(void)
{
	irq_set(VECTOR, on_ipi);
	irq_set(FLUSH, on_flush);
	cpus = smp_start();
	CHECK(cpus >= 4 && cpus <= 64, "4 to 64 CPUs are needed");
	if (!x2apic)
		on_every_cpu(set_logical, 0);
	common();
	if (x2apic)
		x2apic_cluster();
	else
		xapic_logical();
	disabled();
	printf("ipi-dest: %u CPUs\n", cpus);
	return 0;
}
