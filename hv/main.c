/* SPDX-License-Identifier: BSD-2-Clause */
/* The hypervisor from its first instruction in C to the event loops. It reads as a table of
 * contents. */
#include "hv/main.h"

#include "boot/boot_info.h"
#include "hv/apic/lapic.h"
#include "hv/console.h"
#include "hv/dev/ioport.h"
#include "hv/image.h"
#include "hv/knobs.h"
#include "hv/lib/bug.h"
#include "hv/lib/string.h"
#include "hv/page.h"
#include "hv/paging.h"
#include "hv/panic.h"
#include "hv/pcpu.h"
#include "hv/pv/edge.h"
#include "hv/smp.h"
#include "hv/stats.h"
#include "hv/tsc.h"
#include "hv/vm/run.h"
#include "hv/vm/vm.h"
#include "hv/vmx/vmx.h"
#include "hv/x86/cpu.h"

struct page_pool pages;
/* Until the event loop; its end is what hv_entry loads. */
char boot_stack[PCPU_STACK_SIZE] __aligned(16);

static const struct boot_info *info;

void *page_alloc(u64 size, u64 align, enum page_use use)
{
	u64 pa = page_pool_take(&pages, size, align, 0, use);

	if (!pa)
		BUG("out of memory while booting");
	return memset((void *)pa, 0, ALIGN_UP(size, PAGE_SIZE));
}

static void show_loader_messages(void)
{
	const char *line = info->messages, *end;

	for (; *line; line = end + (*end == '\n')) {
		end = line;
		while (*end && *end != '\n')
			end++;
		if (end > line)
			hv_info("%.*s", (int)(end - line), line);
	}
	if (info->messages_lost)
		hv_info("%u more lines of the loader did not fit", info->messages_lost);
}

static void start_vms(void)
{
	for (u32 i = 0; i < info->config.nr_vms; i++)
		vm_create(info, &info->config.vms[i]);
	for (u32 i = 0; i < nr_vms; i++) {
		if (vms[i]->cfg->autostart)
			vm_start(vms[i]);
	}
}

static bool any_vm_runs(void)
{
	for (u32 i = 0; i < nr_vms; i++) {
		if (vms[i]->state == VM_RUNNING)
			return true;
	}
	return false;
}

static void boot_cpu_init(void)
{
	static struct pcpu early;
	struct pcpu *p;

	/* A minimal pCPU 0, so that a panic works before there is memory for the real one. */
	early.self = &early;
	pcpus[0] = &early;
	nr_pcpus = 1;
	desc_build(&early.tables, (u64[NR_ISTS]){0, (u64)(boot_stack + sizeof(boot_stack)),
						 (u64)(boot_stack + sizeof(boot_stack)),
						 (u64)(boot_stack + sizeof(boot_stack))});
	pcpu_install(&early);

	page_pool_init(&pages, info->ranges, info->nr_ranges);
	paging_init(info);
	console_grow(&info->config);
	p = pcpu_create(0, info->cpus[0].apic_id);
	pcpu_install(p);
	p->state = PCPU_ONLINE;
}

void hv_main(const struct boot_info *boot_info)
{
	info = boot_info;
	BUG_ON(info->magic != BOOT_INFO_MAGIC || info->version != BOOT_INFO_VERSION ||
	       info->size != sizeof(*info));
	panic_init(info);
	console_init(&info->config);
	boot_cpu_init();
	hv_info("vlag " VLAG_VERSION ", %llu MiB free, %u CPU%s", pages.total / MiB, info->nr_cpus,
		info->nr_cpus == 1 ? "" : "s");
	show_loader_messages();

	tsc_init();
	lapic_init();
	lapic_calibrate();
	vmx_check();
	if (!vmx_enable())
		hv_fatal("VMXON failed: the firmware has VMX locked off, or another hypervisor is "
			 "active");
	smp_start(info, info->config.pcpus);
	hv_info("%u pCPU%s in VMX operation, TSC %lu kHz", nr_pcpus, nr_pcpus == 1 ? "" : "s",
		tsc_hz() / 1000);

	knobs_init(&info->config, nr_pcpus);
	ioport_init();
	for (u32 i = 0; i < nr_pcpus; i++)
		pcpu_sched_init(pcpus[i]);
	start_vms();
	stats_init();
	if (!any_vm_runs() && info->config.poweroff)
		hv_fatal("no VM runs: %s",
			 nr_vms ? "see the messages above" : "vlag.cfg has no [vm NAME] section");
	if (nr_vms)
		console_attach(0);
	console_ready();
	smp_release();
	pcpu_run();
}

void boot_cpu_poll(void)
{
	static bool said;

	console_poll();
	pv_poll();
	if (!vms_all_ended()) {
		said = false;
		return;
	}
	if (said)
		return;
	said = true;
	if (!info->config.poweroff) {
		hv_info("every VM has ended; the monitor stays (when_done = monitor)");
		return;
	}
	hv_info("all VMs ended, powering off");
	console_drain();
	machine_poweroff();
}
