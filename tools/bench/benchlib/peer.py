# SPDX-License-Identifier: BSD-2-Clause
"""The peer: the same tiny guests under KVM and QEMU, on a Debian host in the same Bochs.

Not measured by default: it takes some ten minutes, and its figures are in lines.py. The host is
that of `make test-nested`.
"""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

from vlaglib import machine, platforms
from vlaglib.errors import ToolError

from . import bochs, lines, paths, table, vlagrun

IPS = 400_000_000  # above 429 million KVM gives up the preemption timer
MEMORY = 1024
HERE = pathlib.Path(__file__).resolve().parents[1]

# Mitigations, watchdogs and a clock that has to be calibrated would cost time and tell nothing;
# Bochs loses wake-ups of MWAIT (idle=halt).
CMDLINE = (f"console=ttyS0,115200 loglevel=4 nokaslr panic=-1 tsc_early_khz={IPS // 1000} "
           "nowatchdog mitigations=off clearcpuid=avx512f idle=halt")
GRUB = f"""\
set timeout=0
menuentry host {{
 linux /boot/vmlinuz {CMDLINE}
 initrd /boot/base /boot/run
}}
"""
ROMS = ("/usr/share/qemu/multiboot.bin", "/usr/share/qemu/multiboot_dma.bin")

# KVM polls for up to 200 us before it lets a CPU sleep: 80,000 ticks. name: (CPUs of the host,
# vCPUs, guest, command line); xapic=1: that mode after the other.
RUNS = {
    "1 CPU": (1, 1, "exits", "n=300 x2apic=1 xapic=1 near=200000"),
    "2 CPUs": (2, 2, "exits", "n=200 x2apic=1 near=200000 asleep=200000"),
    "token": (2, 4, "token", "n=50 x2apic=1"),
}


def _nested():
    """The module tests/nested/run, which builds the host."""
    path = str(vlagrun.ROOT / "tests/nested/run")
    sys.path.append(str(vlagrun.ROOT / "guest-support"))
    loader = importlib.machinery.SourceFileLoader("nested_run", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("nested_run", loader))
    loader.exec_module(module)
    return module


def _build_iso(folder, nested, guest, vcpus, cmdline):
    archive = nested.newc.Archive()
    archive.file("init", (HERE / "peer-init").read_bytes(), 0o755)
    archive.file("guest.elf", guest.read_bytes())
    archive.file("vcpus", str(vcpus).encode())
    archive.file("cmdline", cmdline.encode())
    for rom in map(pathlib.Path, ROMS):
        archive.file(f"roms/{rom.name}", rom.read_bytes())
    host = nested.base()
    with tempfile.TemporaryDirectory(prefix="vlag-bench-") as tree:
        boot = pathlib.Path(tree) / "boot"
        (boot / "grub").mkdir(parents=True)
        (boot / "grub/grub.cfg").write_text(GRUB, encoding="ascii")
        for name in ("vmlinuz", "base"):
            (boot / name).write_bytes((host / name).read_bytes())
        (boot / "run").write_bytes(archive.tobytes())
        iso = folder / "host.iso"
        nested.run_tool("grub-mkrescue", "-d", "/usr/lib/grub/i386-pc", "-o", iso, tree)
    bochs.whole_cylinders(iso)


def _run(setup, nested, name):
    """What one run printed."""
    cpus, vcpus, guest, cmdline = RUNS[name]
    folder = setup.folder("peer-" + name.replace(" ", "-"))
    _build_iso(folder, nested, setup.guest(f"tests/guests/{guest}.elf"), vcpus, cmdline)
    (folder / "bochsrc").write_text(
        bochs.RC.format(model=platforms.Bochs.default_model, count=cpus, ips=IPS, mem=MEMORY,
                        rom=bochs.BIOS, disk="host.iso", vga=platforms.VGA_BIOS,
                        time0=platforms.TIME0), encoding="ascii")
    (folder / "debugger").write_text("c\n", encoding="ascii")
    vlagrun.say(f"peer: {guest} with {vcpus} vCPUs under KVM on {cpus} CPUs; minutes")
    process = machine.Process(["bochs-bin", "-q", "-f", "bochsrc", "-rc", "debugger"], folder,
                              subprocess.PIPE)
    try:
        output = b"".join(iter(lambda: process.stdout.read(4096), b"")).decode(errors="replace")
    finally:
        process.stop()
    (folder / "output.txt").write_text(output, encoding="utf-8")
    if f"guest: {guest}: PASS" not in output:
        raise ToolError(f"peer: the guest did not pass under KVM; see {folder}/output.txt")
    return output


def measure(setup):
    """run -> name -> median, and the host's kernel."""
    nested, found, host = _nested(), {}, None
    for name in RUNS:
        output = _run(setup, nested, name)
        host = output.split("host: ", 1)[1].split(",", 1)[0]
        found[name] = {line: figures[0] for line, figures in paths.read_figures(output).items()}
    return {"host": host, "ips": IPS, "figures": found}


def text(result):
    """A table of all lines that are compared, beside the constants."""
    one, two, token = (result["figures"][name] for name in RUNS)

    def row(line, figures):
        ticks = figures.get(line.name)
        return [line.title, ticks if ticks is None else -(-ticks // line.parts), line.same,
                line.kvm61]
    rows = [row(line, two if line.run == "2pcpus" else one) for line in lines.EXITS + lines.ALSO]
    rows.append(row(lines.TOKEN, token))
    return f"KVM of Linux {result['host']}, ips={result['ips']}, this guest; beside it what " \
        "lines.py says.\n\n" + table.render(["path", "measured", "this guest", "KVM 6.1"], rows)
