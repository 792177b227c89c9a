/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest's extended page tables: guest-physical to host-physical (SDM vol. 3, 28.3). Built while
 * the VM is made, then constant. */
#ifndef VLAG_VMX_EPT_H
#define VLAG_VMX_EPT_H

#include "hv/lib/types.h"

/* An empty table; its EPT pointer for the VMCS. */
u64 ept_create(void);

/* Maps [@gpa, @gpa + @size) to @hpa, write-back, read-write-execute, with the largest pages that
 * the CPU and the alignment allow. */
void ept_map(u64 eptp, u64 gpa, u64 hpa, u64 size);

#endif
