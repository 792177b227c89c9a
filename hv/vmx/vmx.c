/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the CPU's VMX capabilities (SDM vol. 3, appendix A), computes the control words from them,
 * and goes into VMX operation. */
#include "hv/vmx/vmx.h"

#include "hv/console.h"
#include "hv/lib/bug.h"
#include "hv/page.h"
#include "hv/pcpu.h"
#include "hv/vmx/vmcs.h"
#include "hv/x86/cpu.h"

#define FEATURE_CONTROL_LOCKED BIT(0)
#define FEATURE_CONTROL_VMXON BIT(2)
#define BASIC_TRUE_CONTROLS BIT(55)

struct vmx_caps vmx_caps;

/* One control that we may want: its bit, and what to say where the CPU lacks it. */
struct wish {
	u32 bit;
	bool required;
	const char *name;
};

static const struct wish pin_wishes[] = {
    {PIN_EXTINT_EXIT, true, "external-interrupt exiting"},
    {PIN_NMI_EXIT, true, "NMI exiting"},
    {PIN_VIRTUAL_NMI, false, "virtual NMIs"},
    {PIN_PREEMPTION_TIMER, false, "the VMX preemption timer"},
};

static const struct wish proc_wishes[] = {
    {PROC_TSC_OFFSET, true, "TSC offsetting"},	       {PROC_HLT_EXIT, true, "HLT exiting"},
    {PROC_MWAIT_EXIT, true, "MWAIT exiting"},	       {PROC_RDPMC_EXIT, true, "RDPMC exiting"},
    {PROC_IO_EXIT, true, "unconditional I/O exiting"}, {PROC_MSR_BITMAP, true, "MSR bitmaps"},
    {PROC_MONITOR_EXIT, true, "MONITOR exiting"},      {PROC_SECONDARY, true, "secondary controls"},
    {PROC_TPR_SHADOW, true, "the TPR shadow"},
};

static const struct wish proc2_wishes[] = {
    {PROC2_EPT, true, "EPT (extended page tables)"},
    {PROC2_UNRESTRICTED, true, "unrestricted guest"},
    {PROC2_VPID, false, "VPID"},
    {PROC2_RDTSCP, false, "RDTSCP for guests"},
    {PROC2_INVPCID, false, "INVPCID for guests"},
    {PROC2_WBINVD_EXIT, true, "WBINVD exiting"},
};

static const struct wish exit_wishes[] = {
    {EXIT_SAVE_DEBUG, true, "saving debug controls"},
    {EXIT_HOST_64, true, "64-bit host"},
    {EXIT_ACK_INTERRUPT, true, "acknowledge interrupt on exit"},
    {EXIT_SAVE_EFER, true, "saving IA32_EFER"},
    {EXIT_LOAD_EFER, true, "loading IA32_EFER"},
    {EXIT_SAVE_PAT, true, "saving IA32_PAT"},
    {EXIT_LOAD_PAT, true, "loading IA32_PAT"},
    {EXIT_SAVE_PREEMPTION_TIMER, false, "saving the VMX preemption timer"},
};

static const struct wish entry_wishes[] = {
    {ENTRY_LOAD_DEBUG, true, "loading debug controls"},
    {ENTRY_LOAD_EFER, true, "loading the guest's IA32_EFER"},
    {ENTRY_LOAD_PAT, true, "loading the guest's IA32_PAT"},
};

/*
 * The control word for capability MSR @msr: bits that must be 1, and all @wishes that may be 1. In
 * the TRUE MSRs the default-1 bits that may be 0 (such as CR3 exiting) are reported as such and
 * stay 0.
 */
static u32 controls(u32 msr, const struct wish *wishes, u32 n)
{
	u64 cap = rdmsr(msr);
	u32 must = cap, may = cap >> 32, word = must;

	for (u32 i = 0; i < n; i++) {
		if (may & wishes[i].bit)
			word |= wishes[i].bit;
		else if (wishes[i].required)
			hv_fatal(
			    "this CPU cannot run vlag: VMX lacks %s; a CPU with EPT and "
			    "unrestricted guest "
			    "(Intel Westmere or newer) is needed, and nested VMX must offer them",
			    wishes[i].name);
		else
			hv_info("VMX lacks %s: going on without", wishes[i].name);
	}
	return word;
}

static void check_ept(u64 cap)
{
	if (!(cap & BIT(6)) || !(cap & BIT(14)))
		hv_fatal("this CPU cannot run vlag: EPT without 4-level walks or write-back tables "
			 "(IA32_VMX_EPT_VPID_CAP is 0x%lx)",
			 cap);
	vmx_caps.ept_2m = cap & BIT(16);
	vmx_caps.ept_1g = cap & BIT(17);
	vmx_caps.ept_ad = cap & BIT(21);
}

static void check_feature_control(void)
{
	u64 fc = rdmsr(MSR_FEATURE_CONTROL);

	if ((fc & FEATURE_CONTROL_LOCKED) && !(fc & FEATURE_CONTROL_VMXON))
		hv_fatal("VMX is locked off by the firmware (IA32_FEATURE_CONTROL is 0x%lx): "
			 "enable \"Intel Virtualization Technology\" in the firmware setup and "
			 "power-cycle",
			 fc);
}

void vmx_check(void)
{
	struct vmx_caps *c = &vmx_caps;
	bool true_msrs;
	u64 basic, misc;

	if (!(cpuid(1, 0).ecx & BIT(5)))
		hv_fatal("this CPU has no VMX: run vlag on an Intel CPU with VT-x, under QEMU with "
			 "-cpu host,+vmx on a "
			 "KVM host with kvm_intel.nested=1, or under Bochs (tools/vlag run "
			 "--platform bochs)");
	check_feature_control();
	basic = rdmsr(MSR_VMX_BASIC);
	misc = rdmsr(MSR_VMX_MISC);
	true_msrs = basic & BASIC_TRUE_CONTROLS;
	c->revision = basic & 0x7fffffff;
	c->pin = controls(true_msrs ? MSR_VMX_TRUE_PINBASED : MSR_VMX_PINBASED, pin_wishes,
			  ARRAY_SIZE(pin_wishes));
	c->proc = controls(true_msrs ? MSR_VMX_TRUE_PROCBASED : MSR_VMX_PROCBASED, proc_wishes,
			   ARRAY_SIZE(proc_wishes));
	c->proc2 = controls(MSR_VMX_PROCBASED2, proc2_wishes, ARRAY_SIZE(proc2_wishes));
	c->exit = controls(true_msrs ? MSR_VMX_TRUE_EXIT : MSR_VMX_EXIT, exit_wishes,
			   ARRAY_SIZE(exit_wishes));
	c->entry = controls(true_msrs ? MSR_VMX_TRUE_ENTRY : MSR_VMX_ENTRY, entry_wishes,
			    ARRAY_SIZE(entry_wishes));
	if (c->proc & (PROC_CR3_LOAD_EXIT | PROC_CR3_STORE_EXIT))
		hv_fatal("this CPU cannot run vlag: VMX forces exits on CR3 accesses (no TRUE "
			 "control MSRs)");
	check_ept(rdmsr(MSR_VMX_EPT_VPID_CAP));

	c->cr0_fixed0 = rdmsr(MSR_VMX_CR0_FIXED0);
	c->cr0_fixed1 = rdmsr(MSR_VMX_CR0_FIXED1);
	c->cr4_fixed0 = rdmsr(MSR_VMX_CR4_FIXED0);
	c->cr4_fixed1 = rdmsr(MSR_VMX_CR4_FIXED1);
	c->preemption_timer = c->pin & PIN_PREEMPTION_TIMER;
	c->save_preemption_timer = c->preemption_timer && (c->exit & EXIT_SAVE_PREEMPTION_TIMER);
	c->preemption_shift = misc & 0x1f;
	c->virtual_nmi = c->pin & PIN_VIRTUAL_NMI;
	c->tpr_shadow = c->proc & PROC_TPR_SHADOW;
	c->vpid = c->proc2 & PROC2_VPID;
	c->rdtscp = c->proc2 & PROC2_RDTSCP;
	c->invpcid = c->proc2 & PROC2_INVPCID;
	c->pause_exit =
	    (rdmsr(true_msrs ? MSR_VMX_TRUE_PROCBASED : MSR_VMX_PROCBASED) >> 32) & PROC_PAUSE_EXIT;
	c->ple = (rdmsr(MSR_VMX_PROCBASED2) >> 32) & PROC2_PLE;
	c->apic_access = (rdmsr(MSR_VMX_PROCBASED2) >> 32) & PROC2_APIC_ACCESS;
	c->x2apic_mode = (rdmsr(MSR_VMX_PROCBASED2) >> 32) & PROC2_X2APIC;
	if (!(cpuid(1, 0).ecx & BIT(26)))
		hv_fatal("this CPU cannot run vlag: it has no XSAVE");
}

u64 vmcs_alloc(void)
{
	u32 *region = page_alloc(PAGE_SIZE, PAGE_SIZE, PAGES_VCPU);

	region[0] = vmx_caps.revision;
	return (u64)region;
}

bool vmx_enable(void)
{
	u64 fc = rdmsr(MSR_FEATURE_CONTROL);
	bool fail;

	if (!(fc & FEATURE_CONTROL_LOCKED))
		wrmsr(MSR_FEATURE_CONTROL, fc | FEATURE_CONTROL_LOCKED | FEATURE_CONTROL_VMXON);
	else if (!(fc & FEATURE_CONTROL_VMXON))
		return false;
	write_cr0((read_cr0() | vmx_caps.cr0_fixed0) & vmx_caps.cr0_fixed1);
	write_cr4((read_cr4() | CR4_VMXE | CR4_OSXSAVE | CR4_OSFXSR | CR4_OSXMMEXCPT |
		   vmx_caps.cr4_fixed0) &
		  vmx_caps.cr4_fixed1);
	this_pcpu()->vmxon_pa = vmcs_alloc();
	__asm__ volatile("vmxon %1" : "=@ccbe"(fail) : "m"(this_pcpu()->vmxon_pa) : "memory");
	return !fail;
}

void vmcs_clear(u64 pa)
{
	bool fail;

	__asm__ volatile("vmclear %1" : "=@ccbe"(fail) : "m"(pa) : "memory");
	BUG_ON(fail);
}

void vmcs_load(u64 pa)
{
	bool fail;

	__asm__ volatile("vmptrld %1" : "=@ccbe"(fail) : "m"(pa) : "memory");
	BUG_ON(fail);
}

void vmwrite_failed(u64 field, u64 value)
{
	hv_warn("VMWRITE of 0x%lx to field 0x%lx failed", value, field);
	BUG("VMWRITE failed");
}

struct inv_descriptor {
	u64 context, address;
};

void invept_context(u64 eptp)
{
	struct inv_descriptor d = {.context = eptp};
	bool fail;

	__asm__ volatile("invept %1, %2" : "=@ccbe"(fail) : "m"(d), "r"(1ull) : "memory");
	BUG_ON(fail);
}

void invvpid_context(u16 vpid)
{
	struct inv_descriptor d = {.context = vpid};
	bool fail;

	if (!vmx_caps.vpid)
		return;
	__asm__ volatile("invvpid %1, %2" : "=@ccbe"(fail) : "m"(d), "r"(1ull) : "memory");
	BUG_ON(fail);
}
