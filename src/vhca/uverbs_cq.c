/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Verbs completion queues, without completion channels: what libraries make to
 * see whether a device works. There are no verbs QPs to complete anything.
 */

#include <errno.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "vhca/kernel.h"

#define EVENT_CQ_ERROR 0x04 /* PRM event type (mlx5_ifc.h) */

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

/* Errors of the queue go to the file of asynchronous events. */
static int subscribe(struct vhca_req *req, uint32_t cqn)
{
    const uint16_t id = UVERBS_ATTR_CREATE_CQ_EVENT_FD;
    uint32_t async;

    if (!vhca_req_has(req, id)) {
        return 0;
    }
    if (!vhca_fd_channel(req->ctx, (int)vhca_req_handle(req, id),
                         VHCA_CHANNEL_ASYNC, &async)) {
        return -EBADF;
    }

    return vhca_event_subscribe(async, EVENT_CQ_ERROR, cqn,
                                vhca_req_u64(req,
                                             UVERBS_ATTR_CREATE_CQ_USER_HANDLE,
                                             0));
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

    /* UCX' interfaces ask for a channel first. Refused only afterwards, at the
     * QP, UCX 1.13 would crash: uct_ud_mlx5_iface destroys a QP it has not
     * got. */
    if (vhca_req_has(req, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL)) {
        return -EOPNOTSUPP;
    }
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

    cqe     = (1u << attr.log_size) - 1;
    uhw.cqn = obj->number;
    vhca_req_set_handle(req, UVERBS_ATTR_CREATE_CQ_HANDLE, obj->handle);
    vhca_req_reply(req, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe, sizeof(cqe));
    vhca_req_reply(req, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
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
