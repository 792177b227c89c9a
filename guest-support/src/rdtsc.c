/* SPDX-License-Identifier: BSD-2-Clause */
// cflags: -nostdlib -ffreestanding -fno-stack-protector -fcf-protection=none
/* rdtsc: print the time stamp counter, in decimal, for scripts that time what a guest does. */
#include "nolibc.h"

NOLIBC_START

int main(void);

int main(void)
{
	char text[22];
	size_t length = format_decimal(rdtsc(), text);

	text[length++] = '\n';
	return syscall3(__NR_write, 1, (long)text, (long)length) == (long)length ? 0 : 1;
}
