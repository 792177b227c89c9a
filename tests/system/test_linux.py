# SPDX-License-Identifier: BSD-2-Clause
"""Linux guests, unmodified: from the firmware to a shell that answers, and off again."""

import re
import unittest

import vlagtest
from vlagtest import linux_vm

PROMPT = "guest# "
# What no healthy boot says. The pattern stands in brackets so that the command's echo has none.
TROUBLE = ("[B]UG|[W]ARNING|[C]all Trace|[u]nstable|[sS]purious|[l]ost|[s]tall|[h]ung"
           "|[n]obody cared|[P]anic|[F]atal")


def says(command, regex):
    """Steps: types @command at the prompt; a line that matches has to come, and the prompt."""
    return ["--send", command + "\\n", "--until", regex, "--until", PROMPT]


HEALTHY = says(f"dmesg | grep -E '{TROUBLE}'; echo trouble $?", r"^trouble \d")
OFF = ["--send", "poweroff\\n", "--until", "^vlag: all VMs ended, powering off"]


class Linux(vlagtest.BootedOnce):
    def assert_healthy(self, machine=None):
        """The kernel's log names no trouble."""
        run = machine or self.machine
        self.assert_ok(run)
        self.assertIn("trouble 1", run.lines, run.describe())

    def assert_counted(self, vm, vcpus):
        """The statistics are complete, and what they say of @vm fits together."""
        stats = self.machine.stats
        found = [one for one in stats["vms"] if one["name"] == vm]
        self.assertEqual(len(found), 1, stats)
        self.assertEqual([one["id"] for one in found[0]["vcpus"]], list(range(vcpus)))
        for vcpu in found[0]["vcpus"]:
            exits = vcpu["exits"]
            self.assertEqual(sum(exits.values()), vcpu["exits_total"], vcpu)
            for reason in ("CPUID", "HLT", "WRMSR", "IO_INSTRUCTION" if vcpu["id"] == 0 else "HLT"):
                self.assertGreater(exits[reason], 0, vcpu)
            self.assertGreater(vcpu["run_ns"], 0, vcpu)
            self.assertGreater(vcpu["counters"]["timer_irqs"], 0, vcpu)
            self.assertEqual(vcpu["counters"]["unknown_mmio"], 0, vcpu)
        self.assertGreater(stats["tsc_hz"], 0)
        return found[0]


class OneVcpu(Linux):
    """One vCPU on one pCPU, the default machine but for its words."""

    config = linux_vm(cmdline="console=ttyS0,115200")
    args = ["--until", PROMPT, *says("echo $((6*7))", "^42$"), *HEALTHY, *OFF]

    def test_a_typed_command_is_answered(self):
        self.assert_ok(self.machine)
        self.assert_line("42")

    def test_the_log_is_clean(self):
        self.assert_healthy()

    def test_linux_sees_kvm_and_takes_its_clock_from_it(self):
        self.assert_console(self.machine, "Hypervisor detected: KVM")
        self.assert_console(self.machine, "kvm-clock: Using msrs 4b564d01 and 4b564d00")
        self.assert_console(self.machine, r"clocksource: kvm-clock: mask: 0xffffffffffffffff")
        self.assert_console(self.machine, r"tsc: Detected (49\.9\d\d|50\.0\d\d) MHz processor")

    def test_linux_finds_acpi_apic_and_serial_port(self):
        self.assert_console(self.machine, "x2apic enabled|x2apic: enabled|x2APIC mode")
        self.assert_console(self.machine, "ACPI: Interpreter enabled")
        self.assert_console(self.machine, r"ttyS0 at I/O 0x3f8 \(irq = 4, .*\) is a 16550A")

    def test_power_off_from_inside_ends_the_machine(self):
        self.assert_ok(self.machine)
        self.assert_ended("linux", "poweroff")
        self.assert_line("vlag: all VMs ended, powering off")

    def test_it_asks_for_nothing_that_is_not_there(self):
        self.assert_ok(self.machine)
        self.assertEqual([line for line in self.machine.lines if "(shown once)" in line], [])

    def test_linux_finds_a_pci_bus(self):
        self.assert_console(self.machine, "PCI: Using configuration type 1 for base access")


class PowersOffByItself(vlagtest.SystemTest):
    """The run of a user who asks for nothing: it ends when the guest does."""

    def test_the_run_ends_with_status_0_and_leaves_statistics(self):
        run = self.boot(linux_vm(cmdline="console=ttyS0,115200 quiet vlag.run=nproc vlag.poweroff"),
                        stats=True)
        self.assert_ok(run)
        self.assert_console(run, "^vlag-guest: exit 0: nproc$")
        self.assert_console(run, "^vlag: vm linux: ended: poweroff$")
        self.assertEqual([one["state"] for one in run.stats["vms"]], ["stopped"])


class FourVcpusOnOnePcpu(Linux):
    config = linux_vm(vcpus=4)
    args = ["--until", PROMPT, *says("nproc", "^4$"), *HEALTHY]
    options = {"stats": True}

    def test_nproc_says_4(self):
        self.assert_ok(self.machine)
        self.assert_console(self.machine, "^vlag-guest: userspace reached, .* nproc 4,")
        self.assert_line("4")

    def test_the_log_is_clean(self):
        self.assert_healthy()

    def test_exits_are_counted(self):
        self.assert_counted("linux", 4)

    def test_vcpus_waited_for_the_one_pcpu(self):
        vcpus = self.assert_counted("linux", 4)["vcpus"]
        self.assertEqual({one["pcpu"] for one in vcpus}, {0})
        self.assertGreater(sum(one["wait_ns"] for one in vcpus), 0)


class FourVcpusOnFourPcpus(Linux):
    config = linux_vm(vcpus=4)
    args = ["--pcpus", 4, "--until", PROMPT, *says("nproc", "^4$"), *HEALTHY]
    options = {"stats": True}

    def test_nproc_says_4(self):
        self.assert_ok(self.machine)
        self.assert_line("4")

    def test_the_log_is_clean(self):
        self.assert_healthy()

    def test_exits_are_counted(self):
        self.assert_counted("linux", 4)

    def test_each_pcpu_runs_some_of_it(self):
        vcpus = self.assert_counted("linux", 4)["vcpus"]
        self.assertEqual({one["pcpu"] for one in vcpus}, {0, 1, 2, 3})
        self.assertEqual(len(self.machine.stats["pcpus"]), 4)


class Life(Linux):
    """Reset from inside and from the monitor, stop, start."""

    AGAIN = ["--until", "vlag-guest: userspace reached", "--until", PROMPT,
             *says("echo at $(date +%s)", r"^at \d+")]
    config = linux_vm(vcpus=2)
    args = [*AGAIN, "--send", "echo mark-1; reboot -f\\n",
            "--until", "^vlag: vm linux: reset", *AGAIN,
            *says("echo mark-2", "^mark-2"), "--cmd", "vm reset linux",
            "--until", "^vlag: vm linux: reset", *AGAIN,
            *says("echo mark-3", "^mark-3"), "--cmd", "vm stop linux",
            "--until", "^vlag: vm linux: ended: stopped", "--cmd", "vm", "--cmd", "vm start linux",
            *AGAIN, *says("echo mark-4", "^mark-4"), *HEALTHY, "--cmd", "vm"]

    def test_every_start_reaches_the_shell(self):
        self.assert_ok(self.machine)
        for number in range(1, 5):
            self.assert_line(f"mark-{number}")

    def test_a_reset_is_said_and_is_no_end(self):
        resets = [line for line in self.machine.lines if line == "vlag: vm linux: reset"]
        self.assertEqual(len(resets), 2, self.machine.describe())

    def test_a_stopped_vm_is_listed_as_such_and_then_runs_again(self):
        self.assert_ended("linux", "stopped")
        self.assert_console(self.machine, r"^ *0 linux +stopped +2 ")
        self.assert_console(self.machine, r"^ *0 linux +running +2 ")

    def test_the_time_of_day_goes_on_over_resets_and_starts(self):
        times = [int(line[3:]) for line in self.machine.lines if re.match(r"at \d+$", line)]
        self.assertEqual(len(times), 4, self.machine.describe())
        self.assertEqual(times, sorted(set(times)), "each start is at least a second later")

    def test_the_log_of_the_last_start_is_clean(self):
        self.assert_healthy()


class TwoLinuxesAndATinyGuest(Linux):
    """Three VMs at once, the second Linux in xAPIC mode at reset."""

    config = (linux_vm("one", vcpus=2) + linux_vm("two", vcpus=2, apic="xapic") +
              "[vm tiny]\nkernel = smp.elf\nvcpus = 3\nmemory = 16M\ndebug_exit = 0xf4\n")
    args = ["--pcpus", 2, "--until", PROMPT, *says("echo from-$((0+1))", "^from-1$"), *HEALTHY,
            "--send", r"\x011", "--until", "console of vm two", "--until", PROMPT,
            *says("echo from-$((1+1))", "^from-2$"), *says("nproc", "^2$"),
            *says(f"dmesg | grep -E '{TROUBLE}'; echo two: trouble $?", r"^two: trouble \d"),
            "--cmd", "vm", "--send", "poweroff\\n", "--until", "^vlag: vm two: ended: poweroff",
            "--send", r"\x010", "--until", "console of vm one", "--send", "poweroff\\n",
            "--until", "^vlag: vm one: ended: poweroff"]

    def test_each_answers_on_its_own_console(self):
        self.assert_ok(self.machine)
        self.assert_line("from-1")
        self.assert_line("from-2")

    def test_both_logs_are_clean(self):
        self.assert_healthy()
        self.assert_line("two: trouble 1")

    def test_the_tiny_guest_passes_beside_them(self):
        self.assert_ended("tiny", "debug-exit status 0")

    def test_each_powers_off_alone(self):
        self.assert_ended("one", "poweroff")
        self.assert_ended("two", "poweroff")


def read_stolen(name):
    """A command that puts the ticks of 10 ms stolen so far into the variable @name. No process is
    started for it: that would be work, which others make wait."""
    return f"read x x x x x x x x {name} x </proc/stat"


def stolen(word):
    """A command that prints them after @word."""
    return f"{read_stolen('s')}; echo {word} $s"


def busy(seconds):
    """A command that does nothing, with all its might."""
    return f"timeout {seconds} sh -c 'while :; do :; done'"


class Steal(Linux):
    """Two Linuxes on one pCPU: what /proc/stat says, and what the monitor says."""

    config = linux_vm("one") + linux_vm("two")
    args = ["--until", PROMPT, "--send", r"\x011", "--until", "console of vm two",
            "--send", r"\n", "--until", PROMPT,
            "--send", f"{busy(6)}; {stolen('two-end')}\\n",
            "--send", r"\x010", "--until", "console of vm one", "--send", r"\n", "--until", PROMPT,
            # In one line, as typing is work, and said at the end, as printing is; the console takes
            # 256 characters at once.
            *says(f"{read_stolen('a')}; {busy(1)}; {read_stolen('b')}; sleep 1; "
                  f"{read_stolen('c')}; echo busy-from $a; echo busy-to $b; echo idle-to $c",
                  r"^idle-to \d+"),
            "--until", r"^two\| two-end \d+",
            *says(f"sleep 0.2; {stolen('one-end')}", r"^one-end \d+"), "--cmd", "vm"]
    options = {"stats": True}

    @property
    def said(self):
        """What the guests printed: word -> ticks."""
        self.assert_ok(self.machine)
        lines = [re.fullmatch(r"(?:two\| )?([a-z]+-[a-z]+) (\d+)", line)
                 for line in self.machine.lines]
        return {found.group(1): int(found.group(2)) for found in lines if found}

    def test_half_is_stolen_from_a_busy_guest(self):
        said = self.said
        ticks = said["busy-to"] - said["busy-from"]
        self.assertTrue(46 <= ticks <= 54, f"{ticks} of 100 ticks")

    def test_nothing_is_stolen_from_a_guest_that_sleeps(self):
        said = self.said
        self.assertLessEqual(said["idle-to"] - said["busy-to"], 2)

    def test_guests_and_monitor_agree_within_a_tick(self):
        said = self.said
        for vm in self.machine.stats["vms"]:
            told = said[f"{vm['name']}-end"] * 10_000_000
            # What has not made a whole tick yet, and what came in the kernel's own last tick.
            self.assertTrue(0 <= vm["steal_ns"] - told < 20_000_000,
                            f"{vm['name']}: {told} ns in /proc/stat, {vm['steal_ns']} counted")


class EveryPvFeature(Linux):
    """IPIs and TLB flushes by hypercall, paravirtual spinlocks; four vCPUs take turns."""

    FOUND = "setup pv (IPIs|remote TLB flush|sched yield)|PV spinlocks [e]nabled"
    LOAD = "ipistorm mode=membarrier ms=500; ipistorm mode=mprotect ms=500"
    storms = True
    config = linux_vm(initrd="storms.cpio", vcpus=4, pv="all")
    args = ["--until", PROMPT, *says(f"dmesg | grep -ciE '{FOUND}'", r"^\d$"),
            *says(f"{LOAD}; echo over-$((0+1))", "^over-1$"), *HEALTHY]
    options = {"stats": True}

    def test_the_kernel_uses_them(self):
        """One CPU interrupts the three that spin, or flushes their TLBs: most of the time only one
        of the four has the pCPU."""
        self.assert_ok(self.machine)
        self.assert_line("4")
        vm = self.machine.stats["vms"][0]
        counters = vm["counters"]
        # All others, or those that Linux believes to need it: for the boot, 9 of the first kind.
        self.assertGreater(counters["ipi_multicast"] + counters["ipi_broadcast"], 50, counters)
        self.assertGreater(sum(vcpu["exits"].get("VMCALL", 0) for vcpu in vm["vcpus"]), 50, vm)
        self.assertGreater(counters["pv_tlb_flushes"], 0, counters)

    def test_the_log_is_clean(self):
        self.assert_healthy()


class CloudKernel(Linux):
    """Debian's own kernel, as it comes out of its package."""

    config = linux_vm(kernel="bzImage-cloud", vcpus=2, memory="256M")
    args = ["--until", PROMPT, *says("nproc", "^2$"), *HEALTHY,
            *says("dmesg | grep -c 'detected: [K]VM'", "^1$")]
    options = {"stats": True, "timeout": 1500}

    def test_it_reaches_a_shell_with_both_vcpus(self):
        self.assert_ok(self.machine)
        self.assert_line("2")

    def test_it_sees_kvm(self):
        self.assert_ok(self.machine)
        self.assert_line("1")

    def test_the_log_is_clean(self):
        self.assert_healthy()

    def test_exits_are_counted(self):
        self.assert_counted("linux", 2)


if __name__ == "__main__":
    unittest.main()
