/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MMIO instruction decoder: a sweep of all opcodes against Capstone, the forms that compilers
 * emit by hand, and the data part against the processor that runs the test.
 */
// sources: hv/vmx/insn.c
// libs: -lcapstone
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/insn_oracle.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

static struct insn insn;
static u64 regs[16], rflags;

static int setup(void **state)
{
	memset(&insn, 0xcc, sizeof(insn));
	for (u64 i = 0; i < 16; i++)
		regs[i] = 0x1122334455667700 + 0x0101010101010101 * i;
	rflags = 0x202;
	return 0;
}

static int decode(enum insn_mode mode, unsigned n, const u8 *bytes)
{
	u8 buf[INSN_BUF];

	memset(buf, 0x90, sizeof(buf));
	memcpy(buf, bytes, n);
	return insn_decode(&insn, buf, n, mode);
}

#define DECODE(bits, ...) decode(INSN_MODE_##bits, sizeof((u8[]){__VA_ARGS__}), (u8[]){__VA_ARGS__})

/* Every opcode with every ModRM byte, and prefixes alone and in pairs. */
static void test_agrees_with_capstone_on_all_opcodes(void **state)
{
	/* count, prefixes */
	static const u8 prefixes[][4] = {
	    {0},
	    {1, 0x66},
	    {1, 0x67},
	    {1, 0xf0},
	    {1, 0xf3},
	    {1, 0x26},
	    {1, 0x64},
	    {1, 0x40},
	    {1, 0x44},
	    {1, 0x48},
	    {1, 0x4f},
	    {2, 0x66, 0x67},
	    {2, 0x66, 0x48},
	    {2, 0x48, 0x66},
	    {2, 0x48, 0x41},
	    {2, 0xf0, 0x48},
	    {2, 0xf3, 0x48},
	    {3, 0x65, 0x66, 0x44},
	};
	static const u8 sibs[] = {0x24, 0x25, 0xe5};
	u8 bytes[INSN_MAX];
	unsigned bad = 0;

	for (unsigned mode = 0; mode < 3; mode++) {
		for (unsigned p = 0; p < ARRAY_SIZE(prefixes); p++) {
			for (unsigned op = 0; op < 512; op++) {
				for (unsigned modrm = 0; modrm < 256; modrm++) {
					unsigned n = prefixes[p][0];

					if (!(0x71 >> (modrm & 7) & 1))
						continue; /* rm 1, 2, 3, 7 are like 0 */
					memset(bytes, 0x81, sizeof(bytes));
					memcpy(bytes, &prefixes[p][1], n);
					if (op > 0xff)
						bytes[n++] = 0x0f;
					bytes[n++] = (u8)op;
					bytes[n++] = (u8)modrm;
					bytes[n++] = sibs[(modrm ^ op) % 3];
					bad += !insn_oracle_agrees(bytes, sizeof(bytes), mode);
				}
			}
		}
	}
	assert_int_equal(bad, 0);
}

/* mov [rbx+0xb0],eax: the EOI of a kernel. */
static void test_store_of_a_register(void **state)
{
	assert_int_equal(DECODE(64, 0x89, 0x83, 0xb0, 0, 0, 0), 0);
	assert_int_equal(insn.length, 6);
	assert_int_equal(insn.op, INSN_MOV);
	assert_int_equal(insn.flags, INSN_STORE);
	assert_int_equal(insn.width, 4);
	assert_int_equal(insn.reg, RAX);
	regs[RAX] = 0xfeedfacecafebeef;
	assert_true(insn_execute(&insn, regs, NULL, 0) == 0xcafebeef);
	assert_true(regs[RAX] == 0xfeedfacecafebeef);
}

static void test_load_of_32_bits_clears_the_upper_half(void **state)
{
	assert_int_equal(DECODE(64, 0x44, 0x8b, 0x3c, 0x25, 0x20, 0, 0xe0, 0xfe), 0);
	assert_int_equal(insn.length, 8);
	assert_int_equal(insn.flags, INSN_LOAD | INSN_TO_REG);
	assert_int_equal(insn.reg, 15);
	insn_execute(&insn, regs, NULL, 0xffffffff89abcdef);
	assert_true(regs[15] == 0x89abcdef);
}

static void test_narrow_loads_keep_the_rest(void **state)
{
	assert_int_equal(DECODE(64, 0x66, 0x8b, 0x08), 0);
	regs[RCX] = 0x1111111111111111;
	insn_execute(&insn, regs, NULL, 0xffff2222);
	assert_true(regs[RCX] == 0x1111111111112222);
	assert_int_equal(DECODE(64, 0x8a, 0x28), 0); /* ch */
	assert_int_equal(insn.reg, RCX);
	assert_int_equal(insn.reg_shift, 8);
	insn_execute(&insn, regs, NULL, 0x44);
	assert_true(regs[RCX] == 0x1111111111114422);
	assert_int_equal(DECODE(64, 0x40, 0x8a, 0x28), 0); /* bpl */
	assert_int_equal(insn.reg, RBP);
	assert_int_equal(insn.reg_shift, 0);
	assert_int_equal(DECODE(64, 0x88, 0x20), 0); /* ah */
	regs[RAX] = 0xabcd;
	assert_true(insn_execute(&insn, regs, NULL, 0) == 0xab);
}

static void test_extensions(void **state)
{
	assert_int_equal(DECODE(64, 0x0f, 0xb6, 0x00), 0); /* movzx eax, byte */
	assert_int_equal(insn.width, 1);
	insn_execute(&insn, regs, NULL, 0xfff0);
	assert_true(regs[RAX] == 0xf0);
	assert_int_equal(DECODE(64, 0x0f, 0xbe, 0x00), 0); /* movsx eax, byte */
	insn_execute(&insn, regs, NULL, 0xf0);
	assert_true(regs[RAX] == 0xfffffff0);
	assert_int_equal(DECODE(64, 0x48, 0x0f, 0xbf, 0x00), 0); /* movsx rax, word */
	insn_execute(&insn, regs, NULL, 0x8000);
	assert_true(regs[RAX] == 0xffffffffffff8000);
	assert_int_equal(DECODE(64, 0x48, 0x63, 0x00), 0); /* movsxd rax, dword */
	insn_execute(&insn, regs, NULL, 0x80000000);
	assert_true(regs[RAX] == 0xffffffff80000000);
	assert_int_equal(DECODE(32, 0x63, 0x00), E_UNSUPP); /* arpl */
}

static void test_immediates(void **state)
{
	assert_int_equal(DECODE(64, 0x48, 0xc7, 0x00, 0xff, 0xff, 0xff, 0xff), 0);
	assert_int_equal(insn.width, 8);
	assert_true(insn_execute(&insn, regs, NULL, 0) == UINT64_MAX);
	assert_int_equal(DECODE(64, 0xc7, 0x40, 0x10, 0x78, 0x56, 0x34, 0x92), 0);
	assert_int_equal(insn.length, 7);
	assert_true(insn_execute(&insn, regs, NULL, 0) == 0x92345678);
	assert_int_equal(DECODE(64, 0x66, 0xc7, 0x00, 0x34, 0x92), 0);
	assert_int_equal(insn.length, 5);
	assert_true(insn_execute(&insn, regs, NULL, 0) == 0x9234);
	assert_int_equal(DECODE(16, 0xc7, 0x06, 0x00, 0x10, 0x34, 0x12), 0);
	assert_int_equal(insn.length, 6);
	assert_int_equal(insn.width, 2);
	assert_int_equal(DECODE(64, 0xc6, 0x00, 0x80), 0);
	assert_true(insn_execute(&insn, regs, NULL, 0) == 0x80);
}

static void test_moffs(void **state)
{
	assert_int_equal(DECODE(32, 0xa1, 0x20, 0x00, 0xe0, 0xfe), 0);
	assert_int_equal(insn.length, 5);
	assert_int_equal(insn.reg, RAX);
	assert_int_equal(DECODE(64, 0x48, 0xa3, 1, 2, 3, 4, 5, 6, 7, 8), 0);
	assert_int_equal(insn.length, 10);
	assert_int_equal(insn.width, 8);
	assert_int_equal(DECODE(64, 0x67, 0xa2, 1, 2, 3, 4), 0);
	assert_int_equal(insn.length, 6);
	assert_int_equal(DECODE(16, 0xa0, 1, 2), 0);
	assert_int_equal(insn.length, 3);
}

static void test_read_modify_write(void **state)
{
	/* lock or dword [rax], 1 */
	assert_int_equal(DECODE(64, 0xf0, 0x83, 0x08, 0x01), 0);
	assert_int_equal(insn.op, INSN_OR);
	assert_int_equal(insn.flags, INSN_LOAD | INSN_STORE | INSN_RFLAGS | INSN_IMM | INSN_LOCK);
	assert_true(insn_execute(&insn, regs, &rflags, 0x80000000) == 0x80000001);
	assert_int_equal(rflags, 0x282); /* SF; the others stay */
	/* and [rax], ecx */
	assert_int_equal(DECODE(64, 0x21, 0x08), 0);
	regs[RCX] = 0xff00;
	assert_true(insn_execute(&insn, regs, &rflags, 0x12345678) == 0x5600);
	assert_true(regs[RCX] == 0xff00);
	/* add ecx, [rax] */
	assert_int_equal(DECODE(64, 0x03, 0x08), 0);
	assert_int_equal(insn.flags & INSN_STORE, 0);
	insn_execute(&insn, regs, &rflags, 0xffffff00);
	assert_true(regs[RCX] == 0xfe00);
	assert_int_equal(rflags & 1, 1);
}

static void test_compare_writes_flags_only(void **state)
{
	u64 before[16];

	memcpy(before, regs, sizeof(before));
	assert_int_equal(DECODE(64, 0x81, 0x38, 0x05, 0, 0, 0), 0); /* cmp dword [rax], 5 */
	assert_int_equal(insn.flags, INSN_LOAD | INSN_RFLAGS | INSN_IMM);
	insn_execute(&insn, regs, &rflags, 5);
	assert_int_equal(rflags & 0x40, 0x40);
	insn_execute(&insn, regs, &rflags, 4);
	assert_int_equal(rflags & 0x41, 0x01);
	regs[RCX] = before[RCX] = 4;
	assert_int_equal(DECODE(64, 0x3b, 0x08), 0); /* cmp ecx, [rax]: 4 - 5 borrows */
	insn_execute(&insn, regs, &rflags, 5);
	assert_int_equal(rflags & 0x41, 0x01);
	assert_int_equal(DECODE(64, 0x39, 0x08), 0); /* cmp [rax], ecx: 5 - 4 does not */
	insn_execute(&insn, regs, &rflags, 5);
	assert_int_equal(rflags & 0x41, 0x00);
	assert_int_equal(DECODE(64, 0xf7, 0x00, 0, 0x10, 0, 0), 0); /* test dword [rax], 0x1000 */
	insn_execute(&insn, regs, &rflags, 0xefff);
	assert_int_equal(rflags & 0x40, 0x40);
	assert_memory_equal(before, regs, sizeof(before));
	assert_int_equal(DECODE(64, 0xf0, 0x39, 0x08), E_UNSUPP); /* LOCK: #UD */
	assert_int_equal(DECODE(64, 0xf0, 0x83, 0x38, 0x05), E_UNSUPP);
}

static void test_exchange(void **state)
{
	assert_int_equal(DECODE(64, 0x87, 0x08), 0);
	regs[RCX] = 0xaaaaaaaa11111111;
	assert_true(insn_execute(&insn, regs, NULL, 0x22222222) == 0x11111111);
	assert_true(regs[RCX] == 0x22222222);
	assert_int_equal(DECODE(64, 0x86, 0x28), 0); /* ch */
	assert_true(insn_execute(&insn, regs, NULL, 0x33) == 0x22);
	assert_true(regs[RCX] == 0x22223322);
}

static void test_rep_stos_counts_down(void **state)
{
	assert_int_equal(DECODE(64, 0xf3, 0xab), 0);
	assert_int_equal(insn.flags, INSN_STORE | INSN_STRING);
	regs[RAX] = 0x1234567890;
	regs[RCX] = 2;
	regs[RDI] = 0xffffffff;
	regs[RSI] = 5;
	assert_true(insn_execute(&insn, regs, NULL, 0) == 0x34567890);
	assert_false(insn_string_step(&insn, regs, rflags));
	assert_true(regs[RDI] == 0x100000003);
	assert_true(insn_string_step(&insn, regs, rflags));
	assert_int_equal(regs[RCX], 0);
	assert_int_equal(regs[RSI], 5);
	assert_int_equal(DECODE(64, 0xaa), 0);
	assert_true(insn_string_step(&insn, regs, rflags | 0x400));
	assert_true(regs[RDI] == 0x100000006);
	assert_int_equal(regs[RCX], 0);
}

static void test_movs_in_each_address_size(void **state)
{
	assert_int_equal(DECODE(64, 0x65, 0xf3, 0x48, 0xa5), 0);
	assert_int_equal(insn.segment, INSN_SEG_GS);
	assert_int_equal(insn.width, 8);
	assert_int_equal(insn.addr_width, 8);
	assert_true(insn_execute(&insn, regs, NULL, 0x123456789abcdef0) == 0x123456789abcdef0);
	assert_int_equal(DECODE(64, 0x67, 0xf3, 0xa4), 0);
	assert_int_equal(insn.addr_width, 4);
	regs[RSI] = 0xffffffff;
	regs[RDI] = 0x500000000;
	regs[RCX] = 0x700000001;
	assert_true(insn_string_step(&insn, regs, rflags));
	assert_true(regs[RSI] == 0 && regs[RDI] == 1 && regs[RCX] == 0);
	assert_int_equal(DECODE(16, 0xf2, 0xa5), 0);
	assert_int_equal(insn.width, 2);
	regs[RSI] = 0x1ffff;
	regs[RDI] = 0x20000;
	regs[RCX] = 0x30002;
	assert_false(insn_string_step(&insn, regs, rflags));
	assert_true(regs[RSI] == 0x10001 && regs[RDI] == 0x20002 && regs[RCX] == 0x30001);
	assert_int_equal(DECODE(32, 0x2e, 0xa4), 0);
	assert_int_equal(insn.segment, INSN_SEG_CS);
	assert_int_equal(DECODE(64, 0x2e, 0xa4), 0);
	assert_int_equal(insn.segment, INSN_SEG_DEFAULT);
}

static void test_rex_counts_only_just_before_the_opcode(void **state)
{
	assert_int_equal(DECODE(64, 0x48, 0x66, 0x89, 0x00), 0);
	assert_int_equal(insn.width, 2);
	assert_int_equal(DECODE(64, 0x66, 0x48, 0x89, 0x00), 0);
	assert_int_equal(insn.width, 8);
	assert_int_equal(DECODE(32, 0x48, 0x89, 0x00), E_UNSUPP); /* dec eax */
}

static void test_what_is_cut_off_is_said_to_be(void **state)
{
	static const u8 insns[][14] = {
	    /* length, bytes */
	    {11, 0x66, 0x41, 0xc7, 0x84, 0x25, 1, 2, 3, 4, 5, 6},
	    {12, 0x41, 0xc7, 0x84, 0x25, 1, 2, 3, 4, 5, 6, 7, 8},
	    {6, 0x89, 0x83, 0xb0, 0, 0, 0},
	    {2, 0x8b, 0x00},
	    {10, 0x48, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(insns); i++) {
		const u8 *bytes = &insns[i][1];
		unsigned length = insns[i][0];

		for (unsigned n = 1; n < length; n++)
			assert_int_equal(decode(INSN_MODE_64, n, bytes), E_TRUNC);
		assert_int_equal(decode(INSN_MODE_64, length, bytes), 0);
		assert_int_equal(insn.length, length);
	}
}

static void test_no_instruction_is_longer_than_15_bytes(void **state)
{
	u8 bytes[INSN_BUF] = {0};

	memset(bytes, 0x66, 13);
	bytes[13] = 0x89;
	assert_int_equal(insn_decode(&insn, bytes, 15, INSN_MODE_64), 0);
	assert_int_equal(insn.length, 15);
	memset(bytes, 0x66, 14);
	bytes[14] = 0x89;
	assert_int_equal(insn_decode(&insn, bytes, INSN_BUF, INSN_MODE_64), E_UNSUPP);
	memset(bytes, 0x66, sizeof(bytes));
	assert_int_equal(insn_decode(&insn, bytes, 15, INSN_MODE_64), E_UNSUPP);
	assert_int_equal(insn_decode(&insn, bytes, 10, INSN_MODE_64), E_TRUNC);
}

static void test_what_we_do_not_do(void **state)
{
	assert_int_equal(DECODE(64, 0x89, 0xc0), E_UNSUPP);		/* mov eax, eax */
	assert_int_equal(DECODE(64, 0x0f, 0x6f, 0x00), E_UNSUPP);	/* movq mm0, [rax] */
	assert_int_equal(DECODE(64, 0xc5, 0xfd, 0x6f, 0x00), E_UNSUPP); /* vmovdqa */
	assert_int_equal(DECODE(64, 0xf7, 0x10), E_UNSUPP);		/* not [rax] */
	assert_int_equal(DECODE(64, 0x0f, 0xb1, 0x08), E_UNSUPP);	/* cmpxchg */
	assert_int_equal(DECODE(64, 0x8c, 0x00), E_UNSUPP);		/* mov [rax], es */
	assert_int_equal(DECODE(64, 0xf0, 0x89, 0x00), E_UNSUPP);	/* lock mov */
	assert_int_equal(DECODE(64, 0xc7, 0x08, 0, 0, 0, 0), E_UNSUPP);
	assert_int_equal(DECODE(64, 0x66, 0x0f, 0xc3, 0x00), E_UNSUPP);
}

/* What the processor makes of @a op @b; only the arithmetic flags of *@flags count. */
static u64 native(enum insn_op op, unsigned width, u64 a, u64 b, u64 *flags)
{
#define WIDTH(name, type)                                                                          \
	do {                                                                                       \
		type x = (type)a, y = (type)b;                                                     \
		__asm__("lea -128(%%rsp), %%rsp\n\tpush %[f]\n\tpopf\n\t" name                     \
			" %[y], %[x]\n\tpushf\n\tpop %[f]\n\tlea 128(%%rsp), %%rsp"                \
			: [x] "+q"(x), [f] "+r"(*flags)                                            \
			: [y] "q"(y)                                                               \
			: "cc", "memory");                                                         \
		return x;                                                                          \
	} while (0)
#define NATIVE(op_, name)                                                                          \
	case op_:                                                                                  \
		switch (width) {                                                                   \
		case 1:                                                                            \
			WIDTH(name "b", u8);                                                       \
		case 2:                                                                            \
			WIDTH(name "w", u16);                                                      \
		case 4:                                                                            \
			WIDTH(name "l", u32);                                                      \
		default:                                                                           \
			WIDTH(name "q", u64);                                                      \
		}
	switch (op) {
		NATIVE(INSN_ADD, "add")
		NATIVE(INSN_OR, "or")
		NATIVE(INSN_ADC, "adc")
		NATIVE(INSN_SBB, "sbb")
		NATIVE(INSN_AND, "and")
		NATIVE(INSN_SUB, "sub")
		NATIVE(INSN_XOR, "xor")
		NATIVE(INSN_CMP, "cmp")
		NATIVE(INSN_TEST, "test")
	default:
		abort();
	}
}

static void test_arithmetic_is_the_processors(void **state)
{
	static const u64 values[] = {0,
				     1,
				     0xf,
				     0x10,
				     0x7f,
				     0x80,
				     0xff,
				     0x7fff,
				     0x8000,
				     0x12345678,
				     0x7fffffff,
				     0x80000000,
				     0xffffffff,
				     0x123456789abcdef0,
				     0x7fffffffffffffff,
				     0x8000000000000000,
				     0xffffffffffffffff};
	static const u8 widths[] = {1, 2, 4, 8};

	for (unsigned op = INSN_ADD; op <= INSN_TEST; op++) {
		for (unsigned c = 0; c < 2 * ARRAY_SIZE(values) * ARRAY_SIZE(values) * 4; c++) {
			unsigned width = widths[c % 4];
			u64 a = values[c / 8 % ARRAY_SIZE(values)];
			u64 b = values[c / 8 / ARRAY_SIZE(values)];
			u64 flags = 0x202 | (c / 4 & 1), expect_flags = flags;
			/* AF is undefined after logical operations */
			u64 mask =
			    op == INSN_AND || op == INSN_OR || op == INSN_XOR || op == INSN_TEST
				? 0x8c5
				: 0x8d5;
			u64 cut = ~0ull >> (64 - 8 * width);
			u64 expect = native(op, width, a, b, &expect_flags), result;
			struct insn i = {.op = op,
					 .width = width,
					 .reg_width = width,
					 .reg = RBX,
					 .flags = INSN_LOAD | INSN_STORE | INSN_RFLAGS};

			regs[RBX] = b;
			result = insn_execute(&i, regs, &flags, a);
			if (op != INSN_CMP && op != INSN_TEST)
				assert_true(result == (expect & cut));
			assert_true((flags & mask) == (expect_flags & mask));
			assert_true((flags & ~0x8d5ull) == 0x202);
			assert_true(regs[RBX] == b);
			if (op == INSN_TEST)
				continue;
			/* and the other way round, with the register first */
			i.flags = INSN_LOAD | INSN_TO_REG | INSN_RFLAGS;
			flags = 0x202 | (c / 4 & 1);
			regs[RBX] = a;
			insn_execute(&i, regs, &flags, b);
			assert_true((flags & mask) == (expect_flags & mask));
			assert_true((regs[RBX] & cut) == (expect & cut));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_agrees_with_capstone_on_all_opcodes, setup),
	    cmocka_unit_test_setup(test_store_of_a_register, setup),
	    cmocka_unit_test_setup(test_load_of_32_bits_clears_the_upper_half, setup),
	    cmocka_unit_test_setup(test_narrow_loads_keep_the_rest, setup),
	    cmocka_unit_test_setup(test_extensions, setup),
	    cmocka_unit_test_setup(test_immediates, setup),
	    cmocka_unit_test_setup(test_moffs, setup),
	    cmocka_unit_test_setup(test_read_modify_write, setup),
	    cmocka_unit_test_setup(test_compare_writes_flags_only, setup),
	    cmocka_unit_test_setup(test_exchange, setup),
	    cmocka_unit_test_setup(test_rep_stos_counts_down, setup),
	    cmocka_unit_test_setup(test_movs_in_each_address_size, setup),
	    cmocka_unit_test_setup(test_rex_counts_only_just_before_the_opcode, setup),
	    cmocka_unit_test_setup(test_what_is_cut_off_is_said_to_be, setup),
	    cmocka_unit_test_setup(test_no_instruction_is_longer_than_15_bytes, setup),
	    cmocka_unit_test_setup(test_what_we_do_not_do, setup),
	    cmocka_unit_test_setup(test_arithmetic_is_the_processors, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
