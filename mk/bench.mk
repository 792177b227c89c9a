# SPDX-License-Identifier: BSD-2-Clause
# Measurements in Bochs; docs/benchmarks.md says what they mean. Minutes, and no part of `make test`.

BENCH ?= # parts to measure (paths token yield boot size; load, peer), further arguments of tools/bench/run
BENCH_DEPS := $(B)/bench/offsets.bin

bench: ## measure path lengths, boot cost and size: tables, and build/bench/bench.json (BENCH="paths ..." : parts of it)
	@tools/deps build run nested
	$(MAKE_BUILD) $(B)/BOOTX64.EFI $(TINY) guests $(BENCH_DEPS) $(if $(filter load,$(BENCH)),guests-load)
	@tools/bench/run --build $(B) $(BENCH)

$(B)/bench/offsets.bin: $(B)/tools/bench/offsets.o
	@mkdir -p $(@D)
	objcopy -O binary -j bench_numbers $< $@

-include $(B)/tools/bench/offsets.d

.PHONY: bench
