/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guest ACPI tables (ACPI specification 6.4, chapter 5). One writer walks up from ACPI_TABLES_GPA;
 * each table is a packed structure here or, for the DSDT, what iasl made of dsdt.asl.
 */
#include "hv/vm/acpi_tables.h"

#include "hv/config/config.h"
#include "hv/dev/ports.h"
#include "hv/lib/errors.h"
#include "hv/lib/string.h"

#define LAPIC_ADDRESS 0xfee00000u
#define IOAPIC_ADDRESS 0xfec00000u
#define IOAPIC_ID 0

struct acpi_header {
	char signature[4];
	u32 length;
	u8 revision, checksum;
	char oem_id[6], oem_table_id[8];
	u32 oem_revision;
	char creator_id[4];
	u32 creator_revision;
} __packed;

struct acpi_rsdp {
	char signature[8];
	u8 checksum; /* of the first 20 bytes */
	char oem_id[6];
	u8 revision;
	u32 rsdt;
	u32 length;
	u64 xsdt;
	u8 extended_checksum, reserved[3];
} __packed;

/* Generic address structure. */
struct acpi_gas {
	u8 space, bit_width, bit_offset, access;
	u64 address;
} __packed;

#define GAS_IO 1
enum { ACCESS_BYTE = 1, ACCESS_WORD, ACCESS_DWORD };

struct acpi_fadt {
	struct acpi_header h;
	u32 facs, dsdt;
	u8 reserved1, pm_profile;
	u16 sci_irq;
	u32 smi_cmd;
	u8 acpi_enable, acpi_disable, s4bios_req, pstate_cnt;
	u32 pm1a_evt, pm1b_evt, pm1a_cnt, pm1b_cnt, pm2_cnt, pm_tmr, gpe0, gpe1;
	u8 pm1_evt_len, pm1_cnt_len, pm2_cnt_len, pm_tmr_len, gpe0_len, gpe1_len, gpe1_base,
	    cst_cnt;
	u16 c2_latency, c3_latency, flush_size, flush_stride;
	u8 duty_offset, duty_width, day_alarm, month_alarm, century;
	u16 boot_arch;
	u8 reserved2;
	u32 flags;
	struct acpi_gas reset_reg;
	u8 reset_value;
	u16 arm_boot_arch;
	u8 minor_revision;
	u64 x_facs, x_dsdt;
	struct acpi_gas x_pm1a_evt, x_pm1b_evt, x_pm1a_cnt, x_pm1b_cnt, x_pm2_cnt, x_pm_tmr, x_gpe0,
	    x_gpe1;
	struct acpi_gas sleep_control, sleep_status;
} __packed;

_Static_assert(sizeof(struct acpi_rsdp) == 36, "");
_Static_assert(sizeof(struct acpi_fadt) == 268, "ACPI 5.0");

#define FADT_REVISION 5
#define FADT_WBINVD BIT(0)
#define FADT_PROC_C1 BIT(2)
#define FADT_NO_FIXED_SLEEP_BUTTON BIT(5)
#define FADT_NO_FIXED_RTC_WAKE BIT(6)
#define FADT_NO_C2 0xfff
#define FADT_NO_C3 0xffff
#define CMOS_CENTURY 0x32

/*
 * IAPC_BOOT_ARCH: there are devices at the legacy places and no VGA. Bit 1 (8042) stays clear
 * although hv/dev/kbc.h answers, so that no keyboard driver goes looking; bit 5 (no CMOS RTC)
 * stays clear because there is one.
 */
#define BOOT_ARCH_LEGACY_DEVICES BIT(0)
#define BOOT_ARCH_NO_VGA BIT(2)

struct acpi_facs {
	char signature[4];
	u32 length, hardware_signature, waking_vector, global_lock, flags;
	u64 x_waking_vector;
	u8 version, reserved[31];
} __packed;

_Static_assert(sizeof(struct acpi_facs) == 64, "");

struct madt_header {
	struct acpi_header h;
	u32 lapic_address, flags;
} __packed;

#define MADT_PCAT_COMPAT 1 /* there is a pair of 8259s */
#define MADT_CPU_ENABLED 1
#define MADT_CPU_ONLINE_CAPABLE 2
#define MADT_ALL_CPUS 0xff
#define MADT_ALL_CPUS_X2APIC 0xffffffff
#define MADT_LEVEL_HIGH 0xd /* interrupt flags: active high (1), level (3 << 2) */
#define LAPIC_ID_MAX 254    /* 255 is the xAPIC's broadcast */

struct madt_lapic {
	u8 type, length, uid, id;
	u32 flags;
} __packed;

struct madt_ioapic {
	u8 type, length, id, reserved;
	u32 address, gsi_base;
} __packed;

struct madt_override {
	u8 type, length, bus, source;
	u32 gsi;
	u16 flags;
} __packed;

struct madt_lapic_nmi {
	u8 type, length, uid;
	u16 flags;
	u8 lint;
} __packed;

struct madt_x2apic {
	u8 type, length;
	u16 reserved;
	u32 id, flags, uid;
} __packed;

struct madt_x2apic_nmi {
	u8 type, length;
	u16 flags;
	u32 uid;
	u8 lint, reserved[3];
} __packed;

enum { MADT_LAPIC = 0, MADT_IOAPIC = 1, MADT_OVERRIDE = 2, MADT_LAPIC_NMI = 4 };
enum { MADT_X2APIC = 9, MADT_X2APIC_NMI = 10 };

/* Made by mk/hv-dsdt.mk. */
extern const u8 dsdt_aml[];
extern const u32 dsdt_aml_size;

/* The space that the tables go to. @used counts on past the end, so that one check at the end is
 * enough. */
struct writer {
	u8 *base;
	u64 used;
};

#define SPACE (ACPI_TABLES_END - ACPI_TABLES_GPA)

static void align(struct writer *w, u64 to)
{
	w->used = ALIGN_UP(w->used, to);
}

static u64 put(struct writer *w, const void *data, u64 len)
{
	u64 at = w->used;

	w->used += len;
	if (w->used <= SPACE)
		memcpy(w->base + at, data, len);
	return ACPI_TABLES_GPA + at;
}

static u8 checksum(const u8 *p, u64 len)
{
	u8 sum = 0;

	while (len--)
		sum += *p++;
	return -sum;
}

static struct acpi_header header(const char *signature, u8 revision, u32 length)
{
	struct acpi_header h = {
	    .length = length,
	    .revision = revision,
	    .oem_id = "VLAG  ",
	    .oem_table_id = "VLAG    ",
	    .oem_revision = 1,
	    .creator_id = "VLAG",
	    .creator_revision = 1,
	};

	memcpy(h.signature, signature, sizeof(h.signature));
	return h;
}

/* Sets length and checksum of the table from @gpa up to what has been written. */
static u64 finish(struct writer *w, u64 gpa)
{
	u64 off = gpa - ACPI_TABLES_GPA;
	struct acpi_header *h = (struct acpi_header *)(w->base + off);

	if (w->used > SPACE)
		return gpa;
	h->length = w->used - off;
	h->checksum = 0;
	h->checksum = checksum(w->base + off, h->length);
	return gpa;
}

static struct acpi_gas io_register(u32 port, u32 bytes, u8 access)
{
	return (struct acpi_gas){
	    .space = GAS_IO, .bit_width = bytes * 8, .access = access, .address = port};
}

static u64 put_fadt(struct writer *w, u64 facs, u64 dsdt)
{
	struct acpi_fadt f = {
	    .h = header("FACP", FADT_REVISION, sizeof(f)),
	    .facs = facs,
	    .dsdt = dsdt,
	    .sci_irq = IRQ_SCI,
	    .pm1a_evt = PORT_PM1A_EVT,
	    .pm1a_cnt = PORT_PM1A_CNT,
	    .pm_tmr = PORT_PM_TMR,
	    .pm1_evt_len = PM1_EVT_LEN,
	    .pm1_cnt_len = PM1_CNT_LEN,
	    .pm_tmr_len = PM_TMR_LEN,
	    .c2_latency = FADT_NO_C2,
	    .c3_latency = FADT_NO_C3,
	    .century = CMOS_CENTURY,
	    .boot_arch = BOOT_ARCH_LEGACY_DEVICES | BOOT_ARCH_NO_VGA,
	    .flags = FADT_WBINVD | FADT_PROC_C1 | FADT_NO_FIXED_SLEEP_BUTTON |
		     FADT_NO_FIXED_RTC_WAKE | FADT_TMR_VAL_EXT | FADT_RESET_REG_SUP,
	    .reset_reg = io_register(PORT_RESET, 1, ACCESS_BYTE),
	    .reset_value = RESET_VALUE,
	    .x_dsdt = dsdt,
	    .x_pm1a_evt = io_register(PORT_PM1A_EVT, PM1_EVT_LEN, ACCESS_WORD),
	    .x_pm1a_cnt = io_register(PORT_PM1A_CNT, PM1_CNT_LEN, ACCESS_WORD),
	    .x_pm_tmr = io_register(PORT_PM_TMR, PM_TMR_LEN, ACCESS_DWORD),
	};

	align(w, 16);
	return finish(w, put(w, &f, sizeof(f)));
}

/* One CPU: as a local APIC where its id and number fit there, as an x2APIC above. */
static bool put_cpu(struct writer *w, u32 uid, u32 id, u32 flags)
{
	if (id <= LAPIC_ID_MAX && uid < MADT_ALL_CPUS) {
		struct madt_lapic e = {MADT_LAPIC, sizeof(e), uid, id, flags};

		put(w, &e, sizeof(e));
		return false;
	} else {
		struct madt_x2apic e = {MADT_X2APIC, sizeof(e), 0, id, flags, uid};

		put(w, &e, sizeof(e));
		return true;
	}
}

static u64 put_madt(struct writer *w, const struct acpi_request *req)
{
	struct madt_header h = {header("APIC", 4, 0), LAPIC_ADDRESS, MADT_PCAT_COMPAT};
	struct madt_ioapic ioapic = {MADT_IOAPIC, sizeof(ioapic), IOAPIC_ID, 0, IOAPIC_ADDRESS, 0};
	struct madt_override pit = {MADT_OVERRIDE, sizeof(pit), 0, IRQ_PIT, 2, 0};
	struct madt_override sci = {MADT_OVERRIDE, sizeof(sci), 0,
				    IRQ_SCI,	   IRQ_SCI,	MADT_LEVEL_HIGH};
	struct madt_lapic_nmi nmi = {MADT_LAPIC_NMI, sizeof(nmi), MADT_ALL_CPUS, 0, 1};
	struct madt_x2apic_nmi nmi2 = {.type = MADT_X2APIC_NMI,
				       .length = sizeof(nmi2),
				       .uid = MADT_ALL_CPUS_X2APIC,
				       .lint = 1};
	bool x2apic = false;
	u64 gpa;

	align(w, 16);
	gpa = put(w, &h, sizeof(h));
	for (u32 i = 0; i < req->max_cpus; i++)
		x2apic |= put_cpu(w, i, req->apic_ids ? req->apic_ids[i] : i,
				  i < req->nr_cpus ? MADT_CPU_ENABLED : MADT_CPU_ONLINE_CAPABLE);
	put(w, &ioapic, sizeof(ioapic));
	put(w, &pit, sizeof(pit));
	put(w, &sci, sizeof(sci));
	put(w, &nmi, sizeof(nmi));
	if (x2apic)
		put(w, &nmi2, sizeof(nmi2));
	return finish(w, gpa);
}

/* RSDT (entries of 4 bytes) or XSDT (of 8). */
static u64 put_root(struct writer *w, const char *signature, const u64 *tables, u32 nr, u32 width)
{
	struct acpi_header h = header(signature, 1, 0);
	u64 gpa;

	align(w, 16);
	gpa = put(w, &h, sizeof(h));
	for (u32 i = 0; i < nr; i++)
		put(w, &tables[i], width);
	return finish(w, gpa);
}

static void write_rsdp(struct writer *w, u64 rsdt, u64 xsdt)
{
	struct acpi_rsdp r = {
	    .signature = {'R', 'S', 'D', ' ', 'P', 'T', 'R', ' '},
	    .oem_id = {'V', 'L', 'A', 'G', ' ', ' '},
	    .revision = 2,
	    .rsdt = rsdt,
	    .length = sizeof(r),
	    .xsdt = xsdt,
	};

	r.checksum = checksum((u8 *)&r, 20);
	r.extended_checksum = checksum((u8 *)&r, sizeof(r));
	memcpy(w->base, &r, sizeof(r));
}

int acpi_tables_build(struct guest_mem *mem, const struct acpi_request *req, u64 *rsdp)
{
	struct acpi_facs facs = {.signature = {'F', 'A', 'C', 'S'}, .length = 64, .version = 2};
	struct writer w = {.base = guest_ptr(mem, ACPI_TABLES_GPA, SPACE)};
	u64 tables[2], dsdt, rsdt, xsdt;

	if (!w.base)
		return E_FAULT;
	if (req->nr_cpus == 0 || req->nr_cpus > req->max_cpus)
		return E_INVAL;
	memset(w.base, 0, SPACE);
	w.used = sizeof(struct acpi_rsdp);
	align(&w, sizeof(facs));
	tables[0] = put(&w, &facs, sizeof(facs));
	dsdt = put(&w, dsdt_aml, dsdt_aml_size);
	tables[0] = put_fadt(&w, tables[0], dsdt);
	tables[1] = put_madt(&w, req);
	rsdt = put_root(&w, "RSDT", tables, ARRAY_SIZE(tables), 4);
	xsdt = put_root(&w, "XSDT", tables, ARRAY_SIZE(tables), 8);
	if (w.used > SPACE)
		return E_RANGE;
	write_rsdp(&w, rsdt, xsdt);
	*rsdp = ACPI_TABLES_GPA;
	return 0;
}
