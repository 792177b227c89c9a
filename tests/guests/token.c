/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All CPUs pass a token round, each spinning with PAUSE until it is its turn: with more vCPUs than
 * pCPUs this is what directed yield is for. Reports ticks per pass: the mean over all, and median
 * and minimum of a round divided by its passes. Arguments: n= rounds (1000), max= use so many CPUs.
 */
#include "tests/guests/lib/bench.h"

static u32 token, cpus;

static void pass(u64 rounds)
{
	u32 me = smp_cpu(), next = me + 1 == cpus ? 0 : me + 1;
	u64 last = 0;

	for (u32 i = 0; i < rounds; i++) {
		while (READ_ONCE(token) != me)
			pause();
		if (me == 0) {
			u64 now = rdtsc();

			if (i)
				bench_samples[i - 1] = (now - last) / cpus;
			last = now;
		}
		__atomic_store_n(&token, next, __ATOMIC_RELEASE);
	}
}

int guest_main(void)
{
	u64 sum = 0;

	cpus = smp_start();
	cpus = min(cpus, (u32)arg("max", cpus));
	CHECK(cpus >= 2, "one CPU cannot pass a token");
	bench_init();
	for (u32 i = 1; i < cpus; i++)
		smp_run(i, pass, bench_n + 1);
	pass(bench_n + 1);
	for (u32 i = 1; i < cpus; i++)
		smp_wait(i);
	for (u32 i = 0; i < bench_n; i++)
		sum += bench_samples[i];
	printf("token: mean %llu ticks per pass\n", (unsigned long long)(sum / bench_n));
	bench_report_raw("token_pass");
	printf("token: %u CPUs, %u rounds\n", cpus, bench_n);
	return 0;
}
