/* SPDX-License-Identifier: BSD-2-Clause */
/* The trace: rings of records, and records as text. What is traced is said where it happens. */
#include "hv/trace.h"

#include "hv/lib/bug.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"
#include "hv/spin/spin.h"

static const struct {
	const char *word, *text, *args[TRACE_ARGS];
} events[] = {
#define X(NAME, word, text, ...) {word, text, {__VA_ARGS__}},
    TRACE_EVENTS(X)
#undef X
};

void trace_init(struct trace_ring *ring, struct trace_record *records, u64 nr)
{
	BUG_ON(!nr || (nr & (nr - 1)));
	*ring = (struct trace_ring){.record = records, .mask = nr - 1};
}

void trace_put(struct trace_ring *ring, enum trace_event event, u64 time, u32 vm, u32 vcpu,
	       const u32 *args, u32 nr)
{
	u64 head = ring->head;
	struct trace_record *r = &ring->record[head & ring->mask];

	/* A reader that sees anything of the new record also sees that its number has changed. */
	__atomic_store_n(&r->seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	WRITE_ONCE(r->time, time);
	WRITE_ONCE(r->event, (u16)event);
	WRITE_ONCE(r->vm, (u16)vm);
	WRITE_ONCE(r->vcpu, (u16)vcpu);
	for (u32 i = 0; i < TRACE_ARGS; i++)
		WRITE_ONCE(r->arg[i], i < nr ? args[i] : 0);
	__atomic_store_n(&r->seq, head + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
}

/* Copies record number @n; false if it is not there (any more). */
static bool copy(const struct trace_ring *ring, u64 n, struct trace_record *out)
{
	const struct trace_record *r = &ring->record[n & ring->mask];

	if (__atomic_load_n(&r->seq, __ATOMIC_ACQUIRE) != n + 1)
		return false;
	out->seq = n + 1;
	out->time = READ_ONCE(r->time);
	out->event = READ_ONCE(r->event);
	out->vm = READ_ONCE(r->vm);
	out->vcpu = READ_ONCE(r->vcpu);
	out->unused = 0;
	for (u32 i = 0; i < TRACE_ARGS; i++)
		out->arg[i] = READ_ONCE(r->arg[i]);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&r->seq, __ATOMIC_RELAXED) == n + 1;
}

bool trace_next(const struct trace_ring *ring, u64 *pos, struct trace_record *record, u64 *lost)
{
	u64 head;

	if (!ring->record)
		return false;
	while (*pos < (head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE))) {
		if (head - *pos > ring->mask + 1) {
			*lost += head - *pos - (ring->mask + 1);
			*pos = head - (ring->mask + 1);
		}
		if (copy(ring, (*pos)++, record))
			return true;
		++*lost;
	}
	return false;
}

u64 trace_last(const struct trace_ring *ring, u64 nr)
{
	u64 head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	nr = min(nr, ring->record ? ring->mask + 1 : 0);
	return head > nr ? head - nr : 0;
}

static int format_arg(char *buf, size_t size, const char *name, u32 value)
{
	if (value == TRACE_NONE)
		return fmt_print(buf, size, " %s=-", name);
	if (!strcmp(name, "rule"))
		return fmt_print(buf, size, " %s=%s", name, spin_class_name(value));
	return fmt_print(buf, size, " %s=%u", name, value);
}

int trace_format(const struct trace_record *r, u32 pcpu, char *buf, size_t size)
{
	const char *name;
	int n;

	n = fmt_print(buf, size, "trace %u %llu %s ", pcpu, (unsigned long long)r->time,
		      trace_word(r->event));
#define REST buf + min((size_t)n, size), size - min((size_t)n, size)
	if (r->vm == TRACE_NO_VM)
		n += fmt_print(REST, "-");
	else
		n += fmt_print(REST, "%u/%u", r->vm, r->vcpu);
	for (u32 i = 0; (name = trace_arg_name(r->event, i)); i++)
		n += format_arg(REST, name, r->arg[i]);
#undef REST
	return n;
}

int trace_event_of(const char *word)
{
	for (u32 i = 0; i < NR_TRACE_EVENTS; i++) {
		if (!strcmp(events[i].word, word))
			return (int)i;
	}
	return -1;
}

const char *trace_word(u32 event)
{
	return event < NR_TRACE_EVENTS ? events[event].word : "?";
}

const char *trace_text(u32 event)
{
	return event < NR_TRACE_EVENTS ? events[event].text : "?";
}

const char *trace_arg_name(u32 event, u32 arg)
{
	return event < NR_TRACE_EVENTS && arg < TRACE_ARGS ? events[event].args[arg] : NULL;
}
