/* SPDX-License-Identifier: BSD-3-Clause */

/* What the queues share: page sizes of umems, place of doorbell records. */

#ifndef HX_UMEM_H_
#define HX_UMEM_H_

#include <stdint.h>

/* A doorbell record is 8 bytes, and has a cache line of its own behind its
 * ring. Rings are multiples of 64 bytes. */
#define HX_DBREC_LEN 64

/** The pgsz_bitmap for memory at addr, see umem.c */
uint64_t hx_umem_pgsz_bitmap(uint64_t addr);

#endif
