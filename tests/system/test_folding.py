# SPDX-License-Identifier: BSD-2-Clause
"""Guests that fold: two VMs with two vCPUs each share two pCPUs, and see the steal time that the
hypervisor tells. steald on the stock kernel; and the kernel's own governor, where a kernel with the
preferred-CPU series was built (guest-support/README.md)."""

import pathlib
import re
import unittest

import vlagtest

HERE = pathlib.Path(__file__).resolve().parent
GUEST = vlagtest.BUILD / "guest"
MODULE = GUEST / "modules/steal_governor.ko"


class FoldingTest(vlagtest.SystemTest):
    def run_both(self, script, words=("", ""), kernel="bzImage", cmdline="", files=None):
        """VM -> the text of its lines. Each runs @script, a file beside this one, with its own of the
        @words; @files (name in / -> path) are there too."""
        initramfs = vlagtest.storms_initramfs(self.folder / "folding.cpio",
                                              **{script: HERE / script}, **(files or {}))
        config = "".join(
            f"[vm {name}]\nkernel = {kernel}\ninitrd = folding.cpio\nvcpus = 2\nmemory = 64M\n"
            f"cmdline = console=ttyS0,115200 quiet {cmdline} vlag.run=/{script}{more} "
            "vlag.poweroff\n\n" for name, more in zip(("one", "two"), words))
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

    def fold(self, kernel="bzImage", cmdline="", more=""):
        """As run_both(): one is busy for 2.4 s of its time, two for 1.2 s."""
        return self.run_both("folding.sh", (f",2400{more}", f",1200{more}"), kernel, cmdline)

    def check(self, text):
        """It folded onto one vCPU and unfolded later; the pinned task stayed."""
        sets = re.findall(r"prefers (\S+)", text)
        self.assertIn("0", sets, text)
        self.assertIn("0-1", sets[sets.index("0"):], text)
        self.assertIn("busy: pinned 1\n", text)
        self.assertIn("idle: pinned 1 free 0-1\n", text)
        self.assertIn("ended: pinned 1 free 0-1\n", text)


class Steald(FoldingTest):
    def test_both_fold_while_both_are_busy_and_unfold_when_one_is_idle(self):
        for text in self.fold().values():
            self.check(text)
            # Two busy VMs: half the time is stolen, far above 5 %.
            self.assertRegex(text, r"(?m)^steald: steal [2-6]\d\.\d\d %: prefers 0 \(", text)
            self.assertEqual(re.findall(r"prefers (\S+)", text)[-1], "0-1", text)
            self.assertIn("steald: ended, everything is as it was\n", text)


@unittest.skipUnless((GUEST / "bzImage-governor").exists(),
                     "no build/guest/bzImage-governor: guest-support/README.md, Guests that fold")
class Governor(FoldingTest):
    def test_the_kernels_governor_folds_and_unfolds(self):
        for text in self.fold("bzImage-governor", "steal_governor.interval_ms=200",
                              ",watch").values():
            self.check(text)
            self.assertIn("kernel: 0-1\n", text)


@unittest.skipUnless((GUEST / "bzImage-modules").exists() and MODULE.exists(),
                     "no build/guest/bzImage-modules or no build/guest/modules/steal_governor.ko: "
                     "guest-support/README.md, Guests that fold")
class GovernorModule(FoldingTest):
    def test_unloading_it_while_folded_restores_all_cpus_at_once(self):
        for text in self.run_both("governor_module.sh", kernel="bzImage-modules",
                                  files={MODULE.name: MODULE}).values():
            states = dict(re.findall(r"(?m)^(\w+): preferred (\S+) pinned 1 on 1 free 0-1 on", text))
            self.assertEqual(states, {
                "before": "0-1",     # not loaded
                "folded": "0",       # two busy VMs
                "unloaded": "0-1",   # as soon as rmmod is back
                "on": "0-1",         # half a second later, as busy as before
                "unwilling": "0-1",  # loaded with a threshold that is never reached
                "again": "0",        # with the default, of the same steal
                "after": "0-1"}, text)
            self.assertIn("parameters: 100 9999\n", text)
            # Preferring is not only a word: the free tasks were on vCPU 0, and spread afterwards.
            self.assertRegex(text, r"(?m)^folded: .* on 0 0 0$", text)
            self.assertRegex(text, r"(?m)^on: .* free 0-1 on [01 ]*1", text)


if __name__ == "__main__":
    unittest.main()
