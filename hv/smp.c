/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting the other CPUs through INIT-SIPI-SIPI (SDM vol. 3, 9.4), one at a time so that they
 * share one stack pointer. */
#include "hv/smp.h"

#include "hv/apic/lapic.h"
#include "hv/console.h"
#include "hv/lib/string.h"
#include "hv/paging.h"
#include "hv/pcpu.h"
#include "hv/tsc.h"
#include "hv/vm/run.h"
#include "hv/vmx/vmx.h"
#include "hv/x86/cpu.h"

extern char trampoline_start[], trampoline_end[];
extern u64 trampoline_cr3, trampoline_entry, trampoline_stack;

#define START_TIMEOUT_MS 1000
#define TSC_SKEW_NS 5000 /* less goes unnoticed */

static struct pcpu *starting; /* whose turn it is */
static u64 starting_stack;    /* its stack top: the trampoline loads it */
static u32 released;

/* First C code of another CPU. */
static void __noreturn ap_start(void)
{
	struct pcpu *p = starting;

	pcpu_install(p);
	paging_load();
	lapic_init();
	p->tsc_skew = tsc_sync_secondary();
	WRITE_ONCE(p->state, vmx_enable() ? PCPU_ONLINE : PCPU_FAILED);
	while (!READ_ONCE(released))
		cpu_relax();
	if (p->state == PCPU_FAILED)
		hlt_forever();
	pcpu_run();
}

static void trampoline_install(u64 page)
{
	u64 *word;

	memcpy((void *)page, trampoline_start, trampoline_end - trampoline_start);
	word = (u64 *)(page + ((char *)&trampoline_cr3 - trampoline_start));
	*word = paging_cr3();
	word = (u64 *)(page + ((char *)&trampoline_entry - trampoline_start));
	*word = (u64)ap_start;
	word = (u64 *)(page + ((char *)&trampoline_stack - trampoline_start));
	*word = (u64)&starting_stack;
	paging_map(page, PAGE_SIZE, MAP_RX);
}

static void start_one(struct pcpu *p, u64 page)
{
	s64 limit = tsc_from_ns(TSC_SKEW_NS);
	u64 deadline;

	starting = p;
	starting_stack = p->stack_top;
	tsc_sync_prepare();
	lapic_send_init(p->apic_id);
	tsc_delay_us(10000);
	lapic_send_sipi(p->apic_id, page >> 12);
	tsc_delay_us(200);
	lapic_send_sipi(p->apic_id, page >> 12);

	deadline = rdtsc() + tsc_from_ns(START_TIMEOUT_MS * 1000000ull);
	if (tsc_sync_primary(deadline)) {
		while (READ_ONCE(p->state) == PCPU_STARTING && rdtsc() < deadline)
			cpu_relax();
	}
	if (READ_ONCE(p->state) == PCPU_ONLINE) {
		if (p->tsc_skew > limit || p->tsc_skew < -limit)
			hv_warn("the TSC of pCPU %u is %ld ticks off the boot CPU's: guests' "
				"clocks may jump "
				"when vCPUs move; firmware should start all TSCs together",
				p->id, p->tsc_skew);
		return;
	}
	hv_warn("pCPU %u (APIC id %u) %s; going on without it", p->id, p->apic_id,
		p->state == PCPU_FAILED ? "cannot enter VMX operation" : "does not start");
}

void smp_start(const struct boot_info *info, u32 limit)
{
	u64 page = info->trampoline;

	if (info->nr_cpus > 1 && !page) {
		hv_warn("no memory below 1 MiB for starting other CPUs; going on with one");
		return;
	}
	if (info->nr_cpus > 1)
		trampoline_install(page);
	for (u32 i = 1; i < info->nr_cpus; i++) {
		struct pcpu *p;

		if (limit && nr_pcpus >= limit)
			break;
		p = pcpu_create(nr_pcpus, info->cpus[i].apic_id);
		start_one(p, page);
		/* A CPU that is late must not find its structure used by the next one: its slot is
		 * spent. */
		if (p->state == PCPU_ONLINE)
			nr_pcpus++;
		else if (p->state == PCPU_STARTING)
			break;
	}
	if (info->nr_cpus > 1)
		paging_map(page, PAGE_SIZE, MAP_NONE);
}

void smp_release(void)
{
	__atomic_store_n(&released, 1, __ATOMIC_RELEASE);
}
