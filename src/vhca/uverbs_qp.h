/* SPDX-License-Identifier: BSD-3-Clause */

/* Numbers of verbs that the kernel's UAPI headers leave to libibverbs: QP
 * states and the attribute mask of MODIFY_QP. */

#ifndef VHCA_UVERBS_QP_H_
#define VHCA_UVERBS_QP_H_

enum {
    IB_QPS_RESET, IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS, IB_QPS_SQD, IB_QPS_SQE,
    IB_QPS_ERR, IB_QPS_LAST
};

enum {
    IB_QP_STATE              = 1 << 0,
    IB_QP_CUR_STATE          = 1 << 1,
    IB_QP_EN_SQD_NOTIFY      = 1 << 2,
    IB_QP_ACCESS_FLAGS       = 1 << 3,
    IB_QP_PKEY_INDEX         = 1 << 4,
    IB_QP_PORT               = 1 << 5,
    IB_QP_QKEY               = 1 << 6,
    IB_QP_AV                 = 1 << 7,
    IB_QP_PATH_MTU           = 1 << 8,
    IB_QP_TIMEOUT            = 1 << 9,
    IB_QP_RETRY_CNT          = 1 << 10,
    IB_QP_RNR_RETRY          = 1 << 11,
    IB_QP_RQ_PSN             = 1 << 12,
    IB_QP_MAX_QP_RD_ATOMIC   = 1 << 13,
    IB_QP_ALT_PATH           = 1 << 14,
    IB_QP_MIN_RNR_TIMER      = 1 << 15,
    IB_QP_SQ_PSN             = 1 << 16,
    IB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
    IB_QP_PATH_MIG_STATE     = 1 << 18,
    IB_QP_CAP                = 1 << 19,
    IB_QP_DEST_QPN           = 1 << 20,
    IB_QP_STANDARD_BITS      = (1 << 21) - 1,
    IB_QP_RATE_LIMIT         = 1 << 25
};

enum {
    IB_MIG_MIGRATED = 0
};

#endif
