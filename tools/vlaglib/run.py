# SPDX-License-Identifier: BSD-2-Clause
"""`vlag run`: boots a config or an image, streams the console, exits with what was seen."""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from . import errors, image, machine, platforms, server, session, terminal
from .errors import ToolError
from .session import Step
from .terminal import say

MIN_MEM, MAX_MEM = 512, 3072  # MB, of the default
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "e": "\x1b", "\\": "\\"}

DESCRIPTION = """\
Builds an image from a config and boots it, or boots an image, and streams the hypervisor's console
to standard output. Messages of the tool itself go to standard error.

--until, --send, --cmd are steps: they are done in the order in which they stand. --until waits for
a regular expression in a line of the console, which may still be unfinished, after what the last
--until matched; --send types on the console; --cmd asks the monitor over the control line and
prints the answer. After the last step the statistics are taken (--stats) and the machine is ended.
Without --until and --cmd, and after a --send that comes last, the machine runs until it ends by
itself; --stats takes the statistics when all VMs have ended.

On a terminal, without --until and --cmd, keys go to the console. Ctrl-A x ends the machine, Ctrl-A h
is the hypervisor's help.
"""
STATUSES = """\
exit status: 0 every --until was seen and every --cmd went well (without them: the machine ended by
itself); 1 the machine ended before; 2 wrong usage; 3 the hypervisor stopped with `vlag: fatal:`;
4 a monitor command failed; 124 timeout; 130 interrupted. With --debug-exit-status a machine that
ended by itself gives the guests' own status.
"""


class _StepAction(argparse.Action):
    """Keeps --until, --send and --cmd in the order of the command line."""

    def __call__(self, parser, namespace, value, option=None):
        kind = option.lstrip("-")
        text = f"{option} {value!r}"
        if kind == "until":
            try:
                value = re.compile(value)
            except re.error as error:
                parser.error(f"{text}: not a regular expression: {error}")
        elif kind == "send":
            value = unescape(value).encode()
        elif "\n" in value or not value.strip():
            parser.error(f"{text}: one monitor command is one line")
        namespace.steps = (namespace.steps or []) + [Step(kind, value, text)]


def unescape(text):
    r"""Turns \n \r \t \e \\ and \xHH into what they stand for; other text stays."""
    def one(match):
        if match.group(1):
            return chr(int(match.group(1), 16))
        return _ESCAPES[match.group(2)]
    return re.sub(r"\\(?:x([0-9a-fA-F]{2})|([nrte\\]))", one, text)


def _number(low, high):
    def parse(text):
        value = int(text.replace("_", ""), 0)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not in {low} to {high}")
        return value
    parse.__name__ = "number"
    return parse


def add_parser(commands):
    parser = commands.add_parser("run", help="boot a config and stream the console",
                                 description=DESCRIPTION, epilog=STATUSES,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-c", "--config", metavar="CFG", help="boot this config")
    what.add_argument("--image", metavar="IMG", help="boot (a copy of) this image as it is")
    parser.add_argument("--efi", default=image.default_loader(), metavar="FILE",
                        help="the hypervisor (default: build/BOOTX64.EFI)")
    parser.add_argument("--platform", choices=platforms.NAMES, default="auto",
                        help="auto: QEMU where KVM has nested VMX, else Bochs")
    parser.add_argument("--pcpus", type=_number(1, 64), default=1, metavar="N")
    parser.add_argument("--ips", type=_number(1_000_000, 4_000_000_000), default=50_000_000,
                        metavar="N", help="Bochs: instructions a second of the machine's time "
                                          "(default: 50000000)")
    parser.add_argument("--mem", type=_number(64, 1 << 20), metavar="MB",
                        help="the machine's memory (default: what the VMs need and 256, from "
                             f"{MIN_MEM} to {MAX_MEM})")
    parser.add_argument("--model", metavar="CPU", help="the emulator's CPU model (default: bochs "
                        f"{platforms.Bochs.default_model}, qemu host,+vmx, qemu-tcg max)")
    parser.add_argument("--until", action=_StepAction, dest="steps", metavar="REGEX",
                        help="wait for it on the console (repeatable)")
    parser.add_argument("--send", action=_StepAction, dest="steps", metavar="TEXT",
                        help="type it; \\n \\r \\t \\e \\\\ \\xHH are escapes (repeatable)")
    parser.add_argument("--cmd", action=_StepAction, dest="steps", metavar="COMMAND",
                        help="ask the monitor (repeatable)")
    parser.add_argument("--stats", metavar="FILE", help="write the statistics, as JSON")
    parser.add_argument("--log", metavar="FILE", help="write the console's bytes, firmware's too")
    parser.add_argument("--socket", metavar="PATH", help="answer `vlag stats`, `set`, `top`, `ask`, "
                                                           "`trace` at this Unix socket")
    parser.add_argument("--timeout", type=float, metavar="S", help="host seconds")
    parser.add_argument("--keep", metavar="DIR",
                        help="work in this folder and keep it: image, emulator's files and logs")
    parser.add_argument("--debug-exit-status", action="store_true",
                        help="run to the machine's end; exit with the first VM's debug-exit status "
                             "that is not 0 (1 where a VM ended without one)")
    parser.set_defaults(run=main, steps=None)


def main(args):
    steps = args.steps or []
    waits = any(step.kind in ("until", "cmd") for step in steps)
    to_the_end = args.debug_exit_status or not waits or steps[-1].kind == "send"
    if args.stats:
        steps = steps + [Step("stats", os.path.abspath(args.stats), f"--stats {args.stats}")]
    uses_control = any(step.kind in ("cmd", "stats") for step in steps)
    platform, why = platforms.choose(args.platform)
    if why:
        say(f"platform {platform.name}: {why}")
    options = platforms.Options(args.pcpus, args.ips, args.mem or MIN_MEM, args.model)
    keyboard = sys.stdin.fileno() if sys.stdin.isatty() and not waits else None
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _on_signal)
    folder = _work_folder(args.keep)
    log = None
    try:
        if args.log:
            log = _open_log(args.log)
        disk = folder / "disk.img"
        if args.image:
            _copy(args.image, disk)
        else:
            _build(args, disk, options, uses_control)
        return _boot(args, platform, folder, disk, options, steps, keyboard, log, to_the_end,
                     uses_control and not args.image)
    except KeyboardInterrupt:
        say("interrupted")
        return errors.INTERRUPTED
    finally:
        if log is not None:
            log.close()
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _on_signal(number, _frame):
    sys.exit(128 + number)


def _boot(args, platform, folder, disk, options, steps, keyboard, log, to_the_end, monitor_at_end):
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        listener = None
        if args.socket:
            listener = stack.enter_context(contextlib.closing(server.Server(args.socket)))
        host = machine.Machine(platform, folder, disk, options)
        stack.callback(host.stop)
        stack.enter_context(terminal.Raw(keyboard))
        if keyboard is not None:
            say("Ctrl-A x ends the machine, Ctrl-A h shows the hypervisor's keys")
        driver = session.Session(host, steps, options, timeout=args.timeout, log=log,
                                 keyboard=keyboard, to_the_end=to_the_end,
                                 monitor_at_end=monitor_at_end, server=listener)
        status = driver.run()
    ticks = host.ticks()
    say(f"{platform.name}, {options.pcpus} pCPU{'s' * (options.pcpus > 1)}: " +
        (f"{ticks:,} ticks, " if ticks else "") + f"{time.monotonic() - start:.1f} s")
    for name, how in driver.console.endings.items():
        say(f"vm {name} ended: {how}")
    if status == errors.OK and args.debug_exit_status:
        status = _guests_status(driver.console.statuses())
    return status


def _guests_status(statuses):
    if not statuses:
        say("no VM ended with a debug-exit status")
        return errors.NOT_SEEN
    for value in statuses.values():
        if value != 0:
            return errors.NOT_SEEN if value is None else min(value, 255)
    return errors.OK


def _work_folder(keep):
    if not keep:
        return pathlib.Path(tempfile.mkdtemp(prefix="vlag-run-"))
    try:
        os.makedirs(keep, exist_ok=True)
    except OSError as error:
        raise ToolError(f"--keep {keep}: {error.strerror.lower()}") from None
    return pathlib.Path(keep).resolve()


def _open_log(path):
    try:
        return open(path, "wb")
    except OSError as error:
        raise ToolError(f"--log {path}: {error.strerror.lower()}") from None


def _copy(source, target):
    """The machine writes to its disk (OVMF keeps its variables there): it gets a copy."""
    done = subprocess.run(["cp", "--sparse=always", "--reflink=auto", "--", source, target],
                          check=False, capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"--image {source}: {done.stderr.strip()}")


def _build(args, disk, options, uses_control):
    """Builds the image for this run: the control line is on, and the monitor stays up for it."""
    config = image.read_config(args.config)
    if args.mem is None:
        wanted = (config.memory() >> 20) + 256
        options.mem = min(max(MIN_MEM, -(-wanted // 64) * 64), MAX_MEM)
    if uses_control or config.get("hypervisor", "control") is None:
        config.set("hypervisor", "control", "com2")
    if uses_control:
        config.set("hypervisor", "when_done", "monitor")
    image.build_from_config(config, args.config, args.efi, disk,
                            lambda text: say(f"{args.config}: {text}"))
