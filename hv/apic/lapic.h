/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's local APIC: x2APIC where the CPU has it, xAPIC otherwise. Only what the hypervisor
 * needs: IPIs, one one-shot timer, EOI. The guests' APIC is hv/apic/vlapic.c.
 */
#ifndef VLAG_APIC_LAPIC_H
#define VLAG_APIC_LAPIC_H

#include "hv/lib/types.h"

/* Switches this CPU's APIC on (x2APIC if there is one), masks all LVT entries and prepares the
 * timer. */
void lapic_init(void);

bool lapic_is_x2apic(void);
u32 lapic_id(void);
void lapic_eoi(void);

/* IPIs to the CPU with @apic_id; each returns when the APIC has taken it. */
void lapic_send_fixed(u32 apic_id, u8 vector);
void lapic_send_nmi(u32 apic_id);
void lapic_send_init(u32 apic_id);
void lapic_send_sipi(u32 apic_id, u8 page);

/*
 * Arms this CPU's timer to raise VEC_TIMER once at host TSC @tsc (at once if that has passed), by
 * the TSC deadline where there is one and by the APIC's own counter, whose rate lapic_calibrate()
 * measures, otherwise.
 */
void lapic_timer_arm(u64 tsc);

/* Measures the APIC counter against the TSC. Boot CPU, once, after lapic_init(). */
void lapic_calibrate(void);

#endif
