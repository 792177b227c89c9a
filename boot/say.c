/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines for the firmware's console, and those that the hypervisor shows again. */
#include "boot/loader.h"
#include "hv/lib/bug.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"

#define LINE_MAX 512

static void console_write(const char *text)
{
	SIMPLE_TEXT_OUTPUT_INTERFACE *out = efi_system->ConOut;
	CHAR16 wide[LINE_MAX + 2]; /* a line, CR LF aside, becomes no longer */
	size_t n = 0;

	if (!out)
		return;
	while (*text && n < LINE_MAX - 1)
		wide[n++] = (u8)*text++;
	wide[n++] = '\r';
	wide[n++] = '\n';
	wide[n] = 0;
	out->OutputString(out, wide);
}

void say(const char *fmt, ...)
{
	char line[LINE_MAX];
	va_list args;

	va_start(args, fmt);
	fmt_vprint(line, sizeof(line), fmt, args);
	va_end(args);
	console_write(line);
}

static void message_add(struct boot_info *info, const char *line)
{
	size_t n = strlen(line), room = sizeof(info->messages) - info->messages_len;

	if (n + 2 > room) { /* newline and NUL */
		info->messages_lost++;
		return;
	}
	memcpy(info->messages + info->messages_len, line, n);
	info->messages_len += (u32)n;
	info->messages[info->messages_len++] = '\n';
	info->messages[info->messages_len] = 0;
}

void warn_line(void *info, const char *line)
{
	console_write(line);
	message_add(info, line);
}

void note(struct boot_info *info, const char *fmt, ...)
{
	char line[LINE_MAX];
	va_list args;

	va_start(args, fmt);
	fmt_vprint(line, sizeof(line), fmt, args);
	va_end(args);
	message_add(info, line);
}

void warn(struct boot_info *info, const char *fmt, ...)
{
	char line[LINE_MAX];
	va_list args;

	va_start(args, fmt);
	fmt_vprint(line, sizeof(line), fmt, args);
	va_end(args);
	warn_line(info, line);
}

__noreturn void bug(const char *file, int line, const char *what)
{
	say("boot: BUG at %s:%d: %s", file, line, what);
	for (;;)
		__asm__ volatile("hlt");
}
