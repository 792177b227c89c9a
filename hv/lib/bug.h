/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conditions that cannot happen. BUG_ON stays on in release builds; DEBUG_ON only in `make DEBUG=1`
 * and on the host. In the hypervisor bug() panics (hv/panic.c); in the host tests it prints and
 * aborts (tests/unit/host.c).
 */
#ifndef VLAG_LIB_BUG_H
#define VLAG_LIB_BUG_H

#include "hv/lib/types.h"

__noreturn void bug(const char *file, int line, const char *what);

#define BUG_ON(cond)                                                                               \
	do {                                                                                       \
		if (unlikely(cond))                                                                \
			bug(__FILE__, __LINE__, #cond);                                            \
	} while (0)

#define BUG(what) bug(__FILE__, __LINE__, what)

#ifdef VLAG_DEBUG
#define DEBUG_ON(cond) BUG_ON(cond)
#else
#define DEBUG_ON(cond) ((void)sizeof(cond))
#endif

#endif
