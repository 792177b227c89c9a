/* SPDX-License-Identifier: BSD-2-Clause */
/* The firmware's date as seconds. Pure: reads no clock. */
#include "boot/epoch.h"

static bool is_leap(u32 year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static u32 days_of_month(u32 year, u32 month)
{
	static const u8 days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days from 0001-01-01 to the first day of @year. */
static u64 days_before_year(u32 year)
{
	u64 y = year - 1;

	return y * 365 + y / 4 - y / 100 + y / 400;
}

u64 epoch_seconds(u32 year, u32 month, u32 day, u32 hour, u32 minute, u32 second, s32 zone_minutes)
{
	u64 days;
	s64 s;

	if (year < 1970 || year > 9999 || month < 1 || month > 12 || day < 1 ||
	    day > days_of_month(year, month) || hour > 23 || minute > 59 || second > 59 ||
	    zone_minutes < -1440 || zone_minutes > 1440)
		return 0;
	days = days_before_year(year) - days_before_year(1970) + day - 1;
	for (u32 m = 1; m < month; m++)
		days += days_of_month(year, m);
	s = (s64)((days * 24 + hour) * 60 + minute) * 60 + second + zone_minutes * 60;
	return s > 0 ? (u64)s : 0;
}
