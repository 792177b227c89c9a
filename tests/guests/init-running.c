/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * INIT to a CPU that runs, that is halted, that is in a handler with interrupts waiting and a timer
 * armed: it stops where it is, and a start-up IPI finds its APIC as after INIT, in the mode that it
 * had. Start-up IPIs to a CPU that does not wait for one do nothing. Argument: rounds=.
 */
#include "tests/guests/lib/guest.h"

#define VECTOR 0x60
#define PENDING 0x61
#define TIMER 0x62
#define SVR_RESET 0xff
#define TIMER_COUNT 2000000 /* it would come while nobody is there to take it, or soon after */

enum { SPINS, HALTS, IN_HANDLER, NR_STATES };
static const char *const names[] = {"running", "halted", "in a handler"};

static u32 alive, in_handler, timer_taken, left_over;
static const char *wrong;

static void on_ipi(struct frame *f)
{
	apic_self_ipi(PENDING);
	WRITE_ONCE(in_handler, 1);
	for (;;)
		__atomic_add_fetch(&alive, 1, __ATOMIC_SEQ_CST);
}

static void on_left_over(struct frame *f)
{
	left_over++;
	apic_eoi();
}

static void on_timer(struct frame *f)
{
	timer_taken++;
	apic_eoi();
}

/* SDM vol. 3, 11.4.7.3 */
static void check_registers(void)
{
	bool x2 = rdmsr(MSR_APIC_BASE) & APIC_BASE_EXTD;

	wrong = x2 != x2apic					 ? "the mode changed"
		: (apic_read(APIC_SVR) & 0x1ff) != SVR_RESET	 ? "SVR"
		: apic_read(APIC_TPR)				 ? "TPR"
		: apic_read(APIC_TMICT) || apic_read(APIC_TMCCT) ? "the timer counts"
		: apic_read(APIC_LVT_TIMER) != LVT_MASKED	 ? "LVT timer"
		: apic_read(APIC_LVT_LINT0) != LVT_MASKED	 ? "LVT LINT0"
		: apic_read(APIC_LVT_ERROR) != LVT_MASKED	 ? "LVT error"
		: !x2apic && apic_read(APIC_LDR)		 ? "LDR"
		: !x2apic && apic_read(APIC_DFR) != 0xffffffff	 ? "DFR"
								 : NULL;
	for (u32 i = 0; i < 8 && !wrong; i++) {
		if (apic_read(APIC_IRR + i * 0x10))
			wrong = "IRR";
		else if (apic_read(APIC_ISR + i * 0x10))
			wrong = "ISR";
	}
}

static void dirty_the_apic(void)
{
	if (!x2apic)
		apic_write(APIC_LDR, 0x02000000);
	apic_write(APIC_TPR, 0x20);
	apic_write(APIC_LVT_TIMER, TIMER);
	apic_write(APIC_TMICT, TIMER_COUNT);
}

static void victim(u64 state)
{
	dirty_the_apic();
	if (state == IN_HANDLER)
		apic_self_ipi(VECTOR);
	WRITE_ONCE(alive, 1);
	if (state != SPINS)
		sti();
	for (;;) {
		if (state == HALTS)
			sti_hlt();
		__atomic_add_fetch(&alive, 1, __ATOMIC_SEQ_CST);
	}
}

/* After the restart: nothing of what waited before comes. */
static void listen(u64 unused)
{
	sti();
	delay_ticks(2 * TIMER_COUNT);
	cli();
}

static void one(u32 state)
{
	u32 before;

	alive = in_handler = 0;
	smp_run(1, victim, state);
	wait_count(&in_handler, state == IN_HANDLER, names[state]);
	while (!READ_ONCE(alive))
		pause();
	delay_ticks(3000);
	/* Not waiting for one: ignored. */
	apic_icr(smp_apic_id(1), ICR_STARTUP | TRAMPOLINE >> 12);
	delay_ticks(3000);
	apic_icr(smp_apic_id(1), ICR_INIT);
	delay_ticks(60000);
	before = READ_ONCE(alive);
	delay_ticks(60000);
	CHECK(READ_ONCE(alive) == before, "%s: it runs on after INIT", names[state]);
	/* What is sent to a CPU that waits for SIPI is lost. */
	apic_icr(smp_apic_id(1), ICR_FIXED | PENDING);
	wrong = "smp_on_start was not called";
	smp_restart(1);
	CHECK(!wrong, "%s: after INIT: %s", names[state], wrong);
}

int guest_main(void)
{
	irq_set(VECTOR, on_ipi);
	irq_set(PENDING, on_left_over);
	irq_set(TIMER, on_timer);
	CHECK(smp_start() >= 2, "2 CPUs are needed");
	smp_on_start = check_registers;
	for (u64 round = arg("rounds", 3); round--;) {
		for (u32 state = 0; state < NR_STATES; state++)
			one(state);
	}
	smp_run(1, listen, 0);
	smp_wait(1);
	CHECK(!timer_taken, "the timer fires %u times after INIT", timer_taken);
	CHECK(!left_over, "%u interrupts from before INIT", left_over);
	return 0;
}
