# SPDX-License-Identifier: BSD-2-Clause
"""Tests of tools/bench without a machine: what it reads out of consoles and debuggers, and judges."""

import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/bench"), str(ROOT / "tools")]

from benchlib import bochs, boot, compare, lines, paths, peer, profile, spin, table, vlagrun  # noqa: E402
from vlaglib.errors import ToolError  # noqa: E402

CONSOLE = "\r\n".join([
    "exits: 1 CPUs", "bench: cpuid median 121 min 119", "bench: cr3_write median -5 min -5",
    "bench: vmcall_unknown skipped: CPUID does not say KVMKVMKVM", "guest: exits: PASS", ""])


class Paths(unittest.TestCase):
    def test_figures_are_read_with_sign_and_reason(self):
        figures = paths.read_figures(CONSOLE)
        self.assertEqual(figures["cpuid"], (121, 119, None))
        self.assertEqual(figures["cr3_write"], (-5, -5, None))
        self.assertEqual(figures["vmcall_unknown"][0], None)
        self.assertIn("KVMKVMKVM", figures["vmcall_unknown"][2])

    def row(self, ticks, kvm):
        line = lines.Line("x2apic", "cpuid", "CPUID", kvm, None)
        return paths._judge(paths._row(line, {"cpuid": (ticks, ticks, None)}))

    def test_the_goal_is_an_eighth_of_kvm_and_no_tick_more(self):
        self.assertTrue(self.row(125, 1002)["reached"])
        self.assertFalse(self.row(126, 1002)["reached"])
        self.assertEqual(self.row(125, 1002)["ratio"], 8.0)

    def test_a_half_is_rounded_up(self):
        line = lines.Line("2pcpus", "trip", "round trip, half", 482, None, None, 2)
        self.assertEqual(paths._row(line, {"trip": (965, 964, None)})["ticks"], 483)

    def test_what_has_no_peer_is_not_judged(self):
        self.assertNotIn("reached", self.row(125, None))

    def test_a_line_that_the_guest_did_not_measure_is_an_error(self):
        with self.assertRaisesRegex(ToolError, "did not measure wbinvd"):
            paths._row(lines.Line("x2apic", "wbinvd", "WBINVD", 883, 967), {})

    def test_a_target_that_did_not_sleep_is_an_error(self):
        def stats(halts):
            return {"vms": [{"vcpus": [{}, {"counters": {"halts": halts}}]}]}
        paths._check_asleep(stats(2 * paths.SAMPLES))
        with self.assertRaisesRegex(ToolError, "halt 7 times only"):
            paths._check_asleep(stats(7))

    def test_every_line_names_a_run_and_is_named_once(self):
        names = [line.name for line in lines.EXITS + lines.NO_EXIT + lines.ALSO]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual({line.run for line in lines.EXITS + lines.NO_EXIT + lines.ALSO},
                             set(paths.RUNS))

    def test_the_guest_knows_every_line(self):
        source = (ROOT / "tests/guests/exits.c").read_text(encoding="ascii")
        for line in lines.EXITS + lines.NO_EXIT + lines.ALSO:
            bare = line.name.removeprefix("x2apic_").removeprefix("xapic_")
            self.assertTrue(f'"{line.name}"' in source or f'"{bare}"' in source, line.name)


class Spin(unittest.TestCase):
    CONSOLE = "\n".join([
        "vlag: vm kvm-auto: Multiboot, 4 vCPUs, 16 MiB", "bench: ipi_to_ack median 9000 min 3",
        "vlag: vm kvm-auto: ended: debug-exit status 0",
        "vlag: vm exact-auto: Multiboot, 4 vCPUs, 16 MiB",
        "exact-auto| bench: ipi_to_ack median 4000 min 3",
        "vlag: vm exact-auto: ended: debug-exit status 0",
        "vlag: vm ipi-auto: Multiboot, 4 vCPUs, 16 MiB",
        "vlag: vm ipi-auto: ended: debug-exit status 1", ""])

    def test_each_vm_has_its_own_figures(self):
        self.assertEqual(spin.figures(self.CONSOLE, "kvm-auto"), {"ipi_to_ack": 9000})
        self.assertEqual(spin.figures(self.CONSOLE, "exact-auto"), {"ipi_to_ack": 4000})

    def test_a_vm_that_failed_is_an_error(self):
        with self.assertRaisesRegex(ToolError, "ipi-auto did not end as it should"):
            spin.figures(self.CONSOLE, "ipi-auto")

    def test_the_table_has_a_line_for_each_yield_policy(self):
        rows = [{"candidate": c, "yield": y, "ticks": 1000 * i, "attempted": 40, "successful": i}
                for i, (c, y) in enumerate((c, y) for c in spin.CANDIDATES for y in spin.YIELDS)]
        printed = spin.text({"ips": 1, "ipis": 40,
                             "loads": [{"gap": 1, "rows": rows}]}).split("\n")[4:]
        self.assertEqual(len(printed), 2 + len(spin.YIELDS))
        self.assertRegex(printed[2], r"^\| forfeit +\| +0 \| +0\.0 % \| +5,000 \| +12\.5 %")


class Tables(unittest.TestCase):
    def test_columns_are_aligned_and_numbers_grouped(self):
        text = table.render(["what", "ticks"], [["a", 1234], ["longer", None]])
        self.assertEqual(text.split("\n"), ["| what   | ticks |", "| ------ | ----: |",
                                            "| a      | 1,234 |", "| longer |     - |"])


class FakeDebugger:
    """Stops where the list says."""

    def __init__(self, stops):
        self.stops, self.armed, self.tick = list(stops), set(), 0

    def break_at(self, address):
        assert len(self.armed) < bochs.MAX_BREAKPOINTS
        self.armed.add(address)

    def forget(self, address):
        self.armed.remove(address)

    def go(self):
        address, self.tick = self.stops.pop(0)
        assert address in self.armed, f"{address:#x} is not armed"
        return address


class FakeStops:
    entry, user = 0x200, 0x999
    phases = {0x1000 + n: n for n in range(1, len(boot.PHASES))}


class Boot(unittest.TestCase):
    def run_through(self, stops):
        debugger = FakeDebugger(stops)
        one = boot.Boot(FakeStops, debugger)
        while not one.reached(debugger.go()):
            pass
        one.check()
        return one

    def whole(self):
        return [(0x200, 100)] + [(0x1000 + n, 100 + 10 * n) for n in range(1, len(boot.PHASES))] \
            + [(0x999, 1000)]

    def test_phases_go_from_breakpoint_to_breakpoint(self):
        one = self.run_through(self.whole())
        self.assertEqual(one.ticks, 900)
        self.assertEqual(one.phase_ticks()[0], 10)
        self.assertEqual(sum(one.phase_ticks()), one.ticks)

    def test_the_last_pass_of_the_entry_counts(self):
        self.assertEqual(self.run_through([(0x200, 5)] + self.whole()).begin[0], 100)

    def test_phases_out_of_order_are_an_error(self):
        stops = self.whole()
        stops[2], stops[3] = stops[3], stops[2]
        stops[2], stops[3] = (stops[2][0], stops[3][1]), (stops[3][0], stops[2][1])
        with self.assertRaisesRegex(ToolError, "order"):
            self.run_through(stops)


class Profiles(unittest.TestCase):
    exits = [profile.Exit(10, 120, "CPUID", (("entry.asm", 40), ("exit_cpuid", 80))),
             profile.Exit(500, 122, "CPUID", (("entry.asm", 40), ("exit_cpuid", 82))),
             profile.Exit(900, 120, "CPUID", (("entry.asm", 40), ("exit_cpuid", 80))),
             profile.Exit(1500, 9000, "HLT", (("entry.asm", 40), ("exit_hlt", 100)))]

    def test_ticks_asleep_are_not_instructions(self):
        self.assertEqual(profile.instructions(self.exits[3]), 140)

    def test_by_reason_sums_and_sorts(self):
        rows = profile.by_reason(self.exits)
        self.assertEqual([row["reason"] for row in rows], ["CPUID", "HLT"])
        self.assertEqual((rows[0]["count"], rows[0]["min"], rows[0]["median"], rows[0]["max"],
                          rows[0]["sum"]), (3, 120, 120, 122, 362))

    def test_equal_ways_are_one(self):
        rows = profile.by_path(self.exits)
        self.assertEqual([(row["reason"], row["count"], row["instructions"]) for row in rows],
                         [("CPUID", 2, 120), ("HLT", 1, 140), ("CPUID", 1, 122)])

    def test_by_function_counts_exits_too(self):
        self.assertEqual(profile.by_function(self.exits)[0], ("exit_cpuid", 242, 3))


class Debugger(unittest.TestCase):
    """What Bochs prints, as it does."""

    def go(self, text):
        one = bochs.Debugger.__new__(bochs.Debugger)
        one.command = lambda command: text
        return one.go(), one.tick, one.rip

    def test_a_breakpoint(self):
        self.assertEqual(self.go(
            " c\n(0) Breakpoint 2, 0x0000000001000200 in ?? ()\nNext at t=273546177\n"
            "(0) [0x000001000200] 0010:0000000001000200 (unk. ctxt): cld   ; fc\n<bochs:5> "),
            (0x1000200, 273546177, 0x1000200))

    def test_a_breakpoint_on_a_page_that_is_not_there_yet(self):
        self.assertEqual(self.go(
            " c\n(0) Breakpoint 18, 0x0000000000401316 in ?? ()\nNext at t=341262527\n"
            "(0).[341262527] ??? (physical address not available)\n<bochs:54> ")[:2],
            (0x401316, 341262527))

    def test_a_vm_exit(self):
        where, tick, rip = self.go(
            " c\n(0) Caught VMEXIT\nNext at t=795112040\n"
            "(0) [0x00001e138280] 0008:000000001e138280 (unk. ctxt): push r15   ; 4157\n<bochs:4> ")
        self.assertEqual((where, tick, rip), (bochs.VMEXIT, 795112040, 0x1e138280))

    def test_an_end_is_an_error(self):
        with self.assertRaisesRegex(ToolError, "another reason"):
            self.go("Bochs is exiting with the following message:\n[HD] no disk\n")


class Compare(unittest.TestCase):
    def results(self, ticks, commit="one"):
        return {"format": 1, "hypervisor": {"commit": commit}, "platform": "bochs",
                "paths": {"exits": [{"line": "CPUID", "ticks": ticks}], "no_exit": [], "also": []},
                "size": {"image": 1000}}

    def test_what_differs_is_said_and_what_does_not_is_not(self):
        text = compare.text(self.results(121), self.results(118, "two"))
        self.assertIn("1 of 2 figures differ from those of one", text)
        self.assertRegex(text, r"path: CPUID +\| +121 \| +118 \| +-3 ")
        self.assertNotIn("image", text)

    def test_another_file_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.json"
            path.write_text(json.dumps({"format": 2}), encoding="utf-8")
            with self.assertRaisesRegex(ToolError, "not a bench.json"):
                compare.load(path)


class Peer(unittest.TestCase):
    def test_halves_and_missing_printedare_shown_as_such(self):
        text = peer.text({"host": "6.1", "ips": 1, "figures": {
            "1 CPU": {"cpuid": 986}, "2 CPUs": {"x2apic_ipi_round_trip_spin": 8075},
            "token": {"token_pass": 32000}}})
        self.assertRegex(text, r"\| CPUID +\| +986 \| +986 \| +1,002 \|")
        self.assertRegex(text, r"round trip, half, spinning +\| +4,038 \|")
        self.assertRegex(text, r"WBINVD +\| +- \|")
        self.assertRegex(text, r"pass a token.*\| +32,000 \|")


class Setup(unittest.TestCase):
    def test_a_guest_that_is_not_built_is_named(self):
        setup = vlagrun.Setup(pathlib.Path("/nowhere"), None, None)
        with self.assertRaisesRegex(ToolError, "/nowhere/guest/bzImage is not there"):
            setup.guest("guest/bzImage")


if __name__ == "__main__":
    unittest.main()
