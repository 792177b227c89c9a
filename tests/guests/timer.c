/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clocks agree: PIT channel 2 is the yardstick for the TSC, the local APIC timer and the ACPI
 * PM timer, over a short and a long interval. The RTC shows a sensible time. Arguments:
 * tolerance= in permille (10), rtc_tick=1 waits for the RTC to advance and measures that second.
 */
#include "tests/guests/lib/guest.h"

#define PIT_HZ 1193182ull
#define PM_HZ 3579545ull
#define SHORT_TICKS 11932 /* 10 ms */
#define LONG_TICKS 47727  /* 40 ms */
#define TDCR_1 0xb

struct sample {
	u64 tsc, lapic, pm;
};

static u32 pm_mask;
static u16 pm_port;

static struct sample elapsed(u16 pit_ticks)
{
	struct sample a, b;

	apic_write(APIC_TMICT, ~0u);
	pit_start(pit_ticks);
	a = (struct sample){rdtsc(), apic_read(APIC_TMCCT), inl(pm_port)};
	while (!pit_done())
		;
	b = (struct sample){rdtsc(), apic_read(APIC_TMCCT), inl(pm_port)};
	CHECK(b.lapic, "the local APIC timer ran out");
	return (struct sample){b.tsc - a.tsc, a.lapic - b.lapic, (b.pm - a.pm) & pm_mask};
}

/* @got is @want within the tolerance. */
static void close_to(const char *what, u64 got, u64 want)
{
	u64 tolerance = want * arg("tolerance", 10) / 1000;

	CHECK(got + tolerance >= want && got <= want + tolerance, "%s is %llu, not about %llu",
	      what, (unsigned long long)got, (unsigned long long)want);
}

static void clocks(void)
{
	const u8 *fadt = acpi_find("FACP");
	struct sample s, l;

	pm_port = acpi_pm_timer();
	CHECK(pm_port, "no PM timer in the FADT");
	pm_mask = acpi_u32(fadt, 112) & FADT_TMR_VAL_EXT ? ~0u : 0xffffff;
	apic_write(APIC_TDCR, TDCR_1);
	apic_write(APIC_LVT_TIMER, LVT_MASKED);
	s = elapsed(SHORT_TICKS);
	l = elapsed(LONG_TICKS);
	apic_write(APIC_TMICT, 0);
	printf("timer: TSC %llu Hz, local APIC %llu Hz, PM timer %llu Hz\n",
	       (unsigned long long)(l.tsc * PIT_HZ / LONG_TICKS),
	       (unsigned long long)(l.lapic * PIT_HZ / LONG_TICKS),
	       (unsigned long long)(l.pm * PIT_HZ / LONG_TICKS));
	close_to("the PM timer's rate", l.pm * PIT_HZ / LONG_TICKS, PM_HZ);
	close_to("TSC ticks over 40 ms", l.tsc, s.tsc * LONG_TICKS / SHORT_TICKS);
	close_to("APIC timer ticks over 40 ms", l.lapic, s.lapic * LONG_TICKS / SHORT_TICKS);
}

static u8 cmos(u8 index)
{
	outb(PORT_RTC_INDEX, index);
	return inb(PORT_RTC_DATA);
}

/* One field, as a number, in whichever form register B says. */
static u32 field(u8 index)
{
	u8 v = cmos(index);

	if (cmos(0x0b) & 4)
		return v;
	CHECK((v & 15) < 10 && v >> 4 < 10, "RTC register %u holds %02x, no BCD", index, v);
	return (v >> 4) * 10 + (v & 15);
}

static u32 seconds(void)
{
	while (cmos(0x0a) & 0x80)
		;
	return field(0);
}

static void rtc(void)
{
	u32 s = seconds(), m = field(2), day = field(7), month = field(8), year = field(9);
	u64 start, ticks;

	printf("rtc: day %u month %u year %u, minute %u second %u\n", day, month, year, m, s);
	CHECK(s < 60 && m < 60 && day - 1 < 31 && month - 1 < 12, "the RTC shows no valid time");
	CHECK(cmos(0x0d) & 0x80, "the RTC says that its time is not valid");
	if (!arg("rtc_tick", 0))
		return;
	while (seconds() == s)
		;
	start = rdtsc();
	s = seconds();
	while (seconds() == s)
		;
	ticks = rdtsc() - start; /* not in the call: tsc_hz() takes 10 ms the first time */
	close_to("an RTC second in TSC ticks", ticks, tsc_hz());
}

int guest_main(void)
{
	clocks();
	rtc();
	return 0;
}
