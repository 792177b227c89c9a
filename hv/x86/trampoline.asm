; SPDX-License-Identifier: BSD-2-Clause
; The first instructions: hv_entry, where the boot loader enters, and the trampoline, where every other CPU begins.

default rel
section .text

extern hv_main, boot_stack
BOOT_STACK_SIZE equ 16 * 1024

global hv_entry
bits 64
hv_entry:			; boot_info in rdi, the loader's stack and page tables, interrupts off
	cli
	cld
	lea rsp, [boot_stack + BOOT_STACK_SIZE]
	xor ebp, ebp
	call hv_main
	ud2

; The trampoline. hv/smp.c copies it to a page below 1 MiB and fills in cr3, entry and stack. A CPU arrives here by SIPI in real
; mode with CS = page / 16 and IP = 0, patches the three addresses that depend on the page while paging is still off, loads our
; page tables (which map the page read-execute) and calls entry() on the stack that *stack holds.
%define AT(label) (label - trampoline_start)
global trampoline_start, trampoline_end, trampoline_cr3, trampoline_entry, trampoline_stack

bits 16
align 16
trampoline_start:
	cli
	cld
	mov ax, cs
	mov ds, ax
	movzx ebx, ax
	shl ebx, 4		; linear address of the page, kept until the end
	lea eax, [ebx + AT(gdt)]
	mov [AT(gdtr) + 2], eax
	lea eax, [ebx + AT(protected)]
	mov [AT(jump32)], eax
	lea eax, [ebx + AT(long_mode)]
	mov [AT(jump64)], eax
	o32 lgdt [AT(gdtr)]
	mov eax, cr0
	and eax, 0x9fffffff	; caches on: CD and NW off
	or eax, 1
	mov cr0, eax
	jmp far dword [AT(jump32)]

bits 32
protected:
	mov ax, 0x18
	mov ds, ax
	mov es, ax
	mov ss, ax
	mov eax, cr4
	or eax, 1 << 5		; PAE
	mov cr4, eax
	mov eax, [ebx + AT(trampoline_cr3)]
	mov cr3, eax
	mov ecx, 0xc0000080	; EFER: LME and NXE
	rdmsr
	or eax, 1 << 8 | 1 << 11
	wrmsr
	mov eax, cr0
	or eax, 1 << 31 | 1 << 16 ; PG and WP
	mov cr0, eax
	jmp far dword [ebx + AT(jump64)]

bits 64
long_mode:
	mov rax, [rbx + AT(trampoline_stack)]
	mov rsp, [rax]
	xor ebp, ebp
	call [rbx + AT(trampoline_entry)]
	ud2

align 8
gdtr:	dw 4 * 8 - 1
	dd 0
	dw 0
jump32:	dd 0
	dw 0x10, 0
jump64:	dd 0
	dw 0x08, 0
trampoline_cr3:
	dq 0
trampoline_entry:
	dq 0
trampoline_stack:
	dq 0
gdt:	dq 0
	dq 0x00af9b000000ffff	; 0x08: 64-bit code
	dq 0x00cf9b000000ffff	; 0x10: 32-bit code
	dq 0x00cf93000000ffff	; 0x18: data
trampoline_end:
