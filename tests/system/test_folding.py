# SPDX-License-Identifier: BSD-2-Clause
"""Guests that fold: two VMs with two vCPUs each share two pCPUs, and see the steal time that the
hypervisor tells. steald on the stock kernel; and the kernel's own governor, where a kernel with the
preferred-CPU series was built (guest-support/README.md)."""

import pathlib
import re
import unittest

import vlagtest

HERE = pathlib.Path(__file__).resolve().parent


class FoldingTest(vlagtest.SystemTest):
    def fold(self, kernel="bzImage", words="", more=""):
        """VM -> the text of its lines: one is busy for 2.4 s of its time, two for 1.2 s."""
        initramfs = vlagtest.storms_initramfs(self.folder / "folding.cpio",
                                              **{"folding.sh": HERE / "folding.sh"})
        config = "".join(
            f"[vm {name}]\nkernel = {kernel}\ninitrd = folding.cpio\nvcpus = 2\nmemory = 64M\n"
            f"cmdline = console=ttyS0,115200 quiet {words} vlag.run=/folding.sh,{busy_ms}{more} "
            "vlag.poweroff\n\n" for name, busy_ms in (("one", 2400), ("two", 1200)))
        run = self.boot(config, "--pcpus", "2", "--until", "vlag: console of vm", "--send",
                        r"\x01m", "--until", "^vlag: every VM has ended", stats=True,
                        files=vlagtest.guest_files() | {"folding.cpio": initramfs})
        self.assert_ok(run)
        # Both reported to the hypervisor, and no nonsense.
        for vm in run.stats["vms"]:
            self.assertGreater(vm["preferred_reports"], 1)
            self.assertEqual(vm["preferred_bad"], 0)
        return {name: "".join(line.split("| ", 1)[1] + "\n" for line in run.lines
                              if line.startswith(f"{name}| ")) for name in ("one", "two")}

    def check(self, text):
        """It folded onto one vCPU and unfolded at the end; the pinned task stayed."""
        sets = re.findall(r"prefers (\S+)", text)
        self.assertIn("0", sets, text)
        self.assertEqual(sets[-1], "0-1", text)
        self.assertIn("busy: pinned 1\n", text)
        self.assertIn("idle: pinned 1 free 0-1\n", text)
        self.assertIn("ended: pinned 1 free 0-1\n", text)


class Steald(FoldingTest):
    def test_both_fold_while_both_are_busy_and_unfold_when_one_is_idle(self):
        for text in self.fold().values():
            self.check(text)
            # Two busy VMs: half the time is stolen, far above 5 %.
            self.assertRegex(text, r"(?m)^steald: steal [2-6]\d\.\d\d %: prefers 0 \(", text)
            self.assertIn("steald: ended, everything is as it was\n", text)


@unittest.skipUnless((vlagtest.BUILD / "guest/bzImage-governor").exists(),
                     "no build/guest/bzImage-governor")
class Governor(FoldingTest):
    def test_the_kernels_governor_folds_and_unfolds(self):
        for text in self.fold("bzImage-governor", "steal_governor.interval_ms=200",
                              ",watch").values():
            self.check(text)
            self.assertIn("kernel: 0-1\n", text)


if __name__ == "__main__":
    unittest.main()
