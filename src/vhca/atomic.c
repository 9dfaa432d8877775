/* SPDX-License-Identifier: BSD-3-Clause */

/* Atomics: atomic among the requests of the fabric (IBV_ATOMIC_HCA), not with
 * what the CPU does to the same bytes. */

#include <endian.h>

#include "nic.h"

#define ATOMIC_EXT 0x08 /* opmod of masked ones: 8 | log2(size) - 2 */

/* Operands of any size and opcode, in host order */
struct atomic_args {
    unsigned size;
    bool     swap;
    uint64_t value, compare, value_mask, compare_mask;
};

static uint64_t arg64(const struct nic_op *op, unsigned i)
{
    return be64toh(op->atomic[i]);
}

static uint64_t arg32(const struct nic_op *op, unsigned i)
{
    return be32toh(((const uint32_t*)(const void*)op->atomic)[i]);
}

static bool atomic_decode(const struct nic_op *op, struct atomic_args *args)
{
    args->size         = 8;
    args->swap         = op->opcode == WQE_OP_ATOMIC_CS;
    args->value        = arg64(op, 0);
    args->compare      = arg64(op, 1);
    args->value_mask   = ~0ull;
    args->compare_mask = ~0ull;
    switch (op->opcode) {
    case WQE_OP_ATOMIC_CS:
        return true;
    case WQE_OP_ATOMIC_FA:
        args->compare = 0; /* no boundaries */
        return true;
    default:
        break;
    }

    args->swap = op->opcode == WQE_OP_MASKED_CS;
    if (op->opmod == ATOMIC_EXT) {
        args->size         = 4;
        args->value        = arg32(op, 0);
        args->compare      = arg32(op, 1);
        args->value_mask   = arg32(op, 2);
        args->compare_mask = arg32(op, 3);
        return true;
    }
    if (op->opmod != (ATOMIC_EXT | 1)) {
        return false;
    }
    if (args->swap) {
        args->value_mask   = arg64(op, 2);
        args->compare_mask = arg64(op, 3);
    }
    return true;
}

/* Each bit of `edges` is the last of a field: no carry leaves it. */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t edges)
{
    uint64_t sum = 0, carry = 0, bit;

    if (edges == 0) {
        return a + b;
    }
    for (bit = 1; bit != 0; bit <<= 1) {
        unsigned n = !!(a & bit) + !!(b & bit) + !!carry;

        sum  |= (n & 1) ? bit : 0;
        carry = (n > 1) && !(edges & bit);
    }
    return sum;
}

static uint64_t atomic_apply(const struct atomic_args *args, uint64_t old)
{
    if (!args->swap) {
        return add_fields(old, args->value, args->compare);
    }
    if (((old ^ args->compare) & args->compare_mask) != 0) {
        return old;
    }
    return (old & ~args->value_mask) | (args->value & args->value_mask);
}

static enum nic_moved atomic_run(struct nic_op *op, struct nic_side *remote,
                                 const struct atomic_args *args,
                                 uint64_t *old_p)
{
    uint64_t hash         = (uint64_t)remote->iov[0].iov_base ^ remote->proc;
    struct nic_lock *lock = &NIC_FAB->hdr.atomic_lock
                                    [hash * 0x9e3779b97f4a7c15ull >> 58];
    uint64_t old          = 0, new;
    struct nic_side mine  = {
        .proc = nic_self.id, .n = 1, .iov[0] = { &old, args->size },
        .here[0] = &old
    };
    enum nic_moved moved;

    if (nic_lock_take(lock) == NIC_LOCK_TIMEOUT) {
        return NIC_MOVED_PEER_GONE;
    }

    moved = nic_move(&mine, remote, args->size, op->keys, op->nkeys);
    if (moved == NIC_MOVED) {
        new                  = atomic_apply(args, old);
        mine.iov[0].iov_base = mine.here[0] = &new;
        *old_p               = old;
        moved = nic_move(remote, &mine, args->size, op->keys, op->nkeys);
    } else if (moved == NIC_MOVED_SRC_FAULT) {
        moved = NIC_MOVED_DST_FAULT;
    }
    nic_lock_drop(lock);
    return moved;
}

enum nic_verdict nic_atomic(struct nic_op *op)
{
    struct nic_qp *peer = op->peer;
    struct nic_side remote, mine;
    struct atomic_args args;
    uint64_t old = 0;

    if (!atomic_decode(op, &args) || (op->len != args.size)) {
        op->syndrome = CQE_SYND_LOCAL_QP_OP;
        return NIC_FAILED;
    }

    remote.n       = 0;
    remote.proc    = atomic_load(&peer->obj.claim);
    op->flush_peer = atomic_load(&peer->obj.number);
    op->syndrome   = CQE_SYND_REMOTE_INVAL_REQ;
    if (!peer->last.rae || (op->raddr % args.size != 0)) {
        nic_qp_fail(peer, EQE_WQ_INVAL_REQ);
        return NIC_FAILED;
    }

    op->syndrome = CQE_SYND_REMOTE_ACCESS;
    if (!nic_op_use_key(op, &remote, op->rkey, peer->attr.pdn, op->flush_peer,
                        op->raddr, args.size, NIC_RA)) {
        nic_qp_fail(peer, EQE_WQ_ACCESS);
        return NIC_FAILED;
    }

    switch (atomic_run(op, &remote, &args, &old)) {
    case NIC_MOVED:
        break;
    case NIC_MOVED_PEER_GONE:
        op->flush_peer = 0;
        return NIC_WAIT_RETRY;
    default:
        nic_qp_fail(peer, EQE_WQ_ACCESS);
        return NIC_FAILED;
    }

    /* 4-byte results are big endian, 8-byte ones in host order */
    op->flush_peer = 0;
    op->syndrome   = 0;
    if (args.size == 4) {
        old = htobe32(old);
    }
    mine.proc   = nic_self.id;
    mine.n      = 0;
    nic_side_add(&mine, &old, args.size, &old);
    if (nic_move(&op->local, &mine, args.size, op->keys, op->nkeys) !=
        NIC_MOVED) {
        op->syndrome = CQE_SYND_LOCAL_PROT;
        return NIC_FAILED;
    }
    return NIC_DONE;
}
