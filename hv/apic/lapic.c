/* SPDX-License-Identifier: BSD-2-Clause */
/* The host's local APIC; see lapic.h. SDM vol. 3, chapter 11. */
#include "hv/apic/lapic.h"

#include "hv/lib/bug.h"
#include "hv/x86/cpu.h"
#include "hv/x86/desc.h"

#define XAPIC_BASE 0xfee00000ull

/* Register offsets of the xAPIC; the x2APIC's MSR is 0x800 + offset / 16. */
#define REG_ID 0x020
#define REG_TPR 0x080
#define REG_EOI 0x0b0
#define REG_SVR 0x0f0
#define REG_ESR 0x280
#define REG_ICR 0x300
#define REG_ICR_HIGH 0x310
#define REG_LVT_TIMER 0x320
#define REG_LVT_THERMAL 0x330
#define REG_LVT_PMC 0x340
#define REG_LVT_LINT0 0x350
#define REG_LVT_LINT1 0x360
#define REG_LVT_ERROR 0x370
#define REG_TIMER_INITIAL 0x380
#define REG_TIMER_CURRENT 0x390
#define REG_TIMER_DIVIDE 0x3e0

#define LVT_MASKED BIT(16)
#define LVT_TSC_DEADLINE (2u << 17)
#define SVR_ENABLE BIT(8)
#define DIVIDE_BY_1 0xb
#define ICR_PENDING BIT(12)
#define ICR_NMI (4u << 8)
#define ICR_INIT (5u << 8)
#define ICR_SIPI (6u << 8)

/* Found on the boot CPU, the same for all: written before any other CPU starts. */
bool lapic_x2apic;
static bool has_deadline;
static u64 ticks_per_count_shifted; /* TSC ticks per timer count, << 16 */

static u32 reg_read(u32 reg)
{
	if (lapic_x2apic)
		return rdmsr(MSR_X2APIC + reg / 16);
	return *(volatile u32 *)(XAPIC_BASE + reg);
}

static void reg_write(u32 reg, u32 value)
{
	if (lapic_x2apic)
		wrmsr(MSR_X2APIC + reg / 16, value);
	else
		*(volatile u32 *)(XAPIC_BASE + reg) = value;
}

u32 lapic_id(void)
{
	u32 id = reg_read(REG_ID);

	return lapic_x2apic ? id : id >> 24;
}

void lapic_eoi_mmio(void)
{
	reg_write(REG_EOI, 0);
}

void lapic_init(void)
{
	static const u16 lvts[] = {REG_LVT_THERMAL, REG_LVT_PMC, REG_LVT_LINT0, REG_LVT_LINT1,
				   REG_LVT_ERROR};
	u32 ecx = cpuid(1, 0).ecx;
	u64 base = rdmsr(MSR_APIC_BASE);

	lapic_x2apic = ecx & BIT(21);
	has_deadline = ecx & BIT(24);
	BUG_ON(!lapic_x2apic && ALIGN_DOWN(base, PAGE_SIZE) != XAPIC_BASE);
	/* From "disabled" x2APIC is reached through xAPIC only (SDM vol. 3, 11.12.5). */
	wrmsr(MSR_APIC_BASE, base | APIC_BASE_EN);
	if (lapic_x2apic)
		wrmsr(MSR_APIC_BASE, base | APIC_BASE_EN | APIC_BASE_EXTD);

	reg_write(REG_SVR, SVR_ENABLE | VEC_SPURIOUS);
	reg_write(REG_TPR, 0);
	for (u32 i = 0; i < ARRAY_SIZE(lvts); i++)
		reg_write(lvts[i], LVT_MASKED);
	reg_write(REG_TIMER_DIVIDE, DIVIDE_BY_1);
	reg_write(REG_LVT_TIMER, VEC_TIMER | (has_deadline ? LVT_TSC_DEADLINE : 0));
	reg_write(REG_ESR, 0);
}

void lapic_send_mmio(u32 apic_id, u32 command)
{
	reg_write(REG_ICR_HIGH, apic_id << 24);
	reg_write(REG_ICR, command);
	while (reg_read(REG_ICR) & ICR_PENDING)
		cpu_relax();
}

void lapic_send_nmi(u32 apic_id)
{
	lapic_send(apic_id, LAPIC_ICR_ASSERT | ICR_NMI);
}

void lapic_send_init(u32 apic_id)
{
	lapic_send(apic_id, LAPIC_ICR_ASSERT | ICR_INIT);
}

void lapic_send_sipi(u32 apic_id, u8 page)
{
	lapic_send(apic_id, LAPIC_ICR_ASSERT | ICR_SIPI | page);
}

void lapic_calibrate(void)
{
	u64 t0, counts;

	if (has_deadline)
		return;
	reg_write(REG_LVT_TIMER, VEC_TIMER | LVT_MASKED);
	reg_write(REG_TIMER_INITIAL, UINT32_MAX);
	t0 = rdtsc();
	while (rdtsc() - t0 < 1000000)
		cpu_relax();
	counts = UINT32_MAX - reg_read(REG_TIMER_CURRENT);
	ticks_per_count_shifted = ((rdtsc() - t0) << 16) / max(counts, 1ull);
	reg_write(REG_TIMER_INITIAL, 0);
	reg_write(REG_LVT_TIMER, VEC_TIMER);
}

void lapic_timer_arm(u64 tsc)
{
	u64 now, counts;

	if (has_deadline) {
		wrmsr(MSR_TSC_DEADLINE, tsc);
		return;
	}
	now = rdtsc();
	counts = tsc > now ? ((tsc - now) << 16) / max(ticks_per_count_shifted, 1ull) : 0;
	reg_write(REG_TIMER_INITIAL, clamp(counts, 1ull, (u64)UINT32_MAX));
}
