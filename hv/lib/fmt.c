/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The formatter behind every printed line. It knows buffers only: where the text goes (console,
 * boot messages, JSON) is its callers' business.
 */
#include "hv/lib/fmt.h"

#include "hv/lib/string.h"

struct out {
	char *buf;
	size_t size;
	size_t len; /* of the whole text, whether it fits or not */
};

struct spec {
	bool left, zero;
	u32 width;
	s32 precision; /* -1: none given */
	u32 longs;     /* 0 int, 1 and more: 64 bits (long, long long and size_t are alike here) */
};

static void put(struct out *o, char c)
{
	if (o->len + 1 < o->size)
		o->buf[o->len] = c;
	o->len++;
}

static void pad(struct out *o, char c, size_t have, u32 width)
{
	for (; have < width; have++)
		put(o, c);
}

static void put_text(struct out *o, const struct spec *s, const char *text)
{
	size_t n;

	if (!text)
		text = "(null)";
	n = s->precision < 0 ? strlen(text) : strnlen(text, (size_t)s->precision);
	if (!s->left)
		pad(o, ' ', n, s->width);
	for (size_t i = 0; i < n; i++)
		put(o, text[i]);
	if (s->left)
		pad(o, ' ', n, s->width);
}

/* @prefix: "-", "0x" or "": stands before zeros, after blanks. */
static void put_number(struct out *o, const struct spec *s, const char *prefix, u64 value, u32 base,
		       bool upper)
{
	char digits[24];
	u32 nr = 0, zeros = 0, have;

	while (value) {
		u32 d = (u32)(value % base);

		digits[nr++] = (char)(d < 10 ? '0' + d : (upper ? 'A' : 'a') + d - 10);
		value /= base;
	}
	have = nr + (u32)strlen(prefix);
	if (s->precision < 0) {
		if (!nr) {
			digits[nr++] = '0';
			have++;
		}
		if (s->zero && !s->left && s->width > have)
			zeros = s->width - have;
	} else if ((u32)s->precision > nr) {
		zeros = (u32)s->precision - nr;
	}
	have += zeros;

	if (!s->left)
		pad(o, ' ', have, s->width);
	while (*prefix)
		put(o, *prefix++);
	pad(o, '0', 0, zeros);
	while (nr)
		put(o, digits[--nr]);
	if (s->left)
		pad(o, ' ', have, s->width);
}

static const char *parse_decimal(const char *fmt, u32 *value)
{
	u32 n = 0;

	for (; *fmt >= '0' && *fmt <= '9'; fmt++) {
		if (n < 100000)
			n = n * 10 + (u32)(*fmt - '0');
	}
	*value = n;
	return fmt;
}

/* Reads what stands between '%' and the conversion letter; returns the place of the letter. */
static const char *parse_spec(const char *fmt, struct spec *s, va_list *args)
{
	u32 n;

	*s = (struct spec){.precision = -1};
	for (;; fmt++) {
		if (*fmt == '-')
			s->left = true;
		else if (*fmt == '0')
			s->zero = true;
		else
			break;
	}
	if (*fmt == '*') {
		int w = va_arg(*args, int);

		if (w < 0)
			s->left = true;
		s->width = w < 0 ? 0u - (u32)w : (u32)w;
		fmt++;
	} else {
		fmt = parse_decimal(fmt, &s->width);
	}
	if (*fmt == '.') {
		if (*++fmt == '*') {
			int p = va_arg(*args, int);

			s->precision = p < 0 ? -1 : p;
			fmt++;
		} else {
			fmt = parse_decimal(fmt, &n);
			s->precision = (s32)n;
		}
	}
	for (; *fmt == 'l' || *fmt == 'z'; fmt++)
		s->longs++;
	return fmt;
}

static void put_signed(struct out *o, const struct spec *s, va_list *args)
{
	s64 v = s->longs ? va_arg(*args, s64) : va_arg(*args, int);

	put_number(o, s, v < 0 ? "-" : "", v < 0 ? 0 - (u64)v : (u64)v, 10, false);
}

static void put_unsigned(struct out *o, const struct spec *s, va_list *args, u32 base, bool upper)
{
	u64 v = s->longs ? va_arg(*args, u64) : va_arg(*args, u32);

	put_number(o, s, "", v, base, upper);
}

static void put_char(struct out *o, const struct spec *s, char c)
{
	if (!s->left)
		pad(o, ' ', 1, s->width);
	put(o, c);
	if (s->left)
		pad(o, ' ', 1, s->width);
}

/* Prints one conversion. Returns false for a letter it does not know. */
static bool convert(struct out *o, const struct spec *s, char letter, va_list *args)
{
	switch (letter) {
	case 'd':
	case 'i':
		put_signed(o, s, args);
		return true;
	case 'u':
		put_unsigned(o, s, args, 10, false);
		return true;
	case 'x':
	case 'X':
		put_unsigned(o, s, args, 16, letter == 'X');
		return true;
	case 'p':
		put_number(o, s, "0x", (u64)(uintptr_t)va_arg(*args, void *), 16, false);
		return true;
	case 's':
		put_text(o, s, va_arg(*args, const char *));
		return true;
	case 'c':
		put_char(o, s, (char)va_arg(*args, int));
		return true;
	case '%':
		put(o, '%');
		return true;
	default:
		return false;
	}
}

int fmt_vprint(char *buf, size_t size, const char *fmt, va_list args)
{
	struct out o = {.buf = buf, .size = size};
	va_list ap;

	va_copy(ap, args);
	while (*fmt) {
		const char *start = fmt;
		struct spec s;

		if (*fmt != '%') {
			put(&o, *fmt++);
			continue;
		}
		fmt = parse_spec(fmt + 1, &s, &ap);
		if (*fmt && convert(&o, &s, *fmt, &ap)) {
			fmt++;
			continue;
		}
		/* What we do not know is shown as it stands: a visible mistake, never a wild read.
		 */
		while (start < fmt)
			put(&o, *start++);
	}
	va_end(ap);
	if (size)
		buf[min(o.len, size - 1)] = 0;
	return (int)o.len;
}

int fmt_print(char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = fmt_vprint(buf, size, fmt, args);
	va_end(args);
	return n;
}

bool fmt_parse_u64(const char *text, u64 *value)
{
	u64 n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		u64 digit = (u64)(u8)*text - '0';

		if (digit > 9)
			return false;
		n = n <= (UINT64_MAX - digit) / 10 ? n * 10 + digit : UINT64_MAX;
	}
	*value = n;
	return true;
}
