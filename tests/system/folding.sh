#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# In the guests of test_folding.py: folding.sh MS [watch]. Both vCPUs are busy for so long, and a task
# is pinned to vCPU 1; then the guest is idle until second 3. With watch the kernel folds.
cpus_of() {
	while read -r name value; do
		[ "$name" = Cpus_allowed_list: ] && echo "$value"
	done </proc/"$1"/status
}

taskset 2 sleep 1000 &
pinned=$!
steald interval_ms=200 ${2:+watch=1 interval_ms=100} &
steald=$!
lockstorm mode=futex threads=2 ms="$1" >/dev/null &
sleep 0.8
echo "busy: pinned $(cpus_of $pinned)"
sleep 2.4
echo "idle: pinned $(cpus_of $pinned) free $(cpus_of $$)"
# This script's own work, at the same time in both guests, may be enough to fold for an interval.
tries=0
while [ "$2" ] && read -r set </sys/devices/system/cpu/preferred; do
	[ "$set" = 0-1 ] || [ $tries -ge 50 ] && echo "kernel: $set" && break
	tries=$((tries + 1))
	sleep 0.1
done
kill $steald
wait $steald
echo "ended: pinned $(cpus_of $pinned) free $(cpus_of $$)"
