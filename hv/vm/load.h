/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading a guest's image into its memory: Linux bzImage (64-bit boot protocol) and Multiboot 1.
 * Pure C: file bytes and guest memory in, the boot CPU's first state out. What is known of a file
 * is only what its bytes say, and each of them is checked. Nothing of VMX lives here, but the
 * segment attributes have the VMCS's encoding (SDM vol. 3, 25.4.1, "access rights").
 *
 * load_linux.c and load_multiboot.c hold the formats, load.c tells them apart, e820.c says where
 * RAM is.
 */
#ifndef VLAG_VM_LOAD_H
#define VLAG_VM_LOAD_H

#include "hv/config/config.h"
#include "hv/lib/types.h"
#include "hv/vm/guest_mem.h"

struct load_file {
	const char *name; /* for messages */
	const u8 *data;	  /* NULL: there is none */
	u64 size;	  /* bytes */
};

struct load_request {
	struct load_file kernel;
	struct load_file initrd; /* Linux only */
	struct load_file
	    modules[CFG_MAX_MODULES]; /* Multiboot only; each one's string is its name */
	u32 nr_modules;
	const char *cmdline; /* NUL-terminated, not NULL */
	u64 rsdp;	     /* guest-physical, from acpi_tables_build(); 0 if there is none */
};

enum load_mode {
	LOAD_LINUX_64,	   /* long mode, paging on, identity mapping of the first 4 GiB */
	LOAD_MULTIBOOT_32, /* protected mode, flat segments, paging off */
};

/* One segment register as the VMCS holds it. */
struct boot_segment {
	u16 selector;
	u32 access; /* bit 16: unusable */
	u32 limit;  /* bytes - 1 */
	u64 base;
};

/*
 * What the boot CPU's registers hold at the first instruction. Registers not listed are 0, DR6 and
 * DR7 as after reset, IDTR empty (base 0, limit 0), interrupts off, LDTR unusable. CR0 and CR4 are
 * what the guest shall read; bits that VMX wants besides (CR0.NE, CR4.VMXE) are the caller's to add
 * and to hide.
 */
struct cpu_boot_state {
	u32 mode; /* enum load_mode */
	u64 rip, rsp, rflags;
	u64 rax, rbx, rsi;
	u64 cr0, cr3, cr4, efer;
	u64 gdt_base;
	u32 gdt_limit;
	struct boot_segment cs;
	struct boot_segment data; /* DS, ES, FS, GS and SS alike */
	struct boot_segment tr;	  /* a busy TSS, as VM entry demands */
	struct boot_segment ldtr; /* unusable */

	/* For the console: where things lie. */
	u64 kernel_gpa, kernel_size; /* all the memory it asks for, not just the file */
	u64 initrd_gpa, initrd_size; /* or the first module ... end of the last */
	char what[80];		     /* "Linux 6.1.0-13-cloud-amd64 (...)", cut; "Multiboot" */

	/* After an error: the config key whose value is at fault: "kernel", "initrd", "modules",
	 * "cmdline" or "memory". A literal. */
	const char *bad_key;
};

/*
 * Detects the format of @req->kernel, loads it and all that belongs to it into @mem, and fills
 * @state. Guest memory that the loader does not write keeps its content: it must be zero for a
 * first start and after a reset. Writes nothing outside @mem.
 *
 * Returns 0, or a negative enum vlag_error with one line (no newline) in @err of @errsz bytes that
 * names the file, what is wrong and what would be right, and @state->bad_key set.
 */
int load_guest(struct guest_mem *mem, const struct load_request *req, struct cpu_boot_state *state,
	       char *err, size_t errsz);

#endif
