/* SPDX-License-Identifier: BSD-2-Clause */
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c
// libs: -lpthread
/*
 * vCPUs on threads of their own: nothing that is posted is lost or delivered twice, the map stays
 * right for those who do not change while another one changes it, and the tracker's books balance.
 * A lost interrupt shows as a bounded number of turns that was not enough, never as a time.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/vapic_fixture.h"

#define ROUNDS 20000
#define V 0x40u

/* A thread gives the CPU away so often before it calls an interrupt lost. */
#define PATIENCE 5000000

static u32 done[FIX_VCPUS]; /* rounds that were acknowledged */

static void run_threads(u32 n, void *(*fn)(void *))
{
	pthread_t thread[8];
	u64 i;

	for (i = 0; i < n; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, fn, (void *)i), 0);
	for (i = 0; i < n; i++) {
		void *failed;

		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
}

/* ---- A token passed round a ring of vCPUs ---- */

#define RING 3

static void *pass_token(void *arg)
{
	u64 me = (u64)arg, next = (me + 1) % RING;
	struct vlapic *l = &fix_cpu[me];
	u32 n, patience;

	for (n = 0; n < ROUNDS; n++) {
		for (patience = PATIENCE; patience && vlapic_pending(l) < 0; patience--)
			sched_yield();
		if (!patience || fix_take(l, n) != V)
			return arg ? arg : (void *)-1;
		done[me]++;
		vlapic_x2apic_icr(l, next << 32 | V, n);
		vlapic_eoi(l, n);
	}
	return NULL;
}

static void token_is_never_lost_nor_doubled(void **state)
{
	u64 matched = 0, i;

	fix_online(RING, true);
	memset(done, 0, sizeof(done));
	vlapic_post(&fix_cpu[0], V, false);
	run_threads(RING, pass_token);
	for (i = 0; i < RING; i++) {
		assert_int_equal(done[i], ROUNDS);
		assert_int_equal(fix_cpu[i].count.ipi_unicast, ROUNDS);
		matched += fix_cpu[i].count.eoi_matched;
	}
	/* All but the first, which is ours, and the last, which nobody takes any more. */
	assert_int_equal(matched, RING * ROUNDS - 1);
	assert_true(fix_in_irr(&fix_cpu[0], V));
	assert_int_equal(vlapic_pending(&fix_cpu[1]), -1);
	assert_int_equal(vlapic_pending(&fix_cpu[2]), -1);
}

/* ---- Logical IPIs while another vCPU changes the map ---- */

static u32 stop;

static void *send_or_change(void *arg)
{
	struct vlapic *l = &fix_cpu[(u64)arg];
	struct apic_set set;
	bool lost = false;
	u32 n;

	if (arg) {
		/* vCPU 1 wanders, through tables and walks. */
		for (n = 0; !READ_ONCE(stop); n++)
			vlapic_mmio_write(l, APIC_LDR, (n % 3 ? BIT(n % 3 * 2) : 5) << 24, 0);
		return NULL;
	}
	/* On a busy machine the other thread may not have begun yet. */
	for (n = 0; n < 10 * ROUNDS || READ_ONCE(fix_map.seq) <= 100; n++) {
		/* vCPUs 2 and 3 stay what they are. */
		apic_map_resolve(&fix_map, 1u << (3 * (n % 2)), true, false, &set);
		lost =
		    !(set.word[0] & BIT(2 + n % 2)) || (set.word[0] & ~(BIT(2 + n % 2) | BIT(1)));
		if (lost)
			break;
	}
	WRITE_ONCE(stop, 1);
	return lost ? (void *)-1 : NULL;
}

static void map_change_loses_no_bystander(void **state)
{
	fix_online(4, false);
	fix_write(&fix_cpu[2], APIC_LDR, BIT(24));
	fix_write(&fix_cpu[3], APIC_LDR, BIT(27));
	stop = 0;
	run_threads(2, send_or_change);
	assert_true(fix_map.seq > 100);
}

/* ---- NMI, INIT and SIPI from several senders ---- */

static u32 nmis_sent, nmis_taken;

static void *send_events(void *arg)
{
	struct vlapic *l = &fix_cpu[(u64)arg];
	u8 vector;
	u32 n;

	if (arg) {
		for (n = 0; n < ROUNDS; n++) {
			vlapic_x2apic_icr(l, 0x400, 0);
			__atomic_fetch_add(&nmis_sent, 1, __ATOMIC_SEQ_CST);
			vlapic_x2apic_icr(l, 0x4600 | n % 256, 0);
		}
		__atomic_fetch_add(&stop, 1, __ATOMIC_SEQ_CST);
		return NULL;
	}
	while (READ_ONCE(stop) < 2 || l->events) {
		nmis_taken += vlapic_take_nmi(l);
		if (vlapic_take_startup(l, &vector) != VLAPIC_STARTUP_NONE)
			return (void *)-1; /* it runs: no SIPI has an effect */
	}
	return NULL;
}

static void events_collapse_but_the_last_is_seen(void **state)
{
	fix_online(3, true);
	nmis_sent = nmis_taken = stop = 0;
	run_threads(3, send_events);
	assert_int_equal(nmis_sent, 2 * ROUNDS);
	assert_in_range(nmis_taken, 1, 2 * ROUNDS);
	assert_int_equal(fix_cpu[0].events, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(token_is_never_lost_nor_doubled),
	    cmocka_unit_test(map_change_loses_no_bystander),
	    cmocka_unit_test(events_collapse_but_the_last_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
