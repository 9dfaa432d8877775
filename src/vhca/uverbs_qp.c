/* SPDX-License-Identifier: BSD-3-Clause */

/* Verbs queue pairs, RC and UD: created, queried, destroyed. Their steps are in
 * uverbs_modify.c. */

#include <errno.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "vhca/kernel.h"
#include "vhca/uverbs_qp.h"

#define WQE_SEGMENT   16u
#define SQ_BLOCK      64u
#define LOG_RQ_STRIDE_MIN 4

/* PRM event types that a QP raises (mlx5_ib qp.c, mlx5_ib_qp_event) */
static const uint16_t qp_events[] = {0x05, 0x10, 0x11, 0x13};

static bool power_of_2(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

static uint8_t log2_of(uint32_t n)
{
    return (uint8_t)(31 - __builtin_clz(n));
}

/* What of the create request names other objects */
struct qp_parts {
    struct vhca_uobj *pd, *srq, *send_cq, *recv_cq;
};

static int get_parts(struct vhca_req *req, struct qp_parts *parts)
{
    struct vhca_ctx *ctx = req->ctx;

    parts->pd = vhca_uobj_get(ctx,
                              vhca_req_handle(
                                      req, UVERBS_ATTR_CREATE_QP_PD_HANDLE),
                              VHCA_UOBJ_PD);
    parts->send_cq =
            vhca_uobj_get(ctx,
                          vhca_req_handle(
                                  req, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE),
                          VHCA_UOBJ_CQ);
    parts->recv_cq =
            vhca_uobj_get(ctx,
                          vhca_req_handle(
                                  req, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
                          VHCA_UOBJ_CQ);
    parts->srq = NULL;
    if ((parts->pd == NULL) || (parts->send_cq == NULL) ||
        (parts->recv_cq == NULL)) {
        return -ENOENT;
    }
    if (vhca_req_has(req, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE)) {
        parts->srq = vhca_uobj_get(
                ctx, vhca_req_handle(req, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE),
                VHCA_UOBJ_SRQ);
        if (parts->srq == NULL) {
            return -ENOENT;
        }
    }

    return 0;
}

/* Types and flags this device has; the rest is what a kernel says of a device
 * without the capability. */
static int check_kind(struct vhca_req *req, const struct mlx5_ib_create_qp *in)
{
    const uint32_t scatter = MLX5_QP_FLAG_SCATTER_CQE |
                             MLX5_QP_FLAG_ALLOW_SCATTER_CQE;
    uint64_t type  = vhca_req_u64(req, UVERBS_ATTR_CREATE_QP_TYPE, 0);
    uint64_t flags = vhca_req_u64(req, UVERBS_ATTR_CREATE_QP_FLAGS, 0);

    if ((type != IB_UVERBS_QPT_RC) && (type != IB_UVERBS_QPT_UD)) {
        return -EOPNOTSUPP;
    }
    if (vhca_req_has(req, UVERBS_ATTR_CREATE_QP_SOURCE_QPN) ||
        (flags & ~(uint64_t)IB_UVERBS_QP_CREATE_SQ_SIG_ALL)) {
        return -EOPNOTSUPP;
    }
    if (in->flags & MLX5_QP_FLAG_SIGNATURE) {
        return -EOPNOTSUPP;
    }

    /* a doorbell page of its own, by id: there are no static ones */
    return ((in->flags & ~(scatter | MLX5_QP_FLAG_UAR_PAGE_INDEX)) ||
            !(in->flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) ||
            (vhca_uobj_by_number(req->ctx, in->bfreg_index,
                                 VHCA_UOBJ_UAR) == NULL)) ? -EINVAL : 0;
}

/* set_rq_size, set_user_buf_size: the receive queue, the send queue behind */
static int get_rings(const struct mlx5_ib_create_qp *in,
                     const struct ib_uverbs_qp_cap *cap,
                     struct vhca_qp_attr *attr)
{
    const uint32_t max = 1u << VHCA_LOG_MAX_QP_SZ;
    bool has_rq        = (attr->rmpn == 0) && (cap->max_recv_wr != 0);
    uint64_t rq_len    = 0, sq_len;
    int ret;

    if ((cap->max_recv_wr > max) || (cap->max_send_wr > max)) {
        return -EINVAL;
    }
    if (has_rq) {
        if ((in->rq_wqe_count == 0) || (in->rq_wqe_count > max) ||
            !power_of_2(in->rq_wqe_count) ||
            (in->rq_wqe_shift < LOG_RQ_STRIDE_MIN) ||
            (in->rq_wqe_shift > VHCA_LOG_MAX_STRIDE)) {
            return -EINVAL;
        }
        attr->log_rq_size   = log2_of(in->rq_wqe_count);
        attr->log_rq_stride = (uint8_t)in->rq_wqe_shift;
        rq_len              = (uint64_t)in->rq_wqe_count << in->rq_wqe_shift;
    }
    if (!power_of_2(in->sq_wqe_count) || (in->sq_wqe_count > max)) {
        return -EINVAL;
    }

    sq_len = (uint64_t)in->sq_wqe_count * SQ_BLOCK;
    if ((in->db_addr % 8 != 0) || (in->buf_addr % SQ_BLOCK != 0)) {
        return -EINVAL;
    }
    if (rq_len + sq_len != 0) {
        ret = vhca_pin(in->buf_addr, rq_len + sq_len, true);
        if (ret != 0) {
            return ret;
        }
    }
    ret = vhca_pin(in->db_addr, 8, true);
    if (ret != 0) {
        return ret;
    }

    if (has_rq) {
        attr->rq = (void*)(uintptr_t)in->buf_addr;
    }
    if (sq_len != 0) {
        attr->sq          = (void*)(uintptr_t)(in->buf_addr + rq_len);
        attr->log_sq_size = log2_of(in->sq_wqe_count);
    }
    attr->dbrec = (void*)(uintptr_t)in->db_addr;
    return 0;
}

/* configure_responder_scat_cqe, configure_requester_scat_cqe: a requester that
 * gets no CQE for some of its requests only when it knows what it does */
static void get_scatter(const struct mlx5_ib_create_qp *in,
                        const struct qp_parts *parts, bool sig_all,
                        struct vhca_qp_attr *attr)
{
    if (!(in->flags & MLX5_QP_FLAG_SCATTER_CQE) || (attr->type != VHCA_QP_RC)) {
        return;
    }

    attr->cs_res = (parts->recv_cq->cqe_size == 128) ? 64 : 32;
    if (sig_all || (in->flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE)) {
        attr->cs_req = (parts->send_cq->cqe_size == 128) ? 64 : 32;
    }
}

static void remember(struct vhca_req *req, const struct vhca_qp_attr *attr,
                     struct ib_uverbs_qp_cap *cap, struct vhca_kqp *qp)
{
    /* what there really is */
    cap->max_recv_wr  = (attr->rq != NULL) ? 1u << attr->log_rq_size : 0;
    cap->max_recv_sge = (attr->rq != NULL) ?
                        (1u << attr->log_rq_stride) / WQE_SEGMENT : 0;

    qp->type          = (uint8_t)vhca_req_u64(req, UVERBS_ATTR_CREATE_QP_TYPE,
                                              0);
    qp->state         = IB_QPS_RESET;
    qp->sq_sig_all    = vhca_req_u64(req, UVERBS_ATTR_CREATE_QP_FLAGS, 0) &
                        IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
    qp->max_send_wr   = cap->max_send_wr;
    qp->max_send_sge  = cap->max_send_sge;
    qp->max_inline    = cap->max_inline_data;
    qp->max_recv_wr   = cap->max_recv_wr;
    qp->max_recv_sge  = cap->max_recv_sge;
}

/* The QP in the device, its events, and whom it uses */
static int make_qp(struct vhca_req *req, const struct qp_parts *parts,
                   const struct vhca_qp_attr *attr, struct vhca_uobj **obj_p)
{
    struct vhca_uobj *obj;
    struct vhca_fw fw;
    int ret;

    ret = vhca_uobj_alloc(req->ctx, VHCA_UOBJ_QP, &obj);
    if (ret != 0) {
        return ret;
    }
    if (!vhca_qp_create(attr, &obj->number, &fw)) {
        vhca_uobj_free(req->ctx, obj);
        return vhca_fw_errno(&fw);
    }

    ret = vhca_subscribe_async(req, UVERBS_ATTR_CREATE_QP_EVENT_FD, qp_events,
                               sizeof(qp_events) / sizeof(qp_events[0]),
                               obj->number,
                               vhca_req_u64(
                                       req, UVERBS_ATTR_CREATE_QP_USER_HANDLE,
                                       0));
    if (ret != 0) {
        (void)vhca_uobj_destroy(req->ctx, obj, NULL);
        return ret;
    }

    vhca_uobj_use(obj, parts->pd);
    vhca_uobj_use(obj, parts->send_cq);
    vhca_uobj_use(obj, parts->recv_cq);
    if (parts->srq != NULL) {
        vhca_uobj_use(obj, parts->srq);
    }
    *obj_p = obj;
    return 0;
}

int vhca_qp_obj_create(struct vhca_req *req)
{
    struct mlx5_ib_create_qp_resp uhw = {0};
    struct vhca_qp_attr attr          = {.owner = req->ctx->owner};
    struct mlx5_ib_create_qp in;
    struct ib_uverbs_qp_cap cap;
    struct vhca_uobj *obj = NULL;
    struct qp_parts parts;
    int ret;

    if ((vhca_req_copy(req, UVERBS_ATTR_UHW_IN, &in, sizeof(in)) != 0) ||
        (vhca_req_copy(req, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap)) !=
         0)) {
        return -EINVAL;
    }
    ret = check_kind(req, &in);
    if (ret == 0) {
        ret = get_parts(req, &parts);
    }
    if (ret != 0) {
        return ret;
    }
    if (in.uidx > 0xffffff) {
        return -EINVAL; /* get_qp_user_index */
    }

    attr.type       = (vhca_req_u64(req, UVERBS_ATTR_CREATE_QP_TYPE, 0) ==
                       IB_UVERBS_QPT_UD) ? VHCA_QP_UD : VHCA_QP_RC;
    attr.pdn        = parts.pd->number;
    attr.cqn_snd    = parts.send_cq->number;
    attr.cqn_rcv    = parts.recv_cq->number;
    attr.rmpn       = (parts.srq != NULL) ? parts.srq->number : 0;
    attr.uar_page   = in.bfreg_index;
    attr.user_index = in.uidx;
    attr.verbs      = true;
    get_scatter(&in, &parts,
                vhca_req_u64(req, UVERBS_ATTR_CREATE_QP_FLAGS, 0) &
                IB_UVERBS_QP_CREATE_SQ_SIG_ALL, &attr);
    ret             = get_rings(&in, &cap, &attr);
    if (ret == 0) {
        ret = make_qp(req, &parts, &attr, &obj);
    }
    if (ret != 0) {
        return ret;
    }

    remember(req, &attr, &cap, &obj->qp);
    vhca_req_set_handle(req, UVERBS_ATTR_CREATE_QP_HANDLE, obj->handle);
    vhca_req_reply(req, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
    vhca_req_reply(req, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &obj->number,
                   sizeof(obj->number));
    vhca_req_reply(req, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
    return 0;
}

int vhca_qp_obj_destroy(struct vhca_req *req)
{
    struct ib_uverbs_destroy_qp_resp resp = {0};
    struct vhca_event_counts counts;
    struct vhca_uobj *obj;
    int ret;

    obj = vhca_uobj_get(req->ctx,
                        vhca_req_handle(req, UVERBS_ATTR_DESTROY_QP_HANDLE),
                        VHCA_UOBJ_QP);
    if (obj == NULL) {
        return -ENOENT;
    }

    ret = vhca_uobj_destroy(req->ctx, obj, &counts);
    if (ret == 0) {
        resp.events_reported = counts.async;
        vhca_req_reply(req, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof(resp));
    }

    return ret;
}

/* ---- QUERY_QP ---- */

static uint8_t verbs_state(enum vhca_qp_state state)
{
    switch (state) {
    case VHCA_QP_RST:
        return IB_QPS_RESET;
    case VHCA_QP_INIT:
        return IB_QPS_INIT;
    case VHCA_QP_RTR:
        return IB_QPS_RTR;
    case VHCA_QP_RTS:
        return IB_QPS_RTS;
    case VHCA_QP_SQD:
        return IB_QPS_SQD;
    case VHCA_QP_SQE:
        return IB_QPS_SQE;
    case VHCA_QP_ERR:
        break;
    }

    return IB_QPS_ERR;
}

static void put_dest(const struct vhca_qp_modify *last,
                     struct ib_uverbs_qp_dest *dest)
{
    dest->dlid          = last->rlid;
    dest->sl            = last->sl;
    dest->is_global     = last->grh;
    dest->port_num      = last->port;
    if (last->grh) {
        dest->sgid_index    = last->sgid_index;
        dest->hop_limit     = last->hop_limit;
        dest->traffic_class = last->tclass;
        dest->flow_label    = last->flow_label;
        memcpy(dest->dgid, last->rgid, sizeof(dest->dgid));
    }
}

static void put_attr(const struct vhca_kqp *qp, const struct vhca_qp_info *info,
                     struct ib_uverbs_query_qp_resp *resp)
{
    const struct vhca_qp_modify *last = &info->last;

    resp->qp_state           = verbs_state(info->state);
    resp->cur_qp_state       = resp->qp_state;
    resp->path_mtu           = last->mtu;
    resp->path_mig_state     = IB_MIG_MIGRATED;
    resp->qkey               = last->qkey;
    resp->rq_psn             = last->next_rcv_psn;
    resp->sq_psn             = last->next_send_psn;
    resp->dest_qp_num        = last->remote_qpn;
    resp->qp_access_flags    =
            (last->rwe ? IB_UVERBS_ACCESS_REMOTE_WRITE : 0) |
            (last->rre ? IB_UVERBS_ACCESS_REMOTE_READ : 0) |
            (last->rae ? IB_UVERBS_ACCESS_REMOTE_ATOMIC : 0);
    resp->pkey_index         = last->pkey_index;
    resp->port_num           = last->port;
    resp->max_rd_atomic      = (uint8_t)(1u << last->log_sra_max);
    resp->max_dest_rd_atomic = (uint8_t)(1u << last->log_rra_max);
    resp->min_rnr_timer      = last->min_rnr_nak;
    resp->timeout            = last->ack_timeout;
    resp->retry_cnt          = last->retry_count;
    resp->rnr_retry          = last->rnr_retry;
    resp->sq_sig_all         = qp->sq_sig_all;
    resp->max_send_wr        = qp->max_send_wr;
    resp->max_send_sge       = qp->max_send_sge;
    resp->max_inline_data    = qp->max_inline;
    resp->max_recv_wr        = qp->max_recv_wr;
    resp->max_recv_sge       = qp->max_recv_sge;
    if (qp->type == IB_UVERBS_QPT_RC) {
        put_dest(last, &resp->dest);
    }
}

int vhca_qp_obj_query(struct vhca_req *req)
{
    struct ib_uverbs_query_qp_resp resp;
    struct ib_uverbs_query_qp in;
    struct vhca_qp_info info;
    struct vhca_uobj *obj;
    struct vhca_fw fw;

    if (vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) != 0) {
        return -EINVAL;
    }
    obj = vhca_uobj_get(req->ctx, in.qp_handle, VHCA_UOBJ_QP);
    if (obj == NULL) {
        return -EINVAL;
    }
    if (!vhca_qp_query(req->ctx->owner, obj->number, &info, &fw)) {
        return vhca_fw_errno(&fw);
    }

    memset(&resp, 0, sizeof(resp));
    put_attr(&obj->qp, &info, &resp);
    obj->qp.state = resp.qp_state; /* mlx5_ib_query_qp learns it, too */
    vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
    return 0;
}
