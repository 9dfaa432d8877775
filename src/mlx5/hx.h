/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The device half: mlx5 objects over DevX, no UCX. Everything returns 0 or a
 * negative errno, logs the failure once (hx_log) and sets its outputs on
 * success only. Control-path calls may come from any thread, each object from
 * one thread at a time. Create order: device, UAR, CQ, RMP, QP; destroy in
 * reverse.
 */

#ifndef HX_H_
#define HX_H_

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A WQE basic block, the unit of SQ sizes and of the producer index */
#define HX_BB_SIZE 64

/* Largest WQE that the hot path builds, in basic blocks */
#define HX_WQE_MAX_BB 4

#define HX_GID_INDEX_AUTO UINT32_MAX

/* What QUERY_HCA_CAP said, in the PRM's names; log_ is log2 */
struct hx_caps {
    uint8_t  log_max_uctx;
    uint8_t  log_max_umem;
    uint8_t  log_max_qp_sz;      /* 64-byte units */
    uint8_t  log_max_cq_sz;
    uint8_t  log_max_ra_req_qp;
    uint8_t  log_max_ra_res_qp;
    uint8_t  log_max_msg;
    uint8_t  log_max_rmp;
    uint8_t  cqe_version;
    uint8_t  num_ports;
    uint16_t max_wqe_sz_sq;      /* bytes */
    bool     port_type_roce;     /* port_type is Ethernet */
    bool     atomic;
    bool     cq_oi;
    bool     ece;
    bool     fixed_buffer_size;
    bool     init2_lag_tx_port_affinity;
    uint8_t  num_lag_ports;
    bool     roce;
    uint16_t r_roce_min_src_udp_port;
    uint16_t r_roce_max_src_udp_port;
    uint8_t  qp_ts_format;
    bool     mkc_order_write_after_write_ro_only;
    bool     relaxed_ordering_write;
    bool     relaxed_ordering_read;
    uint16_t atomic_operations;  /* bits: CS, FA, masked CS, masked FA */
    uint16_t atomic_size_qp;     /* bit n: 2^n bytes */
    bool     atomic_req_8B_endianness_mode;
};

/* How memory becomes known to the device */
enum hx_reg_mode {
    HX_REG_AUTO, /* a umem and a key over it if the device proves that it takes
                    such keys, else an MR; decided before the first key */
    HX_REG_UMEM, /* a umem and a key */
    HX_REG_MR    /* ibv_reg_mr() */
};

struct hx_dev {
    struct ibv_context *ibv;
    struct ibv_pd      *pd;
    uint32_t            pdn;
    uint32_t            eqn;     /* of completion vector 0 */
    struct hx_caps      caps;
    bool                lag;     /* ports bonded: QPs need a port affinity */
    char                name[64];
    volatile bool       gone;    /* hx_dev_next_event() told so: for good */
    enum hx_reg_mode    reg_mode;        /* reg_mode.c's, as the next */
    char                reg_reason[320];
};

/* One port as a link needs it. In host order. */
struct hx_port {
    uint8_t        num;
    bool           active;
    bool           roce;         /* Ethernet link layer */
    uint16_t       lid;          /* IB only */
    uint8_t        sl;
    enum ibv_mtu   active_mtu;
    uint32_t       gid_index;
    union ibv_gid  gid;
    uint32_t       gid_type;     /* enum ibv_gid_type; RoCE v2 is preferred */
    uint8_t        active_speed;
    uint8_t        active_width;
};

struct hx_uar {
    struct mlx5dv_devx_uar *dv;
    void                   *reg_addr;  /* send doorbell, 8 bytes */
    void                   *base_addr; /* CQ arm at +0x20 */
    uint32_t                page_id;
};

/* Registered memory of this process, page bounds as the kernel sees them */
struct hx_umem {
    struct mlx5dv_devx_umem *dv;
    void                    *addr;
    size_t                   len;
    uint32_t                 id;
};

/* A direct key over one umem, both of exactly [addr, addr + len); or an MR of
 * that range, which is a key as well */
struct hx_mkey {
    struct hx_umem          umem;
    struct mlx5dv_devx_obj *obj;
    struct ibv_mr          *mr;    /* NULL: umem and obj, else instead of them */
    uint32_t                key;   /* lkey and rkey: mkey_index << 8 | tag */
};

/* Pages for a ring or a doorbell record: zeroed, page aligned, a umem */
struct hx_buf {
    void          *addr;
    size_t         len;
    struct hx_umem umem;
};

struct hx_channel {
    struct mlx5dv_devx_event_channel *dv;
    int                               fd; /* non-blocking, for poll/epoll */
    struct hx_cq                     *cqs; /* that send their events here */
};

struct hx_cq {
    struct hx_buf           buf;       /* ring, then the doorbell record */
    struct mlx5dv_devx_obj *obj;
    struct hx_uar          *uar;
    void                   *ring;      /* 64-byte CQEs */
    volatile uint32_t      *dbrec;     /* [0] set_ci, [1] arm, big endian */
    uint32_t                ci;
    uint32_t                mask;      /* entries - 1 */
    uint8_t                 log_size;
    uint32_t                cqn;
    uint32_t                arm_sn;    /* events so far, see hx_channel_drain */
    struct hx_channel      *chan;
    struct hx_cq           *chan_next;
    int                   (*ring_soft)(unsigned type, uint32_t number);
};

/* Send queue: indexes count 64-byte basic blocks and wrap at 16 bits */
struct hx_sq {
    void              *ring;
    uint32_t           mask;           /* basic blocks - 1 */
    uint16_t           pi;             /* first free block */
    uint16_t           ci;             /* first block not known complete */
    uint32_t           qpn;
    volatile uint32_t *dbrec;          /* send word, big endian */
    void              *uar_reg;
    /* the emulated device's doorbell, NULL on hardware (mmio.h) */
    int              (*ring_soft)(unsigned type, uint32_t number);
};

struct hx_qp {
    struct hx_sq            sq;        /* hot, first */
    struct hx_buf           buf;
    struct mlx5dv_devx_obj *obj;
    struct hx_dev          *dev;
    uint32_t                qpn;
};

struct hx_qp_attr {
    struct hx_uar *uar;
    struct hx_cq  *send_cq;
    struct hx_cq  *recv_cq;
    struct hx_rmp *rmp;                /* NULL: a QP that receives none */
    uint32_t       log_sq_bb;          /* log2 of basic blocks, >= 4 */
};

/* The far end of a link, and how to reach it */
struct hx_qp_path {
    uint32_t      remote_qpn;
    uint32_t      remote_psn;          /* 24 bits: the peer's sq_psn */
    uint32_t      local_psn;           /* 24 bits: our sq_psn */
    enum ibv_mtu  mtu;
    uint16_t      lid;                 /* IB: of the peer */
    union ibv_gid gid;                 /* of the peer; all zero: no GRH (IB) */
    uint8_t       sl;
    uint8_t       traffic_class;
    uint8_t       hop_limit;           /* 0: 64 */
    uint8_t       ack_timeout;         /* 4.096 us << n */
    uint8_t       retry_count;         /* 0..7 */
    uint8_t       rnr_retry;           /* 7: without end */
    uint8_t       min_rnr_nak;         /* IB encoding */
    uint8_t       max_rd_atomic;       /* 0: the capability's maximum */
    uint16_t      pkey_index;
};

/* Receives shared by all links of an interface: an RMP whose WQEs are a linked
 * list, one data segment each behind the 16-byte next segment. Those that are
 * not posted go from head to tail; the next segment of the last one posted
 * names head, so one WQE is never posted. */
struct hx_rmp {
    struct hx_buf           buf;
    struct mlx5dv_devx_obj *obj;
    void                   *ring;
    volatile uint32_t      *dbrec;     /* receive word, big endian */
    uint32_t                rmpn;
    uint32_t                mask;      /* WQEs - 1 */
    uint8_t                 log_stride;
    uint16_t                pi;        /* WQEs posted, free running */
    uint16_t                head;      /* index of the next to be posted */
    uint16_t                tail;
    int                   (*ring_soft)(unsigned type, uint32_t number);
};

/* ---- dev.c, caps.c ---- */

/** Names of the RDMA devices that the mlx5 provider drives and that open with
 *  DevX; free each and the array with free(). 0 devices is no error. */
int hx_dev_list(char ***names_p, unsigned *count_p);

/** Opens by verbs name ("mlx5_0"), checks the minimum capabilities, makes the
 *  PD. -ENODEV: no such device; -EOPNOTSUPP: it lacks something, logged. */
int hx_dev_open(const char *name, struct hx_dev **dev_p);
void hx_dev_close(struct hx_dev *dev);

/** gid_index HX_GID_INDEX_AUTO picks: RoCE v2 with an IPv4 address first, then
 *  any RoCE v2, then index 0; IB: index 0. */
int hx_port_query(struct hx_dev *dev, uint8_t port_num, uint32_t gid_index,
                  struct hx_port *port_p);

/* ---- umem.c ---- */

/** One UAR page serves any number of queues of one thread. */
int hx_uar_create(struct hx_dev *dev, struct hx_uar **uar_p);
void hx_uar_destroy(struct hx_uar *uar);

/** access: IBV_ACCESS_LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ only. The page
 *  size is capped so that the page-offset rule holds for a key at addr. */
int hx_umem_reg(struct hx_dev *dev, void *addr, size_t len, uint32_t access,
                struct hx_umem *umem_p);
void hx_umem_dereg(struct hx_umem *umem);

/** Zeroed anonymous pages and their umem, which the device may write. A forked
 *  child does not have them. */
int hx_buf_alloc(struct hx_dev *dev, size_t len, struct hx_buf *buf_p);
void hx_buf_free(struct hx_buf *buf);

/* ---- mkey.c ---- */

/** One umem and one direct key, or one MR (hx_dev_reg_mode()), of exactly
 *  [addr, addr + len); len > 0, any alignment. access: verbs flags, also
 *  IBV_ACCESS_REMOTE_ATOMIC (not for the umem) and
 *  IBV_ACCESS_RELAXED_ORDERING. */
int hx_mkey_create(struct hx_dev *dev, void *addr, size_t len, uint32_t access,
                   struct hx_mkey *mkey_p);
void hx_mkey_destroy(struct hx_mkey *mkey);

/* ---- reg_mode.c ---- */

/** What hx_mkey_create() makes from now on; of a device that was just opened it
 *  is HX_REG_AUTO. HX_REG_UMEM proves the device now: an error if it does not
 *  pass, and the mode stays what it was. */
int hx_dev_set_reg_mode(struct hx_dev *dev, enum hx_reg_mode mode);
/** HX_REG_UMEM or HX_REG_MR. Under HX_REG_AUTO the first call decides, by
 *  hx_selftest_umem_keys(), whose outcome the process keeps for each device. */
enum hx_reg_mode hx_dev_reg_mode(struct hx_dev *dev);
/** Why it is so, in words, once it was decided. */
const char *hx_dev_reg_reason(const struct hx_dev *dev);

/* ---- selftest.c ---- */

/** Whether keys over umems move bytes on this device as they should: RDMA
 *  write and read through a loopback QP pair of its own, within a second. The
 *  port must be active. What it sends is counted in "selftest.<counter>". */
int hx_selftest_umem_keys(struct hx_dev *dev, const struct hx_port *port);

/* ---- event.c ---- */

enum hx_dev_event_type {
    HX_DEV_GONE,        /* removed, or failed for good: dev->gone is set now */
    HX_DEV_PORT_DOWN,
    HX_DEV_PORT_UP,
    HX_DEV_OTHER
};

struct hx_dev_event {
    enum hx_dev_event_type type;
    uint8_t                port;  /* of PORT_... */
    const char            *text;  /* what verbs calls it */
};

/** Where hx_dev_next_event() reads: for poll/epoll, non-blocking. */
int  hx_dev_event_fd(const struct hx_dev *dev);
/** What the kernel tells of the device as a whole; false: nothing more now.
 *  Nothing follows HX_DEV_GONE, and the descriptor may stay readable. */
bool hx_dev_next_event(struct hx_dev *dev, struct hx_dev_event *event_p);

int hx_channel_create(struct hx_dev *dev, struct hx_channel **chan_p);
void hx_channel_destroy(struct hx_channel *chan);
/** Reads everything that waits: the number of events, or negative errno. Before
 *  hx_cq_arm(): an event ends an arming, and the next needs a new sequence
 *  number. */
int hx_channel_drain(struct hx_channel *chan);

/* ---- cq.c ---- */

/** chan may be NULL: a CQ that is only polled. */
int hx_cq_create(struct hx_dev *dev, struct hx_uar *uar, unsigned log_size,
                 struct hx_channel *chan, struct hx_cq **cq_p);
void hx_cq_destroy(struct hx_cq *cq);
/** Of a CQ that was made without: its events go to the channel from now on. */
int hx_cq_set_channel(struct hx_dev *dev, struct hx_cq *cq,
                      struct hx_channel *chan);
/** The channel no longer knows the CQ. What was subscribed ends with either of
 *  them. */
void hx_cq_unset_channel(struct hx_cq *cq);
/** Asks for one event at the next CQE (solicited: the next solicited one), at
 *  once if there is one that was not polled. The CQ must have a channel. */
void hx_cq_arm(struct hx_cq *cq, bool solicited);

/* ---- srq.c: RMP ---- */

int hx_rmp_create(struct hx_dev *dev, struct hx_uar *uar, unsigned log_size,
                  struct hx_rmp **rmp_p);
void hx_rmp_destroy(struct hx_rmp *rmp);

/* ---- qp.c: RC ---- */

int hx_qp_create(struct hx_dev *dev, const struct hx_qp_attr *attr,
                 struct hx_qp **qp_p);
/** RST2INIT: remote read, write and (with the capability) atomic allowed. */
int hx_qp_init(struct hx_qp *qp, const struct hx_port *port,
               uint16_t pkey_index);
/** INIT2RTR: the port gives the address vector's local side. */
int hx_qp_rtr(struct hx_qp *qp, const struct hx_port *port,
              const struct hx_qp_path *path);
int hx_qp_rts(struct hx_qp *qp, const struct hx_qp_path *path);
/** 2ERR: what is posted is flushed, nothing is accepted any more. */
int hx_qp_err(struct hx_qp *qp);
void hx_qp_destroy(struct hx_qp *qp);

/* ---- limits.c ---- */

enum hx_limit_use {
    HX_LIMIT_OPEN,  /* a descriptor */
    HX_LIMIT_PIN,   /* memory for the device */
    HX_LIMIT_MAP    /* mmap() */
};

/** Room for what hx_limit_hint() says */
#define HX_LIMIT_HINT_MAX 160

/** If err (errno) may come from a limit: "; ..." with its name, its value and
 *  what raises it, to be put behind a message; else "". Returns buf. */
const char *hx_limit_hint(enum hx_limit_use use, int err, char *buf,
                          size_t size);

/* EIO: the kernel has taken the device away, and what is to be destroyed with
 * it. Such an object is gone, and its memory may be freed. */
#define HX_DESTROY_LOG_LEVEL(_err) \
    (((_err) == EIO) ? HX_LOG_DEBUG : HX_LOG_WARN)

/* ---- log.c ---- */

enum hx_log_level {
    HX_LOG_ERROR,
    HX_LOG_WARN,
    HX_LOG_DEBUG,
    HX_LOG_NOTICE  /* a decision that the user should know of; never held */
};

typedef void (*hx_log_fn)(enum hx_log_level level, const char *file,
                          unsigned line, const char *func, const char *msg);

/** Where messages go; NULL: errors and warnings to stderr. Set once, before
 *  the first device is opened. */
void hx_log_set(hx_log_fn fn);
void hx_log_write(enum hx_log_level level, const char *file, unsigned line,
                  const char *func, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));
/* Messages that are kept back; one on the caller's stack */
struct hx_log_hold {
    char               *buf;
    size_t              size;
    struct hx_log_hold *outer;
};

/**
 * Until the end: errors and warnings of this thread are logged as debug
 * messages only; the first is kept in buf ("" if none), for a caller that may
 * still have another way, or knows more of the cause. Holds nest.
 */
void hx_log_hold_begin(struct hx_log_hold *hold, char *buf, size_t size);
void hx_log_hold_end(struct hx_log_hold *hold);

#define hx_log(_level, ...) \
    hx_log_write(_level, __FILE__, __LINE__, __func__, __VA_ARGS__)

/* ---- counter.c ---- */

/** A counter that whoever watches the device can see under "sw.<name>": the
 *  emulated device's shared table if it offers one (vhca_counter), else a
 *  cell of this process. Never NULL; the same name gives the same cell. */
uint64_t *hx_counter(const char *name);

#endif
