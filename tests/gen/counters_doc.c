/* SPDX-License-Identifier: BSD-2-Clause */
/* `make docs`: prints docs/counters.md. */
#include "tests/gen/counters_doc.h"

int main(void)
{
	counters_doc_write(stdout);
	return 0;
}
