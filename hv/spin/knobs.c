/* SPDX-License-Identifier: BSD-2-Clause */
/* The knobs of directed yield as text: defaults, parsing, printing, the table behind help and
 * documentation. Everything comes from the lists in knobs.h. */
#include "hv/spin/knobs.h"

#include "hv/lib/errors.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"

void spin_knobs_init(struct spin_knobs *knobs)
{
#define X(name, dflt, text) knobs->name = (dflt);
	SPIN_SWITCHES(X)
#undef X
#define X(name, dflt, least, largest, text) knobs->name = (dflt);
	SPIN_NUMBERS(X)
#undef X
#define X(name, type, dflt, text) knobs->name = (dflt);
	SPIN_CHOICES(X)
#undef X
}

#define AT(name) offsetof(struct spin_knobs, name)

static const struct spin_knob_info infos[] = {
#define X(name, dflt, text) {#name, text, SPIN_KNOB_SWITCH, AT(name), 0, 1, {}, {}},
    SPIN_SWITCHES(X)
#undef X
#define X(name, dflt, least, largest, text)                                                        \
	{#name, text, SPIN_KNOB_NUMBER, AT(name), least, largest, {}, {}},
	SPIN_NUMBERS(X)
#undef X
#define WORD(value, word, text) [value] = word,
#define TEXT(value, word, text) [value] = text,
#define X(name, type, dflt, text)                                                                  \
	{#name, text, SPIN_KNOB_CHOICE, AT(name), 0, 0, {SPIN_##type(WORD)}, {SPIN_##type(TEXT)}},
	    SPIN_CHOICES(X)
#undef X
};

const struct spin_knob_info *spin_knob_info(u32 index)
{
	return index < ARRAY_SIZE(infos) ? &infos[index] : NULL;
}

static const struct spin_knob_info *find(const char *name)
{
	for (u32 i = 0; i < ARRAY_SIZE(infos); i++) {
		if (!strcmp(infos[i].name, name))
			return &infos[i];
	}
	return NULL;
}

static int set_switch(bool *at, const char *value)
{
	static const char *const words[] = {"off", "on", "0", "1", "false", "true"};

	for (u32 i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(words[i], value)) {
			WRITE_ONCE(*at, i % 2);
			return 0;
		}
	}
	return E_INVAL;
}

static int set_number(u64 *at, const struct spin_knob_info *info, const char *value)
{
	u64 n = 0;

	if (!*value)
		return E_INVAL;
	for (; *value; value++) {
		if (*value < '0' || *value > '9')
			return E_INVAL;
		if (n > UINT64_MAX / 16)
			return E_RANGE;
		n = n * 10 + (u64)(*value - '0');
	}
	if (n < info->least || n > info->largest)
		return E_RANGE;
	WRITE_ONCE(*at, n);
	return 0;
}

int spin_knob_set(struct spin_knobs *knobs, const char *name, const char *value)
{
	const struct spin_knob_info *info = find(name);
	void *at;

	if (!info)
		return E_NOENT;
	at = (char *)knobs + info->offset;
	if (info->kind == SPIN_KNOB_SWITCH)
		return set_switch(at, value);
	if (info->kind == SPIN_KNOB_NUMBER)
		return set_number(at, info, value);
	for (u32 i = 0; info->words[i]; i++) {
		if (!strcmp(info->words[i], value)) {
			WRITE_ONCE(*(u32 *)at, i);
			return 0;
		}
	}
	return E_INVAL;
}

int spin_knob_get(const struct spin_knobs *knobs, const char *name, char *buf, size_t size)
{
	const struct spin_knob_info *info = find(name);
	const void *at;

	if (!info)
		return E_NOENT;
	at = (const char *)knobs + info->offset;
	if (info->kind == SPIN_KNOB_SWITCH)
		fmt_print(buf, size, "%s", *(const bool *)at ? "on" : "off");
	else if (info->kind == SPIN_KNOB_NUMBER)
		fmt_print(buf, size, "%llu", (unsigned long long)*(const u64 *)at);
	else
		fmt_print(buf, size, "%s", info->words[*(const u32 *)at]);
	return 0;
}
