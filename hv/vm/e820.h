/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest's memory map: which addresses are RAM that it may use, in the form of the BIOS's E820
 * call, which Linux and Multiboot share. Pure.
 */
#ifndef VLAG_VM_E820_H
#define VLAG_VM_E820_H

#include "hv/vm/guest_mem.h"

/* Fixed places below 1 MiB. */
#define GUEST_EBDA 0x9fc00ull	     /* the extended BIOS data area: end of usable low memory */
#define GUEST_LEGACY_HOLE 0xa0000ull /* VGA and ROM space ... */
#define GUEST_HIGH_RAM 0x100000ull   /* ... up to here */

enum e820_type { E820_RAM = 1, E820_RESERVED = 2 };

/* As the BIOS returns it and boot_params holds it: 20 bytes. */
struct e820_entry {
	u64 base;
	u64 size; /* bytes */
	u32 type; /* enum e820_type */
} __packed;

#define E820_MAX (GUEST_MEM_SLOTS + 3)

/* Fills @map for a guest with @mem, ascending, without overlaps. Returns the number of entries. */
u32 e820_build(const struct guest_mem *mem, struct e820_entry map[E820_MAX]);

#endif
