/* SPDX-License-Identifier: BSD-3-Clause */

/* Endpoints: how they begin and end, what waits at them, flush and fence. */

#include "hixl_cm.h"
#include "hixl_ep.h"

#include <ucs/sys/string.h>

ucs_status_t uct_hixl_ep_no_resource(uct_hixl_iface_t *iface,
                                     uct_hixl_ep_t *ep)
{
    if (ep->blocked & UCT_HIXL_EP_FAILED) {
        if (ep->flags & UCT_HIXL_EP_LEFT) {
            ep->flags      ^= UCT_HIXL_EP_LEFT | UCT_HIXL_EP_REPORT;
            iface->tx.todo |= UCT_HIXL_TODO_REPORT;
        }
        return ep->status;
    }

    if (iface->tx.cq_credits < HX_WQE_MAX_BB) {
        iface->tx.todo |= UCT_HIXL_TODO_SIGNAL;
    }
    UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    return UCS_ERR_NO_RESOURCE;
}

ucs_status_t uct_hixl_ep_no_desc(uct_hixl_iface_t *iface,
                                 uct_hixl_ep_t *ep UCS_V_UNUSED)
{
    UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    /* Buffers of unsignaled WQEs come back with a later CQE of their link */
    iface->tx.todo |= UCT_HIXL_TODO_SIGNAL;
    return UCS_ERR_NO_RESOURCE;
}

/* ---- failure ---- */

void uct_hixl_ep_set_failed(uct_hixl_ep_t *ep, ucs_status_t status)
{
    if (!(ep->blocked & UCT_HIXL_EP_FAILED)) {
        ep->blocked |= UCT_HIXL_EP_FAILED;
        ep->status   = status;
    }
}

/* UCX's own function knows two statuses that are a peer's doing, and takes all
 * others for errors of the transport. A peer that closes, refuses, or is not
 * there when it is connected to is no more than that either. */
static ucs_log_level_t
uct_hixl_ep_failure_log_level(uct_hixl_iface_t *iface,
                              ucs_status_t handler_status, ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_REJECTED:
    case UCS_ERR_TIMED_OUT:
        status = UCS_ERR_CONNECTION_RESET;
        break;
    default:
        break;
    }
    return uct_base_iface_failure_log_level(&iface->super, handler_status,
                                            status);
}

void uct_hixl_ep_report_failed(uct_hixl_ep_t *ep, const char *reason)
{
    uct_hixl_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                             uct_hixl_iface_t);
    ucs_status_t status     = ep->status;
    char name[64];
    ucs_log_level_t level;

    uct_hixl_ep_cancel_bounce(ep, status);
    ep->flags &= ~UCT_HIXL_EP_LEFT;
    if (ep->flags & UCT_HIXL_EP_NO_ERR_CB) {
        return;
    }

    ep->flags |= UCT_HIXL_EP_NO_ERR_CB;
    ucs_snprintf_zero(name, sizeof(name), "%s:%d qp 0x%x",
                      iface->md->dev->name, iface->port.num,
                      ep->link->qp->qpn);
    level = uct_hixl_ep_failure_log_level(
            iface,
            uct_iface_handle_ep_err(&iface->super.super, &ep->super.super,
                                    status), status);
    if (iface->gone) {
        /* Said once, for all links of the device */
        reason = "the device is gone";
        level  = ucs_max(level, UCS_LOG_LEVEL_DEBUG);
    }
    ucs_log(level, "%s: the link failed: %s (%s)", name, reason,
            ucs_status_string(status));
}

void uct_hixl_ep_link_ready(uct_hixl_ep_t *ep, uct_hixl_link_t *link)
{
    ucs_assert(ep->link == link);
    ep->blocked &= ~UCT_HIXL_EP_CONNECTING;
    ucs_arbiter_group_schedule(&link->iface->arbiter, &ep->arb_group);
    link->iface->tx.todo |= UCT_HIXL_TODO_DISPATCH;
}

static const char *uct_hixl_ep_failure_reason(ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_NOT_CONNECTED:
        return "the peer has closed its interface";
    case UCS_ERR_CONNECTION_RESET:
        return "the peer is gone";
    case UCS_ERR_ENDPOINT_TIMEOUT:
        return "the peer's host does not answer";
    default:
        return "it could not be made";
    }
}

void uct_hixl_iface_report_failed(uct_hixl_iface_t *iface)
{
    uct_hixl_ep_t *ep;

again:
    ucs_list_for_each(ep, &iface->ep_list, list) {
        if (ep->flags & UCT_HIXL_EP_REPORT) {
            ep->flags &= ~UCT_HIXL_EP_REPORT;
            uct_hixl_ep_report_failed(ep,
                                      uct_hixl_ep_failure_reason(ep->status));
            goto again; /* the user may have destroyed any endpoint */
        }
    }
}

/* The peer closed its interface in good order. For an endpoint that has nothing
 * more to say this is how things end, and no error; who goes on is told then.
 * Whether what was posted last has arrived, its CQE says. */
static void uct_hixl_ep_peer_left(uct_hixl_ep_t *ep)
{
    ucs_debug("ep %p: the peer of qp 0x%x has closed its interface", ep,
              ep->link->qp->qpn);
    ep->flags |= UCT_HIXL_EP_LEFT;
    (void)uct_hixl_link_signal_tail(ep->link);
}

void uct_hixl_ep_link_failed(uct_hixl_ep_t *ep, uct_hixl_link_t *link,
                             ucs_status_t status)
{
    ucs_assert(ep->link == link);
    uct_hixl_ep_set_failed(ep, status);
    if ((status == UCS_ERR_NOT_CONNECTED) && (ep->npending == 0)) {
        uct_hixl_ep_peer_left(ep);
        return;
    }

    uct_hixl_link_abort(link, status);
    uct_hixl_ep_report_failed(ep, uct_hixl_ep_failure_reason(status));
}

ucs_status_t uct_hixl_ep_invalidate(uct_ep_h tl_ep)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);

    ucs_debug("%s: qp 0x%x is invalidated", iface->md->dev->name,
              ep->link->qp->qpn);
    return (hx_qp_err(ep->link->qp) == 0) ? UCS_OK : UCS_ERR_IO_ERROR;
}

/* ---- flush, fence, check ---- */

static void uct_hixl_flush_handler(uct_hixl_op_t *op, ucs_status_t status)
{
    uct_completion_t *comp = op->comp;

    ucs_mpool_put(op);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

/* When the WQE that was posted last, which makes a CQE, is done */
static ucs_status_t uct_hixl_ep_flush_op_add(uct_hixl_iface_t *iface,
                                             uct_hixl_ep_t *ep,
                                             uct_completion_t *comp)
{
    uct_hixl_zcopy_op_t *op;

    if (comp == NULL) {
        return UCS_INPROGRESS;
    }

    op = ucs_mpool_get(&iface->tx.op_mp);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    op->super.handler = uct_hixl_flush_handler;
    op->super.comp    = comp;
    op->super.sn      = ep->link->tail;
    ucs_queue_push(&ep->link->outstanding, &op->super.queue);
    return UCS_INPROGRESS;
}

static void uct_hixl_ep_cancel(uct_hixl_ep_t *ep)
{
    uct_hixl_ep_set_failed(ep, UCS_ERR_CANCELED);
    ep->flags |= UCT_HIXL_EP_NO_ERR_CB;
    uct_hixl_ep_cancel_bounce(ep, UCS_ERR_CANCELED);
    uct_hixl_link_abort(ep->link, UCS_ERR_CANCELED);
}

ucs_status_t uct_hixl_ep_flush(uct_ep_h tl_ep, unsigned flags,
                               uct_completion_t *comp)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);

    if (ucs_unlikely(flags & UCT_FLUSH_FLAG_CANCEL)) {
        /* What comes of the requests that wait is their owner's business */
        uct_hixl_ep_cancel(ep);
    } else if ((ep->blocked & UCT_HIXL_EP_FAILED) &&
               !(ep->flags & UCT_HIXL_EP_LEFT)) {
        return ep->status;
    } else if (ep->blocked & UCT_HIXL_EP_PENDING) {
        return uct_hixl_ep_no_resource(iface, ep);
    }

    if (uct_hixl_link_is_idle(ep->link)) {
        UCT_TL_EP_STAT_FLUSH(&ep->super);
        return UCS_OK;
    }

    if (!uct_hixl_link_signal_tail(ep->link) &&
        !(flags & UCT_FLUSH_FLAG_CANCEL)) {
        return uct_hixl_ep_no_resource(iface, ep);
    }

    UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    return uct_hixl_ep_flush_op_add(iface, ep, comp);
}

/* WRITEs and SENDs of a link are executed in order, and what follows a READ
 * may be executed before its data came: only that needs the device's fence. */
ucs_status_t uct_hixl_ep_fence(uct_ep_h tl_ep, unsigned flags UCS_V_UNUSED)
{
    uct_hixl_ep_t *ep = ucs_derived_of(tl_ep, uct_hixl_ep_t);

    if (ep->blocked & UCT_HIXL_EP_PENDING) {
        /* Which of those that wait belong before the fence is not known */
        ep->sticky_fence = HX_WQE_FENCE;
        ep->fence        = HX_WQE_FENCE;
    } else if (ep->reads) {
        ep->fence = HX_WQE_FENCE;
        ep->reads = 0;
    }
    UCT_TL_EP_STAT_FENCE(&ep->super);
    return UCS_OK;
}

ucs_status_t uct_hixl_ep_check(uct_ep_h tl_ep, unsigned flags,
                              uct_completion_t *comp)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    uint8_t fm_ce_se;
    unsigned bb;

    UCT_EP_KEEPALIVE_CHECK_PARAM(flags, comp);
    if (ep->blocked & UCT_HIXL_EP_FAILED) {
        return ep->status;
    }

    /* What is outstanding, or is being connected, tells as well */
    if (!uct_hixl_ep_has_resources(iface, ep) ||
        !uct_hixl_link_is_idle(ep->link)) {
        return UCS_OK;
    }

    /* A WRITE of nothing reaches the peer's QP, and no memory */
    fm_ce_se = HX_WQE_CQ_UPDATE | ep->fence;
    bb       = hx_sq_write_inline(ep->sq, NULL, 0, 0, 0, fm_ce_se);
    uct_hixl_ep_post(iface, ep, bb, fm_ce_se);
    return UCS_OK;
}

/* ---- beginning and end ---- */

ucs_status_t uct_hixl_ep_get_address(uct_ep_h tl_ep, uct_ep_addr_t *addr)
{
    uct_hixl_ep_t *ep = ucs_derived_of(tl_ep, uct_hixl_ep_t);

    uct_hixl_link_get_addr(ep->link, (uct_hixl_qp_addr_t*)addr);
    return UCS_OK;
}

ucs_status_t uct_hixl_ep_connect_to_ep(uct_ep_h tl_ep,
                                       const uct_device_addr_t *dev_addr,
                                       const uct_ep_addr_t *ep_addr)
{
    uct_hixl_ep_t *ep = ucs_derived_of(tl_ep, uct_hixl_ep_t);
    ucs_status_t status;

    status = uct_hixl_link_connect(ep->link,
                                   (const uct_hixl_device_addr_t*)dev_addr,
                                   (const uct_hixl_qp_addr_t*)ep_addr);
    if (status != UCS_OK) {
        return status;
    }

    uct_hixl_ep_link_ready(ep, ep->link);
    return UCS_OK;
}

static ucs_status_t uct_hixl_ep_make_link(uct_hixl_iface_t *iface,
                                          uct_hixl_ep_t *ep,
                                          const uct_ep_params_t *params,
                                          int *ready_p)
{
    if (iface->md->dev->gone) {
        ucs_debug("%s: no endpoint: the device is gone", iface->md->dev->name);
        return UCS_ERR_NO_DEVICE;
    }

    if (params->field_mask & UCT_EP_PARAM_FIELD_IFACE_ADDR) {
        UCT_EP_PARAMS_CHECK_DEV_IFACE_ADDRS(params);
        return uct_hixl_cm_connect(iface, ep, params->dev_addr,
                                   params->iface_addr, &ep->link, ready_p);
    }

    *ready_p = 0;
    return uct_hixl_link_create(iface, &ep->link);
}

UCS_CLASS_INIT_FUNC(uct_hixl_ep_t, const uct_ep_params_t *params)
{
    uct_hixl_iface_t *iface = ucs_derived_of(params->iface, uct_hixl_iface_t);
    ucs_status_t status;
    int ready;

    UCS_CLASS_CALL_SUPER_INIT(uct_base_ep_t, &iface->super);

    self->blocked      = UCT_HIXL_EP_CONNECTING;
    self->flags        = 0;
    self->fence        = 0;
    self->sticky_fence = 0;
    self->reads        = 0;
    self->status       = UCS_OK;
    self->bounce       = NULL;
    self->npending     = 0;
    ucs_arbiter_group_init(&self->arb_group);

    status = uct_hixl_ep_make_link(iface, self, params, &ready);
    if (status != UCS_OK) {
        return status;
    }

    self->sq       = &self->link->qp->sq;
    self->link->ep = self;
    ucs_list_add_tail(&iface->ep_list, &self->list);

    status = uct_hixl_qp_table_add(&iface->qps, self->link->qp->qpn,
                                   self->link);
    if (status != UCS_OK) {
        goto err_release_link;
    }

    ++iface->num_eps;
    if (ready) {
        uct_hixl_ep_link_ready(self, self->link);
    }
    ucs_debug("%s: ep %p has qp 0x%x", iface->md->dev->name, self,
              self->link->qp->qpn);
    return UCS_OK;

err_release_link:
    ucs_list_del(&self->list);
    self->link->ep = NULL;
    if (self->link->cm != NULL) {
        uct_hixl_cm_release(self->link);
    } else {
        uct_hixl_link_destroy(self->link);
    }
    return status;
}

static void uct_hixl_ep_pending_warn_cb(uct_pending_req_t *req, void *arg)
{
    ucs_warn("ep %p: pending request %p was not purged", arg, req);
}

/* The user's part of what is outstanding ends now, ours when the CQEs come */
static void uct_hixl_ep_orphan_ops(uct_hixl_ep_t *ep)
{
    uct_completion_t *comp;
    ucs_queue_iter_t iter;
    uct_hixl_op_t *op;

    ucs_queue_for_each_safe(op, iter, &ep->link->outstanding, queue) {
        if (op->handler == uct_hixl_zcopy_handler) {
            /* The device must not touch the user's memory any more */
            uct_hixl_link_abort(ep->link, UCS_ERR_CANCELED);
        } else if (op->handler != uct_hixl_flush_handler) {
            op->handler = uct_hixl_desc_handler;
        }

        comp     = op->comp;
        op->comp = NULL;
        if (comp != NULL) {
            uct_invoke_completion(comp, UCS_ERR_CANCELED);
        }
    }
}

static UCS_CLASS_CLEANUP_FUNC(uct_hixl_ep_t)
{
    uct_hixl_link_t *link = self->link;

    uct_hixl_ep_set_failed(self, UCS_ERR_CANCELED);
    uct_hixl_ep_pending_purge(&self->super.super, uct_hixl_ep_pending_warn_cb,
                              self);
    uct_hixl_ep_cancel_bounce(self, UCS_ERR_CANCELED);
    uct_hixl_ep_orphan_ops(self);
    ucs_arbiter_group_cleanup(&self->arb_group);
    ucs_list_del(&self->list);
    --link->iface->num_eps;
    link->ep = NULL;
    uct_hixl_link_drain(link);
}

UCS_CLASS_DEFINE(uct_hixl_ep_t, uct_base_ep_t)
UCS_CLASS_DEFINE_NEW_FUNC(uct_hixl_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DEFINE_DELETE_FUNC(uct_hixl_ep_t, uct_ep_t);
