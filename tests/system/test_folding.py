# SPDX-License-Identifier: BSD-2-Clause
"""Guests that fold: two VMs with two vCPUs each share two pCPUs, and steald on the stock kernel sees
the steal time that the hypervisor tells."""

import pathlib
import subprocess
import unittest

import vlagtest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Folding(vlagtest.SystemTest):
    def setUp(self):
        super().setUp()
        self.initramfs = self.folder / "folding.cpio"
        subprocess.run([ROOT / "guest-support/build-initramfs", "--load", "storms", "--with",
                        f"{HERE / 'folding.sh'}:/folding.sh", "--out", self.initramfs], check=True,
                       capture_output=True)

    def vm(self, name, busy_ms):
        return (f"[vm {name}]\nkernel = bzImage\ninitrd = folding.cpio\nvcpus = 2\nmemory = 64M\n"
                f"cmdline = console=ttyS0,115200 quiet vlag.run=/folding.sh,{busy_ms} "
                "vlag.poweroff\n\n")

    def test_both_fold_while_both_are_busy_and_unfold_when_one_is_idle(self):
        files = vlagtest.guest_files() | {"folding.cpio": self.initramfs}
        run = self.boot(self.vm("one", 2400) + self.vm("two", 1200), "--pcpus", "2",
                        "--until", "vlag: console of vm", "--send", r"\x01m",
                        "--until", "^vlag: every VM has ended", "--cmd", "vm", files=files)
        self.assert_ok(run)
        for name in ("one", "two"):
            said = [line.split("| ", 1)[1] for line in run.lines if line.startswith(f"{name}| ")]
            text = "\n".join(said)
            # Two busy VMs: half the time is stolen, far above 5 %.
            self.assertRegex(text, r"(?m)^steald: steal [2-6]\d\.\d\d %: prefers 0 \(", text)
            sets = [line.split("prefers ")[1].split()[0] for line in said if "prefers" in line]
            self.assertEqual(sets[-1], "0-1", text)
            self.assertIn("busy: pinned 1\n", text)
            self.assertIn("idle: pinned 1 free 0-1\n", text)
            self.assertIn("ended: pinned 1 free 0-1", text)
            self.assertIn("steald: ended, everything is as it was", text)
            self.assertNotIn("reports nothing", text)


if __name__ == "__main__":
    unittest.main()
