# SPDX-License-Identifier: BSD-2-Clause
"""What is wrong with a config is said in one line: file, line, section, key, and what would be
right. The other VMs start and pass.
"""

import re
import subprocess
import unittest

import vlagtest

GOOD = "kernel = hello.elf\nmemory = 16M\ndebug_exit = 0xf4\n"
LINUX = "kernel = bzImage\ncmdline = console=ttyS0,115200 quiet\n"
SMALL = "kernel = hello.elf\nmemory = 16M\n"
BAD = ">"  # marks the line that is named; not part of it

IMAGE = "memory = 16M\n>kernel = {}\n"

# name: (lines of its section, what follows `vlag.cfg:LINE: [vm NAME] ` as a regular expression)
CASES = {
    "no-kernel-file": (IMAGE.format("nowhere.elf"), r'kernel: "nowhere\.elf" is not on the volume '
                       "that vlag was started from; copy it there or correct the path"),
    "no-initrd-file": (LINUX + ">initrd = nowhere.cpio\n",
                       r'initrd: "nowhere\.cpio" is not on the volume .*; copy it there or .*'),
    "no-module-file": (SMALL + ">modules = hello.elf,gone.mod\n",
                       r'modules: "gone\.mod" is not on the volume .*; copy it there or .*'),
    "unknown-key": (SMALL + ">colour = red\n", r"colour: is no known key; possible are kernel .*"),
    "no-vcpus": (SMALL + ">vcpus = 0\n", 'vcpus: "0" is out of range; 1 to 256 are possible'),
    "too-many-vcpus": (SMALL + ">vcpus = 257\n",
                       'vcpus: "257" is out of range; 1 to 256 are possible'),
    "too-little-memory": ("kernel = hello.elf\n>memory = 8M\n",
                          'memory: "8M" is out of range; 16M to 1024G in steps of 2M .*'),
    "too-much-memory": ("kernel = hello.elf\n>memory = 64G\n",
                        r"memory: 65536 MiB are more than there is; \d+ MiB are free, .*"),
    "no-such-pcpu": ("kernel = hello.elf\nmemory = 512M\n>affinity = 5-7\n",
                     "affinity: names none of the pCPUs that there are; 0 to 0 are possible; .*"),
    "no-such-word": (SMALL + ">apic = x3apic\n",
                     'apic: "x3apic" is no known word; x2apic or xapic are possible'),
    "debug-exit-taken": (SMALL + ">debug_exit = 0x3f8\n",
                         "debug_exit: 0x3f8 is a port of another device; one that is free, .*"),
    "truncated": (IMAGE.format("truncated"), r"kernel: truncated: truncated at \d+ bytes of \d+; .*"),
    "empty": (IMAGE.format("empty"),
              r"kernel: empty: neither a Linux x86 bzImage nor a Multiboot 1 image \(0 bytes\); .*"),
    "text": (IMAGE.format("text"),
             r"kernel: text: neither a Linux x86 bzImage nor a Multiboot 1 image \(.*\); .*"),
    "not-64-bit": (IMAGE.format("i386"), r"kernel: i386: not an x86-64 kernel \(32-bit only\); "
                   "CONFIG_64BIT is needed; .*"),
    "other-machine": (IMAGE.format("arm"), "kernel: arm: an ELF file without a Multiboot 1 header "
                      ".*; for Linux give the bzImage, not vmlinux; .*"),
    "initrd-does-not-fit": (LINUX + "memory = 32M\n>initrd = large\n", "initrd: large: .*"),
    "kernel-does-not-fit": (LINUX + ">memory = 16M\n",
                            "memory: 16 MiB are too few for bzImage, which needs at least .*"),
}


def cut_elf(machine):
    """The header of an ELF64 file for @machine."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + bytes([machine, 0]) + bytes(44)


def without_64_bit_entry(kernel):
    """A bzImage that says that it cannot be entered in 64-bit mode, as a 32-bit kernel does."""
    return kernel[:0x236] + bytes([kernel[0x236] & ~1]) + kernel[0x237:]


class Config(vlagtest.BootedOnce):
    """All mistakes in one config, between two VMs that are right."""

    @classmethod
    def setUpClass(cls):
        lines, cls.line_of = [], {}

        def add(name, text):
            for line in [f"[vm {name}]", *text.splitlines()]:
                if line.startswith(BAD):
                    cls.line_of[name] = len(lines) + 1
                lines.append(line.removeprefix(BAD))

        lines += ["[hypervisor]", "# This line and", "# this one are the tool's to use.",
                  "pcpus = 1000", "colour = red",
                  "[knobs]", "no_such_knob = 1", "[strange]", "key = value"]
        add("first", GOOD)
        for name, (text, _) in CASES.items():
            add(name, text)
        lines += ["[vm first]", "kernel = hello.elf", "[vm]", "[vm nothing]", "memory = 16M"]
        add("last", GOOD)
        cls.config = "\n".join(lines) + "\n"
        cls.numbered = {line: number + 1 for number, line in enumerate(lines)}
        kernel = (vlagtest.BUILD / "guest/bzImage").read_bytes()
        cls.files = {
            "truncated": kernel[:len(kernel) // 2], "empty": b"", "text": b"Hello, world!\n" * 99,
            "i386": without_64_bit_entry(kernel), "arm": cut_elf(183), "large": bytes(16 << 20),
        }
        cls.args = ["--mem", 768]
        super().setUpClass()

    def test_the_vms_without_a_mistake_pass(self):
        self.assert_ok(self.machine)
        for name in ("first", "last"):
            self.assert_ended(name, "debug-exit status 0")
        self.assert_line("vlag: all VMs ended, powering off")

    def test_no_other_vm_starts(self):
        started = {match.group(1) for line in self.machine.lines
                   if (match := re.match(r"vlag: vm (\S+): (?:Linux|Multiboot)", line))}
        self.assertEqual(started, {"first", "last"})

    def test_nothing_follows_from_a_mistake_but_its_line(self):
        """Later steps pass over a VM that could not be set up, without a word."""
        said = [line for line in self.machine.lines if line.startswith("vlag: warning: ")
                and not line.startswith("vlag: warning: vlag.cfg:")]
        self.assertEqual(said, [])

    def test_mistakes_in_the_hypervisors_section_leave_the_default(self):
        self.assert_line(r'vlag: vlag\.cfg:4: \[hypervisor\] pcpus: "1000" is out of range; .*')
        self.assert_line(r"vlag: vlag\.cfg:5: \[hypervisor\] colour: is no known key; .*")

    def test_unknown_knob(self):
        self.assert_line(r"vlag: warning: vlag\.cfg:7: \[knobs\] no_such_knob is not a knob; .*")

    def test_unknown_section(self):
        self.assert_line(r"vlag: vlag\.cfg:8: \[strange\] is no known section; possible are .*")

    def test_a_name_used_twice(self):
        number = self.numbered["[vm first]"]
        self.assert_line(rf"vlag: vlag\.cfg:{number}: \[vm first\] exists already \(line 10\); .*")

    def test_a_vm_without_a_name(self):
        number = self.numbered["[vm]"]
        self.assert_line(rf"vlag: vlag\.cfg:{number}: \[vm\] needs a name; write \[vm NAME\]")

    def test_a_vm_without_a_kernel(self):
        number = self.numbered["[vm nothing]"]
        self.assert_line(rf"vlag: vlag\.cfg:{number}: \[vm nothing\] kernel: is missing; .*")


def _case(name, regex):
    def test(self):
        self.assert_line(rf"vlag: (?:warning: )?vlag\.cfg:{self.line_of[name]}: \[vm {name}\] "
                         rf"{regex}")
    return test


for _name, (_, _regex) in CASES.items():
    setattr(Config, "test_" + _name.replace("-", "_"), _case(_name, _regex))


class WithoutConfig(vlagtest.SystemTest):
    """Nothing to run is said, and a clean stop."""

    def test_empty_config(self):
        run = self.boot("")
        self.assertEqual(run.status, 3, run.describe())
        self.assert_console(run, r"^vlag: vlag\.cfg: has no \[vm NAME\] section, so there is .*")
        self.assert_console(run, r"^vlag: fatal: no VM runs: vlag\.cfg has no \[vm NAME\] section")

    def test_no_config_at_all(self):
        config = self.write_config("", {})
        image = self.folder / "disk.img"
        done = vlagtest.vlag("image", "-c", config, "-o", image, "--efi", vlagtest.LOADER)
        self.assertEqual(done.returncode, 0, done.stderr)
        subprocess.run(["mdel", "-i", f"{image}@@1M", "::/vlag.cfg"], check=True)
        (self.folder / "console.log").touch()
        done = vlagtest.vlag("run", "--image", image, "--platform", "bochs", "--timeout",
                             vlagtest.TIMEOUT, "--log", self.folder / "console.log")
        run = vlagtest.Run(done.returncode, done.stdout, done.stderr, self.folder)
        self.assertEqual(run.status, 3, run.describe())
        self.assert_console(run, r"^vlag: vlag\.cfg: not found; put it into the root directory .*")
        self.assert_console(run, "^vlag: fatal: no VM runs: .*")


if __name__ == "__main__":
    unittest.main()
