/* SPDX-License-Identifier: BSD-2-Clause */
/* The 8042 without a keyboard or a mouse, and port 0x92. */
#include "hv/dev/kbc.h"

#include "hv/dev/ports.h"

enum {
	STATUS_OUT_FULL = 0x01,
	STATUS_SYSTEM = 0x04,
	STATUS_COMMAND = 0x08,
	STATUS_UNLOCKED = 0x10
};
enum { CTR_KBD_IRQ = 0x01, CTR_SYSTEM = 0x04, CTR_KBD_OFF = 0x10, CTR_AUX_OFF = 0x20 };
enum {
	CMD_READ_CTR = 0x20,
	CMD_WRITE_CTR = 0x60,
	CMD_AUX_OFF = 0xA7,
	CMD_AUX_ON = 0xA8,
	CMD_AUX_TEST = 0xA9,
	CMD_SELF_TEST = 0xAA,
	CMD_KBD_TEST = 0xAB,
	CMD_KBD_OFF = 0xAD,
	CMD_KBD_ON = 0xAE,
	CMD_READ_INPUT = 0xC0,
	CMD_READ_OUTPUT = 0xD0,
	CMD_WRITE_OUTPUT = 0xD1,
	CMD_WRITE_OUT_BUFFER = 0xD2,
	CMD_WRITE_AUX_BUFFER = 0xD3,
	CMD_WRITE_AUX = 0xD4,
	CMD_PULSE = 0xF0, /* to 0xFF: bits 0-3 clear are the output lines pulsed low */
};
enum { OUTPUT_NO_RESET = 0x01, OUTPUT_A20 = 0x02 };
enum { P92_RESET = 0x01, P92_A20 = 0x02 };
enum { SELF_TEST_PASSED = 0x55, LINE_STUCK = 0x01, KEY_RESEND = 0xFE };

static void answer(struct kbc *kbc, u8 byte, bool from_key)
{
	kbc->out = byte;
	kbc->full = true;
	kbc->out_is_key = from_key;
}

static void command(struct kbc *kbc, u8 cmd)
{
	kbc->pending = 0;
	switch (cmd) {
	case CMD_READ_CTR:
		answer(kbc, kbc->ctr, false);
		break;
	case CMD_AUX_OFF:
		kbc->ctr |= CTR_AUX_OFF;
		break;
	case CMD_AUX_ON:
		kbc->ctr &= ~CTR_AUX_OFF;
		break;
	case CMD_AUX_TEST:
		answer(kbc, LINE_STUCK, false); /* there is no second port */
		break;
	case CMD_SELF_TEST:
		kbc->ctr |= CTR_SYSTEM;
		answer(kbc, SELF_TEST_PASSED, false);
		break;
	case CMD_KBD_TEST:
		answer(kbc, 0, false);
		break;
	case CMD_KBD_OFF:
		kbc->ctr |= CTR_KBD_OFF;
		break;
	case CMD_KBD_ON:
		kbc->ctr &= ~CTR_KBD_OFF;
		break;
	case CMD_READ_INPUT:
		answer(kbc, 0x80, false); /* not locked by a key */
		break;
	case CMD_READ_OUTPUT:
		answer(kbc, OUTPUT_NO_RESET | OUTPUT_A20, false);
		break;
	case CMD_WRITE_CTR:
	case CMD_WRITE_OUTPUT:
	case CMD_WRITE_OUT_BUFFER:
	case CMD_WRITE_AUX_BUFFER:
	case CMD_WRITE_AUX:
		kbc->pending = cmd;
		break;
	default:
		if (cmd >= CMD_PULSE && !(cmd & OUTPUT_NO_RESET))
			kbc->reset = true;
	}
}

static void data(struct kbc *kbc, u8 byte)
{
	u8 cmd = kbc->pending;

	kbc->pending = 0;
	switch (cmd) {
	case CMD_WRITE_CTR:
		kbc->ctr = byte;
		break;
	case CMD_WRITE_OUTPUT:
		if (!(byte & OUTPUT_NO_RESET))
			kbc->reset = true;
		break;
	case CMD_WRITE_OUT_BUFFER:
		answer(kbc, byte, true);
		break;
	case CMD_WRITE_AUX_BUFFER: /* comes back without the mouse's mark: there is no such port */
	case CMD_WRITE_AUX:
		answer(kbc, KEY_RESEND, false);
		break;
	default:
		kbc->ctr &= ~CTR_KBD_OFF; /* as the controller does */
		answer(kbc, KEY_RESEND, true);
	}
}

static void update_irq(struct kbc *kbc)
{
	kbc->irq = kbc->full && kbc->out_is_key && kbc->ctr & CTR_KBD_IRQ;
}

u32 kbc_read(struct kbc *kbc, u16 port, unsigned size, u64 now_ns)
{
	switch (port) {
	case PORT_KBC_DATA:
		kbc->full = false;
		update_irq(kbc);
		return kbc->out;
	case PORT_KBC_CMD:
		return STATUS_UNLOCKED | (kbc->was_command ? STATUS_COMMAND : 0) |
		       (kbc->ctr & CTR_SYSTEM ? STATUS_SYSTEM : 0) |
		       (kbc->full ? STATUS_OUT_FULL : 0);
	default:
		return kbc->port92 | P92_A20;
	}
}

void kbc_write(struct kbc *kbc, u16 port, unsigned size, u32 value, u64 now_ns)
{
	switch (port) {
	case PORT_KBC_DATA:
		kbc->was_command = false;
		data(kbc, (u8)value);
		break;
	case PORT_KBC_CMD:
		kbc->was_command = true;
		command(kbc, (u8)value);
		break;
	default:
		if (value & P92_RESET && !(kbc->port92 & P92_RESET))
			kbc->reset = true;
		kbc->port92 = (u8)value;
	}
	update_irq(kbc);
}

void kbc_init(struct kbc *kbc)
{
	*kbc = (struct kbc){.ctr = CTR_KBD_IRQ | CTR_SYSTEM | CTR_AUX_OFF, .port92 = P92_A20};
}
