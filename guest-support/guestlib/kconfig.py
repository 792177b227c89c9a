# SPDX-License-Identifier: BSD-2-Clause
"""Kernel configuration fragments as text: reading, stacking and checking them. No files, no kernel
tree."""

import re

_LINE = re.compile(r"(CONFIG_[A-Za-z0-9_]+)=(.*)|# (CONFIG_[A-Za-z0-9_]+) is not set")


def parse(text, name="fragment"):
    """{option: value} of a fragment or a .config; 'n' for "is not set". Raises ValueError naming
    the line."""
    options = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        match = _LINE.fullmatch(line)
        if match:
            options[match.group(1) or match.group(3)] = match.group(2) if match.group(1) else "n"
        elif line and not line.startswith("#"):
            raise ValueError(
                f"{name}:{number}: '{line}' is no configuration line: "
                "write CONFIG_NAME=value or # CONFIG_NAME is not set"
            )
    return options


def stack(fragments):
    """One fragment's text from several {option: value}: of an option that is given twice the last
    counts."""
    merged = {}
    for options in fragments:
        merged.update(options)
    lines = (
        f"{name}={value}" if value != "n" else f"# {name} is not set"
        for name, value in sorted(merged.items())
    )
    return "\n".join(lines) + "\n"


def refused(wanted, got):
    """What WANTED asks for and GOT, the .config that came out, does not have: [(option, wanted,
    got)]."""
    return [
        (name, value, got.get(name, "n"))
        for name, value in sorted(wanted.items())
        if got.get(name, "n") != value
    ]
