/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spins with interrupts off and without a single exit of its own accord, which under Bochs blocks
 * all external-interrupt exits of its pCPU. A hypervisor that relies on them hangs. Arguments:
 * ticks= of the TSC (50,000,000), all=1 for all CPUs at once (default: CPU 0 only).
 */
#include "tests/guests/lib/guest.h"

static void spin(u64 ticks)
{
	u64 start = rdtsc();

	cli();
	while (rdtsc() - start < ticks)
		;
}

int guest_main(void)
{
	u64 ticks = arg("ticks", 50000000);
	u32 cpus = arg("all", 0) ? smp_start() : 1;

	printf("ifoff: %u CPUs spin %llu ticks\n", cpus, (unsigned long long)ticks);
	for (u32 i = 1; i < cpus; i++)
		smp_run(i, spin, ticks);
	spin(ticks);
	for (u32 i = 1; i < cpus; i++)
		smp_wait(i);
	printf("ifoff: done\n");
	return 0;
}
