/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 8254 timer (Intel 8254 data sheet) with the channel 2 bits of port 0x61. Counters are not
 * stepped: everything follows from the time of the last load, in exact integer arithmetic, so
 * there is no drift and no work while nobody looks. Channel 1 counts, but leads nowhere. BCD
 * counting works. Pure model; the owner holds the VM's device lock around every call.
 */
#ifndef VLAG_DEV_PIT_H
#define VLAG_DEV_PIT_H

#include "hv/lib/types.h"

#define PIT_HZ 1193182u

struct pit_channel {
	u8 mode;   /* 0..5 */
	u8 access; /* 1 low byte, 2 high byte, 3 low then high */
	bool bcd;
	bool gate;
	bool loaded;		    /* a count has been written since the control word */
	bool running;		    /* and (modes 1 and 5) a trigger has come */
	bool write_high, read_high; /* next byte of a two-byte access */
	u8 write_low;		    /* first byte of a two-byte write */
	u8 latched;		    /* bytes of .latch still to be read */
	bool status_latched;
	u8 status;
	u16 latch;
	u32 count;	/* initial count in effect, 1..0x10000 */
	u32 next_count; /* modes 2 and 3: takes over at the end of the period; 0 if none */
	u64 start;	/* tick at which .count began to count down */
	u64 paused;	/* ticks counted when the gate went low (modes 0, 4) */
};

struct pit {
	bool irq;     /* OUT of channel 0 at the last call */
	u8 port61;    /* bits 0-3 as written */
	u64 edges;    /* rising edges of OUT 0 so far, ... */
	u64 missed;   /* ... and those of them that pit_run() merged into a later one */
	u64 seen;     /* tick up to which edges were counted */
	u64 event_ns; /* next edge: see pit_next_event() */
	struct pit_channel ch[3];
};

void pit_init(struct pit *pit);

/* Ports 0x40-0x43 and 0x61, 8 bits each. */
u32 pit_read(struct pit *pit, u16 port, unsigned size, u64 now_ns);
void pit_write(struct pit *pit, u16 port, unsigned size, u32 value, u64 now_ns);

/* Time of the next rising edge of OUT 0, UINT64_MAX if none comes. Changes only by pit_write() and
 * pit_run(). */
static inline u64 pit_next_event(const struct pit *pit, u64 now_ns)
{
	return pit->event_ns;
}

/*
 * True if OUT 0 has risen since the last call: the owner then pulses IRQ 0 once. Several edges in
 * one call count as one (the rest in .missed), so catching up costs no more than one interrupt.
 */
bool pit_run(struct pit *pit, u64 now_ns);

#endif
