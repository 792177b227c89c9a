/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a guest may not touch: unknown MSRs and bad values raise #GP and nothing else happens;
 * unknown ports read as all ones and swallow what is written.
 */
#include "hv/lib/string.h"
#include "tests/guests/lib/guest.h"

#define GP 13
#define MSR_EFER 0xc0000080
#define MSR_PAT 0x277

static const u32 unknown[] = {0x0,	  0x1234,     0x3fff,	  0x4b564dff,
			      0x40000000, 0xc0001fff, 0xc0010200, 0xffffffff};
static const u16 ports[] = {0x1a0, 0x5a0, 0x1234, 0xfff0};

static void msrs(void)
{
	u64 v;

	for (u32 i = 1; i < ARRAY_SIZE(unknown); i++) {
		int r = rdmsr_safe(unknown[i], &v), w = wrmsr_safe(unknown[i], 1);

		CHECK(r == GP, "RDMSR of %x raises %d, not #GP", unknown[i], r);
		CHECK(w == GP, "WRMSR of %x raises %d, not #GP", unknown[i], w);
	}
	CHECK(wrmsr_safe(MSR_EFER, rdmsr(MSR_EFER) | BIT(40)) == GP, "reserved bit of EFER");
	CHECK(wrmsr_safe(MSR_PAT, 0x0707070707070702) == GP, "reserved type in PAT");
	CHECK(wrmsr_safe(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | 1) == GP,
	      "reserved bit of APIC_BASE");
	CHECK(wrmsr_safe(0xc0000100, 1ull << 60) == GP, "FS base that is not canonical");
	CHECK(rdmsr_safe(MSR_PAT, &v) == -1, "RDMSR of PAT raises an exception");
}

int guest_main(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(ports); i++) {
		outb(ports[i], 0x5a);
		outw(ports[i], 0x5a5a);
		outl(ports[i], 0x5a5a5a5a);
		CHECK(inb(ports[i]) == 0xff, "byte from port %x", ports[i]);
		CHECK(inw(ports[i]) == 0xffff, "word from port %x", ports[i]);
		CHECK(inl(ports[i]) == 0xffffffff, "dword from port %x", ports[i]);
	}
	printf("badmsr: ports done\n");
	if (!strcmp(hypervisor(), "TCGTCGTCGTCG"))
		printf("badmsr: TCG ignores unknown MSRs, not tested\n");
	else
		msrs();
	return 0;
}
