/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest's DSDT: soft-off, the serial port and the clock, because those are the devices that an
 * operating system finds through it; what else hv/dev emulates is found at its fixed place. vCPUs
 * are in the MADT. There is no PCI root. Goes through the C preprocessor for ports.h.
 */
#include "hv/dev/ports.h"

DefinitionBlock ("", "DSDT", 2, "VLAG  ", "VLAGDSDT", 1)
{
    Name (\_S5, Package () { ACPI_S5_TYP, ACPI_S5_TYP, 0, 0 })

    Scope (\_SB)
    {
        Device (COM1)
        {
            Name (_HID, EisaId ("PNP0501"))
            Name (_UID, 1)
            Name (_CRS, ResourceTemplate ()
            {
                IO (Decode16, PORT_COM1, PORT_COM1, 0, 8)
                IRQNoFlags () { IRQ_COM1 }
            })
        }

        Device (RTC)
        {
            Name (_HID, EisaId ("PNP0B00"))
            Name (_CRS, ResourceTemplate ()
            {
                IO (Decode16, PORT_RTC_INDEX, PORT_RTC_INDEX, 0, 2)
                IRQNoFlags () { IRQ_RTC }
            })
        }
    }
}
