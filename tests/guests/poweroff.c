/* SPDX-License-Identifier: BSD-2-Clause */
/* ACPI soft-off, with the sleep type that the DSDT's _S5 names. The line "switching off" is the
 * last one. */
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

#define AML_NAME 0x08
#define AML_PACKAGE 0x12
#define AML_BYTE 0x0a
#define SCI_EN 1
#define SLP_EN BIT(13)

/* The first element of _S5, or -1. */
static int s5_type(const u8 *dsdt)
{
	u32 len = acpi_u32(dsdt, 4);

	for (u32 i = 36; i + 10 < len; i++) {
		const u8 *p = dsdt + i;

		if (memcmp(p, "_S5_", 4) || p[4] != AML_PACKAGE)
			continue;
		p += 7; /* past name, opcode, one-byte length and number of elements */
		return *p == AML_BYTE ? p[1] : *p <= 1 ? *p : -1;
	}
	return -1;
}

/* Firmware that starts in legacy mode is asked by a byte to its SMI port. */
static void enter_acpi_mode(const u8 *fadt, u16 control)
{
	u16 smi = acpi_u32(fadt, 48);

	if (smi && !(inw(control) & SCI_EN))
		outb(smi, fadt[52]);
	for (u64 start = rdtsc(); !(inw(control) & SCI_EN) && rdtsc() - start < 100000000;)
		pause();
	CHECK(inw(control) & SCI_EN, "not in ACPI mode: PM1a control is %x", inw(control));
}

int guest_main(void)
{
	const u8 *fadt = acpi_find("FACP");
	u16 control;
	int type;

	CHECK(fadt, "no FADT");
	control = acpi_u32(fadt, 64);
	type = s5_type((const u8 *)(u64)acpi_u32(fadt, 40));
	CHECK(type >= 0, "no _S5 in the DSDT");
	enter_acpi_mode(fadt, control);
	printf("poweroff: switching off, port %x, sleep type %d\n", control, type);
	outw(control, type << 10 | SLP_EN);
	delay_ticks(100000000);
	test_fail("still running after the power-off");
}
