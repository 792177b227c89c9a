/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The knobs as text: defaults, parsing, printing, and the table behind the monitor's help and
 * docs/scheduler.md. Everything comes from the lists in knobs.h.
 */
#include "hv/sched/knobs.h"

#include "hv/lib/bits.h"
#include "hv/lib/errors.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"

void sched_knobs_init(struct sched_knobs *knobs, u32 nr_pcpus)
{
#define X(name, dflt, text) knobs->name = (dflt);
	SCHED_FEATURES(X)
#undef X
#define X(name, dflt, least, largest, text) knobs->name = (dflt);
	SCHED_NUMBERS(X)
#undef X
#define X(name, type, dflt, text) knobs->name = (dflt);
	SCHED_CHOICES(X)
#undef X
	/* Linux's logarithmic scaling: more pCPUs, longer slices, up to eight of them. */
	knobs->base_slice_ns *= 1 + (u64)fls64(clamp(nr_pcpus, 1u, 8u));
}

static const struct sched_knob_info infos[] = {
#define X(name, dflt, text) {#name, text, SCHED_KNOB_FEATURE, 0, 1, {}, {}},
    SCHED_FEATURES(X)
#undef X
#define X(name, dflt, least, largest, text)                                                        \
	{#name, text, SCHED_KNOB_NUMBER, least, largest, {}, {}},
	SCHED_NUMBERS(X)
#undef X
#define WORD(value, word, text) [value] = word,
#define TEXT(value, word, text) [value] = text,
#define X(name, type, dflt, text)                                                                  \
	{#name, text, SCHED_KNOB_CHOICE, 0, 0, {SCHED_##type(WORD)}, {SCHED_##type(TEXT)}},
	    SCHED_CHOICES(X)
#undef X
};

const struct sched_knob_info *sched_knob_info(u32 index)
{
	return index < ARRAY_SIZE(infos) ? &infos[index] : NULL;
}

static const struct sched_knob_info *find(const char *name)
{
	for (u32 i = 0; i < ARRAY_SIZE(infos); i++) {
		if (!strcmp(infos[i].name, name))
			return &infos[i];
	}
	return NULL;
}

/* Where the knob @info lives in @knobs: `number` for numbers, `choice` for choices, `feature`. */
struct place {
	bool *feature;
	u64 *number;
	u32 *choice;
};

static struct place place_of(struct sched_knobs *knobs, const char *name)
{
#define X(field, dflt, text)                                                                       \
	if (!strcmp(name, #field))                                                                 \
		return (struct place){.feature = &knobs->field};
	SCHED_FEATURES(X)
#undef X
#define X(field, dflt, least, largest, text)                                                       \
	if (!strcmp(name, #field))                                                                 \
		return (struct place){.number = &knobs->field};
	SCHED_NUMBERS(X)
#undef X
#define X(field, type, dflt, text)                                                                 \
	if (!strcmp(name, #field))                                                                 \
		return (struct place){.choice = &knobs->field};
	SCHED_CHOICES(X)
#undef X
	return (struct place){0};
}

static int parse_bool(const char *value, bool *on)
{
	static const char *const yes[] = {"on", "1", "true"}, *const no[] = {"off", "0", "false"};

	for (u32 i = 0; i < ARRAY_SIZE(yes); i++) {
		if (!strcmp(value, yes[i]) || !strcmp(value, no[i])) {
			*on = !strcmp(value, yes[i]);
			return 0;
		}
	}
	return E_INVAL;
}

static int parse_number(const char *value, u64 least, u64 largest, u64 *number)
{
	u64 n = 0;

	if (!*value)
		return E_INVAL;
	for (; *value; value++) {
		u64 digit = (u64)(u8)*value - '0';

		if (digit > 9)
			return E_INVAL;
		if (n > (UINT64_MAX - digit) / 10)
			return E_RANGE;
		n = n * 10 + digit;
	}
	if (n < least || n > largest)
		return E_RANGE;
	*number = n;
	return 0;
}

int sched_knob_set(struct sched_knobs *knobs, const char *name, const char *value)
{
	const struct sched_knob_info *info = find(name);
	struct place at = place_of(knobs, name);
	bool on;
	u64 number;
	int err;

	if (!info)
		return E_NOENT;
	if (at.feature) {
		err = parse_bool(value, &on);
		if (!err)
			WRITE_ONCE(*at.feature, on);
		return err;
	}
	if (at.number) {
		err = parse_number(value, info->least, info->largest, &number);
		if (!err)
			WRITE_ONCE(*at.number, number);
		return err;
	}
	for (u32 i = 0; info->words[i]; i++) {
		if (!strcmp(info->words[i], value)) {
			WRITE_ONCE(*at.choice, i);
			return 0;
		}
	}
	return E_INVAL;
}

int sched_knob_get(const struct sched_knobs *knobs, const char *name, char *buf, size_t size)
{
	const struct sched_knob_info *info = find(name);
	struct place at = place_of((struct sched_knobs *)knobs, name);

	if (!info)
		return E_NOENT;
	if (at.feature)
		fmt_print(buf, size, "%s", *at.feature ? "on" : "off");
	else if (at.number)
		fmt_print(buf, size, "%llu", (unsigned long long)*at.number);
	else
		fmt_print(buf, size, "%s", info->words[*at.choice]);
	return 0;
}
