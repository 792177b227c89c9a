/* SPDX-License-Identifier: BSD-2-Clause */
/* The string functions that the compiler and we need; freestanding here, the C library's in host
 * builds. */
#ifndef VLAG_LIB_STRING_H
#define VLAG_LIB_STRING_H

#include "hv/lib/types.h"

#ifdef VLAG_HOST
#include <string.h>
#else
void *memcpy(void *dst, const void *src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void *memchr(const void *s, int c, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t n);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
#endif

/* Copies @src with its NUL into @dst of @size bytes, cut if need be (always NUL-terminated).
 * Returns strlen(@src). */
size_t str_copy(char *dst, const char *src, size_t size);

#endif
