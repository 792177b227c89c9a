/* SPDX-License-Identifier: BSD-2-Clause */
/* VMCALL: the registers of a KVM hypercall. What the calls do is hv/pv/hypercall.c's. */
#include "hv/pcpu.h"
#include "hv/pv/hypercall.h"
#include "hv/vmx/exit.h"

#define AR_L BIT(13)

static bool in_long_mode(void)
{
	return (vmread32(VMCS_GUEST_CS_AR) & AR_L) && (vmread64(VMCS_GUEST_EFER) & EFER_LMA);
}

enum exit_action exit_vmcall(struct vcpu *v)
{
	struct hypercall call = {
	    .nr = v->regs[RAX],
	    .arg = {v->regs[RBX], v->regs[RCX], v->regs[RDX], v->regs[RSI]},
	    .long_mode = in_long_mode(),
	    .cpl = vmread32(VMCS_GUEST_SS_AR) >> 5 & 3,
	    .features = v->vm->pv.features,
	};

	call.now = vcpu_guest_tsc(v, rdtsc());
	v->regs[RAX] = hypercall_run(&v->lapic, &call);
	skip_instruction();
	if (call.yield)
		return EXIT_LEAVE;
	/* An IPI to itself. */
	return vlapic_has_work(&v->lapic) ? vcpu_deliver(v) : EXIT_RESUME;
}
