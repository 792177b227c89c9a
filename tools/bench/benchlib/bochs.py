# SPDX-License-Identifier: BSD-2-Clause
"""Bochs under its own debugger: breakpoints, and the tick at which each was reached.

Stopping costs the machine nothing: its time is its instructions. Only for machines with one CPU.
"""

import os
import pathlib
import re
import select
import subprocess

from vlaglib import image, platforms
from vlaglib.errors import ToolError

BIOS = "/usr/share/bochs/BIOS-bochs-latest"
SECONDS = 3600  # host time without a prompt, for a machine that hangs
RC = """\
cpu: model={model}, count={count}, ips={ips}, reset_on_triple_fault=0
memory: guest={mem}, host={mem}
romimage: file={rom}
vgaromimage: file={vga}
pci: enabled=1, chipset=i440fx
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=disk, mode=flat, path="{disk}"
boot: disk
display_library: rfb, options="timeout=0"
clock: sync=none, time0={time0}
com1: enabled=1, mode=file, dev=console.log
com2: enabled=1, mode=file, dev=control.log
port_e9_hack: enabled=1
log: bochs.log
panic: action=fatal
error: action=ignore
speaker: enabled=0, mode=none
"""

_PROMPT = re.compile(rb"<bochs:\d+> ?$")
_TICK = re.compile(r"Next at t=(\d+)")
_BREAKPOINT = re.compile(r"Breakpoint \d+, 0x([0-9a-f]+)")
_RIP = re.compile(r"^\(0\) \[0x[0-9a-f]+\] [0-9a-f]{4}:([0-9a-f]+) ", re.M)
_REGISTER = re.compile(r"^(r[a-z0-9]+) ?: ([0-9a-f]{8})_([0-9a-f]{8})$", re.M)
_WORD = re.compile(r">:\t0x([0-9a-f]+)")

VMEXIT = "VM exit"
MAX_BREAKPOINTS = 16  # of one kind, in Bochs


def whole_cylinders(path):
    """Bochs sees whole cylinders of a disk only."""
    with open(path, "r+b") as disk:
        disk.truncate(-(-os.fstat(disk.fileno()).st_size // image.CYLINDER) * image.CYLINDER)


class Debugger:
    """One machine with @mem MB whose first disk is @disk, with its files in @folder."""

    def __init__(self, folder, rom, disk, mem, ips):
        self.folder, self._process, self._buffer = folder, None, b""
        self.tick = self.rip = 0
        self.text = ""  # what was printed on the way to the last stop
        self._breakpoints = {}  # address -> number
        self._next = 1
        (folder / "bochsrc").write_text(
            RC.format(model=platforms.Bochs.default_model, count=1, ips=ips, mem=mem, rom=rom,
                      disk=disk, vga=platforms.VGA_BIOS, time0=platforms.TIME0), encoding="utf-8")
        for path in (folder / "console.log", folder / "control.log", f"{disk}.lock"):
            pathlib.Path(path).unlink(missing_ok=True)  # a killed Bochs leaves its lock
        # Whatever way the tool ends, the emulator ends with it.
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "bochs-bin", "-q", "-f", "bochsrc"], cwd=folder,
            env=dict(os.environ, TZ="UTC"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)
        self._answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def _answer(self):
        """What the debugger prints up to its next prompt."""
        while not _PROMPT.search(self._buffer[-32:]):
            ready = select.select([self._process.stdout], [], [], SECONDS)[0]
            data = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not data:
                raise ToolError("Bochs " + ("ended" if ready else "hangs") + ": " +
                                self._buffer.decode(errors="replace")[-800:])
            self._buffer += data
        text, self._buffer = self._buffer.decode(errors="replace"), b""
        return text

    def command(self, text):
        """Gives one command; returns what it printed."""
        self._process.stdin.write(text.encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def break_at(self, address):
        """Stops where an instruction at the linear @address is about to run, whoever's it is."""
        if len(self._breakpoints) == MAX_BREAKPOINTS:
            raise ToolError(f"Bochs has {MAX_BREAKPOINTS} breakpoints only")
        self.command(f"lb {address:#x}")
        self._breakpoints[address] = self._next
        self._next += 1

    def forget(self, address):
        """Takes the breakpoint at @address away."""
        self.command(f"d {self._breakpoints.pop(address)}")

    def stop_at_vm_exits(self):
        self.command("vmexitbp")

    def go(self):
        """Runs to the next stop; returns VMEXIT or the address of the breakpoint. Sets tick."""
        self.text = text = self.command("c")
        tick, hit, rip = _TICK.search(text), _BREAKPOINT.search(text), _RIP.search(text)
        if not tick or not (hit or rip):
            raise ToolError(f"Bochs stopped for another reason: {text[-800:]}")
        self.tick = int(tick.group(1))
        self.rip = int((hit or rip).group(1), 16)
        return self.rip if hit else VMEXIT

    def registers(self):
        """name -> value of the general registers."""
        return {name: int(high + low, 16)
                for name, high, low in _REGISTER.findall(self.command("r"))}

    def read(self, address, size):
        """The number of @size bytes (1, 4 or 8) at the linear @address."""
        unit = {1: "b", 4: "w", 8: "g"}[size]
        text = self.command(f"x /1{unit}x {address:#x}")
        found = _WORD.search(text)
        if not found:
            raise ToolError(f"Bochs cannot read {address:#x}: {text.strip()[-200:]}")
        return int(found.group(1), 16)
