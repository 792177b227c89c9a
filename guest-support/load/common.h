/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the load programs share: time, a latency histogram, CPUs, arguments of the form key=value,
 * and threads that begin and end together. Nothing here makes load.
 */
#ifndef GUEST_SUPPORT_LOAD_COMMON_H
#define GUEST_SUPPORT_LOAD_COMMON_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdnoreturn.h>

#define MAX_CPUS 256
#define MAX_THREADS 256
#define NSEC_PER_SEC 1000000000ull

/* Print "PROGRAM: ..." with a newline to standard error and exit with status 2. */
noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* CLOCK_MONOTONIC. */
uint64_t now_ns(void);

/* Sleep until CLOCK_MONOTONIC is @ns; returns at once if that is past. */
void sleep_until_ns(uint64_t ns);

/* A value belongs to a bucket an eighth of a power of two wide: percentiles are at most 12 % too
 * high. */
#define HIST_SUB 8
struct histogram {
	uint64_t buckets[64 * HIST_SUB];
	uint64_t count, max;
};

void hist_add(struct histogram *h, uint64_t value);
void hist_merge(struct histogram *into, const struct histogram *from);
/* The upper bound of the bucket that holds the @permille-th value; 0 for an empty histogram. */
uint64_t hist_permille(const struct histogram *h, unsigned int permille);

/* One key of a command line, and where its value goes: a number, or the index of one of @words. */
struct option_spec {
	const char *key, *meaning;
	unsigned long *value, min, max;
	const char *const *words; /* NULL for a number; ends with NULL */
};

/* Set the options of @specs (ends with a key of NULL) from key=value arguments; --help lists them
 * and exits. A mistake ends the program with one line that says what would be right. */
void parse_options(int argc, char **argv, const char *help, const struct option_spec *specs);

/* The CPUs that this process may use, in ascending order, into @cpus; returns how many. */
unsigned int allowed_cpus(unsigned int cpus[MAX_CPUS]);
/* Keep the calling thread on @cpu. */
void pin_to(unsigned int cpu);

/* A group of threads. Each waits at crew_begin(); crew_run() lets all go, waits @ns, and sets stop.
 */
struct crew {
	pthread_barrier_t barrier;
	atomic_bool stop;
	pthread_t threads[MAX_THREADS];
	unsigned int size;
};

/* Start @size threads, thread i with @arg + i * @arg_size. */
void crew_start(struct crew *crew, unsigned int size, void *(*main)(void *), void *arg,
		size_t arg_size);
void crew_begin(struct crew *crew);
/* Returns the time in ns from the beginning to the last thread's end. */
uint64_t crew_run(struct crew *crew, uint64_t ns);

static inline bool crew_stopped(struct crew *crew)
{
	return atomic_load_explicit(&crew->stop, memory_order_relaxed);
}

/* The fields of a result that both storms have: ops, seconds, ops_per_s, latencies in ns. */
void print_result(uint64_t ops, uint64_t ns, const struct histogram *h);

#endif
