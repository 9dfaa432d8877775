/* SPDX-License-Identifier: BSD-3-Clause */

/* Receive queues: RMPs, and the own receive queue of a QP, which is the same
 * thing with one user and no number of its own to the outside. */

#include <endian.h>

#include "nic.h"

#define RMP_LOG_MAX        15
#define RMP_LOG_STRIDE_MIN 4
#define RMP_LOG_STRIDE_MAX 9    /* max_wqe_sz_rq: 512 bytes */

bool vhca_rmp_create(const struct vhca_rmp_attr *attr, uint32_t *rmpn_p,
                     struct vhca_fw *fw)
{
    size_t stride = (size_t)1 << attr->log_stride;
    struct nic_mem ring, db;
    struct nic_rmp *rmp;

    if (NIC_FAB == NULL) {
        return nic_fail(fw, VHCA_FW_BAD_SYS_STATE, 0);
    }
    if (!nic_obj_mine(nic_obj_find(NIC_PD, attr->pdn), attr->owner)) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }
    /* a list needs the segment that links it */
    if ((attr->log_size > RMP_LOG_MAX) ||
        (attr->log_stride < RMP_LOG_STRIDE_MIN) ||
        (attr->log_stride > RMP_LOG_STRIDE_MAX) ||
        (!attr->cyclic && attr->basic_cyclic_rcv_wqe) ||
        (!attr->basic_cyclic_rcv_wqe &&
         (attr->log_stride == RMP_LOG_STRIDE_MIN)) ||
        ((uintptr_t)attr->ring % stride != 0) ||
        ((uintptr_t)attr->dbrec % 4 != 0)) {
        return nic_fail(fw, VHCA_FW_BAD_PARAM, 0);
    }

    nic_life_renew();
    rmp = (struct nic_rmp*)(void*)nic_obj_alloc(NIC_RMP, attr->owner);
    if (rmp == NULL) {
        return nic_fail(fw, VHCA_FW_NO_RESOURCES, 0);
    }

    if (!nic_mem_map(attr->ring, stride << attr->log_size, &ring)) {
        goto err_free;
    }
    if (!nic_mem_map(attr->dbrec, 4, &db)) {
        goto err_ring;
    }

    memset((char*)rmp + sizeof(rmp->obj), 0, sizeof(*rmp) - sizeof(rmp->obj));
    rmp->pdn        = attr->pdn;
    rmp->log_size   = attr->log_size;
    rmp->log_stride = attr->log_stride;
    rmp->cyclic     = attr->cyclic;
    rmp->no_next    = attr->basic_cyclic_rcv_wqe;
    rmp->ring       = ring;
    rmp->db         = db;
    *rmpn_p         = nic_obj_publish(NIC_RMP, &rmp->obj);
    nic_gauge_add(NIC_GAUGE_RMP, 1);
    return true;

err_ring:
    nic_mem_unmap(&ring);
err_free:
    nic_obj_free(NIC_RMP, &rmp->obj);
    return nic_fail(fw, VHCA_FW_NO_RESOURCES, 0);
}

void nic_rmp_release(struct nic_rmp *rmp)
{
    nic_watch_forget(NIC_RMP, &rmp->obj);
    nic_obj_hide(&rmp->obj);
    if (!rmp->own_of_qp) {
        nic_gauge_add(NIC_GAUGE_RMP, -1);
    }
    if (nic_lock_take(&rmp->lock) == NIC_LOCK_TIMEOUT) {
        return; /* a stopped process may look yet: the pages stay */
    }

    nic_lock_drop(&rmp->lock);
    nic_mem_unmap(&rmp->ring);
    nic_mem_unmap(&rmp->db);
    nic_obj_free(NIC_RMP, &rmp->obj);
}

bool vhca_rmp_destroy(uint32_t owner, uint32_t rmpn, struct vhca_fw *fw)
{
    struct nic_rmp *rmp = (NIC_FAB == NULL) ? NULL :
                          NIC_FIND(NIC_RMP, nic_rmp, rmpn);

    if ((rmp == NULL) || !nic_obj_mine(&rmp->obj, owner) || rmp->own_of_qp) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }
    if (atomic_load(&rmp->users) != 0) {
        return nic_fail(fw, VHCA_FW_BAD_RES_STATE, 0);
    }

    nic_rmp_release(rmp);
    return true;
}

bool vhca_rmp_set_limit(uint32_t owner, uint32_t rmpn, uint32_t limit,
                        struct vhca_fw *fw)
{
    struct nic_rmp *rmp = (NIC_FAB == NULL) ? NULL :
                          NIC_FIND(NIC_RMP, nic_rmp, rmpn);

    if ((rmp == NULL) || !nic_obj_mine(&rmp->obj, owner)) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }
    if (limit >= 1u << rmp->log_size) {
        return nic_fail(fw, VHCA_FW_BAD_PARAM, 0);
    }

    atomic_store(&rmp->limit, limit);
    return true;
}

bool vhca_rmp_get_limit(uint32_t owner, uint32_t rmpn, uint32_t *limit_p,
                        struct vhca_fw *fw)
{
    struct nic_rmp *rmp = (NIC_FAB == NULL) ? NULL :
                          NIC_FIND(NIC_RMP, nic_rmp, rmpn);

    if ((rmp == NULL) || !nic_obj_mine(&rmp->obj, owner)) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }

    *limit_p = atomic_load(&rmp->limit);
    return true;
}

/* The queue's position is one word: head index << 16 | number taken. A holder
 * that died left it before or after a WQE, so there is nothing to repair. */
static uint16_t rmp_available(const struct nic_rmp *rmp, uint32_t pos)
{
    const _Atomic uint32_t *db = nic_mem_at(&rmp->db, 0);
    uint16_t n = be32toh(atomic_load(db)) - (pos & 0xffff);

    /* more than fit: a record that is not one */
    return (n > 1u << rmp->log_size) ? 0 : n;
}

static uint32_t rmp_next(const struct nic_rmp *rmp, uint32_t pos)
{
    uint32_t mask  = (1u << rmp->log_size) - 1;
    uint16_t taken = pos + 1;
    const struct wqe_srq_next *next;

    if (rmp->cyclic) {
        return (uint32_t)(taken & mask) << 16 | taken;
    }

    next = nic_mem_at(&rmp->ring, (uint64_t)(pos >> 16) << rmp->log_stride);
    return (uint32_t)(be16toh(next->next_wqe_index) & mask) << 16 | taken;
}

static void rmp_read(const struct nic_rmp *rmp, uint32_t pos,
                     struct nic_rwqe *rwqe)
{
    uint64_t off  = (uint64_t)(pos >> 16) << rmp->log_stride;
    unsigned segs = 1u << (rmp->log_stride - 4), i;

    if (!rmp->no_next) {
        off += sizeof(struct wqe_srq_next);
        --segs;
    }

    rwqe->n = 0;
    for (i = 0; i < segs; ++i, off += sizeof(struct wqe_data)) {
        /* segment by segment: a stride may cross a page */
        memcpy(&rwqe->seg[i], nic_mem_at(&rmp->ring, off), sizeof(struct
                                                                  wqe_data));
        if (rwqe->seg[i].lkey == htobe32(WQE_INVALID_LKEY)) {
            break;
        }
        ++rwqe->n;
    }

    /* a list says which WQE, a ring how many there have been */
    rwqe->counter = rmp->cyclic ? pos & 0xffff : pos >> 16;
}

static void rmp_note_stalled(struct nic_rmp *rmp, uint32_t qpn)
{
    uint32_t n = atomic_load(&rmp->nstalled), i;

    for (i = 0; i < n; ++i) {
        if (rmp->stalled[i] == qpn) {
            return;
        }
    }
    if (n == NIC_STALLED) {
        rmp->stalled_all = 1;
        return;
    }
    rmp->stalled[n] = qpn;
    atomic_store(&rmp->nstalled, n + 1);
}

/* Takes the next receive WQE for a message to qp. If there is none and `wait`,
 * the queue remembers whom a refill has to wake. */
enum nic_taken nic_rmp_take(uint32_t rmpn, struct nic_qp *qp, bool wait,
                            struct nic_rwqe *rwqe_p)
{
    struct nic_rmp *rmp = NIC_FIND(NIC_RMP, nic_rmp, rmpn);
    enum nic_taken res  = NIC_TAKEN_EMPTY;
    uint32_t pos, limit = 0;
    uint16_t available;

    if ((rmp == NULL) || (nic_lock_take(&rmp->lock) == NIC_LOCK_TIMEOUT)) {
        return NIC_TAKEN_GONE;
    }
    if (atomic_load(&rmp->obj.number) != rmpn) {
        nic_lock_drop(&rmp->lock);
        return NIC_TAKEN_GONE;
    }

    pos       = atomic_load(&rmp->pos);
    available = rmp_available(rmp, pos);
    if (available != 0) {
        rmp_read(rmp, pos, rwqe_p);
        /* first who has it, then that it is taken: if we die between, it is
         * in the queue still */
        atomic_store(&qp->rx_journal, 0);
        atomic_store(&qp->rx_busy, NIC_RX_BUSY | rwqe_p->counter);
        atomic_store(&rmp->pos, rmp_next(rmp, pos));
        res   = NIC_TAKEN;
        limit = atomic_load(&rmp->limit);
        if ((limit != 0) && (available - 1u < limit)) {
            atomic_store(&rmp->limit, 0);
        } else {
            limit = 0;
        }
    } else if (wait) {
        rmp_note_stalled(rmp, atomic_load(&qp->obj.number));
    }

    nic_lock_drop(&rmp->lock);
    if (limit != 0) {
        nic_event_send(&rmp->subs, EQE_SRQ_LIMIT, rmpn);
    }
    return res;
}

/* The next WQE of a QP's own queue, to be flushed. */
bool nic_rmp_take_flush(uint32_t rmpn, uint16_t *counter_p)
{
    struct nic_rmp *rmp = NIC_FIND(NIC_RMP, nic_rmp, rmpn);
    bool taken          = false;
    uint32_t pos;

    if ((rmp == NULL) || (nic_lock_take(&rmp->lock) == NIC_LOCK_TIMEOUT)) {
        return false;
    }

    pos = atomic_load(&rmp->pos);
    if ((atomic_load(&rmp->obj.number) == rmpn) &&
        (rmp_available(rmp, pos) != 0)) {
        *counter_p = pos & 0xffff;
        atomic_store(&rmp->pos, rmp_next(rmp, pos));
        taken = true;
    }
    nic_lock_drop(&rmp->lock);
    return taken;
}

static void rmp_wake(struct nic_exec *x, uint32_t qpn)
{
    struct nic_qp *qp = NIC_FIND(NIC_QP, nic_qp, qpn), *peer;

    peer = (qp == NULL) ? NULL : NIC_FIND(NIC_QP, nic_qp, qp->last.remote_qpn);
    if ((peer != NULL) && (atomic_load(&peer->stall) == NIC_STALL_RNR)) {
        nic_sq_resume(x, peer);
    }
}

/* A look without the lock: are there receives in the queue? */
bool nic_rmp_posted(const struct nic_rmp *rmp)
{
    return rmp_available(rmp, atomic_load(&rmp->pos)) != 0;
}

/* The receive doorbell: senders that found the queue empty go on, here. */
void nic_rmp_refilled(uint32_t rmpn, struct nic_exec *x)
{
    struct nic_rmp *rmp = NIC_FIND(NIC_RMP, nic_rmp, rmpn);
    uint32_t list[NIC_STALLED], n = 0, i, high;
    bool all;

    /* The record was stored before this load; whoever found the queue empty
     * looked at the record under the lock, before noting itself. */
    atomic_thread_fence(memory_order_seq_cst);
    if ((rmp == NULL) || ((atomic_load(&rmp->nstalled) == 0) &&
                          (atomic_load(&rmp->lock.word) == 0))) {
        return;
    }
    if (nic_lock_take(&rmp->lock) == NIC_LOCK_TIMEOUT) {
        return; /* the senders' own timers remain */
    }

    n = atomic_load(&rmp->nstalled);
    memcpy(list, rmp->stalled, n * sizeof(list[0]));
    all              = rmp->stalled_all;
    rmp->stalled_all = 0;
    atomic_store(&rmp->nstalled, 0);
    nic_lock_drop(&rmp->lock);

    for (i = 0; i < n; ++i) {
        rmp_wake(x, list[i]);
    }
    high = all ? atomic_load(&NIC_FAB->hdr.table[NIC_QP].high) : 0;
    for (i = 0; i < high; ++i) {
        if (NIC_FAB->qp[i].rq == rmpn) {
            rmp_wake(x, atomic_load(&NIC_FAB->qp[i].obj.number));
        }
    }
}
