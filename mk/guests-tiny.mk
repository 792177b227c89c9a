# SPDX-License-Identifier: BSD-2-Clause
# The tiny Multiboot guests: tests/guests/NAME.c with tests/guests/lib makes build/tests/guests/NAME.elf. 64-bit code in an
# ELF32 file, because Multiboot 1 takes no other.

TINY := $(patsubst tests/guests/%.c,$(B)/tests/guests/%.elf,$(sort $(wildcard tests/guests/*.c)))
TINY_LIB := $(patsubst %.c,$(B)/tests/guests/obj/%.o,$(sort $(filter-out %/boot.c,$(wildcard tests/guests/lib/*.c))) hv/lib/fmt.c hv/lib/string.c) \
	$(patsubst %.asm,$(B)/tests/guests/obj/%.asm.o,$(sort $(wildcard tests/guests/lib/*.asm)))
TINY_CFLAGS := -std=gnu11 -O2 -g -I. -ffreestanding -fno-builtin-printf -fno-pie -mgeneral-regs-only -mno-red-zone -mcmodel=small \
	-fno-stack-protector -fno-asynchronous-unwind-tables -fno-strict-aliasing -fcf-protection=none \
	-Wall -Wextra -Werror -Wshadow -Wno-unused-parameter

tiny-guests: $(TINY) ## build the tiny Multiboot guests

$(B)/tests/guests/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(TINY_CFLAGS) -MMD -MP -c $< -o $@

$(B)/tests/guests/obj/%.asm.o: %.asm
	@mkdir -p $(@D)
	nasm -f elf64 -Werror -o $@ $<

# boot.c prints the guest's name, so it is compiled once for each.
$(B)/tests/guests/%.elf: tests/guests/%.c tests/guests/lib/boot.c $(TINY_LIB) tests/guests/lib/guest.lds tests/guests/lib/guest.h
	$(CC) $(TINY_CFLAGS) -DGUEST_NAME='"$*"' -c $< -o $(B)/tests/guests/obj/$*.o
	$(CC) $(TINY_CFLAGS) -DGUEST_NAME='"$*"' -c tests/guests/lib/boot.c -o $(B)/tests/guests/obj/$*-boot.o
	$(LD) -m elf_x86_64 -nostdlib -static -z max-page-size=4096 -z noexecstack --no-warn-rwx-segments -T tests/guests/lib/guest.lds \
		-o $(B)/tests/guests/obj/$*.elf64 $(B)/tests/guests/obj/$*.o $(B)/tests/guests/obj/$*-boot.o $(TINY_LIB)
	objcopy -O elf32-i386 $(B)/tests/guests/obj/$*.elf64 $@

.SECONDARY: $(TINY_LIB)

-include $(wildcard $(B)/tests/guests/obj/tests/guests/lib/*.d $(B)/tests/guests/obj/hv/lib/*.d)

tiny-check: $(TINY) ## run the tiny guests under QEMU without KVM, which proves the guests
	tests/guests/check

.PHONY: tiny-guests tiny-check
