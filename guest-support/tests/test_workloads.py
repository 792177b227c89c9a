# SPDX-License-Identifier: BSD-2-Clause
"""How load programs are taken out of their packages: ELF files, libraries, dependencies; without a
network."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from common import load_script
from guestlib import cache, debian, elf, workloads


@unittest.skipUnless(shutil.which("gcc"), "gcc is missing")
class Elf(unittest.TestCase):
    """A program that needs liba, which needs libb."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.compile("int b(void) { return 1; }", "libb.so.1.2.3", "-shared", "-Wl,-soname,libb.so.1")
        (self.folder / "libb.so.1").symlink_to("libb.so.1.2.3")
        self.compile("int b(void); int a(void) { return b(); }", "liba.so", "-shared",
                     "-Wl,-soname,liba.so", "libb.so.1")
        self.compile("int a(void); int main(void) { return a(); }", "program", "-L.",
                     "-Wl,-rpath-link,.", "liba.so")

    def compile(self, text, out, *options):
        done = subprocess.run(
            ["gcc", "-fPIC", "-nostartfiles" if "-shared" in options else "-O1", "-x", "c", "-",
             "-x", "none", *options, "-o", out],
            input=text, text=True, capture_output=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_program_names_its_loader_and_its_libraries(self):
        loader, names = elf.needed((self.folder / "program").read_bytes())
        self.assertEqual(loader, "/lib64/ld-linux-x86-64.so.2")
        self.assertEqual(names[0], "liba.so")

    def test_a_library_has_no_loader(self):
        loader, names = elf.needed((self.folder / "liba.so").read_bytes())
        self.assertIsNone(loader)
        self.assertIn("libb.so.1", names)

    def test_what_is_no_elf_file_is_an_error(self):
        for data in (b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01", elf.MAGIC + b"\xff" * 100):
            with self.assertRaises(ValueError):
                elf.needed(data)

    def library(self, name):
        path = self.folder / name
        if not path.exists():
            path.write_bytes((self.folder / "libb.so.1").read_bytes())  # libc and the loader
        return path.resolve()

    def test_libraries_of_libraries_are_found_under_the_names_that_are_asked_for(self):
        found = workloads.resolve(self.folder / "program", self.library)
        self.assertLessEqual(
            {"lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu/liba.so",
             "lib/x86_64-linux-gnu/libb.so.1"}, set(found))
        self.assertEqual(found["lib/x86_64-linux-gnu/libb.so.1"].name, "libb.so.1.2.3")


class Packages(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.packages = workloads.Packages(pathlib.Path(temporary.name))
        self.unpacked = []
        self.packages.unpack = self.unpack

    def unpack(self, name):
        """A package that holds the library of its own name, without the digits at the end."""
        self.unpacked.append(name)
        self.packages._seen.add(name)
        root = self.packages.folder / name
        root.mkdir()
        library = root / {"zlib1g": "libz.so.1"}.get(name, name.rstrip("0123456789-") + ".so")
        library.touch()
        self.packages._libraries[library.name] = library
        if name == "program":
            self.packages._waiting = ["python3", "zlib1g", "libfirst1", "libother2"]
        return root

    def test_the_package_with_the_librarys_name_comes_first(self):
        self.packages.unpack("program")
        self.assertEqual(self.packages.library("libother.so").name, "libother.so")
        self.assertEqual(self.unpacked, ["program", "libother2"])

    def test_then_the_others_each_once(self):
        self.packages.unpack("program")
        self.packages.library("libz.so.1")
        self.packages.library("libfirst.so")
        self.assertEqual(len(self.unpacked), len(set(self.unpacked)))

    def test_a_library_that_nobody_has_is_one_clear_error(self):
        self.packages.unpack("program")
        with self.assertRaisesRegex(cache.Error, "has the shared library libnone.so"):
            self.packages.library("libnone.so")


class Dbench(unittest.TestCase):
    def test_its_filler_files_are_left_out_with_all_that_is_done_to_them(self):
        lines = [
            b'NTCreateX "\\c\\filler.000" 0x40 0x2 9 NT_STATUS_OK\n', b"WriteX 9 0 1 1 NT_STATUS_OK\n",
            b"Close 9 NT_STATUS_OK\n", b'NTCreateX "\\c\\file" 0x40 0x2 9 NT_STATUS_OK\n',
            b"WriteX 9 0 2 2 NT_STATUS_OK\n", b'Unlink "\\c\\filler.000" 0x6 NT_STATUS_OK\n',
            b"Close 9 NT_STATUS_OK\n"]
        self.assertEqual(workloads.short_dbench_script(lines, 10), [lines[3], lines[4], lines[6]])
        self.assertEqual(workloads.short_dbench_script(lines, 2), [lines[3], lines[4]])


class Names(unittest.TestCase):
    def test_depends_fields_are_read(self):
        self.assertEqual(
            workloads.parse_depends("libc6 (>= 2.34), libluajit2-5.1-2 | libluajit-5.1-2, g++-1 "),
            ["libc6", "libluajit2-5.1-2", "g++-1"])
        self.assertEqual(workloads.parse_depends(""), [])

    def test_load_lists_name_what_there_is(self):
        script = load_script("build-initramfs")
        self.assertEqual(script.load_names("storms"), [])
        self.assertEqual(script.load_names("dbench,ipistorm,pigz"), ["dbench", "pigz"])
        self.assertEqual(script.load_names("all"), list(workloads.PROGRAMS))
        with self.assertRaisesRegex(cache.Error, "no workload 'hack': there are all, storms, hack"):
            script.load_names("hack")

    def test_one_answer_of_apt_is_enough_for_all_packages(self):
        calls = []

        def fake_run(command, **_):
            calls.append(command)
            text = "".join(f"'http://mirror/{name}.deb' {name}_1_amd64.deb 1 SHA256:{'0' * 64}\n"
                           for name in command[3:])
            return subprocess.CompletedProcess(command, 0, text, "")
        original = debian._run
        self.addCleanup(setattr, debian, "_run", original)
        debian._run = fake_run
        found = debian.find_all(["a", "b"])
        self.assertEqual([found[name].filename for name in "ab"], ["a_1_amd64.deb", "b_1_amd64.deb"])
        self.assertEqual(len(calls), 1)


if __name__ == "__main__":
    unittest.main()
