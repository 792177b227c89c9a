/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of Linux's x86 boot protocol that the loader uses (Linux, Documentation/arch/x86/
 * boot.rst and zero-page.rst): layouts and numbers only.
 */
#ifndef VLAG_VM_LINUX_BOOT_H
#define VLAG_VM_LINUX_BOOT_H

#include "hv/lib/types.h"

#define LINUX_SETUP_OFFSET 0x1f1 /* of struct linux_setup in the file and in boot_params */
#define LINUX_MAGIC_OFFSET 0x202
#define LINUX_MAGIC 0x53726448 /* "HdrS" */
#define LINUX_BOOT_FLAG 0xaa55
#define LINUX_MIN_VERSION 0x020c /* 2.12: xloadflags; Linux 3.8 */
#define LINUX_SECTOR 512
#define LINUX_DEFAULT_SETUP_SECTS 4 /* what setup_sects = 0 means */
#define LINUX_ENTRY_64 0x200	    /* 64-bit entry point, from the load address */
#define LINUX_VERSION_BASE 0x200    /* kernel_version counts from here */
#define LINUX_DEFAULT_CMDLINE 255   /* what cmdline_size = 0 means */
#define LINUX_LOADER_UNDEFINED 0xff /* type_of_loader without an assigned number */
#define LINUX_VIDEO_NORMAL 0xffff

#define LINUX_LOADED_HIGH BIT(0)   /* loadflags */
#define LINUX_XLF_KERNEL_64 BIT(0) /* xloadflags */

/* struct setup_header of Linux, offset 0x1f1 up to 0x26c (protocol 2.15). */
struct linux_setup {
	u8 setup_sects; /* 0x1f1 */
	u16 root_flags;
	u32 syssize; /* 0x1f4: protected-mode code in units of 16 bytes */
	u16 ram_size;
	u16 vid_mode; /* 0x1fa */
	u16 root_dev;
	u16 boot_flag; /* 0x1fe */
	u8 jump_opcode;
	u8 jump_offset; /* 0x201: the header ends at 0x202 + this */
	u32 magic;	/* 0x202 */
	u16 version;
	u32 realmode_swtch;
	u16 start_sys_seg;
	u16 kernel_version; /* 0x20e */
	u8 type_of_loader;  /* 0x210 */
	u8 loadflags;
	u16 setup_move_size;
	u32 code32_start;  /* 0x214 */
	u32 ramdisk_image; /* 0x218 */
	u32 ramdisk_size;
	u32 bootsect_kludge;
	u16 heap_end_ptr;
	u8 ext_loader_ver;
	u8 ext_loader_type;
	u32 cmd_line_ptr;     /* 0x228 */
	u32 initrd_addr_max;  /* 0x22c: highest address that the initrd may occupy */
	u32 kernel_alignment; /* 0x230 */
	u8 relocatable_kernel;
	u8 min_alignment;
	u16 xloadflags;	  /* 0x236 */
	u32 cmdline_size; /* 0x238: without the NUL */
	u32 hardware_subarch;
	u64 hardware_subarch_data;
	u32 payload_offset;
	u32 payload_length;
	u64 setup_data;
	u64 pref_address; /* 0x258 */
	u32 init_size; /* 0x260: memory needed from the load address until it knows its own map */
	u32 handover_offset;
	u32 kernel_info_offset; /* 0x268 */
} __packed;

_Static_assert(offsetof(struct linux_setup, magic) == LINUX_MAGIC_OFFSET - LINUX_SETUP_OFFSET, "");
_Static_assert(offsetof(struct linux_setup, xloadflags) == 0x236 - LINUX_SETUP_OFFSET, "");
_Static_assert(offsetof(struct linux_setup, init_size) == 0x260 - LINUX_SETUP_OFFSET, "");
_Static_assert(sizeof(struct linux_setup) == 0x26c - LINUX_SETUP_OFFSET, "");

#define LINUX_SETUP_MIN_END 0x268 /* of the header in protocol 2.12 */

/* boot_params ("the zero page"): 4096 bytes, of which these are set. */
#define LINUX_PARAMS_SIZE 4096
#define LINUX_PARAMS_RSDP 0x070	      /* u64 acpi_rsdp_addr */
#define LINUX_PARAMS_E820_COUNT 0x1e8 /* u8 */
#define LINUX_PARAMS_E820 0x2d0	      /* struct e820_entry[128] */

#endif
