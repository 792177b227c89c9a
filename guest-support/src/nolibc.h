/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few system calls that the smallest guest programs need, so that they can do without a C
 * library: a static glibc program is 700 KB that the guest would have to unpack at each boot.
 * Programs with more to do use glibc.
 */
#ifndef GUEST_SUPPORT_NOLIBC_H
#define GUEST_SUPPORT_NOLIBC_H

#include <asm/unistd.h>
#include <stddef.h>

static inline long syscall5(long number, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long syscall3(long number, long a, long b, long c)
{
	return syscall5(number, a, b, c, 0, 0);
}

/* A static program starts with its stack pointer at argc; main() never returns to anything. */
#define NOLIBC_START                                                                               \
	__asm__(".globl _start\n"                                                                  \
		"_start:\n"                                                                        \
		"	xor %ebp, %ebp\n"                                                                \
		"	mov (%rsp), %rdi\n"                                                              \
		"	lea 8(%rsp), %rsi\n"                                                             \
		"	and $-16, %rsp\n"                                                                \
		"	call main\n"                                                                     \
		"	mov %eax, %edi\n"                                                                \
		"	mov $60, %eax\n"                                                                 \
		"	syscall\n");

static inline unsigned long rdtsc(void)
{
	unsigned int low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (unsigned long)high << 32 | low;
}

static inline size_t text_length(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

/* Write VALUE in decimal and a NUL to OUT, which holds 21 characters; returns the length without
 * the NUL. */
static inline size_t format_decimal(unsigned long value, char *out)
{
	char reversed[20];
	size_t length = 0;

	do {
		reversed[length++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	for (size_t i = 0; i < length; i++)
		out[i] = reversed[length - 1 - i];
	out[length] = '\0';
	return length;
}

#endif
