/* SPDX-License-Identifier: BSD-2-Clause */
/* The guest's I/O APIC. No lock, no clock; see the header. */
#include "hv/apic/vioapic.h"

#include "hv/lib/bug.h"
#include "hv/lib/string.h"

/* Offsets in the page. */
#define IOREGSEL 0x00
#define IOWIN 0x10
#define IOEOI 0x40

/* What IOREGSEL selects. */
#define IOAPICID 0x00
#define IOAPICVER 0x01
#define IOAPICARB 0x02
#define IOREDTBL 0x10

#define VERSION (0x20u | (VIOAPIC_PINS - 1) << 16)
#define RTE_READ_ONLY (VIOAPIC_RTE_STATUS | VIOAPIC_RTE_REMOTE_IRR)
#define RTE_VALID 0xff0000000001ffffull

void vioapic_setup(struct vioapic *io, struct apic_map *map, u8 id)
{
	memset(io, 0, sizeof(*io));
	io->map = map;
	io->reset_id = id;
	vioapic_reset(io);
}

void vioapic_reset(struct vioapic *io)
{
	u32 pin;

	for (pin = 0; pin < VIOAPIC_PINS; pin++)
		io->rte[pin] = VIOAPIC_RTE_MASKED;
	io->asserted = 0;
	io->index = 0;
	io->id = io->reset_id & 0xf;
}

static bool is_level(u64 rte)
{
	/* NMI, INIT and the like are edge-triggered whatever the entry says. */
	return (rte & VIOAPIC_RTE_LEVEL) && VIOAPIC_RTE_DELIVERY(rte) <= APIC_DM_LOWEST;
}

static void send(struct vioapic *io, u32 pin)
{
	u64 rte = io->rte[pin];
	struct apic_msg msg = {
	    .dest = VIOAPIC_RTE_DEST(rte),
	    .vector = rte & VIOAPIC_RTE_VECTOR,
	    .delivery = VIOAPIC_RTE_DELIVERY(rte),
	    .logical = rte & VIOAPIC_RTE_LOGICAL,
	    .level = is_level(rte),
	};

	if (!apic_map_deliver(io->map, &msg)) {
		io->lost++;
		return;
	}
	io->sent[pin]++;
	if (msg.level)
		io->rte[pin] |= VIOAPIC_RTE_REMOTE_IRR;
}

/* A level-triggered pin sends while it is asserted and nothing is under way. */
static void evaluate_level(struct vioapic *io, u32 pin)
{
	u64 rte = io->rte[pin];

	if (is_level(rte) && (io->asserted & BIT(pin)) &&
	    !(rte & (VIOAPIC_RTE_MASKED | VIOAPIC_RTE_REMOTE_IRR)))
		send(io, pin);
}

void vioapic_set_irq(struct vioapic *io, u32 pin, bool asserted)
{
	bool before;

	BUG_ON(pin >= VIOAPIC_PINS);
	before = io->asserted & BIT(pin);
	if (before == asserted)
		return;
	io->asserted ^= BIT(pin);
	if (!asserted)
		return;
	if (is_level(io->rte[pin]))
		evaluate_level(io, pin);
	else if (!(io->rte[pin] & VIOAPIC_RTE_MASKED))
		send(io, pin);
}

void vioapic_eoi(struct vioapic *io, u8 vector)
{
	u32 pin;

	for (pin = 0; pin < VIOAPIC_PINS; pin++) {
		u64 rte = io->rte[pin];

		if (!(rte & VIOAPIC_RTE_REMOTE_IRR) || (rte & VIOAPIC_RTE_VECTOR) != vector)
			continue;
		io->rte[pin] = rte & ~VIOAPIC_RTE_REMOTE_IRR;
		evaluate_level(io, pin);
	}
}

static void write_rte(struct vioapic *io, u32 pin, bool high, u32 value)
{
	u64 old = io->rte[pin];
	u64 rte = high ? (u64)value << 32 | (u32)old : (old & ~(u64)UINT32_MAX) | value;

	rte = (rte & RTE_VALID & ~RTE_READ_ONLY) | (old & RTE_READ_ONLY);
	/* Kernels end a level interrupt on an IOAPIC without EOI register by making it edge. */
	if (!is_level(rte))
		rte &= ~VIOAPIC_RTE_REMOTE_IRR;
	io->rte[pin] = rte;
	evaluate_level(io, pin);
}

static u32 read_indexed(const struct vioapic *io)
{
	u32 entry = io->index - IOREDTBL;

	switch (io->index) {
	case IOAPICID:
	case IOAPICARB:
		return (u32)io->id << 24;
	case IOAPICVER:
		return VERSION;
	}
	if (entry / 2 >= VIOAPIC_PINS)
		return 0;
	return io->rte[entry / 2] >> (entry % 2 * 32);
}

u32 vioapic_read(const struct vioapic *io, u32 offset)
{
	switch (offset) {
	case IOREGSEL:
		return io->index;
	case IOWIN:
		return read_indexed(io);
	default: /* EOI is write-only, the rest reserved */
		return 0;
	}
}

void vioapic_write(struct vioapic *io, u32 offset, u32 value)
{
	u32 entry = io->index - IOREDTBL;

	switch (offset) {
	case IOREGSEL:
		io->index = value;
		break;
	case IOEOI:
		vioapic_eoi(io, value);
		break;
	case IOWIN:
		if (io->index == IOAPICID)
			io->id = value >> 24 & 0xf;
		else if (entry / 2 < VIOAPIC_PINS)
			write_rte(io, entry / 2, entry % 2, value);
		break;
	}
}
