/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory regions: REG_MR, REREG_MR, and the methods of the MR object. */

#include <errno.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include "vhca/fault.h"
#include "vhca/kernel.h"

/* ib_verbs.h of the kernel, ib_mr_rereg_flags */
enum {
    REREG_TRANS  = 1 << 0,
    REREG_PD     = 1 << 1,
    REREG_ACCESS = 1 << 2
};

/* ib_check_mr_access, mlx5_ib_reg_user_mr */
static int check_access(uint32_t access)
{
    const uint32_t known = 0xff | IB_UVERBS_ACCESS_OPTIONAL_RANGE;

    if (access & ~known) {
        return -EINVAL;
    }
    if ((access & (IB_UVERBS_ACCESS_REMOTE_WRITE |
                   IB_UVERBS_ACCESS_REMOTE_ATOMIC)) &&
        !(access & IB_UVERBS_ACCESS_LOCAL_WRITE)) {
        return -EINVAL;
    }

    return (access & (IB_UVERBS_ACCESS_ON_DEMAND | IB_UVERBS_ACCESS_MW_BIND)) ?
           -EOPNOTSUPP : 0;
}

/* ib_uverbs_reg_mr, ib_uverbs_rereg_mr: both addresses lie alike in a page */
static int check_range(uint64_t start, uint64_t hca_va)
{
    return ((start % VHCA_PAGE_SIZE) != (hca_va % VHCA_PAGE_SIZE)) ?
           -EINVAL : 0;
}

static void set_access(struct vhca_mkey_attr *attr, uint32_t access)
{
    attr->lr = true;
    attr->lw = access & IB_UVERBS_ACCESS_LOCAL_WRITE;
    attr->rr = access & IB_UVERBS_ACCESS_REMOTE_READ;
    attr->rw = access & IB_UVERBS_ACCESS_REMOTE_WRITE;
    attr->a  = access & IB_UVERBS_ACCESS_REMOTE_ATOMIC;
}

int vhca_obj_reg_mr(struct vhca_req *req)
{
    struct ib_uverbs_reg_mr_resp resp = {0};
    struct vhca_mkey_attr attr        = {0};
    struct vhca_fw fw;
    struct ib_uverbs_reg_mr in;
    struct vhca_uobj *pd, *obj;
    int ret;

    if (vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) != 0) {
        return -EINVAL;
    }

    ret = check_range(in.start, in.hca_va) ?: check_access(in.access_flags);
    if (ret != 0) {
        return ret;
    }

    pd = vhca_uobj_get(req->ctx, in.pd_handle, VHCA_UOBJ_PD);
    if (pd == NULL) {
        return -EINVAL;
    }

    ret = vhca_pin(in.start, in.length,
                   in.access_flags & IB_UVERBS_ACCESS_LOCAL_WRITE);
    if (ret != 0) {
        return ret;
    }

    ret = vhca_uobj_alloc(req->ctx, VHCA_UOBJ_MR, &obj);
    if (ret != 0) {
        return ret;
    }

    attr.owner    = req->ctx->owner;
    attr.pdn      = pd->number;
    attr.start    = in.hca_va;
    attr.len      = in.length;
    attr.va_delta = in.start - in.hca_va;
    attr.qpn      = 0xffffff;
    attr.tag      = req->ctx->next_tag++;
    set_access(&attr, in.access_flags);
    if (vhca_fault_cmd(0x200 /* CREATE_MKEY */, &fw) ||
        !vhca_mkey_create(&attr, &obj->number, &fw)) {
        vhca_uobj_free(req->ctx, obj);
        return (fw.status == VHCA_FW_EXCEED_LIM) ? -ENOMEM : -EINVAL;
    }

    vhca_uobj_use(obj, pd);
    resp.mr_handle = obj->handle;
    resp.lkey      = obj->number << 8 | attr.tag;
    resp.rkey      = resp.lkey;
    vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
    return 0;
}

/* The memory that the changed MR pins, if it is other memory or is written
 * where it was not before */
static int rereg_pin(const struct ib_uverbs_rereg_mr *in,
                     const struct vhca_mkey_attr *old,
                     const struct vhca_mkey_attr *attr)
{
    if (!(in->flags & REREG_TRANS) && (old->lw || !attr->lw)) {
        return 0;
    }

    return vhca_pin(attr->start + attr->va_delta, attr->len, attr->lw);
}

/*
 * ib_uverbs_rereg_mr. mlx5_ib changes the key where UMR can, and makes a new
 * one where it cannot (mlx5_ib_rereg_user_mr); here it always can, so that the
 * key stays.
 */
int vhca_obj_rereg_mr(struct vhca_req *req)
{
    struct ib_uverbs_rereg_mr_resp resp = {0};
    struct vhca_mkey_attr attr, old;
    struct ib_uverbs_rereg_mr in;
    struct vhca_uobj *mr, *pd;
    struct vhca_fw fw;
    int ret;

    if ((vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) != 0) ||
        (in.flags == 0)) {
        return -EINVAL;
    }
    if (in.flags & ~(uint32_t)(REREG_TRANS | REREG_PD | REREG_ACCESS)) {
        return -EOPNOTSUPP;
    }

    ret = (in.flags & REREG_TRANS) ? check_range(in.start, in.hca_va) : 0;
    if (ret != 0) {
        return ret;
    }

    mr = vhca_uobj_get(req->ctx, in.mr_handle, VHCA_UOBJ_MR);
    if (mr == NULL) {
        return -ENOENT;
    }

    ret = (in.flags & REREG_ACCESS) ? check_access(in.access_flags) : 0;
    if (ret != 0) {
        return ret;
    }

    pd = (in.flags & REREG_PD) ?
         vhca_uobj_get(req->ctx, in.pd_handle, VHCA_UOBJ_PD) : mr->uses[0];
    if ((pd == NULL) ||
        !vhca_mkey_query(req->ctx->owner, mr->number, &old, &fw)) {
        return -EINVAL;
    }

    attr     = old;
    attr.pdn = pd->number;
    if (in.flags & REREG_TRANS) {
        attr.start    = in.hca_va;
        attr.len      = in.length;
        attr.va_delta = in.start - in.hca_va;
    }
    if (in.flags & REREG_ACCESS) {
        set_access(&attr, in.access_flags);
    }

    ret = rereg_pin(&in, &old, &attr);
    if (ret != 0) {
        return ret;
    }

    if (!vhca_mkey_modify(mr->number, &attr, &fw)) {
        return vhca_fw_errno(&fw);
    }

    --mr->uses[0]->users;
    mr->uses[0] = pd;
    ++pd->users;
    resp.lkey = mr->number << 8 | attr.tag;
    resp.rkey = resp.lkey;
    vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
    return 0;
}

int vhca_obj_mr_destroy(struct vhca_req *req)
{
    struct vhca_uobj *mr;

    mr = vhca_uobj_get(req->ctx,
                       vhca_req_handle(req, UVERBS_ATTR_DESTROY_MR_HANDLE),
                       VHCA_UOBJ_MR);
    return (mr != NULL) ? vhca_uobj_destroy(req->ctx, mr, NULL) : -ENOENT;
}

int vhca_obj_mr_query(struct vhca_req *req)
{
    struct vhca_mkey_attr attr;
    struct vhca_uobj *mr;
    struct vhca_fw fw;
    uint32_t key;

    mr = vhca_uobj_get(req->ctx,
                       vhca_req_handle(req, UVERBS_ATTR_QUERY_MR_HANDLE),
                       VHCA_UOBJ_MR);
    if (mr == NULL) {
        return -ENOENT;
    }
    if (!vhca_mkey_query(req->ctx->owner, mr->number, &attr, &fw)) {
        return -EINVAL;
    }

    key = mr->number << 8 | attr.tag;
    vhca_req_reply(req, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &key, sizeof(key));
    vhca_req_reply(req, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &key, sizeof(key));
    vhca_req_reply(req, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &attr.len,
                   sizeof(attr.len));
    vhca_req_reply(req, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &attr.start,
                   sizeof(attr.start));
    return 0;
}
