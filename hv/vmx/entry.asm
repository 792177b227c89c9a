; SPDX-License-Identifier: BSD-2-Clause
; VM entry and exit. HOST_RSP points to the end of vcpu.regs (offset 0 of struct vcpu), so that an exit pushes the guest's
; registers straight into the vCPU; the C handler then runs on the pCPU's stack, which vmx_enter() left in GS:8.

default rel
bits 64
section .text

extern vmx_exit, vmx_exit_requests
global vmx_enter, vmx_exit_entry

REGS_SIZE equ 16 * 8
VCPU_REQUESTS equ 16 * 8	; offset in struct vcpu; a BUILD_BUG_ON in exit.c guards both
PCPU_EXIT_RSP equ 8

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
	jmp load_guest_regs

align 16
vmx_exit_entry:			; HOST_RIP
	push r15
	push r14
	push r13
	push r12
	push r11
	push r10
	push r9
	push r8
	push rdi
	push rsi
	push rbp
	push rax		; the slot of RSP, which lives in the VMCS
	push rbx
	push rdx
	push rcx
	push rax
	mov rbx, rsp
	mov rdi, rsp
	mov rsp, [gs:PCPU_EXIT_RSP]
	call vmx_exit
	mov ebp, eax
	or rax, [rbx + VCPU_REQUESTS]
	jnz look_at_requests
.resume:			; CF = 0: launched
	mov rsp, rbx

load_guest_regs:
	pop rax
	pop rcx
	pop rdx
	pop rbx
	lea rsp, [rsp + 8]
	pop rbp
	pop rsi
	pop rdi
	pop r8
	pop r9
	pop r10
	pop r11
	pop r12
	pop r13
	pop r14
	pop r15
	jc .launch
	vmresume
	jmp .failed
.launch:
	vmlaunch
.failed:
	mov rsp, [gs:PCPU_EXIT_RSP]
	mov eax, 1
	jmp leave_guest

look_at_requests:		; the handler said "leave", or there is a request
	mov rdi, rbx
	mov esi, ebp
	call vmx_exit_requests
	test eax, eax
	jz vmx_exit_entry.resume
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
