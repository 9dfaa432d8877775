/* SPDX-License-Identifier: BSD-3-Clause */

/* Verbs shared receive queues: a linked list of WQEs, as libmlx5 makes it
 * (kernel hw/mlx5/srq.c). */

#include <errno.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "vhca/kernel.h"

/* Attribute mask of MODIFY_SRQ (enum ib_srq_attr_mask) */
enum {
    IB_SRQ_MAX_WR = 1 << 0,
    IB_SRQ_LIMIT  = 1 << 1
};

#define SRQ_WQE_MIN 32u
#define SEGMENT     16u

/* PRM event types of an SRQ: catastrophic error, limit reached */
static const uint16_t srq_events[] = {0x12, 0x14};

static uint8_t log2_up(uint32_t n)
{
    uint8_t log = 0;

    while ((1u << log) < n) {
        ++log;
    }

    return log;
}

/* mlx5_ib_create_srq, create_srq_user: sizes follow from what was asked for */
static int get_attr(struct vhca_req *req, const struct mlx5_ib_create_srq *in,
                    struct vhca_rmp_attr *attr, struct vhca_ksrq *srq)
{
    uint64_t max_wr  = vhca_req_u64(req, UVERBS_ATTR_CREATE_SRQ_MAX_WR, 0);
    uint64_t max_sge = vhca_req_u64(req, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 0);
    uint32_t size;
    int ret;

    if ((in->flags & ~(uint32_t)MLX5_SRQ_FLAG_SIGNATURE) || in->reserved0 ||
        in->reserved1 || (in->db_addr % 4 != 0) ||
        (max_wr >= (1u << VHCA_LOG_MAX_SRQ_SZ)) ||
        (max_sge >= (1u << VHCA_LOG_MAX_STRIDE) / SEGMENT)) {
        return -EINVAL;
    }
    if (in->flags & MLX5_SRQ_FLAG_SIGNATURE) {
        return -EOPNOTSUPP;
    }

    size             = SEGMENT + (uint32_t)max_sge * SEGMENT;
    attr->log_stride = log2_up((size < SRQ_WQE_MIN) ? SRQ_WQE_MIN : size);
    attr->log_size   = log2_up((uint32_t)max_wr + 1);
    if (in->buf_addr % (1u << attr->log_stride) != 0) {
        return -EINVAL;
    }

    ret = vhca_pin(in->buf_addr, 1ull << (attr->log_size + attr->log_stride),
                   true);
    if (ret == 0) {
        ret = vhca_pin(in->db_addr, 4, true);
    }
    if (ret != 0) {
        return ret;
    }

    attr->ring   = (void*)(uintptr_t)in->buf_addr;
    attr->dbrec  = (void*)(uintptr_t)in->db_addr;
    srq->max_wr  = (1u << attr->log_size) - 1;
    srq->max_sge = (uint32_t)max_sge;
    return 0;
}

static int make_srq(struct vhca_req *req, const struct vhca_rmp_attr *attr,
                    struct vhca_uobj **obj_p)
{
    uint32_t limit = (uint32_t)vhca_req_u64(req, UVERBS_ATTR_CREATE_SRQ_LIMIT,
                                            0);
    struct vhca_uobj *obj;
    struct vhca_fw fw;
    int ret;

    ret = vhca_uobj_alloc(req->ctx, VHCA_UOBJ_SRQ, &obj);
    if (ret != 0) {
        return ret;
    }
    if (!vhca_rmp_create(attr, &obj->number, &fw)) {
        vhca_uobj_free(req->ctx, obj);
        return vhca_fw_errno(&fw);
    }

    ret = vhca_subscribe_async(req, UVERBS_ATTR_CREATE_SRQ_EVENT_FD,
                               srq_events,
                               sizeof(srq_events) / sizeof(srq_events[0]),
                               obj->number,
                               vhca_req_u64(
                                       req, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE,
                                       0));
    if ((ret == 0) && !vhca_rmp_set_limit(req->ctx->owner, obj->number, limit,
                                          &fw)) {
        ret = vhca_fw_errno(&fw);
    }
    if (ret != 0) {
        (void)vhca_uobj_destroy(req->ctx, obj, NULL);
        return ret;
    }

    *obj_p = obj;
    return 0;
}

int vhca_srq_obj_create(struct vhca_req *req)
{
    struct vhca_rmp_attr attr = {.owner = req->ctx->owner};
    struct mlx5_ib_create_srq_resp uhw = {0};
    struct mlx5_ib_create_srq in;
    struct vhca_uobj *pd, *obj = NULL;
    struct vhca_ksrq srq;
    int ret;

    if (vhca_req_copy(req, UVERBS_ATTR_UHW_IN, &in, sizeof(in)) != 0) {
        return -EINVAL;
    }
    if (vhca_req_u64(req, UVERBS_ATTR_CREATE_SRQ_TYPE, 0) !=
        IB_UVERBS_SRQT_BASIC) {
        return -EOPNOTSUPP; /* no XRC, no tag matching */
    }

    pd = vhca_uobj_get(req->ctx,
                       vhca_req_handle(req, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE),
                       VHCA_UOBJ_PD);
    if (pd == NULL) {
        return -ENOENT;
    }

    attr.pdn = pd->number;
    ret      = get_attr(req, &in, &attr, &srq);
    if (ret == 0) {
        ret = make_srq(req, &attr, &obj);
    }
    if (ret != 0) {
        return ret;
    }

    vhca_uobj_use(obj, pd);
    obj->srq = srq;
    uhw.srqn = obj->number;
    vhca_req_set_handle(req, UVERBS_ATTR_CREATE_SRQ_HANDLE, obj->handle);
    vhca_req_reply(req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &srq.max_wr,
                   sizeof(srq.max_wr));
    vhca_req_reply(req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &srq.max_sge,
                   sizeof(srq.max_sge));
    vhca_req_reply(req, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
    return 0;
}

int vhca_srq_obj_destroy(struct vhca_req *req)
{
    struct ib_uverbs_destroy_srq_resp resp = {0};
    struct vhca_event_counts counts;
    struct vhca_uobj *obj;
    int ret;

    obj = vhca_uobj_get(req->ctx,
                        vhca_req_handle(req, UVERBS_ATTR_DESTROY_SRQ_HANDLE),
                        VHCA_UOBJ_SRQ);
    if (obj == NULL) {
        return -ENOENT;
    }

    ret = vhca_uobj_destroy(req->ctx, obj, &counts);
    if (ret == 0) {
        resp.events_reported = counts.async;
        vhca_req_reply(req, UVERBS_ATTR_DESTROY_SRQ_RESP, &resp, sizeof(resp));
    }

    return ret;
}

int vhca_srq_obj_modify(struct vhca_req *req)
{
    struct ib_uverbs_modify_srq in;
    struct vhca_uobj *obj;
    struct vhca_fw fw;

    if (vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) != 0) {
        return -EINVAL;
    }
    obj = vhca_uobj_get(req->ctx, in.srq_handle, VHCA_UOBJ_SRQ);
    if (obj == NULL) {
        return -EINVAL;
    }

    /* mlx5_ib_modify_srq: SRQs are not resized; a limit is below the size */
    if (in.attr_mask & IB_SRQ_MAX_WR) {
        return -EINVAL;
    }
    if (!(in.attr_mask & IB_SRQ_LIMIT)) {
        return 0;
    }
    if (in.srq_limit > obj->srq.max_wr) {
        return -EINVAL;
    }

    return vhca_rmp_set_limit(req->ctx->owner, obj->number, in.srq_limit,
                              &fw) ? 0 : vhca_fw_errno(&fw);
}

int vhca_srq_obj_query(struct vhca_req *req)
{
    struct ib_uverbs_query_srq_resp resp = {0};
    struct ib_uverbs_query_srq in;
    struct vhca_uobj *obj;
    struct vhca_fw fw;

    if (vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) != 0) {
        return -EINVAL;
    }
    obj = vhca_uobj_get(req->ctx, in.srq_handle, VHCA_UOBJ_SRQ);
    if (obj == NULL) {
        return -EINVAL;
    }
    if (!vhca_rmp_get_limit(req->ctx->owner, obj->number, &resp.srq_limit,
                            &fw)) {
        return vhca_fw_errno(&fw);
    }

    resp.max_wr  = obj->srq.max_wr;
    resp.max_sge = obj->srq.max_sge;
    vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
    return 0;
}
