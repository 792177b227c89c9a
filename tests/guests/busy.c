/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every CPU is busy, so that somebody else can look at what the scheduler gives it. Arguments:
 * ticks= of the TSC after which it ends (0: never, the default), tell= prints a line that often (0:
 * never), pause=1 spins with PAUSE instead of without, idle=1 halts instead.
 */
#include "tests/guests/lib/guest.h"

static u64 ticks, tell;
static bool pausing;

static void spin(u64 unused)
{
	u64 start = rdtsc(), told = start, now;

	while ((now = rdtsc()) - start < ticks || !ticks) {
		if (pausing)
			pause();
		if (tell && smp_cpu() == 0 && now - told >= tell) {
			told += tell;
			printf("busy: still\n");
		}
	}
}

int guest_main(void)
{
	u32 cpus = smp_start();

	ticks = arg("ticks", 0);
	tell = arg("tell", 0);
	pausing = arg("pause", 0);
	if (arg("idle", 0)) {
		printf("busy: %u CPUs sleep\n", cpus);
		for (;;)
			sti_hlt(); /* the others are halted by now */
	}
	printf("busy: %u CPUs\n", cpus);
	for (u32 i = 1; i < cpus; i++)
		smp_run(i, spin, 0);
	spin(0);
	for (u32 i = 1; i < cpus; i++)
		smp_wait(i);
	return 0;
}
