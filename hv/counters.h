/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lists of counters and of histograms: name and text. A counter is a u64 that only its owner
 * writes; the monitor, the JSON and the docs read this list. Exits by reason are counted apart
 * (hv/vmx/reasons.h).
 */
#ifndef VLAG_COUNTERS_H
#define VLAG_COUNTERS_H

#define VCPU_COUNTERS(X)                                                                           \
	X(cnt_injected, "injected", "interrupts, NMIs and exceptions injected")                    \
	X(cnt_reinjected, "reinjected",                                                            \
	  "events injected again because an exit cut their delivery short")                        \
	X(cnt_halts, "halts", "HLT that blocked the vCPU")                                         \
	X(cnt_wakeups, "wakeups", "wake-ups from HLT or the wait for SIPI")                        \
	X(cnt_timer_irqs, "timer_irqs", "expiries of the guest's LAPIC timer")                     \
	X(cnt_pv_tlb_flushes, "pv_tlb_flushes",                                                    \
	  "TLB flushes at an entry that another vCPU had asked for while this one was preempted")  \
	X(cnt_unknown_msr, "unknown_msr", "RDMSR and WRMSR answered with #GP")                     \
	X(cnt_unknown_port, "unknown_port", "port accesses that no device answered")               \
	X(cnt_unknown_mmio, "unknown_mmio", "memory accesses to neither RAM nor a device")         \
	X(cnt_mmio, "mmio", "memory accesses to devices")

enum vcpu_counter {
#define X(id, name, text) id,
	VCPU_COUNTERS(X)
#undef X
	    NR_VCPU_COUNTERS
};

/*
 * Histograms (hv/lib/hist.h) of a vCPU: where in struct vcpu, name, unit, text. `hist`, `stats` and
 * the JSON walk this list.
 */
#define VCPU_HISTS(X)                                                                              \
	X(lapic.count.send_to_delivery, "ipi_send_to_delivery", "ticks",                           \
	  "recorded IPIs: from the ICR write to the vector's acceptance (IRR to ISR)")             \
	X(lapic.count.send_to_eoi, "ipi_send_to_eoi", "ticks",                                     \
	  "recorded IPIs: from the ICR write to the receiver's EOI")                               \
	X(sched.wait, "sched_wait", "ns", "from runnable to running")                              \
	X(spin.wait, "spin_wait", "ticks", "from giving the pCPU away in a spin to running again") \
	X(sched.slice, "sched_slice", "ns", "from running to not running")

#endif
