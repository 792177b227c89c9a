/* SPDX-License-Identifier: BSD-2-Clause */
/* Knobs by name: defaults, parsing, printing, and what to say of a bad value. Which knobs there
 * are is in the lists of their rooms. */
#include "hv/lib/knob.h"

#include "hv/lib/errors.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"

static void put(const struct knob_info *k, void *values, u64 value)
{
	char *at = (char *)values + k->offset;

	if (k->kind == KNOB_SWITCH)
		WRITE_ONCE(*(bool *)at, value != 0);
	else if (k->kind == KNOB_NUMBER)
		WRITE_ONCE(*(u64 *)at, value);
	else
		WRITE_ONCE(*(u32 *)at, (u32)value);
}

static u64 get(const struct knob_info *k, const void *values)
{
	const char *at = (const char *)values + k->offset;

	if (k->kind == KNOB_SWITCH)
		return READ_ONCE(*(const bool *)at);
	if (k->kind == KNOB_NUMBER)
		return READ_ONCE(*(const u64 *)at);
	return READ_ONCE(*(const u32 *)at);
}

void knob_table_init(const struct knob_table *table, void *values)
{
	for (u32 i = 0; i < table->nr; i++)
		put(&table->knob[i], values, table->knob[i].dflt);
}

const struct knob_info *knob_find(const struct knob_table *table, const char *name)
{
	for (u32 i = 0; i < table->nr; i++) {
		if (!strcmp(table->knob[i].name, name))
			return &table->knob[i];
	}
	return NULL;
}

static int parse_switch(const char *text, u64 *value)
{
	static const char *const words[] = {"off", "on", "0", "1", "false", "true"};

	for (u32 i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(words[i], text)) {
			*value = i % 2;
			return 0;
		}
	}
	return E_INVAL;
}

static int parse_number(const struct knob_info *k, const char *text, u64 *value)
{
	if (!fmt_parse_u64(text, value))
		return E_INVAL;
	return *value >= k->least && *value <= k->largest ? 0 : E_RANGE;
}

static int parse_choice(const struct knob_info *k, const char *text, u64 *value)
{
	for (u32 i = 0; k->words[i]; i++) {
		if (!strcmp(k->words[i], text)) {
			*value = i;
			return 0;
		}
	}
	return E_INVAL;
}

static void explain(const struct knob_info *k, const char *value, int why, char *err, size_t size)
{
	int n;

	if (k->kind == KNOB_SWITCH) {
		fmt_print(err, size, "%s: \"%s\" is not on or off", k->name, value);
	} else if (k->kind == KNOB_NUMBER) {
		fmt_print(err, size, "%s: \"%s\" is %s; %llu to %llu are possible", k->name, value,
			  why == E_RANGE ? "out of range" : "not a number",
			  (unsigned long long)k->least, (unsigned long long)k->largest);
	} else {
		n = fmt_print(err, size, "%s: \"%s\" is none of", k->name, value);
		for (u32 i = 0; k->words[i] && (size_t)n < size; i++)
			n += fmt_print(err + n, size - (size_t)n, "%s %s", i ? "," : "",
				       k->words[i]);
	}
}

int knob_table_set(const struct knob_table *table, void *values, const char *name,
		   const char *value, char *err, size_t errsz)
{
	const struct knob_info *k = knob_find(table, name);
	u64 parsed;
	int ret;

	if (!k) {
		fmt_print(err, errsz, "%s is not a knob; the monitor's `knob` lists them", name);
		return E_NOENT;
	}
	if (k->kind == KNOB_SWITCH)
		ret = parse_switch(value, &parsed);
	else if (k->kind == KNOB_NUMBER)
		ret = parse_number(k, value, &parsed);
	else
		ret = parse_choice(k, value, &parsed);
	if (ret)
		explain(k, value, ret, err, errsz);
	else
		put(k, values, parsed);
	return ret;
}

int knob_table_get(const struct knob_table *table, const void *values, const char *name, char *buf,
		   size_t size)
{
	const struct knob_info *k = knob_find(table, name);
	u64 value;

	if (!k)
		return E_NOENT;
	value = get(k, values);
	if (k->kind == KNOB_SWITCH)
		fmt_print(buf, size, "%s", value ? "on" : "off");
	else if (k->kind == KNOB_NUMBER)
		fmt_print(buf, size, "%llu", (unsigned long long)value);
	else
		fmt_print(buf, size, "%s", k->words[value]);
	return 0;
}
