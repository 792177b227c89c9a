# SPDX-License-Identifier: BSD-2-Clause
"""The platforms that can run an image, each as a command line for its emulator.

Nothing here starts anything: machine.py does, and it listens where the emulator's serial lines
connect to.
"""

import os
import pathlib
import shutil

from .errors import ToolError

OVMF = "/usr/share/ovmf/OVMF.fd"
VGA_BIOS = "/usr/share/bochs/VGABIOS-lgpl-latest"
NESTED = "/sys/module/kvm_intel/parameters/nested"

# 2020-01-01. Bochs takes 1 and 2 for `local` and `utc`, that is for the host's time.
TIME0 = 1577836800

BOCHS_HOST_MEM = 2048  # MB that Bochs takes at most for a machine's memory; the rest is in a file

# Bochs is deterministic with sync=none and a fixed time0. `error: ignore` keeps the log small where
# a guest reads MSRs that Bochs lacks.
BOCHS_RC = """\
cpu: model={model}, count={pcpus}, ips={ips}, reset_on_triple_fault=0
memory: guest={mem}, host={host_mem}
romimage: file={ovmf}
vgaromimage: file={vga}
pci: enabled=1, chipset=i440fx
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=disk, mode=flat, path="{image}"
boot: disk
display_library: rfb, options="timeout=0"
clock: sync=none, time0={time0}
com1: enabled=1, mode=socket-client, dev={com1}
com2: enabled=1, mode=socket-client, dev={com2}
port_e9_hack: enabled=1
log: bochs.log
panic: action=fatal
error: action=ignore
speaker: enabled=0, mode=none
"""


class Options:
    """What `vlag run` asks of a platform."""

    def __init__(self, pcpus=1, ips=50_000_000, mem=512, model=None):
        self.pcpus, self.ips, self.mem, self.model = pcpus, ips, mem, model


def _need(program, path=None):
    missing = not os.path.exists(path) if path else shutil.which(program) is None
    if missing:
        raise ToolError(f"{path or program} is not there; `tools/deps run` installs it")


class Bochs:
    """Bochs 2.7 (Debian's build with the debugger) with OVMF as its ROM."""

    name = "bochs"
    serial = "tcp"
    default_model = "corei7_haswell_4770"

    def prepare(self, folder, image, com1, com2, options):
        """Writes the emulator's files into @folder; returns its command line."""
        _need("bochs-bin")
        _need("ovmf", OVMF)
        _need("vgabios", VGA_BIOS)
        text = BOCHS_RC.format(model=options.model or self.default_model, pcpus=options.pcpus,
                               ips=options.ips, mem=options.mem,
                               host_mem=min(options.mem, BOCHS_HOST_MEM), ovmf=OVMF, vga=VGA_BIOS,
                               image=image, com1=com1, com2=com2, time0=TIME0)
        # Left behind by a Bochs that was killed; it would refuse the disk.
        pathlib.Path(f"{image}.lock").unlink(missing_ok=True)
        (folder / "bochsrc").write_text(text, encoding="utf-8")
        (folder / "debugger").write_text("c\n", encoding="utf-8")
        return ["bochs-bin", "-q", "-f", "bochsrc", "-rc", "debugger"]

    def boot_hint(self, options):
        """How long the firmware takes, for a person who waits."""
        seconds = 0.7e9 * (1 + 0.25 * (options.pcpus - 1)) * (options.ips / 50e6) ** 0.2 / 100e6
        return f"bochs: OVMF is booting, about {seconds:.0f} s"

    def ticks(self, folder):
        """How many instructions the machine has run, None if that is not known.

        Each line of Bochs' log begins with the tick.
        """
        try:
            with open(folder / "bochs.log", "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - 8192))
                lines = log.read().decode("ascii", "replace").splitlines()
        except OSError:
            return None
        for line in reversed(lines):
            if line[:11].isdigit():
                return int(line.split("i[")[0].split("e[")[0].split("p[")[0].split("d[")[0])
        return None


class Qemu:
    """QEMU with OVMF: under KVM with nested VMX, or by TCG, which has no VMX."""

    serial = "unix"

    def __init__(self, kvm):
        self.kvm = kvm
        self.name = "qemu" if kvm else "qemu-tcg"
        self.default_model = "host,+vmx" if kvm else "max"

    def prepare(self, folder, image, com1, com2, options):
        """Returns the emulator's command line."""
        _need("qemu-system-x86_64")
        _need("ovmf", OVMF)
        return ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-vga", "none",
                "-display", "none", "-no-reboot",
                "-machine", f"pc,accel={'kvm' if self.kvm else 'tcg'}",
                "-cpu", options.model or self.default_model,
                "-smp", str(options.pcpus), "-m", str(options.mem), "-bios", OVMF,
                "-drive", f"file={str(image).replace(',', ',,')},format=raw,if=ide",
                "-chardev", f"socket,id=com1,path={com1}", "-serial", "chardev:com1",
                "-chardev", f"socket,id=com2,path={com2}", "-serial", "chardev:com2",
                "-debugcon", "file:debugcon.log", "-global", "isa-debugcon.iobase=0xe9"]

    def boot_hint(self, options):
        return f"{self.name}: OVMF is booting, a few seconds"

    def ticks(self, folder):
        return None


def _why_not_nested_kvm(kvm="/dev/kvm", nested=NESTED):
    """None where QEMU can run the hypervisor under KVM, else the reason why not."""
    if shutil.which("qemu-system-x86_64") is None:
        return "qemu-system-x86_64 is not installed"
    try:
        os.close(os.open(kvm, os.O_RDWR))
    except OSError as error:
        return f"{kvm}: {error.strerror.lower()}"
    try:
        value = pathlib.Path(nested).read_text(encoding="ascii").strip()
    except OSError:
        return f"no VT-x for KVM here ({nested} is absent)"
    if value not in ("Y", "1"):
        return f"nested VMX is off (kvm_intel's parameter `nested` is {value}; Y is needed)"
    return None


NAMES = ("auto", "bochs", "qemu", "qemu-tcg")


def choose(name):
    """The platform called @name, and why where that was for the tool to decide (else None)."""
    if name == "auto":
        reason = _why_not_nested_kvm()
        if reason is None:
            return Qemu(kvm=True), "KVM with nested VMX is there"
        return Bochs(), reason
    if name == "bochs":
        return Bochs(), None
    if name == "qemu":
        reason = _why_not_nested_kvm()
        if reason:
            raise ToolError(f"--platform qemu: {reason}; --platform bochs needs no VT-x")
        return Qemu(kvm=True), None
    return Qemu(kvm=False), None
