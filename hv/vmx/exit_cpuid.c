/* SPDX-License-Identifier: BSD-2-Clause */
/* CPUID: the VM's table, and the few bits that differ from vCPU to vCPU. */
#include "hv/vmx/cpuid.h"
#include "hv/vmx/exit.h"

#define L1_ECX_OSXSAVE (1u << 27)

static __attribute__((noinline)) enum exit_action no_leaf(struct vcpu *v, u32 leaf, u32 subleaf)
{
	v->regs[RAX] = v->regs[RBX] = v->regs[RCX] = v->regs[RDX] = 0;
	if (leaf == 0xb) { /* beyond the last level: its number and the id still count */
		v->regs[RCX] = subleaf & 0xff;
		v->regs[RDX] = v->lapic.id;
	}
	return resume_after();
}

static __attribute__((noinline)) void per_vcpu_bits(struct vcpu *v, u32 leaf)
{
	if (leaf == 0xb) {
		v->regs[RDX] = v->lapic.id;
		return;
	}
	v->regs[RBX] |= min(v->lapic.id, 255u) << 24;
	if (vmreadn(VMCS_GUEST_CR4) & CR4_OSXSAVE)
		v->regs[RCX] |= L1_ECX_OSXSAVE;
}

enum exit_action exit_cpuid(struct vcpu *v)
{
	u32 leaf = v->regs[RAX], subleaf = v->regs[RCX];
	const struct cpuid_entry *e = cpuid_find(v->vm->cpuid, leaf, subleaf);

	if (unlikely(!e))
		return no_leaf(v, leaf, subleaf);
	v->regs[RAX] = e->eax;
	v->regs[RBX] = e->ebx;
	v->regs[RCX] = e->ecx;
	v->regs[RDX] = e->edx;
	if (unlikely(leaf == 1 || leaf == 0xb))
		per_vcpu_bits(v, leaf);
	return resume_after();
}
