# SPDX-License-Identifier: BSD-2-Clause
"""Directed yield by policy: the tiny guest `ipi-yield` for each candidate policy with each yield
policy, and `token` for the pairs that are compared most. A VM for each, one after another in one
machine; the monitor turns the knobs between them.
"""

import re

from vlaglib.errors import ToolError

from . import table, vlagrun

IPS = 400_000_000  # as for KVM's figures: a slice is long compared with what is measured
IPIS, ROUNDS = 100, 50
SLICE = 280_000  # ticks: base_slice_ns at IPS
GAPS = (30_000, 400_000)  # instructions from one IPI to the next, on average
CANDIDATES = ("kvm", "ipi", "exact")
YIELDS = ("forfeit", "deboost", "credit", "transfer", "auto")
PAIRS = (("kvm", "forfeit"), ("ipi", "credit"), ("exact", "transfer"), ("exact", "auto"))
SIZES = ((4, 2), (8, 2), (16, 4))  # vCPUs, pCPUs of the token
DEFAULT = ("exact", "auto")


def _config(setup, name, guest, **keys):
    text = vlagrun.tiny_config(setup, guest, autostart="no", **keys)
    return text.replace("[vm bench]", f"[vm {name}]", 1)


def _steps(name, candidate, policy):
    """Arguments of `vlag run`: the VM runs with these policies until it ends."""
    for command in (f"knob candidate_policy {candidate}", f"knob yield_policy {policy}",
                    f"vm start {name}"):
        yield from ("--cmd", command)
    yield from ("--until", f"^vlag: vm {name}: ended")


def figures(console, name):
    """What the guest of the VM @name measured: name -> median. @console: VMs one by one."""
    found = re.search(rf"^vlag: vm {name}: Multiboot(.*?)^vlag: vm {name}: ended: debug-exit "
                      r"status 0", console, re.M | re.S)
    if not found:
        raise ToolError(f"the VM {name} did not end as it should:\n{console[-2000:]}")
    return {what: int(median) for what, median in
            re.findall(r"\bbench: (\S+) median (-?\d+)", found.group(1))}


def _run(setup, name, guest, what, pairs, pcpus, ips=None, **keys):
    """A row for each pair of policies: ticks of the guest's figure @what, directed yields."""
    vms = {f"{candidate}-{policy}": (candidate, policy) for candidate, policy in pairs}
    config = "".join(_config(setup, vm, guest, **keys) for vm in vms)
    *steps, _, until = [part for vm, pair in vms.items() for part in _steps(vm, *pair)]
    more = ["--ips", str(ips), *steps] if ips else steps
    console, stats = vlagrun.run(setup, name, config, until, pcpus, more=more)
    counters = {vm["name"]: vm["counters"] for vm in stats["vms"]}
    return [{"candidate": candidate, "yield": policy, "ticks": figures(console, vm)[what],
             "attempted": counters[vm]["directed_yield_attempted"],
             "successful": counters[vm]["directed_yield_successful"],
             "fair_err_max_ns": max(vcpu["counters"]["fair_err_max_ns"] for one in stats["vms"]
                                    if one["name"] == vm for vcpu in one["vcpus"])}
            for vm, (candidate, policy) in vms.items()]


def measure(setup):
    """Every candidate policy with every yield policy, 4 vCPUs on one pCPU."""
    pairs = [(candidate, policy) for candidate in CANDIDATES for policy in YIELDS]
    return {"ips": IPS, "ipis": IPIS,
            "loads": [{"gap": gap, "rows": _run(setup, f"yield-{gap}", "ipi-yield", "ipi_to_ack",
                                                pairs, 1, IPS, vcpus=4,
                                                cmdline=f"n={IPIS} gap={gap}")}
                      for gap in GAPS]}


def measure_token(setup):
    """The token: the pairs of policies with the smallest machine, the default with the others."""
    rows = []
    for vcpus, pcpus in SIZES:
        pairs = PAIRS if (vcpus, pcpus) == SIZES[0] else [DEFAULT]
        for row in _run(setup, f"token-{vcpus}-{pcpus}", "token", "token_pass", pairs, pcpus,
                        vcpus=vcpus, cmdline=f"n={ROUNDS}"):
            rows.append({"vcpus": vcpus, "pcpus": pcpus, **row})
    return {"rounds": ROUNDS, "rows": rows}


def _success(row):
    return f"{100 * row['successful'] / row['attempted']:.1f} %" if row["attempted"] else None


def _table(rows):
    """A line for each yield policy."""
    by_pair = {(row["candidate"], row["yield"]): row for row in rows}
    cells = []
    for policy in YIELDS:
        of_policy = [by_pair[candidate, policy] for candidate in CANDIDATES]
        cells.append([policy, *(cell for row in of_policy
                                for cell in (row["ticks"], _success(row)))])
    head = ["yield policy", *(cell for candidate in CANDIDATES
                              for cell in (f"{candidate}: ticks", "success"))]
    return table.render(head, cells)


def text(result):
    """The tables of measure(): one for each load."""
    parts = ["One IPI after another to a vCPU that waits for the same pCPU among two that compute: "
             f"ticks until its acknowledgement, median of {result['ipis']}; directed yields after "
             f"which their target ran next. ips={result['ips']:,}, a slice is {SLICE:,} ticks."]
    for load in result["loads"]:
        parts += ["", f"{load['gap']:,} instructions between two IPIs:", "", _table(load["rows"])]
    return "\n".join(parts)


def token_text(result):
    """The table of measure_token()."""
    rows = [[f"{row['vcpus']} on {row['pcpus']}", row["candidate"], row["yield"], row["ticks"],
             _success(row), f"{row['fair_err_max_ns'] / 1e6:.1f}"] for row in result["rows"]]
    head = ["vCPUs on pCPUs", "candidate", "yield", "ticks per pass", "success",
            "fair_err_max, ms"]
    return f"By policy and by size, {result['rounds']} rounds each, median:\n\n" + \
        table.render(head, rows, left=3)
