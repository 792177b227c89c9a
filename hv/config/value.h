/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of the configuration file: their types, how each is read, and what to say when it is
 * wrong. Internal to hv/config; knows nothing of sections and keys.
 */
#ifndef VLAG_CONFIG_VALUE_H
#define VLAG_CONFIG_VALUE_H

#include "hv/lib/types.h"

/* A piece of the file: not NUL-terminated. */
struct text {
	const char *s;
	size_t n;
};

/* For "%.*s": length and pointer, cut to what is sensible in a message. @t is evaluated twice. */
#define text_shown(t) (int)min((t).n, (size_t)48), (t).s

struct text text_of(const char *s);
/* Without blanks and tabs at both ends. */
struct text text_trim(struct text t);
bool text_equal(struct text t, const char *s);
/* The first word; @rest gets what follows it, trimmed. */
struct text text_word(struct text t, struct text *rest);
/* At least one character, all of them letters, digits or in @extra. */
bool text_is_name(struct text t, const char *extra);
/* Copies into @dst of @size bytes, NUL-terminated; @t must be shorter than @size. */
void text_copy(char *dst, struct text t, size_t size);
/* Edits (insert, delete, replace) from @t to @s: the Levenshtein distance; large for long texts. */
u32 text_distance(struct text t, const char *s);

enum value_kind {
	VALUE_U32,	 /* u32, @lo to @hi */
	VALUE_SIZE,	 /* u64 bytes, @lo to @hi in steps of @step, with K, M or G */
	VALUE_BOOL,	 /* bool, yes or no */
	VALUE_WORD,	 /* u32, index in @words */
	VALUE_BOOL_WORD, /* bool, index in @words, which has two */
	VALUE_TEXT,	 /* char[@hi] */
	VALUE_PATHS, /* char[CFG_MAX_MODULES][CFG_PATH_MAX], and u32 at @count; comma-separated */
	VALUE_CPUS,  /* u64[CFG_MAX_PCPUS / 64], "0-3,6" or "all" */
	VALUE_PV,    /* u32, CFG_PV_*; "all", "none" or a list */
};

struct value_type {
	enum value_kind kind;
	u64 lo, hi, step;
	size_t count;	   /* VALUE_PATHS: offset of the u32 count from the field */
	const char *words; /* separated by one blank */
	bool may_be_empty; /* VALUE_TEXT */
};

/*
 * Reads @v into @field. If it is wrong, writes what is wrong and what would be right into @why and
 * returns false; @field keeps its value (of VALUE_PATHS: the count does).
 */
bool value_parse(const struct value_type *type, struct text v, void *field, char *why, size_t size);

/* What may be written, for messages and for the documentation. */
void value_describe(const struct value_type *type, char *buf, size_t size);

#endif
