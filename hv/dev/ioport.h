/* SPDX-License-Identifier: BSD-2-Clause */
/* Which device answers at which I/O port, and where the devices' interrupt lines lead. One table;
 * adding a device is one line. */
#ifndef VLAG_DEV_IOPORT_H
#define VLAG_DEV_IOPORT_H

#include "hv/lib/types.h"

struct vcpu;
struct vm;

/* Fills the port map. Boot CPU, once. */
void ioport_init(void);
/* Whether one of a VM's devices answers at @port, or swallows what is written there. */
bool ioport_is_taken(u16 port);

/* One access of @size 1, 2 or 4 bytes by @v. Takes the VM's lock. Only the low @size bytes of what
 * is read count. */
u32 ioport_read(struct vcpu *v, u16 port, u32 size);
void ioport_write(struct vcpu *v, u16 port, u32 size, u32 value);

/* State after a reset of all of @vm's devices but the RTC's time and memory. */
void devices_reset(struct vm *vm);

/*
 * Brings interrupt lines, pending requests of the devices (power-off, reset) and the device timer
 * up to date. @vm->lock held.
 */
void devices_update(struct vm *vm);

#endif
