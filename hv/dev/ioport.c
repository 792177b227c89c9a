/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The glue between port accesses and the device models: dispatch by port, the VM's lock, time,
 * interrupt lines. What a device does is in its own file.
 */
#include "hv/dev/ioport.h"

#include "hv/console.h"
#include "hv/dev/ports.h"
#include "hv/lib/bits.h"
#include "hv/lib/string.h"
#include "hv/pcpu.h"
#include "hv/tsc.h"
#include "hv/vm/run.h"
#include "hv/vm/vcpu.h"
#include "hv/vmx/exit.h"

#define GSI_PIT 2 /* IRQ 0 is on IOAPIC pin 2: the MADT says so */

struct port_range {
	u16 first, last;
	u8 max_size; /* wider accesses are split into bytes, as on the ISA bus; 0: nobody is there
		      */
	u32 (*read)(struct vm *vm, u16 port, u32 size);
	void (*write)(struct vm *vm, u16 port, u32 size, u32 value);
};

/* After an access that may have changed lines, events or timers. */
static void update(struct vm *vm, u64 now);

#define DEVICE(name)                                                                               \
	static u32 name##_port_read(struct vm *vm, u16 port, u32 size)                             \
	{                                                                                          \
		u64 now = vm_now_ns(vm);                                                           \
		u32 value = name##_read(&vm->name, port, size, now);                               \
                                                                                                   \
		update(vm, now);                                                                   \
		return value;                                                                      \
	}                                                                                          \
	static void name##_port_write(struct vm *vm, u16 port, u32 size, u32 value)                \
	{                                                                                          \
		u64 now = vm_now_ns(vm);                                                           \
                                                                                                   \
		name##_write(&vm->name, port, size, value, now);                                   \
		update(vm, now);                                                                   \
	}
DEVICE(pit)
DEVICE(rtc)
DEVICE(acpipm)
DEVICE(kbc)
#undef DEVICE

/* Printing is what guests do most here: those accesses need neither time nor an update. */
static u32 uart_port_read(struct vm *vm, u16 port, u32 size)
{
	u64 now;
	u32 value;

	if (likely(uart_access_is_plain(&vm->uart, port, false)))
		return uart_read(&vm->uart, port, size, 0);
	now = vm_now_ns(vm);
	value = uart_read(&vm->uart, port, size, now);
	update(vm, now);
	return value;
}

static void uart_port_write(struct vm *vm, u16 port, u32 size, u32 value)
{
	u64 now;

	if (likely(uart_access_is_plain(&vm->uart, port, true))) {
		uart_write(&vm->uart, port, size, value, 0);
		return;
	}
	now = vm_now_ns(vm);
	uart_write(&vm->uart, port, size, value, now);
	update(vm, now);
}

/* The PIC tells the boot vCPU's LINT0 itself. */
static u32 pic_port_read(struct vm *vm, u16 port, u32 size)
{
	return vpic_read(&vm->pic, port);
}

static void pic_port_write(struct vm *vm, u16 port, u32 size, u32 value)
{
	vpic_write(&vm->pic, port, value);
}

static u32 pci_address_read(struct vm *vm, u16 port, u32 size)
{
	return pcihost_read_address(&vm->pci, size);
}

static void pci_address_write(struct vm *vm, u16 port, u32 size, u32 value)
{
	pcihost_write_address(&vm->pci, size, value);
}

static u32 pci_data_read(struct vm *vm, u16 port, u32 size)
{
	return pcihost_read_data(&vm->pci, port, size);
}

/* Ports where there is knowingly nothing: UARTs that we do not have, delays, progress codes. */
static u32 ones_read(struct vm *vm, u16 port, u32 size)
{
	return UINT32_MAX;
}

static void swallow_write(struct vm *vm, u16 port, u32 size, u32 value)
{
}

static u32 report_port_read(struct vm *vm, u16 port, u32 size)
{
	return size == 4 ? REPORT_ID : UINT32_MAX;
}

static void report_port_write(struct vm *vm, u16 port, u32 size, u32 value)
{
	if (size == 4)
		report_write(&vm->report, value, vm->nr_vcpus);
}

static const struct port_range ranges[] = {
    {0, 0, 0, NULL, NULL}, /* index 0: nobody */
    {PORT_COM1, PORT_COM1 + 7, 1, uart_port_read, uart_port_write},
    {PORT_PIC1, PORT_PIC1 + 1, 1, pic_port_read, pic_port_write},
    {PORT_PIC2, PORT_PIC2 + 1, 1, pic_port_read, pic_port_write},
    {PORT_ELCR, PORT_ELCR + 1, 1, pic_port_read, pic_port_write},
    {PORT_PIT, PORT_PIT + 3, 1, pit_port_read, pit_port_write},
    {PORT_NMI_SC, PORT_NMI_SC, 1, pit_port_read, pit_port_write},
    {PORT_KBC_DATA, PORT_KBC_DATA, 1, kbc_port_read, kbc_port_write},
    {PORT_KBC_CMD, PORT_KBC_CMD, 1, kbc_port_read, kbc_port_write},
    {PORT_FAST_A20, PORT_FAST_A20, 1, kbc_port_read, kbc_port_write},
    {PORT_RTC_INDEX, PORT_RTC_DATA, 1, rtc_port_read, rtc_port_write},
    {PORT_PM1A_EVT, PORT_PM_TMR + 3, 4, acpipm_port_read, acpipm_port_write},
    {PORT_RESET, PORT_RESET, 1, acpipm_port_read, acpipm_port_write},
    {PORT_PCI_ADDRESS, PORT_PCI_ADDRESS, 4, pci_address_read, pci_address_write},
    {PORT_PCI_ADDRESS + 2, PORT_PCI_ADDRESS + 3, 4, ones_read, swallow_write},
    {PORT_PCI_DATA, PORT_PCI_DATA + 3, 4, pci_data_read, swallow_write},
    {PORT_COM2, PORT_COM2 + 7, 4, ones_read, swallow_write},
    {PORT_COM3, PORT_COM3 + 7, 4, ones_read, swallow_write},
    {PORT_COM4, PORT_COM4 + 7, 4, ones_read, swallow_write},
    {PORT_REPORT, PORT_REPORT, 4, report_port_read, report_port_write},
    {PORT_POST, PORT_POST, 4, ones_read, swallow_write},
    {PORT_DELAY, PORT_DELAY, 4, ones_read, swallow_write},
};

static u8 range_of_port[65536];

void ioport_init(void)
{
	for (u32 i = 1; i < ARRAY_SIZE(ranges); i++) {
		for (u32 port = ranges[i].first; port <= ranges[i].last; port++)
			range_of_port[port] = i;
	}
}

bool ioport_is_taken(u16 port)
{
	return range_of_port[port];
}

/* --- lines and timers --- */

enum { LINE_PIT, LINE_UART, LINE_RTC, LINE_KBC, LINE_SCI, NR_LINES };

static const struct {
	u8 irq, gsi;
} line_at[NR_LINES] = {
    [LINE_PIT] = {IRQ_PIT, GSI_PIT}, [LINE_UART] = {IRQ_COM1, IRQ_COM1},
    [LINE_RTC] = {IRQ_RTC, IRQ_RTC}, [LINE_KBC] = {IRQ_KBC, IRQ_KBC},
    [LINE_SCI] = {IRQ_SCI, IRQ_SCI},
};

static void set_line(struct vm *vm, u32 line, bool level)
{
	if ((vm->lines >> line & 1) == level)
		return;
	vm->lines ^= 1 << line;
	vioapic_set_irq(&vm->ioapic, line_at[line].gsi, level);
	vpic_set_irq(&vm->pic, line_at[line].irq, level);
}

static u64 next_event_ns(struct vm *vm, u64 now)
{
	u64 at = min(pit_next_event(&vm->pit, now), rtc_next_event(&vm->rtc, now));

	at = min(at, acpipm_next_event(&vm->acpipm, now));
	return min(at, uart_next_event(&vm->uart, now));
}

static void set_device_timer(struct vm *vm, u64 now)
{
	struct pcpu *p = vcpu_pcpu(vm->vcpus[0]);
	u64 at = next_event_ns(vm, now);

	if (at == vm->dev_timer_ns)
		return;
	vm->dev_timer_ns = at;
	if (at == UINT64_MAX) {
		timer_cancel(&vm->dev_timer);
		return;
	}
	/* One tick late rather than early: the model must find the event due. */
	if (timer_set(&p->timers, &vm->dev_timer, vm->tsc_base + tsc_from_ns(at) + 2))
		pcpu_kick(p);
}

static void update(struct vm *vm, u64 now)
{
	set_line(vm, LINE_PIT, vm->pit.irq);
	set_line(vm, LINE_UART, vm->uart.irq);
	set_line(vm, LINE_RTC, vm->rtc.irq);
	set_line(vm, LINE_KBC, vm->kbc.irq);
	set_line(vm, LINE_SCI, vm->acpipm.irq);
	set_device_timer(vm, now);
	if (vm->acpipm.poweroff)
		vm_stop(vm, VM_END_POWEROFF, 0, NULL);
	if (vm->acpipm.reset || vm->kbc.reset)
		vm_stop(vm, VM_END_RESET, 0, NULL);
}

void devices_update(struct vm *vm)
{
	update(vm, vm_now_ns(vm));
}

static void device_timer_fired(struct timer *t, u64 now_tsc)
{
	struct vm *vm = container_of(t, struct vm, dev_timer);
	u64 now;

	spin_lock(&vm->lock);
	now = vm_now_ns(vm);
	vm->dev_timer_ns = UINT64_MAX;
	if (pit_next_event(&vm->pit, now) <= now && pit_run(&vm->pit, now)) {
		set_line(vm, LINE_PIT, false); /* an edge, whatever OUT is now */
		set_line(vm, LINE_PIT, true);
	}
	if (rtc_next_event(&vm->rtc, now) <= now)
		rtc_run(&vm->rtc, now);
	if (acpipm_next_event(&vm->acpipm, now) <= now)
		acpipm_run(&vm->acpipm, now);
	if (uart_next_event(&vm->uart, now) <= now)
		uart_run(&vm->uart, now);
	devices_update(vm);
	spin_unlock(&vm->lock);
}

void devices_reset(struct vm *vm)
{
	u64 now = vm_now_ns(vm);

	vm->lines = 0;
	vm->dev_timer_ns = UINT64_MAX;
	timer_cancel(&vm->dev_timer);
	vm->dev_timer.fn = device_timer_fired;
	vm->report.by = REPORT_NONE;
	memset(vm->report.draft, 0, sizeof(vm->report.draft));
	pcihost_reset(&vm->pci);
	uart_init(&vm->uart, &vm->uart_ring);
	pit_init(&vm->pit);
	rtc_reset(&vm->rtc, now);
	acpipm_init(&vm->acpipm, now);
	kbc_init(&vm->kbc);
	vpic_reset(&vm->pic);
	vioapic_reset(&vm->ioapic);
}

/* --- accesses --- */

/* Of each VM: one that tries all ports must not fill the console. */
#define PORTS_SHOWN 32

static void unknown_port(struct vcpu *v, const char *what, u16 port, u32 size)
{
	u32 nr;

	COUNT(v, cnt_unknown_port);
	if (bit_test_and_set(v->vm->seen_ports, port))
		return;
	nr = __atomic_fetch_add(&v->vm->nr_seen_ports, 1, __ATOMIC_RELAXED);
	if (nr >= PORTS_SHOWN) {
		if (nr == PORTS_SHOWN)
			hv_info("vm %s: more such ports: from here on they are only counted",
				v->vm->name);
		return;
	}
	hv_info("vm %s: %u-byte %s port 0x%x, where no device is: reads ones, writes are dropped "
		"(shown once)",
		v->vm->name, size, what, port);
}

/* Nobody there, or too wide for who is. */
static __attribute__((noinline)) u32 read_slow(struct vcpu *v, u16 port, u32 size)
{
	u32 value = 0;

	if (!ranges[range_of_port[port]].max_size) {
		unknown_port(v, "read of", port, size);
		return UINT32_MAX;
	}
	for (u32 i = 0; i < size; i++)
		value |= (ioport_read(v, port + i, 1) & 0xff) << 8 * i;
	return value;
}

u32 ioport_read(struct vcpu *v, u16 port, u32 size)
{
	const struct port_range *r = &ranges[range_of_port[port]];
	struct vm *vm = v->vm;
	u32 value;

	if (unlikely(size > r->max_size))
		return read_slow(v, port, size);
	spin_lock(&vm->lock);
	value = r->read(vm, port, size);
	spin_unlock(&vm->lock);
	return value;
}

static __attribute__((noinline)) void write_slow(struct vcpu *v, u16 port, u32 size, u32 value)
{
	struct vm *vm = v->vm;

	if (ranges[range_of_port[port]].max_size) {
		for (u32 i = 0; i < size; i++)
			ioport_write(v, port + i, 1, value >> 8 * i & 0xff);
	} else if (vm->cfg->debug_exit && port == vm->cfg->debug_exit) {
		vm_stop(vm, VM_END_DEBUG_EXIT, value, NULL);
	} else {
		unknown_port(v, "write to", port, size);
	}
}

void ioport_write(struct vcpu *v, u16 port, u32 size, u32 value)
{
	const struct port_range *r = &ranges[range_of_port[port]];
	struct vm *vm = v->vm;

	if (unlikely(size > r->max_size)) {
		write_slow(v, port, size, value);
		return;
	}
	spin_lock(&vm->lock);
	r->write(vm, port, size, value);
	spin_unlock(&vm->lock);
}
