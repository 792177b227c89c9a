/* SPDX-License-Identifier: BSD-2-Clause */
/* Other CPUs: started one after another through INIT and start-up IPIs, then halted until given a
 * job, so that an idle CPU takes no time from the others where they share one. */
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

#define START_TICKS 1000000000ull /* by then a CPU must have come: generous, for slow emulators */
#define SECOND_SIPI_TICKS 20000000ull
#define WAKE_VECTOR 0xfe

struct cpu {
	u32 apic_id;
	bool alive;
	void (*job)(u64 arg);
	u64 arg;
};

void ap_start(u32 cpu);
extern u8 stacks[MAX_CPUS][STACK_SIZE];
extern const u8 trampoline[], trampoline_end[];

void (*smp_on_start)(void);
u32 ap_index; /* of the CPU that is being started; read by the trampoline */
static struct cpu cpus[MAX_CPUS];

u32 smp_cpu(void)
{
	return ((u64)__builtin_frame_address(0) - (u64)stacks) / STACK_SIZE;
}

u32 smp_apic_id(u32 cpu)
{
	return cpus[cpu].apic_id;
}

void ap_start(u32 n)
{
	struct cpu *c = &cpus[n];

	idt_load();
	if (smp_on_start)
		smp_on_start();
	apic_init();
	if (apic_id() != c->apic_id)
		test_fail("CPU %u has APIC id %u, the MADT says %u", n, apic_id(), c->apic_id);
	WRITE_ONCE(c->alive, true);
	for (;;) {
		for (cli(); !__atomic_load_n(&c->job, __ATOMIC_ACQUIRE); cli())
			sti_hlt();
		c->job(c->arg);
		cli();
		__atomic_store_n(&c->job, NULL, __ATOMIC_RELEASE);
	}
}

static void on_wake(struct frame *f)
{
	apic_eoi();
}

static bool wait_alive(const struct cpu *c, u64 ticks)
{
	u64 start = rdtsc();

	while (!READ_ONCE(c->alive)) {
		if (rdtsc() - start > ticks)
			return false;
		pause();
	}
	return true;
}

static void start(u32 n)
{
	const struct cpu *c = &cpus[n];

	ap_index = n;
	apic_icr(c->apic_id, ICR_INIT);
	delay_ticks(100000);
	apic_icr(c->apic_id, ICR_STARTUP | TRAMPOLINE >> 12);
	if (wait_alive(c, SECOND_SIPI_TICKS))
		return;
	apic_icr(c->apic_id, ICR_STARTUP | TRAMPOLINE >> 12);
	CHECK(wait_alive(c, START_TICKS), "CPU %u (APIC id %u) does not start", n, c->apic_id);
}

void smp_restart(u32 cpu)
{
	WRITE_ONCE(cpus[cpu].alive, false);
	WRITE_ONCE(cpus[cpu].job, NULL);
	start(cpu);
}

u32 smp_start(void)
{
	u32 ids[MAX_CPUS], nr = acpi_cpus(ids, MAX_CPUS), n = 1;

	CHECK(nr > 0, "no MADT, or no CPU in it");
	irq_set(WAKE_VECTOR, on_wake);
	memcpy((void *)TRAMPOLINE, trampoline, trampoline_end - trampoline);
	cpus[0].apic_id = apic_id();
	for (u32 i = 0; i < nr; i++) {
		if (ids[i] == cpus[0].apic_id)
			continue;
		CHECK(n < nr, "the boot CPU (APIC id %u) is not in the MADT", cpus[0].apic_id);
		cpus[n].apic_id = ids[i];
		start(n++);
	}
	return n;
}

void smp_run(u32 cpu, void (*job)(u64 arg), u64 arg)
{
	cpus[cpu].arg = arg;
	__atomic_store_n(&cpus[cpu].job, job, __ATOMIC_SEQ_CST);
	apic_icr(cpus[cpu].apic_id, ICR_FIXED | WAKE_VECTOR);
}

void smp_wait(u32 cpu)
{
	while (__atomic_load_n(&cpus[cpu].job, __ATOMIC_ACQUIRE))
		pause();
}
