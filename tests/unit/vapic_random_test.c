/* SPDX-License-Identifier: BSD-2-Clause */
// sources: hv/apic/vlapic.c hv/apic/vlapic_regs.c hv/apic/vlapic_ipi.c hv/apic/vioapic.c
// sources: hv/apic/vlapic_timer.c hv/apic/apic_map.c hv/apic/ipi_track.c
/*
 * Random sequences on a VM of local APICs, compared after every step with a model that is as plain
 * as can be: arrays of booleans, loops over all vectors and all CPUs, a list of sent IPIs.
 */
#define FIX_OWN_BROADCAST_EOI
#include "tests/unit/vapic_fixture.h"

#define CPUS 6
#define STEPS 400000

/* ---- The plain model ---- */

struct model {
	bool irr[256], isr[256], tmr[256];
	bool nmi, init;
	u32 mode; /* 0 off, 1 xAPIC, 2 x2APIC */
	bool enabled;
	u32 tpr, ldr, dfr;
};

static struct model m[CPUS];
static int broadcast_expected = -1;

/* An IPI that the tracker must know: sent, perhaps accepted, not yet ended. */
struct sent {
	u32 from, to, vector;
	bool accepted;
};

static struct sent list[1 << 16];
static u32 nr_list;

void vapic_broadcast_eoi(struct vlapic *from, u8 vector)
{
	assert_int_equal(broadcast_expected, vector);
	broadcast_expected = -1;
}

static void model_reset(u32 cpu, u32 mode)
{
	memset(&m[cpu], 0, sizeof(m[cpu]));
	m[cpu].mode = mode;
	m[cpu].dfr = 0xffffffff;
}

static int top(const bool *set)
{
	int v;

	for (v = 255; v >= 0; v--)
		if (set[v])
			return v;
	return -1;
}

static u32 model_ppr(u32 cpu)
{
	int isrv = top(m[cpu].isr);
	u32 class = isrv < 0 ? 0 : isrv & 0xf0;

	return (m[cpu].tpr & 0xf0) >= class ? m[cpu].tpr : class;
}

static int model_pending(u32 cpu)
{
	int v = top(m[cpu].irr);

	return v >= 0 && (v & 0xf0) > (int)(model_ppr(cpu) & 0xf0) ? v : -1;
}

/* What an ideal TPR exit needs: lowering the TPR to just below this class would deliver something.
 */
static u32 model_threshold(u32 cpu)
{
	u32 saved = m[cpu].tpr, class;
	bool deliverable = model_pending(cpu) >= 0;

	for (class = 15; class > 0 && !deliverable; class --) {
		if (class > saved >> 4)
			continue;
		m[cpu].tpr = (class - 1) << 4;
		if (model_pending(cpu) >= 0) {
			m[cpu].tpr = saved;
			return class;
		}
	}
	m[cpu].tpr = saved;
	return 0;
}

/* SDM 11.6.2, one rule after the other. */
static bool model_matches(u32 cpu, u32 dest, bool logical, bool sender_x2)
{
	const struct model *t = &m[cpu];

	if (t->mode == 0)
		return false;
	if (sender_x2 && dest == 0xffffffff)
		return true;
	if (!logical) {
		if (!sender_x2 && dest == 0xff)
			return true;
		return dest == cpu;
	}
	if (t->mode == 2) {
		if (!sender_x2 && dest == 0xff)
			return true;
		return dest >> 16 == cpu / 16 && (dest & 0xffff & 1u << cpu % 16);
	}
	if (dest > 0xff)
		return false;
	if (t->dfr >> 28 == 0xf)
		return t->ldr >> 24 & dest;
	if (t->dfr >> 28 != 0)
		return false;
	if (dest != 0xff && t->ldr >> 28 != dest >> 4)
		return false;
	return t->ldr >> 24 & dest & 0xf;
}

static void model_post(u32 cpu, u32 v, bool level)
{
	m[cpu].irr[v] = true;
	m[cpu].tmr[v] = level;
}

static void model_send(u32 from, u32 dest, u32 v, u32 shorthand, bool logical)
{
	bool x2 = m[from].mode == 2;
	u32 targets[CPUS], n = 0, i, k;

	for (i = 0; i < CPUS; i++) {
		bool hit = shorthand == 0   ? model_matches(i, dest, logical, x2)
			   : shorthand == 1 ? i == from
			   : shorthand == 2 ? m[i].mode != 0
					    : m[i].mode != 0 && i != from;

		if (hit && m[i].enabled && m[i].mode)
			targets[n++] = i;
	}
	for (i = 0; i < n; i++)
		model_post(targets[i], v, false);
	if (n != 1 || shorthand || targets[0] == from || dest == (x2 ? 0xffffffff : 0xff))
		return;
	/* One entry per sender and unaccepted interrupt. */
	for (k = 0; k < nr_list; k++)
		if (list[k].from == from && list[k].to == targets[0] && list[k].vector == v &&
		    !list[k].accepted)
			return;
	list[nr_list++] = (struct sent){.from = from, .to = targets[0], .vector = v};
}

static void list_accept(u32 cpu, u32 v)
{
	u32 k;

	for (k = 0; k < nr_list; k++)
		if (list[k].to == cpu && list[k].vector == v)
			list[k].accepted = true;
}

static void list_eoi(u32 cpu, u32 v)
{
	u32 k, kept = 0;

	for (k = 0; k < nr_list; k++)
		if (!(list[k].to == cpu && list[k].vector == v && list[k].accepted))
			list[kept++] = list[k];
	nr_list = kept;
}

static void list_forget(u32 cpu)
{
	u32 k, kept = 0;

	for (k = 0; k < nr_list; k++)
		if (list[k].to != cpu && list[k].from != cpu)
			list[kept++] = list[k];
	nr_list = kept;
}

/* ---- Comparison ---- */

static void compare_bits(const struct vlapic *l, u32 reg, const bool *expected)
{
	u32 i, v;

	for (i = 0; i < 8; i++) {
		u32 word = 0;

		for (v = 0; v < 32; v++)
			word |= (u32)expected[i * 32 + v] << v;
		assert_int_equal(fix_read((struct vlapic *)l, reg + i * 0x10), word);
	}
}

static void compare(u32 cpu)
{
	struct vlapic *l = &fix_cpu[cpu];

	assert_int_equal(vlapic_pending(l), model_pending(cpu));
	assert_int_equal(vlapic_ppr(l), model_ppr(cpu));
	if (m[cpu].mode) {
		compare_bits(l, APIC_IRR, m[cpu].irr);
		compare_bits(l, APIC_ISR, m[cpu].isr);
		compare_bits(l, APIC_TMR, m[cpu].tmr);
	}
	/* The threshold looks at the highest vector only: what is below it cannot be next. */
	assert_int_equal(vlapic_tpr_threshold(l), model_threshold(cpu));
	assert_int_equal(!!(l->events & VLAPIC_EV_NMI), m[cpu].nmi);
	assert_int_equal(!!(l->events & VLAPIC_EV_INIT), m[cpu].init);
}

/*
 * Every IPI that is really unacknowledged is known to the tracker. What it knows beyond that can
 * only be an entry that coalesced with another sender's, while a later IPI of that vector waits
 * there.
 */
static void compare_tracker(u32 cpu, u64 now)
{
	struct vlapic *l = &fix_cpu[cpu];
	u32 cursor = l->track.tail, k, real = 0, found = 0;
	struct ipi_wait wait;

	for (k = 0; k < nr_list; k++)
		real += list[k].from == cpu;
	while (ipi_track_next(&l->track, now, &cursor, &wait)) {
		bool known = false, excused = false;

		for (k = 0; k < nr_list; k++) {
			if (list[k].to != wait.receiver || list[k].vector != wait.vector)
				continue;
			known |= list[k].from == cpu;
			excused = true;
		}
		assert_true(known || excused);
		found += known;
	}
	assert_true(found >= real);
}

/* ---- Steps ---- */

static u32 any_vector(void)
{
	/* Few different ones, so that they meet. */
	static const u8 favourites[] = {0x10, 0x31, 0x32, 0x3f, 0x40, 0x7f, 0x80, 0xef, 0xf0, 0xff};

	return fix_random(4) ? favourites[fix_random(ARRAY_SIZE(favourites))]
			     : 16 + fix_random(240);
}

static u32 any_dest(void)
{
	switch (fix_random(5)) {
	case 0:
		return 0xff;
	case 1:
		return 0xffffffff;
	case 2:
		return fix_random(3) << 16 | fix_random(0x10000);
	case 3:
		return fix_random(256);
	default:
		return fix_random(CPUS + 1);
	}
}

static void step_ipi(u32 cpu, u64 now)
{
	u32 v = any_vector(), dest = any_dest(), shorthand = fix_random(3) ? 0 : fix_random(4);
	bool logical = fix_random(2);
	u32 low = v | (logical ? 0x800 : 0) | shorthand << 18;

	if (m[cpu].mode == 0)
		return;
	if (m[cpu].mode == 1)
		dest &= 0xff;
	fix_ipi(&fix_cpu[cpu], dest, low, now);
	model_send(cpu, dest, v, shorthand, logical);
}

static void step_serve(u32 cpu, u64 now)
{
	struct vlapic *l = &fix_cpu[cpu];
	int v = top(m[cpu].isr);

	if (fix_random(2)) {
		v = fix_take(l, now);
		assert_int_equal(v, model_pending(cpu));
		if (v >= 0) {
			m[cpu].irr[v] = false;
			m[cpu].isr[v] = true;
			list_accept(cpu, v);
		}
		return;
	}
	if (v >= 0 && m[cpu].tmr[v])
		broadcast_expected = v;
	vlapic_eoi(l, now);
	assert_int_equal(broadcast_expected, -1);
	if (v >= 0) {
		m[cpu].isr[v] = false;
		list_eoi(cpu, v);
	}
}

static void step_device(u32 cpu)
{
	struct apic_msg msg = {.dest = cpu, .vector = any_vector(), .level = fix_random(2)};

	apic_map_deliver(&fix_map, &msg);
	if (m[cpu].mode && m[cpu].enabled)
		model_post(cpu, msg.vector, msg.level);
}

static void step_register(u32 cpu)
{
	struct vlapic *l = &fix_cpu[cpu];
	u32 value;

	if (m[cpu].mode && !m[cpu].enabled && fix_random(4)) {
		m[cpu].enabled = true;
		fix_write(l, APIC_SVR, 0x1ff);
		return;
	}
	switch (fix_random(4)) {
	case 0:
		m[cpu].tpr = fix_random(2) ? 0 : fix_random(256);
		*l->tpr = m[cpu].tpr;
		break;
	case 1:
		if (!m[cpu].mode)
			break;
		m[cpu].enabled = fix_random(8);
		fix_write(l, APIC_SVR, m[cpu].enabled ? 0x1ff : 0xff);
		break;
	case 2:
		if (m[cpu].mode != 1)
			break;
		value = fix_random(3) ? BIT(24 + fix_random(8)) : fix_random(256) << 24;
		fix_write(l, APIC_LDR, value);
		m[cpu].ldr = value;
		break;
	default:
		if (m[cpu].mode != 1)
			break;
		value = fix_random(8) ? (fix_random(2) ? 0xffffffff : 0x0fffffff) : 0x3fffffff;
		fix_write(l, APIC_DFR, value);
		m[cpu].dfr = value;
		break;
	}
}

static void step_mode(u32 cpu)
{
	static const u64 bits[3] = {0, APIC_BASE_EN, APIC_BASE_EN | APIC_BASE_EXTD};
	struct vlapic *l = &fix_cpu[cpu];
	u32 from = m[cpu].mode, to = fix_random(4) ? min(from + 1, 2u) : fix_random(3);
	bool legal = to == from || to == from + 1 || to == 0;

	assert_int_equal(vlapic_set_base(l, VLAPIC_BASE | bits[to]), legal);
	if (!legal || to == from)
		return;
	if (to == 0 || from == 0) {
		struct model old = m[cpu];

		model_reset(cpu, to);
		m[cpu].nmi = old.nmi;
		m[cpu].init = old.init;
		list_forget(cpu);
	}
	m[cpu].mode = to;
}

static void step_event(u32 cpu)
{
	u32 to = fix_random(CPUS);
	u8 vector;

	if (fix_random(2)) {
		if (m[cpu].mode == 0)
			return;
		fix_ipi(&fix_cpu[cpu], to, 0x400, 0);
		m[to].nmi |= m[to].mode != 0;
		if (fix_random(8) == 0) {
			fix_ipi(&fix_cpu[cpu], to, 0x4500, 0);
			if (m[to].mode) {
				m[to].init = true;
				m[to].nmi = false;
			}
		}
		return;
	}
	assert_int_equal(vlapic_take_nmi(&fix_cpu[cpu]), m[cpu].nmi);
	m[cpu].nmi = false;
	assert_int_equal(vlapic_take_startup(&fix_cpu[cpu], &vector),
			 m[cpu].init ? VLAPIC_STARTUP_INIT : VLAPIC_STARTUP_NONE);
	if (m[cpu].init) {
		model_reset(cpu, m[cpu].mode);
		list_forget(cpu);
	}
}

static void add(struct ipi_counters *sum, const struct ipi_counters *count)
{
#define X(name, text) sum->name += count->name;
	IPI_COUNTERS(X)
#undef X
}

static void run(u64 seed, bool x2apic, bool change_modes)
{
	u32 i, n;

	fix_seed = seed;
	nr_list = 0;
	fix_online(CPUS, x2apic);
	fix_knobs.window = UINT64_MAX >> 20;
	for (i = 0; i < CPUS; i++) {
		model_reset(i, x2apic ? 2 : 1);
		m[i].enabled = true;
	}
	for (n = 0; n < STEPS / 4; n++) {
		u32 cpu = fix_random(CPUS), what = fix_random(100);

		if (what < 35)
			step_ipi(cpu, n);
		else if (what < 85)
			step_serve(cpu, n);
		else if (what < 90)
			step_device(cpu);
		else if (what < 96)
			step_register(cpu);
		else if (what < 99)
			step_event(cpu);
		else if (change_modes)
			step_mode(cpu);
		for (i = 0; i < CPUS; i++) {
			assert_true(nr_list < ARRAY_SIZE(list));
			compare_tracker(i, n);
			if (i == cpu || n % 8 == 0)
				compare(i);
		}
	}
	/* The run was worth something. */
	for (i = 1; i < CPUS; i++)
		add(&fix_cpu[0].count, &fix_cpu[i].count);
	assert_true(fix_cpu[0].count.ipi_fast > 1000 && fix_cpu[0].count.ipi_unicast > 1000);
	assert_true(fix_cpu[0].count.ipi_multicast > 100 && fix_cpu[0].count.eoi_matched > 500);
	assert_true(fix_cpu[0].count.ipi_coalesced > 10);
	assert_int_equal(fix_cpu[0].count.ipi_expired + fix_cpu[0].count.ipi_overwritten, 0);
}

static void x2apic_follows_the_model(void **state)
{
	run(42, true, false);
	assert_int_equal(fix_cpu[0].count.ipi_slow, 0);
}

static void xapic_follows_the_model(void **state)
{
	run(43, false, false);
	assert_true(fix_cpu[0].count.ipi_slow > 1000);
}

static void changing_modes_follow_the_model(void **state)
{
	run(44, false, true);
	run(45, true, true);
	assert_true(fix_cpu[0].count.ipi_slow > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(x2apic_follows_the_model),
	    cmocka_unit_test(xapic_follows_the_model),
	    cmocka_unit_test(changing_modes_follow_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
