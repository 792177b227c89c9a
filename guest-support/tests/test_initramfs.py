# SPDX-License-Identifier: BSD-2-Clause
"""What guest-support is made of, tested without a network, a kernel source or a virtual machine:
python3 -m unittest discover -s guest-support/tests"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from common import ROOM, load_script
from guestlib import cache, debian, kconfig, newc, patches


class TemporaryCache(unittest.TestCase):
    """Each test has an empty cache and an empty folder of its own."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        old = os.environ.get("VLAG_CACHE")
        os.environ["VLAG_CACHE"] = str(self.folder / "cache")
        self.addCleanup(
            lambda: os.environ.pop("VLAG_CACHE")
            if old is None
            else os.environ.update(VLAG_CACHE=old)
        )


def sample_archive():
    archive = newc.Archive()
    archive.file("/bin/tool", b"\x7fELF tool", 0o755)
    archive.character_device("/dev/console", 5, 1)
    archive.symlink("/bin/sh", "tool")
    archive.file("/a/deep/path/file", b"x" * 5)
    archive.file("/empty", b"")
    return archive


class NewcTest(unittest.TestCase):
    def test_first_header_is_what_the_format_says(self):
        archive = newc.Archive()
        archive.file("f", b"abc", 0o644)
        data = archive.tobytes()
        # magic, ino, mode, uid, gid, nlink, mtime, size, dev, rdev, length of "f\0", check
        self.assertEqual(
            data[:110],
            b"070701"
            b"00000001"
            b"000081A4"
            b"00000000"
            b"00000000"
            b"00000001"
            b"00000000"
            b"00000003"
            b"00000000"
            b"00000000"
            b"00000000"
            b"00000000"
            b"00000002"
            b"00000000",
        )
        self.assertEqual(data[110:120], b"f\0abc\0" + b"0707")
        self.assertIn(b"TRAILER!!!\0", data)
        self.assertEqual(len(data) % 4, 0)

    def test_same_content_in_another_order_gives_the_same_bytes(self):
        archive = newc.Archive()
        archive.file("/empty", b"")
        archive.file("/a/deep/path/file", b"x" * 5)
        archive.symlink("/bin/sh", "tool")
        archive.character_device("/dev/console", 5, 1)
        archive.file("/bin/tool", b"\x7fELF tool", 0o755)
        self.assertEqual(archive.tobytes(), sample_archive().tobytes())

    def test_folders_come_before_their_content(self):
        archive = newc.Archive()
        archive.file("/a/b", b"")
        archive.file("/a-b", b"")
        archive.directory("/a")
        data = archive.tobytes()
        self.assertLess(data.index(b"a\0"), data.index(b"a/b\0"))

    @unittest.skipUnless(shutil.which("cpio"), "cpio is not installed")
    def test_cpio_reads_it(self):
        listing = (
            subprocess.run(
                ["cpio", "-tv", "--quiet"],
                input=sample_archive().tobytes(),
                check=True,
                capture_output=True,
            )
            .stdout.decode()
            .splitlines()
        )
        names = [line.split("1970 ")[1] for line in listing]
        self.assertEqual(
            names,
            [
                "a",
                "a/deep",
                "a/deep/path",
                "a/deep/path/file",
                "bin",
                "bin/sh -> tool",
                "bin/tool",
                "dev",
                "dev/console",
                "empty",
            ],
        )
        self.assertRegex(listing[8], r"^crw------- .* 5, +1 ")
        self.assertRegex(listing[6], r"^-rwxr-xr-x ")

    def test_a_path_twice_is_refused(self):
        archive = sample_archive()
        with self.assertRaisesRegex(ValueError, "'/bin/sh' is in the initramfs twice"):
            archive.file("bin/sh", b"")

    def test_a_path_below_a_file_is_refused(self):
        archive = sample_archive()
        with self.assertRaisesRegex(ValueError, "below '/empty', which is no folder"):
            archive.file("/empty/file", b"")

    def test_paths_that_leave_the_archive_are_refused(self):
        for path in ("", "/", "../x", "/a/../../x"):
            with self.assertRaises(ValueError, msg=path):
                newc.Archive().file(path, b"")


class CacheTest(TemporaryCache):
    def test_key_depends_on_every_part_and_on_no_order(self):
        parts = {"source": "linux 6.1", "fragment": "CONFIG_SMP=y\n"}
        self.assertEqual(cache.key(parts), cache.key(dict(reversed(parts.items()))))
        for name in parts:
            self.assertNotEqual(cache.key(parts), cache.key({**parts, name: parts[name] + "x"}))
        self.assertNotEqual(cache.key(parts), cache.key({**parts, "patch 0": b""}))

    def test_text_cannot_move_between_parts(self):
        self.assertNotEqual(cache.key({"a": "12", "b": "3"}), cache.key({"a": "1", "b": "23"}))

    def test_an_entry_is_made_once(self):
        calls = []

        def make(folder):
            calls.append(folder)
            (folder / "file").write_text("content")

        first = cache.entry("kind", "name", make)
        second = cache.entry("kind", "name", make)
        self.assertEqual((first, len(calls)), (second, 1))
        self.assertEqual((first / "file").read_text(), "content")

    def test_an_interrupted_entry_leaves_nothing(self):
        def make(folder):
            (folder / "half").write_text("half")
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            cache.entry("kind", "name", make)
        self.assertEqual(list((cache.root() / "kind").iterdir()), [])

    def test_what_a_killed_call_left_is_swept_away(self):
        left = cache.root() / "kind" / ".other.partial"
        left.mkdir(parents=True)
        (left / "half").write_text("half")
        cache.entry("kind", "name", lambda folder: None)
        self.assertEqual([path.name for path in (cache.root() / "kind").iterdir()], ["name"])

    def test_what_a_running_call_makes_is_left_alone(self):
        left = cache.root() / "kind" / ".other.partial"
        left.mkdir(parents=True)
        with cache.locked("kind-other"):
            cache.entry("kind", "name", lambda folder: None)
        self.assertTrue(left.is_dir())

    def test_a_cache_that_cannot_be_made_is_one_clear_error(self):
        (self.folder / "file").write_text("")
        os.environ["VLAG_CACHE"] = str(self.folder / "file" / "cache")
        with self.assertRaisesRegex(cache.Error, "set VLAG_CACHE to a folder that can be written"):
            cache.root()


class KernelKeyTest(TemporaryCache):
    """The key of a kernel changes exactly when the kernel would."""

    def setUp(self):
        super().setUp()
        self.script = load_script("build-kernel")
        self.tree = self.folder / "linux"
        (self.tree / "arch/x86").mkdir(parents=True)
        (self.tree / "Kconfig").write_text("mainmenu")
        (self.tree / ".git").mkdir()

    def key(self, fragment="CONFIG_SMP=y\n", series=()):
        return cache.key(
            self.script.cache_parts(self.script.open_source(str(self.tree), None), fragment, series)
        )

    def test_the_same_content_has_the_same_key(self):
        self.assertEqual(self.key(), self.key())

    def test_source_fragment_and_patches_count(self):
        old = self.key()
        self.assertNotEqual(old, self.key(fragment="CONFIG_SMP=n\n"))
        one, other = patches.Patch("1", b"one"), patches.Patch("2", b"two")
        self.assertNotEqual(old, self.key(series=[one]))
        self.assertNotEqual(self.key(series=[one, other]), self.key(series=[other, one]))
        (self.tree / "init.c").write_text("int main;")
        self.assertNotEqual(old, self.key())

    def test_git_housekeeping_does_not_count(self):
        old = self.key()
        (self.tree / ".git/index").write_text("x")
        self.assertEqual(old, self.key())

    def test_what_is_no_source_is_one_clear_error(self):
        with self.assertRaisesRegex(cache.Error, "is no Linux source tree"):
            self.script.open_source(str(self.folder), None)
        with self.assertRaisesRegex(
            cache.Error, "a folder, a tarball, or a Debian package linux-source-X.Y"
        ):
            self.script.open_source("linux-sauce-6.1", None)

    def test_a_bad_fragment_names_file_and_line(self):
        fragment = self.folder / "my.config"
        fragment.write_text("# comment\nCONFIG_SMP=y\nSMP=y\n")
        with self.assertRaisesRegex(cache.Error, r"my\.config:3: 'SMP=y' is no configuration line"):
            self.script.read_fragments([fragment])


FAKE_MAKEFILE = """
allnoconfig:
\tsed s/CONFIG_REFUSED=y// $(KCONFIG_ALLCONFIG) >.config
bzImage:
\tmkdir -p arch/x86/boot include/config
\tcat file .config >arch/x86/boot/bzImage
\techo "$$KBUILD_BUILD_USER $$KCFLAGS" >>arch/x86/boot/bzImage
\ttouch vmlinux System.map
\techo 9.9-test >include/config/kernel.release
modules:
\tmkdir -p drivers/virt
\techo module >drivers/virt/governor.ko
"""


@unittest.skipUnless(shutil.which("make") and shutil.which("patch"), "make or patch is missing")
class BuildTest(TemporaryCache):
    """build() with a source tree that only looks like Linux."""

    def setUp(self):
        super().setUp()
        self.script = load_script("build-kernel")
        self.said = []
        self.script.say = self.said.append
        self.tree = self.folder / "linux"
        (self.tree / "arch/x86").mkdir(parents=True)
        (self.tree / ".git").mkdir()
        (self.tree / "Kconfig").write_text("mainmenu")
        (self.tree / "file").write_text("one\n")
        (self.tree / "Makefile").write_text(FAKE_MAKEFILE)

    def build(self, fragment="CONFIG_SMP=y\n", series=()):
        out = self.folder / "out"
        out.mkdir()
        source = self.script.open_source(str(self.tree), None)
        self.script.build(source, fragment, series, 1, out)
        return out

    def test_patches_and_fragment_reach_the_kernel_and_the_tree_stays_as_it_is(self):
        os.environ["KCFLAGS"] = "-O0"
        self.addCleanup(os.environ.pop, "KCFLAGS")
        before = {path: path.stat().st_mtime_ns for path in self.tree.rglob("*")}
        out = self.build(series=[patches.Patch("p", DIFF % (b"one", b"two"))])
        self.assertEqual((out / "bzImage").read_text(), "two\nCONFIG_SMP=y\nvlag \n")
        self.assertEqual(
            sorted(path.name for path in out.iterdir()),
            ["System.map", "bzImage", "config", "info.json", "vmlinux"],
        )
        self.assertEqual(before, {path: path.stat().st_mtime_ns for path in self.tree.rglob("*")})

    def test_a_kernel_with_modules_keeps_them_and_delivers_them(self):
        out = self.build("CONFIG_MODULES=y\n")
        self.script.deliver_modules(out / "modules", self.folder / "mine")
        self.assertEqual((self.folder / "mine/governor.ko").read_text(), "module\n")

    def test_modules_of_a_kernel_without_any_are_one_clear_error(self):
        out = self.build()
        with self.assertRaisesRegex(cache.Error, "needs CONFIG_MODULES=y"):
            self.script.deliver_modules(out / "modules", self.folder / "mine")

    def test_a_refused_option_is_told(self):
        self.build("CONFIG_REFUSED=y\nCONFIG_SMP=y\n")
        self.assertIn("this kernel does not take CONFIG_REFUSED=y (it has n)", self.said)

    def test_a_failed_build_is_one_clear_error_with_the_log_kept(self):
        (self.tree / "Makefile").write_text("allnoconfig:\n\t@echo 'x.c:1: error: bad'; false\n")
        with self.assertRaisesRegex(cache.Error, "make .* failed: x.c:1: error: bad .all: (.*)."):
            self.build()
        self.assertIn("x.c:1: error: bad", (cache.root() / "failed-build.log").read_text())


class KconfigTest(unittest.TestCase):
    def test_later_fragments_win(self):
        small = kconfig.parse("CONFIG_MODULES=n\n# CONFIG_VIRT_DRIVERS is not set\nCONFIG_SMP=y\n")
        more = kconfig.parse("CONFIG_MODULES=y\nCONFIG_VIRT_DRIVERS=y\n")
        self.assertEqual(
            kconfig.stack([small, more]), "CONFIG_MODULES=y\nCONFIG_SMP=y\nCONFIG_VIRT_DRIVERS=y\n"
        )

    def test_what_a_kernel_turned_down_is_found(self):
        wanted = kconfig.parse('CONFIG_A=y\nCONFIG_B="x"\n# CONFIG_C is not set\nCONFIG_D=64\n')
        got = kconfig.parse('CONFIG_B="x"\nCONFIG_C=y\nCONFIG_D=16\n# CONFIG_A is not set\n')
        self.assertEqual(
            kconfig.refused(wanted, got),
            [("CONFIG_A", "y", "n"), ("CONFIG_C", "n", "y"), ("CONFIG_D", "64", "16")],
        )

    def test_small_config_says_nothing_twice(self):
        lines = (ROOM / "small.config").read_text().splitlines()
        options = [
            line
            for line in lines
            if line and (not line.startswith("#") or line.endswith(" is not set"))
        ]
        self.assertEqual(len(kconfig.parse("\n".join(lines))), len(options))


DIFF = b"""--- a/file
+++ b/file
@@ -1 +1 @@
-%s
+%s
"""


def mail(subject, body, encoding="7bit"):
    return (
        b"From 0000 Mon Sep 17 00:00:00 2001\nSubject: "
        + subject
        + b"\nContent-Transfer-Encoding: "
        + encoding.encode()
        + b"\n\n"
        + body
        + b"\n"
    )


class PatchesTest(TemporaryCache):
    def test_a_folder_goes_by_name_and_leaves_out_the_cover_letter(self):
        (self.folder / "0002-b.patch").write_bytes(DIFF % (b"two", b"three"))
        (self.folder / "0001-a.patch").write_bytes(DIFF % (b"one", b"two"))
        (self.folder / "0000-cover-letter.patch").write_bytes(
            mail(b"[PATCH 0/2] cover", b" file | 2 +-")
        )
        (self.folder / "README").write_text("no patch")
        self.assertEqual(
            [patch.name for patch in patches.load(self.folder)], ["0001-a.patch", "0002-b.patch"]
        )

    def test_a_series_file_gives_the_order(self):
        (self.folder / "b.patch").write_bytes(DIFF % (b"one", b"two"))
        (self.folder / "a.patch").write_bytes(DIFF % (b"two", b"three"))
        (self.folder / "series").write_text("# order\nb.patch\na.patch -p1\n")
        self.assertEqual(
            [patch.name for patch in patches.load(self.folder)], ["b.patch", "a.patch"]
        )

    def test_a_mailbox_goes_by_the_numbers_of_its_subjects(self):
        box = self.folder / "series.mbox"
        box.write_bytes(
            mail(b"[PATCH v3 2/2] second", DIFF % (b"two", b"three"))
            + mail(b"[PATCH v3 0/2] cover", b"text")
            + mail(
                b"[PATCH v3 1/2] first",
                DIFF.replace(b"\n", b"=0A=\n") % (b"one", b"two"),
                "quoted-printable",
            )
        )
        loaded = patches.load(box)
        self.assertEqual(
            [patch.name for patch in loaded], ["[PATCH v3 1/2] first", "[PATCH v3 2/2] second"]
        )
        tree = self.folder / "tree"
        tree.mkdir()
        (tree / "file").write_text("one\n")
        patches.apply(loaded, tree)
        self.assertEqual((tree / "file").read_text(), "three\n")

    def test_a_patch_that_does_not_apply_is_named(self):
        (self.folder / "file").write_text("other\n")
        with self.assertRaisesRegex(cache.Error, "patch 'x.patch' does not apply .*FAILED"):
            patches.apply([patches.Patch("x.patch", DIFF % (b"one", b"two"))], self.folder)

    def test_nothing_to_apply_is_an_error(self):
        with self.assertRaisesRegex(cache.Error, "holds no patch"):
            patches.load(self.folder)
        with self.assertRaisesRegex(cache.Error, "no patch series at"):
            patches.load(self.folder / "missing")


class DebianTest(unittest.TestCase):
    def test_what_apt_prints_is_understood(self):
        line = (
            "'http://mirror/pool/l/linux/linux-source-6.1_6.1.192-3_all.deb' "
            "linux-source-6.1_6.1.192-3_all.deb "
            "139330232 SHA256:" + "0a" * 32
        )
        package = debian.Package(
            "linux-source-6.1", *debian.parse_print_uris("W: a warning\n" + line + "\n")
        )
        self.assertEqual((package.version, package.sha256), ("6.1.192-3", "0a" * 32))
        self.assertIsNone(debian.parse_print_uris("E: Unable to locate package linux-source-9.9\n"))


class CommandLineTest(unittest.TestCase):
    """What etc/rc reads from the kernel command line, run by the host's shell."""

    def commands(self, line):
        script = (
            '. "$0/cmdline"; show() { case $1 in '
            'vlag.run=*) cmdline_command "${1#vlag.run=}" "$2" ;; '
            '*) printf "word %s\\n" "$1" ;; esac; }; cmdline_each "$1" show'
        )
        return subprocess.run(
            ["sh", "-c", script, str(ROOM / "initramfs/etc"), line],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()

    def test_plain_words(self):
        self.assertEqual(
            self.commands("  console=ttyS0,115200  quiet "),
            ["word console=ttyS0,115200", "word quiet"],
        )

    def test_commas_stand_for_blanks(self):
        self.assertEqual(self.commands("vlag.run=hackbench,-g,2,*"), ["hackbench -g 2 *"])

    def test_quotes_keep_everything(self):
        self.assertEqual(
            self.commands('vlag.run="a, b; c > \'d\'" "vlag.run=e f" quiet'),
            ["a, b; c > 'd'", "e f", "word quiet"],
        )

    def test_an_open_quote_ends_with_the_line(self):
        self.assertEqual(self.commands('vlag.run="a b'), ["a b"])

    def test_nothing(self):
        self.assertEqual(self.commands(""), [])


@unittest.skipUnless(shutil.which("gcc"), "gcc is not installed")
class InitramfsTest(TemporaryCache):
    def setUp(self):
        super().setUp()
        self.script = load_script("build-initramfs")
        busybox = self.folder / "busybox"
        busybox.write_bytes(b"busybox")
        self.script.busybox = busybox.read_bytes

    def test_two_builds_are_equal_whatever_the_dates_and_umask(self):
        tool = self.folder / "tool"
        tool.write_text("tool")
        tool.chmod(0o755)
        first = self.script.build([f"{tool}:/bin/tool"], [])
        os.utime(tool, (1, 1))
        tool.chmod(0o700)
        self.assertEqual(first, self.script.build([f"{tool}:/bin/tool"], []))
        for name in (b"init\0", b"etc/rc\0", b"bin/rdtsc\0", b"bin/tool\0", b"dev/console\0"):
            self.assertIn(name, first)

    def test_the_programs_need_no_loader(self):
        for source in sorted((ROOM / "src").glob("*.c")):
            self.assertFalse(
                self.script.is_dynamic(self.script.compile_program(source, self.folder)), source
            )

    def test_rdtsc_prints_a_number_that_grows(self):
        program = self.script.compile_program(ROOM / "src/rdtsc.c", self.folder)
        first, second = (
            int(subprocess.run([program], check=True, capture_output=True).stdout) for _ in range(2)
        )
        self.assertLess(first, second)

    def test_a_dynamic_program_brings_its_loader(self):
        data = self.script.build([], ["/bin/true"])
        self.assertIn(b"bin/true\0", data)
        self.assertRegex(data, rb"ld-linux-x86-64\.so\.2\0")

    def test_a_missing_file_is_one_clear_error(self):
        with self.assertRaisesRegex(cache.Error, "cannot read /no/such/file: no such file"):
            self.script.build(["/no/such/file:/x"], [])


if __name__ == "__main__":
    unittest.main()
