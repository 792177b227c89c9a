/* SPDX-License-Identifier: BSD-2-Clause */
/* The tasks of user space, as /proc shows them, and their affinities. */
#define _GNU_SOURCE
#include "steald.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PF_KTHREAD 0x00200000
#define MAX_DEPTH 64 /* of a process tree, when we ask whether somebody descends from somebody */

pid_t steald_tree;

bool read_text(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, out, size - 1);
	close(fd);
	if (length < 0)
		return false;
	out[length] = '\0';
	return true;
}

bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error;
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	error = errno;
	close(fd);
	errno = error;
	return ok;
}

/* Fields of /proc/PID/stat (proc(5)): parent 4, flags 9, start time 22. The second field may hold
 * blanks and parentheses. */
static bool read_stat(const char *path, struct task *task, unsigned long *flags)
{
	unsigned long long start;
	char text[1024], *rest;
	int parent;

	if (!read_text(path, text, sizeof(text)) || !(rest = strrchr(text, ')')))
		return false;
	if (sscanf(rest + 1,
		   " %*c %d %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%llu",
		   &parent, flags, &start) != 3)
		return false;
	task->parent = parent;
	task->start_time = start;
	return true;
}

static bool in_tree(pid_t pid)
{
	struct task task = {.parent = pid};
	unsigned long flags;
	char path[64];

	for (unsigned int depth = 0; steald_tree && depth < MAX_DEPTH; depth++) {
		if (task.parent == steald_tree)
			return true;
		snprintf(path, sizeof(path), "/proc/%d/stat", task.parent);
		if (task.parent <= 1 || !read_stat(path, &task, &flags))
			return false;
	}
	return !steald_tree;
}

static bool get_affinity(pid_t tid, struct cpuset *set)
{
	cpu_set_t mask;

	memset(set, 0, sizeof(*set));
	if (sched_getaffinity(tid, sizeof(mask), &mask))
		return false;
	for (unsigned int cpu = 0; cpu < STEALD_CPUS; cpu++)
		cpuset_put(set, cpu, CPU_ISSET(cpu, &mask));
	return true;
}

bool set_affinity(pid_t tid, const struct cpuset *set)
{
	cpu_set_t mask;

	CPU_ZERO(&mask);
	for (unsigned int cpu = 0; cpu < STEALD_CPUS; cpu++)
		if (cpuset_has(set, cpu))
			CPU_SET(cpu, &mask);
	return !sched_setaffinity(tid, sizeof(mask), &mask);
}

bool task_is_free(const struct task *task, const struct cpuset *active)
{
	struct cpuset both = cpuset_and(&task->affinity, active);

	return cpuset_equal(&both, active);
}

static pid_t number_of(const char *name)
{
	return isdigit((unsigned char)*name) ? (pid_t)atoi(name) : 0;
}

/* Returns false to stop. */
static bool visit_threads(pid_t pid, bool (*visit)(const struct task *, void *), void *arg)
{
	struct dirent *entry;
	unsigned long flags;
	bool go_on = true;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	folder = opendir(path);
	while (folder && go_on && (entry = readdir(folder))) {
		struct task task = {.pid = pid, .tid = number_of(entry->d_name)};

		if (!task.tid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, task.tid);
		if (!read_stat(path, &task, &flags) || !get_affinity(task.tid, &task.affinity))
			continue; /* it ended */
		if (flags & PF_KTHREAD)
			break;
		go_on = visit(&task, arg);
	}
	if (folder)
		closedir(folder);
	return go_on;
}

void for_each_task(bool (*visit)(const struct task *task, void *arg), void *arg)
{
	struct dirent *entry;
	DIR *folder = opendir("/proc");

	while (folder && (entry = readdir(folder))) {
		pid_t pid = number_of(entry->d_name);

		if (pid && in_tree(pid) && !visit_threads(pid, visit, arg))
			break;
	}
	if (folder)
		closedir(folder);
}
