/* SPDX-License-Identifier: BSD-2-Clause */
/* The IPI tracker: the words and the rules of ipi_track.h. Pure; delivers nothing. */
#include "hv/apic/ipi_track.h"

#include "hv/lib/bits.h"
#include "hv/lib/bug.h"
#include "hv/lib/string.h"

/*
 * Both kinds of word:
 *	time:45  valid:1  vCPU index:10  vector or slot:8
 * An entry of sent[] has its receiver and its vector; a token in pending[v] and in_service[v] its
 * sender and the slot there. The token's own receiver and vector are known from where it lies, so
 * it names exactly one possible entry. The time is on top, so that one shift brings it to its place
 * and cuts it to size.
 */
#define TIME_SHIFT IPI_TRACK_TIME_SHIFT
#define LOW_BITS (BIT(TIME_SHIFT) - 1)
#define WORD_VALID BIT(18)
#define ID_SHIFT 8

/* @id: as in struct ipi_track, the vCPU index in its place and WORD_VALID. */
static inline u64 entry_make(u64 id, u8 vector, u64 time)
{
	return time << TIME_SHIFT | id | vector;
}

static inline u32 entry_receiver(u64 entry)
{
	return entry >> ID_SHIFT & (IPI_TRACK_VCPUS - 1);
}

static inline u8 entry_vector(u64 entry)
{
	return entry;
}

static inline u64 token_make(u64 id, u32 slot, u64 time)
{
	return time << TIME_SHIFT | id | slot;
}

static inline u32 token_sender(u64 token)
{
	return token >> ID_SHIFT & (IPI_TRACK_VCPUS - 1);
}

static inline u32 token_slot(u64 token)
{
	return token & (IPI_TRACK_SLOTS - 1);
}

/* Ticks since @word's time; clocks that disagree a little must not look like a great age. */
static inline u64 age_of(u64 word, u64 now)
{
	s64 age = (s64)((now << TIME_SHIFT | LOW_BITS) - word) >> TIME_SHIFT;

	return age < 0 ? 0 : age;
}

void ipi_track_setup(struct ipi_track *t, struct ipi_track_vm *vm, u32 index,
		     struct ipi_counters *count)
{
	BUG_ON(index >= IPI_TRACK_VCPUS);
	memset(t, 0, sizeof(*t));
	t->vm = vm;
	t->knobs = vm->knobs;
	t->index = index;
	t->id = WORD_VALID | (u64)index << ID_SHIFT;
	t->count = count;
}

_Static_assert(IPI_TRACK_SLOTS == 256, "a slot is eight bits");

/* Clears the entry that @token (found at @receiver under @vector) names; false if it is gone. */
static bool entry_clear(struct ipi_track *receiver, u8 vector, u64 token)
{
	struct ipi_track *sender = receiver->vm->peer[token_sender(token)];
	u64 entry = (token & ~LOW_BITS) | receiver->id | vector; /* of the same time */

	/* Only this sender reuses its slots, and then with another time: no ABA. */
	return __atomic_compare_exchange_n(&sender->sent[token_slot(token)], &entry, 0, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* The oldest ring position that may still hold an entry. */
static u32 first_position(const struct ipi_track *t)
{
	u32 head = READ_ONCE(t->head), tail = READ_ONCE(t->tail);

	return head - tail > IPI_TRACK_SLOTS ? head - IPI_TRACK_SLOTS : tail;
}

/* Clears every entry of @sender that waits for vCPU @receiver. */
static void entries_forget(struct ipi_track *sender, u32 receiver)
{
	u32 slot;

	for (slot = first_position(sender); slot != READ_ONCE(sender->head); slot++) {
		u64 *word = &sender->sent[slot % IPI_TRACK_SLOTS];
		u64 entry = READ_ONCE(*word);

		if (entry && entry_receiver(entry) == receiver)
			__atomic_compare_exchange_n(word, &entry, 0, false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED);
	}
}

void ipi_track_reset(struct ipi_track *t)
{
	u32 i;

	for (i = 0; i < IPI_TRACK_SLOTS; i++)
		WRITE_ONCE(t->sent[i], 0);
	t->tail = t->head;
	for (i = 0; i < t->vm->nr_peers; i++)
		if (i != t->index)
			entries_forget(t->vm->peer[i], t->index);
	for (i = 0; i < ARRAY_SIZE(t->pending); i++) {
		WRITE_ONCE(t->pending[i], 0);
		WRITE_ONCE(t->in_service[i], 0);
	}
}

/* The ring is full of entries that nobody acknowledged: @entry makes room. */
static void count_dropped(struct ipi_track *t, u64 entry, u64 now)
{
	if (age_of(entry, now) > t->knobs->window)
		t->count->ipi_expired++;
	else
		t->count->ipi_overwritten++;
}

/*
 * @old, of @from itself, is still in the IRR of @to: old and new become one interrupt and one EOI,
 * so only the new entry stays.
 */
static void merge(struct ipi_track *from, struct ipi_track *to, u8 vector, u64 old)
{
	if (entry_clear(to, vector, old))
		from->count->ipi_coalesced++;
}

void ipi_track_sent(struct ipi_track *from, struct ipi_track *to, u8 vector, u64 now)
{
	u64 *pending = &to->pending[vector], old;
	u32 slot = from->head % IPI_TRACK_SLOTS;

	if (ipi_track_sent_plain(from, to, vector, now) || !from->knobs->enabled)
		return;
	if (READ_ONCE(from->sent[slot]))
		count_dropped(from, from->sent[slot], now);
	from->head++;
	from->count->ipi_tracked++;
	WRITE_ONCE(from->sent[slot], entry_make(to->id, vector, now));
	old = READ_ONCE(*pending);
	WRITE_ONCE(*pending, token_make(from->id, slot, now));
	if (old && token_sender(old) == from->index)
		merge(from, to, vector, old);
}

void ipi_track_accept_sent(struct ipi_track *t, u8 vector, u64 now)
{
	u64 token = READ_ONCE(t->pending[vector]);

	/* In this order: an entry is alive while one of the two words is set. */
	WRITE_ONCE(t->in_service[vector], token);
	token = __atomic_exchange_n(&t->pending[vector], 0, __ATOMIC_SEQ_CST);
	WRITE_ONCE(t->in_service[vector], token);
	hist_add(&t->count->send_to_delivery, age_of(token, now));
}

void ipi_track_eoi_sent(struct ipi_track *t, u8 vector, u64 now)
{
	u64 token = t->in_service[vector];

	WRITE_ONCE(t->in_service[vector], 0);
	if (!entry_clear(t, vector, token)) {
		t->count->eoi_unmatched++;
		return;
	}
	t->count->eoi_matched++;
	hist_add(&t->count->send_to_eoi, age_of(token, now));
}

int ipi_track_sender(const struct ipi_track *t, u8 vector)
{
	u64 token = READ_ONCE(t->in_service[vector]);

	return token ? (int)token_sender(token) : -1;
}

bool ipi_track_next(struct ipi_track *t, u64 now, u32 *cursor, struct ipi_wait *out)
{
	t->tail = first_position(t);
	if (t->head - *cursor > t->head - t->tail)
		*cursor = t->tail;
	while (*cursor != t->head) {
		u64 *word = &t->sent[*cursor % IPI_TRACK_SLOTS];
		u64 entry = READ_ONCE(*word);
		const struct ipi_track *to;

		if (*cursor == t->tail && !entry)
			t->tail++;
		++*cursor;
		if (!entry)
			continue;
		out->receiver = entry_receiver(entry);
		out->vector = entry_vector(entry);
		out->age = age_of(entry, now);
		to = t->vm->peer[out->receiver];
		if (out->age > t->knobs->window)
			t->count->ipi_expired++;
		else if (!READ_ONCE(to->pending[out->vector]) &&
			 !READ_ONCE(to->in_service[out->vector]))
			t->count->ipi_coalesced++;
		else
			return true;
		WRITE_ONCE(*word, 0);
	}
	return false;
}
