/* SPDX-License-Identifier: BSD-2-Clause */
/* A triple fault: a PC resets. With a hypervisor that ends the VM instead, the line "first start"
 * is the last one. */
#include "tests/guests/lib/reset.h"

static void triple_fault(void)
{
	struct {
		u16 limit;
		u64 base;
	} __packed idtr = {0, 0};

	__asm__ volatile("lidt %0; ud2" ::"m"(idtr));
}

int guest_main(void)
{
	return reset_test(triple_fault);
}
