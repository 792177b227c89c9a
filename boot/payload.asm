; SPDX-License-Identifier: BSD-2-Clause
; The hypervisor's ELF file, as data of the loader. mk/boot.mk gives the path.
section .data
global payload_start, payload_end
align 16
payload_start:
	incbin PAYLOAD
payload_end:
