# SPDX-License-Identifier: BSD-2-Clause
"""The user's terminal: keys go to the machine as they are, a status line while nothing happens."""

import contextlib
import os
import sys
import termios
import time

PREFIX = 0x01  # Ctrl-A, the hypervisor's prefix (as QEMU's, screen's and minicom's)


class Keys:
    """Looks for Ctrl-A x, which ends the machine; the rest goes on to it."""

    def __init__(self):
        self._prefix = False
        self.quit = False

    def feed(self, data):
        """Takes what was typed; returns what the machine shall get. Sets @quit after Ctrl-A x."""
        out = bytearray()
        for byte in data:
            if self._prefix:
                self._prefix = False
                if byte in b"xX":
                    self.quit = True
                    break
                out += bytes((PREFIX, byte))
            elif byte == PREFIX:
                self._prefix = True
            else:
                out.append(byte)
        return bytes(out)


class Raw:
    """A context in which the terminal @fd hands on each key at once, ^C too, without echo."""

    def __init__(self, fd):
        self._fd = fd
        self._saved = None

    def __enter__(self):
        if self._fd is not None:
            self._saved = termios.tcgetattr(self._fd)
            mode = termios.tcgetattr(self._fd)
            mode[0] &= ~(termios.IXON | termios.ICRNL | termios.INLCR | termios.ISTRIP)
            mode[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
            mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
            termios.tcsetattr(self._fd, termios.TCSADRAIN, mode)
        return self

    def __exit__(self, *_):
        if self._saved is not None:
            with contextlib.suppress(termios.error):  # the terminal may be gone
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)


class StatusLine:
    """One line on stderr that says what goes on, where stderr is a terminal."""

    def __init__(self):
        self._on = sys.stderr.isatty()
        self._start = time.monotonic()
        self._shown = None

    def show(self, text):
        line = f"{text} ... {time.monotonic() - self._start:.0f} s"
        if self._on and line != self._shown:
            self._shown = line
            os.write(2, f"\r\x1b[K{line}".encode())

    def clear(self):
        if self._on and self._shown is not None:
            os.write(2, b"\r\x1b[K")
        self._on = False


def say(text):
    """One line for a person, on stderr."""
    print(f"vlag run: {text}", file=sys.stderr, flush=True)
