/* SPDX-License-Identifier: BSD-3-Clause */

/* A send WQE, from the ring to a struct nic_op: decode.c */

#ifndef VHCA_DECODE_H_
#define VHCA_DECODE_H_

#include "nic.h"

struct nic_wqe {
    union {
        struct wqe_ctrl ctrl;
        uint8_t         raw[WQE_MAX_DS * WQE_SEG];
        uint64_t        align[1];
    };
    uint8_t  opcode;
    unsigned ds, blocks;
    uint32_t index;              /* of its first block */
};

/* Copies the WQE at ci, of at most `avail` blocks: what software does to it
 * from here on is its own affair. False: it is none. */
bool nic_wqe_fetch(const struct nic_qp *qp, uint32_t ci, uint16_t avail,
                   struct nic_wqe *wqe);
/* What it asks for, with the requester's side resolved. op->qp is set by the
 * caller. False: op->syndrome says why not. */
bool nic_op_decode(struct nic_op *op, const struct nic_wqe *wqe);

#endif
