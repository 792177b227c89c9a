/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folding by sched_setaffinity(), where there are no cgroups. A task that was not pinned gets the
 * preferred CPUs as its affinity; we keep a list of those, since a task that somebody else pinned
 * to the very same CPUs must stay. What such a task forks inherits the affinity, and is recognized
 * by its parent.
 */
#include "steald.h"

#include <stdlib.h>
#include <string.h>

#define PASSES 4 /* tasks may fork while we look at them: once more until all are moved */

struct moved {
	pid_t pid, tid;
	uint64_t start_time;
	bool seen;
};

static struct moved *list;
static size_t nr_moved, capacity;
static struct cpuset applied; /* what the tasks of the list have */

struct work {
	const struct steald_cpus *cpus;
	const struct cpuset *set;
	unsigned int moved;
};

static struct moved *find(const struct task *task)
{
	for (size_t i = 0; i < nr_moved; i++)
		if (list[i].tid == task->tid && list[i].start_time == task->start_time)
			return &list[i];
	return NULL;
}

/* Whether a task's process, or the parent of that, is one that we moved. */
static bool parent_was_moved(const struct task *task)
{
	for (size_t i = 0; i < nr_moved; i++)
		if (list[i].pid == task->pid || list[i].pid == task->parent)
			return true;
	return false;
}

static struct moved *add(const struct task *task)
{
	if (nr_moved == capacity) {
		struct moved *larger = realloc(list, (capacity * 2 + 64) * sizeof(*list));

		if (!larger)
			return NULL;
		list = larger;
		capacity = capacity * 2 + 64;
	}
	list[nr_moved] = (struct moved){task->pid, task->tid, task->start_time, true};
	return &list[nr_moved++];
}

static bool has_what_we_gave(const struct task *task, const struct cpuset *active)
{
	struct cpuset now = cpuset_and(&task->affinity, active);
	struct cpuset given = cpuset_and(&applied, active);

	return cpuset_equal(&now, &given);
}

static bool move(const struct task *task, void *arg)
{
	struct work *work = arg;
	const struct cpuset *active = &work->cpus->active;
	struct moved *moved = find(task);

	if (moved)
		moved->seen = true;
	if (cpuset_equal(&task->affinity, work->set))
		return true;
	if (moved && !has_what_we_gave(task, active))
		return true; /* somebody pinned it since: it stays */
	if (!moved && !task_is_free(task, active) &&
	    !(parent_was_moved(task) && has_what_we_gave(task, active)))
		return true;
	if ((moved || add(task)) && set_affinity(task->tid, work->set))
		work->moved++;
	return true;
}

static void forget_the_dead(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr_moved; i++)
		if (list[i].seen)
			list[kept++] = list[i];
	nr_moved = kept;
}

static unsigned int move_all(const struct steald_cpus *cpus, const struct cpuset *set)
{
	struct work work = {cpus, set, 0};
	unsigned int before, pass = 0;

	for (size_t i = 0; i < nr_moved; i++)
		list[i].seen = false;
	do {
		before = work.moved;
		for_each_task(move, &work);
	} while (work.moved != before && ++pass < PASSES);
	forget_the_dead();
	applied = *set;
	return work.moved;
}

static const char *affinity_begin(const struct steald_cpus *cpus)
{
	applied = cpus->active;
	say("folds by affinity: sets that of every task that is not pinned, back to all CPUs at "
	    "the end");
	return NULL;
}

static unsigned int affinity_apply(const struct steald_cpus *cpus)
{
	struct cpuset all;
	unsigned int moved;

	if (!cpuset_equal(&cpus->preferred, &cpus->active))
		return move_all(cpus, &cpus->preferred);
	if (!nr_moved)
		return 0;
	/* All bits, so that CPUs that come on line later count too. */
	memset(&all, 0xff, sizeof(all));
	moved = move_all(cpus, &all);
	nr_moved = 0;
	return moved;
}

static bool affinity_restore(const struct steald_cpus *cpus)
{
	struct steald_cpus unfolded = *cpus;

	unfolded.preferred = cpus->active;
	affinity_apply(&unfolded);
	return true;
}

const struct steald_method affinity_method = {"affinity", affinity_begin, affinity_apply,
					      affinity_restore};
