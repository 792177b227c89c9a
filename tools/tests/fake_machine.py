#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stands in for an emulator in the tool's tests: speaks on two sockets as a machine with vlag does.

    fake_machine.py COM1 COM2 [WORD...]

WORDs: silent (nothing on the console), mute (no control line), dies (ends at once), hangs (does not
end on SIGINT and SIGTERM). Typed on the console: `say TEXT`, `raw TEXT` with escapes, `end`, `exit`.
"""

import json
import os
import select
import signal
import socket
import sys

FIRMWARE = b"\x1b[2J\x1b[01;01H\x1b[=3hBdsDxe: loading Boot0001 \"disk\"\r\n"


def connect(path):
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    return line


def console_command(com1, text):
    word, _, rest = text.partition(" ")
    rest = rest.encode().decode("unicode_escape").encode("latin-1")
    if word == "say":
        com1.sendall(rest + b"\r\n")
    elif word == "raw":
        com1.sendall(rest)
    elif word == "end":
        for number, how in enumerate(rest.decode().split(",")):
            com1.sendall(f"vlag: vm vm{number}: ended: {how.strip()}\r\n".encode())
        com1.sendall(b"vlag: all VMs ended, powering off\r\n")
        sys.exit(1)
    elif word == "stay":
        com1.sendall(b"vlag: vm vm0: ended: poweroff\r\n"
                     b"vlag: every VM has ended; the monitor stays (when_done = monitor)\r\n")
    elif word == "exit":
        sys.exit(1)
    com1.sendall(b"~ # ")


def control_command(com1, com2, text):
    if text == "stats json":
        com2.sendall(json.dumps({"vms": []}).encode() + b"\n.ok\n")
    elif text.startswith("vm "):
        com2.sendall(b".ok\n")
    elif text == "say bye":
        com1.sendall(b"\r\nbye\r\n")
        com2.sendall(b".ok\n")
    elif text == "silence":
        pass
    elif text.startswith("knob "):
        com2.sendall(text.encode() + b"\n.ok\n")
    elif text == "trace dump 500":
        com2.sendall(b"trace hz=1000000\ntrace 0 5 wake 0/1 pcpu=0 preempts=0\n.ok\n")
    elif text == "dots":
        com2.sendall(b"..one\n...two\nthree\n.ok\n")
    elif text == "long":
        com2.sendall(b"x" * 300000 + b"\n.ok\n")
    else:
        com2.sendall(f".error unknown command `{text}`; see help\n".encode())


def main(com1, com2, *words):
    if "dies" in words:
        sys.exit("fake: no such CPU model")
    if "hangs" in words:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    com1, com2 = connect(com1), connect(com2)
    with open("pid", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    com1.sendall(FIRMWARE)
    com2.sendall(FIRMWARE)
    if "silent" not in words:
        com1.sendall(b"vlag 0.0 (fake)\r\n~ # ")
    if "mute" not in words:
        com2.sendall(b".ready vlag 0.0\n")
    pending = {com1: b"", com2: b""}
    while True:
        for line in select.select([com1, com2], [], [])[0]:
            data = line.recv(4096)
            while not data and "hangs" in words:
                signal.pause()
            if not data:
                sys.exit(0)
            *commands, pending[line] = (pending[line] + data).split(b"\n")
            for command in commands:
                if line is com1:
                    com1.sendall(command + b"\r\n")
                    console_command(com1, command.decode())
                else:
                    control_command(com1, com2, command.decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
