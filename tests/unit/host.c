/* SPDX-License-Identifier: BSD-2-Clause */
/* What host builds of pure modules link against instead of the hypervisor's edge: bug(). */
#include <stdio.h>
#include <stdlib.h>

#include "hv/lib/bug.h"

__noreturn void bug(const char *file, int line, const char *what)
{
	fprintf(stderr, "BUG at %s:%d: %s\n", file, line, what);
	abort();
}
