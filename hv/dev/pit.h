/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 8254 timer (Intel 8254 data sheet) with the channel 2 bits of port 0x61. Counters are not
 * stepped: everything follows from the time of the last load, in exact integer arithmetic, so
 * there is no drift and no work while nobody looks. Channel 1 counts, but leads nowhere. Pure
 * model; the owner holds the VM's device lock around every call.
 */
#ifndef VLAG_DEV_PIT_H
#define VLAG_DEV_PIT_H

#include "hv/lib/types.h"

#define PIT_HZ 1193182u

/* Edges of OUT 0 that are closer together than this come as one: a guest cannot cause more events.
 */
#define PIT_MIN_EVENT_NS 50000u

struct pit_channel {
	u8 mode;   /* 0..5 */
	u8 access; /* bytes of the count: 1 low, 2 high, 3 low then high */
	bool bcd;
	bool gate;
	bool loaded;		    /* a count has been written since the control word */
	bool triggered;		    /* modes 1 and 5: and the gate has risen since */
	bool write_high, read_high; /* the next byte of a two-byte access is the high one */
	u8 write_low;		    /* first byte of a two-byte write */
	u8 latched;		    /* bytes of .latch still to be read */
	bool status_latched;
	u8 status;
	u16 latch;
	u32 count;	 /* in effect: 1..0x10000 (10000 in BCD) */
	u32 next_count;	 /* takes over later (modes 1, 2, 3, 5); 0 if none */
	u64 switch_tick; /* when, in modes 2 and 3 */
	u64 start;	 /* tick at which .count was loaded */
	u64 paused;	 /* modes 0 and 4, gate low: ticks counted so far */
};

/* Ticks are those of PIT_HZ since VM time 0. */
struct pit {
	bool irq;     /* where the line of IRQ 0 stays between edges: see pit_run() */
	u8 port61;    /* bits 0-3 as written */
	u64 seen;     /* tick up to which edges of OUT 0 were counted */
	u64 edges;    /* rising edges of OUT 0 so far */
	u64 reported; /* of those, how many pit_run() has told of */
	u64 missed;   /* and how many it has merged into a later one */
	u64 event_ns; /* see pit_next_event() */
	struct pit_channel ch[3];
};

/* All channels silent until the guest programs them; OUT high. */
void pit_init(struct pit *pit);

/* Ports 0x40-0x43 and 0x61. 8 bits wide: the owner splits wider accesses, @size is 1. */
u32 pit_read(struct pit *pit, u16 port, unsigned size, u64 now_ns);
void pit_write(struct pit *pit, u16 port, unsigned size, u32 value, u64 now_ns);

/* When pit_run() has to be called next, UINT64_MAX for never. May be in the past after pit_write();
 * other calls than that and pit_run() do not change it. */
static inline u64 pit_next_event(const struct pit *pit, u64 now_ns)
{
	return pit->event_ns;
}

/*
 * True if OUT 0 has risen since the last call: the owner then lowers and raises the line of IRQ 0,
 * whatever it was; .irq is true from then on until the channel gets a new control word. Several
 * edges in one call count as one (the others in .missed), so that catching up costs no more than
 * one interrupt.
 */
bool pit_run(struct pit *pit, u64 now_ns);

#endif
