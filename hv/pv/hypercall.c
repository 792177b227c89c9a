/* SPDX-License-Identifier: BSD-2-Clause */
/* VMCALL with KVM's calling convention: number in RAX, arguments in RBX, RCX, RDX, RSI, result in
 * RAX. */
#include "hv/vmx/exit.h"

#define KVM_ENOSYS 1000
#define KVM_EPERM 1

enum exit_action exit_vmcall(struct vcpu *v)
{
	/* Only the guest's kernel may call. */
	if (unlikely(guest_cpl()))
		v->regs[RAX] = -(u64)KVM_EPERM;
	else
		v->regs[RAX] = -(u64)KVM_ENOSYS;
	return resume_after();
}
