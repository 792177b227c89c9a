/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every I/O port, legacy interrupt and ACPI constant of the machine that a guest sees. The port
 * dispatcher, the device models and the ACPI tables (also the ASL, through the C preprocessor) take
 * them from here, so only #defines of plain numbers belong in this file.
 */
#ifndef VLAG_DEV_PORTS_H
#define VLAG_DEV_PORTS_H

/* 8259 pair and the edge/level registers */
#define PORT_PIC1 0x20	/* 2 ports */
#define PORT_PIC2 0xA0	/* 2 ports */
#define PORT_ELCR 0x4D0 /* 2 ports */

/* 8254 timer and the system control port with its channel 2 bits: hv/dev/pit.h */
#define PORT_PIT 0x40 /* 4 ports */
#define PORT_NMI_SC 0x61
#define IRQ_PIT 0

/* Keyboard controller and fast A20/reset: hv/dev/kbc.h */
#define PORT_KBC_DATA 0x60
#define PORT_KBC_CMD 0x64
#define PORT_FAST_A20 0x92
#define IRQ_KBC 1

/* RTC and CMOS memory: hv/dev/rtc.h */
#define PORT_RTC_INDEX 0x70
#define PORT_RTC_DATA 0x71
#define IRQ_RTC 8

/* UARTs: hv/dev/uart.h */
#define PORT_COM1 0x3F8 /* 8 ports */
#define PORT_COM2 0x2F8 /* 8 ports */
#define PORT_COM3 0x3E8 /* not there */
#define PORT_COM4 0x2E8
#define IRQ_COM1 4
#define IRQ_COM2 3

/* ACPI fixed hardware: hv/dev/acpipm.h. No SMI_CMD (0 in the FADT): always in ACPI mode. */
#define PORT_PM1A_EVT 0x600 /* PM1_EVT_LEN 4: status word, enable word */
#define PORT_PM1A_CNT 0x604 /* PM1_CNT_LEN 2 */
#define PORT_PM_TMR 0x608   /* PM_TMR_LEN 4, 32 bits wide: FADT flag TMR_VAL_EXT (bit 8) */
#define PM1_EVT_LEN 4
#define PM1_CNT_LEN 2
#define PM_TMR_LEN 4
#define IRQ_SCI 9     /* level, active high as seen by the IOAPIC: MADT override 9 -> 9 */
#define ACPI_S5_TYP 5 /* SLP_TYP of \_S5: Package { 5, 5, 0, 0 } */
#define FADT_TMR_VAL_EXT 0x100
#define FADT_RESET_REG_SUP 0x400

/* Reset control register; the FADT's RESET_REG (system I/O, 8 bits, byte access). */
#define PORT_RESET 0xCF9
#define RESET_VALUE 0x06

/* PCI configuration mechanism 1: hv/dev/pcihost.h. Byte port CF9 is PORT_RESET. */
#define PORT_PCI_ADDRESS 0xCF8 /* 4 ports, dword access */
#define PORT_PCI_DATA 0xCFC    /* 4 ports */

/* The report port (docs/guest-abi.md): which vCPUs the guest prefers; 32-bit accesses. */
#define PORT_REPORT 0x560

/* Ports that guests write for their delay or progress codes: swallowed. */
#define PORT_POST 0x80
#define PORT_DELAY 0xED

#endif
