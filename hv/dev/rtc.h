/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MC146818 real-time clock with its CMOS memory (Motorola data sheet; the PC's use of the
 * memory bytes). The time of day follows from an epoch and the VM's time, nothing ticks. Pure
 * model; the owner holds the VM's device lock around every call.
 */
#ifndef VLAG_DEV_RTC_H
#define VLAG_DEV_RTC_H

#include "hv/lib/types.h"

#define RTC_CMOS_SIZE 128

struct rtc {
	bool irq;    /* IRQ 8 line: high from an enabled event until register C is read */
	u8 index;    /* as last written to port 0x70, without the NMI bit */
	bool frozen; /* register B SET: the date registers are plain memory, see cmos[] */
	s64 base_s;  /* UTC seconds since 1970 at VM time -base_frac_ns */
	u32 base_frac_ns;
	u64 checked_ns;		/* up to this time the flags in register C are right */
	u64 event_ns;		/* next enabled interrupt: see rtc_next_event() */
	u8 cmos[RTC_CMOS_SIZE]; /* 0-9 and 0x32 are valid only while frozen */
};

/*
 * @epoch_s: UTC seconds since 1970 at VM time 0. @mem_low, @mem_high: bytes of RAM below and from
 * 4 GiB on, for the memory size bytes.
 */
void rtc_init(struct rtc *rtc, s64 epoch_s, u64 mem_low, u64 mem_high);

/* Reset line of the machine: interrupts off, the time and the memory bytes stay. */
void rtc_reset(struct rtc *rtc, u64 now_ns);

/* Ports 0x70 and 0x71. 8 bits wide: the owner splits wider accesses, @size is 1. */
u32 rtc_read(struct rtc *rtc, u16 port, unsigned size, u64 now_ns);
void rtc_write(struct rtc *rtc, u16 port, unsigned size, u32 value, u64 now_ns);

/* Time of the next enabled interrupt, UINT64_MAX if none. Changes only by the calls above and
 * below. */
static inline u64 rtc_next_event(const struct rtc *rtc, u64 now_ns)
{
	return rtc->event_ns;
}

/* To be called at or after rtc_next_event(); then look at .irq. */
void rtc_run(struct rtc *rtc, u64 now_ns);

#endif
