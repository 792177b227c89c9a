/* SPDX-License-Identifier: BSD-2-Clause */
/* printf on COM1, polled. One line at a time where several CPUs print. */
#include <stdarg.h>

#include "hv/lib/fmt.h"
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

static u32 lock;

void console_init(void)
{
	outb(COM1 + 1, 0);    /* no interrupts */
	outb(COM1 + 3, 0x80); /* divisor 1: 115200 baud */
	outb(COM1 + 0, 1);
	outb(COM1 + 1, 0);
	outb(COM1 + 3, 3); /* 8N1 */
	outb(COM1 + 2, 7); /* FIFOs on and empty */
	outb(COM1 + 4, 3);
}

static void put(char c)
{
	while (!(inb(COM1 + 5) & 0x20))
		pause();
	outb(COM1, c);
}

void console_write(const char *s, size_t len)
{
	for (; len; len--, s++) {
		if (*s == '\n')
			put('\r');
		put(*s);
	}
}

int printf(const char *fmt, ...)
{
	char buf[512];
	va_list args;
	int n;

	va_start(args, fmt);
	n = fmt_vprint(buf, sizeof(buf), fmt, args);
	va_end(args);
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		pause();
	console_write(buf, strlen(buf));
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	return n;
}
