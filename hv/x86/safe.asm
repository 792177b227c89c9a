; SPDX-License-Identifier: BSD-2-Clause
; RDMSR and WRMSR that survive #GP: trap() continues at safe_fixup when one of the two marked instructions faults.

default rel
bits 64
section .text

global rdmsr_safe, wrmsr_safe, safe_rdmsr_insn, safe_wrmsr_insn, safe_fixup

rdmsr_safe:			; bool (u32 msr = edi, u64 *value = rsi)
	mov ecx, edi
safe_rdmsr_insn:
	rdmsr
	shl rdx, 32
	or rax, rdx
	mov [rsi], rax
	mov eax, 1
	ret

wrmsr_safe:			; bool (u32 msr = edi, u64 value = rsi)
	mov ecx, edi
	mov rax, rsi
	mov rdx, rsi
	shr rdx, 32
safe_wrmsr_insn:
	wrmsr
	mov eax, 1
	ret

safe_fixup:
	xor eax, eax
	ret
