/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACPI fixed hardware (ACPI specification 6.4, 4.8): PM1a event and control blocks, the PM timer,
 * the power button, and the reset control register 0xCF9. Ports and constants are in
 * hv/dev/ports.h. There is no SMI_CMD: SCI_EN is always 1. Pure model; the owner holds the VM's
 * device lock around every call, except for reads of the PM timer, which touch no state.
 */
#ifndef VLAG_DEV_ACPIPM_H
#define VLAG_DEV_ACPIPM_H

#include "hv/lib/types.h"

#define PM_TMR_HZ 3579545u

struct acpipm {
	bool irq;      /* SCI, level */
	bool poweroff; /* the guest asked for S5: the owner ends the VM */
	bool reset;    /* the guest wrote a reset to 0xCF9: the owner resets the VM */
	u8 reset_control;
	u16 sts, en, cnt; /* PM1 registers; TMR_STS is brought up to date when needed */
	u64 tmr_half;	  /* half-periods of the PM timer that TMR_STS has accounted for */
	u64 event_ns;	  /* see acpipm_next_event() */
};

void acpipm_init(struct acpipm *pm, u64 now_ns);

/* Ports 0x600-0x60B in any aligned size and bytes of 0xCF9. */
u32 acpipm_read(struct acpipm *pm, u16 port, unsigned size, u64 now_ns);
void acpipm_write(struct acpipm *pm, u16 port, unsigned size, u32 value, u64 now_ns);

/* The power button is pressed: a guest with an ACPI driver shuts down. */
void acpipm_power_button(struct acpipm *pm, u64 now_ns);

/* Time of the next timer overflow that raises an SCI, UINT64_MAX if none. */
static inline u64 acpipm_next_event(const struct acpipm *pm, u64 now_ns)
{
	return pm->event_ns;
}

void acpipm_run(struct acpipm *pm, u64 now_ns);

#endif
