/* SPDX-License-Identifier: BSD-2-Clause */
/* The generated pages of docs/ say what the source says (docs/config.md: config_test.c). */
// sources: hv/knobs.c hv/sched/knobs.c hv/spin/knobs.c hv/lib/fmt.c hv/lib/knob.c hv/lib/string.c
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/gen/counters_doc.h"
#include "tests/gen/knobs_doc.h"

/* The committed file @path (from the root, where tests run) is what @write prints. */
static void assert_current(const char *path, void (*write)(FILE *f))
{
	char *want = NULL, *have;
	size_t size = 0, n;
	FILE *f = open_memstream(&want, &size);

	write(f);
	fclose(f);
	f = fopen(path, "r");
	assert_non_null(f);
	have = calloc(1, size + 2);
	n = fread(have, 1, size + 1, f);
	fclose(f);
	if (n != size || memcmp(have, want, size) != 0)
		fail_msg("%s is not what the source says; run `make docs`", path);
	free(have);
	free(want);
}

static void the_page_of_knobs_is_current(void **state)
{
	assert_current("docs/knobs.md", knobs_doc_write);
}

static void the_page_of_counters_is_current(void **state)
{
	assert_current("docs/counters.md", counters_doc_write);
}

/* A `|` or a new line in a text would break the table. */
static void every_line_of_a_table_has_all_its_cells(void **state)
{
	char *text = NULL, *line, *rest;
	size_t size = 0, cells = 0;
	FILE *f = open_memstream(&text, &size);

	knobs_doc_write(f);
	counters_doc_write(f);
	fclose(f);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		size_t bars = 0;

		for (const char *s = line; *s; s++)
			bars += *s == '|';
		if (line[0] == '|' && cells)
			assert_int_equal(bars, cells);
		cells = line[0] == '|' ? bars : 0;
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_page_of_knobs_is_current),
	    cmocka_unit_test(the_page_of_counters_is_current),
	    cmocka_unit_test(every_line_of_a_table_has_all_its_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
