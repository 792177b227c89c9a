# SPDX-License-Identifier: BSD-2-Clause
"""The load programs, the script that runs them, and steald, on this machine: briefly, and with
their results checked for form and sense. What they show under load is measured elsewhere."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from common import ROOM, load_script

SECONDS = 60  # for a program that hangs
STORM = ["ops", "seconds", "ops_per_s", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"]


def fields(line):
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


class LoadTest(unittest.TestCase):
    """A folder with all our programs, as the guest's /bin."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        script = load_script("build-initramfs")
        for source in script.programs_of("load"):
            script.compile_program(source, cls.folder)
        (cls.folder / "tmp").mkdir()

    def run_it(self, *command, ok=True):
        environment = dict(
            os.environ, PATH=f"{self.folder}:{os.environ['PATH']}", TMPDIR=str(self.folder / "tmp")
        )
        done = subprocess.run(
            command, text=True, capture_output=True, env=environment, timeout=SECONDS
        )
        self.assertEqual(done.returncode == 0, ok, done.stdout + done.stderr)
        return done

    def load(self, *arguments, ok=True):
        return self.run_it("sh", str(ROOM / "load/load"), *arguments, ok=ok)

    def fake(self, name, text):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        self.addCleanup(path.unlink)


class Storms(LoadTest):
    def check(self, line, mode):
        result = fields(line)
        self.assertEqual(result["mode"], mode)
        numbers = [float(result[name]) for name in STORM]
        self.assertGreater(numbers[0], 0)
        self.assertGreaterEqual(numbers[1], 0.02)
        self.assertEqual(numbers[3:], sorted(numbers[3:]))  # percentiles rise to the maximum
        return result

    def test_ipistorm_has_three_ways_to_interrupt(self):
        for mode in ("membarrier", "mprotect", "munmap"):
            done = self.run_it("ipistorm", f"mode={mode}", "ms=20")
            result = self.check(done.stdout, mode)
            self.assertLess(int(result["fanout"]), os.cpu_count())

    def test_ipistorm_keeps_to_its_rate(self):
        done = self.run_it("ipistorm", "rate=100", "pace=sleep", "ms=200")
        # 100 a second for the time that it really took
        self.assertLessEqual(int(fields(done.stdout)["ops"]),
                             100 * float(fields(done.stdout)["seconds"]) + 2)

    def test_lockstorm_has_five_locks(self):
        for mode in ("futex", "mutex", "pipe", "file", "mm"):
            done = self.run_it("lockstorm", f"mode={mode}", "threads=3", "ms=20")
            result = self.check(done.stdout, mode)
            self.assertLessEqual(int(result["thread_min"]), int(result["thread_max"]))
            self.assertLessEqual(3 * int(result["thread_min"]), int(result["ops"]))

    def test_a_mistake_says_what_would_be_right(self):
        for command, text in (
            (("ipistorm", "mode=x"), "mode is one of membarrier mprotect munmap"),
            (("lockstorm", "threads=-1"), "threads is a number from 0 to 256"),
            (("lockstorm", "thread=1"), "'thread=1': there are mode= ms= threads="),
        ):
            self.assertIn(text, self.run_it(*command, ok=False).stderr)


class Wrapper(LoadTest):
    def result(self, *arguments):
        done = self.load(*arguments)
        lines = [line for line in done.stdout.splitlines() if line.startswith("vlag-result: ")]
        self.assertEqual(len(lines), 1, done.stdout)
        result = fields(lines[0])
        self.assertEqual(result["workload"], arguments[0])
        for name in ("ops", "seconds", "ops_per_s", "unit", "runs", "ticks", "steal_ms", "start",
                     "late_ms"):
            self.assertIn(name, result)
        self.assertGreater(int(result["ticks"]), 0)
        return result

    def test_a_storm(self):
        result = self.result("lockstorm", "mode=pipe", "threads=2", "ms=30", "tag=a/b")
        self.assertEqual((result["mode"], result["threads"], result["tag"]), ("pipe", "2", "a/b"))

    def test_fixed_work_is_repeated_until_the_time_is_over(self):
        self.fake("hackbench", "true")
        result = self.result("hackbench", "ms=1000", "groups=3", "fds=2", "loops=7")
        runs = int(result["runs"])
        self.assertGreater(runs, 1)
        self.assertEqual(int(result["ops"]), runs * 3 * 2 * 2 * 7)
        self.assertGreaterEqual(float(result["seconds"]), 1)

    def test_the_figures_of_other_programs_are_read(self):
        table = (
            " Operation                Count    AvgLat    MaxLat\n"
            " --------------------------------------------------\n"
            " NTCreateX                 1200     0.010     0.500\n"
            " Close                       34     0.001     0.002\n\n"
            "Throughput 123.4 MB/sec  4 clients  4 procs  max_latency=0.500 ms\n"
        )
        self.fake("dbench", f"cat <<'END'\n{table}END")
        self.assertEqual(self.result("dbench")["ops"], "1234")
        self.fake("sysbench", "echo '    total number of events:              4711'")
        self.assertEqual(self.result("sysbench", "threads=2")["ops"], "4711")
        self.fake(
            "stress-ng",
            "echo 'stress-ng: metrc: [7] stressor       bogo ops real time  usr time'\n"
            "echo 'stress-ng: metrc: [7] futex             55555      1.00      0.80'",
        )
        self.assertEqual(self.result("stress-ng")["ops"], "55555")

    def test_a_program_without_a_figure_is_an_error_that_shows_its_text(self):
        self.fake("sysbench", "echo out of order")
        done = self.load("sysbench", ok=False)
        self.assertIn("out of order", done.stderr)
        self.assertNotIn("vlag-result", done.stdout)

    def test_it_starts_at_the_second_that_it_is_told(self):
        at = int(time.time()) + 2
        result = self.result("lockstorm", "ms=20", f"start={at}")
        self.assertGreaterEqual(float(result["start"]), at)
        self.assertAlmostEqual(
            float(result["start"]) - at, int(result["late_ms"]) / 1000, delta=0.002
        )

    def test_a_start_that_is_past_is_told_as_late(self):
        self.assertGreater(int(self.result("lockstorm", "ms=20", "start=1000")["late_ms"]), 10**6)

    def test_mistakes_are_one_clear_line(self):
        for arguments, text in (
            (("nothing",), "no workload 'nothing'"),
            (("hackbench", "goups=2"), "hackbench has no key 'goups': there are groups fds"),
            (("lockstorm", "ms=x"), "ms is a number"),
            (("lockstorm", "$(reboot)"), "write key=value"),
            (("lockstorm", "ms=10", "start=/0"), "N of /N is not 0"),
        ):
            if arguments[0] == "hackbench":
                self.fake("hackbench", "true")
            self.assertIn(text, self.load(*arguments, ok=False).stderr)


@unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "needs two CPUs")
class Steald(LoadTest):
    """steald on a family of its own, with a /proc/stat that we write."""

    def setUp(self):
        self.cpus = os.sched_getaffinity(0)
        self.stat = self.folder / "stat"
        self.set_steal(0)

    def set_steal(self, ticks):
        new = self.folder / "stat.new"
        new.write_text(f"cpu  0 0 0 0 0 0 0 {ticks} 0 0\n")
        new.replace(self.stat)

    @contextlib.contextmanager
    def stealing(self):
        """Steal time grows all the while, by far more than the thresholds."""
        end = threading.Event()

        def steal():
            ticks = 0
            while not end.wait(0.01):
                ticks += 10**6
                self.set_steal(ticks)

        thread = threading.Thread(target=steal)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def child(self, cpus):
        process = subprocess.Popen(
            ["sleep", str(SECONDS)], preexec_fn=lambda: os.sched_setaffinity(0, cpus)
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def start(self, *more):
        environment = dict(os.environ, STEALD_STAT=str(self.stat))
        process = subprocess.Popen(
            [str(self.folder / "steald"), "report=0", "interval_ms=100", f"tree={os.getpid()}",
             *more],
            stdout=subprocess.PIPE, text=True, env=environment,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, process, pattern):
        for line in process.stdout:
            if re.search(pattern, line):
                return line
        self.fail(f"steald ended without a line that matches {pattern}")
        return None

    def test_it_folds_what_is_free_leaves_what_is_pinned_and_unfolds(self):
        first, last = min(self.cpus), max(self.cpus)
        free, pinned = self.child(self.cpus), self.child({last})
        steald = self.start()
        with self.stealing():
            self.wait_for(steald, rf"steal \d+\.\d\d %: prefers {first} \(")
            self.assertEqual(os.sched_getaffinity(free.pid), {first})
            self.assertEqual(os.sched_getaffinity(pinned.pid), {last})
        self.wait_for(steald, rf"steal 0\.00 %: prefers .*\b{last} \(")
        self.assertEqual(os.sched_getaffinity(free.pid), self.cpus)
        self.assertEqual(os.sched_getaffinity(pinned.pid), {last})

    def test_what_a_folded_task_starts_is_unfolded_too(self):
        first = min(self.cpus)
        steald = self.start()
        with self.stealing():
            self.wait_for(steald, rf"prefers {first} \(")
            child = subprocess.Popen(["sleep", str(SECONDS)])  # this process is folded
            self.addCleanup(child.wait)
            self.addCleanup(child.kill)
            self.assertEqual(os.sched_getaffinity(child.pid), {first})
            steald.send_signal(signal.SIGTERM)
            self.wait_for(steald, "ended, everything is as it was")
        self.assertEqual(os.sched_getaffinity(child.pid), self.cpus)

    def test_it_restores_when_it_is_ended_while_folded(self):
        first, last = min(self.cpus), max(self.cpus)
        free, pinned = self.child(self.cpus), self.child({last})
        steald = self.start()
        with self.stealing():
            self.wait_for(steald, rf"prefers {first} \(")
            steald.send_signal(signal.SIGTERM)
            self.wait_for(steald, "ended, everything is as it was")
        self.assertEqual(steald.wait(), 0)
        self.assertEqual(os.sched_getaffinity(free.pid), self.cpus)
        self.assertEqual(os.sched_getaffinity(pinned.pid), {last})

    def test_thresholds_the_wrong_way_round_are_refused(self):
        done = self.run_it("steald", "low_threshold=500", "high_threshold=500", ok=False)
        self.assertIn("low_threshold=500 must be less than high_threshold=500", done.stderr)


if __name__ == "__main__":
    unittest.main()
