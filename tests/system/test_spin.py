# SPDX-License-Identifier: BSD-2-Clause
"""Pause-loop exits and directed yield in a whole machine: the guests `ipi-yield` and `lock-holder`,
whose vCPUs share one pCPU, and what the counters say afterwards. How the policies decide is proved
on the host (tests/unit/spin_*.c); here it is proved that the hypervisor asks and obeys them.
"""

import re
import unittest

from test_tiny import PASSED, Guest, one_by_one

import vlagtest

ROUNDS = 100
# The yield policies that make their target eligible, and after how many of their yields it runs
# next at least. What `credit` gives is unbounded; the loans of `auto` and the penalty of `deboost`
# have a limit, so that a target that has had too much may wait. `forfeit` and `transfer` only
# nominate the target: about half.
HITS = {"deboost": 0.97, "credit": 1, "auto": 0.97}
KNOWING = ("ipi", "exact")  # the candidate policies that know the receiver
SHARED = {"vcpus": 4}


def knobs(**values):
    return [f"knob {name} {value}" for name, value in values.items()]


def ipi_yield(name, rounds=ROUNDS, cmdline="", **values):
    """vCPU 0 waits for vCPU 1, which waits for the pCPU like vCPUs 2 and 3."""
    return Guest("ipi-yield", f"n={rounds} {cmdline}", name=name, before=knobs(**values), **SHARED)


def lock_holder(name, **values):
    """vCPU 0 waits for the lock of vCPU 1, vCPUs 2 and 3 are in user mode."""
    return Guest("lock-holder", "n=30", name=name, before=knobs(**values), **SHARED)


def guests():
    """One after the other; a knob keeps its value for those that come after."""
    # Every yield is judged: no limit on reschedules and loans, and a spin is noticed so early, in
    # comparison with a slice, that spinning makes no difference to anybody's share.
    free = {"yield_resched_min_ns": 0, "ple_window": 512, "base_slice_ns": 2000000}
    for candidate in KNOWING:
        for policy in HITS:
            yield ipi_yield(f"{candidate}-{policy}", candidate_policy=candidate,
                            yield_policy=policy, **free)
    yield ipi_yield("kvm-auto", candidate_policy="kvm", yield_policy="auto", **free)
    for candidate in ("kvm", "ipi", "exact"):
        yield lock_holder(f"lock-{candidate}", candidate_policy=candidate)
    yield ipi_yield("limited", yield_resched_min_ns=6000000, ple_window=4096)
    yield ipi_yield("woken", cmdline="halt=1")
    yield ipi_yield("soft", ple="pause")
    yield lock_holder("lock-soft")
    yield Guest("busy", "ticks=3000000 pause=1", name="alone-soft")
    yield Guest("busy", "ticks=3000000 pause=1", name="alone-hw", before=knobs(ple="hw"))
    yield ipi_yield("off", rounds=10, ple="off")


class Spin(vlagtest.BootedOnce):
    """All on one pCPU, each VM with the machine for itself."""

    members = list(guests())
    config = re.sub(r"(?m)^(\[vm .*)$", r"\1\nautostart = no",
                    "".join(guest.section() for guest in members))
    args = ["--pcpus", 1, *one_by_one(members)]
    options = {"stats": True}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.vms = {}
        if cls.run_of_class.status == 0:
            cls.vms = {vm["name"]: vm for vm in cls.run_of_class.stats["vms"]}

    def vm(self, name):
        """Counters of the VM, after a look at how it ended, and those of each of its vCPUs."""
        self.assert_ok(self.machine)
        self.assert_ended(name, PASSED)
        vm = self.vms[name]
        return vm["counters"], [vcpu["counters"] for vcpu in vm["vcpus"]]

    def pause_exits(self, name):
        return sum(vcpu["exits"].get("PAUSE", 0) for vcpu in self.vms[name]["vcpus"])

    def median(self, name, what):
        """What the guest measured, in ticks."""
        # The first VM's lines are without its name: the console is attached to it.
        prefix = "" if name == self.members[0].name else rf"{name}\| "
        found = [m for m in (re.fullmatch(rf"{prefix}bench: {what} median (\d+) min \d+", line)
                             for line in self.machine.lines) if m]
        self.assertEqual(len(found), 1, self.machine.describe())
        return int(found[0].group(1))

    def test_who_knows_the_receiver_makes_it_run_next_every_time(self):
        for policy, name in ((p, f"{c}-{p}") for c in KNOWING for p in HITS):
            with self.subTest(name):
                vm, vcpus = self.vm(name)
                self.assertGreater(vm["dy_receiver"], ROUNDS / 2)
                self.assertGreaterEqual(vm["dy_receiver_hit"], HITS[policy] * vm["dy_receiver"])
                # The scheduler's own books say the same: nobody else was brought on by an IPI.
                self.assertGreaterEqual(vcpus[1]["yield_hit"], vm["dy_receiver_hit"] - 3)
                self.assertLessEqual(vcpus[2]["yield_hit"] + vcpus[3]["yield_hit"], 6)

    def test_who_does_not_know_it_brings_the_others_on_as_often(self):
        vm, vcpus = self.vm("kvm-auto")
        self.assertEqual(vm["dy_receiver"], 0)
        self.assertGreater(vm["directed_yield_attempted"], ROUNDS)
        self.assertLess(vcpus[1]["yield_hit"], vm["directed_yield_attempted"] / 2)
        self.assertGreater(vcpus[2]["yield_hit"] + vcpus[3]["yield_hit"],
                           vm["directed_yield_attempted"] / 4)

    def test_the_acknowledgement_comes_soon_after_the_spin_is_noticed(self):
        kvm = self.median("kvm-auto", "ipi_to_ack")
        for name in (f"{c}-{p}" for c in KNOWING for p in HITS):
            with self.subTest(name):
                ticks = self.median(name, "ipi_to_ack")
                self.assertLess(ticks, 6000)  # the window is 512, the switch some 2,000
                self.assertLess(4 * ticks, kvm)

    def test_nearly_every_yield_succeeds_with_the_default_limits(self):
        vm, _ = self.vm("limited")
        self.assertGreater(vm["dy_receiver"], ROUNDS / 2)
        self.assertGreater(vm["directed_yield_successful"], 0.95 * vm["directed_yield_attempted"])

    def test_a_receiver_that_was_woken_and_never_preempted_is_found(self):
        vm, _ = self.vm("woken")
        self.assertGreater(vm["dy_receiver"], 0)
        self.assertGreaterEqual(vm["dy_receiver_hit"], 0.95 * vm["dy_receiver"])

    def test_a_preempted_lock_holder_is_found_by_its_being_in_kernel_mode(self):
        for name in ("lock-kvm", "lock-ipi", "lock-exact", "lock-soft"):
            with self.subTest(name):
                vm, vcpus = self.vm(name)
                self.assertGreaterEqual(vm["dy_kernel"], 30)
                self.assertGreaterEqual(vm["dy_kernel_hit"], 0.95 * vm["dy_kernel"])
                self.assertEqual(vm["dy_relaxed"] + vm["dy_preempted"], 0)
                self.assertGreaterEqual(vcpus[1]["yield_hit"], 0.95 * vm["dy_kernel"])

    def test_software_pause_loops_find_the_receiver_as_well(self):
        vm, _ = self.vm("soft")
        self.assertGreater(vm["spin_short"], vm["spin_searches"])
        self.assertGreater(vm["dy_receiver"], ROUNDS / 2)
        self.assertGreater(vm["dy_receiver_hit"], 0.95 * vm["dy_receiver"])
        self.assertLess(4 * self.median("soft", "ipi_to_ack"),
                        self.median("kvm-auto", "ipi_to_ack"))

    def test_who_is_alone_has_no_pause_exits_with_software_pause_loops(self):
        self.vm("alone-soft")
        self.assertEqual(self.pause_exits("alone-soft"), 0)
        vm, _ = self.vm("alone-hw")  # the CPU exits, and that costs nothing more
        self.assertGreater(self.pause_exits("alone-hw"), 0)
        self.assertEqual(vm["spin_uncontended"], vm["spin_exits"])

    def test_off_means_no_pause_exits(self):
        vm, _ = self.vm("off")
        self.assertEqual(self.pause_exits("off"), 0)
        self.assertEqual(vm["directed_yield_attempted"], 0)


if __name__ == "__main__":
    unittest.main()
