/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the configuration and the files that it names from the volume that vlag was loaded from. */
#include "boot/loader.h"
#include "hv/lib/errors.h"
#include "hv/lib/string.h"

#define CONFIG_FILE "vlag.cfg"
#define CONFIG_MAX (1 * MiB)
/* One call for most files, as each costs the firmware's FAT driver a walk; not more at once,
 * because some drivers fail with very large transfers. */
#define READ_CHUNK (64 * MiB)
#define SLOW_FILE (16 * MiB) /* from here on a line says what is being waited for */

static EFI_FILE_HANDLE root_open(void)
{
	static EFI_GUID loaded_image = EFI_LOADED_IMAGE_PROTOCOL_GUID;
	static EFI_GUID file_system = EFI_SIMPLE_FILE_SYSTEM_PROTOCOL_GUID;
	EFI_LOADED_IMAGE *image;
	EFI_FILE_IO_INTERFACE *volume;
	EFI_FILE_HANDLE root;

	if (efi_boot->HandleProtocol(efi_image, &loaded_image, (void **)&image) != EFI_SUCCESS ||
	    efi_boot->HandleProtocol(image->DeviceHandle, &file_system, (void **)&volume) !=
		EFI_SUCCESS ||
	    volume->OpenVolume(volume, &root) != EFI_SUCCESS)
		return NULL;
	return root;
}

static EFI_FILE_HANDLE file_open(EFI_FILE_HANDLE root, const char *name)
{
	CHAR16 path[CFG_PATH_MAX];
	EFI_FILE_HANDLE file;
	size_t n = 0;

	for (; name[n] && n < CFG_PATH_MAX - 1; n++)
		path[n] = name[n] == '/' ? '\\' : (u8)name[n];
	path[n] = 0;
	return root->Open(root, &file, path, EFI_FILE_MODE_READ, 0) == EFI_SUCCESS ? file : NULL;
}

/* The file's size by moving to its end, which needs no buffer for EFI_FILE_INFO; directories refuse
 * it (UEFI 2.10, 13.5.9). */
static int file_size(EFI_FILE_HANDLE file, u64 *size)
{
	if (file->SetPosition(file, ~0ull) != EFI_SUCCESS ||
	    file->GetPosition(file, size) != EFI_SUCCESS ||
	    file->SetPosition(file, 0) != EFI_SUCCESS)
		return E_IO;
	return 0;
}

static int read_all(EFI_FILE_HANDLE file, u64 addr, u64 size)
{
	for (u64 done = 0; done < size;) {
		UINTN n = min(size - done, READ_CHUNK);

		if (file->Read(file, &n, (void *)(addr + done)) != EFI_SUCCESS || !n)
			return E_IO;
		done += n;
	}
	return 0;
}

/* Reads @name into fresh pages. E_NOENT, E_IO, E_NOMEM, or E_RANGE if it is larger than @limit. */
static int file_load(EFI_FILE_HANDLE root, const char *name, u64 limit, u64 *addr, u64 *size)
{
	EFI_FILE_HANDLE file = file_open(root, name);
	int err;

	if (!file)
		return E_NOENT;
	err = file_size(file, size);
	if (!err && *size > limit)
		err = E_RANGE;
	if (!err) {
		if (*size >= SLOW_FILE)
			say("vlag: reading %s, %llu MiB", name, (unsigned long long)*size / MiB);
		*addr = pages_alloc(max(*size, 1ull), 0);
		err = *addr ? read_all(file, *addr, *size) : E_NOMEM;
		if (err && *addr)
			pages_free(*addr, *size);
	}
	file->Close(file);
	return err;
}

static void config_read(EFI_FILE_HANDLE root, struct boot_info *info)
{
	u64 addr = 0, size = 0;
	int err = root ? file_load(root, CONFIG_FILE, CONFIG_MAX, &addr, &size) : E_IO;

	/* Without a file: the defaults, and no VM. */
	config_parse(&info->config, CONFIG_FILE, (const char *)addr, err ? 0 : size, warn_line,
		     info);
	if (!root)
		warn(info, "boot: the volume that vlag was loaded from cannot be read; start "
			   "BOOTX64.EFI from a FAT volume that also holds \\" CONFIG_FILE);
	else if (err == E_NOENT)
		warn(info, CONFIG_FILE ": not found; put it into the root directory of the volume "
				       "that vlag is started from");
	else if (err == E_RANGE)
		warn(info, CONFIG_FILE ": %llu KiB are too large; at most %llu KiB are possible",
		     (unsigned long long)size / KiB, CONFIG_MAX / KiB);
	else if (err)
		warn(info, CONFIG_FILE ": cannot be read: %s", error_text(err));
	else if (!info->config.nr_vms)
		warn(info, CONFIG_FILE ": has no [vm NAME] section, so there is nothing to run");
	if (!err)
		pages_free(addr, size);
}

static struct boot_file *file_known(struct boot_info *info, const char *name)
{
	for (u32 i = 0; i < info->nr_files; i++) {
		if (strcmp(info->files[i].name, name) == 0)
			return &info->files[i];
	}
	return NULL;
}

static const char *advice(int err)
{
	switch (err) {
	case E_NOENT:
		return "is not on the volume that vlag was started from; copy it there or correct "
		       "the path";
	case E_NOMEM:
		return "does not fit into memory";
	default:
		return "cannot be read (is it a directory, or the disk damaged?)";
	}
}

/* Makes sure that @name is in info->files; several VMs may name one file, which is read once. */
static void file_need(EFI_FILE_HANDLE root, struct boot_info *info, struct cfg_vm *vm,
		      const char *key, u32 line, const char *name)
{
	struct boot_file *f = file_known(info, name);

	if (!f && info->nr_files == BOOT_MAX_FILES) {
		warn(info,
		     CONFIG_FILE ":%u: [vm %s] %s: one file too many; at most %d are possible",
		     line, vm->name, key, BOOT_MAX_FILES);
		vm->bad = true;
		return;
	}
	if (!f) {
		f = &info->files[info->nr_files++];
		str_copy(f->name, name, sizeof(f->name));
		f->error = file_load(root, name, ~0ull, &f->addr, &f->size);
		if (f->error)
			f->addr = f->size = 0;
	}
	if (f->error) {
		warn(info, CONFIG_FILE ":%u: [vm %s] %s: \"%s\" %s", line, vm->name, key, name,
		     advice(f->error));
		vm->bad = true;
	}
}

void files_read(struct boot_info *info)
{
	EFI_FILE_HANDLE root = root_open();

	config_read(root, info);
	for (u32 i = 0; i < info->config.nr_vms; i++) {
		struct cfg_vm *vm = &info->config.vms[i];

		if (vm->bad)
			continue;
		file_need(root, info, vm, "kernel", vm->kernel_line, vm->kernel);
		if (vm->initrd[0])
			file_need(root, info, vm, "initrd", vm->initrd_line, vm->initrd);
		for (u32 m = 0; m < vm->nr_modules; m++)
			file_need(root, info, vm, "modules", vm->modules_line, vm->modules[m]);
	}
	if (root)
		root->Close(root);
}
