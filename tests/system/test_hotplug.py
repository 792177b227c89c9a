# SPDX-License-Identifier: BSD-2-Clause
"""CPU hotplug in Linux: INIT, start-up IPI, IPIs and timers of CPUs that come and go, in a loop.

The small kernel is part of `make test`. Debian's cloud kernel with 8 vCPUs on 4 pCPUs takes half an
hour: only with VLAG_TEST_LONG=1 in the environment.
"""

import os
import re
import unittest

import vlagtest

PROMPT = "guest# "
# Stands in brackets so that the command's echo has none.
TROUBLE = ("[B]UG|[W]ARNING|[C]all Trace|[u]nstable|[sS]purious|[l]ost|[s]tall|[h]ung|failed to "
           "go (on|off)line|[n]ot responding")


def hotplug(vcpus, rounds):
    """Takes all CPUs but 0 away and brings them back, @rounds times, with work in between."""
    numbers = " ".join(map(str, range(1, vcpus)))
    back = " ".join(map(str, reversed(range(1, vcpus))))
    return (f"cd /sys/devices/system/cpu; for n in $(seq {rounds}); do "
            f"for c in {numbers}; do echo 0 >cpu$c/online; done; echo left $(nproc); "
            f"for c in {back}; do echo 1 >cpu$c/online; (true) & done; wait; "
            "echo back $(nproc); done; cd /; echo online $(cat /sys/devices/system/cpu/online)")


def steps(vcpus, rounds):
    """Waits for the prompt, goes through the loop, and looks into the kernel's log."""
    return ["--until", PROMPT, "--send", hotplug(vcpus, rounds) + "\\n",
            "--until", rf"^online 0-{vcpus - 1}", "--until", PROMPT,
            "--send", f"dmesg | grep -E '{TROUBLE}'; echo trouble $?\\n",
            "--until", r"^trouble \d", "--until", PROMPT, "--send", "poweroff\\n",
            "--until", "ended: poweroff"]


class Hotplug(vlagtest.BootedOnce):
    """Two VMs, one after the other: as it comes, and with nox2apic."""

    vcpus, rounds, pcpus, kernel, memory, timeout = 4, 5, 2, "bzImage", "128M", 1800

    @classmethod
    def setUpClass(cls):
        more = {"kernel": cls.kernel, "vcpus": cls.vcpus, "memory": cls.memory, "autostart": "no"}
        line = "console=ttyS0,115200 quiet"
        cls.config = (vlagtest.linux_vm("plain", cmdline=line, **more) +
                      vlagtest.linux_vm("nox2apic", cmdline=line + " nox2apic", **more))
        cls.options = {"timeout": cls.timeout, "stats": True}
        cls.args = ["--pcpus", cls.pcpus, "--cmd", "vm start plain"]
        cls.args += steps(cls.vcpus, cls.rounds)
        cls.args += ["--cmd", "vm start nox2apic", "--send", r"\x011"]
        cls.args += steps(cls.vcpus, cls.rounds)
        super().setUpClass()

    def test_all_cpus_left_and_came_back_each_time_in_both_modes(self):
        self.assert_ok(self.machine)
        said = [line for line in self.machine.lines if re.fullmatch(r"(left|back) \d+", line)]
        self.assertEqual(said, ["left 1", f"back {self.vcpus}"] * (2 * self.rounds),
                         self.machine.describe())

    def test_both_logs_are_clean(self):
        self.assert_ok(self.machine)
        self.assertEqual(self.machine.lines.count("trouble 1"), 2, self.machine.describe())

    def test_the_second_one_used_the_page(self):
        self.assert_ok(self.machine)
        accesses = {vm["name"]: sum(vcpu["exits"].get("APIC_ACCESS", 0) for vcpu in vm["vcpus"])
                    for vm in self.machine.stats["vms"]}
        self.assertEqual(accesses["plain"], 0)
        self.assertGreater(accesses["nox2apic"], 1000)

    def test_each_cpu_was_started_once_and_once_for_each_round(self):
        self.assert_ok(self.machine)
        for vm in self.machine.stats["vms"]:
            others = self.vcpus - 1
            self.assertEqual(vm["counters"]["ipi_init"], others * (1 + self.rounds), vm["name"])


@unittest.skipUnless(os.environ.get("VLAG_TEST_LONG"), "half an hour; VLAG_TEST_LONG=1 runs it")
class CloudKernelHotplug(Hotplug):
    """Debian's kernel, 8 vCPUs on 4 pCPUs."""

    vcpus, rounds, pcpus, kernel, memory, timeout = 8, 3, 4, "bzImage-cloud", "384M", 3600


if __name__ == "__main__":
    unittest.main()
