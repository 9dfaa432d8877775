/* SPDX-License-Identifier: BSD-3-Clause */

/* The device is gone: what becomes of an interface's endpoints and links. */

#include "hixl_async.h"
#include "hixl_ep.h"

/* What is outstanding ends now: no CQE will tell, and one that was written
 * before is not looked at any more. */
static void uct_hixl_link_gone(uct_hixl_iface_t *iface, uct_hixl_link_t *link)
{
    if (link->status == UCS_OK) {
        link->status = UCT_HIXL_GONE_STATUS;
    }
    link->unsignaled = 0;
    uct_hixl_qp_table_del(&iface->qps, link->qp->qpn);
}

void uct_hixl_iface_device_gone(uct_hixl_iface_t *iface)
{
    uct_hixl_link_t *link;
    uct_hixl_ep_t *ep;

    if (iface->gone) {
        return;
    }

    /* What was done before, is done */
    while (uct_hixl_iface_poll_send(iface) > 0) {
    }

    /* All of them, before a user is told of the first and turns to another */
    iface->gone = 1;
    ucs_list_for_each(ep, &iface->ep_list, list) {
        if (!(ep->blocked & UCT_HIXL_EP_FAILED)) {
            uct_hixl_ep_set_failed(ep, UCT_HIXL_GONE_STATUS);
            ep->flags |= UCT_HIXL_EP_REPORT;
        }
        uct_hixl_link_gone(iface, ep->link);
    }
    ucs_list_for_each(link, &iface->draining, list) {
        uct_hixl_link_gone(iface, link);
    }

    iface->tx.polling = 1;
again:
    ucs_list_for_each(ep, &iface->ep_list, list) {
        if (!uct_hixl_link_is_idle(ep->link)) {
            uct_hixl_link_end(iface, ep->link);
            goto again; /* the user may have destroyed any endpoint */
        }
    }
    ucs_list_for_each(link, &iface->draining, list) {
        uct_hixl_link_end(iface, link);
    }
    iface->tx.polling = 0;

    uct_hixl_iface_release_drained(iface);
    uct_hixl_iface_report_failed(iface);
}
