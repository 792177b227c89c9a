/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest's local APIC as a pure device model: registers (xAPIC page and x2APIC MSRs), interrupt
 * acceptance and priorities, IPIs, timer. SDM vol. 3, chapter 11 ("APIC"). No VMX, no clock, no
 *lock: the exit handlers call in with the time, the few things that leave are in vapic_edge.h.
 *
 * Who may do what: a vlapic belongs to the pCPU that runs or holds its vCPU (the "owner"); every
 * function here is for the owner unless it says "anyone". Anyone may post (irr, tmr, events,
 * esr_pending are changed atomically) and may read with READ_ONCE what addressing needs (id, mode,
 *accepts, ldr, dfr, lvt).
 *
 * Time: @now is the guest TSC of this vCPU in ticks. The timer's bus clock is one count per guest
 *TSC tick, divided by the divide configuration. tsc_offset (guest TSC - host TSC) makes one clock
 * for the whole VM of it where vCPUs are compared (the tracker).
 *
 * Entry path of the hypervisor, interrupts off:
 *	if (vlapic_has_work(l)):
 *		events: vlapic_take_startup(), vlapic_take_nmi(), vlapic_extint()
 *		v = vlapic_pending(l);  v >= 0 and injectable: vlapic_accept(l, v, now), inject v
 *		                        v >= 0 and not injectable: interrupt window
 *		                        v < 0: VMCS TPR threshold = vlapic_tpr_threshold(l)
 *	else TPR threshold = 0
 * An accepted vector is in service: an injection that did not complete is repeated from the
 * IDT-vectoring information, not taken from here again.
 */
#ifndef VLAG_APIC_VLAPIC_H
#define VLAG_APIC_VLAPIC_H

#include "hv/lib/types.h"
#include "hv/lib/bits.h"
#include "hv/lib/bug.h"
#include "hv/apic/apic_map.h"
#include "hv/apic/ipi_track.h"

#define VLAPIC_BASE 0xfee00000ull /* the only base; see vlapic_set_base() */
#define VLAPIC_TIMER_NONE UINT64_MAX

#define APIC_BASE_BSP BIT(8)
#define APIC_BASE_EXTD BIT(10)
#define APIC_BASE_EN BIT(11)

/* Register offsets in the xAPIC page; the x2APIC MSR is 0x800 + offset / 16. */
enum vlapic_reg {
	APIC_ID = 0x20,
	APIC_VERSION = 0x30,
	APIC_TPR = 0x80,
	APIC_APR = 0x90,
	APIC_PPR = 0xa0,
	APIC_EOI = 0xb0,
	APIC_RRD = 0xc0,
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
	APIC_LVT_THERMAL = 0x330,
	APIC_LVT_PMC = 0x340,
	APIC_LVT_LINT0 = 0x350,
	APIC_LVT_LINT1 = 0x360,
	APIC_LVT_ERROR = 0x370,
	APIC_TMICT = 0x380,
	APIC_TMCCT = 0x390,
	APIC_TDCR = 0x3e0,
	APIC_SELF_IPI = 0x3f0,
};

/* The bits of the ICR that make no difference to a fixed interrupt. */
#define VLAPIC_ICR_ASSERT (1u << 14)
#define VLAPIC_ICR_LEVEL (1u << 15)

#define X2APIC_MSR(reg) (0x800u + ((reg) >> 4))
#define MSR_X2APIC_EOI X2APIC_MSR(APIC_EOI)
#define MSR_X2APIC_ICR X2APIC_MSR(APIC_ICR)
#define MSR_X2APIC_SELF_IPI X2APIC_MSR(APIC_SELF_IPI)

enum vlapic_lvt {
	VLAPIC_LVT_TIMER,
	VLAPIC_LVT_THERMAL,
	VLAPIC_LVT_PMC,
	VLAPIC_LVT_LINT0,
	VLAPIC_LVT_LINT1,
	VLAPIC_LVT_ERROR,
	VLAPIC_NR_LVT,
};

enum vlapic_mode { VLAPIC_DISABLED, VLAPIC_XAPIC, VLAPIC_X2APIC };

enum vlapic_timer_mode {
	VLAPIC_TIMER_ONESHOT,
	VLAPIC_TIMER_PERIODIC,
	VLAPIC_TIMER_DEADLINE,
	VLAPIC_TIMER_STOPPED, /* the reserved encoding */
};

/* struct vlapic.events: what waits besides the IRR. The low byte is the SIPI's vector. */
#define VLAPIC_EV_SIPI BIT(8)
#define VLAPIC_EV_INIT BIT(9)
#define VLAPIC_EV_NMI BIT(10)
#define VLAPIC_EV_LINT0 BIT(11) /* the level of the LINT0 pin, where the PIC's INTR ends */
#define VLAPIC_EV_LINT1 BIT(12) /* the level of the LINT1 pin */

/* Embedded in struct vcpu. */
struct vlapic {
	/* Anyone, atomically. */
	u64 irr[4] __aligned(64);
	u64 tmr[4];
	u32 events;	 /* VLAPIC_EV_* */
	u32 esr_pending; /* errors since the last write of the ESR */

	/* Owner; others READ_ONCE. */
	u32 id;	      /* APIC id, fixed */
	u32 ldr, dfr; /* xAPIC form, as in the registers; in x2APIC mode the LDR is derived */
	u8 mode;      /* enum vlapic_mode */
	bool accepts; /* enabled globally (IA32_APIC_BASE) and by software (SVR) */
	bool bsp;
	u32 lvt[VLAPIC_NR_LVT];
	bool lint0_remote_irr; /* LVT0 level-triggered and in service; anyone, atomically */

	/* Owner. */
	u8 isr_stack[16] __aligned(64); /* vectors in service, rising; [0] is 0 and stays it */
	u8 isr_depth;	    /* isr_stack[isr_depth] is the highest in service, 0 if none */
	u8 timer_mode;	    /* enum vlapic_timer_mode, of the timer LVT */
	u8 timer_shift;	    /* log2 of the divide configuration */
	bool timer_changed; /* set when timer_deadline moved; the edge may clear it, we never do */
	bool wait_for_sipi; /* after reset of an AP and after INIT; cleared by the SIPI taken */
	u32 *tpr;	    /* VTPR in the virtual-APIC page; the CPU writes it without an exit */
	struct apic_map *map;
	u64 timer_deadline; /* guest TSC at which vlapic_timer_expired() is due; VLAPIC_TIMER_NONE
			     */
	u64 icr;	    /* as x2APIC: destination in the high half */
	s64 tsc_offset;	    /* guest TSC - host TSC; vlapic_set_tsc_offset() */
	u32 svr, esr, tmict, tdcr;
	u32 index;	 /* in map->vcpu[] */
	u32 unicast_ids; /* APIC_MAP_IDS in x2APIC mode, else 0: one comparison for two */
	struct ipi_track track;
	struct ipi_counters count;
};

/*
 * Makes @l the next vCPU of @map (whose nr_vcpus it becomes), with APIC id @id < APIC_MAP_IDS and
 * its VTPR at @tpr. Then vlapic_reset(). At VM creation, before anything runs.
 */
void vlapic_setup(struct vlapic *l, struct apic_map *map, u32 id, u32 *tpr);

/*
 * Power-up or machine reset: everything to the values of SDM 11.4.7.1, software-disabled, timer
 * cancelled, NMI, INIT and SIPI dropped; the levels of the pins stay. @x2apic: with x2APIC mode on
 * (as some firmware leaves it). An AP (not @bsp) waits for SIPI. No other vCPU of the VM may run.
 */
void vlapic_reset(struct vlapic *l, bool x2apic, bool bsp);

/*
 * What firmware leaves on the BSP for a kernel that is booted directly: software-enabled, LINT0
 * ExtINT, LINT1 NMI (virtual wire mode of the MP specification).
 */
void vlapic_virtual_wire(struct vlapic *l);

/* ---- Delivery to the vCPU ---- */

/* The out-of-line parts. */
void vlapic_eoi_level(struct vlapic *l, u8 vector, u64 clock);
bool vlapic_post_trigger(struct vlapic *l, u8 vector, bool level);

/* The IRR's words together: not 0 if anything is in it, deliverable or not. Anyone. */
static inline u64 vlapic_irr_any(const struct vlapic *l)
{
	return READ_ONCE(l->irr[0]) | READ_ONCE(l->irr[1]) | READ_ONCE(l->irr[2]) |
	       READ_ONCE(l->irr[3]);
}

/* @bits, not 0, are word @word of the IRR: their highest vector, if its class is above those of the
 * TPR and of what is in service, else -1. */
static inline int vlapic_deliverable(const struct vlapic *l, u32 word, u64 bits)
{
	int vector = word * 64 + fls64(bits), class = vector >> 4;

	if (class <= l->isr_stack[l->isr_depth] >> 4 || class <= (u8)READ_ONCE(*l->tpr) >> 4 ||
	    unlikely(l->mode == VLAPIC_DISABLED))
		return -1;
	return vector;
}

/* vlapic_pending() for when something is likely. Not a loop: on the way of every interrupt. */
static inline int vlapic_highest_deliverable(const struct vlapic *l)
{
	u64 bits;

	if ((bits = READ_ONCE(l->irr[3])))
		return vlapic_deliverable(l, 3, bits);
	if ((bits = READ_ONCE(l->irr[2])))
		return vlapic_deliverable(l, 2, bits);
	if ((bits = READ_ONCE(l->irr[1])))
		return vlapic_deliverable(l, 1, bits);
	if ((bits = READ_ONCE(l->irr[0])))
		return vlapic_deliverable(l, 0, bits);
	return -1;
}

/* Anything to look at before the next entry? Anyone. */
static inline bool vlapic_has_work(const struct vlapic *l)
{
	return (vlapic_irr_any(l) | READ_ONCE(l->events)) != 0;
}

/*
 * The vector to deliver next: the highest of the IRR if its class is above that of the PPR, else
 * -1. Software disable does not hide what is already in the IRR (SDM 11.4.7.2: held until handled).
 * RFLAGS.IF and blocking by STI/MOV SS are the caller's. Anyone, as a hint.
 */
static inline int vlapic_pending(const struct vlapic *l)
{
	if (likely(!vlapic_irr_any(l)))
		return -1;
	return vlapic_highest_deliverable(l);
}

/*
 * For the VMCS TPR threshold: the class that VTPR must fall below to make the highest IRR vector
 * deliverable, 0 if no such exit is needed (nothing waits, or not because of the TPR).
 */
u32 vlapic_tpr_threshold(const struct vlapic *l);

/* Takes @vector, just returned by vlapic_pending(), from the IRR to the ISR. The tracker is still
 * to be told: vlapic_accepted(), or vlapic_accept() for both. */
static inline void vlapic_accept_irr(struct vlapic *l, u8 vector)
{
	u8 depth = ++l->isr_depth;

	DEBUG_ON(depth >= sizeof(l->isr_stack) || l->isr_stack[depth - 1] >> 4 >= vector >> 4);
	l->isr_stack[depth] = vector;
	/* After the bit is in the ISR, so that another vCPU sees it in at least one of both. */
	bit_clear_atomic(l->irr, vector);
}

/* @clock, here and below: the clock that all vCPUs of the VM share, @now - l->tsc_offset; that is
 * the host TSC. */
static inline void vlapic_accepted(struct vlapic *l, u8 vector, u64 clock)
{
	ipi_track_accept(&l->track, vector, clock);
}

static inline void vlapic_accept(struct vlapic *l, u8 vector, u64 now)
{
	vlapic_accept_irr(l, vector);
	vlapic_accepted(l, vector, now - l->tsc_offset);
}

/*
 * The processor priority register (SDM 11.8.3.1).
 */
u32 vlapic_ppr(const struct vlapic *l);

/*
 * Next of INIT and SIPI. VLAPIC_STARTUP_INIT: INIT was applied to the APIC (the mode is kept); put
 * the vCPU into its INIT state; it waits for SIPI if l->wait_for_sipi, else (BSP) starts at the
 * reset vector. VLAPIC_STARTUP_SIPI: start at *@vector << 12 in real mode. A SIPI that finds the
 * vCPU not waiting is dropped. Call until VLAPIC_STARTUP_NONE.
 */
enum vlapic_startup { VLAPIC_STARTUP_NONE, VLAPIC_STARTUP_INIT, VLAPIC_STARTUP_SIPI };
enum vlapic_startup vlapic_take_startup(struct vlapic *l, u8 *vector);

/* Takes the pending NMI, if any. Call only when an NMI can be injected (it stays pending else). */
static inline bool vlapic_take_nmi(struct vlapic *l)
{
	return (READ_ONCE(l->events) & VLAPIC_EV_NMI) &&
	       (__atomic_fetch_and(&l->events, ~(u32)VLAPIC_EV_NMI, __ATOMIC_SEQ_CST) &
		VLAPIC_EV_NMI);
}

/*
 * Does the PIC's INTR, as it stands on LINT0, reach this vCPU? By LVT0 in ExtINT mode, or past an
 * APIC that is globally disabled. If so and an interrupt can be injected: vector = vpic_accept().
 */
bool vlapic_extint(const struct vlapic *l);

/* ---- Posting (anyone) ---- */

/*
 * Sets @vector in the IRR with its trigger mode. Returns whether it was not set before, in which
 * case the target must be told (vapic_kick()) unless the caller is the owner. The caller looked at
 * l->accepts and
 * @vector >= 16.
 */
static inline bool vlapic_post(struct vlapic *l, u8 vector, bool level)
{
	if (unlikely(bit_test(l->tmr, vector) != level))
		return vlapic_post_trigger(l, vector, level);
	return !bit_test_and_set(l->irr, vector);
}

/* The level of the local interrupt pin @pin (0: INTR of the PIC, 1: NMI). Kicks if that needs it.
 */
void vlapic_set_lint(struct vlapic *l, u32 pin, bool level);

/* An NMI (from the hypervisor: watchdog, NMI button). */
void vlapic_post_nmi(struct vlapic *l);

/* ---- Hot registers, to be called directly by the dispatcher ---- */

/* EOI: x2APIC WRMSR 0x80b of 0 (the caller checks the value), xAPIC write of offset 0xb0. */
static inline void vlapic_eoi_at(struct vlapic *l, u64 clock)
{
	u8 depth = l->isr_depth;
	u8 vector = l->isr_stack[depth];

	if (!depth)
		return;
	l->isr_depth = depth - 1;
	if (unlikely(bit_test(l->tmr, vector)))
		vlapic_eoi_level(l, vector, clock);
	else
		ipi_track_eoi(&l->track, vector, clock);
}

static inline void vlapic_eoi(struct vlapic *l, u64 now)
{
	vlapic_eoi_at(l, now - l->tsc_offset);
}

/* x2APIC WRMSR 0x830; false: #GP (reserved bits). Only in x2APIC mode. */
bool vlapic_x2apic_icr(struct vlapic *l, u64 icr, u64 now);

/*
 * The commonest of them, in two parts: is @low (the low half of the ICR) fixed, physical, and @dest
 * one other APIC that accepts it (and @l in x2APIC mode)? Then that APIC, else NULL, and nothing
 * has been done.
 */
static inline struct vlapic *vlapic_x2apic_unicast_target(const struct vlapic *l, u32 dest, u32 low)
{
	const u32 others = ~(0xffu | VLAPIC_ICR_ASSERT | VLAPIC_ICR_LEVEL);
	struct vlapic *to;

	if (unlikely(low & others) || unlikely(dest >= l->unicast_ids) || unlikely((u8)low < 16))
		return NULL;
	to = READ_ONCE(l->map->phys[dest]);
	return unlikely(!to) || unlikely(!READ_ONCE(to->accepts)) || unlikely(to == l) ? NULL : to;
}

/* Sends it there; then vlapic_sent_unicast() with the whole ICR: what can wait until after the
 * kick. */
void vlapic_send_unicast(struct vlapic *l, struct vlapic *to, u64 clock, u8 vector);

static inline void vlapic_sent_unicast(struct vlapic *l, u64 icr)
{
	l->icr = icr;
	l->count.ipi_fast++;
	l->count.ipi_unicast++;
}

/*
 * How many others a write of @icr (destination in the high half, in the form of the mode of @l)
 * would send a fixed interrupt to; *@only: the index of one of them. Of a lowest-priority message:
 * among how many one would be chosen. For the trace; changes nothing.
 */
u32 vlapic_icr_receivers(struct vlapic *l, u64 icr, u32 *only);

/* x2APIC WRMSR 0x83f; false: #GP. Only in x2APIC mode. */
bool vlapic_self_ipi(struct vlapic *l, u64 value);

/* WRMSR and RDMSR IA32_TSC_DEADLINE. Outside of TSC-deadline mode it reads 0 and ignores writes. */
static inline void vlapic_write_tsc_deadline(struct vlapic *l, u64 deadline)
{
	if (unlikely(l->timer_mode != VLAPIC_TIMER_DEADLINE))
		return;
	l->timer_deadline = deadline ? deadline : VLAPIC_TIMER_NONE;
	l->timer_changed = true;
}

static inline u64 vlapic_read_tsc_deadline(const struct vlapic *l)
{
	if (l->timer_mode != VLAPIC_TIMER_DEADLINE || l->timer_deadline == VLAPIC_TIMER_NONE)
		return 0;
	return l->timer_deadline;
}

/* ---- All registers ---- */

/* x2APIC MSRs 0x800..0x8ff; false: #GP, and always so outside of x2APIC mode. */
bool vlapic_msr_read(struct vlapic *l, u32 msr, u64 now, u64 *value);
bool vlapic_msr_write(struct vlapic *l, u32 msr, u64 value, u64 now);

/*
 * The xAPIC page: aligned 32-bit accesses at @offset < 4096. The caller routes the page here only
 * while l->mode is VLAPIC_XAPIC (in the other modes the page is ordinary, unbacked memory).
 */
u32 vlapic_mmio_read(struct vlapic *l, u32 offset, u64 now);
void vlapic_mmio_write(struct vlapic *l, u32 offset, u32 value, u64 now);

/*
 * IA32_APIC_BASE. A write fails (#GP) for reserved bits, for the illegal transitions of SDM 11.12.5
 * (x2APIC to xAPIC, disabled to x2APIC, EXTD without EN), and for a base other than VLAPIC_BASE,
 * which we do not offer to move. Disabling loses the APIC's state, as on hardware.
 */
u64 vlapic_get_base(const struct vlapic *l);
bool vlapic_set_base(struct vlapic *l, u64 value);

/* ---- Timer ---- */

/* Guest TSC at which the timer is due, VLAPIC_TIMER_NONE if it is not running. Anyone, as a hint.
 */
static inline u64 vlapic_timer_deadline(const struct vlapic *l)
{
	return READ_ONCE(l->timer_deadline);
}

/*
 * To be called when now >= vlapic_timer_deadline() (a no-op before): posts the interrupt if the LVT
 * is not masked, and sets the next deadline. Bounded work however late it is: periods that were
 * missed are one interrupt, and the phase is kept.
 */
void vlapic_timer_expired(struct vlapic *l, u64 now);

/*
 * The guest TSC is host TSC + @offset from now on. A running one-shot or periodic timer keeps the
 * time that it has left (the bus clock did not jump); a TSC deadline keeps its value.
 */
void vlapic_set_tsc_offset(struct vlapic *l, s64 offset);

#endif
