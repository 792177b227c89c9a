/* SPDX-License-Identifier: BSD-2-Clause */
/* Ending the machine: power-off through the chipsets that virtual machines have, reset by every way
 * a PC knows. */
#include "hv/panic.h"
#include "hv/x86/cpu.h"
#include "hv/x86/desc.h"

#define PCI_ADDRESS 0xcf8
#define PCI_DATA 0xcfc
#define PCI_ENABLE BIT(31)
#define PIIX4_PM 0x71138086u /* function 3 of the PIIX4 at 00:01 */
#define ICH9_LPC 0x29188086u
#define PM_BASE_REG 0x40
#define PM_BASE_MASK 0xffc0u
#define PM1_CNT 4
#define SLP_EN BIT(13)

static u32 pci_read(u32 device, u32 function, u32 reg)
{
	outl(PCI_ADDRESS, PCI_ENABLE | device << 11 | function << 8 | reg);
	return inl(PCI_DATA);
}

/* S5 has SLP_TYP 0 on both. Real machines want their DSDT's \_S5 instead, which nobody here can
 * read. */
static void poweroff_by_chipset(u32 device, u32 function, u32 id)
{
	u16 base;

	if (pci_read(device, function, 0) != id)
		return;
	base = pci_read(device, function, PM_BASE_REG) & PM_BASE_MASK;
	if (base)
		outw(base + PM1_CNT, SLP_EN);
}

void machine_poweroff(void)
{
	poweroff_by_chipset(1, 3, PIIX4_PM);
	poweroff_by_chipset(31, 0, ICH9_LPC);
	hlt_forever();
}

void machine_reboot(void)
{
	struct desc_ptr nothing = {0};

	outb(0xcf9, 0x02);
	outb(0xcf9, 0x06);
	outb(0x64, 0xfe);
	__asm__ volatile("lidt %0; int3" : : "m"(nothing));
	hlt_forever();
}
