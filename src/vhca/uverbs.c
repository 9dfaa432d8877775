/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The uverbs ioctl: finds the method, checks the attributes against what the
 * method knows (kernel drivers/infiniband/core/uverbs_ioctl.c) and calls it
 * with the context's lock held.
 */

#include <errno.h>
#include <string.h>

#include <rdma/mlx5_user_ioctl_cmds.h>

#include "vhca/kernel.h"

/* Attribute numbers of a method: of the common name space, and the driver's
 * (0x1000 up). Bit n: attribute n is known; needed. */
struct method {
    uint16_t object, method;
    uint16_t core_known, core_need;
    uint16_t drv_known, drv_need;
    bool     before_context; /* may come before GET_CONTEXT */
    int      (*call)(struct vhca_req *req);
};

#define DRV(_attr) ((uint16_t)(1u << ((_attr) & 0xfff)))
#define COR(_attr) ((uint16_t)(1u << (_attr)))
#define UHW        (DRV(UVERBS_ATTR_UHW_IN) | DRV(UVERBS_ATTR_UHW_OUT))

static const struct method methods[] = {
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE,
     0x7, COR(UVERBS_ATTR_WRITE_CMD), UHW, 0, true, vhca_dev_invoke_write},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT,
     0x3, 0, UHW, UHW, true, vhca_dev_get_context},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT,
     0x3, 0, 0x1, 0, false, vhca_dev_query_context},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT,
     0x3, 0x3, 0, 0, false, vhca_dev_query_port},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE,
     0xf, 0xd, 0, 0, false, vhca_dev_query_gid_table},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY,
     0xf, 0xb, 0, 0, false, vhca_dev_query_gid_entry},
    {UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY,
     0x1, 0x1, 0, 0, false, vhca_obj_pd_destroy},
    {UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY,
     0, 0, 0x3, 0x3, false, vhca_obj_pd_query},
    {UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY,
     0x1, 0x1, 0, 0, false, vhca_obj_mr_destroy},
    {UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR,
     0x1f, 0x1, 0, 0, false, vhca_obj_mr_query},
    {UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY,
     0x1, 0x1, 0, 0, false, vhca_obj_ah_destroy},
    {UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE,
     0xff, 0x57, UHW, UHW, false, vhca_obj_cq_create},
    {UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY,
     0x3, 0x3, 0, 0, false, vhca_obj_cq_destroy},
    {UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE,
     0x7fff, 0x6381, UHW, UHW, false, vhca_qp_obj_create},
    {UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY,
     0x3, 0x3, 0, 0, false, vhca_qp_obj_destroy},
    {UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE,
     0x3fff, 0x1af3, UHW, UHW, false, vhca_srq_obj_create},
    {UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY,
     0x3, 0x3, 0, 0, false, vhca_srq_obj_destroy},
    {UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC,
     0x1, 0x1, 0, 0, false, vhca_obj_async_alloc},
    {MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC,
     0, 0, 0x1f, 0x1f, false, vhca_obj_uar_alloc},
    {MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY,
     0, 0, 0x1, 0x1, false, vhca_obj_uar_destroy},
    {MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG,
     0, 0, 0x7f, 0x1f, false, vhca_obj_umem_reg},
    {MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG,
     0, 0, 0x1, 0x1, false, vhca_obj_umem_dereg},
    {MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD,
     MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC,
     0, 0, 0x3, 0x3, false, vhca_obj_event_fd_alloc},
    {MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER,
     0, 0, 0x3, 0x3, false, vhca_devx_other},
    {MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR,
     0, 0, 0x3, 0x3, false, vhca_devx_query_uar},
    {MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN,
     0, 0, 0x3, 0x3, false, vhca_devx_query_eqn},
    {MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT,
     0, 0, 0x1f, 0x5, false, vhca_devx_subscribe_event},
    {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     0, 0, 0x7, 0x7, false, vhca_devx_obj_create},
    {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
     0, 0, 0x1, 0x1, false, vhca_devx_obj_destroy},
    {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
     0, 0, 0x7, 0x7, false, vhca_devx_obj_modify},
    {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY,
     0, 0, 0x7, 0x7, false, vhca_devx_obj_query},
};

/* What this device has no driver support for: the kernel's answer where a
 * device lacks an operation (uverbs_uapi.c: uapi_finalize), not the one for a
 * method it never heard of, on which libibverbs would try older ways. */
static bool known_elsewhere(uint16_t object)
{
    return (object <= UVERBS_OBJECT_ASYNC_EVENT) ||
           ((object >= MLX5_IB_OBJECT_DEVX) &&
            (object <= MLX5_IB_OBJECT_STEERING_ANCHOR));
}

static struct ib_uverbs_attr *find_attr(const struct vhca_req *req, uint16_t id)
{
    unsigned i;

    for (i = 0; i < req->hdr->num_attrs; ++i) {
        if (req->hdr->attrs[i].attr_id == id) {
            return &req->hdr->attrs[i];
        }
    }

    return NULL;
}

bool vhca_req_has(const struct vhca_req *req, uint16_t id)
{
    return find_attr(req, id) != NULL;
}

const void *vhca_req_in(const struct vhca_req *req, uint16_t id, size_t *len_p)
{
    struct ib_uverbs_attr *attr = find_attr(req, id);

    if (attr == NULL) {
        *len_p = 0;
        return NULL;
    }

    /* uverbs_attr_ptr_is_inline: up to 8 bytes lie in the attribute */
    *len_p = attr->len;
    return (attr->len <= sizeof(attr->data)) ?
           (const void*)&attr->data : (const void*)(uintptr_t)attr->data;
}

int vhca_req_copy(const struct vhca_req *req, uint16_t id, void *buf,
                  size_t size)
{
    const void *data;
    size_t len;

    data = vhca_req_in(req, id, &len);
    if (data == NULL) {
        return -ENOENT;
    }

    memset(buf, 0, size);
    memcpy(buf, data, (len < size) ? len : size);
    return 0;
}

uint64_t vhca_req_u64(const struct vhca_req *req, uint16_t id, uint64_t dflt)
{
    uint64_t value;

    return (vhca_req_copy(req, id, &value, sizeof(value)) == 0) ? value : dflt;
}

uint32_t vhca_req_handle(const struct vhca_req *req, uint16_t id)
{
    struct ib_uverbs_attr *attr = find_attr(req, id);

    return (attr != NULL) ? (uint32_t)attr->data : 0;
}

void vhca_req_set_handle(struct vhca_req *req, uint16_t id, int64_t val)
{
    struct ib_uverbs_attr *attr = find_attr(req, id);

    if (attr != NULL) {
        attr->data_s64 = val;
        attr->flags   |= UVERBS_ATTR_F_VALID_OUTPUT;
    }
}

void *vhca_req_out(struct vhca_req *req, uint16_t id, size_t *len_p)
{
    struct ib_uverbs_attr *attr = find_attr(req, id);

    *len_p = (attr != NULL) ? attr->len : 0;
    return (attr != NULL) ? (void*)(uintptr_t)attr->data : NULL;
}

void vhca_req_reply(struct vhca_req *req, uint16_t id, const void *data,
                    size_t len)
{
    struct ib_uverbs_attr *attr = find_attr(req, id);
    size_t size;
    void *out;

    out = vhca_req_out(req, id, &size);
    if (out == NULL) {
        return;
    }

    if (len > size) {
        len = size;
    }

    memcpy(out, data, len);
    memset((char*)out + len, 0, size - len);
    attr->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
}

/* An attribute the method does not know is an error only if the caller cannot
 * do without it; one that is needed and missing always is. */
static int check_attrs(const struct method *m, const struct vhca_req *req)
{
    const struct ib_uverbs_attr *attr;
    uint16_t core = 0, drv = 0, bit;
    unsigned i, id;

    for (i = 0; i < req->hdr->num_attrs; ++i) {
        attr = &req->hdr->attrs[i];
        id   = attr->attr_id & 0xfff;
        bit  = (id < 16) ? (uint16_t)(1u << id) : 0;
        if ((attr->attr_id & UVERBS_ID_NS_MASK) == 0) {
            if (core & bit) {
                return -EINVAL; /* twice */
            }
            core |= bit & m->core_known;
            bit  &= m->core_known;
        } else {
            if (drv & bit) {
                return -EINVAL;
            }
            drv |= bit & m->drv_known;
            bit &= m->drv_known;
        }

        if ((bit == 0) && (attr->flags & UVERBS_ATTR_F_MANDATORY)) {
            return -EPROTONOSUPPORT;
        }
    }

    return ((m->core_need & ~core) || (m->drv_need & ~drv)) ? -EINVAL : 0;
}

int vhca_uverbs_ioctl(struct vhca_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
    struct vhca_req req    = {.ctx = ctx, .hdr = hdr};
    const struct method *m = NULL;
    unsigned i;
    int ret;

    /* ib_uverbs_ioctl, ib_uverbs_cmd_verbs: in this order */
    if ((hdr->length > VHCA_PAGE_SIZE) ||
        (hdr->length != sizeof(*hdr) + hdr->num_attrs *
                        sizeof(hdr->attrs[0]))) {
        return -EINVAL;
    }

    if ((hdr->reserved1 != 0) || (hdr->reserved2 != 0)) {
        return -EPROTONOSUPPORT;
    }

    if (hdr->driver_id != 1 /* RDMA_DRIVER_MLX5 */) {
        return -EINVAL;
    }

    for (i = 0; i < sizeof(methods) / sizeof(methods[0]); ++i) {
        if ((methods[i].object == hdr->object_id) &&
            (methods[i].method == hdr->method_id)) {
            m = &methods[i];
            break;
        }
    }

    if (m == NULL) {
        return known_elsewhere(hdr->object_id) ? -EOPNOTSUPP :
                                                 -EPROTONOSUPPORT;
    }

    ret = check_attrs(m, &req);
    if (ret != 0) {
        return ret;
    }

    pthread_mutex_lock(&ctx->lock);
    if (vhca_device_removed()) {
        /* uverbs_destroy_ufile_hw: the kernel has destroyed what there was,
         * and the queues' pages are the program's own again */
        vhca_uobj_destroy_all(ctx);
        pthread_mutex_unlock(&ctx->lock);
        return -EIO;
    }
    ret = (ctx->opened || m->before_context) ? m->call(&req) : -EINVAL;
    pthread_mutex_unlock(&ctx->lock);
    return ret;
}
