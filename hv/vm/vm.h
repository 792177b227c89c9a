/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A virtual machine: its memory, vCPUs and devices. Made while booting from a cfg_vm, never freed;
 * it can be started again.
 *
 * vm->lock guards the devices, the APIC map and the state; it is taken before any run-queue lock.
 */
#ifndef VLAG_VM_VM_H
#define VLAG_VM_VM_H

#include "boot/boot_info.h"
#include "hv/apic/apic_map.h"
#include "hv/apic/vioapic.h"
#include "hv/apic/vpic.h"
#include "hv/dev/acpipm.h"
#include "hv/dev/kbc.h"
#include "hv/dev/pcihost.h"
#include "hv/dev/pit.h"
#include "hv/dev/rtc.h"
#include "hv/dev/uart.h"
#include "hv/lib/lock.h"
#include "hv/lib/types.h"
#include "hv/pv/msr.h"
#include "hv/pv/report.h"
#include "hv/pv/view.h"
#include "hv/spin/spin.h"
#include "hv/sched/sched.h"
#include "hv/timer.h"
#include "hv/vm/guest_mem.h"

#define VM_CONSOLE_RING 16384

enum vm_state { VM_BAD, VM_STOPPED, VM_RUNNING, VM_STOPPING };

/* How a VM ended; the words are part of the console's `vlag: vm NAME: ended: ...` line. */
enum vm_end {
	VM_END_NONE,
	VM_END_POWEROFF,
	VM_END_RESET,
	VM_END_TRIPLE_FAULT,
	VM_END_DEBUG_EXIT,
	VM_END_KILLED,	/* by the hypervisor: end_text says why */
	VM_END_STOPPED, /* by the user */
};

struct vcpu;
struct out;
struct cpuid_table;

struct vm {
	struct spinlock lock;
	u32 id;
	u32 state; /* enum vm_state; lock */
	const char *name;
	const struct cfg_vm *cfg;
	const struct boot_file *kernel, *initrd, *modules[CFG_MAX_MODULES];

	u32 nr_vcpus;
	struct vcpu **vcpus;
	u32 nr_active;	/* vCPUs that are not OFF; atomic */
	u32 end;	/* enum vm_end; lock */
	u32 end_status; /* of debug-exit */
	char end_text[160];

	struct guest_mem mem;
	struct pv_vm pv;
	struct pv_view view;	 /* for the monitor; boot CPU */
	struct pv_report report; /* lock */
	u64 eptp;
	u64 apic_page; /* under the xAPIC's address: the CPU compares with it, the guest never reads
			  it in xAPIC mode */
	struct cpuid_table *cpuid;	   /* hv/vmx/cpuid.c */
	u64 tsc_base;			   /* host TSC at guest TSC 0 and VM time 0 */
	u64 epoch_ns;			   /* wall clock at VM time 0, ns since 1970 */
	struct cpu_boot_state *boot_state; /* of vCPU 0, from the loader */

	struct sched_group group; /* for the scheduler */
	struct spin_vm spin;	  /* which vCPUs wait, and why: hv/spin/spin.h */
	struct spin_vcpu **spin_vcpus;
	struct spinlock map_lock; /* a leaf: apic_map_update() */
	struct apic_map apic_map;
	struct vioapic ioapic;
	struct vpic pic;
	struct uart uart;
	struct byte_ring uart_ring;
	struct pit pit;
	struct rtc rtc;
	struct acpipm acpipm;
	struct kbc kbc;
	struct pcihost pci;
	u8 lines;		/* IRQ levels as last told to the controllers: bit per device */
	struct timer dev_timer; /* on vCPU 0's pCPU */
	u64 dev_timer_ns;	/* VM time that it is set for, UINT64_MAX if it is not */
	struct vm_mtrrs {
		u64 pair[16], fixed[11], def_type;
	} mtrrs; /* as the guest wrote them; nothing depends on them */

	/* What was already shown once. */
	u64 seen_ports[1024]; /* bit per port */
	u32 nr_seen_ports;    /* atomic */
	u32 seen_msrs[32], nr_seen_msrs;
	bool seen_mmio;
};

extern struct vm *vms[CFG_MAX_VMS];
extern u32 nr_vms;

/*
 * Makes VM number nr_vms from @cfg: memory, EPT, vCPUs. Errors are reported with the config file's
 * line and leave a VM in state VM_BAD, which is listed but cannot start.
 */
void vm_create(const struct boot_info *info, const struct cfg_vm *cfg);

/* (Re)loads the images, resets devices and vCPUs and queues vCPU 0. @vm must be STOPPED. Boot CPU,
 * no lock held. */
int vm_start(struct vm *vm);

/*
 * Ends @vm: no vCPU of it enters again; the last one to leave prints the line that says how it
 * ended. May be called from any exit handler (with or without the VM's lock: it takes none) and
 * more than once; the first reason counts.
 */
void vm_stop(struct vm *vm, enum vm_end how, u32 status, const char *fmt, ...) __printf(4, 5);

/* Called when the last vCPU has left: prints how it ended; a reset starts it again. On that vCPU's
 * pCPU. */
void vm_all_left(struct vm *vm);

/* The first time that @v is loaded after vm_start(): writes its start state. On its pCPU. */
void vm_first_run(struct vcpu *v);

/* Takes over the knobs that concern VMs. */
void vm_knobs_changed(void);

/* VM time in ns. */
u64 vm_now_ns(const struct vm *vm);

/* All VMs that were started have ended. */
bool vms_all_ended(void);

const char *vm_state_text(const struct vm *vm);

#endif
