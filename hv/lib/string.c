/* SPDX-License-Identifier: BSD-2-Clause */
/* Freestanding string functions (the host builds use the C library's). rep movs/stos: fast on
 * hardware, small everywhere. */
#include "hv/lib/string.h"

#ifndef VLAG_HOST
void *memcpy(void *dst, const void *src, size_t n)
{
	void *ret = dst;

	__asm__ volatile("rep movsq" : "+D"(dst), "+S"(src) : "c"(n / 8) : "memory");
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src) : "c"(n % 8) : "memory");
	return ret;
}

void *memmove(void *dst, const void *src, size_t n)
{
	u8 *d = dst;
	const u8 *s = src;

	if (d <= s || d >= s + n)
		return memcpy(dst, src, n);
	while (n--)
		d[n] = s[n];
	return dst;
}

void *memset(void *dst, int c, size_t n)
{
	void *ret = dst;
	u64 word = (u8)c * 0x0101010101010101ull;

	__asm__ volatile("rep stosq" : "+D"(dst) : "c"(n / 8), "a"(word) : "memory");
	__asm__ volatile("rep stosb" : "+D"(dst) : "c"(n % 8), "a"(word) : "memory");
	return ret;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *x = a, *y = b;

	for (; n; n--, x++, y++) {
		if (*x != *y)
			return *x - *y;
	}
	return 0;
}

void *memchr(const void *s, int c, size_t n)
{
	const u8 *p = s;

	for (; n; n--, p++) {
		if (*p == (u8)c)
			return (void *)p;
	}
	return NULL;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

size_t strnlen(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i])
		i++;
	return i;
}

int strcmp(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (u8)*a - (u8)*b;
}

int strncmp(const char *a, const char *b, size_t n)
{
	while (n && *a && *a == *b) {
		a++;
		b++;
		n--;
	}
	return n ? (u8)*a - (u8)*b : 0;
}

char *strchr(const char *s, int c)
{
	for (; *s != (char)c; s++) {
		if (!*s)
			return NULL;
	}
	return (char *)s;
}
#endif

size_t str_copy(char *dst, const char *src, size_t size)
{
	size_t n = strlen(src);

	if (size) {
		size_t k = min(n, size - 1);

		memcpy(dst, src, k);
		dst[k] = 0;
	}
	return n;
}
