/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The command layouts and opcodes of the PRM that we use, and only those: a
 * `*_bits` structure has one byte for each bit, so sizeof and offsetof count
 * bits. Fields that we never touch are part of a reserved_at_ range, which is
 * named by its offset in hexadecimal and checked to lie there. All mailboxes
 * are big endian.
 */

#ifndef HX_PRM_H_
#define HX_PRM_H_

#include "prm_access.h"

/* Command opcodes */
enum {
    PRM_CMD_QUERY_HCA_CAP = 0x100,
    PRM_CMD_CREATE_MKEY   = 0x200,
    PRM_CMD_CREATE_CQ     = 0x400,
    PRM_CMD_CREATE_QP     = 0x500,
    PRM_CMD_RST2INIT_QP   = 0x502,
    PRM_CMD_INIT2RTR_QP   = 0x503,
    PRM_CMD_RTR2RTS_QP    = 0x504,
    PRM_CMD_2ERR_QP       = 0x507,
    PRM_CMD_QUERY_LAG     = 0x842,
    PRM_CMD_CREATE_RMP    = 0x90c
};

/* Mailbox status */
enum {
    PRM_STATUS_OK             = 0x00,
    PRM_STATUS_INT_ERR        = 0x01,
    PRM_STATUS_BAD_OP         = 0x02,
    PRM_STATUS_BAD_PARAM      = 0x03,
    PRM_STATUS_BAD_SYS_STATE  = 0x04,
    PRM_STATUS_BAD_RES        = 0x05,
    PRM_STATUS_RES_BUSY       = 0x06,
    PRM_STATUS_LIM_ERR        = 0x08,
    PRM_STATUS_BAD_RES_STATE  = 0x09,
    PRM_STATUS_IX_ERR         = 0x0a,
    PRM_STATUS_NO_RES         = 0x0f,
    PRM_STATUS_BAD_QP_STATE   = 0x10,
    PRM_STATUS_BAD_PKT        = 0x30,
    PRM_STATUS_BAD_SIZE       = 0x40,
    PRM_STATUS_BAD_INPUT_LEN  = 0x50,
    PRM_STATUS_BAD_OUTPUT_LEN = 0x51
};

/* QUERY_HCA_CAP: op_mod = type << 1 | 1 for the current values */
enum {
    PRM_HCA_CAP_GENERAL     = 0,
    PRM_HCA_CAP_ATOMIC      = 3,
    PRM_HCA_CAP_ROCE        = 4,
    PRM_HCA_CAP_OPMOD_CUR   = 1
};

/* Values of fields */
enum {
    PRM_CAP_PORT_TYPE_ETH          = 1,
    PRM_MKC_ACCESS_MODE_MTT        = 1,
    PRM_MKC_QPN_ANY                = 0xffffff,
    PRM_WQ_TYPE_LINKED_LIST        = 0,
    PRM_RMPC_STATE_RDY             = 1,
    PRM_QPC_ST_RC                  = 0,
    PRM_QPC_PM_STATE_MIGRATED      = 3,
    PRM_QPC_RQ_TYPE_SRQ            = 1, /* an SRQ or an RMP */
    PRM_QPC_RQ_TYPE_NONE           = 3,
    PRM_QPC_TS_FORMAT_FREE_RUNNING = 0,
    PRM_QPC_TS_FORMAT_DEFAULT      = 1,
    PRM_QPC_USER_INDEX_NONE        = 0xffffff,
    PRM_QPC_ATOMIC_MODE_NONE       = 0,
    PRM_QPC_ATOMIC_MODE_IB         = 1, /* 8 bytes, as the IB specification */
    PRM_QPC_ATOMIC_MODE_EXT        = 3  /* and masked ones, and 4 bytes */
};

/* opt_param_mask of the QP state commands */
enum {
    PRM_QP_OPTPAR_RRE        = 1 << 1,
    PRM_QP_OPTPAR_RAE        = 1 << 2,
    PRM_QP_OPTPAR_RWE        = 1 << 3,
    PRM_QP_OPTPAR_LAG_TX_AFF = 1 << 15
};

/* Event types of a DevX subscription */
enum {
    PRM_EVENT_COMP = 0
};

/* What every output mailbox begins with */
struct prm_mbox_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    uint8_t reserved_at_40[0x40];
};

PRM_SIZE(mbox_out, 0x80);
PRM_RSVD(mbox_out, 8); PRM_RSVD(mbox_out, 40);

struct prm_query_hca_cap_in_bits {
    uint8_t opcode[0x10];
    uint8_t reserved_at_10[0x20];
    uint8_t op_mod[0x10];
    uint8_t reserved_at_40[0x40];
};

PRM_SIZE(query_hca_cap_in, 0x80);
PRM_RSVD(query_hca_cap_in, 10); PRM_RSVD(query_hca_cap_in, 40);

struct prm_query_hca_cap_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    uint8_t reserved_at_40[0x40];
    uint8_t capability[0x8000];
};

PRM_SIZE(query_hca_cap_out, 0x8080);
PRM_RSVD(query_hca_cap_out, 8); PRM_RSVD(query_hca_cap_out, 40);

/* General capabilities, op_mod type 0 */
struct prm_cmd_hca_cap_bits {
    uint8_t reserved_at_0[0x88];
    uint8_t log_max_qp_sz[0x8];
    uint8_t reserved_at_90[0x13];
    uint8_t ece_support[0x1];
    uint8_t reserved_at_a4[0x24];
    uint8_t log_max_cq_sz[0x8];
    uint8_t reserved_at_d0[0x18];
    uint8_t relaxed_ordering_write[0x1];
    uint8_t relaxed_ordering_read_pci_enabled[0x1];
    uint8_t reserved_at_ea[0x1e];
    uint8_t fixed_buffer_size[0x1];
    uint8_t reserved_at_109[0x41];
    uint8_t log_max_ra_req_qp[0x6];
    uint8_t reserved_at_150[0xa];
    uint8_t log_max_ra_res_qp[0x6];
    uint8_t reserved_at_160[0x56];
    uint8_t port_type[0x2];
    uint8_t num_ports[0x8];
    uint8_t reserved_at_1c0[0x3];
    uint8_t log_max_msg[0x5];
    uint8_t reserved_at_1c8[0x30];
    uint8_t init2_lag_tx_port_affinity[0x1];
    uint8_t reserved_at_1f9[0x3];
    uint8_t cqe_version[0x4];
    uint8_t reserved_at_200[0x1d];
    uint8_t roce[0x1];
    uint8_t atomic[0x1];
    uint8_t reserved_at_21f[0x1];
    uint8_t cq_oi[0x1];
    uint8_t reserved_at_221[0x5b];
    uint8_t num_lag_ports[0x4];
    uint8_t reserved_at_280[0x10];
    uint8_t max_wqe_sz_sq[0x10];
    uint8_t reserved_at_2a0[0x8a];
    uint8_t relaxed_ordering_read[0x1];
    uint8_t reserved_at_32b[0x58];
    uint8_t log_max_rmp[0x5];
    uint8_t reserved_at_388[0x21];
    uint8_t mkc_order_write_after_write_ro_only[0x1];
    uint8_t reserved_at_3aa[0xb9];
    uint8_t log_max_uctx[0x5];
    uint8_t reserved_at_468[0x3];
    uint8_t log_max_umem[0x5];
    uint8_t reserved_at_470[0x390];
};

PRM_SIZE(cmd_hca_cap, 0x800);
PRM_RSVD(cmd_hca_cap, 0); PRM_RSVD(cmd_hca_cap, 90); PRM_RSVD(cmd_hca_cap, a4);
PRM_RSVD(cmd_hca_cap, d0); PRM_RSVD(cmd_hca_cap, ea);
PRM_RSVD(cmd_hca_cap, 109); PRM_RSVD(cmd_hca_cap, 150);
PRM_RSVD(cmd_hca_cap, 160); PRM_RSVD(cmd_hca_cap, 1c0);
PRM_RSVD(cmd_hca_cap, 1c8); PRM_RSVD(cmd_hca_cap, 1f9);
PRM_RSVD(cmd_hca_cap, 200); PRM_RSVD(cmd_hca_cap, 21f);
PRM_RSVD(cmd_hca_cap, 221); PRM_RSVD(cmd_hca_cap, 280);
PRM_RSVD(cmd_hca_cap, 2a0); PRM_RSVD(cmd_hca_cap, 32b);
PRM_RSVD(cmd_hca_cap, 388); PRM_RSVD(cmd_hca_cap, 3aa);
PRM_RSVD(cmd_hca_cap, 468); PRM_RSVD(cmd_hca_cap, 470);

/* Atomic capabilities, op_mod type 3 */
struct prm_atomic_caps_bits {
    uint8_t reserved_at_0[0x40];
    uint8_t atomic_req_8B_endianness_mode[0x2];
    uint8_t reserved_at_42[0x4e];
    uint8_t atomic_operations[0x10];
    uint8_t reserved_at_a0[0x10];
    uint8_t atomic_size_qp[0x10];
    uint8_t reserved_at_c0[0x740];
};

PRM_SIZE(atomic_caps, 0x800);
PRM_RSVD(atomic_caps, 0); PRM_RSVD(atomic_caps, 42); PRM_RSVD(atomic_caps, a0);
PRM_RSVD(atomic_caps, c0);

/* RoCE capabilities, op_mod type 4 */
struct prm_roce_cap_bits {
    uint8_t reserved_at_0[0x1e];
    uint8_t qp_ts_format[0x2];
    uint8_t reserved_at_20[0xa0];
    uint8_t r_roce_max_src_udp_port[0x10];
    uint8_t r_roce_min_src_udp_port[0x10];
    uint8_t reserved_at_e0[0x720];
};

PRM_SIZE(roce_cap, 0x800);
PRM_RSVD(roce_cap, 0); PRM_RSVD(roce_cap, 20); PRM_RSVD(roce_cap, e0);

struct prm_query_lag_in_bits {
    uint8_t opcode[0x10];
    uint8_t reserved_at_10[0x70];
};

PRM_SIZE(query_lag_in, 0x80);
PRM_RSVD(query_lag_in, 10);

struct prm_lagc_bits {
    uint8_t reserved_at_0[0x1d];
    uint8_t lag_state[0x3];
    uint8_t reserved_at_20[0x20];
};

PRM_SIZE(lagc, 0x40);
PRM_RSVD(lagc, 0); PRM_RSVD(lagc, 20);

struct prm_query_lag_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    struct prm_lagc_bits ctx;
};

PRM_SIZE(query_lag_out, 0x80);
PRM_RSVD(query_lag_out, 8);

/* Memory key context */
struct prm_mkc_bits {
    uint8_t reserved_at_0[0xd];
    uint8_t relaxed_ordering_write[0x1];
    uint8_t reserved_at_e[0x3];
    uint8_t a[0x1];
    uint8_t rw[0x1];
    uint8_t rr[0x1];
    uint8_t lw[0x1];
    uint8_t lr[0x1];
    uint8_t access_mode_1_0[0x2];
    uint8_t reserved_at_18[0x8];
    uint8_t qpn[0x18];
    uint8_t mkey_7_0[0x8];
    uint8_t reserved_at_40[0x28];
    uint8_t pd[0x18];
    uint8_t start_addr[0x40];
    uint8_t len[0x40];
    uint8_t reserved_at_100[0xd9];
    uint8_t relaxed_ordering_read[0x1];
    uint8_t reserved_at_1da[0x26];
};

PRM_SIZE(mkc, 0x200);
PRM_RSVD(mkc, 0); PRM_RSVD(mkc, e); PRM_RSVD(mkc, 18); PRM_RSVD(mkc, 40);
PRM_RSVD(mkc, 100); PRM_RSVD(mkc, 1da);

struct prm_create_mkey_in_bits {
    uint8_t opcode[0x10];
    uint8_t reserved_at_10[0x51];
    uint8_t mkey_umem_valid[0x1];
    uint8_t reserved_at_62[0x1e];
    struct prm_mkc_bits memory_key_mkey_entry;
    uint8_t reserved_at_280[0x80];
    uint8_t translations_octword_actual_size[0x20];
    uint8_t mkey_umem_id[0x20];
    uint8_t reserved_at_340[0x540];
};

PRM_SIZE(create_mkey_in, 0x880);
PRM_RSVD(create_mkey_in, 10); PRM_RSVD(create_mkey_in, 62);
PRM_RSVD(create_mkey_in, 280); PRM_RSVD(create_mkey_in, 340);

struct prm_create_mkey_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    uint8_t reserved_at_40[0x8];
    uint8_t mkey_index[0x18];
    uint8_t reserved_at_60[0x20];
};

PRM_SIZE(create_mkey_out, 0x80);
PRM_RSVD(create_mkey_out, 8); PRM_RSVD(create_mkey_out, 40);
PRM_RSVD(create_mkey_out, 60);

/* Completion queue context */
struct prm_cqc_bits {
    uint8_t reserved_at_0[0x6];
    uint8_t dbr_umem_valid[0x1];
    uint8_t reserved_at_7[0x19];
    uint8_t dbr_umem_id[0x20];
    uint8_t reserved_at_40[0x23];
    uint8_t log_cq_size[0x5];
    uint8_t uar_page[0x18];
    uint8_t reserved_at_80[0x20];
    uint8_t c_eqn_or_apu_element[0x20];
    uint8_t reserved_at_c0[0x100];
    uint8_t dbr_addr[0x40];
};

PRM_SIZE(cqc, 0x200);
PRM_RSVD(cqc, 0); PRM_RSVD(cqc, 7); PRM_RSVD(cqc, 40); PRM_RSVD(cqc, 80);
PRM_RSVD(cqc, c0);

struct prm_create_cq_in_bits {
    uint8_t opcode[0x10];
    uint8_t reserved_at_10[0x70];
    struct prm_cqc_bits cq_context;
    uint8_t reserved_at_280[0x40];
    uint8_t cq_umem_id[0x20];
    uint8_t cq_umem_valid[0x1];
    uint8_t reserved_at_2e1[0x59f];
};

PRM_SIZE(create_cq_in, 0x880);
PRM_RSVD(create_cq_in, 10); PRM_RSVD(create_cq_in, 280);
PRM_RSVD(create_cq_in, 2e1);

struct prm_create_cq_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    uint8_t reserved_at_40[0x8];
    uint8_t cqn[0x18];
    uint8_t reserved_at_60[0x20];
};

PRM_SIZE(create_cq_out, 0x80);
PRM_RSVD(create_cq_out, 8); PRM_RSVD(create_cq_out, 40);
PRM_RSVD(create_cq_out, 60);

/* Work queue of an RMP */
struct prm_wq_bits {
    uint8_t wq_type[0x4];
    uint8_t reserved_at_4[0x44];
    uint8_t pd[0x18];
    uint8_t reserved_at_60[0x20];
    uint8_t dbr_addr[0x40];
    uint8_t reserved_at_c0[0x4c];
    uint8_t log_wq_stride[0x4];
    uint8_t reserved_at_110[0xb];
    uint8_t log_wq_sz[0x5];
    uint8_t dbr_umem_valid[0x1];
    uint8_t wq_umem_valid[0x1];
    uint8_t reserved_at_122[0x1e];
    uint8_t dbr_umem_id[0x20];
    uint8_t wq_umem_id[0x20];
    uint8_t reserved_at_180[0x480];
};

PRM_SIZE(wq, 0x600);
PRM_RSVD(wq, 4); PRM_RSVD(wq, 60); PRM_RSVD(wq, c0); PRM_RSVD(wq, 110);
PRM_RSVD(wq, 122); PRM_RSVD(wq, 180);

/* Receive memory pool context */
struct prm_rmpc_bits {
    uint8_t reserved_at_0[0x8];
    uint8_t state[0x4];
    uint8_t reserved_at_c[0x174];
    struct prm_wq_bits wq;
};

PRM_SIZE(rmpc, 0x780);
PRM_RSVD(rmpc, 0); PRM_RSVD(rmpc, c);

struct prm_create_rmp_in_bits {
    uint8_t opcode[0x10];
    uint8_t reserved_at_10[0xf0];
    struct prm_rmpc_bits ctx;
};

PRM_SIZE(create_rmp_in, 0x880);
PRM_RSVD(create_rmp_in, 10);

struct prm_create_rmp_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    uint8_t reserved_at_40[0x8];
    uint8_t rmpn[0x18];
    uint8_t reserved_at_60[0x20];
};

PRM_SIZE(create_rmp_out, 0x80);
PRM_RSVD(create_rmp_out, 8); PRM_RSVD(create_rmp_out, 40);
PRM_RSVD(create_rmp_out, 60);

/* Address path of a QP */
struct prm_ads_bits {
    uint8_t reserved_at_0[0x10];
    uint8_t pkey_index[0x10];
    uint8_t reserved_at_20[0x8];
    uint8_t grh[0x1];
    uint8_t reserved_at_29[0x7];
    uint8_t rlid[0x10];
    uint8_t ack_timeout[0x5];
    uint8_t reserved_at_45[0x3];
    uint8_t src_addr_index[0x8];
    uint8_t reserved_at_50[0x8];
    uint8_t hop_limit[0x8];
    uint8_t reserved_at_60[0x4];
    uint8_t tclass[0x8];
    uint8_t reserved_at_6c[0x14];
    uint8_t rgid_rip[0x80];
    uint8_t reserved_at_100[0xa];
    uint8_t dscp[0x6];
    uint8_t udp_sport[0x10];
    uint8_t reserved_at_120[0x1];
    uint8_t eth_prio[0x3];
    uint8_t sl[0x4];
    uint8_t vhca_port_num[0x8];
    uint8_t rmac_47_32[0x10];
    uint8_t rmac_31_0[0x20];
};

PRM_SIZE(ads, 0x160);
PRM_RSVD(ads, 0); PRM_RSVD(ads, 20); PRM_RSVD(ads, 29); PRM_RSVD(ads, 45);
PRM_RSVD(ads, 50); PRM_RSVD(ads, 60); PRM_RSVD(ads, 6c); PRM_RSVD(ads, 100);
PRM_RSVD(ads, 120);

/* Queue pair context */
struct prm_qpc_bits {
    uint8_t reserved_at_0[0x4];
    uint8_t lag_tx_port_affinity[0x4];
    uint8_t st[0x8];
    uint8_t reserved_at_10[0x3];
    uint8_t pm_state[0x2];
    uint8_t reserved_at_15[0x13];
    uint8_t pd[0x18];
    uint8_t mtu[0x3];
    uint8_t log_msg_max[0x5];
    uint8_t reserved_at_48[0x9];
    uint8_t log_sq_size[0x4];
    uint8_t reserved_at_55[0x3];
    uint8_t ts_format[0x2];
    uint8_t reserved_at_5a[0xe];
    uint8_t uar_page[0x18];
    uint8_t reserved_at_80[0x8];
    uint8_t user_index[0x18];
    uint8_t reserved_at_a0[0x8];
    uint8_t remote_qpn[0x18];
    struct prm_ads_bits primary_address_path;
    uint8_t reserved_at_220[0x168];
    uint8_t log_sra_max[0x3];
    uint8_t reserved_at_38b[0x2];
    uint8_t retry_count[0x3];
    uint8_t rnr_retry[0x3];
    uint8_t reserved_at_393[0x35];
    uint8_t next_send_psn[0x18];
    uint8_t reserved_at_3e0[0x8];
    uint8_t cqn_snd[0x18];
    uint8_t reserved_at_400[0x88];
    uint8_t log_rra_max[0x3];
    uint8_t reserved_at_48b[0x1];
    uint8_t atomic_mode[0x4];
    uint8_t rre[0x1];
    uint8_t rwe[0x1];
    uint8_t rae[0x1];
    uint8_t reserved_at_493[0x10];
    uint8_t min_rnr_nak[0x5];
    uint8_t next_rcv_psn[0x18];
    uint8_t reserved_at_4c0[0x28];
    uint8_t cqn_rcv[0x18];
    uint8_t dbr_addr[0x40];
    uint8_t reserved_at_540[0x25];
    uint8_t rq_type[0x3];
    uint8_t srqn_rmpn_xrqn[0x18];
    uint8_t reserved_at_580[0x103];
    uint8_t dbr_umem_valid[0x1];
    uint8_t reserved_at_684[0x9c];
    uint8_t dbr_umem_id[0x20];
};

PRM_SIZE(qpc, 0x740);
PRM_RSVD(qpc, 0); PRM_RSVD(qpc, 10); PRM_RSVD(qpc, 15); PRM_RSVD(qpc, 48);
PRM_RSVD(qpc, 55); PRM_RSVD(qpc, 5a); PRM_RSVD(qpc, 80); PRM_RSVD(qpc, a0);
PRM_RSVD(qpc, 220); PRM_RSVD(qpc, 38b); PRM_RSVD(qpc, 393); PRM_RSVD(qpc, 3e0);
PRM_RSVD(qpc, 400); PRM_RSVD(qpc, 48b); PRM_RSVD(qpc, 493); PRM_RSVD(qpc, 4c0);
PRM_RSVD(qpc, 540); PRM_RSVD(qpc, 580); PRM_RSVD(qpc, 684);

struct prm_create_qp_in_bits {
    uint8_t opcode[0x10];
    uint8_t reserved_at_10[0xb0];
    struct prm_qpc_bits qpc;
    uint8_t reserved_at_800[0x40];
    uint8_t wq_umem_id[0x20];
    uint8_t wq_umem_valid[0x1];
    uint8_t reserved_at_861[0x1f];
};

PRM_SIZE(create_qp_in, 0x880);
PRM_RSVD(create_qp_in, 10); PRM_RSVD(create_qp_in, 800);
PRM_RSVD(create_qp_in, 861);

struct prm_create_qp_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    uint8_t reserved_at_40[0x8];
    uint8_t qpn[0x18];
    uint8_t reserved_at_60[0x20];
};

PRM_SIZE(create_qp_out, 0x80);
PRM_RSVD(create_qp_out, 8); PRM_RSVD(create_qp_out, 40);
PRM_RSVD(create_qp_out, 60);

struct prm_rst2init_qp_in_bits {
    uint8_t opcode[0x10];
    uint8_t reserved_at_10[0x38];
    uint8_t qpn[0x18];
    uint8_t reserved_at_60[0x20];
    uint8_t opt_param_mask[0x20];
    uint8_t reserved_at_a0[0x20];
    struct prm_qpc_bits qpc;
    uint8_t reserved_at_800[0x80];
};

PRM_SIZE(rst2init_qp_in, 0x880);
PRM_RSVD(rst2init_qp_in, 10); PRM_RSVD(rst2init_qp_in, 60);
PRM_RSVD(rst2init_qp_in, a0); PRM_RSVD(rst2init_qp_in, 800);

struct prm_rst2init_qp_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    uint8_t reserved_at_40[0x40];
};

PRM_SIZE(rst2init_qp_out, 0x80);
PRM_RSVD(rst2init_qp_out, 8); PRM_RSVD(rst2init_qp_out, 40);

struct prm_init2rtr_qp_in_bits {
    uint8_t opcode[0x10];
    uint8_t reserved_at_10[0x38];
    uint8_t qpn[0x18];
    uint8_t reserved_at_60[0x20];
    uint8_t opt_param_mask[0x20];
    uint8_t reserved_at_a0[0x20];
    struct prm_qpc_bits qpc;
    uint8_t reserved_at_800[0x80];
};

PRM_SIZE(init2rtr_qp_in, 0x880);
PRM_RSVD(init2rtr_qp_in, 10); PRM_RSVD(init2rtr_qp_in, 60);
PRM_RSVD(init2rtr_qp_in, a0); PRM_RSVD(init2rtr_qp_in, 800);

struct prm_init2rtr_qp_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    uint8_t reserved_at_40[0x40];
};

PRM_SIZE(init2rtr_qp_out, 0x80);
PRM_RSVD(init2rtr_qp_out, 8); PRM_RSVD(init2rtr_qp_out, 40);

struct prm_rtr2rts_qp_in_bits {
    uint8_t opcode[0x10];
    uint8_t reserved_at_10[0x38];
    uint8_t qpn[0x18];
    uint8_t reserved_at_60[0x20];
    uint8_t opt_param_mask[0x20];
    uint8_t reserved_at_a0[0x20];
    struct prm_qpc_bits qpc;
    uint8_t reserved_at_800[0x80];
};

PRM_SIZE(rtr2rts_qp_in, 0x880);
PRM_RSVD(rtr2rts_qp_in, 10); PRM_RSVD(rtr2rts_qp_in, 60);
PRM_RSVD(rtr2rts_qp_in, a0); PRM_RSVD(rtr2rts_qp_in, 800);

struct prm_rtr2rts_qp_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    uint8_t reserved_at_40[0x40];
};

PRM_SIZE(rtr2rts_qp_out, 0x80);
PRM_RSVD(rtr2rts_qp_out, 8); PRM_RSVD(rtr2rts_qp_out, 40);

struct prm_qp_2err_in_bits {
    uint8_t opcode[0x10];
    uint8_t reserved_at_10[0x38];
    uint8_t qpn[0x18];
    uint8_t reserved_at_60[0x20];
};

PRM_SIZE(qp_2err_in, 0x80);
PRM_RSVD(qp_2err_in, 10); PRM_RSVD(qp_2err_in, 60);

struct prm_qp_2err_out_bits {
    uint8_t status[0x8];
    uint8_t reserved_at_8[0x18];
    uint8_t syndrome[0x20];
    uint8_t reserved_at_40[0x40];
};

PRM_SIZE(qp_2err_out, 0x80);
PRM_RSVD(qp_2err_out, 8); PRM_RSVD(qp_2err_out, 40);

#endif
