/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A machine of pCPUs that run guests, simulated event by event: hv/sched decides, this file's
 * owner (machine.c) plays hardware, hypervisor edge and guests. Deterministic: the same options and
 * seed give the same run.
 *
 * Guests are programs of compute, halt, IPI and lock phases; a vCPU that waits for another one
 * spins, and after ple_ns of it "exits" and yields to whom it waits for.
 */
#ifndef VLAG_SIM_MACHINE_H
#define VLAG_SIM_MACHINE_H

#include "hv/lib/hist.h"
#include "hv/sched/sched.h"

enum load {
	LOAD_BUSY,  /* computes, for ever */
	LOAD_HALT,  /* computes a little, halts a little */
	LOAD_IPI,   /* sends an IPI to a random sibling and spins until it is acknowledged */
	LOAD_LOCK,  /* takes the VM's spinlock, holds it for a moment */
	LOAD_TOKEN, /* siblings pass a token round, spinning for it */
	NR_LOADS
};

extern const char *const load_names[NR_LOADS];

/* How a spinner finds its target. */
enum candidate {
	CANDIDATE_EXACT, /* whom it waits for */
	CANDIDATE_ROUND, /* the next sibling in turn that is queued: knows nothing, as plain KVM */
	CANDIDATE_NONE,	 /* no directed yield at all: spins to the end of its slice */
};

struct vm_spec {
	u32 nr_vcpus, weight;
	enum load load;
	u64 slice_ns; /* 0: the base slice */
};

struct machine_options {
	u32 nr_pcpus;
	u64 seed;
	u64 ple_ns;	/* spinning before an exit */
	u64 switch_ns;	/* cost of changing the vCPU on a pCPU, not charged to anybody's work */
	u64 exit_ns;	/* cost of a pause-loop exit, charged to the spinner */
	u64 kick_ns;	/* a reschedule IPI's way */
	u64 compute_ns; /* mean length of the compute phases between IPIs and locks */
	u64 hold_ns;	/* lock and token hold time, IPI handler time */
	enum candidate candidate;
	bool check; /* sched_check() after every event: slow */
};

struct svcpu {
	struct sched_vcpu sched;
	u32 vm;	   /* index */
	u32 index; /* within the VM */
	u8 phase;
	bool spinning;
	bool acked;    /* the IPI that it waits for */
	bool irq;      /* has an IPI to handle */
	u32 waits_for; /* vCPU of the VM, or UINT32_MAX */
	u32 turn;      /* CANDIDATE_ROUND: where to go on */
	u64 left;      /* ns of work left in the phase */
	u64 irq_left;  /* ns of handler work left; comes first */
	u64 spin_left; /* ns to the next pause-loop exit */
	u64 wait_since;
	u64 wake_at; /* timer of a halted vCPU */
	u64 ops;
	u64 spin_ns; /* time burnt spinning */
};

struct svm {
	struct sched_group group;
	struct vm_spec spec;
	struct svcpu *vcpus;
	u32 lock_owner; /* UINT32_MAX: free */
	u32 token;
	struct hist latency; /* of one wait: IPI to acknowledgement, lock to owner, pass to pass */
};

struct spcpu {
	struct run_queue rq;
	u64 since;   /* the running vCPU has worked up to this time; later than now: switching */
	u64 event;   /* its next event; matches the one in the heap that counts */
	u64 kick_at; /* when a reschedule IPI arrives */
};

struct machine {
	struct machine_options opt;
	struct sched_knobs knobs;
	u64 now, start;
	struct spcpu *pcpus;
	struct run_queue **rqs;
	struct svm *vms;
	u32 nr_vms;
	u64 nr_events;
	u64 seed;
	u64 *idle, *online, *tried;
	struct event *heap;
	size_t heap_len, heap_size;
};

void machine_options_init(struct machine_options *opt);

/* @knobs is copied; machine_knobs() changes it later. Exits with a message if memory is short. */
struct machine *machine_new(const struct machine_options *opt, const struct sched_knobs *knobs,
			    const struct vm_spec *vms, u32 nr_vms);
void machine_run(struct machine *m, u64 ns);
void machine_free(struct machine *m);

/* Sums over a VM's vCPUs / over the machine; exact up to now. */
u64 vm_run_ns(const struct svm *vm);
u64 vm_ops(const struct svm *vm);
u64 vm_spin_ns(const struct svm *vm);
u64 vm_fair_err_max(const struct svm *vm); /* the largest of its vCPUs */
struct sched_stats machine_stats(const struct machine *m);

#endif
