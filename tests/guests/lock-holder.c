/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPU 1 holds a spinlock at CPL 0 for longer than a slice, CPU 0 spins with PAUSE until it has the
 * lock; the CPUs after them compute at CPL 3. On one pCPU the holder is preempted while it holds
 * the lock, and no IPI says who it is: only that it was preempted in kernel mode. Reports ticks
 * from wanting the lock to having it. Arguments: n= rounds (1000), hold= instructions (200000).
 */
#include "tests/guests/lib/bench.h"

static u32 lock, held, taken; /* held, taken: in how many rounds so far */
static u64 hold;

static void work(u64 n)
{
	for (u64 i = 0; i < n; i += 3) /* three instructions a round */
		barrier();
}

static bool try_lock(void)
{
	return !__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE);
}

static void unlock(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static void holder(u64 unused)
{
	for (u32 i = 1;; i++) {
		CHECK(try_lock(), "round %u: the lock is not free", i);
		WRITE_ONCE(held, i);
		work(hold);
		unlock();
		while (READ_ONCE(taken) != i) /* no PAUSE: it is CPU 0 that spins */
			barrier();
	}
}

static void compute_as_user(void)
{
	for (;;)
		barrier();
}

static void to_user(u64 unused)
{
	user_enter(compute_as_user);
}

int guest_main(void)
{
	u32 cpus = smp_start();

	CHECK(cpus >= 2, "two CPUs are needed");
	hold = arg("hold", 200000);
	bench_init();
	for (u32 i = 1; i < cpus; i++)
		smp_run(i, i == 1 ? holder : to_user, 0);
	for (u32 i = 0; i < bench_n; i++) {
		u64 start;

		while (READ_ONCE(held) != i + 1)
			barrier();
		start = rdtsc();
		while (!try_lock()) {
			while (READ_ONCE(lock))
				pause();
		}
		bench_samples[i] = rdtsc() - start;
		unlock();
		WRITE_ONCE(taken, i + 1);
	}
	bench_report_raw("lock_wait");
	printf("lock-holder: %u CPUs, %u rounds\n", cpus, bench_n);
	return 0;
}
