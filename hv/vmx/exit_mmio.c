/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guest accesses to memory that is not RAM: the xAPIC page, the IOAPIC, nothing. The CPU gives the
 * address; the instruction is fetched and decoded (hv/vmx/insn.c) for the data.
 */
#include "hv/console.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"
#include "hv/tracepoint.h"
#include "hv/vmx/exit.h"
#include "hv/vmx/gpt.h"
#include "hv/vmx/insn.h"

#define QUAL_APIC_OFFSET(q) ((q)&0xfff)
#define QUAL_APIC_TYPE(q) ((q) >> 12 & 15)
enum { APIC_LINEAR_READ, APIC_LINEAR_WRITE };

#define AR_L BIT(13)
#define AR_D BIT(14)

/* --- devices --- */

static u64 unknown_mmio(struct vcpu *v, const char *what, u64 gpa)
{
	COUNT(v, cnt_unknown_mmio);
	if (!v->vm->seen_mmio) {
		v->vm->seen_mmio = true;
		hv_info("vm %s: %s 0x%lx, where neither RAM nor a device is: reads ones, writes "
			"are dropped (shown once)",
			v->vm->name, what, gpa);
	}
	return UINT64_MAX;
}

static u64 mmio_read(struct vcpu *v, u64 gpa, u32 width)
{
	u64 value;

	COUNT(v, cnt_mmio);
	if (ALIGN_DOWN(gpa, PAGE_SIZE) == VLAPIC_BASE && v->lapic.mode == VLAPIC_XAPIC) {
		u32 offset = gpa & 0xfff;

		value = vlapic_mmio_read(&v->lapic, offset & ~3u, vcpu_guest_tsc(v, rdtsc()));
		return value >> 8 * (offset & 3);
	}
	if (ALIGN_DOWN(gpa, PAGE_SIZE) == VIOAPIC_BASE) {
		spin_lock(&v->vm->lock);
		value = vioapic_read(&v->vm->ioapic, gpa & 0xffc) >> 8 * (gpa & 3);
		spin_unlock(&v->vm->lock);
		return value;
	}
	return unknown_mmio(v, "read of", gpa);
}

/* A write to the LAPIC's page that the trace has an event for. */
static void trace_mmio(struct vcpu *v, u32 offset, u32 value)
{
	if (offset == APIC_ICR && unlikely(tracing(TRACE_IPI)))
		trace_icr(v, (v->lapic.icr & ~(u64)UINT32_MAX) | value, rdtsc());
	if (offset == APIC_EOI && unlikely(tracing(TRACE_EOI)))
		trace_eoi(v, rdtsc());
}

static void mmio_write(struct vcpu *v, u64 gpa, u32 width, u64 value)
{
	COUNT(v, cnt_mmio);
	if (ALIGN_DOWN(gpa, PAGE_SIZE) == VLAPIC_BASE && v->lapic.mode == VLAPIC_XAPIC) {
		if (width == 4 &&
		    IS_ALIGNED(gpa, 4)) { /* anything else has no effect (SDM vol. 3, 11.4.1.2) */
			trace_mmio(v, gpa & 0xfff, value);
			vlapic_mmio_write(&v->lapic, gpa & 0xfff, value,
					  vcpu_guest_tsc(v, rdtsc()));
			vcpu_timer_changed(v);
		}
		return;
	}
	if (ALIGN_DOWN(gpa, PAGE_SIZE) == VIOAPIC_BASE) {
		spin_lock(&v->vm->lock);
		if (IS_ALIGNED(gpa, 4))
			vioapic_write(&v->vm->ioapic, gpa & 0xfff, value);
		spin_unlock(&v->vm->lock);
		return;
	}
	unknown_mmio(v, "write to", gpa);
}

/* --- the instruction --- */

/* Copies up to INSN_MAX bytes at the guest's RIP. Returns how many. */
static u32 fetch(struct vcpu *v, u8 buf[INSN_BUF])
{
	struct gpt_regs regs = {vmreadn(VMCS_GUEST_CR0), vmreadn(VMCS_GUEST_CR3),
				vmreadn(VMCS_GUEST_CR4), vmread64(VMCS_GUEST_EFER)};
	u64 gla = vmreadn(VMCS_GUEST_CS_BASE) + vmreadn(VMCS_GUEST_RIP), gpa;
	u32 first = min((u64)INSN_MAX, PAGE_SIZE - (gla & 0xfff));
	const u8 *p;

	if (gpt_translate(&v->vm->mem, &regs, gla, &gpa) ||
	    !(p = guest_ptr(&v->vm->mem, gpa, first)))
		return 0;
	if (likely(first == INSN_MAX)) {
		*(u64 *)buf = *(const u64 *)p;
		*(u64 *)(buf + 7) = *(const u64 *)(p + 7);
		return INSN_MAX;
	}
	memcpy(buf, p, first);
	if (gpt_translate(&v->vm->mem, &regs, gla + first, &gpa) ||
	    !(p = guest_ptr(&v->vm->mem, gpa, INSN_MAX - first)))
		return first;
	memcpy(buf + first, p, INSN_MAX - first);
	return INSN_MAX;
}

static enum insn_mode insn_mode(void)
{
	u32 ar = vmread32(VMCS_GUEST_CS_AR);

	if ((ar & AR_L) && (vmread64(VMCS_GUEST_EFER) & EFER_LMA))
		return INSN_MODE_64;
	return ar & AR_D ? INSN_MODE_32 : INSN_MODE_16;
}

static enum exit_action kill_undecoded(struct vcpu *v, u64 gpa, const u8 *bytes, u32 n)
{
	char text[3 * INSN_MAX + 1] = "";

	if (!n)
		return vcpu_kill(
		    v, "device access at 0x%lx by an instruction that cannot be fetched", gpa);
	for (u32 i = 0; i < n; i++)
		fmt_print(text + 3 * i, sizeof(text) - 3 * i, " %02x", bytes[i]);
	return vcpu_kill(v, "device access at 0x%lx by an unsupported instruction:%s", gpa, text);
}

/*
 * The memory side of a MOVS from or to the device at @gpa, byte by byte, as it may cross a page.
 * Injects the page fault that it raises; what is not RAM reads ones and takes nothing.
 */
static bool movs_memory(struct vcpu *v, const struct insn *in, bool write, u64 *value)
{
	struct gpt_regs regs = {vmreadn(VMCS_GUEST_CR0), vmreadn(VMCS_GUEST_CR3),
				vmreadn(VMCS_GUEST_CR4), vmread64(VMCS_GUEST_EFER)};
	u64 mask = in->addr_width == 8 ? UINT64_MAX : (1ull << 8 * in->addr_width) - 1, gpa;
	u32 seg = write ? INSN_SEG_ES : in->segment == INSN_SEG_DEFAULT ? INSN_SEG_DS : in->segment;
	u64 gla = vmreadn(VMCS_GUEST_ES_BASE + 2 * seg) + (v->regs[write ? RDI : RSI] & mask);
	u32 access = write ? GPT_PF_WRITE : 0, error = 0;

	if ((vmread32(VMCS_GUEST_SS_AR) >> 5 & 3) == 3)
		access |= GPT_PF_USER;
	for (u32 i = 0; i < in->width; i++) {
		u8 *byte;

		if (gpt_access(&v->vm->mem, &regs, gla + i, access, &gpa, &error)) {
			write_cr2(gla + i);
			inject_exception_error(v, VEC_PF, error);
			return false;
		}
		byte = guest_ptr(&v->vm->mem, gpa, 1);
		if (write && byte)
			*byte = *value >> 8 * i;
		else if (!write)
			*value |= (u64)(byte ? *byte : 0xff) << 8 * i;
	}
	return true;
}

/* MOVS between the device at @gpa and memory. False: a fault was injected. */
static bool do_movs(struct vcpu *v, const struct insn *in, u64 gpa, bool to_device)
{
	u64 value = 0;

	if (to_device) {
		if (!movs_memory(v, in, false, &value))
			return false;
		mmio_write(v, gpa, in->width, value);
		return true;
	}
	value = mmio_read(v, gpa, in->width);
	return movs_memory(v, in, true, &value);
}

static enum exit_action access(struct vcpu *v, u64 gpa, bool write)
{
	u8 bytes[INSN_BUF];
	struct insn in;
	u64 value, rflags = 0;
	u32 n = fetch(v, bytes);

	if (unlikely(!n || insn_decode(&in, bytes, n, insn_mode())))
		return kill_undecoded(v, gpa, bytes, n);
	if (unlikely(in.op == INSN_MOVS)) {
		if (!do_movs(v, &in, gpa, write))
			return EXIT_RESUME;
	} else {
		if (unlikely(in.reg == RSP))
			v->regs[RSP] = vmreadn(VMCS_GUEST_RSP);
		if (in.flags & INSN_RFLAGS)
			rflags = vmreadn(VMCS_GUEST_RFLAGS);
		value = in.flags & INSN_LOAD ? mmio_read(v, gpa, in.width) : 0;
		value = insn_execute(&in, v->regs, &rflags, value);
		if (in.flags & INSN_STORE)
			mmio_write(v, gpa, in.width, value);
		if (in.flags & INSN_RFLAGS)
			vmwriten(VMCS_GUEST_RFLAGS, rflags);
		if (unlikely(in.reg == RSP && (in.flags & INSN_TO_REG)))
			vmwriten(VMCS_GUEST_RSP, v->regs[RSP]);
	}
	if (!(in.flags & INSN_STRING) || insn_string_step(&in, v->regs, vmreadn(VMCS_GUEST_RFLAGS)))
		vmwriten(VMCS_GUEST_RIP, vmreadn(VMCS_GUEST_RIP) + in.length);
	if (unlikely(vmread32(VMCS_GUEST_INTERRUPTIBILITY) & (BLOCKED_BY_STI | BLOCKED_BY_MOV_SS)))
		vmwrite32(VMCS_GUEST_INTERRUPTIBILITY,
			  vmread32(VMCS_GUEST_INTERRUPTIBILITY) &
			      ~(u32)(BLOCKED_BY_STI | BLOCKED_BY_MOV_SS));
	return vlapic_has_work(&v->lapic) ? vcpu_deliver(v) : EXIT_RESUME;
}

enum exit_action exit_ept_violation(struct vcpu *v)
{
	u64 gpa = vmread64(VMCS_GUEST_PHYS_ADDR), q = vmreadn(VMCS_EXIT_QUALIFICATION);

	if (unlikely(vmread32(VMCS_IDT_VECTORING_INFO) & INTR_VALID))
		return vcpu_kill(v, "an event's delivery touched 0x%lx, where no RAM is", gpa);
	if (unlikely(q & BIT(2)))
		return vcpu_kill(v, "instruction fetch at 0x%lx, where no RAM is", gpa);
	return access(v, gpa, q & BIT(1));
}

enum exit_action exit_apic_access(struct vcpu *v)
{
	u64 q = vmreadn(VMCS_EXIT_QUALIFICATION);
	u32 offset = QUAL_APIC_OFFSET(q), type = QUAL_APIC_TYPE(q);

	/* The commonest by far needs no look at the instruction: what is written to EOI does not
	 * matter. */
	if (offset == APIC_EOI && type == APIC_LINEAR_WRITE) {
		COUNT(v, cnt_mmio);
		if (unlikely(tracing(TRACE_EOI)))
			trace_eoi(v, rdtsc());
		vlapic_eoi(&v->lapic, vcpu_guest_tsc(v, rdtsc()));
		skip_instruction();
		return vlapic_has_work(&v->lapic) ? vcpu_deliver(v) : EXIT_RESUME;
	}
	if (unlikely(type > APIC_LINEAR_WRITE))
		return vcpu_kill(
		    v, "APIC page accessed by an instruction fetch or an event's delivery");
	return access(v, VLAPIC_BASE + offset, type == APIC_LINEAR_WRITE);
}

enum exit_action exit_ept_misconfig(struct vcpu *v)
{
	return vcpu_kill(v, "EPT misconfiguration at 0x%lx: a bug of vlag",
			 vmread64(VMCS_GUEST_PHYS_ADDR));
}
