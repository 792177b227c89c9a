/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the loader with what looks like a bzImage. The input is XORed over a small valid image, so
 * that the empty input is a kernel that loads and each bit set is one deviation:
 *	byte 0: RAM in units of 2 MiB, byte 1-2: initrd size in KiB, byte 3: command line length in
 *	units of 16, bytes 4-5: bytes cut off the file, the rest: over the file.
 * Whatever loads must lie in RAM and must not overlap.
 */
// sources: hv/vm/load.c hv/vm/load_linux.c hv/vm/load_multiboot.c hv/vm/e820.c
// sources: hv/lib/fmt.c hv/lib/string.c
#include "hv/lib/bug.h"
#include "hv/vm/e820.h"
#include "hv/vm/load.h"
#include "tests/unit/load_images.h"

#define INITRD_MAX (64 * MiB)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_loaded(const struct load_request *req, const struct cpu_boot_state *st, u64 ram)
{
	u64 kernel_end = st->kernel_gpa + st->kernel_size;
	u64 initrd_end = st->initrd_gpa + st->initrd_size;

	BUG_ON(st->mode != LOAD_LINUX_64);
	BUG_ON(st->kernel_gpa < GUEST_HIGH_RAM || kernel_end > ram);
	BUG_ON(st->rip < st->kernel_gpa || st->rip >= kernel_end);
	BUG_ON(st->rsi == 0 || st->rsi + LINUX_PARAMS_SIZE > GUEST_EBDA);
	BUG_ON(st->initrd_size != req->initrd.size);
	if (st->initrd_size) {
		BUG_ON(st->initrd_gpa < GUEST_HIGH_RAM || initrd_end > ram);
		BUG_ON(st->initrd_gpa < kernel_end && st->kernel_gpa < initrd_end);
	}
	BUG_ON(memchr(st->what, 0, sizeof(st->what)) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static u8 *initrd;
	u8 head[6] = {0}, *image = malloc(BZ_SIZE), *file;
	char cmdline[256 * 16], err[256];
	struct cpu_boot_state st;
	struct guest_mem mem;
	u64 cut;

	if (!initrd)
		initrd = calloc(1, INITRD_MAX);
	memcpy(head, data, min(size, sizeof(head)));
	bz_make(image);
	for (size_t i = sizeof(head); i < size && i - sizeof(head) < BZ_SIZE; i++)
		image[i - sizeof(head)] ^= data[i];
	cut = min((u64)(head[4] | head[5] << 8), (u64)BZ_SIZE - 1);
	file = malloc(BZ_SIZE - cut);
	memcpy(file, image, BZ_SIZE - cut);
	memset(cmdline, 'c', sizeof(cmdline));
	cmdline[head[3] * 16] = 0;
	mem = images_ram_reused((32 ^ (head[0] & 63)) * 2 * MiB + 2 * MiB);

	struct load_request req = {
	    .kernel = {"/k", file, BZ_SIZE - cut},
	    .initrd = {"/i", initrd, (head[1] | head[2] << 8) * KiB},
	    .cmdline = cmdline,
	};

	if (load_guest(&mem, &req, &st, err, sizeof(err)) == 0 && st.mode == LOAD_LINUX_64)
		check_loaded(&req, &st, mem.slots[0].size);
	else
		BUG_ON(!st.bad_key || strlen(err) < 10 || strchr(err, '\n'));
	free(file);
	free(image);
	return 0;
}
