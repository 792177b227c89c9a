/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The serial console: the hypervisor's messages, the guests' consoles and the monitor on one line,
 * and the control port for programs on another. Messages may come from any pCPU; the line itself is
 * fed and read by the boot CPU, in console_poll().
 *
 * Keys: Ctrl-A then a digit attaches to that VM, m to the monitor, h shows help, a sends a Ctrl-A.
 */
#ifndef VLAG_CONSOLE_H
#define VLAG_CONSOLE_H

#include <stdarg.h>

#include "hv/config/config.h"
#include "hv/lib/types.h"

/* Somewhere to print to: the console or the control port. */
struct out {
	void (*write)(struct out *out, const char *text, size_t n);
};

void out_write(struct out *out, const char *text, size_t n);
/* Waits until @n bytes fit without any being lost: for what is longer than the buffers. Boot CPU.
 */
void out_wait(struct out *out, u32 n);
void out_print(struct out *out, const char *fmt, ...) __printf(2, 3);

/* The line itself, with a small buffer: first of all. */
void console_init(const struct config *cfg);

/* Large buffers, and the control port: as soon as there is memory. */
void console_grow(const struct config *cfg);

/* The control port answers from now on: sends `.ready`. */
void console_ready(void);

/* A message line of the hypervisor (a newline is added): `vlag: ...`, `vlag: warning: ...`. Any
 * pCPU, no lock needed. */
void hv_info(const char *fmt, ...) __printf(1, 2);
void hv_warn(const char *fmt, ...) __printf(1, 2);

/* `vlag: fatal: ...`, then the machine stops (powered off if possible). For what the user can put
 * right; a bug panics. */
__noreturn void hv_fatal(const char *fmt, ...) __printf(1, 2);

/*
 * Feeds the line, takes guests' output from their UARTs, reads keys. Boot CPU only, about once a
 * millisecond, with no lock held.
 */
void console_poll(void);

/* True while there is output that waits for the line: the boot CPU then polls soon even when idle.
 */
bool console_busy(void);

/* Waits until everything is out. */
void console_drain(void);

/* Moves what is left in the ring of VM number @vm's UART to the console. Any pCPU, not under the
 * console's lock. */
void console_flush_vm(u32 vm);

/* Where messages go: for dumps that are too long for one hv_info(). */
struct out *console_out(void);

/* The panic's way out: no locks, straight to the line. */
struct out *console_panic_out(void);

/* Shows VM number @vm's console and sends it the keys from now on. */
void console_attach(u32 vm);

#endif
