/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion queues. */

#include "cmd.h"
#include "cq_poll.h"
#include "umem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Doorbell record and the register at the CQ's UAR page */
#define CQ_DBREC_ARM     1
#define CQ_UAR_ARM       0x20
#define CQ_ARM_SOLICITED (UINT32_C(1) << 24)

int hx_cq_set_channel(struct hx_dev *dev, struct hx_cq *cq,
                      struct hx_channel *chan)
{
    uint16_t event = PRM_EVENT_COMP;
    int err;

    err = mlx5dv_devx_subscribe_devx_event(chan->dv, cq->obj, sizeof(event),
                                           &event, cq->cqn);
    if (err != 0) {
        hx_log(HX_LOG_ERROR, "%s: subscribing to events of CQ 0x%x failed: %s",
               dev->name, cq->cqn, strerror(err));
        return -err;
    }

    cq->chan      = chan;
    cq->chan_next = chan->cqs;
    chan->cqs     = cq;
    return 0;
}

void hx_cq_unset_channel(struct hx_cq *cq)
{
    struct hx_cq **at;

    for (at = &cq->chan->cqs; *at != NULL; at = &(*at)->chan_next) {
        if (*at == cq) {
            *at = cq->chan_next;
            break;
        }
    }
    cq->chan = NULL;
}

int hx_cq_create(struct hx_dev *dev, struct hx_uar *uar, unsigned log_size,
                 struct hx_channel *chan, struct hx_cq **cq_p)
{
    struct hx_cmd_cq_attr attr = {
        .eqn      = dev->eqn,
        .uar_page = uar->page_id,
        .log_size = log_size
    };
    struct hx_cq *cq;
    size_t ring_len, i;
    int ret;

    if (log_size > dev->caps.log_max_cq_sz) {
        hx_log(HX_LOG_ERROR, "%s: a CQ of 2^%u entries, the maximum is 2^%u",
               dev->name, log_size, dev->caps.log_max_cq_sz);
        return -EINVAL;
    }

    cq = aligned_alloc(HX_BB_SIZE, (sizeof(*cq) + HX_BB_SIZE - 1) /
                                   HX_BB_SIZE * HX_BB_SIZE);
    if (cq == NULL) {
        hx_log(HX_LOG_ERROR, "%s: no memory for a CQ", dev->name);
        return -ENOMEM;
    }
    memset(cq, 0, sizeof(*cq));

    ring_len = sizeof(struct hx_cqe) << log_size;
    ret      = hx_buf_alloc(dev, ring_len + HX_DBREC_LEN, &cq->buf);
    if (ret != 0) {
        goto err_free;
    }

    cq->uar       = uar;
    cq->ring      = cq->buf.addr;
    cq->dbrec     = (volatile uint32_t *)((uint8_t *)cq->ring + ring_len);
    cq->log_size  = log_size;
    cq->mask      = (UINT32_C(1) << log_size) - 1;
    cq->ring_soft = hx_ring_soft_lookup();

    for (i = 0; i <= cq->mask; ++i) {
        ((struct hx_cqe *)cq->ring)[i].op_own = HX_CQE_INIT;
    }

    attr.umem_id     = cq->buf.umem.id;
    attr.dbr_umem_id = cq->buf.umem.id;
    attr.dbr_addr    = ring_len;
    ret              = hx_cmd_create_cq(dev, &attr, &cq->obj, &cq->cqn);
    if (ret != 0) {
        goto err_free_buf;
    }

    if (chan != NULL) {
        ret = hx_cq_set_channel(dev, cq, chan);
        if (ret != 0) {
            goto err_destroy;
        }
    }

    *cq_p = cq;
    return 0;

err_destroy:
    hx_cmd_destroy(cq->obj, "CQ", cq->cqn);
err_free_buf:
    hx_buf_free(&cq->buf);
err_free:
    free(cq);
    return ret;
}

void hx_cq_destroy(struct hx_cq *cq)
{
    if (cq->chan != NULL) {
        hx_cq_unset_channel(cq);
    }

    hx_cmd_destroy(cq->obj, "CQ", cq->cqn);
    hx_buf_free(&cq->buf);
    free(cq);
}

void hx_cq_arm(struct hx_cq *cq, bool solicited)
{
    uint32_t sn_cmd_ci = (cq->arm_sn & 3) << 28 |
                         (solicited ? CQ_ARM_SOLICITED : 0) |
                         (cq->ci & 0xffffff);

    cq->dbrec[CQ_DBREC_ARM] = htobe32(sn_cmd_ci);

    hx_wc_start();
    hx_mmio_write64((uint8_t *)cq->uar->base_addr + CQ_UAR_ARM,
                    htobe64((uint64_t)sn_cmd_ci << 32 | cq->cqn));
    hx_wc_flush();

    if (cq->ring_soft != NULL) {
        cq->ring_soft(HX_RING_SOFT_CQ_ARM, cq->cqn);
    }
}

const char *hx_cqe_syndrome_str(uint8_t syndrome)
{
    switch (syndrome) {
    case 0x01:
        return "local length error (0x01)";
    case 0x02:
        return "local QP operation error (0x02)";
    case 0x04:
        return "local protection error (0x04)";
    case 0x05:
        return "flushed (0x05)";
    case 0x06:
        return "memory window bind error (0x06)";
    case 0x10:
        return "bad response error (0x10)";
    case 0x11:
        return "local access error (0x11)";
    case 0x12:
        return "remote invalid request error (0x12)";
    case 0x13:
        return "remote access error (0x13)";
    case 0x14:
        return "remote operation error (0x14)";
    case 0x15:
        return "transport retry count exceeded (0x15)";
    case 0x16:
        return "RNR retry count exceeded (0x16)";
    case 0x22:
        return "remote aborted (0x22)";
    default:
        return "unknown error";
    }
}
