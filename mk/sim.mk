# SPDX-License-Identifier: BSD-2-Clause
# The scheduler on the host: the simulator, the cost of its hot paths in instructions, the Spin model.

SCHED_C := $(sort $(wildcard hv/sched/*.c)) hv/lib/knob.c hv/lib/fmt.c
SIM_CFLAGS := -std=gnu11 -O2 -g -I. -DVLAG_HOST $(WARN)
# As the hypervisor is built, so that instructions counted here are those of the hypervisor.
BENCH_CFLAGS := $(SIM_CFLAGS) -mgeneral-regs-only -fomit-frame-pointer -fno-strict-aliasing \
	-fno-stack-protector -fcf-protection=none

sim: $(B)/sim ## the scheduler simulator: build/sim --help
$(B)/sim: tests/sim/sim.c tests/sim/machine.c tests/sim/machine.h tests/unit/host.c $(SCHED_C) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -o $@ tests/sim/sim.c tests/sim/machine.c tests/unit/host.c $(SCHED_C)

$(B)/sched-bench: tests/sim/bench.c tests/unit/host.c $(SCHED_C) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ tests/sim/bench.c tests/unit/host.c $(SCHED_C)

bench-sched: $(B)/sched-bench ## instructions per scheduler operation, by queue length (callgrind)
	@tools/deps build long
	tests/sim/bench-sched $<

SPIN_C := $(sort $(wildcard hv/spin/*.c)) hv/apic/ipi_track.c hv/lib/knob.c hv/lib/fmt.c
$(B)/spin-bench: tests/sim/bench_spin.c tests/unit/host.c $(SPIN_C) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ tests/sim/bench_spin.c tests/unit/host.c $(SPIN_C)

bench-spin: $(B)/spin-bench ## instructions per search for a candidate and per hook, by vCPUs of the VM (callgrind)
	@tools/deps build long
	tests/sim/bench-spin $<

bench-yield: $(B)/sim ## shares, latency and fair_err_max_ns of each yield policy in the simulator
	tests/sim/bench-yield $<

model: ## check the halt/wake/IPI protocol with Spin, and that the broken variants are found
	@tools/deps build long
	tests/model/check $(B)/model

.PHONY: sim bench-sched bench-spin bench-yield model
