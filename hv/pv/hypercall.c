/* SPDX-License-Identifier: BSD-2-Clause */
/* KVM's hypercalls; see hypercall.h. */
#include "hv/pv/hypercall.h"

#include "hv/config/config.h"

static struct vlapic *by_apic_id(struct vlapic *l, u64 id)
{
	return id < APIC_MAP_IDS ? READ_ONCE(l->map->phys[id]) : NULL;
}

/* Flags in the first argument, none of which is defined; a target that is not there is no error. */
static s64 kick_cpu(struct vlapic *l, struct hypercall *call)
{
	struct vlapic *target = by_apic_id(l, call->arg[1]);

	if (!target)
		return 0;
	pv_unhalt(target);
	if (target != l)
		pv_hint(l, target);
	return 0;
}

static s64 sched_yield(struct vlapic *l, struct hypercall *call)
{
	struct vlapic *target = by_apic_id(l, call->arg[0]);

	if (target && target != l && pv_hint(l, target))
		call->yield_to = target;
	return 0;
}

static s64 run(struct vlapic *l, struct hypercall *call)
{
	switch (call->nr) {
	case KVM_HC_VAPIC_POLL_IRQ: /* the exit was all that it is for */
		return 0;
	case KVM_HC_KICK_CPU:
		return call->features & CFG_PV_UNHALT ? kick_cpu(l, call) : -KVM_ENOSYS;
	case KVM_HC_SCHED_YIELD:
		return call->features & CFG_PV_YIELD ? sched_yield(l, call) : -KVM_ENOSYS;
	case KVM_HC_SEND_IPI:
		if (!(call->features & CFG_PV_IPI))
			return -KVM_ENOSYS;
		return pv_send_ipi(l, call->arg[0], call->arg[1], call->arg[2], call->arg[3],
				   call->long_mode ? 64 : 32, call->now);
	default:
		return -KVM_ENOSYS;
	}
}

u64 hypercall_run(struct vlapic *l, struct hypercall *call)
{
	s64 ret;

	call->yield_to = NULL;
	if (!call->long_mode) {
		call->nr = (u32)call->nr;
		for (u32 i = 0; i < ARRAY_SIZE(call->arg); i++)
			call->arg[i] = (u32)call->arg[i];
	}
	/* Only the guest's kernel may call. */
	ret = call->cpl ? -KVM_EPERM : run(l, call);
	return call->long_mode ? (u64)ret : (u32)ret;
}
