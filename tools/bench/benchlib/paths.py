# SPDX-License-Identifier: BSD-2-Clause
"""Path lengths: what each thing that may exit costs, by the tiny guests `exits` and `token`."""

import re

from vlaglib.errors import ToolError

from . import lines, spin, table, vlagrun

SAMPLES = 1000
ROUNDS = 200  # of the token
GRANULARITY = 5  # with several CPUs Bochs runs five instructions of each in turn

# name: (pCPUs, vCPUs, the APIC's mode at reset)
RUNS = {
    "x2apic": (1, 1, "x2apic"),
    "xapic": (1, 1, "xapic"),
    "2pcpus": (2, 2, "x2apic"),
}
_BENCH = re.compile(r"^bench: (\S+) (?:median (-?\d+) min (-?\d+)|skipped: (.*?))\r?$", re.M)


def read_figures(console):
    """name -> (median, min, None) or (None, None, why it was skipped)."""
    return {name: (int(median), int(low), None) if why == "" else (None, None, why)
            for name, median, low, why in _BENCH.findall(console)}


def _check_asleep(stats):
    """The halted target was really asleep: its vCPU left the pCPU once for each sample."""
    halts = stats["vms"][0]["vcpus"][1]["counters"]["halts"]
    if halts < 2 * SAMPLES:
        raise ToolError(f"2pcpus: vCPU 1 was to be asleep for {2 * SAMPLES} IPIs, but the "
                        f"hypervisor saw it halt {halts} times only")


def _row(line, figures):
    if line.name not in figures:
        raise ToolError(f"{line.run}: the guest did not measure {line.name}")
    median, low, skipped = figures[line.name]
    if skipped is None:
        median, low = -(-median // line.parts), -(-low // line.parts)
    return {"line": line.title, "run": line.run, "name": line.name, "ticks": median, "min": low,
            "skipped": skipped, "kvm61": line.kvm61, "kvm72": line.kvm72, "same": line.same}


def _judge(row):
    """Adds ratio, goal and whether it was reached, where there is something to compare with."""
    if row["ticks"] is not None and row["kvm61"]:
        row["goal"] = row["kvm61"] // lines.SHARE
        row["reached"] = row["ticks"] <= row["goal"]
        row["ratio"] = round(row["kvm61"] / max(row["ticks"], 1), 1)
    return row


def measure(setup):
    """Runs the guest `exits` three times: a dictionary with the tables' rows."""
    figures = {}
    for name, (pcpus, vcpus, apic) in RUNS.items():
        console, stats = vlagrun.run_tiny(setup, name, "exits", pcpus, vcpus=vcpus, apic=apic,
                                          cmdline=f"n={SAMPLES}")
        figures[name] = read_figures(console)
        if name == "2pcpus":
            _check_asleep(stats)
    rows = {key: [_judge(_row(line, figures[line.run])) for line in part]
            for key, part in (("exits", lines.EXITS), ("no_exit", lines.NO_EXIT),
                              ("also", lines.ALSO))}
    for row in rows["no_exit"]:
        row["reached"] = row["ticks"] is not None and row["ticks"] <= lines.NO_EXIT_MAX
    return {"samples": SAMPLES, "granularity_2pcpus": GRANULARITY, **rows}


def measure_token(setup):
    """4 vCPUs on 2 pCPUs: one row, and more of them by policy and size."""
    console, stats = vlagrun.run_tiny(setup, "token", "token", 2, vcpus=4, cmdline=f"n={ROUNDS}")
    figures = read_figures(console)
    row = _judge(_row(lines.TOKEN, figures))
    mean = re.search(r"token: mean (\d+) ticks", console)
    row["mean"] = int(mean.group(1)) if mean else None
    row["rounds"] = ROUNDS
    row["exits"] = {reason: sum(v["exits"].get(reason, 0) for v in stats["vms"][0]["vcpus"])
                    for reason in {r for v in stats["vms"][0]["vcpus"] for r in v["exits"]}}
    row["more"] = spin.measure_token(setup)
    return row


def _cells(row):
    ticks = row["ticks"] if row["skipped"] is None else f"skipped: {row['skipped']}"
    reached = {True: "yes", False: "NO", None: None}[row.get("reached")]
    return [row["line"], ticks, row["kvm61"], row["kvm72"], row["same"],
            f"{row['ratio']:.1f}" if "ratio" in row else None, row.get("goal"), reached]


HEAD = ["path", "vlag", "KVM 6.1", "KVM 7.2", "6.1, this guest", "KVM 6.1 / vlag", "goal",
        "reached"]


def text(result):
    """The tables of measure()."""
    reached = sum(bool(row.get("reached")) for row in result["exits"])
    no_exit = [[row["line"], row["ticks"], f"3-{lines.NO_EXIT_MAX}",
                "yes" if row["reached"] else "NO"] for row in result["no_exit"]]
    also = [[row["line"], row["ticks"], row["min"]] for row in result["also"]]
    return "\n".join([
        f"Path lengths in ticks: median of {result['samples']}, measured inside of the guest. The "
        f"goal is an eighth of KVM 6.1: {reached} of {len(result['exits'])} reached.",
        f"On 2 pCPUs Bochs counts in steps of {GRANULARITY} ticks.", "",
        table.render(HEAD, [_cells(row) for row in result["exits"]]), "",
        "Must not exit:", "",
        table.render(["instruction", "vlag", "KVM", "no exit"], no_exit), "",
        "Also measured:", "",
        table.render(["path", "vlag", "minimum"], also)])


def token_text(row):
    exits = ", ".join(f"{count:,} {reason}" for reason, count in
                      sorted(row["exits"].items(), key=lambda item: -item[1])[:4])
    return "\n".join([
        f"Overcommitted spinning, {row['rounds']} rounds; mean {table.number(row['mean'])} ticks "
        f"per pass. Exits: {exits}.", "", table.render(HEAD, [_cells(row)]),
        *(["", spin.token_text(row["more"])] if "more" in row else [])])
