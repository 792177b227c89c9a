# SPDX-License-Identifier: BSD-2-Clause
"""The pieces of tools/vlag that need no machine: config, layout of the image, keys, control line."""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS))

from vlaglib import cfg, console, control, image, platforms, run, terminal  # noqa: E402

TEXT = """\
# a comment with kernel = no
[hypervisor]
console = com1

[vm a]
kernel = guest/bzImage
initrd = /abs/rd
modules = ../m1, m2 ,,
cmdline = kernel = x
memory = 1G
[vm b]
kernel = guest/bzImage
"""


class ConfigTest(unittest.TestCase):
    def test_files_are_those_of_vms_each_once(self):
        self.assertEqual(cfg.Config(TEXT).files(), ["guest/bzImage", "/abs/rd", "../m1", "m2"])

    def test_nothing_changes_by_itself(self):
        for text in (TEXT, TEXT.replace("\n", "\r\n"), "", "no newline", "\ufeff[vm a]\nkernel = k"):
            self.assertEqual(cfg.Config(text).text(), text)

    def test_renaming_touches_only_values(self):
        config = cfg.Config(TEXT)
        config.rename({"/abs/rd": "guest/rd", "m2": "guest/m2"})
        self.assertEqual(config.text(), TEXT.replace("/abs/rd", "guest/rd")
                         .replace("../m1, m2 ,,", "../m1, guest/m2"))

    def test_renaming_keeps_crlf(self):
        config = cfg.Config("[vm a]\r\nkernel = /k\r\n")
        config.rename({"/k": "guest/k"})
        self.assertEqual(config.text(), "[vm a]\r\nkernel = guest/k\r\n")

    def test_setting_replaces_a_value(self):
        config = cfg.Config(TEXT)
        config.set("hypervisor", "console", "com2")
        self.assertEqual(config.text(), TEXT.replace("console = com1", "console = com2"))
        self.assertEqual(config.get("hypervisor", "console"), "com2")

    def test_a_new_key_moves_no_line(self):
        config = cfg.Config(TEXT)
        config.set("hypervisor", "control", "com2")
        self.assertEqual(config.get("hypervisor", "control"), "com2")
        before, after = TEXT.split("\n"), config.text().split("\n")
        self.assertEqual([n for n in range(len(before)) if before[n] != after[n]], [3])

    def test_a_new_key_without_its_section(self):
        config = cfg.Config("[vm a]\nkernel = k")
        config.set("hypervisor", "control", "com2")
        config.set("hypervisor", "when_done", "monitor")
        self.assertEqual(config.text(), "[vm a]\nkernel = k\n\n[hypervisor]\ncontrol = com2\n"
                                        "when_done = monitor\n")

    def test_a_new_key_where_no_line_is_free(self):
        config = cfg.Config("[hypervisor]\n[vm a]\nkernel = k\n")
        config.set("hypervisor", "control", "com2")
        self.assertEqual(config.text(), "[hypervisor]\ncontrol = com2\n[vm a]\nkernel = k\n")

    def test_a_byte_order_mark_hides_no_section(self):
        config = cfg.Config("\ufeff[hypervisor]\nconsole = com1\n")
        config.set("hypervisor", "console", "com2")
        self.assertEqual(config.text(), "\ufeff[hypervisor]\nconsole = com2\n")

    def test_memory_is_summed(self):
        self.assertEqual(cfg.Config(TEXT).memory(), (1024 + 128) << 20)


class LayoutTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vlag-layout-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.warnings = []

    def plan(self, paths, make=None):
        """Lays out a config with these kernels: (files of the image, paths in its config)."""
        for path in paths if make is None else make:
            target = self.folder / path.replace("\\", "/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.encode())
        text = "".join(f"[vm v{n}]\nkernel = {path}\n" for n, path in enumerate(paths))
        config = cfg.Config(text)
        layout = image.plan(config, self.folder, pathlib.Path("/loader"), self.warnings.append)
        names = [line.value for line in config.keys()]
        return {name: source for name, source in layout.files.items()
                if name not in (image.LOADER, "vlag.cfg")}, names

    def test_relative_paths_stay(self):
        files, names = self.plan(["k", "a/b/k", "./x/k"])
        self.assertEqual(sorted(files), ["a/b/k", "k", "x/k"])
        self.assertEqual(names, ["k", "a/b/k", "./x/k"])

    def test_backslashes_are_folders(self):
        files, names = self.plan(["a\\k"])
        self.assertEqual((list(files), names), (["a/k"], ["a\\k"]))

    def test_outside_paths_go_under_guest(self):
        outside = self.folder / "outside"
        inner = self.folder / "inner"
        outside.write_bytes(b"x")
        inner.mkdir()
        self.folder = inner
        files, names = self.plan(["../outside", str(outside)], make=[])
        self.assertEqual((list(files), names), (["guest/outside"], ["guest/outside"] * 2))

    def test_names_that_collide_are_told_apart(self):
        files, names = self.plan(["one/k", "ONE/K", "guest/k"])
        self.assertEqual(names, ["one/k", "guest/K", "guest/2-k"])
        self.assertEqual(files["guest/2-k"].read_bytes(), b"guest/k")
        self.assertEqual(files["guest/K"].read_bytes(), b"ONE/K")

    def test_the_loader_and_the_config_are_not_replaced(self):
        _, names = self.plan(["EFI/BOOT/bootx64.efi", "VLAG.CFG", "efi/boot/other"])
        self.assertEqual(names, ["guest/bootx64.efi", "guest/VLAG.CFG", "efi/boot/other"])
        _, names = self.plan(["EFI"], make=[])
        self.assertEqual(names, ["guest/EFI"])

    def test_names_that_fat_cannot_hold(self):
        _, names = self.plan(["a:b", "dir./k", "what?"])
        self.assertEqual(names, ["guest/a_b", "guest/k", "guest/what_"])

    def test_missing_files_are_left_out_with_a_warning(self):
        files, names = self.plan(["there", "missing"], make=["there"])
        self.assertEqual((list(files), names), (["there"], ["there", "missing"]))
        self.assertEqual(len(self.warnings), 1)
        self.assertIn("missing: no such file", self.warnings[0])

    def test_a_folder_is_no_file(self):
        self.plan(["folder"], make=["folder/x"])
        self.assertIn("is a folder", self.warnings[0])


class KeysTest(unittest.TestCase):
    def test_keys_go_through(self):
        self.assertEqual(terminal.Keys().feed(b"ls\r\x03\x1b[A"), b"ls\r\x03\x1b[A")

    def test_the_prefix_is_the_hypervisors(self):
        keys = terminal.Keys()
        self.assertEqual(keys.feed(b"a\x01"), b"a")
        self.assertEqual(keys.feed(b"m\x01\x01"), b"\x01m\x01\x01")
        self.assertFalse(keys.quit)

    def test_ctrl_a_x_quits(self):
        keys = terminal.Keys()
        self.assertEqual(keys.feed(b"ab\x01xcd"), b"ab")
        self.assertTrue(keys.quit)


class ControlTest(unittest.TestCase):
    def test_nothing_counts_before_ready(self):
        line = control.Control()
        line.feed(b"\x1b[2Jfirmware\r\n.ok\n")
        self.assertFalse(line.ready)
        line.feed(b".ready vlag 1.2\n")
        self.assertEqual(line.version, "1.2")
        self.assertIsNone(line.answer())

    def test_ready_behind_firmwares_escapes(self):
        line = control.Control()
        line.feed(b"\x1b[01;01H.ready vlag 1.2\n")
        self.assertTrue(line.ready)

    def test_answers_in_pieces(self):
        line = control.Control()
        for byte in b".ready vlag 1\na\n..b\n.\n.ok\n.error why not\n.error\n":
            line.feed(bytes((byte,)))
        first, second, third = line.answer(), line.answer(), line.answer()
        self.assertEqual((first.lines, first.error), (["a", ".b", "."], None))
        self.assertEqual((second.lines, second.error), ([], "why not"))
        self.assertEqual(third.error, "no reason given")
        self.assertIsNone(line.answer())


class ConsoleTest(unittest.TestCase):
    def test_the_first_line_of_the_hypervisor_begins_the_output(self):
        one = console.Console()
        self.assertEqual(one.feed(b"BdsDxe: starting\r\n\x1b[2J"), b"")
        self.assertEqual(one.feed(b"\x1b[01;01Hvl"), b"")
        self.assertEqual(one.feed(b"ag 1.0\r\n"), b"vlag 1.0\r\n")
        self.assertEqual(one.feed(b"\xff\x00"), b"\xff\x00")

    def test_firmware_that_names_the_volume_is_no_beginning(self):
        one = console.Console()
        self.assertEqual(one.feed(b"BdsDxe: loading vlag.efi\r\n"), b"")
        self.assertFalse(one.started)


class RunOptionsTest(unittest.TestCase):
    def test_escapes(self):
        self.assertEqual(run.unescape(r"ls\n\x03\\n\q\e[A"), "ls\n\x03\\n\\q\x1b[A")

    def vlag(self, *args):
        done = subprocess.run([str(TOOLS / "vlag"), *args], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False)
        return done.returncode, done.stderr

    def test_bad_usage_is_one_clear_line(self):
        for args, words in ((("run", "-c", "x", "--until", "("), "not a regular expression"),
                            (("run", "-c", "x", "--cmd", " "), "one line"),
                            (("run", "-c", "x", "--pcpus", "0"), "0 is not in 1 to"),
                            (("run", "-c", "/nowhere/x.cfg", "--platform", "bochs"),
                             "/nowhere/x.cfg: no such file"),
                            (("image", "-c", __file__, "-o", "x", "--efi", "/nowhere/x.efi"),
                             "/nowhere/x.efi: no such file"),
                            (("image", "-c", __file__, "-o", "/nowhere/x", "--efi", __file__),
                             "/nowhere/x: no such file"),
                            (("image", "-c", __file__, "-o", "/", "--efi", __file__),
                             "name a file, and copy it to a device"),
                            (("run",), "required")):
            status, message = self.vlag(*args)
            self.assertEqual(status, 2, message)
            self.assertIn(words, message)
            self.assertNotIn("Traceback", message)


    def test_an_image_does_not_replace_what_is_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            device = pathlib.Path(folder, "device")
            os.mkfifo(device)
            status, message = self.vlag("image", "-c", __file__, "-o", str(device), "--efi",
                                        __file__)
            self.assertEqual(status, 2, message)
            self.assertIn(f"{device}: is a folder or a device", message)
            self.assertTrue(device.is_fifo())


class PlatformsTest(unittest.TestCase):
    def test_auto_says_why(self):
        platform, why = platforms.choose("auto")
        self.assertIn(platform.name, ("bochs", "qemu"))
        self.assertTrue(why)

    def test_nested_kvm_is_used_only_where_it_is_on(self):
        with tempfile.NamedTemporaryFile("w+") as nested, tempfile.NamedTemporaryFile() as kvm, \
                tempfile.TemporaryDirectory() as folder:
            qemu = pathlib.Path(folder, "qemu-system-x86_64")
            qemu.write_text("#!/bin/sh\n", encoding="ascii")
            qemu.chmod(0o755)
            path, os.environ["PATH"] = os.environ["PATH"], folder
            try:
                for text, good in (("Y\n", True), ("1\n", True), ("N\n", False), ("0\n", False)):
                    nested.seek(0)
                    nested.truncate()
                    nested.write(text)
                    nested.flush()
                    why = platforms._why_not_nested_kvm(kvm.name, nested.name)
                    self.assertEqual(why is None, good, why)
                self.assertIn("absent", platforms._why_not_nested_kvm(kvm.name, "/nowhere"))
                self.assertIn("/nowhere", platforms._why_not_nested_kvm("/nowhere", nested.name))
            finally:
                os.environ["PATH"] = path


class DepsTest(unittest.TestCase):
    """tools/deps with a dpkg and an apt of our own."""

    def deps(self, installed, *groups, root=True, apt_works=True):
        """Runs it where @installed packages are there: (status, messages, what apt was asked)."""
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "apt.log")
            listed = "".join(f"ii  {name}\n" for name in installed)
            for name, text in (("dpkg-query", f"cat <<'END'\n{listed}END\nexit 1"),
                               ("id", f"echo {0 if root else 1000}"),
                               ("sudo", "exit 1"),
                               ("apt-get", f"echo \"$*\" >>{log}\n" +
                                ("" if apt_works else "echo no network; exit 100"))):
                path = pathlib.Path(folder, name)
                path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
                path.chmod(path.stat().st_mode | stat.S_IXUSR)
            done = subprocess.run([str(TOOLS / "deps"), *groups], capture_output=True, text=True,
                                  check=False, stdin=subprocess.DEVNULL,
                                  env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"))
            asked = log.read_text(encoding="ascii").splitlines() if log.exists() else []
        return done.returncode, done.stdout + done.stderr, asked

    RUN = ("bochs", "bochsbios", "vgabios", "ovmf", "qemu-system-x86")

    def test_silent_where_all_is_there(self):
        self.assertEqual(self.deps(self.RUN, "run"), (0, "", []))

    def test_only_what_is_missing_is_installed(self):
        status, _, asked = self.deps([name for name in self.RUN if name != "ovmf"], "run")
        self.assertEqual(status, 0)
        self.assertEqual(asked[0].split()[0], "update")
        self.assertEqual(asked[1].split()[0], "install")
        self.assertEqual(asked[1].split()[-1], "ovmf")
        self.assertNotIn("bochs", asked[1])

    def test_a_name_inside_another_is_not_taken_for_it(self):
        _, _, asked = self.deps([name for name in self.RUN if name != "bochs"], "run")
        self.assertEqual(asked[1].split()[-1], "bochs")

    def test_without_rights_one_line_says_what_to_run(self):
        status, messages, asked = self.deps([], "run", root=False)
        self.assertEqual((status, asked), (1, []))
        self.assertEqual(messages.count("\n"), 1)
        self.assertIn("apt-get install -y --no-install-recommends " + " ".join(self.RUN), messages)

    def test_a_failing_apt_is_a_failure(self):
        status, messages, _ = self.deps([], "run", apt_works=False)
        self.assertEqual(status, 1)
        self.assertIn("no network", messages)

    def test_an_unknown_group_is_named(self):
        self.assertEqual(self.deps([], "rnu")[:2],
                         (2, "tools/deps: unknown group rnu; there are build, run, test, nested, long\n"))


if __name__ == "__main__":
    unittest.main()
