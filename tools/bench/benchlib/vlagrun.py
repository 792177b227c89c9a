# SPDX-License-Identifier: BSD-2-Clause
"""One run of `tools/vlag run` in Bochs: a config in, console and statistics out."""

import json
import pathlib
import subprocess
import sys

from vlaglib.errors import ToolError

ROOT = pathlib.Path(__file__).resolve().parents[3]
ATTACHED = "vlag: console of vm"
SECONDS = 3600  # host time, for a machine that hangs; never a figure to measure by


class Setup:
    """Where things are: @build the build folder, @efi the hypervisor, @work where runs are kept."""

    def __init__(self, build, efi, work):
        self.build, self.efi, self.work = build, efi, work

    def guest(self, path):
        """A file of the build folder, for a config."""
        found = self.build / path
        if not found.exists():
            raise ToolError(f"{found} is not there; `make bench` builds it")
        return found.resolve()

    def folder(self, name):
        path = self.work / name
        path.mkdir(parents=True, exist_ok=True)
        return path


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def tiny_config(setup, guest, cmdline="", vcpus=1, **keys):
    """The text of a config with the tiny guest @guest as its one VM `bench`."""
    keys = {"kernel": setup.guest(f"tests/guests/{guest}.elf"), "cmdline": cmdline,
            "vcpus": vcpus, "memory": "16M", "debug_exit": "0xf4", **keys}
    return "[vm bench]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


def run(setup, name, config, until, pcpus=1, command=None, keys=None, more=()):
    """Boots @config until the regular expression @until is seen: (console, statistics). The
    monitor's answer to @command is a part of the console. @keys are typed once the hypervisor
    has attached the console to the first VM, @more are further arguments of `vlag run`."""
    folder = setup.folder(name)
    path, stats = folder / "vlag.cfg", folder / "stats.json"
    path.write_text(config, encoding="utf-8")
    stats.unlink(missing_ok=True)
    say(f"{name}: {pcpus} pCPU{'s' * (pcpus > 1)}")
    done = subprocess.run(
        [ROOT / "tools/vlag", "run", "-c", path, "--efi", setup.efi, "--platform", "bochs",
         "--pcpus", str(pcpus), *more,
         *(["--until", ATTACHED, "--send", keys] if keys else []),
         "--until", until, *(["--cmd", command] if command else []),
         "--stats", stats, "--log", folder / "console.log", "--timeout", str(SECONDS)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise ToolError(f"{name}: the run failed (status {done.returncode}):\n"
                        f"{done.stderr}{done.stdout[-2000:]}")
    return done.stdout, json.loads(stats.read_text(encoding="utf-8"))


def run_tiny(setup, name, guest, pcpus=1, **keys):
    """Runs a tiny guest to its PASS: (console, statistics)."""
    console, stats = run(setup, name, tiny_config(setup, guest, **keys), "vm bench: ended", pcpus)
    if f"guest: {guest}: PASS" not in console:
        raise ToolError(f"{name}: the guest {guest} did not pass:\n{console[-2000:]}")
    return console, stats
