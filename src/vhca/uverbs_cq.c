/* SPDX-License-Identifier: BSD-3-Clause */

/* Verbs completion queues, with or without a completion channel. */

#include <errno.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "vhca/kernel.h"

/* PRM event types (mlx5_ifc.h) */
#define EVENT_COMPLETION 0x00
#define EVENT_CQ_ERROR   0x04

/* mlx5_ib_create_cq: room for one entry more than asked for */
static int cq_log_size(uint64_t cqe, uint8_t *log_size_p)
{
    uint8_t log = 0;

    if ((cqe == 0) || (cqe >= (1ull << VHCA_LOG_MAX_CQ_SZ))) {
        return -EINVAL;
    }

    while ((1ull << log) < cqe + 1) {
        ++log;
    }

    *log_size_p = log;
    return 0;
}

/* The queue is not translated by a umem: it is pinned and checked here. */
static int cq_attr(struct vhca_req *req, const struct mlx5_ib_create_cq *in,
                   struct vhca_cq_attr *attr)
{
    const uint64_t mask = MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD |
                          MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
    uint64_t flags;
    int ret;

    ret = cq_log_size(vhca_req_u64(req, UVERBS_ATTR_CREATE_CQ_CQE, 0),
                      &attr->log_size);
    if (ret != 0) {
        return ret;
    }

    flags = vhca_req_u64(req, UVERBS_ATTR_CREATE_CQ_FLAGS, 0);
    if (flags & ~(uint64_t)IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) {
        return -EOPNOTSUPP;
    }
    if ((in->flags & ~mask) || in->cqe_comp_en || in->cqe_comp_res_format ||
        in->reserved0 || in->reserved1 ||
        ((in->cqe_size != 64) && (in->cqe_size != 128)) ||
        (in->buf_addr % VHCA_PAGE_SIZE != 0) || (in->db_addr % 8 != 0)) {
        return -EINVAL; /* create_cq_user */
    }
    if (!(in->flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) ||
        (vhca_uobj_by_number(req->ctx, in->uar_page_index, VHCA_UOBJ_UAR) ==
         NULL)) {
        return -EINVAL;
    }

    ret = vhca_pin(in->buf_addr, (uint64_t)in->cqe_size << attr->log_size,
                   true);
    if (ret == 0) {
        ret = vhca_pin(in->db_addr, 8, true);
    }
    if (ret != 0) {
        return ret;
    }

    attr->owner    = req->ctx->owner;
    attr->ring     = (void*)(uintptr_t)in->buf_addr;
    attr->cqe_size = (uint8_t)in->cqe_size;
    attr->dbrec    = (void*)(uintptr_t)in->db_addr;
    attr->uar_page = in->uar_page_index;
    attr->oi       = flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
    attr->verbs    = true;
    return 0;
}

int vhca_subscribe_async(struct vhca_req *req, uint16_t id,
                         const uint16_t *types, unsigned num, uint32_t number,
                         uint64_t cookie)
{
    uint32_t async;
    unsigned i;
    int ret;

    if (!vhca_req_has(req, id)) {
        return 0;
    }
    if (!vhca_fd_channel(req->ctx, (int)vhca_req_handle(req, id),
                         VHCA_CHANNEL_ASYNC, &async)) {
        return -EBADF;
    }

    for (i = 0; i < num; ++i) {
        ret = vhca_event_subscribe(async, types[i], number, cookie);
        if (ret != 0) {
            return ret;
        }
    }

    return 0;
}

/* Errors of the queue go to the file of asynchronous events, completions to its
 * channel if it has one. */
static int subscribe(struct vhca_req *req, uint32_t cqn)
{
    static const uint16_t types[] = {EVENT_CQ_ERROR};
    const uint16_t id             = UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL;
    uint64_t cookie = vhca_req_u64(req, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 0);
    uint32_t comp;
    int ret;

    ret = vhca_subscribe_async(req, UVERBS_ATTR_CREATE_CQ_EVENT_FD, types, 1,
                               cqn, cookie);
    if ((ret != 0) || !vhca_req_has(req, id)) {
        return ret;
    }

    return vhca_fd_channel(req->ctx, (int)vhca_req_handle(req, id),
                           VHCA_CHANNEL_COMP, &comp) ?
           vhca_event_subscribe(comp, EVENT_COMPLETION, cqn, cookie) : -EBADF;
}

int vhca_obj_cq_create(struct vhca_req *req)
{
    struct mlx5_ib_create_cq_resp uhw = {0};
    struct vhca_cq_attr attr          = {0};
    struct mlx5_ib_create_cq in;
    struct vhca_uobj *obj;
    struct vhca_fw fw;
    uint32_t cqe;
    int ret;

    if (vhca_req_u64(req, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0) >=
        VHCA_COMP_VECTORS) {
        return -EINVAL;
    }

    ret = vhca_req_copy(req, UVERBS_ATTR_UHW_IN, &in, sizeof(in));
    if (ret != 0) {
        return -EINVAL;
    }

    ret = cq_attr(req, &in, &attr);
    if (ret != 0) {
        return ret;
    }

    ret = vhca_uobj_alloc(req->ctx, VHCA_UOBJ_CQ, &obj);
    if (ret != 0) {
        return ret;
    }

    if (!vhca_cq_create(&attr, &obj->number, &fw)) {
        vhca_uobj_free(req->ctx, obj);
        return (fw.status == VHCA_FW_EXCEED_LIM) ? -ENOMEM : -EINVAL;
    }

    ret = subscribe(req, obj->number);
    if (ret != 0) {
        (void)vhca_uobj_destroy(req->ctx, obj, NULL);
        return ret;
    }

    cqe           = (1u << attr.log_size) - 1;
    uhw.cqn       = obj->number;
    obj->cqe_size = attr.cqe_size;
    vhca_req_set_handle(req, UVERBS_ATTR_CREATE_CQ_HANDLE, obj->handle);
    vhca_req_reply(req, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe, sizeof(cqe));
    vhca_req_reply(req, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
    return 0;
}

/* mlx5_ib_resize_cq. The size of entries is the CQ's: libmlx5 knows no other
 * way. */
int vhca_obj_cq_resize(struct vhca_req *req)
{
    struct ib_uverbs_resize_cq_resp resp = {0};
    struct ib_uverbs_resize_cq in;
    struct mlx5_ib_resize_cq drv;
    struct vhca_uobj *obj;
    struct vhca_fw fw;
    uint8_t log_size;
    int ret;

    if ((vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) != 0) ||
        (vhca_req_copy(req, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv)) != 0)) {
        return -EINVAL;
    }
    obj = vhca_uobj_get(req->ctx, in.cq_handle, VHCA_UOBJ_CQ);
    if (obj == NULL) {
        return -EINVAL;
    }

    ret = cq_log_size(in.cqe, &log_size);
    if (ret != 0) {
        return ret;
    }
    if (drv.reserved0 || drv.reserved1 || (drv.cqe_size != obj->cqe_size) ||
        (drv.buf_addr % VHCA_PAGE_SIZE != 0)) {
        return -EINVAL;
    }

    ret = vhca_pin(drv.buf_addr, (uint64_t)drv.cqe_size << log_size, true);
    if (ret != 0) {
        return ret;
    }
    if (!vhca_cq_resize(req->ctx->owner, obj->number,
                        (void*)(uintptr_t)drv.buf_addr, log_size, &fw)) {
        return vhca_fw_errno(&fw);
    }

    resp.cqe = (1u << log_size) - 1;
    vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
    return 0;
}

int vhca_obj_cq_destroy(struct vhca_req *req)
{
    struct ib_uverbs_destroy_cq_resp resp = {0};
    struct vhca_event_counts counts;
    struct vhca_uobj *obj;
    int ret;

    obj = vhca_uobj_get(req->ctx,
                        vhca_req_handle(req, UVERBS_ATTR_DESTROY_CQ_HANDLE),
                        VHCA_UOBJ_CQ);
    if (obj == NULL) {
        return -ENOENT;
    }

    ret = vhca_uobj_destroy(req->ctx, obj, &counts);
    if (ret == 0) {
        /* libibverbs waits until as many are acknowledged */
        resp.comp_events_reported  = counts.comp;
        resp.async_events_reported = counts.async;
        vhca_req_reply(req, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof(resp));
    }

    return ret;
}
