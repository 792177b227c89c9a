# SPDX-License-Identifier: BSD-2-Clause
"""The control line (COM2): the hypervisor's monitor for programs.

One line `COMMAND` asks. The answer is any number of lines, then `.ok` or `.error TEXT`; a line of
the answer that begins with a dot has another dot put before it. `.ready vlag VERSION` comes once,
when the hypervisor listens. What comes before it is firmware's and is dropped.
"""


class Answer:
    """The lines that a command printed; @error is None or why it failed."""

    def __init__(self, lines, error):
        self.lines, self.error = lines, error


class Control:
    """Takes the bytes that come in apart; knows nothing of sockets."""

    def __init__(self):
        self.version = None
        self._partial = b""
        self._lines = []
        self._answers = []

    @property
    def ready(self):
        return self.version is not None

    def feed(self, data):
        """Takes bytes from the machine."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for raw in lines:
            self._line(raw.rstrip(b"\r").decode("utf-8", "replace"))

    def _line(self, line):
        start = line.find(".ready vlag")
        if start >= 0 and (start == 0 or not self.ready):
            # A reset machine says it again; whatever was asked before will not be answered.
            self.version = line[start:].split(" ", 2)[2]
            self._lines = []
        elif not self.ready:
            return
        elif line == ".ok":
            self._done(None)
        elif line == ".error" or line.startswith(".error "):
            self._done(line[len(".error "):] or "no reason given")
        else:
            self._lines.append(line[1:] if line.startswith("..") else line)

    def _done(self, error):
        self._answers.append(Answer(self._lines, error))
        self._lines = []

    def answer(self):
        """The next complete Answer, or None."""
        return self._answers.pop(0) if self._answers else None
