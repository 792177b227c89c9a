/* SPDX-License-Identifier: BSD-2-Clause */
/* ACPI fixed hardware: PM1 status, enable and control, PM timer, reset control register. */
#include "hv/dev/acpipm.h"

#include "hv/dev/ports.h"

#define NS_PER_S 1000000000u
#define HALF_PERIOD (1ull << 31) /* the timer's top bit toggles so often: TMR_STS */

enum {
	PM1_TMR = 1 << 0,
	PM1_GBL = 1 << 5,
	PM1_PWRBTN = 1 << 8,
	PM1_SLPBTN = 1 << 9,
	PM1_RTC = 1 << 10,
	PM1_WAK = 1 << 15,
	PM1_STS_MASK = PM1_TMR | PM1_GBL | PM1_PWRBTN | PM1_SLPBTN | PM1_RTC | PM1_WAK,
	PM1_EN_MASK = PM1_TMR | PM1_GBL | PM1_PWRBTN | PM1_SLPBTN | PM1_RTC,
};
enum { CNT_SCI_EN = 1 << 0, CNT_BM_RLD = 1 << 1, CNT_SLP_EN = 1 << 13 };
enum { CNT_SLP_TYP_SHIFT = 10, CNT_SLP_TYP = 7 << CNT_SLP_TYP_SHIFT };
enum { RESET_SYSTEM = 0x02, RESET_CPU = 0x04, RESET_FULL = 0x08 };

static u64 ns_to_tick(u64 ns)
{
	return ns / NS_PER_S * PM_TMR_HZ + ns % NS_PER_S * PM_TMR_HZ / NS_PER_S;
}

/* The first nanosecond of @tick. */
static u64 tick_to_ns(u64 tick)
{
	return tick / PM_TMR_HZ * NS_PER_S +
	       (tick % PM_TMR_HZ * NS_PER_S + PM_TMR_HZ - 1) / PM_TMR_HZ;
}

/* Brings TMR_STS, the SCI and the next event up to date. */
static void settle(struct acpipm *pm, u64 now_ns)
{
	u64 half = ns_to_tick(now_ns) / HALF_PERIOD;

	if (half != pm->tmr_half) {
		pm->tmr_half = half;
		pm->sts |= PM1_TMR;
	}
	pm->irq = pm->sts & pm->en & PM1_EN_MASK;
	pm->event_ns =
	    pm->en & ~pm->sts & PM1_TMR ? tick_to_ns((half + 1) * HALF_PERIOD) : UINT64_MAX;
}

/* One byte of the PM1 blocks; the timer is read as a whole. */
static u8 read_byte(const struct acpipm *pm, unsigned offset)
{
	switch (offset) {
	case 0:
	case 1:
		return pm->sts >> 8 * offset;
	case 2:
	case 3:
		return pm->en >> 8 * (offset - 2);
	case 4:
	case 5:
		return pm->cnt >> 8 * (offset - 4);
	default:
		return 0;
	}
}

static u16 replace_byte(u16 old, unsigned byte, u8 value)
{
	return byte ? (old & 0x00ff) | value << 8 : (old & 0xff00) | value;
}

static void write_cnt(struct acpipm *pm, u16 value)
{
	pm->cnt = CNT_SCI_EN | (value & (CNT_BM_RLD | CNT_SLP_TYP));
	if (value & CNT_SLP_EN && (value & CNT_SLP_TYP) >> CNT_SLP_TYP_SHIFT == ACPI_S5_TYP)
		pm->poweroff = true;
}

static void write_byte(struct acpipm *pm, unsigned offset, u8 value)
{
	switch (offset) {
	case 0:
	case 1:
		pm->sts &= ~(value << 8 * offset); /* write 1 to clear */
		break;
	case 2:
	case 3:
		pm->en = replace_byte(pm->en, offset - 2, value) & PM1_EN_MASK;
		break;
	case 4:
	case 5:
		write_cnt(pm, replace_byte(pm->cnt, offset - 4, value));
		break;
	}
}

/* Intel's chipsets reset when bit 2 goes from 0 to 1; bit 1 chooses how hard, which is one to us.
 */
static void write_reset(struct acpipm *pm, u8 value)
{
	if (value & RESET_CPU && !(pm->reset_control & RESET_CPU))
		pm->reset = true;
	pm->reset_control = value & (RESET_SYSTEM | RESET_CPU | RESET_FULL);
}

u32 acpipm_read(struct acpipm *pm, u16 port, unsigned size, u64 now_ns)
{
	unsigned offset = port - PORT_PM1A_EVT;
	u32 value = 0;

	if (likely((offset & ~3u) == PORT_PM_TMR - PORT_PM1A_EVT))
		return (u32)ns_to_tick(now_ns) >> 8 * (offset & 3);
	if (port == PORT_RESET)
		return pm->reset_control;
	settle(pm, now_ns);
	for (unsigned i = 0; i < size; i++)
		value |= (u32)read_byte(pm, offset + i) << 8 * i;
	return value;
}

void acpipm_write(struct acpipm *pm, u16 port, unsigned size, u32 value, u64 now_ns)
{
	if (port == PORT_RESET) {
		write_reset(pm, (u8)value);
		return;
	}
	settle(pm, now_ns);
	for (unsigned i = 0; i < size; i++)
		write_byte(pm, port - PORT_PM1A_EVT + i, (u8)(value >> 8 * i));
	settle(pm, now_ns);
}

void acpipm_power_button(struct acpipm *pm, u64 now_ns)
{
	pm->sts |= PM1_PWRBTN;
	settle(pm, now_ns);
}

void acpipm_run(struct acpipm *pm, u64 now_ns)
{
	settle(pm, now_ns);
}

void acpipm_init(struct acpipm *pm, u64 now_ns)
{
	*pm = (struct acpipm){
	    .cnt = CNT_SCI_EN,
	    .tmr_half = ns_to_tick(now_ns) / HALF_PERIOD,
	    .event_ns = UINT64_MAX,
	};
}
