# SPDX-License-Identifier: BSD-2-Clause
"""`vlag run` with whole machines: what a user sees of it on each platform."""

import re
import unittest

import vlagtest

HELLO = """\
[vm hello]
kernel = hello.elf
cmdline = a=1
memory = 16M
debug_exit = 0xf4
"""


class WithoutVmx(vlagtest.SystemTest):
    """QEMU without KVM has no VMX: all up to there works, and one line says what to do."""

    def test_the_one_clear_line(self):
        run = self.boot(HELLO, "--until", "never", platform="qemu-tcg")
        self.assertEqual(run.status, 3, run.describe())
        self.assert_console(run, r"^vlag: fatal: this CPU has no VMX.*--platform bochs")
        self.assertIn("this CPU has no VMX", run.messages)

    def test_the_line_can_be_what_is_waited_for(self):
        run = self.boot(HELLO, "--until", r"^vlag: fatal: .*VMX", platform="qemu-tcg")
        self.assert_ok(run)

    def test_a_missing_file_is_named_by_both(self):
        run = self.boot("[vm gone]\nkernel = gone.elf\n", platform="qemu-tcg", files={})
        self.assertRegex(run.messages, r"gone\.elf: no such file", run.describe())
        self.assert_console(run, r"vlag.*gone\.elf")


class OnBochs(vlagtest.SystemTest):
    """The steps of the command line, statistics and exit status, against the real hypervisor."""

    def test_a_guests_status_becomes_the_tools(self):
        run = self.boot(HELLO, "--debug-exit-status")
        self.assert_ok(run)
        self.assert_console(run, "^guest: hello: PASS$")
        self.assertRegex(run.messages, r"bochs, 1 pCPU: [\d,]+ ticks")
        self.assertIn("vm hello ended: debug-exit status 0", run.messages)

    def test_monitor_and_statistics_after_the_guests_end(self):
        run = self.boot(HELLO, "--until", "ended: debug-exit status 0", "--cmd", "version",
                        "--cmd", "vm", "--cmd", "stats prom reset", stats=True)
        self.assert_ok(run)
        self.assert_console(run, r"^\s*\S*vlag \d")
        self.assert_console(run, r"hello")
        samples = self.prometheus(run)
        self.assertGreater(sum(value for name, value in samples.items()
                               if name.startswith('vlag_exits_total{vm="hello",vcpu="0",reason=')),
                           10)
        self.assertEqual(samples['vlag_vm_running{vm="hello"}'], 0)
        self.assertGreater(samples['vlag_sched_slice_ns_count{vm="hello"}'], 0)
        self.assertGreater(samples['vlag_pcpu_idle_ns_total{pcpu="0"}'], 0)
        vm = run.stats["vms"][0]  # of after the reset; the VM had ended before
        self.assertEqual(vm["vcpus"][0]["exits_total"], 0)
        self.assertEqual(vm["vcpus"][0]["run_ns"], 0)
        self.assertEqual({name for name, value in vm["counters"].items() if value} -
                         {"fair_err_max_ns"}, set())
        self.assertEqual(vm["histograms"]["sched_slice"]["count"], 0)

    def prometheus(self, run):
        """The samples that the console shows, as {name and labels: value}; the format is checked:
        each metric has its HELP, then its TYPE, then all its samples, each once."""
        samples, metrics, now = {}, set(), None
        for line in run.console.splitlines():
            if match := re.fullmatch(r"# HELP (vlag_\w+) \S.*", line):
                now = match.group(1)
                self.assertNotIn(now, metrics)
                metrics.add(now)
            elif match := re.fullmatch(r"# TYPE (vlag_\w+) (counter|gauge|histogram)", line):
                self.assertEqual(match.group(1), now)
                self.assertEqual(match.group(2) == "counter", now.endswith("_total"), line)
            elif line.startswith("vlag_"):
                label = r'\w+="[^"\\]*"'
                match = re.fullmatch(rf"((vlag_\w+)(?:{{{label}(?:,{label})*}})?) (\d+(?:\.\d+)?)",
                                     line)
                self.assertIsNotNone(match, line)
                self.assertIn(match.group(2), (now, f"{now}_bucket", f"{now}_sum", f"{now}_count"))
                self.assertNotIn(match.group(1), samples)
                samples[match.group(1)] = float(match.group(3))
        return samples

    def test_an_unknown_monitor_command_is_a_failure(self):
        run = self.boot(HELLO, "--cmd", "frobnicate")
        self.assertEqual(run.status, 4, run.describe())
        self.assertIn("frobnicate", run.messages)

    def test_the_same_run_takes_the_same_number_of_ticks(self):
        ticks = set()
        for _ in range(2):
            run = self.boot(HELLO)
            self.assert_ok(run)
            ticks.add(run.ticks)
        self.assertEqual(len(ticks), 1, f"ticks differ: {ticks}")


if __name__ == "__main__":
    unittest.main()
