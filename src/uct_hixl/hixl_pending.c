/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What waits at an endpoint: requests that found no resources, in their order,
 * and before them the rest of an operation that goes through buffers.
 */

#include "hixl_ep.h"

void uct_hixl_ep_update_pending(uct_hixl_ep_t *ep)
{
    uct_hixl_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                             uct_hixl_iface_t);

    /* While others wait, the first of them drives the bounce that goes before
     * it; with nobody waiting it needs an element of its own. */
    if ((ep->bounce != NULL) && (ep->npending == 0)) {
        ep->bounce->queued = 1;
        ep->npending       = 1;
        ucs_arbiter_group_push_elem_always(&ep->arb_group, &ep->bounce->elem);
        ucs_arbiter_group_schedule(&iface->arbiter, &ep->arb_group);
    }

    if (ep->npending > 0) {
        ep->blocked |= UCT_HIXL_EP_PENDING;
    } else {
        ep->blocked     &= ~UCT_HIXL_EP_PENDING;
        ep->sticky_fence = 0;
    }
}

ucs_status_t uct_hixl_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                     unsigned flags UCS_V_UNUSED)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);

    UCS_STATIC_ASSERT(sizeof(uct_pending_req_priv_arb_t) <=
                      UCT_PENDING_REQ_PRIV_LEN);

    /* A failed endpoint says so when the caller tries again */
    if ((ep->blocked & UCT_HIXL_EP_FAILED) ||
        (uct_hixl_ep_has_resources(iface, ep) &&
         !uct_hixl_pool_is_empty(&iface->tx.pool))) {
        return UCS_ERR_BUSY;
    }

    uct_pending_req_arb_group_push(&ep->arb_group, req);
    ++ep->npending;
    ep->blocked |= UCT_HIXL_EP_PENDING;
    UCT_TL_EP_STAT_PEND(&ep->super);
    ucs_arbiter_group_schedule(&iface->arbiter, &ep->arb_group);
    return UCS_OK;
}

/* Who waits lacks something: of the endpoint's own, and others go on, or of
 * the interface's, and all wait. */
static ucs_arbiter_cb_result_t uct_hixl_ep_stalled(uct_hixl_iface_t *iface,
                                                   uct_hixl_ep_t *ep)
{
    if ((ep->blocked & (UCT_HIXL_EP_CONNECTING | UCT_HIXL_EP_FAILED)) ||
        (hx_sq_room(ep->sq) < HX_WQE_MAX_BB)) {
        return UCS_ARBITER_CB_RESULT_DESCHED_GROUP;
    }

    if ((iface->tx.cq_credits >= HX_WQE_MAX_BB) &&
        !uct_hixl_pool_is_empty(&iface->tx.pool)) {
        /* Not for want of anything whose return is announced by a CQE */
        iface->tx.todo |= UCT_HIXL_TODO_DISPATCH;
    }
    return UCS_ARBITER_CB_RESULT_STOP;
}

static ucs_arbiter_cb_result_t
uct_hixl_ep_dispatch_cb(ucs_arbiter_t *arbiter UCS_V_UNUSED,
                        ucs_arbiter_group_t *group, ucs_arbiter_elem_t *elem,
                        void *arg)
{
    uct_hixl_ep_t *ep       = ucs_container_of(group, uct_hixl_ep_t, arb_group);
    uct_hixl_iface_t *iface = arg;
    int is_bounce           = (ep->bounce != NULL) && ep->bounce->queued;
    uct_pending_req_t *req;
    ucs_status_t status;

    if (ep->blocked & (UCT_HIXL_EP_CONNECTING | UCT_HIXL_EP_FAILED)) {
        return UCS_ARBITER_CB_RESULT_DESCHED_GROUP;
    }

    if (ep->bounce != NULL) {
        if (uct_hixl_bounce_progress(ep) != UCS_OK) {
            return uct_hixl_ep_stalled(iface, ep);
        }
    }

    if (!is_bounce) {
        req          = ucs_container_of(elem, uct_pending_req_t, priv);
        ep->blocked &= ~UCT_HIXL_EP_PENDING;
        status       = req->func(req);
        ep->blocked |= UCT_HIXL_EP_PENDING;
        ucs_trace_data("ep %p: pending request %p: %s", ep, req,
                       ucs_status_string(status));
        if (status == UCS_INPROGRESS) {
            return UCS_ARBITER_CB_RESULT_NEXT_GROUP;
        } else if (status != UCS_OK) {
            return uct_hixl_ep_stalled(iface, ep);
        }
    }

    --ep->npending;
    uct_hixl_ep_update_pending(ep);
    return UCS_ARBITER_CB_RESULT_REMOVE_ELEM;
}

void uct_hixl_iface_dispatch(uct_hixl_iface_t *iface)
{
    ucs_arbiter_dispatch(&iface->arbiter, 1, uct_hixl_ep_dispatch_cb, iface);
}

static ucs_arbiter_cb_result_t
uct_hixl_ep_purge_cb(ucs_arbiter_t *arbiter UCS_V_UNUSED,
                     ucs_arbiter_group_t *group, ucs_arbiter_elem_t *elem,
                     void *arg)
{
    uct_hixl_ep_t *ep         = ucs_container_of(group, uct_hixl_ep_t,
                                                 arb_group);
    uct_purge_cb_args_t *args = arg;
    uct_pending_req_t *req;

    if ((ep->bounce != NULL) && (elem == &ep->bounce->elem)) {
        return UCS_ARBITER_CB_RESULT_NEXT_GROUP; /* stays */
    }

    req = ucs_container_of(elem, uct_pending_req_t, priv);
    --ep->npending;
    if (args->cb != NULL) {
        args->cb(req, args->arg);
    } else {
        ucs_debug("ep %p: pending request %p is cancelled", ep, req);
    }
    return UCS_ARBITER_CB_RESULT_REMOVE_ELEM;
}

void uct_hixl_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb,
                               void *arg)
{
    UCT_HIXL_EP_DECL(tl_ep, iface, ep);
    uct_purge_cb_args_t args = {cb, arg};

    ucs_arbiter_group_purge(&iface->arbiter, &ep->arb_group,
                            uct_hixl_ep_purge_cb, &args);
    uct_hixl_ep_update_pending(ep);
}

static ucs_arbiter_cb_result_t
uct_hixl_ep_remove_bounce_cb(ucs_arbiter_t *arbiter UCS_V_UNUSED,
                             ucs_arbiter_group_t *group UCS_V_UNUSED,
                             ucs_arbiter_elem_t *elem, void *arg)
{
    return (elem == arg) ? UCS_ARBITER_CB_RESULT_REMOVE_ELEM :
           UCS_ARBITER_CB_RESULT_NEXT_GROUP;
}

void uct_hixl_ep_cancel_bounce(uct_hixl_ep_t *ep, ucs_status_t status)
{
    uct_hixl_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                             uct_hixl_iface_t);

    if (ep->bounce == NULL) {
        return;
    }

    if (ep->bounce->queued) {
        ucs_arbiter_group_purge(&iface->arbiter, &ep->arb_group,
                                uct_hixl_ep_remove_bounce_cb,
                                &ep->bounce->elem);
        ep->bounce->queued = 0;
        --ep->npending;
    }
    uct_hixl_bounce_cancel(ep, status);
}
