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
kill $steald
wait $steald
[ "$2" ] && echo "kernel: $(cat /sys/devices/system/cpu/preferred)"
echo "ended: pinned $(cpus_of $pinned) free $(cpus_of $$)"
