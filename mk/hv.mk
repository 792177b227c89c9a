# SPDX-License-Identifier: BSD-2-Clause
# The hypervisor: every C and NASM file under hv/ makes build/vlag.elf, a static PIE.

HV_C := $(sort $(shell find hv -name '*.c'))
HV_ASM := $(sort $(shell find hv -name '*.asm'))
HV_OBJ := $(HV_C:%.c=$(B)/%.o) $(HV_ASM:%.asm=$(B)/%.asm.o)

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter
HV_CFLAGS := -std=gnu11 -O2 -g -I. -ffreestanding -fno-builtin-printf -fpie -mgeneral-regs-only -mno-red-zone -mpreferred-stack-boundary=3 -mcmodel=small \
	-fno-stack-protector -fno-asynchronous-unwind-tables -fomit-frame-pointer -fno-strict-aliasing -fcf-protection=none \
	-fvisibility=hidden $(WARN) $(if $(DEBUG),-DVLAG_DEBUG)
HV_LDFLAGS := -nostdlib -static -pie --no-dynamic-linker -z noexecstack -z max-page-size=4096 -z separate-code -T hv/hv.lds

$(B)/%.o: %.c mk/hv.mk
	@mkdir -p $(@D)
	$(CC) $(HV_CFLAGS) -MMD -MP -c $< -o $@

$(B)/%.asm.o: %.asm
	@mkdir -p $(@D)
	nasm -f elf64 -g -F dwarf -Werror -I. -I$(B)/ -MD $(@:.o=.d) -o $@ $<

$(B)/vlag.elf: $(HV_OBJ) hv/hv.lds
	$(LD) $(HV_LDFLAGS) -o $@ $(HV_OBJ)

-include $(HV_OBJ:.o=.d)
