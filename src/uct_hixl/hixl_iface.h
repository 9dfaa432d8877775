/* SPDX-License-Identifier: BSD-3-Clause */

/* The interface: queues shared by its links, buffer pools, progress. */

#ifndef UCT_HIXL_IFACE_H_
#define UCT_HIXL_IFACE_H_

#include "hixl_md.h"

#include <ucs/async/async.h>
#include <ucs/datastruct/arbiter.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/mpool.inl>
#include <ucs/datastruct/queue.h>
#include <uct/base/uct_iface.h>

typedef struct uct_hixl_iface uct_hixl_iface_t;
typedef struct uct_hixl_ep    uct_hixl_ep_t;
typedef struct uct_hixl_link  uct_hixl_link_t;
typedef struct uct_hixl_cm    uct_hixl_cm_t;
typedef struct uct_hixl_event uct_hixl_event_t;

/* Where a port is; what RTR needs of the peer's side. Network order. */
typedef struct uct_hixl_device_addr {
    uint8_t  flags;                /* UCT_HIXL_DEV_ADDR_ROCE; mtu << 4 */
    uint8_t  lid[2];
    uint8_t  gid[16];
    uint8_t  host_id[8];           /* ucs_get_system_id(), for the scope */
} UCS_S_PACKED uct_hixl_device_addr_t;

#define UCT_HIXL_DEV_ADDR_ROCE      UCS_BIT(0)
#define UCT_HIXL_DEV_ADDR_MTU_SHIFT 4

typedef struct uct_hixl_iface_config {
    uct_iface_config_t       super;
    size_t                   seg_size;      /* bytes of a buffer */
    unsigned                 tx_queue_len;  /* basic blocks of a link's SQ */
    unsigned                 rx_queue_len;
    unsigned                 tx_cq_len;
    unsigned                 tx_moderation; /* basic blocks between two CQEs */
    size_t                   max_inline;    /* cap of short operations */
    unsigned                 max_iov;
    uct_iface_mpool_config_t tx_mpool;
    uct_iface_mpool_config_t rx_mpool;
    char                    *cm_addr;       /* "" = auto, or IPs */
    double                   cm_timeout;    /* seconds for the exchange */
    unsigned long            gid_index;     /* UCS_ULUNITS_AUTO = auto */
    unsigned                 timeout;       /* ack timeout exponent */
    unsigned                 retry_count;
    unsigned                 rnr_retry;
} uct_hixl_iface_config_t;

/* QP number (24 bits) -> link, in two levels. Progress only. */
#define UCT_HIXL_QP_TABLE_BITS 12

typedef struct uct_hixl_qp_table {
    uct_hixl_link_t **dir[UCS_BIT(UCT_HIXL_QP_TABLE_BITS)];
} uct_hixl_qp_table_t;

/* Buffers of one size in chunks with a key of their own; hixl_pool.c */
typedef struct uct_hixl_pool {
    ucs_mpool_t    mp;
    struct hx_dev *dev;
    size_t         chunk_size; /* what mp asks for, each time the same */
    void          *spare;      /* the chunk that mp is about to ask for */
    int            stuck;      /* it could not grow when it last tried */
} uct_hixl_pool_t;

/* For a pool's ucs_mpool_ops_t, and the chunk's key for its obj_init */
ucs_status_t uct_hixl_pool_chunk_alloc(ucs_mpool_t *mp, size_t *size_p,
                                       void **chunk_p);
void uct_hixl_pool_chunk_release(ucs_mpool_t *mp, void *chunk);
uint32_t uct_hixl_pool_chunk_key(const void *chunk);

/** Buffers of elem_size bytes whose byte align_offset is aligned; the first
 *  `grow` of them are made at once. */
ucs_status_t
uct_hixl_pool_init(uct_hixl_pool_t *pool, struct hx_dev *dev, size_t elem_size,
                   size_t align_offset, size_t alignment, unsigned grow,
                   unsigned max_elems, ucs_mpool_ops_t *ops, const char *name);
void uct_hixl_pool_cleanup(uct_hixl_pool_t *pool);
/** For uct_hixl_pool_get(). Returns 0 if there are no more to be had; that it
 *  should have been possible is warned of once until it is again. */
int uct_hixl_pool_grow(uct_hixl_pool_t *pool);

/** NULL: all are in use. */
static UCS_F_ALWAYS_INLINE void *uct_hixl_pool_get(uct_hixl_pool_t *pool)
{
    if (ucs_unlikely(pool->mp.freelist == NULL) && !uct_hixl_pool_grow(pool)) {
        return NULL;
    }
    return ucs_mpool_get_inline(&pool->mp);
}

/** Whoever wants one must wait until one comes back. */
static UCS_F_ALWAYS_INLINE int
uct_hixl_pool_is_empty(uct_hixl_pool_t *pool)
{
    return (pool->mp.freelist == NULL) &&
           (pool->stuck || ucs_mpool_is_empty(&pool->mp));
}

/* What progress must do besides polling: bits of tx.todo */
enum {
    UCT_HIXL_TODO_DISPATCH = UCS_BIT(0), /* the arbiter may have work */
    UCT_HIXL_TODO_SIGNAL   = UCS_BIT(1), /* unsignaled tails hold resources */
    UCT_HIXL_TODO_DRAIN    = UCS_BIT(2), /* a draining link may be done */
    UCT_HIXL_TODO_REPORT   = UCS_BIT(3)  /* endpoints with REPORT */
};

struct uct_hixl_iface {
    uct_base_iface_t       super;
    uct_hixl_md_t         *md;
    struct hx_port         port;
    struct hx_uar         *uar;
    struct hx_cq          *send_cq;
    struct hx_cq          *recv_cq;
    struct hx_rmp         *rmp;
    ucs_arbiter_t          arbiter;
    /* Set by the CM's handlers, read by every progress */
    volatile uint32_t      cm_events;
    uct_hixl_cm_t         *cm;
    ucs_list_link_t        async_list; /* of the domain's interfaces */
    int                    gone;       /* the device, and this knows it */
    uct_hixl_event_t      *event;      /* NULL: nobody waits, hixl_event.c */

    struct {
        /* Basic blocks that may be posted before a CQE says that others are
         * done. In the worst case, a queue that is flushed, each block is a
         * WQE and each WQE makes a CQE. */
        int                cq_credits;
        unsigned           moderation;
        uint32_t           todo;
        int                polling;    /* in the send CQ: free no link */
        uct_hixl_pool_t    pool;       /* uct_hixl_tx_desc_t */
        ucs_mpool_t        op_mp;      /* uct_hixl_zcopy_op_t */
        ucs_mpool_t        bounce_mp;  /* uct_hixl_bounce_t */
        uint64_t          *bounce_put_bytes;
        uint64_t          *bounce_get_bytes;
        uint64_t          *bounce_am_bytes;
    } tx;

    struct {
        void             **slots;      /* descriptor by index of the RMP */
        unsigned           num_slots;
        unsigned           consumed;   /* slots that want a descriptor */
        unsigned           batch;      /* so many are refilled at once */
        unsigned           hdr_offset; /* in a descriptor: the AM header */
        unsigned           user_offset; /* the user's headroom */
        uct_hixl_pool_t    pool;
        uct_recv_desc_t    release;
    } rx;

    ucs_list_link_t        ep_list;
    unsigned               num_eps;
    ucs_list_link_t        draining;   /* links whose endpoint is gone */

    struct {
        unsigned           log_sq_bb;
        unsigned           timeout, retry_count, rnr_retry;
        const char        *cm_addr;
        double             cm_timeout;
        size_t             seg_size;
        size_t             max_put_short;
        size_t             max_am_short;
        size_t             max_zcopy;
        unsigned           max_iov;
        unsigned           am_max_iov;
    } config;

    uct_hixl_qp_table_t    qps;
};

/* hixl_attr.c: this interface's own device address */
void uct_hixl_iface_fill_device_addr(const uct_hixl_iface_t *iface,
                                     uct_hixl_device_addr_t *addr);

/* hixl_config.c */
extern ucs_config_field_t uct_hixl_iface_config_table[];

/** Checks the configuration, sets iface->config and tx.moderation. */
ucs_status_t uct_hixl_iface_init_config(uct_hixl_iface_t *iface,
                                        const uct_hixl_iface_config_t *config);
/** Lengths of queues, rounded up, within what is possible; log2. */
unsigned uct_hixl_config_log_tx_cq(const uct_hixl_iface_config_t *config,
                                   const struct hx_caps *caps);
unsigned uct_hixl_config_log_rx_queue(const uct_hixl_iface_config_t *config,
                                      const struct hx_caps *caps);

/* hixl_attr.c: operations of uct_iface_ops_t */
ucs_status_t uct_hixl_iface_query(uct_iface_h tl_iface,
                                  uct_iface_attr_t *attr);
ucs_status_t uct_hixl_iface_get_device_address(uct_iface_h tl_iface,
                                               uct_device_addr_t *addr);
ucs_status_t uct_hixl_iface_get_address(uct_iface_h tl_iface,
                                        uct_iface_addr_t *addr);
int uct_hixl_iface_is_reachable(const uct_iface_h tl_iface,
                                const uct_device_addr_t *dev_addr,
                                const uct_iface_addr_t *iface_addr);

/** Bytes a second that a port carries: PortInfo LinkSpeedActive and
 *  LinkWidthActive, less the line code. */
double uct_hixl_port_bandwidth(uint8_t active_speed, uint8_t active_width);

/* hixl_am.c: the receive side */
ucs_status_t uct_hixl_iface_rx_init(uct_hixl_iface_t *iface,
                                    const uct_iface_params_t *params,
                                    const uct_hixl_iface_config_t *config);
void uct_hixl_iface_rx_cleanup(uct_hixl_iface_t *iface);
unsigned uct_hixl_iface_poll_recv(uct_hixl_iface_t *iface);

static UCS_F_ALWAYS_INLINE uct_hixl_link_t *
uct_hixl_qp_table_get(const uct_hixl_qp_table_t *table, uint32_t qpn)
{
    uct_hixl_link_t **links = table->dir[qpn >> UCT_HIXL_QP_TABLE_BITS];

    return ucs_likely(links != NULL) ?
           links[qpn & UCS_MASK(UCT_HIXL_QP_TABLE_BITS)] : NULL;
}

/* hixl_link.c */
ucs_status_t uct_hixl_qp_table_add(uct_hixl_qp_table_t *table, uint32_t qpn,
                                   uct_hixl_link_t *link);
void uct_hixl_qp_table_del(uct_hixl_qp_table_t *table, uint32_t qpn);
void uct_hixl_qp_table_cleanup(uct_hixl_qp_table_t *table);

#endif
