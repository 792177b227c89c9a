/* SPDX-License-Identifier: BSD-2-Clause */
/* The bounds of the hypervisor's image, from hv.lds, and its name. */
#ifndef VLAG_IMAGE_H
#define VLAG_IMAGE_H

#define VLAG_VERSION "0.1"

extern char __image_start[], __text_start[], __text_end[], __rodata_start[], __rodata_end[];
extern char __data_start[], __relro_end[], __data_end[], __image_end[];

#endif
