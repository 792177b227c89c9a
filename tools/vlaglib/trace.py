# SPDX-License-Identifier: BSD-2-Clause
"""`vlag trace`: turns the monitor's `trace dump` into JSON for Perfetto (or chrome://tracing).

The lines are those of trace_format() in hv/trace.c, wherever they stand in a log:

    trace hz=TICKS_PER_SECOND
    trace vm NUMBER NAME
    trace PCPU TIME EVENT VM/VCPU name=value ...

One track for each pCPU shows who runs there; one for each vCPU shows when it runs and when it waits,
and as instants what it does; arrows lead from IPIs to their EOI.
"""

import json
import re
import stat
import sys
from pathlib import Path

from . import live
from .errors import ToolError

PCPUS = 1  # the "process" of the pCPUs' tracks; VM n is process VM_BASE + n
VM_BASE = 100
_RECORD = re.compile(r"\btrace (\d+) (\d+) ([a-z_]+) (-|(\d+)/(\d+))((?: [a-z_]+=\S+)*)\s*$")
_HZ = re.compile(r"\btrace hz=(\d+)\s*$")
_VM = re.compile(r"\btrace vm (\d+) (\S+)\s*$")


class Record:
    """One line: @vcpu is (VM, vCPU) or None, @args a dictionary of numbers, words, None for -."""

    def __init__(self, pcpu, time, event, vcpu, args):
        self.pcpu, self.time, self.event, self.vcpu, self.args = pcpu, time, event, vcpu, args


class Dump:
    """What a log holds of a trace: records in the order of time, hz (None if not said), VM names."""

    def __init__(self, lines):
        self.hz, self.names, self.records = None, {}, []
        for line in lines:
            self._line(line)
        self.records.sort(key=lambda record: record.time)

    def _line(self, line):
        if "trace " not in line:
            return
        found = _HZ.search(line)
        if found:
            self.hz = int(found.group(1))
            return
        found = _VM.search(line)
        if found:
            self.names[int(found.group(1))] = found.group(2)
            return
        found = _RECORD.search(line)
        if found:
            pcpu, time, event, who, vm, vcpu, args = found.groups()
            self.records.append(Record(int(pcpu), int(time), event,
                                       None if who == "-" else (int(vm), int(vcpu)),
                                       dict(map(_argument, args.split()))))


def _argument(text):
    name, value = text.split("=", 1)
    if value == "-":
        return name, None
    return name, int(value) if value.isdigit() else value


class Converter:
    """Makes the list of trace events; knows who runs and who waits."""

    def __init__(self, dump, hz):
        self.dump, self.hz = dump, hz
        self.start = dump.records[0].time
        self.events = []
        self.running = {}  # pCPU: (vCPU, since)
        self.waiting = {}  # vCPU: since
        self.open_ipis = {}  # (from, to, vector): number of the arrow
        self.arrows = 0
        self.pcpus, self.vcpus = set(), set()

    def microseconds(self, time):
        return (time - self.start) * 1e6 / self.hz

    def name(self, vcpu):
        return f"{self.dump.names.get(vcpu[0], f'vm{vcpu[0]}')}/{vcpu[1]}"

    def _add(self, phase, time, track, name, **more):
        pid, tid = track
        self.events.append({"ph": phase, "ts": self.microseconds(time), "pid": pid, "tid": tid,
                            "name": name, **more})

    def _slice(self, since, until, track, name, **args):
        self._add("X", since, track, name, dur=self.microseconds(until) - self.microseconds(since),
                  args=args)

    def _track(self, vcpu):
        self.vcpus.add(vcpu)
        return VM_BASE + vcpu[0], vcpu[1]

    def _leaves(self, pcpu, time):
        if pcpu in self.running:
            vcpu, since = self.running.pop(pcpu)
            self._slice(since, time, (PCPUS, pcpu), self.name(vcpu))
            self._slice(since, time, self._track(vcpu), "runs", pcpu=pcpu)

    def _switch(self, record):
        args, time = record.args, record.time
        self._leaves(record.pcpu, time)
        if args.get("prev_vcpu") is not None and args.get("runnable"):
            self.waiting[(args["prev_vm"], args["prev_vcpu"])] = time
        if record.vcpu:
            since = self.waiting.pop(record.vcpu, None)
            if since is not None:
                self._slice(since, time, self._track(record.vcpu), "waits")
            self.running[record.pcpu] = (record.vcpu, time)

    def _ipi(self, record):
        if record.args.get("to") is None:
            return
        to = (record.vcpu[0], record.args["to"])
        self.arrows += 1
        self.open_ipis[(record.vcpu, to, record.args["vector"])] = self.arrows
        self._add("s", record.time, self._track(record.vcpu), "ipi", cat="ipi", id=self.arrows)

    def _eoi(self, record):
        if record.args.get("from") is None:
            return
        sender = (record.vcpu[0], record.args["from"])
        number = self.open_ipis.pop((sender, record.vcpu, record.args["vector"]), None)
        if number is not None:
            self._add("f", record.time, self._track(record.vcpu), "ipi", cat="ipi", id=number,
                      bp="e")

    def convert(self):
        """The whole document."""
        for record in self.dump.records:
            self.pcpus.add(record.pcpu)
            if record.event == "switch":
                self._switch(record)
                continue
            if not record.vcpu:
                continue
            self._add("i", record.time, self._track(record.vcpu), record.event, s="t",
                      args={**record.args, "pcpu": record.pcpu})
            if record.event == "wake":
                self.waiting.setdefault(record.vcpu, record.time)
            elif record.event == "ipi":
                self._ipi(record)
            elif record.event == "eoi":
                self._eoi(record)
        end = self.dump.records[-1].time
        for pcpu in list(self.running):
            self._leaves(pcpu, end)
        return {"traceEvents": self._titles() + self.events, "displayTimeUnit": "ns"}

    def _titles(self):
        def title(kind, name, pid, tid=0):
            return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
        titles = [title("process_name", "pCPUs", PCPUS)]
        titles += [title("thread_name", f"pCPU {pcpu}", PCPUS, pcpu) for pcpu in sorted(self.pcpus)]
        for vm in sorted({vcpu[0] for vcpu in self.vcpus}):
            titles.append(title("process_name", self.dump.names.get(vm, f"vm{vm}"), VM_BASE + vm))
        titles += [title("thread_name", f"vCPU {vcpu[1]}", VM_BASE + vcpu[0], vcpu[1])
                   for vcpu in sorted(self.vcpus)]
        return titles


def convert(lines, hz=None):
    """The document for the @lines of a log; @hz where the log does not say it."""
    dump = Dump(lines)
    if not dump.records:
        raise ToolError("no trace in it; a line of one reads `trace PCPU TIME EVENT VM/VCPU ...`, "
                        "as the monitor's `trace dump` prints it")
    hz = dump.hz or hz
    if not hz:
        raise ToolError("it has no line `trace hz=N`; give the TSC's ticks per second by --hz")
    return Converter(dump, hz).convert()


def add_parser(commands):
    parser = commands.add_parser("trace", help="turn a trace dump into JSON for Perfetto",
                                 description=__doc__.split("\n\n")[0],
                                 epilog="Open the file in Perfetto's viewer. Where to get a dump: "
                                        "vlag run ... --cmd 'trace on' ... --cmd 'trace dump', or vlag ask "
                                        "SOCKET trace on.")
    parser.add_argument("log", metavar="LOG", help="a file with the dump among other lines, -, or the socket of "
                                           "`vlag run --socket`: then the dump is asked for")
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="default: standard "
                                                                              "output")
    parser.add_argument("--hz", type=int, metavar="N", help="ticks per second, if LOG does not say")
    parser.add_argument("--records", type=int, default=500, metavar="N",
                        help="of each pCPU, from a socket (default: 500; the line takes 10 ms for "
                             "each, 4096 are the most)")
    parser.set_defaults(run=main)


def main(args):
    try:
        if args.log == "-":
            document = convert(sys.stdin, args.hz)
        elif stat.S_ISSOCK(Path(args.log).stat().st_mode):
            with live.Connection(args.log) as machine:
                document = convert(machine.ask(f"trace dump {args.records}"), args.hz)
        else:
            with open(args.log, encoding="utf-8", errors="replace") as lines:
                document = convert(lines, args.hz)
    except OSError as error:
        raise ToolError(f"{args.log}: {error.strerror.lower()}") from None
    except ToolError as error:
        raise ToolError(f"{args.log}: {error}") from None
    text = json.dumps(document, separators=(",", ":")) + "\n"
    if args.output == "-":
        sys.stdout.write(text)
        return 0
    try:
        with open(args.output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ToolError(f"{args.output}: {error.strerror.lower()}") from None
    return 0
