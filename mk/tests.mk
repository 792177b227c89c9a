# SPDX-License-Identifier: BSD-2-Clause
# Host tests. tests/unit/X_test.c (cmocka, ASan, UBSan) and tests/fuzz/X_fuzz.c (libFuzzer) name the files they test in a line
#   // sources: hv/apic/vlapic.c hv/lib/fmt.c
# and may include a module's .c file themselves to see its static functions.

HOST_CFLAGS := -std=gnu11 -O1 -g -I. -DVLAG_HOST -DVLAG_DEBUG $(WARN) -fno-omit-frame-pointer
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all
sources_of = $(shell sed -n 's,^// sources:,,p' $(1))

UNIT := $(patsubst tests/unit/%_test.c,$(B)/unit/%_test,$(sort $(wildcard tests/unit/*_test.c)))
FUZZ := $(patsubst tests/fuzz/%_fuzz.c,$(B)/fuzz/%_fuzz,$(sort $(wildcard tests/fuzz/*_fuzz.c)))
HEADERS := $(shell find hv boot tests -name '*.h')

.SECONDEXPANSION:
$(B)/unit/%: tests/unit/%.c tests/unit/host.c $$(call sources_of,tests/unit/$$*.c) $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(HOST_CFLAGS) $(SAN) -o $@ tests/unit/$*.c tests/unit/host.c $(call sources_of,tests/unit/$*.c) -lcmocka $(shell sed -n 's,^// libs:,,p' tests/unit/$*.c)

$(B)/fuzz/%: tests/fuzz/%.c tests/unit/host.c $$(call sources_of,tests/fuzz/$$*.c) $(HEADERS)
	@mkdir -p $(@D)
	clang $(HOST_CFLAGS) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o $@ tests/fuzz/$*.c tests/unit/host.c $(call sources_of,tests/fuzz/$*.c) $(shell sed -n 's,^// libs:,,p' tests/fuzz/$*.c)

unit: $(UNIT) ## build and run the host tests
	tests/run unit

fuzz: $(FUZZ) ## build the fuzz targets and run each for a moment
	tests/run fuzz

.PHONY: unit fuzz
