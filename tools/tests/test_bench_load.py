# SPDX-License-Identifier: BSD-2-Clause
"""Tests of tools/bench/load without a machine: configs that it writes, results that it reads."""

import csv
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/bench"), str(ROOT / "tools")]

from benchlib import load  # noqa: E402
from vlaglib.errors import ToolError  # noqa: E402

GUESTS = load.Guests("/k", "/i")


def point(workload="hackbench", vms=2, policy="", fold="none"):
    return load.Point(workload, vms, load.parse_policy(policy), fold)


def result(rate, start="100.000", **more):
    words = {"workload": "hackbench", "ops_per_s": rate, "ticks": 10, "steal_ms": 20,
             "start": start, **more}
    return "vlag-result: " + " ".join(f"{key}={value}" for key, value in words.items())


def stats(**counters):
    return {"vms": [{"vcpus": [{"exits_total": 5, "counters": counters}] * 4}] * 2}


class Configs(unittest.TestCase):
    def test_a_policy_has_a_name_and_knobs(self):
        self.assertEqual(load.parse_policy("A b: x=1 y=two"), ("A b", {"x": "1", "y": "two"}))
        self.assertEqual(load.parse_policy("x=1"), ("x=1", {"x": "1"}))
        self.assertEqual(load.parse_policy(""), ("default", {}))
        with self.assertRaisesRegex(ToolError, "not 'auto'"):
            load.parse_policy("auto")

    def test_each_vm_runs_the_load_at_the_same_second_and_powers_off(self):
        text = load.config(GUESTS, point("hackbench groups=3", 3, "yield_policy=auto"))
        self.assertEqual(text.count("[vm "), 3)
        self.assertEqual(
            text.count('vlag.run="load hackbench groups=3 start=/4" vlag.poweroff\n'), 3)
        self.assertIn("[knobs]\nyield_policy = auto\n", text)
        self.assertNotIn("[knobs]", load.config(GUESTS, point()))

    def test_folding_comes_before_the_load(self):
        text = load.config(GUESTS, point(fold="steald"))
        self.assertIn('vlag.run="steald interval_ms=500 &" vlag.run="load hackbench', text)
        text = load.config(GUESTS, point(fold="kernel"))
        self.assertIn("steal_governor.interval_ms=500 ", text)
        self.assertIn("steald watch=1", text)
        self.assertIn("steal_governor.high_threshold=9999",
                      load.config(GUESTS, point(fold="off")))

    def test_vlag_takes_the_configs(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("k", "i", "efi"):
                pathlib.Path(folder, name).write_bytes(b"x")
            guests = load.Guests(f"{folder}/k", f"{folder}/i")
            path = pathlib.Path(folder, "vlag.cfg")
            path.write_text(load.config(guests, point(vms=4, policy="slice_ns=1000000",
                                                      fold="kernel")), encoding="utf-8")
            done = subprocess.run(
                [ROOT / "tools/vlag", "image", "-c", path, "--efi", f"{folder}/efi", "-o",
                 f"{folder}/out.img"], check=False, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("vlag.cfg:", done.stderr)

    def test_the_part_of_make_bench_has_four_pairs(self):
        policies = [load.parse_policy(pair) for pair in load.PAIRS]
        self.assertEqual(policies[1], ("(ipi, credit)", {"candidate_policy": "ipi",
                                                         "yield_policy": "credit"}))
        self.assertEqual(len({name for name, _ in policies}), 4)

    def test_the_matrix_has_every_point_with_a_name_of_its_own(self):
        points = load.matrix(["hackbench", "pigz"], [2, 3],
                             [load.parse_policy(text) for text in ("", "a=1")], ["none", "steald"])
        self.assertEqual(len({one.name for one in points}), 16)


class Results(unittest.TestCase):
    def test_lines_of_vms_are_read_and_long_ones_put_together(self):
        long = result(7, pad="x" * 300)
        console = "\r\n".join([f"vm1| {result(5)}", f"vm2| {long[:256]}", "vm1| something",
                               f"vm2| {long[256:]}", "vlag: vm vm1: ended: poweroff"])
        found = load.read_results(console, ["vm1", "vm2"])
        self.assertEqual(found["vm1"]["ops_per_s"], "5")
        self.assertEqual(found["vm2"]["ops_per_s"], "7")
        self.assertEqual(found["vm2"]["start"], "100.000")

    def test_the_attached_vm_has_no_name_before_its_lines(self):
        found = load.read_results(f"{result(5)}\nvm2| {result(6)}\n", ["vm1", "vm2"])
        self.assertEqual(found["vm1"]["ops_per_s"], "5")

    def test_a_vm_without_a_result_is_an_error_that_says_why(self):
        with self.assertRaisesRegex(ToolError, "no result of vm2: load: no workload 'x'"):
            load.read_results(f"vm1| {result(5)}\nvm2| load: no workload 'x'\n", ["vm1", "vm2"])

    def test_two_results_of_one_vm_are_an_error(self):
        with self.assertRaisesRegex(ToolError, "vm1 printed two"):
            load.read_results(f"vm1| {result(5)}\nvm1| {result(5)}\n", ["vm1"])

    def test_the_fewest_preferred_cpus(self):
        self.assertIsNone(load.read_folded("vm1| hello\n"))
        self.assertEqual(load.read_folded(
            "vm1| steald: steal 7.00 %: prefers 0-2 (3 tasks moved)\n"
            "vm1| steald: steal 7.00 %: prefers 0-1 (3 tasks moved)\n"
            "vm2| steald: steal 0.00 %: prefers 0-3 (3 tasks moved)\n"), 2)
        self.assertEqual(load.read_folded("vm1| steald: the kernel prefers 0,2-3\n"), 3)

    def row(self, *rates, starts=("100.0", "100.0"), **counters):
        found = load.read_results("\n".join(
            f"vm{n}| {result(rate, start)}" for n, (rate, start) in
            enumerate(zip(rates, starts), 1)), ["vm1", "vm2"])
        return load.summarize(point(), found, stats(**counters), None)

    def test_a_row_adds_the_vms_up(self):
        row = self.row(30, 10, directed_yield_attempted=10, directed_yield_successful=9)
        self.assertEqual((row["ops_per_s"], row["vm_min"], row["vm_max"]), (40, 10, 30))
        self.assertEqual((row["steal_ms"], row["exits_total"]), (40, 40))
        self.assertIn("90.0% of 80", load.text(load.compare([row])))

    def test_the_gain_is_over_the_first_of_its_kind(self):
        rows = load.compare([self.row(50, 50), self.row(60, 50), self.row(40, 50)])
        self.assertEqual([row["gain"] for row in rows], [0, 10, -10])

    def test_vms_that_started_apart_are_told(self):
        self.assertIn("within 10 ms", load.notes([self.row(1, 1, starts=("100.0", "100.01"))]))
        self.assertIn("NOT started together: hackbench, 2 VMs, default: 4000 ms apart",
                      load.notes([self.row(1, 1, starts=("100.0", "104.0"))]))

    def test_the_csv_has_a_line_a_vm(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "load.csv")
            load.write_csv([self.row(30, 10)], path)
            with open(path, newline="", encoding="utf-8") as file:
                lines = list(csv.DictReader(file))
        self.assertEqual([(line["vm"], line["ops_per_s"], line["policy"]) for line in lines],
                         [("vm1", "30", "default"), ("vm2", "10", "default")])


if __name__ == "__main__":
    unittest.main()
