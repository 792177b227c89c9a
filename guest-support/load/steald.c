/* SPDX-License-Identifier: BSD-2-Clause */
// sources: steald_policy.c steald_tasks.c steald_affinity.c steald_cpuset.c common.c
// cflags: -pthread
/*
 * steald: a steal governor in user space, for kernels without the preferred-CPU series. At each
 * interval it looks how much of the guest's time was stolen; above high_threshold it folds the
 * tasks onto one core less, at low_threshold or below it gives one back. It changes affinities or
 * cpusets of tasks that nobody pinned, and undoes that when it ends. With watch=1 it changes
 * nothing and only passes on what a kernel with a governor of its own prefers. Either way it
 * reports the preferred CPUs to the hypervisor (docs/guest-abi.md).
 */
#define _GNU_SOURCE
#include "steald.h"

#include "common.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <time.h>
#include <unistd.h>

#define SYS_CPU "/sys/devices/system/cpu/"
#define LOOK_AGAIN_NS NSEC_PER_SEC

enum method { AUTO, CPUSET, AFFINITY };
static const char *const methods[] = {"auto", "cpuset", "affinity", NULL};
static unsigned long interval_ms = 1000, low_threshold = 200, high_threshold = 500, method = AUTO,
		     report = 1, watch, tree;
static const char *stat_path = "/proc/stat";

static const struct option_spec options[] = {
    {"interval_ms", "how often to look", &interval_ms, 100, 100000, NULL},
    {"low_threshold", "hundredths of a percent of steal; at it or below, unfold by a core",
     &low_threshold, 0, 9998, NULL},
    {"high_threshold", "above it, fold by a core", &high_threshold, 1, 9999, NULL},
    {"method", "how to move tasks; auto: cpuset where there is one", &method, 0, 0, methods},
    {"tree", "fold only this process and its descendants; 0: all tasks. Takes method=affinity",
     &tree, 0, 1 << 22, NULL},
    {"report", "1: tell the hypervisor, where it listens", &report, 0, 1, NULL},
    {"watch", "1: change nothing, report what the kernel's governor prefers", &watch, 0, 1, NULL},
    {NULL, NULL, NULL, 0, 0, NULL}};

void say(const char *format, ...)
{
	char text[CPUSET_TEXT + 512] = "steald: ";
	va_list args;
	size_t length;

	va_start(args, format);
	vsnprintf(text + strlen(text), sizeof(text) - 16, format, args);
	va_end(args);
	length = strlen(text);
	text[length++] = '\n';
	/* In one piece: others write to the console too. */
	if (write(1, text, length) < 0)
		exit(1);
}

static bool read_set(const char *path, struct cpuset *set)
{
	char text[CPUSET_TEXT];

	return read_text(path, text, sizeof(text)) && cpuset_parse(text, set);
}

static struct cpuset read_set_or_die(const char *path)
{
	struct cpuset set;

	if (!read_set(path, &set) || !cpuset_count(&set))
		die("%s holds no list of CPUs below %d", path, STEALD_CPUS);
	return set;
}

/* A core is named by its first CPU; without topology each CPU is one. */
static void read_cores(struct steald_cpus *cpus)
{
	for (unsigned int cpu = 0; cpu < STEALD_CPUS; cpu++) {
		struct cpuset siblings;
		char path[96];

		cpus->core[cpu] = (uint16_t)cpu;
		snprintf(path, sizeof(path), SYS_CPU "cpu%u/topology/thread_siblings_list", cpu);
		if (!cpuset_has(&cpus->active, cpu) || !read_set(path, &siblings))
			continue;
		for (unsigned int first = 0; first < cpu; first++)
			if (cpuset_has(&siblings, first)) {
				cpus->core[cpu] = (uint16_t)first;
				break;
			}
	}
}

/* Steal time of all possible CPUs since boot: the eighth number of the first line (proc(5)). */
static uint64_t read_steal_ns(void)
{
	static long hz;
	unsigned long long ticks;
	char text[512];

	if (!hz)
		hz = sysconf(_SC_CLK_TCK);
	if (!read_text(stat_path, text, sizeof(text)) ||
	    sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		die("%s has no steal time in its first line", stat_path);
	return ticks * (NSEC_PER_SEC / (uint64_t)hz);
}

/* --- the report --- */

static bool listening;

static void open_port(void)
{
	if (!report)
		return;
	if (ioperm(REPORT_PORT, 4, 1)) {
		say("reports nothing to the hypervisor: no access to I/O ports: %s",
		    strerror(errno));
		return;
	}
	listening = inl(REPORT_PORT) == REPORT_SIGNATURE;
	if (!listening)
		say("reports nothing to the hypervisor: it does not listen");
}

static void send_report(const struct cpuset *preferred, uint32_t who)
{
	if (!listening)
		return;
	for (unsigned int n = 0; n < REPORT_WORDS; n++) {
		uint32_t word = steald_report_word(preferred, n);

		if (word & 0xffffff)
			outl(word, REPORT_PORT);
	}
	outl(who, REPORT_PORT);
}

/* --- the loop --- */

static sigset_t end_signals;

/* Wait for the next interval; returns true when it is time to end. */
static bool wait_interval(void)
{
	struct timespec t = {(time_t)(interval_ms / 1000), (long)(interval_ms % 1000) * 1000000};
	int number = sigtimedwait(&end_signals, NULL, &t);

	return number > 0;
}

static void watch_kernel(void)
{
	struct cpuset last = {{0}}, now;
	char text[CPUSET_TEXT];

	if (!read_set(SYS_CPU "preferred", &now))
		die("watch=1: " SYS_CPU
		    "preferred is not there: this kernel has no preferred CPUs");
	do {
		if (!read_set(SYS_CPU "preferred", &now) || cpuset_equal(&now, &last))
			continue;
		last = now;
		cpuset_format(&now, text);
		say("the kernel prefers %s", text);
		send_report(&now, REPORT_KERNEL);
	} while (!wait_interval());
}

static const struct steald_method *choose_method(const struct steald_cpus *cpus)
{
	const char *why = NULL;

	if (tree && method == AUTO)
		method = AFFINITY;
	if (method != AFFINITY) {
		why = cpuset_method.begin(cpus);
		if (!why)
			return &cpuset_method;
		if (method == CPUSET)
			die("method=cpuset: %s", why);
		say("no cpusets: %s", why);
	}
	affinity_method.begin(cpus);
	return &affinity_method;
}

/* Returns whether the preferred CPUs changed. */
static bool decide(struct steald_policy *policy, struct steald_cpus *cpus, unsigned int *ratio)
{
	struct cpuset before = cpus->preferred, online;

	if (read_set(SYS_CPU "online", &online) && !cpuset_equal(&online, &cpus->active)) {
		steald_follow(cpus, &online);
		read_cores(cpus);
	}
	switch (steald_sample(policy, now_ns(), read_steal_ns(), ratio)) {
	case STEALD_FOLD:
		steald_fold(cpus);
		break;
	case STEALD_UNFOLD:
		steald_unfold(cpus);
		break;
	case STEALD_KEEP:
		break;
	}
	return !cpuset_equal(&before, &cpus->preferred);
}

static void govern(void)
{
	struct cpuset possible = read_set_or_die(SYS_CPU "possible");
	struct steald_policy policy = {.low_threshold = (unsigned int)low_threshold,
				       .high_threshold = (unsigned int)high_threshold,
				       .possible = cpuset_count(&possible)};
	const struct steald_method *how;
	struct steald_cpus cpus;
	char text[CPUSET_TEXT];
	unsigned int ratio;
	uint64_t applied = 0;

	cpus.active = cpus.preferred = read_set_or_die(SYS_CPU "online");
	read_cores(&cpus);
	read_steal_ns(); /* ends here if it cannot be read, not when tasks are folded */
	how = choose_method(&cpus);
	say("interval %lu ms, folds above %lu, unfolds at %lu hundredths of a percent", interval_ms,
	    high_threshold, low_threshold);
	decide(&policy, &cpus, &ratio);
	send_report(&cpus.preferred, REPORT_STEALD);
	while (!wait_interval()) {
		bool changed = decide(&policy, &cpus, &ratio);
		unsigned int moved;

		/* What the tasks fork inherits its CPUs. Only who was started by a pinned task, or
		   changed its own, has to be found: for that a look at all of them now and then. */
		if (!changed && now_ns() - applied < LOOK_AGAIN_NS)
			continue;
		applied = now_ns();
		moved = how->apply(&cpus);
		if (!changed)
			continue;
		cpuset_format(&cpus.preferred, text);
		say("steal %u.%02u %%: prefers %s (%u tasks moved)", ratio / 100, ratio % 100, text,
		    moved);
		send_report(&cpus.preferred, REPORT_STEALD);
	}
	if (how->restore(&cpus))
		say("ended, everything is as it was");
	else
		say("ended; all tasks may run everywhere again, but see above");
}

int main(int argc, char **argv)
{
	parse_options(argc, argv,
		      "steald: folds a guest's tasks onto fewer vCPUs while time is stolen",
		      options);
	if (low_threshold >= high_threshold)
		die("low_threshold=%lu must be less than high_threshold=%lu", low_threshold,
		    high_threshold);
	if (tree && method == CPUSET)
		die("tree=%lu takes method=affinity", tree);
	steald_tree = (pid_t)tree;
	if (getenv("STEALD_STAT"))
		stat_path = getenv("STEALD_STAT"); /* for tests */
	sigemptyset(&end_signals);
	sigaddset(&end_signals, SIGTERM);
	sigaddset(&end_signals, SIGINT);
	sigaddset(&end_signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &end_signals, NULL);
	open_port();
	if (watch)
		watch_kernel();
	else
		govern();
	if (listening)
		outl(REPORT_WITHDRAW, REPORT_PORT);
	return 0;
}
