/* SPDX-License-Identifier: BSD-2-Clause */
// sources: common.c
// cflags: -pthread
/*
 * lockstorm: contention for locks inside the kernel, from user space. All threads do the same call
 * on the same thing:
 *
 *   futex  futex(FUTEX_WAIT) with a value that is not there: the spin lock of one hash bucket
 *   mutex  a futex mutex with a short critical section: that lock, sleeping and waking
 *   pipe   one byte into a pipe and one out: the pipe's mutex
 *   file   a short write to one file: the inode's read-write semaphore
 *   mm     a page mapped and unmapped: the address space's lock, and TLB shootdowns
 *
 * Where a vCPU that holds such a lock is preempted, the others spin or sleep for it: the time of a
 * call says for how long.
 */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

static void futex_op(void);
static void mutex_op(void);
static void pipe_op(void);
static void file_op(void);
static void mm_op(void);

static const char *const modes[] = {"futex", "mutex", "pipe", "file", "mm", NULL};
static void (*const ops[])(void) = {futex_op, mutex_op, pipe_op, file_op, mm_op};
static unsigned long mode, ms = 2000, nr_threads, think, pin;

static const struct option_spec options[] = {
    {.key = "mode", .meaning = "which lock", .value = &mode, .words = modes},
    {.key = "ms", .meaning = "how long, in milliseconds", .value = &ms, .min = 1, .max = 3600000},
    {.key = "threads",
     .meaning = "threads; 0: as many as CPUs",
     .value = &nr_threads,
     .min = 0,
     .max = MAX_THREADS},
    {.key = "think",
     .meaning = "loops in user space between two calls",
     .value = &think,
     .min = 0,
     .max = 1000000},
    {.key = "pin", .meaning = "1: each thread stays on one CPU", .value = &pin, .min = 0, .max = 1},
    {.key = NULL}};

struct thread {
	unsigned int cpu;
	struct histogram latency;
};

static struct crew crew;
static struct thread threads[MAX_THREADS];
static uint32_t word;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t guarded;
static int pipe_ends[2], file;

static void futex_op(void)
{
	/* The word is 0: the call takes the bucket's lock, looks, and returns EAGAIN. */
	syscall(__NR_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

static void mutex_op(void)
{
	pthread_mutex_lock(&mutex);
	for (unsigned int i = 0; i < 100; i++)
		guarded++;
	pthread_mutex_unlock(&mutex);
}

/* Each thread writes before it reads, so nobody waits for a byte for ever. */
static void pipe_op(void)
{
	char byte = 0;

	if (write(pipe_ends[1], &byte, 1) != 1 || read(pipe_ends[0], &byte, 1) != 1)
		die("pipe: %s", strerror(errno));
}

static void file_op(void)
{
	static const char text[64] = "lockstorm";

	if (pwrite(file, text, sizeof(text), 0) != sizeof(text))
		die("write: %s", strerror(errno));
}

static void mm_op(void)
{
	volatile char *page =
	    mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	page[0] = 1;
	munmap((void *)page, PAGE);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	if (pin)
		pin_to(t->cpu);
	crew_begin(&crew);
	while (!crew_stopped(&crew)) {
		uint64_t start = now_ns();

		ops[mode]();
		hist_add(&t->latency, now_ns() - start);
		for (volatile unsigned long i = 0; i < think; i++)
			;
	}
	return NULL;
}

static void prepare(void)
{
	if (pipe(pipe_ends))
		die("pipe: %s", strerror(errno));
	file = memfd_create("lockstorm", 0);
	if (file < 0)
		die("memfd_create: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	unsigned int cpus[MAX_CPUS], nr_cpus = allowed_cpus(cpus);
	struct histogram all = {0};
	uint64_t ns, least = UINT64_MAX, most = 0;

	parse_options(argc, argv, "lockstorm: contention for locks in the kernel", options);
	if (!nr_threads)
		nr_threads = nr_cpus;
	prepare();
	for (unsigned int i = 0; i < nr_threads; i++)
		threads[i].cpu = cpus[i % nr_cpus];
	crew_start(&crew, (unsigned int)nr_threads, thread_main, threads, sizeof(threads[0]));
	ns = crew_run(&crew, ms * 1000000);
	for (unsigned int i = 0; i < nr_threads; i++) {
		uint64_t count = threads[i].latency.count;

		hist_merge(&all, &threads[i].latency);
		least = count < least ? count : least;
		most = count > most ? count : most;
	}
	printf("mode=%s threads=%lu think=%lu ", modes[mode], nr_threads, think);
	print_result(all.count, ns, &all);
	printf(" thread_min=%llu thread_max=%llu\n", (unsigned long long)least,
	       (unsigned long long)most);
	return 0;
}
