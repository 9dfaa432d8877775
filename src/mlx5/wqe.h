/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The segments of send WQEs, receive WQEs and the CQE, as the device sees them:
 * all words are big endian. Field names are the PRM's.
 */

#ifndef HX_WQE_H_
#define HX_WQE_H_

#include <stddef.h>
#include <stdint.h>

#define HX_WQE_DS_SIZE 16 /* a segment, the unit of the ds field */

/* Opcodes of send WQEs */
enum {
    HX_WQE_OP_NOP        = 0x00,
    HX_WQE_OP_RDMA_WRITE = 0x08,
    HX_WQE_OP_SEND       = 0x0a,
    HX_WQE_OP_RDMA_READ  = 0x10
};

/* Two stores a segment: dwords of the PRM, first one in the high half */
struct hx_wqe_ctrl {
    uint64_t opmod_idx_opcode_qpn_ds; /* opmod, 24 | index, 8 | opcode;
                                         qpn, 8 | ds */
    uint64_t fm_ce_se_imm;            /* fm_ce_se, 32 | imm */
};

struct hx_wqe_raddr {
    uint64_t raddr;
    uint64_t rkey_rsvd;
};

/* byte_count 0 means 2^31 bytes, so an empty piece gets no segment */
struct hx_wqe_data {
    uint64_t byte_count_lkey;
    uint64_t addr;
};

/* byte_count of an inline segment: its data follows right behind, and then
 * padding up to the next segment */
#define HX_WQE_INLINE     (UINT32_C(1) << 31)
#define HX_WQE_INLINE_HDR 4

/* First segment of a receive WQE of an SRQ or RMP */
struct hx_wqe_srq_next {
    uint8_t  reserved_0[2];
    uint16_t next_wqe_index;
    uint8_t  signature;
    uint8_t  reserved_5[11];
};

struct hx_wqe_recv {
    struct hx_wqe_srq_next next;
    struct hx_wqe_data     data;
};

#define HX_WQE_RECV_LOG_SIZE 5

_Static_assert(sizeof(struct hx_wqe_ctrl) == HX_WQE_DS_SIZE, "ctrl");
_Static_assert(sizeof(struct hx_wqe_raddr) == HX_WQE_DS_SIZE, "raddr");
_Static_assert(sizeof(struct hx_wqe_data) == HX_WQE_DS_SIZE, "data");
_Static_assert(sizeof(struct hx_wqe_srq_next) == HX_WQE_DS_SIZE, "next");
_Static_assert(sizeof(struct hx_wqe_recv) == 1 << HX_WQE_RECV_LOG_SIZE, "recv");

/* op_own: opcode in the high four bits */
enum {
    HX_CQE_OP_REQ            = 0,
    HX_CQE_OP_RESP_WRITE_IMM = 1,
    HX_CQE_OP_RESP_SEND      = 2,
    HX_CQE_OP_RESP_SEND_IMM  = 3,
    HX_CQE_OP_RESP_SEND_INV  = 4,
    HX_CQE_OP_REQ_ERR        = 13,
    HX_CQE_OP_RESP_ERR       = 14,
    HX_CQE_OP_INVALID        = 15
};

#define HX_CQE_OWNER 0x01
#define HX_CQE_INIT  0xf1 /* opcode invalid, owner: the device */

struct hx_cqe {
    uint8_t  reserved_0[32];
    uint32_t srqn_uidx;
    uint32_t imm_inval_pkey;
    uint8_t  reserved_28[4];
    uint32_t byte_cnt;
    uint8_t  reserved_30[6];
    uint8_t  vendor_err_synd;    /* of an error CQE, as is the next: else */
    uint8_t  syndrome;           /* both belong to the time stamp */
    uint32_t opcode_qpn;         /* qpn in the low 24 bits */
    uint16_t wqe_counter;
    uint8_t  signature;
    uint8_t  op_own;
};

_Static_assert(sizeof(struct hx_cqe) == 64, "cqe");
_Static_assert(offsetof(struct hx_cqe, byte_cnt) == 0x2c, "byte_cnt");
_Static_assert(offsetof(struct hx_cqe, syndrome) == 0x37, "syndrome");
_Static_assert(offsetof(struct hx_cqe, op_own) == 0x3f, "op_own");

#endif
