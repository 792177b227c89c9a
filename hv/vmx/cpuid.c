/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPUID filter; see cpuid.h. The bits are in SDM vol. 2, CPUID; the hypervisor leaves are KVM's
 * ABI. */
#include "hv/vmx/cpuid.h"

#define LEAF_HV_BASE 0x40000000u
#define LEAF_HV_FEATURES 0x40000001u
#define LEAF_EXT_BASE 0x80000000u

/* Leaf 1: what goes through, and what we add because we emulate it. */
#define L1_ECX_PASS                                                                                \
	(1u << 0 | 1u << 1 | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 17 | 1u << 19 | 1u << 20 |      \
	 1u << 22 | 1u << 23 | 1u << 25 | 1u << 26 | 1u << 28 | 1u << 29 | 1u << 30)
#define L1_ECX_X2APIC (1u << 21)
#define L1_ECX_TSC_DEADLINE (1u << 24)
#define L1_ECX_HYPERVISOR (1u << 31)
/* Not: MCE, MCA (no machine check banks), DS, ACPI thermal, TM, PBE, PSN. */
#define L1_EDX_PASS                                                                                \
	(1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 8 |           \
	 1u << 11 | 1u << 12 | 1u << 13 | 1u << 15 | 1u << 16 | 1u << 17 | 1u << 19 | 1u << 23 |   \
	 1u << 24 | 1u << 25 | 1u << 26 | 1u << 27 | 1u << 28)
#define L1_EDX_APIC (1u << 9)

/* Leaf 7.0: user instructions, SMEP, SMAP, FSGSBASE, TSC_ADJUST (emulated). Not: SGX, MPX, PT, PKU,
 * HLE/RTM, SPEC_CTRL and kin. */
#define L7_EBX_PASS                                                                                \
	(1u << 0 | 1u << 3 | 1u << 5 | 1u << 7 | 1u << 8 | 1u << 9 | 1u << 16 | 1u << 17 |         \
	 1u << 18 | 1u << 19 | 1u << 20 | 1u << 21 | 1u << 23 | 1u << 24 | 1u << 28 | 1u << 29 |   \
	 1u << 30 | 1u << 31)
#define L7_EBX_TSC_ADJUST (1u << 1)
#define L7_EBX_INVPCID (1u << 10)
#define L7_ECX_PASS                                                                                \
	(1u << 1 | 1u << 6 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 11 | 1u << 12 | 1u << 14 |       \
	 1u << 22)
#define L7_EDX_PASS (1u << 2 | 1u << 3 | 1u << 4)
#define AVX512_EBX (1u << 16 | 1u << 17 | 1u << 21 | 1u << 28 | 1u << 30 | 1u << 31)
#define XCR0_AVX512 0xe0u

#define EXT1_ECX_PASS (1u << 0 | 1u << 5 | 1u << 8)
#define EXT1_EDX_PASS (1u << 11 | 1u << 20 | 1u << 26 | 1u << 29)
#define EXT1_EDX_RDTSCP (1u << 27)

static struct cpuid_entry *add(struct cpuid_entry **next, u32 leaf, u32 subleaf)
{
	struct cpuid_entry *e = (*next)++;

	*e = (struct cpuid_entry){.leaf = leaf, .subleaf = subleaf};
	return e;
}

static struct cpuid_entry *copy(struct cpuid_entry **next, u32 leaf, u32 subleaf, cpuid_fn host)
{
	struct cpuid_entry *e = add(next, leaf, subleaf);
	u32 r[4];

	host(leaf, subleaf, r);
	e->eax = r[0];
	e->ebx = r[1];
	e->ecx = r[2];
	e->edx = r[3];
	return e;
}

static void leaf_1(struct cpuid_entry **next, const struct cpuid_features *f, cpuid_fn host)
{
	struct cpuid_entry *e = copy(next, 1, 0, host);

	/* APIC id (bits 31-24) is the vCPU's, OSXSAVE follows its CR4: both put in at the exit. */
	e->ebx = (e->ebx & 0xff00) | min(f->max_vcpus, 255u) << 16;
	e->ecx = (e->ecx & L1_ECX_PASS) | L1_ECX_X2APIC | L1_ECX_TSC_DEADLINE | L1_ECX_HYPERVISOR;
	if (!f->invpcid)
		e->ecx &= ~(1u << 17);
	e->edx = (e->edx & L1_EDX_PASS) | L1_EDX_APIC | (f->max_vcpus > 1 ? 1u << 28 : 0);
	if (f->max_vcpus == 1)
		e->edx &= ~(1u << 28);
}

/* Caches, each of them the vCPU's own: one package holds @max_vcpus cores of one thread. */
static void leaf_4(struct cpuid_entry **next, const struct cpuid_features *f, cpuid_fn host)
{
	u32 cores = 1;

	while (cores < f->max_vcpus)
		cores *= 2;
	for (u32 i = 0; i < 8; i++) {
		struct cpuid_entry *e = copy(next, 4, i, host);

		if (!(e->eax & 0x1f)) {
			(*next)--;
			break;
		}
		/* Keep type, level and flags (bits 13-0); one logical CPU shares it; cores - 1
		 * above. */
		e->eax = (e->eax & 0x3fff) | min(cores - 1, 63u) << 26;
	}
}

static void leaf_7(struct cpuid_entry **next, const struct cpuid_features *f, cpuid_fn host)
{
	struct cpuid_entry *e = copy(next, 7, 0, host);

	e->eax = 0;
	e->ebx = (e->ebx & (L7_EBX_PASS | (f->invpcid ? L7_EBX_INVPCID : 0))) | L7_EBX_TSC_ADJUST;
	e->ecx &= L7_ECX_PASS;
	e->edx &= L7_EDX_PASS;
	if ((f->xcr0 & XCR0_AVX512) != XCR0_AVX512) {
		e->ebx &= ~AVX512_EBX;
		e->ecx &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
		e->edx &= ~(1u << 2 | 1u << 3);
	}
}

/* Topology: every vCPU a core of its own, as the scheduler treats them; all in one package. EDX is
 * the vCPU's x2APIC id. The ids of spares belong to the same package, so they count for the shift,
 * but not for how many there are. */
static void leaf_b(struct cpuid_entry **next, const struct cpuid_features *f)
{
	struct cpuid_entry *e;
	u32 bits = 0;

	while ((1u << bits) < f->max_vcpus)
		bits++;
	e = add(next, 0xb, 0);
	e->eax = 0;
	e->ebx = 1;
	e->ecx = 1 << 8;
	e = add(next, 0xb, 1);
	e->eax = bits;
	e->ebx = f->nr_vcpus;
	e->ecx = 2 << 8 | 1;
	e = add(next, 0xb, 2);
	e->ecx = 2;
}

static void leaf_d(struct cpuid_entry **next, const struct cpuid_features *f, cpuid_fn host)
{
	struct cpuid_entry *e = add(next, 0xd, 0), *one;
	u32 size = 576, r[4];

	for (u32 i = 2; i < 32; i++) {
		if (!(f->xcr0 >> i & 1))
			continue;
		host(0xd, i, r);
		size = max(size, r[0] + r[1]);
	}
	e->eax = f->xcr0;
	e->edx = f->xcr0 >> 32;
	e->ebx = size; /* for the largest XCR0: what is enabled now would need a look at it on every
			  CPUID */
	e->ecx = size;
	one = copy(next, 0xd, 1, host);
	one->eax &= 1u << 0; /* XSAVEOPT; not XSAVEC, XGETBV with ECX = 1, XSAVES */
	one->ebx = one->ecx = one->edx = 0;
	for (u32 i = 2; i < 32; i++) {
		if (f->xcr0 >> i & 1)
			copy(next, 0xd, i, host)->ecx = 0;
	}
}

static void hypervisor_leaves(struct cpuid_entry **next, const struct cpuid_features *f)
{
	struct cpuid_entry *e = add(next, LEAF_HV_BASE, 0);

	/* "KVMKVMKVM": the ABI that we speak. */
	e->eax = LEAF_HV_FEATURES;
	e->ebx = 0x4b4d564b;
	e->ecx = 0x564b4d56;
	e->edx = 0x4d;
	add(next, LEAF_HV_FEATURES, 0)->eax = f->kvm;
}

static void extended_leaves(struct cpuid_entry **next, const struct cpuid_features *f,
			    cpuid_fn host)
{
	struct cpuid_entry *e = copy(next, LEAF_EXT_BASE, 0, host);
	u32 highest = clamp(e->eax, LEAF_EXT_BASE + 1, LEAF_EXT_BASE + 8);

	e->eax = LEAF_EXT_BASE + 8;
	for (u32 leaf = LEAF_EXT_BASE + 1; leaf <= LEAF_EXT_BASE + 8; leaf++) {
		e = leaf <= highest ? copy(next, leaf, 0, host) : add(next, leaf, 0);
		if (leaf == LEAF_EXT_BASE + 1) {
			e->ecx &= EXT1_ECX_PASS;
			e->edx &= EXT1_EDX_PASS | (f->rdtscp ? EXT1_EDX_RDTSCP : 0);
		} else if (leaf == LEAF_EXT_BASE + 7) {
			e->eax = e->ebx = e->ecx = 0;
			e->edx =
			    1 << 8; /* invariant TSC: checked by the hypervisor when it started */
		} else if (leaf == LEAF_EXT_BASE + 8) {
			e->ebx = e->ecx = e->edx = 0;
		}
	}
}

static u8 *index_of(struct cpuid_table *t, u32 leaf)
{
	if (leaf >= LEAF_EXT_BASE)
		return &t->extended[leaf - LEAF_EXT_BASE];
	return leaf >= LEAF_HV_BASE ? &t->hypervisor[leaf - LEAF_HV_BASE] : &t->basic[leaf];
}

void cpuid_build(struct cpuid_table *table, const struct cpuid_features *f, cpuid_fn host)
{
	struct cpuid_entry *next = table->entry, *e;

	*table = (struct cpuid_table){0};
	copy(&next, 0, 0, host)->eax = CPUID_HIGHEST_BASIC;
	leaf_1(&next, f, host);
	copy(&next, 2, 0, host);
	leaf_4(&next, f, host);
	e = add(&next, 6, 0);
	e->eax = 1 << 2; /* ARAT: the LAPIC timer never stops. No APERF/MPERF. */
	leaf_7(&next, f, host);
	leaf_b(&next, f);
	leaf_d(&next, f, host);
	hypervisor_leaves(&next, f);
	extended_leaves(&next, f, host);
	table->nr = next - table->entry;
	for (u32 i = table->nr; i-- > 0;)
		*index_of(table, table->entry[i].leaf) = i + 1;
}

const struct cpuid_entry *cpuid_find_slow(const struct cpuid_table *t, u32 leaf, u32 subleaf)
{
	const struct cpuid_entry *e;
	u32 first;

	if (leaf - LEAF_HV_BASE < 16)
		first = t->hypervisor[leaf - LEAF_HV_BASE];
	else if (leaf - LEAF_EXT_BASE < 16)
		first = t->extended[leaf - LEAF_EXT_BASE];
	else
		first = t->basic[leaf = min(leaf, CPUID_HIGHEST_BASIC)];
	if (!first)
		return NULL;
	e = &t->entry[first - 1];
	if (leaf > CPUID_HIGHEST_BASIC || !(CPUID_HAS_SUBLEAVES >> leaf & 1))
		return e;
	for (; e < &t->entry[t->nr] && e->leaf == leaf; e++) {
		if (e->subleaf == subleaf)
			return e;
	}
	return NULL;
}
