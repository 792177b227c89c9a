/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RTC model. While the clock runs its registers are computed from the time of day at each
 * access; while the guest sets it (register B, SET) they are memory, and the difference to the VM's
 * time is worked out when it lets go. The flags in register C are brought up to date on demand.
 */
#include "hv/dev/rtc.h"

#include "hv/dev/ports.h"

#define NS_PER_S 1000000000ull
#define DAY_S 86400
#define UIP_NS 244140u /* the update begins so long after UIP has been set */

enum {
	REG_SECONDS,
	REG_SECONDS_ALARM,
	REG_MINUTES,
	REG_MINUTES_ALARM,
	REG_HOURS,
	REG_HOURS_ALARM,
	REG_WEEKDAY,
	REG_DAY,
	REG_MONTH,
	REG_YEAR,
	REG_A,
	REG_B,
	REG_C,
	REG_D,
	REG_SHUTDOWN = 0x0F,
	REG_EQUIPMENT = 0x14,
	REG_BASE_MEM = 0x15,
	REG_EXT_MEM = 0x17,
	REG_EXT_MEM_2 = 0x30,
	REG_CENTURY = 0x32,
	REG_MEM_16M = 0x34,
	REG_MEM_4G = 0x5B,
};
enum { A_UIP = 0x80, A_DIVIDER = 0x70, A_RATE = 0x0F, A_DIVIDER_ON = 0x20, A_DIVIDER_RESET = 0x60 };
enum { B_24H = 0x02, B_BINARY = 0x04, B_UIE = 0x10, B_AIE = 0x20, B_PIE = 0x40, B_SET = 0x80 };
enum { C_UF = 0x10, C_AF = 0x20, C_PF = 0x40, C_IRQF = 0x80 }; /* as the enable bits in B */
enum { D_VALID = 0x80 };
enum { HOURS_PM = 0x80, ALARM_ANY = 0xC0, INDEX_MASK = 0x7F };

/* --- calendar: proleptic Gregorian, years 1 to 16665 (what the registers can hold) --- */

struct date {
	s64 year;
	unsigned month, day; /* from 1 */
};

static bool is_leap(s64 year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static unsigned month_days(s64 year, unsigned month)
{
	static const u8 days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days from 1970-01-01 to the first of January of @year. */
static s64 days_to_year(s64 year)
{
	s64 y = year - 1;

	return 365 * y + y / 4 - y / 100 + y / 400 - 719162;
}

static s64 date_to_days(const struct date *date)
{
	s64 days = days_to_year(date->year) + date->day - 1;

	for (unsigned month = 1; month < date->month; month++)
		days += month_days(date->year, month);
	return days;
}

static struct date days_to_date(s64 days)
{
	struct date date = {.year = 1970 + days / 366, .month = 1};

	/* The guess is off by one year in about 1,500. */
	while (days_to_year(date.year) > days)
		date.year--;
	while (days_to_year(date.year + 1) <= days)
		date.year++;
	days -= days_to_year(date.year);
	while (days >= month_days(date.year, date.month))
		days -= month_days(date.year, date.month++);
	date.day = days + 1;
	return date;
}

/* --- time of day and its registers --- */

static bool is_time_reg(u8 reg)
{
	return reg == REG_SECONDS || reg == REG_MINUTES || reg == REG_HOURS ||
	       (reg >= REG_WEEKDAY && reg <= REG_YEAR) || reg == REG_CENTURY;
}

static u8 encode(const struct rtc *rtc, unsigned value)
{
	return rtc->cmos[REG_B] & B_BINARY ? value : value / 10 << 4 | value % 10;
}

static unsigned decode(const struct rtc *rtc, u8 value)
{
	return rtc->cmos[REG_B] & B_BINARY ? value : (value >> 4) * 10u + (value & 15);
}

static u8 encode_hours(const struct rtc *rtc, unsigned hours)
{
	if (rtc->cmos[REG_B] & B_24H)
		return encode(rtc, hours);
	return encode(rtc, hours % 12 ? hours % 12 : 12) | (hours >= 12 ? HOURS_PM : 0);
}

static unsigned decode_hours(const struct rtc *rtc, u8 value)
{
	if (rtc->cmos[REG_B] & B_24H)
		return decode(rtc, value);
	return decode(rtc, value & ~HOURS_PM) % 12 + (value & HOURS_PM ? 12 : 0);
}

/* UTC seconds since 1970 at @now_ns. */
static s64 seconds_at(const struct rtc *rtc, u64 now_ns)
{
	return rtc->base_s + (s64)((now_ns + rtc->base_frac_ns) / NS_PER_S);
}

/* The first nanosecond of second @s, which is not before VM time 0. */
static u64 second_to_ns(const struct rtc *rtc, s64 s)
{
	return (u64)(s - rtc->base_s) * NS_PER_S - rtc->base_frac_ns;
}

static unsigned time_of_day(s64 s)
{
	s64 rest = s % DAY_S;

	return rest < 0 ? rest + DAY_S : rest;
}

static u8 time_reg(const struct rtc *rtc, u8 reg, u64 now_ns)
{
	s64 s = seconds_at(rtc, now_ns), days;
	unsigned tod = time_of_day(s);
	struct date date;

	switch (reg) {
	case REG_SECONDS:
		return encode(rtc, tod % 60);
	case REG_MINUTES:
		return encode(rtc, tod / 60 % 60);
	case REG_HOURS:
		return encode_hours(rtc, tod / 3600);
	}
	days = (s - tod) / DAY_S;
	date = days_to_date(days);
	switch (reg) {
	case REG_WEEKDAY: /* Sunday is 1; 1970 began on a Thursday */
		return (days % 7 + 7 + 4) % 7 + 1;
	case REG_DAY:
		return encode(rtc, date.day);
	case REG_MONTH:
		return encode(rtc, date.month);
	case REG_YEAR:
		return encode(rtc, date.year % 100);
	default: /* REG_CENTURY */
		return encode(rtc, date.year / 100);
	}
}

static void store_time(struct rtc *rtc, u64 now_ns)
{
	for (u8 reg = 0; reg <= REG_CENTURY; reg++)
		if (is_time_reg(reg))
			rtc->cmos[reg] = time_reg(rtc, reg, now_ns);
}

/* The registers hold the time of @now_ns; what is no date is made one. */
static void load_time(struct rtc *rtc, u64 now_ns)
{
	const u8 *cmos = rtc->cmos;
	struct date date = {
	    .year = max(decode(rtc, cmos[REG_CENTURY]) * 100 + decode(rtc, cmos[REG_YEAR]), 1u),
	    .month = clamp(decode(rtc, cmos[REG_MONTH]), 1u, 12u),
	    .day = clamp(decode(rtc, cmos[REG_DAY]), 1u, 31u),
	};
	s64 s = date_to_days(&date) * DAY_S;

	s += min(decode_hours(rtc, cmos[REG_HOURS]), 23u) * 3600;
	s += min(decode(rtc, cmos[REG_MINUTES]), 59u) * 60;
	s += min(decode(rtc, cmos[REG_SECONDS]), 59u);
	rtc->base_s += s - seconds_at(rtc, now_ns);
}

/* --- events --- */

/* 32,768 Hz ticks per period of the periodic interrupt, as a shift; -1 if there is none. */
static int period_shift(const struct rtc *rtc)
{
	unsigned rate = rtc->cmos[REG_A] & A_RATE;

	if (!rate || (rtc->cmos[REG_A] & A_DIVIDER) != A_DIVIDER_ON)
		return -1;
	return rate <= 2 ? (int)rate + 6 : (int)rate - 1;
}

static u64 ticks_at(u64 ns)
{
	return ns / NS_PER_S * 32768 + ns % NS_PER_S * 32768 / NS_PER_S;
}

static u64 tick_to_ns(u64 tick)
{
	return tick / 32768 * NS_PER_S + (tick % 32768 * NS_PER_S + 32767) / 32768;
}

/* An alarm register that is compared with @value: true if it matches or does not care. */
static bool alarm_matches(u8 raw, unsigned decoded, unsigned value)
{
	return (raw & ALARM_ANY) == ALARM_ANY || decoded == value;
}

/* The first second after @s at which the alarm goes off; INT64_MAX if the alarm is no time. */
static s64 next_alarm(const struct rtc *rtc, s64 s)
{
	u8 raw_s = rtc->cmos[REG_SECONDS_ALARM], raw_m = rtc->cmos[REG_MINUTES_ALARM];
	u8 raw_h = rtc->cmos[REG_HOURS_ALARM];
	unsigned alarm_s = decode(rtc, raw_s), alarm_m = decode(rtc, raw_m);
	unsigned alarm_h = decode_hours(rtc, raw_h);
	unsigned tod = time_of_day(s + 1);
	s64 midnight = s + 1 - tod;

	/* Hour by hour for a day and an hour, minute by minute in an hour that matches. */
	for (unsigned hour = tod / 3600; hour <= tod / 3600 + 24; hour++) {
		if (!alarm_matches(raw_h, alarm_h, hour % 24))
			continue;
		for (unsigned minute = 0; minute < 60; minute++) {
			unsigned start = hour * 3600 + minute * 60, second = alarm_s;

			if (start + 59 < tod || !alarm_matches(raw_m, alarm_m, minute))
				continue;
			if ((raw_s & ALARM_ANY) == ALARM_ANY)
				second = start < tod ? tod - start : 0;
			if (second < 60 && start + second >= tod)
				return midnight + start + second;
		}
	}
	return INT64_MAX;
}

/* Sets the flags for all that has happened since the last time. */
static void note_events(struct rtc *rtc, u64 now_ns)
{
	s64 before = seconds_at(rtc, rtc->checked_ns), s = seconds_at(rtc, now_ns);
	int shift = period_shift(rtc);
	u8 *c = &rtc->cmos[REG_C];

	if (shift >= 0 && ticks_at(now_ns) >> shift != ticks_at(rtc->checked_ns) >> shift)
		*c |= C_PF;
	if (!rtc->frozen && s != before) {
		*c |= C_UF;
		if (!(*c & C_AF) && next_alarm(rtc, before) <= s)
			*c |= C_AF;
	}
	rtc->checked_ns = now_ns;
}

/* After note_events() and every change: interrupt line and next event. */
static void settle(struct rtc *rtc, u64 now_ns)
{
	u8 enabled = rtc->cmos[REG_B] & (B_PIE | B_AIE | B_UIE);
	int shift = period_shift(rtc);
	s64 s = seconds_at(rtc, now_ns);

	rtc->event_ns = UINT64_MAX;
	rtc->irq = rtc->cmos[REG_C] & enabled;
	if (rtc->irq)
		return; /* the next one counts after register C has been read */
	if (enabled & B_PIE && shift >= 0)
		rtc->event_ns = tick_to_ns(((ticks_at(now_ns) >> shift) + 1) << shift);
	if (rtc->frozen)
		return;
	if (enabled & B_UIE)
		rtc->event_ns = min(rtc->event_ns, second_to_ns(rtc, s + 1));
	if (enabled & B_AIE) {
		s64 alarm = next_alarm(rtc, s);

		if (alarm != INT64_MAX)
			rtc->event_ns = min(rtc->event_ns, second_to_ns(rtc, alarm));
	}
}

/* --- ports --- */

static u8 read_a(const struct rtc *rtc, u64 now_ns)
{
	u64 into_second = (now_ns + rtc->base_frac_ns) % NS_PER_S;
	bool uip = !rtc->frozen && into_second >= NS_PER_S - UIP_NS;

	return rtc->cmos[REG_A] | (uip ? A_UIP : 0);
}

static u8 read_c(struct rtc *rtc, u64 now_ns)
{
	u8 value;

	note_events(rtc, now_ns);
	settle(rtc, now_ns);
	value = rtc->cmos[REG_C] | (rtc->irq ? C_IRQF : 0);
	rtc->cmos[REG_C] = 0;
	settle(rtc, now_ns);
	return value;
}

u32 rtc_read(struct rtc *rtc, u16 port, unsigned size, u64 now_ns)
{
	if (port == PORT_RTC_INDEX)
		return 0xFF; /* write-only */
	if (is_time_reg(rtc->index) && !rtc->frozen)
		return time_reg(rtc, rtc->index, now_ns);
	switch (rtc->index) {
	case REG_A:
		return read_a(rtc, now_ns);
	case REG_C:
		return read_c(rtc, now_ns);
	default:
		return rtc->cmos[rtc->index];
	}
}

/*
 * Registers A and B stop the clock and let it go on. With SET the divider runs on, so the next
 * update comes when it would have come anyway; out of divider reset it comes after half a second.
 */
static void write_control(struct rtc *rtc, u8 reg, u8 value, u64 now_ns)
{
	u8 *a = &rtc->cmos[REG_A], *b = &rtc->cmos[REG_B];
	bool was_running = (*a & A_DIVIDER) == A_DIVIDER_ON, running, frozen;

	if (reg == REG_A)
		*a = value & ~A_UIP;
	running = (*a & A_DIVIDER) == A_DIVIDER_ON;
	frozen = !running || (reg == REG_B ? value : *b) & B_SET;
	if (frozen && !rtc->frozen)
		store_time(rtc, now_ns);
	if (reg == REG_B)
		*b = value & B_SET ? value & ~B_UIE : value;
	if (running && !was_running) {
		u64 phase = (now_ns + rtc->base_frac_ns) % NS_PER_S;

		rtc->base_frac_ns =
		    (rtc->base_frac_ns + NS_PER_S + NS_PER_S / 2 - phase) % NS_PER_S;
	}
	if (!frozen && rtc->frozen)
		load_time(rtc, now_ns);
	rtc->frozen = frozen;
}

void rtc_write(struct rtc *rtc, u16 port, unsigned size, u32 value, u64 now_ns)
{
	u8 reg = rtc->index, byte = (u8)value;

	if (port == PORT_RTC_INDEX) {
		rtc->index = byte & INDEX_MASK; /* bit 7 masks NMIs, of which there are none */
		return;
	}
	note_events(rtc, now_ns);
	if (is_time_reg(reg) && !rtc->frozen) {
		store_time(rtc, now_ns);
		rtc->cmos[reg] = byte;
		load_time(rtc, now_ns);
	} else if (reg == REG_A || reg == REG_B) {
		write_control(rtc, reg, byte, now_ns);
	} else if (reg != REG_C && reg != REG_D) {
		rtc->cmos[reg] = byte;
	}
	settle(rtc, now_ns);
}

void rtc_run(struct rtc *rtc, u64 now_ns)
{
	note_events(rtc, now_ns);
	settle(rtc, now_ns);
}

void rtc_reset(struct rtc *rtc, u64 now_ns)
{
	rtc->cmos[REG_B] &= ~(B_PIE | B_AIE | B_UIE);
	rtc->cmos[REG_C] = 0;
	rtc->index = 0;
	rtc->checked_ns = now_ns;
	settle(rtc, now_ns);
}

static void set_word(struct rtc *rtc, u8 reg, u64 value)
{
	value = min(value, (u64)UINT16_MAX);
	rtc->cmos[reg] = value;
	rtc->cmos[reg + 1] = value >> 8;
}

void rtc_init(struct rtc *rtc, s64 epoch_s, u64 mem_low, u64 mem_high)
{
	*rtc = (struct rtc){.base_s = epoch_s};
	rtc->cmos[REG_A] = A_DIVIDER_ON | 6; /* 1,024 Hz */
	rtc->cmos[REG_B] = B_24H;
	rtc->cmos[REG_D] = D_VALID;
	rtc->cmos[REG_EQUIPMENT] = 0x02; /* a floating-point unit */
	set_word(rtc, REG_BASE_MEM, 640);
	set_word(rtc, REG_EXT_MEM, mem_low > MiB ? (mem_low - MiB) / KiB : 0);
	set_word(rtc, REG_EXT_MEM_2, mem_low > MiB ? (mem_low - MiB) / KiB : 0);
	set_word(rtc, REG_MEM_16M, mem_low > 16 * MiB ? (mem_low - 16 * MiB) / (64 * KiB) : 0);
	rtc->cmos[REG_MEM_4G] = mem_high >> 16;
	rtc->cmos[REG_MEM_4G + 1] = mem_high >> 24;
	rtc->cmos[REG_MEM_4G + 2] = mem_high >> 32;
	rtc->event_ns = UINT64_MAX;
}
