/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's local APIC: x2APIC where the CPU has it, xAPIC otherwise. Only what the hypervisor
 * needs: IPIs, one one-shot timer, EOI. The guests' APIC is hv/apic/vlapic.c.
 */
#ifndef VLAG_APIC_LAPIC_H
#define VLAG_APIC_LAPIC_H

#include "hv/lib/bits.h"
#include "hv/lib/types.h"
#include "hv/x86/cpu.h"

/* Switches this CPU's APIC on (x2APIC if there is one), masks all LVT entries and prepares the
 * timer. */
void lapic_init(void);

extern bool lapic_x2apic; /* found on the boot CPU, the same for all */

u32 lapic_id(void);

/* The xAPIC's way. */
void lapic_eoi_mmio(void);
void lapic_send_mmio(u32 apic_id, u32 command);

static inline void lapic_eoi_x2apic(void)
{
	wrmsr(MSR_X2APIC + 0xb, 0);
}

static inline void lapic_eoi(void)
{
	if (likely(lapic_x2apic))
		lapic_eoi_x2apic();
	else
		lapic_eoi_mmio();
}

#define LAPIC_ICR_ASSERT BIT(14)

/* Writes the ICR. On the way of every IPI between guests. */
static inline void lapic_send(u32 apic_id, u32 command)
{
	if (unlikely(!lapic_x2apic)) {
		lapic_send_mmio(apic_id, command);
		return;
	}
	/* A WRMSR to the x2APIC is not ordered after earlier stores (SDM vol. 3, 11.12.3). */
	__asm__ volatile("mfence; lfence" : : : "memory");
	wrmsr(MSR_X2APIC + 0x30, (u64)apic_id << 32 | command);
}

/* IPIs to the CPU with @apic_id; each returns when the APIC has taken it. */
static inline void lapic_send_fixed(u32 apic_id, u8 vector)
{
	lapic_send(apic_id, LAPIC_ICR_ASSERT | vector);
}

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
