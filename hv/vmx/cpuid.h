/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What CPUID tells a guest: a filtered copy of the host's leaves plus the hypervisor's own, one
 * sorted table per VM. Pure, so that the filter is tested on the host: the caller brings the host's
 * leaves.
 */
#ifndef VLAG_VMX_CPUID_H
#define VLAG_VMX_CPUID_H

#include "hv/lib/types.h"

struct cpuid_entry {
	u32 leaf, subleaf;
	u32 eax, ebx, ecx, edx;
};

#define CPUID_MAX_ENTRIES 64

struct cpuid_features {
	u32 nr_vcpus;
	u32 kvm;  /* EAX of leaf 0x40000001 */
	u64 xcr0; /* state components that may be enabled */
	bool rdtscp, invpcid;
};

/* Reads leaf/subleaf of the CPU below. */
typedef void (*cpuid_fn)(u32 leaf, u32 subleaf, u32 regs[4]);

/* Fills @table (CPUID_MAX_ENTRIES) in rising order of (leaf, subleaf). Returns the number of
 * entries. */
u32 cpuid_build(struct cpuid_entry *table, const struct cpuid_features *f, cpuid_fn host);

/*
 * The entry that answers (@leaf, @subleaf), or NULL if all zeros do. For leaves without subleaves
 * any @subleaf matches; a basic leaf above the highest gives the highest basic leaf's entry (SDM
 * vol. 2, CPUID).
 */
const struct cpuid_entry *cpuid_find(const struct cpuid_entry *table, u32 nr, u32 leaf,
				     u32 subleaf);

#endif
