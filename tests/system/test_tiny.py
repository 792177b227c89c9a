# SPDX-License-Identifier: BSD-2-Clause
"""The tiny guests of tests/guests, each as a VM of its own, several of them in one machine.

What a guest checks stands in its source; here is with how many vCPUs and pCPUs and in which APIC
mode, and what must be on the console apart from PASS.
"""

import re
import unittest

import vlagtest

MODES = ("x2apic", "xapic")
PASSED = "debug-exit status 0"
# As much of the line as tells that it is there: what comes later may not have come yet.
ANY_END = r"(?:debug-exit status \d|poweroff|triple fault|killed|reset|stopped)"


class Guest:
    """One VM: @image of tests/guests with @cmdline, and @keys for its section.

    @lines: regular expressions of lines that it has to print; @end: how it has to end; @before:
    commands to the monitor before its start; @steps: further arguments of `vlag run` after its
    start, where NUMBER is the VM's, which attach the console to it.
    """

    def __init__(self, image, cmdline="", lines=(), end=PASSED, name=None, before=(), steps=(),
                 **keys):
        self.image, self.cmdline, self.lines, self.end = image, cmdline, lines, end
        self.name, self.steps, self.attached = name or image, steps, bool(steps)
        self.before = before
        self.keys = {"memory": "16M", "debug_exit": "0xf4"} | keys

    def section(self):
        keys = {"kernel": f"{self.image}.elf", "cmdline": self.cmdline} | self.keys
        return f"[vm {self.name}]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items())


def in_both_modes(image, *args, **more):
    """The guest twice: with its APICs in x2APIC mode at reset, and in xAPIC mode."""
    return [Guest(image, *args, name=f"{image}-{mode}", apic=mode, **more) for mode in MODES]


class Tiny(vlagtest.BootedOnce):
    """A machine with guests; guests() adds them and a test for each."""

    def check(self, guest):
        """Ended as it should, and printed what it has to, each once."""
        self.assert_ok(self.machine)
        self.assert_ended(guest.name, guest.end)
        # Lines of VMs to which the console is not attached follow the VM's name.
        name = "" if guest.attached else rf"{guest.name}\| "
        if guest.end == PASSED and not guest.attached:
            self.assert_line(f"{name}guest: {guest.image}: PASS")
        for line in guest.lines:
            self.assert_line(name + line)


def one_by_one(members):
    """Steps that start each VM when the one before it has ended: it has the machine for itself."""
    for number, guest in enumerate(members):
        for command in (*guest.before, f"vm start {guest.name}"):
            yield from ("--cmd", command)
        yield from (step.replace("NUMBER", str(number)) for step in guest.steps)
        yield from ("--until", f"^vlag: vm {guest.name}: ended: {ANY_END}")


def guests(*lists, pcpus=1, together=False):
    """Decorates a Tiny: a test and a VM for each guest in @lists, on a machine with @pcpus.

    @together: all start at once, else one by one.
    """
    def decorate(cls):
        members = [guest for one in lists for guest in one]
        members[0].attached = True  # as the first VM always is
        cls.config = "".join(guest.section() for guest in members)
        cls.args = ["--pcpus", pcpus]
        if together and cls.options.get("stats"):  # which are of the moment after the last end
            for _ in members:
                cls.args += ["--until", rf"^vlag: vm \S+: ended: {ANY_END}"]
        elif together:
            cls.args += ["--debug-exit-status"]
        else:
            cls.config = re.sub(r"(?m)^(\[vm .*)$", r"\1\nautostart = no", cls.config)
            cls.args += one_by_one(members)
        for guest in members:
            name = "test_" + guest.name.replace("-", "_")
            setattr(cls, name, lambda self, guest=guest: self.check(guest))
        return cls
    return decorate


def consoles():
    """The console guests: two lines are typed to each."""
    for mode in MODES:
        yield Guest("console", "lines=2", [f'console: got "good {mode}"', f'console: got "{mode}"'],
                    name=f"console-{mode}", apic=mode, steps=[
                        "--send", r"\x01NUMBER", "--until", "type a line$",
                        "--send", rf"good {mode}\r", "--until", "type a line$",
                        "--send", rf"{mode}\n"])


def plain():
    """What needs nothing but its turn on a CPU."""
    return [
        Guest("hello", "modules=0 a=1", ["cmdline: modules=0 a=1", "hypervisor: KVMKVMKVM"]),
        Guest("badmsr", "", ["badmsr: ports done"]),
        *[Guest(image, "", ["reset: first start", "reset: second start"])
          for image in ("reset-cf9", "reset-kbc")],
        *in_both_modes("xapic"),
    ]


def clocks():
    """What measures time, and so must not share its pCPU."""
    return [
        *in_both_modes("timer", "rtc_tick=1"),
        *in_both_modes("lapic-timer"),
        *in_both_modes("ioapic-pit"),
        Guest("exits", "n=100", ["exits: 1 CPUs, x2APIC, .*"], name="exits-x2apic"),
        Guest("exits", "n=100", ["exits: 1 CPUs, xAPIC, .*"], name="exits-xapic", apic="xapic"),
    ]


def wakeups(modes, **keys):
    """Wake-ups that were lost once."""
    return [Guest("wakeups", f"mode={mode}", name=f"wakeups-{mode}", **keys) for mode in modes]


def with_vcpus(vcpus, rounds):
    """What CPUs of one guest do with each other, @rounds times where they pass a token."""
    return [
        *in_both_modes("smp", f"cpus={vcpus}", [f"smp: {vcpus} CPUs"], vcpus=vcpus),
        *in_both_modes("token", f"n={rounds}", [f"token: {vcpus} CPUs, {rounds} rounds"],
                       vcpus=vcpus),
        *in_both_modes("exits", "n=20", [f"exits: {vcpus} CPUs, .*",
                                         "bench: x2apic_ipi_round_trip_halt .*"], vcpus=vcpus),
        Guest("pv-abi", "n=50", [rf"pv-abi: features .*, {vcpus} CPUs"], name="pv-abi-all",
              vcpus=vcpus, pv="all"),
        *wakeups((1, 2, 4), vcpus=vcpus),
        Guest("ifoff", "ticks=5000000 all=1", [f"ifoff: {vcpus} CPUs spin .*", "ifoff: done"],
              vcpus=vcpus),
    ]


@guests(consoles(), plain(), clocks(),
        wakeups([3]), [Guest("ifoff", "", ["ifoff: done"]),
         Guest("poweroff", "", [r"poweroff: switching off\b.*"], end="poweroff")])
class OneVcpuOnOnePcpu(Tiny):
    """Each with one vCPU, alone on one pCPU."""


@guests(with_vcpus(4, 50))
class FourVcpusOnOnePcpu(Tiny):
    """Every vCPU waits for its turn most of the time."""


@guests(with_vcpus(4, 1000), pcpus=4)
class FourVcpusOnFourPcpus(Tiny):
    """Real parallelism, with interrupts across pCPUs."""


@guests(with_vcpus(2, 1000), [Guest("pv-steal", "mode=3 n=10", name="hotplug", vcpus=2)], pcpus=2)
class TwoVcpusOnTwoPcpus(Tiny):
    """As many as there are."""


@guests([Guest("pv-abi", "features=0x10030ab", name="pv-abi-default"),
         Guest("pv-abi", "features=2", name="pv-abi-none", pv="none"),
         Guest("pv-abi", "features=0x22", name="pv-abi-steal", pv="steal"),
         Guest("pv-abi", "features=0x2", name="pv-abi-flush", pv="tlbflush"),
         Guest("pv-abi", name="pv-abi-xapic", apic="xapic", vcpus=2, pv="all"),
         Guest("pv-steal", "mode=1", name="pv-steal-alone"),
         Guest("pv-steal", "mode=3", name="pv-steal-hotplug", vcpus=2),
         Guest("pv-steal", "mode=4 n=20", name="pv-steal-flush", vcpus=2, pv="all")])
class Paravirtual(Tiny):
    """KVM's interface, with more and with less of it; nobody else on the pCPU."""

    options = {"stats": True}

    def test_each_flush_that_was_asked_for_was_done_once(self):
        vms = {vm["name"]: vm["counters"] for vm in self.machine.stats["vms"]}
        self.assertEqual(vms["pv-steal-flush"]["pv_tlb_flushes"], 20)
        self.assertEqual(vms["pv-steal-hotplug"]["pv_tlb_flushes"], 0)


@guests([Guest("pv-steal", "ms=300", name="busy-1"), Guest("pv-steal", "ms=300", name="busy-2"),
         Guest("pv-steal", "mode=2 ms=400", name="idle"),
         # Each of its wake-ups finds the pCPU taken; once such a timer interrupt was slept over.
         Guest("pv-steal", "mode=2 ms=400 n=100 expect=900", name="restless")], together=True)
class Steal(Tiny):
    """Two busy guests share a pCPU; of two others one sleeps there, one wakes up all the time."""

    options = {"stats": True}

    def test_what_guests_were_told_is_what_the_scheduler_counted(self):
        slack = 30_000_000  # ns: what it may have waited between its last look and its end
        for vm in self.machine.stats["vms"]:
            said = re.compile(rf"(?:{vm['name']}\| )?pv-steal: record says (\d+) ns")
            # The VM that the console is attached to has no name before its lines.
            found = [m for m in map(said.fullmatch, self.machine.lines) if m
                     and ("|" in m.group(0)) == (vm["name"] != "busy-1")]
            self.assertEqual(len(found), 1, self.machine.describe())
            told = int(found[0].group(1))
            self.assertLessEqual(told, vm["steal_ns"], vm["name"])
            self.assertLess(vm["steal_ns"], told + slack, vm["name"])


def wakeups():
    """Wake-ups that were lost once; CPU 0 on the second pCPU, which has nothing else to wake it."""
    yield Guest("wakeups", "mode=3", name="wakeups-off")
    for number, what in (1, "tpr"), (2, "nmi"), (4, "pit"):
        yield Guest("wakeups", f"mode={number}", name=f"wakeups-{what}", vcpus=2)
    yield Guest("wakeups", "mode=4", name="wakeups-pit-moved", vcpus=2)


@guests(wakeups(), pcpus=2)
class Wakeups(Tiny):
    """Each with vCPUs on both pCPUs."""


def apics():
    """The local APIC, its IPIs and what injection has to mind, in both modes."""
    yield from in_both_modes("self-ipi")
    yield from in_both_modes("nesting")
    yield from in_both_modes("tpr", vcpus=2)
    yield from in_both_modes("ioapic-level")
    yield from in_both_modes("init-running", vcpus=2)
    yield from in_both_modes("apic-modes", vcpus=2)
    yield from in_both_modes("nmi", vcpus=4)
    yield Guest("shadow", "n=2000", name="shadow-x2apic", vcpus=2)
    yield Guest("shadow", "n=300", name="shadow-xapic", vcpus=2, apic="xapic")
    yield from in_both_modes("ipi-target", "n=1000", ["ipi-target: 2 CPUs, 1000 each"], vcpus=2)
    yield Guest("ipi-dest", "", ["ipi-dest: 18 CPUs"], name="ipi-dest-x2apic", vcpus=18)
    yield Guest("ipi-dest", "", ["ipi-dest: 4 CPUs"], name="ipi-dest-xapic", vcpus=4, apic="xapic")
    shared = {"vcpus": 2, "affinity": "1"}
    yield Guest("ipi-target", "n=20", name="ipi-target-queued", **shared)
    yield Guest("nmi", "rounds=10", name="nmi-queued", **shared)
    yield Guest("init-running", "rounds=1", name="init-running-queued", **shared)


@guests(apics(), pcpus=4)
class LocalApic(Tiny):
    """CPUs of a guest on pCPUs of their own; "queued": they share one, and wait for their turn."""


def patterns():
    """IPIs in a known pattern; the last two with every receiver of a multicast recorded."""
    more = {"vcpus": 4, "lines": ["ipi-pattern: 4 CPUs, x2?APIC"]}
    yield from in_both_modes("ipi-pattern", "unicast=20 multicast=5 broadcast=4 self=3", **more)
    yield Guest("ipi-pattern", "unicast=3 multicast=2 broadcast=1 self=2", **more,
                name="ipi-pattern-overcommitted", affinity="0-1")
    yield Guest("ipi-pattern", "unicast=2 multicast=6 broadcast=3 self=1", **more,
                name="ipi-pattern-multicast", before=["knob ipi_track_multicast on"])
    yield Guest("ipi-pattern", "unicast=2 multicast=6 broadcast=3 self=1", **more,
                name="ipi-pattern-multicast-xapic", apic="xapic")


@guests(patterns(), pcpus=4)
class IpiPattern(Tiny):
    """The recorder's counts equal the pattern exactly."""

    options = {"stats": True}

    def vm(self, name):
        """The statistics of the VM @name and the arguments of its guest."""
        guest = next(one for one in patterns() if one.name == name)
        arguments = {key: int(value) for key, value in
                     (word.split("=") for word in guest.cmdline.split())}
        return next(vm for vm in self.machine.stats["vms"] if vm["name"] == name), arguments

    def assert_counts(self, name, multicast):
        """All counters of @name follow from the pattern; @multicast: ipi_track_multicast."""
        vm, n = self.vm(name)
        cpus, others = 4, 3
        unicast = cpus * others * n["unicast"] + 2 * others
        many = cpus * n["multicast"] * 2 + cpus * n["broadcast"] * 3  # each to all others
        selves = cpus * (n["multicast"] + 2 * n["broadcast"] + 2 * n["self"])
        recorded = unicast + (others * many if multicast else 0)
        want = {
            "ipi_unicast": unicast,
            "ipi_multicast": cpus * n["multicast"] * 2,
            "ipi_broadcast": cpus * n["broadcast"] * 3,
            "ipi_self": cpus * n["self"] * 2,
            "ipi_init": others, "ipi_sipi": others,
            "ipi_nmi": 0, "ipi_nowhere": 0, "ipi_invalid": 0, "ipi_slow": 0,
            "ipi_tracked": recorded, "eoi_matched": recorded,
            "eoi_unmatched": others * many + unicast - recorded + selves,
            "ipi_expired": 0, "ipi_coalesced": 0, "ipi_overwritten": 0,
        }
        got = {key: vm["counters"][key] for key in want}
        self.assertEqual(got, want)
        sums = {key: sum(vcpu["counters"][key] for vcpu in vm["vcpus"]) for key in want}
        self.assertEqual(sums, want)
        for hist in vm["histograms"]["ipi_send_to_delivery"], vm["histograms"]["ipi_send_to_eoi"]:
            self.assertEqual(hist["count"], recorded)
            self.assertEqual(sum(count for _, count in hist["buckets"]), recorded)
        self.assertLess(vm["histograms"]["ipi_send_to_delivery"]["sum"],
                        vm["histograms"]["ipi_send_to_eoi"]["sum"])

    def test_counts_equal_the_pattern_in_x2apic_mode(self):
        self.assert_counts("ipi-pattern-x2apic", False)

    def test_counts_equal_the_pattern_in_xapic_mode(self):
        self.assert_counts("ipi-pattern-xapic", False)

    def test_counts_equal_the_pattern_where_vcpus_share_pcpus(self):
        self.assert_counts("ipi-pattern-overcommitted", False)

    def test_every_receiver_of_a_multicast_can_be_recorded(self):
        self.assert_counts("ipi-pattern-multicast", True)
        self.assert_counts("ipi-pattern-multicast-xapic", True)


@guests(plain(), in_both_modes("lapic-timer"), in_both_modes("smp", vcpus=3),
        [Guest("ifoff", vcpus=2)], pcpus=2, together=True)
class AllAtOnce(Tiny):
    """Many VMs of one machine run at the same time and do not disturb each other."""


if __name__ == "__main__":
    unittest.main()
