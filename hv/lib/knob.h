/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Knobs by name: a room (hv, hv/sched, hv/spin) keeps its knobs in a struct of its own that an
 * X-macro list makes, and describes it by a table of struct knob_info made from the same list.
 * Setting, printing and explaining them is here, once. Pure: what a change must set in motion is
 * the caller's (hv/knobs_apply.c).
 *
 * A value is one word, written whole: whoever decides reads it once, while it may change.
 */
#ifndef VLAG_LIB_KNOB_H
#define VLAG_LIB_KNOB_H

#include "hv/lib/types.h"

#define KNOB_WORDS_MAX 6 /* words of a choice */

enum knob_kind {
	KNOB_SWITCH, /* bool */
	KNOB_NUMBER, /* u64 */
	KNOB_CHOICE, /* u32, an index into words[] */
};

struct knob_info {
	const char *name, *text;
	enum knob_kind kind;
	u32 offset;	    /* of the value, in the struct of its room */
	u64 dflt;	    /* of a choice: the index */
	u64 least, largest; /* of a number */
	/* Of a choice; NULL ends them. */
	const char *words[KNOB_WORDS_MAX + 1], *word_texts[KNOB_WORDS_MAX + 1];
};

/* The knobs of a room, in the order of its lists. */
struct knob_table {
	const char *title, *text; /* for the documentation; lines of @text end with \n */
	const struct knob_info *knob;
	u32 nr;
};

/*
 * One line of a table, for `struct @type`; from X(name, default, text), X(name, default, least,
 * largest, text), X(name, LIST, default, text) with LIST(X) the X(value, word, text) of a choice.
 */
#define KNOB_SWITCH_INFO(type, knob, d, help)                                                      \
	{                                                                                          \
	    .name = #knob,                                                                         \
	    .text = help,                                                                          \
	    .kind = KNOB_SWITCH,                                                                   \
	    .offset = offsetof(struct type, knob),                                                 \
	    .dflt = d,                                                                             \
	},
#define KNOB_NUMBER_INFO(type, knob, d, lo, hi, help)                                              \
	{                                                                                          \
	    .name = #knob,                                                                         \
	    .text = help,                                                                          \
	    .kind = KNOB_NUMBER,                                                                   \
	    .offset = offsetof(struct type, knob),                                                 \
	    .dflt = d,                                                                             \
	    .least = lo,                                                                           \
	    .largest = hi,                                                                         \
	},
#define KNOB_CHOICE_INFO(type, knob, LIST, d, help)                                                \
	{                                                                                          \
	    .name = #knob,                                                                         \
	    .text = help,                                                                          \
	    .kind = KNOB_CHOICE,                                                                   \
	    .offset = offsetof(struct type, knob),                                                 \
	    .dflt = d,                                                                             \
	    .words = {LIST(KNOB_WORD)},                                                            \
	    .word_texts = {LIST(KNOB_WORD_TEXT)},                                                  \
	},
#define KNOB_WORD(value, word, text) [value] = word,
#define KNOB_WORD_TEXT(value, word, text) [value] = text,

/* All defaults. @values: the room's struct. */
void knob_table_init(const struct knob_table *table, void *values);

/* The knob @name, NULL if there is none. */
const struct knob_info *knob_find(const struct knob_table *table, const char *name);

/*
 * Sets @name from the text @value: on/off, 1/0 or true/false for a switch, a decimal number within
 * its range, a word of a choice. Returns 0; E_NOENT: no such knob; E_INVAL: not a value of that
 * kind; E_RANGE: number out of its range. On error @values is unchanged and @err (@errsz bytes; may
 * be NULL and 0) has one line that says what would be right.
 */
int knob_table_set(const struct knob_table *table, void *values, const char *name,
		   const char *value, char *err, size_t errsz);

/* Writes the value of @name, as knob_table_set() reads it, to @buf; 0 or E_NOENT. */
int knob_table_get(const struct knob_table *table, const void *values, const char *name, char *buf,
		   size_t size);

#endif
