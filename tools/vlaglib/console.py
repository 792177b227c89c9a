# SPDX-License-Identifier: BSD-2-Clause
"""Understands the console (COM1): where the hypervisor's output begins, what it says of itself.

No input or output of its own: bytes come in by feed(), events and text are asked for.
"""

import re

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_=>])")
_HALF_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*)?$")
_ENDED = re.compile(r"^vlag: vm (\S+): ended: (.*)$")
_STATUS = re.compile(r"^debug-exit status (\d+)\b")
LINE_MAX = 16384  # a longer line is judged by its end


class Console:
    """The text of the console, judged line by line; a line may still be unfinished.

    Regular expressions see lines without carriage returns and terminal escapes.
    """

    def __init__(self):
        self.started = False  # the hypervisor has said something
        self.fatal = None  # the text of its last words
        self.all_ended = False
        self.endings = {}  # VM name -> how it ended
        self._partial = ""
        self._ready = []  # finished lines that no regular expression has seen yet
        self._offset = 0  # how much of the first of them was matched already

    def feed(self, data):
        """Takes bytes of the console; returns those that are the user's: not the firmware's."""
        text = data.decode("utf-8", "replace")
        shown = data
        if not self.started:
            raw = self._partial + text
            start = _first_words(raw)
            if start < 0:
                shown = b""
            else:
                self.started = True
                shown = raw[start:].encode("utf-8", "replace")
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            line = _plain(line)
            self._own(line)
            self._ready.append(line)
        self._partial = self._partial[-LINE_MAX:]
        return shown

    def _own(self, line):
        if line.startswith("vlag: fatal: ") and self.fatal is None:
            self.fatal = line[len("vlag: fatal: "):]
        elif line.startswith(("vlag: all VMs ended", "vlag: every VM has ended")):
            self.all_ended = True
        else:
            match = _ENDED.match(line)
            if match:
                self.endings[match.group(1)] = match.group(2)

    def search(self, regex):
        """Whether @regex is in what came since the last match; uses that up, as far as it goes."""
        while self._ready:
            match = regex.search(self._ready[0], self._offset)
            if match:
                self._offset = match.end()
                return True
            self._ready.pop(0)
            self._offset = 0
        line = _plain(_HALF_ESCAPE.sub("", self._partial))
        match = regex.search(line, min(self._offset, len(line)))
        if match:
            self._offset = match.end()
        return bool(match)

    def forget(self):
        """Drops the lines that no regular expression asked for: nobody will."""
        self._ready.clear()
        self._offset = 0

    def statuses(self):
        """What VMs wrote to their debug-exit ports, by VM; None where one ended otherwise."""
        found = {}
        for name, how in self.endings.items():
            match = _STATUS.match(how)
            found[name] = int(match.group(1)) if match else None
        return found


def _plain(line):
    return _ESCAPE.sub("", line).replace("\r", "")


def _first_words(text):
    """Where a line that begins with `vlag` starts, -1 if there is none yet."""
    match = re.search(r"(?:^|[\r\n]|\x1b\[[0-9;?]*[@-~])(vlag)", text)
    return match.start(1) if match else -1
