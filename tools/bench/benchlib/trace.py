# SPDX-License-Identifier: BSD-2-Clause
"""Where the ticks of the path lengths go: the guest `exits` once more, every exit traced."""

import re
import subprocess

from vlaglib import cfg, image, platforms
from vlaglib.errors import ToolError

from . import bochs, profile, table, vlagrun

SAMPLES = 8  # of each path: enough to tell the usual way from a chance one


def _address(elf, name):
    text = subprocess.run(["nm", elf], check=True, capture_output=True, text=True).stdout
    found = re.search(rf"^([0-9a-f]+) \w {name}$", text, re.M)
    if not found:
        raise ToolError(f"{elf} has no {name}")
    return int(found.group(1), 16)


def _usual(rows):
    """The ways that were gone for each sample, by reason, and the cheapest of a kind first."""
    rows = [row for row in rows if row["count"] >= SAMPLES - 1]
    return sorted(rows, key=lambda row: (row["reason"], row["instructions"], row["functions"]))


def measure(setup):
    """The guest `exits` in both modes of its APIC: a dictionary."""
    elf = setup.guest("tests/guests/exits.elf")
    folder = setup.folder("trace")
    config = cfg.Config(vlagrun.tiny_config(setup, "exits", cmdline=f"n={SAMPLES} xapic=1"))
    disk = folder / "disk.img"
    image.build_from_config(config, folder / "vlag.cfg", setup.efi, disk, vlagrun.say)
    vlagrun.say("trace: OVMF, vlag, exits; traces each VM exit")
    collected = profile.Profile(setup)
    with bochs.Debugger(folder, platforms.OVMF, disk, 512, 50_000_000) as debugger:
        debugger.stop_at_vm_exits()
        if debugger.go() != bochs.VMEXIT or collected.at_exit(debugger) is not None:
            raise ToolError("trace: no VM exit")
        debugger.break_at(_address(elf, "test_exit"))  # not before: the firmware is there too
        collected.follow(debugger)
    return {"samples": SAMPLES, "exits": len(collected.exits),
            "paths": _usual(profile.by_path(collected.exits))}


def text(result):
    """The table of measure()."""
    rows = [[row["reason"], profile.path_text(row["functions"]), row["count"],
             row["instructions"]] for row in result["paths"]]
    return "\n".join([
        "The guest `exits`: what an exit costs in instructions of the hypervisor, VMRESUME "
        "included, and in which functions.", "",
        table.render(["reason", "instructions by function", "count", "all"], rows, left=2)])
