# SPDX-License-Identifier: BSD-2-Clause
"""The trace of a real machine: written while vCPUs spin for each other, dumped, converted; and the
last of it in a panic.
"""

import collections
import json
import re
import unittest

import vlagtest

FOUR = """\
[vm four]
kernel = token.elf
cmdline = n=100
vcpus = 4
memory = 16M
debug_exit = 0xf4
autostart = no
"""
RECORD = r"trace [01] \d+ (\w+) (?:-|0/[0-3])(?: \w+=[\w-]+)+"


class FourOnTwo(vlagtest.BootedOnce):
    """4 vCPUs pass a token round on 2 pCPUs; then the hypervisor panics, as asked."""

    config = FOUR
    args = ["--pcpus", 2, "--cmd", "trace on", "--cmd", "vm start four",
            "--until", "^vlag: vm four: ended: ", "--cmd", "trace dump 1000",
            "--cmd", "knob candidate_policy", "--cmd", "panic bug"]

    def dump(self):
        """The lines of the dump; those of the panic are not among them."""
        lines = self.machine.console.split("\n")
        return lines[lines.index(next(line for line in lines if line.startswith("trace hz="))):]

    def converted(self):
        """The events of the file that tools/vlag makes of it."""
        folder = vlagtest.make_folder(self.id(), self.addCleanup)
        (folder / "log").write_text(self.machine.console, encoding="utf-8")
        done = vlagtest.vlag("trace", folder / "log", "-o", folder / "out.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((folder / "out.json").read_text(encoding="utf-8"))["traceEvents"]

    def test_the_guest_ran_to_its_end(self):
        self.assert_ended("four", "debug-exit status 0")

    def test_a_dump_says_the_clock_and_the_vms_first(self):
        lines = self.dump()
        self.assertRegex(lines[0], r"^trace hz=[1-9]\d+$")
        self.assertEqual(lines[1], "trace vm 0 four")
        self.assertRegex(lines[2], f"^{RECORD}$")

    def test_every_event_of_directed_yield_is_there(self):
        seen = collections.Counter(match.group(1) for line in self.dump()
                                   if (match := re.fullmatch(RECORD, line)))
        for event in ("switch", "spin", "boost", "back"):
            self.assertGreater(seen[event], 20, f"{event}: {seen}")

    def test_a_spin_that_yielded_names_target_and_rule(self):
        yielded = [line for line in self.dump() if " spin " in line and line.endswith("yielded=1")]
        self.assertTrue(yielded)
        for line in yielded:
            self.assertRegex(line, r" spun=\d+ kernel=1 seen=\d+ target=[0-3] rule=[a-z]+ yielded=1")

    def test_converted_it_shows_who_runs_where(self):
        events = self.converted()
        self.assertEqual({e["name"] for e in events if e["ph"] == "X" and e["pid"] == 1},
                         {f"four/{n}" for n in range(4)})
        self.assertEqual({e["name"] for e in events if e["ph"] == "i"} & {"spin", "boost"},
                         {"spin", "boost"})
        self.assertEqual({e["tid"] for e in events if e["ph"] == "X" and e["pid"] == 1}, {0, 1})

    def test_no_pcpu_runs_two_and_no_vcpu_runs_twice_at_once(self):
        tracks = collections.defaultdict(list)
        for event in self.converted():
            if event["ph"] == "X" and (event["pid"] == 1 or event["name"] == "runs"):
                tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        self.assertEqual(len(tracks), 2 + 4)
        # The clock of a switch is read before the lock: a vCPU that moves may seem to be there
        # that much before it has left.
        for track, slices in tracks.items():
            slices.sort()
            for (_, end), (start, _) in zip(slices, slices[1:]):
                self.assertLess(end - start, 1e-3 if track[0] == 1 else 100, track)

    def test_the_panic_ends_with_the_last_records(self):
        self.assertEqual(self.machine.status, 3, self.machine.describe())
        at = self.machine.console.index("the last of the trace, TSC at ")
        self.assertRegex(self.machine.console[at:], rf"\n{RECORD}\r?\n")

    def test_the_monitor_knows_the_knobs_of_directed_yield(self):
        self.assertRegex(self.machine.console, r"(?m)^candidate_policy +exact +\S")
        self.assertRegex(self.machine.console, r"(?m)^ +kvm +round robin")


if __name__ == "__main__":
    unittest.main()
