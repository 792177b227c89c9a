/* SPDX-License-Identifier: BSD-2-Clause */
/* hv/config: what vlag.cfg may say, what is said about mistakes, and that docs/config.md is
 * current. */
// sources: hv/config/config.c hv/config/value.c hv/lib/fmt.c hv/lib/string.c
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hv/config/config.h"
#include "hv/config/value.h"
#include "tests/gen/config_doc.h"

static struct config cfg;
static char report[64 * 1024];
static u32 nr_reported;

static void collect(void *ctx, const char *line)
{
	assert_ptr_equal(ctx, &cfg);
	assert_null(strchr(line, '\n'));
	strncat(report, line, sizeof(report) - strlen(report) - 2);
	strcat(report, "\n");
	nr_reported++;
}

/* Parses @len bytes from the heap, so that ASan sees a read behind their end. */
static u32 parse_bytes(const void *bytes, size_t len)
{
	char *copy = malloc(len + !len);
	u32 errors;

	memcpy(copy, bytes, len);
	report[0] = 0;
	nr_reported = 0;
	memset(&cfg, 0xee, sizeof(cfg));
	errors = config_parse(&cfg, "vlag.cfg", copy, len, collect, &cfg);
	free(copy);
	assert_int_equal(errors, cfg.nr_errors);
	assert_int_equal(errors, nr_reported);
	return errors;
}

static u32 parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

static void assert_good(const char *text)
{
	parse(text);
	assert_string_equal(report, "");
}

/* The whole report, line for line. */
static void assert_reports(const char *text, const char *lines)
{
	parse(text);
	assert_string_equal(report, lines);
}

/* `[vm a]`, a kernel, then @line as line 3: reports exactly `vlag.cfg:3: [vm a]` and @rest, and the
 * VM is bad. */
static void assert_vm_refuses(const char *line, const char *rest)
{
	char text[2048], want[1024];

	snprintf(text, sizeof(text), "[vm a]\nkernel = k\n%s\n", line);
	snprintf(want, sizeof(want), "vlag.cfg:3: [vm a]%s%s\n", rest[0] == ':' ? "" : " ", rest);
	assert_reports(text, want);
	assert_int_equal(cfg.nr_vms, 1);
	assert_true(cfg.vms[0].bad);
}

static struct cfg_vm *vm_with(const char *line)
{
	char text[4096];

	snprintf(text, sizeof(text), "[vm a]\nkernel = k\n%s\n", line);
	assert_good(text);
	assert_int_equal(cfg.nr_vms, 1);
	assert_false(cfg.vms[0].bad);
	return &cfg.vms[0];
}

/* --- what is understood --- */

static void an_empty_file_gives_the_defaults(void **state)
{
	assert_good("");
	assert_int_equal(cfg.console, CFG_PORT_COM1);
	assert_int_equal(cfg.control, CFG_PORT_NONE);
	assert_int_equal(cfg.pcpus, 0);
	assert_true(cfg.poweroff);
	assert_int_equal(cfg.nr_vms, 0);
	assert_int_equal(cfg.nr_knobs, 0);
}

static void a_vm_with_a_kernel_has_the_defaults(void **state)
{
	struct cfg_vm *vm = vm_with("");

	assert_string_equal(vm->name, "a");
	assert_string_equal(vm->kernel, "k");
	assert_int_equal(vm->line, 1);
	assert_int_equal(vm->kernel_line, 2);
	assert_int_equal(vm->memory_line, 0);
	assert_string_equal(vm->initrd, "");
	assert_string_equal(vm->cmdline, "");
	assert_int_equal(vm->nr_modules, 0);
	assert_int_equal(vm->vcpus, 1);
	assert_int_equal(vm->max_vcpus, 1);
	assert_int_equal(vm->memory, 128 * MiB);
	assert_int_equal(vm->weight, 1024);
	assert_int_equal(vm->apic, CFG_APIC_X2APIC);
	assert_int_equal(vm->pv, CFG_PV_DEFAULT);
	assert_int_equal(vm->debug_exit, 0);
	assert_true(vm->autostart);
	for (u32 i = 0; i < CFG_MAX_PCPUS / 64; i++)
		assert_int_equal(vm->affinity[i], ~0ull);
}

static void everything_can_be_set(void **state)
{
	const struct cfg_vm *vm;

	assert_good("# a comment\n"
		    "; another\n"
		    "\n"
		    "[hypervisor]\n"
		    "console = com2\n"
		    "control=com1\n"
		    "pcpus\t=\t3\n"
		    "when_done = monitor\n"
		    "  [ knobs ]  \n"
		    "ple_window = 4096\n"
		    "yield_policy = transfer of lag\n"
		    "[vm  web-1 ]\n"
		    "kernel = \\boot\\bzImage 6.1\n"
		    "initrd = /boot/initrd.img\n"
		    "cmdline = console=ttyS0 root=/dev/ram # not a comment\n"
		    "vcpus = 4\n"
		    "max_vcpus = 8\n"
		    "memory = 1G\n"
		    "weight = 2048\n"
		    "affinity = 0-2, 6\n"
		    "apic = xapic\n"
		    "pv = clock, steal\n"
		    "debug_exit = 0xf4\n"
		    "autostart = no\n"
		    "[vm b_2]\n"
		    "kernel = tiny.elf\n"
		    "modules = one two, sub/three");
	assert_int_equal(cfg.console, CFG_PORT_COM2);
	assert_int_equal(cfg.control, CFG_PORT_COM1);
	assert_int_equal(cfg.pcpus, 3);
	assert_false(cfg.poweroff);
	assert_int_equal(cfg.nr_knobs, 2);
	assert_string_equal(cfg.knobs[0].name, "ple_window");
	assert_string_equal(cfg.knobs[0].value, "4096");
	assert_int_equal(cfg.knobs[0].line, 10);
	assert_string_equal(cfg.knobs[1].value, "transfer of lag");
	assert_int_equal(cfg.nr_vms, 2);
	vm = &cfg.vms[0];
	assert_string_equal(vm->name, "web-1");
	assert_string_equal(vm->kernel, "\\boot\\bzImage 6.1");
	assert_string_equal(vm->initrd, "/boot/initrd.img");
	assert_string_equal(vm->cmdline, "console=ttyS0 root=/dev/ram # not a comment");
	assert_int_equal(vm->vcpus, 4);
	assert_int_equal(vm->vcpus_line, 16);
	assert_int_equal(vm->max_vcpus, 8);
	assert_int_equal(vm->memory, GiB);
	assert_int_equal(vm->memory_line, 18);
	assert_int_equal(vm->weight, 2048);
	assert_int_equal(vm->affinity[0], 0x47);
	assert_int_equal(vm->affinity[1], 0);
	assert_int_equal(vm->affinity_line, 20);
	assert_int_equal(vm->apic, CFG_APIC_XAPIC);
	assert_int_equal(vm->pv, CFG_PV_CLOCK | CFG_PV_STEAL);
	assert_int_equal(vm->debug_exit, 0xf4);
	assert_false(vm->autostart);
	vm = &cfg.vms[1];
	assert_int_equal(vm->nr_modules, 2);
	assert_string_equal(vm->modules[0], "one two");
	assert_string_equal(vm->modules[1], "sub/three");
	assert_int_equal(vm->modules_line, 27);
	assert_int_equal(vm->vcpus, 1);
}

static void line_ends_of_windows_and_a_bom_are_accepted(void **state)
{
	assert_good("\xef\xbb\xbf[vm a]\r\nkernel = k\r\ncmdline = x y\r\n");
	assert_string_equal(cfg.vms[0].kernel, "k");
	assert_string_equal(cfg.vms[0].cmdline, "x y");
}

static void any_bytes_may_stand_in_comments(void **state)
{
	assert_good("# caf\xc3\xa9 \x01\n[vm a]\nkernel = k\n");
}

static void sizes_have_units_and_limits(void **state)
{
	assert_int_equal(vm_with("memory = 16M")->memory, 16 * MiB);
	assert_int_equal(vm_with("memory = 18m")->memory, 18 * MiB);
	assert_int_equal(vm_with("memory = 32768K")->memory, 32 * MiB);
	assert_int_equal(vm_with("memory = 33554432")->memory, 32 * MiB);
	assert_int_equal(vm_with("memory = 0x4000000")->memory, 64 * MiB);
	assert_int_equal(vm_with("memory = 1024G")->memory, 1024 * GiB);
}

static void affinity_takes_numbers_ranges_and_all(void **state)
{
	assert_int_equal(vm_with("affinity = 0")->affinity[0], 1);
	assert_int_equal(vm_with("affinity = 5-5")->affinity[0], 0x20);
	assert_int_equal(vm_with("affinity = 63-64")->affinity[0], 1ull << 63);
	assert_int_equal(cfg.vms[0].affinity[1], 1);
	assert_int_equal(vm_with("affinity = 255")->affinity[3], 1ull << 63);
	assert_int_equal(vm_with("affinity = 0 - 3 , 2")->affinity[0], 0xf);
	assert_int_equal(vm_with("affinity = all")->affinity[3], ~0ull);
	assert_int_equal(vm_with("affinity = 0-255")->affinity[2], ~0ull);
}

static void pv_takes_all_none_and_lists(void **state)
{
	assert_int_equal(vm_with("pv = all")->pv, 0x7f);
	assert_int_equal(vm_with("pv = none")->pv, 0);
	assert_int_equal(vm_with("pv = poll,ipi")->pv, CFG_PV_POLL | CFG_PV_IPI);
}

static void the_longest_values_fit(void **state)
{
	char line[2048], text[CFG_CMDLINE_MAX];

	memset(text, 'x', sizeof(text));
	snprintf(line, sizeof(line), "cmdline = %.*s", CFG_CMDLINE_MAX - 1, text);
	assert_int_equal(strlen(vm_with(line)->cmdline), CFG_CMDLINE_MAX - 1);
	snprintf(line, sizeof(line), "initrd = %.*s", CFG_PATH_MAX - 1, text);
	assert_int_equal(strlen(vm_with(line)->initrd), CFG_PATH_MAX - 1);
	snprintf(line, sizeof(line), "[vm %.*s]\nkernel=k", CFG_NAME_MAX - 1, text);
	assert_good(line);
	assert_int_equal(strlen(cfg.vms[0].name), CFG_NAME_MAX - 1);
	assert_string_equal(vm_with("cmdline =")->cmdline, "");
	assert_string_equal(vm_with("cmdline = a\tb=c = d")->cmdline, "a\tb=c = d");
}

static void max_vcpus_follows_vcpus(void **state)
{
	assert_int_equal(vm_with("vcpus = 256")->max_vcpus, 256);
	assert_int_equal(vm_with("max_vcpus = 7")->max_vcpus, 7);
	assert_int_equal(vm_with("max_vcpus = 8\nvcpus = 4")->max_vcpus, 8);
}

/* --- what is refused, and with which words --- */

static void numbers_out_of_range(void **state)
{
	assert_vm_refuses("vcpus = 0", "vcpus: \"0\" is out of range; 1 to 256 are possible");
	assert_vm_refuses("vcpus = 257", "vcpus: \"257\" is out of range; 1 to 256 are possible");
	assert_vm_refuses("vcpus = 18446744073709551617",
			  "vcpus: \"18446744073709551617\" is out of range; 1 to 256 are possible");
	assert_vm_refuses("weight = 1", "weight: \"1\" is out of range; 2 to 262144 are possible");
	assert_vm_refuses("debug_exit = 0x10000",
			  "debug_exit: \"0x10000\" is out of range; 1 to 65535 are possible");
	assert_int_equal(cfg.vms[0].vcpus, 1);
}

static void what_is_no_number(void **state)
{
	assert_vm_refuses("vcpus = four", "vcpus: \"four\" is no number; 1 to 256 are possible");
	assert_vm_refuses("vcpus = -1", "vcpus: \"-1\" is no number; 1 to 256 are possible");
	assert_vm_refuses("vcpus = 0x", "vcpus: \"0x\" is no number; 1 to 256 are possible");
	assert_vm_refuses("vcpus = 4 # four",
			  "vcpus: \"4 # four\" is no number; 1 to 256 are possible");
	assert_vm_refuses("vcpus =", "vcpus: has no value; 1 to 256 are possible");
}

static void sizes_that_are_none(void **state)
{
#define POSSIBLE "; 16M to 1024G in steps of 2M (K, M or G) are possible"
	assert_vm_refuses("memory = 14M", "memory: \"14M\" is out of range" POSSIBLE);
	assert_vm_refuses("memory = 17M", "memory: \"17M\" is no multiple of 2M" POSSIBLE);
	assert_vm_refuses("memory = 1025G", "memory: \"1025G\" is out of range" POSSIBLE);
	assert_vm_refuses("memory = 17179869184G",
			  "memory: \"17179869184G\" is out of range" POSSIBLE);
	assert_vm_refuses("memory = M", "memory: \"M\" is no size" POSSIBLE);
	assert_vm_refuses("memory = 128MB", "memory: \"128MB\" is no size" POSSIBLE);
	assert_vm_refuses("memory = 1.5G", "memory: \"1.5G\" is no size" POSSIBLE);
#undef POSSIBLE
}

static void lists_of_cpus_that_are_none(void **state)
{
#define POSSIBLE "; all, or numbers and ranges up to 255 such as 0-3,6 are possible"
	assert_vm_refuses("affinity = 3-1",
			  "affinity: \"3-1\" has a range that runs backwards" POSSIBLE);
	assert_vm_refuses("affinity = 1,", "affinity: \"1,\" is no list of CPUs" POSSIBLE);
	assert_vm_refuses("affinity = -3", "affinity: \"-3\" is no list of CPUs" POSSIBLE);
	assert_vm_refuses("affinity = 3-", "affinity: \"3-\" is no list of CPUs" POSSIBLE);
	assert_vm_refuses("affinity = 1-2-3", "affinity: \"1-2-3\" is no list of CPUs" POSSIBLE);
	assert_vm_refuses("affinity = 0-256",
			  "affinity: \"0-256\" names a CPU that is out of range" POSSIBLE);
	assert_int_equal(cfg.vms[0].affinity[0], ~0ull);
#undef POSSIBLE
}

static void words_that_are_unknown(void **state)
{
	assert_vm_refuses("apic = X2APIC",
			  "apic: \"X2APIC\" is no known word; x2apic or xapic are possible");
	assert_vm_refuses("autostart = maybe",
			  "autostart: \"maybe\" is neither yes nor no; yes or no are possible");
	assert_vm_refuses("pv = clock, stael",
			  "pv: \"stael\" is no paravirtual feature; all, none or a list of clock, "
			  "steal, unhalt, yield, ipi, tlbflush, poll are possible");
	assert_reports("[hypervisor]\nconsole = com3\n",
		       "vlag.cfg:2: [hypervisor] console: \"com3\" is no known word; none, com1 or "
		       "com2 are possible\n");
	assert_int_equal(cfg.console, CFG_PORT_COM1);
}

static void values_that_are_too_long(void **state)
{
	char line[2048];

	memset(line, 'x', sizeof(line));
	memcpy(line, "cmdline = ", 10);
	line[10 + CFG_CMDLINE_MAX] = 0;
	assert_vm_refuses(line, "cmdline: 1024 characters are too many; at most 1023 are possible");
	memcpy(line, "initrd =  ", 10);
	line[10 + CFG_PATH_MAX] = 0;
	assert_vm_refuses(line, "initrd: 128 characters are too many; at most 127 are possible");
	assert_string_equal(cfg.vms[0].initrd, "");
}

static void lists_of_modules_that_are_none(void **state)
{
	assert_vm_refuses("modules = a,,b",
			  "modules: \"a,,b\" has an empty name in it; 1 to 8 file "
			  "names separated by commas are possible");
	assert_vm_refuses("modules = a,b,c,d,e,f,g,h,i",
			  "modules: \"a,b,c,d,e,f,g,h,i\" lists too many files; 1 to 8 file names "
			  "separated by commas are possible");
	assert_int_equal(cfg.vms[0].nr_modules, 0);
	assert_int_equal(vm_with("modules = a,b,c,d,e,f,g,h")->nr_modules, 8);
}

static void unknown_keys_get_a_suggestion(void **state)
{
	assert_vm_refuses("vcpu = 4", "vcpu: is no known key; did you mean \"vcpus\"?");
	assert_vm_refuses("memroy = 64M", "memroy: is no known key; did you mean \"memory\"?");
	assert_vm_refuses("disk = x",
			  "disk: is no known key; possible are kernel initrd modules cmdline vcpus "
			  "max_vcpus memory weight affinity apic pv debug_exit on_reset "
			  "autostart");
	assert_reports("[hypervisor]\nkernel = k\n",
		       "vlag.cfg:2: [hypervisor] kernel: is no known key; possible are console "
		       "control pcpus when_done\n");
}

static void keys_given_twice(void **state)
{
	assert_vm_refuses("kernel = k2", "kernel: is set already (line 2)");
	assert_string_equal(cfg.vms[0].kernel, "k");
	assert_good("[vm a]\nkernel = k\nvcpus = 1\n[vm b]\nkernel = k\nvcpus = 2\n");
	assert_reports("[hypervisor]\npcpus = 1\n[vm a]\nkernel = k\n[hypervisor]\npcpus = 2\n",
		       "vlag.cfg:5: [hypervisor] exists already (line 1); put its keys there\n"
		       "vlag.cfg:6: [hypervisor] pcpus: is set already (line 2)\n");
	assert_int_equal(cfg.pcpus, 1);
	assert_false(cfg.vms[0].bad);
}

static void a_kernel_is_required(void **state)
{
	assert_reports(
	    "[vm a]\n[vm b]\nkernel = k\n[vm c]\nkernel =\n",
	    "vlag.cfg:1: [vm a] kernel: is missing; name a bzImage or a Multiboot file\n"
	    "vlag.cfg:5: [vm c] kernel: has no value; 1 to 127 characters are possible\n");
	assert_true(cfg.vms[0].bad);
	assert_false(cfg.vms[1].bad);
	assert_true(cfg.vms[2].bad);
}

static void initrd_and_modules_exclude_each_other(void **state)
{
	assert_reports("[vm a]\nkernel = k\ninitrd = i\nmodules = m\n",
		       "vlag.cfg:4: [vm a] modules: does not go together with initrd (line 3); a "
		       "Linux kernel takes an initrd, a Multiboot kernel takes modules\n");
	assert_reports("[vm a]\nkernel = k\nmodules = m\ninitrd = i\n",
		       "vlag.cfg:4: [vm a] initrd: does not go together with modules (line 3); a "
		       "Linux kernel takes an initrd, a Multiboot kernel takes modules\n");
	assert_true(cfg.vms[0].bad);
}

static void fewer_max_vcpus_than_vcpus(void **state)
{
	assert_reports("[vm a]\nkernel = k\nmax_vcpus = 2\nvcpus = 3\n",
		       "vlag.cfg:3: [vm a] max_vcpus: 2 is less than vcpus, which is 3\n");
	assert_true(cfg.vms[0].bad);
	assert_int_equal(cfg.vms[0].max_vcpus, 3);
}

static void console_and_control_on_one_port(void **state)
{
	assert_reports("[hypervisor]\ncontrol = com1\n",
		       "vlag.cfg:2: [hypervisor] control: the console has the same port; choose "
		       "another one for one of them\n");
	assert_int_equal(cfg.control, CFG_PORT_NONE);
	assert_good("[hypervisor]\ncontrol = none\nconsole = none\n");
	assert_good("[hypervisor]\ncontrol = com1\nconsole = com2\n");
}

static void names_of_vms(void **state)
{
	assert_reports("[vm a]\nkernel = k\n[vm a]\nkernel = l\n",
		       "vlag.cfg:3: [vm a] exists already (line 1); give each VM its own name\n");
	assert_int_equal(cfg.nr_vms, 1);
	assert_string_equal(cfg.vms[0].kernel, "k");
	assert_false(cfg.vms[0].bad);
	assert_reports("[vm]\nkernel = k\n", "vlag.cfg:1: [vm] needs a name; write [vm NAME]\n");
	assert_int_equal(cfg.nr_vms, 0);
	assert_reports(
	    "[vm a b]\nkernel = k\n",
	    "vlag.cfg:1: [vm a b] is no possible name; 1 to 31 letters, digits, \"_\" and "
	    "\"-\" are\n");
	assert_reports(
	    "[vm aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n",
	    "vlag.cfg:1: [vm aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa] is no possible name; 1 to "
	    "31 letters, digits, \"_\" and \"-\" are\n");
}

static void unknown_sections_are_skipped_whole(void **state)
{
	assert_reports("[foo]\nbar = 1\nbaz\n[vm a]\nkernel = k\n",
		       "vlag.cfg:1: [foo] is no known section; possible are [hypervisor], [knobs] "
		       "and [vm NAME]\n");
	assert_false(cfg.vms[0].bad);
	assert_reports("[vm a\nkernel = k\n", "vlag.cfg:1: \"[vm a\" lacks the closing \"]\"\n");
	assert_reports("[vma]\n", "vlag.cfg:1: [vma] is no known section; possible are "
				  "[hypervisor], [knobs] and [vm NAME]\n");
	assert_reports("[vm a] # mine\nkernel = k\n",
		       "vlag.cfg:1: \"[vm a] # mine\" has something after the closing \"]\"\n");
	assert_reports("[\n", "vlag.cfg:1: \"[\" lacks the closing \"]\"\n");
}

static void a_bad_header_does_not_harm_the_vm_before_it(void **state)
{
	assert_int_equal(parse("[vm a]\nkernel = k\n[vm \x07]\nvcpus = 0\n"), 1);
	assert_int_equal(cfg.nr_vms, 1);
	assert_false(cfg.vms[0].bad);
}

static void lines_without_section_or_sense(void **state)
{
	assert_reports("vcpus = 1\nmore = 2\n",
		       "vlag.cfg:1: \"vcpus = 1\" stands before the first section; begin with "
		       "[hypervisor], [knobs] or [vm NAME]\n");
	assert_vm_refuses("vcpus 4", ": \"vcpus 4\" has no \"=\"; write KEY = VALUE");
	assert_vm_refuses("= 4", ": there is no key before the \"=\"; write KEY = VALUE");
}

static void bytes_that_are_not_printable(void **state)
{
	static const char nul[] = "[vm a]\nkernel = k\0x\n";

	parse_bytes(nul, sizeof(nul) - 1);
	assert_non_null(strstr(report, "vlag.cfg:2: [vm a]: column 11 holds the byte 0x00; only "
				       "printable ASCII is possible outside comments\n"));
	assert_true(cfg.vms[0].bad);
	assert_int_equal(parse("[hypervisor]\npcpus = \x7f\n"), 1);
	assert_int_equal(parse("[hypervisor]\npcpus = 1\xc2\xa0\n"), 1);
	assert_int_equal(cfg.pcpus, 0);
}

static void utf_16_is_recognised(void **state)
{
	static const char text[] = "\xff\xfe[\0v\0m\0";

	parse_bytes(text, sizeof(text));
	assert_string_equal(report,
			    "vlag.cfg:1: the file is UTF-16; save it as plain ASCII or UTF-8\n");
}

static void knobs_are_collected_and_checked_for_form(void **state)
{
	char text[8192] = "[knobs]\n";

	assert_reports(
	    "[knobs]\na = 1\na = 2\nb =\nc-d = 1\n",
	    "vlag.cfg:3: [knobs] a: is set already (line 2)\n"
	    "vlag.cfg:4: [knobs] b: a value of 1 to 63 characters is needed\n"
	    "vlag.cfg:5: [knobs] c-d: is no possible name of a knob; letters, digits and "
	    "\"_\" are\n");
	assert_int_equal(cfg.nr_knobs, 1);
	for (u32 i = 0; i <= CFG_MAX_KNOBS; i++)
		sprintf(text + strlen(text), "k%u = 1\n", i);
	assert_reports(text, "vlag.cfg:66: [knobs] k64: is one too many; at most 64 knobs are "
			     "possible\n");
	assert_int_equal(cfg.nr_knobs, CFG_MAX_KNOBS);
}

static void too_many_vms(void **state)
{
	char text[8192] = "";

	for (u32 i = 0; i <= CFG_MAX_VMS; i++)
		sprintf(text + strlen(text), "[vm v%u]\nkernel = k\n", i);
	assert_reports(text,
		       "vlag.cfg:65: [vm v32] is one too many; at most 32 VMs are possible\n");
	assert_int_equal(cfg.nr_vms, CFG_MAX_VMS);
	assert_false(cfg.vms[31].bad);
}

static void a_file_of_nothing_but_errors_is_given_up(void **state)
{
	char text[8192] = "[vm a]\nkernel = k\n";

	for (u32 i = 0; i < 100; i++)
		strcat(text, "nonsense\n");
	parse(text);
	assert_int_equal(nr_reported, 51);
	assert_non_null(strstr(report, "too many errors; the rest of the file is not read\n"));
}

static void long_words_are_cut_in_messages(void **state)
{
	char text[4096];

	memset(text, 'x', sizeof(text));
	memcpy(text, "[vm a]\nkernel=k\n", 16);
	parse_bytes(text, sizeof(text));
	assert_int_equal(nr_reported, 1);
	assert_true(strlen(report) < 200);
	text[2000] = '=';
	parse_bytes(text, sizeof(text));
	assert_int_equal(nr_reported, 1);
	assert_true(strlen(report) < 300);
}

/* --- helpers and documentation --- */

static void distance_counts_edits(void **state)
{
	assert_int_equal(text_distance(text_of("vcpus"), "vcpus"), 0);
	assert_int_equal(text_distance(text_of("vcpu"), "vcpus"), 1);
	assert_int_equal(text_distance(text_of("kitten"), "sitting"), 3);
	assert_int_equal(text_distance(text_of(""), "abc"), 3);
	assert_int_equal(text_distance(text_of("abc"), ""), 3);
	assert_true(text_distance(text_of("aaaaaaaaaaaaaaaaaaaaaaaaa"), "a") > 24);
}

static void the_defaults_in_the_help_are_the_defaults(void **state)
{
	/* Writing each documented default into the file must change nothing. */
	struct cfg_key_help help;
	struct config defaults;
	char hypervisor[1024] = "[hypervisor]\n", vm[1024] = "[vm a]\nkernel = k\n", all[2048];

	assert_good("[vm a]\nkernel = k\n");
	defaults = cfg;
	for (u32 i = 0; config_key_help(i, &help); i++) {
		char *section = strcmp(help.section, "hypervisor") == 0 ? hypervisor : vm;

		if (!help.def[0] || strcmp(help.def, "as vcpus") == 0 ||
		    strcmp(help.name, "debug_exit") == 0)
			continue;
		sprintf(section + strlen(section), "%s = %s\n", help.name, help.def);
	}
	snprintf(all, sizeof(all), "%s%s", vm, hypervisor);
	assert_good(all);
	cfg.vms[0].vcpus_line = cfg.vms[0].memory_line = cfg.vms[0].affinity_line = 0;
	assert_memory_equal(&cfg, &defaults, sizeof(cfg));
}

static void the_documentation_is_current(void **state)
{
	char *want = NULL, *have;
	size_t size = 0, n;
	FILE *f = open_memstream(&want, &size);

	config_doc_write(f);
	fclose(f);
	f = fopen("docs/config.md", "r"); /* tests run from the root */
	assert_non_null(f);
	have = calloc(1, size + 2);
	n = fread(have, 1, size + 1, f);
	fclose(f);
	if (n != size || memcmp(have, want, size) != 0)
		fail_msg("docs/config.md is not what hv/config says; run `make docs`");
	free(have);
	free(want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_empty_file_gives_the_defaults),
	    cmocka_unit_test(a_vm_with_a_kernel_has_the_defaults),
	    cmocka_unit_test(everything_can_be_set),
	    cmocka_unit_test(line_ends_of_windows_and_a_bom_are_accepted),
	    cmocka_unit_test(any_bytes_may_stand_in_comments),
	    cmocka_unit_test(sizes_have_units_and_limits),
	    cmocka_unit_test(affinity_takes_numbers_ranges_and_all),
	    cmocka_unit_test(pv_takes_all_none_and_lists),
	    cmocka_unit_test(the_longest_values_fit),
	    cmocka_unit_test(max_vcpus_follows_vcpus),
	    cmocka_unit_test(numbers_out_of_range),
	    cmocka_unit_test(what_is_no_number),
	    cmocka_unit_test(sizes_that_are_none),
	    cmocka_unit_test(lists_of_cpus_that_are_none),
	    cmocka_unit_test(words_that_are_unknown),
	    cmocka_unit_test(values_that_are_too_long),
	    cmocka_unit_test(lists_of_modules_that_are_none),
	    cmocka_unit_test(unknown_keys_get_a_suggestion),
	    cmocka_unit_test(keys_given_twice),
	    cmocka_unit_test(a_kernel_is_required),
	    cmocka_unit_test(initrd_and_modules_exclude_each_other),
	    cmocka_unit_test(fewer_max_vcpus_than_vcpus),
	    cmocka_unit_test(console_and_control_on_one_port),
	    cmocka_unit_test(names_of_vms),
	    cmocka_unit_test(unknown_sections_are_skipped_whole),
	    cmocka_unit_test(a_bad_header_does_not_harm_the_vm_before_it),
	    cmocka_unit_test(lines_without_section_or_sense),
	    cmocka_unit_test(bytes_that_are_not_printable),
	    cmocka_unit_test(utf_16_is_recognised),
	    cmocka_unit_test(knobs_are_collected_and_checked_for_form),
	    cmocka_unit_test(too_many_vms),
	    cmocka_unit_test(a_file_of_nothing_but_errors_is_given_up),
	    cmocka_unit_test(long_words_are_cut_in_messages),
	    cmocka_unit_test(distance_counts_edits),
	    cmocka_unit_test(the_defaults_in_the_help_are_the_defaults),
	    cmocka_unit_test(the_documentation_is_current),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
