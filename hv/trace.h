/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trace: what happened on each pCPU, in a ring of fixed-size records that the newest overwrite.
 * One list of events; the monitor's `trace`, the panic's last records and tools/vlag read from it.
 * Pure: the memory, the clock and who prints come from outside.
 *
 * One writer per ring, its pCPU; no lock. Anyone may read while it writes: a record that was
 * overwritten meanwhile is noticed and dropped, never shown half.
 */
#ifndef VLAG_TRACE_H
#define VLAG_TRACE_H

#include "hv/lib/types.h"

#define TRACE_ARGS 6
#define TRACE_NONE UINT32_MAX /* an argument that says "nobody"; printed as - */
#define TRACE_NO_VM UINT16_MAX

/*
 * X(NAME, word, text, names of the arguments...): the vCPU of a record is whom it is about; other
 * vCPUs are numbers within its VM unless a prev_vm says otherwise. `rule` is an enum spin_class,
 * the others are numbers; times are TSC ticks, UINT32_MAX - 1 at most.
 */
#define TRACE_EVENTS(X)                                                                            \
	X(SWITCH, "switch", "a vCPU (or nobody) gets the pCPU", "prev_vm", "prev_vcpu",            \
	  "runnable", "waiting")                                                                   \
	X(WAKE, "wake", "a vCPU is woken", "pcpu", "preempts")                                     \
	X(IPI, "ipi", "it sends a fixed interrupt", "to", "vector", "receivers")                   \
	X(EOI, "eoi", "it ends an interrupt", "vector", "from")                                    \
	X(SPIN, "spin", "it spins and looks for somebody to yield to", "spun", "kernel", "seen",   \
	  "target", "rule", "yielded")                                                             \
	X(BOOST, "boost", "a queue picked after a directed yield to it", "spinner", "ran")         \
	X(BACK, "back", "it runs again after a spin in which it gave its pCPU away", "waited")

enum trace_event {
#define X(NAME, ...) TRACE_##NAME,
	TRACE_EVENTS(X)
#undef X
	    NR_TRACE_EVENTS
};

#define TRACE_ALL (BIT(NR_TRACE_EVENTS) - 1)

struct trace_record {
	u64 seq;  /* number of the record + 1, 0: being written */
	u64 time; /* TSC ticks */
	u16 event;
	u16 vm, vcpu; /* TRACE_NO_VM: none */
	u16 unused;
	u32 arg[TRACE_ARGS];
};

/* Of a pCPU, which writes it; @on is written by anyone. */
struct trace_ring {
	u64 on;			     /* bit per event */
	u64 head;		     /* records ever written */
	struct trace_record *record; /* @mask + 1 of them; constant */
	u64 mask;
};

/* @records: @nr of them, a power of two, zeroed; they stay the caller's. Nothing is traced yet. */
void trace_init(struct trace_ring *ring, struct trace_record *records, u64 nr);

/* Which events are traced from now on: a bit for each, TRACE_ALL, 0. Any. */
static inline void trace_enable(struct trace_ring *ring, u64 events)
{
	WRITE_ONCE(ring->on, ring->record ? events : 0);
}

/* The out-of-line part of trace(): writes a record. @args: @nr of them, the rest is 0. */
void trace_put(struct trace_ring *ring, enum trace_event event, u64 time, u32 vm, u32 vcpu,
	       const u32 *args, u32 nr);

/*
 * Traces @event about vCPU @vcpu of VM @vm, on the ring's own pCPU. Nothing after @event is
 * evaluated unless it is traced: four instructions when it is off.
 *
 *	trace(&p->trace, TRACE_IPI, rdtsc(), v->vm->id, v->id, to, vector, 1);
 */
#define trace(ring, event, time, vm, vcpu, ...)                                                    \
	do {                                                                                       \
		struct trace_ring *_ring = (ring);                                                 \
		if (unlikely(READ_ONCE(_ring->on) >> (event)&1)) {                                 \
			const u32 _args[] = {__VA_ARGS__};                                         \
			trace_put(_ring, event, time, vm, vcpu, _args, ARRAY_SIZE(_args));         \
		}                                                                                  \
	} while (0)

/*
 * The next record of @ring for a reader that has come to *@pos (0 at first, which stands for the
 * oldest that is left). False if there is no newer one. Adds to *@lost what was overwritten before
 * it could be read. Any.
 */
bool trace_next(const struct trace_ring *ring, u64 *pos, struct trace_record *record, u64 *lost);

/* The position from which the last @nr records can be read. */
u64 trace_last(const struct trace_ring *ring, u64 nr);

/*
 * One line without newline, for the monitor and the panic; tools/vlaglib/trace.py reads it:
 *	trace PCPU TIME EVENT VM/VCPU name=value ...
 * A dump begins with `trace hz=TICKS_PER_SECOND` and one `trace vm NUMBER NAME` for each VM.
 * As fmt_print() returns.
 */
int trace_format(const struct trace_record *record, u32 pcpu, char *buf, size_t size);

/* The number of the event @word, -1 if there is none: for `trace on EVENT ...`. */
int trace_event_of(const char *word);

/* The word and the text of event @event < NR_TRACE_EVENTS; the name of its argument @arg, or NULL.
 */
const char *trace_word(u32 event);
const char *trace_text(u32 event);
const char *trace_arg_name(u32 event, u32 arg);

#endif
