/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a pCPU's structure, stacks and tables. Starting the CPU itself is hv/smp.c's. */
#include "hv/pcpu.h"

#include "hv/page.h"
#include "hv/paging.h"
#include "hv/tracepoint.h"
#include "hv/x86/cpu.h"

struct pcpu *pcpus[MAX_PCPUS];
u32 nr_pcpus;
u64 idle_pcpus[MAX_PCPUS / 64], online_pcpus[MAX_PCPUS / 64];

/* A stack of @size bytes below an unmapped page: running over it faults instead of spoiling memory.
 * Returns its top. */
static u64 stack_alloc(u64 size)
{
	u64 base = (u64)page_alloc(size + PAGE_SIZE, PAGE_SIZE, PAGES_PCPU);

	paging_map(base, PAGE_SIZE, MAP_NONE);
	return base + PAGE_SIZE + size;
}

struct pcpu *pcpu_create(u32 id, u32 apic_id)
{
	struct pcpu *p = page_alloc(sizeof(*p), PAGE_SIZE, PAGES_PCPU);
	u64 ist[NR_ISTS] = {0};

	p->self = p;
	p->id = id;
	p->apic_id = apic_id;
	p->state = PCPU_STARTING;
	p->stack_top = stack_alloc(PCPU_STACK_SIZE);
	for (u32 i = 1; i < NR_ISTS; i++)
		ist[i] = stack_alloc(IST_STACK_SIZE);
	desc_build(&p->tables, ist);
	timer_queue_init(&p->timers);
	trace_create(p);
	pcpus[id] = p;
	return p;
}

void pcpu_install(struct pcpu *p)
{
	desc_load(&p->tables);
	wrmsr(MSR_GS_BASE, (u64)p);
}
