/* SPDX-License-Identifier: BSD-3-Clause */

/* A send WQE: taken from its ring, and what it asks for. What is wrong with it
 * by itself, whoever the responder is, is found here. */

#include <endian.h>

#include "decode.h"

static const void *ring_block(const struct nic_qp *qp, uint32_t index)
{
    uint32_t mask = (1u << qp->attr.log_sq_size) - 1;

    return nic_mem_at(&qp->sq, (uint64_t)(index & mask) * WQE_BB);
}

bool nic_wqe_fetch(const struct nic_qp *qp, uint32_t ci, uint16_t avail,
                   struct nic_wqe *wqe)
{
    uint32_t word;
    unsigned i;

    memcpy(wqe->raw, ring_block(qp, ci), WQE_BB);
    word        = be32toh(wqe->ctrl.qpn_ds);
    wqe->opcode = be32toh(wqe->ctrl.opmod_idx_opcode) & 0xff;
    wqe->ds     = word & 0xff;
    wqe->blocks = (wqe->ds + 3) / 4;
    wqe->index  = ci;
    if ((wqe->ds == 0) || (wqe->ds > WQE_MAX_DS) || (wqe->blocks > avail)) {
        wqe->blocks = 1;
        return false;
    }

    for (i = 1; i < wqe->blocks; ++i) {
        memcpy(wqe->raw + i * WQE_BB, ring_block(qp, ci + i), WQE_BB);
    }

    return (word >> 8 == atomic_load(&qp->obj.number)) &&
           (((be32toh(wqe->ctrl.opmod_idx_opcode) >> 8) & 0xffff) ==
            (ci & 0xffff)) &&
           ((wqe->ctrl.fm_ce_se & WQE_CTRL_RSVD) == 0) &&
           (((wqe->ctrl.fm_ce_se & WQE_CTRL_CE_MASK) == WQE_CTRL_CE_ERROR) ||
            ((wqe->ctrl.fm_ce_se & WQE_CTRL_CE_MASK) == WQE_CTRL_CE_ALL)) &&
           (wqe->ctrl.fm_ce_se >> WQE_CTRL_FM_SHIFT <= WQE_CTRL_FM_MAX);
}

static bool op_fail(struct nic_op *op, uint8_t syndrome)
{
    op->syndrome = syndrome;
    return false;
}

/* A WQE of inline data alone: it is gathered in the op, since whoever executes
 * the queue for somebody else has it at hand there */
static bool op_add_inline(struct nic_op *op, const uint8_t *at, uint32_t len)
{
    uint8_t *to = (uint8_t*)op->inline_data + op->len;

    memcpy(to, at, len);
    op->inl             = true;
    op->local.proc      = nic_self.id;
    op->local.n         = 0;
    op->len            += len;
    nic_side_add(&op->local, op->inline_data, op->len, op->inline_data);
    return true;
}

/* Inline data beside pointers: a piece of the requester's memory like those,
 * namely of its ring, where it may wrap */
static bool op_add_ring(struct nic_op *op, const struct nic_wqe *wqe, size_t at,
                        uint32_t len)
{
    const struct nic_qp *qp = op->qp;
    uint64_t size           = (uint64_t)WQE_BB << qp->attr.log_sq_size;
    uint64_t pos            = ((uint64_t)wqe->index * WQE_BB + at) % size;
    uint32_t part;

    for (; len > 0; len -= part, pos = 0) {
        part = (len < size - pos) ? len : size - pos;
        if (op->local.n == WQE_MAX_SGE) {
            return op_fail(op, CQE_SYND_LOCAL_QP_OP);
        }
        /* its pages may be apart in the fabric, so there is no one place */
        nic_side_add(&op->local, (char*)qp->attr.sq + pos, part, NULL);
        op->len += part;
    }

    return true;
}

/* Whether data segments of a WQE are of both kinds */
static bool wqe_is_mixed(const struct nic_wqe *wqe, size_t at)
{
    size_t end = wqe->ds * WQE_SEG;
    bool inl = false, pointers = false;

    while (at < end) {
        const struct wqe_data *seg = (const void*)(wqe->raw + at);
        uint32_t count             = be32toh(seg->byte_count);

        if (count & WQE_INLINE) {
            inl  = true;
            at  += (4 + (uint64_t)(count & ~WQE_INLINE) + WQE_SEG - 1) /
                   WQE_SEG * WQE_SEG;
        } else {
            pointers = true;
            at      += sizeof(*seg);
        }
    }

    return inl && pointers;
}

/* Data segments from `at` to the end of the WQE. A pointer's key is checked
 * here: that is local protection, whatever the responder says. */
static bool op_parse_data(struct nic_op *op, const struct nic_wqe *wqe,
                          size_t at, uint8_t rights)
{
    size_t end = wqe->ds * WQE_SEG;
    bool mixed = wqe_is_mixed(wqe, at);

    while (at < end) {
        const struct wqe_data *seg = (const void*)(wqe->raw + at);
        uint32_t count             = be32toh(seg->byte_count);
        uint64_t len;

        if (count & WQE_INLINE) {
            count &= ~WQE_INLINE;
            /* only data that leaves can be inline */
            if (!(rights & NIC_LR) || (count > end - at - 4)) {
                return op_fail(op, CQE_SYND_LOCAL_QP_OP);
            }
            if (!(mixed ? op_add_ring(op, wqe, at + 4, count) :
                          op_add_inline(op, wqe->raw + at + 4, count))) {
                return false;
            }
            at += (4 + count + WQE_SEG - 1) / WQE_SEG * WQE_SEG;
            continue;
        }

        len      = (count == 0) ? 1ull << 31 : count;
        op->len += len;
        if (op->len > 1ull << op->qp->last.log_msg_max) {
            return op_fail(op, CQE_SYND_LOCAL_LENGTH);
        }
        if (!nic_op_use_key(op, &op->local, be32toh(seg->lkey),
                            op->qp->attr.pdn, atomic_load(&op->qp->obj.number),
                            be64toh(seg->addr), len, rights)) {
            return op_fail(op, CQE_SYND_LOCAL_PROT);
        }
        at += sizeof(*seg);
    }

    return true;
}

static bool op_parse_raddr(struct nic_op *op, const struct nic_wqe *wqe)
{
    const struct wqe_raddr *seg = (const void*)(wqe->raw + WQE_SEG);

    if (wqe->ds < 2) {
        return op_fail(op, CQE_SYND_LOCAL_QP_OP);
    }

    op->raddr = be64toh(seg->raddr);
    op->rkey  = be32toh(seg->rkey);
    return true;
}

static bool op_parse_atomic(struct nic_op *op, const struct nic_wqe *wqe)
{
    size_t len = ((wqe->opcode == WQE_OP_MASKED_CS) &&
                  ((op->opmod & 3) != 0)) ? 32 : 16;

    if (!op_parse_raddr(op, wqe) || (wqe->ds * WQE_SEG < 32 + len + 16)) {
        return op_fail(op, CQE_SYND_LOCAL_QP_OP);
    }

    memcpy(op->atomic, wqe->raw + 32, len);
    op->atomic_len = len;
    return op_parse_data(op, wqe, 32 + len, NIC_LW);
}

/* A message of a UD QP: the datagram segment, in its long or short form */
static bool op_parse_ud(struct nic_op *op, const struct nic_wqe *wqe)
{
    size_t len = sizeof(op->av);

    memset(&op->av, 0, sizeof(op->av));
    memcpy(&op->av, wqe->raw + WQE_SEG, WQE_AV_BASE);
    if (!(be32toh(op->av.dqp) & WQE_AV_EXTENDED)) {
        len = WQE_AV_BASE;
    }
    if (wqe->ds * WQE_SEG < WQE_SEG + len) {
        return op_fail(op, CQE_SYND_LOCAL_QP_OP);
    }

    memcpy(&op->av, wqe->raw + WQE_SEG, len);
    return op_parse_data(op, wqe, WQE_SEG + len, NIC_LR);
}

bool nic_op_decode(struct nic_op *op, const struct nic_wqe *wqe)
{
    bool ok;

    op->opcode     = wqe->opcode;
    op->opmod      = be32toh(wqe->ctrl.opmod_idx_opcode) >> 24;
    op->solicited  = wqe->ctrl.fm_ce_se & WQE_CTRL_SE;
    op->signalled  = (wqe->ctrl.fm_ce_se & WQE_CTRL_CE_MASK) ==
                     WQE_CTRL_CE_ALL;
    op->imm        = wqe->ctrl.imm;
    op->peer       = NULL;
    op->inl        = false;
    op->len        = 0;
    op->syndrome   = 0;
    op->flush_peer = 0;
    op->key_mask   = 0;
    op->nkeys      = 0;
    op->local.n    = 0;
    op->local.proc = atomic_load(&op->qp->obj.claim);

    if ((op->opmod != 0) && (op->opcode != WQE_OP_MASKED_CS) &&
        (op->opcode != WQE_OP_MASKED_FA)) {
        return op_fail(op, CQE_SYND_LOCAL_QP_OP);
    }

    if ((op->qp->attr.type == VHCA_QP_UD) && (op->opcode != WQE_OP_NOP)) {
        return ((op->opcode == WQE_OP_SEND) ||
                (op->opcode == WQE_OP_SEND_IMM)) ?
               op_parse_ud(op, wqe) : op_fail(op, CQE_SYND_LOCAL_QP_OP);
    }

    switch (op->opcode) {
    case WQE_OP_NOP:
        return true;
    case WQE_OP_SEND:
    case WQE_OP_SEND_IMM:
        ok = op_parse_data(op, wqe, WQE_SEG, NIC_LR);
        break;
    case WQE_OP_RDMA_WRITE:
    case WQE_OP_RDMA_WRITE_IMM:
        ok = op_parse_raddr(op, wqe) &&
             op_parse_data(op, wqe, 2 * WQE_SEG, NIC_LR);
        break;
    case WQE_OP_RDMA_READ:
        ok = op_parse_raddr(op, wqe) &&
             op_parse_data(op, wqe, 2 * WQE_SEG, NIC_LW);
        break;
    case WQE_OP_ATOMIC_CS:
    case WQE_OP_ATOMIC_FA:
    case WQE_OP_MASKED_CS:
    case WQE_OP_MASKED_FA:
        ok = op_parse_atomic(op, wqe);
        break;
    default:
        return op_fail(op, CQE_SYND_LOCAL_QP_OP);
    }

    return ok;
}
