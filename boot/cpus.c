/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which CPUs there are: MP Services know best (OVMF under Bochs has nothing else), then the MADT,
 * then only this one.
 */
#include "boot/loader.h"
#include "boot/madt.h"
#include "hv/lib/errors.h"
#include "hv/lib/string.h"

/* PI Specification 1.8, vol. 2, 13.4: EFI_MP_SERVICES_PROTOCOL; GNU-EFI 3.0.15 lacks it. */
struct mp_processor_info {
	u64 processor_id; /* the APIC id */
	u32 flags;
	u32 package, core, thread;
	u32 extended[6];
	u32 reserve[8]; /* firmware newer than this text may write more */
};

#define MP_ENABLED 2u
#define MP_HEALTHY 4u

struct mp_services {
	EFI_STATUS(EFIAPI *get_number)(struct mp_services *mp, UINTN *all, UINTN *enabled);
	EFI_STATUS(EFIAPI *get_info)(struct mp_services *mp, UINTN i, struct mp_processor_info *p);
};

static u32 own_apic_id(void)
{
	u32 a = 0, b, c = 0, d, max_leaf;

	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	max_leaf = a;
	if (max_leaf >= 0xb) {
		a = 0xb, c = 0;
		__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
		if (b) /* else the leaf is not implemented (SDM vol. 2, CPUID) */
			return d;
	}
	a = 1, c = 0;
	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	return b >> 24;
}

static bool from_mp_services(struct boot_info *info, struct cpu_list *list)
{
	static EFI_GUID guid = {
	    0x3fdda605, 0xa76e, 0x4f46, {0xad, 0x29, 0x12, 0xf4, 0x53, 0x1b, 0x3d, 0x08}};
	struct mp_services *mp;
	UINTN all, enabled;

	if (efi_boot->LocateProtocol(&guid, NULL, (void **)&mp) != EFI_SUCCESS ||
	    mp->get_number(mp, &all, &enabled) != EFI_SUCCESS)
		return false;
	for (UINTN i = 0; i < all; i++) {
		struct mp_processor_info p = {0};

		if (mp->get_info(mp, i, &p) != EFI_SUCCESS)
			continue;
		if ((p.flags & (MP_ENABLED | MP_HEALTHY)) == (MP_ENABLED | MP_HEALTHY))
			cpu_list_add(list, (u32)p.processor_id, false);
		else
			warn(info, "boot: CPU with APIC id %u is %s by the firmware; not used",
			     (u32)p.processor_id,
			     p.flags & MP_ENABLED ? "reported unhealthy" : "disabled");
	}
	return list->nr > 0;
}

/* Physical memory is mapped one to one, and firmware that lies about its tables is caught by their
 * checksums. */
static const void *phys_read(void *ctx, u64 addr, size_t size)
{
	return addr + size < addr ? NULL : (const void *)addr;
}

static bool from_madt(struct boot_info *info, struct cpu_list *list)
{
	const char *why;
	int err;

	if (!info->rsdp)
		return false;
	err = madt_find_cpus(info->rsdp, phys_read, NULL, list, &why);
	if (err)
		warn(info, "boot: ACPI: %s %s", why,
		     err == E_NOENT ? "is missing" : "is malformed");
	return list->nr > 0;
}

void cpus_find(struct boot_info *info)
{
	struct cpu_list list = {.cpus = info->cpus, .max = BOOT_MAX_CPUS};

	if (from_mp_services(info, &list)) {
		info->cpu_source = CPUS_MP_SERVICES;
	} else if (from_madt(info, &list)) {
		info->cpu_source = CPUS_MADT;
	} else {
		info->cpu_source = CPUS_BSP_ONLY;
		warn(info, "boot: the firmware names no CPUs (no MP Services, no MADT); only this "
			   "one is used");
	}
	cpu_list_set_bsp(&list, own_apic_id());
	info->nr_cpus = list.nr;
	if (list.nr_lost)
		warn(info, "boot: %u CPUs more than the %u that vlag can use; they stay off",
		     list.nr_lost, BOOT_MAX_CPUS);
}
