# SPDX-License-Identifier: BSD-2-Clause
"""For the system tests: runs a config in a whole machine by tools/vlag, and looks at what came out.

    class Boots(vlagtest.SystemTest):
        def test_a_shell_answers(self):
            run = self.boot(vlagtest.linux_vm(), "--until", "guest# ", "--send", "nproc\\n", ...)
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
KEEP = os.environ.get("VLAG_TEST_KEEP")  # a folder: what tests write stays there, for debugging
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_=>])")


class Run:
    """What `vlag run` gave: @status, @console (standard output), @messages (standard error), and
    @lines, the lines of the console as the machine sent them, answers to --cmd not among them.
    """

    def __init__(self, status, console, messages, folder):
        self.status, self.console, self.messages = status, console, messages
        self.folder = folder
        log = (folder / "console.log").read_text(encoding="utf-8", errors="replace")
        self.lines = _ESCAPE.sub("", log).replace("\r", "").split("\n")

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
        return (f"exit status {self.status}\n--- end of the console\n{self.console[-3000:]}"
                f"\n--- messages\n{self.messages}")


def vlag(*args, timeout=TIMEOUT + 60, env=None):
    """Runs tools/vlag: a subprocess.CompletedProcess with text."""
    return subprocess.run([str(VLAG), *map(str, args)], stdin=subprocess.DEVNULL, text=True,
                          errors="replace", capture_output=True, check=False, timeout=timeout,
                          env=dict(os.environ, **(env or {})))


def linux_vm(name="linux", cmdline="console=ttyS0,115200 quiet", kernel="bzImage",
             initrd="initramfs.cpio", **keys):
    """The text of a [vm] section with the small kernel; @keys are further lines."""
    lines = [f"[vm {name}]", f"kernel = {kernel}", f"initrd = {initrd}", f"cmdline = {cmdline}"]
    return "\n".join(lines + [f"{key} = {value}" for key, value in keys.items()]) + "\n\n"


def storms_initramfs(path, **scripts):
    """Builds an initramfs with our load programs and @scripts, name in / -> file: its path."""
    more = [part for name, file in scripts.items() for part in ("--with", f"{file}:/{name}")]
    subprocess.run([ROOT / "guest-support/build-initramfs", "--load", "storms", *more, "--out", path],
                   check=True, capture_output=True)
    return path


def guest_files():
    """The built guests by the names that configs in tests use: pass them as files=."""
    found = {}
    for folder in (BUILD / "guest", BUILD / "tests/guests"):
        if folder.is_dir():
            found.update({path.name: path for path in folder.iterdir() if path.is_file()})
    return found


def make_folder(test, cleanup):
    """A folder for @test, an id; @cleanup takes the function that removes it."""
    if KEEP:
        folder = pathlib.Path(KEEP).resolve() / test
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder
    folder = pathlib.Path(tempfile.mkdtemp(prefix="vlag-test-"))
    cleanup(shutil.rmtree, folder, ignore_errors=True)
    return folder


def write_config(folder, text, files=None):
    """Writes vlag.cfg and @files (name -> path of what it links to, or bytes) into @folder."""
    for name, content in (guest_files() if files is None else files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif not path.exists():
            path.symlink_to(content)
    path = folder / "vlag.cfg"
    path.write_text(text, encoding="utf-8")
    return path


def boot(folder, config, *args, files=None, platform="bochs", stats=False, timeout=TIMEOUT,
         efi=LOADER):
    """Runs the config's text in @folder with further arguments of `vlag run`: a Run."""
    path = write_config(folder, config, files)
    more = ["--stats", folder / "stats.json"] if stats else []
    more += ["--keep", folder / "run"] if KEEP else []
    (folder / "console.log").touch()  # also where the tool fails before it opens it
    done = vlag("run", "-c", path, "--efi", efi, "--platform", platform, "--timeout", timeout,
                "--log", folder / "console.log", *args, *more, timeout=timeout + 60)
    return Run(done.returncode, done.stdout, done.stderr, folder)


class SystemTest(unittest.TestCase):
    """A test with a folder of its own that is removed afterwards."""

    def setUp(self):
        self.folder = make_folder(self.id(), self.addCleanup)

    def write_config(self, text, files=None):
        """As write_config(), in the test's folder."""
        return write_config(self.folder, text, files)

    def boot(self, config, *args, **more):
        """As boot(), in the test's folder."""
        return boot(self.folder, config, *args, **more)

    def assert_ok(self, run):
        self.assertEqual(run.status, 0, run.describe())

    def assert_console(self, run, regex):
        """A line of the console matches."""
        self.assertRegex(run.console, "(?m)" + regex, run.describe())


class BootedOnce(SystemTest):
    """One machine for all tests of a class, as firmware costs more than most guests: each test
    looks at what came out of it. A subclass has @config, perhaps @args, @options of boot() and
    @files beside the built guests; where it says @storms, there is a storms.cpio.
    """

    config, args, options, files, storms = "", (), {}, {}, False

    @classmethod
    def setUpClass(cls):
        folder = make_folder(cls.__name__, cls.addClassCleanup)
        files = guest_files() | cls.files
        if cls.storms:
            files["storms.cpio"] = storms_initramfs(folder / "storms.cpio")
        cls.run_of_class = boot(folder, cls.config, *cls.args, files=files, **cls.options)

    def setUp(self):
        self.machine = self.run_of_class

    def assert_line(self, regex):
        """Exactly one line of the console matches as a whole."""
        lines = [line for line in self.machine.lines if re.fullmatch(regex, line)]
        self.assertEqual(len(lines), 1, f"{len(lines)} lines match {regex!r}\n"
                         f"{self.machine.describe()}")

    def assert_ended(self, vm, how):
        """@vm ended once, as the regular expression @how says."""
        self.assert_line(rf"vlag: vm {vm}: ended: {how}")
