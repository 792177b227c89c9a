/* SPDX-License-Identifier: BSD-2-Clause */
/* A reset by the reset control register. */
#include "tests/guests/lib/reset.h"

static void reset(void)
{
	outb(PORT_RESET, 2);
	outb(PORT_RESET, RESET_VALUE);
}

int guest_main(void)
{
	return reset_test(reset);
}
