/* SPDX-License-Identifier: BSD-3-Clause */

/* The doorbell, as a call: software that knows it rings here after it wrote the
 * doorbell record, and the work is done in its own thread. */

#include "doorbell.h"
#include "nic.h"

#define EXPORT __attribute__((visibility("default")))

static bool mine(const struct nic_obj *obj)
{
    return (obj != NULL) && (atomic_load(&obj->claim) == nic_self.id);
}

/* From the first call on nobody watches the queue's doorbell record. */
static void called(enum nic_kind kind, struct nic_obj *obj,
                   _Atomic uint32_t *by_call)
{
    if (__builtin_expect(atomic_load_explicit(by_call, memory_order_relaxed) ==
                         0, 0)) {
        nic_watch_called(kind, obj, by_call);
    }
}

static int ring_sq(uint32_t qpn)
{
    struct nic_qp *qp = NIC_FIND(NIC_QP, nic_qp, qpn);
    struct nic_exec *x;

    if ((qp == NULL) || !mine(&qp->obj)) {
        return -ENOENT;
    }

    called(NIC_QP, &qp->obj, &qp->by_call);
    nic_stat_add(NIC_STAT_DOORBELL_SQ, 1);
    x = nic_exec_enter();
    nic_sq_run(x, qp);
    nic_exec_leave(x);
    return 0;
}

static int ring_rq(uint32_t rmpn)
{
    struct nic_rmp *rmp = NIC_FIND(NIC_RMP, nic_rmp, rmpn);
    struct nic_exec *x;

    if ((rmp == NULL) || !mine(&rmp->obj)) {
        return -ENOENT;
    }

    called(NIC_RMP, &rmp->obj, &rmp->by_call);
    nic_stat_add(NIC_STAT_DOORBELL_RQ, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if ((atomic_load(&rmp->nstalled) != 0) ||
        (atomic_load(&rmp->lock.word) != 0)) {
        x = nic_exec_enter();
        nic_rmp_refilled(rmpn, x);
        nic_exec_leave(x);
    }
    return 0;
}

static int ring_qp_rq(uint32_t qpn)
{
    struct nic_qp *qp = NIC_FIND(NIC_QP, nic_qp, qpn);
    int ret;

    if ((qp == NULL) || !mine(&qp->obj) || (qp->attr.rq == NULL)) {
        return -ENOENT;
    }

    ret = ring_rq(qp->rq);
    if (atomic_load(&qp->state) == VHCA_QP_ERR) {
        nic_qp_flush_rq(qp);
    }
    return ret;
}

static int ring_arm(uint32_t cqn)
{
    struct nic_cq *cq = NIC_FIND(NIC_CQ, nic_cq, cqn);

    if ((cq == NULL) || !mine(&cq->obj)) {
        return -ENOENT;
    }

    called(NIC_CQ, &cq->obj, &cq->by_call);
    nic_stat_add(NIC_STAT_DOORBELL_ARM, 1);
    return nic_cq_arm(cq);
}

EXPORT int vhca_doorbell(unsigned type, uint32_t number)
{
    if (NIC_FAB == NULL) {
        return -ENODEV; /* never attached, or a fork child */
    }

    nic_life_renew();
    nic_share_trim();
    switch (type) {
    case VHCA_DOORBELL_SQ:
        return ring_sq(number);
    case VHCA_DOORBELL_RQ:
        return ring_rq(number);
    case VHCA_DOORBELL_CQ_ARM:
        return ring_arm(number);
    case VHCA_DOORBELL_QP_RQ:
        return ring_qp_rq(number);
    default:
        return -EINVAL;
    }
}
