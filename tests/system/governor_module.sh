#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# In the guests of test_folding.py: the kernel's governor as a module. Three tasks are free and one is
# pinned to vCPU 1, all of them busy: so both vCPUs go on losing time when the free ones have folded,
# and the kernel stays folded until the module goes.
preferred=/sys/devices/system/cpu/preferred
parameters=/sys/module/steal_governor/parameters

# These set a variable, as a new process for each would disturb what is looked at.
cpus_of() {
	while read -r name value; do
		[ "$name" = Cpus_allowed_list: ] && cpus=$value
	done </proc/"$1"/status
}

# On which CPU a task is: field 39 of its line (proc(5)), the 37th after its name.
cpu_of() {
	read -r line </proc/"$1"/stat
	set -- ${line##*) }
	cpu=${37}
}

where_free() {
	on=
	for task in $free $free2 $free3; do
		cpu_of $task
		on="$on $cpu"
	done
}

state() {
	read -r set <$preferred
	where_free
	cpus_of $free
	free_cpus=$cpus
	cpus_of $pinned
	cpu_of $pinned
	echo "$1: preferred $set pinned $cpus on $cpu free $free_cpus on$on"
}

# Until "$@" is true, 10 s at most.
wait_for() {
	tries=0
	until "$@" || [ $tries -ge 200 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
}

prefers() {
	read -r set <$preferred
	[ "$set" = "$1" ]
}

spread() {
	where_free
	case $on in *1*) ;; *) false ;; esac
}

spin() {
	while :; do :; done
}

taskset 2 sh -c 'while :; do :; done' &
pinned=$!
spin &
free=$!
spin &
free2=$!
spin &
free3=$!
renice -n 10 -p $pinned $free $free2 $free3 # so that this script gets on
steald watch=1 interval_ms=100 &
steald=$!
sleep 0.2
state before
insmod /steal_governor.ko interval_ms=200
wait_for prefers 0
sleep 0.1 # the ticks push the tasks away
state folded
rmmod steal_governor
state unloaded
sleep 0.5
wait_for spread
state on
insmod /steal_governor.ko interval_ms=100 high_threshold=9999
echo "parameters:" $(cat $parameters/interval_ms $parameters/high_threshold)
sleep 0.5
state unwilling
rmmod steal_governor
insmod /steal_governor.ko interval_ms=100
wait_for prefers 0
state again
rmmod steal_governor
state after
sleep 1 # the other VM may not be so far
kill $steald
wait $steald
