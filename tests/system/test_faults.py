# SPDX-License-Identifier: BSD-2-Clause
"""Guests that die, hang or misbehave hurt only themselves.

Each is a few instructions in 32-bit protected mode, assembled here: what they do is their point,
and the guests of tests/guests have a library that would get in the way.
"""

import pathlib
import subprocess
import tempfile
import unittest

import vlagtest

# Multiboot with the address fields; the stack is behind the image.
BEFORE = """\
bits 32
org 0x100000
image: dd 0x1badb002, 0x10000, -(0x1badb002 + 0x10000), image, image, 0, end + 0x4000, start
%macro pass 0
        xor eax, eax
        out 0xf4, al
%%again: hlt
        jmp %%again
%endmacro
start:  cli
        mov esp, end + 0x4000
"""
AFTER = """
align 8
end:
"""

# name: (code, how it ends as a regular expression)
DYING = {
    "triple": ("""
        lidt [nothing]
        ud2
nothing: dw 0
        dd 0""", r"triple fault, vCPU 0 at RIP 0x1000\w\w"),
    "instruction": ("        fld dword [0xfec00000]", "killed: vCPU 0: device access at 0xfec00000 "
                    "by an unsupported instruction: d9 05 00 00 c0 fe.*"),
    "fetch": ("""
        mov eax, 0xd0000000
        jmp eax""", "killed: vCPU 0: instruction fetch at 0xd0000000, where no RAM is"),
    "delivery": ("""
        lidt [idt]
        int3
idt:    dw 0x7ff
        dd 0xd0000000""", "killed: vCPU 0: an event's delivery touched 0xd0000018, where no RAM is"),
    "task": ("""
        lgdt [gdtr]
        jmp 8:next
next:   mov ax, 16
        mov ds, ax
        mov ss, ax
        mov ax, 24
        ltr ax
        jmp 32:0
gdtr:   dw 39
        dd gdt
align 8
gdt:    dq 0, 0x00cf9a000000ffff, 0x00cf92000000ffff
        dw 0x67, tss - image, 0x8910, 0
        dw 0x67, tss - image + 0x68, 0x8910, 0
tss:    times 0xd0 db 0""", "killed: vCPU 0: hardware task switch, which is not supported"),
}

# These go on for ever.
RESTLESS = {
    "halted": "again: hlt\n        jmp again",
    "spinning": "        jmp $",
    "flooding": """
        mov dx, 0x3f8
        mov al, 'x'
again:  out dx, al
        jmp again""",
}

# These look for trouble, and get through.
CURIOUS = {
    "ports": """
        xor edx, edx
again:  in al, dx
        in eax, dx
        inc dx
        jnz again
        pass""",
    "vmx": """
        mov eax, undefined - image
        mov word [gate], ax
        lgdt [gdtr]
        jmp 8:next
next:   lidt [idtr]
        xor ecx, ecx
        vmxoff
        vmlaunch
        vmresume
        vmxoff
        mov eax, ecx
        sub eax, 4
        out 0xf4, al
undefined: ; each of them has 3 bytes
        inc ecx
        add dword [esp], 3
        iret
idtr:   dw 7 * 8 - 1
        dd idt
gdtr:   dw 23
        dd gdt
align 8
idt:    times 6 dq 0
gate:   dw 0, 8, 0x8e00, 0x10
gdt:    dq 0, 0x00cf9a000000ffff, 0x00cf92000000ffff""",
}


def assemble(code):
    """The Multiboot image of @code."""
    with tempfile.TemporaryDirectory() as folder:
        source, image = pathlib.Path(folder, "guest.asm"), pathlib.Path(folder, "guest")
        source.write_text(BEFORE + code + AFTER, encoding="ascii")
        subprocess.run(["nasm", "-f", "bin", "-o", image, source], check=True)
        return image.read_bytes()


def section(name, kernel, **keys):
    keys = {"kernel": kernel, "memory": "16M", "debug_exit": "0xf4"} | keys
    return f"[vm {name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


def start_and_wait(name, end):
    return ["--cmd", f"vm start {name}", "--until", f"^vlag: vm {name}: ended: {end}"]


class Guests(vlagtest.BootedOnce):
    """Restless VMs from the start; then others, one by one; in the end a bystander."""

    restless, others = (), {}

    @classmethod
    def setUpClass(cls):
        cls.files = {name: assemble(code) for name, code in RESTLESS.items()}
        cls.files |= {name: assemble(code) for name, (code, _) in cls.others.items()}
        cls.config = "".join(section(name, name) for name in cls.restless)
        cls.config += "".join(section(name, name, autostart="no") for name in cls.others)
        cls.config += section("bystander", "smp.elf", vcpus=3, autostart="no")
        cls.args = []
        for name, (_, end) in cls.others.items():
            cls.args += start_and_wait(name, end[:12])
        cls.args += [*start_and_wait("bystander", r"debug-exit status \d"), "--cmd", "vm",
                     *[f"--cmd=dump vcpu {name} 0" for name in cls.restless]]
        for name in cls.restless:
            cls.args += ["--cmd", f"vm stop {name}", "--until", f"^vlag: vm {name}: ended: stopped"]
        super().setUpClass()

    def assert_all_well(self):
        self.assert_ok(self.machine)
        self.assert_ended("bystander", "debug-exit status 0")
        for name in self.restless:
            self.assert_console(self.machine, rf"^ *\d+ {name} +running ")
            self.assert_ended(name, "stopped")


class Deaths(Guests):
    """A VM that dies is named with the cause; the others go on."""

    restless, others = ("halted", "spinning"), DYING

    def assert_dead(self, name):
        self.assert_ok(self.machine)
        self.assert_ended(name, DYING[name][1])

    def test_triple_fault(self):
        self.assert_dead("triple")

    def test_device_access_by_an_instruction_that_is_not_supported(self):
        self.assert_dead("instruction")

    def test_jump_to_where_no_memory_is(self):
        self.assert_dead("fetch")

    def test_interrupt_table_where_no_memory_is(self):
        self.assert_dead("delivery")

    def test_task_switch(self):
        self.assert_dead("task")

    def test_a_killed_guests_registers_are_shown(self):
        self.assert_console(self.machine, r"RIP 00000000d0000000")

    def test_the_bystander_passes_and_halted_or_spinning_guests_can_be_stopped(self):
        self.assert_all_well()

    def test_registers_of_a_halted_guest(self):
        self.assert_console(self.machine, r"^vCPU halted/0: RIP 0+1000\w\w .*\(halted\)")


class Nuisances(Guests):
    """What a guest tries does not fill the console, nor take time away from others."""

    restless = ("spinning", "flooding")
    others = {name: (code, r"debug-exit status \d") for name, code in CURIOUS.items()}

    def test_a_guest_may_read_every_port(self):
        self.assert_ok(self.machine)
        self.assert_ended("ports", "debug-exit status 0")

    def test_unknown_ports_do_not_flood_the_console(self):
        shown = [line for line in self.machine.lines if "vm ports: " in line and "port 0x" in line]
        self.assertTrue(0 < len(shown) < 200, f"{len(shown)} lines of ports")

    def test_vmx_instructions_are_undefined(self):
        self.assert_ended("vmx", "debug-exit status 0")

    def test_the_bystander_passes_and_restless_guests_can_be_stopped(self):
        self.assert_all_well()


if __name__ == "__main__":
    unittest.main()
