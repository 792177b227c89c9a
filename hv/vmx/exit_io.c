/* SPDX-License-Identifier: BSD-2-Clause */
/* IN, OUT and their string forms (SDM vol. 3, table 27-5). Who answers at a port is
 * hv/dev/ioport.c's. */
#include "hv/dev/ioport.h"
#include "hv/vmx/exit.h"
#include "hv/vmx/gpt.h"

#define QUAL_SIZE(q) (((q)&7) + 1)
#define QUAL_IN BIT(3)
#define QUAL_STRING BIT(4)
#define QUAL_REP BIT(5)
#define QUAL_PORT(q) ((q) >> 16 & 0xffff)
#define INFO_ADDRESS_SIZE(i) ((i) >> 7 & 7) /* 0: 16 bits, 1: 32, 2: 64 */
#define RFLAGS_DF BIT(10)

/* Elements of one REP INS/OUTS before the vCPU is looked after again: the instruction then simply
 * exits once more. */
#define STRING_BATCH 64

static u64 address_mask(void)
{
	u32 size = INFO_ADDRESS_SIZE(vmread32(VMCS_EXIT_INSN_INFO));

	return size == 0 ? 0xffff : size == 1 ? 0xffffffff : UINT64_MAX;
}

static void add_masked(u64 *reg, u64 delta, u64 mask)
{
	u64 value = (*reg + delta) & mask;

	/* A 32-bit result clears the upper half, a 16-bit one leaves the rest. */
	*reg = mask == 0xffff ? (*reg & ~mask) | value : value;
}

/* One element at guest-linear @gla. Returns false after injecting what the access raises. */
static bool string_element(struct vcpu *v, u64 gla, u16 port, u32 size, bool in)
{
	struct gpt_regs regs = {vmreadn(VMCS_GUEST_CR0), vmreadn(VMCS_GUEST_CR3),
				vmreadn(VMCS_GUEST_CR4), vmread64(VMCS_GUEST_EFER)};
	bool user = (vmread32(VMCS_GUEST_SS_AR) >> 5 & 3) == 3;
	u32 error = 0, value = 0;
	u8 *byte;
	u64 gpa;

	if (!in) {
		for (u32 i = 0; i < size; i++) {
			if (gpt_access(&v->vm->mem, &regs, gla + i, user ? GPT_PF_USER : 0, &gpa,
				       &error))
				goto fault;
			byte = guest_ptr(&v->vm->mem, gpa, 1);
			value |= (u32)(byte ? *byte : 0xff) << 8 * i;
		}
		ioport_write(v, port, size, value);
		return true;
	}
	for (u32 i = 0; i < size; i++) {
		u32 access = GPT_PF_WRITE | (user ? GPT_PF_USER : 0);

		if (gpt_access(&v->vm->mem, &regs, gla + i, access, &gpa, &error))
			goto fault;
	}
	value = ioport_read(v, port, size);
	for (u32 i = 0; i < size; i++) {
		if (gpt_access(&v->vm->mem, &regs, gla + i, GPT_PF_WRITE, &gpa, &error))
			goto fault;
		byte = guest_ptr(&v->vm->mem, gpa, 1);
		if (byte)
			*byte = value >> 8 * i;
	}
	return true;
fault:
	write_cr2(gla);
	inject_exception_error(v, VEC_PF, error);
	return false;
}

static enum exit_action string_io(struct vcpu *v, u64 q)
{
	u32 size = QUAL_SIZE(q), index = q & QUAL_IN ? RDI : RSI;
	u64 step = vmreadn(VMCS_GUEST_RFLAGS) & RFLAGS_DF ? -(u64)size : size;
	u64 mask = address_mask(), gla = vmreadn(VMCS_GUEST_LINEAR_ADDR);

	for (u32 n = 0; n < STRING_BATCH; n++) {
		if ((q & QUAL_REP) && !(v->regs[RCX] & mask))
			return resume_after();
		if (!string_element(v, gla, QUAL_PORT(q), size, q & QUAL_IN))
			return EXIT_RESUME;
		gla += step;
		add_masked(&v->regs[index], step, mask);
		if (!(q & QUAL_REP))
			return resume_after();
		add_masked(&v->regs[RCX], -1ull, mask);
	}
	return EXIT_RESUME;
}

enum exit_action exit_io(struct vcpu *v)
{
	u64 q = vmreadn(VMCS_EXIT_QUALIFICATION);
	u32 size = QUAL_SIZE(q), value;

	if (unlikely(q & QUAL_STRING))
		return string_io(v, q);
	if (!(q & QUAL_IN)) {
		ioport_write(v, QUAL_PORT(q), size,
			     size == 4 ? v->regs[RAX] : v->regs[RAX] & ((1u << 8 * size) - 1));
		return resume_after();
	}
	value = ioport_read(v, QUAL_PORT(q), size);
	if (likely(size == 1))
		*(u8 *)&v->regs[RAX] = value;
	else if (size == 2)
		*(u16 *)&v->regs[RAX] = value;
	else
		v->regs[RAX] = value;
	return resume_after();
}
