/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The serial console and the control port; see console.h. Everything between lock() and unlock()
 * may happen on any pCPU; keys and monitor commands are handled on the boot CPU only, outside of
 * it.
 */
#include "hv/console.h"

#include "hv/image.h"
#include "hv/lib/fmt.h"
#include "hv/lib/lock.h"
#include "hv/lib/string.h"
#include "hv/monitor.h"
#include "hv/page.h"
#include "hv/panic.h"
#include "hv/serial.h"
#include "hv/vm/vm.h"
#include "hv/dev/ioport.h"
#include "hv/x86/cpu.h"

#define COM1 0x3f8
#define COM2 0x2f8
#define CONSOLE_RING (256 * KiB)
#define CONTROL_RING (1 * MiB)
#define EARLY_RING 8192
#define GUEST_BACKLOG 4096 /* guests' output that waits at most: messages come after it */
#define LINE_MAX 256
#define PREFIX 1 /* Ctrl-A */
#define MONITOR (-1)

static struct spinlock lock; /* a leaf; guards all below unless a note says "boot CPU" */
static struct serial line;   /* COM1 or COM2: the console */
static u8 early_ring[EARLY_RING];
static bool column; /* the console's cursor is not at the start of a line */

static struct serial control;
static bool control_at_start = true; /* of a line: a '.' there is doubled */

static int attached = MONITOR; /* VM number; boot CPU writes */

/* Lines of VMs that are not attached, until they are complete. */
static struct {
	char text[LINE_MAX];
	u32 n;
} pending[CFG_MAX_VMS];

/* Keys for the attached VM that its UART has no room for yet; the monitor's and the control port's
 * line. Boot CPU. */
static struct {
	u8 keys[256];
	u32 head, tail;
	bool prefix;
	char monitor[LINE_MAX], control[LINE_MAX];
	u32 monitor_n, control_n;
} input;

/* --- output --- */

static void console_bytes(const char *text, size_t n)
{
	serial_write(&line, text, n);
	if (n) /* only whether it is 0 matters */
		column = text[n - 1] != '\n' && text[n - 1] != '\r';
}

/* Our own text: \n becomes \r\n. */
static void console_text(const char *text, size_t n)
{
	size_t from = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] != '\n')
			continue;
		console_bytes(text + from, i - from);
		console_bytes("\r\n", 2);
		from = i + 1;
	}
	console_bytes(text + from, n - from);
}

static void fresh_line(void)
{
	if (column)
		console_bytes("\r\n", 2);
}

static void console_out_write(struct out *out, const char *text, size_t n)
{
	spin_lock(&lock);
	console_text(text, n);
	spin_unlock(&lock);
}

static void control_out_write(struct out *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (control_at_start && text[i] == '.')
			serial_write(&control, ".", 1);
		serial_write(&control, text + i, 1);
		control_at_start = text[i] == '\n';
	}
}

static void panic_out_write(struct out *out, const char *text, size_t n)
{
	console_text(text, n);
	serial_drain(&line);
}

static struct out to_console = {console_out_write};
static struct out to_control = {control_out_write};
static struct out to_panic = {panic_out_write};

void out_wait(struct out *out, u32 n)
{
	struct serial *s = out == &to_control ? &control : out == &to_console ? &line : NULL;

	if (s && serial_room(s) < n)
		serial_drain(s);
}

void out_write(struct out *out, const char *text, size_t n)
{
	out->write(out, text, n);
}

void out_print(struct out *out, const char *fmt, ...)
{
	char text[512];
	va_list args;
	int n;

	va_start(args, fmt);
	n = fmt_vprint(text, sizeof(text), fmt, args);
	va_end(args);
	out->write(out, text, min((size_t)n, sizeof(text) - 1));
}

struct out *console_out(void)
{
	return &to_console;
}

struct out *console_panic_out(void)
{
	fresh_line();
	return &to_panic;
}

/* One whole line, so that lines of several pCPUs do not mix. */
static void message(const char *kind, const char *fmt, va_list args)
{
	char text[512];
	int n = fmt_print(text, sizeof(text), "vlag: %s", kind);

	n += fmt_vprint(text + n, sizeof(text) - 1 - n, fmt, args);
	n = min(n, (int)sizeof(text) - 2);
	text[n++] = '\n';
	spin_lock(&lock);
	fresh_line();
	console_text(text, n);
	spin_unlock(&lock);
}

void hv_info(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	message("", fmt, args);
	va_end(args);
}

void hv_warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	message("warning: ", fmt, args);
	va_end(args);
}

void hv_fatal(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	message("fatal: ", fmt, args);
	va_end(args);
	console_drain();
	machine_poweroff();
}

void console_drain(void)
{
	serial_drain(&line);
	serial_drain(&control);
}

bool console_busy(void)
{
	return !serial_empty(&line) || !serial_empty(&control);
}

/* --- guests' output --- */

static void emit_pending(u32 vm)
{
	if (!pending[vm].n)
		return;
	fresh_line();
	console_bytes(vms[vm]->name, strlen(vms[vm]->name));
	console_bytes("| ", 2);
	console_bytes(pending[vm].text, pending[vm].n);
	console_bytes("\r\n", 2);
	pending[vm].n = 0;
}

static void collect(u32 vm, u8 byte)
{
	if (byte == '\n' || pending[vm].n == LINE_MAX) {
		emit_pending(vm);
		if (byte == '\n')
			return;
	}
	if (byte != '\r')
		pending[vm].text[pending[vm].n++] = byte;
}

/* Takes what @vm has sent, as long as there is room for it: in pieces, as guests on this pCPU wait
 * meanwhile. */
static void take_output(u32 vm, u32 reserve)
{
	struct byte_ring *ring = &vms[vm]->uart_ring;
	u32 used;

	while ((used = ring_used(ring))) {
		u32 room = serial_room(&line), at = ring->tail & (ring->size - 1);
		u32 n = min(used, ring->size - at);

		if (room <= reserve)
			return;
		n = min(n, room - reserve);
		if ((int)vm == attached) {
			console_bytes((const char *)ring->buf + at, n);
		} else {
			n = min(n, (u32)LINE_MAX); /* a line may grow by its VM's name */
			for (u32 i = 0; i < n; i++)
				collect(vm, ring->buf[at + i]);
		}
		__atomic_store_n(&ring->tail, ring->tail + n, __ATOMIC_RELEASE);
	}
}

void console_flush_vm(u32 vm)
{
	spin_lock(&lock);
	take_output(vm, 2 * LINE_MAX);
	emit_pending(vm);
	spin_unlock(&lock);
}

/* A guest whose ring was full waits for room: its UART must know. */
static void wake_senders(void)
{
	for (u32 i = 0; i < nr_vms; i++) {
		struct vm *vm = vms[i];

		if (READ_ONCE(vm->state) != VM_RUNNING || !uart_tx_waits(&vm->uart))
			continue;
		spin_lock(&vm->lock);
		uart_tx_drained(&vm->uart, vm_now_ns(vm));
		devices_update(vm);
		spin_unlock(&vm->lock);
	}
}

/* --- input --- */

static void help(void)
{
	static const char text[] = "Ctrl-A 0..9  attach to that VM's console\n"
				   "Ctrl-A m     the monitor\n"
				   "Ctrl-A a     send Ctrl-A to the VM\n"
				   "Ctrl-A h     this text\n";

	out_write(&to_console, text, sizeof(text) - 1);
}

static void prompt(void)
{
	out_write(&to_console, "vlag> ", 6);
}

void console_attach(u32 vm)
{
	spin_lock(&lock);
	attached = vm;
	fresh_line();
	spin_unlock(&lock);
	input.head = input.tail = 0;
	hv_info("console of vm %s (Ctrl-A m for the monitor, Ctrl-A h for help)", vms[vm]->name);
	/* The line that it has begun, such as a prompt. */
	spin_lock(&lock);
	console_bytes(pending[vm].text, pending[vm].n);
	pending[vm].n = 0;
	spin_unlock(&lock);
}

static void key_to_vm(u8 key)
{
	if (input.head - input.tail < sizeof(input.keys))
		input.keys[input.head++ % sizeof(input.keys)] = key;
}

static void key_to_monitor(u8 key)
{
	const char *error;

	if (key == '\r' || key == '\n') {
		out_write(&to_console, "\n", 1);
		input.monitor[input.monitor_n] = 0;
		input.monitor_n = 0;
		error = monitor_run(input.monitor, &to_console);
		if (error)
			out_print(&to_console, "%s\n", error);
		if (attached == MONITOR)
			prompt();
	} else if (key == 8 || key == 127) {
		if (!input.monitor_n)
			return;
		input.monitor_n--;
		out_write(&to_console, "\b \b", 3);
	} else if (key >= ' ' && key < 127 && input.monitor_n < LINE_MAX - 1) {
		input.monitor[input.monitor_n++] = key;
		out_write(&to_console, (const char *)&key, 1);
	}
}

static void prefixed_key(u8 key)
{
	if (key >= '0' && key <= '9') {
		if ((u32)(key - '0') < nr_vms)
			console_attach(key - '0');
		else
			hv_info("there is no VM %c; the VMs are 0 to %u", key,
				nr_vms ? nr_vms - 1 : 0);
	} else if (key == 'm') {
		attached = MONITOR;
		input.monitor_n = 0;
		hv_info("monitor (help for the commands, Ctrl-A and a digit for a VM)");
		prompt();
	} else if (key == 'a' || key == PREFIX) {
		if (attached != MONITOR)
			key_to_vm(PREFIX);
	} else {
		hv_info("keys:");
		help();
	}
}

static void console_key(u8 key)
{
	if (input.prefix) {
		input.prefix = false;
		prefixed_key(key);
	} else if (key == PREFIX) {
		input.prefix = true;
	} else if (attached == MONITOR) {
		key_to_monitor(key);
	} else {
		key_to_vm(key);
	}
}

static void push_keys(void)
{
	struct vm *vm;
	bool pushed = false;

	if (attached == MONITOR || input.head == input.tail)
		return;
	vm = vms[attached];
	spin_lock(&vm->lock);
	while (input.head != input.tail && uart_rx_room(&vm->uart)) {
		uart_rx_push(&vm->uart, input.keys[input.tail++ % sizeof(input.keys)],
			     vm_now_ns(vm));
		pushed = true;
	}
	if (pushed)
		devices_update(vm);
	spin_unlock(&vm->lock);
}

/* Answers end with a line `.ok` or `.error TEXT`. */
static void control_line(void)
{
	const char *error;

	input.control[input.control_n] = 0;
	input.control_n = 0;
	if (!input.control[0])
		return;
	error = monitor_run(input.control, &to_control);
	if (!control_at_start)
		serial_write(&control, "\n", 1);
	if (error) {
		serial_write(&control, ".error ", 7);
		serial_write(&control, error, strlen(error));
		serial_write(&control, "\n", 1);
	} else {
		serial_write(&control, ".ok\n", 4);
	}
	control_at_start = true;
}

static void control_key(u8 key)
{
	if (key == '\n')
		control_line();
	else if (key != '\r' && input.control_n < LINE_MAX - 1)
		input.control[input.control_n++] = key;
}

void console_poll(void)
{
	static u32 first; /* another VM each time, so that none takes all the room */
	int key;

	spin_lock(&lock);
	for (u32 i = 0; i < nr_vms; i++)
		take_output((first + i) % nr_vms, line.size - GUEST_BACKLOG);
	first++;
	serial_poll(&line);
	serial_poll(&control);
	spin_unlock(&lock);
	wake_senders();
	while ((key = serial_read(&line)) >= 0)
		console_key(key);
	while ((key = serial_read(&control)) >= 0)
		control_key(key);
	push_keys();
}

static u16 port_of(u32 port)
{
	return port == CFG_PORT_COM1 ? COM1 : port == CFG_PORT_COM2 ? COM2 : 0;
}

void console_init(const struct config *cfg)
{
	u16 base = port_of(cfg->console);

	if (base)
		serial_init(&line, base, early_ring, sizeof(early_ring));
}

void console_grow(const struct config *cfg)
{
	u16 base = port_of(cfg->control);
	u8 *ring = page_alloc(CONSOLE_RING, PAGE_SIZE, PAGES_HV);

	serial_drain(&line);
	spin_lock(&lock);
	line.buf = ring;
	line.size = CONSOLE_RING;
	line.head = line.tail = 0;
	spin_unlock(&lock);
	if (!base)
		return;
	if (base == line.base ||
	    !serial_init(&control, base, page_alloc(CONTROL_RING, PAGE_SIZE, PAGES_HV),
			 CONTROL_RING))
		hv_warn("[hypervisor] control: no UART at 0x%x for it, or it is the console; going "
			"on without",
			base);
}

void console_ready(void)
{
	static const char ready[] = ".ready vlag " VLAG_VERSION "\n";

	serial_write(&control, ready, sizeof(ready) - 1);
}
