# SPDX-License-Identifier: BSD-2-Clause
"""steald with cpusets, which the small kernel lacks: Debian's kernel, under QEMU without a hypervisor
of ours. How steald decides is a unit test; that it folds by affinity, one of guest-support's."""

import pathlib
import subprocess
import unittest

import vlagtest

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 900  # for a machine that hangs


class Cpusets(vlagtest.SystemTest):
    def boot_linux(self, script):
        """What the cloud kernel prints while it runs @script with 4 CPUs."""
        initramfs = vlagtest.storms_initramfs(self.folder / "initramfs.cpio", **{"test.sh": script})
        kernel = vlagtest.guest_files()["bzImage-cloud"]
        done = subprocess.run(
            ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-cpu", "max", "-smp", "4", "-m", "512",
             "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel", kernel,
             "-initrd", initramfs, "-append",
             "console=ttyS0,115200 quiet vlag.run=/test.sh vlag.poweroff"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
            timeout=SECONDS)
        return done.stdout.replace("\r", "")

    def test_free_tasks_fold_pinned_ones_stay_and_all_is_undone(self):
        text = self.boot_linux(HERE / "steald_cpusets.sh")
        rest = "pinned 3 grouped {0} pinned-in-group 2"
        for stage, cpus in (("before", "0-3"), ("folded", "0"), ("unfolded", "0-3"),
                            ("folded-again", "0"), ("after", "0-3")):
            self.assertIn(f"stage {stage}: free {cpus} {rest.format(cpus)}\n", text, text)
        self.assertIn("group of free: 0::/steald\n", text)
        self.assertIn("group of free: 0::/\n", text)
        self.assertIn("steald: status 0\n", text)
        self.assertNotIn("steald: cannot", text)
        self.assertNotIn("still there", text)


if __name__ == "__main__":
    unittest.main()
