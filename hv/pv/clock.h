/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The KVM paravirtual clock (ABI: Linux Documentation/virt/kvm/x86/msr.rst): the records that a
 * guest reads the time from. Pure: no clock is read here. Which MSR leads here is msr.c's business.
 */
#ifndef VLAG_PV_CLOCK_H
#define VLAG_PV_CLOCK_H

#include "hv/lib/types.h"
#include "hv/vm/guest_mem.h"

/* The record of a vCPU's system time; 32 bytes, at any address. */
struct pvclock_vcpu_time_info {
	u32 version; /* odd while being written */
	u32 pad0;
	u64 tsc_timestamp; /* guest TSC at ... */
	u64 system_time;   /* ... this ns */
	u32 tsc_to_system_mul;
	s8 tsc_shift;
	u8 flags;
	u8 pad[2];
};

struct pvclock_wall_clock {
	u32 version, sec, nsec;
};

#define PVCLOCK_TSC_STABLE 1

struct pvclock_scale {
	u32 mul;
	s8 shift;
};

/* ns = ((ticks << shift) * mul) >> 32 for a TSC of @hz (a negative shift shifts right). */
struct pvclock_scale pvclock_scale(u64 hz);

/* Per vCPU; the owner's. */
struct pv_clock {
	void *rec; /* struct pvclock_vcpu_time_info, NULL: off or not RAM */
	u64 msr;   /* as written */
	u32 version;
};

/*
 * WRMSR of the system time's address, bit 0: on. Never fails: what is not RAM is taken and ignored,
 * as in KVM, and no alignment is asked for. Then the record is filled with pv_clock_fill().
 */
void pv_clock_msr_write(struct pv_clock *c, const struct guest_mem *mem, u64 value);

/*
 * Fills the record, if there is one: VM time 0 is guest TSC @tsc_zero. @stable: the TSCs of all
 * pCPUs that the VM may use agree, so that no guest needs to check that its clock does not go back.
 */
void pv_clock_fill(struct pv_clock *c, u64 tsc_zero, struct pvclock_scale scale, bool stable);

/* Writes the wall clock at VM time 0, @epoch_ns since 1970, to @gpa. 0 and what is not RAM: no
 * effect. */
void pv_wall_clock_write(const struct guest_mem *mem, u64 gpa, u64 epoch_ns);

#endif
