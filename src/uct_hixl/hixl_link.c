/* SPDX-License-Identifier: BSD-3-Clause */

/* Links: their QPs, the table that finds them, what their CQEs complete. */

#include "hixl_cm.h"
#include "hixl_ep.h"

#include <mlx5/cq_poll.h>

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <ucs/sys/uid.h>

/* CQEs that one progress takes */
#define UCT_HIXL_SEND_BATCH 16

/* RNR NAK timer in the IB encoding: 0.64 ms */
#define UCT_HIXL_MIN_RNR_NAK 12

#define UCT_HIXL_HOP_LIMIT 64

/* Entries of the table's second level */
#define UCT_HIXL_QP_TABLE_LINKS UCS_BIT(UCT_HIXL_QP_TABLE_BITS)

ucs_status_t uct_hixl_qp_table_add(uct_hixl_qp_table_t *table, uint32_t qpn,
                                   uct_hixl_link_t *link)
{
    uct_hixl_link_t ***links_p = &table->dir[qpn >> UCT_HIXL_QP_TABLE_BITS];
    uct_hixl_link_t **link_p;

    if (*links_p == NULL) {
        *links_p = ucs_calloc(UCT_HIXL_QP_TABLE_LINKS, sizeof(**links_p),
                              "hixl_qp_table");
        if (*links_p == NULL) {
            ucs_error("no memory for the table of QPs around 0x%x", qpn);
            return UCS_ERR_NO_MEMORY;
        }
    }

    link_p = &(*links_p)[qpn & UCS_MASK(UCT_HIXL_QP_TABLE_BITS)];
    ucs_assert(*link_p == NULL);
    *link_p = link;
    return UCS_OK;
}

void uct_hixl_qp_table_del(uct_hixl_qp_table_t *table, uint32_t qpn)
{
    table->dir[qpn >> UCT_HIXL_QP_TABLE_BITS]
              [qpn & UCS_MASK(UCT_HIXL_QP_TABLE_BITS)] = NULL;
}

void uct_hixl_qp_table_cleanup(uct_hixl_qp_table_t *table)
{
    unsigned i;

    for (i = 0; i < UCS_BIT(UCT_HIXL_QP_TABLE_BITS); ++i) {
        ucs_free(table->dir[i]);
    }
}

static void uct_hixl_pack_uint24(uint8_t buf[3], uint32_t value)
{
    buf[0] = value >> 16;
    buf[1] = value >> 8;
    buf[2] = value;
}

static uint32_t uct_hixl_unpack_uint24(const uint8_t buf[3])
{
    return (uint32_t)buf[0] << 16 | (uint32_t)buf[1] << 8 | buf[2];
}

/* hx_ calls log what fails; only resources that may come back are told apart */
static ucs_status_t uct_hixl_link_status(int ret)
{
    return (ret == -ENOMEM) ? UCS_ERR_NO_MEMORY : UCS_ERR_IO_ERROR;
}

/* A PSN that a QP of the same number before this one did not use: so packets
 * that are still under way to that one are not taken for ours. */
static uint32_t uct_hixl_link_random_psn(void)
{
    uint32_t psn;

    if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) != sizeof(psn)) {
        psn = (uint32_t)ucs_generate_uuid((uintptr_t)&psn);
    }
    return psn & UCS_MASK(24);
}

ucs_status_t uct_hixl_link_create(uct_hixl_iface_t *iface,
                                  uct_hixl_link_t **link_p)
{
    const struct hx_qp_attr attr = {
        .uar       = iface->uar,
        .send_cq   = iface->send_cq,
        .recv_cq   = iface->recv_cq,
        .rmp       = iface->rmp,
        .log_sq_bb = iface->config.log_sq_bb
    };
    uct_hixl_link_t *link;
    ucs_status_t status;
    int ret;

    if (iface->md->dev->gone) {
        ucs_debug("%s: no link: the device is gone", iface->md->dev->name);
        return UCS_ERR_NO_DEVICE;
    }

    link = ucs_calloc(1, sizeof(*link), "hixl_link");
    if (link == NULL) {
        ucs_error("%s: no memory for a link", iface->md->dev->name);
        return UCS_ERR_NO_MEMORY;
    }

    ret = hx_qp_create(iface->md->dev, &attr, &link->qp);
    if (ret != 0) {
        status = uct_hixl_link_status(ret);
        goto err_free;
    }

    ret = hx_qp_init(link->qp, &iface->port, 0);
    if (ret != 0) {
        status = uct_hixl_link_status(ret);
        goto err_destroy_qp;
    }

    link->iface     = iface;
    link->local_psn = uct_hixl_link_random_psn();
    ucs_queue_head_init(&link->outstanding);
    ucs_debug("%s: link %p has qp 0x%x", iface->md->dev->name, link,
              link->qp->qpn);
    *link_p = link;
    return UCS_OK;

err_destroy_qp:
    hx_qp_destroy(link->qp);
err_free:
    ucs_free(link);
    return status;
}

void uct_hixl_link_get_addr(const uct_hixl_link_t *link,
                            uct_hixl_qp_addr_t *addr_p)
{
    uct_hixl_pack_uint24(addr_p->qpn, link->qp->qpn);
    uct_hixl_pack_uint24(addr_p->psn, link->local_psn);
}

ucs_status_t uct_hixl_link_connect(uct_hixl_link_t *link,
                                   const uct_hixl_device_addr_t *dev_addr,
                                   const uct_hixl_qp_addr_t *qp_addr)
{
    const uct_hixl_iface_t *iface = link->iface;
    unsigned peer_mtu             = dev_addr->flags >>
                                    UCT_HIXL_DEV_ADDR_MTU_SHIFT;
    struct hx_qp_path path        = {
        .remote_qpn  = uct_hixl_unpack_uint24(qp_addr->qpn),
        .remote_psn  = uct_hixl_unpack_uint24(qp_addr->psn),
        .local_psn   = link->local_psn,
        .mtu         = (enum ibv_mtu)ucs_min(peer_mtu,
                                             (unsigned)iface->port.active_mtu),
        .sl          = iface->port.sl,
        .hop_limit   = UCT_HIXL_HOP_LIMIT,
        .ack_timeout = iface->config.timeout,
        .retry_count = iface->config.retry_count,
        .rnr_retry   = iface->config.rnr_retry,
        .min_rnr_nak = UCT_HIXL_MIN_RNR_NAK
    };
    int ret;

    if (!!(dev_addr->flags & UCT_HIXL_DEV_ADDR_ROCE) != iface->port.roce) {
        ucs_error("%s: a RoCE and an InfiniBand port cannot be connected",
                  iface->md->dev->name);
        return UCS_ERR_UNREACHABLE;
    }

    if (iface->port.roce) {
        memcpy(path.gid.raw, dev_addr->gid, sizeof(path.gid.raw));
    } else {
        /* One subnet (is_reachable): a LID does, no GRH */
        path.lid = (uint16_t)(dev_addr->lid[0] << 8 | dev_addr->lid[1]);
    }

    ret = hx_qp_rtr(link->qp, &iface->port, &path);
    if (ret != 0) {
        return uct_hixl_link_status(ret);
    }

    ret = hx_qp_rts(link->qp, &path);
    if (ret != 0) {
        return uct_hixl_link_status(ret);
    }

    ucs_debug("%s: link %p: qp 0x%x is connected to 0x%x",
              iface->md->dev->name, link, link->qp->qpn, path.remote_qpn);
    return UCS_OK;
}

/* A message that has begun to arrive, and whose sender has died, holds a
 * receive of the shared queue. The error state makes the device give it back,
 * with an error CQE; a QP that is only destroyed would keep it, and in the end
 * none would be left for anybody. */
static void uct_hixl_link_give_back_receives(uct_hixl_link_t *link)
{
    (void)hx_qp_err(link->qp);
}

void uct_hixl_link_destroy(uct_hixl_link_t *link)
{
    /* Even if it failed: something may have arrived while it did */
    uct_hixl_link_give_back_receives(link);
    hx_qp_destroy(link->qp);
    ucs_free(link);
}

int uct_hixl_link_signal_tail(uct_hixl_link_t *link)
{
    uct_hixl_iface_t *iface = link->iface;
    struct hx_sq *sq        = &link->qp->sq;

    if (link->unsignaled == 0) {
        return 1;
    }

    if (iface->tx.cq_credits < 1) {
        iface->tx.todo |= UCT_HIXL_TODO_SIGNAL;
        return 0;
    }

    /* No look at the room: hx_sq_room() keeps more spare than one NOP, and the
     * next is only needed after another WQE, for which there was room. */
    uct_hixl_link_post(iface, link, sq, hx_sq_nop(sq, HX_WQE_CQ_UPDATE),
                       HX_WQE_CQ_UPDATE);
    return 1;
}

void uct_hixl_link_abort(uct_hixl_link_t *link, ucs_status_t status)
{
    if (link->status != UCS_OK) {
        return;
    }

    if ((link->ep != NULL) && (link->ep->blocked & UCT_HIXL_EP_CONNECTING)) {
        return; /* nothing was posted, and a handler may be at work on the QP */
    }

    link->status = status;
    if (uct_hixl_link_is_idle(link)) {
        uct_hixl_link_give_back_receives(link);
        return; /* nothing to end, and nothing will be posted */
    }

    /* WQEs that were executed, but not signaled, make no CQE when the queue is
     * flushed: the last one must. */
    (void)hx_qp_err(link->qp);
    (void)uct_hixl_link_signal_tail(link);
}

/* The WQE at `index` and all before it are done: gives back what they held */
static UCS_F_ALWAYS_INLINE void
uct_hixl_link_complete(uct_hixl_iface_t *iface, uct_hixl_link_t *link,
                       uint16_t index, ucs_status_t status)
{
    struct hx_sq *sq = &link->qp->sq;
    /* A CQE does not say how many blocks its WQE has; of the last one it is
     * known. */
    uint16_t ci = (index == link->tail) ? sq->pi : index;
    uct_hixl_op_t *op;

    iface->tx.cq_credits += (uint16_t)(ci - sq->ci);
    hx_sq_complete(sq, ci);
    ucs_queue_for_each_extract(op, &link->outstanding, queue,
                               UCS_CIRCULAR_COMPARE16(op->sn, <=, index)) {
        op->handler(op, status);
    }
}

static void uct_hixl_link_give_back(uct_hixl_link_t *link)
{
    ucs_assert(ucs_queue_is_empty(&link->outstanding));
    ucs_list_del(&link->list);
    uct_hixl_qp_table_del(&link->iface->qps, link->qp->qpn);
    if (link->cm == NULL) {
        uct_hixl_link_destroy(link);
    } else if (link->status == UCS_OK) {
        uct_hixl_cm_release(link);
    } else {
        uct_hixl_cm_abort(link);
    }
}

void uct_hixl_link_drain(uct_hixl_link_t *link)
{
    uct_hixl_iface_t *iface = link->iface;

    ucs_list_add_tail(&iface->draining, &link->list);
    if (!uct_hixl_link_is_idle(link)) {
        (void)uct_hixl_link_signal_tail(link);
    } else if (iface->tx.polling) {
        iface->tx.todo |= UCT_HIXL_TODO_DRAIN;
    } else {
        uct_hixl_link_give_back(link);
    }
}

void uct_hixl_iface_release_drained(uct_hixl_iface_t *iface)
{
    uct_hixl_link_t *link, *tmp;

    ucs_list_for_each_safe(link, tmp, &iface->draining, list) {
        if (uct_hixl_link_is_idle(link)) {
            uct_hixl_link_give_back(link);
        }
    }
}

void uct_hixl_link_end(uct_hixl_iface_t *iface, uct_hixl_link_t *link)
{
    if (!uct_hixl_link_is_idle(link)) {
        uct_hixl_link_complete(iface, link, link->tail, link->status);
    }
}

void uct_hixl_iface_abort_draining(uct_hixl_iface_t *iface)
{
    uct_hixl_link_t *link, *tmp;

    ucs_list_for_each_safe(link, tmp, &iface->draining, list) {
        if (!uct_hixl_link_is_idle(link)) {
            uct_hixl_link_abort(link, UCS_ERR_CANCELED);
            uct_hixl_link_end(iface, link);
        }
        uct_hixl_link_give_back(link);
    }
}

static ucs_status_t uct_hixl_syndrome_status(uint8_t syndrome)
{
    switch (syndrome) {
    case MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR:
    case MLX5_CQE_SYNDROME_REMOTE_OP_ERR:
    case MLX5_CQE_SYNDROME_WR_FLUSH_ERR: /* the cause is not one of our WQEs */
        return UCS_ERR_CONNECTION_RESET;
    case MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR:
    case MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR:
    case MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR:
        return UCS_ERR_ENDPOINT_TIMEOUT;
    default:
        return UCS_ERR_IO_ERROR;
    }
}

static UCS_F_NOINLINE void
uct_hixl_link_handle_error(uct_hixl_iface_t *iface, uct_hixl_link_t *link,
                           const struct hx_wc *wc)
{
    char reason[96];

    ucs_debug("%s: qp 0x%x wqe %u: %s, vendor 0x%x", iface->md->dev->name,
              wc->qpn, wc->wqe_counter, hx_cqe_syndrome_str(wc->syndrome),
              wc->vendor_syndrome);

    ucs_snprintf_zero(reason, sizeof(reason), "%s, vendor 0x%x",
                      hx_cqe_syndrome_str(wc->syndrome), wc->vendor_syndrome);
    if (link->status == UCS_OK) {
        link->status = uct_hixl_syndrome_status(wc->syndrome);
    }

    if (link->ep != NULL) {
        uct_hixl_ep_set_failed(link->ep, link->status);
    }
    uct_hixl_link_complete(iface, link, wc->wqe_counter, link->status);
    if (link->ep != NULL) {
        uct_hixl_ep_report_failed(link->ep, reason);
    } else if (uct_hixl_link_is_idle(link)) {
        iface->tx.todo |= UCT_HIXL_TODO_DRAIN;
    }
}

unsigned uct_hixl_iface_poll_send(uct_hixl_iface_t *iface)
{
    unsigned count = 0;
    uct_hixl_link_t *link;
    struct hx_wc wc;

    if (!hx_cq_poll(iface->send_cq, &wc)) {
        return 0;
    }

    iface->tx.polling = 1;
    do {
        ++count;
        link = uct_hixl_qp_table_get(&iface->qps, wc.qpn);
        ucs_trace_poll("%s: send cqe of qp 0x%x wqe %u",
                       iface->md->dev->name, wc.qpn, wc.wqe_counter);
        if (ucs_unlikely(link == NULL)) {
            ucs_debug("%s: cqe of qp 0x%x, which is gone",
                      iface->md->dev->name, wc.qpn);
        } else if (ucs_unlikely(wc.kind != HX_CQE_REQ)) {
            uct_hixl_link_handle_error(iface, link, &wc);
        } else {
            uct_hixl_link_complete(iface, link, wc.wqe_counter, UCS_OK);
            if (ucs_unlikely(link->ep == NULL)) {
                iface->tx.todo |= UCT_HIXL_TODO_DRAIN;
            } else {
                ucs_arbiter_group_schedule(&iface->arbiter,
                                           &link->ep->arb_group);
            }
        }
    } while ((count < UCT_HIXL_SEND_BATCH) &&
             hx_cq_poll(iface->send_cq, &wc));
    iface->tx.polling = 0;

    hx_cq_update_ci(iface->send_cq);
    if (!ucs_arbiter_is_empty(&iface->arbiter)) {
        uct_hixl_iface_dispatch(iface);
    }
    return count;
}
