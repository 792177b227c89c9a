/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's clock: the TSC, whose rate is measured against a timer (CPUID's word is never taken
 * for it) and which every CPU compares with the boot CPU's when it starts.
 */
#ifndef VLAG_TSC_H
#define VLAG_TSC_H

#include "hv/lib/types.h"

/* Measures the rate against PIT channel 2 and takes "now" as time 0. Boot CPU, once. */
void tsc_init(void);

u64 tsc_hz(void);

/* Set by tsc_init(), then constant; for the functions below. */
extern u64 tsc_zero, tsc_ns_mult, tsc_tick_mult;

/* TSC value at tsc_init(). */
static inline u64 tsc_boot(void)
{
	return tsc_zero;
}

/* Durations: TSC ticks <-> nanoseconds, with 2^-32 as the unit of the factors. */
static inline u64 tsc_from_ns(u64 ns)
{
	return (u64)((u128)ns * tsc_tick_mult >> 32);
}

static inline u64 tsc_to_ns(u64 ticks)
{
	return (u64)((u128)ticks * tsc_ns_mult >> 32);
}

void tsc_delay_us(u32 us);

/*
 * The two sides of the comparison, called by the boot CPU and the CPU that it is starting. The
 * primary returns false when the other does not show up by @deadline. The secondary returns its TSC
 * minus the primary's, in ticks, within the time that a cache line takes to travel.
 */
void tsc_sync_prepare(void); /* boot CPU, before it starts the other */
bool tsc_sync_primary(u64 deadline);
s64 tsc_sync_secondary(void);

#endif
