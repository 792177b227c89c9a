/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the values of the configuration file, type by type, and words what is wrong with them.
 * Which key has which type is config.c's business.
 */
#include "hv/config/value.h"

#include "hv/config/config.h"
#include "hv/lib/bits.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"

#define DISTANCE_MAX_LEN 24

struct text text_of(const char *s)
{
	return (struct text){s, strlen(s)};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct text text_trim(struct text t)
{
	while (t.n && is_blank(t.s[0])) {
		t.s++;
		t.n--;
	}
	while (t.n && is_blank(t.s[t.n - 1]))
		t.n--;
	return t;
}

bool text_equal(struct text t, const char *s)
{
	return t.n == strlen(s) && memcmp(t.s, s, t.n) == 0;
}

/* Takes what stands before the first @separator; @rest gets what follows it (n == 0 at the end). */
static struct text split(struct text t, char separator, struct text *rest)
{
	const char *at = t.n ? memchr(t.s, separator, t.n) : NULL;
	size_t n = at ? (size_t)(at - t.s) : t.n;

	*rest = at ? (struct text){at + 1, t.n - n - 1} : (struct text){NULL, 0};
	return text_trim((struct text){t.s, n});
}

struct text text_word(struct text t, struct text *rest)
{
	size_t n = 0;

	while (n < t.n && !is_blank(t.s[n]))
		n++;
	*rest = text_trim((struct text){t.s + n, t.n - n});
	return (struct text){t.s, n};
}

bool text_is_name(struct text t, const char *extra)
{
	for (size_t i = 0; i < t.n; i++) {
		char c = t.s[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
			continue;
		if (!c || !strchr(extra, c))
			return false;
	}
	return t.n > 0;
}

void text_copy(char *dst, struct text t, size_t size)
{
	size_t n = min(t.n, size - 1);

	memcpy(dst, t.s, n);
	dst[n] = 0;
}

u32 text_distance(struct text t, const char *s)
{
	u32 row[DISTANCE_MAX_LEN + 1], n = (u32)strlen(s);

	if (t.n > DISTANCE_MAX_LEN || n > DISTANCE_MAX_LEN)
		return 2 * DISTANCE_MAX_LEN;
	for (u32 j = 0; j <= n; j++)
		row[j] = j;
	for (u32 i = 1; i <= t.n; i++) {
		u32 diagonal = row[0];

		row[0] = i;
		for (u32 j = 1; j <= n; j++) {
			u32 replace = diagonal + (t.s[i - 1] != s[j - 1]);
			u32 insert_or_delete = min(row[j], row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = min(replace, insert_or_delete);
		}
	}
	return row[n];
}

/* The index of @v in @words, or -1. */
static int word_index(const char *words, struct text v)
{
	struct text rest = text_of(words);

	for (int i = 0; rest.n; i++) {
		struct text word = split(rest, ' ', &rest);

		if (word.n == v.n && memcmp(word.s, v.s, v.n) == 0)
			return i;
	}
	return -1;
}

enum number { NUMBER_OK, NUMBER_NOT, NUMBER_HUGE };

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/* All of @v as a number: decimal, or hexadecimal after "0x". */
static enum number number(struct text v, u64 *value)
{
	u64 base = 10, n = 0;
	bool huge = false;

	if (v.n > 2 && v.s[0] == '0' && (v.s[1] == 'x' || v.s[1] == 'X')) {
		base = 16;
		v = (struct text){v.s + 2, v.n - 2};
	}
	if (!v.n)
		return NUMBER_NOT;
	for (size_t i = 0; i < v.n; i++) {
		u64 d = (u64)digit(v.s[i]);

		if (d >= base)
			return NUMBER_NOT;
		huge |= __builtin_mul_overflow(n, base, &n) || __builtin_add_overflow(n, d, &n);
	}
	*value = n;
	return huge ? NUMBER_HUGE : NUMBER_OK;
}

/* Says what is wrong with @v and what would be right. Always false. */
static bool wrong(const struct value_type *type, struct text v, const char *what, char *why,
		  size_t size)
{
	char possible[160];

	value_describe(type, possible, sizeof(possible));
	fmt_print(why, size, "\"%.*s\"%s %s; %s are possible", text_shown(v), v.n > 48 ? "..." : "",
		  what, possible);
	return false;
}

static bool parse_u32(const struct value_type *type, struct text v, void *field, char *why,
		      size_t size)
{
	u64 n;
	enum number is = number(v, &n);

	if (is == NUMBER_NOT)
		return wrong(type, v, "is no number", why, size);
	if (is == NUMBER_HUGE || n < type->lo || n > type->hi)
		return wrong(type, v, "is out of range", why, size);
	*(u32 *)field = (u32)n;
	return true;
}

static bool parse_size(const struct value_type *type, struct text v, void *field, char *why,
		       size_t size)
{
	static const char units[] = "KkMmGg";
	const char *unit = v.n ? strchr(units, v.s[v.n - 1]) : NULL;
	struct text digits = v;
	u64 n, scale = 1;
	enum number is;

	if (unit && *unit) {
		scale = 1ull << (10 * ((unit - units) / 2 + 1));
		digits.n--;
	}
	is = number(digits, &n);
	if (is == NUMBER_NOT)
		return wrong(type, v, "is no size", why, size);
	if (is == NUMBER_HUGE || __builtin_mul_overflow(n, scale, &n) || n < type->lo ||
	    n > type->hi)
		return wrong(type, v, "is out of range", why, size);
	if (n % type->step)
		return wrong(type, v, "is no multiple of 2M", why, size);
	*(u64 *)field = n;
	return true;
}

static bool parse_bool(const struct value_type *type, struct text v, void *field, char *why,
		       size_t size)
{
	int yes = word_index("yes true on 1", v), no = word_index("no false off 0", v);

	if (yes < 0 && no < 0)
		return wrong(type, v, "is neither yes nor no", why, size);
	*(bool *)field = yes >= 0;
	return true;
}

static bool parse_word(const struct value_type *type, struct text v, void *field, char *why,
		       size_t size)
{
	int i = word_index(type->words, v);

	if (i < 0)
		return wrong(type, v, "is no known word", why, size);
	if (type->kind == VALUE_BOOL_WORD)
		*(bool *)field = i;
	else
		*(u32 *)field = (u32)i;
	return true;
}

static bool parse_text(const struct value_type *type, struct text v, void *field, char *why,
		       size_t size)
{
	if (v.n >= type->hi) {
		fmt_print(why, size, "%zu characters are too many; at most %llu are possible", v.n,
			  (unsigned long long)type->hi - 1);
		return false;
	}
	text_copy(field, v, type->hi);
	return true;
}

static bool parse_paths(const struct value_type *type, struct text v, void *field, char *why,
			size_t size)
{
	static const struct value_type path_type = {.kind = VALUE_TEXT, .hi = CFG_PATH_MAX};
	char(*paths)[CFG_PATH_MAX] = field;
	u32 n = 0;

	for (struct text rest = v; n == 0 || rest.s; n++) {
		struct text path = split(rest, ',', &rest);

		if (!path.n)
			return wrong(type, v, "has an empty name in it", why, size);
		if (n == CFG_MAX_MODULES)
			return wrong(type, v, "lists too many files", why, size);
		if (!parse_text(&path_type, path, paths[n], why, size))
			return false;
	}
	*(u32 *)((char *)field + type->count) = n;
	return true;
}

static bool parse_cpus(const struct value_type *type, struct text v, void *field, char *why,
		       size_t size)
{
	u64 map[CFG_MAX_PCPUS / 64] = {0};
	struct text rest = v;

	if (text_equal(v, "all")) {
		memset(field, 0xff, sizeof(map));
		return true;
	}
	do {
		struct text to, item = split(rest, ',', &rest), from = split(item, '-', &to);
		bool range = to.s != NULL;
		u64 first, last;

		if (number(from, &first) != NUMBER_OK)
			return wrong(type, v, "is no list of CPUs", why, size);
		last = first;
		if (range && number(text_trim(to), &last) != NUMBER_OK)
			return wrong(type, v, "is no list of CPUs", why, size);
		if (first > last)
			return wrong(type, v, "has a range that runs backwards", why, size);
		if (last >= CFG_MAX_PCPUS)
			return wrong(type, v, "names a CPU that is out of range", why, size);
		for (; first <= last; first++)
			bit_set(map, (u32)first);
	} while (rest.s);
	memcpy(field, map, sizeof(map));
	return true;
}

static u32 pv_feature(struct text word)
{
#define X(name, bit, feature_word)                                                                 \
	if (text_equal(word, feature_word))                                                        \
		return CFG_PV_##name;
	CFG_PV_FEATURES(X)
#undef X
	return 0;
}

static bool parse_pv(const struct value_type *type, struct text v, void *field, char *why,
		     size_t size)
{
	u32 set = 0;

	if (text_equal(v, "all")) {
#define X(name, bit, word) set |= CFG_PV_##name;
		CFG_PV_FEATURES(X)
#undef X
	} else if (!text_equal(v, "none")) {
		struct text rest = v;

		do {
			struct text word = split(rest, ',', &rest);
			u32 feature = word.n ? pv_feature(word) : 0;

			if (!feature)
				return wrong(type, word, "is no paravirtual feature", why, size);
			set |= feature;
		} while (rest.s);
	}
	*(u32 *)field = set;
	return true;
}

bool value_parse(const struct value_type *type, struct text v, void *field, char *why, size_t size)
{
	if (!v.n && !type->may_be_empty) {
		char possible[160];

		value_describe(type, possible, sizeof(possible));
		fmt_print(why, size, "has no value; %s are possible", possible);
		return false;
	}
	switch (type->kind) {
	case VALUE_U32:
		return parse_u32(type, v, field, why, size);
	case VALUE_SIZE:
		return parse_size(type, v, field, why, size);
	case VALUE_BOOL:
		return parse_bool(type, v, field, why, size);
	case VALUE_WORD:
	case VALUE_BOOL_WORD:
		return parse_word(type, v, field, why, size);
	case VALUE_TEXT:
		return parse_text(type, v, field, why, size);
	case VALUE_PATHS:
		return parse_paths(type, v, field, why, size);
	case VALUE_CPUS:
		return parse_cpus(type, v, field, why, size);
	case VALUE_PV:
		return parse_pv(type, v, field, why, size);
	}
	return false;
}

static void describe_words(const char *words, const char *last, char *buf, size_t size)
{
	struct text rest = text_of(words);
	int n = 0;

	while (rest.n && (size_t)n < size) {
		struct text word = split(rest, ' ', &rest);

		if (word.n)
			n += fmt_print(buf + n, size - (size_t)n, "%s%.*s",
				       !n	? ""
				       : rest.n ? ", "
						: last,
				       (int)word.n, word.s);
	}
}

/* 2097152 as "2M": the largest unit that divides. */
static void describe_size(u64 bytes, char *buf, size_t size)
{
	const char *unit = "KMG";
	char letter = 0;

	for (; *unit && bytes && bytes % 1024 == 0; bytes /= 1024)
		letter = *unit++;
	fmt_print(buf, size, "%llu%.*s", (unsigned long long)bytes, letter != 0, &letter);
}

void value_describe(const struct value_type *type, char *buf, size_t size)
{
	char lo[24], hi[24], step[24];

	switch (type->kind) {
	case VALUE_U32:
		fmt_print(buf, size, "%llu to %llu", (unsigned long long)type->lo,
			  (unsigned long long)type->hi);
		break;
	case VALUE_SIZE:
		describe_size(type->lo, lo, sizeof(lo));
		describe_size(type->hi, hi, sizeof(hi));
		describe_size(type->step, step, sizeof(step));
		fmt_print(buf, size, "%s to %s in steps of %s (K, M or G)", lo, hi, step);
		break;
	case VALUE_BOOL:
		fmt_print(buf, size, "yes or no");
		break;
	case VALUE_WORD:
	case VALUE_BOOL_WORD:
		describe_words(type->words, " or ", buf, size);
		break;
	case VALUE_TEXT:
		fmt_print(buf, size, "%d to %llu characters", !type->may_be_empty,
			  (unsigned long long)type->hi - 1);
		break;
	case VALUE_PATHS:
		fmt_print(buf, size, "1 to %d file names separated by commas", CFG_MAX_MODULES);
		break;
	case VALUE_CPUS:
		fmt_print(buf, size, "all, or numbers and ranges up to %d such as 0-3,6",
			  CFG_MAX_PCPUS - 1);
		break;
	case VALUE_PV:
		str_copy(buf, "all, none or a list of ", size);
		describe_words(
#define X(name, bit, word) word " "
		    CFG_PV_FEATURES(X),
#undef X
		    ", ", buf + strlen(buf), size - strlen(buf));
		break;
	}
}
