/* SPDX-License-Identifier: BSD-2-Clause */
/* The steal-time record; see steal.h. */
#include "hv/pv/steal.h"

#define STEAL_ENABLE 1ull
#define STEAL_RESERVED 0x3eull

/* The record's readers are vCPUs: x86 keeps stores in order, so the compiler is all that there is
 * to hold back. */
#define compiler_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

void steal_start(struct pv_steal *s, u64 run_delay_ns)
{
	*s = (struct pv_steal){.told_ns = run_delay_ns};
}

void steal_off(struct pv_steal *s)
{
	s->rec = NULL;
	s->msr = 0;
	s->marked = false;
}

bool steal_update(struct pv_steal *s, u64 run_delay_ns)
{
	struct kvm_steal_time *r = s->rec;
	s64 waited = run_delay_ns - s->told_ns;
	u8 preempted = __atomic_exchange_n(&r->preempted, 0, __ATOMIC_SEQ_CST);
	u32 version;

	s->marked = false;
	if (waited > 0) {
		s->told_ns = run_delay_ns;
		version = READ_ONCE(r->version);
		version += version & 1; /* what lay there before the first time */
		WRITE_ONCE(r->version, version + 1);
		compiler_barrier();
		WRITE_ONCE(r->steal, READ_ONCE(r->steal) + waited);
		compiler_barrier();
		WRITE_ONCE(r->version, version + 2);
	}
	return preempted & KVM_VCPU_FLUSH_TLB;
}

bool steal_msr_write(struct pv_steal *s, const struct guest_mem *mem, u64 value, u64 run_delay_ns,
		     bool *flush_tlb)
{
	u64 gpa = value & ~(STEAL_ENABLE | STEAL_RESERVED);

	if (value & STEAL_RESERVED)
		return false;
	s->msr = value;
	s->rec = value & STEAL_ENABLE ? guest_ptr(mem, gpa, sizeof(*s->rec)) : NULL;
	s->marked = false;
	if (!s->rec)
		return true;
	if (READ_ONCE(s->rec->version) & 1)
		WRITE_ONCE(s->rec->version, READ_ONCE(s->rec->version) + 1);
	if (steal_update(s, run_delay_ns))
		*flush_tlb = true;
	return true;
}
