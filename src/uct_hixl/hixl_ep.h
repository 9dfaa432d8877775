/* SPDX-License-Identifier: BSD-3-Clause */

/* The endpoint: who posts on a link, what is outstanding, what waits. */

#ifndef UCT_HIXL_EP_H_
#define UCT_HIXL_EP_H_

#include "hixl_link.h"
#include "hixl_reg.h"

#include <ucs/debug/log.h>
#include <uct/base/uct_iov.inl>

/* Why an endpoint takes no operation: bits of ep->blocked */
enum {
    UCT_HIXL_EP_CONNECTING = UCS_BIT(0), /* the link is not ready */
    UCT_HIXL_EP_FAILED     = UCS_BIT(1), /* ep->status says why */
    UCT_HIXL_EP_PENDING    = UCS_BIT(2)  /* others wait, nothing overtakes */
};

enum {
    UCT_HIXL_EP_NO_ERR_CB  = UCS_BIT(0), /* told, or cancelled by the user */
    UCT_HIXL_EP_LEFT       = UCS_BIT(1), /* FAILED, and nobody minded yet */
    UCT_HIXL_EP_REPORT     = UCS_BIT(2)  /* progress is to tell the user */
};

typedef struct uct_hixl_op uct_hixl_op_t;
typedef void (*uct_hixl_op_handler_t)(uct_hixl_op_t *op, ucs_status_t status);

/* An operation whose WQE was posted. The handler gives it back to its pool. */
struct uct_hixl_op {
    ucs_queue_elem_t      queue;   /* of link->outstanding */
    uct_hixl_op_handler_t handler;
    uct_completion_t     *comp;    /* NULL: the user wants none */
    uint16_t              sn;      /* first block of its WQE */
};

/* A zero-copy operation holds the regions of its pieces */
typedef struct uct_hixl_zcopy_op {
    uct_hixl_op_t      super;
    unsigned           nregions;
    uct_hixl_region_t *regions[HX_SEND_SGE_MAX];
} uct_hixl_zcopy_op_t;

/* Of an AM's zero-copy send: what fits beside its number in the inline header,
 * and the pieces that a WQE then has room for (hx_sq_send_ds()) */
#define UCT_HIXL_AM_MAX_HDR (HX_SEND_HDR_MAX - 1)
#define UCT_HIXL_AM_MAX_IOV \
    (HX_WQE_MAX_BB * HX_BB_SIZE / 16u - 1u - \
     (HX_SEND_HDR_MAX + 4u + 15u) / 16u)

/* A buffer of seg_size bytes, with an AM header before it */
typedef struct uct_hixl_tx_desc {
    uct_hixl_op_t         super;
    union {
        uct_unpack_callback_t unpack_cb; /* get_bcopy */
        void                 *dest;      /* bounced get */
    };
    void                 *arg;
    uint32_t              length;        /* get: bytes that come */
    uint32_t              lkey;
    uint8_t               pad[7];
    uint8_t               am_id;         /* on the wire, before the data */
    uint8_t               data[];
} uct_hixl_tx_desc_t;

_Static_assert(offsetof(uct_hixl_tx_desc_t, data) ==
               offsetof(uct_hixl_tx_desc_t, am_id) + 1,
               "the AM header is not where the data begins");

/* Where a zero-copy operation through buffers has got to; hixl_bounce.c */
typedef struct uct_hixl_piece {
    void  *addr;
    size_t length;
} uct_hixl_piece_t;

typedef struct uct_hixl_bounce {
    ucs_arbiter_elem_t elem;
    int                queued;   /* elem is in the endpoint's group */
    int                is_get;
    uct_completion_t  *comp;
    uint64_t           raddr;
    uint32_t           rkey;
    unsigned           count;    /* pieces, none of them empty */
    unsigned           index;    /* the current one */
    size_t             offset;   /* in it */
    uct_hixl_piece_t   pieces[HX_RDMA_SGE_MAX];
} uct_hixl_bounce_t;

struct uct_hixl_ep {
    uct_base_ep_t       super;
    uint8_t             blocked;
    uint8_t             flags;
    uint8_t             fence;    /* HX_WQE_FENCE: of the next WQE */
    uint8_t             sticky_fence; /* of all WQEs until none waits */
    uint8_t             reads;    /* READs were posted since the last fence */
    ucs_status_t        status;   /* FAILED */
    struct hx_sq       *sq;       /* the link's */
    uct_hixl_link_t    *link;
    uct_hixl_bounce_t  *bounce;   /* goes before what the group holds */
    unsigned            npending; /* elements of the group */
    ucs_arbiter_group_t arb_group;
    ucs_list_link_t     list;     /* of the iface */
};

UCS_CLASS_DECLARE(uct_hixl_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_NEW_FUNC(uct_hixl_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_hixl_ep_t, uct_ep_t);

#define UCT_HIXL_EP_DECL(_tl_ep, _iface, _ep) \
    uct_hixl_ep_t *_ep       = ucs_derived_of(_tl_ep, uct_hixl_ep_t); \
    uct_hixl_iface_t *_iface = ucs_derived_of((_tl_ep)->iface, \
                                              uct_hixl_iface_t)

/* From so few credits on every WQE is signaled: so the last that was posted
 * before they ran out gives them back. */
#define UCT_HIXL_CREDITS_LOW (4 * HX_WQE_MAX_BB)

/* Which status a post returns when it cannot; sees to it that what it lacks
 * comes back */
ucs_status_t uct_hixl_ep_no_resource(uct_hixl_iface_t *iface,
                                     uct_hixl_ep_t *ep);
/* The same when there was no buffer */
ucs_status_t uct_hixl_ep_no_desc(uct_hixl_iface_t *iface, uct_hixl_ep_t *ep);

static UCS_F_ALWAYS_INLINE int
uct_hixl_ep_has_resources(const uct_hixl_iface_t *iface,
                          const uct_hixl_ep_t *ep)
{
    return ucs_likely(ep->blocked == 0) &&
           ucs_likely(hx_sq_room(ep->sq) >= HX_WQE_MAX_BB) &&
           ucs_likely(iface->tx.cq_credits >= HX_WQE_MAX_BB);
}

#define UCT_HIXL_CHECK_RESOURCES(_iface, _ep) \
    do { \
        if (ucs_unlikely(!uct_hixl_ep_has_resources(_iface, _ep))) { \
            return uct_hixl_ep_no_resource(_iface, _ep); \
        } \
    } while (0)

#define UCT_HIXL_GET_TX_DESC(_iface, _ep, _desc) \
    do { \
        (_desc) = uct_hixl_pool_get(&(_iface)->tx.pool); \
        if (ucs_unlikely((_desc) == NULL)) { \
            UCT_TL_IFACE_STAT_TX_NO_DESC(&(_iface)->super); \
            return uct_hixl_ep_no_desc(_iface, _ep); \
        } \
        VALGRIND_MAKE_MEM_DEFINED(_desc, sizeof(*(_desc))); \
    } while (0)

/* HX_WQE_CQ_UPDATE when enough was posted without */
static UCS_F_ALWAYS_INLINE uint8_t
uct_hixl_ep_moderate(const uct_hixl_iface_t *iface, const uct_hixl_ep_t *ep)
{
    return ucs_unlikely((ep->link->unsignaled >= iface->tx.moderation) ||
                        (iface->tx.cq_credits < UCT_HIXL_CREDITS_LOW)) ?
           HX_WQE_CQ_UPDATE : 0;
}

/* Rings for a WQE that was built with these flags */
static UCS_F_ALWAYS_INLINE void
uct_hixl_link_post(uct_hixl_iface_t *iface, uct_hixl_link_t *link,
                   struct hx_sq *sq, unsigned bb, uint8_t fm_ce_se)
{
    link->tail = sq->pi;
    if (fm_ce_se & HX_WQE_CQ_UPDATE) {
        link->unsignaled = 0;
    } else {
        link->unsignaled += bb;
    }
    iface->tx.cq_credits -= bb;
    hx_sq_post(sq, bb);
}

static UCS_F_ALWAYS_INLINE void
uct_hixl_ep_post(uct_hixl_iface_t *iface, uct_hixl_ep_t *ep, unsigned bb,
                 uint8_t fm_ce_se)
{
    ep->fence = ep->sticky_fence;
    uct_hixl_link_post(iface, ep->link, ep->sq, bb, fm_ce_se);
}

static UCS_F_ALWAYS_INLINE void
uct_hixl_ep_post_op(uct_hixl_iface_t *iface, uct_hixl_ep_t *ep, unsigned bb,
                    uint8_t fm_ce_se, uct_hixl_op_t *op)
{
    op->sn = ep->sq->pi;
    ucs_queue_push(&ep->link->outstanding, &op->queue);
    uct_hixl_ep_post(iface, ep, bb, fm_ce_se);
}

/* Data of a buffer, for a WQE */
static UCS_F_ALWAYS_INLINE struct hx_sge
uct_hixl_tx_desc_sge(uct_hixl_tx_desc_t *desc, uint32_t length)
{
    return (struct hx_sge) {
        .addr = (uintptr_t)desc->data,
        .len  = length,
        .lkey = desc->lkey
    };
}

/* Holds the region of a piece and says where it is; 0: it cannot be bound */
static UCS_F_ALWAYS_INLINE int
uct_hixl_iov_pin(const uct_iov_t *iov, size_t length, struct hx_sge *sge,
                 uct_hixl_region_t **region_p)
{
    uct_hixl_region_t *region = uct_hixl_mem_pin((uct_hixl_mem_t*)iov->memh);

    if (ucs_unlikely(region == NULL)) {
        return 0;
    }

    *sge      = (struct hx_sge) {
        .addr = (uintptr_t)iov->buffer,
        .len  = length,
        .lkey = region->key
    };
    *region_p = region;
    return 1;
}

/* Holds the regions of an I/O vector and says where its pieces are; empty ones
 * are left out. Returns how many pieces, or -1 if one cannot be bound: then
 * none is held. hixl_rma.c */
int uct_hixl_zcopy_op_pin_many(uct_hixl_zcopy_op_t *op, const uct_iov_t *iov,
                               size_t iovcnt, struct hx_sge *sge);

static UCS_F_ALWAYS_INLINE int
uct_hixl_zcopy_op_pin(uct_hixl_zcopy_op_t *op, const uct_iov_t *iov,
                      size_t iovcnt, size_t length, struct hx_sge *sge)
{
    if (ucs_unlikely((iovcnt != 1) || (length == 0))) {
        return uct_hixl_zcopy_op_pin_many(op, iov, iovcnt, sge);
    }

    op->nregions = 1;
    return uct_hixl_iov_pin(iov, length, sge, &op->regions[0]) ? 1 : -1;
}

/* hixl_rma.c, hixl_am.c: operations of uct_iface_ops_t */
ucs_status_t uct_hixl_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                   unsigned length, uint64_t remote_addr,
                                   uct_rkey_t rkey);
ssize_t uct_hixl_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                              void *arg, uint64_t remote_addr,
                              uct_rkey_t rkey);
ucs_status_t uct_hixl_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                   size_t iovcnt, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_hixl_ep_get_bcopy(uct_ep_h tl_ep,
                                   uct_unpack_callback_t unpack_cb, void *arg,
                                   size_t length, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_hixl_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                   size_t iovcnt, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp);

ucs_status_t uct_hixl_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                                  const void *payload, unsigned length);
ucs_status_t uct_hixl_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                      const uct_iov_t *iov, size_t iovcnt);
ssize_t uct_hixl_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                             uct_pack_callback_t pack_cb, void *arg,
                             unsigned flags);
ucs_status_t uct_hixl_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id,
                                  const void *header, unsigned header_length,
                                  const uct_iov_t *iov, size_t iovcnt,
                                  unsigned flags, uct_completion_t *comp);

/* hixl_rma.c: handlers that progress and destroy know by name */
void uct_hixl_zcopy_handler(uct_hixl_op_t *op, ucs_status_t status);
/* Of a buffer whose owner wants to know nothing, or that it is done */
void uct_hixl_desc_handler(uct_hixl_op_t *op, ucs_status_t status);
void uct_hixl_op_mpool_cleanup(uct_hixl_iface_t *iface);
ucs_status_t uct_hixl_op_mpool_init(uct_hixl_iface_t *iface);

/* hixl_bounce.c */

/** A put or get zero-copy through buffers. UCS_INPROGRESS: it will complete,
 *  now or as buffers come; UCS_ERR_NO_RESOURCE: not even one was to be had. */
ucs_status_t uct_hixl_bounce_start(uct_hixl_ep_t *ep, int is_get,
                                   const uct_iov_t *iov, size_t iovcnt,
                                   uint64_t remote_addr, uct_rkey_t rkey,
                                   uct_completion_t *comp);
/** Posts what it can of ep->bounce. UCS_OK: all of it, and ep->bounce is
 *  NULL; UCS_ERR_NO_RESOURCE: some is left. */
ucs_status_t uct_hixl_bounce_progress(uct_hixl_ep_t *ep);
/** The rest of ep->bounce will not be posted. */
void uct_hixl_bounce_cancel(uct_hixl_ep_t *ep, ucs_status_t status);

/** Next stretch of at most max bytes, within one piece; moves on. Returns its
 *  length, 0 at the end. */
size_t uct_hixl_bounce_next(uct_hixl_bounce_t *bounce, size_t max,
                            void **addr_p);
/** Takes over the pieces of iov that are not empty. */
void uct_hixl_bounce_set_iov(uct_hixl_bounce_t *bounce, const uct_iov_t *iov,
                             size_t iovcnt);

static UCS_F_ALWAYS_INLINE int
uct_hixl_bounce_at_end(const uct_hixl_bounce_t *bounce)
{
    return bounce->index == bounce->count;
}

/* hixl_pending.c */

ucs_status_t uct_hixl_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                     unsigned flags);
void uct_hixl_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb,
                               void *arg);
/** PENDING as the group says; an active bounce gets an element to drive it. */
void uct_hixl_ep_update_pending(uct_hixl_ep_t *ep);
/** The rest of an active bounce is given up. */
void uct_hixl_ep_cancel_bounce(uct_hixl_ep_t *ep, ucs_status_t status);
/** Gives waiting elements their turn. */
void uct_hixl_iface_dispatch(uct_hixl_iface_t *iface);

/* hixl_ep.c */

ucs_status_t uct_hixl_ep_flush(uct_ep_h tl_ep, unsigned flags,
                               uct_completion_t *comp);
ucs_status_t uct_hixl_ep_fence(uct_ep_h tl_ep, unsigned flags);
ucs_status_t uct_hixl_ep_check(uct_ep_h tl_ep, unsigned flags,
                              uct_completion_t *comp);
ucs_status_t uct_hixl_ep_get_address(uct_ep_h tl_ep, uct_ep_addr_t *addr);
ucs_status_t uct_hixl_ep_connect_to_ep(uct_ep_h tl_ep,
                                       const uct_device_addr_t *dev_addr,
                                       const uct_ep_addr_t *ep_addr);
/** The QP goes to error as if the peer were gone; UCX's tests of failures. */
ucs_status_t uct_hixl_ep_invalidate(uct_ep_h tl_ep);

/** Takes no operation any more. Before the completions of what failed. */
void uct_hixl_ep_set_failed(uct_hixl_ep_t *ep, ucs_status_t status);
/** After them: ends what waits inside, and tells the user once. The endpoint
 *  may be gone when this returns. */
void uct_hixl_ep_report_failed(uct_hixl_ep_t *ep, const char *reason);
/** For those with REPORT. */
void uct_hixl_iface_report_failed(uct_hixl_iface_t *iface);

#endif
