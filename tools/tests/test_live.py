# SPDX-License-Identifier: BSD-2-Clause
"""Talking to a running machine: the socket of `vlag run`, and the commands that use it, against a
program that stands in for the emulator."""

import json
import pathlib
import socket
import subprocess
import sys
import threading
import unittest
import unittest.mock

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS))
sys.path.insert(0, str(TOOLS / "tests"))

import test_session  # noqa: E402
from test_session import cmd, send, until  # noqa: E402
from vlaglib import errors, live, server, session  # noqa: E402
from vlaglib.errors import ToolError  # noqa: E402


def vlag(*args):
    """A client as a user starts it: subprocess.CompletedProcess."""
    return subprocess.run([str(TOOLS / "vlag"), *map(str, args)], capture_output=True, text=True,
                          check=False, timeout=test_session.GUARD)


class Clients(unittest.TestCase):
    """A session with a server; clients() runs beside it, and `say bye` ends it."""

    setUp = test_session.SessionTest.setUp
    run_steps = test_session.SessionTest.run_steps

    def serve(self, clients, *steps, **more):
        """Runs the session; what @clients, a function of the socket's path, returns."""
        path, found = str(self.folder / "socket"), []
        listener = server.Server(path)
        self.addCleanup(listener.close)

        def beside():
            try:
                found.append(clients(path))
            finally:
                vlag("ask", path, "say", "bye")
        thread = threading.Thread(target=beside)
        thread.start()
        self.status = self.run_steps(*steps, until("^bye$"), server=listener, **more)
        listener.close()
        thread.join()
        self.assertTrue(found, "the client failed")
        return found[0]

    def test_a_command_is_answered(self):
        def ask(path):
            with live.Connection(path) as machine:
                return machine.ask("knob a 1")
        self.assertEqual(self.serve(ask), ["knob a 1"])
        self.assertEqual(self.status, errors.OK)

    def test_dots_and_long_answers_arrive_whole(self):
        def ask(path):
            with live.Connection(path) as machine:
                return machine.ask("dots"), machine.ask("long")
        dots, long = self.serve(ask)
        self.assertEqual(dots, [".one", "..two", "three"])
        self.assertEqual(long, ["x" * 300000])

    def test_an_error_ends_the_client_and_not_the_session(self):
        done = self.serve(lambda path: vlag("ask", path, "frobnicate"))
        self.assertEqual(done.returncode, errors.CONTROL)
        self.assertIn("unknown command `frobnicate`", done.stderr)
        self.assertEqual(self.status, errors.OK)

    def test_answers_go_to_who_asked(self):
        def ask(path):
            answers = {}

            def one(number):
                with live.Connection(path) as machine:
                    answers[number] = [machine.ask(f"knob n {number}{i}") for i in range(20)]
            threads = [threading.Thread(target=one, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return answers
        answers = self.serve(ask, cmd("dots"), cmd("knob of the session"))
        self.assertEqual(answers, {n: [[f"knob n {n}{i}"] for i in range(20)] for n in range(4)})
        self.assertIn("three\nknob of the session\n", self.out)

    def test_a_client_that_goes_away_disturbs_nobody(self):
        def ask(path):
            with socket.socket(socket.AF_UNIX) as rude:
                rude.connect(path)
                rude.sendall(b"long\nlong\nknob half a li")
            with live.Connection(path) as machine:
                return machine.ask("knob b 2")
        self.assertEqual(self.serve(ask), ["knob b 2"])

    def test_the_monitor_answers_when_all_vms_have_ended(self):
        def ask(path):
            with live.Connection(path) as machine:
                return [machine.ask("knob c 3") for _ in range(100)]
        with unittest.mock.patch.object(session, "POWER_OFF_SECONDS", 0):
            answers = self.serve(ask, until("~ # "), send("stay\n"), until("the monitor stays"))
        self.assertEqual(answers, [["knob c 3"]] * 100)
        self.assertEqual(self.status, errors.OK)

    def test_the_commands_of_the_tool(self):
        def use(path):
            return [vlag(*args) for args in (("stats", path, "--format", "json"),
                                             ("set", path, "ple_window", "9"),
                                             ("set", path, "ple_window"))]
        stats, put, get = self.serve(use)
        self.assertEqual(json.loads(stats.stdout), {"vms": []})
        self.assertEqual(put.stdout, "knob ple_window 9\n")
        self.assertEqual(get.stdout, "knob ple_window\n")

    def test_a_trace_is_asked_for(self):
        done = self.serve(lambda path: vlag("trace", path))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("wake", {e["name"] for e in json.loads(done.stdout)["traceEvents"]})

    def test_a_machine_that_ends_says_so(self):
        def ask(path):
            with live.Connection(path) as connection:
                connection.ask("knob a 1")
                vlag("ask", path, "say", "bye")
                with self.assertRaisesRegex(ToolError, "the machine ended"):
                    connection.ask("silence")
            return True
        self.assertTrue(self.serve(ask))


class Sockets(unittest.TestCase):
    setUp = test_session.SessionTest.setUp

    def test_a_socket_left_behind_is_replaced(self):
        path = str(self.folder / "s")
        with socket.socket(socket.AF_UNIX) as old:
            old.bind(path)
        server.Server(path).close()
        self.assertFalse(pathlib.Path(path).exists())

    def test_a_socket_in_use_is_left_alone(self):
        path = str(self.folder / "s")
        first = server.Server(path)
        self.addCleanup(first.close)
        with self.assertRaisesRegex(ToolError, f"--socket {path}: is in use"):
            server.Server(path)
        with live.Connection(path):
            pass

    def test_a_file_is_not_overwritten(self):
        path = self.folder / "s"
        path.write_text("precious")
        with self.assertRaisesRegex(ToolError, "is in use"):
            server.Server(str(path))
        self.assertEqual(path.read_text(), "precious")

    def test_nobody_there_is_one_clear_line(self):
        done = vlag("stats", self.folder / "none")
        self.assertEqual(done.returncode, errors.USAGE)
        self.assertRegex(done.stderr, r"^vlag stats: .*none: no such file or directory; it is the "
                                      r"socket of a machine .*\n$")


def sample(uptime, **counts):
    vcpu = {"id": 0, "pcpu": 1, "run_ns": 0, "wait_ns": 0, "exits_total": 0, "switches": 0,
            "counters": {"spin_exits": 0}}
    spins = counts.pop("spins", 0)
    return {"uptime_ns": uptime,
            "vms": [{"name": "a", "vcpus": [vcpu | counts | {"counters": {"spin_exits": spins}}]}]}


class Top(unittest.TestCase):
    def test_rates_are_of_the_machines_time(self):
        before = sample(1_000_000_000, run_ns=5, exits_total=100)
        after = sample(3_000_000_000, run_ns=1_000_000_005, wait_ns=500_000_000, exits_total=1100,
                       switches=8, spins=20)
        self.assertEqual(live.rates(before, after), [("a/0", 1, 50, 25, 500, 4, 10)])

    def test_after_a_reset_it_counts_from_there(self):
        before = sample(10**9, exits_total=10**6)
        self.assertEqual(live.rates(before, sample(2 * 10**9, exits_total=7))[0][4], 7)

    def test_no_time_passed_no_rates(self):
        self.assertEqual(live.rates(sample(5), sample(5)), [])

    def test_columns_line_up(self):
        lines = live.table([("a/0", 1, 50, 25, 123456789, 4, 10), ("long/255", 0, 0, 0, 0, 0, 0)])
        self.assertEqual(len({len(line) for line in lines}), 1)
        self.assertTrue(lines[1].startswith("a/0 "))


if __name__ == "__main__":
    unittest.main()
