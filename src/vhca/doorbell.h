/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the emulated device exports to software that knows it. Both symbols are
 * looked up with dlsym(RTLD_DEFAULT); a program never links to them.
 */

#ifndef VHCA_DOORBELL_H_
#define VHCA_DOORBELL_H_

#include <stdint.h>

enum {
    VHCA_DOORBELL_SQ      = 0, /* number: QPN; the send record was written */
    VHCA_DOORBELL_RQ      = 1, /* number: RMP/SRQ number; receive record written */
    VHCA_DOORBELL_CQ_ARM  = 2, /* number: CQN; the arm record was written */
    VHCA_DOORBELL_QP_RQ   = 3  /* number: QPN of a QP with an own RQ */
};

/* Executes what the doorbell record announces, in the caller's thread.
 * Returns 0, or a negative errno for a number that is not ours. */
int vhca_doorbell(unsigned type, uint32_t number);

/* A named 64-bit cell in the fabric's memory, shown by vhca-stat as
 * "sw.<name>"; NULL when the table is full. Cells are added to atomically. */
uint64_t *vhca_counter(const char *name);

#endif
