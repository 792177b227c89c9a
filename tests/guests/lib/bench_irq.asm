; SPDX-License-Identifier: BSD-2-Clause
; The path-length guests' interrupt handlers: time first, then count, EOI and, for one, an answer.

MSR_X2APIC_EOI	equ 0x80b
MSR_X2APIC_ICR	equ 0x830
XAPIC		equ 0xfee00000

extern bench_stamp, bench_taken, bench_reply_icr, x2apic
global bench_handler, bench_reply_handler

%macro enter_and_eoi 0
	push rax
	push rdx
	push rcx
	rdtsc
	mov [bench_stamp], eax
	mov [bench_stamp + 4], edx
	mov edx, XAPIC
	cmp byte [x2apic], 0
	je %%xapic
	mov ecx, MSR_X2APIC_EOI
	xor eax, eax
	xor edx, edx
	wrmsr
	jmp %%done
%%xapic:mov dword [rdx + 0xb0], 0
%%done:
%endmacro

%macro leave 0
	pop rcx
	pop rdx
	pop rax
	iretq
%endmacro

section .text
bench_handler:
	enter_and_eoi
	inc dword [bench_taken]
	leave

bench_reply_handler:
	enter_and_eoi
	mov eax, [bench_reply_icr]
	mov edx, [bench_reply_icr + 4]
	cmp byte [x2apic], 0
	je .xapic
	mov ecx, MSR_X2APIC_ICR
	wrmsr
	leave
.xapic:	mov ecx, XAPIC
	mov [rcx + 0x310], edx
	mov [rcx + 0x300], eax
	leave

section .note.GNU-stack noalloc noexec nowrite progbits
