/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoder for the instructions with which kernels touch device registers, and the data part of
 * carrying them out. The guest-physical address comes from the exit, so no effective address is
 * computed here. Opcodes as in SDM vol. 2. Pure.
 *
 *	err = insn_decode(&insn, bytes, n, mode);
 *	value = insn.flags & INSN_LOAD ? device read of insn.width bytes : 0;
 *	value = insn_execute(&insn, regs, &rflags, value);
 *	if (insn.flags & INSN_STORE) device write of insn.width bytes
 *	rip += insn.length, except where insn_string_step() says that the instruction repeats
 */
#ifndef VLAG_VMX_INSN_H
#define VLAG_VMX_INSN_H

#include "hv/lib/types.h"

#define INSN_MAX 15 /* bytes of the longest instruction */
#define INSN_BUF 32 /* bytes that insn_decode() may look at */

/* Default operand and address size of the code segment. */
enum insn_mode {
	INSN_MODE_16, /* real mode, or CS.L = 0, CS.D = 0 */
	INSN_MODE_32, /* CS.L = 0, CS.D = 1 */
	INSN_MODE_64, /* EFER.LMA and CS.L = 1 */
};

/* Add to Xor are in the order of the opcode map. */
enum insn_op {
	INSN_ADD,
	INSN_OR,
	INSN_ADC,
	INSN_SBB,
	INSN_AND,
	INSN_SUB,
	INSN_XOR,
	INSN_CMP,
	INSN_TEST,
	INSN_MOV, /* also MOVZX, MOVSX, MOVSXD, MOVNTI and the moffs forms */
	INSN_XCHG,
	INSN_STOS,
	INSN_MOVS, /* one side is the device, or both are: the owner finds out which */
};

enum {
	INSN_LOAD = 1 << 0,   /* reads memory */
	INSN_STORE = 1 << 1,  /* writes memory */
	INSN_TO_REG = 1 << 2, /* the result goes to the register operand (also) */
	INSN_IMM = 1 << 3,    /* the other operand is .imm, not a register */
	INSN_SIGN = 1 << 4,   /* what is loaded is sign-extended to reg_width */
	INSN_RFLAGS = 1 << 5, /* insn_execute() writes (ADC, SBB: and reads) the arithmetic flags */
	INSN_STRING = 1 << 6, /* STOS, MOVS */
	INSN_LOCK = 1 << 7,   /* LOCK prefix */
};

struct insn {
	union {
		struct {
			u8 length; /* bytes, 1..15 */
			u8 flags;  /* INSN_* */
			u8 op;	   /* enum insn_op */
			u8 width;  /* of the memory operand: 1, 2, 4 or 8 bytes */
			u8 reg; /* register operand, 0..15; 4 is RSP: the owner must provide it */
			u8 reg_shift; /* 8 for AH, CH, DH, BH (reg is then 0..3), else 0 */
			u8 reg_width; /* of the register operand; MOVZX, MOVSX: more than .width */
			u8 segment;   /* INSN_SEG_*; for MOVS of the source */
		};
		u64 word; /* all of these at once, the first in the low byte */
	};
	s64 imm;       /* sign-extended; only with INSN_IMM */
	u8 addr_width; /* 2, 4 or 8: string operations use that much of rSI, rDI and rCX */
	bool rep;      /* REP or REPNE; means something for string operations only */
};

/* The SDM's numbers. The destination of STOS and MOVS is always ES. */
enum {
	INSN_SEG_ES,
	INSN_SEG_CS,
	INSN_SEG_SS,
	INSN_SEG_DS,
	INSN_SEG_FS,
	INSN_SEG_GS,
	INSN_SEG_DEFAULT
};

/*
 * Decodes the instruction at @bytes, of which @n (1..15, more is cut) were fetched from the guest;
 * the buffer holds INSN_BUF readable bytes, whatever their value after the first @n. Returns 0;
 * E_TRUNC if the instruction does not end within @n bytes; E_UNSUPP if it is none of those
 * described above or has no memory operand.
 */
int insn_decode(struct insn *insn, const u8 *bytes, unsigned n, enum insn_mode mode);

/*
 * Does what @insn does with its data. @value is what was read from memory (low .width bytes count).
 * @regs: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15. *@rflags is touched only with
 * INSN_RFLAGS, otherwise it may be NULL. Returns what is to be written to memory, cut to .width.
 */
u64 insn_execute(const struct insn *insn, u64 *regs, u64 *rflags, u64 value);

/*
 * After one element of a string operation: advances rSI and rDI by the direction flag in @rflags,
 * and with REP counts rCX down. Returns true if the instruction is done (RIP moves on), false if it
 * goes on with the next element. The owner must not start one with REP and rCX == 0 (the
 * processor does not, so it cannot have exited for it).
 */
bool insn_string_step(const struct insn *insn, u64 *regs, u64 rflags);

#endif
