/* SPDX-License-Identifier: BSD-2-Clause */
/* The way out of the firmware: the last memory map, and ExitBootServices. */
#include "boot/loader.h"
#include "boot/memmap.h"

/* Each step may change the map, which makes the firmware refuse (UEFI 2.10, 7.4.6). */
#define EXIT_TRIES 8
/* Descriptors that our own allocation of the buffer, and firmware events, may add. */
#define SPARE_DESCRIPTORS 32

struct firmware_map {
	EFI_MEMORY_DESCRIPTOR *descriptors;
	UINTN room, size, descriptor_size, key;
};

static bool buffer_alloc(struct firmware_map *map)
{
	UINT32 version;

	map->size = 0;
	if (efi_boot->GetMemoryMap(&map->size, NULL, &map->key, &map->descriptor_size, &version) !=
	    EFI_BUFFER_TOO_SMALL)
		return false;
	map->room = map->size + SPARE_DESCRIPTORS * map->descriptor_size;
	map->descriptors = (void *)pages_alloc(map->room, 0);
	return map->descriptors != NULL;
}

static EFI_STATUS exit_boot_services(struct firmware_map *map)
{
	EFI_STATUS status = EFI_ABORTED;
	UINT32 version;

	for (u32 i = 0; i < EXIT_TRIES; i++) {
		map->size = map->room;
		status = efi_boot->GetMemoryMap(&map->size, map->descriptors, &map->key,
						&map->descriptor_size, &version);
		if (status != EFI_SUCCESS)
			break;
		status = efi_boot->ExitBootServices(efi_image, map->key);
		if (status != EFI_INVALID_PARAMETER)
			break;
	}
	return status;
}

bool leave_firmware(struct boot_info *info)
{
	struct memmap ranges = {.ranges = info->ranges, .max = BOOT_MAX_RANGES};
	struct firmware_map map = {0};
	EFI_STATUS status;

	if (!buffer_alloc(&map)) {
		warn(info, "boot: the firmware gives no memory map");
		return false;
	}
	status = exit_boot_services(&map);
	if (status != EFI_SUCCESS) {
		/* After a first ExitBootServices only the memory services are sure to work; the
		 * console usually does, and there is nothing else to lose. */
		warn(info, "boot: the firmware refuses to let go (ExitBootServices: 0x%llx)",
		     (unsigned long long)status);
		return false;
	}
	memmap_add_uefi(&ranges, map.descriptors, map.size, map.descriptor_size);
	memmap_set(&ranges, info->image_base,
		   info->image_size + info->symtab_size + info->strtab_size, MEM_IMAGE);
	if (info->trampoline)
		memmap_set(&ranges, info->trampoline, PAGE_SIZE, MEM_BOOT);
	info->nr_ranges = ranges.nr;
	if (ranges.nr_lost)
		note(info,
		     "boot: the firmware's memory map has too many pieces; the %u smallest (%llu "
		     "KiB in all) are not used",
		     ranges.nr_lost, (unsigned long long)ranges.lost_bytes / KiB);
	return true;
}
