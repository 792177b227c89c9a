/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 8254 model. A channel's output and count are functions of the ticks since its count was
 * loaded; only the edges of channel 0, which are interrupts, are counted as time passes.
 */
#include "hv/dev/pit.h"

#include "hv/dev/ports.h"

#define NS_PER_S 1000000000u
/* Port 0x61 bit 4 toggles with each refresh of the original PC's memory: every 18 ticks. */
#define REFRESH_TICKS 18

enum { ACCESS_LATCH = 0, ACCESS_LOW = 1, ACCESS_HIGH = 2, ACCESS_BOTH = 3 };
enum { STATUS_OUT = 0x80, STATUS_NULL = 0x40 };
enum { P61_GATE2 = 0x01, P61_WRITABLE = 0x0F, P61_REFRESH = 0x10, P61_OUT2 = 0x20 };

static u64 ns_to_tick(u64 ns)
{
	return ns / NS_PER_S * PIT_HZ + ns % NS_PER_S * PIT_HZ / NS_PER_S;
}

/* The first nanosecond of @tick. */
static u64 tick_to_ns(u64 tick)
{
	return tick / PIT_HZ * NS_PER_S + (tick % PIT_HZ * NS_PER_S + PIT_HZ - 1) / PIT_HZ;
}

static bool is_periodic(const struct pit_channel *ch)
{
	return ch->mode == 2 || ch->mode == 3;
}

/* Modes in which a rising gate starts the count. */
static bool is_triggered(const struct pit_channel *ch)
{
	return ch->mode == 1 || ch->mode == 5;
}

static bool is_counting(const struct pit_channel *ch)
{
	return ch->loaded && (is_triggered(ch) ? ch->triggered : ch->gate);
}

/* Ticks since the count was loaded. */
static u64 elapsed(const struct pit_channel *ch, u64 tick)
{
	if (!is_counting(ch))
		return is_periodic(ch) || is_triggered(ch) ? 0 : ch->paused;
	return tick > ch->start ? tick - ch->start : 0;
}

static bool output(const struct pit_channel *ch, u64 tick)
{
	u64 e = elapsed(ch, tick);

	switch (ch->mode) {
	case 0:
		return ch->loaded && e >= ch->count;
	case 1:
		return !is_counting(ch) || e >= ch->count;
	case 2:
		return !is_counting(ch) || e % ch->count != ch->count - 1;
	case 3:
		return !is_counting(ch) || e % ch->count < (ch->count + 1) / 2;
	default:
		return !is_counting(ch) || e != ch->count;
	}
}

/* The first tick after @tick at which the output rises, UINT64_MAX if it does not. */
static u64 next_rise(const struct pit_channel *ch, u64 tick)
{
	u64 e = elapsed(ch, tick), at;

	if (!is_counting(ch))
		return UINT64_MAX;
	if (is_periodic(ch))
		return ch->start + (e / ch->count + 1) * ch->count;
	at = ch->start + ch->count + (ch->mode >= 4);
	return at > tick ? at : UINT64_MAX;
}

/* How often the output rises in (@from, @to]; no reload lies between the two. */
static u64 rises(const struct pit_channel *ch, u64 from, u64 to)
{
	if (!is_counting(ch) || to <= from)
		return 0;
	if (is_periodic(ch))
		return elapsed(ch, to) / ch->count - elapsed(ch, from) / ch->count;
	return next_rise(ch, from) <= to;
}

/* Brings a channel to @tick: the end of a period puts the waiting count into effect. */
static void advance(struct pit *pit, struct pit_channel *ch, u64 tick)
{
	bool reload = is_periodic(ch) && ch->next_count && tick >= ch->switch_tick;

	if (ch == &pit->ch[0]) {
		u64 to = reload ? ch->switch_tick : tick;

		pit->edges += rises(ch, pit->seen, to);
		pit->seen = max(pit->seen, to);
	}
	if (reload) {
		ch->start = ch->switch_tick;
		ch->count = ch->next_count;
		ch->next_count = 0;
		advance(pit, ch, tick);
	}
}

static void set_event(struct pit *pit, u64 now_ns, u64 earliest_ns)
{
	u64 rise;

	if (pit->edges != pit->reported) {
		pit->event_ns = now_ns;
		return;
	}
	rise = next_rise(&pit->ch[0], pit->seen);
	pit->event_ns = rise == UINT64_MAX ? UINT64_MAX : max(tick_to_ns(rise), earliest_ns);
}

static u16 to_bcd(u32 n)
{
	return n % 10 | n / 10 % 10 << 4 | n / 100 % 10 << 8 | n / 1000 % 10 << 12;
}

static u32 from_bcd(u16 n)
{
	return (n & 15) + (n >> 4 & 15) * 10 + (n >> 8 & 15) * 100 + (n >> 12 & 15) * 1000;
}

/* The counting element, as a read shows it. */
static u16 current_count(const struct pit_channel *ch, u64 tick)
{
	u32 modulus = ch->bcd ? 10000 : 0x10000, value;
	u64 e = elapsed(ch, tick);

	if (ch->mode == 2) {
		value = ch->count - e % ch->count;
	} else if (ch->mode == 3) { /* two at a time */
		u32 phase = e % ch->count, half = (ch->count + 1) / 2;

		value = (ch->count & ~1u) - 2 * (phase < half ? phase : phase - half);
	} else {
		value = (ch->count + modulus - e % modulus) % modulus;
	}
	return ch->bcd ? to_bcd(value) : value;
}

static void latch_count(struct pit_channel *ch, u64 tick)
{
	if (ch->latched)
		return; /* the first one counts until it is read */
	ch->latch = current_count(ch, tick);
	ch->latched = ch->access == ACCESS_BOTH ? 2 : 1;
}

static void latch_status(struct pit_channel *ch, u64 tick)
{
	if (ch->status_latched)
		return;
	ch->status = (output(ch, tick) ? STATUS_OUT : 0) |
		     (!ch->loaded || ch->next_count ? STATUS_NULL : 0) | ch->access << 4 |
		     ch->mode << 1 | ch->bcd;
	ch->status_latched = true;
}

static u8 read_counter(struct pit_channel *ch, u64 tick)
{
	u16 value;
	bool high;

	if (ch->status_latched) {
		ch->status_latched = false;
		return ch->status;
	}
	value = ch->latched ? ch->latch : current_count(ch, tick);
	high = ch->access == ACCESS_HIGH || (ch->access == ACCESS_BOTH && ch->read_high);
	if (ch->access == ACCESS_BOTH)
		ch->read_high = !ch->read_high;
	if (ch->latched)
		ch->latched--;
	return high ? value >> 8 : value;
}

static void load_count(struct pit_channel *ch, u16 value, u64 tick)
{
	u32 count = ch->bcd ? from_bcd(value) : value;

	if (count == 0)
		count = ch->bcd ? 10000 : 0x10000;
	if (is_periodic(ch) && count == 1)
		count = 2; /* 1 is not allowed */

	if (is_counting(ch) && is_periodic(ch)) {
		ch->next_count = count;
		ch->switch_tick = next_rise(ch, tick);
		return;
	}
	if (is_counting(ch) && is_triggered(ch)) {
		ch->next_count = count; /* at the next trigger */
		return;
	}
	ch->loaded = true;
	ch->count = count;
	ch->next_count = 0;
	ch->start = tick + 1; /* the clock pulse that loads */
	ch->paused = 0;
}

static void write_counter(struct pit_channel *ch, u8 value, u64 tick)
{
	switch (ch->access) {
	case ACCESS_LOW:
		load_count(ch, value, tick);
		break;
	case ACCESS_HIGH:
		load_count(ch, value << 8, tick);
		break;
	default:
		ch->write_high = !ch->write_high;
		if (!ch->write_high) {
			load_count(ch, value << 8 | ch->write_low, tick);
			break;
		}
		ch->write_low = value;
		if (ch->mode == 0)
			ch->loaded = false; /* stops, OUT low, until the second byte comes */
	}
}

static void read_back(struct pit *pit, u8 value, u64 tick)
{
	for (unsigned i = 0; i < 3; i++) {
		if (!(value >> (i + 1) & 1))
			continue;
		if (!(value & 0x20))
			latch_count(&pit->ch[i], tick);
		if (!(value & 0x10))
			latch_status(&pit->ch[i], tick);
	}
}

static void write_control(struct pit *pit, u8 value, u64 tick)
{
	struct pit_channel *ch;

	if (value >> 6 == 3) {
		read_back(pit, value, tick);
		return;
	}
	ch = &pit->ch[value >> 6];
	if ((value >> 4 & 3) == ACCESS_LATCH) {
		latch_count(ch, tick);
		return;
	}
	if (ch == &pit->ch[0])
		pit->irq = false;
	*ch = (struct pit_channel){
	    .mode = (value >> 1 & 7) > 5 ? value >> 1 & 3 : value >> 1 & 7, /* 6, 7 are 2, 3 */
	    .access = value >> 4 & 3,
	    .bcd = value & 1,
	    .gate = ch->gate,
	    .count = ch->count,
	};
}

static void set_gate(struct pit_channel *ch, bool gate, u64 tick)
{
	bool rises_now = gate && !ch->gate;

	if (!gate && ch->gate)
		ch->paused = elapsed(ch, tick);
	if (rises_now && ch->loaded) {
		if (is_periodic(ch) || is_triggered(ch)) {
			if (ch->next_count)
				ch->count = ch->next_count;
			ch->next_count = 0;
			ch->start = tick + 1;
			ch->triggered = true;
		} else {
			ch->start = tick - ch->paused;
		}
	}
	ch->gate = gate;
}

u32 pit_read(struct pit *pit, u16 port, unsigned size, u64 now_ns)
{
	u64 tick = ns_to_tick(now_ns);

	if (port == PORT_NMI_SC) {
		advance(pit, &pit->ch[2], tick);
		return pit->port61 | (tick / REFRESH_TICKS & 1 ? P61_REFRESH : 0) |
		       (output(&pit->ch[2], tick) ? P61_OUT2 : 0);
	}
	if ((port & 3) == 3)
		return 0; /* the control word cannot be read */
	advance(pit, &pit->ch[port & 3], tick);
	return read_counter(&pit->ch[port & 3], tick);
}

void pit_write(struct pit *pit, u16 port, unsigned size, u32 value, u64 now_ns)
{
	u64 tick = ns_to_tick(now_ns);
	bool was_high;

	for (unsigned i = 0; i < 3; i++)
		advance(pit, &pit->ch[i], tick);
	was_high = output(&pit->ch[0], tick);

	if (port == PORT_NMI_SC) {
		pit->port61 = value & P61_WRITABLE;
		set_gate(&pit->ch[2], value & P61_GATE2, tick);
	} else if ((port & 3) == 3) {
		write_control(pit, (u8)value, tick);
	} else {
		write_counter(&pit->ch[port & 3], (u8)value, tick);
	}

	/* A control word puts the output at once where its mode wants it. */
	if (!was_high && output(&pit->ch[0], tick))
		pit->edges++;
	set_event(pit, now_ns, 0);
}

bool pit_run(struct pit *pit, u64 now_ns)
{
	bool risen;

	advance(pit, &pit->ch[0], ns_to_tick(now_ns));
	risen = pit->edges != pit->reported;
	if (risen) {
		pit->missed += pit->edges - pit->reported - 1;
		pit->irq = true;
	}
	pit->reported = pit->edges;
	set_event(pit, now_ns, now_ns + PIT_MIN_EVENT_NS);
	return risen;
}

void pit_init(struct pit *pit)
{
	*pit = (struct pit){.event_ns = UINT64_MAX};
	for (unsigned i = 0; i < 3; i++)
		pit->ch[i] = (struct pit_channel){
		    .mode = 3, .access = ACCESS_BOTH, .gate = i != 2, .count = 0x10000};
}
