/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMSR and WRMSR: the hot ones first (timer, APIC), then one table for all others. What is in
 * neither gives #GP, is counted, and is shown once for each VM. Which MSRs come here at all is
 * decided by msr_bitmap().
 */
#include "hv/console.h"
#include "hv/page.h"
#include "hv/pcpu.h"
#include "hv/tracepoint.h"
#include "hv/pv/edge.h"
#include "hv/vm/run.h"
#include "hv/vmx/exit.h"
#include "hv/vmx/vmx.h"

#define MSR_IA32_X2APIC_LAST 0x8ff

/* MSRs that guests read and write without an exit: the CPU or vcpu.c switches them. */
static const u32 passed[] = {
    MSR_SYSENTER_CS, MSR_SYSENTER_ESP,	 MSR_SYSENTER_EIP, MSR_PAT,   MSR_EFER,
    MSR_STAR,	     MSR_LSTAR,		 MSR_CSTAR,	   MSR_FMASK, MSR_FS_BASE,
    MSR_GS_BASE,     MSR_KERNEL_GS_BASE, MSR_TSC_AUX,
};

static u64 bitmaps[2];

static void bitmap_pass(u8 *map, u32 msr, bool read, bool write)
{
	u32 base = msr >= 0xc0000000 ? 1024 : 0, bit = msr & 0x1fff;

	if (read)
		map[base + bit / 8] &= ~(1 << bit % 8);
	if (write)
		map[base + 2048 + bit / 8] &= ~(1 << bit % 8);
}

u64 msr_bitmap(bool x2apic)
{
	u8 *map;

	if (bitmaps[x2apic])
		return bitmaps[x2apic];
	map = page_alloc(PAGE_SIZE, PAGE_SIZE, PAGES_HV);
	for (u32 i = 0; i < PAGE_SIZE; i++)
		map[i] = 0xff;
	for (u32 i = 0; i < ARRAY_SIZE(passed); i++) {
		if (passed[i] != MSR_TSC_AUX || vmx_caps.rdtscp)
			bitmap_pass(map, passed[i], true, true);
	}
	bitmap_pass(map, MSR_TSC, true, false); /* with the offset */
	if (x2apic)
		bitmap_pass(map, X2APIC_MSR(APIC_TPR), true, true); /* the virtual-APIC page */
	bitmaps[x2apic] = (u64)map;
	return bitmaps[x2apic];
}

/* --- the table --- */

struct msr_entry {
	u32 first, last;
	bool (*read)(struct vcpu *v, u32 msr, u64 *value); /* false: #GP */
	bool (*write)(struct vcpu *v, u32 msr, u64 value);
};

static bool read_zero(struct vcpu *v, u32 msr, u64 *value)
{
	*value = 0;
	return true;
}

static bool write_ignored(struct vcpu *v, u32 msr, u64 value)
{
	return true;
}

/* MSRs that kernels ask for on each boot and that CPUs like ours do not have: #GP, and no word. */
static bool read_absent(struct vcpu *v, u32 msr, u64 *value)
{
	return false;
}

static bool write_absent(struct vcpu *v, u32 msr, u64 value)
{
	return false;
}

static bool read_apic_base(struct vcpu *v, u32 msr, u64 *value)
{
	*value = vlapic_get_base(&v->lapic);
	return true;
}

static bool write_apic_base(struct vcpu *v, u32 msr, u64 value)
{
	if (!vlapic_set_base(&v->lapic, value))
		return false;
	vcpu_update_apic_mode(v);
	vcpu_request(
	    v, REQ_EVENT); /* what waited for a lower TPR may be gone, and the threshold with it */
	return true;
}

static bool read_feature_control(struct vcpu *v, u32 msr, u64 *value)
{
	*value = 1; /* locked, no VMX */
	return true;
}

static void set_tsc_offset(struct vcpu *v, s64 offset)
{
	v->tsc_offset = offset;
	vlapic_set_tsc_offset(&v->lapic, offset);
	vmwrite64(VMCS_TSC_OFFSET, offset);
	pv_tsc_changed(v);
	vcpu_arm(v, rdtsc());
}

static bool write_tsc(struct vcpu *v, u32 msr, u64 value)
{
	s64 offset = value - rdtsc();

	/* TSC_ADJUST moves along (SDM vol. 3, 17.17.3). */
	v->tsc_adjust += offset - v->tsc_offset;
	set_tsc_offset(v, offset);
	return true;
}

static bool read_tsc_adjust(struct vcpu *v, u32 msr, u64 *value)
{
	*value = v->tsc_adjust;
	return true;
}

static bool write_tsc_adjust(struct vcpu *v, u32 msr, u64 value)
{
	u64 delta = value - v->tsc_adjust;

	v->tsc_adjust = value;
	if (delta)
		set_tsc_offset(v, v->tsc_offset + delta);
	return true;
}

static bool read_tsc_deadline(struct vcpu *v, u32 msr, u64 *value)
{
	*value = vlapic_read_tsc_deadline(&v->lapic);
	return true;
}

static bool read_microcode(struct vcpu *v, u32 msr, u64 *value)
{
	*value = 0xffffffffull << 32; /* "newest": no guest should look for errata by it */
	return true;
}

static bool read_misc_enable(struct vcpu *v, u32 msr, u64 *value)
{
	*value = v->misc_enable;
	return true;
}

static bool write_misc_enable(struct vcpu *v, u32 msr, u64 value)
{
	v->misc_enable = value;
	return true;
}

/* Memory types: stored, not acted upon (RAM is write-back through EPT, nothing else is mapped). One
 * set for the VM. */
#define MTRR_PAIRS 8
#define MTRR_CAP (MTRR_PAIRS | 1 << 8 | 1 << 10)

static u64 *mtrr_slot(struct vcpu *v, u32 msr)
{
	struct vm_mtrrs *m = &v->vm->mtrrs;

	if (msr >= MSR_MTRR_PHYSBASE0 && msr < MSR_MTRR_PHYSBASE0 + 2 * MTRR_PAIRS)
		return &m->pair[msr - MSR_MTRR_PHYSBASE0];
	if (msr == MSR_MTRR_FIX64K)
		return &m->fixed[0];
	if (msr == 0x258 || msr == 0x259)
		return &m->fixed[1 + msr - 0x258];
	if (msr >= 0x268 && msr <= 0x26f)
		return &m->fixed[3 + msr - 0x268];
	return msr == MSR_MTRR_DEF_TYPE ? &m->def_type : NULL;
}

static bool read_mtrr(struct vcpu *v, u32 msr, u64 *value)
{
	u64 *slot = mtrr_slot(v, msr);

	if (slot)
		*value = *slot;
	return slot;
}

static bool write_mtrr(struct vcpu *v, u32 msr, u64 value)
{
	u64 *slot = mtrr_slot(v, msr);

	if (slot)
		*slot = value;
	return slot;
}

static bool read_mtrr_cap(struct vcpu *v, u32 msr, u64 *value)
{
	*value = MTRR_CAP;
	return true;
}

/* Searched from the front: those that guests use while they run come first. */
static const struct msr_entry table[] = {
    {MSR_TSC_ADJUST, MSR_TSC_ADJUST, read_tsc_adjust, write_tsc_adjust},
    {MSR_TSC, MSR_TSC, NULL, write_tsc},
    {0x17, 0x17, read_zero, NULL}, /* platform id */
    {MSR_APIC_BASE, MSR_APIC_BASE, read_apic_base, write_apic_base},
    {0x34, 0x34, read_zero, NULL}, /* SMI count */
    {MSR_FEATURE_CONTROL, MSR_FEATURE_CONTROL, read_feature_control, NULL},
    {0x4e, 0x4f, read_absent, write_absent}, /* the CPU's serial number, of servers */
    {0x79, 0x79, NULL, write_ignored},	     /* microcode update trigger */
    {MSR_BIOS_SIGN_ID, MSR_BIOS_SIGN_ID, read_microcode, write_ignored},
    {MSR_PLATFORM_INFO, MSR_PLATFORM_INFO, read_zero, NULL},
    {MSR_MTRRCAP, MSR_MTRRCAP, read_mtrr_cap, NULL},
    {MSR_MISC_FEATURES_ENABLES, MSR_MISC_FEATURES_ENABLES, read_zero, write_ignored},
    {MSR_MISC_ENABLE, MSR_MISC_ENABLE, read_misc_enable, write_misc_enable},
    {MSR_DEBUGCTL, MSR_DEBUGCTL, read_zero, write_ignored},
    {MSR_MTRR_PHYSBASE0, MSR_MTRR_PHYSBASE0 + 2 * MTRR_PAIRS - 1, read_mtrr, write_mtrr},
    {MSR_MTRR_FIX64K, 0x26f, read_mtrr, write_mtrr},
    {MSR_MTRR_DEF_TYPE, MSR_MTRR_DEF_TYPE, read_mtrr, write_mtrr},
    {MSR_TSC_DEADLINE, MSR_TSC_DEADLINE, read_tsc_deadline, NULL},
    {MSR_KVM_WALL_CLOCK_NEW, MSR_KVM_POLL_CONTROL, pv_rdmsr, pv_wrmsr},
    {MSR_KVM_WALL_CLOCK, MSR_KVM_SYSTEM_TIME, pv_rdmsr, pv_wrmsr},
};

static const struct msr_entry *find(u32 msr)
{
	for (u32 i = 0; i < ARRAY_SIZE(table); i++) {
		if (msr >= table[i].first && msr <= table[i].last)
			return &table[i];
	}
	return NULL;
}

static enum exit_action unknown(struct vcpu *v, const char *what, u32 msr)
{
	struct vm *vm = v->vm;

	COUNT(v, cnt_unknown_msr);
	for (u32 i = 0; i < vm->nr_seen_msrs; i++) {
		if (vm->seen_msrs[i] == msr)
			return fault_gp(v);
	}
	if (vm->nr_seen_msrs < ARRAY_SIZE(vm->seen_msrs)) {
		vm->seen_msrs[vm->nr_seen_msrs++] = msr;
		hv_info("vm %s: %s of unknown MSR 0x%x at RIP 0x%lx: #GP (shown once)", vm->name,
			what, msr, vmreadn(VMCS_GUEST_RIP));
	}
	return fault_gp(v);
}

/* The vCPU's own write may have made something deliverable. */
static inline enum exit_action resume_with_events(struct vcpu *v)
{
	skip_instruction();
	return vlapic_has_work(&v->lapic) ? vcpu_deliver(v) : EXIT_RESUME;
}

enum exit_action exit_rdmsr(struct vcpu *v)
{
	u32 msr = v->regs[RCX];
	const struct msr_entry *e;
	u64 value;

	if (msr >= MSR_X2APIC && msr <= MSR_IA32_X2APIC_LAST) {
		if (!vlapic_msr_read(&v->lapic, msr, vcpu_guest_tsc(v, rdtsc()), &value))
			return fault_gp(v);
		set_edx_eax(v, value);
		return resume_after();
	}
	e = find(msr);
	if (!e || !e->read)
		return unknown(v, "RDMSR", msr);
	if (!e->read(v, msr, &value))
		return fault_gp(v);
	set_edx_eax(v, value);
	return resume_after();
}

/* If the timer moved before what is armed, arm for it; a later one is found when the armed time
 * comes. */
void vcpu_timer_changed(struct vcpu *v)
{
	u64 deadline = vlapic_timer_deadline(&v->lapic);

	if (deadline != VLAPIC_TIMER_NONE &&
	    deadline - v->tsc_offset - this_pcpu()->timer_advance < v->armed_tsc)
		vcpu_arm(v, rdtsc());
}

static enum exit_action write_x2apic(struct vcpu *v, u32 msr, u64 value)
{
	struct vlapic *l = &v->lapic;
	u64 now = vcpu_guest_tsc(v, rdtsc());
	bool ok;

	if (unlikely(l->mode != VLAPIC_X2APIC))
		return fault_gp(v);
	if (msr == MSR_X2APIC_EOI && !value) {
		if (unlikely(tracing(TRACE_EOI)))
			trace_eoi(v, now - v->tsc_offset);
		vlapic_eoi(l, now);
		ok = true;
	} else if (msr == MSR_X2APIC_ICR) {
		if (unlikely(tracing(TRACE_IPI)))
			trace_icr(v, value, now - v->tsc_offset);
		ok = vlapic_x2apic_icr(l, value, now);
	} else if (msr == MSR_X2APIC_SELF_IPI) {
		ok = vlapic_self_ipi(l, value);
	} else {
		ok = vlapic_msr_write(l, msr, value, now);
		vcpu_timer_changed(v);
	}
	if (unlikely(!ok))
		return fault_gp(v);
	return resume_with_events(v);
}

enum exit_action exit_wrmsr(struct vcpu *v)
{
	u32 msr = v->regs[RCX];
	u64 value = edx_eax(v);
	const struct msr_entry *e;

	if (msr == MSR_TSC_DEADLINE) {
		vlapic_write_tsc_deadline(&v->lapic, value);
		vcpu_timer_changed(v);
		return resume_after();
	}
	if (msr >= MSR_X2APIC && msr <= MSR_IA32_X2APIC_LAST)
		return write_x2apic(v, msr, value);
	e = find(msr);
	if (!e || !e->write)
		return unknown(v, "WRMSR", msr);
	if (!e->write(v, msr, value))
		return fault_gp(v);
	return resume_after();
}
