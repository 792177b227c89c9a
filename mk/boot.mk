# SPDX-License-Identifier: BSD-2-Clause
# The boot loader: boot/*.c and the pure code that it shares with the hypervisor make build/BOOTX64.EFI,
# which carries build/vlag.elf (without its debugging information) as data.

BOOT_C := $(sort $(wildcard boot/*.c)) $(sort $(wildcard hv/config/*.c)) hv/lib/fmt.c hv/lib/string.c
BOOT_OBJ := $(BOOT_C:%.c=$(B)/efi/%.o) $(B)/efi/payload.o

EFI_LIB := /usr/lib
BOOT_CFLAGS := -std=gnu11 -O2 -g -I. -isystem /usr/include/efi -isystem /usr/include/efi/x86_64 -DGNU_EFI_USE_MS_ABI \
	-ffreestanding -fno-builtin-printf -fpic -fshort-wchar -fvisibility=hidden -mgeneral-regs-only -mno-red-zone \
	-maccumulate-outgoing-args -fno-stack-protector -fno-asynchronous-unwind-tables -fno-strict-aliasing \
	-fcf-protection=none $(WARN)
BOOT_LDFLAGS := -nostdlib -shared -Bsymbolic -znocombreloc -znoexecstack -T $(EFI_LIB)/elf_x86_64_efi.lds

$(B)/efi/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(BOOT_CFLAGS) -MMD -MP -c $< -o $@

$(B)/payload.elf: $(B)/vlag.elf
	objcopy --strip-debug $< $@

$(B)/efi/payload.o: boot/payload.asm $(B)/payload.elf
	@mkdir -p $(@D)
	nasm -f elf64 -DPAYLOAD="'$(B)/payload.elf'" -o $@ $<

$(B)/efi/loader.so: $(BOOT_OBJ)
	$(LD) $(BOOT_LDFLAGS) $(EFI_LIB)/crt0-efi-x86_64.o $(BOOT_OBJ) -L$(EFI_LIB) -lgnuefi -o $@
	@! nm -u $@ | grep . || { rm $@; echo "$@: undefined symbols" >&2; exit 1; }

$(B)/BOOTX64.EFI: $(B)/efi/loader.so
	objcopy -j .text -j .sdata -j .data -j .dynamic -j .dynsym -j .rel -j .rela -j '.rel.*' -j '.rela.*' -j .reloc \
		--target efi-app-x86_64 --subsystem=10 $< $@

-include $(filter %.d,$(BOOT_OBJ:.o=.d))

# The generated pages are committed; tests/unit/config_test.c and docs_test.c check that they are current.
HOST_LIB := hv/lib/fmt.c hv/lib/string.c tests/unit/host.c
GEN_CONFIG_C := $(wildcard hv/config/*.c) $(HOST_LIB)
GEN_KNOBS_C := hv/knobs.c hv/sched/knobs.c hv/spin/knobs.c hv/lib/knob.c $(HOST_LIB)
GEN_COUNTERS_C := tests/unit/host.c
GEN_H := $(shell find hv -name '*.h')

$(B)/gen/config-doc: tests/gen/config_doc.c $(GEN_CONFIG_C)
$(B)/gen/knobs-doc: tests/gen/knobs_doc.c $(GEN_KNOBS_C)
$(B)/gen/counters-doc: tests/gen/counters_doc.c $(GEN_COUNTERS_C)
$(B)/gen/%-doc: tests/gen/%_doc.h $(GEN_H)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 -g -I. -DVLAG_HOST $(WARN) -o $@ $(filter %.c,$^)

docs: $(B)/gen/config-doc $(B)/gen/knobs-doc $(B)/gen/counters-doc ## write the generated pages of docs/
	$(B)/gen/config-doc > docs/config.md
	$(B)/gen/knobs-doc > docs/knobs.md
	$(B)/gen/counters-doc > docs/counters.md

.PHONY: docs
