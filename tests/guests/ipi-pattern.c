/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPIs in a pattern that is known beforehand, so that the hypervisor's counters can be compared
 * with it to the last one. Every CPU sends at the same time, each with a vector of its own, and
 * waits for all acknowledgements of an IPI before the next: none merges with another.
 *
 * Of every CPU: unicast= IPIs to each other CPU; multicast= to all others and as many to all,
 * by logical destination; broadcast= by each of both shorthands and by destination; self= by
 * shorthand (or SELF_IPI) and by its own id. CPU 0 sends one to each other CPU to begin with and
 * one at the end. See tests/system/test_tiny.py for the sums.
 */
#include "tests/guests/lib/guest.h"

#define VECTOR 0x40 /* of CPU 0; that of CPU n is n above */
#define MAX 8	    /* bits in a flat logical destination */
#define PATIENCE 4000000000ull

static u32 acks[MAX], ready, cpus;

static void on_ipi(struct frame *f)
{
	apic_eoi();
	__atomic_add_fetch(&acks[f->vector - VECTOR], 1, __ATOMIC_SEQ_CST);
}

static void send(u32 dest, u32 icr, u32 receivers)
{
	u32 me = smp_cpu(), want = READ_ONCE(acks[me]) + receivers;
	u64 start = rdtsc();

	apic_icr(dest, icr | (VECTOR + me));
	while (READ_ONCE(acks[me]) != want) {
		CHECK(rdtsc() - start < PATIENCE, "CPU %u: %u of %u acknowledgements (%x to %x)",
		      me, acks[me] + receivers - want, receivers, icr, dest);
		pause();
	}
}

static void send_self(void)
{
	u32 me = smp_cpu(), want = READ_ONCE(acks[me]) + 1;

	apic_self_ipi(VECTOR + me);
	while (READ_ONCE(acks[me]) != want)
		pause();
	send(apic_id(), ICR_FIXED, 1);
}

static void join(void)
{
	u32 id = apic_id();

	if (!x2apic) {
		apic_write(APIC_DFR, ~0u);
		apic_write(APIC_LDR, 1u << (24 + id));
	}
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (READ_ONCE(ready) != cpus)
		pause();
}

static void pattern(u64 unused)
{
	u32 me = smp_cpu(), mine = 1u << apic_id(), all = 0;

	sti();
	join();
	for (u32 i = 0; i < cpus; i++)
		all |= 1u << smp_apic_id(i);
	for (u64 n = arg("unicast", 10); n--;) {
		for (u32 i = 0; i < cpus; i++) {
			if (i != me)
				send(smp_apic_id(i), ICR_FIXED, 1);
		}
	}
	for (u64 n = arg("multicast", 5); n--;) {
		send(all & ~mine, ICR_LOGICAL | ICR_FIXED, cpus - 1);
		send(all, ICR_LOGICAL | ICR_FIXED, cpus);
	}
	for (u64 n = arg("broadcast", 4); n--;) {
		send(0, ICR_OTHERS | ICR_FIXED, cpus - 1);
		send(0, ICR_ALL | ICR_FIXED, cpus);
		send(x2apic ? ~0u : 0xff, ICR_FIXED, cpus);
	}
	for (u64 n = arg("self", 3); n--;)
		send_self();
}

int guest_main(void)
{
	for (u32 i = 0; i < MAX; i++)
		irq_set(VECTOR + i, on_ipi);
	cpus = smp_start();
	CHECK(cpus > 2 && cpus <= MAX, "3 to %u CPUs are needed", MAX);
	for (u32 i = 1; i < cpus; i++)
		smp_run(i, pattern, 0);
	pattern(0);
	for (u32 i = 1; i < cpus; i++)
		smp_wait(i);
	/* The IPI that woke a CPU is of a higher class: this acknowledgement says that it had it.
	 */
	for (u32 i = 1; i < cpus; i++)
		send(smp_apic_id(i), ICR_FIXED, 1);
	printf("ipi-pattern: %u CPUs, %s\n", cpus, x2apic ? "x2APIC" : "xAPIC");
	return 0;
}
