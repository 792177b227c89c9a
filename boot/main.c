/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BOOTX64.EFI: gathers what the hypervisor needs to know into one struct boot_info, leaves the
 * firmware, and enters it. This file is the table of contents; each step has a file of its own.
 */
#include "boot/epoch.h"
#include "boot/loader.h"
#include "hv/lib/string.h"

EFI_HANDLE efi_image;
EFI_SYSTEM_TABLE *efi_system;
EFI_BOOT_SERVICES *efi_boot;

static u64 rdtsc(void)
{
	u32 lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (u64)hi << 32 | lo;
}

static u64 alloc(EFI_MEMORY_TYPE type, u64 size, u64 limit)
{
	EFI_PHYSICAL_ADDRESS addr;
	UINTN pages = ALIGN_UP(size, PAGE_SIZE) / PAGE_SIZE;
	EFI_STATUS status;

	/* Page 0 is no good to anybody; it stays taken, so that the next try gets another one. */
	do {
		addr = limit - 1;
		status = efi_boot->AllocatePages(limit ? AllocateMaxAddress : AllocateAnyPages,
						 type, pages, &addr);
	} while (status == EFI_SUCCESS && !addr);
	return status == EFI_SUCCESS ? addr : NO_ADDRESS;
}

u64 pages_alloc(u64 size, u64 limit)
{
	return alloc(EfiLoaderData, size, limit);
}

u64 pages_alloc_code(u64 size, u64 limit)
{
	return alloc(EfiLoaderCode, size, limit);
}

void pages_free(u64 addr, u64 size)
{
	efi_boot->FreePages(addr, ALIGN_UP(size, PAGE_SIZE) / PAGE_SIZE);
}

static struct boot_info *info_alloc(u64 tsc_at_start)
{
	struct boot_info *info = (void *)pages_alloc(sizeof(*info), 0);

	if (!info)
		return NULL;
	memset(info, 0, sizeof(*info));
	info->magic = BOOT_INFO_MAGIC;
	info->version = BOOT_INFO_VERSION;
	info->size = sizeof(*info);
	info->tsc_at_start = tsc_at_start;
	return info;
}

static bool guid_equal(const EFI_GUID *a, const EFI_GUID *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The ACPI 2.0 root if there is one: it leads to the 64-bit XSDT. */
static void rsdp_find(struct boot_info *info)
{
	static const EFI_GUID acpi_20 = ACPI_20_TABLE_GUID, acpi_10 = ACPI_TABLE_GUID;

	for (UINTN i = 0; i < efi_system->NumberOfTableEntries; i++) {
		const EFI_CONFIGURATION_TABLE *t = &efi_system->ConfigurationTable[i];

		if (guid_equal(&t->VendorGuid, &acpi_20)) {
			info->rsdp = (u64)t->VendorTable;
			return;
		}
		if (guid_equal(&t->VendorGuid, &acpi_10))
			info->rsdp = (u64)t->VendorTable;
	}
}

static void clock_read(struct boot_info *info)
{
	EFI_TIME t;

	if (efi_system->RuntimeServices->GetTime(&t, NULL) != EFI_SUCCESS)
		return;
	info->epoch_s = epoch_seconds(t.Year, t.Month, t.Day, t.Hour, t.Minute, t.Second,
				      t.TimeZone == EFI_UNSPECIFIED_TIMEZONE ? 0 : t.TimeZone);
}

static void trampoline_alloc(struct boot_info *info)
{
	info->trampoline = pages_alloc(PAGE_SIZE, 0xa0000);
	if (!info->trampoline)
		warn(info, "boot: no free page below 640K; other CPUs cannot be started");
}

static void __noreturn enter(u64 entry, struct boot_info *info)
{
	__asm__ volatile("cli; cld; and $-16, %%rsp; call *%0" ::"r"(entry), "D"(info) : "memory");
	__builtin_unreachable();
}

EFI_STATUS efi_main(EFI_HANDLE image, EFI_SYSTEM_TABLE *system);
EFI_STATUS efi_main(EFI_HANDLE image, EFI_SYSTEM_TABLE *system)
{
	u64 tsc = rdtsc(), entry;
	struct boot_info *info;

	efi_image = image;
	efi_system = system;
	efi_boot = system->BootServices;
	efi_boot->SetWatchdogTimer(0, 0, 0, NULL); /* slow disks are not dead */

	say("vlag: loading");
	info = info_alloc(tsc);
	if (!info) {
		say("boot: no memory for the boot information; %zu KiB are needed",
		    sizeof(*info) / 1024);
		return EFI_OUT_OF_RESOURCES;
	}
	entry = image_load(info);
	if (!entry)
		return EFI_LOAD_ERROR;
	files_read(info);
	rsdp_find(info);
	cpus_find(info);
	trampoline_alloc(info);
	clock_read(info);
	if (!leave_firmware(info))
		return EFI_ABORTED;
	enter(entry, info);
}
