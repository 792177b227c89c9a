# SPDX-License-Identifier: BSD-2-Clause
# The guest's DSDT: iasl compiles hv/vm/dsdt.asl, and the bytes become a C array in the hypervisor and in the host tests.

$(B)/hv/vm/dsdt.aml: hv/vm/dsdt.asl hv/dev/ports.h
	@mkdir -p $(@D)
	$(CC) -E -P -x c -I. $< -o $(B)/hv/vm/dsdt.pre.asl
	iasl -we -p $(B)/hv/vm/dsdt $(B)/hv/vm/dsdt.pre.asl >$(B)/hv/vm/dsdt.log || { cat $(B)/hv/vm/dsdt.log; exit 1; }

$(B)/hv/vm/dsdt.c: $(B)/hv/vm/dsdt.aml
	{ echo '/* made from hv/vm/dsdt.asl */'; echo '#include "hv/vm/acpi_tables.h"'; echo 'const u8 dsdt_aml[] = {'; \
	  od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g'; echo '};'; echo 'const u32 dsdt_aml_size = sizeof(dsdt_aml);'; } >$@

$(B)/hv/vm/dsdt.o: $(B)/hv/vm/dsdt.c
	$(CC) $(HV_CFLAGS) -c $< -o $@

HV_OBJ += $(B)/hv/vm/dsdt.o
$(B)/vlag.elf: $(B)/hv/vm/dsdt.o
