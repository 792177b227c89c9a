/* SPDX-License-Identifier: BSD-2-Clause */
/* As much of ACPI as a tiny guest wants to know: finds tables through the RSDP, trusts sums only.
 */
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

u32 acpi_u32(const u8 *table, u32 offset)
{
	u32 v;

	memcpy(&v, table + offset, sizeof(v));
	return v;
}

static bool sums_to_0(const u8 *p, u32 len)
{
	u8 sum = 0;

	while (len--)
		sum += *p++;
	return sum == 0;
}

static const u8 *rsdp(void)
{
	for (const u8 *p = (const u8 *)0xe0000; p < (const u8 *)0x100000; p += 16) {
		if (!memcmp(p, "RSD PTR ", 8) && sums_to_0(p, 20))
			return p;
	}
	return NULL;
}

const u8 *acpi_find(const char *signature)
{
	const u8 *r = rsdp(), *rsdt, *t;

	if (!r)
		return NULL;
	rsdt = (const u8 *)(u64)acpi_u32(r, 16);
	for (u32 i = 36; i + 4 <= acpi_u32(rsdt, 4); i += 4) {
		t = (const u8 *)(u64)acpi_u32(rsdt, i);
		if (!memcmp(t, signature, 4) && sums_to_0(t, acpi_u32(t, 4)))
			return t;
	}
	return NULL;
}

u32 acpi_cpus(u32 *ids, u32 max)
{
	const u8 *t = acpi_find("APIC"), *end, *e;
	u32 n = 0;

	if (!t)
		return 0;
	end = t + acpi_u32(t, 4);
	for (e = t + 44; e < end && e[1]; e += e[1]) {
		bool local = e[0] == 0 && acpi_u32(e, 4) & 1;
		bool x2 = e[0] == 9 && acpi_u32(e, 8) & 1;

		if ((local || x2) && n < max)
			ids[n++] = local ? e[3] : acpi_u32(e, 4);
	}
	return n;
}

u16 acpi_pm_timer(void)
{
	const u8 *fadt = acpi_find("FACP");

	return fadt ? acpi_u32(fadt, 76) : 0;
}
