/* SPDX-License-Identifier: BSD-2-Clause */
/* What the load programs share; common.h says what each function does. */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

noreturn void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

void sleep_until_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static unsigned int bucket_of(uint64_t value)
{
	unsigned int log;

	if (value < HIST_SUB)
		return (unsigned int)value;
	log = 63 - (unsigned int)__builtin_clzll(value);
	return (log - 2) * HIST_SUB + (unsigned int)(value >> (log - 3) & (HIST_SUB - 1));
}

/* The largest value of a bucket. */
static uint64_t bucket_end(unsigned int bucket)
{
	unsigned int log = bucket / HIST_SUB + 2;

	if (bucket < HIST_SUB)
		return bucket;
	return ((uint64_t)(HIST_SUB + bucket % HIST_SUB + 1) << (log - 3)) - 1;
}

void hist_add(struct histogram *h, uint64_t value)
{
	h->buckets[bucket_of(value)]++;
	h->count++;
	if (value > h->max)
		h->max = value;
}

void hist_merge(struct histogram *into, const struct histogram *from)
{
	for (unsigned int i = 0; i < 64 * HIST_SUB; i++)
		into->buckets[i] += from->buckets[i];
	into->count += from->count;
	if (from->max > into->max)
		into->max = from->max;
}

uint64_t hist_permille(const struct histogram *h, unsigned int permille)
{
	uint64_t rank = (h->count * permille + 999) / 1000, seen = 0;

	for (unsigned int i = 0; i < 64 * HIST_SUB; i++) {
		seen += h->buckets[i];
		if (seen && seen >= rank)
			return bucket_end(i) < h->max ? bucket_end(i) : h->max;
	}
	return h->max;
}

static noreturn void show_help(const char *help, const struct option_spec *specs)
{
	printf("%s\n\n", help);
	for (const struct option_spec *s = specs; s->key; s++) {
		printf("  %s=", s->key);
		if (!s->words)
			printf("%lu..%lu (default %lu)", s->min, s->max, *s->value);
		for (unsigned int i = 0; s->words && s->words[i]; i++)
			printf("%s%s%s", i ? "|" : "", s->words[i],
			       i == *s->value ? " (default)" : "");
		printf(": %s\n", s->meaning);
	}
	exit(0);
}

static void set_number(const struct option_spec *s, const char *value)
{
	char *end;

	errno = 0;
	*s->value = strtoul(value, &end, 10);
	if (errno || end == value || *end || *value == '-' || *s->value < s->min ||
	    *s->value > s->max)
		die("%s=%s: %s is a number from %lu to %lu", s->key, value, s->key, s->min, s->max);
}

static void set_word(const struct option_spec *s, const char *value)
{
	char words[256] = "";

	for (unsigned int i = 0; s->words[i]; i++) {
		if (!strcmp(value, s->words[i])) {
			*s->value = i;
			return;
		}
		snprintf(words + strlen(words), sizeof(words) - strlen(words), " %s", s->words[i]);
	}
	die("%s=%s: %s is one of%s", s->key, value, s->key, words);
}

static void set_option(const char *text, const struct option_spec *specs)
{
	const char *equals = strchr(text, '=');
	char keys[512] = "";

	for (const struct option_spec *s = specs; s->key; s++) {
		if (equals && !strncmp(text, s->key, (size_t)(equals - text)) &&
		    !s->key[equals - text]) {
			if (s->words)
				set_word(s, equals + 1);
			else
				set_number(s, equals + 1);
			return;
		}
		snprintf(keys + strlen(keys), sizeof(keys) - strlen(keys), " %s=", s->key);
	}
	die("'%s': there are%s", text, keys);
}

void parse_options(int argc, char **argv, const char *help, const struct option_spec *specs)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help"))
			show_help(help, specs);
		set_option(argv[i], specs);
	}
}

unsigned int allowed_cpus(unsigned int cpus[MAX_CPUS])
{
	cpu_set_t set;
	unsigned int n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		die("sched_getaffinity: %s", strerror(errno));
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && n < MAX_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[n++] = cpu;
	return n;
}

void pin_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot stay on CPU %u: %s", cpu, strerror(errno));
}

void crew_start(struct crew *crew, unsigned int size, void *(*main)(void *), void *arg,
		size_t arg_size)
{
	pthread_attr_t attr;

	crew->size = size;
	atomic_init(&crew->stop, false);
	pthread_barrier_init(&crew->barrier, NULL, size + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (unsigned int i = 0; i < size; i++) {
		int error =
		    pthread_create(&crew->threads[i], &attr, main, (char *)arg + i * arg_size);

		if (error)
			die("thread %u of %u does not start: %s", i, size, strerror(error));
	}
	pthread_attr_destroy(&attr);
}

void crew_begin(struct crew *crew)
{
	pthread_barrier_wait(&crew->barrier);
}

uint64_t crew_run(struct crew *crew, uint64_t ns)
{
	uint64_t start;

	pthread_barrier_wait(&crew->barrier);
	start = now_ns();
	sleep_until_ns(start + ns);
	atomic_store(&crew->stop, true);
	for (unsigned int i = 0; i < crew->size; i++)
		pthread_join(crew->threads[i], NULL);
	return now_ns() - start;
}

void print_result(uint64_t ops, uint64_t ns, const struct histogram *h)
{
	printf("ops=%llu seconds=%llu.%03llu ops_per_s=%llu p50_ns=%llu p90_ns=%llu p99_ns=%llu "
	       "p999_ns=%llu max_ns=%llu",
	       (unsigned long long)ops, (unsigned long long)(ns / NSEC_PER_SEC),
	       (unsigned long long)(ns / 1000000 % 1000),
	       (unsigned long long)((double)ops * 1e9 / (double)(ns ? ns : 1)),
	       (unsigned long long)hist_permille(h, 500), (unsigned long long)hist_permille(h, 900),
	       (unsigned long long)hist_permille(h, 990), (unsigned long long)hist_permille(h, 999),
	       (unsigned long long)h->max);
}
