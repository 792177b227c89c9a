/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MMIO instruction decoder: one table of opcodes, one pass over the bytes. What an opcode's
 * entry says goes straight into struct insn, so that the forms compilers emit for readl() and
 * writel() cost a few dozen instructions. No guest state but the bytes is looked at here.
 */
#include "hv/vmx/insn.h"

#include "hv/lib/errors.h"

/*
 * An opcode: bits 0-7 INSN_* flags, 8-15 enum insn_op (as in struct insn), from 16 on how to
 * decode it. 0 is an opcode
 * that we do not know; all known ones have flags.
 */
enum {
	/* What insn_decode() itself can do, lowest. */
	A_LOCKABLE = 1 << 16, /* takes LOCK */
	A_GROUP11 = 1 << 17,  /* ModRM.reg must be 0 */
	A_IMMZ = 1 << 18,     /* 2 or 4 bytes by operand size, sign-extended */
	A_UNUSUAL = 1 << 19,  /* from here on */
	A_PREFIX = 1 << 19,   /* prefix, REX or 0F: flags and op mean nothing */
	A_BYTE = 1 << 20,     /* operand size is one byte */
	A_IMM8 = 1 << 21,     /* one byte, sign-extended */
	A_NO_MODRM = 1 << 22,
	A_MOFFS = 1 << 23,     /* the address is in the instruction, the register is rAX */
	A_GROUP1 = 1 << 24,    /* ModRM.reg says ADD to CMP */
	A_GROUP3 = 1 << 25,    /* ModRM.reg 0 and 1 are TEST with an immediate */
	A_WIDEN = 1 << 26,     /* memory operand smaller than the register */
	A_ONLY_64 = 1 << 27,   /* MOVSXD: in 64-bit mode only */
	A_NO_PREFIX = 1 << 28, /* 66, F2 and F3 make another instruction of it */
	A_IMM = A_IMM8 | A_IMMZ,
	A_GROUP = A_GROUP1 | A_GROUP3 | A_GROUP11,
};

#define OP(op, flags) ((INSN_##op) << 8 | (flags))
#define RMW (INSN_LOAD | INSN_STORE | INSN_RFLAGS | A_LOCKABLE)
#define LOAD_OP (INSN_LOAD | INSN_TO_REG | INSN_RFLAGS)

/* mem,reg8; mem,reg; reg8,mem; reg,mem of one row of the first quarter of the opcode map */
#define ALU(base, op)                                                                              \
	[(base)] = OP(op, RMW | A_BYTE), [(base) + 1] = OP(op, RMW),                               \
	[(base) + 2] = OP(op, LOAD_OP | A_BYTE), [(base) + 3] = OP(op, LOAD_OP)
#define PREFIX(n) [n] = A_PREFIX
#define PREFIX4(n) PREFIX(n), PREFIX((n) + 1), PREFIX((n) + 2), PREFIX((n) + 3)

static const u32 opcodes[256] = {
    ALU(0x00, ADD),
    ALU(0x08, OR),
    ALU(0x10, ADC),
    ALU(0x18, SBB),
    ALU(0x20, AND),
    ALU(0x28, SUB),
    ALU(0x30, XOR),
    [0x38] = OP(CMP, INSN_LOAD | INSN_RFLAGS | A_BYTE),
    [0x39] = OP(CMP, INSN_LOAD | INSN_RFLAGS),
    /* CMP reg,mem: which one is subtracted is the difference to the two above */
    [0x3A] = OP(CMP, LOAD_OP | A_BYTE),
    [0x3B] = OP(CMP, LOAD_OP),
    [0x63] = OP(MOV, INSN_LOAD | INSN_TO_REG | INSN_SIGN | A_WIDEN | A_ONLY_64),
    [0x80] = OP(ADD, RMW | INSN_IMM | A_BYTE | A_IMM8 | A_GROUP1),
    [0x81] = OP(ADD, RMW | INSN_IMM | A_IMMZ | A_GROUP1),
    [0x83] = OP(ADD, RMW | INSN_IMM | A_IMM8 | A_GROUP1),
    [0x84] = OP(TEST, INSN_LOAD | INSN_RFLAGS | A_BYTE),
    [0x85] = OP(TEST, INSN_LOAD | INSN_RFLAGS),
    [0x86] = OP(XCHG, INSN_LOAD | INSN_STORE | INSN_TO_REG | A_BYTE | A_LOCKABLE),
    [0x87] = OP(XCHG, INSN_LOAD | INSN_STORE | INSN_TO_REG | A_LOCKABLE),
    [0x88] = OP(MOV, INSN_STORE | A_BYTE),
    [0x89] = OP(MOV, INSN_STORE),
    [0x8A] = OP(MOV, INSN_LOAD | INSN_TO_REG | A_BYTE),
    [0x8B] = OP(MOV, INSN_LOAD | INSN_TO_REG),
    [0xA0] = OP(MOV, INSN_LOAD | INSN_TO_REG | A_BYTE | A_NO_MODRM | A_MOFFS),
    [0xA1] = OP(MOV, INSN_LOAD | INSN_TO_REG | A_NO_MODRM | A_MOFFS),
    [0xA2] = OP(MOV, INSN_STORE | A_BYTE | A_NO_MODRM | A_MOFFS),
    [0xA3] = OP(MOV, INSN_STORE | A_NO_MODRM | A_MOFFS),
    [0xA4] = OP(MOVS, INSN_LOAD | INSN_STORE | INSN_STRING | A_BYTE | A_NO_MODRM),
    [0xA5] = OP(MOVS, INSN_LOAD | INSN_STORE | INSN_STRING | A_NO_MODRM),
    [0xAA] = OP(STOS, INSN_STORE | INSN_STRING | A_BYTE | A_NO_MODRM),
    [0xAB] = OP(STOS, INSN_STORE | INSN_STRING | A_NO_MODRM),
    [0xC6] = OP(MOV, INSN_STORE | INSN_IMM | A_BYTE | A_IMM8 | A_GROUP11),
    [0xC7] = OP(MOV, INSN_STORE | INSN_IMM | A_IMMZ | A_GROUP11),
    [0xF6] = OP(TEST, INSN_LOAD | INSN_IMM | INSN_RFLAGS | A_BYTE | A_IMM8 | A_GROUP3),
    [0xF7] = OP(TEST, INSN_LOAD | INSN_IMM | INSN_RFLAGS | A_IMMZ | A_GROUP3),

    PREFIX(0x0F),
    PREFIX(0x26),
    PREFIX(0x2E),
    PREFIX(0x36),
    PREFIX(0x3E),
    PREFIX4(0x40),
    PREFIX4(0x44),
    PREFIX4(0x48),
    PREFIX4(0x4C),
    PREFIX4(0x64),
    PREFIX(0xF0),
    PREFIX(0xF2),
    PREFIX(0xF3),
};

/* The two-byte opcodes, after 0F. */
static u32 opcode_0f(u8 byte)
{
	switch (byte) {
	case 0xB6: /* MOVZX */
		return OP(MOV, INSN_LOAD | INSN_TO_REG | A_BYTE | A_WIDEN);
	case 0xB7:
		return OP(MOV, INSN_LOAD | INSN_TO_REG | A_WIDEN);
	case 0xBE: /* MOVSX */
		return OP(MOV, INSN_LOAD | INSN_TO_REG | INSN_SIGN | A_BYTE | A_WIDEN);
	case 0xBF:
		return OP(MOV, INSN_LOAD | INSN_TO_REG | INSN_SIGN | A_WIDEN);
	case 0xC3: /* MOVNTI */
		return OP(MOV, INSN_STORE | A_NO_PREFIX);
	default:
		return 0;
	}
}

/* What the legacy prefixes said; the segment from bit P_SEGMENT on. */
enum { P_OPERAND_SIZE = 1, P_ADDRESS_SIZE = 2, P_LOCK = 4, P_REP = 8, P_SEGMENT = 4 };

/* @pre after one more prefix. */
static unsigned add_prefix(unsigned pre, u8 byte, enum insn_mode mode)
{
	const unsigned others = (1u << P_SEGMENT) - 1;

	switch (byte) {
	case 0x26:
	case 0x2E:
	case 0x36:
	case 0x3E:
		if (mode == INSN_MODE_64)
			return pre;
		return (pre & others) | (byte >> 3 & 3u) << P_SEGMENT;
	case 0x64:
	case 0x65:
		return (pre & others) | (byte - 0x64u + INSN_SEG_FS) << P_SEGMENT;
	case 0x66:
		return pre | P_OPERAND_SIZE;
	case 0x67:
		return pre | P_ADDRESS_SIZE;
	case 0xF0:
		return pre | P_LOCK;
	default: /* F2 and F3 do the same to MOVS and STOS */
		return pre | P_REP;
	}
}

/*
 * Bytes of SIB and displacement after a ModRM byte with 32- or 64-bit addressing. With mod 0 a SIB
 * byte may have a displacement of its own: MAYBE_5 is 1, or 5 if the SIB byte's base is 5.
 */
#define MAYBE_5 0x80
#define ROWS(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__
static const u8 modrm_bytes[0xC0] = {
    ROWS(0, 0, 0, 0, MAYBE_5, 4, 0, 0, 0, 0, 0, 0, MAYBE_5, 4, 0, 0),
    ROWS(1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1),
    ROWS(4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 5, 4, 4, 4),
};
#undef ROWS

/* The same; @modrm, the ModRM byte, is below 0xC0. */
static inline unsigned address_bytes(const u8 *modrm)
{
	unsigned n = modrm_bytes[modrm[0]];

	if (n == MAYBE_5)
		n = (modrm[1] & 7) == 5 ? 5 : 1;
	return n;
}

/* The same with 16-bit addressing. */
static unsigned address_bytes_16(u8 modrm)
{
	unsigned mod = modrm >> 6;

	return mod ? mod : (modrm & 7) == 6 ? 2 : 0;
}

/* Adjusts @attr of a group by ModRM.reg; 0 if it is not one of ours. */
static u32 resolve_group(u32 attr, u8 modrm)
{
	u32 sub = modrm >> 3 & 7;

	if (attr & A_GROUP1) {
		attr += sub << 8;
		return sub == INSN_CMP ? attr & ~(u32)(INSN_STORE | A_LOCKABLE) : attr;
	}
	if (attr & A_GROUP3)
		return sub <= 1 ? attr : 0;
	return sub == 0 ? attr : 0;
}

/* Whether the prefixes and the mode are right for the opcode. */
static inline bool valid(u32 attr, unsigned pre, enum insn_mode mode)
{
	if (unlikely(attr & A_ONLY_64) && mode != INSN_MODE_64)
		return false; /* ARPL */
	if (unlikely(attr & A_NO_PREFIX) && pre & (P_OPERAND_SIZE | P_REP))
		return false;
	return likely(!(pre & P_LOCK)) || attr & A_LOCKABLE;
}

static s64 immediate(const u8 *p, unsigned size)
{
	switch (size) {
	case 1:
		return (s8)p[0];
	case 2:
		return (s16)(p[0] | p[1] << 8);
	default:
		return (s32)(p[0] | p[1] << 8 | p[2] << 16 | (u32)p[3] << 24);
	}
}

static int __attribute__((noinline))
decode_any(struct insn *insn, const u8 *bytes, unsigned n, enum insn_mode mode)
{
	unsigned pre = INSN_SEG_DEFAULT << P_SEGMENT, rex = 0, reg = 0;
	unsigned operand_width, width, addr_width;
	const u8 *p = bytes;
	u32 attr;

	while ((attr = opcodes[*p++]) & A_PREFIX) {
		u8 byte = p[-1];

		if (byte == 0x0F) {
			attr = opcode_0f(*p++);
			break;
		}
		if (p - bytes >= INSN_MAX)
			goto fail;
		rex = 0; /* counts only just before the opcode */
		if ((byte & 0xF0) != 0x40)
			pre = add_prefix(pre, byte, mode);
		else if (likely(mode == INSN_MODE_64))
			rex = byte;
		else
			goto fail; /* INC, DEC */
	}
	if (unlikely(!attr))
		goto fail;
	operand_width = (mode == INSN_MODE_16) == !(pre & P_OPERAND_SIZE) ? 2 : 4;
	if (unlikely(attr & A_NO_PREFIX))
		operand_width = 4; /* in every mode */
	if (rex & 8)
		operand_width = 8;
	addr_width = 2u << mode;
	if (unlikely(pre & P_ADDRESS_SIZE))
		addr_width = mode == INSN_MODE_32 ? 2 : 4;
	width = attr & A_BYTE ? 1 : operand_width;

	if (likely(!(attr & A_NO_MODRM))) {
		u8 modrm = *p++;

		if (unlikely(modrm >= 0xC0)) /* no memory operand */
			goto fail;
		if (attr & A_GROUP) {
			attr = resolve_group(attr, modrm);
			if (!attr)
				goto fail;
		}
		p += addr_width == 2 ? address_bytes_16(modrm) : address_bytes(p - 1);
		reg = (modrm >> 3 & 7) | (rex & 4) << 1;
	} else if (attr & A_MOFFS) {
		p += addr_width;
	}

	insn->reg_shift = 0;
	insn->reg_width = width;
	if (unlikely(attr & A_WIDEN)) {
		insn->reg_width = operand_width;
		if (!(attr & A_BYTE))
			width = attr & A_ONLY_64 ? min(operand_width, 4u) : 2;
	} else if (width == 1 && reg >= 4 && !rex) {
		insn->reg_shift = 8; /* AH, CH, DH, BH */
		reg -= 4;
	}
	if (attr & A_IMM) {
		unsigned size = attr & A_IMM8 ? 1 : min(operand_width, 4u);

		insn->imm = immediate(p, size);
		p += size;
	}
	if (unlikely(!valid(attr, pre, mode) || (unsigned)(p - bytes) > min(n, INSN_MAX + 0u)))
		goto fail;
	insn->length = p - bytes;
	insn->op = attr >> 8;
	insn->flags = attr;
	insn->width = width;
	insn->reg = reg;
	insn->segment = pre >> P_SEGMENT;
	insn->addr_width = addr_width;
	insn->rep = pre & P_REP;
	if (pre & P_LOCK)
		insn->flags |= INSN_LOCK;
	return 0;
fail:
	return (unsigned)(p - bytes) > n && n < INSN_MAX ? E_TRUNC : E_UNSUPP;
}

/*
 * The usual case: a 64-bit kernel's 32- or 64-bit move or operation, with no prefix but REX. It
 * costs a third of what the general decoder costs, which gets everything else.
 */
int insn_decode(struct insn *insn, const u8 *bytes, unsigned n, enum insn_mode mode)
{
	/* .width and .reg_width of 4; .segment */
	u64 word = 4ull << 24 | 4ull << 48 | (u64)INSN_SEG_DEFAULT << 56;
	const u8 *p = bytes;
	u64 modrm;
	u32 attr;

	if (unlikely(mode != INSN_MODE_64))
		return decode_any(insn, bytes, n, mode);
	if ((*p & 0xF0) == 0x40) {
		u8 rex = *p++;

		word |= (u64)(rex & 4) << 33;
		if (rex & 8)
			word += 4ull << 24 | 4ull << 48;
	}
	attr = opcodes[*p++];
	modrm = *p;
	if (unlikely(attr - 1 >= A_UNUSUAL - 1 || modrm >= 0xC0)) /* 0 is unknown */
		goto any;
	p += 1 + address_bytes(p);
	if (attr & A_IMMZ) { /* C7 /0 */
		if (unlikely(modrm & 0x38))
			goto any;
		insn->imm = immediate(p, 4);
		p += 4;
	}
	if (unlikely(p - bytes > n))
		goto any;
	insn->word = word | (modrm & 0x38) << 29 | (attr & 0xFFFF) << 8 | (p - bytes);
	insn->addr_width = 8;
	insn->rep = false;
	return 0;
any:
	return decode_any(insn, bytes, n, INSN_MODE_64);
}

/* The low @width bytes of @value. */
static inline u64 cut(u64 value, unsigned width)
{
	return value & ~0ull >> (64 - 8 * width);
}

static inline u64 sign_extend(u64 value, unsigned width)
{
	unsigned shift = 64 - 8 * width;

	return (u64)((s64)(value << shift) >> shift);
}

/* Writes a register as the processor does: 4 bytes clear the upper half, 1 and 2 keep the rest. */
static inline void set_reg(u64 *reg, unsigned shift, unsigned width, u64 value)
{
	u64 mask = ~0ull >> (64 - 8 * width) << shift;

	if (likely(width >= 4))
		*reg = value & mask;
	else
		*reg = (*reg & ~mask) | (value << shift & mask);
}

enum {
	FLAG_CF = 1 << 0,
	FLAG_PF = 1 << 2,
	FLAG_AF = 1 << 4,
	FLAG_ZF = 1 << 6,
	FLAG_SF = 1 << 7,
	FLAG_DF = 1 << 10,
	FLAG_OF = 1 << 11,
	FLAGS_ARITHMETIC = FLAG_CF | FLAG_PF | FLAG_AF | FLAG_ZF | FLAG_SF | FLAG_OF,
};

/* @a op @b with the arithmetic flags; AF, undefined after logical operations, becomes 0. */
static u64 compute(unsigned op, u64 a, u64 b, unsigned width, u64 *rflags)
{
	u64 carry_in = *rflags & FLAG_CF, result, carries = 0, overflow = 0, flags;
	unsigned top = 8 * width - 1;

	switch (op) {
	case INSN_ADD:
	case INSN_ADC:
		result = a + b + (op == INSN_ADC ? carry_in : 0);
		carries = (a & b) | ((a | b) & ~result);
		overflow = (a ^ result) & (b ^ result);
		break;
	case INSN_SUB:
	case INSN_CMP:
	case INSN_SBB:
		result = a - b - (op == INSN_SBB ? carry_in : 0);
		carries = (~a & b) | ((~a | b) & result);
		overflow = (a ^ b) & (a ^ result);
		break;
	case INSN_OR:
		result = a | b;
		break;
	case INSN_XOR:
		result = a ^ b;
		break;
	default: /* AND, TEST */
		result = a & b;
	}
	flags = (carries >> top & 1 ? FLAG_CF : 0) | (carries >> 3 & 1 ? FLAG_AF : 0) |
		(overflow >> top & 1 ? FLAG_OF : 0) | (result >> top & 1 ? FLAG_SF : 0) |
		(cut(result, width) ? 0 : FLAG_ZF) | (__builtin_parity((u8)result) ? 0 : FLAG_PF);
	*rflags = (*rflags & ~(u64)FLAGS_ARITHMETIC) | flags;
	return result;
}

/* MOV of any width, with extension. */
static u64 __attribute__((noinline)) execute_mov(const struct insn *insn, u64 *regs, u64 value)
{
	if (insn->flags & INSN_STORE) {
		value =
		    insn->flags & INSN_IMM ? (u64)insn->imm : regs[insn->reg] >> insn->reg_shift;
		return cut(value, insn->width);
	}
	value = insn->flags & INSN_SIGN ? sign_extend(value, insn->width) : cut(value, insn->width);
	set_reg(&regs[insn->reg], insn->reg_shift, insn->reg_width, value);
	return 0;
}

/* Everything but MOV. */
static u64 __attribute__((noinline))
execute_other(const struct insn *insn, u64 *regs, u64 *rflags, u64 value)
{
	unsigned width = insn->width;
	u64 *reg = &regs[insn->reg];
	u64 operand = insn->flags & INSN_IMM ? (u64)insn->imm : *reg >> insn->reg_shift;

	switch (insn->op) {
	case INSN_XCHG:
		set_reg(reg, insn->reg_shift, width, value);
		return cut(operand, width);
	case INSN_STOS: /* .reg is rAX */
		return cut(operand, width);
	case INSN_MOVS:
		return cut(value, width);
	}
	if (!(insn->flags & INSN_TO_REG))
		return cut(compute(insn->op, value, operand, width, rflags), width);
	value = compute(insn->op, operand, value, width, rflags);
	if (insn->op != INSN_CMP)
		set_reg(reg, insn->reg_shift, width, value);
	return 0;
}

u64 insn_execute(const struct insn *insn, u64 *regs, u64 *rflags, u64 value)
{
	if (unlikely(insn->op != INSN_MOV))
		return execute_other(insn, regs, rflags, value);
	if (unlikely(insn->width != 4 || insn->reg_width != 4))
		return execute_mov(insn, regs, value);
	if (!(insn->flags & INSN_STORE))
		regs[insn->reg] = (u32)value;
	else if (insn->flags & INSN_IMM)
		value = insn->imm;
	else
		value = regs[insn->reg];
	return (u32)value;
}

bool insn_string_step(const struct insn *insn, u64 *regs, u64 rflags)
{
	enum { RCX = 1, RSI = 6, RDI = 7 };
	unsigned width = insn->addr_width;
	u64 step = rflags & FLAG_DF ? -(u64)insn->width : insn->width;

	if (insn->op == INSN_MOVS)
		set_reg(&regs[RSI], 0, width, regs[RSI] + step);
	set_reg(&regs[RDI], 0, width, regs[RDI] + step);
	if (!insn->rep)
		return true;
	set_reg(&regs[RCX], 0, width, regs[RCX] - 1);
	return cut(regs[RCX], width) == 0;
}
