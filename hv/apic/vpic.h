/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pair of 8259A interrupt controllers of a PC with its ELCR, as a pure device model: as much as
 * kernels probe and early boot code uses. The output (INTR) is wired to LINT0 of one local APIC,
 * that of the BSP; whether it gets through is LVT0's business (vlapic_extint()).
 *
 * Lock: everything here is called under the VM's PIC lock, which is the edge's.
 */
#ifndef VLAG_APIC_VPIC_H
#define VLAG_APIC_VPIC_H

#include "hv/lib/types.h"

struct vlapic;

#define VPIC_IRQS 16

/* Ports: 0x20, 0x21 (master), 0xa0, 0xa1 (slave), 0x4d0, 0x4d1 (ELCR). */
#define VPIC_MASTER 0x20
#define VPIC_SLAVE 0xa0
#define VPIC_ELCR 0x4d0

/* One 8259A. */
struct vpic_chip {
	u8 irr, isr, imr;
	u8 line;      /* inputs as they stand */
	u8 elcr;      /* 1: level-triggered */
	u8 base;      /* vector of IR0 */
	u8 lowest;    /* the IR of the lowest priority; 7 unless rotated */
	u8 init_step; /* the ICW that is expected next (2..4), 0: initialised */
	bool want_icw4;
	bool auto_eoi, rotate_auto_eoi;
	bool special_mask;
	bool fully_nested; /* special fully nested mode */
	bool read_isr;	   /* the even port reads the ISR instead of the IRR */
	bool poll;	   /* the next read is the acknowledge */
};

/* Embedded in struct vm. */
struct vpic {
	struct vpic_chip chip[2]; /* master, slave on the master's IR2 */
	struct vlapic *lint0;
	bool output;
};

/* @bsp: whose LINT0 the output is. Ends in vpic_reset(). */
void vpic_setup(struct vpic *pic, struct vlapic *bsp);

/* Power-up, with everything masked as firmware leaves it. */
void vpic_reset(struct vpic *pic);

/* The line of @irq (0..15, 2 is the cascade and ignored). */
void vpic_set_irq(struct vpic *pic, u32 irq, bool level);

/*
 * The interrupt acknowledge cycle: the vector of the highest pending interrupt, which is then in
 * service; that of the spurious IRQ 7 or 15 if it has gone.
 */
u8 vpic_accept(struct vpic *pic);

/* 8-bit port accesses; @port is one of the six above. */
u8 vpic_read(struct vpic *pic, u16 port);
void vpic_write(struct vpic *pic, u16 port, u8 value);

#endif
