# SPDX-License-Identifier: BSD-2-Clause
"""Where the ticks go: every instruction that the hypervisor runs between a VM exit and the VM entry
after it, by function. The machine is stopped at each exit and traced until VMRESUME.

One vCPU on one CPU. The figures are exact: the guest and the hypervisor do not notice.
"""

import bisect
import collections
import re
import struct
import subprocess

from vlaglib.errors import ToolError

from . import bochs, vlagrun

PAGE = 4096
# The labels of hv/vmx/entry.asm are one thing to a reader.
_ENTRY = ("vmx_enter", "vmx_exit_entry", "exit_handled", "resume_guest", "load_all",
          "load_scratch", "light_exit", "look_at_requests", "leave_guest")
_REASON = re.compile(r"\bX\((\d+), (\w+),")
_TRACED = re.compile(r"^\(0\)\.\[\d+\] \[0x[0-9a-f]+\] [0-9a-f]{4}:([0-9a-f]+) ", re.M)

# @tick: of the exit; @ticks: until the guest runs again; @functions: ((name, instructions), ...) in
# the order in which they were first entered. Ticks that are no instructions were spent in HLT.
Exit = collections.namedtuple("Exit", "tick ticks reason functions")


def instructions(one):
    """How many the hypervisor ran."""
    return sum(count for _, count in one.functions)


def _output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class _Symbols:
    """The functions of vlag.elf at the address at which the machine runs it."""

    def __init__(self, elf):
        names = [line.split() for line in _output("nm", "-n", "--defined-only", elf).splitlines()]
        code = [(int(at, 16), name.split(".")[0]) for at, kind, name in names if kind in "tT"]
        self._at = [at for at, _ in code]
        self._names = ["entry.asm" if name in _ENTRY else name for _, name in code]
        text = _output("objdump", "-d", "--no-show-raw-insn", elf)
        entry = re.search(r"^([0-9a-f]+) <vmx_exit_entry>:", text, re.M)
        resume = re.findall(r"^ *([0-9a-f]+):\s+vmresume", text, re.M)
        if not entry or len(resume) != 1:
            raise ToolError(f"{elf}: no vmx_exit_entry with one VMRESUME")
        self._entry, self._resume = int(entry.group(1), 16), int(resume[0], 16)
        self._bias = 0

    def relocate(self, exit_rip):
        """Says where vmx_exit_entry is in the machine; returns where VMRESUME is."""
        self._bias = exit_rip - self._entry
        if self._bias % PAGE:
            raise ToolError("the vlag.elf of the build folder is not the hypervisor that runs; "
                            "build both")
        return self._resume + self._bias

    def name(self, rip):
        return self._names[bisect.bisect_right(self._at, rip - self._bias) - 1]


class Profile:
    """Collects the exits of a machine whose debugger stops at VM exits."""

    def __init__(self, setup):
        numbers = (setup.build / "bench/offsets.bin").read_bytes()
        (self._regs_size, self._nr_exits, self._last_exits, self._nr_last,
         self._size) = struct.unpack("<5Q", numbers)
        self._symbols = _Symbols(setup.build / "vlag.elf")
        reasons = (vlagrun.ROOT / "hv/vmx/reasons.h").read_text(encoding="ascii")
        self._reasons = {int(number): name for number, name in _REASON.findall(reasons)}
        self._resume = self._vcpu = None
        self.exits = []

    def at_exit(self, debugger):
        """The machine stands at the first instruction after a VM exit: goes on to the VM entry.

        Returns the address of a breakpoint that was met on the way, or None.
        """
        if self._resume is None:
            self._resume = self._symbols.relocate(debugger.rip)
            self._vcpu = debugger.registers()["rsp"] - self._regs_size
            debugger.break_at(self._resume)
        begin = debugger.tick
        debugger.command("trace on")
        where = debugger.go()
        debugger.command("trace off")
        if where != self._resume:
            return where
        rips = [int(rip, 16) for rip in _TRACED.findall(debugger.text)] + [debugger.rip]
        functions = collections.Counter(self._symbols.name(rip) for rip in rips)
        self.exits.append(Exit(begin, debugger.tick + 1 - begin, self._reason(debugger),
                               tuple(functions.items())))
        return None

    def _reason(self, debugger):
        number = debugger.read(self._vcpu + self._nr_exits, 8) - 1
        reason = debugger.read(self._vcpu + self._last_exits +
                               number % self._nr_last * self._size, self._size)
        return self._reasons.get(reason, str(reason))

    def follow(self, debugger):
        """Runs the machine, collecting exits, to the next breakpoint of somebody else's."""
        while True:
            where = debugger.go()
            if where == bochs.VMEXIT:
                where = self.at_exit(debugger)
            if where is not None and where != self._resume:
                return where


def by_reason(exits):
    """[{reason, count, min, median, max, sum}] in instructions, the most expensive first."""
    rows = []
    for reason in {one.reason for one in exits}:
        costs = sorted(instructions(one) for one in exits if one.reason == reason)
        rows.append({"reason": reason, "count": len(costs), "min": costs[0],
                     "median": costs[len(costs) // 2], "max": costs[-1], "sum": sum(costs)})
    return sorted(rows, key=lambda row: (-row["sum"], row["reason"]))


def by_path(exits):
    """[{reason, count, instructions, functions}] of exits that went the same way: the same
    functions with as many instructions in each."""
    groups = collections.Counter((one.reason, one.functions) for one in exits)
    rows = [{"reason": reason, "count": count, "instructions": sum(n for _, n in functions),
             "functions": functions} for (reason, functions), count in groups.items()]
    return sorted(rows, key=lambda row: (-row["count"] * row["instructions"], row["reason"]))


def by_function(exits):
    """[(function, instructions in all, exits that went through it)], the most expensive first."""
    total, through = collections.Counter(), collections.Counter()
    for one in exits:
        for name, count in one.functions:
            total[name] += count
            through[name] += 1
    return [(name, count, through[name]) for name, count in total.most_common()]


def path_text(functions):
    return ", ".join(f"{name} {count}" for name, count in functions)
