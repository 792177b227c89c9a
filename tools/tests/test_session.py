# SPDX-License-Identifier: BSD-2-Clause
"""The loop behind `vlag run`, against a program that stands in for the emulator."""

import contextlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS))

from vlaglib import errors, machine, platforms, session  # noqa: E402
from vlaglib.errors import ToolError  # noqa: E402
from vlaglib.session import Step  # noqa: E402

FAKE = pathlib.Path(__file__).with_name("fake_machine.py")
GUARD = 60  # host seconds against a test that hangs; nothing is measured by it


class FakePlatform:
    name, serial = "fake", "unix"

    def __init__(self, *words):
        self.words = words

    def prepare(self, folder, image, com1, com2, options):
        return [sys.executable, str(FAKE), com1, com2, *self.words]

    def boot_hint(self, options):
        return "fake: booting"

    def ticks(self, folder):
        return None


def until(regex):
    return Step("until", re.compile(regex), f"--until {regex!r}")


def send(text):
    return Step("send", text.encode(), f"--send {text!r}")


def cmd(text):
    return Step("cmd", text, f"--cmd {text!r}")


class SessionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vlag-session-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_steps(self, *steps, words=(), timeout=GUARD, **more):
        """Runs the steps: exit status; the outputs are in self.out and self.err."""
        out, err = io.BytesIO(), io.StringIO()
        host = machine.Machine(FakePlatform(*words), self.folder, "no-image",
                               platforms.Options())
        self.addCleanup(host.stop)
        stdout = io.TextIOWrapper(out, write_through=True)
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(err):
            driver = session.Session(host, steps, platforms.Options(), timeout=timeout, **more)
            status = driver.run()
        host.stop()
        self.assertFalse(host.running)
        self.driver = driver
        self.out, self.err = out.getvalue().decode(), err.getvalue()
        return status

    def test_what_was_waited_for_ends_the_run(self):
        self.assertEqual(self.run_steps(until(r"vlag \d")), errors.OK)

    def test_firmware_is_not_shown(self):
        self.run_steps(until("~ # "))
        self.assertTrue(self.out.startswith("vlag 0.0 (fake)\n"), self.out)
        self.assertNotIn("BdsDxe", self.out)

    def test_an_unfinished_line_matches(self):
        self.assertEqual(self.run_steps(until("^~ # $")), errors.OK)

    def test_steps_go_in_order(self):
        status = self.run_steps(until("~ # "), send("say one\n"), until("^one$"), until("~ # "),
                                send("say two\n"), until("^two$"))
        self.assertEqual(status, errors.OK)
        self.assertLess(self.out.index("\none\n"), self.out.index("\ntwo\n"))

    def test_a_match_is_used_up(self):
        status = self.run_steps(until("fake"), until("fake"), send("exit\n"), timeout=1)
        self.assertEqual(status, errors.TIMEOUT)

    def test_two_matches_in_one_line(self):
        status = self.run_steps(until("~ # "), send("raw ab ab\\n\n"), until("^ab"), until(" ab$"))
        self.assertEqual(status, errors.OK)

    def test_the_rest_of_the_line_is_searched_next(self):
        status = self.run_steps(until("~ # "), send("say left right\n"), until("^left"),
                                until("left"), timeout=1)
        self.assertEqual(status, errors.TIMEOUT)

    def test_terminal_escapes_do_not_hide_text(self):
        status = self.run_steps(until("~ # "), send("raw \\x1b[31mre\\x1b[0md\\n\n"), until("^red$"))
        self.assertEqual(status, errors.OK)

    def test_a_machine_that_ends_before_is_a_failure(self):
        status = self.run_steps(until("~ # "), send("exit\n"), until("never"))
        self.assertEqual(status, errors.NOT_SEEN)
        self.assertIn("ended before --until 'never'", self.err)

    def test_text_just_before_the_end_counts(self):
        status = self.run_steps(until("~ # "), send("end poweroff\n"), until("powering off"))
        self.assertEqual(status, errors.OK)

    def test_without_steps_the_end_is_success(self):
        status = self.run_steps(send("end poweroff\n"), to_the_end=True)
        self.assertEqual(status, errors.OK)
        self.assertEqual(self.driver.console.endings, {"vm0": "poweroff"})

    def test_endings_are_understood(self):
        self.run_steps(send("end debug-exit status 0, debug-exit status 35, triple fault\n"),
                       to_the_end=True)
        self.assertEqual(self.driver.console.statuses(), {"vm0": 0, "vm1": 35, "vm2": None})

    def test_a_machine_that_never_spoke_is_a_failure(self):
        status = self.run_steps(words=("silent", "mute"), timeout=1, to_the_end=True)
        self.assertEqual(status, errors.TIMEOUT)
        self.assertIn("firmware: ", self.err)
        self.assertIn("BdsDxe", self.err)

    def test_fatal_ends_at_once(self):
        status = self.run_steps(until("~ # "), send("say vlag: fatal: no VMX; use Bochs\n"),
                                until("never"))
        self.assertEqual(status, errors.FATAL)
        self.assertIn("no VMX; use Bochs", self.err)

    def test_fatal_can_be_waited_for(self):
        status = self.run_steps(until("~ # "), send("say vlag: fatal: no VMX\n"),
                                until("^vlag: fatal: no VMX$"))
        self.assertEqual(status, errors.OK)

    def test_fatal_inside_a_line_is_only_text(self):
        status = self.run_steps(until("~ # "), send("say guest: vlag: fatal: x\n"), until("~ # "))
        self.assertEqual(status, errors.OK)

    def test_commands_print_their_answer(self):
        self.assertEqual(self.run_steps(until("~ # "), cmd("dots")), errors.OK)
        self.assertTrue(self.out.endswith("~ # \n.one\n..two\nthree\n"), repr(self.out))

    def test_a_failed_command_is_a_failure(self):
        self.assertEqual(self.run_steps(cmd("frobnicate")), errors.CONTROL)
        self.assertIn("unknown command `frobnicate`", self.err)

    def test_a_long_answer_arrives_whole(self):
        self.assertEqual(self.run_steps(cmd("long")), errors.OK)
        self.assertIn("x" * 300000, self.out)

    def test_a_control_line_that_says_nothing_times_out(self):
        self.assertEqual(self.run_steps(cmd("dots"), words=("mute",), timeout=1), errors.TIMEOUT)
        self.assertIn("waiting for --cmd 'dots'", self.err)

    def stats(self):
        return Step("stats", str(self.folder / "stats.json"), "--stats")

    def test_statistics_are_written(self):
        self.assertEqual(self.run_steps(until("~ # "), self.stats()), errors.OK)
        self.assertEqual(json.loads((self.folder / "stats.json").read_text()), {"vms": []})

    def test_statistics_at_the_end_wait_for_the_vms(self):
        status = self.run_steps(send("stay\n"), self.stats(), to_the_end=True, monitor_at_end=True)
        self.assertEqual(status, errors.OK)
        self.assertTrue((self.folder / "stats.json").exists())

    def test_vms_that_end_before_the_regex_are_a_failure(self):
        status = self.run_steps(send("stay\n"), until("never"), monitor_at_end=True)
        self.assertEqual(status, errors.NOT_SEEN)

    def test_vms_that_are_started_after_the_last_one_has_ended_are_waited_for(self):
        status = self.run_steps(send("stay\n"), until("every VM has ended"), cmd("vm start vm0"),
                                send("say again\n"), until("^again$"), monitor_at_end=True)
        self.assertEqual(status, errors.OK)

    def test_much_output_arrives_whole(self):
        steps = [until("~ # ")]
        for n in range(200):
            steps.append(send(f"say {n}:" + "y" * 1000 + "\n"))
        status = self.run_steps(*steps, until("^199:y{1000}$"))
        self.assertEqual(status, errors.OK)
        for n in range(200):
            self.assertIn(f"\n{n}:" + "y" * 1000 + "\n", self.out)

    def test_a_closed_terminal_ends_the_machine(self):
        keyboard, theirs = os.pipe()
        self.addCleanup(os.close, keyboard)
        os.close(theirs)
        self.assertEqual(self.run_steps(keyboard=keyboard, to_the_end=True), errors.INTERRUPTED)

    def test_keys_go_to_the_console(self):
        keyboard, theirs = os.pipe()
        self.addCleanup(os.close, keyboard)
        self.addCleanup(os.close, theirs)
        os.write(theirs, b"say typed\nend poweroff\n")
        self.assertEqual(self.run_steps(keyboard=keyboard, to_the_end=True), errors.OK)
        self.assertIn("\ntyped\n", self.out)

    def test_an_emulator_that_fails_says_why(self):
        with self.assertRaisesRegex(ToolError, "no such CPU model"):
            self.run_steps(until("x"), words=("dies",))

    def test_an_emulator_that_does_not_listen_is_killed(self):
        self.assertEqual(self.run_steps(until("~ # "), words=("hangs",)), errors.OK)

    def test_the_emulator_dies_with_the_tool(self):
        program = textwrap.dedent(f"""
            import pathlib, sys
            sys.path[:0] = [{str(TOOLS)!r}, {str(FAKE.parent)!r}]
            from vlaglib import machine, platforms
            from test_session import FakePlatform
            host = machine.Machine(FakePlatform("hangs"), pathlib.Path({str(self.folder)!r}), "",
                                   platforms.Options())
            print("up", flush=True)
            input()
            """)
        with subprocess.Popen([sys.executable, "-B", "-c", program], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as tool:
            self.assertEqual(tool.stdout.readline(), "up\n")
            while not (self.folder / "pid").exists() or not (self.folder / "pid").read_text():
                time.sleep(0.01)
            pid = int((self.folder / "pid").read_text())
            tool.send_signal(signal.SIGKILL)
        for _ in range(GUARD * 100):
            try:
                os.kill(pid, 0)
                state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except (ProcessLookupError, FileNotFoundError):
                return
            if state == "Z":  # dead, nobody has asked yet
                return
            time.sleep(0.01)
        self.fail("the emulator survived the tool")


if __name__ == "__main__":
    unittest.main()
