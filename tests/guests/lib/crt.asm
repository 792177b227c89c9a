; SPDX-License-Identifier: BSD-2-Clause
; Start of a tiny guest: Multiboot header, 32-bit entry, way into long mode with the first 4 GiB
; mapped one to one, real-mode trampoline of the other CPUs, interrupt stubs. Nothing but the way
; into C lives here.

FLAGS		equ 3			; modules on pages, memory information
MAGIC		equ 0x1badb002
CODE64		equ 0x08
DATA		equ 0x10
CODE32		equ 0x18
USER_CODE	equ 0x20 + 3
USER_DATA	equ 0x28 + 3
TRAMPOLINE	equ 0x8000		; as in guest.h
MMIO_FROM	equ 0xc0000000 >> 21	; from here up uncached
STACK_SIZE	equ 8192		; as in guest.h

extern guest_start, ap_start, trap, stacks, ap_index

section .multiboot
	align 4
	dd MAGIC, FLAGS, -(MAGIC + FLAGS)

section .text
bits 32
global _start
_start:
	mov [boot_regs.eax], eax
	mov [boot_regs.ebx], ebx
	mov eax, cr0
	mov [boot_regs.cr0], eax
	mov eax, cr4
	mov [boot_regs.cr4], eax
	mov [boot_regs.cs], cs
	mov [boot_regs.ss], ss
	mov esp, stacks + STACK_SIZE
	pushfd
	pop dword [boot_regs.eflags]

	mov dword [pml4], pdpt + 7	; present, writable, CPL 3 too
	mov eax, pd + 7
	mov edi, pdpt
	mov ecx, 4
.pdpt:	mov [edi], eax
	add eax, 4096
	add edi, 8
	loop .pdpt

	xor ecx, ecx
.pd:	mov eax, ecx
	shl eax, 21
	mov al, 0x87			; the same, 2 MiB
	cmp ecx, MMIO_FROM
	jb .set
	or al, 0x18			; uncached
.set:	mov [pd + ecx * 8], eax
	inc ecx
	cmp ecx, 2048
	jb .pd

	lgdt [gdtr]
	call enter_long_mode
	jmp CODE64:.long
bits 64
.long:	mov eax, DATA
	mov ds, eax
	mov es, eax
	mov ss, eax
	xor eax, eax
	mov fs, eax
	mov gs, eax
	mov rsp, stacks + STACK_SIZE
	call guest_start
.stop:	cli
	hlt
	jmp .stop

bits 32
enter_long_mode:			; PAE, tables, LME, paging; still in 32-bit code
	mov eax, cr4
	or eax, 1 << 5
	mov cr4, eax
	mov eax, pml4
	mov cr3, eax
	mov ecx, 0xc0000080
	rdmsr
	or eax, 1 << 8
	wrmsr
	mov eax, cr0
	or eax, 1 << 31 | 1
	mov cr0, eax
	ret

; Copied to TRAMPOLINE; a start-up IPI starts a CPU there in real mode.
global trampoline, trampoline_end
%define LOW(x) (x - trampoline + TRAMPOLINE)
bits 16
trampoline:
	cli
	xor ax, ax
	mov ds, ax
	o32 lgdt [LOW(.gdtr)]
	mov eax, cr0
	and eax, ~(1 << 30 | 1 << 29)	; caches on: INIT leaves CR0.CD and NW set
	or al, 1
	mov cr0, eax
	jmp dword CODE32:LOW(.protected)
bits 32
.protected:
	mov eax, DATA
	mov ds, eax
	mov es, eax
	mov ss, eax
	mov ecx, [ap_index]
	inc ecx
	imul ecx, ecx, STACK_SIZE
	lea esp, [stacks + ecx]
	mov ecx, enter_long_mode
	call ecx			; the call is relative, this code is a copy
	jmp CODE64:ap64
	align 4
.gdtr:	dw gdt.end - gdt - 1
	dd gdt
trampoline_end:
bits 64
ap64:
	xor eax, eax
	mov fs, eax
	mov gs, eax
	mov edi, [ap_index]
	mov esp, esp			; upper half is undefined after the switch
	call ap_start
	jmp _start.stop

; 256 interrupt stubs of 16 bytes: every one leaves vector and error code on the stack.
global isr_stubs
	align 16
isr_stubs:
%assign vector 0
%rep 256
	align 16
%if !(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21)
	push 0
%endif
	push vector
	jmp near interrupted
%assign vector vector + 1
%endrep

interrupted:
	push rax
	push rcx
	push rdx
	push rbx
	push rbp
	push rsi
	push rdi
	push r8
	push r9
	push r10
	push r11
	push r12
	push r13
	push r14
	push r15
	cld
	mov rdi, rsp
	call trap
	pop r15
	pop r14
	pop r13
	pop r12
	pop r11
	pop r10
	pop r9
	pop r8
	pop rdi
	pop rsi
	pop rbp
	pop rbx
	pop rdx
	pop rcx
	pop rax
	add rsp, 16
	iretq

; Instructions that may fault: the trap handler goes on at .to, the second address of the pair, with
; the vector in EAX. Each returns the vector, or -1 where there was no exception.
global rdmsr_safe, wrmsr_safe, ud2_safe
rdmsr_safe:				; (u32 msr, u64 *value)
	mov ecx, edi
	xor eax, eax
	xor edx, edx
	mov r8, rsi
.at:	rdmsr
	shl rdx, 32
	or rax, rdx
	mov [r8], rax
	mov eax, -1
.to:	ret
wrmsr_safe:				; (u32 msr, u64 value)
	mov ecx, edi
	mov eax, esi
	mov rdx, rsi
	shr rdx, 32
.at:	wrmsr
	mov eax, -1
.to:	ret
ud2_safe:
.at:	ud2
	mov eax, -1
.to:	ret

; (void (*fn)(void)): runs fn at CPL 3, on the same stack and with interrupts off. There is no way
; back: no task state segment says where the kernel's stack would be.
global user_enter
user_enter:
	mov eax, USER_DATA
	mov ds, eax
	mov es, eax
	lea rdx, [rsp - 8]		; as if fn had been called
	push rax			; SS
	push rdx
	push 2				; RFLAGS
	push USER_CODE
	push rdi
	iretq

section .rodata
global fixups, fixups_end
	align 8
fixups:
	dq rdmsr_safe.at, rdmsr_safe.to
	dq wrmsr_safe.at, wrmsr_safe.to
	dq ud2_safe.at, ud2_safe.to
fixups_end:

section .data
	align 8
gdt:	dq 0
	dq 0x00af9b000000ffff		; 64-bit code
	dq 0x00cf93000000ffff		; data
	dq 0x00cf9b000000ffff		; 32-bit code
	dq 0x00affb000000ffff		; 64-bit code, CPL 3
	dq 0x00cff3000000ffff		; data, CPL 3
.end:
	align 4
gdtr:	dw gdt.end - gdt - 1
	dd gdt

global boot_regs
	align 4
boot_regs:				; struct boot_regs of guest.h
.eax:	dd 0
.ebx:	dd 0
.cr0:	dd 0
.cr4:	dd 0
.eflags:dd 0
.cs:	dd 0
.ss:	dd 0

section .bss
	alignb 4096
pml4:	resb 4096
pdpt:	resb 4096
pd:	resb 4 * 4096

section .note.GNU-stack noalloc noexec nowrite progbits
