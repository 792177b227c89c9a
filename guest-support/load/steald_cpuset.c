/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folding by cpusets of cgroup version 2. The processes of the root group that nobody pinned move
 * into a group of ours, whose cpuset.cpus are the preferred CPUs; children that they fork are in it
 * from the start. Groups that others made below the root (systemd's slices) get the same CPUs,
 * unless they have a cpuset of their own or hold a pinned task. A cpuset overrides what tasks
 * pinned themselves to, so pinned tasks must not come into one.
 */
#include "steald.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define OURS "steald"
#define MAX_GROUPS 64
#define NAME 128
#define ROOT_MAX 128

static char root[ROOT_MAX];
static bool mounted, enabled; /* by us */
static char groups[MAX_GROUPS][NAME];
static unsigned int nr_groups;

static void path_of(char out[2 * NAME + ROOT_MAX], const char *group, const char *file)
{
	snprintf(out, 2 * NAME + ROOT_MAX, "%s/%s/%s", root, group, file);
}

static bool write_group(const char *group, const char *file, const char *text)
{
	char path[2 * NAME + ROOT_MAX];

	path_of(path, group, file);
	return write_text(path, text);
}

/* Where cgroup version 2 is mounted, into root. */
static bool find_root(void)
{
	char type[32], line[512];
	FILE *mounts = fopen("/proc/mounts", "r");
	bool found = false;

	while (mounts && !found && fgets(line, sizeof(line), mounts))
		found = sscanf(line, "%*s %127s %31s", root, type) == 2 && !strcmp(type, "cgroup2");
	if (mounts)
		fclose(mounts);
	return found;
}

static bool has_word(const char *text, const char *word)
{
	const char *at = strstr(text, word);
	size_t length = strlen(word);

	return at && (at == text || at[-1] == ' ') && strchr(" \n", at[length]);
}

static void unmount(void)
{
	if (mounted)
		umount(root);
	mounted = false;
}

static bool read_root(const char *file, char *out, size_t size)
{
	char path[2 * NAME + ROOT_MAX];

	path_of(path, ".", file);
	return read_text(path, out, size);
}

/* The controller, in the root group's children. Returns why not. */
static const char *enable_controller(void)
{
	char words[512];

	if (!read_root("cgroup.controllers", words, sizeof(words)) || !has_word(words, "cpuset"))
		return "this kernel's cgroup2 has no cpuset controller";
	if (!read_root("cgroup.subtree_control", words, sizeof(words)))
		return "cannot read cgroup.subtree_control";
	if (has_word(words, "cpuset"))
		return NULL;
	if (!write_group(".", "cgroup.subtree_control", "+cpuset"))
		return "cannot enable the cpuset controller";
	enabled = true;
	return NULL;
}

/* The first part of a task's group, "" for the root; false where it has none. */
static bool group_of(pid_t pid, char out[NAME])
{
	char path[64], text[1024], *line;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (!read_text(path, text, sizeof(text)))
		return false;
	line = strncmp(text, "0::/", 4) ? strstr(text, "\n0::/") : text;
	if (!line)
		return false;
	line += line == text ? 4 : 5;
	snprintf(out, NAME, "%.*s", (int)strcspn(line, "/\n"), line);
	return true;
}

static const char *cpuset_begin(const struct steald_cpus *cpus)
{
	char path[2 * NAME + ROOT_MAX];
	const char *why;

	if (!find_root()) {
		strcpy(root, "/sys/fs/cgroup");
		if (mount("cgroup2", root, "cgroup2", 0, NULL))
			return "there is no cgroup2";
		mounted = true;
	}
	why = enable_controller();
	path_of(path, OURS, "");
	if (!why && mkdir(path, 0755) && errno != EEXIST)
		why = "cannot make a group";
	if (why) {
		unmount();
		return why;
	}
	say("folds by cpusets: %smoves the tasks of the root group that are not pinned into "
	    "%s/" OURS " and sets cpuset.cpus there and in other groups that have none; back at "
	    "the end",
	    mounted ? "mounts cgroup2, " : "", root);
	return NULL;
}

/* What one look at all tasks finds. */
struct look {
	const struct cpuset *active, *preferred;
	struct {
		char name[NAME];
		bool pinned;
	} found[MAX_GROUPS];
	unsigned int nr_found, moved;
	pid_t pinned; /* the process last seen with a pinned thread in the root group */
	unsigned int nr_root_pids;
};

#define MAX_ROOT_PIDS 4096
static pid_t root_pids[MAX_ROOT_PIDS];

static bool is_pinned(const struct look *look, const struct task *task)
{
	struct cpuset now = cpuset_and(&task->affinity, look->active);

	return !task_is_free(task, look->active) && !cpuset_equal(&now, look->preferred);
}

static bool look_at(const struct task *task, void *arg)
{
	struct look *look = arg;
	char group[NAME];
	unsigned int i;

	if (!group_of(task->pid, group) || !strcmp(group, OURS))
		return true;
	if (!*group) {
		if (!task_is_free(task, look->active))
			look->pinned = task->pid;
		/* Threads of a process come one after another; a pinned one keeps the process. */
		if (look->nr_root_pids && root_pids[look->nr_root_pids - 1] == task->pid)
			look->nr_root_pids -= look->pinned == task->pid;
		else if (look->pinned != task->pid && look->nr_root_pids < MAX_ROOT_PIDS)
			root_pids[look->nr_root_pids++] = task->pid;
		return true;
	}
	for (i = 0; i < look->nr_found && strcmp(look->found[i].name, group); i++)
		;
	if (i == MAX_GROUPS)
		return true;
	if (i == look->nr_found) {
		snprintf(look->found[look->nr_found++].name, NAME, "%s", group);
		look->found[i].pinned = false;
	}
	look->found[i].pinned |= is_pinned(look, task);
	return true;
}

static bool is_taken(const char *group)
{
	for (unsigned int i = 0; i < nr_groups; i++)
		if (!strcmp(groups[i], group))
			return true;
	return false;
}

/* Take a group of somebody else's that has no CPUs of its own and no pinned task. */
static void take_group(const char *group)
{
	char text[2 * NAME + ROOT_MAX];

	path_of(text, group, "cpuset.cpus");
	if (nr_groups == MAX_GROUPS || is_taken(group) || !read_text(text, text, sizeof(text)) ||
	    strcmp(text, "\n"))
		return;
	strcpy(groups[nr_groups++], group);
}

static unsigned int cpuset_apply(const struct steald_cpus *cpus)
{
	bool folded = !cpuset_equal(&cpus->preferred, &cpus->active);
	struct look look = {.active = &cpus->active, .preferred = &cpus->preferred};
	char list[CPUSET_TEXT], pid[16];

	cpuset_format(&cpus->preferred, list);
	if (!write_group(OURS, "cpuset.cpus", list))
		say("cannot set cpuset.cpus of " OURS ": %s", strerror(errno));
	if (folded)
		for_each_task(look_at, &look);
	for (unsigned int i = 0; i < look.nr_found; i++)
		if (!look.found[i].pinned)
			take_group(look.found[i].name);
	for (unsigned int i = 0; i < nr_groups; i++)
		write_group(groups[i], "cpuset.cpus", list);
	for (unsigned int i = 0; i < look.nr_root_pids; i++) {
		snprintf(pid, sizeof(pid), "%d", root_pids[i]);
		look.moved += write_group(OURS, "cgroup.procs", pid);
	}
	return look.moved;
}

/* An empty list is what the group had, but kernels refuse it (6.1 does) while there are tasks. */
static bool release_group(const char *group, const struct steald_cpus *cpus)
{
	char all[CPUSET_TEXT];

	if (write_group(group, "cpuset.cpus", "\n"))
		return true;
	cpuset_format(&cpus->active, all);
	if (write_group(group, "cpuset.cpus", all))
		say("%s/%s/cpuset.cpus was empty and is %s now: this kernel takes no empty list "
		    "while the group has tasks",
		    root, group, all);
	else
		say("cannot set cpuset.cpus of %s: %s", group, strerror(errno));
	return false;
}

static bool cpuset_restore(const struct steald_cpus *cpus)
{
	char path[2 * NAME + ROOT_MAX], line[32];
	bool ok = true;
	FILE *procs;

	for (unsigned int i = 0; i < nr_groups; i++)
		ok &= release_group(groups[i], cpus);
	nr_groups = 0;
	path_of(path, OURS, "cgroup.procs");
	/* Tasks may fork while they move: until none is left. */
	for (bool some = true; some;) {
		some = false;
		procs = fopen(path, "r");
		while (procs && fgets(line, sizeof(line), procs))
			some |= write_group(".", "cgroup.procs", line);
		if (procs)
			fclose(procs);
	}
	path_of(path, OURS, "");
	if (rmdir(path)) {
		say("cannot remove %s: %s", path, strerror(errno));
		ok = false;
	}
	if (enabled && !write_group(".", "cgroup.subtree_control", "-cpuset")) {
		say("cannot disable the cpuset controller again: %s", strerror(errno));
		ok = false;
	}
	unmount();
	return ok;
}

const struct steald_method cpuset_method = {"cpuset", cpuset_begin, cpuset_apply, cpuset_restore};
