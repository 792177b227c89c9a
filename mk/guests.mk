# SPDX-License-Identifier: BSD-2-Clause
# Linux guests: the small kernel and its initramfs, and Debian's cloud kernel. What takes long is cached outside
# of the tree (guest-support/README.md), so `make clean` costs nothing here.

GUEST := $(B)/guest
GUEST_LIB := $(wildcard guest-support/guestlib/*.py)

guests: $(GUEST)/bzImage $(GUEST)/initramfs.cpio ## build the small guest kernel and its initramfs

guests-cloud: $(GUEST)/bzImage-cloud $(GUEST)/initramfs.cpio ## fetch Debian's cloud kernel, build the initramfs

$(GUEST)/bzImage: guest-support/build-kernel guest-support/small.config $(GUEST_LIB)
	guest-support/build-kernel --out $@

$(GUEST)/bzImage-cloud: guest-support/fetch-cloud-kernel $(GUEST_LIB)
	guest-support/fetch-cloud-kernel --out $@

$(GUEST)/initramfs.cpio: guest-support/build-initramfs $(GUEST_LIB) $(wildcard guest-support/src/*) \
		$(shell find guest-support/initramfs -type f)
	guest-support/build-initramfs --out $@

LOAD ?= hackbench,dbench,pigz# load programs in the guests: names with commas, or all

guests-load: $(GUEST)/bzImage ## the guests' kernel and an initramfs with load programs (LOAD=hackbench,sysbench,...)
	guest-support/build-initramfs --load $(LOAD) --out $(GUEST)/initramfs-load.cpio

guests-test: ## test the scripts of guest-support (half a minute; no network, no machine)
	python3 guest-support/tests/test_initramfs.py
	python3 guest-support/tests/test_workloads.py
	python3 guest-support/tests/test_load.py

.PHONY: guests guests-cloud guests-load guests-test
