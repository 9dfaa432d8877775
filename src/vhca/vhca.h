/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The seam inside the emulated device: the kernel side (preload, sysfs,
 * uverbs, devx, caps, prm_table) decodes what libibverbs and libmlx5 ask and
 * calls the NIC side (fabric, qp, cq, srq, mkey, exec, event) below. Neither
 * knows the other's structures beyond this file.
 *
 * NIC calls return true, or false with *fw set to the firmware's verdict
 * (status and syndrome of the command's output mailbox). Negative errno is
 * for what the kernel would refuse. Outputs are written on success only.
 */

#ifndef VHCA_H_
#define VHCA_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VHCA_MAX_DEVICES 2

/* Status byte of a command's output mailbox (PRM, command return status) */
enum {
    VHCA_FW_OK              = 0x00,
    VHCA_FW_INTERNAL_ERR    = 0x01,
    VHCA_FW_BAD_OP          = 0x02,
    VHCA_FW_BAD_PARAM       = 0x03,
    VHCA_FW_BAD_SYS_STATE   = 0x04,
    VHCA_FW_BAD_RESOURCE    = 0x05,
    VHCA_FW_RESOURCE_BUSY   = 0x06,
    VHCA_FW_EXCEED_LIM      = 0x08,
    VHCA_FW_BAD_RES_STATE   = 0x09,
    VHCA_FW_BAD_INDEX       = 0x0a,
    VHCA_FW_NO_RESOURCES    = 0x0f,
    VHCA_FW_BAD_QP_STATE    = 0x10,
    VHCA_FW_BAD_PKT         = 0x30,
    VHCA_FW_BAD_SIZE        = 0x40,
    VHCA_FW_BAD_INPUT_LEN   = 0x50,
    VHCA_FW_BAD_OUTPUT_LEN  = 0x51
};

struct vhca_fw {
    uint8_t  status;
    uint32_t syndrome;
};

/* ---- the device, as the environment wants it (caps.c: kernel side) ---- */

struct vhca_port_cfg {
    bool     roce;            /* VHCA_LINK=roce (default) | ib */
    uint16_t lid;             /* IB */
    uint8_t  gid[8][16];      /* table, network order; unused entries zero */
    uint8_t  gid_type[8];     /* enum ib_uverbs_gid_type */
    uint8_t  num_gids;
    uint8_t  mtu;             /* IB encoding of the active MTU */
};

/** Port 1 of device `dev` (0..VHCA_MAX_DEVICES-1): the same in every process.
 *  */
const struct vhca_port_cfg *vhca_port_cfg(unsigned dev);

/* ---- fabric.c ---- */

/** Maps the fabric's shared memory (VHCA_FABRIC names it; default: one per
 *  user) and enters this process in it. Called when a device is opened; later
 *  calls are free. 0 or a negative errno, said once on stderr. */
int vhca_fabric_attach(void);

/** A new owner: everything that one opened device context makes. */
int vhca_owner_open(unsigned dev, uint32_t *owner_p);
/** Destroys whatever is left of the owner: QPs, RMPs, CQs, keys, channels. */
void vhca_owner_close(uint32_t owner);

int  vhca_pd_alloc(uint32_t owner, uint32_t *pdn_p);
void vhca_pd_free(uint32_t owner, uint32_t pdn);

/* ---- stat.c: what vhca-stat shows ---- */

/** Adds delta to the fabric-wide and this process's named cell ("umem",
 *  "uar", "cmd.CREATE_QP", ...); gauges keep their high-water mark. */
void vhca_stat_add(const char *name, int64_t delta);

/* ---- event.c ---- */

enum vhca_channel_kind {
    VHCA_CHANNEL_ASYNC,       /* 16-byte ib_uverbs_async_event_desc */
    VHCA_CHANNEL_COMP,        /* 8-byte user handle */
    VHCA_CHANNEL_DEVX_EVENT,  /* 8-byte cookie, then the EQE unless omitted */
};

/** An fd from which libibverbs reads events; any process of the fabric can
 *  send to it without blocking. The fd is the caller's to close. */
int vhca_channel_create(uint32_t owner, enum vhca_channel_kind kind,
                        bool omit_data, int *fd_p, uint32_t *chan_p);
void vhca_channel_destroy(uint32_t chan);

/* enum ib_event_type, of a whole device: device.c */
enum {
    VHCA_EVENT_DEVICE_FATAL = 8,
    VHCA_EVENT_PORT_ACTIVE  = 9,
    VHCA_EVENT_PORT_ERR     = 10
};

/** This process's device was taken away: the kernel answers EIO to all. */
bool vhca_device_removed(void);

/** Event `type` (PRM event type: 0 completion, 0x04 CQ error, 0x13 last WQE
 *  ...) of object `number` (CQN, QPN) goes to the channel with this cookie.
 *  number 0: events that belong to no object. */
int vhca_event_subscribe(uint32_t chan, uint16_t type, uint32_t number,
                         uint64_t cookie);
/* Events of an object that its software has read, or that only it can say it
 * has not: what the destroy responses of uverbs report. */
struct vhca_event_counts {
    uint32_t comp;            /* sent to completion channels */
    uint32_t async;           /* sent to async channels */
};

/** Drops every subscription of the object and takes back what was sent to its
 *  channels and not yet read. */
struct vhca_event_counts vhca_event_unsubscribe(uint32_t number);

/* ---- mkey.c ---- */

struct vhca_mkey_attr {
    uint32_t owner;
    uint32_t pdn;
    uint64_t start;           /* first address of the key */
    uint64_t len;
    uint64_t va_delta;        /* from an address of the key to the virtual one:
                                 0 unless the key's addresses start elsewhere */
    uint32_t qpn;             /* 0xffffff: any */
    uint8_t  tag;             /* mkey_7_0 */
    bool     lr, lw, rr, rw, a;
    bool     over_umem;       /* counted apart by vhca-stat */
};

bool vhca_mkey_create(const struct vhca_mkey_attr *attr, uint32_t *index_p,
                      struct vhca_fw *fw);
bool vhca_mkey_destroy(uint32_t owner, uint32_t index, struct vhca_fw *fw);
/** PD, range and rights become those of attr; index and tag stay. */
bool vhca_mkey_modify(uint32_t index, const struct vhca_mkey_attr *attr,
                      struct vhca_fw *fw);
bool vhca_mkey_query(uint32_t owner, uint32_t index,
                     struct vhca_mkey_attr *attr_p, struct vhca_fw *fw);

/* ---- cq.c ---- */

/* Queue memory: addresses in this process, already checked against the umem
 * (length, alignment). The NIC side exchanges the pages for the fabric's. */
struct vhca_cq_attr {
    uint32_t owner;
    void    *ring;
    uint8_t  log_size;
    uint8_t  cqe_size;        /* 64 or 128 */
    void    *dbrec;           /* be32 set_ci, be32 arm */
    uint32_t uar_page;
    bool     oi;              /* overrun ignore: set_ci is not looked at */
    bool     verbs;           /* made by ibv_create_cq */
};

bool vhca_cq_create(const struct vhca_cq_attr *attr, uint32_t *cqn_p,
                    struct vhca_fw *fw);
bool vhca_cq_destroy(uint32_t owner, uint32_t cqn, struct vhca_fw *fw);
/** Another ring with entries of the same size; the old one ends with a mark. */
bool vhca_cq_resize(uint32_t owner, uint32_t cqn, void *ring,
                    uint8_t log_size, struct vhca_fw *fw);

/* ---- srq.c: RMP ---- */

struct vhca_rmp_attr {
    uint32_t owner;
    uint32_t pdn;
    void    *ring;
    uint8_t  log_size;
    uint8_t  log_stride;      /* bytes */
    bool     cyclic;          /* else linked list: next_wqe_index */
    bool     basic_cyclic_rcv_wqe; /* no next segment in the WQE */
    void    *dbrec;           /* be32 receive counter */
};

bool vhca_rmp_create(const struct vhca_rmp_attr *attr, uint32_t *rmpn_p,
                     struct vhca_fw *fw);
bool vhca_rmp_destroy(uint32_t owner, uint32_t rmpn, struct vhca_fw *fw);
/** The limit event is raised once, when fewer receives than `limit` are left;
 *  0 takes it back. */
bool vhca_rmp_set_limit(uint32_t owner, uint32_t rmpn, uint32_t limit,
                        struct vhca_fw *fw);
bool vhca_rmp_get_limit(uint32_t owner, uint32_t rmpn, uint32_t *limit_p,
                        struct vhca_fw *fw);

/* ---- qp.c ---- */

enum vhca_qp_state {
    VHCA_QP_RST, VHCA_QP_INIT, VHCA_QP_RTR, VHCA_QP_RTS, VHCA_QP_SQD,
    VHCA_QP_SQE, VHCA_QP_ERR
};

enum vhca_qp_type {
    VHCA_QP_RC, VHCA_QP_UD
};

struct vhca_qp_attr {
    uint32_t owner;
    uint32_t pdn;
    enum vhca_qp_type type;
    void    *sq;              /* NULL: no send queue */
    uint8_t  log_sq_size;     /* 64-byte blocks */
    void    *rq;              /* NULL: rmpn or none */
    uint8_t  log_rq_size;
    uint8_t  log_rq_stride;   /* bytes */
    uint32_t rmpn;            /* 0: none */
    uint32_t cqn_snd, cqn_rcv;
    void    *dbrec;           /* be32 receive, be32 send */
    uint32_t uar_page;
    uint32_t user_index;      /* 24 bits, comes back in the CQE (v1) */
    uint8_t  cs_req, cs_res;  /* 0, 32, 64: data up to this size goes into the
                                 CQE (of a read or atomic; of a receive) */
    bool     verbs;
};

/* What a transition sets; the decoder fills what the command carries, the NIC
 * side checks what the state machine asks for. */
struct vhca_qp_modify {
    uint16_t opcode;          /* 0x502 RST2INIT ... 0x50a 2RST */
    uint32_t opt_param_mask;
    uint8_t  port;
    uint16_t pkey_index;
    bool     rre, rwe, rae;
    uint8_t  atomic_mode;
    uint8_t  mtu;             /* IB encoding */
    uint8_t  log_msg_max;
    uint32_t remote_qpn;
    uint32_t next_rcv_psn, next_send_psn;
    uint8_t  log_rra_max, log_sra_max;
    uint8_t  min_rnr_nak, rnr_retry, retry_count, ack_timeout;
    uint32_t qkey;            /* UD */
    uint32_t flow_label;
    /* address vector */
    bool     grh;
    uint16_t rlid;
    uint8_t  rgid[16];
    uint8_t  rmac[6];
    uint8_t  sgid_index, hop_limit, sl, tclass;
    uint16_t udp_sport;
};

struct vhca_qp_info {
    struct vhca_qp_attr   attr;
    struct vhca_qp_modify last;   /* merged */
    enum vhca_qp_state    state;
};

bool vhca_qp_create(const struct vhca_qp_attr *attr, uint32_t *qpn_p,
                    struct vhca_fw *fw);
bool vhca_qp_modify(uint32_t owner, uint32_t qpn,
                    const struct vhca_qp_modify *mod, struct vhca_fw *fw);
bool vhca_qp_query(uint32_t owner, uint32_t qpn, struct vhca_qp_info *info_p,
                   struct vhca_fw *fw);
bool vhca_qp_destroy(uint32_t owner, uint32_t qpn, struct vhca_fw *fw);

#endif
