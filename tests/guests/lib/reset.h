/* SPDX-License-Identifier: BSD-2-Clause */
/* For guests that reset the machine and look whether it comes back: a byte of CMOS memory tells the
 * second start from the first. */
#ifndef VLAG_TESTS_RESET_H
#define VLAG_TESTS_RESET_H

#include "tests/guests/lib/guest.h"

#define RESET_CMOS 0x5a /* used by nobody, survives a reset */
#define RESET_MARK 0xa7
#define RESET_TICKS 100000000ull

static inline void reset_mark(u8 value)
{
	outb(PORT_RTC_INDEX, RESET_CMOS);
	outb(PORT_RTC_DATA, value);
}

/* First start: says so, calls @how and fails if it goes on. Second start: passes. */
static inline int reset_test(void (*how)(void))
{
	outb(PORT_RTC_INDEX, RESET_CMOS);
	if (inb(PORT_RTC_DATA) == RESET_MARK) {
		reset_mark(0);
		printf("reset: second start\n");
		return 0;
	}
	reset_mark(RESET_MARK);
	printf("reset: first start\n");
	how();
	delay_ticks(RESET_TICKS);
	reset_mark(0);
	test_fail("still running after the reset");
}

#endif
