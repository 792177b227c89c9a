# SPDX-License-Identifier: BSD-2-Clause
"""A running machine: the emulator's process and its two serial lines.

The tool listens and the emulator connects, so that no port or path is guessed; sockets push back
when they are full, so that nothing is lost. Whatever way the tool ends, the emulator ends with it.
"""

import ctypes
import os
import select
import signal
import socket
import subprocess
import time

from .errors import ToolError

CONNECT_SECONDS = 30
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Process:
    """An emulator's process. It leads its own group: a ^C at the terminal is for the tool."""

    def __init__(self, command, folder, stdout):
        self._popen = subprocess.Popen(
            command, cwd=folder, env=dict(os.environ, TZ="UTC"), stdin=subprocess.DEVNULL,
            stdout=stdout, stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=_die_with_parent)
        self.stdout = self._popen.stdout

    @property
    def status(self):
        """The exit status, None while it runs."""
        return self._popen.poll()

    def wait(self, seconds):
        """Waits so long at most for the end."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    def stop(self):
        """Ends it. Bochs writes its last tick to its log on SIGINT."""
        for number, seconds in ((signal.SIGINT, 2), (signal.SIGTERM, 2), (signal.SIGKILL, 10)):
            if self.status is not None:
                break
            try:
                os.killpg(self._popen.pid, number)
            except ProcessLookupError:
                pass
            self.wait(seconds)


class _Listener:
    """A socket that waits for the emulator's one connection."""

    def __init__(self, kind, path):
        if kind == "tcp":
            self._socket = socket.create_server(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % self._socket.getsockname()[1]
        else:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(path)
            self._socket.listen(1)
            self.address = path

    def fileno(self):
        return self._socket.fileno()

    def accept(self):
        line, _ = self._socket.accept()
        line.setblocking(False)
        return line

    def close(self):
        self._socket.close()


class Line:
    """One serial line. What is written waits here until the machine takes it."""

    def __init__(self, connection):
        self._socket = connection
        self._pending = bytearray()
        self.open = True

    def fileno(self):
        return self._socket.fileno()

    def read(self):
        """What has come in, b"" if nothing has."""
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self.open = False
        return data

    def write(self, data):
        self._pending += data
        self.flush()

    @property
    def pending(self):
        return bool(self._pending)

    def flush(self):
        try:
            while self._pending and self.open:
                del self._pending[:self._socket.send(self._pending)]
        except BlockingIOError:
            pass
        except OSError:
            self._pending.clear()

    def close(self):
        self._socket.close()
        self.open = False


class Machine:
    """The emulator of @platform with the disk @image, its files in @folder (a pathlib.Path)."""

    def __init__(self, platform, folder, image, options):
        self.platform, self.folder = platform, folder
        self._process = self.com1 = self.com2 = None
        listeners = []
        # The path of a Unix socket may have 107 bytes at most: it is given relative to the folder.
        here = os.getcwd()
        try:
            os.chdir(folder)
            for name in ("com1", "com2"):
                if os.path.exists(name):
                    os.unlink(name)
                listeners.append(_Listener(platform.serial, name))
            command = platform.prepare(folder, image, *(one.address for one in listeners), options)
            with open("emulator.out", "wb") as out:
                self._process = Process(command, folder, out)
            self.com1, self.com2 = (self._connect(one) for one in listeners)
        except BaseException:
            self.stop()
            raise
        finally:
            os.chdir(here)
            for listener in listeners:
                listener.close()

    def _connect(self, listener):
        end = time.monotonic() + CONNECT_SECONDS
        while time.monotonic() < end:
            if select.select([listener], [], [], 0.1)[0]:
                return Line(listener.accept())
            if not self.running:
                raise ToolError(f"{self.platform.name} ended at once: {self.last_words()}")
        raise ToolError(f"{self.platform.name} does not start: {self.last_words()}")

    @property
    def running(self):
        return self._process.status is None

    def last_words(self):
        """The emulator's own last messages, for when it fails."""
        lines = []
        for name in ("emulator.out", "bochs.log"):
            try:
                text = (self.folder / name).read_text(errors="replace")
            except OSError:
                continue
            lines += [line.strip() for line in text.splitlines() if _telling(line)]
        return " | ".join(lines[-4:]) or f"exit status {self._process.status}, without a message"

    def ticks(self):
        return self.platform.ticks(self.folder)

    def stop(self):
        """Ends the emulator."""
        if self._process is None:
            return
        if self.com1 is not None and not self.com1.open:
            self._process.wait(2)  # it is about to end by itself
        for line in (self.com1, self.com2):
            if line is not None:
                line.close()
        self._process.stop()


def _telling(line):
    text = line.strip()
    if len(text) > 12 and text[:11].isdigit():
        return text[11] == "p" or text[11:13] == "e["
    return bool(text) and not text.startswith(("=", "<bochs:", "Bochs is exiting"))
