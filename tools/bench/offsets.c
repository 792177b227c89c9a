/* SPDX-License-Identifier: BSD-2-Clause */
/* Where tools/bench finds what it reads out of a vCPU while the machine stands still. Never linked:
 * mk/bench.mk copies the numbers out of the object, in this order. */
#include "hv/vm/vcpu.h"

extern const u64 bench_offsets[];

__attribute__((section("bench_numbers"), used)) const u64 bench_offsets[] = {
    sizeof(((struct vcpu *)0)->regs),	       offsetof(struct vcpu, nr_exits),
    offsetof(struct vcpu, last_exits),	       LAST_EXITS,
    sizeof(((struct vcpu *)0)->last_exits[0]),
};
