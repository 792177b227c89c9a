# SPDX-License-Identifier: BSD-2-Clause
"""`vlag stats`, `set`, `top`, `ask`: talk to a machine that runs, through the socket of
`vlag run --socket`.
"""

import json
import select
import socket
import sys
import time

from . import errors
from .control import Control
from .errors import ToolError

NO_ANSWER_SECONDS = 60


class Connection:
    """To the monitor of the machine behind the socket @path."""

    def __init__(self, path, timeout=NO_ANSWER_SECONDS):
        self._path, self._timeout, self._control = path, timeout, Control()
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise ToolError(f"{path}: {error.strerror.lower()}; it is the socket of a machine that "
                            "was started by `vlag run --socket`") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def ask(self, command):
        """The lines that the monitor answers with; a ToolError if it says that something is wrong."""
        self._wait(lambda: self._control.ready)
        try:
            self._socket.sendall(command.encode() + b"\n")
        except OSError:
            pass  # it ended: so says what is read
        answer = self._wait(self._control.answer)
        if answer.error is not None:
            raise ToolError(answer.error, errors.CONTROL)
        return answer.lines

    def _wait(self, done):
        end = time.monotonic() + self._timeout
        while not (found := done()):
            if not select.select([self._socket], [], [], max(0, end - time.monotonic()))[0]:
                raise ToolError(f"{self._path}: nothing came for {self._timeout:g} s",
                                errors.TIMEOUT)
            try:
                data = self._socket.recv(65536)
            except OSError:
                data = b""
            end = time.monotonic() + self._timeout  # it says something
            if not data:
                raise ToolError(f"{self._path}: the machine ended", errors.NOT_SEEN)
            self._control.feed(data)
        return found


COLUMNS = ("vCPU", "pCPU", "run %", "steal %", "exits/s", "switches/s", "spins/s")


def rates(before, after):
    """What happened between two `stats json`: rows of COLUMNS, a second being the machine's."""
    elapsed = after["uptime_ns"] - before["uptime_ns"]
    if elapsed <= 0:
        return []
    rows = []
    for old_vm, vm in zip(before["vms"], after["vms"]):
        for old, new in zip(old_vm["vcpus"], vm["vcpus"]):
            def grown(value, old=old, new=new):
                # After a `stats reset` in between: since then.
                return value(new) - value(old) if value(new) >= value(old) else value(new)

            def per_second(value):
                return round(grown(value) * 1e9 / elapsed)
            rows.append((f"{vm['name']}/{new['id']}", new["pcpu"],
                         round(100 * grown(lambda v: v["run_ns"]) / elapsed),
                         round(100 * grown(lambda v: v["wait_ns"]) / elapsed),
                         per_second(lambda v: v["exits_total"]),
                         per_second(lambda v: v["switches"]),
                         per_second(lambda v: v["counters"].get("spin_exits", 0))))
    return rows


def table(rows):
    """Lines of text: names to the left, numbers to the right."""
    rows = [COLUMNS] + [tuple(str(cell) for cell in row) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    return ["  ".join([row[0].ljust(widths[0])] +
                      [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])])
            for row in rows]


def _parser(commands, name, text, run, more=""):
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + "." +
                                 more)
    parser.add_argument("socket", metavar="SOCKET", help="of `vlag run --socket SOCKET`")
    parser.set_defaults(run=run)
    return parser


def add_parser(commands):
    parser = _parser(commands, "stats", "show all counters of a running machine", main_stats)
    parser.add_argument("--format", choices=("table", "json", "prom"), default="table",
                        help="prom: Prometheus' text format")
    parser.add_argument("--reset", action="store_true", help="then count from 0")

    parser = _parser(commands, "set", "list, show or set knobs of a running machine", main_set)
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("value", nargs="?", metavar="VALUE")

    parser = _parser(commands, "top", "show who runs, waits and exits, again and again", main_top,
                     " Rates are per second of the machine's time.")
    parser.add_argument("-d", "--delay", type=float, default=2, metavar="S",
                        help="host seconds between two looks (default: 2)")
    parser.add_argument("-n", "--count", type=int, default=0, metavar="N",
                        help="so many tables, then end (default: until ^C)")

    parser = _parser(commands, "ask", "ask the monitor of a running machine", main_ask)
    parser.add_argument("command_line", nargs="+", metavar="COMMAND", help="see its `help`")


def _show(args, command):
    with Connection(args.socket) as machine:
        for line in machine.ask(command):
            print(line)
    return errors.OK


def main_stats(args):
    return _show(args, f"stats {args.format}" + " reset" * args.reset)


def main_set(args):
    return _show(args, " ".join(filter(None, ("knob", args.name, args.value))))


def main_ask(args):
    return _show(args, " ".join(args.command_line))


def main_top(args):
    def look():
        return json.loads("\n".join(machine.ask("stats json")))
    try:
        with Connection(args.socket) as machine:
            before, shown = look(), 0
            while not args.count or shown < args.count:
                time.sleep(max(args.delay, 0))
                after = look()
                lines = table(rates(before, after))
                if sys.stdout.isatty():
                    sys.stdout.write("\x1b[H\x1b[J")
                print("\n".join(lines), flush=True)
                before, shown = after, shown + 1
    except KeyboardInterrupt:
        pass
    return errors.OK
