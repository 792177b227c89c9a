# SPDX-License-Identifier: BSD-2-Clause
"""The scheduler in a whole machine: what busy guests get, by the statistics of the hypervisor over
an interval. How it decides is proved on the host (tests/unit/sched_*.c).
"""

import json
import unittest

import vlagtest

INTERVAL = 20_000_000  # ticks between two lines of the guest that says how time passes
MODES = ("vcpu", "group", "flat")
SLICE_NS = 100_000  # short, so that an interval has hundreds of slices
TICK_NS = 1_000_000  # the knob tick_ns, part of the lag bound


def busy(name, vcpus=1, cmdline="", image="busy", **keys):
    """A VM whose vCPUs are all busy."""
    keys = {"kernel": f"{image}.elf", "cmdline": cmdline, "vcpus": vcpus, "memory": "16M",
            "debug_exit": "0xf4"} | keys
    return f"[vm {name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


def knobs(**values):
    return "[knobs]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())


def monitor(*commands):
    return [part for command in commands for part in ("--cmd", command)]


def stop(vm):
    """Steps: the VM, which runs, is stopped."""
    return [*monitor(f"vm stop {vm}"), "--until", f"vm {vm}: ended: stopped"]


def interval(settle=1, lines=3):
    """Steps: time to settle, statistics, an interval, statistics. What the statistics take (some
    milliseconds of the boot CPU) falls to one vCPU, and fairness gives it back to the others.
    """
    return [*settle * ("--until", "busy: still"), *monitor("stats json"),
            *lines * ("--until", "busy: still"), *monitor("stats json")]


class Interval:
    """What happened between two statistics."""

    def __init__(self, before, after):
        self.before, self.after = before, after
        self.ns = after["uptime_ns"] - before["uptime_ns"]

    def vcpus(self, name):
        """(before, after) of each vCPU of the VM."""
        old, new = (next(vm for vm in stats["vms"] if vm["name"] == name)["vcpus"]
                    for stats in (self.before, self.after))
        return list(zip(old, new))

    def ran(self, name):
        """ns of pCPU time that the VM got."""
        return sum(new["run_ns"] - old["run_ns"] for old, new in self.vcpus(name))

    def count(self, name, counter):
        return sum(new["counters"][counter] - old["counters"][counter]
                   for old, new in self.vcpus(name))

    def shares(self, *names):
        """Of what all @names got together, the part of each."""
        ran = {name: self.ran(name) for name in names}
        return {name: ran[name] / sum(ran.values()) for name in names}

    def idle(self):
        """The part of the time that each pCPU was idle."""
        return [(new["idle_ns"] - old["idle_ns"]) / self.ns
                for old, new in zip(self.before["pcpus"], self.after["pcpus"])]


class Scheduled(vlagtest.BootedOnce):
    """A machine whose statistics are taken in pairs."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text, cls.stats, at = cls.run_of_class.console, [], 0
        while (at := text.find('{"version"', at)) >= 0:
            one, at = json.JSONDecoder().raw_decode(text, at)
            cls.stats.append(one)

    def interval(self, number):
        """The @number-th pair."""
        self.assert_ok(self.machine)
        return Interval(*self.stats[2 * number:2 * number + 2])

    def assert_shares(self, got, want, tolerance=0.02):
        """Each of @got within @tolerance of what it should be, relative to that."""
        for name, share in want.items():
            self.assertAlmostEqual(got[name], share, delta=tolerance * share, msg=f"{name}: {got}")


class OnePcpu(Scheduled):
    """VMs with one vCPU share a pCPU."""

    config = (knobs(base_slice_ns=SLICE_NS) +
              busy("first", cmdline=f"tell={INTERVAL}") + busy("second") + busy("asleep", 2, "idle=1") +
              busy("heavy", weight=2048, autostart="no"))
    args = ["--until", "asleep. busy: 2 CPUs sleep", *interval(),
            *monitor("vm stop second", "vm start heavy"), "--until", "heavy. busy: 1 CPUs",
            *interval()]

    def test_two_busy_vms_get_half_each(self):
        it = self.interval(0)
        self.assert_shares(it.shares("first", "second"), {"first": 1 / 2, "second": 1 / 2})
        self.assertGreater(it.ran("first") + it.ran("second"), 0.97 * it.ns)

    def test_a_halted_vm_costs_nothing(self):
        for number in range(2):
            it = self.interval(number)
            self.assertEqual(it.ran("asleep"), 0)
            for counter in ("nr_switches", "nr_wakeups", "run_delay_ns"):
                self.assertEqual(it.count("asleep", counter), 0, counter)

    def test_twice_the_weight_gets_two_thirds(self):
        shares = self.interval(1).shares("first", "heavy")
        self.assert_shares(shares, {"heavy": 2 / 3, "first": 1 / 3})


class TwoPcpus(Scheduled):
    """Three VMs with two vCPUs each, in each sched_mode."""

    weights = {"one": 1024, "two": 1024, "double": 2048}
    config = (knobs(base_slice_ns=SLICE_NS) +
              busy("one", 2, f"tell={INTERVAL}", weight=1024) + busy("two", 2, weight=1024) +
              busy("double", 2, weight=2048))
    args = ["--pcpus", 2, "--until", "double. busy: 2 CPUs",
            *(step for mode in MODES
              for step in (*monitor(f"knob sched_mode {mode}"), *interval(lines=4)))]

    def check(self, number):
        it = self.interval(number)
        whole = sum(self.weights.values())
        self.assert_shares(it.shares(*self.weights),
                           {name: weight / whole for name, weight in self.weights.items()})
        for name in self.weights:
            self.assertGreater(it.count(name, "nr_switches"), 100)

    def test_nobody_is_ever_further_from_the_ideal_than_the_legal_lag(self):
        """Where no monitor and no loader takes time: the vCPUs of the second pCPU."""
        self.assert_ok(self.machine)
        stayed = [new for name in self.weights
                  for old, new in Interval(self.stats[0], self.stats[-1]).vcpus(name)
                  if old["pcpu"] == new["pcpu"] == 1 and not new["counters"]["nr_migrations"]]
        self.assertGreaterEqual(len(stayed), 2)
        busiest = sorted(vcpu["counters"]["fair_err_max_ns"] for vcpu in stayed)
        self.assertLess(busiest[-1], SLICE_NS + TICK_NS, busiest)

    def test_each_vm_has_its_share_with_sched_mode_vcpu(self):
        self.check(0)

    def test_each_vm_has_its_share_with_sched_mode_group(self):
        self.check(1)

    def test_each_vm_has_its_share_with_sched_mode_flat(self):
        self.check(2)


class Balance(Scheduled):
    """Three busy vCPUs on two pCPUs; two of them begin on the first one."""

    config = (knobs(base_slice_ns=SLICE_NS, balance="off") +
              busy("one", cmdline=f"tell={INTERVAL}") + busy("two") + busy("three") +
              busy("pinned", 2, affinity="1", autostart="no"))
    args = ["--pcpus", 2, "--until", "three. busy: 1 CPUs", *interval(),
            *stop("two"), *interval(),
            *monitor("knob balance idle", "vm start two"), "--until", "two. busy: 1 CPUs",
            *stop("two"), *interval(),
            *monitor("knob balance full", "vm start two"), "--until", "two. busy: 1 CPUs",
            *interval(),
            *stop("two"), *stop("three"), *monitor("vm start pinned"),
            "--until", "pinned. busy: 2 CPUs", *interval()]

    def each(self, number, *names):
        """The part of a pCPU that each VM got, and how often it was moved."""
        it = self.interval(number)
        return ({name: it.ran(name) / it.ns for name in names},
                sum(it.count(name, "nr_migrations") for name in names), it)

    def test_off_leaves_everybody_where_he_is(self):
        got, moves, _ = self.each(0, "one", "two", "three")
        self.assert_shares(got, {"one": 1 / 2, "two": 1, "three": 1 / 2})
        self.assertEqual(moves, 0)
        got, moves, it = self.each(1, "one", "three")
        self.assert_shares(got, {"one": 1 / 2, "three": 1 / 2})
        self.assertEqual(moves, 0)
        self.assertGreater(it.idle()[1], 0.99)

    def test_idle_lets_an_idle_pcpu_pull(self):
        got, moves, it = self.each(2, "one", "three")
        self.assert_shares(got, {"one": 1, "three": 1})
        self.assertEqual(moves, 0)
        for idle in it.idle():
            self.assertLess(idle, 0.01)

    def test_full_lets_three_share_two_pcpus_evenly(self):
        got, moves, _ = self.each(3, "one", "two", "three")
        # Who moves, moves every 24 ms: an interval has some 80 moves.
        self.assert_shares(got, {name: 2 / 3 for name in got}, tolerance=0.1)
        self.assertGreater(moves, 0)

    def test_affinity_is_honoured(self):
        got, moves, it = self.each(4, "one", "pinned")
        self.assert_shares(got, {"one": 1, "pinned": 1})
        self.assertEqual(moves, 0)
        for old, new in it.vcpus("pinned"):
            self.assertEqual((old["pcpu"], new["pcpu"]), (1, 1))


if __name__ == "__main__":
    unittest.main()
