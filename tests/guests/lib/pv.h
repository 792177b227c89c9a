/* SPDX-License-Identifier: BSD-2-Clause */
/* The KVM interface as a guest sees it, for the pv-* guests: MSRs, records, hypercalls. */
#ifndef VLAG_TESTS_GUEST_PV_H
#define VLAG_TESTS_GUEST_PV_H

#include "hv/lib/string.h"
#include "hv/pv/msr.h"
#include "tests/guests/lib/guest.h"

#define GP 13

#define HC_VAPIC_POLL_IRQ 1
#define HC_KICK_CPU 5
#define HC_SEND_IPI 10
#define HC_SCHED_YIELD 11
#define EPERM 1
#define ENOSYS 1000
#define EINVAL 22

#define FEATURE_CLOCK BIT(3)
#define FEATURE_STEAL BIT(5)
#define FEATURE_UNHALT BIT(7)
#define FEATURE_TLBFLUSH BIT(9)
#define FEATURE_IPI BIT(11)
#define FEATURE_POLL BIT(12)
#define FEATURE_YIELD BIT(13)

/* EAX of leaf 0x40000001; a guest that is not under KVM's ABI is skipped. */
static inline u32 pv_features(void)
{
	u32 r[4];

	if (strcmp(hypervisor(), "KVMKVMKVM"))
		test_skip("CPUID does not say KVMKVMKVM");
	cpuid(0x40000001, 0, r);
	return r[0];
}

static inline s64 hypercall(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3)
{
	s64 ret;

	__asm__ volatile("vmcall"
			 : "=a"(ret)
			 : "a"(nr), "b"(a0), "c"(a1), "d"(a2), "S"(a3)
			 : "memory");
	return ret;
}

/* ns since the VM's start by @r, which WRMSR has filled. */
static inline u64 pv_clock_ns(const volatile struct pvclock_vcpu_time_info *r)
{
	u32 version;
	u64 ns;

	do {
		u64 delta;

		while ((version = r->version) & 1)
			;
		barrier();
		delta = rdtsc() - r->tsc_timestamp;
		delta = r->tsc_shift < 0 ? delta >> -r->tsc_shift : delta << r->tsc_shift;
		ns = r->system_time + (u64)((u128)delta * r->tsc_to_system_mul >> 32);
		barrier();
	} while (r->version != version);
	return ns;
}

static inline u64 pv_steal_ns(const volatile struct kvm_steal_time *r)
{
	u32 version;
	u64 ns;

	do {
		while ((version = r->version) & 1)
			;
		barrier();
		ns = r->steal;
		barrier();
	} while (r->version != version);
	return ns;
}

#endif
