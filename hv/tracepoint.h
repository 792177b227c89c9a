/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places where the hypervisor writes its trace (hv/trace.h): is an event traced, and the
 * functions, out of line, that gather what its record says. All run on the pCPU in whose ring they
 * write; `now` is host TSC.
 *
 *	if (unlikely(tracing(TRACE_EOI)))
 *		trace_eoi(v, now);
 */
#ifndef VLAG_TRACEPOINT_H
#define VLAG_TRACEPOINT_H

#include "hv/pcpu.h"
#include "hv/trace.h"

/* Is @event, a constant, traced on this pCPU? An instruction and its branch. */
static __always_inline bool tracing(enum trace_event event)
{
	bool on;

	_Static_assert(NR_TRACE_EVENTS <= 8, "the events are looked for in the first byte");
	__asm__ volatile("testb %1, %%gs:%c2"
			 : "=@ccnz"(on)
			 : "i"(1 << event), "i"(offsetof(struct pcpu, trace.on)));
	return on;
}

struct vcpu;
struct spin_walk;

/* @prev was, @next is picked; either may be NULL. Says nothing if they are the same. Under the run
 * queue's lock. */
void trace_switch(struct pcpu *p, const struct vcpu *prev, const struct vcpu *next, u64 now);

/* @v was queued at @p; @preempts: that pCPU must look who runs. */
void trace_wake(const struct vcpu *v, const struct pcpu *p, bool preempts, u64 now);

/* After a directed yield to @target by vCPU number @spinner of its VM: @ran is whether it was
 * picked. */
void trace_boost(const struct vcpu *target, u32 spinner, bool ran, u64 now);

/* @v runs again, @waited ticks after it gave its pCPU away in a spin. */
void trace_back(const struct vcpu *v, u64 waited, u64 now);

/* The search @w for somebody to yield to is over; NULL: nobody waited. @v had spun for @spun ticks.
 */
void trace_spin(const struct vcpu *v, const struct spin_walk *w, u64 spun, u64 now);

/* @v is about to write @icr, destination and all, to its interrupt command register. Says something
 * if that sends a fixed interrupt to others. */
void trace_icr(struct vcpu *v, u64 icr, u64 now);

/* @v sent @vector to @receivers vCPUs by a hypercall. */
void trace_ipis(const struct vcpu *v, u8 vector, u32 receivers, u64 now);

/* @v is about to write its EOI register. */
void trace_eoi(const struct vcpu *v, u64 now);

/* The ring of a new pCPU. While booting. */
void trace_create(struct pcpu *p);

/* The last records of @p, for its panic. */
struct out;
void trace_show_last(struct out *out, const struct pcpu *p);

/* The monitor's `trace ...`; as its other commands. */
const char *trace_command(struct out *out, char **word, u32 n);

#endif
