# SPDX-License-Identifier: BSD-2-Clause
"""The path lengths that are compared: what the guest calls each, and what KVM takes for it.

KVM's figures are ticks of the same Bochs 2.7, measured inside of a guest of stock QEMU 7.2 under
KVM with enable_apicv=0 and mitigations=off (the default mitigations add about 95 to each exit that the
kernel handles). One tick is one instruction, so they are the same on every machine. @kvm61, @kvm72:
published with the project's goals, Linux 6.1 and 7.2, by another guest. @same: Linux 6.1 and the
guest `exits` itself, by `tools/bench/run peer`. Only constants here; running is paths.py's.
"""

import collections

# @run: the run of paths.RUNS that measures it; @name: the guest's name for it; @parts: what the
# guest measures is so many of them.
Line = collections.namedtuple("Line", "run name title kvm61 kvm72 same parts", defaults=(None, 1))

SHARE = 8  # the goal is KVM 6.1 divided by this, or less

EXITS = (
    Line("x2apic", "cpuid", "CPUID", 1002, 1077, 986),
    Line("x2apic", "vmcall_unknown", "VMCALL, unknown number", 1027, 1257, 1010),
    Line("x2apic", "wbinvd", "WBINVD", 883, 967, 867),
    Line("x2apic", "rdmsr_tsc_adjust", "RDMSR TSC_ADJUST", 1123, 1272, 1107),
    Line("x2apic", "wrmsr_tsc_adjust", "WRMSR TSC_ADJUST", 1676, 1696, 1658),
    Line("x2apic", "in_0x21", "IN 0x21 (8259 mask)", 1271, 1360, 1255),
    Line("x2apic", "x2apic_read_id", "x2APIC read ID", 1212, 1313, 1196),
    Line("x2apic", "x2apic_eoi_none", "x2APIC EOI, none in service", 1186, 1264, 1170),
    Line("x2apic", "x2apic_eoi_one", "x2APIC EOI, one in service", 1665, 1795, 1613),
    Line("x2apic", "x2apic_self_ipi_if0", "x2APIC self-IPI write, IF=0", 2127, 2276, 2177),
    Line("x2apic", "wrmsr_tsc_deadline", "WRMSR TSC_DEADLINE, far away", 920, 893, 1310),
    Line("x2apic", "x2apic_self_ipi_handler", "self-IPI to its handler, IF=1", 2447, 2218, 2430),
    Line("x2apic", "x2apic_cli_self_ipi_sti_handler", "cli; self-IPI; sti to its handler", 3860,
         3692, 3887),
    Line("x2apic", "x2apic_self_ipi_hlt_eoi", "self-IPI, HLT, back, EOI", 6707, 6385, 6657),
    Line("x2apic", "deadline_overshoot_spin", "deadline overshoot, spinning", 293, 642, 264),
    Line("x2apic", "deadline_overshoot_hlt", "deadline overshoot, halted", 5460, 5821),
    Line("xapic", "xapic_read_id", "xAPIC MMIO: read ID", 7182, None, 7210),
    Line("xapic", "xapic_eoi_none", "xAPIC MMIO: EOI", 3793, None, 3771),
    Line("xapic", "xapic_write_tmict", "xAPIC MMIO: write TMICT", 4163, None, 4156),
    Line("2pcpus", "x2apic_icr_write_remote", "2 pCPUs: ICR write to a remote vCPU", 1395, 1070,
         1360),
    Line("2pcpus", "x2apic_icr_remote_handler_spin", "2 pCPUs: ICR to the handler, target spins",
         2430, 3910, 2410),
    Line("2pcpus", "x2apic_icr_remote_handler_asleep",
         "2 pCPUs: ICR to the handler, target asleep in HLT", 7050, 7305),
    Line("2pcpus", "x2apic_ipi_round_trip_spin", "2 pCPUs: IPI round trip, half, spinning", 3857,
         4036, 4037, 2),
    Line("2pcpus", "x2apic_ipi_round_trip_halt", "2 pCPUs: IPI round trip, half, halting", 4416,
         4254, 4002, 2),
)

# What KVM lets the guest do without an exit: 3 to 28 ticks there, all of them instructions of the
# measuring program. More than that here would be an exit.
NO_EXIT_MAX = 28
NO_EXIT = (
    Line("x2apic", "rdtsc", "RDTSC", None, None),
    Line("x2apic", "cr8_read", "CR8 read", None, None),
    Line("x2apic", "cr8_write", "CR8 write", None, None),
    Line("x2apic", "cr3_write", "CR3 write", None, None),
    Line("x2apic", "cr4_pge_write", "CR4.PGE write", None, None),
    Line("x2apic", "cr0_ts_write", "CR0.TS write", None, None),
    Line("x2apic", "clts", "CLTS", None, None),
    Line("x2apic", "invlpg", "INVLPG", None, None),
    Line("x2apic", "fs_base_write", "WRMSR FS_BASE", None, None),
    Line("x2apic", "x2apic_read_tpr", "x2APIC read TPR", None, None),
    Line("x2apic", "x2apic_write_tpr", "x2APIC write TPR", None, None),
)

# Measured too, with nothing to compare with.
ALSO = (
    Line("xapic", "xapic_read_tpr", "xAPIC MMIO: read TPR", None, None),
    Line("xapic", "xapic_write_tpr", "xAPIC MMIO: write TPR", None, None),
    Line("xapic", "xapic_eoi_one", "xAPIC MMIO: EOI, one in service", None, None),
    Line("xapic", "xapic_self_ipi_if0", "xAPIC MMIO: self-IPI write, IF=0", None, None),
    Line("xapic", "xapic_self_ipi_handler", "xAPIC MMIO: self-IPI to its handler, IF=1", None,
         None),
    Line("2pcpus", "x2apic_icr_write_remote_asleep", "2 pCPUs: ICR write, target asleep in HLT",
         None, None),
    Line("2pcpus", "x2apic_ipi_round_trip_asleep",
         "2 pCPUs: IPI round trip, half, target asleep in HLT", None, None, None, 2),
)

# For the issue about directed yield: goal and KVM's figures are per pass.
TOKEN = Line("token", "token_pass", "4 vCPUs on 2 pCPUs pass a token, per pass", 32261, 119820)
