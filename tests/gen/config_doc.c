/* SPDX-License-Identifier: BSD-2-Clause */
/* `make docs`: prints docs/config.md. */
#include "tests/gen/config_doc.h"

int main(void)
{
	config_doc_write(stdout);
	return 0;
}
