/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Unreliable datagrams: a message is one packet, for whom it is says its WQE.
 * Nobody waits for anybody: without such a receiver, with another key or
 * without a receive WQE it is lost, and the sender does not know.
 */

#include <endian.h>
#include <sched.h>

#include "nic.h"

#define UD_GRH      40          /* room before the message in each receive */
#define UD_RX_LIMIT 1000000ll   /* then the packet is dropped */
#define UD_OWN_QKEY 0x80000000u /* in a WQE: the QP's own one */

/* Layout of the 40 bytes: a GRH, or an IPv4 header at the end (RoCE v2) */
#define GRH_VERSION 6u
#define GRH_IBA     0x1b
#define IP_UDP      17

/* The index of the port's GID, or -1 */
static int find_gid(const struct vhca_port_cfg *port, const uint8_t *gid,
                    uint8_t type)
{
    unsigned i;

    for (i = 0; i < port->num_gids; ++i) {
        if ((memcmp(port->gid[i], gid, 16) == 0) &&
            (port->gid_type[i] == type)) {
            return (int)i;
        }
    }

    return -1;
}

static bool av_has_grh(const struct nic_op *op)
{
    return op->qp->roce || (be32toh(op->av.grh_gid_fl) & WQE_AV_GRH);
}

static unsigned av_sgid(const struct nic_op *op)
{
    return be32toh(op->av.grh_gid_fl) >> 20 & 0xff;
}

/* Does the address lead to the destination's port? */
static bool reaches(const struct nic_op *op, const struct nic_qp *dest)
{
    const struct vhca_port_cfg *there = vhca_port_cfg(dest->dev);
    const struct vhca_port_cfg *here  = vhca_port_cfg(op->qp->dev);

    if (op->qp->roce != dest->roce) {
        return false;
    }
    if (!op->qp->roce && (be16toh(op->av.rlid) != there->lid)) {
        return false;
    }
    if (!av_has_grh(op)) {
        return true;
    }

    return (av_sgid(op) < here->num_gids) &&
           (find_gid(there, op->av.rgid, here->gid_type[av_sgid(op)]) >= 0);
}

static struct nic_qp *find_dest(struct nic_op *op)
{
    uint32_t qpn  = be32toh(op->av.dqp) & 0xffffff, state, claim;
    uint32_t qkey = be32toh(op->av.qkey);
    struct nic_qp *dest;

    nic_exec_use(op->x, qpn);
    dest = NIC_FIND(NIC_QP, nic_qp, qpn);
    if ((dest == NULL) || (dest->attr.type != VHCA_QP_UD)) {
        return NULL;
    }

    if (qkey & UD_OWN_QKEY) {
        qkey = op->qp->last.qkey;
    }
    claim = atomic_load(&dest->obj.claim);
    state = atomic_load(&dest->state);
    return (((state == VHCA_QP_RTR) || (state == VHCA_QP_RTS)) &&
            (dest->last.qkey == qkey) && reaches(op, dest) &&
            !nic_device_removed(claim) && nic_proc_alive(claim)) ? dest : NULL;
}

static bool is_ipv4(const uint8_t *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

/* What the receiver sees of the network header */
static void make_header(const struct nic_op *op, uint8_t *grh)
{
    const struct vhca_port_cfg *here = vhca_port_cfg(op->qp->dev);
    uint32_t word                    = htobe32(GRH_VERSION << 28 |
                                               op->av.tclass << 20 |
                                               (be32toh(op->av.grh_gid_fl) &
                                                0xfffff));
    uint16_t len                     = htobe16((uint16_t)op->len);
    const uint8_t *sgid;

    memset(grh, 0, UD_GRH);
    if (!av_has_grh(op)) {
        return;
    }

    sgid = here->gid[av_sgid(op)];
    if ((here->gid_type[av_sgid(op)] == 2 /* RoCE v2 */) && is_ipv4(sgid)) {
        grh[20] = 0x45;
        grh[21] = op->av.tclass;
        memcpy(grh + 22, &len, sizeof(len));
        grh[28] = op->av.hop_limit;
        grh[29] = IP_UDP;
        memcpy(grh + 32, sgid + 12, 4);
        memcpy(grh + 36, op->av.rgid + 12, 4);
        return;
    }

    memcpy(grh, &word, sizeof(word));
    memcpy(grh + 4, &len, sizeof(len));
    grh[6] = (here->gid_type[av_sgid(op)] == 2) ? IP_UDP : GRH_IBA;
    grh[7] = op->av.hop_limit;
    memcpy(grh + 8, sgid, 16);
    memcpy(grh + 24, op->av.rgid, 16);
}

/* One sender at a time from taking a receive WQE to its CQE, since software
 * counts CQEs to know which WQE it was. Not a lock of the fabric: whoever does
 * not get it in time drops its packet. */
static bool rx_enter(struct nic_qp *dest)
{
    int64_t deadline = nic_now() + UD_RX_LIMIT;
    uint32_t holder  = 0;
    int turn         = 0;

    while (!atomic_compare_exchange_strong(&dest->ud_rx, &holder,
                                           nic_self.id)) {
        if ((holder != nic_self.id) && !nic_proc_alive(holder) &&
            atomic_compare_exchange_strong(&dest->ud_rx, &holder,
                                           nic_self.id)) {
            return true;
        }
        if (nic_now() > deadline) {
            return false;
        }
        if (++turn % 16 == 0) {
            sched_yield();
        }
        holder = 0;
    }

    return true;
}

static void complete(struct nic_op *op, struct nic_qp *dest,
                     const struct nic_rwqe *rwqe, uint8_t syndrome)
{
    struct nic_cqe cqe = {
        .opcode    = syndrome ? CQE_RESP_ERR :
                     (op->opcode == WQE_OP_SEND_IMM) ? CQE_RESP_SEND_IMM :
                                                       CQE_RESP_SEND,
        .syndrome  = syndrome,
        .solicited = op->solicited,
        .counter   = rwqe->counter,
        .qpn       = atomic_load(&dest->obj.number),
        .uidx      = dest->attr.user_index,
        .rqpn      = atomic_load(&op->qp->obj.number) |
                     (av_has_grh(op) ? CQE_L3_IN_DATA : 0) |
                     (uint32_t)(op->av.stat_rate_sl & 0xf) << 24,
        .byte_cnt  = op->len + UD_GRH,
        .slid      = op->qp->roce ? 0 : vhca_port_cfg(op->qp->dev)->lid,
        .imm       = (op->opcode == WQE_OP_SEND_IMM) ? op->imm : 0
    };

    if (!nic_cq_post(dest->attr.cqn_rcv, &cqe, NULL, 0) || (syndrome != 0)) {
        nic_qp_fail(dest, 0);
    }
}

/* The header and the message into the receive WQE */
static uint8_t deliver(struct nic_op *op, struct nic_qp *dest,
                       const struct nic_rwqe *rwqe, uint8_t *grh)
{
    struct nic_side from = {.proc = nic_self.id}, to;
    uint64_t payload     = op->len;
    unsigned i;
    uint8_t syndrome;

    if (op->local.n == WQE_MAX_SGE) {
        return CQE_SYND_LOCAL_LENGTH;
    }
    nic_side_add(&from, grh, UD_GRH, grh);
    for (i = 0; i < op->local.n; ++i) {
        nic_side_add(&from, op->local.iov[i].iov_base,
                     op->local.iov[i].iov_len, op->local.here[i]);
    }

    op->peer = dest;
    op->len  = payload + UD_GRH;
    syndrome = nic_resp_scatter(op, rwqe, &to);
    if ((syndrome == 0) &&
        (nic_move(&to, &from, op->len, op->keys, op->nkeys) != NIC_MOVED)) {
        syndrome = CQE_SYND_LOCAL_PROT;
    }
    op->len = payload;
    return syndrome;
}

enum nic_verdict nic_ud_execute(struct nic_op *op)
{
    uint8_t grh[UD_GRH];
    struct nic_rwqe rwqe;
    struct nic_qp *dest;

    /* its memory is read from here */
    if (atomic_load(&op->qp->obj.claim) != nic_self.id) {
        return NIC_DONE;
    }

    dest = find_dest(op);
    if ((dest == NULL) || !rx_enter(dest)) {
        return NIC_DONE;
    }

    if (nic_rmp_take(dest->rq, dest, false, &rwqe) == NIC_TAKEN) {
        /* nobody else's WQE is to be taken for this one when somebody dies */
        atomic_store(&dest->rx_busy, 0);
        make_header(op, grh);
        complete(op, dest, &rwqe, deliver(op, dest, &rwqe, grh));
    }
    atomic_store(&dest->ud_rx, 0);
    return NIC_DONE;
}
