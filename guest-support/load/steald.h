/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How steald's parts call each other. steald.c decides (with steald_policy.c), steald_tasks.c looks
 * at tasks, steald_affinity.c and steald_cpuset.c are the two ways to move them.
 */
#ifndef GUEST_SUPPORT_STEALD_H
#define GUEST_SUPPORT_STEALD_H

#include "steald_policy.h"

#include <stdbool.h>
#include <sys/types.h>

/* A way to keep tasks on the preferred CPUs. */
struct steald_method {
	const char *name;
	/* Returns NULL, or why this way cannot be gone here. Says what it will change. */
	const char *(*begin)(const struct steald_cpus *cpus);
	/* Keep every task that is not pinned on cpus->preferred; called at every interval, since
	 * tasks come and go. Returns how many tasks it moved. */
	unsigned int (*apply)(const struct steald_cpus *cpus);
	/* Undo everything; false, after saying what, if something could not be undone. */
	bool (*restore)(const struct steald_cpus *cpus);
};

extern const struct steald_method affinity_method, cpuset_method;

/* Fold only this process and its descendants; 0: all. */
extern pid_t steald_tree;

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Read the beginning of a file into @out as text; false if it cannot be read. */
bool read_text(const char *path, char *out, size_t size);
/* Write @text to a file that is there; false if that fails, errno says why. */
bool write_text(const char *path, const char *text);

struct task {
	pid_t pid, tid, parent; /* parent: of the process */
	uint64_t start_time;	/* with tid it names a task for ever */
	struct cpuset affinity;
};

/* Call @visit for each task of user space that steald may move, until it returns false. */
void for_each_task(bool (*visit)(const struct task *task, void *arg), void *arg);

/* Whether @task's affinity leaves no active CPU out: nobody pinned it. */
bool task_is_free(const struct task *task, const struct cpuset *active);

/* sched_setaffinity() of a task; false if it is gone or refuses. */
bool set_affinity(pid_t tid, const struct cpuset *set);

#endif
