# SPDX-License-Identifier: BSD-2-Clause
"""For the system tests: runs a config in a whole machine by tools/vlag, and looks at what came out.

    class Boots(vlagtest.SystemTest):
        def test_a_shell_answers(self):
            run = self.boot(vlagtest.linux_vm(), "--until", "~ # ", "--send", "nproc\\n", ...)
            self.assert_ok(run)
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VLAG = ROOT / "tools" / "vlag"
BUILD = ROOT / "build"
LOADER = BUILD / "BOOTX64.EFI"
TIMEOUT = 600  # host seconds, for a machine that hangs; never a figure to measure by


class Run:
    """What `vlag run` gave: @status, @console (standard output), @messages (standard error)."""

    def __init__(self, status, console, messages, folder):
        self.status, self.console, self.messages = status, console, messages
        self.folder = folder

    @property
    def stats(self):
        """The statistics, of a run with stats=True."""
        return json.loads((self.folder / "stats.json").read_text(encoding="utf-8"))

    @property
    def ticks(self):
        """How long Bochs ran; exact where the machine ended by itself."""
        found = re.search(r"([\d,]+) ticks", self.messages)
        return int(found.group(1).replace(",", "")) if found else None

    def describe(self):
        return (f"exit status {self.status}\n--- messages\n{self.messages}"
                f"--- end of the console\n{self.console[-3000:]}")


def vlag(*args, timeout=TIMEOUT + 60, env=None):
    """Runs tools/vlag: a subprocess.CompletedProcess with text."""
    return subprocess.run([str(VLAG), *map(str, args)], stdin=subprocess.DEVNULL, text=True,
                          errors="replace", capture_output=True, check=False, timeout=timeout,
                          env=dict(os.environ, **(env or {})))


def linux_vm(name="linux", cmdline="console=ttyS0,115200 quiet", kernel="bzImage", **keys):
    """The text of a [vm] section with the small kernel; @keys are further lines."""
    lines = [f"[vm {name}]", f"kernel = {kernel}", "initrd = initramfs.cpio",
             f"cmdline = {cmdline}"]
    return "\n".join(lines + [f"{key} = {value}" for key, value in keys.items()]) + "\n\n"


def guest_files():
    """The built guests by the names that configs in tests use: pass them as files=."""
    found = {}
    for folder in (BUILD / "guest", BUILD / "tests/guests"):
        if folder.is_dir():
            found.update({path.name: path for path in folder.iterdir() if path.is_file()})
    return found


class SystemTest(unittest.TestCase):
    """A test with a folder of its own that is removed afterwards."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vlag-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write_config(self, text, files=None):
        """Writes vlag.cfg and @files (name -> path of what it links to, or bytes) side by side."""
        for name, content in (guest_files() if files is None else files).items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            elif not path.exists():
                path.symlink_to(content)
        path = self.folder / "vlag.cfg"
        path.write_text(text, encoding="utf-8")
        return path

    def boot(self, config, *args, files=None, platform="bochs", stats=False, timeout=TIMEOUT,
             efi=LOADER):
        """Runs the config's text with further arguments of `vlag run`: a Run."""
        path = self.write_config(config, files)
        more = ["--stats", self.folder / "stats.json"] if stats else []
        done = vlag("run", "-c", path, "--efi", efi, "--platform", platform, "--timeout", timeout,
                    *args, *more, timeout=timeout + 60)
        return Run(done.returncode, done.stdout, done.stderr, self.folder)

    def assert_ok(self, run):
        self.assertEqual(run.status, 0, run.describe())

    def assert_console(self, run, regex):
        """A line of the console matches."""
        self.assertRegex(run.console, "(?m)" + regex, run.describe())
