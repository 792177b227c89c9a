/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the loader with what looks like a Multiboot image. The input is XORed over a small valid
 * image, so that the empty input is one that loads:
 *	byte 0: RAM in units of 2 MiB, byte 1: sizes of two modules, bytes 2-3: bytes cut off the
 *	file, then the ELF header and its segment (84 bytes), then the file from its Multiboot
 *	header on.
 * The header's checksum is made right again unless bit 7 of byte 1 is set.
 */
// sources: hv/vm/load.c hv/vm/load_linux.c hv/vm/load_multiboot.c hv/vm/e820.c
// sources: hv/lib/fmt.c hv/lib/string.c
#include "hv/lib/bug.h"
#include "hv/vm/e820.h"
#include "hv/vm/load.h"
#include "tests/unit/load_images.h"

#define ELF_BYTES (sizeof(struct elf32_header) + sizeof(struct elf32_segment))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_loaded(const struct load_request *req, const struct cpu_boot_state *st,
			 const struct guest_mem *mem)
{
	u64 ram = mem->slots[0].size, kernel_end = st->kernel_gpa + st->kernel_size;
	const struct mb_info *info = guest_ptr(mem, st->rbx, sizeof(*info));
	const struct mb_module *m;
	u64 free_from = st->rbx + sizeof(*info);

	BUG_ON(kernel_end > ram);
	BUG_ON(st->rip < st->kernel_gpa || st->rip >= kernel_end);
	BUG_ON(!info || st->rbx < kernel_end || st->rbx < GUEST_HIGH_RAM);
	BUG_ON(info->mods_count != req->nr_modules);
	m = guest_ptr(mem, info->mods_addr, sizeof(*m) * info->mods_count);
	for (u32 i = 0; i < info->mods_count; i++) {
		BUG_ON(m[i].start < free_from || m[i].end > ram || m[i].start % 4096);
		BUG_ON(m[i].end - m[i].start != req->modules[i].size);
		free_from = m[i].end;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static u8 module[64 * KiB];
	u8 head[4] = {0}, *image = malloc(MB_SIZE), *file;
	struct cpu_boot_state st;
	struct guest_mem mem;
	char err[256];
	u64 cut;

	memcpy(head, data, min(size, sizeof(head)));
	mb_make(image);
	for (size_t i = sizeof(head), at = 0; i < size; i++, at++) {
		u64 off = at < ELF_BYTES ? at : at - ELF_BYTES + MB_SEG_OFFSET;

		if (off < MB_SIZE)
			image[off] ^= data[i];
	}
	if (!(head[1] & 0x80))
		mb_flags(image, mb_header(image)->flags);
	cut = min((u64)(head[2] | head[3] << 8), (u64)MB_SIZE - 1);
	file = malloc(MB_SIZE - cut);
	memcpy(file, image, MB_SIZE - cut);
	mem = images_ram_reused((8 ^ (head[0] & 15)) * 2 * MiB + 2 * MiB);

	struct load_request req = {
	    .kernel = {"/k", file, MB_SIZE - cut},
	    .modules = {{"/m1", module, (head[1] & 7) * 5000}, {"/m2", module, head[1] & 0x38}},
	    .nr_modules = 2,
	    .cmdline = "x",
	};

	if (load_guest(&mem, &req, &st, err, sizeof(err)) == 0)
		check_loaded(&req, &st, &mem);
	else
		BUG_ON(!st.bad_key || strlen(err) < 10 || strchr(err, '\n'));
	free(file);
	free(image);
	return 0;
}
