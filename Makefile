# SPDX-License-Identifier: BSD-2-Clause
# make | run | test | check | bench | image | lint | clean. Each target is one idea; mk/ holds the rules behind them.

CFG ?= vlag.cfg
B := build

.DEFAULT_GOAL := all

include mk/hv.mk
include mk/hv-dsdt.mk
include mk/boot.mk
include mk/tests.mk
include mk/guests.mk
include mk/guests-tiny.mk
include mk/sim.mk
include mk/image.mk
include mk/bench.mk

deps: ## install the Debian packages that building and running need
	tools/deps

clean: ## remove what was built (not the cache of guest kernels)
	rm -rf $(B)

.PHONY: deps clean
