; SPDX-License-Identifier: BSD-2-Clause
; VM entry and exit. HOST_RSP is the vCPU (vcpu.regs is at its offset 0), so that an exit stores the guest's registers straight
; into it; the C handlers run on the pCPU's stack, which vmx_enter() left in GS:8. A light exit (hv/vmx/exit_light.c) saves only
; what C may change: the rest stays in the registers, since C functions give it back.

default rel
bits 64
section .text

extern vmx_exit, vmx_exit_light, vmx_exit_again, vmx_exit_requests
global vmx_enter, vmx_exit_entry

; Offsets in struct vcpu and struct pcpu; exit.c asserts them.
VCPU_REQUESTS equ 16 * 8
PCPU_EXIT_RSP equ 8
PCPU_LOADED equ 16

VMCS_EXIT_REASON equ 0x4402
LIGHT_EXITS equ 1 << 1 | 1 << 7 | 1 << 32 ; external interrupt, interrupt window, WRMSR: vmx_exit_light() has the same

%macro store 2-*			; register, its number, ...
%rep %0 / 2
	mov [rsp + 8 * %2], %1
%rotate 2
%endrep
%endmacro

%macro load 2-*
%rep %0 / 2
	mov %1, [rsp + 8 * %2]
%rotate 2
%endrep
%endmacro

; What C functions may change, and what they preserve. RSP (4) lives in the VMCS.
%define SCRATCH rax, 0, rcx, 1, rdx, 2, rsi, 6, rdi, 7, r8, 8, r9, 9, r10, 10, r11, 11
%define PRESERVED rbx, 3, rbp, 5, r12, 12, r13, 13, r14, 14, r15, 15

; int vmx_enter(struct vcpu *v = rdi, bool launched = esi): runs the guest until an exit says "leave". Returns 0, or 1 if VM
; entry failed before it began (VMfail). Clobbers what the ABI allows.
vmx_enter:
	push rbp
	push rbx
	push r12
	push r13
	push r14
	push r15
	sub rsp, 8		; keeps the handlers' stack aligned
	mov [gs:PCPU_EXIT_RSP], rsp
	cmp esi, 1		; CF = not launched; the loads below leave the flags alone
	mov rsp, rdi
	jmp load_all

align 16
vmx_exit_entry:			; HOST_RIP
	store SCRATCH
	mov eax, VMCS_EXIT_REASON
	vmread rsi, rax
	mov rax, LIGHT_EXITS
	bt rax, rsi
	jc light_exit
	store PRESERVED
	mov rbx, rsp
	mov rdi, rsp
	mov rsp, [gs:PCPU_EXIT_RSP]
	call vmx_exit		; (v, reason)
exit_handled:			; eax: enum exit_action, rbx: v
	mov ebp, eax
	or rax, [rbx + VCPU_REQUESTS]
	jnz look_at_requests
resume_guest:				; CF = 0: launched
	mov rsp, rbx
load_all:
	load PRESERVED
load_scratch:
	load SCRATCH
	jc .launch
	vmresume
	jmp .failed
.launch:
	vmlaunch
.failed:
	mov rsp, [gs:PCPU_EXIT_RSP]
	mov eax, 1
	jmp leave_guest

light_exit:
	mov rdi, rsp
	mov rsp, [gs:PCPU_EXIT_RSP]
	call vmx_exit_light	; (v, reason)
	mov rsp, [gs:PCPU_LOADED]
	or rax, [rsp + VCPU_REQUESTS]
	jz load_scratch		; CF = 0
	store PRESERVED		; no such short way
	mov rbx, rsp
	mov rsp, [gs:PCPU_EXIT_RSP]
	mov rdi, rbx
	test eax, eax
	js .again
	xor eax, eax		; EXIT_RESUME; it is requests that there are
	jmp exit_handled
.again:				; EXIT_FULL
	call vmx_exit_again
	jmp exit_handled

look_at_requests:		; the handler said "leave", or there is a request
	mov rdi, rbx
	mov esi, ebp
	call vmx_exit_requests
	test eax, eax
	jz resume_guest
	xor eax, eax
	mov rsp, [gs:PCPU_EXIT_RSP]
leave_guest:
	add rsp, 8
	pop r15
	pop r14
	pop r13
	pop r12
	pop rbx
	pop rbp
	ret
