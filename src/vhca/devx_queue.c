/* SPDX-License-Identifier: BSD-3-Clause */

/* CREATE_CQ, CREATE_RMP, and how a queue lies in umems. */

#include "vhca/kernel.h"
#include "vhca/prm_table.h"

/* RMP states and work queue types (PRM rmpc.state, wq.wq_type) */
enum {
    RMPC_STATE_RDY     = 1,
    WQ_TYPE_LINKED     = 0,
    WQ_TYPE_CYCLIC     = 1,
    WQ_LOG_STRIDE_MIN  = 4  /* one 16-byte segment */
};

struct vhca_uobj *vhca_cmd_pd(struct vhca_cmd *cmd, uint32_t pdn)
{
    struct vhca_uobj *pd = vhca_uobj_by_number(cmd->ctx, pdn, VHCA_UOBJ_PD);

    if (pd == NULL) {
        (void)vhca_cmd_fail(cmd, VHCA_FW_BAD_RESOURCE, VHCA_SYN_PD);
    }

    return pd;
}

bool vhca_cmd_uar(struct vhca_cmd *cmd, uint32_t page_id)
{
    return (vhca_uobj_by_number(cmd->ctx, page_id, VHCA_UOBJ_UAR) != NULL) ||
           vhca_cmd_fail(cmd, VHCA_FW_BAD_RESOURCE, VHCA_SYN_UAR);
}

static struct vhca_uobj *umem_part(struct vhca_cmd *cmd, uint32_t umem_id,
                                   uint64_t offset, uint64_t len)
{
    struct vhca_uobj *umem = vhca_umem_by_id(cmd->ctx, umem_id);

    if (umem == NULL) {
        (void)vhca_cmd_fail(cmd, VHCA_FW_BAD_RESOURCE, VHCA_SYN_UMEM);
        return NULL;
    }

    if ((offset > umem->umem.len) || (len > umem->umem.len - offset)) {
        (void)vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_UMEM_SIZE);
        return NULL;
    }

    return umem;
}

/* DPDK, mlx5_devx_cmds.c users: a queue starts at a multiple of a 64th of the
 * umem's page, counted from the page's start (page_offset of cqc and qpc). */
void *vhca_cmd_ring(struct vhca_cmd *cmd, uint32_t umem_id, uint64_t offset,
                    uint64_t len)
{
    struct vhca_uobj *umem = umem_part(cmd, umem_id, offset, len);

    if (umem == NULL) {
        return NULL;
    }

    if ((umem->umem.page_offset + offset) % (umem->umem.page_size / 64) != 0) {
        (void)vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_WQ_OFFSET);
        return NULL;
    }

    vhca_uobj_use(cmd->obj, umem);
    return (void*)(uintptr_t)(umem->umem.addr + offset);
}

void *vhca_cmd_dbrec(struct vhca_cmd *cmd, uint32_t umem_id, uint64_t offset)
{
    struct vhca_uobj *umem = umem_part(cmd, umem_id, offset, 8);

    if (umem == NULL) {
        return NULL;
    }

    /* dbr_addr has no bits below 8 (mlx5_ifc.h, struct mlx5_db) */
    if ((umem->umem.page_offset + offset) % 8 != 0) {
        (void)vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_DBR_ALIGN);
        return NULL;
    }

    vhca_uobj_use(cmd->obj, umem);
    return (void*)(uintptr_t)(umem->umem.addr + offset);
}

bool vhca_cmd_create_cq(struct vhca_cmd *cmd)
{
    const uint8_t *cqc       = PRM_CADDR(create_cq_in, cmd->in, cq_context);
    struct vhca_cq_attr attr = {.owner = cmd->ctx->owner};
    unsigned cqe_sz          = (unsigned)PRM_GET(cqc, cqc, cqe_sz);

    attr.log_size = (uint8_t)PRM_GET(cqc, cqc, log_cq_size);
    attr.uar_page = (uint32_t)PRM_GET(cqc, cqc, uar_page);
    attr.oi       = PRM_GET(cqc, cqc, oi);
    attr.cqe_size = (cqe_sz == 0) ? 64 : 128;
    if (cqe_sz > 1) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
    }
    if (attr.log_size > VHCA_LOG_MAX_CQ_SZ) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);
    }
    if (!vhca_cmd_uar(cmd, attr.uar_page)) {
        return false;
    }

    attr.ring = vhca_cmd_ring(cmd,
                              (uint32_t)PRM_GET(create_cq_in, cmd->in,
                                                cq_umem_id),
                              PRM_GET(create_cq_in, cmd->in, cq_umem_offset),
                              (uint64_t)attr.cqe_size << attr.log_size);
    if (attr.ring == NULL) {
        return false;
    }

    attr.dbrec = vhca_cmd_dbrec(cmd, (uint32_t)PRM_GET(cqc, cqc, dbr_umem_id),
                                PRM_GET(cqc, cqc, dbr_addr));
    if (attr.dbrec == NULL) {
        return false;
    }

    if (!vhca_cq_create(&attr, &cmd->obj->number, &cmd->fw)) {
        return false;
    }

    PRM_SET(create_cq_out, cmd->out, cqn, cmd->obj->number);
    return true;
}

bool vhca_cmd_create_rmp(struct vhca_cmd *cmd)
{
    const uint8_t *rmpc       = PRM_CADDR(create_rmp_in, cmd->in, ctx);
    const uint8_t *wq         = PRM_CADDR(rmpc, rmpc, wq);
    struct vhca_rmp_attr attr = {.owner = cmd->ctx->owner};
    unsigned type             = (unsigned)PRM_GET(wq, wq, wq_type);
    struct vhca_uobj *pd;

    attr.log_size             = (uint8_t)PRM_GET(wq, wq, log_wq_sz);
    attr.log_stride           = (uint8_t)PRM_GET(wq, wq, log_wq_stride);
    attr.cyclic               = (type == WQ_TYPE_CYCLIC);
    attr.basic_cyclic_rcv_wqe = PRM_GET(rmpc, rmpc, basic_cyclic_rcv_wqe);
    if ((PRM_GET(rmpc, rmpc, state) != RMPC_STATE_RDY) ||
        (type > WQ_TYPE_CYCLIC)) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
    }
    /* A linked list has its links in the WQEs: there is no basic form of it */
    if (attr.basic_cyclic_rcv_wqe && (type == WQ_TYPE_LINKED)) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_VALUE);
    }
    /* Unless basic, a WQE has a next segment and at least one data segment. */
    if ((attr.log_size > VHCA_LOG_MAX_SRQ_SZ) ||
        (attr.log_stride > VHCA_LOG_MAX_STRIDE) ||
        (attr.log_stride < (attr.basic_cyclic_rcv_wqe ?
                            WQ_LOG_STRIDE_MIN : WQ_LOG_STRIDE_MIN + 1))) {
        return vhca_cmd_fail(cmd, VHCA_FW_BAD_PARAM, VHCA_SYN_SIZE);
    }

    pd = vhca_cmd_pd(cmd, (uint32_t)PRM_GET(wq, wq, pd));
    if (pd == NULL) {
        return false;
    }

    attr.ring = vhca_cmd_ring(cmd, (uint32_t)PRM_GET(wq, wq, wq_umem_id),
                              PRM_GET(wq, wq, wq_umem_offset),
                              1ull << (attr.log_size + attr.log_stride));
    if (attr.ring == NULL) {
        return false;
    }

    attr.dbrec = vhca_cmd_dbrec(cmd, (uint32_t)PRM_GET(wq, wq, dbr_umem_id),
                                PRM_GET(wq, wq, dbr_addr));
    if (attr.dbrec == NULL) {
        return false;
    }

    attr.pdn = pd->number;
    if (!vhca_rmp_create(&attr, &cmd->obj->number, &cmd->fw)) {
        return false;
    }

    vhca_uobj_use(cmd->obj, pd);
    PRM_SET(create_rmp_out, cmd->out, rmpn, cmd->obj->number);
    return true;
}
