# SPDX-License-Identifier: BSD-2-Clause
"""`vlag trace`: what a dump becomes in Perfetto's JSON."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS))

from vlaglib import trace  # noqa: E402
from vlaglib.errors import ToolError  # noqa: E402

# vCPU 0 sends to vCPU 1, which waits for the same pCPU; spins; yields to it; goes on.
DUMP = """\
vlag: something else
trace hz=1000000000
trace vm 0 alpine
trace 0 1000 switch 0/0 prev_vm=- prev_vcpu=- runnable=0 waiting=1
trace 0 2000 wake 0/1 pcpu=0 preempts=0
trace 0 2100 ipi 0/0 to=1 vector=64 receivers=1
trace 0 6500 spin 0/0 spun=4096 kernel=1 seen=1 target=1 rule=receiver yielded=1
trace 0 7000 switch 0/1 prev_vm=0 prev_vcpu=0 runnable=1 waiting=1
trace 0 7000 boost 0/1 spinner=0 ran=1
trace 0 8000 eoi 0/1 vector=64 from=0
trace 0 9000 switch 0/0 prev_vm=0 prev_vcpu=1 runnable=0 waiting=0
trace 0 9000 back 0/0 waited=2000
trace 0 9500 switch - prev_vm=0 prev_vcpu=0 runnable=0 waiting=0
trace 1 9900 switch 0/1 prev_vm=- prev_vcpu=- runnable=0 waiting=0
trace 1 9999 eoi 0/1 vector=65 from=-
"""


class TraceTest(unittest.TestCase):
    def events(self, phase, text=DUMP, **kwargs):
        return [event for event in trace.convert(text.splitlines(), **kwargs)["traceEvents"]
                if event["ph"] == phase]

    def slices(self, pid, tid):
        return [(event["name"], event["ts"], round(event["dur"], 6)) for event in self.events("X")
                if (event["pid"], event["tid"]) == (pid, tid)]

    def test_a_pcpu_shows_who_runs_there(self):
        self.assertEqual(self.slices(trace.PCPUS, 0),
                         [("alpine/0", 0, 6), ("alpine/1", 6, 2), ("alpine/0", 8, 0.5)])

    def test_a_vcpu_shows_when_it_runs_and_waits(self):
        self.assertEqual(self.slices(trace.VM_BASE, 0),
                         [("runs", 0, 6), ("waits", 6, 2), ("runs", 8, 0.5)])
        self.assertEqual(self.slices(trace.VM_BASE, 1),
                         [("waits", 1, 5), ("runs", 6, 2), ("runs", 8.9, 0.099)])

    def test_an_arrow_leads_from_the_ipi_to_its_eoi(self):
        starts, ends = self.events("s"), self.events("f")
        self.assertEqual([(e["ts"], e["tid"], e["id"]) for e in starts], [(1.1, 0, 1)])
        self.assertEqual([(e["ts"], e["tid"], e["id"]) for e in ends], [(7, 1, 1)])

    def test_what_a_vcpu_does_is_an_instant_with_its_arguments(self):
        spin = [event for event in self.events("i") if event["name"] == "spin"]
        self.assertEqual(len(spin), 1)
        self.assertEqual(spin[0]["args"], {"spun": 4096, "kernel": 1, "seen": 1, "target": 1,
                                           "rule": "receiver", "yielded": 1, "pcpu": 0})
        last = [event for event in self.events("i") if event["name"] == "eoi"][-1]
        self.assertIsNone(last["args"]["from"])

    def test_tracks_have_names(self):
        names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in self.events("M")}
        self.assertEqual(names[("process_name", trace.VM_BASE, 0)], "alpine")
        self.assertEqual(names[("thread_name", trace.VM_BASE, 1)], "vCPU 1")
        self.assertEqual(names[("thread_name", trace.PCPUS, 1)], "pCPU 1")

    def test_the_order_of_lines_does_not_matter(self):
        lines = DUMP.splitlines()
        self.assertEqual(trace.convert(lines[3:10] + lines[10:] + lines[:3]),
                         trace.convert(lines))

    def test_prefixes_and_carriage_returns_are_no_obstacle(self):
        text = "\n".join("com1: " + line + "\r" for line in DUMP.splitlines())
        self.assertEqual(trace.convert(text.split("\n")), trace.convert(DUMP.splitlines()))

    def test_what_is_missing_is_said(self):
        with self.assertRaisesRegex(ToolError, "no trace"):
            trace.convert(["nothing", "trace", "trace hz=5", "trace x y z"])
        text = DUMP.replace("trace hz=1000000000\n", "")
        with self.assertRaisesRegex(ToolError, "--hz"):
            trace.convert(text.splitlines())
        self.assertEqual(self.events("X", text, hz=10**9), self.events("X"))

    def test_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            log.write_text(DUMP, encoding="ascii")
            out = pathlib.Path(folder, "out.json")
            subprocess.run([TOOLS / "vlag", "trace", log, "-o", out], check=True)
            self.assertEqual(json.loads(out.read_text()), trace.convert(DUMP.splitlines()))
            log.write_text("", encoding="ascii")
            done = subprocess.run([TOOLS / "vlag", "trace", log], check=False, text=True,
                                  capture_output=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"{log}: no trace in it", done.stderr)


if __name__ == "__main__":
    unittest.main()
