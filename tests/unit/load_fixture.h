/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of the guest loader start from: a guest's RAM, one image, a request to load it. */
#ifndef VLAG_TESTS_LOAD_FIXTURE_H
#define VLAG_TESTS_LOAD_FIXTURE_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hv/lib/errors.h"
#include "hv/vm/e820.h"
#include "hv/vm/load.h"
#include "tests/unit/load_images.h"

struct fixture {
	struct guest_mem mem;
	u8 *image;
	struct load_request req;
	struct cpu_boot_state st;
	char err[256];
};

/* RAM of @low bytes at 0 and @high at 4 GiB, and @image, @size bytes from malloc(): ASan sees
 * a read past its end. */
static inline struct fixture *fixture_new(u64 low, u64 high, const char *name, u8 *image, u64 size)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->mem = images_ram(low, high);
	f->image = image;
	f->req.kernel = (struct load_file){name, image, size};
	return f;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	images_free(&f->mem);
	free(f->image);
	free(f);
	return 0;
}

static inline int load(struct fixture *f)
{
	return load_guest(&f->mem, &f->req, &f->st, f->err, sizeof(f->err));
}

/* The load fails with @code, blames @key, and its one line holds each of the texts. */
static inline void expect_error(struct fixture *f, int code, const char *key, const char *text1,
				const char *text2)
{
	assert_int_equal(load(f), code);
	assert_string_equal(f->st.bad_key, key);
	assert_null(strchr(f->err, '\n'));
	if (!strstr(f->err, text1) || !strstr(f->err, text2))
		fail_msg("\"%s\" lacks \"%s\" or \"%s\"", f->err, text1, text2);
}

#endif
