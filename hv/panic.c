/* SPDX-License-Identifier: BSD-2-Clause */
/* Panic: one CPU prints registers, backtrace with symbols, the last exits and the last of the
 * trace of its pCPU; an NMI
 * stops the others. */
#include "hv/panic.h"

#include <elf.h>

#include "hv/apic/lapic.h"
#include "hv/console.h"
#include "hv/image.h"
#include "hv/lib/bug.h"
#include "hv/main.h"
#include "hv/pcpu.h"
#include "hv/tracepoint.h"
#include "hv/vm/vcpu.h"
#include "hv/vmx/exit.h"
#include "hv/x86/cpu.h"

#define MAX_FRAMES 24

static u64 image_base;
static const Elf64_Sym *symbols;
static u64 nr_symbols;
static const char *names;
static u64 names_size;
static u32 panicking; /* 1 + number of the pCPU that panics */

void panic_init(const struct boot_info *info)
{
	image_base = info->image_base;
	symbols = (const Elf64_Sym *)info->symtab;
	nr_symbols = info->symtab_size / sizeof(Elf64_Sym);
	names = (const char *)info->strtab;
	names_size = info->strtab_size;
}

/* The symbol that holds @address, NULL outside of the image. */
static const Elf64_Sym *symbol_of(u64 address)
{
	u64 link = address - image_base;
	const Elf64_Sym *best = NULL;

	if (link >= (u64)(__image_end - __image_start))
		return NULL;
	for (u64 i = 0; i < nr_symbols; i++) {
		const Elf64_Sym *s = &symbols[i];

		if (s->st_value <= link && s->st_name < names_size && s->st_shndx != SHN_UNDEF &&
		    ELF64_ST_TYPE(s->st_info) != STT_SECTION &&
		    ELF64_ST_TYPE(s->st_info) != STT_FILE &&
		    (!best || s->st_value >= best->st_value))
			best = s;
	}
	return best;
}

static void print_address(struct out *out, const char *mark, u64 rip)
{
	const Elf64_Sym *s = symbol_of(rip);

	if (s)
		out_print(out, "%s %016lx %s+0x%lx\n", mark, rip, names + s->st_name,
			  rip - image_base - s->st_value);
	else
		out_print(out, "%s %016lx\n", mark, rip);
}

/* What the call before return address @at calls: its address, 1 if it is an indirect call, 0 if
 * there is none. */
static u64 call_target(u64 at)
{
	const u8 *p = (const u8 *)at;

	if (at < (u64)__text_start + 8 || at >= (u64)__text_end)
		return 0;
	if (p[-5] == 0xe8)
		return at + *(const s32 *)(p - 4);
	for (int n = 2; n <= 7; n++) {
		if (p[-n] == 0xff && (p[-n + 1] >> 3 & 7) == 2)
			return 1;
	}
	return 0;
}

/*
 * Frame pointers would cost three instructions in each function of the exit path. So the stack is
 * searched for what looks like return addresses. One whose call leads into the function below it is
 * sure; the others are marked with "?": stale, or the way went through a tail call.
 */
static void print_backtrace(struct out *out, u64 rip, u64 rsp)
{
	const struct pcpu *p = this_pcpu();
	const Elf64_Sym *below = symbol_of(rip);
	u64 top = ALIGN_UP(rsp + 1, PAGE_SIZE);
	int n = 0;

	if (rsp < p->stack_top && rsp >= p->stack_top - PCPU_STACK_SIZE)
		top = p->stack_top;
	else if (rsp < (u64)(boot_stack + PCPU_STACK_SIZE) && rsp >= (u64)boot_stack)
		top = (u64)(boot_stack + PCPU_STACK_SIZE);
	out_print(out, "backtrace (image at 0x%lx):\n", image_base);
	print_address(out, " ", rip);
	for (u64 at = ALIGN_UP(rsp, 8ul); at < top && n < MAX_FRAMES; at += 8) {
		u64 word = *(const u64 *)at, target = call_target(word);
		bool sure = target == 1 || (target && symbol_of(target) == below);

		if (!target)
			continue;
		print_address(out, sure ? " " : "?", word);
		if (sure)
			below = symbol_of(word);
		n++;
	}
}

static void print_last_exits(struct out *out, const struct pcpu *p)
{
	const struct vcpu *v = p->loaded;

	if (!v)
		return;
	out_print(out, "vCPU %s/%u, %lu exits, the last (newest first):", v->vm->name, v->id,
		  v->nr_exits);
	for (u64 i = 1; i <= LAST_EXITS && i <= v->nr_exits; i++)
		out_print(out, " %s",
			  exit_reason_name(v->last_exits[(v->nr_exits - i) % LAST_EXITS]));
	out_print(out, "\n");
}

/* Stops the others and says who panics; a second panic (a fault in here, or a second CPU's) just
 * halts. */
static struct out *panic_begin(void)
{
	struct pcpu *p = this_pcpu();
	u32 none = 0;

	if (!__atomic_compare_exchange_n(&panicking, &none, p->id + 1, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		hlt_forever();
	for (u32 i = 0; i < nr_pcpus; i++) {
		if (pcpus[i] != p)
			lapic_send_nmi(pcpus[i]->apic_id);
	}
	return console_panic_out();
}

static __noreturn void panic_end(struct out *out, u64 rip, u64 rsp)
{
	print_backtrace(out, rip, rsp);
	print_last_exits(out, this_pcpu());
	trace_show_last(out, this_pcpu());
	out_print(out, "vlag: fatal: panic, please report the lines above\n");
	console_drain();
	machine_poweroff();
}

void panic_trap(const struct trap_frame *f)
{
	struct out *out = panic_begin();

	out_print(out, "\nvlag: panic on pCPU %u: exception %lu, error code 0x%lx, CR2 %016lx\n",
		  this_pcpu()->id, f->vector, f->error, read_cr2());
	out_print(out, "RIP %016lx RSP %016lx RFLAGS %08lx CS %04lx SS %04lx\n", f->rip, f->rsp,
		  f->rflags, f->cs, f->ss);
	out_print(out, "RAX %016lx RBX %016lx RCX %016lx RDX %016lx\n", f->rax, f->rbx, f->rcx,
		  f->rdx);
	out_print(out, "RSI %016lx RDI %016lx RBP %016lx R8  %016lx\n", f->rsi, f->rdi, f->rbp,
		  f->r8);
	out_print(out, "R9  %016lx R10 %016lx R11 %016lx R12 %016lx\n", f->r9, f->r10, f->r11,
		  f->r12);
	out_print(out, "R13 %016lx R14 %016lx R15 %016lx\n", f->r13, f->r14, f->r15);
	out_print(out, "CR0 %016lx CR3 %016lx CR4 %016lx EFER %04lx\n", read_cr0(), read_cr3(),
		  read_cr4(), rdmsr(MSR_EFER));
	panic_end(out, f->rip, f->rsp);
}

void bug(const char *file, int line, const char *what)
{
	struct out *out = panic_begin();

	out_print(out, "\nvlag: panic on pCPU %u: %s:%d: %s\n", this_pcpu()->id, file, line, what);
	panic_end(out, (u64)__builtin_return_address(0), (u64)__builtin_frame_address(0));
}

void panic_nmi(const struct trap_frame *f)
{
	if (READ_ONCE(panicking))
		hlt_forever();
}
