/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A link: one RC QP here and one at the peer, and (unless it was made by
 * CONNECT_TO_EP) the TCP socket that made it and tells when the peer is gone.
 *
 * Who may touch what: `cm` belongs to hixl_cm.c under its lock, from progress
 * and from the async handler; everything else belongs to progress alone once
 * the link was given to it.
 */

#ifndef UCT_HIXL_LINK_H_
#define UCT_HIXL_LINK_H_

#include "hixl_iface.h"

#include <mlx5/sq.h>

/* What an endpoint address, and HELLO and its answer, say of one end of a
 * link; network order on the wire. */
typedef struct uct_hixl_qp_addr {
    uint8_t qpn[3];
    uint8_t psn[3];
} UCS_S_PACKED uct_hixl_qp_addr_t;

struct uct_hixl_link {
    struct hx_qp          *qp;         /* hot, first */
    uint16_t               tail;       /* first block of the WQE posted last */
    uint16_t               unsignaled; /* blocks since the last CQ_UPDATE */
    ucs_status_t           status;     /* why its QP is in error; else OK */
    uct_hixl_iface_t      *iface;
    uct_hixl_ep_t         *ep;         /* who posts on it; NULL: nobody */
    ucs_queue_head_t       outstanding; /* uct_hixl_op_t by sn (hixl_ep.h) */
    uint32_t               local_psn;
    ucs_list_link_t        list;       /* of the iface's draining links */
    struct uct_hixl_cm_link *cm;       /* NULL: made by CONNECT_TO_EP */
};

/** QP in INIT with a random PSN; hixl_link.c. Any thread. */
ucs_status_t uct_hixl_link_create(uct_hixl_iface_t *iface,
                                  uct_hixl_link_t **link_p);
void uct_hixl_link_get_addr(const uct_hixl_link_t *link,
                            uct_hixl_qp_addr_t *addr_p);
/** INIT -> RTR -> RTS towards the peer's device address and QP. Any thread. */
ucs_status_t uct_hixl_link_connect(uct_hixl_link_t *link,
                                   const uct_hixl_device_addr_t *dev_addr,
                                   const uct_hixl_qp_addr_t *qp_addr);
/** Destroys the QP; nothing of it may be outstanding. */
void uct_hixl_link_destroy(uct_hixl_link_t *link);

/* ---- for the endpoint, from progress ---- */

/** Whether every WQE posted so far is known to be done. */
static UCS_F_ALWAYS_INLINE int
uct_hixl_link_is_idle(const uct_hixl_link_t *link)
{
    return link->qp->sq.pi == link->qp->sq.ci;
}

/** A CQE will come for the last WQE: posts a NOP if it needs one. Returns 0 if
 *  there was no credit for it: progress tries again (UCT_HIXL_TODO_SIGNAL). */
int uct_hixl_link_signal_tail(uct_hixl_link_t *link);

/** The QP goes to error: what is outstanding comes back as flushed, with this
 *  status. Only the first status counts. */
void uct_hixl_link_abort(uct_hixl_link_t *link, ucs_status_t status);

/** The endpoint is gone (link->ep is NULL). Waits for what is outstanding, then
 *  gives the link back. */
void uct_hixl_link_drain(uct_hixl_link_t *link);

/** Ends all that is outstanding, with link->status: no CQE will come. */
void uct_hixl_link_end(uct_hixl_iface_t *iface, uct_hixl_link_t *link);

/** Gives back draining links that are idle. */
void uct_hixl_iface_release_drained(uct_hixl_iface_t *iface);
/** Gives back all of them, whatever is outstanding; the interface closes. */
void uct_hixl_iface_abort_draining(uct_hixl_iface_t *iface);

/** Completions of all links, a batch at most. */
unsigned uct_hixl_iface_poll_send(uct_hixl_iface_t *iface);

#endif
