# SPDX-License-Identifier: BSD-2-Clause
# What a person asks for: an image, a running machine, the tests, lint. Other rules add to TEST_DEPS what tests need built.

RUN ?= # further arguments of tools/vlag run
V ?= # not empty: show each command of the build
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
MAKE_BUILD = +@$(MAKE) --no-print-directory $(if $(V),,-s) $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))
# The guests of the default config; another config names files that are there.
CFG_DEPS = $(if $(filter vlag.cfg,$(CFG)),guests)

all: ## build the hypervisor, build/BOOTX64.EFI
	@tools/deps build
	$(MAKE_BUILD) $(B)/BOOTX64.EFI

image: ## build build/vlag.img from CFG (vlag.cfg): for QEMU, Bochs or a USB stick
	@tools/deps build
	$(MAKE_BUILD) $(B)/BOOTX64.EFI $(CFG_DEPS)
	tools/vlag image -c $(CFG) -o $(B)/vlag.img

run: ## boot CFG (vlag.cfg) here, in QEMU with nested VMX or in Bochs, to the guest's shell (RUN=... : more arguments)
	@tools/deps build run
	$(MAKE_BUILD) $(B)/BOOTX64.EFI $(CFG_DEPS)
	@tools/vlag run -c $(CFG) $(RUN)

test: ## all tests that fit here: unit, fuzz targets for a moment, python, whole machines
	@tools/deps build run test
	$(MAKE_BUILD) $(B)/BOOTX64.EFI $(UNIT) $(FUZZ) $(TINY) guests guests-cloud $(TEST_DEPS)
	@tests/run all

test-long: ## what takes long: millions of scheduler steps, longer fuzzing, the Spin models, hotplug of 8 vCPUs (an hour)
	@tools/deps build test long run
	$(MAKE_BUILD) $(B)/BOOTX64.EFI $(UNIT) $(FUZZ) guests guests-cloud
	@tests/run long
	@VLAG_TEST_LONG=1 tests/run system test_hotplug

test-nested: ## boot the image in QEMU with nested VMX on a KVM host in Bochs (minutes)
	@tools/deps build run nested
	$(MAKE_BUILD) $(B)/BOOTX64.EFI guests
	@tests/nested/run

lint: ## formatting, headers that stand alone, license lines, Python, file lengths
	@tools/deps build test
	@HV_CFLAGS='$(HV_CFLAGS)' BOOT_CFLAGS='$(BOOT_CFLAGS)' HOST_CFLAGS='$(HOST_CFLAGS)' CC='$(CC)' tools/lint

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | sort -u | awk -F'\t' '{ printf "%-14s %s\n", $$1, $$2 }'

.PHONY: all image run test test-long test-nested lint help
