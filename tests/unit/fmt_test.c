/* SPDX-License-Identifier: BSD-2-Clause */
/* hv/lib/fmt.c against the C library's snprintf, and where ours is defined otherwise. */
// sources: hv/lib/fmt.c
#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hv/lib/fmt.h"

/* Same text and same length as the C library, and the same when cut to 5 bytes. */
#define same_as_libc(...)                                                                          \
	do {                                                                                       \
		char want[512], got[512], cut_want[5], cut_got[5];                                 \
		int n = snprintf(want, sizeof(want), __VA_ARGS__);                                 \
		assert_int_equal(fmt_print(got, sizeof(got), __VA_ARGS__), n);                     \
		assert_string_equal(got, want);                                                    \
		assert_int_equal(snprintf(cut_want, 5, __VA_ARGS__), n);                           \
		assert_int_equal(fmt_print(cut_got, 5, __VA_ARGS__), n);                           \
		assert_string_equal(cut_got, cut_want);                                            \
	} while (0)

#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-truncation"
#pragma GCC diagnostic ignored "-Wformat-security"

static void prints_decimal_numbers_of_every_size(void **state)
{
	same_as_libc("%d", 0);
	same_as_libc("%d %i", INT_MIN, INT_MAX);
	same_as_libc("%u", UINT_MAX);
	same_as_libc("%ld %ld", LONG_MIN, LONG_MAX);
	same_as_libc("%lld", LLONG_MIN);
	same_as_libc("%lu", ULONG_MAX);
	same_as_libc("%llu", ULLONG_MAX);
	same_as_libc("%zu", (size_t)-1);
	same_as_libc("%d%%", 42);
}

static void prints_hexadecimal_numbers(void **state)
{
	same_as_libc("%x", 0);
	same_as_libc("%x %X", 0xdeadbeef, 0xdeadbeef);
	same_as_libc("%016lx", 0x123456789abcul);
	same_as_libc("0x%lx", ULONG_MAX);
	same_as_libc("%p", (void *)0xdeadb000);
	same_as_libc("%20p|%-20p|", (void *)0x1234, (void *)0x1234);
}

static void an_int_conversion_ignores_the_upper_half(void **state)
{
	char buf[32];

	fmt_print(buf, sizeof(buf), "%x", 0xffffffff00000001ul);
	assert_string_equal(buf, "1");
}

static void obeys_width_and_flags(void **state)
{
	same_as_libc("[%5d] [%-5d] [%05d]", 42, 42, 42);
	same_as_libc("[%5d] [%-5d] [%05d]", -42, -42, -42);
	same_as_libc("[%-05d]", 42);
	same_as_libc("[%2d]", 12345);
	same_as_libc("[%8s] [%-8s]", "abc", "abc");
	same_as_libc("[%3c] [%-3c]", 'x', 'y');
	same_as_libc("[%*d] [%-*d] [%*d]", 6, 1, 6, 2, -6, 3);
	same_as_libc("[%*s]", -4, "a");
	same_as_libc("[%300d]", 7);
}

static void obeys_precision(void **state)
{
	same_as_libc("[%.3d] [%8.3d] [%-8.3d] [%08.3d]", 7, 7, 7, 7);
	same_as_libc("[%.3d]", -7);
	same_as_libc("[%.0d] [%.d] [%.0x]", 0, 0, 0);
	same_as_libc("[%5.0d]", 0);
	same_as_libc("[%.40x]", 0xabc);
	same_as_libc("[%.2s] [%.0s] [%.9s]", "abc", "abc", "abc");
	same_as_libc("[%.*s] [%.*s]", 1, "abc", -1, "abc");
	same_as_libc("[%6.2s]", "abc");
}

static void a_precision_bounds_the_reading_of_a_string(void **state)
{
	char unterminated[4] = {'a', 'b', 'c', 'd'};

	/* ASan watches the byte after it. */
	same_as_libc("%.4s", unterminated);
}

static void a_null_string_is_shown(void **state)
{
	char *volatile nothing = NULL; /* hidden from the compiler's own check */
	char buf[32];

	fmt_print(buf, sizeof(buf), "%s", nothing);
	assert_string_equal(buf, "(null)");
	fmt_print(buf, sizeof(buf), "%p", NULL);
	assert_string_equal(buf, "0x0");
}

static void size_zero_writes_nothing_and_still_counts(void **state)
{
	char byte = 'x';

	assert_int_equal(fmt_print(&byte, 0, "hello"), 5);
	assert_int_equal(byte, 'x');
	assert_int_equal(fmt_print(NULL, 0, "%d", 1234), 4);
	assert_int_equal(fmt_print(&byte, 1, "hello"), 5);
	assert_int_equal(byte, 0);
}

static void an_exact_fit_is_not_cut(void **state)
{
	char buf[6];

	assert_int_equal(fmt_print(buf, sizeof(buf), "hello"), 5);
	assert_string_equal(buf, "hello");
	assert_int_equal(fmt_print(buf, 5, "hello"), 5);
	assert_string_equal(buf, "hell");
}

static void an_unknown_conversion_is_shown_as_it_stands(void **state)
{
	char buf[32];

	fmt_print(buf, sizeof(buf), "a %5k b %d", 7);
	assert_string_equal(buf, "a %5k b 7");
	fmt_print(buf, sizeof(buf), "100%");
	assert_string_equal(buf, "100%");
	fmt_print(buf, sizeof(buf), "x%-08l");
	assert_string_equal(buf, "x%-08l");
}

static void reads_decimal_numbers_and_nothing_else(void **state)
{
	static const char *const none[] = {"", "-1", "+1", " 1", "1 ", "0x10", "1k", "a"};
	u64 n = 7;

	for (u32 i = 0; i < ARRAY_SIZE(none); i++)
		assert_false(fmt_parse_u64(none[i], &n));
	assert_int_equal(n, 7);
	assert_true(fmt_parse_u64("0042", &n));
	assert_int_equal(n, 42);
	assert_true(fmt_parse_u64("18446744073709551614", &n));
	assert_true(n == UINT64_MAX - 1);
	assert_true(fmt_parse_u64("18446744073709551616", &n));
	assert_true(n == UINT64_MAX);
	assert_true(fmt_parse_u64("99999999999999999999999", &n));
	assert_true(n == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(reads_decimal_numbers_and_nothing_else),
	    cmocka_unit_test(prints_decimal_numbers_of_every_size),
	    cmocka_unit_test(prints_hexadecimal_numbers),
	    cmocka_unit_test(an_int_conversion_ignores_the_upper_half),
	    cmocka_unit_test(obeys_width_and_flags),
	    cmocka_unit_test(obeys_precision),
	    cmocka_unit_test(a_precision_bounds_the_reading_of_a_string),
	    cmocka_unit_test(a_null_string_is_shown),
	    cmocka_unit_test(size_zero_writes_nothing_and_still_counts),
	    cmocka_unit_test(an_exact_fit_is_not_cut),
	    cmocka_unit_test(an_unknown_conversion_is_shown_as_it_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
