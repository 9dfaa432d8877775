/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion queues: writing CQEs, from any process, and saying so. */

#include <endian.h>

#include "nic.h"

#define CQ_LOG_MAX 22

/* Words of the doorbell record */
#define CQ_SET_CI  0
#define CQ_ARM     4

/* Commands of the arm word */
#define CQ_ARM_SOLICITED 0x01000000u

/* Vendor syndromes as ConnectX reports them beside the syndrome */
static uint8_t vendor_syndrome(uint8_t syndrome)
{
    switch (syndrome) {
    case CQE_SYND_LOCAL_PROT:
        return 0x51;
    case CQE_SYND_FLUSHED:
        return 0xf9;
    case CQE_SYND_REMOTE_INVAL_REQ:
        return 0x8a;
    case CQE_SYND_REMOTE_ACCESS:
        return 0x88;
    case CQE_SYND_REMOTE_OP:
        return 0x89;
    case CQE_SYND_RETRY_EXCEEDED:
        return 0x81;
    case CQE_SYND_RNR_RETRY_EXCEEDED:
        return 0x87;
    default:
        return 0;
    }
}

static uint32_t cq_word(const struct nic_cq *cq, uint64_t off)
{
    const _Atomic uint32_t *word = nic_mem_at(&cq->db, off);

    return be32toh(atomic_load(word));
}

static struct cqe64 *cq_slot(const struct nic_cq *cq, uint32_t pi)
{
    uint64_t off = (uint64_t)(pi & ((1u << cq->log_size) - 1)) * cq->cqe_size;

    return nic_mem_at(&cq->ring, off + cq->cqe_size - sizeof(struct cqe64));
}

static uint8_t cq_owner_bit(const struct nic_cq *cq, uint32_t pi)
{
    return (pi >> cq->log_size) & 1;
}

bool vhca_cq_create(const struct vhca_cq_attr *attr, uint32_t *cqn_p,
                    struct vhca_fw *fw)
{
    struct nic_mem ring, db;
    struct nic_cq *cq;
    uint32_t i;

    if (NIC_FAB == NULL) {
        return nic_fail(fw, VHCA_FW_BAD_SYS_STATE, 0);
    }
    if (!nic_obj_mine(nic_obj_find(NIC_OWNER, attr->owner), 0)) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }
    if ((attr->log_size > CQ_LOG_MAX) ||
        ((attr->cqe_size != 64) && (attr->cqe_size != 128)) ||
        ((uintptr_t)attr->ring % attr->cqe_size != 0) ||
        ((uintptr_t)attr->dbrec % 8 != 0)) {
        return nic_fail(fw, VHCA_FW_BAD_PARAM, 0);
    }
    /* a command of the user's was asked about when it came */
    if (attr->verbs && vhca_fault_cmd(0x400 /* CREATE_CQ */, fw)) {
        return false;
    }

    nic_life_renew();
    cq = (struct nic_cq*)(void*)nic_obj_alloc(NIC_CQ, attr->owner);
    if (cq == NULL) {
        return nic_fail(fw, VHCA_FW_NO_RESOURCES, 0);
    }

    if (!nic_mem_map(attr->ring, (size_t)attr->cqe_size << attr->log_size,
                     &ring)) {
        goto err_free;
    }
    if (!nic_mem_map(attr->dbrec, 8, &db)) {
        goto err_ring;
    }

    memset((char*)cq + sizeof(cq->obj), 0, sizeof(*cq) - sizeof(cq->obj));
    cq->log_size = attr->log_size;
    cq->cqe_size = attr->cqe_size;
    cq->oi       = attr->oi;
    cq->verbs    = attr->verbs;
    cq->ring     = ring;
    cq->db       = db;
    /* The first arm word software writes may equal what is there: the CQ
     * counts as armed from the start. */
    atomic_store(&cq->armed, 1);
    for (i = 0; i < 1u << cq->log_size; ++i) {
        cq_slot(cq, i)->op_own = CQE_INVALID << 4 | 1;
    }

    *cqn_p = nic_obj_publish(NIC_CQ, &cq->obj);
    nic_gauge_add(NIC_GAUGE_CQ, 1);
    return true;

err_ring:
    nic_mem_unmap(&ring);
err_free:
    nic_obj_free(NIC_CQ, &cq->obj);
    return nic_fail(fw, VHCA_FW_NO_RESOURCES, 0);
}

/* A CQ that no QP uses: nobody but a straggler in the lock is near it. */
void nic_cq_release(struct nic_cq *cq)
{
    nic_watch_forget(NIC_CQ, &cq->obj);
    nic_obj_hide(&cq->obj);
    nic_gauge_add(NIC_GAUGE_CQ, -1);
    if (nic_lock_take(&cq->lock) == NIC_LOCK_TIMEOUT) {
        return; /* a stopped process may write yet: the pages stay */
    }

    atomic_store(&cq->error, 1);
    nic_lock_drop(&cq->lock);
    nic_mem_unmap(&cq->ring);
    nic_mem_unmap(&cq->db);
    nic_obj_free(NIC_CQ, &cq->obj);
}

bool vhca_cq_destroy(uint32_t owner, uint32_t cqn, struct vhca_fw *fw)
{
    struct nic_cq *cq = (NIC_FAB == NULL) ? NULL :
                        NIC_FIND(NIC_CQ, nic_cq, cqn);

    if ((cq == NULL) || !nic_obj_mine(&cq->obj, owner)) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }
    if (atomic_load(&cq->users) != 0) {
        return nic_fail(fw, VHCA_FW_BAD_RES_STATE, 0);
    }

    nic_cq_release(cq);
    return true;
}

/* Under the lock. The previous holder died: its CQE counts if its op_own is
 * there, and is as if never begun otherwise. */
static void cq_repair(struct nic_cq *cq)
{
    uint32_t pi    = atomic_load(&cq->pi);
    uint8_t op_own = cq_slot(cq, pi)->op_own;

    if ((op_own >> 4 != CQE_INVALID) &&
        ((op_own & 1) == cq_owner_bit(cq, pi))) {
        atomic_store(&cq->pi, pi + 1);
    }
}

/* Data in the CQE: over its first half, or in the 64 bytes before it. */
static uint8_t cq_fill_inline(const struct nic_cq *cq, struct cqe64 *slot,
                              const struct nic_cqe *cqe)
{
    if (cqe->ninline == 0) {
        return 0;
    }
    if ((cqe->inline_room == 64) && (cq->cqe_size == 128)) {
        memcpy((char*)slot - 64, cqe->inline_data, cqe->ninline);
        return CQE_INLINE_64;
    }

    memcpy(slot, cqe->inline_data, cqe->ninline);
    return CQE_INLINE_32;
}

static void cq_fill(struct cqe64 *slot, const struct nic_cqe *cqe)
{
    struct cqe64_err *err = (struct cqe64_err*)(void*)slot;

    /* all but op_own: until that is right, the entry is not valid */
    memset(slot, 0, offsetof(struct cqe64, op_own));
    slot->srqn_uidx    = htobe32(cqe->uidx);
    slot->wqe_counter  = htobe16(cqe->counter);
    slot->sop_drop_qpn = htobe32((uint32_t)cqe->wqe_opcode << 24 | cqe->qpn);
    if (cqe->syndrome != 0) {
        err->syndrome              = cqe->syndrome;
        err->vendor_error_syndrome = vendor_syndrome(cqe->syndrome);
        return;
    }

    slot->slid           = htobe16(cqe->slid);
    slot->flags_rqpn     = htobe32(cqe->rqpn);
    slot->imm_inval_pkey = cqe->imm;
    slot->byte_cnt       = htobe32(cqe->byte_cnt);
    slot->timestamp      = htobe64(nic_now());
}

/*
 * Moves the CQ to another ring (PRM, MODIFY_CQ with resize): the old one ends
 * with an entry that says so, and the next index is written to the new one.
 * Software copies what it has not read yet, one index on.
 */
bool vhca_cq_resize(uint32_t owner, uint32_t cqn, void *ring,
                    uint8_t log_size, struct vhca_fw *fw)
{
    struct nic_cq *cq = (NIC_FAB == NULL) ? NULL :
                        NIC_FIND(NIC_CQ, nic_cq, cqn);
    struct nic_mem new_ring, old_ring;
    enum nic_locked locked;
    uint32_t pi, used, i;

    if ((cq == NULL) || !nic_obj_mine(&cq->obj, owner)) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }
    if ((log_size > CQ_LOG_MAX) || ((uintptr_t)ring % cq->cqe_size != 0)) {
        return nic_fail(fw, VHCA_FW_BAD_PARAM, 0);
    }
    if (!nic_mem_map(ring, (size_t)cq->cqe_size << log_size, &new_ring)) {
        return nic_fail(fw, VHCA_FW_NO_RESOURCES, 0);
    }

    locked = nic_lock_take(&cq->lock);
    if (locked == NIC_LOCK_TIMEOUT) {
        nic_mem_unmap(&new_ring);
        return nic_fail(fw, VHCA_FW_RESOURCE_BUSY, 0);
    }
    if (locked == NIC_LOCKED_DEAD) {
        cq_repair(cq);
    }

    /* what is unread, and the mark: room for them in both */
    pi   = atomic_load(&cq->pi);
    used = (pi - cq_word(cq, CQ_SET_CI)) & 0xffffff;
    if (atomic_load(&cq->error) || (used >= 1u << cq->log_size) ||
        (used >= 1u << log_size)) {
        nic_lock_drop(&cq->lock);
        nic_mem_unmap(&new_ring);
        return nic_fail(fw, VHCA_FW_BAD_RES_STATE, 0);
    }

    cq_fill(cq_slot(cq, pi), &(struct nic_cqe) {.opcode = CQE_RESIZE});
    __atomic_store_n(&cq_slot(cq, pi)->op_own,
                     CQE_RESIZE << 4 | cq_owner_bit(cq, pi), __ATOMIC_RELEASE);
    old_ring     = cq->ring;
    cq->ring     = new_ring;
    cq->log_size = log_size;
    for (i = 0; i < 1u << log_size; ++i) {
        cq_slot(cq, i)->op_own = CQE_INVALID << 4 | 1;
    }
    atomic_store(&cq->pi, pi + 1);
    nic_lock_drop(&cq->lock);
    nic_mem_unmap(&old_ring);
    return true;
}

/* Under the lock: is an event due? The arm word says which CQEs software had
 * seen when it asked. */
static bool cq_event_due(struct nic_cq *cq)
{
    uint32_t arm = cq_word(cq, CQ_ARM), ci = arm & 0xffffff, pi;

    if (!atomic_load(&cq->armed) && (arm == cq->fired)) {
        return false;
    }

    pi = atomic_load((arm & CQ_ARM_SOLICITED) ? &cq->sol_pi : &cq->pi);
    if ((((pi - ci) & 0xffffff) == 0) || (((pi - ci) & 0xffffff) >= 0x800000)) {
        return false;
    }

    cq->fired = arm;
    atomic_store(&cq->armed, 0);
    return true;
}

static void cq_fail(struct nic_cq *cq, uint32_t cqn)
{
    if (atomic_exchange(&cq->error, 1) == 0) {
        nic_event_send(&cq->subs, EQE_CQ_ERROR, cqn);
    }
}

/* Writes a CQE. False: the CQ is in error (overrun), its QP has to be too.
 * journal: where the send queue's next holder finds which producer index the
 * CQE of WQE ci got. */
bool nic_cq_post(uint32_t cqn, const struct nic_cqe *cqe,
                 _Atomic uint64_t *journal, uint32_t ci)
{
    struct nic_cq *cq = NIC_FIND(NIC_CQ, nic_cq, cqn);
    enum nic_locked locked;
    bool event = false, overrun = false;
    struct cqe64 *slot;
    uint8_t format;
    uint32_t pi;

    if (cq == NULL) {
        return false;
    }

    locked = nic_lock_take(&cq->lock);
    if (locked == NIC_LOCK_TIMEOUT) {
        cq_fail(cq, cqn);
        return false;
    }
    if (locked == NIC_LOCKED_DEAD) {
        cq_repair(cq);
    }

    pi = atomic_load_explicit(&cq->pi, memory_order_relaxed);
    if ((atomic_load(&cq->obj.number) != cqn) || atomic_load(&cq->error)) {
        nic_lock_drop(&cq->lock);
        return false;
    }
    if (!cq->oi && (((pi - cq_word(cq, CQ_SET_CI)) & 0xffffff) >=
                    1u << cq->log_size)) {
        overrun = true;
        goto out;
    }

    if (journal != NULL) {
        atomic_store(journal, NIC_JOURNAL |
                              (uint64_t)(ci & NIC_CI_MASK) << 32 | pi);
    }
    slot = cq_slot(cq, pi);
    cq_fill(slot, cqe);
    format = cq_fill_inline(cq, slot, cqe);
    __atomic_store_n(&slot->op_own, cqe->opcode << 4 | format |
                                    (cqe->solicited ? 2 : 0) |
                                    cq_owner_bit(cq, pi), __ATOMIC_RELEASE);
    if (cqe->solicited || (cqe->syndrome != 0)) {
        atomic_store_explicit(&cq->sol_pi, pi + 1, memory_order_relaxed);
    }
    /* before the arm word is looked at: whoever arms looks the other way */
    atomic_store(&cq->pi, pi + 1);
    event = cq_event_due(cq);

out:
    nic_lock_drop(&cq->lock);
    if (overrun) {
        cq_fail(cq, cqn);
        return false;
    }

    if (event) {
        nic_event_send(&cq->subs, EQE_COMPLETION, cqn);
    }
    nic_stat_add((cqe->opcode == CQE_REQ) || (cqe->opcode == CQE_REQ_ERR) ?
                 NIC_STAT_CQE_REQ : NIC_STAT_CQE_RESP, 1);
    if (cqe->syndrome != 0) {
        nic_stat_add(NIC_STAT_CQE_ERROR, 1);
        nic_stat_add(NIC_STAT_SYNDROME + cqe->syndrome % 0x30, 1);
        if (nic_hooks & NIC_HOOK_TRACE) {
            nic_trace_cqe(cqn, cqe);
        }
    }
    return true;
}

/* The producer index, repaired if its writer died. */
uint32_t nic_cq_pi(uint32_t cqn, bool *valid_p)
{
    struct nic_cq *cq = NIC_FIND(NIC_CQ, nic_cq, cqn);
    enum nic_locked locked;
    uint32_t pi;

    *valid_p = false;
    if (cq == NULL) {
        return 0;
    }

    locked = nic_lock_take(&cq->lock);
    if (locked == NIC_LOCK_TIMEOUT) {
        return 0;
    }
    if (locked == NIC_LOCKED_DEAD) {
        cq_repair(cq);
    }
    pi       = atomic_load(&cq->pi);
    *valid_p = true;
    nic_lock_drop(&cq->lock);
    return pi;
}

/* For software that does not ring: has it written an arm word, or did it for a
 * CQE that it has not seen? Returns whether an event was due. */
bool nic_cq_look(struct nic_cq *cq, uint32_t cqn)
{
    enum nic_locked locked;
    bool event = false;
    uint32_t arm;
    unsigned i;

    /* mostly nobody listens, or nothing was armed since the last event */
    for (i = 0; i < NIC_OBJ_SUBS; ++i) {
        if (atomic_load_explicit(&cq->subs.sub[i],
                                 memory_order_relaxed) != 0) {
            break;
        }
    }
    if (i == NIC_OBJ_SUBS) {
        return false;
    }
    arm = cq_word(cq, CQ_ARM);
    if ((!atomic_load(&cq->armed) && (arm == cq->fired)) ||
        (((atomic_load(&cq->pi) - arm) & 0xffffff) == 0)) {
        return false;
    }

    locked = nic_lock_take(&cq->lock);
    if (locked == NIC_LOCK_TIMEOUT) {
        return false;
    }
    if (atomic_load(&cq->obj.number) == cqn) {
        if (locked == NIC_LOCKED_DEAD) {
            cq_repair(cq);
        }
        event = cq_event_due(cq);
    }
    nic_lock_drop(&cq->lock);
    if (event) {
        nic_event_send(&cq->subs, EQE_COMPLETION, cqn);
    }
    return event;
}

/* The arm doorbell: an unseen CQE raises the event at once. */
int nic_cq_arm(struct nic_cq *cq)
{
    uint32_t cqn = atomic_load(&cq->obj.number);
    enum nic_locked locked = nic_lock_take(&cq->lock);
    bool event;

    if (locked == NIC_LOCK_TIMEOUT) {
        return -ETIMEDOUT;
    }
    if (locked == NIC_LOCKED_DEAD) {
        cq_repair(cq);
    }

    atomic_store(&cq->armed, 1);
    event = cq_event_due(cq);
    nic_lock_drop(&cq->lock);
    if (event) {
        nic_event_send(&cq->subs, EQE_COMPLETION, cqn);
    }
    return 0;
}
