# SPDX-License-Identifier: BSD-2-Clause
"""Drives one running machine: streams its console and works through the steps of the command line.

The loop only moves bytes and asks: console.py and control.py understand them, machine.py owns the
emulator.
"""

import collections
import json
import os
import select
import sys
import time

from . import errors, terminal
from .console import Console
from .control import Control
from .terminal import say

POWER_OFF_SECONDS = 20  # host seconds that a machine has for powering off

Step = collections.namedtuple("Step", "kind value text")  # kind: until, send, cmd, stats


class Session:
    """One run of a Machine.

    @steps: Step tuples in order; @to_the_end: go on to the machine's end after the last of them;
    @server: a Server whose clients ask the monitor, too; @monitor_at_end: the hypervisor stays in its monitor when all VMs have ended.
    """

    def __init__(self, machine, steps, options, timeout=None, log=None, keyboard=None,
                 to_the_end=False, monitor_at_end=False, server=None):
        self.machine, self.console, self.control = machine, Console(), Control()
        self._steps = collections.deque(steps)
        self._options, self._timeout, self._log = options, timeout, log
        self._keyboard, self._keys = keyboard, terminal.Keys()
        self._to_the_end, self._monitor_at_end = to_the_end, monitor_at_end
        # Then it is no end when all VMs have ended: the next one may start.
        self._starts_vms = any(step.kind == "cmd" and step.value.startswith("vm ")
                               for step in steps)
        self._status_line = terminal.StatusLine()
        self._transcript = open(machine.folder / "control.log", "wb", buffering=0)
        self._asked = False  # the current step's command is on its way
        self._server, self._client = server, None  # whose question is on its way
        self._firmware = b""  # the last of what the firmware printed
        self._line_open = False
        self._is_tty = sys.stdout.isatty()
        self._ended_at = None
        self._gone = False

    def run(self):
        """Runs until the steps are done, the machine has ended or the time is up: exit status."""
        start = time.monotonic()
        while True:
            self._serve()
            status = self._decide(start)
            if status is not None:
                break
            if not self.console.started:
                self._status_line.show(self.machine.platform.boot_hint(self._options))
            self._wait()
        self._status_line.clear()
        self._transcript.close()
        if self._line_open:
            self._write(b"\n")
        if status and not self.console.started:
            self._explain_silence()
        return status

    # Bytes in and out

    def _wait(self):
        com1, com2 = self.machine.com1, self.machine.com2
        lines = [line for line in (com1, com2) if line.open]
        inputs = lines + ([self._keyboard] if self._keyboard is not None else [])
        clients = self._server.clients if self._server is not None else []
        if self._server is not None:
            inputs += [self._server] + clients
        readable, writable, _ = select.select(
            inputs, [line for line in lines + clients if line.pending], [], 0.2)
        for line in writable:
            line.flush()
        if com1 in readable:
            self._from_console(com1.read())
        if com2 in readable:
            data = com2.read()
            self._transcript.write(data)
            self.control.feed(data)
        if self._keyboard in readable:
            self._from_keyboard()
        for client in clients:
            if client in readable:
                self._server.read(client)
        if self._server is not None and self._server in readable:
            self._server.accept()

    def _serve(self):
        """Carries one question of a client to the machine, or its answer back."""
        if self._server is None or not self.control.ready:
            return
        self._server.greet(self.control.version)
        if self._asked:
            return
        if self._client is not None:
            answer = self.control.answer()
            if answer is None:
                return
            self._server.reply(self._client, answer)
            self._client = None
        question = self._server.question()
        if question is not None:
            self._client, command = question
            self._send(command)

    def _send(self, command):
        self._transcript.write(b"> " + command.encode() + b"\n")
        self.machine.com2.write(command.encode() + b"\n")

    def _from_keyboard(self):
        try:
            keys = os.read(self._keyboard, 4096)
        except OSError:
            keys = b""
        if keys:
            self.machine.com1.write(self._keys.feed(keys))
        else:
            self._gone = True  # the terminal was closed: nobody is left to end the machine

    def _from_console(self, data):
        if self._log is not None:
            self._log.write(data)
            self._log.flush()
        if not self.console.started:
            self._firmware = (self._firmware + data)[-4096:]
        shown = self.console.feed(data)
        if shown:
            self._status_line.clear()
            self._write(shown)

    def _write(self, data):
        self._line_open = not data.endswith(b"\n")
        # A terminal makes a new line of \n by itself; lone \r move its cursor and stay.
        data = data.replace(b"\r\n", b"\n") if self._is_tty else data.replace(b"\r", b"")
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def _say(self, text):
        """A line for a person, not in the middle of the console's."""
        self._status_line.clear()
        if self._line_open:
            self._write(b"\n")
        say(text)

    # What to do next

    def _decide(self, start):
        """The exit status, or None to go on."""
        waited_for = self._advance()
        console, machine = self.console, self.machine
        if isinstance(waited_for, int):
            return waited_for
        if waited_for is None and not self._to_the_end:
            return errors.OK
        if console.fatal is not None:
            self._say(f"the hypervisor stopped: {console.fatal}")
            return errors.FATAL
        if self._gone:
            return errors.INTERRUPTED
        if self._keys.quit:
            self._say("ended by Ctrl-A x")
            return errors.INTERRUPTED if self._steps else errors.OK
        if not machine.com1.open or not machine.running:
            return self._ended(waited_for)
        if console.all_ended and not self._starts_vms:
            if self._monitor_at_end:
                if waited_for is None or waited_for.kind == "until":
                    return self._ended(waited_for)
            elif self._server is not None:
                pass  # its clients may still ask, and start one again
            elif self._ended_at is None:
                self._ended_at = time.monotonic()
            elif time.monotonic() > self._ended_at + POWER_OFF_SECONDS:
                self._say("all VMs ended, but the machine did not power off: stopped it")
                return self._ended(waited_for)
        if self._timeout is not None and time.monotonic() > start + self._timeout:
            self._say(f"timeout after {self._timeout:g} s" +
                (f", waiting for {waited_for.text}" if waited_for else ""))
            return errors.TIMEOUT
        return None

    def _ended(self, waited_for):
        if waited_for is not None:
            self._say(f"the machine ended before {waited_for.text}")
            return errors.NOT_SEEN
        if not self.console.started:
            self._say("the machine ended before the hypervisor said anything")
            return errors.NOT_SEEN
        return errors.OK

    def _advance(self):
        """Does steps as far as they go.

        Returns the step that is waited for, None when all are done, an exit status on failure.
        """
        while self._steps:
            step = self._steps[0]
            if step.kind == "until":
                if not self.console.search(step.value):
                    return step
            elif step.kind == "send":
                if not self.console.started:
                    return step
                self.machine.com1.write(step.value)
            else:
                done = self._ask(step)
                if done is not True:
                    return step if done is False else done
            self._steps.popleft()
        self.console.forget()
        return None

    def _ask(self, step):
        """One command on the control line: True when done, False to wait, or an exit status."""
        if step.kind == "stats" and self._to_the_end and not self.console.all_ended:
            return False
        if not self.control.ready or self._client is not None:
            return False
        if not self._asked:
            command = step.value if step.kind == "cmd" else "stats json"
            self._send(command)
            self._asked = True
        answer = self.control.answer()
        if answer is None:
            return False
        self._asked = False
        text = "".join(line + "\n" for line in answer.lines)
        if step.kind == "cmd" and text:
            if self._line_open:
                self._write(b"\n")
            self._write(text.encode())
        if answer.error is not None:
            self._say(f"{step.text}: {answer.error}")
            return errors.CONTROL
        return self._save(step.value, text) if step.kind == "stats" else True

    def _save(self, path, text):
        try:
            json.loads(text)
        except ValueError as error:
            self._say(f"the hypervisor's statistics are not JSON ({error}): {text[:200]!r}")
            return errors.CONTROL
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise errors.ToolError(f"{path}: {error.strerror.lower()}") from None
        return True

    def _explain_silence(self):
        text = self._firmware.decode("utf-8", "replace")
        for line in [line for line in _printable(text).splitlines() if line.strip()][-5:]:
            self._say(f"firmware: {line.strip()}")
        if not self.machine.running:
            self._say(f"{self.machine.platform.name}: {self.machine.last_words()}")


def _printable(text):
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)
