#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# In the guest of test_steald.py: tasks in four situations, steald with a /proc/stat that we write,
# and at each stage one line with the CPUs that each may use.
STEALD_STAT=/tmp/stat
export STEALD_STAT
ticks=0
cgroup=/sys/fs/cgroup

write_stat() {
	echo "cpu 0 0 0 0 0 0 0 $ticks 0 0" >/tmp/stat.new
	mv /tmp/stat.new /tmp/stat
}

# Much is stolen all the time while /tmp/stealing is there.
steal() {
	while sleep 0.1; do
		[ -e /tmp/stealing ] && ticks=$((ticks + 1000000)) && write_stat
	done
}

cpus_of() {
	while read -r name value; do
		[ "$name" = Cpus_allowed_list: ] && echo "$value"
	done </proc/"$1"/status
}

stage() {
	echo "stage $1: free $(cpus_of $free) pinned $(cpus_of $pinned) grouped $(cpus_of $grouped)" \
		"pinned-in-group $(cpus_of $both)"
}

write_stat
steal &
mount -t cgroup2 cgroup2 $cgroup
echo +cpuset >$cgroup/cgroup.subtree_control
mkdir $cgroup/some $cgroup/other
sleep 1000 &
free=$!
taskset 8 sleep 1000 &
pinned=$!
sleep 1000 &
grouped=$!
echo $grouped >$cgroup/some/cgroup.procs
sleep 1000 &
both=$!
# Pinned when it is there: moving into a cpuset takes the affinity that a task had.
echo $both >$cgroup/other/cgroup.procs
taskset -p 4 $both >/dev/null
steald report=0 interval_ms=200 &
steald=$!
sleep 1
stage before
touch /tmp/stealing
sleep 3
stage folded
read -r group </proc/$free/cgroup
echo "group of free: $group"
rm /tmp/stealing
sleep 3
stage unfolded
touch /tmp/stealing
sleep 3
stage folded-again
kill $steald
wait $steald
echo "steald: status $?"
stage after
read -r group </proc/$free/cgroup
echo "group of free: $group"
[ -d $cgroup/steald ] && echo "the group is still there"
exit 0
