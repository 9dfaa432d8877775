/* SPDX-License-Identifier: BSD-3-Clause */

/* Methods of the objects beside DevX: PD, AH, UAR, umem, event files. */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include "vhca/kernel.h"

/* Page ids are no handles, and no page offsets that other files use. */
#define UAR_PAGE_BASE 0x1000u

static int destroy_handle(struct vhca_req *req, uint16_t attr,
                          enum vhca_uobj_kind kind)
{
    struct vhca_uobj *obj;

    obj = vhca_uobj_get(req->ctx, vhca_req_handle(req, attr), kind);
    return (obj != NULL) ? vhca_uobj_destroy(req->ctx, obj, NULL) : -ENOENT;
}

/* ---- PD ---- */

int vhca_obj_alloc_pd(struct vhca_req *req)
{
    struct ib_uverbs_alloc_pd_resp resp = {0};
    struct mlx5_ib_alloc_pd_resp uhw;
    struct vhca_uobj *obj;
    int ret;

    ret = vhca_uobj_alloc(req->ctx, VHCA_UOBJ_PD, &obj);
    if (ret != 0) {
        return ret;
    }

    ret = vhca_pd_alloc(req->ctx->owner, &obj->number);
    if (ret != 0) {
        vhca_uobj_free(req->ctx, obj);
        return ret;
    }

    resp.pd_handle = obj->handle;
    uhw.pdn        = obj->number;
    vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp.pd_handle));
    vhca_req_reply(req, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
    return 0;
}

int vhca_obj_pd_destroy(struct vhca_req *req)
{
    return destroy_handle(req, UVERBS_ATTR_DESTROY_PD_HANDLE, VHCA_UOBJ_PD);
}

int vhca_obj_pd_query(struct vhca_req *req)
{
    struct vhca_uobj *pd;

    pd = vhca_uobj_get(req->ctx,
                       vhca_req_handle(req, MLX5_IB_ATTR_QUERY_PD_HANDLE),
                       VHCA_UOBJ_PD);
    if (pd == NULL) {
        return -ENOENT;
    }

    vhca_req_reply(req, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &pd->number,
                   sizeof(pd->number));
    return 0;
}

/* ---- AH: libmlx5 asks for the peer's Ethernet address ---- */

int vhca_obj_create_ah(struct vhca_req *req)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(req->ctx->dev);
    struct ib_uverbs_create_ah_resp resp = {0};
    struct mlx5_ib_create_ah_resp uhw    = {0};
    struct ib_uverbs_create_ah in;
    struct vhca_uobj *pd, *obj;
    int ret;

    if (vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) != 0) {
        return -EINVAL;
    }

    pd = vhca_uobj_get(req->ctx, in.pd_handle, VHCA_UOBJ_PD);
    if (pd == NULL) {
        return -EINVAL;
    }

    /* ib_uverbs_create_ah, rdma_fill_sgid_attr, ib_resolve_eth_dmac */
    if ((in.attr.port_num != 1) ||
        (in.attr.is_global && (in.attr.grh.sgid_index >= port->num_gids)) ||
        (port->roce && !in.attr.is_global)) {
        return -EINVAL;
    }
    if (port->roce && !vhca_gid_to_mac(in.attr.grh.dgid, uhw.dmac)) {
        return -EHOSTUNREACH; /* nobody answers for the address */
    }

    ret = vhca_uobj_alloc(req->ctx, VHCA_UOBJ_AH, &obj);
    if (ret != 0) {
        return ret;
    }

    vhca_uobj_use(obj, pd);
    resp.ah_handle      = obj->handle;
    uhw.response_length = sizeof(uhw);
    vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp.ah_handle));
    vhca_req_reply(req, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
    return 0;
}

int vhca_obj_ah_destroy(struct vhca_req *req)
{
    return destroy_handle(req, UVERBS_ATTR_DESTROY_AH_HANDLE, VHCA_UOBJ_AH);
}

/* ---- UAR ---- */

int vhca_obj_uar_alloc(struct vhca_req *req)
{
    uint32_t length = VHCA_PAGE_SIZE;
    struct vhca_uobj *obj;
    uint64_t type, offset;
    int ret;

    type = vhca_req_u64(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 0);
    if ((type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF) &&
        (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)) {
        return -EOPNOTSUPP;
    }

    ret = vhca_uobj_alloc(req->ctx, VHCA_UOBJ_UAR, &obj);
    if (ret != 0) {
        return ret;
    }

    obj->number = UAR_PAGE_BASE + obj->handle;
    offset      = (uint64_t)obj->number * VHCA_PAGE_SIZE;
    vhca_stat_add("uar", 1);
    vhca_req_set_handle(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, obj->handle);
    vhca_req_reply(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset,
                   sizeof(offset));
    vhca_req_reply(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length,
                   sizeof(length));
    vhca_req_reply(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &obj->number,
                   sizeof(obj->number));
    return 0;
}

int vhca_obj_uar_destroy(struct vhca_req *req)
{
    return destroy_handle(req, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE,
                          VHCA_UOBJ_UAR);
}

/* ---- umem ---- */

int vhca_obj_umem_reg(struct vhca_req *req)
{
    struct vhca_uobj *obj;
    uint64_t bitmap;
    uint32_t id;
    int ret;

    if (!req->ctx->devx) {
        return -EINVAL; /* devx.c: a context without a user id */
    }
    if (vhca_req_has(req, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD)) {
        return -EOPNOTSUPP;
    }

    bitmap = vhca_req_u64(req, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP,
                          ~(uint64_t)(VHCA_PAGE_SIZE - 1));
    ret    = vhca_umem_reg(req->ctx,
                           vhca_req_u64(req,
                                        MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 0),
                           vhca_req_u64(req, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN,
                                        0),
                           (uint32_t)vhca_req_u64(
                                   req, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 0),
                           bitmap, &obj);
    if (ret != 0) {
        return ret;
    }

    id = vhca_umem_id(obj);
    vhca_req_set_handle(req, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, obj->handle);
    vhca_req_reply(req, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, &id, sizeof(id));
    return 0;
}

int vhca_obj_umem_dereg(struct vhca_req *req)
{
    return destroy_handle(req, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE,
                          VHCA_UOBJ_UMEM);
}

/* ---- event files ---- */

static int new_channel(struct vhca_req *req, enum vhca_channel_kind kind,
                       bool omit_data, int *fd_p)
{
    uint32_t chan;
    int fd, ret;

    ret = vhca_channel_create(req->ctx->owner, kind, omit_data, &fd, &chan);
    if (ret != 0) {
        return ret;
    }

    ret = vhca_fd_add_channel(req->ctx, fd, chan, kind);
    if (ret != 0) {
        vhca_channel_destroy(chan);
        close(fd);
        return ret;
    }

    *fd_p = fd;
    return 0;
}

int vhca_obj_async_alloc(struct vhca_req *req)
{
    int fd, ret;

    ret = new_channel(req, VHCA_CHANNEL_ASYNC, false, &fd);
    if (ret == 0) {
        vhca_req_set_handle(req, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, fd);
    }

    return ret;
}

int vhca_obj_comp_channel(struct vhca_req *req)
{
    struct ib_uverbs_create_comp_channel_resp resp;
    int fd, ret;

    ret = new_channel(req, VHCA_CHANNEL_COMP, false, &fd);
    if (ret == 0) {
        resp.fd = (uint32_t)fd;
        vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
    }

    return ret;
}

int vhca_obj_event_fd_alloc(struct vhca_req *req)
{
    uint64_t flags;
    int fd, ret;

    flags = vhca_req_u64(req, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, 0);
    if (flags & ~(uint64_t)MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA) {
        return -EINVAL; /* uverbs_get_flags32 */
    }

    ret = new_channel(req, VHCA_CHANNEL_DEVX_EVENT,
                      flags & MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA, &fd);
    if (ret == 0) {
        vhca_req_set_handle(req, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE,
                            fd);
    }

    return ret;
}
