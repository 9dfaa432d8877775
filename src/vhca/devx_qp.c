/* SPDX-License-Identifier: BSD-3-Clause */

/* CREATE_QP, the steps of a QP's life, QUERY_QP. RC only. */

#include <string.h>

#include "vhca/kernel.h"
#include "vhca/prm_table.h"

/* Encodings of the QP context (PRM qpc; Linux mlx5/qp.h) */
enum {
    QPC_ST_RC          = 0x0,
    QPC_PM_ARMED       = 0x0,
    QPC_PM_MIGRATED    = 0x3,
    QPC_RQ_OWN         = 0x0,
    QPC_RQ_SRQ         = 0x1, /* an SRQ or an RMP */
    QPC_RQ_NONE        = 0x3,
    QPC_TS_DEFAULT     = 0x1,
    QPC_MTU_MIN        = 1,
    QPC_MTU_MAX        = 5,
    QPC_LOG_RQ_STRIDE0 = 4,   /* log_rq_stride 0 is 16 bytes */
    QPC_CS_REQ_32      = 0x11,
    QPC_CS_REQ_64      = 0x22,
    QPC_CS_RES_32      = 0x1,
    QPC_CS_RES_64      = 0x2
};

/* Optional parameters by step (Linux mlx5_ib qp.c, opt_mask, RC row) */
enum {
    OPT_ALT_ADDR_PATH = 1 << 0,
    OPT_RRE           = 1 << 1,
    OPT_RAE           = 1 << 2,
    OPT_RWE           = 1 << 3,
    OPT_PKEY_INDEX    = 1 << 4,
    OPT_RNR_TIMEOUT   = 1 << 6,
    OPT_PM_STATE      = 1 << 10,
    OPT_LAG_TX_AFF    = 1 << 15
};

#define RST2INIT 0x502
#define INIT2RTR 0x503
#define RTR2RTS  0x504

/* No other type than RC, and no alternate path: a new QP is migrated, as all
 * its creators say. In the steps mlx5_ib and UCX repeat that, and rdma-core's
 * tests (mlx5_base.py, to_rts) leave 0 there. */
static bool check_type(struct vhca_cmd *cmd, const uint8_t *qpc, bool create)
{
    unsigned pm_state = (unsigned)PRM_GET(qpc, qpc, pm_state);

    return ((PRM_GET(qpc, qpc, st) == QPC_ST_RC) &&
            ((pm_state == QPC_PM_MIGRATED) ||
             (!create && (pm_state == QPC_PM_ARMED)))) ||
           vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
}

/* ---- CREATE_QP ---- */

static bool create_rq(struct vhca_cmd *cmd, const uint8_t *qpc,
                      struct vhca_qp_attr *attr, struct vhca_uobj **rmp_p)
{
    uint32_t rmpn       = (uint32_t)PRM_GET(qpc, qpc, srqn_rmpn_xrqn);
    unsigned log_size   = (unsigned)PRM_GET(qpc, qpc, log_rq_size);
    unsigned log_stride = (unsigned)PRM_GET(qpc, qpc, log_rq_stride);

    *rmp_p = NULL;
    switch (PRM_GET(qpc, qpc, rq_type)) {
    case QPC_RQ_OWN:
        attr->log_rq_size   = (uint8_t)log_size;
        attr->log_rq_stride = (uint8_t)(log_stride + QPC_LOG_RQ_STRIDE0);
        return ((rmpn == 0) && (log_size <= VHCA_LOG_MAX_QP_SZ) &&
                (attr->log_rq_stride <= VHCA_LOG_MAX_STRIDE)) ||
               vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);

    case QPC_RQ_SRQ:
        *rmp_p = vhca_uobj_by_number(cmd->ctx, rmpn, VHCA_UOBJ_DEVX_RMP);
        if (*rmp_p == NULL) {
            *rmp_p = vhca_uobj_by_number(cmd->ctx, rmpn, VHCA_UOBJ_SRQ);
        }
        if (*rmp_p == NULL) {
            return vhca_cmd_fail(cmd, VHCA_FW_BAD_RESOURCE, VHCA_SYN_RMPN);
        }
        attr->rmpn = rmpn;
        break;

    case QPC_RQ_NONE:
        if (rmpn != 0) {
            return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_RMPN);
        }
        break;

    default:
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
    }

    return ((log_size == 0) && (log_stride == 0)) ||
           vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);
}

/* The receive queue comes first, the send queue behind it (mlx5_ib qp.c,
 * set_user_buf_size). */
static bool create_rings(struct vhca_cmd *cmd, const uint8_t *qpc,
                         struct vhca_qp_attr *attr)
{
    bool own_rq     = PRM_GET(qpc, qpc, rq_type) == QPC_RQ_OWN;
    bool no_sq      = PRM_GET(qpc, qpc, no_sq);
    uint64_t rq_len = own_rq ?
                      1ull << (attr->log_rq_size + attr->log_rq_stride) : 0;
    uint64_t sq_len;
    uint8_t *ring;

    attr->log_sq_size = (uint8_t)PRM_GET(qpc, qpc, log_sq_size);
    if ((attr->log_sq_size > VHCA_LOG_MAX_QP_SZ) ||
        (no_sq && (attr->log_sq_size != 0))) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);
    }

    sq_len = no_sq ? 0 : 64ull << attr->log_sq_size;
    ring   = vhca_cmd_ring(cmd, (uint32_t)PRM_GET(create_qp_in, cmd->in,
                                                  wq_umem_id),
                           PRM_GET(create_qp_in, cmd->in, wq_umem_offset),
                           rq_len + sq_len);
    if (ring == NULL) {
        return false;
    }

    attr->rq = own_rq ? ring : NULL;
    attr->sq = no_sq ? NULL : ring + rq_len;
    return true;
}

static struct vhca_uobj *find_cq(struct vhca_cmd *cmd, uint32_t cqn)
{
    struct vhca_uobj *cq = vhca_uobj_by_number(cmd->ctx, cqn,
                                               VHCA_UOBJ_DEVX_CQ);

    if (cq == NULL) {
        cq = vhca_uobj_by_number(cmd->ctx, cqn, VHCA_UOBJ_CQ); /* verbs' */
    }
    if (cq == NULL) {
        (void)vhca_cmd_fail(cmd, VHCA_FW_BAD_RESOURCE, VHCA_SYN_CQN);
    }

    return cq;
}

/* Data in CQEs (UCX ib_mlx5_ifc.h, uct_ib_mlx5_qpc_cs_req and _cs_res) */
static bool create_scatter(struct vhca_cmd *cmd, const uint8_t *qpc,
                           struct vhca_qp_attr *attr)
{
    unsigned req = (unsigned)PRM_GET(qpc, qpc, cs_req);
    unsigned res = (unsigned)PRM_GET(qpc, qpc, cs_res);

    if (((req != 0) && (req != QPC_CS_REQ_32) && (req != QPC_CS_REQ_64)) ||
        ((res != 0) && (res != QPC_CS_RES_32) && (res != QPC_CS_RES_64))) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
    }

    attr->cs_req = (req == QPC_CS_REQ_64) ? 64 : (req != 0) ? 32 : 0;
    attr->cs_res = (res == QPC_CS_RES_64) ? 64 : (res != 0) ? 32 : 0;
    return true;
}

bool vhca_cmd_create_qp(struct vhca_cmd *cmd)
{
    const uint8_t *qpc       = PRM_CADDR(create_qp_in, cmd->in, qpc);
    struct vhca_qp_attr attr = {.owner = cmd->ctx->owner};
    struct vhca_uobj *pd, *rmp, *cq_snd, *cq_rcv;

    if (!check_type(cmd, qpc, true)) {
        return false;
    }
    if (PRM_GET(qpc, qpc, ts_format) > QPC_TS_DEFAULT) {
        /* roce_cap.qp_ts_format: free running only */
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
    }

    pd = vhca_cmd_pd(cmd, (uint32_t)PRM_GET(qpc, qpc, pd));
    if (pd == NULL) {
        return false;
    }

    attr.cqn_snd = (uint32_t)PRM_GET(qpc, qpc, cqn_snd);
    attr.cqn_rcv = (uint32_t)PRM_GET(qpc, qpc, cqn_rcv);
    cq_snd       = find_cq(cmd, attr.cqn_snd);
    cq_rcv       = (cq_snd != NULL) ? find_cq(cmd, attr.cqn_rcv) : NULL;
    if (cq_rcv == NULL) {
        return false;
    }

    attr.pdn        = pd->number;
    attr.uar_page   = (uint32_t)PRM_GET(qpc, qpc, uar_page);
    attr.user_index = (uint32_t)PRM_GET(qpc, qpc, user_index);
    if (!vhca_cmd_uar(cmd, attr.uar_page) ||
        !create_rq(cmd, qpc, &attr, &rmp) ||
        !create_scatter(cmd, qpc, &attr) || !create_rings(cmd, qpc, &attr)) {
        return false;
    }

    attr.dbrec = vhca_cmd_dbrec(cmd, (uint32_t)PRM_GET(qpc, qpc, dbr_umem_id),
                                PRM_GET(qpc, qpc, dbr_addr));
    if ((attr.dbrec == NULL) ||
        !vhca_qp_create(&attr, &cmd->obj->number, &cmd->fw)) {
        return false;
    }

    vhca_uobj_use(cmd->obj, pd);
    vhca_uobj_use(cmd->obj, cq_snd);
    vhca_uobj_use(cmd->obj, cq_rcv);
    if (rmp != NULL) {
        vhca_uobj_use(cmd->obj, rmp);
    }
    PRM_SET(create_qp_out, cmd->out, qpn, cmd->obj->number);
    return true;
}

/* ---- RST2INIT, INIT2RTR, RTR2RTS, 2ERR, 2RST ---- */

/* Drivers repeat PD and CQs in every step (mlx5_ib qp.c,
 * __mlx5_ib_modify_qp); they cannot be changed. */
static bool check_repeated(struct vhca_cmd *cmd, const uint8_t *qpc,
                           const struct vhca_qp_attr *attr)
{
    uint32_t pd  = (uint32_t)PRM_GET(qpc, qpc, pd);
    uint32_t snd = (uint32_t)PRM_GET(qpc, qpc, cqn_snd);
    uint32_t rcv = (uint32_t)PRM_GET(qpc, qpc, cqn_rcv);

    return (((pd == 0) || (pd == attr->pdn)) &&
            ((snd == 0) || (snd == attr->cqn_snd)) &&
            ((rcv == 0) || (rcv == attr->cqn_rcv))) ||
           vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
}

static void get_av(const uint8_t *ads, const struct vhca_port_cfg *port,
                   struct vhca_qp_modify *mod)
{
    mod->grh        = port->roce || PRM_GET(ads, ads, grh);
    mod->rlid       = (uint16_t)PRM_GET(ads, ads, rlid);
    mod->sgid_index = (uint8_t)PRM_GET(ads, ads, src_addr_index);
    mod->hop_limit  = (uint8_t)PRM_GET(ads, ads, hop_limit);
    mod->tclass     = (uint8_t)PRM_GET(ads, ads, tclass);
    mod->sl         = (uint8_t)(port->roce ? PRM_GET(ads, ads, eth_prio) :
                                             PRM_GET(ads, ads, sl));
    mod->udp_sport  = (uint16_t)PRM_GET(ads, ads, udp_sport);
    memcpy(mod->rgid, PRM_CADDR(ads, ads, rgid_rip), 16);
    memcpy(mod->rmac, PRM_CADDR(ads, ads, rmac_47_32), 6);
}

/*
 * What an address vector must and must not have on this link (mlx5_ib qp.c,
 * mlx5_set_path): RoCE has no LID, no service level, no GRH bit (it always has
 * a GRH); v2 has a UDP source port of the range in the RoCE capabilities. IB
 * has no Ethernet address, priority or UDP port; without a GRH no GID.
 */
static bool check_av(const uint8_t *ads, const struct vhca_port_cfg *port)
{
    static const uint8_t no_gid[16];
    bool has_gid    = memcmp(PRM_CADDR(ads, ads, rgid_rip), no_gid, 16) != 0;
    uint64_t rmac   = PRM_GET(ads, ads, rmac_47_32) << 32 |
                      PRM_GET(ads, ads, rmac_31_0);
    uint64_t sport  = PRM_GET(ads, ads, udp_sport);
    unsigned sgid   = (unsigned)PRM_GET(ads, ads, src_addr_index);
    bool grh        = PRM_GET(ads, ads, grh);

    if (port->roce) {
        if (grh || PRM_GET(ads, ads, mlid) || PRM_GET(ads, ads, rlid) ||
            PRM_GET(ads, ads, sl) || !has_gid || (rmac == 0) ||
            (sgid >= port->num_gids)) {
            return false;
        }

        return (port->gid_type[sgid] == 2 /* RoCE v2 */) ?
               (sport >= VHCA_MIN_UDP_SPORT) :
               ((sport == 0) && (PRM_GET(ads, ads, dscp) == 0));
    }

    if ((rmac != 0) || (sport != 0) || PRM_GET(ads, ads, eth_prio) ||
        PRM_GET(ads, ads, dscp) || (PRM_GET(ads, ads, rlid) == 0)) {
        return false;
    }

    return grh ? (has_gid && (sgid < port->num_gids)) :
           (!has_gid && (sgid == 0) && !PRM_GET(ads, ads, hop_limit) &&
            !PRM_GET(ads, ads, tclass) && !PRM_GET(ads, ads, flow_label));
}

static bool get_rst2init(struct vhca_cmd *cmd, const uint8_t *qpc,
                         struct vhca_qp_modify *mod)
{
    const uint8_t *ads = PRM_CADDR(qpc, qpc, primary_address_path);

    mod->pkey_index = (uint16_t)PRM_GET(ads, ads, pkey_index);
    if (mod->port != 1) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
    }

    /* The table of a RoCE port has one entry. */
    return (mod->pkey_index < vhca_num_pkeys(cmd->ctx->dev)) ||
           vhca_cmd_fail(cmd, VHCA_FW_BAD_INDEX, VHCA_SYN_VALUE);
}

/* RST2INIT sets the port; in later steps drivers may repeat it (UCX at
 * INIT2RTR, rdma-core's tests at RTR2RTS too). */
static bool check_port(struct vhca_cmd *cmd, const struct vhca_qp_modify *mod)
{
    return (mod->port <= 1) ||
           vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
}

static bool get_init2rtr(struct vhca_cmd *cmd, const uint8_t *qpc,
                         struct vhca_qp_modify *mod)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(cmd->ctx->dev);
    const uint8_t *ads = PRM_CADDR(qpc, qpc, primary_address_path);

    mod->mtu          = (uint8_t)PRM_GET(qpc, qpc, mtu);
    mod->log_msg_max  = (uint8_t)PRM_GET(qpc, qpc, log_msg_max);
    mod->remote_qpn   = (uint32_t)PRM_GET(qpc, qpc, remote_qpn);
    mod->next_rcv_psn = (uint32_t)PRM_GET(qpc, qpc, next_rcv_psn);
    mod->log_rra_max  = (uint8_t)PRM_GET(qpc, qpc, log_rra_max);
    mod->min_rnr_nak  = (uint8_t)PRM_GET(qpc, qpc, min_rnr_nak);
    if ((mod->mtu < QPC_MTU_MIN) || (mod->mtu > QPC_MTU_MAX) ||
        (mod->mtu > port->mtu) || (mod->log_msg_max > VHCA_LOG_MAX_MSG) ||
        (mod->log_rra_max > VHCA_LOG_MAX_RA)) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);
    }
    if (!check_port(cmd, mod)) {
        return false;
    }
    if (!check_av(ads, port)) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_AV);
    }

    get_av(ads, port, mod);
    return true;
}

static bool get_rtr2rts(struct vhca_cmd *cmd, const uint8_t *qpc,
                        struct vhca_qp_modify *mod)
{
    const uint8_t *ads = PRM_CADDR(qpc, qpc, primary_address_path);

    mod->next_send_psn = (uint32_t)PRM_GET(qpc, qpc, next_send_psn);
    mod->log_sra_max   = (uint8_t)PRM_GET(qpc, qpc, log_sra_max);
    mod->retry_count   = (uint8_t)PRM_GET(qpc, qpc, retry_count);
    mod->rnr_retry     = (uint8_t)PRM_GET(qpc, qpc, rnr_retry);
    mod->min_rnr_nak   = (uint8_t)PRM_GET(qpc, qpc, min_rnr_nak);
    mod->ack_timeout   = (uint8_t)PRM_GET(ads, ads, ack_timeout);
    if (!check_port(cmd, mod)) {
        return false;
    }

    return (mod->log_sra_max <= VHCA_LOG_MAX_RA) ||
           vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);
}

static bool get_context(struct vhca_cmd *cmd, struct vhca_qp_modify *mod)
{
    /* the three mailboxes are alike */
    const uint8_t *qpc = PRM_CADDR(rst2init_qp_in, cmd->in, qpc);
    const uint8_t *ads = PRM_CADDR(qpc, qpc, primary_address_path);
    static const uint32_t allowed[] = {
        [RST2INIT - RST2INIT] = 0,
        [INIT2RTR - RST2INIT] = OPT_RRE | OPT_RAE | OPT_RWE,
        [RTR2RTS - RST2INIT]  = OPT_RRE | OPT_RAE | OPT_RWE | OPT_PM_STATE |
                                OPT_RNR_TIMEOUT
    };
    struct vhca_qp_info info;

    mod->opt_param_mask = (uint32_t)PRM_GET(rst2init_qp_in, cmd->in,
                                            opt_param_mask);
    /* ALT_ADDR_PATH, PKEY_INDEX and LAG_TX_AFF belong to fields that are
     * refused in these steps or not implemented. */
    if (mod->opt_param_mask & ~allowed[mod->opcode - RST2INIT]) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_OPT_PARAM);
    }
    if (!check_type(cmd, qpc, false)) {
        return false;
    }
    if (!vhca_qp_query(cmd->ctx->owner, cmd->obj->number, &info, &cmd->fw) ||
        !check_repeated(cmd, qpc, &info.attr)) {
        return false;
    }

    mod->port        = (uint8_t)PRM_GET(ads, ads, vhca_port_num);
    mod->rre         = PRM_GET(qpc, qpc, rre);
    mod->rwe         = PRM_GET(qpc, qpc, rwe);
    mod->rae         = PRM_GET(qpc, qpc, rae);
    mod->atomic_mode = (uint8_t)PRM_GET(qpc, qpc, atomic_mode);
    switch (mod->opcode) {
    case RST2INIT:
        return get_rst2init(cmd, qpc, mod);
    case INIT2RTR:
        return get_init2rtr(cmd, qpc, mod);
    default:
        return get_rtr2rts(cmd, qpc, mod);
    }
}

bool vhca_cmd_modify_qp(struct vhca_cmd *cmd)
{
    struct vhca_qp_modify mod = {0};

    mod.opcode = (uint16_t)PRM_GET(qp_2err_in, cmd->in, opcode);
    if ((mod.opcode >= RST2INIT) && (mod.opcode <= RTR2RTS) &&
        !get_context(cmd, &mod)) {
        return false;
    }

    return vhca_qp_modify(cmd->ctx->owner, cmd->obj->number, &mod, &cmd->fw);
}

/* ---- QUERY_QP ---- */

static void put_attr(const struct vhca_qp_attr *attr, uint8_t *qpc)
{
    PRM_SET(qpc, qpc, st, QPC_ST_RC);
    PRM_SET(qpc, qpc, pm_state, QPC_PM_MIGRATED);
    PRM_SET(qpc, qpc, pd, attr->pdn);
    PRM_SET(qpc, qpc, no_sq, attr->sq == NULL);
    PRM_SET(qpc, qpc, log_sq_size, attr->log_sq_size);
    if (attr->rq != NULL) {
        PRM_SET(qpc, qpc, rq_type, QPC_RQ_OWN);
        PRM_SET(qpc, qpc, log_rq_size, attr->log_rq_size);
        PRM_SET(qpc, qpc, log_rq_stride,
                attr->log_rq_stride - QPC_LOG_RQ_STRIDE0);
    } else {
        PRM_SET(qpc, qpc, rq_type, attr->rmpn ? QPC_RQ_SRQ : QPC_RQ_NONE);
        PRM_SET(qpc, qpc, srqn_rmpn_xrqn, attr->rmpn);
    }
    PRM_SET(qpc, qpc, cqn_snd, attr->cqn_snd);
    PRM_SET(qpc, qpc, cqn_rcv, attr->cqn_rcv);
    PRM_SET(qpc, qpc, uar_page, attr->uar_page);
    PRM_SET(qpc, qpc, user_index, attr->user_index);
}

static void put_av(const struct vhca_qp_modify *last, bool roce, uint8_t *ads)
{
    PRM_SET(ads, ads, pkey_index, last->pkey_index);
    PRM_SET(ads, ads, grh, !roce && last->grh);
    PRM_SET(ads, ads, rlid, last->rlid);
    PRM_SET(ads, ads, ack_timeout, last->ack_timeout);
    PRM_SET(ads, ads, src_addr_index, last->sgid_index);
    PRM_SET(ads, ads, hop_limit, last->hop_limit);
    PRM_SET(ads, ads, tclass, last->tclass);
    memcpy(PRM_ADDR(ads, ads, rgid_rip), last->rgid, 16);
    PRM_SET(ads, ads, udp_sport, last->udp_sport);
    PRM_SET(ads, ads, eth_prio, roce ? last->sl : 0);
    PRM_SET(ads, ads, sl, roce ? 0 : last->sl);
    PRM_SET(ads, ads, vhca_port_num, last->port);
    memcpy(PRM_ADDR(ads, ads, rmac_47_32), last->rmac, 6);
}

static void put_modify(const struct vhca_qp_modify *last, uint8_t *qpc)
{
    PRM_SET(qpc, qpc, mtu, last->mtu);
    PRM_SET(qpc, qpc, log_msg_max, last->log_msg_max);
    PRM_SET(qpc, qpc, remote_qpn, last->remote_qpn);
    PRM_SET(qpc, qpc, log_sra_max, last->log_sra_max);
    PRM_SET(qpc, qpc, retry_count, last->retry_count);
    PRM_SET(qpc, qpc, rnr_retry, last->rnr_retry);
    PRM_SET(qpc, qpc, next_send_psn, last->next_send_psn);
    PRM_SET(qpc, qpc, log_rra_max, last->log_rra_max);
    PRM_SET(qpc, qpc, atomic_mode, last->atomic_mode);
    PRM_SET(qpc, qpc, rre, last->rre);
    PRM_SET(qpc, qpc, rwe, last->rwe);
    PRM_SET(qpc, qpc, rae, last->rae);
    PRM_SET(qpc, qpc, min_rnr_nak, last->min_rnr_nak);
    PRM_SET(qpc, qpc, next_rcv_psn, last->next_rcv_psn);
}

/* qpc.state, PRM: RST 0, INIT 1, RTR 2, RTS 3, SQER 4, SQD 5, ERR 6 */
static unsigned qpc_state(enum vhca_qp_state state)
{
    switch (state) {
    case VHCA_QP_RST:
        return 0;
    case VHCA_QP_INIT:
        return 1;
    case VHCA_QP_RTR:
        return 2;
    case VHCA_QP_RTS:
        return 3;
    case VHCA_QP_SQE:
        return 4;
    case VHCA_QP_SQD:
        return 5;
    case VHCA_QP_ERR:
        break;
    }

    return 6;
}

bool vhca_cmd_query_qp(struct vhca_cmd *cmd)
{
    uint8_t *qpc = PRM_ADDR(query_qp_out, cmd->out, qpc);
    struct vhca_qp_info info;

    if (!vhca_qp_query(cmd->ctx->owner, cmd->obj->number, &info, &cmd->fw)) {
        return false;
    }

    put_attr(&info.attr, qpc);
    put_modify(&info.last, qpc);
    put_av(&info.last, vhca_port_cfg(cmd->ctx->dev)->roce,
           PRM_ADDR(qpc, qpc, primary_address_path));
    PRM_SET(qpc, qpc, state, qpc_state(info.state));
    return true;
}
