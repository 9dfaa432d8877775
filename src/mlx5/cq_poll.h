/* SPDX-License-Identifier: BSD-3-Clause */

/* Polling CQEs, and posting receives to an RMP. */

#ifndef HX_CQ_POLL_H_
#define HX_CQ_POLL_H_

#include "hx.h"
#include "mmio.h"
#include "wqe.h"

enum hx_cqe_kind {
    HX_CQE_REQ,
    HX_CQE_RECV,
    HX_CQE_REQ_ERR,
    HX_CQE_RECV_ERR
};

/* One completion, in host order */
struct hx_wc {
    enum hx_cqe_kind kind;
    uint32_t         qpn;             /* the QP that completed */
    uint16_t         wqe_counter;     /* REQ: first block of the WQE; RECV from
                                         an RMP: & mask is the slot consumed */
    uint32_t         byte_cnt;        /* RECV */
    uint32_t         imm;             /* RECV with immediate data */
    bool             has_imm;
    uint8_t          syndrome;        /* *_ERR */
    uint8_t          vendor_syndrome;
};

/** Next completion, if there is one: decoded into wc, consumer index advanced.
 *  hx_cq_update_ci() tells the device, once a batch. */
static inline bool hx_cq_poll(struct hx_cq *cq, struct hx_wc *wc)
{
    const struct hx_cqe *cqe = (const struct hx_cqe *)cq->ring +
                               (cq->ci & cq->mask);
    uint8_t op_own, opcode;

    /* The body is valid once op_own says so: the load of op_own comes first.
     * The owner bit the device writes alternates with each pass of the ring. */
    op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);
    opcode = op_own >> 4;
    if (((op_own & HX_CQE_OWNER) != !!(cq->ci & (cq->mask + 1))) ||
        (opcode == HX_CQE_OP_INVALID)) {
        return false;
    }

    ++cq->ci;
    wc->qpn         = be32toh(cqe->opcode_qpn) & 0xffffff;
    wc->wqe_counter = be16toh(cqe->wqe_counter);
    wc->has_imm     = false;

    switch (opcode) {
    case HX_CQE_OP_REQ:
        wc->kind = HX_CQE_REQ;
        return true;
    case HX_CQE_OP_RESP_WRITE_IMM:
    case HX_CQE_OP_RESP_SEND_IMM:
        wc->imm     = be32toh(cqe->imm_inval_pkey);
        wc->has_imm = true;
        /* fall through */
    case HX_CQE_OP_RESP_SEND:
    case HX_CQE_OP_RESP_SEND_INV:
        wc->byte_cnt = be32toh(cqe->byte_cnt);
        wc->kind     = HX_CQE_RECV;
        return true;
    case HX_CQE_OP_RESP_ERR:
        wc->kind = HX_CQE_RECV_ERR;
        break;
    default: /* REQ_ERR; nothing else can come from our objects */
        wc->kind = HX_CQE_REQ_ERR;
        break;
    }

    wc->syndrome        = cqe->syndrome;
    wc->vendor_syndrome = cqe->vendor_err_synd;
    return true;
}

/** Whether hx_cq_poll() would return one */
static inline bool hx_cq_is_ready(const struct hx_cq *cq)
{
    const struct hx_cqe *cqe = (const struct hx_cqe *)cq->ring +
                               (cq->ci & cq->mask);
    uint8_t op_own           = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);

    return ((op_own & HX_CQE_OWNER) == !!(cq->ci & (cq->mask + 1))) &&
           ((op_own >> 4) != HX_CQE_OP_INVALID);
}

/** Publishes the consumer index; once a batch that polled something */
static inline void hx_cq_update_ci(struct hx_cq *cq)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
    cq->dbrec[0] = htobe32(cq->ci & 0xffffff);
}

/** "remote access error (0x13)" and so on; a string for each of 256 */
const char *hx_cqe_syndrome_str(uint8_t syndrome);

/** Writes one receive WQE and returns its index, which its CQE will show as
 *  wqe_counter. At most rmp->mask WQEs may be posted and not freed. */
static inline uint16_t hx_rmp_post(struct hx_rmp *rmp, uint64_t addr,
                                   uint32_t len, uint32_t lkey)
{
    uint16_t index          = rmp->head;
    struct hx_wqe_recv *wqe = (struct hx_wqe_recv *)rmp->ring + index;

    wqe->data = (struct hx_wqe_data) {
        .byte_count_lkey = htobe64((uint64_t)len << 32 | lkey),
        .addr            = htobe64(addr),
    };
    rmp->head = be16toh(wqe->next.next_wqe_index);
    ++rmp->pi;
    return index;
}

/** The WQE of a receive CQE can be posted again, whatever became of those that
 *  were posted before it. */
static inline void hx_rmp_free(struct hx_rmp *rmp, uint16_t index)
{
    struct hx_wqe_recv *tail = (struct hx_wqe_recv *)rmp->ring + rmp->tail;

    tail->next.next_wqe_index = htobe16(index);
    rmp->tail                 = index;
}

/** Hands what was posted to the device: record only, an RMP has no register */
static inline void hx_rmp_ring(struct hx_rmp *rmp)
{
    hx_dma_wmb();
    *rmp->dbrec = htobe32(rmp->pi);

    if (rmp->ring_soft != NULL) {
        rmp->ring_soft(HX_RING_SOFT_RMP, rmp->rmpn);
    }
}

#endif
