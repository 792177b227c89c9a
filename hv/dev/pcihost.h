/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PCI configuration mechanism 1 (ports 0xCF8 and 0xCFC) over a bus with nothing but a host bridge,
 * 00:00.0, which can be read and does nothing. Kernels believe in the mechanism when they find the
 * bridge, and search the whole bus when they do not. Pure model; the owner holds the VM's device
 * lock around every call. No interrupts, no timers.
 */
#ifndef VLAG_DEV_PCIHOST_H
#define VLAG_DEV_PCIHOST_H

#include "hv/lib/types.h"

struct pcihost {
	u32 address; /* port 0xCF8 as written */
};

void pcihost_reset(struct pcihost *p);

/* Port 0xCF8, @size 4: what is narrower goes by it, as it does on real chipsets. */
u32 pcihost_read_address(const struct pcihost *p, unsigned size);
void pcihost_write_address(struct pcihost *p, unsigned size, u32 value);

/* Ports 0xCFC to 0xCFF, 1 to 4 bytes; writes are dropped, so there is no function for them. */
u32 pcihost_read_data(const struct pcihost *p, u16 port, unsigned size);

#endif
