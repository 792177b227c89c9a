/* SPDX-License-Identifier: BSD-2-Clause */
/* From the assembly entry to guest_main() and to the end, and what the loader passed. */
#include <stdarg.h>

#include "hv/lib/fmt.h"
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

void guest_start(void);

u8 stacks[MAX_CPUS][STACK_SIZE] __aligned(STACK_SIZE);

__noreturn void test_exit(u32 status)
{
	outl(PORT_DEBUG_EXIT, status);
	for (;;)
		__asm__ volatile("cli; hlt");
}

__noreturn void test_pass(void)
{
	printf("guest: " GUEST_NAME ": PASS\n");
	test_exit(0);
}

static __noreturn void end(const char *word, u32 status, const char *fmt, va_list args)
{
	char why[256];

	fmt_vprint(why, sizeof(why), fmt, args);
	printf("guest: " GUEST_NAME ": %s: %s\n", word, why);
	test_exit(status);
}

__noreturn void test_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	end("FAIL", 1, fmt, args);
}

__noreturn void test_skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	end("SKIP", 0, fmt, args);
}

const struct mb_info *multiboot_info(void)
{
	return (const struct mb_info *)(u64)boot_regs.ebx;
}

const char *cmdline(void)
{
	const struct mb_info *info = multiboot_info();

	return info->flags & MB_INFO_CMDLINE ? (const char *)(u64)info->cmdline : "";
}

static u64 number(const char *s)
{
	u64 base = 10, v = 0;

	if (s[0] == '0' && s[1] == 'x') {
		base = 16;
		s += 2;
	}
	for (;; s++) {
		u64 d = *s >= '0' && *s <= '9'	 ? *s - '0'
			: *s >= 'a' && *s <= 'f' ? *s - 'a' + 10
						 : 99;

		if (d >= base)
			return v;
		v = v * base + d;
	}
}

u64 arg(const char *key, u64 otherwise)
{
	size_t len = strlen(key);

	for (const char *s = cmdline(); *s; s++) {
		bool starts = s == cmdline() || s[-1] == ' ';

		if (starts && !strncmp(s, key, len) && s[len] == '=')
			return number(s + len + 1);
	}
	return otherwise;
}

const char *hypervisor(void)
{
	static char name[13];
	u32 r[4];

	cpuid(1, 0, r);
	if (r[2] & BIT(31)) {
		cpuid(0x40000000, 0, r);
		memcpy(name, &r[1], 12);
	}
	return name;
}

__noreturn void bug(const char *file, int line, const char *what);

/* For hv/lib, whose assertions end up here. */
__noreturn void bug(const char *file, int line, const char *what)
{
	test_fail("%s:%d: %s", file, line, what);
}

void guest_start(void)
{
	console_init();
	idt_init();
	idt_load();
	if (boot_regs.eax != MB_LOADER_MAGIC)
		test_fail("EAX is %08x at the entry, not %08x", boot_regs.eax, MB_LOADER_MAGIC);
	pic_mask();
	apic_init();
	if (arg("x2apic", x2apic) != x2apic)
		apic_set_mode(!x2apic);
	if (guest_main() == 0)
		test_pass();
	test_fail("guest_main() says so");
}
