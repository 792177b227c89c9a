/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that a guest can do to the KVM interface and the report port, in any order, with two
 * vCPUs that the scheduler takes on and off: nothing outside of RAM is touched (ASan), and a record
 * that the guest leaves alone never goes back.
 */
// sources: hv/pv/msr.c hv/pv/clock.c hv/pv/steal.c hv/pv/hypercall.c hv/pv/ipi.c hv/pv/report.c
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c
// sources: hv/lib/fmt.c hv/lib/string.c
// libs: -lcmocka
#include "tests/unit/vapic_fixture.h"

#include "hv/config/config.h"
#include "hv/pv/hypercall.h"
#include "hv/pv/msr.h"
#include "hv/pv/report.h"

#define CPUS 2
#define RAM 4096

static const u8 *in;
static size_t left;

void pv_unhalt(struct vlapic *target)
{
	if (target->index >= CPUS)
		abort();
}

bool pv_hint(struct vlapic *from, struct vlapic *target)
{
	if (target == from || target->index >= CPUS)
		abort();
	return target->index & 1;
}

static u64 take(u32 bytes)
{
	u64 v = 0;

	while (bytes-- && left) {
		v = v << 8 | *in++;
		left--;
	}
	return v;
}

/* Often near the edges of RAM. */
static u64 address(void)
{
	u32 kind = take(1);

	return kind & 3 ? RAM - 128 + take(1) : kind & 4 ? take(8) : take(2) % RAM;
}

static void call(u32 cpu, u32 features)
{
	struct hypercall c = {.nr = take(1) % 16,
			      .long_mode = take(1) & 1,
			      .cpl = take(1) % 5 ? 0 : 3,
			      .features = features};

	for (u32 i = 0; i < 4; i++)
		c.arg[i] = take(1) & 1 ? take(8) : take(1);
	hypercall_run(&fix_cpu[cpu], &c);
	if (c.yield_to == &fix_cpu[cpu])
		abort();
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u32 msrs[] = {0x11,       0x12,	   0x4b564d00, 0x4b564d01, 0x4b564d02,
				   0x4b564d03, 0x4b564d04, 0x4b564d05, 0x4b564d06};
	u8 *ram = aligned_alloc(RAM, RAM); /* ASan knows its ends */
	struct guest_mem mem = {.nr_slots = 1, .slots = {{0, RAM, ram}}};
	struct pv_vm vm = {.stable = true, .scale = pvclock_scale(2000000000), .mem = &mem};
	struct pv_vcpu v[CPUS];
	struct pv_report report = {0};
	u64 delay[CPUS] = {0};
	char text[16];

	in = data;
	left = size;
	memset(ram, 0, RAM);
	fix_online(CPUS, true);
	vm.features = take(1);
	for (u32 i = 0; i < CPUS; i++)
		pv_vcpu_start(&v[i], 0);
	while (left) {
		u32 op = take(1), cpu = op >> 4 & 1;
		struct pv_wrmsr w = {.run_delay_ns = delay[cpu], .tsc_offset = op};
		struct kvm_steal_time *rec = v[cpu].steal.rec;
		u64 value, before = rec ? rec->steal : 0;

		switch (op & 7) {
		case 0:
		case 1:
			pv_msr_write(&vm, &v[cpu], msrs[take(1) % ARRAY_SIZE(msrs)],
				     address() | (op >> 5 & 1), &w);
			break;
		case 2:
			pv_msr_read(&vm, &v[cpu], msrs[take(1) % ARRAY_SIZE(msrs)], &value);
			break;
		case 3: /* the guest scribbles */
			ram[take(2) % RAM] = take(1);
			break;
		case 4:
			steal_sched_out(&v[cpu].steal);
			delay[cpu] += take(2);
			steal_sched_in(&v[cpu].steal, delay[cpu]);
			/* Wraps only if the guest put a number there that makes it. */
			if (rec && rec->steal < before && before < 1ull << 63)
				abort();
			if (rec && rec->preempted)
				abort();
			break;
		case 5:
			call(cpu, vm.features);
			break;
		case 6:
			report_write(&report, take(4), CPUS);
			report_text(&report, text, sizeof(text));
			break;
		case 7:
			pv_vcpu_init(&v[cpu]);
			break;
		}
	}
	free(ram);
	return 0;
}
