/* SPDX-License-Identifier: BSD-3-Clause */

/* Receives that many QPs share: an RMP with a linked list of WQEs. A ring would
 * take them again in its order, so that one message that lags behind, of one
 * peer, would hold up the receives of all others. */

#include "cmd.h"
#include "mmio.h"
#include "umem.h"
#include "wqe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The record's counter has 16 bits, and a full list must differ from an empty
 * one */
#define RMP_LOG_MAX_SIZE 15

int hx_rmp_create(struct hx_dev *dev, struct hx_uar *uar, unsigned log_size,
                  struct hx_rmp **rmp_p)
{
    struct hx_cmd_rmp_attr attr = {
        .pdn        = dev->pdn,
        .log_size   = log_size,
        .log_stride = HX_WQE_RECV_LOG_SIZE
    };
    struct hx_wqe_recv *wqe;
    struct hx_rmp *rmp;
    size_t ring_len;
    uint32_t i;
    int ret;

    (void)uar; /* an RMP has no register */

    if ((log_size == 0) || (log_size > RMP_LOG_MAX_SIZE)) {
        hx_log(HX_LOG_ERROR, "%s: an RMP of 2^%u WQEs, the limits are 2^1 and"
               " 2^%u", dev->name, log_size, RMP_LOG_MAX_SIZE);
        return -EINVAL;
    }

    rmp = calloc(1, sizeof(*rmp));
    if (rmp == NULL) {
        hx_log(HX_LOG_ERROR, "%s: no memory for an RMP", dev->name);
        return -ENOMEM;
    }

    ring_len = sizeof(struct hx_wqe_recv) << log_size;
    ret      = hx_buf_alloc(dev, ring_len + HX_DBREC_LEN, &rmp->buf);
    if (ret != 0) {
        goto err_free;
    }

    rmp->ring       = rmp->buf.addr;
    rmp->dbrec      = (volatile uint32_t *)((uint8_t *)rmp->ring + ring_len);
    rmp->mask       = (UINT32_C(1) << log_size) - 1;
    rmp->log_stride = HX_WQE_RECV_LOG_SIZE;
    rmp->tail       = rmp->mask;
    rmp->ring_soft  = hx_ring_soft_lookup();

    for (i = 0; i <= rmp->mask; ++i) {
        wqe                      = (struct hx_wqe_recv *)rmp->ring + i;
        wqe->next.next_wqe_index = htobe16((i + 1) & rmp->mask);
    }

    attr.umem_id     = rmp->buf.umem.id;
    attr.dbr_umem_id = rmp->buf.umem.id;
    attr.dbr_addr    = ring_len;
    ret              = hx_cmd_create_rmp(dev, &attr, &rmp->obj, &rmp->rmpn);
    if (ret != 0) {
        goto err_free_buf;
    }

    *rmp_p = rmp;
    return 0;

err_free_buf:
    hx_buf_free(&rmp->buf);
err_free:
    free(rmp);
    return ret;
}

void hx_rmp_destroy(struct hx_rmp *rmp)
{
    hx_cmd_destroy(rmp->obj, "RMP", rmp->rmpn);
    hx_buf_free(&rmp->buf);
    free(rmp);
}
