# SPDX-License-Identifier: BSD-2-Clause
"""Linux guests under load, all at once: workloads x numbers of VMs x policies x folding.

Each point is one machine: its VMs boot, wait for the same second, run guest-support's `load` and
power off. What they print is collected; policies are compared with the first one.
"""

import csv
import re

from vlaglib.errors import ToolError

from . import table, vlagrun

ENDED = r"vlag: every VM has ended"
TO_MONITOR = r"\x01m"  # attached to no VM, so that all output comes in whole lines
LINE_MAX = 256  # of hv/console.c: a longer line of a VM comes in pieces of this length

# How the guests fold: (words for the kernel's command line, command before the load)
FOLDS = {
    "none": ("", ""),
    "steald": ("", "steald interval_ms={interval} &"),
    # The kernel's governor is built in; a threshold that is never reached keeps it from folding.
    "off": ("steal_governor.high_threshold=9999", ""),
    "kernel": ("steal_governor.interval_ms={interval}", "steald watch=1 interval_ms={interval} &"),
}

_FROM_VM = re.compile(r"^([A-Za-z0-9_-]{1,31})\| (.*)$")
_RESULT = "vlag-result: "
_FOLDED = re.compile(r"steald: (?:steal \S+ %: prefers|the kernel prefers) (\S+)")
_BAD_KNOB = re.compile(r"^vlag: .*\[knobs\].*$", re.M)
# Counters of a vCPU that are shown where the hypervisor has them.
COUNTERS = ("exits_total", "wait_ns", "directed_yield_attempted", "directed_yield_successful")


# Candidate and yield policies that are compared most.
PAIRS = [f"({candidates}, {policy}): candidate_policy={candidates} yield_policy={policy}"
         for candidates, policy in (("kvm", "forfeit"), ("ipi", "credit"), ("exact", "transfer"),
                                    ("exact", "auto"))]
# The matrix of `make bench BENCH=load`.
PART_WORKLOADS = ("ipistorm mode=munmap fanout=1", "lockstorm", "hackbench", "dbench")
PART_VMS = (2, 3, 4)


class Guests:
    """What the VMs of every point have in common."""

    def __init__(self, kernel, initrd, vcpus=4, pcpus=4, memory="96M", align=4, interval=500,
                 cmdline="", ips=None):
        self.kernel, self.initrd, self.vcpus, self.pcpus = kernel, initrd, vcpus, pcpus
        self.memory, self.align, self.interval = memory, align, interval
        self.cmdline, self.ips = cmdline, ips


class Point:
    """One machine of the matrix. @workload: the arguments of `load`; @policy: (name, {knob:
    value}); @fold: of FOLDS."""

    def __init__(self, workload, vms, policy, fold="none"):
        self.workload, self.vms, self.fold = workload, vms, fold
        self.policy, self.knobs = policy

    @property
    def name(self):
        words = (*self.workload.split(), f"{self.vms}vms", self.policy, self.fold)
        return "load-" + re.sub(r"[^A-Za-z0-9.-]+", "_", "-".join(words))


def parse_policy(text):
    """"NAME: knob=value knob=value" -> (NAME, {knob: value}); without a name, the text is it."""
    name, colon, rest = text.partition(":")
    words = (rest if colon else text).split()
    knobs = {}
    for word in words:
        knob, equals, value = word.partition("=")
        if not (knob and equals and value):
            raise ToolError(f"policy '{text}': write [NAME:] knob=value ..., not '{word}'")
        knobs[knob] = value
    return name.strip() if colon else (" ".join(words) or "default"), knobs


def config(guests, point):
    """The text of the machine's vlag.cfg."""
    words, before = (part.format(interval=guests.interval) for part in FOLDS[point.fold])
    load = f"load {point.workload} start=/{guests.align}"
    commands = [before, load] if before else [load]
    cmdline = " ".join(
        ["console=ttyS0,115200 quiet", *filter(None, (words, guests.cmdline)),
         *(f'vlag.run="{command}"' for command in commands), "vlag.poweroff"])
    lines = ["[hypervisor]", "console = com1", "control = com2", ""]
    if point.knobs:
        lines += ["[knobs]", *(f"{knob} = {value}" for knob, value in point.knobs.items()), ""]
    for n in range(1, point.vms + 1):
        lines += [f"[vm vm{n}]", f"kernel = {guests.kernel}", f"initrd = {guests.initrd}",
                  f"cmdline = {cmdline}", f"vcpus = {guests.vcpus}", f"memory = {guests.memory}",
                  ""]
    return "\n".join(lines)


def vm_lines(console):
    """(VM, line) of each line that a VM printed, its pieces put together; "" for lines of nobody
    or of the attached VM."""
    waiting = {}
    for line in console.replace("\r", "").split("\n"):
        match = _FROM_VM.match(line)
        if not match:
            yield "", line
            continue
        vm, text = match.groups()
        whole = waiting.pop(vm, "") + text
        if len(text) == LINE_MAX:
            waiting[vm] = whole
        else:
            yield vm, whole
    yield from waiting.items()


def read_results(console, vms):
    """VM -> the fields of its result line. ToolError unless each of @vms has exactly one."""
    results = {}
    attached = vms[0]
    for vm, line in vm_lines(console):
        if not line.startswith(_RESULT):
            continue
        if (vm or attached) in results:
            raise ToolError(f"{vm or attached} printed two results")
        results[vm or attached] = dict(word.split("=", 1) for word in line.split()[1:])
    missing = [vm for vm in vms if vm not in results]
    if missing:
        said = [line for vm, line in vm_lines(console) if "load:" in line]
        raise ToolError(f"no result of {', '.join(missing)}: {' / '.join(said) or 'they said nothing'}"
                        f"\n{console[-1500:]}")
    return results


def read_folded(console):
    """The fewest CPUs that a guest preferred, or None if none said anything."""
    counts = []
    for _, line in vm_lines(console):
        match = _FOLDED.search(line)
        if match:
            counts.append(_count(match.group(1)))
    return min(counts, default=None)


def _count(cpus):
    total = 0
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def summarize(point, results, stats, folded):
    """One row of the table from the VMs' results."""
    rates = [int(fields["ops_per_s"]) for fields in results.values()]
    starts = [float(fields["start"]) for fields in results.values()]
    p99 = [int(fields["p99_ns"]) for fields in results.values() if "p99_ns" in fields]
    row = {
        "workload": point.workload, "vms": point.vms, "policy": point.policy, "fold": point.fold,
        "ops_per_s": sum(rates), "vm_min": min(rates), "vm_max": max(rates),
        "p99_ns": max(p99, default=None),
        "ticks": max(int(fields["ticks"]) for fields in results.values()),
        "steal_ms": sum(int(fields["steal_ms"]) for fields in results.values()),
        "start_spread_ms": round((max(starts) - min(starts)) * 1000),
        "folded": folded,
        "results": results,
    }
    vcpus = [vcpu for vm in stats["vms"] for vcpu in vm["vcpus"]]
    for counter in COUNTERS:
        values = [vcpu.get(counter, vcpu.get("counters", {}).get(counter)) for vcpu in vcpus]
        if all(value is not None for value in values):
            row[counter] = sum(values)
    errors = [vcpu.get("counters", {}).get("fair_err_max_ns") for vcpu in vcpus]
    row["fair_err_max_ns"] = None if None in errors else max(errors)
    return row


def compare(rows):
    """Adds to each row the gain in percent over the first of the same workload and number of
    VMs."""
    first = {}
    for row in rows:
        base = first.setdefault((row["workload"], row["vms"]), row["ops_per_s"])
        row["gain"] = round((row["ops_per_s"] / base - 1) * 100, 2) if base else None
    return rows


def measure_point(setup, guests, point):
    more = ["--ips", str(guests.ips)] if guests.ips else []
    console, stats = vlagrun.run(setup, point.name, config(guests, point), ENDED, guests.pcpus,
                                 keys=TO_MONITOR, more=more)
    bad = _BAD_KNOB.search(console)
    if bad:
        raise ToolError(f"{point.name}: {bad.group()}")
    results = read_results(console, [f"vm{n}" for n in range(1, point.vms + 1)])
    return summarize(point, results, stats, read_folded(console))


def matrix(workloads, vms, policies, folds):
    return [Point(workload, count, policy, fold) for workload in workloads for count in vms
            for fold in folds for policy in policies]


def measure_all(setup, guests, points, tell):
    """Measures all points; tell(rows) after each, since a matrix takes long."""
    rows = []
    for point in points:
        rows.append(measure_point(setup, guests, point))
        tell(compare(rows))
    return rows


def measure(setup):
    """The part `load` of tools/bench/run."""
    guests = Guests(setup.guest("guest/bzImage"), setup.guest("guest/initramfs-load.cpio"),
                    memory="128M")
    points = matrix(PART_WORKLOADS, PART_VMS, [parse_policy(pair) for pair in PAIRS], ["none"])
    return {"rows": measure_all(setup, guests, points, lambda rows: None)}


def part_text(result):
    return text(result["rows"]) + "\n\n" + notes(result["rows"])


def text(rows):
    """The table as Markdown."""
    def gain(row):
        return "" if row.get("gain") is None else f"{row['gain']:+.2f} %"

    def rate(row):
        tried, won = row.get("directed_yield_attempted"), row.get("directed_yield_successful")
        return f"{won / tried:.1%} of {tried:,}" if tried else "-"

    def per(value, unit):
        return None if value is None else round(value / unit)
    head = ["workload", "VMs", "policy", "fold", "ops/s, all VMs", "gain", "slowest VM",
            "fastest VM", "p99, ns", "steal, ms", "waited, ms", "fair_err_max, us", "fewest CPUs", "exits", "directed yields"]
    return table.render(head, [
        [row["workload"], str(row["vms"]), row["policy"], row["fold"], row["ops_per_s"], gain(row),
         row["vm_min"], row["vm_max"], row["p99_ns"], row["steal_ms"],
         per(row.get("wait_ns"), 10**6), per(row["fair_err_max_ns"], 1000), row["folded"],
         row.get("exits_total"), rate(row)] for row in rows], left=4)


def notes(rows):
    """What a reader must know of the runs: VMs that did not start together."""
    late = [row for row in rows if row["start_spread_ms"] > 50]
    if not late:
        spread = max((row["start_spread_ms"] for row in rows), default=0)
        return f"The VMs of each run started within {spread} ms of each other."
    return "NOT started together: " + "; ".join(
        f"{row['workload']}, {row['vms']} VMs, {row['policy']}: {row['start_spread_ms']} ms apart"
        for row in late) + ". Another --align puts them into the same second."


def write_csv(rows, path):
    """One line a VM: the point, and all fields of its result."""
    lines = [{"policy": row["policy"], "fold": row["fold"], "vms": row["vms"], "vm": vm, **fields}
             for row in rows for vm, fields in row["results"].items()]
    names = list(dict.fromkeys(name for line in lines for name in line))
    with open(path, "w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, names, restval="")
        writer.writeheader()
        writer.writerows(lines)
