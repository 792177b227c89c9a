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
#define CPUID_HIGHEST_BASIC 0xdu
#define CPUID_HAS_SUBLEAVES                                                                        \
	(1u << 4 | 1u << 0xb | 1u << 0xd) /* of the basic leaves that we show                      \
					   */

struct cpuid_table {
	struct cpuid_entry entry[CPUID_MAX_ENTRIES]; /* rising order of (leaf, subleaf) */
	u32 nr;
	/* 1 + index of a leaf's first entry, 0 if all zeros answer it. */
	u8 basic[16], hypervisor[16], extended[16];
};

struct cpuid_features {
	u32 nr_vcpus;
	u32 max_vcpus; /* what the MADT lists: with spares */
	u32 kvm;       /* EAX of leaf 0x40000001 */
	u64 xcr0;      /* state components that may be enabled */
	bool rdtscp, invpcid;
};

/* Reads leaf/subleaf of the CPU below. */
typedef void (*cpuid_fn)(u32 leaf, u32 subleaf, u32 regs[4]);

void cpuid_build(struct cpuid_table *table, const struct cpuid_features *f, cpuid_fn host);

/* The part of cpuid_find() that is seldom needed. */
const struct cpuid_entry *cpuid_find_slow(const struct cpuid_table *t, u32 leaf, u32 subleaf);

/*
 * The entry that answers (@leaf, @subleaf), or NULL if all zeros do. For leaves without subleaves
 * any @subleaf matches; a leaf beyond those that there are is answered as the highest basic one
 * (SDM vol. 2, CPUID).
 */
static inline const struct cpuid_entry *cpuid_find(const struct cpuid_table *t, u32 leaf,
						   u32 subleaf)
{
	if (leaf <= CPUID_HIGHEST_BASIC && !(CPUID_HAS_SUBLEAVES >> leaf & 1) && t->basic[leaf])
		return &t->entry[t->basic[leaf] - 1];
	return cpuid_find_slow(t, leaf, subleaf);
}

#endif
