/* SPDX-License-Identifier: BSD-2-Clause */
/* The guest's report of its preferred vCPUs; see report.h. */
#include "hv/pv/report.h"

#include "hv/lib/bits.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"

#define KIND_SET_LAST 10
#define KIND_DO 0xff
#define BITS_PER_WORD 24

static void publish(struct pv_report *r, u32 by, u32 nr_vcpus)
{
	u64 any = 0;

	for (u32 i = 0; i < REPORT_WORDS; i++) {
		u32 first = i * 64, n = nr_vcpus > first ? min(nr_vcpus - first, 64u) : 0;

		r->draft[i] &= n == 64 ? UINT64_MAX : BIT(n) - 1;
		any |= r->draft[i];
	}
	if (!any) {
		r->nr_bad++;
		return;
	}
	memcpy(r->set, r->draft, sizeof(r->set));
	r->by = by;
	r->nr_good++;
}

void report_write(struct pv_report *r, u32 word, u32 nr_vcpus)
{
	u32 kind = word >> 24, value = word & 0xffffff;

	if (kind <= KIND_SET_LAST) {
		for (u32 i = 0; i < BITS_PER_WORD; i++) {
			u32 vcpu = kind * BITS_PER_WORD + i;

			if (value >> i & 1)
				bit_set(r->draft, vcpu);
			else
				bit_clear(r->draft, vcpu);
		}
		return;
	}
	if (kind != KIND_DO)
		return;
	if (value == REPORT_NONE)
		r->by = REPORT_NONE;
	else if (value == REPORT_STEALD || value == REPORT_KERNEL)
		publish(r, value, nr_vcpus);
	memset(r->draft, 0, sizeof(r->draft));
}

void report_text(const struct pv_report *r, char *buf, size_t size)
{
	u32 last = REPORT_WORDS * 64;
	size_t n = 0;

	str_copy(buf, "-", size);
	if (r->by == REPORT_NONE)
		return;
	for (u32 i = 0, end; i < last; i = end + 1) {
		end = i;
		if (!bit_test(r->set, i))
			continue;
		while (end + 1 < last && bit_test(r->set, end + 1))
			end++;
		if (n < size)
			n += fmt_print(buf + n, size - n, "%s%u", n ? "," : "", i);
		if (n < size && end > i)
			n += fmt_print(buf + n, size - n, "-%u", end);
	}
}
