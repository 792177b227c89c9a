/* SPDX-License-Identifier: BSD-2-Clause */
/* What trace records say, from the hypervisor's state, and the monitor's `trace`. When a record is
 * written is said where it happens. */
#include "hv/tracepoint.h"

#include "hv/console.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"
#include "hv/page.h"
#include "hv/spin/spin.h"
#include "hv/tsc.h"
#include "hv/vm/vcpu.h"
#include "hv/x86/cpu.h"

/* Per pCPU, a power of two: about 100 ms of four vCPUs that spin for each other. */
#define RECORDS 4096u
#define SHOWN 256u     /* by `trace dump` of each pCPU */
#define SHOWN_LAST 16u /* by a panic */
#define LINE_SIZE 200u

static void put(enum trace_event event, u64 now, const struct vcpu *v, const u32 *args, u32 nr)
{
	trace_put(&this_pcpu()->trace, event, now, v ? v->vm->id : TRACE_NO_VM, v ? v->id : 0, args,
		  nr);
}

#define PUT(event, now, v, ...)                                                                    \
	put(event, now, v, (const u32[]){__VA_ARGS__},                                             \
	    sizeof((const u32[]){__VA_ARGS__}) / sizeof(u32))

/* Ticks as an argument. */
static u32 ticks(u64 n)
{
	return (u32)min(n, (u64)TRACE_NONE - 1);
}

void trace_switch(struct pcpu *p, const struct vcpu *prev, const struct vcpu *next, u64 now)
{
	if (prev == next)
		return;
	PUT(TRACE_SWITCH, now, next, prev ? prev->vm->id : TRACE_NONE, prev ? prev->id : TRACE_NONE,
	    prev && prev->sched.state == SCHED_QUEUED, p->rq.nr_running - (next ? 1 : 0));
}

void trace_wake(const struct vcpu *v, const struct pcpu *p, bool preempts, u64 now)
{
	PUT(TRACE_WAKE, now, v, p->id, preempts);
}

void trace_boost(const struct vcpu *target, u32 spinner, bool ran, u64 now)
{
	PUT(TRACE_BOOST, now, target, spinner, ran);
}

void trace_back(const struct vcpu *v, u64 waited, u64 now)
{
	PUT(TRACE_BACK, now, v, ticks(waited));
}

void trace_spin(const struct vcpu *v, const struct spin_walk *w, u64 spun, u64 now)
{
	bool tried = w && w->nr_tried;

	PUT(TRACE_SPIN, now, v, ticks(spun), w ? w->in_kernel : TRACE_NONE, w ? w->seen : 0,
	    tried ? w->tried[w->nr_tried - 1] : TRACE_NONE, tried ? w->class : TRACE_NONE,
	    w && w->given);
}

void trace_icr(struct vcpu *v, u64 icr, u64 now)
{
	u32 only, receivers = vlapic_icr_receivers(&v->lapic, icr, &only);

	if (receivers)
		PUT(TRACE_IPI, now, v, receivers == 1 ? only : TRACE_NONE, (u8)icr, receivers);
}

void trace_ipis(const struct vcpu *v, u8 vector, u32 receivers, u64 now)
{
	PUT(TRACE_IPI, now, v, TRACE_NONE, vector, receivers);
}

void trace_eoi(const struct vcpu *v, u64 now)
{
	const struct vlapic *l = &v->lapic;
	u8 vector = l->isr_stack[l->isr_depth];
	int sender;

	if (!l->isr_depth)
		return;
	sender = ipi_track_sender(&l->track, vector);
	PUT(TRACE_EOI, now, v, vector, sender < 0 ? TRACE_NONE : (u32)sender);
}

void trace_create(struct pcpu *p)
{
	trace_init(&p->trace,
		   page_alloc(RECORDS * sizeof(struct trace_record), PAGE_SIZE, PAGES_TRACE),
		   RECORDS);
}

/* The last @nr records of @p. */
static void show(struct out *out, const struct pcpu *p, u64 nr)
{
	u64 pos = trace_last(&p->trace, nr), lost = 0;
	struct trace_record r;
	char line[LINE_SIZE];

	while (trace_next(&p->trace, &pos, &r, &lost)) {
		trace_format(&r, p->id, line, sizeof(line));
		out_wait(out, sizeof(line));
		out_print(out, "%s\n", line);
	}
}

void trace_show_last(struct out *out, const struct pcpu *p)
{
	if (!READ_ONCE(p->trace.head))
		return;
	out_print(out, "the last of the trace, TSC at %lu Hz:\n", tsc_hz());
	show(out, p, SHOWN_LAST);
}

static void enable(u64 events)
{
	for (u32 i = 0; i < nr_pcpus; i++)
		trace_enable(&pcpus[i]->trace, events);
}

static const char *turn_on(char **word, u32 n)
{
	u64 events = 0;
	int event;

	for (u32 i = 2; i < n; i++) {
		event = trace_event_of(word[i]);
		if (event < 0)
			return "there is no such event; trace lists them";
		events |= BIT(event);
	}
	enable(events ? events : TRACE_ALL);
	return NULL;
}

/* Nothing is traced meanwhile: printing takes longer than anything that it could show. */
static void dump(struct out *out, u64 nr)
{
	u64 events = READ_ONCE(pcpus[0]->trace.on);

	enable(0);
	out_print(out, "trace hz=%lu\n", tsc_hz());
	for (u32 i = 0; i < nr_vms; i++)
		out_print(out, "trace vm %u %s\n", vms[i]->id, vms[i]->name);
	for (u32 i = 0; i < nr_pcpus; i++)
		show(out, pcpus[i], nr);
	enable(events);
}

static void state(struct out *out)
{
	u64 on = READ_ONCE(pcpus[0]->trace.on);

	for (u32 i = 0; i < NR_TRACE_EVENTS; i++)
		out_print(out, "%-8s %-3s  %s\n", trace_word(i), on & BIT(i) ? "on" : "off",
			  trace_text(i));
	for (u32 i = 0; i < nr_pcpus; i++) {
		u64 head = READ_ONCE(pcpus[i]->trace.head);

		out_print(out, "pCPU %u: %lu records, the last %lu are kept\n", i, head,
			  min(head, (u64)RECORDS));
	}
}

const char *trace_command(struct out *out, char **word, u32 n)
{
	u64 nr = SHOWN;

	if (n == 1) {
		state(out);
		return NULL;
	}
	if (!strcmp(word[1], "on"))
		return turn_on(word, n);
	if (n == 2 && !strcmp(word[1], "off")) {
		enable(0);
		return NULL;
	}
	if (n > 3 || strcmp(word[1], "dump"))
		return "usage: trace, trace on [EVENT...], trace off, or trace dump [RECORDS]";
	if (n == 3 && (!fmt_parse_u64(word[2], &nr) || !nr || nr > RECORDS))
		return "how many records of each pCPU? 1 to 4096 are possible";
	dump(out, nr);
	return NULL;
}
