/* SPDX-License-Identifier: BSD-2-Clause */
/* Knobs by name: parsing, listing. Pure; what a change must set in motion is in hv/knobs_apply.c.
 */
#include "hv/knobs.h"

#include "hv/lib/errors.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"

static const struct entry {
	const char *name, *text;
	u64 dflt, lo, hi;
	u32 offset;
	bool is_switch;
} table[] = {
#define X(knob, d, least, largest, help)                                                           \
	{.name = #knob,                                                                            \
	 .text = help,                                                                             \
	 .dflt = d,                                                                                \
	 .lo = least,                                                                              \
	 .hi = largest,                                                                            \
	 .offset = offsetof(struct hv_knobs, knob)},
    HV_NUMBERS(X)
#undef X
#define X(knob, d, help)                                                                           \
	{.name = #knob,                                                                            \
	 .text = help,                                                                             \
	 .dflt = d,                                                                                \
	 .hi = 1,                                                                                  \
	 .offset = offsetof(struct hv_knobs, knob),                                                \
	 .is_switch = true},
	HV_SWITCHES(X)
#undef X
};

static u64 get(const struct hv_knobs *k, const struct entry *e)
{
	const char *at = (const char *)k + e->offset;

	return e->is_switch ? *(const bool *)at : *(const u64 *)at;
}

static void put(struct hv_knobs *k, const struct entry *e, u64 value)
{
	char *at = (char *)k + e->offset;

	if (e->is_switch)
		WRITE_ONCE(*(bool *)at, value);
	else
		WRITE_ONCE(*(u64 *)at, value);
}

bool knob_info(const struct hv_knobs *k, u32 n, struct knob_info *info)
{
	const struct entry *e = &table[n];

	if (n >= ARRAY_SIZE(table))
		return false;
	*info = (struct knob_info){.name = e->name,
				   .text = e->text,
				   .value = get(k, e),
				   .dflt = e->dflt,
				   .lo = e->lo,
				   .hi = e->hi,
				   .is_switch = e->is_switch};
	return true;
}

static bool parse_number(const char *s, u64 *value)
{
	*value = 0;
	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || *value > UINT64_MAX / 10 - 1)
			return false;
		*value = *value * 10 + (u64)(*s - '0');
	}
	return true;
}

static bool parse_switch(const char *s, u64 *value)
{
	static const char *const words[] = {"off", "on", "no", "yes", "0", "1"};

	for (u32 i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(s, words[i])) {
			*value = i % 2;
			return true;
		}
	}
	return false;
}

int knob_parse(struct hv_knobs *k, const char *name, const char *value, char *err, size_t errsz)
{
	const struct entry *e = table;
	u64 number;

	while (e < table + ARRAY_SIZE(table) && strcmp(e->name, name))
		e++;
	if (e == table + ARRAY_SIZE(table)) {
		fmt_print(err, errsz, "%s is not a knob; the monitor's `knob` lists them", name);
		return E_NOENT;
	}
	if (e->is_switch ? !parse_switch(value, &number) : !parse_number(value, &number)) {
		fmt_print(err, errsz, "%s: \"%s\" is not %s", name, value,
			  e->is_switch ? "on or off" : "a number");
		return E_INVAL;
	}
	if (number < e->lo || number > e->hi) {
		fmt_print(err, errsz, "%s: %s is out of range; %lu to %lu are possible", name,
			  value, e->lo, e->hi);
		return E_RANGE;
	}
	put(k, e, number);
	return 0;
}
