/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of the path-length guests. */
#include "tests/guests/lib/bench.h"

u64 bench_samples[BENCH_MAX];
u32 bench_n;
volatile u64 bench_stamp;
volatile u32 bench_taken;
volatile u64 bench_reply_icr;

static u64 overhead;

/* Shell sort: few instructions, no recursion. */
static void sort(u64 *a, u32 n)
{
	for (u32 gap = n / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11) {
		for (u32 i = gap; i < n; i++) {
			u64 v = a[i];
			u32 j = i;

			for (; j >= gap && a[j - gap] > v; j -= gap)
				a[j] = a[j - gap];
			a[j] = v;
		}
	}
}

static void report(const char *name, u64 less)
{
	sort(bench_samples, bench_n);
	printf("bench: %s median %lld min %lld\n", name,
	       (long long)(bench_samples[bench_n / 2] - less),
	       (long long)(bench_samples[0] - less));
}

void bench_init(void)
{
	bench_n = clamp(arg("n", 1000), 1ull, (u64)BENCH_MAX);
	for (u32 i = 0; i < bench_n; i++) {
		u64 t = rdtsc();

		bench_samples[i] = rdtsc() - t;
	}
	report("rdtsc_pair", 0);
	overhead = bench_samples[bench_n / 2];
}

void bench_report(const char *name)
{
	report(name, overhead);
}

void bench_report_raw(const char *name)
{
	report(name, 0);
}

void bench_skip(const char *name, const char *why)
{
	printf("bench: %s skipped: %s\n", name, why);
}
