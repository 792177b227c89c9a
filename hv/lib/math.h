/* SPDX-License-Identifier: BSD-2-Clause */
/* Arithmetic that the compiler would take from a library that is not there. For set-up code, not
 * for hot paths. */
#ifndef VLAG_LIB_MATH_H
#define VLAG_LIB_MATH_H

#include "hv/lib/types.h"

/* (@a << @shift) / @d, rounded down; the result must fit 64 bits, @d < 2^63. */
static inline u64 shl_div(u64 a, u32 shift, u64 d)
{
	u64 quotient = a / d, rest = a % d;

	while (shift--) {
		quotient <<= 1;
		rest <<= 1;
		if (rest >= d) {
			rest -= d;
			quotient |= 1;
		}
	}
	return quotient;
}

#endif
