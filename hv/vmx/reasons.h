/* SPDX-License-Identifier: BSD-2-Clause */
/* The one table of VM exits (SDM vol. 3, appendix C): number, name, handler. Adding one is one
 * line. */
#ifndef VLAG_VMX_REASONS_H
#define VLAG_VMX_REASONS_H

#define EXIT_REASONS(X)                                                                            \
	X(0, EXCEPTION_NMI, exit_exception)                                                        \
	X(1, EXTERNAL_INTERRUPT, exit_external_interrupt)                                          \
	X(2, TRIPLE_FAULT, exit_triple_fault)                                                      \
	X(3, INIT, exit_ignore)                                                                    \
	X(4, SIPI, exit_ignore)                                                                    \
	X(7, INTERRUPT_WINDOW, exit_interrupt_window)                                              \
	X(8, NMI_WINDOW, exit_nmi_window)                                                          \
	X(9, TASK_SWITCH, exit_task_switch)                                                        \
	X(10, CPUID, exit_cpuid)                                                                   \
	X(11, GETSEC, exit_undefined)                                                              \
	X(12, HLT, exit_hlt)                                                                       \
	X(13, INVD, exit_nop)                                                                      \
	X(15, RDPMC, exit_rdpmc)                                                                   \
	X(18, VMCALL, exit_vmcall)                                                                 \
	X(19, VMCLEAR, exit_undefined)                                                             \
	X(20, VMLAUNCH, exit_undefined)                                                            \
	X(21, VMPTRLD, exit_undefined)                                                             \
	X(22, VMPTRST, exit_undefined)                                                             \
	X(23, VMREAD, exit_undefined)                                                              \
	X(24, VMRESUME, exit_undefined)                                                            \
	X(25, VMWRITE, exit_undefined)                                                             \
	X(26, VMXOFF, exit_undefined)                                                              \
	X(27, VMXON, exit_undefined)                                                               \
	X(28, CR_ACCESS, exit_cr_access)                                                           \
	X(30, IO_INSTRUCTION, exit_io)                                                             \
	X(31, RDMSR, exit_rdmsr)                                                                   \
	X(32, WRMSR, exit_wrmsr)                                                                   \
	X(33, ENTRY_FAILED_GUEST_STATE, exit_entry_failed)                                         \
	X(36, MWAIT, exit_undefined)                                                               \
	X(39, MONITOR, exit_undefined)                                                             \
	X(40, PAUSE, exit_pause)                                                                   \
	X(41, ENTRY_FAILED_MACHINE_CHECK, exit_entry_failed)                                       \
	X(43, TPR_BELOW_THRESHOLD, exit_tpr_below_threshold)                                       \
	X(44, APIC_ACCESS, exit_apic_access)                                                       \
	X(48, EPT_VIOLATION, exit_ept_violation)                                                   \
	X(49, EPT_MISCONFIG, exit_ept_misconfig)                                                   \
	X(50, INVEPT, exit_undefined)                                                              \
	X(52, PREEMPTION_TIMER, exit_preemption_timer)                                             \
	X(53, INVVPID, exit_undefined)                                                             \
	X(54, WBINVD, exit_nop)                                                                    \
	X(55, XSETBV, exit_xsetbv)                                                                 \
	X(59, VMFUNC, exit_undefined)

enum exit_reason {
#define X(number, name, handler) EXIT_##name = number,
	EXIT_REASONS(X)
#undef X
	    NR_EXIT_REASONS = 64
};

#endif
