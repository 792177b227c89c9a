/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An 8042 keyboard controller with nothing plugged in: enough that a driver finds out quickly, and
 * that the classic ways to reset a PC through it and through port 0x92 work. Every byte sent to the
 * keyboard is answered at once with 0xFE (resend), so no driver waits for a timeout. A20 is always
 * on. Pure model; the owner holds the VM's device lock around every call. No timers.
 */
#ifndef VLAG_DEV_KBC_H
#define VLAG_DEV_KBC_H

#include "hv/lib/types.h"

struct kbc {
	bool irq;	  /* IRQ 1 line */
	bool reset;	  /* the guest asked for a reset: the owner resets the VM */
	bool full;	  /* .out waits to be read */
	bool was_command; /* the last write went to 0x64 */
	u8 out;
	bool out_is_key; /* .out came from the keyboard: raises IRQ 1 */
	u8 ctr;		 /* command byte */
	u8 pending;	 /* command that waits for its data byte, 0 if none */
	u8 port92;
};

void kbc_init(struct kbc *kbc);

/* Ports 0x60, 0x64 and 0x92. 8 bits wide: the owner splits wider accesses, @size is 1. */
u32 kbc_read(struct kbc *kbc, u16 port, unsigned size, u64 now_ns);
void kbc_write(struct kbc *kbc, u16 port, unsigned size, u32 value, u64 now_ns);

#endif
