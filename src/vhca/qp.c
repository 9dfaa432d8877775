/* SPDX-License-Identifier: BSD-3-Clause */

/* Queue pairs: creation, the state machine, and what an error does to one. */

#include <endian.h>

#include "nic.h"

#define QP_LOG_SQ_MAX 15

/* QP commands (PRM) */
enum {
    OP_RST2INIT  = 0x502,
    OP_INIT2RTR  = 0x503,
    OP_RTR2RTS   = 0x504,
    OP_RTS2RTS   = 0x505,
    OP_SQERR2RTS = 0x506,
    OP_2ERR      = 0x507,
    OP_2RST      = 0x50a,
    OP_SQD2RTS   = 0x50c,
    OP_INIT2INIT = 0x50e
};

/* opt_param_mask */
enum {
    OPT_RRE         = 1 << 1,
    OPT_RAE         = 1 << 2,
    OPT_RWE         = 1 << 3,
    OPT_PKEY        = 1 << 4,
    OPT_QKEY        = 1 << 5,
    OPT_RNR_TIMEOUT = 1 << 6,
    OPT_SRA_MAX     = 1 << 8,
    OPT_RRA_MAX     = 1 << 9,
    OPT_RETRY       = 1 << 12,
    OPT_RNR_RETRY   = 1 << 13,
    OPT_ACK_TIMEOUT = 1 << 14,
    OPT_PRI_PORT    = 1 << 16
};

static struct nic_qp *qp_mine(uint32_t owner, uint32_t qpn)
{
    struct nic_qp *qp = (NIC_FAB == NULL) ? NULL :
                        NIC_FIND(NIC_QP, nic_qp, qpn);

    return ((qp != NULL) && nic_obj_mine(&qp->obj, owner)) ? qp : NULL;
}

static struct nic_cq *qp_cq(const struct vhca_qp_attr *attr, uint32_t cqn)
{
    struct nic_cq *cq = NIC_FIND(NIC_CQ, nic_cq, cqn);

    return ((cq != NULL) && nic_obj_mine(&cq->obj, attr->owner)) ? cq : NULL;
}

static uint8_t qp_check(const struct vhca_qp_attr *attr)
{
    struct nic_rmp *rmp;

    if (!nic_obj_mine(nic_obj_find(NIC_OWNER, attr->owner), 0) ||
        !nic_obj_mine(nic_obj_find(NIC_PD, attr->pdn), attr->owner) ||
        (qp_cq(attr, attr->cqn_snd) == NULL) ||
        (qp_cq(attr, attr->cqn_rcv) == NULL)) {
        return VHCA_FW_BAD_RESOURCE;
    }
    if (attr->rmpn != 0) {
        rmp = NIC_FIND(NIC_RMP, nic_rmp, attr->rmpn);
        if ((rmp == NULL) || !nic_obj_mine(&rmp->obj, attr->owner) ||
            rmp->own_of_qp) {
            return VHCA_FW_BAD_RESOURCE;
        }
    }

    /* what does not fit beside the CQE's own fields needs a large one */
    if (((attr->cs_req > 32) && (qp_cq(attr, attr->cqn_snd)->cqe_size < 128)) ||
        ((attr->cs_res > 32) && (qp_cq(attr, attr->cqn_rcv)->cqe_size < 128))) {
        return VHCA_FW_BAD_PARAM;
    }
    if ((attr->user_index > 0xffffff) ||
        ((uintptr_t)attr->dbrec % 8 != 0) ||
        ((attr->rmpn != 0) && (attr->rq != NULL)) ||
        ((attr->sq != NULL) && ((attr->log_sq_size > QP_LOG_SQ_MAX) ||
                                ((uintptr_t)attr->sq % WQE_BB != 0)))) {
        return VHCA_FW_BAD_PARAM;
    }

    return VHCA_FW_OK;
}

static void qp_users(const struct vhca_qp_attr *attr, int delta)
{
    struct nic_cq *snd  = NIC_FIND(NIC_CQ, nic_cq, attr->cqn_snd);
    struct nic_cq *rcv  = NIC_FIND(NIC_CQ, nic_cq, attr->cqn_rcv);
    struct nic_rmp *rmp = NIC_FIND(NIC_RMP, nic_rmp, attr->rmpn);

    if (snd != NULL) {
        atomic_fetch_add(&snd->users, delta);
    }
    if (rcv != NULL) {
        atomic_fetch_add(&rcv->users, delta);
    }
    if (rmp != NULL) {
        atomic_fetch_add(&rmp->users, delta);
    }
}

/* The own receive queue: a ring of data segments without a next segment */
static bool qp_make_rq(const struct vhca_qp_attr *attr, uint32_t *rmpn_p,
                       struct vhca_fw *fw)
{
    struct vhca_rmp_attr rmp_attr = {
        .owner                = attr->owner,
        .pdn                  = attr->pdn,
        .ring                 = attr->rq,
        .log_size             = attr->log_rq_size,
        .log_stride           = attr->log_rq_stride,
        .cyclic               = true,
        .basic_cyclic_rcv_wqe = true,
        .dbrec                = attr->dbrec
    };

    if (!vhca_rmp_create(&rmp_attr, rmpn_p, fw)) {
        return false;
    }

    NIC_FIND(NIC_RMP, nic_rmp, *rmpn_p)->own_of_qp = 1;
    nic_gauge_add(NIC_GAUGE_RMP, -1);
    return true;
}

bool vhca_qp_create(const struct vhca_qp_attr *attr, uint32_t *qpn_p,
                    struct vhca_fw *fw)
{
    struct nic_mem sq   = { .len = 0 }, db;
    uint32_t rq         = attr->rmpn;
    struct nic_owner *owner;
    struct nic_qp *qp;
    uint8_t status;

    if (NIC_FAB == NULL) {
        return nic_fail(fw, VHCA_FW_BAD_SYS_STATE, 0);
    }
    status = qp_check(attr);
    if (status != VHCA_FW_OK) {
        return nic_fail(fw, status, 0);
    }
    /* a command of the user's was asked about when it came */
    if (attr->verbs && vhca_fault_cmd(0x500 /* CREATE_QP */, fw)) {
        return false;
    }

    nic_life_renew();
    qp = (struct nic_qp*)(void*)nic_obj_alloc(NIC_QP, attr->owner);
    if (qp == NULL) {
        return nic_fail(fw, VHCA_FW_NO_RESOURCES, 0);
    }

    fw->status   = VHCA_FW_NO_RESOURCES;
    fw->syndrome = 0;
    if ((attr->sq != NULL) &&
        !nic_mem_map(attr->sq, (size_t)WQE_BB << attr->log_sq_size, &sq)) {
        goto err_free;
    }
    if (!nic_mem_map(attr->dbrec, 8, &db)) {
        goto err_sq;
    }
    if ((attr->rq != NULL) && !qp_make_rq(attr, &rq, fw)) {
        goto err_db;
    }

    owner = NIC_FIND(NIC_OWNER, nic_owner, attr->owner);
    memset((char*)qp + sizeof(qp->obj), 0, sizeof(*qp) - sizeof(qp->obj));
    qp->attr   = *attr;
    qp->rq     = rq;
    qp->dev    = owner->dev;
    qp->roce   = owner->roce;
    qp->has_sq = attr->sq != NULL;
    qp->sq     = sq;
    qp->db     = db;
    qp_users(attr, 1);
    *qpn_p = nic_obj_publish(NIC_QP, &qp->obj);
    nic_gauge_add(NIC_GAUGE_QP, 1);
    return true;

err_db:
    nic_mem_unmap(&db);
err_sq:
    nic_mem_unmap(&sq);
err_free:
    nic_obj_free(NIC_QP, &qp->obj);
    return false;
}

void nic_qp_release(struct nic_qp *qp)
{
    uint32_t qpn = atomic_load(&qp->obj.number);
    struct nic_rmp *rq;
    bool stuck;

    nic_watch_forget(NIC_QP, &qp->obj);
    nic_obj_hide(&qp->obj);
    nic_gauge_add(NIC_GAUGE_QP, -1);
    stuck = !nic_sq_seize(qp) | !nic_quiesce_qp(qpn);
    qp_users(&qp->attr, -1);
    if (stuck) {
        return; /* a stopped process may be inside: its pages stay */
    }

    if (qp->attr.rq != NULL) {
        rq = NIC_FIND(NIC_RMP, nic_rmp, qp->rq);
        if (rq != NULL) {
            nic_rmp_release(rq);
        }
    }
    nic_mem_unmap(&qp->sq);
    nic_mem_unmap(&qp->db);
    nic_obj_free(NIC_QP, &qp->obj);
    nic_share_trim();
}

bool vhca_qp_destroy(uint32_t owner, uint32_t qpn, struct vhca_fw *fw)
{
    struct nic_qp *qp = qp_mine(owner, qpn);

    if (qp == NULL) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }

    nic_qp_release(qp);
    return true;
}

bool vhca_qp_query(uint32_t owner, uint32_t qpn, struct vhca_qp_info *info_p,
                   struct vhca_fw *fw)
{
    struct nic_qp *qp = qp_mine(owner, qpn);

    if (qp == NULL) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }

    info_p->attr               = qp->attr;
    info_p->last               = qp->last;
    info_p->last.next_rcv_psn  = atomic_load(&qp->rcv_psn);
    info_p->last.next_send_psn = qp->send_psn;
    info_p->state              = atomic_load(&qp->state);
    return true;
}

static void qp_merge_access(struct nic_qp *qp, const struct vhca_qp_modify *mod,
                            uint32_t mask)
{
    qp->last.rre = (mask & OPT_RRE) ? mod->rre : qp->last.rre;
    qp->last.rwe = (mask & OPT_RWE) ? mod->rwe : qp->last.rwe;
    if (mask & OPT_RAE) {
        qp->last.rae         = mod->rae;
        qp->last.atomic_mode = mod->atomic_mode;
    }
    if (mask & OPT_PKEY) {
        qp->last.pkey_index = mod->pkey_index;
    }
    if (mask & OPT_QKEY) {
        qp->last.qkey = mod->qkey;
    }
    if (mask & OPT_RNR_TIMEOUT) {
        qp->last.min_rnr_nak = mod->min_rnr_nak;
    }
    if (mask & OPT_RRA_MAX) {
        qp->last.log_rra_max = mod->log_rra_max;
    }
}

static bool gid_is_zero(const uint8_t *gid)
{
    static const uint8_t zero[16];

    return memcmp(gid, zero, sizeof(zero)) == 0;
}

/* INIT2RTR: the primary address path and what the responder needs */
static uint8_t qp_check_rtr(const struct nic_qp *qp,
                            const struct vhca_qp_modify *mod)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(qp->dev);

    if ((mod->mtu < 1) || (mod->mtu > port->mtu) || (mod->log_msg_max > 30) ||
        (mod->remote_qpn == 0) || (mod->remote_qpn > 0xffffff) ||
        (mod->next_rcv_psn > 0xffffff) ||
        (mod->log_rra_max > NIC_LOG_MAX_RA) || (mod->min_rnr_nak > 31)) {
        return VHCA_FW_BAD_PARAM;
    }
    if (qp->roce && gid_is_zero(mod->rgid)) {
        return VHCA_FW_BAD_PARAM;
    }
    if ((qp->roce || mod->grh) &&
        ((mod->sgid_index >= port->num_gids) ||
         gid_is_zero(port->gid[mod->sgid_index]))) {
        return VHCA_FW_BAD_INDEX;
    }
    /* LID 0 is reserved, multicast ones are no destination of an RC QP */
    if (!qp->roce && ((mod->rlid == 0) || (mod->rlid >= 0xc000))) {
        return VHCA_FW_BAD_PARAM;
    }

    return VHCA_FW_OK;
}

/* A UD QP has no peer: whom a message is for, the WQE says. */
static void qp_ud_to_rtr(struct nic_qp *qp, const struct vhca_qp_modify *mod)
{
    qp_merge_access(qp, mod, mod->opt_param_mask);
    qp->last.mtu         = vhca_port_cfg(qp->dev)->mtu;
    qp->last.log_msg_max = qp->last.mtu + 7; /* a message is one packet */
    qp->mtu_bytes        = 128u << qp->last.mtu;
    atomic_fetch_add(&qp->epoch, 1);
}

static uint8_t qp_to_rtr(struct nic_qp *qp, const struct vhca_qp_modify *mod)
{
    struct vhca_qp_modify *last = &qp->last;
    uint8_t status;

    if (qp->attr.type == VHCA_QP_UD) {
        qp_ud_to_rtr(qp, mod);
        return VHCA_FW_OK;
    }

    status = qp_check_rtr(qp, mod);
    if (status != VHCA_FW_OK) {
        return status;
    }

    qp_merge_access(qp, mod, mod->opt_param_mask);
    last->mtu          = mod->mtu;
    last->log_msg_max  = mod->log_msg_max;
    last->remote_qpn   = mod->remote_qpn;
    last->next_rcv_psn = mod->next_rcv_psn;
    last->log_rra_max  = mod->log_rra_max;
    last->atomic_mode  = mod->atomic_mode;
    last->min_rnr_nak  = mod->min_rnr_nak;
    last->grh          = mod->grh;
    last->rlid         = mod->rlid;
    last->sgid_index   = mod->sgid_index;
    last->hop_limit    = mod->hop_limit;
    last->sl           = mod->sl;
    last->tclass       = mod->tclass;
    last->udp_sport    = mod->udp_sport;
    last->flow_label   = mod->flow_label;
    memcpy(last->rgid, mod->rgid, sizeof(last->rgid));
    memcpy(last->rmac, mod->rmac, sizeof(last->rmac));
    qp->mtu_bytes = 128u << mod->mtu;
    qp->path_seen = 0;
    atomic_store(&qp->rcv_psn, mod->next_rcv_psn);
    atomic_fetch_add(&qp->epoch, 1);
    return VHCA_FW_OK;
}

static uint8_t qp_to_rts(struct nic_qp *qp, const struct vhca_qp_modify *mod)
{
    struct vhca_qp_modify *last = &qp->last;

    if ((mod->next_send_psn > 0xffffff) ||
        (mod->log_sra_max > NIC_LOG_MAX_RA) || (mod->retry_count > 7) ||
        (mod->rnr_retry > 7) || (mod->ack_timeout > 31)) {
        return VHCA_FW_BAD_PARAM;
    }

    qp_merge_access(qp, mod, mod->opt_param_mask);
    last->next_send_psn = mod->next_send_psn;
    last->log_sra_max   = mod->log_sra_max;
    last->retry_count   = mod->retry_count;
    last->rnr_retry     = mod->rnr_retry;
    last->ack_timeout   = mod->ack_timeout;
    qp->send_psn        = mod->next_send_psn;
    return VHCA_FW_OK;
}

static uint8_t qp_rts_to_rts(struct nic_qp *qp,
                             const struct vhca_qp_modify *mod)
{
    uint32_t mask = mod->opt_param_mask;

    if (((mask & OPT_SRA_MAX) && (mod->log_sra_max > NIC_LOG_MAX_RA)) ||
        ((mask & OPT_RRA_MAX) && (mod->log_rra_max > NIC_LOG_MAX_RA)) ||
        ((mask & OPT_ACK_TIMEOUT) && (mod->ack_timeout > 31)) ||
        ((mask & OPT_RETRY) && (mod->retry_count > 7)) ||
        ((mask & OPT_RNR_RETRY) && (mod->rnr_retry > 7))) {
        return VHCA_FW_BAD_PARAM;
    }

    qp_merge_access(qp, mod, mask);
    if (mask & OPT_SRA_MAX) {
        qp->last.log_sra_max = mod->log_sra_max;
    }
    if (mask & OPT_RETRY) {
        qp->last.retry_count = mod->retry_count;
    }
    if (mask & OPT_RNR_RETRY) {
        qp->last.rnr_retry = mod->rnr_retry;
    }
    if (mask & OPT_ACK_TIMEOUT) {
        qp->last.ack_timeout = mod->ack_timeout;
    }
    return VHCA_FW_OK;
}

static uint8_t qp_to_init(struct nic_qp *qp, const struct vhca_qp_modify *mod)
{
    if (mod->port != 1) {
        return VHCA_FW_BAD_PARAM;
    }

    qp->last.port        = mod->port;
    qp->last.pkey_index  = mod->pkey_index;
    qp->last.rre         = mod->rre;
    qp->last.rwe         = mod->rwe;
    qp->last.rae         = mod->rae;
    qp->last.atomic_mode = mod->atomic_mode;
    qp->last.qkey        = mod->qkey;
    return VHCA_FW_OK;
}

static uint8_t qp_init_to_init(struct nic_qp *qp,
                               const struct vhca_qp_modify *mod)
{
    if ((mod->opt_param_mask & OPT_PRI_PORT) && (mod->port != 1)) {
        return VHCA_FW_BAD_PARAM;
    }

    qp_merge_access(qp, mod, mod->opt_param_mask);
    return VHCA_FW_OK;
}

static void qp_reset(struct nic_exec *x, struct nic_qp *qp, uint32_t qpn)
{
    struct nic_rmp *rq = (qp->attr.rq == NULL) ? NULL :
                         NIC_FIND(NIC_RMP, nic_rmp, qp->rq);

    atomic_store(&qp->state, VHCA_QP_RST);
    nic_quiesce_qp(qpn);
    nic_sq_reset(x, qp);
    if (rq != NULL) {
        atomic_store(&rq->pos, 0);
    }
    atomic_store(&qp->rx_busy, 0);
    memset(&qp->last, 0, sizeof(qp->last));
    qp->path_seen = 0;
}

/* The receive WQE that a message had taken: was its CQE written before whoever
 * wrote it died? */
static bool qp_rx_delivered(struct nic_qp *qp)
{
    uint64_t journal = atomic_exchange(&qp->rx_journal, 0);
    bool valid;
    uint32_t pi;

    if (!(journal & NIC_JOURNAL)) {
        return false;
    }
    pi = nic_cq_pi(qp->attr.cqn_rcv, &valid);
    return valid && ((int32_t)(pi - (uint32_t)journal) > 0);
}

/* Own receive queue: what is posted comes back flushed. */
void nic_qp_flush_rq(struct nic_qp *qp)
{
    uint32_t busy      = atomic_exchange(&qp->rx_busy, 0);
    struct nic_cqe cqe = {
        .opcode   = CQE_RESP_ERR,
        .syndrome = CQE_SYND_FLUSHED,
        .qpn      = atomic_load(&qp->obj.number),
        .uidx     = qp->attr.user_index,
        .counter  = busy & 0xffff
    };

    if ((busy != 0) && !qp_rx_delivered(qp)) {
        nic_cq_post(qp->attr.cqn_rcv, &cqe, NULL, 0);
    }
    while ((qp->attr.rq != NULL) &&
           nic_rmp_take_flush(qp->rq, &cqe.counter)) {
        if (!nic_cq_post(qp->attr.cqn_rcv, &cqe, NULL, 0)) {
            break;
        }
    }
}

/* Into the error state, once: receives are flushed, events are sent. The send
 * queue is flushed by whoever runs it next. */
void nic_qp_fail(struct nic_qp *qp, uint16_t event)
{
    uint32_t qpn = atomic_load(&qp->obj.number);

    if ((qpn == 0) || (atomic_exchange(&qp->state, VHCA_QP_ERR) ==
                       VHCA_QP_ERR)) {
        return;
    }

    nic_qp_flush_rq(qp);
    if (event != 0) {
        nic_event_send(&qp->subs, event, qpn);
    }
    if (qp->attr.rmpn != 0) {
        nic_event_send(&qp->subs, EQE_SRQ_LAST_WQE, qpn);
    }
}

/* The peer's requests that found this QP not ready go on. */
static void qp_wake_peer(struct nic_exec *x, struct nic_qp *qp)
{
    struct nic_qp *peer = NIC_FIND(NIC_QP, nic_qp, qp->last.remote_qpn);

    if ((peer != NULL) && (atomic_load(&peer->stall) == NIC_STALL_RETRY)) {
        nic_sq_resume(x, peer);
    }
}

static uint8_t qp_transition(struct nic_qp *qp,
                             const struct vhca_qp_modify *mod, uint32_t *to_p)
{
    static const struct {
        uint16_t opcode;
        uint8_t  from, to;
        uint8_t  (*apply)(struct nic_qp*, const struct vhca_qp_modify*);
    } table[] = {
        { OP_RST2INIT, VHCA_QP_RST, VHCA_QP_INIT, qp_to_init },
        { OP_INIT2INIT, VHCA_QP_INIT, VHCA_QP_INIT,
          qp_init_to_init },
        { OP_INIT2RTR, VHCA_QP_INIT, VHCA_QP_RTR, qp_to_rtr },
        { OP_RTR2RTS, VHCA_QP_RTR, VHCA_QP_RTS, qp_to_rts },
        { OP_RTS2RTS, VHCA_QP_RTS, VHCA_QP_RTS, qp_rts_to_rts },
        { OP_SQERR2RTS, VHCA_QP_SQE, VHCA_QP_RTS, qp_rts_to_rts },
        { OP_SQD2RTS, VHCA_QP_SQD, VHCA_QP_RTS, qp_rts_to_rts }
    };
    unsigned i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        if (table[i].opcode == mod->opcode) {
            *to_p = table[i].to;
            return (atomic_load(&qp->state) != table[i].from) ?
                   VHCA_FW_BAD_QP_STATE : table[i].apply(qp, mod);
        }
    }

    return VHCA_FW_BAD_OP;
}

bool vhca_qp_modify(uint32_t owner, uint32_t qpn,
                    const struct vhca_qp_modify *mod, struct vhca_fw *fw)
{
    struct nic_qp *qp = qp_mine(owner, qpn);
    uint32_t to       = VHCA_QP_ERR, from;
    struct nic_exec *x;
    uint8_t status;

    if (qp == NULL) {
        return nic_fail(fw, VHCA_FW_BAD_RESOURCE, 0);
    }
    if (qp->attr.verbs && vhca_fault_cmd(mod->opcode, fw)) {
        return false;
    }

    x = nic_exec_enter();
    if (mod->opcode == OP_2RST) {
        qp_reset(x, qp, qpn);
    } else if (mod->opcode == OP_2ERR) {
        nic_qp_fail(qp, 0);
        nic_quiesce_qp(qpn);
        nic_qp_flush_rq(qp); /* what was taken by those who just left */
        nic_sq_run(x, qp);
        nic_watch_qp(qp); /* what is posted from now on is flushed */
    } else {
        status = qp_transition(qp, mod, &to);
        from   = atomic_load(&qp->state);
        /* an error that came meanwhile stays */
        if ((status == VHCA_FW_OK) && (from != to) &&
            !atomic_compare_exchange_strong(&qp->state, &from, to)) {
            status = VHCA_FW_BAD_QP_STATE;
        }
        if (status != VHCA_FW_OK) {
            nic_exec_leave(x);
            return nic_fail(fw, status, 0);
        }
        if (to == VHCA_QP_RTR) {
            nic_watch_qp(qp);
            qp_wake_peer(x, qp);
        } else if (to == VHCA_QP_RTS) {
            nic_sq_run(x, qp);
        }
    }
    nic_exec_leave(x);
    return true;
}

/* Would the network carry the requester's packets to peer, and would peer take
 * them for its own? Checked once for every pair of connections. */
bool nic_qp_path_ok(struct nic_qp *qp, struct nic_qp *peer)
{
    const struct vhca_port_cfg *there = vhca_port_cfg(peer->dev);
    const struct vhca_port_cfg *here  = vhca_port_cfg(qp->dev);
    uint64_t seen = (uint64_t)atomic_load(&peer->epoch) << 32 |
                    atomic_load(&peer->obj.number);
    unsigned i;

    if (qp->path_seen == seen) {
        return true;
    }
    if ((qp->roce != peer->roce) || (there == NULL) || (here == NULL)) {
        return false;
    }

    if (!qp->roce && ((qp->last.rlid != there->lid) ||
                      (peer->last.rlid != here->lid))) {
        return false;
    }
    if (qp->roce || qp->last.grh) {
        for (i = 0; i < there->num_gids; ++i) {
            if ((memcmp(there->gid[i], qp->last.rgid, 16) == 0) &&
                (!qp->roce || (there->gid_type[i] ==
                               here->gid_type[qp->last.sgid_index]))) {
                break;
            }
        }
        if (i == there->num_gids) {
            return false;
        }
    }

    qp->path_seen = seen;
    return true;
}
