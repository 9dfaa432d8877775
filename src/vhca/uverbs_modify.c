/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MODIFY_QP: which step with which attributes (kernel
 * drivers/infiniband/core/verbs.c, ib_modify_qp_is_ok), what the attributes may
 * be (core/uverbs_cmd.c, modify_qp; hw/mlx5/qp.c, mlx5_ib_modify_qp), and the
 * firmware command that does it.
 */

#include <errno.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "vhca/kernel.h"
#include "vhca/uverbs_qp.h"

/* A step of a type's state machine; any step allows IB_QP_STATE. opt_param: the
 * firmware's optional parameters of the step (hw/mlx5/qp.c, opt_mask). */
struct step {
    uint8_t  type, from, to;
    uint32_t required, optional;
    uint16_t opcode;              /* PRM */
    uint32_t opt_param;
};

enum {
    OPT_RRE         = 1 << 1,
    OPT_RAE         = 1 << 2,
    OPT_RWE         = 1 << 3,
    OPT_PKEY        = 1 << 4,
    OPT_QKEY        = 1 << 5,
    OPT_RNR_TIMEOUT = 1 << 6,
    OPT_PRI_PORT    = 1 << 16,
    OPT_ACCESS      = OPT_RRE | OPT_RAE | OPT_RWE
};

#define RC IB_UVERBS_QPT_RC
#define UD IB_UVERBS_QPT_UD

static const struct step steps[] = {
    {RC, IB_QPS_RESET, IB_QPS_INIT,
     IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, 0, 0x502, 0},
    {RC, IB_QPS_INIT, IB_QPS_INIT, 0,
     IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, 0x50e,
     OPT_ACCESS | OPT_PKEY | OPT_PRI_PORT},
    {RC, IB_QPS_INIT, IB_QPS_RTR,
     IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
     IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
     IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX, 0x503,
     OPT_ACCESS | OPT_PKEY},
    {RC, IB_QPS_RTR, IB_QPS_RTS,
     IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
     IB_QP_MAX_QP_RD_ATOMIC,
     IB_QP_CUR_STATE | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS |
     IB_QP_MIN_RNR_TIMER | IB_QP_PATH_MIG_STATE, 0x504,
     OPT_ACCESS | OPT_RNR_TIMEOUT},
    {RC, IB_QPS_RTS, IB_QPS_RTS, 0,
     IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS | IB_QP_ALT_PATH |
     IB_QP_PATH_MIG_STATE | IB_QP_MIN_RNR_TIMER, 0x505,
     OPT_ACCESS | OPT_RNR_TIMEOUT},
    {UD, IB_QPS_RESET, IB_QPS_INIT,
     IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY, 0, 0x502, 0},
    {UD, IB_QPS_INIT, IB_QPS_INIT, 0,
     IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY, 0x50e,
     OPT_PKEY | OPT_QKEY | OPT_PRI_PORT},
    {UD, IB_QPS_INIT, IB_QPS_RTR, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY, 0x503,
     OPT_PKEY | OPT_QKEY},
    {UD, IB_QPS_RTR, IB_QPS_RTS, IB_QP_SQ_PSN, IB_QP_CUR_STATE | IB_QP_QKEY,
     0x504, OPT_QKEY},
    {UD, IB_QPS_RTS, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY, 0x505,
     OPT_QKEY},
};

/* From every state, with no attribute but the state. SQD and SQE lead to RTS as
 * well, but no command leads into them. */
static const struct step to_reset = {0, 0, IB_QPS_RESET, 0, 0, 0x50a, 0};
static const struct step to_error = {0, 0, IB_QPS_ERR, 0, 0, 0x507, 0};

static const struct step *find_step(uint8_t type, uint8_t from, uint8_t to)
{
    unsigned i;

    if (to == IB_QPS_RESET) {
        return &to_reset;
    }
    if ((to == IB_QPS_ERR) && (from != IB_QPS_RESET)) {
        return &to_error;
    }

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i) {
        if ((steps[i].type == type) && (steps[i].from == from) &&
            (steps[i].to == to)) {
            return &steps[i];
        }
    }

    return NULL;
}

static const struct step *check_step(const struct vhca_kqp *qp,
                                     const struct ib_uverbs_modify_qp *in)
{
    const uint32_t mask = in->attr_mask;
    uint8_t from = (mask & IB_QP_CUR_STATE) ? in->cur_qp_state : qp->state;
    uint8_t to   = (mask & IB_QP_STATE) ? in->qp_state : from;
    const struct step *step;

    if ((mask & IB_QP_CUR_STATE) &&
        ((from < IB_QPS_RTR) || (from > IB_QPS_SQE))) {
        return NULL;
    }

    step = find_step(qp->type, from, to);
    return ((step == NULL) || ((mask & step->required) != step->required) ||
            (mask & ~(step->required | step->optional | IB_QP_STATE))) ?
           NULL : step;
}

static bool valid_port(uint32_t port)
{
    return port == 1;
}

/* modify_qp of uverbs: what is wrong whatever the QP's state is */
static int check_attr(struct vhca_req *req,
                      const struct ib_uverbs_modify_qp *in)
{
    const uint32_t mask  = in->attr_mask;
    const uint32_t depth = 1u << VHCA_LOG_MAX_RA;

    if (((mask & IB_QP_PORT) && !valid_port(in->port_num)) ||
        ((mask & IB_QP_ALT_PATH) && (!valid_port(in->alt_port_num) ||
                                     !valid_port(in->alt_dest.port_num))) ||
        ((mask & IB_QP_CUR_STATE) && (in->cur_qp_state > IB_QPS_ERR)) ||
        ((mask & IB_QP_STATE) && (in->qp_state > IB_QPS_ERR))) {
        return -EINVAL;
    }
    /* the destination's port is the QP's: there is one */
    if ((mask & IB_QP_AV) && !valid_port(in->dest.port_num)) {
        return -EINVAL;
    }

    /* mlx5_ib_modify_qp */
    if (((mask & IB_QP_PKEY_INDEX) &&
         (in->pkey_index >= vhca_num_pkeys(req->ctx->dev))) ||
        ((mask & IB_QP_MAX_QP_RD_ATOMIC) && (in->max_rd_atomic > depth)) ||
        ((mask & IB_QP_MAX_DEST_RD_ATOMIC) &&
         (in->max_dest_rd_atomic > depth)) ||
        ((mask & IB_QP_PATH_MTU) && ((in->path_mtu < 1) ||
                                     (in->path_mtu > 5)))) {
        return -EINVAL;
    }
    /* automatic path migration is nothing this device has */
    return (mask & (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE)) ? -EOPNOTSUPP : 0;
}

/* rdma_fill_sgid_attr, ib_resolve_eth_dmac, mlx5_set_path */
static int get_av(struct vhca_req *req, const struct ib_uverbs_qp_dest *dest,
                  struct vhca_qp_modify *mod)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(req->ctx->dev);

    if ((dest->is_global && (dest->sgid_index >= port->num_gids)) ||
        (port->roce && !dest->is_global)) {
        return -EINVAL;
    }

    mod->sl = dest->sl & 0xf;
    if (!port->roce) {
        mod->rlid = dest->dlid;
    } else if (!vhca_gid_to_mac(dest->dgid, mod->rmac)) {
        return -EHOSTUNREACH;
    } else {
        mod->udp_sport = (port->gid_type[dest->sgid_index] ==
                          IB_UVERBS_GID_TYPE_ROCE_V2) ?
                         VHCA_MIN_UDP_SPORT : 0;
    }
    if (dest->is_global) {
        mod->grh        = true;
        mod->sgid_index = dest->sgid_index;
        mod->hop_limit  = dest->hop_limit;
        mod->tclass     = dest->traffic_class;
        mod->flow_label = dest->flow_label & 0xfffff;
        memcpy(mod->rgid, dest->dgid, sizeof(mod->rgid));
    }

    return 0;
}

static uint8_t log_depth(uint8_t depth)
{
    uint8_t log = 0;

    while ((1u << log) < depth) {
        ++log;
    }

    return log;
}

/* set_qpc_atomic_flags: without room for reads and atomics only writes are
 * let in, whatever was asked for */
static void get_access(struct vhca_kqp *qp,
                       const struct ib_uverbs_modify_qp *in,
                       struct vhca_qp_modify *mod)
{
    if (in->attr_mask & IB_QP_ACCESS_FLAGS) {
        qp->access = (uint8_t)in->qp_access_flags;
    }
    if (in->attr_mask & IB_QP_MAX_DEST_RD_ATOMIC) {
        qp->dest_rd_atomic = in->max_dest_rd_atomic;
    }

    mod->rwe = qp->access & IB_UVERBS_ACCESS_REMOTE_WRITE;
    if (qp->dest_rd_atomic != 0) {
        mod->rre         = qp->access & IB_UVERBS_ACCESS_REMOTE_READ;
        mod->rae         = qp->access & IB_UVERBS_ACCESS_REMOTE_ATOMIC;
        mod->atomic_mode = mod->rae;
    }
}

static uint32_t opt_param(uint32_t mask)
{
    return ((mask & (IB_QP_ACCESS_FLAGS | IB_QP_MAX_DEST_RD_ATOMIC)) ?
            OPT_ACCESS : 0) |
           ((mask & IB_QP_PKEY_INDEX) ? OPT_PKEY : 0) |
           ((mask & IB_QP_QKEY) ? OPT_QKEY : 0) |
           ((mask & IB_QP_MIN_RNR_TIMER) ? OPT_RNR_TIMEOUT : 0) |
           ((mask & IB_QP_PORT) ? OPT_PRI_PORT : 0);
}

static int get_modify(struct vhca_req *req, const struct step *step,
                      const struct ib_uverbs_modify_qp *in,
                      struct vhca_kqp *qp, struct vhca_qp_modify *mod)
{
    mod->opcode         = step->opcode;
    mod->opt_param_mask = opt_param(in->attr_mask) & step->opt_param;
    mod->port           = in->port_num;
    mod->pkey_index     = in->pkey_index;
    mod->mtu            = in->path_mtu;
    mod->log_msg_max    = VHCA_LOG_MAX_MSG;
    mod->remote_qpn     = in->dest_qp_num & 0xffffff;
    mod->next_rcv_psn   = in->rq_psn & 0xffffff;
    mod->next_send_psn  = in->sq_psn & 0xffffff;
    mod->log_rra_max    = log_depth(in->max_dest_rd_atomic);
    mod->log_sra_max    = log_depth(in->max_rd_atomic);
    mod->min_rnr_nak    = in->min_rnr_timer & 0x1f;
    mod->rnr_retry      = in->rnr_retry & 7;
    mod->retry_count    = in->retry_cnt & 7;
    mod->ack_timeout    = in->timeout & 0x1f;
    mod->qkey           = in->qkey;
    get_access(qp, in, mod);
    return (in->attr_mask & IB_QP_AV) ? get_av(req, &in->dest, mod) : 0;
}

static int modify(struct vhca_req *req, const struct ib_uverbs_modify_qp *in)
{
    struct vhca_qp_modify mod = {0};
    const struct step *step;
    struct vhca_uobj *obj;
    struct vhca_kqp after;
    struct vhca_fw fw;
    int ret;

    obj = vhca_uobj_get(req->ctx, in->qp_handle, VHCA_UOBJ_QP);
    if (obj == NULL) {
        return -EINVAL;
    }
    ret = check_attr(req, in);
    if (ret != 0) {
        return ret;
    }
    step = check_step(&obj->qp, in);
    if (step == NULL) {
        return -EINVAL;
    }
    if ((step->to == IB_QPS_RESET) && (obj->qp.state == IB_QPS_RESET)) {
        return 0;
    }

    after = obj->qp;
    ret   = get_modify(req, step, in, &after, &mod);
    if (ret != 0) {
        return ret;
    }
    if (!vhca_qp_modify(req->ctx->owner, obj->number, &mod, &fw)) {
        return vhca_fw_errno(&fw);
    }

    after.state = step->to;
    if (step->to == IB_QPS_RESET) {
        after.access         = 0;
        after.dest_rd_atomic = 0;
    }
    obj->qp = after;
    return 0;
}

int vhca_qp_obj_modify(struct vhca_req *req)
{
    struct ib_uverbs_modify_qp in;

    if (vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) != 0) {
        return -EINVAL;
    }

    return (in.attr_mask & ~(uint32_t)IB_QP_STANDARD_BITS) ? -EOPNOTSUPP :
                                                             modify(req, &in);
}

int vhca_qp_obj_modify_ex(struct vhca_req *req)
{
    struct ib_uverbs_ex_modify_qp_resp resp = {0};
    struct mlx5_ib_modify_qp_resp uhw       = {0};
    struct ib_uverbs_ex_modify_qp in;
    struct mlx5_ib_modify_qp drv;
    int ret;

    if (vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) != 0) {
        return -EINVAL;
    }
    if (in.base.attr_mask & ~(uint32_t)(IB_QP_STANDARD_BITS |
                                        IB_QP_RATE_LIMIT)) {
        return -EOPNOTSUPP;
    }
    /* no rate limit but for raw packets, no enhanced connections */
    if ((in.base.attr_mask & IB_QP_RATE_LIMIT) ||
        ((vhca_req_copy(req, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv)) == 0) &&
         ((drv.comp_mask != 0) || (drv.ece_options != 0)))) {
        return -EINVAL;
    }

    ret = modify(req, &in.base);
    if (ret == 0) {
        resp.response_length = sizeof(resp);
        uhw.response_length  = sizeof(uhw);
        vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
        vhca_req_reply(req, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
    }

    return ret;
}
