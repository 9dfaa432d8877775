/* SPDX-License-Identifier: BSD-3-Clause */

/* The responder's half of a request: is the QP there, is the request for it,
 * may it do this, and what both sides get to see. */

#include <endian.h>
#include <sys/syscall.h>

#include "nic.h"

/* Adds [addr, addr + len) under the key to a side, if the key allows it. */
bool nic_op_use_key(struct nic_op *op, struct nic_side *side, uint32_t key32,
                    uint32_t pdn, uint32_t qpn, uint64_t addr, uint64_t len,
                    uint8_t rights)
{
    uint64_t bit = 1ull << (key32 >> 8) % 64;
    struct nic_mkey *key;

    if (!(op->key_mask & bit)) {
        op->key_mask |= bit;
        nic_exec_use_keys(op->x, op->key_mask);
    }

    key = nic_mkey_check(key32, pdn, qpn, addr, len, rights);
    if ((key == NULL) || (side->n == WQE_MAX_SGE) ||
        (atomic_load(&key->obj.claim) != side->proc)) {
        return false;
    }

    op->keys[op->nkeys++]  = (struct nic_key_use) { key, key32 >> 8 };
    nic_side_add(side, (void*)(addr + key->va_delta), len,
                 nic_share_here(key, addr, op->key_mask));
    return true;
}

/* The responder as packets would find it, announced in x. NULL: what is sent
 * gets no answer. */
static struct nic_qp *resp_find(struct nic_exec *x, struct nic_qp *qp)
{
    uint32_t qpn = qp->last.remote_qpn, state, claim;
    struct nic_qp *peer;

    nic_exec_use(x, qpn);
    peer = NIC_FIND(NIC_QP, nic_qp, qpn);
    if (peer == NULL) {
        return NULL;
    }

    claim = atomic_load(&peer->obj.claim);
    state = atomic_load(&peer->state);
    if (((state != VHCA_QP_RTR) && (state != VHCA_QP_RTS) &&
         (state != VHCA_QP_SQD) && (state != VHCA_QP_SQE)) ||
        (peer->last.remote_qpn != atomic_load(&qp->obj.number)) ||
        (atomic_load(&peer->rcv_psn) != qp->send_psn) ||
        nic_device_removed(claim) || !nic_qp_path_ok(qp, peer)) {
        return NULL;
    }
    if (!nic_proc_alive(claim)) {
        nic_exec_let_go(x);
        nic_proc_sweep(claim);
        return NULL;
    }
    /* its memory and the requester's: one of them has to be ours */
    if ((claim != nic_self.id) &&
        (atomic_load(&qp->obj.claim) != nic_self.id)) {
        return NULL;
    }

    return peer;
}

bool nic_resp_reachable(struct nic_exec *x, struct nic_qp *qp)
{
    bool there = resp_find(x, qp) != NULL;

    nic_exec_let_go(x);
    return there;
}

/* A NAK: the request fails with the syndrome, the responder goes into error,
 * with the event its own software gets. */
static enum nic_verdict resp_nak(struct nic_op *op, uint8_t syndrome,
                                 uint16_t event)
{
    op->syndrome   = syndrome;
    op->flush_peer = atomic_load(&op->peer->obj.number);
    nic_qp_fail(op->peer, event);
    return NIC_FAILED;
}

/* The receive WQE, or its CQE, is what is wrong: the responder completes it
 * with its own error. */
static enum nic_verdict resp_receive_error(struct nic_op *op,
                                           const struct nic_rwqe *rwqe,
                                           uint8_t own, uint8_t syndrome)
{
    struct nic_cqe cqe = {
        .opcode   = CQE_RESP_ERR,
        .syndrome = own,
        .counter  = rwqe->counter,
        .qpn      = atomic_load(&op->peer->obj.number),
        .uidx     = op->peer->attr.user_index
    };

    nic_cq_post(op->peer->attr.cqn_rcv, &cqe, &op->peer->rx_journal, 0);
    atomic_store(&op->peer->rx_busy, 0);
    return resp_nak(op, syndrome, 0);
}

static enum nic_verdict resp_moved(struct nic_op *op, enum nic_moved moved,
                                   bool local_is_src)
{
    bool local;

    switch (moved) {
    case NIC_MOVED:
        return NIC_DONE;
    case NIC_MOVED_SRC_FAULT:
    case NIC_MOVED_DST_FAULT:
        local = (moved == NIC_MOVED_SRC_FAULT) == local_is_src;
        if (!local) {
            return resp_nak(op, CQE_SYND_REMOTE_ACCESS, EQE_WQ_ACCESS);
        }
        op->syndrome = CQE_SYND_LOCAL_PROT;
        return NIC_FAILED;
    case NIC_MOVED_REVOKED:
        return resp_nak(op, CQE_SYND_REMOTE_ACCESS, EQE_WQ_ACCESS);
    default:
        return NIC_WAIT_RETRY;
    }
}

/* Both sides count packets: a message is at least one. */
static void resp_advance_psn(struct nic_op *op)
{
    uint32_t mtu     = op->qp->mtu_bytes;
    uint32_t packets = (op->len <= mtu) ? 1 : (op->len + mtu - 1) / mtu;
    uint32_t psn     = (op->qp->send_psn + packets) & 0xffffff;

    atomic_store(&op->peer->rcv_psn, psn);
    op->qp->send_psn = psn;
}

/* RDMA write and read, the data */
static enum nic_verdict resp_rdma(struct nic_op *op, bool write)
{
    const struct vhca_qp_modify *last = &op->peer->last;
    struct nic_side remote;
    enum nic_moved moved;

    /* a request the responder is not set up for is invalid (IBTA), whatever
     * the key would say */
    if (write ? !last->rwe : !last->rre) {
        return resp_nak(op, CQE_SYND_REMOTE_INVAL_REQ, EQE_WQ_INVAL_REQ);
    }
    if (op->len == 0) {
        return NIC_DONE; /* no byte, no key to check */
    }

    remote.n    = 0;
    remote.proc = atomic_load(&op->peer->obj.claim);
    if (!nic_op_use_key(op, &remote, op->rkey, op->peer->attr.pdn,
                        atomic_load(&op->peer->obj.number), op->raddr,
                        op->len, write ? NIC_RW : NIC_RR)) {
        return resp_nak(op, CQE_SYND_REMOTE_ACCESS, EQE_WQ_ACCESS);
    }

    moved = write ?
            nic_move(&remote, &op->local, op->len, op->keys, op->nkeys) :
            nic_move(&op->local, &remote, op->len, op->keys, op->nkeys);
    return resp_moved(op, moved, write);
}

/* The receive WQE's list, as far as the message reaches */
uint8_t nic_resp_scatter(struct nic_op *op, const struct nic_rwqe *rwqe,
                         struct nic_side *side)
{
    struct nic_rmp *rmp = NIC_FIND(NIC_RMP, nic_rmp, op->peer->rq);
    uint64_t left       = op->len, len;
    unsigned i;

    side->n    = 0;
    side->proc = atomic_load(&op->peer->obj.claim);
    for (i = 0; (i < rwqe->n) && (left > 0); ++i) {
        len = be32toh(rwqe->seg[i].byte_count) & ~WQE_INLINE;
        if (len == 0) {
            len = 1ull << 31;
        }
        if (len > left) {
            /* the whole segment is checked, as much as is needed is used */
            if ((rmp != NULL) &&
                !nic_op_use_key(op, side, be32toh(rwqe->seg[i].lkey), rmp->pdn,
                                atomic_load(&op->peer->obj.number),
                                be64toh(rwqe->seg[i].addr), len, NIC_LW)) {
                return CQE_SYND_LOCAL_PROT;
            }
            if (side->n > 0) {
                side->iov[side->n - 1].iov_len = left;
            }
            return 0;
        }
        if ((rmp == NULL) ||
            !nic_op_use_key(op, side, be32toh(rwqe->seg[i].lkey), rmp->pdn,
                            atomic_load(&op->peer->obj.number),
                            be64toh(rwqe->seg[i].addr), len, NIC_LW)) {
            return CQE_SYND_LOCAL_PROT;
        }
        left -= len;
    }

    return (left > 0) ? CQE_SYND_LOCAL_LENGTH : 0;
}

static enum nic_verdict resp_send_data(struct nic_op *op,
                                       const struct nic_rwqe *rwqe)
{
    struct nic_side scatter;
    enum nic_moved moved;
    uint8_t syndrome = nic_resp_scatter(op, rwqe, &scatter);

    if (syndrome == CQE_SYND_LOCAL_LENGTH) {
        return resp_receive_error(op, rwqe, syndrome,
                                  CQE_SYND_REMOTE_INVAL_REQ);
    }
    if (syndrome != 0) {
        return resp_receive_error(op, rwqe, syndrome, CQE_SYND_REMOTE_OP);
    }

    if ((op->len != 0) && (op->len <= op->peer->attr.cs_res)) {
        /* checked like any, but its software finds it in the CQE */
        scatter.n    = 0;
        scatter.proc = nic_self.id;
        nic_side_add(&scatter, op->cqe_data, op->len, op->cqe_data);
    }
    moved = nic_move(&scatter, &op->local, op->len, op->keys, op->nkeys);
    switch (moved) {
    case NIC_MOVED:
        return NIC_DONE;
    case NIC_MOVED_DST_FAULT:
    case NIC_MOVED_REVOKED:
        return resp_receive_error(op, rwqe, CQE_SYND_LOCAL_PROT,
                                  CQE_SYND_REMOTE_OP);
    case NIC_MOVED_SRC_FAULT:
        /* half a message: the responder keeps the WQE until it is flushed */
        op->syndrome = CQE_SYND_LOCAL_PROT;
        return NIC_FAILED;
    default:
        return NIC_WAIT_RETRY;
    }
}

/* SEND, and RDMA write with immediate, which takes a receive WQE too */
static enum nic_verdict resp_message(struct nic_op *op)
{
    bool write         = op->opcode == WQE_OP_RDMA_WRITE_IMM;
    struct nic_qp *qp  = op->peer;
    struct nic_cqe cqe = {
        .opcode    = write ? CQE_RESP_WR_IMM :
                     (op->opcode == WQE_OP_SEND) ? CQE_RESP_SEND :
                                                   CQE_RESP_SEND_IMM,
        .solicited = op->solicited,
        .qpn       = atomic_load(&qp->obj.number),
        .uidx      = qp->attr.user_index,
        .rqpn      = atomic_load(&op->qp->obj.number),
        .byte_cnt  = op->len,
        .imm       = (op->opcode == WQE_OP_SEND) ? 0 : op->imm
    };
    enum nic_verdict verdict;
    struct nic_rwqe rwqe;

    switch (nic_rmp_take(qp->rq, qp, true, &rwqe)) {
    case NIC_TAKEN:
        break;
    case NIC_TAKEN_EMPTY:
        return NIC_WAIT_RNR;
    default:
        return (qp->rq == 0) ?
               resp_nak(op, CQE_SYND_REMOTE_INVAL_REQ, EQE_WQ_INVAL_REQ) :
               NIC_WAIT_RETRY;
    }

    verdict = write ? resp_rdma(op, true) : resp_send_data(op, &rwqe);
    if (verdict != NIC_DONE) {
        return verdict;
    }

    if (!write && (op->len <= qp->attr.cs_res)) {
        cqe.ninline     = op->len;
        cqe.inline_room = qp->attr.cs_res;
        cqe.inline_data = op->cqe_data;
    }
    cqe.counter = rwqe.counter;
    resp_advance_psn(op);
    if (!nic_cq_post(qp->attr.cqn_rcv, &cqe, &qp->rx_journal, 0)) {
        return resp_nak(op, CQE_SYND_REMOTE_OP, 0);
    }
    atomic_store(&qp->rx_busy, 0);
    return NIC_DONE;
}

/* What comes back may go into the requester's CQE, if there is to be one. */
static void resp_into_cqe(struct nic_op *op)
{
    if (!op->signalled || (op->len == 0) ||
        (op->len > op->qp->attr.cs_req)) {
        return;
    }

    switch (op->opcode) {
    case WQE_OP_RDMA_READ:
    case WQE_OP_ATOMIC_CS:
    case WQE_OP_ATOMIC_FA:
    case WQE_OP_MASKED_CS:
    case WQE_OP_MASKED_FA:
        op->cqe_len    = op->len;
        op->local.n    = 0;
        op->local.proc = nic_self.id;
        nic_side_add(&op->local, op->cqe_data, op->len, op->cqe_data);
        break;
    default:
        break;
    }
}

/* Executes a parsed request. x announces what is used until the caller lets
 * go of it. */
enum nic_verdict nic_resp_execute(struct nic_op *op)
{
    enum nic_verdict verdict;
    uint32_t peer_mtu;

    if (op->len > 1ull << op->qp->last.log_msg_max) {
        op->syndrome = CQE_SYND_LOCAL_LENGTH;
        return NIC_FAILED;
    }
    if (op->qp->attr.type == VHCA_QP_UD) {
        return nic_ud_execute(op);
    }

    op->peer = resp_find(op->x, op->qp);
    if (op->peer == NULL) {
        return NIC_WAIT_RETRY;
    }

    /* packets larger than its path MTU, or a message beyond its limit */
    peer_mtu = op->peer->mtu_bytes;
    if (((op->qp->mtu_bytes > peer_mtu) && (op->len > peer_mtu)) ||
        (op->len > 1ull << op->peer->last.log_msg_max)) {
        return resp_nak(op, CQE_SYND_REMOTE_INVAL_REQ, EQE_WQ_INVAL_REQ);
    }

    resp_into_cqe(op);
    switch (op->opcode) {
    case WQE_OP_RDMA_WRITE:
    case WQE_OP_RDMA_READ:
        verdict = resp_rdma(op, op->opcode == WQE_OP_RDMA_WRITE);
        break;
    case WQE_OP_SEND:
    case WQE_OP_SEND_IMM:
    case WQE_OP_RDMA_WRITE_IMM:
        return resp_message(op);
    default:
        verdict = nic_atomic(op);
        break;
    }

    if (verdict == NIC_DONE) {
        resp_advance_psn(op);
    }
    return verdict;
}
