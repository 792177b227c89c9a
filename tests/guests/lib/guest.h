/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tiny guests' library. A guest is one file NAME.c with guest_main(); it runs in long mode, one
 * to one mapping of 4 GiB, interrupts off, APIC enabled in the mode that it was found in, every
 * exception a failure. It ends with a line `guest: NAME: PASS` (or FAIL: why, SKIP: why) on COM1
 * and a status (0, 1, 0) to the debug-exit port 0xf4. Every guest takes the argument x2apic=0|1,
 * the APIC mode to change to before guest_main().
 */
#ifndef VLAG_TESTS_GUEST_H
#define VLAG_TESTS_GUEST_H

#include "hv/dev/ports.h"
#include "hv/lib/types.h"
#include "hv/vm/multiboot.h"

#define PORT_DEBUG_EXIT 0xf4
#define TRAMPOLINE 0x8000
#define STACK_SIZE 8192
#define MAX_CPUS 256
#define COM1 PORT_COM1

/* --- the guest --- */

int guest_main(void);

/* Ends the guest: prints the line, writes the status. test_pass() is what a return of 0 does. */
__noreturn void test_exit(u32 status);
__noreturn void test_pass(void);
__noreturn void test_fail(const char *fmt, ...) __printf(1, 2);
__noreturn void test_skip(const char *fmt, ...) __printf(1, 2);

#define CHECK(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond))                                                                       \
			test_fail(__VA_ARGS__);                                                    \
	} while (0)

/* --- console.c: COM1, polled --- */

int printf(const char *fmt, ...) __printf(1, 2);
void console_init(void);
void console_write(const char *s, size_t len);

/* --- boot.c: what the loader passed --- */

struct boot_regs {
	u32 eax, ebx, cr0, cr4, eflags, cs, ss;
};
extern const struct boot_regs boot_regs;

const struct mb_info *multiboot_info(void);
const char *cmdline(void);
/* `key=number` on the command line (0x for hexadecimal), or @otherwise. */
u64 arg(const char *key, u64 otherwise);

/* --- acpi.c: the firmware's tables, found through the RSDP --- */

/* Table with @signature after checking its sum, or NULL. */
const u8 *acpi_find(const char *signature);
u32 acpi_u32(const u8 *table, u32 offset);
/* Fills @ids with the APIC ids of all enabled CPUs in the MADT; returns how many. */
u32 acpi_cpus(u32 *ids, u32 max);
/* I/O port of the PM timer by the FADT, 0 if there is none. */
u16 acpi_pm_timer(void);

/* --- trap.c: exceptions and interrupts --- */

struct frame {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax;
	u64 vector, error, rip, cs, rflags, rsp, ss;
};

typedef void (*irq_handler)(struct frame *frame);

void idt_init(void); /* once */
void idt_load(void); /* on each CPU */
/* C handler for @vector >= 32; it sends the EOI itself. */
void irq_set(u8 vector, irq_handler handler);
/* Assembly entry for @vector, as the IDT has it (ends with IRETQ). */
void gate_set(u8 vector, void (*entry)(void));

/* Each returns -1, or the vector of the exception that the instruction raised. */
int rdmsr_safe(u32 msr, u64 *value);
int wrmsr_safe(u32 msr, u64 value);
int ud2_safe(void);

/* --- crt.asm --- */

/* Runs @fn at CPL 3 with interrupts off, for ever: there is no way back, and an exception in it is
 * a triple fault. */
__noreturn void user_enter(void (*fn)(void));

/* --- apic.c --- */

extern bool x2apic; /* mode of every CPU's APIC */

enum {
	APIC_ID = 0x20,
	APIC_VERSION = 0x30,
	APIC_TPR = 0x80,
	APIC_PPR = 0xa0,
	APIC_EOI = 0xb0,
	APIC_LDR = 0xd0,
	APIC_DFR = 0xe0,
	APIC_SVR = 0xf0,
	APIC_ISR = 0x100,
	APIC_TMR = 0x180,
	APIC_IRR = 0x200,
	APIC_ESR = 0x280,
	APIC_ICR = 0x300,
	APIC_ICR2 = 0x310,
	APIC_LVT_TIMER = 0x320,
	APIC_LVT_LINT0 = 0x350,
	APIC_LVT_LINT1 = 0x360,
	APIC_LVT_ERROR = 0x370,
	APIC_TMICT = 0x380,
	APIC_TMCCT = 0x390,
	APIC_TDCR = 0x3e0,
	APIC_SELF_IPI = 0x3f0, /* x2APIC only */
};

#define APIC_MSR(reg) (0x800 + ((reg) >> 4))
#define APIC_MMIO 0xfee00000ull
#define MSR_APIC_BASE 0x1b
#define APIC_BASE_EXTD BIT(10)
#define APIC_BASE_EN BIT(11)
#define MSR_TSC_DEADLINE 0x6e0
#define LVT_MASKED BIT(16)
#define LVT_PERIODIC BIT(17)
#define LVT_DEADLINE BIT(18)
#define ICR_INIT 0x4500
#define ICR_STARTUP 0x4600
#define ICR_NMI 0x4400
#define ICR_FIXED 0x4000
#define ICR_LOWEST 0x100
#define ICR_LOGICAL 0x800
#define ICR_SELF 0x40000
#define ICR_ALL 0x80000
#define ICR_OTHERS 0xc0000
#define ICR_BUSY BIT(12)

void apic_init(void); /* this CPU, in the mode that it is in; sets x2apic on the boot CPU */
/* Goes to x2APIC mode (from xAPIC), or back through "disabled"; this CPU only. */
void apic_set_mode(bool x2);
bool apic_has_x2apic(void);
bool apic_has_deadline(void);
u32 apic_read(u32 reg);
void apic_write(u32 reg, u32 value);
/* Is @vector set in the bitmap that begins at @reg: APIC_ISR, APIC_TMR or APIC_IRR? */
bool apic_bit(u32 reg, u8 vector);
void apic_eoi(void);
u32 apic_id(void);
void apic_icr(u32 dest, u32 low); /* waits for the delivery status in xAPIC mode */
void apic_self_ipi(u8 vector);

/* --- ioapic.c --- */

/* Edge-triggered, active high, to the APIC with @dest; @vector 0 masks the pin. */
void ioapic_route(u32 pin, u8 vector, u32 dest);
u32 ioapic_read(u32 reg);
void ioapic_write(u32 reg, u32 value);
/* Masks both 8259s. */
void pic_mask(void);

/* --- smp.c --- */

/* Starts every CPU in the MADT; returns the number of CPUs. A CPU that does not come is a failure.
 */
u32 smp_start(void);
/* Stops a CPU with INIT, whatever it does, and starts it again. Its job is given up. */
void smp_restart(u32 cpu);
/* If set: what a CPU other than 0 calls as soon as it has started, its APIC as it found it. */
extern void (*smp_on_start)(void);
u32 smp_cpu(void); /* number of this CPU, 0 for the boot CPU */
u32 smp_apic_id(u32 cpu);
/* Runs @job(@arg) on @cpu, which must be idle and is woken by an IPI; interrupts are off when @job
 * begins. smp_wait() returns when it is done. */
void smp_run(u32 cpu, void (*job)(u64 arg), u64 arg);
void smp_wait(u32 cpu);

/* --- time.c --- */

/* Starts PIT channel 2 for @ticks (1..65535) of 1,193,182 Hz; true once they are over. */
void pit_start(u16 ticks);
bool pit_done(void);
u64 tsc_hz(void); /* measured once against the PIT over 10 ms */
void delay_ticks(u64 tsc_ticks);
/* Spins until *@count is @value. More, or not as much for a long time, is a failure that names
 * @what. */
void wait_count(const u32 *count, u32 value, const char *what);

/* --- instructions --- */

#define barrier() __asm__ volatile("" ::: "memory")

static inline void pause(void)
{
	__asm__ volatile("pause" ::: "memory");
}

static inline u64 read_cr8(void)
{
	u64 v;

	__asm__ volatile("mov %%cr8, %0" : "=r"(v)::"memory");
	return v;
}

static inline void write_cr8(u64 v)
{
	__asm__ volatile("mov %0, %%cr8" ::"r"(v) : "memory");
}

static inline void cli(void)
{
	__asm__ volatile("cli" ::: "memory");
}

static inline void sti(void)
{
	__asm__ volatile("sti" ::: "memory");
}

/* Interrupts on, and asleep until one comes; none can slip in between. */
static inline void sti_hlt(void)
{
	__asm__ volatile("sti; hlt" ::: "memory");
}

static inline u64 rdtsc(void)
{
	u32 lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi)::"memory");
	return lo | (u64)hi << 32;
}

static inline u64 rdmsr(u32 msr)
{
	u32 lo, hi;

	__asm__ volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr) : "memory");
	return lo | (u64)hi << 32;
}

static inline void wrmsr(u32 msr, u64 v)
{
	__asm__ volatile("wrmsr" ::"a"((u32)v), "d"((u32)(v >> 32)), "c"(msr) : "memory");
}

static inline void cpuid(u32 leaf, u32 sub, u32 out[4])
{
	__asm__ volatile("cpuid"
			 : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
			 : "a"(leaf), "c"(sub)
			 : "memory");
}

static inline u8 inb(u16 port)
{
	u8 v;

	__asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port) : "memory");
	return v;
}

static inline u16 inw(u16 port)
{
	u16 v;

	__asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port) : "memory");
	return v;
}

static inline u32 inl(u16 port)
{
	u32 v;

	__asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port) : "memory");
	return v;
}

static inline void outb(u16 port, u8 v)
{
	__asm__ volatile("outb %0, %1" ::"a"(v), "Nd"(port) : "memory");
}

static inline void outw(u16 port, u16 v)
{
	__asm__ volatile("outw %0, %1" ::"a"(v), "Nd"(port) : "memory");
}

static inline void outl(u16 port, u32 v)
{
	__asm__ volatile("outl %0, %1" ::"a"(v), "Nd"(port) : "memory");
}

/* The hypervisor's signature leaf, "" where there is none. 13 bytes. */
const char *hypervisor(void);

#endif
