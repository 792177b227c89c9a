/* SPDX-License-Identifier: BSD-2-Clause */
/* The local APIC in both of its modes. */
#include "tests/guests/lib/guest.h"

bool x2apic;

#define SVR_ENABLE 0x100
#define SPURIOUS 0xff

static volatile u32 *mmio(u32 reg)
{
	return (volatile u32 *)(APIC_MMIO + reg);
}

u32 apic_read(u32 reg)
{
	return x2apic ? (u32)rdmsr(APIC_MSR(reg)) : *mmio(reg);
}

void apic_write(u32 reg, u32 value)
{
	if (x2apic)
		wrmsr(APIC_MSR(reg), value);
	else
		*mmio(reg) = value;
}

bool apic_bit(u32 reg, u8 vector)
{
	return apic_read(reg + vector / 32 * 0x10) >> vector % 32 & 1;
}

void apic_eoi(void)
{
	apic_write(APIC_EOI, 0);
}

u32 apic_id(void)
{
	return x2apic ? apic_read(APIC_ID) : apic_read(APIC_ID) >> 24;
}

void apic_icr(u32 dest, u32 low)
{
	if (x2apic) {
		/* WRMSR to the x2APIC is not serializing: stores must be visible first. */
		__asm__ volatile("mfence; lfence" ::: "memory");
		wrmsr(APIC_MSR(APIC_ICR), (u64)dest << 32 | low);
		return;
	}
	while (apic_read(APIC_ICR) & ICR_BUSY)
		pause();
	apic_write(APIC_ICR2, dest << 24);
	apic_write(APIC_ICR, low);
}

void apic_self_ipi(u8 vector)
{
	if (x2apic)
		wrmsr(APIC_MSR(APIC_SELF_IPI), vector);
	else /* one write: a shorthand needs no destination */
		apic_write(APIC_ICR, ICR_SELF | ICR_FIXED | vector);
}

bool apic_has_x2apic(void)
{
	u32 r[4];

	cpuid(1, 0, r);
	return r[2] & BIT(21);
}

bool apic_has_deadline(void)
{
	u32 r[4];

	cpuid(1, 0, r);
	return r[2] & BIT(24);
}

static void spurious(struct frame *f)
{
}

static void enable(void)
{
	apic_write(APIC_LVT_TIMER, LVT_MASKED);
	apic_write(APIC_LVT_LINT0, LVT_MASKED);
	apic_write(APIC_LVT_ERROR, LVT_MASKED);
	apic_write(APIC_TPR, 0);
	apic_write(APIC_SVR, SVR_ENABLE | SPURIOUS);
}

/* The boot CPU's mode is the mode of all. An AP that is in another (INIT keeps it) follows. */
void apic_init(void)
{
	u64 base = rdmsr(MSR_APIC_BASE);

	if (smp_cpu() == 0) {
		x2apic = base & APIC_BASE_EXTD;
		irq_set(SPURIOUS, spurious);
		if (!(base & APIC_BASE_EN))
			wrmsr(MSR_APIC_BASE, base | APIC_BASE_EN);
	} else if (x2apic != !!(base & APIC_BASE_EXTD)) {
		apic_set_mode(x2apic);
		return;
	}
	enable();
}

void apic_set_mode(bool x2)
{
	u64 base = rdmsr(MSR_APIC_BASE) & ~(APIC_BASE_EN | APIC_BASE_EXTD);

	/* SDM vol. 3, 11.12.5: x2APIC mode is left only through "disabled". */
	if (!x2)
		wrmsr(MSR_APIC_BASE, base);
	wrmsr(MSR_APIC_BASE, base | APIC_BASE_EN);
	if (x2)
		wrmsr(MSR_APIC_BASE, base | APIC_BASE_EN | APIC_BASE_EXTD);
	x2apic = x2;
	enable();
}
