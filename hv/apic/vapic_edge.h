/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the guest interrupt controller models need from the hypervisor, bound at link time: by the
 * hypervisor's edge, or by stubs in the host tests. No function pointers, nothing else crosses.
 *
 * All of these may be called on any pCPU, with whatever lock the caller of the model holds.
 */
#ifndef VLAG_APIC_VAPIC_EDGE_H
#define VLAG_APIC_VAPIC_EDGE_H

#include "hv/lib/types.h"

struct vlapic;

/*
 * @target has something new in its IRR or in its events (NMI, INIT, SIPI, LINT0): wake its vCPU if
 * it is halted or waits for SIPI, or make its pCPU exit if it runs elsewhere. The bit is set before
 * (with a full barrier), and set bits are not announced again until they were consumed, so the edge
 * must order "vCPU state := blocked" before a last look at vlapic_has_work().
 *
 * Not called when a vCPU posts to itself by its own register access (self-IPI, own timer, LVT): the
 * exit path looks at vlapic_pending() before it enters again. It may be called with the vCPU that
 * is being handled on this very pCPU, when the IOAPIC sends to it: then there is nothing to do.
 */
void vapic_kick(struct vlapic *target);

/*
 * @from ended the service of the level-triggered @vector and does not suppress the broadcast: take
 * the lock of the VM's IOAPIC and call vioapic_eoi().
 */
void vapic_broadcast_eoi(struct vlapic *from, u8 vector);

/*
 * The LDR, DFR, mode or enable of @lapic changed: take the VM's APIC map lock and call
 * apic_map_update(). Rare (boot, CPU hotplug).
 */
void vapic_map_changed(struct vlapic *lapic);

#endif
