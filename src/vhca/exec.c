/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Send queues: who may execute one, and in which order its WQEs are executed
 * and completed.
 *
 * One thread at a time executes a queue, in the order of its WQEs. The right is
 * a word that is tried, never waited for: whoever finds it taken leaves a flag,
 * and the holder looks again before it lets go. Mostly the holder is the
 * queue's own process; a receiver that refills its queue, or becomes ready,
 * executes what its peers left waiting for that.
 */

#include <endian.h>
#include <sched.h>

#include "decode.h"

#define FOREIGN_BUDGET 256           /* WQEs executed for somebody else */
#define SEIZE_LIMIT    3000000000ll
#define RNR_FLOOR      1000000ll     /* retried by a timer no more often */

static bool sq_take(struct nic_qp *qp, bool *inherited_p)
{
    uint32_t seen = 0, holder;

    *inherited_p = false;
    while (!atomic_compare_exchange_weak(&qp->run, &seen, nic_self.id)) {
        holder = seen & ~NIC_RUN_KICK;
        if (holder == 0) {
            seen = 0;
            continue;
        }
        if ((holder != nic_self.id) && !nic_proc_alive(holder)) {
            if (atomic_compare_exchange_strong(&qp->run, &seen, nic_self.id)) {
                *inherited_p = true;
                return true;
            }
            continue;
        }
        if (atomic_compare_exchange_strong(&qp->run, &seen,
                                           holder | NIC_RUN_KICK)) {
            if ((holder != nic_self.id) &&
                (atomic_load(&qp->obj.claim) == nic_self.id)) {
                nic_timer_stall(qp); /* the holder may die before it looks */
            }
            return false;
        }
        seen = 0;
    }

    return true;
}

/* False: somebody rang meanwhile, the right is still ours. */
static bool sq_give(struct nic_qp *qp)
{
    uint32_t mine = nic_self.id;

    if (atomic_compare_exchange_strong(&qp->run, &mine, 0)) {
        return true;
    }

    atomic_fetch_and(&qp->run, ~NIC_RUN_KICK);
    return false;
}

static uint16_t sq_pi(const struct nic_qp *qp)
{
    const _Atomic uint32_t *db = nic_mem_at(&qp->db, 4);

    return be32toh(atomic_load(db));
}

static void sq_count(const struct nic_op *op)
{
    static const uint8_t by_opcode[0x16] = {
        [WQE_OP_NOP]            = NIC_STAT_WQE_NOP,
        [WQE_OP_RDMA_WRITE]     = NIC_STAT_WQE_RDMA_WRITE,
        [WQE_OP_RDMA_WRITE_IMM] = NIC_STAT_WQE_RDMA_WRITE_IMM,
        [WQE_OP_RDMA_READ]      = NIC_STAT_WQE_RDMA_READ,
        [WQE_OP_SEND]           = NIC_STAT_WQE_SEND,
        [WQE_OP_SEND_IMM]       = NIC_STAT_WQE_SEND_IMM,
        [WQE_OP_ATOMIC_CS]      = NIC_STAT_WQE_ATOMIC,
        [WQE_OP_ATOMIC_FA]      = NIC_STAT_WQE_ATOMIC,
        [WQE_OP_MASKED_CS]      = NIC_STAT_WQE_ATOMIC,
        [WQE_OP_MASKED_FA]      = NIC_STAT_WQE_ATOMIC
    };

    nic_stat_add(((op->opcode < sizeof(by_opcode)) &&
                  ((by_opcode[op->opcode] != 0) || (op->opcode == 0))) ?
                 by_opcode[op->opcode] : NIC_STAT_WQE_OTHER, 1);
    switch (op->opcode) {
    case WQE_OP_RDMA_WRITE:
    case WQE_OP_RDMA_WRITE_IMM:
        nic_stat_add(NIC_STAT_BYTES_RDMA_WRITE, op->len);
        nic_stat_add(NIC_STAT_INLINE_RDMA_WRITE, op->inl);
        break;
    case WQE_OP_RDMA_READ:
        nic_stat_add(NIC_STAT_BYTES_RDMA_READ, op->len);
        break;
    case WQE_OP_SEND:
    case WQE_OP_SEND_IMM:
        nic_stat_add(NIC_STAT_BYTES_SEND, op->len);
        nic_stat_add(NIC_STAT_INLINE_SEND, op->inl);
        break;
    default:
        break;
    }
}

/* Ends the WQE at ci: its CQE if there is to be one, then the queue goes on */
static void sq_complete(struct nic_qp *qp, uint32_t ci,
                        const struct nic_wqe *wqe, uint8_t syndrome,
                        const struct nic_op *op)
{
    struct nic_cqe cqe = {
        .opcode     = syndrome ? CQE_REQ_ERR : CQE_REQ,
        .wqe_opcode = wqe->opcode,
        .syndrome   = syndrome,
        .counter    = ci,
        .qpn        = atomic_load(&qp->obj.number),
        .uidx       = qp->attr.user_index,
        .byte_cnt   = (op != NULL) ? op->len : 0
    };
    bool ok = true;

    if ((syndrome == 0) && (op->cqe_len != 0)) {
        cqe.ninline     = op->cqe_len;
        cqe.inline_room = qp->attr.cs_req;
        cqe.inline_data = op->cqe_data;
    }
    if (syndrome || ((wqe->ctrl.fm_ce_se & WQE_CTRL_CE_MASK) ==
                     WQE_CTRL_CE_ALL)) {
        ok = nic_cq_post(qp->attr.cqn_snd, &cqe, &qp->journal, ci);
    }
    atomic_store(&qp->ci, ci + wqe->blocks);
    if (syndrome || !ok) {
        nic_qp_fail(qp, 0);
    }
}

static int64_t rnr_period(uint8_t min_rnr_nak)
{
    static const uint32_t tens_of_us[32] = {
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
        384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
        24576, 32768, 49152
    };
    int64_t ns = tens_of_us[min_rnr_nak & 31] * 10000ll;

    return (ns < RNR_FLOOR) ? RNR_FLOOR : ns;
}

/* The WQE at ci cannot go on now. Returns 0, or the syndrome when it has
 * waited long enough. */
static uint8_t sq_wait(struct nic_qp *qp, enum nic_verdict verdict,
                       const struct nic_op *op)
{
    bool rnr       = verdict == NIC_WAIT_RNR;
    uint32_t kind  = rnr ? NIC_STALL_RNR : NIC_STALL_RETRY;
    uint8_t expired = rnr ? CQE_SYND_RNR_RETRY_EXCEEDED :
                            CQE_SYND_RETRY_EXCEEDED;
    int64_t now    = nic_now(), until = NIC_NEVER, period;

    if (rnr) {
        period = rnr_period(op->peer->last.min_rnr_nak);
        if (qp->last.rnr_retry != 7) {
            until = now + period * qp->last.rnr_retry;
        }
    } else {
        period = (qp->last.ack_timeout == 0) ? 50000000ll :
                 4096ll << qp->last.ack_timeout;
        if (qp->last.ack_timeout != 0) {
            until = now + period * (qp->last.retry_count + 1);
        }
        if (period > 50000000ll) {
            period = 50000000ll; /* retried a little more often: cheap */
        } else if (period < RNR_FLOOR) {
            period = RNR_FLOOR;
        }
    }

    if (atomic_load(&qp->stall) != kind) {
        if (until == now) {
            return expired;
        }
        atomic_store(&qp->stall_until, until);
        nic_stat_add(rnr ? NIC_STAT_RNR_STALLS : NIC_STAT_RETRY_STALLS, 1);
    } else if (now >= atomic_load(&qp->stall_until)) {
        return expired;
    }

    until = atomic_load(&qp->stall_until);
    atomic_store(&qp->stall_next, (until - now < period) ? until :
                                                           now + period);
    atomic_store(&qp->stall, kind);
    nic_timer_stall(qp);
    return 0;
}

/* What was switched on for the WQE at ci: 0, the syndrome that a fault fails it
 * with, that its packets are lost, or that the device is gone. Traced and
 * counted once, however often it is tried. */
#define SQ_LOST    (-1)
#define SQ_REMOVED (-2)

static int sq_hook(const struct nic_qp *qp, const struct nic_wqe *wqe)
{
    uint32_t stall = atomic_load(&qp->stall);
    uint8_t syndrome;

    if ((stall != NIC_STALL_RNR) && (stall != NIC_STALL_RETRY)) {
        if (nic_hooks & NIC_HOOK_TRACE) {
            nic_trace_wqe(qp, wqe->raw, wqe->blocks * WQE_BB, wqe->index);
        }
        nic_fault_device(qp);
        if (nic_device_removed(atomic_load(&qp->obj.claim))) {
            return SQ_REMOVED;
        }
        syndrome = nic_fault_wqe(qp, wqe->opcode);
        if (syndrome != 0) {
            return syndrome;
        }
    }

    return ((wqe->opcode != WQE_OP_NOP) && nic_fault_link(qp)) ? SQ_LOST : 0;
}

/* Executes the WQE at ci. False: the queue waits. */
static bool sq_step(struct nic_exec *x, struct nic_qp *qp, uint32_t ci,
                    uint16_t avail, uint32_t *flush_peer_p)
{
    enum nic_verdict verdict = NIC_FAILED;
    uint8_t syndrome;
    struct nic_wqe wqe;
    struct nic_op op;
    bool good;
    int hook;

    op.x   = x;
    op.qp  = qp;
    op.len = 0;
    op.cqe_len = 0;
    good = nic_wqe_fetch(qp, ci, avail, &wqe);
    hook = nic_hooked() ? sq_hook(qp, &wqe) : 0;
    if (hook == SQ_REMOVED) {
        return false;
    }
    if (!good || (hook > 0)) {
        op.syndrome = good ? hook : CQE_SYND_LOCAL_QP_OP;
        op.flush_peer = 0;
    } else if (nic_op_decode(&op, &wqe)) {
        verdict = (wqe.opcode == WQE_OP_NOP) ? NIC_DONE :
                  (hook == SQ_LOST) ? NIC_WAIT_RETRY : nic_resp_execute(&op);
    }

    syndrome = (verdict == NIC_FAILED) ? op.syndrome : 0;
    if ((verdict == NIC_WAIT_RNR) || (verdict == NIC_WAIT_RETRY)) {
        syndrome = sq_wait(qp, verdict, &op);
        if (syndrome == 0) {
            nic_exec_let_go(x);
            /* It may have become ready after we looked, and before it could
             * see that we wait */
            if ((verdict == NIC_WAIT_RETRY) && (hook != SQ_LOST) &&
                nic_resp_reachable(x, qp)) {
                atomic_store(&qp->resume, 1);
            }
            return false;
        }
    }
    nic_exec_let_go(x);

    *flush_peer_p = op.flush_peer;
    atomic_store(&qp->stall, NIC_STALL_NONE);
    if (syndrome == 0) {
        sq_count(&op);
    }
    sq_complete(qp, ci, &wqe, syndrome, &op);
    return true;
}

static void sq_flush(struct nic_qp *qp, uint32_t ci, uint16_t avail)
{
    struct nic_wqe wqe;

    (void)nic_wqe_fetch(qp, ci, avail, &wqe);
    sq_complete(qp, ci, &wqe, CQE_SYND_FLUSHED, NULL);
}

/* Somebody else's queue: after this much its own process goes on. */
static bool sq_hand_over(struct nic_qp *qp)
{
    if ((atomic_load(&qp->obj.claim) == nic_self.id) ||
        !nic_timer_serves(qp)) {
        return false;
    }

    atomic_store(&qp->stall_until, NIC_NEVER);
    atomic_store(&qp->stall_next, 0);
    atomic_store(&qp->stall, NIC_STALL_HANDOVER);
    nic_timer_stall(qp);
    return true;
}

static void sq_drain(struct nic_exec *x, struct nic_qp *qp)
{
    uint32_t size = 1u << qp->attr.log_sq_size, ci, state, peer = 0;
    int budget    = FOREIGN_BUDGET;
    struct nic_qp *flush;
    uint16_t avail;

    while ((atomic_load(&qp->obj.number) != 0) && (peer == 0)) {
        state = atomic_load(&qp->state);
        ci    = atomic_load(&qp->ci);
        avail = sq_pi(qp) - ci;
        if ((avail == 0) || ((state != VHCA_QP_RTS) &&
                             (state != VHCA_QP_ERR))) {
            break;
        }
        if (avail > size) {
            /* more than the queue holds: nothing in it can be trusted */
            nic_qp_fail(qp, EQE_WQ_CATAS);
            break;
        }
        if (nic_device_removed(atomic_load(&qp->obj.claim))) {
            atomic_store(&qp->stall, NIC_STALL_NONE);
            break;
        }
        if (state == VHCA_QP_ERR) {
            atomic_store(&qp->stall, NIC_STALL_NONE);
            sq_flush(qp, ci, avail);
            continue;
        }
        if ((atomic_load(&qp->stall) != NIC_STALL_NONE) &&
            !atomic_exchange(&qp->resume, 0)) {
            break;
        }
        if (--budget == 0) {
            if (sq_hand_over(qp)) {
                break;
            }
            budget = FOREIGN_BUDGET;
        }
        if (!sq_step(x, qp, ci, avail, &peer) &&
            !atomic_load(&qp->resume)) {
            break;
        }
    }

    /* The responder went into error with us: its own sends are flushed, if
     * nobody does already. One right inside another, but neither is waited
     * for. */
    flush = (peer == 0) ? NULL : NIC_FIND(NIC_QP, nic_qp, peer);
    if (flush != NULL) {
        nic_sq_run(x, flush);
        sq_drain(x, qp);
    }
}

/* The last executor died at ci: if that WQE's CQE is in the CQ, it is done,
 * else it is done again. */
static void sq_repair(struct nic_qp *qp)
{
    uint64_t journal = atomic_load(&qp->journal);
    uint32_t ci      = atomic_load(&qp->ci), pi;
    struct nic_wqe wqe;
    bool valid;

    nic_stat_add(NIC_STAT_RECOVERED, 1);
    if (!(journal & NIC_JOURNAL) ||
        ((journal >> 32 & NIC_CI_MASK) != (ci & NIC_CI_MASK))) {
        return;
    }

    pi = nic_cq_pi(qp->attr.cqn_snd, &valid);
    if (valid && ((int32_t)(pi - (uint32_t)journal) > 0)) {
        (void)nic_wqe_fetch(qp, ci, sq_pi(qp) - ci, &wqe);
        atomic_store(&qp->ci, ci + wqe.blocks);
        atomic_store(&qp->stall, NIC_STALL_NONE);
    }
}

void nic_sq_run(struct nic_exec *x, struct nic_qp *qp)
{
    bool inherited;

    if (!qp->has_sq || !sq_take(qp, &inherited)) {
        return;
    }
    if (inherited) {
        sq_repair(qp);
        atomic_store(&qp->resume, 1);
    }

    do {
        sq_drain(x, qp);
    } while (!sq_give(qp));
}

void nic_sq_resume(struct nic_exec *x, struct nic_qp *qp)
{
    atomic_store(&qp->resume, 1);
    nic_sq_run(x, qp);
}

/* Takes the right and keeps it: for whoever takes the queue away. */
bool nic_sq_seize(struct nic_qp *qp)
{
    int64_t deadline = nic_now() + SEIZE_LIMIT;
    bool inherited;
    uint32_t seen;

    do {
        seen = 0;
        if (atomic_compare_exchange_strong(&qp->run, &seen, nic_self.id)) {
            return true;
        }
        seen &= ~NIC_RUN_KICK;
        if ((seen != nic_self.id) && !nic_proc_alive(seen) &&
            sq_take(qp, &inherited)) {
            return true;
        }
        sched_yield();
    } while (nic_now() < deadline);

    return false;
}

void nic_sq_reset(struct nic_exec *x, struct nic_qp *qp)
{
    if (!nic_sq_seize(qp)) {
        return;
    }

    atomic_store(&qp->ci, 0);
    atomic_store(&qp->journal, 0);
    atomic_store(&qp->stall, NIC_STALL_NONE);
    atomic_store(&qp->resume, 0);
    if (!sq_give(qp)) {
        atomic_store(&qp->run, 0);
    }
    (void)x;
}
