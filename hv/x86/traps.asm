; SPDX-License-Identifier: BSD-2-Clause
; The 256 interrupt entries. Exceptions save all registers and call trap(struct trap_frame *), whose layout is what is pushed
; here; interrupts save what C may change and call host_interrupt(vector).

bits 64
default rel
section .text

extern trap, host_interrupt

global trap_stubs
align 16
trap_stubs:
%assign v 0
%rep 256
align 16
%if v >= 32
	push strict dword v
	jmp strict near interrupt_common
%else
%if v == 8 || (v >= 10 && v <= 14) || v == 17 || v == 21 || v == 29 || v == 30
	push strict dword v	; the CPU pushed an error code
%else
	push strict byte 0
	push strict dword v
%endif
	jmp strict near trap_common
%endif
%assign v v + 1
%endrep

interrupt_common:		; short, since it is the way out of the idle loop: only what C may change
	push rax
	push rcx
	push rdx
	push rsi
	push rdi
	push r8
	push r9
	push r10
	push r11
	mov edi, [rsp + 9 * 8]
	cld
	call host_interrupt
	pop r11
	pop r10
	pop r9
	pop r8
	pop rdi
	pop rsi
	pop rdx
	pop rcx
	pop rax
	add rsp, 8
	iretq

trap_common:
	; [rsp] vector, [rsp+8] error code
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
	mov rbp, rsp
	and rsp, -16
	call trap
	mov rsp, rbp
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
