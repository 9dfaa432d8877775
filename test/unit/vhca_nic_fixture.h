/* SPDX-License-Identifier: BSD-3-Clause */

/* A NIC side that only remembers what the kernel side told it. */

#ifndef VHCA_NIC_FIXTURE_H_
#define VHCA_NIC_FIXTURE_H_

#include "vhca/vhca.h"

enum {
    FIX_OWNER = 0x77,
    FIX_PDN   = 0x000123,
    FIX_MKEY  = 0x00abcd,
    FIX_CQN   = 0x010203,
    FIX_RMPN  = 0x020304,
    FIX_QPN   = 0x030405
};

/* Filled by the last call of each kind; calls counts them all. */
struct fix_nic {
    unsigned              calls;
    struct vhca_mkey_attr mkey;
    struct vhca_cq_attr   cq;
    struct vhca_rmp_attr  rmp;
    uint32_t              rmp_limit;
    struct vhca_qp_attr   qp;
    struct vhca_qp_modify modify;
    enum vhca_qp_state    qp_state;
    bool                  fail;        /* the next call: BAD_RES_STATE */
    unsigned              destroyed;
    char                  order[32];   /* of destruction: q, r, c, m, p */
    uint32_t              sub_number;
    uint16_t              sub_type;
    uint64_t              sub_cookie;
};

extern struct fix_nic fix_nic;

#endif
