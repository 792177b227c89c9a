/* SPDX-License-Identifier: BSD-2-Clause */
/* The firmware's date as seconds. Pure. */
#ifndef VLAG_BOOT_EPOCH_H
#define VLAG_BOOT_EPOCH_H

#include "hv/lib/types.h"

/*
 * Seconds from 1970-01-01 00:00:00 UTC to the given date (proleptic Gregorian, no leap seconds) in
 * a zone where local time is UTC minus @zone_minutes (UEFI 2.10, 8.3 "EFI_TIME"). 0 for a date
 * that does not exist or lies before 1970.
 */
u64 epoch_seconds(u32 year, u32 month, u32 day, u32 hour, u32 minute, u32 second, s32 zone_minutes);

#endif
