/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Halting, waking and kicking a vCPU: no wake-up is lost.
 *
 * One vCPU on its pCPU, WAKERS other pCPUs that each send it INTERRUPTS interrupts. What the model
 * keeps of hv/sched and of the edge:
 *
 *   - a waker first sets the interrupt pending (IRR, atomically), then takes the run queue's lock
 *     and looks at the vCPU's state: BLOCKED -> it queues it; RUNNING -> it kicks the pCPU after
 *     the lock, QUEUED or WAKING -> somebody else has done what is needed;
 *   - the vCPU at HLT takes the lock, looks at the pending interrupts under it, and only then blocks;
 *   - a kick is an IPI: it stays pending in the pCPU's LAPIC until interrupts are taken, so one that
 *     comes between the hypervisor's last look at the IRR and the VM entry ends the guest at once;
 *   - an idle pCPU looks at its run queue under the lock, then waits with sti; hlt, which a pending
 *     IPI ends; an IPI between the look and the hlt is not lost, because interrupts are off until it.
 *
 * With -DLOCKLESS the waker reads the state without the lock, and kicks at once if it is RUNNING: the
 * common case costs no lock. Then the vCPU must show BLOCKED before its last look
 * (sched_block_prepare), and take it back if it finds something (sched_block_cancel).
 *
 * Variants that must be found broken (tests/model/check runs each):
 *   -DNO_RECHECK     the vCPU looks at the IRR only before it takes the lock
 *   -DSTATE_FIRST    the waker looks at the state before it sets the interrupt pending
 *   -DNO_KICK        the waker does not kick a running vCPU
 *   -DKICK_NOT_KEPT  a kick that comes while the hypervisor runs is forgotten
 *   -DLOCKLESS -DLOOK_FIRST   the waker reads without the lock, the vCPU looks before it shows BLOCKED
 *   -DIDLE_RACE      the idle loop enables interrupts before its hlt is reached
 */
#ifndef WAKERS
#define WAKERS 2
#endif
#ifndef INTERRUPTS
#define INTERRUPTS 2
#endif

mtype = { BLOCKED, WAKING, QUEUED, RUNNING };

mtype state = RUNNING;	/* of the vCPU; written under the lock */
bit lock = 0;		/* the run queue's */
byte irr = 0;		/* pending interrupts, set by wakers, taken by the vCPU */
byte taken = 0;		/* interrupts that the guest has handled */
byte sent = 0;
bit ipi = 0;		/* the pCPU's LAPIC: a kick waits to be taken */
bit in_guest = 0;	/* the guest runs: a kick causes an exit */
bit cpu_idle = 0;	/* the pCPU sleeps in hlt: a kick wakes it */
bit quit = 0;

#define TOTAL (WAKERS * INTERRUPTS)
#define acquire() atomic { lock == 0 -> lock = 1 }
#define release() lock = 0

inline kick()
{
#ifdef KICK_NOT_KEPT
	if
	:: (in_guest || cpu_idle) -> ipi = 1
	:: else -> skip
	fi
#else
	ipi = 1
#endif
}

proctype waker()
{
	byte n = 0;
	mtype seen;
	bit must_kick;

	do
	:: n < INTERRUPTS ->
		n++;
#ifdef STATE_FIRST
		acquire();
		seen = state;
		release();
		atomic { irr++; sent++ };
#else
		atomic { irr++; sent++ };
#ifdef LOCKLESS
		seen = state;
#else
		acquire();
		seen = state;
		release();
#endif
#endif
		must_kick = 0;
		if
		:: seen == BLOCKED ->
			/* sched_wake_claim: only one waker wins, under the lock. */
			acquire();
			if
			:: state == BLOCKED -> state = WAKING; release();
				/* Between the two halves the lock is free. */
				acquire();
				state = QUEUED;
				must_kick = 1;
				release()
			:: else ->
				must_kick = (state == RUNNING);
				release()
			fi
		:: seen == RUNNING -> must_kick = 1
		:: else -> skip
		fi;
#ifndef NO_KICK
		if
		:: must_kick -> kick()
		:: else -> skip
		fi
#else
		if
		:: must_kick && seen == BLOCKED -> kick()
		:: else -> skip
		fi
#endif
	:: else -> break
	od
}

/* The pCPU: hypervisor, guest and idle loop. */
proctype pcpu()
{
	bit pending;

hypervisor:
	/* Interrupts are off here; a kick that came is taken now: its only message is "look". */
	ipi = 0;
	/* The last look before VM entry: what is pending is injected. */
	atomic {
		taken = taken + irr;
		irr = 0
	};
	if
	:: taken == TOTAL -> goto done
	:: else -> skip
	fi;
enter:
	/* VM entry. A kick that waits in the LAPIC ends the guest before its first instruction. */
	in_guest = 1;
	if
	:: goto guest_halts
	:: ipi == 1; in_guest = 0; goto hypervisor
	:: skip; ipi == 1; in_guest = 0; goto hypervisor	/* computes for ever, but for a kick */
	fi;
guest_halts:
	in_guest = 0;
	/* HLT exit. A first look without the lock is allowed, but it proves nothing. */
	pending = (irr > 0);
	if
	:: pending -> goto hypervisor
	:: else -> skip
	fi;
	acquire();
#if defined(LOCKLESS) && !defined(LOOK_FIRST)
	state = BLOCKED;
	if
	:: irr > 0 -> state = RUNNING; release(); goto hypervisor
	:: else -> release()
	fi;
#else
#ifndef NO_RECHECK
	if
	:: irr > 0 -> release(); goto hypervisor
	:: else -> skip
	fi;
#endif
	state = BLOCKED;
	release();
#endif
idle:
	/* sched_pick_next finds nobody, or the vCPU that a waker queued meanwhile. */
	acquire();
	if
	:: state == QUEUED -> state = RUNNING; release(); goto hypervisor
	:: else -> release()
	fi;
#ifdef IDLE_RACE
	/* sti a moment too early: the kick is taken here and nothing is left to end the hlt. */
	ipi = 0;
#endif
	cpu_idle = 1;
	ipi == 1;	/* hlt until an interrupt */
	cpu_idle = 0;
	ipi = 0;
	goto idle;
done:
	quit = 1
}

init {
	byte i;

	atomic {
		run pcpu();
		for (i : 1 .. WAKERS) {
			run waker()
		}
	}
}

/* Every interrupt that was sent is handled in the end: whatever happens, the pCPU gets there. */
ltl no_wakeup_lost { <> (quit == 1) }
