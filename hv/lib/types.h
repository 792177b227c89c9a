/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The integer types and the few macros that every file uses. Nothing of x86 and nothing that needs
 * a C library: this header is shared by the hypervisor, the boot loader and the host tests.
 */
#ifndef VLAG_LIB_TYPES_H
#define VLAG_LIB_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned __int128 u128;
typedef __int128 s128;

#define KiB (1ull << 10)
#define MiB (1ull << 20)
#define GiB (1ull << 30)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n) (1ull << (n))
#define ALIGN_UP(x, a) (((x) + ((__typeof__(x))(a)-1)) & ~((__typeof__(x))(a)-1))
#define ALIGN_DOWN(x, a) ((x) & ~((__typeof__(x))(a)-1))
#define IS_ALIGNED(x, a) (((x) & ((__typeof__(x))(a)-1)) == 0)

#define min(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) _min_a = (a);                                                        \
		__typeof__(b) _min_b = (b);                                                        \
		_min_a < _min_b ? _min_a : _min_b;                                                 \
	})
#define max(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) _max_a = (a);                                                        \
		__typeof__(b) _max_b = (b);                                                        \
		_max_a > _max_b ? _max_a : _max_b;                                                 \
	})
#define clamp(x, lo, hi) min(max(x, lo), hi)

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#ifndef __packed
#define __packed __attribute__((packed))
#endif
#ifndef __aligned
#define __aligned(n) __attribute__((aligned(n)))
#endif
#ifndef __noreturn
#define __noreturn __attribute__((noreturn))
#endif
#ifndef __printf
#define __printf(fmt, args) __attribute__((format(printf, fmt, args)))
#endif
#ifndef __maybe_unused
#define __maybe_unused __attribute__((unused))
#endif

/* One load or store of a word that another CPU may change: no tearing, no repetition, no ordering.
 */
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#endif
