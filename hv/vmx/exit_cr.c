/* SPDX-License-Identifier: BSD-2-Clause */
/* Control registers and XCR0: only writes that touch bits which the hypervisor owns come here
 * (vcpu.c sets the masks). */
#include "hv/vmx/exit.h"
#include "hv/vmx/vmx.h"

#define QUAL_CR(q) ((q)&15)
#define QUAL_TYPE(q) ((q) >> 4 & 3)
#define QUAL_REG(q) ((q) >> 8 & 15)
#define QUAL_LMSW_SOURCE(q) ((q) >> 16 & 0xffff)
enum { TO_CR, FROM_CR, CLTS, LMSW };

#define CR0_HIDDEN (CR0_CD | CR0_NW)

static u64 guest_register(struct vcpu *v, u32 index)
{
	return index == RSP ? vmreadn(VMCS_GUEST_RSP) : v->regs[index];
}

/* PAE paging without long mode: the CPU takes the four PDPTEs from the VMCS (SDM vol. 3, 26.3.2.4).
 */
static bool load_pdptes(struct vcpu *v)
{
	const u64 *pdpt = guest_ptr(&v->vm->mem, vmreadn(VMCS_GUEST_CR3) & 0xffffffe0, 32);

	if (!pdpt)
		return false;
	for (u32 i = 0; i < 4; i++)
		vmwrite64(VMCS_GUEST_PDPTE0 + 2 * i, pdpt[i]);
	return true;
}

static enum exit_action guest_writes_cr0(struct vcpu *v, u64 value)
{
	u64 old = vmreadn(VMCS_GUEST_CR0), efer = vmread64(VMCS_GUEST_EFER), changed;

	if ((value >> 32) || ((value & CR0_PG) && !(value & CR0_PE)) ||
	    ((value & CR0_NW) && !(value & CR0_CD)))
		return fault_gp(v);
	vmwriten(VMCS_CR0_SHADOW, value);
	vmwriten(VMCS_GUEST_CR0, (value & ~CR0_HIDDEN) | CR0_NE | CR0_ET);
	changed = old ^ value;
	if (changed & CR0_PG) {
		bool long_mode = (value & CR0_PG) && (efer & EFER_LME);
		u32 entry = vmread32(VMCS_ENTRY_CONTROLS) & ~(u32)ENTRY_IA32E_GUEST;

		if (long_mode && !(vmreadn(VMCS_GUEST_CR4) & CR4_PAE))
			return fault_gp(v);
		vmwrite64(VMCS_GUEST_EFER, long_mode ? efer | EFER_LMA : efer & ~EFER_LMA);
		vmwrite32(VMCS_ENTRY_CONTROLS, long_mode ? entry | ENTRY_IA32E_GUEST : entry);
		if ((value & CR0_PG) && !long_mode && (vmreadn(VMCS_GUEST_CR4) & CR4_PAE) &&
		    !load_pdptes(v))
			return fault_gp(v);
	}
	/* A MOV to CR0 that exits does not flush; toggling paging or WP must. */
	if (changed & (CR0_PG | CR0_WP))
		invvpid_context(vmread16(VMCS_VPID));
	return resume_after();
}

static enum exit_action guest_writes_cr4(struct vcpu *v, u64 value)
{
	u64 owned = vmreadn(VMCS_CR4_MASK);

	if (value & owned) /* a feature that CPUID does not show */
		return fault_gp(v);
	vmwriten(VMCS_CR4_SHADOW, value);
	vmwriten(VMCS_GUEST_CR4, value | (vmreadn(VMCS_GUEST_CR4) & owned));
	invvpid_context(vmread16(VMCS_VPID));
	return resume_after();
}

enum exit_action exit_cr_access(struct vcpu *v)
{
	u64 q = vmreadn(VMCS_EXIT_QUALIFICATION);

	if (QUAL_TYPE(q) == TO_CR && QUAL_CR(q) == 0)
		return guest_writes_cr0(v, guest_register(v, QUAL_REG(q)));
	if (QUAL_TYPE(q) == TO_CR && QUAL_CR(q) == 4)
		return guest_writes_cr4(v, guest_register(v, QUAL_REG(q)));
	if (QUAL_TYPE(q) == LMSW)
		return guest_writes_cr0(v, (vmreadn(VMCS_CR0_SHADOW) & CR0_HIDDEN) |
					       (vmreadn(VMCS_GUEST_CR0) & ~0xeull) |
					       (QUAL_LMSW_SOURCE(q) & 0xf));
	return vcpu_kill(v, "unexpected access to CR%lu, type %lu", QUAL_CR(q), QUAL_TYPE(q));
}

enum exit_action exit_xsetbv(struct vcpu *v)
{
	u64 value = edx_eax(v), allowed = xcr0_guest_mask();

	/* x87 always; AVX needs SSE; the three of AVX-512 only together and with AVX (SDM vol.
	 * 1, 13.3). */
	if ((u32)v->regs[RCX] != 0 || !(value & 1) || (value & ~allowed) ||
	    ((value & 4) && !(value & 2)) ||
	    ((value & 0xe0) && ((value & 0xe0) != 0xe0 || !(value & 4))))
		return fault_gp(v);
	v->xcr0 = value;
	xsetbv(0, value);
	return resume_after();
}
