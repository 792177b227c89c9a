/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * e9cat: copies standard input to port 0xE9, Bochs' debug console, which costs an instruction a
 * byte where a UART costs a character's time. Runs on the KVM host inside Bochs (tests/nested/run);
 * needs root there.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/io.h>
#include <unistd.h>

#define PORT_E9 0xe9

int main(void)
{
	unsigned char buffer[4096];
	ssize_t n;

	if (ioperm(PORT_E9, 1, 1)) {
		perror("e9cat: ioperm");
		return 1;
	}
	while ((n = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			outsb(PORT_E9, buffer, n);
	return n < 0;
}
