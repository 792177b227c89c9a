/* SPDX-License-Identifier: BSD-2-Clause */
// cflags: -nostdlib -ffreestanding -fno-stack-protector -fcf-protection=none
/*
 * init: the guest's process 1. It reads the time stamp counter as its very first act (the figure
 * that says how long the kernel took), mounts the kernel's file systems, runs /etc/rc on the
 * console, reaps orphans, and powers the guest off when /etc/rc ends or when somebody asks in
 * busybox's way: SIGUSR2 power off, SIGUSR1 halt, SIGTERM reboot. What the guest does is decided in
 * /etc/rc and not here.
 *
 * init leads the console's session itself, and /etc/rc is only its foreground process group. When
 * the leader of a session ends, the kernel hangs the terminal up and drops what it has not sent:
 * the last lines of each run.
 */
#include "nolibc.h"

#include <asm/ioctls.h>
#include <asm/signal.h>
#include <linux/fcntl.h>
#include <linux/reboot.h>

NOLIBC_START

int main(void);

static void say(const char *text)
{
	syscall3(__NR_write, 2, (long)text, (long)text_length(text));
}

/* A file system that this kernel does not have is not missed here: what needs it will say so. */
static void mount(const char *type, const char *where)
{
	syscall5(__NR_mount, (long)type, (long)where, (long)type, 0, 0);
}

/* Make the console our standard input and output and the terminal of our session. */
static void take_console(void)
{
	long fd = syscall3(__NR_open, (long)"/dev/console", O_RDWR | O_NOCTTY, 0);

	for (long target = 0; fd >= 0 && target <= 2; target++)
		if (target != fd)
			syscall3(__NR_dup2, fd, target, 0);
	if (fd > 2)
		syscall3(__NR_close, fd, 0, 0);
	syscall3(__NR_setsid, 0, 0, 0);
	syscall3(__NR_ioctl, 0, TIOCSCTTY, 0);
}

/* SIGTTOU: setting or draining the terminal from the background must not stop anybody. */
static unsigned long blocked_signals(void)
{
	static const int signals[] = {SIGCHLD, SIGTTOU, SIGUSR1, SIGUSR2, SIGTERM};
	unsigned long set = 0;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		set |= 1UL << (signals[i] - 1);
	return set;
}

static void set_mask(int how, unsigned long set)
{
	syscall5(__NR_rt_sigprocmask, how, (long)&set, 0, sizeof(set), 0);
}

static void run_rc(unsigned long tsc)
{
	static char tsc_variable[32] = "VLAG_TSC=";
	static const char *const argv[] = {"sh", "/etc/rc", NULL};
	static const char *envp[] = {tsc_variable, "PATH=/bin:/sbin", "HOME=/", "TERM=vt102", NULL};

	int group = (int)syscall3(__NR_getpid, 0, 0, 0);

	format_decimal(tsc, tsc_variable + text_length(tsc_variable));
	syscall3(__NR_setpgid, 0, 0, 0);
	syscall3(__NR_ioctl, 0, TIOCSPGRP, (long)&group);
	set_mask(SIG_UNBLOCK, blocked_signals());
	syscall3(__NR_execve, (long)"/bin/sh", (long)argv, (long)envp);
	say("vlag-guest: cannot run /bin/sh\n");
	syscall3(__NR_exit, 127, 0, 0);
}

/* Wait for the end of RC or for a signal that asks for the end; returns what reboot() is to do. */
static unsigned int wait_for_end(long rc)
{
	unsigned long set = blocked_signals();

	for (;;) {
		long child;

		while ((child = syscall5(__NR_wait4, -1, 0, 1 /* WNOHANG */, 0, 0)) > 0)
			if (child == rc)
				return LINUX_REBOOT_CMD_POWER_OFF;
		switch (syscall5(__NR_rt_sigtimedwait, (long)&set, 0, 0, sizeof(set), 0)) {
		case SIGUSR1:
			return LINUX_REBOOT_CMD_HALT;
		case SIGUSR2:
			return LINUX_REBOOT_CMD_POWER_OFF;
		case SIGTERM:
			return LINUX_REBOOT_CMD_RESTART;
		}
	}
}

int main(void)
{
	unsigned long tsc = rdtsc();
	unsigned int command;
	long rc;

	mount("proc", "/proc");
	mount("sysfs", "/sys");
	mount("devtmpfs", "/dev");
	mount("debugfs", "/sys/kernel/debug");
	set_mask(SIG_BLOCK, blocked_signals());
	take_console();

	rc = syscall3(__NR_fork, 0, 0, 0);
	if (rc == 0)
		run_rc(tsc);
	command = wait_for_end(rc);

	/* A power-off loses what the serial port has not sent yet: TCSBRK with 1 waits for it. */
	syscall3(__NR_ioctl, 1, TCSBRK, 1);
	syscall5(__NR_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, command, 0, 0);
	for (;;)
		syscall3(__NR_pause, 0, 0, 0);
}
