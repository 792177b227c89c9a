/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * printf-style formatting into a buffer: %d %i %u %x %X %p %s %c %% with l, ll, z, width,
 * precision, '-', '0', and '*'. Pure; the console and the monitor are built on it.
 */
#ifndef VLAG_LIB_FMT_H
#define VLAG_LIB_FMT_H

#include <stdarg.h>

#include "hv/lib/types.h"

/* As vsnprintf/snprintf of C99: returns the length of the whole text; @buf is NUL-terminated when
 * @size > 0. */
int fmt_vprint(char *buf, size_t size, const char *fmt, va_list args);
int fmt_print(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);

/* The other way round: a decimal number and nothing else. False if @text is none; one that does not
 * fit is UINT64_MAX. */
bool fmt_parse_u64(const char *text, u64 *value);

#endif
