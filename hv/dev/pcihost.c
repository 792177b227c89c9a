/* SPDX-License-Identifier: BSD-2-Clause */
/* The guests' PCI bus: configuration mechanism 1 and the host bridge behind it. */
#include "hv/dev/pcihost.h"

#include "hv/dev/ports.h"
#include "hv/lib/bits.h"

#define ADDRESS_ENABLE BIT(31)
#define ADDRESS_DEVICE 0x00ffff00u /* bus, device and function: 0 is the bridge */
#define ADDRESS_REGISTER 0xfcu

/* An Intel number that no driver takes to be a chipset that it knows; other small hypervisors use
 * it too. */
#define ID (0x0d57u << 16 | 0x8086)
#define CLASS_REVISION (0x0600u << 16) /* bridge, host; revision 0 */

void pcihost_reset(struct pcihost *p)
{
	p->address = 0;
}

u32 pcihost_read_address(const struct pcihost *p, unsigned size)
{
	return size == 4 ? p->address : UINT32_MAX;
}

void pcihost_write_address(struct pcihost *p, unsigned size, u32 value)
{
	/* Bits 30-24, 1 and 0 are not there (PCI Local Bus Specification 3.0, 3.2.2.3.2). */
	if (size == 4)
		p->address = value & (ADDRESS_ENABLE | ADDRESS_DEVICE | ADDRESS_REGISTER);
}

u32 pcihost_read_data(const struct pcihost *p, u16 port, unsigned size)
{
	u32 offset = port - PORT_PCI_DATA, value = 0;

	if (!(p->address & ADDRESS_ENABLE) || p->address & ADDRESS_DEVICE || offset + size > 4)
		return UINT32_MAX;
	switch (p->address & ADDRESS_REGISTER) {
	case 0x00:
		value = ID;
		break;
	case 0x08:
		value = CLASS_REVISION;
		break;
	}
	return value >> 8 * offset;
}
