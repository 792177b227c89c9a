/* SPDX-License-Identifier: BSD-2-Clause */
/* A reset by the keyboard controller: pulses line 0. */
#include "tests/guests/lib/reset.h"

static void reset(void)
{
	outb(PORT_KBC_CMD, 0xfe);
}

int guest_main(void)
{
	return reset_test(reset);
}
