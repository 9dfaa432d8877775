/* SPDX-License-Identifier: BSD-3-Clause */

/* Active messages: one byte, the AM's number, and the payload; and receiving
 * them. */

#include "hixl_ep.h"

#include <mlx5/cq_poll.h>

#include <string.h>
#include <ucs/debug/memtrack_int.h>

/* CQEs that one progress takes */
#define UCT_HIXL_RECV_BATCH   16

/* Receives posted at once, so that several share a doorbell */
#define UCT_HIXL_REFILL_BATCH 32

/* What every active message begins with */
typedef struct uct_hixl_am_hdr {
    uint8_t am_id;
} UCS_S_PACKED uct_hixl_am_hdr_t;

typedef struct uct_hixl_am_short_hdr {
    uct_hixl_am_hdr_t super;
    uint64_t          header;
} UCS_S_PACKED uct_hixl_am_short_hdr_t;

/* A receive buffer. The user's headroom ends where the payload begins; the
 * word before it is uct_recv_desc(), and the AM header lies in whatever of
 * both comes last: it has been read when they are written.
 *
 *   | uct_hixl_rx_desc_t | uct_recv_desc_t* | headroom | payload
 *                                                 hdr |
 */
typedef struct uct_hixl_rx_desc {
    uint32_t lkey;
} uct_hixl_rx_desc_t;

static void uct_hixl_rx_desc_init(ucs_mpool_t *mp UCS_V_UNUSED, void *obj,
                                  void *chunk)
{
    uct_hixl_rx_desc_t *desc = obj;

    desc->lkey = uct_hixl_pool_chunk_key(chunk);
}

static ucs_mpool_ops_t uct_hixl_rx_mpool_ops = {
    .chunk_alloc   = uct_hixl_pool_chunk_alloc,
    .chunk_release = uct_hixl_pool_chunk_release,
    .obj_init      = uct_hixl_rx_desc_init
};

static void uct_hixl_iface_release_desc(uct_recv_desc_t *self, void *user_desc)
{
    uct_hixl_iface_t *iface = ucs_container_of(self, uct_hixl_iface_t,
                                               rx.release);

    ucs_mpool_put_inline(UCS_PTR_BYTE_OFFSET(
            user_desc, -(ptrdiff_t)iface->rx.user_offset));
}

/* A message of one QP may lag behind, since its sender does; those of others
 * end meanwhile, and what they used is posted again without it. */
static void uct_hixl_iface_refill(uct_hixl_iface_t *iface)
{
    struct hx_rmp *rmp  = iface->rmp;
    uint32_t len        = sizeof(uct_hixl_am_hdr_t) + iface->config.seg_size;
    unsigned count      = 0;
    uct_hixl_rx_desc_t *desc;
    uint16_t index;

    while (iface->rx.consumed > 0) {
        desc = uct_hixl_pool_get(&iface->rx.pool);
        if (ucs_unlikely(desc == NULL)) {
            break; /* the user has them all, until he gives one back */
        }
        VALGRIND_MAKE_MEM_DEFINED(desc, sizeof(*desc));
        index = hx_rmp_post(rmp, (uintptr_t)desc + iface->rx.hdr_offset, len,
                            desc->lkey);
        iface->rx.slots[index] = desc;
        --iface->rx.consumed;
        ++count;
    }

    if (count > 0) {
        hx_rmp_ring(rmp);
    }
}

static UCS_F_ALWAYS_INLINE uct_hixl_rx_desc_t *
uct_hixl_iface_take_slot(uct_hixl_iface_t *iface, uint16_t wqe_counter)
{
    uint16_t index           = wqe_counter & iface->rmp->mask;
    uct_hixl_rx_desc_t *desc = iface->rx.slots[index];

    iface->rx.slots[index] = NULL;
    hx_rmp_free(iface->rmp, index);
    ++iface->rx.consumed;
    return desc;
}

static UCS_F_ALWAYS_INLINE void
uct_hixl_iface_recv_am(uct_hixl_iface_t *iface, const struct hx_wc *wc)
{
    uct_hixl_rx_desc_t *desc = uct_hixl_iface_take_slot(iface,
                                                        wc->wqe_counter);
    uct_hixl_am_hdr_t *hdr   = UCS_PTR_BYTE_OFFSET(desc, iface->rx.hdr_offset);
    size_t length            = wc->byte_cnt - sizeof(*hdr);
    uint8_t am_id            = hdr->am_id;
    ucs_status_t status;

    VALGRIND_MAKE_MEM_DEFINED(hdr, wc->byte_cnt);
    if (ucs_unlikely((wc->byte_cnt < sizeof(*hdr)) ||
                     (am_id >= UCT_AM_ID_MAX))) {
        ucs_error("%s: qp 0x%x received %u bytes that are no active message",
                  iface->md->dev->name, wc->qpn, wc->byte_cnt);
        ucs_mpool_put_inline(desc);
        return;
    }

    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_RECV, am_id, hdr + 1,
                       length, "RX: AM qp 0x%x", wc->qpn);
    status = uct_iface_invoke_am(&iface->super, am_id, hdr + 1, length,
                                 UCT_CB_PARAM_FLAG_DESC);
    if (status == UCS_OK) {
        ucs_mpool_put_inline(desc);
    } else {
        uct_recv_desc(UCS_PTR_BYTE_OFFSET(desc, iface->rx.user_offset)) =
                &iface->rx.release;
    }
}

/* The QP is in error now; its sender learns it from its own CQE, and our
 * endpoint on it from the next that it posts. */
static UCS_F_NOINLINE void
uct_hixl_iface_recv_error(uct_hixl_iface_t *iface, const struct hx_wc *wc)
{
    uct_hixl_link_t *link = uct_hixl_qp_table_get(&iface->qps, wc->qpn);
    uct_hixl_rx_desc_t *desc;

    if (wc->syndrome != MLX5_CQE_SYNDROME_WR_FLUSH_ERR) {
        ucs_diag("%s: qp 0x%x receive: %s, vendor 0x%x", iface->md->dev->name,
                 wc->qpn, hx_cqe_syndrome_str(wc->syndrome),
                 wc->vendor_syndrome);
    }

    /* An error that consumed no WQE names none that was posted */
    if (iface->rx.slots[wc->wqe_counter & iface->rmp->mask] != NULL) {
        desc = uct_hixl_iface_take_slot(iface, wc->wqe_counter);
        ucs_mpool_put_inline(desc);
    }

    if ((link != NULL) && (link->ep != NULL)) {
        uct_hixl_ep_set_failed(link->ep, UCS_ERR_CONNECTION_RESET);
        uct_hixl_link_abort(link, UCS_ERR_CONNECTION_RESET);
        uct_hixl_ep_report_failed(link->ep, "receive error");
    }
}

unsigned uct_hixl_iface_poll_recv(uct_hixl_iface_t *iface)
{
    unsigned count = 0;
    struct hx_wc wc;

    while ((count < UCT_HIXL_RECV_BATCH) && hx_cq_poll(iface->recv_cq, &wc)) {
        ++count;
        if (ucs_likely(wc.kind == HX_CQE_RECV)) {
            uct_hixl_iface_recv_am(iface, &wc);
        } else {
            uct_hixl_iface_recv_error(iface, &wc);
        }
    }

    if (count > 0) {
        /* Before new receives: CQEs never outnumber the entries */
        hx_cq_update_ci(iface->recv_cq);
    }
    if (iface->rx.consumed >= iface->rx.batch) {
        uct_hixl_iface_refill(iface);
    }
    return count;
}

ucs_status_t uct_hixl_iface_rx_init(uct_hixl_iface_t *iface,
                                    const uct_iface_params_t *params,
                                    const uct_hixl_iface_config_t *config)
{
    size_t headroom    = UCT_IFACE_PARAM_VALUE(params, rx_headroom,
                                               RX_HEADROOM, 0);
    unsigned num_slots = iface->rmp->mask + 1;
    size_t align, align_offset, payload_offset;
    ucs_status_t status;
    unsigned grow;

    /* The user's wish: that so many bytes behind the payload's begin a
     * boundary lies; else the payload begins at a cache line */
    status = uct_iface_param_am_alignment(params, iface->config.seg_size, 0, 0,
                                          &align, &align_offset);
    if (status != UCS_OK) {
        return status;
    }

    payload_offset        = sizeof(uct_hixl_rx_desc_t) +
                            sizeof(uct_recv_desc_t*) +
                            ucs_max(headroom, sizeof(uct_hixl_am_hdr_t));
    payload_offset        = ucs_align_up(payload_offset + align_offset, align) -
                            align_offset;
    iface->rx.num_slots   = num_slots;
    iface->rx.hdr_offset  = payload_offset - sizeof(uct_hixl_am_hdr_t);
    iface->rx.user_offset = payload_offset - headroom;
    iface->rx.release.cb  = uct_hixl_iface_release_desc;
    iface->rx.batch       = ucs_min(UCT_HIXL_REFILL_BATCH, num_slots / 4);
    iface->rx.consumed    = num_slots - 1;

    iface->rx.slots = ucs_calloc(num_slots, sizeof(*iface->rx.slots),
                                 "hixl_rx_slots");
    if (iface->rx.slots == NULL) {
        ucs_error("%s: no memory for %u receive slots", iface->md->dev->name,
                  num_slots);
        return UCS_ERR_NO_MEMORY;
    }

    /* One chunk holds all that are posted and some that the user keeps */
    grow   = (config->rx_mpool.bufs_grow != 0) ? config->rx_mpool.bufs_grow :
             num_slots + num_slots / 8;
    status = uct_hixl_pool_init(&iface->rx.pool, iface->md->dev,
                                payload_offset + iface->config.seg_size, 0,
                                ucs_max(align, UCS_SYS_CACHE_LINE_SIZE), grow,
                                config->rx_mpool.max_bufs,
                                &uct_hixl_rx_mpool_ops, "hixl_rx_desc");
    if (status != UCS_OK) {
        goto err_free_slots;
    }

    uct_hixl_iface_refill(iface);
    return UCS_OK;

err_free_slots:
    ucs_free(iface->rx.slots);
    return status;
}

void uct_hixl_iface_rx_cleanup(uct_hixl_iface_t *iface)
{
    unsigned i;

    for (i = 0; i < iface->rx.num_slots; ++i) {
        if (iface->rx.slots[i] != NULL) {
            ucs_mpool_put(iface->rx.slots[i]);
        }
    }
    uct_hixl_pool_cleanup(&iface->rx.pool);
    ucs_free(iface->rx.slots);
}

ucs_status_t uct_hixl_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                                  const void *payload, unsigned length)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    const uct_hixl_am_short_hdr_t hdr = {
        .super.am_id = id,
        .header      = header
    };
    uint8_t fm_ce_se;
    unsigned bb;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(length + sizeof(header), 0, iface->config.max_am_short,
                     "am_short");
    UCT_HIXL_CHECK_RESOURCES(iface, ep);

    fm_ce_se = uct_hixl_ep_moderate(iface, ep) | ep->fence | HX_WQE_SOLICITED;
    bb       = hx_sq_send_inline(ep->sq, &hdr, sizeof(hdr), payload, length,
                                 fm_ce_se);
    uct_hixl_ep_post(iface, ep, bb, fm_ce_se);
    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_SEND, id, &hdr.header,
                       sizeof(header) + length, "TX: AM_SHORT");
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, sizeof(header) + length);
    return UCS_OK;
}

ucs_status_t uct_hixl_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                      const uct_iov_t *iov, size_t iovcnt)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    size_t length                   = uct_iov_total_length(iov, iovcnt);
    const uct_hixl_am_hdr_t hdr     = {
        .am_id = id
    };
    uint8_t payload[HX_SEND_INLINE_MAX];
    ucs_iov_iter_t iov_iter;
    uint8_t fm_ce_se;
    unsigned bb;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(length, 0, iface->config.max_am_short, "am_short_iov");
    UCT_HIXL_CHECK_RESOURCES(iface, ep);

    ucs_iov_iter_init(&iov_iter);
    uct_iov_to_buffer(iov, iovcnt, &iov_iter, payload, sizeof(payload));

    fm_ce_se = uct_hixl_ep_moderate(iface, ep) | ep->fence | HX_WQE_SOLICITED;
    bb       = hx_sq_send_inline(ep->sq, &hdr, sizeof(hdr), payload, length,
                                 fm_ce_se);
    uct_hixl_ep_post(iface, ep, bb, fm_ce_se);
    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_SEND, id, payload,
                       length, "TX: AM_SHORT_IOV");
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, length);
    return UCS_OK;
}

/* Sends what was packed into desc->data */
static UCS_F_ALWAYS_INLINE void
uct_hixl_ep_am_post_desc(uct_hixl_iface_t *iface, uct_hixl_ep_t *ep,
                         uint8_t id, uct_hixl_tx_desc_t *desc, size_t length)
{
    uint8_t fm_ce_se  = uct_hixl_ep_moderate(iface, ep) | ep->fence |
                        HX_WQE_SOLICITED;
    struct hx_sge sge = {
        .addr = (uintptr_t)&desc->am_id,
        .len  = sizeof(uct_hixl_am_hdr_t) + length,
        .lkey = desc->lkey
    };
    unsigned bb;

    desc->am_id         = id;
    desc->super.handler = uct_hixl_desc_handler;
    desc->super.comp    = NULL;
    bb                  = hx_sq_send(ep->sq, NULL, 0, &sge, 1, fm_ce_se);
    uct_hixl_ep_post_op(iface, ep, bb, fm_ce_se, &desc->super);
}

ssize_t uct_hixl_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                             uct_pack_callback_t pack_cb, void *arg,
                             unsigned flags UCS_V_UNUSED)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    uct_hixl_tx_desc_t *desc;
    size_t length;

    UCT_CHECK_AM_ID(id);
    UCT_HIXL_CHECK_RESOURCES(iface, ep);
    UCT_HIXL_GET_TX_DESC(iface, ep, desc);

    length = pack_cb(desc->data, arg);
    ucs_assert(length <= iface->config.seg_size);
    uct_hixl_ep_am_post_desc(iface, ep, id, desc, length);
    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_SEND, id, desc->data,
                       length, "TX: AM_BCOPY");
    UCT_TL_EP_STAT_OP(&ep->super, AM, BCOPY, length);
    return length;
}

/* A piece cannot be bound: header and payload fit one buffer, and when they
 * are copied the operation is done */
static UCS_F_NOINLINE ucs_status_t
uct_hixl_ep_am_zcopy_bounce(uct_hixl_iface_t *iface, uct_hixl_ep_t *ep,
                            uint8_t id, const void *header,
                            unsigned header_length, const uct_iov_t *iov,
                            size_t iovcnt)
{
    uct_hixl_tx_desc_t *desc;
    ucs_iov_iter_t iov_iter;
    size_t length;

    UCT_HIXL_GET_TX_DESC(iface, ep, desc);

    memcpy(desc->data, header, header_length);
    ucs_iov_iter_init(&iov_iter);
    length = uct_iov_to_buffer(iov, iovcnt, &iov_iter,
                               desc->data + header_length,
                               iface->config.seg_size - header_length);
    uct_hixl_ep_am_post_desc(iface, ep, id, desc, header_length + length);
    __atomic_fetch_add(iface->tx.bounce_am_bytes, length, __ATOMIC_RELAXED);
    return UCS_OK;
}

ucs_status_t uct_hixl_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id,
                                  const void *header, unsigned header_length,
                                  const uct_iov_t *iov, size_t iovcnt,
                                  unsigned flags UCS_V_UNUSED,
                                  uct_completion_t *comp)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    uint8_t fm_ce_se = HX_WQE_CQ_UPDATE | HX_WQE_SOLICITED | ep->fence;
    size_t length    = header_length + uct_iov_total_length(iov, iovcnt);
    struct hx_sge sge[HX_SEND_SGE_MAX];
    uint8_t hdr[HX_SEND_HDR_MAX];
    uct_hixl_zcopy_op_t *op;
    unsigned bb;
    int count;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_IOV_SIZE(iovcnt, (size_t)iface->config.am_max_iov,
                       "uct_hixl_ep_am_zcopy");
    UCT_CHECK_LENGTH((size_t)header_length, 0,
                     sizeof(hdr) - sizeof(uct_hixl_am_hdr_t),
                     "am_zcopy header");
    UCT_CHECK_LENGTH(length, 0, iface->config.seg_size, "am_zcopy");
    UCT_HIXL_CHECK_RESOURCES(iface, ep);

    op = ucs_mpool_get_inline(&iface->tx.op_mp);
    if (ucs_unlikely(op == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }

    count = uct_hixl_zcopy_op_pin(op, iov, iovcnt, length - header_length,
                                  sge);
    UCT_TL_EP_STAT_OP(&ep->super, AM, ZCOPY, length);
    if (ucs_unlikely(count < 0)) {
        ucs_mpool_put_inline(op);
        return uct_hixl_ep_am_zcopy_bounce(iface, ep, id, header,
                                           header_length, iov, iovcnt);
    }

    hdr[0] = id;
    memcpy(hdr + sizeof(uct_hixl_am_hdr_t), header, header_length);
    op->super.handler = uct_hixl_zcopy_handler;
    op->super.comp    = comp;
    bb                = hx_sq_send(ep->sq, hdr,
                                   sizeof(uct_hixl_am_hdr_t) + header_length,
                                   sge, count, fm_ce_se);
    uct_hixl_ep_post_op(iface, ep, bb, fm_ce_se, &op->super);
    uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_SEND, id, header,
                       header_length, "TX: AM_ZCOPY");
    return UCS_INPROGRESS;
}
