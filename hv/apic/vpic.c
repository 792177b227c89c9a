/* SPDX-License-Identifier: BSD-2-Clause */
/* The guest's pair of 8259A interrupt controllers. No lock, no clock; see the header. */
#include "hv/apic/vpic.h"

#include "hv/apic/vlapic.h"
#include "hv/lib/bug.h"
#include "hv/lib/string.h"

#define CASCADE 2
#define SPURIOUS 7

/* Which IRQs can be made level-triggered: not 0, 1, 2, 8, 13. */
static const u8 elcr_valid[2] = {0xf8, 0xde};

/* ICW1, or OCW2 and OCW3, at the even port. */
#define ICW1 0x10
#define ICW1_ICW4 0x01
#define OCW3 0x08
#define OCW3_POLL 0x04

#define ICW4_AUTO_EOI 0x02
#define ICW4_FULLY_NESTED 0x10

/* 0 for the highest priority (the one after the lowest), 7 for the lowest. */
static u32 rank_of(const struct vpic_chip *chip, u32 ir)
{
	return (ir - chip->lowest - 1) & 7;
}

/* The IR of the highest priority in @set, or -1. */
static int highest(const struct vpic_chip *chip, u8 set)
{
	u32 rank;

	for (rank = 0; rank < 8; rank++) {
		u32 ir = (chip->lowest + 1 + rank) & 7;

		if (set & BIT(ir))
			return ir;
	}
	return -1;
}

/* The IR that the chip asks to be served, or -1. */
static int requested(const struct vpic_chip *chip, bool master)
{
	u8 in_service = chip->isr;
	int ir = highest(chip, chip->irr & ~chip->imr);
	int current;

	if (ir < 0 || chip->init_step)
		return -1;
	if (chip->special_mask)
		in_service &= ~chip->imr;
	/* The slave may interrupt the service of another of its inputs. */
	if (chip->fully_nested && master)
		in_service &= ~BIT(CASCADE);
	current = highest(chip, in_service);
	if (current >= 0 && rank_of(chip, ir) >= rank_of(chip, current))
		return -1;
	return ir;
}

static void set_input(struct vpic_chip *chip, u32 ir, bool level)
{
	u8 bit = BIT(ir);

	if (chip->elcr & bit)
		chip->irr = level ? chip->irr | bit : chip->irr & ~bit;
	else if (level && !(chip->line & bit))
		chip->irr |= bit;
	chip->line = level ? chip->line | bit : chip->line & ~bit;
}

/* After any change: slave to master, master to LINT0. */
static void update(struct vpic *pic)
{
	bool output;

	set_input(&pic->chip[0], CASCADE, requested(&pic->chip[1], false) >= 0);
	output = requested(&pic->chip[0], true) >= 0;
	if (output == pic->output)
		return;
	pic->output = output;
	vlapic_set_lint(pic->lint0, 0, output);
}

void vpic_setup(struct vpic *pic, struct vlapic *bsp)
{
	memset(pic, 0, sizeof(*pic));
	pic->lint0 = bsp;
	vpic_reset(pic);
}

void vpic_reset(struct vpic *pic)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		memset(&pic->chip[i], 0, sizeof(pic->chip[i]));
		pic->chip[i].imr = 0xff;
		pic->chip[i].lowest = 7;
	}
	update(pic);
}

void vpic_set_irq(struct vpic *pic, u32 irq, bool level)
{
	BUG_ON(irq >= VPIC_IRQS);
	if (irq == CASCADE)
		return;
	set_input(&pic->chip[irq / 8], irq % 8, level);
	update(pic);
}

/* ---- Acknowledge and end of interrupt ---- */

static void acknowledge(struct vpic_chip *chip, u32 ir)
{
	if (!(chip->elcr & BIT(ir)))
		chip->irr &= ~BIT(ir);
	if (!chip->auto_eoi)
		chip->isr |= BIT(ir);
	else if (chip->rotate_auto_eoi)
		chip->lowest = ir;
}

u8 vpic_accept(struct vpic *pic)
{
	struct vpic_chip *master = &pic->chip[0], *slave = &pic->chip[1];
	int ir = requested(master, true);
	u8 vector;

	if (ir < 0) {
		vector = master->base + SPURIOUS;
	} else if (ir != CASCADE) {
		acknowledge(master, ir);
		vector = master->base + ir;
	} else {
		acknowledge(master, CASCADE);
		ir = requested(slave, false);
		if (ir >= 0)
			acknowledge(slave, ir);
		vector = slave->base + (ir >= 0 ? ir : SPURIOUS);
	}
	update(pic);
	return vector;
}

/* OCW2: end of interrupt and rotation. */
static void write_ocw2(struct vpic_chip *chip, u8 value)
{
	bool rotate = value & 0x80, specific = value & 0x40, eoi = value & 0x20;
	int ir = specific ? value & 7 : highest(chip, chip->isr);

	if (!eoi) {
		if (specific && rotate)
			chip->lowest = ir; /* set priority */
		else if (!specific)
			chip->rotate_auto_eoi = rotate;
		return;
	}
	if (ir < 0)
		return;
	chip->isr &= ~BIT(ir);
	if (rotate)
		chip->lowest = ir;
}

static void write_ocw3(struct vpic_chip *chip, u8 value)
{
	chip->poll = value & OCW3_POLL;
	if (value & 0x02)
		chip->read_isr = value & 0x01;
	if (value & 0x40)
		chip->special_mask = value & 0x20;
}

/* ---- Ports ---- */

static void write_icw1(struct vpic_chip *chip, u8 value)
{
	u8 elcr = chip->elcr, line = chip->line, base = chip->base;

	/* The edge detection starts afresh; a level input stays requested. */
	*chip = (struct vpic_chip){.irr = line & elcr,
				   .line = line,
				   .elcr = elcr,
				   .base = base,
				   .lowest = 7,
				   .init_step = 2,
				   .want_icw4 = value & ICW1_ICW4};
}

static void write_data(struct vpic_chip *chip, u8 value)
{
	switch (chip->init_step) {
	case 2:
		chip->base = value & 0xf8;
		chip->init_step = 3;
		break;
	case 3: /* how they are cascaded is wired */
		chip->init_step = chip->want_icw4 ? 4 : 0;
		break;
	case 4:
		chip->auto_eoi = value & ICW4_AUTO_EOI;
		chip->fully_nested = value & ICW4_FULLY_NESTED;
		chip->init_step = 0;
		break;
	default:
		chip->imr = value; /* OCW1 */
		break;
	}
}

static void write_elcr(struct vpic_chip *chip, u8 value)
{
	u8 irr_level = chip->line & value;

	/* An input that becomes level-triggered follows its line from now on. */
	chip->irr = (chip->irr & ~value) | irr_level;
	chip->elcr = value;
}

void vpic_write(struct vpic *pic, u16 port, u8 value)
{
	struct vpic_chip *chip = &pic->chip[(port & ~1) == VPIC_SLAVE];

	if ((port & ~1) == VPIC_ELCR)
		write_elcr(&pic->chip[port & 1], value & elcr_valid[port & 1]);
	else if (port & 1)
		write_data(chip, value);
	else if (value & ICW1)
		write_icw1(chip, value);
	else if (value & OCW3)
		write_ocw3(chip, value);
	else
		write_ocw2(chip, value);
	update(pic);
}

/* The acknowledge by a read (OCW3's poll command). */
static __attribute__((noinline)) u8 poll_read(struct vpic *pic, struct vpic_chip *chip)
{
	int ir = requested(chip, chip == &pic->chip[0]);

	chip->poll = false;
	if (ir < 0)
		return 0;
	acknowledge(chip, ir);
	update(pic);
	return 0x80 | ir;
}

u8 vpic_read(struct vpic *pic, u16 port)
{
	struct vpic_chip *chip = &pic->chip[(port & ~1) == VPIC_SLAVE];

	if ((port & ~1) == VPIC_ELCR)
		return pic->chip[port & 1].elcr;
	if (chip->poll)
		return poll_read(pic, chip);
	if (port & 1)
		return chip->imr;
	return chip->read_isr ? chip->isr : chip->irr;
}
