/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Path lengths, measured inside of the guest with RDTSC: @n samples of each, and one line
 *	bench: NAME median M min N
 * in TSC ticks, from which the cost of an empty pair of RDTSC (its median, reported first as
 * rdtsc_pair) has been taken off.
 */
#ifndef VLAG_TESTS_BENCH_H
#define VLAG_TESTS_BENCH_H

#include "tests/guests/lib/guest.h"

#define BENCH_MAX 4096

extern u64 bench_samples[BENCH_MAX];
extern u32 bench_n; /* `n=` on the command line, 1000 by default */

/* Measures the empty pair and prints it. First of all. */
void bench_init(void);
/* Prints the line for what is in bench_samples. bench_report_raw() takes nothing off: for samples
 * that are not the difference of two RDTSC around an instruction. */
void bench_report(const char *name);
void bench_report_raw(const char *name);
/* `bench: NAME skipped: why` */
void bench_skip(const char *name, const char *why);

/* Samples @stmt bench_n times, with @before and @after each time around it, outside of the measure.
 */
#define BENCH(name, before, stmt, after)                                                           \
	do {                                                                                       \
		for (u32 _i = 0; _i < bench_n; _i++) {                                             \
			before;                                                                    \
			u64 _t = rdtsc();                                                          \
			stmt;                                                                      \
			bench_samples[_i] = rdtsc() - _t;                                          \
			after;                                                                     \
		}                                                                                  \
		bench_report(name);                                                                \
	} while (0)

/*
 * An interrupt handler of few instructions: notes the time first of all in bench_stamp, counts
 * itself in bench_taken, sends the EOI. bench_reply does the same and then an IPI to
 * bench_reply_icr.
 */
#define BENCH_VECTOR 0x50
#define BENCH_REPLY_VECTOR 0x51

extern volatile u64 bench_stamp;
extern volatile u32 bench_taken;
extern volatile u64 bench_reply_icr; /* x2APIC format; in xAPIC mode the two halves of the ICR */

void bench_handler(void);
void bench_reply_handler(void);

#endif
