# SPDX-License-Identifier: BSD-2-Clause
"""Linux guests, unmodified: from the firmware to a shell that answers, and off again."""

import unittest

import vlagtest

PROMPT = "guest# "
# What no healthy boot says. The pattern stands in brackets so that the command's echo has none.
TROUBLE = "[B]UG|[W]ARNING|[C]all Trace|[u]nstable|[s]purious|[l]ost"


class LinuxTest(vlagtest.SystemTest):
    def talk(self, config, *steps, **more):
        """Boots to the prompt, then goes through @steps; the kernel's log must be clean."""
        run = self.boot(config, "--until", PROMPT,
                        "--send", f"dmesg | grep -E '{TROUBLE}'; echo trouble $?\\n",
                        "--until", r"^trouble \d", "--until", PROMPT, *steps, **more)
        self.assert_ok(run)
        self.assert_console(run, "^trouble 1$")
        return run


class OneVcpu(LinuxTest):
    def test_a_shell_answers_and_power_off_ends_the_machine(self):
        run = self.talk(vlagtest.linux_vm(vcpus=1),
                        "--send", "dmesg | grep -c 'detected: KVM'; echo $((6 * 7)) answers\\n",
                        "--until", "^1$", "--until", "^42 answers$", "--until", PROMPT,
                        "--send", "poweroff\\n")
        self.assert_console(run, "^vlag: vm linux: ended: poweroff$")
        self.assert_console(run, "^vlag: all VMs ended, powering off$")


class FourVcpus(LinuxTest):
    def test_four_vcpus_on_one_pcpu(self):
        self.talk(vlagtest.linux_vm(vcpus=4), "--send", "nproc\\n", "--until", "^4$")

    def test_four_vcpus_on_four_pcpus(self):
        self.talk(vlagtest.linux_vm(vcpus=4), "--send", "nproc\\n", "--until", "^4$",
                  "--cmd", "pcpu", "--pcpus", "4")


class CloudKernel(LinuxTest):
    def test_debians_kernel_with_two_vcpus(self):
        config = vlagtest.linux_vm(kernel="bzImage-cloud", vcpus=2, memory="256M")
        self.talk(config, "--send", "nproc\\n", "--until", "^2$", timeout=1500)


if __name__ == "__main__":
    unittest.main()
