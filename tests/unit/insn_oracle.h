/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares insn_decode() with Capstone, for the unit test and the fuzzer: what we accept, Capstone
 * must understand in the same way, and every plain MOV to or from memory that Capstone knows, we
 * must accept. Where Capstone 4 is known to be wrong, it says so here with the reason.
 */
#ifndef VLAG_TESTS_INSN_ORACLE_H
#define VLAG_TESTS_INSN_ORACLE_H

#include <string.h>
#include <capstone/capstone.h>
#include <stdio.h>
#include <stdlib.h>

#include "hv/lib/errors.h"
#include "hv/vmx/insn.h"

struct oracle_reg {
	int reg, width, shift;
};

static const char *const oracle_names[16][5] = {
    {"rax", "eax", "ax", "al", "ah"},	  {"rcx", "ecx", "cx", "cl", "ch"},
    {"rdx", "edx", "dx", "dl", "dh"},	  {"rbx", "ebx", "bx", "bl", "bh"},
    {"rsp", "esp", "sp", "spl", "-"},	  {"rbp", "ebp", "bp", "bpl", "-"},
    {"rsi", "esi", "si", "sil", "-"},	  {"rdi", "edi", "di", "dil", "-"},
    {"r8", "r8d", "r8w", "r8b", "-"},	  {"r9", "r9d", "r9w", "r9b", "-"},
    {"r10", "r10d", "r10w", "r10b", "-"}, {"r11", "r11d", "r11w", "r11b", "-"},
    {"r12", "r12d", "r12w", "r12b", "-"}, {"r13", "r13d", "r13w", "r13b", "-"},
    {"r14", "r14d", "r14w", "r14b", "-"}, {"r15", "r15d", "r15w", "r15b", "-"},
};

static csh oracle_handle(enum insn_mode mode)
{
	static const cs_mode modes[] = {CS_MODE_16, CS_MODE_32, CS_MODE_64};
	static csh handles[3];

	if (!handles[mode]) {
		if (cs_open(CS_ARCH_X86, modes[mode], &handles[mode]) != CS_ERR_OK)
			abort();
		cs_option(handles[mode], CS_OPT_DETAIL, CS_OPT_ON);
	}
	return handles[mode];
}

/* Number, width and shift of a general register; false for segment, control and other registers. */
static bool oracle_general_reg(csh handle, x86_reg id, struct oracle_reg *out)
{
	static const int widths[] = {8, 4, 2, 1, 1};
	const char *name = cs_reg_name(handle, id);

	for (int reg = 0; name && reg < 16; reg++) {
		for (int form = 0; form < 5; form++) {
			if (strcmp(name, oracle_names[reg][form]) == 0) {
				*out = (struct oracle_reg){reg, widths[form], form == 4 ? 8 : 0};
				return true;
			}
		}
	}
	return false;
}

/* enum insn_op of a Capstone instruction, -1 for all that we do not handle. */
static int oracle_op(const cs_insn *ci)
{
	switch (ci->id) {
	case X86_INS_ADD:
		return INSN_ADD;
	case X86_INS_OR:
		return INSN_OR;
	case X86_INS_ADC:
		return INSN_ADC;
	case X86_INS_SBB:
		return INSN_SBB;
	case X86_INS_AND:
		return INSN_AND;
	case X86_INS_SUB:
		return INSN_SUB;
	case X86_INS_XOR:
		return INSN_XOR;
	case X86_INS_CMP:
		return INSN_CMP;
	case X86_INS_TEST:
		return INSN_TEST;
	case X86_INS_XCHG:
		return INSN_XCHG;
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
	case X86_INS_MOVNTI:
		return INSN_MOV;
	case X86_INS_STOSB:
	case X86_INS_STOSW:
	case X86_INS_STOSD:
	case X86_INS_STOSQ:
		return INSN_STOS;
	case X86_INS_MOVSB:
	case X86_INS_MOVSW:
	case X86_INS_MOVSQ:
		return INSN_MOVS;
	case X86_INS_MOVSD: /* also an SSE instruction */
		return ci->detail->x86.opcode[0] == 0xA5 ? INSN_MOVS : -1;
	default:
		return -1;
	}
}

/* The prefixes of an instruction, which Capstone tells of incompletely: it keeps one of F0, F2, F3.
 */
struct oracle_prefixes {
	bool operand_size, lock, rep;
	unsigned nr_segments;
};

static struct oracle_prefixes oracle_prefixes(const u8 *bytes, unsigned n, enum insn_mode mode)
{
	struct oracle_prefixes pre = {0};

	for (unsigned i = 0; i < n; i++) {
		u8 b = bytes[i];

		if (b == 0x66)
			pre.operand_size = true;
		else if (b == 0xf0)
			pre.lock = true;
		else if (b == 0xf2 || b == 0xf3)
			pre.rep = true;
		else if ((b & 0xe7) == 0x26 || b == 0x64 || b == 0x65)
			pre.nr_segments++;
		else if (b != 0x67 && !(mode == INSN_MODE_64 && (b & 0xf0) == 0x40))
			break;
	}
	return pre;
}

/* NULL, or how Capstone's view of an instruction that we accepted differs from ours. */
static const char *oracle_differs(csh handle, const cs_insn *ci, const struct insn *insn,
				  enum insn_mode mode, struct oracle_prefixes pre)
{
	const cs_x86 *x = &ci->detail->x86;
	int op = oracle_op(ci), nr_mem = 0;
	/* It takes 66 for a mandatory prefix when F2 or F3 is there too, and shows 63 always as
	 * MOVSXD r64,m32, which it is only with REX.W (SDM vol. 2). */
	bool width_wrong =
	    (pre.operand_size && pre.rep) || (ci->id == X86_INS_MOVSXD && insn->reg_width != 8);

	if (ci->size != insn->length)
		return "length";
	if (op != insn->op)
		return "operation";
	if (x->addr_size != insn->addr_width)
		return "address size";
	if (op == INSN_MOV &&
	    (ci->id == X86_INS_MOVSX || ci->id == X86_INS_MOVSXD) != !!(insn->flags & INSN_SIGN))
		return "sign extension";
	for (int i = 0; i < x->op_count; i++) {
		const cs_x86_op *o = &x->operands[i];
		struct oracle_reg reg;

		switch (o->type) {
		case X86_OP_MEM:
			nr_mem++;
			if (o->size != insn->width && !width_wrong)
				return "memory width";
			if (op == INSN_MOV || (op < INSN_MOV && op != INSN_TEST))
				if ((i != 0) != !!(insn->flags & INSN_TO_REG))
					return "direction";
			if (op == INSN_STOS || op == INSN_MOVS)
				break;
			if (mode == INSN_MODE_64 && insn->segment < INSN_SEG_FS)
				return "segment override that does not count in 64-bit mode";
			/* It lets the last of several win, even one that does not count. */
			if (mode == INSN_MODE_64 && pre.nr_segments > 1)
				break;
			if ((o->mem.segment == X86_REG_FS) != (insn->segment == INSN_SEG_FS) ||
			    (o->mem.segment == X86_REG_GS) != (insn->segment == INSN_SEG_GS))
				return "segment";
			if (mode != INSN_MODE_64 &&
			    ((o->mem.segment == X86_REG_ES) != (insn->segment == INSN_SEG_ES) ||
			     (o->mem.segment == X86_REG_CS) != (insn->segment == INSN_SEG_CS) ||
			     (o->mem.segment == X86_REG_SS) != (insn->segment == INSN_SEG_SS) ||
			     (o->mem.segment == X86_REG_DS) != (insn->segment == INSN_SEG_DS)))
				return "segment";
			break;
		case X86_OP_REG:
			if (!oracle_general_reg(handle, o->reg, &reg))
				return "not a general register";
			if (reg.reg != insn->reg || reg.shift != insn->reg_shift)
				return "register";
			if (reg.width != insn->reg_width && !width_wrong)
				return "register width";
			if (insn->flags & INSN_IMM)
				return "immediate instead of register";
			break;
		case X86_OP_IMM:
			if (!(insn->flags & INSN_IMM))
				return "register instead of immediate";
			if ((((u64)o->imm ^ (u64)insn->imm) & ~0ull >> (64 - 8 * insn->width)) != 0)
				return "immediate";
			break;
		default:
			return "operand type";
		}
	}
	if (nr_mem != (op == INSN_MOVS ? 2 : 1))
		return "number of memory operands";
	if (!!(insn->flags & INSN_LOCK) != pre.lock)
		return "LOCK";
	if (insn->flags & INSN_STRING && insn->rep != pre.rep)
		return "REP";
	return NULL;
}

/* Whether it is a MOV between memory and a general register or an immediate. */
static bool oracle_must_accept(csh handle, const cs_insn *ci, struct oracle_prefixes pre)
{
	const cs_x86 *x = &ci->detail->x86;
	int op = oracle_op(ci);
	bool mem = op == INSN_STOS || op == INSN_MOVS;
	struct oracle_reg reg;

	if (op < INSN_MOV)
		return false;
	if (pre.lock && op != INSN_XCHG)
		return false; /* raises #UD, which Capstone overlooks beside F2 and F3 */
	if (ci->id == X86_INS_MOVNTI && (pre.operand_size || pre.rep))
		return false; /* so does this ("NP" in SDM vol. 2) */
	for (int i = 0; i < x->op_count; i++) {
		if (x->operands[i].type == X86_OP_MEM)
			mem = true;
		if (x->operands[i].type == X86_OP_REG &&
		    !oracle_general_reg(handle, x->operands[i].reg, &reg))
			return false;
	}
	return mem;
}

static void oracle_print(const u8 *bytes, unsigned n, enum insn_mode mode, const char *what,
			 const cs_insn *ci)
{
	fprintf(stderr, "mode %d:", mode == INSN_MODE_16 ? 16 : mode == INSN_MODE_32 ? 32 : 64);
	for (unsigned i = 0; i < n; i++)
		fprintf(stderr, " %02x", bytes[i]);
	fprintf(stderr, ": %s; Capstone: %s %s (%d bytes)\n", what, ci ? ci->mnemonic : "-",
		ci ? ci->op_str : "", ci ? ci->size : 0);
}

/* Decodes @n bytes both ways; false, after saying why on stderr, if the two disagree. */
static bool insn_oracle_agrees(const u8 *bytes, unsigned n, enum insn_mode mode)
{
	u8 buf[INSN_BUF];
	struct insn insn;
	csh handle = oracle_handle(mode);
	cs_insn *ci = NULL;
	const char *what = NULL;
	struct oracle_prefixes pre = oracle_prefixes(bytes, n, mode);
	int err;

	memset(buf, 0xcc, sizeof(buf));
	memcpy(buf, bytes, n);
	memset(&insn, 0xcc, sizeof(insn));
	err = insn_decode(&insn, buf, n, mode);
	size_t count = cs_disasm(handle, bytes, n, 0, 1, &ci);

	if (err == 0 && !count && pre.operand_size && pre.rep)
		; /* takes 66 for a mandatory prefix */
	else if (err == 0 && !count)
		what = "accepted, but Capstone does not know it";
	else if (err == 0)
		what = oracle_differs(handle, ci, &insn, mode, pre);
	else if (err != E_TRUNC && err != E_UNSUPP)
		what = "unknown error code";
	else if (count && err == E_TRUNC)
		what = "said to be cut off, but Capstone decodes it";
	else if (count && oracle_must_accept(handle, ci, pre))
		what = "not accepted";
	if (what)
		oracle_print(bytes, n, mode, what, count ? ci : NULL);
	if (count)
		cs_free(ci, count);
	return !what;
}

#endif
