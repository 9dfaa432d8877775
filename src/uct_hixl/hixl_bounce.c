/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Zero-copy through buffers, when a local piece cannot be bound to a region.
 * The operation goes in stretches of at most one buffer, as many as the queue,
 * the credits and the pool allow; the rest goes before anything else that waits
 * at the endpoint. WQEs of a link complete in order, so the last stretch's
 * completion is the operation's.
 */

#include "hixl_ep.h"

#include <string.h>

void uct_hixl_bounce_set_iov(uct_hixl_bounce_t *bounce, const uct_iov_t *iov,
                             size_t iovcnt)
{
    size_t length, i;

    bounce->count  = 0;
    bounce->index  = 0;
    bounce->offset = 0;
    for (i = 0; i < iovcnt; ++i) {
        length = uct_iov_get_length(&iov[i]);
        if (length != 0) {
            bounce->pieces[bounce->count++] = (uct_hixl_piece_t) {
                .addr   = iov[i].buffer,
                .length = length
            };
        }
    }
}

size_t uct_hixl_bounce_next(uct_hixl_bounce_t *bounce, size_t max,
                            void **addr_p)
{
    const uct_hixl_piece_t *piece = &bounce->pieces[bounce->index];
    size_t length;

    if (uct_hixl_bounce_at_end(bounce)) {
        return 0;
    }

    length          = ucs_min(max, piece->length - bounce->offset);
    *addr_p         = UCS_PTR_BYTE_OFFSET(piece->addr, bounce->offset);
    bounce->offset += length;
    if (bounce->offset == piece->length) {
        bounce->offset = 0;
        ++bounce->index;
    }
    return length;
}

static void uct_hixl_bounce_get_handler(uct_hixl_op_t *op, ucs_status_t status)
{
    uct_hixl_tx_desc_t *desc = ucs_derived_of(op, uct_hixl_tx_desc_t);

    if (ucs_likely(status == UCS_OK)) {
        memcpy(desc->dest, desc->data, desc->length);
    }
    uct_hixl_desc_handler(op, status);
}

/* One stretch, for which there are resources and this buffer */
static void uct_hixl_bounce_post(uct_hixl_iface_t *iface, uct_hixl_ep_t *ep,
                                 uct_hixl_bounce_t *bounce,
                                 uct_hixl_tx_desc_t *desc)
{
    uint8_t fm_ce_se = ep->fence;
    struct hx_sge sge;
    size_t length;
    void *addr = NULL;
    unsigned bb;

    length           = uct_hixl_bounce_next(bounce, iface->config.seg_size,
                                            &addr);
    sge              = uct_hixl_tx_desc_sge(desc, length);
    desc->super.comp = NULL;
    if (uct_hixl_bounce_at_end(bounce)) {
        fm_ce_se        |= HX_WQE_CQ_UPDATE;
        desc->super.comp = bounce->comp;
    } else {
        fm_ce_se        |= uct_hixl_ep_moderate(iface, ep);
    }

    if (bounce->is_get) {
        desc->super.handler = uct_hixl_bounce_get_handler;
        desc->dest          = addr;
        desc->length        = length;
        ep->reads           = 1;
        bb = hx_sq_read(ep->sq, &sge, 1, bounce->raddr, bounce->rkey,
                        fm_ce_se);
        __atomic_fetch_add(iface->tx.bounce_get_bytes, length,
                           __ATOMIC_RELAXED);
    } else {
        desc->super.handler = uct_hixl_desc_handler;
        memcpy(desc->data, addr, length);
        bb = hx_sq_write(ep->sq, &sge, 1, bounce->raddr, bounce->rkey,
                         fm_ce_se);
        __atomic_fetch_add(iface->tx.bounce_put_bytes, length,
                           __ATOMIC_RELAXED);
    }

    bounce->raddr += length;
    uct_hixl_ep_post_op(iface, ep, bb, fm_ce_se, &desc->super);
}

/* Posts stretches until it is done or lacks something */
static ucs_status_t uct_hixl_bounce_post_some(uct_hixl_iface_t *iface,
                                              uct_hixl_ep_t *ep,
                                              uct_hixl_bounce_t *bounce)
{
    uct_hixl_tx_desc_t *desc;

    while (!uct_hixl_bounce_at_end(bounce)) {
        if ((hx_sq_room(ep->sq) < HX_WQE_MAX_BB) ||
            (iface->tx.cq_credits < HX_WQE_MAX_BB)) {
            return uct_hixl_ep_no_resource(iface, ep);
        }

        UCT_HIXL_GET_TX_DESC(iface, ep, desc);
        uct_hixl_bounce_post(iface, ep, bounce, desc);
    }

    return UCS_OK;
}

ucs_status_t uct_hixl_bounce_start(uct_hixl_ep_t *ep, int is_get,
                                   const uct_iov_t *iov, size_t iovcnt,
                                   uint64_t remote_addr, uct_rkey_t rkey,
                                   uct_completion_t *comp)
{
    uct_hixl_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                             uct_hixl_iface_t);
    uct_hixl_bounce_t *bounce;
    ucs_status_t status;

    ucs_assert(ep->bounce == NULL);
    bounce = ucs_mpool_get(&iface->tx.bounce_mp);
    if (bounce == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    ucs_arbiter_elem_init(&bounce->elem);
    bounce->queued = 0;
    bounce->is_get = is_get;
    bounce->comp   = comp;
    bounce->raddr  = remote_addr;
    bounce->rkey   = uct_hixl_rkey(rkey);
    uct_hixl_bounce_set_iov(bounce, iov, iovcnt);

    status = uct_hixl_bounce_post_some(iface, ep, bounce);
    if (status == UCS_OK) {
        ucs_mpool_put(bounce);
        return UCS_INPROGRESS;
    }

    if ((bounce->index == 0) && (bounce->offset == 0)) {
        ucs_mpool_put(bounce);
        return status;
    }

    ep->bounce = bounce;
    uct_hixl_ep_update_pending(ep);
    return UCS_INPROGRESS;
}

ucs_status_t uct_hixl_bounce_progress(uct_hixl_ep_t *ep)
{
    uct_hixl_iface_t *iface   = ucs_derived_of(ep->super.super.iface,
                                               uct_hixl_iface_t);
    uct_hixl_bounce_t *bounce = ep->bounce;
    ucs_status_t status;

    status = uct_hixl_bounce_post_some(iface, ep, bounce);
    if (status == UCS_OK) {
        ep->bounce = NULL;
        ucs_mpool_put(bounce);
    }
    return status;
}

void uct_hixl_bounce_cancel(uct_hixl_ep_t *ep, ucs_status_t status)
{
    uct_completion_t *comp = ep->bounce->comp;

    ucs_assert(!ep->bounce->queued);
    ucs_mpool_put(ep->bounce);
    ep->bounce = NULL;
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}
