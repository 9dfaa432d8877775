/* SPDX-License-Identifier: BSD-3-Clause */

/* The NIC's own transcription of what software puts into queues and reads from
 * them: work queue elements, completions, doorbell records. All big endian. */

#ifndef VHCA_WQE_H_
#define VHCA_WQE_H_

#include <stddef.h>
#include <stdint.h>

#define WQE_BB      64   /* a send queue counts in blocks of this many bytes */
#define WQE_SEG     16   /* and a WQE's size in segments of this many */
#define WQE_MAX_DS  64   /* max_wqe_sz_sq: 1024 bytes */
#define WQE_MAX_SGE 62   /* what remains beside the control segment */

enum {
    WQE_OP_NOP           = 0x00,
    WQE_OP_RDMA_WRITE    = 0x08,
    WQE_OP_RDMA_WRITE_IMM = 0x09,
    WQE_OP_SEND          = 0x0a,
    WQE_OP_SEND_IMM      = 0x0b,
    WQE_OP_RDMA_READ     = 0x10,
    WQE_OP_ATOMIC_CS     = 0x11,
    WQE_OP_ATOMIC_FA     = 0x12,
    WQE_OP_MASKED_CS     = 0x14,
    WQE_OP_MASKED_FA     = 0x15
};

/* Control segment, the first 16 bytes of a send WQE:
 *
 *   0        1 .. 2      3        4 .. 6   7    8     9 .. 10  11        12
 *   opc_mod  wqe_index   opcode   qpn      ds   sig   stream   fm|ce|se  imm
 *
 * The signature counts only on QPs that ask for it, the stream id only on a
 * DCI, imm only with the opcodes that carry one: UCX leaves stale bytes (or
 * copies of fm_ce_se) there, and NICs take that. */
struct wqe_ctrl {
    uint32_t opmod_idx_opcode;
    uint32_t qpn_ds;
    uint8_t  signature;
    uint8_t  stream[2];
    uint8_t  fm_ce_se;
    uint32_t imm;
};

#define WQE_CTRL_SE       0x02
#define WQE_CTRL_CE_MASK  0x0c
#define WQE_CTRL_CE_ERROR 0x00 /* a CQE only when it fails */
#define WQE_CTRL_CE_ALL   0x08
#define WQE_CTRL_RSVD     0x11
#define WQE_CTRL_FM_SHIFT 5
#define WQE_CTRL_FM_MAX   4    /* none, small, fence, strong order, full */

/* Remote address segment; the last word is ignored (UCX does not clear it) */
struct wqe_raddr {
    uint64_t raddr;
    uint32_t rkey;
    uint32_t reserved;
};

/* Data segment: a pointer, or inline data when the top bit of the count is set.
 * A pointer with count 0 means 2 GiB. */
struct wqe_data {
    uint32_t byte_count;
    uint32_t lkey;
    uint64_t addr;
};

#define WQE_INLINE       0x80000000u
#define WQE_INVALID_LKEY 0x100u     /* ends a receive WQE's list */

/* Datagram segment: whom the message is for. Without WQE_AV_EXTENDED in dqp
 * only the first 16 bytes are there. */
struct wqe_av {
    uint32_t qkey;
    uint32_t reserved;
    uint32_t dqp;
    uint8_t  stat_rate_sl;
    uint8_t  fl_mlid;
    uint16_t rlid;
    uint8_t  reserved1[4];
    uint8_t  rmac[6];
    uint8_t  tclass;
    uint8_t  hop_limit;
    uint32_t grh_gid_fl;
    uint8_t  rgid[16];
};

#define WQE_AV_EXTENDED 0x80000000u
#define WQE_AV_BASE     16
#define WQE_AV_GRH      0x40000000u /* in grh_gid_fl; not on RoCE */

/* Atomic segments */
struct wqe_atomic {
    uint64_t swap_add;
    uint64_t compare;
};

/* First segment of a receive WQE that has one. Only next_wqe_index is the
 * device's: UCX keeps its own notes in the rest. */
struct wqe_srq_next {
    uint8_t  sw0[2];
    uint16_t next_wqe_index;
    uint8_t  sw1[12];
};

/* Completion, version 1: 64 bytes, the last half of a 128-byte one */
struct cqe64 {
    uint8_t  rsvd0[2];
    uint16_t wqe_id;
    uint8_t  rsvd4[13];
    uint8_t  ml_path;
    uint8_t  rsvd18[4];
    uint16_t slid;
    uint32_t flags_rqpn;
    uint8_t  hds_ip_ext;
    uint8_t  l4_hdr_type_etc;
    uint16_t vlan_info;
    uint32_t srqn_uidx;
    uint32_t imm_inval_pkey;
    uint8_t  app;
    uint8_t  app_op;
    uint16_t app_info;
    uint32_t byte_cnt;
    uint64_t timestamp;
    uint32_t sop_drop_qpn;
    uint16_t wqe_counter;
    uint8_t  signature;
    uint8_t  op_own;
};

/* The same 64 bytes when the opcode is one of the two errors */
struct cqe64_err {
    uint8_t  rsvd0[32];
    uint32_t srqn_uidx;
    uint8_t  rsvd24[16];
    uint8_t  hw_error_syndrome;
    uint8_t  hw_syndrome_type;
    uint8_t  vendor_error_syndrome;
    uint8_t  syndrome;
    uint32_t s_wqe_opcode_qpn;
    uint16_t wqe_counter;
    uint8_t  signature;
    uint8_t  op_own;
};

/* In flags_rqpn: a GRH or IP header is in the receive buffer */
#define CQE_L3_IN_DATA 0x10000000u

/* In op_own: data in the CQE */
#define CQE_INLINE_32 0x04
#define CQE_INLINE_64 0x08

enum {
    CQE_REQ         = 0,
    CQE_RESP_WR_IMM = 1,
    CQE_RESP_SEND   = 2,
    CQE_RESP_SEND_IMM = 3,
    CQE_RESIZE      = 5,
    CQE_REQ_ERR     = 13,
    CQE_RESP_ERR    = 14,
    CQE_INVALID     = 15
};

enum {
    CQE_SYND_LOCAL_LENGTH      = 0x01,
    CQE_SYND_LOCAL_QP_OP       = 0x02,
    CQE_SYND_LOCAL_PROT        = 0x04,
    CQE_SYND_FLUSHED           = 0x05,
    CQE_SYND_BAD_RESP          = 0x10,
    CQE_SYND_LOCAL_ACCESS      = 0x11,
    CQE_SYND_REMOTE_INVAL_REQ  = 0x12,
    CQE_SYND_REMOTE_ACCESS     = 0x13,
    CQE_SYND_REMOTE_OP         = 0x14,
    CQE_SYND_RETRY_EXCEEDED    = 0x15,
    CQE_SYND_RNR_RETRY_EXCEEDED = 0x16
};

/* Event types (PRM, EQE) that QPs and CQs raise */
enum {
    EQE_COMPLETION      = 0x00,
    EQE_COMM_ESTABLISHED = 0x02,
    EQE_CQ_ERROR        = 0x04,
    EQE_WQ_CATAS        = 0x05,
    EQE_WQ_INVAL_REQ    = 0x10,
    EQE_WQ_ACCESS       = 0x11,
    EQE_SRQ_CATAS       = 0x12,
    EQE_SRQ_LAST_WQE    = 0x13,
    EQE_SRQ_LIMIT       = 0x14
};

_Static_assert(sizeof(struct wqe_ctrl) == 16, "control segment");
_Static_assert(sizeof(struct wqe_raddr) == 16, "remote address segment");
_Static_assert(sizeof(struct wqe_data) == 16, "data segment");
_Static_assert(sizeof(struct wqe_av) == 48, "datagram segment");
_Static_assert(offsetof(struct wqe_av, grh_gid_fl) == 28, "datagram segment");
_Static_assert(sizeof(struct wqe_srq_next) == 16, "next segment");
_Static_assert(sizeof(struct cqe64) == 64, "CQE");
_Static_assert(offsetof(struct cqe64, srqn_uidx) == 32, "CQE");
_Static_assert(offsetof(struct cqe64, byte_cnt) == 44, "CQE");
_Static_assert(offsetof(struct cqe64, sop_drop_qpn) == 56, "CQE");
_Static_assert(sizeof(struct cqe64_err) == 64, "error CQE");
_Static_assert(offsetof(struct cqe64_err, syndrome) == 55, "error CQE");

#endif
