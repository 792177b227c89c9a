/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a VM: made from its config, started, ended. Running its vCPUs is hv/vm/run.c's. */
#include "hv/vm/vm.h"

#include <stdarg.h>

#include "hv/console.h"
#include "hv/dev/ioport.h"
#include "hv/knobs.h"
#include "hv/lib/bug.h"
#include "hv/lib/errors.h"
#include "hv/lib/fmt.h"
#include "hv/lib/string.h"
#include "hv/page.h"
#include "hv/panic.h"
#include "hv/pcpu.h"
#include "hv/pv/edge.h"
#include "hv/tsc.h"
#include "hv/vm/acpi_tables.h"
#include "hv/vm/load.h"
#include "hv/vm/run.h"
#include "hv/vm/vcpu.h"
#include "hv/vmx/cpuid.h"
#include "hv/vmx/ept.h"
#include "hv/vmx/exit.h"
#include "hv/vmx/vmx.h"
#include "hv/x86/cpu.h"

struct vm *vms[CFG_MAX_VMS];
u32 nr_vms;
static u32 next_pcpu; /* round robin over the pCPUs; boot CPU only */
static bool any_started;
static u64 boot_epoch_ns; /* wall clock at tsc_boot(), ns since 1970 */

static struct ipi_track_knobs track_knobs; /* shared by all VMs */

void vm_knobs_changed(void)
{
	WRITE_ONCE(track_knobs.window, tsc_from_ns(knobs.ipi_window_ns));
	WRITE_ONCE(track_knobs.enabled, knobs.ipi_tracking_enabled);
	WRITE_ONCE(track_knobs.multicast, knobs.ipi_track_multicast);
	pause_knobs_changed();
	/* Back to the scheduler, from where each takes over what concerns its VMCS. */
	for (u32 i = 0; i < nr_vms; i++) {
		for (u32 k = 0; k < vms[i]->nr_vcpus; k++) {
			vcpu_request(vms[i]->vcpus[k], REQ_RESCHED);
			if (READ_ONCE(vms[i]->vcpus[k]->sched.state) == SCHED_RUNNING)
				vcpu_kick(vms[i]->vcpus[k]);
		}
	}
}

const char *vm_state_text(const struct vm *vm)
{
	static const char *const text[] = {"bad config", "stopped", "running", "stopping"};

	return text[READ_ONCE(vm->state)];
}

u64 vm_now_ns(const struct vm *vm)
{
	return tsc_to_ns(rdtsc() - vm->tsc_base);
}

/* --- making --- */

/* `vlag.cfg:LINE: [vm NAME] KEY: ...` and the VM will not start. */
static void __printf(4, 5) reject(struct vm *vm, u32 line, const char *key, const char *fmt, ...)
{
	char text[192];
	va_list args;

	va_start(args, fmt);
	fmt_vprint(text, sizeof(text), fmt, args);
	va_end(args);
	vm->state = VM_BAD;
	hv_warn("vlag.cfg:%u: [vm %s] %s: %s; this VM does not start", line, vm->name, key, text);
}

static const struct boot_file *find_file(struct vm *vm, const struct boot_info *info,
					 const char *name, u32 line, const char *key)
{
	if (!name[0])
		return NULL;
	for (u32 i = 0; i < info->nr_files; i++) {
		const struct boot_file *f = &info->files[i];

		if (strcmp(f->name, name))
			continue;
		if (!f->error)
			return f;
		reject(vm, line, key,
		       "\"%s\" cannot be read: %s; put it on the boot volume at that path", name,
		       error_text(f->error));
		return NULL;
	}
	reject(vm, line, key, "\"%s\" was not loaded by the boot loader", name);
	return NULL;
}

static void find_files(struct vm *vm, const struct boot_info *info)
{
	const struct cfg_vm *cfg = vm->cfg;

	vm->kernel = find_file(vm, info, cfg->kernel, cfg->kernel_line, "kernel");
	vm->initrd = find_file(vm, info, cfg->initrd, cfg->initrd_line, "initrd");
	for (u32 i = 0; i < cfg->nr_modules; i++)
		vm->modules[i] = find_file(vm, info, cfg->modules[i], cfg->modules_line, "modules");
}

static bool add_slot(struct vm *vm, u64 gpa, u64 size)
{
	struct mem_slot *s = &vm->mem.slots[vm->mem.nr_slots];
	u64 hpa = page_pool_take(&pages, size, PAGE_SIZE_2M, 0, PAGES_GUEST);

	if (!hpa)
		return false;
	*s = (struct mem_slot){.gpa = gpa, .size = size, .host = (u8 *)hpa};
	vm->mem.nr_slots++;
	ept_map(vm->eptp, gpa, hpa, size);
	return true;
}

/*
 * What the hypervisor itself needs for @vm, rounded up: page tables and maps, and what
 * vcpu_create() takes. Kept free when guest RAM is handed out, so that a config that asks for too
 * much ends in a message and not in a panic.
 */
static u64 overhead(const struct vm *vm)
{
	u64 tables = vm->cfg->memory / 512 / 512 + 32 * PAGE_SIZE;

	return MiB + tables + vm->nr_vcpus * (vcpu_pages() * PAGE_SIZE);
}

static void make_memory(struct vm *vm)
{
	const struct cfg_vm *cfg = vm->cfg;
	u64 size = cfg->memory, low = min(size, GUEST_LOW_MAX), largest, room;

	room = page_pool_free(&pages, &largest);
	if (room < overhead(vm)) {
		reject(vm, cfg->vcpus_line ? cfg->vcpus_line : cfg->line, "vcpus",
		       "%u vCPUs need %llu MiB of the hypervisor's memory, and %llu MiB are free",
		       vm->nr_vcpus, overhead(vm) / MiB, room / MiB);
		return;
	}
	room -= overhead(vm);
	if (size <= room && add_slot(vm, 0, low) &&
	    (size == low || add_slot(vm, 4 * GiB, size - low)))
		return;
	reject(vm, cfg->memory_line ? cfg->memory_line : cfg->line, "memory",
	       "%llu MiB are more than there is; %llu MiB are free, in one piece at most %llu MiB",
	       size / MiB, ALIGN_DOWN(room, PAGE_SIZE_2M) / MiB,
	       min(largest, ALIGN_DOWN(room, PAGE_SIZE_2M)) / MiB);
}

static void host_cpuid(u32 leaf, u32 subleaf, u32 regs[4])
{
	struct cpuid_regs r = cpuid(leaf, subleaf);

	regs[0] = r.eax;
	regs[1] = r.ebx;
	regs[2] = r.ecx;
	regs[3] = r.edx;
}

static void make_cpuid(struct vm *vm)
{
	struct cpuid_features f = {
	    .nr_vcpus = vm->nr_vcpus,
	    .max_vcpus = vm->cfg->max_vcpus,
	    .kvm = pv_cpuid_features(vm->pv.features, vm->pv.stable),
	    .xcr0 = xcr0_guest_mask(),
	    .rdtscp = vmx_caps.rdtscp,
	    .invpcid = vmx_caps.invpcid,
	};

	vm->cpuid = page_alloc(sizeof(*vm->cpuid), PAGE_SIZE, PAGES_VM);
	cpuid_build(vm->cpuid, &f, host_cpuid);
}

/* check_affinity() has found one. */
static u32 place(const struct cfg_vm *cfg)
{
	u32 id = next_pcpu % nr_pcpus;

	while (!bit_test(cfg->affinity, id))
		id = (id + 1) % nr_pcpus;
	next_pcpu = id + 1;
	return id;
}

static void check_affinity(struct vm *vm)
{
	for (u32 i = 0; i < nr_pcpus; i++) {
		if (bit_test(vm->cfg->affinity, i))
			return;
	}
	reject(vm, vm->cfg->affinity_line, "affinity",
	       "names none of the pCPUs that there are; 0 to %u are possible", nr_pcpus - 1);
}

/* The device would be asked, and the VM would never end. */
static void check_debug_exit(struct vm *vm)
{
	u32 port = vm->cfg->debug_exit;

	if (port && ioport_is_taken(port))
		reject(vm, vm->cfg->debug_exit_line, "debug_exit",
		       "0x%x is a port of another device; one that is free, such as 0xf4, is "
		       "possible",
		       port);
}

static void make_vcpus(struct vm *vm)
{
	struct sched_group_rq *rqs;

	vm->vcpus = page_alloc(vm->nr_vcpus * sizeof(*vm->vcpus), PAGE_SIZE, PAGES_VM);
	rqs = page_alloc(nr_pcpus * sizeof(*rqs), PAGE_SIZE, PAGES_VM);
	sched_group_init(&vm->group, vm->id, vm->cfg->weight, rqs, nr_pcpus);
	vm->spin_vcpus = page_alloc(vm->nr_vcpus * sizeof(*vm->spin_vcpus), PAGE_SIZE, PAGES_VM);
	spin_vm_init(&vm->spin, &spin_knobs, vm->spin_vcpus, vm->nr_vcpus);
	apic_map_setup(&vm->apic_map, &track_knobs);
	for (u32 i = 0; i < vm->nr_vcpus; i++) {
		vm->vcpus[i] = vcpu_create(vm, i);
		sched_vcpu_init(&vm->vcpus[i]->sched, &vm->group, i, SCHED_WEIGHT_DEFAULT, 0,
				place(vm->cfg), vm->cfg->affinity);
		vm->vcpus[i]->off = true;
		vm->spin_vcpus[i] = &vm->vcpus[i]->spin;
		spin_vcpu_init(&vm->vcpus[i]->spin, &vm->spin, i, &vm->vcpus[i]->lapic.track);
	}
	vioapic_setup(&vm->ioapic, &vm->apic_map, 0 /* as in the MADT */);
	vpic_setup(&vm->pic, &vm->vcpus[0]->lapic);
}

void vm_create(const struct boot_info *info, const struct cfg_vm *cfg)
{
	struct vm *vm = page_alloc(sizeof(*vm), PAGE_SIZE, PAGES_VM);
	u8 *ring = page_alloc(VM_CONSOLE_RING, PAGE_SIZE, PAGES_VM);

	vm->boot_state = page_alloc(sizeof(*vm->boot_state), PAGE_SIZE, PAGES_VM);
	vm->id = nr_vms;
	vm->name = cfg->name;
	vm->cfg = cfg;
	vm->nr_vcpus = cfg->vcpus;
	vm->state = cfg->bad ? VM_BAD : VM_STOPPED;
	boot_epoch_ns = info->epoch_s * 1000000000ull;
	ring_init(&vm->uart_ring, ring, VM_CONSOLE_RING);
	vms[nr_vms++] = vm;
	if (vm->state == VM_BAD) {
		vm->nr_vcpus = 0;
		return;
	}
	/* All that needs no memory first: who cannot start takes none from the others. */
	find_files(vm, info);
	check_affinity(vm);
	check_debug_exit(vm);
	if (vm->state == VM_STOPPED) {
		vm->eptp = ept_create();
		make_memory(vm);
	}
	if (vm->state != VM_STOPPED) {
		vm->nr_vcpus = 0;
		return;
	}
	vm->apic_page = (u64)page_alloc(PAGE_SIZE, PAGE_SIZE, PAGES_VM);
	if (vmx_caps.apic_access)
		ept_map(vm->eptp, VLAPIC_BASE, vm->apic_page, PAGE_SIZE);
	pv_vm_create(vm);
	make_cpuid(vm);
	make_vcpus(vm);
}

/* --- starting --- */

static struct load_file load_file(const struct boot_file *f)
{
	return f ? (struct load_file){.name = f->name, .data = (const u8 *)f->addr, .size = f->size}
		 : (struct load_file){0};
}

static u32 line_of(const struct cfg_vm *cfg, const char *key)
{
	u32 line = 0;

	if (!strcmp(key, "kernel"))
		line = cfg->kernel_line;
	else if (!strcmp(key, "initrd"))
		line = cfg->initrd_line;
	else if (!strcmp(key, "modules"))
		line = cfg->modules_line;
	else if (!strcmp(key, "memory"))
		line = cfg->memory_line;
	return line ? line : cfg->line;
}

/* Zeroes the guest's memory and loads tables and images into it. */
static int load_images(struct vm *vm)
{
	struct acpi_request acpi = {.nr_cpus = vm->nr_vcpus, .max_cpus = vm->cfg->max_vcpus};
	struct load_request req = {
	    .kernel = load_file(vm->kernel),
	    .initrd = load_file(vm->initrd),
	    .nr_modules = vm->cfg->nr_modules,
	    .cmdline = vm->cfg->cmdline,
	};
	char text[256];
	int err;

	for (u32 i = 0; i < req.nr_modules; i++)
		req.modules[i] = load_file(vm->modules[i]);
	for (u32 i = 0; i < vm->mem.nr_slots; i++)
		memset(vm->mem.slots[i].host, 0, vm->mem.slots[i].size);
	err = acpi_tables_build(&vm->mem, &acpi, &req.rsdp);
	BUG_ON(err);
	vm->boot_state->bad_key = "kernel";
	err = load_guest(&vm->mem, &req, vm->boot_state, text, sizeof(text));
	if (err)
		reject(vm, line_of(vm->cfg, vm->boot_state->bad_key), vm->boot_state->bad_key, "%s",
		       text);
	return err;
}

int vm_start(struct vm *vm)
{
	int err;

	if (vm->state != VM_STOPPED)
		return E_BUSY;
	err = load_images(vm);
	if (err)
		return err;
	vm->mtrrs = (struct vm_mtrrs){.def_type = 0xc06};
	for (u32 i = 0; i < ARRAY_SIZE(vm->mtrrs.fixed); i++)
		vm->mtrrs.fixed[i] = 0x0606060606060606ull;
	/* A reset is not a power cycle: time goes on, CMOS memory stays. */
	if (vm->end != VM_END_RESET) {
		vm->tsc_base = rdtsc();
		vm->epoch_ns = boot_epoch_ns + tsc_to_ns(vm->tsc_base - tsc_boot());
		rtc_init(&vm->rtc, vm->epoch_ns / 1000000000, vm->mem.slots[0].size,
			 vm->mem.nr_slots > 1 ? vm->mem.slots[1].size : 0);
	}
	vm->end = VM_END_NONE;
	devices_reset(vm);
	for (u32 i = 0; i < vm->nr_vcpus; i++) {
		struct vcpu *v = vm->vcpus[i];

		v->requests = 0;
		v->fresh = true;
		vlapic_reset(&v->lapic, vm->cfg->apic == CFG_APIC_X2APIC, i == 0);
	}
	vlapic_virtual_wire(&vm->vcpus[0]->lapic);
	pv_vm_start(vm);
	vm->nr_active = vm->nr_vcpus;
	vm->state = VM_RUNNING;
	any_started = true;
	hv_info("vm %s: %s, %u vCPU%s, %llu MiB", vm->name, vm->boot_state->what, vm->nr_vcpus,
		vm->nr_vcpus == 1 ? "" : "s", vm->cfg->memory / MiB);
	for (u32 i = vm->nr_vcpus; i-- > 0;)
		vcpu_start(vm->vcpus[i], i != 0);
	return 0;
}

void vm_first_run(struct vcpu *v)
{
	v->fresh = false;
	vcpu_power_up(v);
	if (v->id == 0)
		vcpu_set_boot_state(v, v->vm->boot_state);
	else
		vcpu_set_init_state(v);
	v->halted = v->id != 0;
	v->tpr_threshold = 0;
}

/* --- ending --- */

void vm_stop(struct vm *vm, enum vm_end how, u32 status, const char *fmt, ...)
{
	u32 none = VM_END_NONE;
	va_list args;

	if (!__atomic_compare_exchange_n(&vm->end, &none, how, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	vm->end_status = status;
	vm->end_text[0] = 0;
	if (fmt) {
		va_start(args, fmt);
		fmt_vprint(vm->end_text, sizeof(vm->end_text), fmt, args);
		va_end(args);
	}
	WRITE_ONCE(vm->state, VM_STOPPING);
	for (u32 i = 0; i < vm->nr_vcpus; i++) {
		vcpu_request(vm->vcpus[i], REQ_STOP);
		vcpu_kick(vm->vcpus[i]);
	}
}

static void say_how_it_ended(struct vm *vm)
{
	switch (vm->end) {
	case VM_END_DEBUG_EXIT:
		hv_info("vm %s: ended: debug-exit status %u", vm->name, vm->end_status);
		break;
	case VM_END_TRIPLE_FAULT:
		hv_info("vm %s: ended: triple fault, %s", vm->name, vm->end_text);
		break;
	case VM_END_KILLED:
		hv_info("vm %s: ended: killed: %s", vm->name, vm->end_text);
		break;
	case VM_END_RESET:
		hv_info("vm %s: %sreset", vm->name, vm->cfg->stop_on_reset ? "ended: " : "");
		break;
	case VM_END_STOPPED:
		hv_info("vm %s: ended: stopped", vm->name);
		break;
	default:
		hv_info("vm %s: ended: poweroff", vm->name);
	}
}

void vm_all_left(struct vm *vm)
{
	timer_cancel(&vm->dev_timer);
	console_flush_vm(vm->id);
	say_how_it_ended(vm);
	WRITE_ONCE(vm->state, VM_STOPPED);
	if (vm->end == VM_END_RESET && !vm->cfg->stop_on_reset)
		vm_start(vm);
}

bool vms_all_ended(void)
{
	for (u32 i = 0; i < nr_vms; i++) {
		u32 state = READ_ONCE(vms[i]->state);

		if (state == VM_RUNNING || state == VM_STOPPING)
			return false;
	}
	return any_started;
}
