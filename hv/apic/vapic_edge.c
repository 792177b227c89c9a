/* SPDX-License-Identifier: BSD-2-Clause */
/* The hypervisor's side of the guest APIC models (vapic_edge.h): waking vCPUs, and the locks around
 * IOAPIC and map. */
#include "hv/apic/vapic_edge.h"

#include "hv/apic/lapic.h"
#include "hv/pcpu.h"
#include "hv/vm/run.h"
#include "hv/vm/vcpu.h"

static struct vcpu *vcpu_of(struct vlapic *l)
{
	return container_of(l, struct vcpu, lapic);
}

void vapic_kick(struct vlapic *target)
{
	struct vcpu *v = vcpu_of(target);
	struct pcpu *p;

	/* Set already: whoever set it has kicked, and the vCPU clears it before it looks. */
	if (vcpu_request(v, REQ_EVENT) & REQ_EVENT)
		return;
	/* What vcpu_kick() does in the end with a vCPU that runs elsewhere. */
	p = vcpu_pcpu(v);
	if (likely(READ_ONCE(v->sched.state) == SCHED_RUNNING) && likely(p != this_pcpu())) {
		lapic_send_fixed(p->apic_id, VEC_KICK);
		return;
	}
	spin_interrupt(&v->spin);
	vcpu_kick(v);
}

void vapic_broadcast_eoi(struct vlapic *from, u8 vector)
{
	struct vm *vm = vcpu_of(from)->vm;

	spin_lock(&vm->lock);
	vioapic_eoi(&vm->ioapic, vector);
	spin_unlock(&vm->lock);
}

void vapic_map_changed(struct vlapic *lapic)
{
	struct vm *vm = vcpu_of(lapic)->vm;

	spin_lock(&vm->map_lock);
	apic_map_update(&vm->apic_map);
	spin_unlock(&vm->map_lock);
}
