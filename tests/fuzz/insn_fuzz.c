/* SPDX-License-Identifier: BSD-2-Clause */
/* Random bytes as instructions, against Capstone; and random data through those that decode. */
// sources: hv/vmx/insn.c
// libs: -lcapstone
#include <string.h>

#include "tests/unit/insn_oracle.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	enum insn_mode mode;
	struct insn insn;
	u8 buf[INSN_BUF] = {0};
	u64 regs[16], rflags = 2, value;

	if (size < 2)
		return 0;
	mode = data[0] % 3;
	if (--size > INSN_MAX)
		size = INSN_MAX;
	memcpy(buf, data + 1, size);
	if (!insn_oracle_agrees(buf, size, mode))
		abort();
	if (insn_decode(&insn, buf, size, mode))
		return 0;
	for (unsigned i = 0; i < 16; i++)
		regs[i] = 0x0123456789abcdefull * (i + 1);
	value = insn_execute(&insn, regs, insn.flags & INSN_RFLAGS ? &rflags : NULL, regs[15]);
	if (insn.width < 8 && insn.flags & INSN_STORE && value >> (8 * insn.width))
		abort();
	if (insn.flags & INSN_STRING)
		insn_string_step(&insn, regs, rflags);
	return 0;
}
