# SPDX-License-Identifier: BSD-2-Clause
"""The host's view of vlag.cfg: which files it names, and small changes for the copy in an image.

The file is judged by the hypervisor alone (hv/config): what is not understood here is left as it
is, so that the hypervisor can say what is wrong with it. Lines are never moved: its messages name
lines of the user's file.
"""

import re

FILE_KEYS = ("kernel", "initrd", "modules")
# Some editors put a byte order mark in front of the first line; the hypervisor ignores it.
_SECTION = re.compile(r"^(?:\ufeff)?\s*\[\s*(\w+)\s*([^\]]*?)\s*\]\s*$")
_KEY = re.compile(r"^(\s*([A-Za-z_]\w*)\s*=[ \t]*)(.*?)(\s*)$")
_MEMORY = re.compile(r"^(\d+)([KMG]?)$", re.I)


class Line:
    """One `key = value` line: its place, its section and its parts."""

    def __init__(self, index, section, name, head, key, value, tail):
        self.index, self.section, self.name = index, section, name
        self.head, self.key, self.value, self.tail = head, key, value, tail


class Config:
    """The text of a vlag.cfg, changed line by line."""

    def __init__(self, text):
        self.lines = text.split("\n")

    def keys(self):
        """All key lines, in file order."""
        section, name = "", ""
        for index, line in enumerate(self.lines):
            if line.lstrip()[:1] in ("#", ";"):
                continue
            match = _SECTION.match(line)
            if match:
                section, name = match.group(1).lower(), match.group(2)
                continue
            match = _KEY.match(line)
            if match:
                head, key, value, tail = match.groups()
                yield Line(index, section, name, head, key.lower(), value, tail)

    def files(self):
        """The paths that the config names, as written, each once."""
        seen = {}
        for line in self.keys():
            if line.section == "vm" and line.key in FILE_KEYS:
                for path in _paths(line):
                    seen.setdefault(path, None)
        return list(seen)

    def rename(self, renamed):
        """Puts the new name of each path in the map @renamed in the old one's place."""
        for line in list(self.keys()):
            if line.section == "vm" and line.key in FILE_KEYS:
                paths = _paths(line)
                if any(path in renamed for path in paths):
                    value = ", ".join(renamed.get(path, path) for path in paths)
                    self.lines[line.index] = line.head + value + line.tail

    def get(self, section, key):
        """The last value of @key in [@section], None if it is absent."""
        value = None
        for line in self.keys():
            if line.section == section and line.key == key:
                value = line.value
        return value

    def set(self, section, key, value):
        """Sets @key of [@section]. A new key takes the line of a blank or a comment, if it can."""
        found = [line for line in self.keys() if line.section == section and line.key == key]
        for line in found:
            self.lines[line.index] = line.head + value + line.tail
        if found:
            return
        start, end = self._extent(section)
        if start is None:
            while self.lines and not self.lines[-1].strip():
                self.lines.pop()
            self.lines += ["", f"[{section}]", f"{key} = {value}", ""]
            return
        free = [n for n in range(start + 1, end) if self.lines[n].strip()[:1] in ("", "#", ";")]
        if free and (free[-1] < len(self.lines) - 1 or self.lines[free[-1]].strip()):
            self.lines[free[-1]] = f"{key} = {value}"
        else:
            self.lines.insert(free[-1] if free else end, f"{key} = {value}")

    def _extent(self, section):
        """The line of the header of the first [@section] and the line after its last."""
        start = None
        for index, line in enumerate(self.lines):
            match = _SECTION.match(line)
            if match and start is not None:
                return start, index
            if match and match.group(1).lower() == section:
                start = index
        return start, len(self.lines)

    def memory(self):
        """Bytes of memory that all VMs ask for, as far as it can be read."""
        vms = {}
        for line in self.keys():
            if line.section == "vm":
                vms.setdefault(line.name, 128 << 20)
                match = _MEMORY.match(line.value)
                if line.key == "memory" and match:
                    shift = {"": 0, "K": 10, "M": 20, "G": 30}[match.group(2).upper()]
                    vms[line.name] = int(match.group(1)) << shift
        return sum(vms.values())

    def text(self):
        """The whole file."""
        return "\n".join(self.lines)


def _paths(line):
    if line.key == "modules":
        return [path for path in (part.strip() for part in line.value.split(",")) if path]
    return [line.value] if line.value else []
