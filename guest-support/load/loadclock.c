/* SPDX-License-Identifier: BSD-2-Clause */
// cflags: -nostdlib -ffreestanding -fno-stack-protector -fcf-protection=none -I..
/*
 * loadclock: the clocks that the load script measures with. Without arguments it prints nanoseconds
 * since boot (CLOCK_MONOTONIC), nanoseconds since 1970 (CLOCK_REALTIME) and the time stamp counter.
 * With a number it sleeps until so many nanoseconds since 1970 first: guests of one machine share
 * that clock, so they wake at the same moment.
 */
#include "../src/nolibc.h"

#include <linux/time.h>

NOLIBC_START

struct kernel_timespec {
	long sec, nsec;
};

int main(int argc, char **argv);

static unsigned long clock_ns(int clock)
{
	struct kernel_timespec t = {0, 0};

	syscall3(__NR_clock_gettime, clock, (long)&t, 0);
	return (unsigned long)t.sec * 1000000000 + (unsigned long)t.nsec;
}

static void sleep_until(unsigned long ns)
{
	struct kernel_timespec t = {(long)(ns / 1000000000), (long)(ns % 1000000000)};

	while (clock_ns(CLOCK_REALTIME) < ns)
		syscall5(__NR_clock_nanosleep, CLOCK_REALTIME, 1 /* TIMER_ABSTIME */, (long)&t, 0,
			 0);
}

int main(int argc, char **argv)
{
	char text[72];
	size_t length;

	if (argc > 1) {
		unsigned long until = 0;

		for (const char *c = argv[1]; *c; c++) {
			if (*c < '0' || *c > '9')
				return 2;
			until = until * 10 + (unsigned long)(*c - '0');
		}
		sleep_until(until);
	}
	length = format_decimal(clock_ns(CLOCK_MONOTONIC), text);
	text[length++] = ' ';
	length += format_decimal(clock_ns(CLOCK_REALTIME), text + length);
	text[length++] = ' ';
	length += format_decimal(rdtsc(), text + length);
	text[length++] = '\n';
	return syscall3(__NR_write, 1, (long)text, (long)length) == (long)length ? 0 : 1;
}
