# SPDX-License-Identifier: BSD-2-Clause
"""Boot cost: the same bzImage, initramfs and command line directly on Bochs and as a guest.

Both run under Bochs' debugger, with breakpoints on the 64-bit entry of the kernel, on functions
that the kernel calls once, and on the first instruction of its init. As a guest, the machine is
traced from each VM exit to the VM entry too, so that what the hypervisor took is known exactly.
"""

import bisect
import pathlib
import struct
import subprocess
import tempfile

from vlaglib import cfg, image, platforms
from vlaglib.errors import ToolError

from . import bochs, profile, table, vlagrun

IPS = 50_000_000
MEMORY = 128  # MB
CMDLINE = "console=ttyS0,115200 quiet"
GOAL = 1.10
PATHS, PATHS_SHOWN, FUNCTIONS_SHOWN = 100, 12, 20
GRUB = f"""\
set timeout=0
menuentry direct {{
 linux /boot/bzImage {CMDLINE}
 initrd /boot/initramfs.cpio
}}
"""
CONFIG = """\
[vm linux]
kernel = {kernel}
initrd = {initrd}
cmdline = {cmdline}
vcpus = 1
memory = {memory}M
"""

# A phase is from the call of this function to that of the next; the first is from the entry.
PHASES = (
    (None, "decompression"),
    ("x86_64_start_kernel", "first C code, CPU, memory map"),
    ("tsc_early_init", "TSC calibration"),
    ("probe_roms", "ROM probe, MTRRs"),
    ("default_find_smp_config", "search for an MP table"),
    ("init_mem_mapping", "page tables, ACPI tables, memory"),
    ("trap_init", "allocators, scheduler"),
    ("init_IRQ", "interrupts, timers"),
    ("console_init", "console"),
    ("x86_late_time_init", "IOAPIC, APIC, timer check, TSC"),
    ("calibrate_delay", "caches, file systems"),
    ("rest_init", "kernel threads"),
    ("setup_boot_APIC_clock", "APIC timer calibration, first initcalls"),
    ("driver_init", "drivers' core, early initcalls"),
    ("acpi_init", "ACPI"),
    ("pnpacpi_init", "PNP, PCI, file systems, initramfs"),
    ("serial8250_init", "serial ports, late initcalls"),
    ("free_initmem", "end of the kernel's own boot"),
    ("run_init_process", "exec of init"),
)
ENTRY_AT = 0x200  # of the 64-bit entry (Linux x86 boot protocol)


def _run(*command):
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode:
        raise ToolError(f"{command[0]}: {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout.decode(errors="replace")


# What to stop at

def _symbols(bzimage):
    """name -> address of the kernel, whose System.map is beside it in the cache."""
    cached = pathlib.Path(_run(vlagrun.ROOT / "guest-support/build-kernel").split("\n")[0])
    if cached.read_bytes() != bzimage.read_bytes():
        raise ToolError(f"{bzimage} is not the small kernel of guest-support; `make guests` "
                        "builds it")
    text = (cached.parent / "System.map").read_text(encoding="ascii")
    return {name: int(address, 16)
            for address, _, name in (line.split() for line in text.splitlines())}


def _kernel_entry(bzimage):
    header = bzimage.read_bytes()[:0x268]
    return struct.unpack_from("<Q", header, 0x258)[0] + ENTRY_AT  # pref_address


def _init_entry(initramfs):
    """Entry point of the initramfs' /init, a static ELF file."""
    data = initramfs.read_bytes()
    at = 0
    while True:
        if data[at:at + 6] != b"070701":
            raise ToolError(f"{initramfs}: no /init in it")
        fields = [int(data[at + 6 + 8 * n:at + 14 + 8 * n], 16) for n in range(13)]
        size, name_size = fields[6], fields[11]
        name = data[at + 110:at + 110 + name_size - 1].decode()
        body = (at + 110 + name_size + 3) & ~3
        if name in ("init", "./init", "/init"):
            return struct.unpack_from("<Q", data, body + 24)[0]
        at = (body + size + 3) & ~3


class Stops:
    """The addresses at which both machines are stopped."""

    def __init__(self, setup):
        self.bzimage = setup.guest("guest/bzImage")
        self.initramfs = setup.guest("guest/initramfs.cpio")
        symbols = _symbols(self.bzimage)
        self.entry, self.user = _kernel_entry(self.bzimage), _init_entry(self.initramfs)
        self.phases = {}  # address -> phase's number
        for number, (name, _) in enumerate(PHASES[1:], 1):
            if name not in symbols:
                raise ToolError(f"the small kernel has no {name}; benchlib/boot.py names the "
                                "functions at which a phase begins")
            self.phases[symbols[name]] = number


class Boot:
    """The ticks of one boot: @begin of each phase, @user the end of the last."""

    def __init__(self, stops, debugger):
        self.begin = [None] * len(PHASES)
        self.user = None
        self._stops, self._debugger = stops, debugger
        self._waiting = [stops.entry, *stops.phases, stops.user]  # in their order
        for _ in range(bochs.MAX_BREAKPOINTS - 1):  # one for the profile
            self._arm_next()

    def _arm_next(self):
        if self._waiting:
            self._debugger.break_at(self._waiting.pop(0))

    def reached(self, address):
        """Notes a breakpoint; returns whether it was the last."""
        tick = self._debugger.tick
        if address == self._stops.entry:
            self.begin[0] = tick  # the firmware may have used the address too: the last counts
            return False
        if address == self._stops.user:
            self.user = tick
            return True
        phase = self._stops.phases[address]
        self.begin[phase] = tick
        self._debugger.forget(address)
        self._arm_next()
        if phase == 1:
            self._debugger.forget(self._stops.entry)
            self._arm_next()
        return False

    def check(self):
        times = self.begin + [self.user]
        if None in times or times != sorted(times):
            raise ToolError(f"the kernel's phases were not reached in their order: {times}")

    @property
    def ticks(self):
        return self.user - self.begin[0]

    def phase_ticks(self):
        return [b - a for a, b in zip(self.begin, self.begin[1:] + [self.user])]


# Directly

def _build_iso(folder, stops):
    with tempfile.TemporaryDirectory(prefix="vlag-bench-") as tree:
        boot = pathlib.Path(tree) / "boot"
        (boot / "grub").mkdir(parents=True)
        (boot / "grub/grub.cfg").write_text(GRUB, encoding="ascii")
        (boot / "bzImage").write_bytes(stops.bzimage.read_bytes())
        (boot / "initramfs.cpio").write_bytes(stops.initramfs.read_bytes())
        iso = folder / "direct.iso"
        _run("grub-mkrescue", "-d", "/usr/lib/grub/i386-pc", "-o", iso, tree)
    bochs.whole_cylinders(iso)
    return iso


def _direct(setup, stops):
    folder = setup.folder("boot-direct")
    iso = _build_iso(folder, stops)
    vlagrun.say("boot-direct: Bochs' BIOS, GRUB, Linux")
    with bochs.Debugger(folder, bochs.BIOS, iso, MEMORY, IPS) as debugger:
        boot = Boot(stops, debugger)
        while not boot.reached(debugger.go()):
            pass
    boot.check()
    return boot


# As a guest

def _guest(setup, stops):
    folder = setup.folder("boot-guest")
    config = cfg.Config(CONFIG.format(kernel=stops.bzimage, initrd=stops.initramfs,
                                      cmdline=CMDLINE, memory=MEMORY))
    disk = folder / "disk.img"
    image.build_from_config(config, folder / "vlag.cfg", setup.efi, disk, vlagrun.say)
    vlagrun.say("boot-guest: OVMF, vlag, Linux; stops at each VM exit")
    collected = profile.Profile(setup)
    with bochs.Debugger(folder, platforms.OVMF, disk, 512, IPS) as debugger:
        boot = Boot(stops, debugger)
        debugger.stop_at_vm_exits()
        while not boot.reached(collected.follow(debugger)):
            pass
    boot.check()
    return boot, [one for one in collected.exits if one.tick >= boot.begin[0]]


# Results

def _by_phase(direct, guest, exits):
    rows = [{"phase": name, "from": symbol or "64-bit entry", "direct": there, "guest": here,
             "exits": 0, "hypervisor": 0}
            for (symbol, name), there, here in zip(PHASES, direct.phase_ticks(),
                                                   guest.phase_ticks())]
    for one in exits:
        row = rows[bisect.bisect_right(guest.begin, one.tick) - 1]
        row["exits"] += 1
        row["hypervisor"] += profile.instructions(one)
    return rows


def measure(setup):
    """Boots twice: a dictionary."""
    stops = Stops(setup)
    direct = _direct(setup, stops)
    guest, exits = _guest(setup, stops)
    hypervisor = sum(profile.instructions(one) for one in exits)
    halted = sum(one.ticks for one in exits) - hypervisor
    return {"ips": IPS, "memory_mb": MEMORY, "cmdline": CMDLINE,
            "direct": direct.ticks, "guest": guest.ticks,
            "ratio": round(guest.ticks / direct.ticks, 4), "goal": GOAL,
            "reached": guest.ticks <= GOAL * direct.ticks,
            "hypervisor": hypervisor, "halted": halted,
            "ratio_of_exits": round(guest.ticks / (guest.ticks - hypervisor), 4),
            "phases": _by_phase(direct, guest, exits), "exits": profile.by_reason(exits),
            "paths": profile.by_path(exits)[:PATHS], "functions": profile.by_function(exits)}


def text(result):
    """The tables of measure()."""
    phases = [[row["phase"], row["from"], row["direct"], row["guest"],
               row["guest"] - row["direct"], row["exits"], row["hypervisor"]]
              for row in result["phases"]]
    exits = [[row["reason"], row["count"], row["min"], row["median"], row["max"], row["sum"]]
             for row in result["exits"]]
    paths = [[row["reason"], profile.path_text(row["functions"]), row["count"],
              row["instructions"]] for row in result["paths"][:PATHS_SHOWN]]
    functions = result["functions"][:FUNCTIONS_SHOWN]
    total = sum(row["count"] for row in result["exits"])
    return "\n".join([
        f"Kernel entry to the first instruction of init, 1 CPU, {result['memory_mb']} MB, "
        f"ips={result['ips']}, `{result['cmdline']}`:", "",
        table.render(["", "ticks"], [
            ["directly on Bochs", result["direct"]],
            ["as a guest of vlag", result["guest"]],
            ["of these, in the hypervisor", result["hypervisor"]],
            ["of these, halted", result["halted"]],
            ["guest / direct", f"{result['ratio']:.3f}"],
            ["guest / guest without the hypervisor", f"{result['ratio_of_exits']:.4f}"]]), "",
        f"Goal: guest / direct at most {result['goal']:.2f}: "
        f"{'reached' if result['reached'] else 'NOT reached'}.", "",
        "By phase (ticks):", "",
        table.render(["phase", "begins with", "direct", "guest", "difference", "exits",
                      "hypervisor"], phases, left=2), "",
        f"The {total:,} VM exits, in instructions of the hypervisor, VMRESUME included:", "",
        table.render(["reason", "count", "min", "median", "max", "sum"], exits), "",
        "The ways through the hypervisor that cost most:", "",
        table.render(["reason", "instructions by function", "count", "each"], paths, left=2), "",
        "The functions that cost most:", "",
        table.render(["function", "instructions", "exits"], functions)])
