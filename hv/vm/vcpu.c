/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a vCPU, its start states, and moving its state into and out of a pCPU. What it does at an
 * exit is in hv/vmx/exit*.c. */
#include "hv/vm/vcpu.h"

#include "hv/console.h"
#include "hv/lib/bug.h"
#include "hv/lib/string.h"
#include "hv/page.h"
#include "hv/paging.h"
#include "hv/apic/lapic.h"
#include "hv/pcpu.h"
#include "hv/vm/run.h"
#include "hv/vm/load.h"
#include "hv/vmx/exit.h"
#include "hv/vmx/vmx.h"

/* CR0 bits that the guest does not set itself: VMX wants NE, and caching is the host's business. */
#define CR0_OWNED (CR0_NE | CR0_CD | CR0_NW)

/* CR4 bits that guests may use; for the others MOV to CR4 raises #GP as on a CPU that lacks them.
 */
#define CR4_GUEST_BITS 0x003707ffull

#define SEG_UNUSABLE BIT(16)
#define AR_CODE16 0x9bu
#define AR_DATA16 0x93u
#define AR_LDT 0x82u
#define AR_TSS 0x8bu

static const u32 switched_msr[NR_SWITCHED_MSRS] = {
#define X(name) [SWITCHED_##name] = MSR_##name,
    SWITCHED_MSRS(X)
#undef X
};

/* x87, SSE, AVX, AVX-512: the state components that guests may have, as far as this CPU does. */
u64 xcr0_guest_mask(void)
{
	return (cpuid(0xd, 0).eax | (u64)cpuid(0xd, 0).edx << 32) & 0xe7;
}

static void set_proc_controls(struct vcpu *v, u32 value)
{
	v->proc_controls = value;
	vmwrite32(VMCS_PROC_CONTROLS, value);
}

static void switch_control(struct vcpu *v, u32 bit, bool on)
{
	if (!(v->proc_controls & bit) == on)
		set_proc_controls(v, v->proc_controls ^ bit);
}

void vcpu_set_window(struct vcpu *v, bool on)
{
	switch_control(v, PROC_INTR_WINDOW, on);
}

void vcpu_set_nmi_window(struct vcpu *v, bool on)
{
	switch_control(v, PROC_NMI_WINDOW, on);
}

void vcpu_set_pause_exiting(struct vcpu *v, bool on)
{
	switch_control(v, PROC_PAUSE_EXIT, on);
}

void vcpu_update_controls2(struct vcpu *v)
{
	bool x2apic = v->lapic.mode == VLAPIC_X2APIC;
	u32 proc2 = vmx_caps.proc2;

	if (x2apic && vmx_caps.x2apic_mode)
		proc2 |= PROC2_X2APIC;
	else if (v->lapic.mode == VLAPIC_XAPIC && vmx_caps.apic_access)
		proc2 |= PROC2_APIC_ACCESS;
	if (v->ple_hw)
		proc2 |= PROC2_PLE;
	vmwrite32(VMCS_PROC_CONTROLS2, proc2);
}

void vcpu_update_apic_mode(struct vcpu *v)
{
	bool x2apic = v->lapic.mode == VLAPIC_X2APIC;

	vcpu_update_controls2(v);
	vmwrite64(VMCS_MSR_BITMAP, msr_bitmap(x2apic && vmx_caps.x2apic_mode));
	invvpid_context(vmread16(VMCS_VPID));
}

static void write_controls(struct vcpu *v)
{
	vmwrite32(VMCS_PIN_CONTROLS, vmx_caps.pin);
	set_proc_controls(v, vmx_caps.proc);
	vmwrite32(VMCS_PROC_CONTROLS2, vmx_caps.proc2);
	vmwrite32(VMCS_EXIT_CONTROLS, vmx_caps.exit);
	vmwrite32(VMCS_ENTRY_CONTROLS, vmx_caps.entry);
	vmwrite32(VMCS_EXCEPTION_BITMAP, 1u << VEC_DB | 1u << VEC_AC | 1u << VEC_MC);
	vmwrite32(VMCS_PF_ERROR_MASK, 0);
	vmwrite32(VMCS_PF_ERROR_MATCH, 0);
	vmwrite32(VMCS_CR3_TARGET_COUNT, 0);
	vmwrite32(VMCS_EXIT_MSR_STORE_COUNT, 0);
	vmwrite32(VMCS_EXIT_MSR_LOAD_COUNT, 0);
	vmwrite32(VMCS_ENTRY_MSR_LOAD_COUNT, 0);
	vmwrite32(VMCS_ENTRY_INTR_INFO, 0);
	vmwrite32(VMCS_TPR_THRESHOLD, 0);
	vmwrite64(VMCS_LINK_POINTER, UINT64_MAX);
	vmwrite64(VMCS_EPT_POINTER, v->vm->eptp);
	vmwrite64(VMCS_VIRTUAL_APIC_PAGE, (u64)v->vapic_page);
	if (vmx_caps.apic_access)
		vmwrite64(VMCS_APIC_ACCESS_ADDR, v->vm->apic_page);
	if (vmx_caps.vpid)
		vmwrite16(VMCS_VPID, v->vm->id * CFG_MAX_VCPUS + v->id + 1);
	vmwriten(VMCS_CR0_MASK, CR0_OWNED);
	vmwriten(VMCS_CR4_MASK, ~CR4_GUEST_BITS);
}

/* Host state that is the same on every pCPU. */
static void write_host_state(struct vcpu *v)
{
	vmwriten(VMCS_HOST_CR0, read_cr0());
	vmwriten(VMCS_HOST_CR3, paging_cr3());
	vmwriten(VMCS_HOST_CR4, read_cr4());
	vmwrite16(VMCS_HOST_CS_SEL, SEL_CODE);
	vmwrite16(VMCS_HOST_SS_SEL, SEL_DATA);
	vmwrite16(VMCS_HOST_DS_SEL, SEL_DATA);
	vmwrite16(VMCS_HOST_ES_SEL, SEL_DATA);
	vmwrite16(VMCS_HOST_FS_SEL, SEL_DATA);
	vmwrite16(VMCS_HOST_GS_SEL, SEL_DATA);
	vmwrite16(VMCS_HOST_TR_SEL, SEL_TSS);
	vmwriten(VMCS_HOST_FS_BASE, 0);
	vmwriten(VMCS_HOST_IDTR_BASE, desc_idt().base);
	vmwrite32(VMCS_HOST_SYSENTER_CS, 0);
	vmwriten(VMCS_HOST_SYSENTER_ESP, 0);
	vmwriten(VMCS_HOST_SYSENTER_EIP, 0);
	vmwrite64(VMCS_HOST_EFER, rdmsr(MSR_EFER));
	vmwrite64(VMCS_HOST_PAT, rdmsr(MSR_PAT));
	vmwriten(VMCS_HOST_RSP, (u64)v); /* entry.asm */
	vmwriten(VMCS_HOST_RIP, (u64)vmx_exit_entry);
}

/* Host state that belongs to the pCPU. */
static void write_host_pcpu(const struct pcpu *p)
{
	vmwriten(VMCS_HOST_GS_BASE, (u64)p);
	vmwriten(VMCS_HOST_TR_BASE, (u64)&p->tables.tss);
	vmwriten(VMCS_HOST_GDTR_BASE, (u64)p->tables.gdt);
}

static void timer_fired(struct timer *t, u64 now);

/* The structure, the VMCS, the virtual-APIC page, the XSAVE area. */
u64 vcpu_pages(void)
{
	return ALIGN_UP(sizeof(struct vcpu), PAGE_SIZE) / PAGE_SIZE + 2 +
	       ALIGN_UP((u64)cpuid(0xd, 0).ecx, PAGE_SIZE) / PAGE_SIZE;
}

struct vcpu *vcpu_create(struct vm *vm, u32 id)
{
	struct vcpu *v = page_alloc(sizeof(*v), PAGE_SIZE, PAGES_VCPU);

	v->vm = vm;
	v->id = id;
	v->vmcs_pa = vmcs_alloc();
	v->vapic_page = page_alloc(PAGE_SIZE, PAGE_SIZE, PAGES_VCPU);
	v->xsave = page_alloc(cpuid(0xd, 0).ecx, PAGE_SIZE, PAGES_VCPU);
	v->timer.fn = timer_fired;
	v->fresh = true;
	v->xcr0 = 1;
	vlapic_setup(&v->lapic, &vm->apic_map, id, (u32 *)(v->vapic_page + APIC_TPR));
	return v;
}

/* --- moving state in and out --- */

static void save_registers(struct vcpu *v)
{
	u32 lo = UINT32_MAX, hi = UINT32_MAX;

	xsetbv(0, xcr0_guest_mask());
	__asm__ volatile("xsave64 (%0)" : : "r"(v->xsave), "a"(lo), "d"(hi) : "memory");
	for (u32 i = 0; i < NR_SWITCHED_MSRS; i++) {
		if (i != SWITCHED_TSC_AUX || vmx_caps.rdtscp)
			v->msrs[i] = rdmsr(switched_msr[i]);
	}
	__asm__ volatile("mov %%db0, %0" : "=r"(v->dr[0]));
	__asm__ volatile("mov %%db1, %0" : "=r"(v->dr[1]));
	__asm__ volatile("mov %%db2, %0" : "=r"(v->dr[2]));
	__asm__ volatile("mov %%db3, %0" : "=r"(v->dr[3]));
	__asm__ volatile("mov %%db6, %0" : "=r"(v->dr6));
	v->cr2 = read_cr2();
}

static void restore_registers(struct vcpu *v)
{
	u32 lo = UINT32_MAX, hi = UINT32_MAX;

	xsetbv(0, xcr0_guest_mask());
	__asm__ volatile("xrstor64 (%0)" : : "r"(v->xsave), "a"(lo), "d"(hi) : "memory");
	if (v->xcr0 != xcr0_guest_mask())
		xsetbv(0, v->xcr0);
	for (u32 i = 0; i < NR_SWITCHED_MSRS; i++) {
		if (i != SWITCHED_TSC_AUX || vmx_caps.rdtscp)
			wrmsr(switched_msr[i], v->msrs[i]);
	}
	__asm__ volatile("mov %0, %%db0" : : "r"(v->dr[0]));
	__asm__ volatile("mov %0, %%db1" : : "r"(v->dr[1]));
	__asm__ volatile("mov %0, %%db2" : : "r"(v->dr[2]));
	__asm__ volatile("mov %0, %%db3" : : "r"(v->dr[3]));
	__asm__ volatile("mov %0, %%db6" : : "r"(v->dr6));
	write_cr2(v->cr2);
}

void vcpu_unload_current(void)
{
	struct pcpu *p = this_pcpu();
	struct vcpu *v = p->loaded;

	if (!v)
		return;
	save_registers(v);
	p->loaded = NULL;
	if (nr_pcpus > 1) { /* so that any of them may load it */
		vmcs_clear(v->vmcs_pa);
		v->launched = false;
	}
	__atomic_store_n(&v->loaded_on, NULL, __ATOMIC_RELEASE);
}

/* @v moved here while its registers are still in the CPU where it ran: that one puts them into
 * memory when it loads another vCPU or goes idle. It never waits for us meanwhile with something
 * loaded, so this ends. */
static void wait_until_unloaded(struct vcpu *v)
{
	struct pcpu *there = __atomic_load_n(&v->loaded_on, __ATOMIC_ACQUIRE);

	if (likely(!there))
		return;
	pcpu_kick(there);
	while (__atomic_load_n(&v->loaded_on, __ATOMIC_ACQUIRE)) {
		pcpu_serve();
		cpu_relax();
	}
}

void vcpu_load(struct vcpu *v)
{
	struct pcpu *p = this_pcpu();
	bool first = !v->host_state;

	if (p->loaded == v)
		return;
	vcpu_unload_current();
	wait_until_unloaded(v);
	if (first)
		vmcs_clear(v->vmcs_pa);
	vmcs_load(v->vmcs_pa);
	v->loaded_on = p;
	p->loaded = v;
	p->nr_switches++;
	v->nr_switches++;
	if (first) {
		write_controls(v);
		write_host_state(v);
	}
	if (v->host_state != p) {
		write_host_pcpu(p);
		invept_context(v->vm->eptp); /* what this CPU remembers from an earlier stay */
		v->host_state = p;
	}
	restore_registers(v);
	pause_loaded(v);
}

/* --- start states --- */

static void write_segment(u32 index, u16 selector, u64 base, u32 limit, u32 access)
{
	/* The four fields of the eight segments are evenly spaced, in the order ES CS SS DS FS GS
	 * LDTR TR. */
	vmwrite16(VMCS_GUEST_ES_SEL + 2 * index, selector);
	vmwriten(VMCS_GUEST_ES_BASE + 2 * index, base);
	vmwrite32(VMCS_GUEST_ES_LIMIT + 2 * index, limit);
	vmwrite32(VMCS_GUEST_ES_AR + 2 * index, access);
}

enum { ES, CS, SS, DS, FS, GS, LDTR, TR };

/* What all start states share: everything that INIT defines apart from segments, RIP and control
 * registers. */
static void write_common_state(struct vcpu *v)
{
	memset(v->regs, 0, sizeof(v->regs));
	vmwrite32(VMCS_GUEST_INTERRUPTIBILITY, 0);
	vmwrite32(VMCS_GUEST_ACTIVITY, ACTIVITY_ACTIVE);
	vmwriten(VMCS_GUEST_PENDING_DBG, 0);
	vmwrite64(VMCS_GUEST_DEBUGCTL, 0);
	vmwriten(VMCS_GUEST_DR7, 0x400);
	vmwriten(VMCS_GUEST_RSP, 0);
	vmwriten(VMCS_GUEST_RFLAGS, RFLAGS_FIXED);
	vmwriten(VMCS_GUEST_GDTR_BASE, 0);
	vmwrite32(VMCS_GUEST_GDTR_LIMIT, 0xffff);
	vmwriten(VMCS_GUEST_IDTR_BASE, 0);
	vmwrite32(VMCS_GUEST_IDTR_LIMIT, 0xffff);
	vmwrite32(VMCS_GUEST_SYSENTER_CS, 0);
	vmwriten(VMCS_GUEST_SYSENTER_ESP, 0);
	vmwriten(VMCS_GUEST_SYSENTER_EIP, 0);
	vmwrite32(VMCS_ENTRY_INTR_INFO, 0);
	v->halted = false;
	pv_vcpu_init(&v->pv);
	spin_reset(&v->spin);
	vcpu_set_window(v, false);
	vcpu_set_nmi_window(v, false);
	vcpu_update_apic_mode(v);
}

static void write_control_registers(struct vcpu *v, u64 cr0, u64 cr3, u64 cr4, u64 efer)
{
	vmwriten(VMCS_CR0_SHADOW, cr0);
	vmwriten(VMCS_GUEST_CR0, (cr0 & ~(CR0_CD | CR0_NW)) | CR0_NE);
	vmwriten(VMCS_GUEST_CR3, cr3);
	vmwriten(VMCS_CR4_SHADOW, cr4);
	vmwriten(VMCS_GUEST_CR4, cr4 | (vmx_caps.cr4_fixed0 & ~CR4_GUEST_BITS));
	vmwrite64(VMCS_GUEST_EFER, efer);
	vmwrite32(VMCS_ENTRY_CONTROLS, vmx_caps.entry | (efer & EFER_LMA ? ENTRY_IA32E_GUEST : 0));
}

/* Registers that only a power-up or machine reset touches (INIT leaves them: SDM vol. 3, table
 * 9-1). */
void vcpu_power_up(struct vcpu *v)
{
	memset(v->xsave, 0, cpuid(0xd, 0).ecx);
	*(u16 *)v->xsave = 0x37f;		  /* FCW */
	*(u32 *)((char *)v->xsave + 24) = 0x1f80; /* MXCSR */
	*(u64 *)((char *)v->xsave + 512) = 3;	  /* XSTATE_BV: x87 and SSE are as above */
	v->xcr0 = 1;
	memset(v->msrs, 0, sizeof(v->msrs));
	memset(v->dr, 0, sizeof(v->dr));
	v->dr6 = 0xffff0ff0;
	v->tsc_adjust = 0;
	v->tsc_offset = -(s64)v->vm->tsc_base;
	v->lapic.tsc_offset = v->tsc_offset;
	v->misc_enable = 1;
	v->cr2 = 0;
	if (this_pcpu()->loaded == v)
		restore_registers(v);
	vmwrite64(VMCS_GUEST_PAT, 0x0007040600070406ull);
	vmwrite64(VMCS_TSC_OFFSET, v->tsc_offset);
	vmwrite32(VMCS_GUEST_ACTIVITY, ACTIVITY_ACTIVE);
}

void vcpu_set_init_state(struct vcpu *v)
{
	write_common_state(v);
	write_control_registers(v, CR0_CD | CR0_NW | CR0_ET, 0, 0, 0);
	write_segment(CS, 0xf000, 0xffff0000, 0xffff, AR_CODE16);
	for (u32 i = 0; i <= GS; i++) {
		if (i != CS)
			write_segment(i, 0, 0, 0xffff, AR_DATA16);
	}
	write_segment(LDTR, 0, 0, 0xffff, AR_LDT);
	write_segment(TR, 0, 0, 0xffff, AR_TSS);
	vmwriten(VMCS_GUEST_RIP, 0xfff0);
	v->regs[RDX] = cpuid(1, 0).eax;
}

void vcpu_set_sipi_state(struct vcpu *v, u8 vector)
{
	write_segment(CS, vector << 8, (u64)vector << 12, 0xffff, AR_CODE16);
	vmwriten(VMCS_GUEST_RIP, 0);
}

static void write_boot_segment(u32 index, const struct boot_segment *s)
{
	write_segment(index, s->selector, s->base, s->limit, s->access);
}

void vcpu_set_boot_state(struct vcpu *v, const struct cpu_boot_state *s)
{
	write_common_state(v);
	write_control_registers(v, s->cr0, s->cr3, s->cr4, s->efer);
	write_boot_segment(CS, &s->cs);
	for (u32 i = 0; i <= GS; i++) {
		if (i != CS)
			write_boot_segment(i, &s->data);
	}
	write_boot_segment(LDTR, &s->ldtr);
	write_boot_segment(TR, &s->tr);
	vmwriten(VMCS_GUEST_GDTR_BASE, s->gdt_base);
	vmwrite32(VMCS_GUEST_GDTR_LIMIT, s->gdt_limit);
	vmwrite32(VMCS_GUEST_IDTR_LIMIT, 0);
	vmwriten(VMCS_GUEST_RIP, s->rip);
	vmwriten(VMCS_GUEST_RSP, s->rsp);
	vmwriten(VMCS_GUEST_RFLAGS, s->rflags | RFLAGS_FIXED);
	v->regs[RAX] = s->rax;
	v->regs[RBX] = s->rbx;
	v->regs[RSI] = s->rsi;
}

/* --- time --- */

static void timer_fired(struct timer *t, u64 now)
{
	struct vcpu *v = container_of(t, struct vcpu, timer);

	/* Who sleeps looks at its timer when it is entered. */
	if (READ_ONCE(v->sched.state) != SCHED_BLOCKED)
		vcpu_request(v, REQ_TIMER);
	vcpu_kick(v);
}

void vcpu_arm(struct vcpu *v, u64 now)
{
	struct pcpu *p = this_pcpu();
	/* On the boot CPU the console waits: guests that exit all the time must not put it off. */
	u64 at = p->id == 0 ? p->next_poll : now + host_poll_ticks;
	u64 deadline = vlapic_timer_deadline(&v->lapic), left;

	if (deadline != VLAPIC_TIMER_NONE)
		at = min(at, deadline - v->tsc_offset - p->timer_advance);
	at = min(at, READ_ONCE(p->timers.next));
	at = min(at, p->slice_end);
	v->armed_tsc = at;
	if (v->ple_soft)
		vcpu_set_pause_exiting(v, READ_ONCE(p->rq.nr_running) > 1);
	if (!vmx_caps.save_preemption_timer) {
		lapic_timer_arm(at);
		return;
	}
	left = (s64)(at - now) > 0 ? (at - now) >> vmx_caps.preemption_shift : 0;
	vmwrite32(VMCS_PREEMPTION_TIMER, left);
}

bool vcpu_wakeable(const struct vcpu *v, u64 now)
{
	const struct vlapic *l = &v->lapic;
	u32 events = READ_ONCE(l->events);

	if (l->wait_for_sipi)
		return events & (VLAPIC_EV_INIT | VLAPIC_EV_SIPI);
	if ((events & (VLAPIC_EV_INIT | VLAPIC_EV_NMI)) || READ_ONCE(v->pv.unhalted))
		return true;
	if (!v->halted_if)
		return false;
	return vlapic_pending(l) >= 0 ||
	       vlapic_timer_deadline(l) <= vcpu_guest_tsc(v, now) + vcpu_pcpu(v)->wake_advance ||
	       ((events & VLAPIC_EV_LINT0) && vlapic_extint(l));
}

/* --- looking at it --- */

void vcpu_dump(struct vcpu *v, struct out *out)
{
	static const char *const names[] = {"RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI",
					    "R8 ", "R9 ", "R10", "R11", "R12", "R13", "R14", "R15"};
	static const char *const segments[] = {"ES", "CS", "SS", "DS", "FS", "GS", "LDTR", "TR"};

	v->regs[RSP] = vmreadn(VMCS_GUEST_RSP);
	out_print(out, "vCPU %s/%u: RIP %016lx RFLAGS %08lx%s\n", v->vm->name, v->id,
		  vmreadn(VMCS_GUEST_RIP), vmreadn(VMCS_GUEST_RFLAGS),
		  v->lapic.wait_for_sipi ? " (waits for SIPI)"
		  : v->halted		 ? " (halted)"
					 : "");
	for (u32 i = 0; i < ARRAY_SIZE(names); i++)
		out_print(out, "%s %016lx%s", names[i], v->regs[i], i % 4 == 3 ? "\n" : " ");
	out_print(out, "CR0 %lx CR2 %lx CR3 %lx CR4 %lx EFER %lx\n", vmreadn(VMCS_GUEST_CR0),
		  this_pcpu()->loaded == v ? read_cr2() : v->cr2, vmreadn(VMCS_GUEST_CR3),
		  vmreadn(VMCS_GUEST_CR4), vmread64(VMCS_GUEST_EFER));
	for (u32 i = 0; i < ARRAY_SIZE(segments); i++)
		out_print(out, "%-4s %04x base %016lx limit %08x access %05x\n", segments[i],
			  vmread16(VMCS_GUEST_ES_SEL + 2 * i), vmreadn(VMCS_GUEST_ES_BASE + 2 * i),
			  vmread32(VMCS_GUEST_ES_LIMIT + 2 * i),
			  vmread32(VMCS_GUEST_ES_AR + 2 * i));
	out_print(out,
		  "exit reason %x qualification %lx intr info %x vectoring %x entry info %x "
		  "interruptibility %x\n",
		  vmread32(VMCS_EXIT_REASON), vmreadn(VMCS_EXIT_QUALIFICATION),
		  vmread32(VMCS_EXIT_INTR_INFO), vmread32(VMCS_IDT_VECTORING_INFO),
		  vmread32(VMCS_ENTRY_INTR_INFO), vmread32(VMCS_GUEST_INTERRUPTIBILITY));
	out_print(out, "APIC id %u mode %u PPR %x in service %u; exits", v->lapic.id, v->lapic.mode,
		  vlapic_ppr(&v->lapic), v->lapic.isr_stack[v->lapic.isr_depth]);
	for (u64 i = 1; i <= LAST_EXITS && i <= v->nr_exits; i++)
		out_print(out, " %s",
			  exit_reason_name(v->last_exits[(v->nr_exits - i) % LAST_EXITS]));
	out_print(out, "\n");
}
