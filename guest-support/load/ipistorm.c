/* SPDX-License-Identifier: BSD-2-Clause */
// sources: common.c
// cflags: -pthread
/*
 * ipistorm: a storm of inter-processor interrupts, from user space. A sender makes the kernel
 * interrupt the CPUs where the other threads of this process spin, and wait for all of them:
 *
 *   membarrier  smp_call_function_many() by membarrier(PRIVATE_EXPEDITED)
 *   mprotect    a TLB shootdown: a page's write permission goes and comes back
 *   munmap      a TLB shootdown: a page is mapped, touched and unmapped
 *
 * The time of one such call is the time of the slowest CPU to answer; on an overcommitted machine
 * that is the time until the hypervisor runs its vCPU.
 */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

enum mode { MEMBARRIER, MPROTECT, MUNMAP };
static const char *const modes[] = {"membarrier", "mprotect", "munmap", NULL};
enum pace { SPIN, SLEEP };
static const char *const paces[] = {"spin", "sleep", NULL};
static unsigned long mode = MEMBARRIER, pace = SPIN, ms = 2000, senders = 1, fanout = MAX_CPUS,
		     rate, pin = 1;

static const struct option_spec options[] = {
    {.key = "mode", .meaning = "what causes the interrupts", .value = &mode, .words = modes},
    {.key = "ms", .meaning = "how long, in milliseconds", .value = &ms, .min = 1, .max = 3600000},
    {.key = "senders",
     .meaning = "threads that send; each is a receiver of the others too",
     .value = &senders,
     .min = 1,
     .max = MAX_CPUS},
    {.key = "fanout",
     .meaning =
	 "threads that only spin and are interrupted; more than CPUs - senders means so many",
     .value = &fanout,
     .min = 0,
     .max = MAX_CPUS},
    {.key = "rate",
     .meaning = "calls a second of each sender; 0: as many as there is time for",
     .value = &rate,
     .min = 0,
     .max = 1000000},
    {.key = "pace",
     .meaning = "what a sender does between calls at a given rate",
     .value = &pace,
     .words = paces},
    {.key = "pin",
     .meaning = "1: each thread stays on a CPU of its own",
     .value = &pin,
     .min = 0,
     .max = 1},
    {.key = NULL}};

struct thread {
	unsigned int index, cpu;
	uint64_t loops;
	struct histogram latency;
};

static struct crew crew;
static struct thread threads[MAX_THREADS];

static int membarrier(int command)
{
	return (int)syscall(__NR_membarrier, command, 0, 0);
}

static void *map_page(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return page;
}

/* A page that is not dirty may lose its permissions without a shootdown: write it first. */
static void shoot_mprotect(volatile char *page)
{
	page[0]++;
	if (mprotect((void *)page, PAGE, PROT_READ) ||
	    mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE))
		die("mprotect: %s", strerror(errno));
}

static void shoot_munmap(void)
{
	volatile char *page = map_page();

	page[0]++;
	munmap((void *)page, PAGE);
}

static void storm(volatile char *page)
{
	switch (mode) {
	case MEMBARRIER:
		if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
			die("membarrier: %s", strerror(errno));
		break;
	case MPROTECT:
		shoot_mprotect(page);
		break;
	default:
		shoot_munmap();
	}
}

static void wait_until(uint64_t ns)
{
	if (pace == SLEEP)
		sleep_until_ns(ns);
	else
		while (now_ns() < ns && !crew_stopped(&crew))
			;
}

static void send(struct thread *t)
{
	uint64_t interval = rate ? NSEC_PER_SEC / rate : 0, next = now_ns();
	volatile char *page = map_page();

	while (!crew_stopped(&crew)) {
		uint64_t start = now_ns();

		storm(page);
		hist_add(&t->latency, now_ns() - start);
		/* Who is late does not catch up: the rate is an upper bound. */
		next = next + interval > start ? next + interval : start;
		if (interval)
			wait_until(next);
	}
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	if (pin)
		pin_to(t->cpu);
	crew_begin(&crew);
	if (t->index < senders)
		send(t);
	else
		while (!crew_stopped(&crew))
			t->loops++;
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int cpus[MAX_CPUS], nr_cpus = allowed_cpus(cpus);
	struct histogram all = {0};
	uint64_t loops = 0, ns;

	parse_options(argc, argv, "ipistorm: inter-processor interrupts and TLB shootdowns",
		      options);
	if (senders > nr_cpus)
		die("senders=%lu: there are %u CPUs", senders, nr_cpus);
	if (fanout > nr_cpus - senders)
		fanout = nr_cpus - senders;
	if (mode == MEMBARRIER && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		die("mode=membarrier: this kernel has no membarrier(): %s", strerror(errno));
	for (unsigned int i = 0; i < senders + fanout; i++)
		threads[i] = (struct thread){.index = i, .cpu = cpus[i]};
	crew_start(&crew, (unsigned int)(senders + fanout), thread_main, threads,
		   sizeof(threads[0]));
	ns = crew_run(&crew, ms * 1000000);
	for (unsigned int i = 0; i < senders + fanout; i++) {
		hist_merge(&all, &threads[i].latency);
		loops += threads[i].loops;
	}
	printf("mode=%s senders=%lu fanout=%lu rate=%lu ", modes[mode], senders, fanout, rate);
	print_result(all.count, ns, &all);
	printf(" spins=%llu\n", (unsigned long long)loops);
	return 0;
}
