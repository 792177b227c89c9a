/* SPDX-License-Identifier: BSD-2-Clause */
/* `make docs`: prints docs/knobs.md. */
#include "tests/gen/knobs_doc.h"

int main(void)
{
	knobs_doc_write(stdout);
	return 0;
}
