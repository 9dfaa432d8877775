/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One function per PRM command, no policy. hx_cmd_fill_* writes the input
 * mailbox, which must be zeroed; hx_cmd_* fills, issues and decodes. A failure
 * is logged here, with the device, command, errno, status and syndrome, and
 * outputs are written on success only.
 */

#ifndef HX_CMD_H_
#define HX_CMD_H_

#include "hx.h"
#include "prm.h"

/* CREATE_MKEY: a direct key over a whole umem */
struct hx_cmd_mkey_attr {
    uint64_t addr;
    uint64_t len;
    uint32_t pdn;
    uint32_t umem_id;
    uint32_t access;        /* IBV_ACCESS_*; local read is always allowed */
    bool     relaxed_write;
    bool     relaxed_read;
    uint8_t  tag;           /* mkey_7_0 */
};

/* CREATE_CQ: 64-byte CQEs at offset 0 of the umem */
struct hx_cmd_cq_attr {
    uint32_t umem_id;
    uint32_t dbr_umem_id;
    uint64_t dbr_addr;      /* offset in the doorbell record's umem */
    uint32_t eqn;
    uint32_t uar_page;
    uint8_t  log_size;
};

/* CREATE_RMP: a linked list, WQEs at offset 0 of the umem */
struct hx_cmd_rmp_attr {
    uint32_t pdn;
    uint32_t umem_id;
    uint32_t dbr_umem_id;
    uint64_t dbr_addr;
    uint8_t  log_size;
    uint8_t  log_stride;    /* bytes */
};

/* CREATE_QP: RC, no receive queue of its own, SQ at offset 0 of the umem */
struct hx_cmd_qp_attr {
    uint32_t pdn;
    uint32_t uar_page;
    uint32_t cqn_snd;
    uint32_t cqn_rcv;
    uint8_t  rq_type;       /* PRM_QPC_RQ_TYPE_* */
    uint32_t rmpn;
    uint8_t  log_sq_size;   /* basic blocks */
    uint8_t  ts_format;     /* PRM_QPC_TS_FORMAT_* */
    uint32_t user_index;
    uint32_t umem_id;
    uint32_t dbr_umem_id;
    uint64_t dbr_addr;
};

struct hx_cmd_rst2init_attr {
    uint8_t  port_num;
    uint16_t pkey_index;
    uint8_t  atomic_mode;   /* PRM_QPC_ATOMIC_MODE_*; NONE refuses atomics */
};

struct hx_cmd_init2rtr_attr {
    uint32_t remote_qpn;
    uint32_t rq_psn;
    uint8_t  mtu;           /* enum ibv_mtu, which is the PRM's encoding */
    uint8_t  log_msg_max;
    uint8_t  log_rra_max;
    uint8_t  min_rnr_nak;
    uint8_t  atomic_mode;
    uint8_t  lag_tx_port;   /* 0: no affinity */

    /* the address path */
    uint8_t  port_num;
    uint8_t  sl;            /* Ethernet: the priority */
    bool     roce;
    bool     grh;           /* IB: a GRH is sent; RoCE: always, leave false */
    uint16_t rlid;          /* IB only */
    uint8_t  src_addr_index;
    uint8_t  hop_limit;
    uint8_t  tclass;
    uint8_t  rgid[16];
    uint8_t  rmac[6];       /* RoCE only, as are the next two */
    uint8_t  dscp;
    uint16_t udp_sport;
};

struct hx_cmd_rtr2rts_attr {
    uint32_t sq_psn;
    uint8_t  log_sra_max;
    uint8_t  retry_count;
    uint8_t  rnr_retry;
    uint8_t  ack_timeout;
};

void hx_cmd_fill_query_hca_cap(void *in, unsigned type);
/* cap is 4096 bytes; type is PRM_HCA_CAP_*; failures are logged at `level` */
int hx_cmd_query_hca_cap(struct ibv_context *ibv, unsigned type, void *cap,
                         enum hx_log_level level);

void hx_cmd_fill_query_lag(void *in);
/* lag_state of the device: 0 is no LAG */
int hx_cmd_query_lag(struct hx_dev *dev, uint8_t *state_p);

void hx_cmd_fill_create_mkey(void *in, const struct hx_cmd_mkey_attr *attr);
int hx_cmd_create_mkey(struct hx_dev *dev, const struct hx_cmd_mkey_attr *attr,
                       struct mlx5dv_devx_obj **obj_p, uint32_t *mkey_p);

void hx_cmd_fill_create_cq(void *in, const struct hx_cmd_cq_attr *attr);
int hx_cmd_create_cq(struct hx_dev *dev, const struct hx_cmd_cq_attr *attr,
                     struct mlx5dv_devx_obj **obj_p, uint32_t *cqn_p);

void hx_cmd_fill_create_rmp(void *in, const struct hx_cmd_rmp_attr *attr);
int hx_cmd_create_rmp(struct hx_dev *dev, const struct hx_cmd_rmp_attr *attr,
                      struct mlx5dv_devx_obj **obj_p, uint32_t *rmpn_p);

void hx_cmd_fill_create_qp(void *in, const struct hx_cmd_qp_attr *attr);
int hx_cmd_create_qp(struct hx_dev *dev, const struct hx_cmd_qp_attr *attr,
                     struct mlx5dv_devx_obj **obj_p, uint32_t *qpn_p);

void hx_cmd_fill_rst2init_qp(void *in, uint32_t qpn,
                             const struct hx_cmd_rst2init_attr *attr);
int hx_cmd_rst2init_qp(struct hx_dev *dev, struct mlx5dv_devx_obj *obj,
                       uint32_t qpn, const struct hx_cmd_rst2init_attr *attr);

void hx_cmd_fill_init2rtr_qp(void *in, uint32_t qpn,
                             const struct hx_cmd_init2rtr_attr *attr);
int hx_cmd_init2rtr_qp(struct hx_dev *dev, struct mlx5dv_devx_obj *obj,
                       uint32_t qpn, const struct hx_cmd_init2rtr_attr *attr);

void hx_cmd_fill_rtr2rts_qp(void *in, uint32_t qpn,
                            const struct hx_cmd_rtr2rts_attr *attr);
int hx_cmd_rtr2rts_qp(struct hx_dev *dev, struct mlx5dv_devx_obj *obj,
                      uint32_t qpn, const struct hx_cmd_rtr2rts_attr *attr);

void hx_cmd_fill_2err_qp(void *in, uint32_t qpn);
int hx_cmd_2err_qp(struct hx_dev *dev, struct mlx5dv_devx_obj *obj,
                   uint32_t qpn);

/* Destroys an object; `what` and `number` name it if that fails */
void hx_cmd_destroy(struct mlx5dv_devx_obj *obj, const char *what,
                    uint32_t number);

/* The negative errno of a failed command: by its status when the kernel says
 * that the command was refused (EREMOTEIO), else the kernel's */
int hx_cmd_errno(int err, const void *out);

#endif
