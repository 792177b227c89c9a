/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IA32_APIC_BASE: every transition between disabled, xAPIC and x2APIC, legal or #GP; what each
 * keeps; which registers each mode has, and #GP for the MSRs that are not there, not readable, not
 * writable, or written with reserved bits. SDM vol. 3, 11.12.
 */
#include "tests/guests/lib/guest.h"

#define GP 13
#define VECTOR 0x60
#define EN APIC_BASE_EN
#define BOTH (APIC_BASE_EN | APIC_BASE_EXTD)
#define SVR 0x1ff

static u32 taken;

static void on_ipi(struct frame *f)
{
	taken++;
	apic_eoi();
}

static int set(u64 mode)
{
	int raised = wrmsr_safe(MSR_APIC_BASE, (rdmsr(MSR_APIC_BASE) & ~BOTH) | mode);
	u64 now = rdmsr(MSR_APIC_BASE) & BOTH;

	CHECK(raised == GP || now == mode, "APIC_BASE reads %llx after %llx",
	      (unsigned long long)now, (unsigned long long)mode);
	if (raised == -1)
		x2apic = mode == BOTH;
	return raised;
}

static void transition(u64 from, u64 to, int want)
{
	int raised;

	/* By legal ways. */
	set(0);
	if (from)
		CHECK(set(EN) == -1, "disabled to xAPIC");
	if (from == BOTH)
		CHECK(set(BOTH) == -1, "xAPIC to x2APIC");
	raised = set(to);
	CHECK(raised == want, "%llx to %llx raises %d, not %d", (unsigned long long)from,
	      (unsigned long long)to, raised, want);
	CHECK(want == -1 || (rdmsr(MSR_APIC_BASE) & BOTH) == from, "%llx changed by a #GP",
	      (unsigned long long)from);
}

static void transitions(void)
{
	static const u64 modes[] = {0, EN, BOTH};
	static const int want[3][3] = {{-1, -1, GP}, {-1, -1, -1}, {-1, GP, -1}};

	for (u32 i = 0; i < 3; i++) {
		transition(modes[i], APIC_BASE_EXTD, GP);
		for (u32 k = 0; k < 3; k++)
			transition(modes[i], modes[k], want[i][k]);
	}
	set(0);
	set(EN);
	CHECK(wrmsr_safe(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | BIT(9)) == GP, "reserved bit 9");
	CHECK(wrmsr_safe(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | BIT(52)) == GP, "reserved bit 52");
}

static void self_ipi_works(const char *when)
{
	taken = 0;
	apic_self_ipi(VECTOR);
	sti();
	wait_count(&taken, 1, when);
	cli();
}

/* xAPIC to x2APIC keeps everything; "disabled" loses it. */
static void state(void)
{
	set(0);
	set(EN);
	CHECK((apic_read(APIC_SVR) & 0x1ff) == 0xff, "SVR is %x after disabled",
	      apic_read(APIC_SVR));
	CHECK(apic_read(APIC_LVT_TIMER) == LVT_MASKED, "LVT timer is %x after disabled",
	      apic_read(APIC_LVT_TIMER));
	apic_write(APIC_SVR, SVR);
	self_ipi_works("xAPIC");
	apic_write(APIC_TPR, 0x30);
	apic_write(APIC_LVT_TIMER, LVT_MASKED | 0x55);
	apic_write(APIC_TDCR, 3);
	apic_self_ipi(VECTOR); /* waits with interrupts off */
	set(BOTH);
	CHECK(apic_read(APIC_SVR) == SVR, "SVR is %x in x2APIC mode", apic_read(APIC_SVR));
	CHECK(apic_read(APIC_TPR) == 0x30, "TPR is %x in x2APIC mode", apic_read(APIC_TPR));
	CHECK(apic_read(APIC_LVT_TIMER) == (LVT_MASKED | 0x55), "LVT timer is not kept");
	CHECK(apic_read(APIC_TDCR) == 3, "TDCR is not kept");
	CHECK(apic_bit(APIC_IRR, VECTOR), "the IRR is not kept");
	CHECK(apic_read(APIC_LDR) == ((apic_id() >> 4) << 16 | 1u << (apic_id() & 15)), "LDR is %x",
	      apic_read(APIC_LDR));
	taken = 0;
	sti();
	wait_count(&taken, 1, "what waited over the change of mode");
	cli();
	apic_write(APIC_TPR, 0);
	self_ipi_works("x2APIC");
}

static void no_msrs(const char *mode)
{
	u64 value;

	for (u32 reg = APIC_ID; reg < APIC_SELF_IPI; reg += 0x10) {
		CHECK(rdmsr_safe(APIC_MSR(reg), &value) == GP, "RDMSR %x in %s mode", APIC_MSR(reg),
		      mode);
		CHECK(wrmsr_safe(APIC_MSR(reg), 0) == GP, "WRMSR %x in %s mode", APIC_MSR(reg),
		      mode);
	}
}

enum { R = 1, W = 2, RW = 3 };

static u32 access(u32 reg)
{
	switch (reg) {
	case APIC_ID:
	case APIC_VERSION:
	case APIC_PPR:
	case APIC_LDR:
	case APIC_ISR ... APIC_ISR + 0x70:
	case APIC_TMR ... APIC_TMR + 0x70:
	case APIC_IRR ... APIC_IRR + 0x70:
	case APIC_TMCCT:
		return R;
	case APIC_EOI:
	case APIC_SELF_IPI:
		return W;
	case APIC_TPR:
	case APIC_SVR:
	case APIC_ESR:
	case APIC_ICR:
	case APIC_LVT_TIMER ... APIC_LVT_ERROR:
	case APIC_TMICT:
	case APIC_TDCR:
		return RW;
	default:
		return 0;
	}
}

static void x2apic_registers(void)
{
	u64 value;

	for (u32 reg = 0; reg < 0x1000; reg += 0x10) {
		int raised = rdmsr_safe(APIC_MSR(reg), &value);

		CHECK((raised == -1) == !!(access(reg) & R), "RDMSR %x raises %d", APIC_MSR(reg),
		      raised);
		if (access(reg) & W)
			continue;
		CHECK(wrmsr_safe(APIC_MSR(reg), 0) == GP, "WRMSR %x does not raise #GP",
		      APIC_MSR(reg));
	}
	CHECK(wrmsr_safe(APIC_MSR(APIC_EOI), 1) == GP, "EOI of 1");
	CHECK(wrmsr_safe(APIC_MSR(APIC_ESR), 1) == GP, "ESR of 1");
	CHECK(wrmsr_safe(APIC_MSR(APIC_TPR), 0x100) == GP, "TPR of 100");
	CHECK(wrmsr_safe(APIC_MSR(APIC_SVR), 1ull << 32 | SVR) == GP, "SVR above 32 bits");
	CHECK(wrmsr_safe(APIC_MSR(APIC_TDCR), 4) == GP, "TDCR of 4");
	CHECK(wrmsr_safe(APIC_MSR(APIC_LVT_TIMER), LVT_MASKED | BIT(13)) == GP, "LVT, bit 13");
	CHECK(wrmsr_safe(APIC_MSR(APIC_LVT_ERROR), LVT_MASKED | 0x60) == -1, "LVT error");
}

/* INIT keeps the mode, and an AP can be in another mode than CPU 0 before it follows. */
static u64 ap_mode;

static void note_mode(void)
{
	ap_mode = rdmsr(MSR_APIC_BASE) & BOTH;
}

static void init_keeps_it(void)
{
	CHECK(smp_start() >= 2, "2 CPUs are needed");
	smp_on_start = note_mode;
	smp_restart(1);
	CHECK(ap_mode == BOTH, "the mode is %llx after INIT, not x2APIC",
	      (unsigned long long)ap_mode);
}

int guest_main(void)
{
	irq_set(VECTOR, on_ipi);
	if (!apic_has_x2apic())
		test_skip("no x2APIC mode");
	transitions();
	set(0);
	no_msrs("disabled");
	set(EN);
	no_msrs("xAPIC");
	state();
	x2apic_registers();
	init_keeps_it();
	return 0;
}
