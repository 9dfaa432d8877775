/* SPDX-License-Identifier: BSD-3-Clause */

/* Methods of the DEVICE object: opening a context, what device and ports
 * are. */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "vhca/kernel.h"

#define FW_VERSION ((16ull << 32) | (35ull << 16) | 2000)

/* Values of enums that only libibverbs' own header has */
enum {
    PORT_ACTIVE           = 4,
    MTU_4096              = 5,
    PHYS_STATE_LINK_UP    = 5,
    WIDTH_4X              = 2,
    SPEED_EDR             = 32,
    LINK_LAYER_INFINIBAND = 1,
    LINK_LAYER_ETHERNET   = 2,
    ATOMIC_HCA            = 1
};

static void fill_ucontext(struct mlx5_ib_alloc_ucontext_resp *resp)
{
    memset(resp, 0, sizeof(*resp));
    resp->qp_tab_size       = 1 << 18;
    resp->bf_reg_size       = 512;
    resp->tot_bfregs        = 0; /* doorbell pages by UAR_OBJ_ALLOC only */
    resp->cache_line_size   = 64;
    resp->max_sq_desc_sz    = VHCA_MAX_WQE_SQ;
    resp->max_rq_desc_sz    = 1 << VHCA_LOG_MAX_STRIDE;
    resp->max_send_wqebb    = 1 << VHCA_LOG_MAX_QP_SZ;
    resp->max_recv_wr       = 1 << VHCA_LOG_MAX_QP_SZ;
    resp->max_srq_recv_wr   = (1 << VHCA_LOG_MAX_SRQ_SZ) - 1;
    resp->num_ports         = 1;
    resp->response_length   = sizeof(*resp);
    resp->cqe_version       = 1;
    resp->cmds_supp_uhw     = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE |
                              MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
    resp->eth_min_inline    = MLX5_USER_INLINE_MODE_NONE;
    resp->log_uar_size      = 12;
    resp->num_uars_per_page = 1;
}

static void reply_core(struct vhca_req *req)
{
    uint32_t vectors = VHCA_COMP_VECTORS;
    uint64_t support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;

    vhca_req_reply(req, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors,
                   sizeof(vectors));
    vhca_req_reply(req, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &support,
                   sizeof(support));
}

/* mlx5_ib_alloc_ucontext: the request of the first libraries, or the second one
 * as far as it ever went */
static int get_ucontext_req(const struct vhca_req *req,
                            struct mlx5_ib_alloc_ucontext_req_v2 *in)
{
    uint32_t bfregs;
    size_t len;

    (void)vhca_req_in(req, UVERBS_ATTR_UHW_IN, &len);
    if ((len != sizeof(struct mlx5_ib_alloc_ucontext_req)) &&
        (len < offsetof(struct mlx5_ib_alloc_ucontext_req_v2,
                        max_cqe_version))) {
        return -EINVAL;
    }

    (void)vhca_req_copy(req, UVERBS_ATTR_UHW_IN, in, sizeof(*in));
    if ((in->flags & ~MLX5_IB_ALLOC_UCTX_DEVX) || (in->comp_mask != 0) ||
        (in->reserved0 != 0) || (in->reserved1 != 0) || (in->reserved2 != 0)) {
        return -EOPNOTSUPP;
    }

    /* two doorbell registers a page; none at all is no error here */
    bfregs = (in->total_num_bfregs + 1) & ~1u;
    if (in->num_low_latency_bfregs > bfregs - 1) {
        return -EINVAL;
    }

    /* A library that cannot allocate doorbell pages at run time would need
     * them here. */
    return (in->lib_caps & MLX5_LIB_CAP_DYN_UAR) ? 0 : -EOPNOTSUPP;
}

int vhca_dev_get_context(struct vhca_req *req)
{
    struct mlx5_ib_alloc_ucontext_req_v2 in;
    struct mlx5_ib_alloc_ucontext_resp resp;
    struct vhca_ctx *ctx = req->ctx;
    int ret;

    if (ctx->opened) {
        return -EINVAL; /* uverbs: one context a file */
    }

    ret = get_ucontext_req(req, &in);
    if (ret != 0) {
        return ret;
    }

    ret = vhca_owner_open(ctx->dev, &ctx->owner);
    if (ret != 0) {
        return ret;
    }

    ctx->opened = true;
    ctx->devx   = in.flags & MLX5_IB_ALLOC_UCTX_DEVX;
    fill_ucontext(&resp);
    reply_core(req);
    vhca_req_reply(req, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
    return 0;
}

int vhca_dev_query_context(struct vhca_req *req)
{
    struct mlx5_ib_alloc_ucontext_resp resp;

    fill_ucontext(&resp);
    reply_core(req);
    vhca_req_reply(req, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, &resp,
                   sizeof(resp));
    return 0;
}

static void fill_port(unsigned dev, struct ib_uverbs_query_port_resp *resp)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(dev);

    memset(resp, 0, sizeof(*resp));
    resp->port_cap_flags = vhca_port_cap_flags(dev);
    resp->max_msg_sz     = 1u << VHCA_LOG_MAX_MSG;
    resp->gid_tbl_len    = VHCA_GID_TABLE;
    resp->pkey_tbl_len   = (uint16_t)vhca_num_pkeys(dev);
    resp->lid            = port->lid;
    resp->sm_lid         = port->roce ? 0 : VHCA_SM_LID;
    resp->state          = PORT_ACTIVE;
    resp->max_mtu        = MTU_4096;
    resp->active_mtu     = port->mtu;
    resp->max_vl_num     = port->roce ? 0 : 4;
    resp->subnet_timeout = port->roce ? 0 : VHCA_SUBNET_TIMEOUT;
    resp->active_width   = WIDTH_4X;
    resp->active_speed   = SPEED_EDR;
    resp->phys_state     = PHYS_STATE_LINK_UP;
    resp->link_layer     = port->roce ? LINK_LAYER_ETHERNET :
                                        LINK_LAYER_INFINIBAND;
    resp->flags          = port->roce ? IB_UVERBS_QPF_GRH_REQUIRED : 0;
}

int vhca_dev_query_port(struct vhca_req *req)
{
    struct ib_uverbs_query_port_resp_ex resp;

    if (vhca_req_u64(req, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 0) != 1) {
        return -EINVAL;
    }

    memset(&resp, 0, sizeof(resp));
    fill_port(req->ctx->dev, &resp.legacy_resp);
    vhca_req_reply(req, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof(resp));
    return 0;
}

static bool fill_gid(unsigned dev, uint32_t index,
                     struct ib_uverbs_gid_entry *entry)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(dev);

    if (index >= port->num_gids) {
        return false;
    }

    memset(entry, 0, sizeof(*entry));
    memcpy(entry->gid, port->gid[index], sizeof(entry->gid));
    entry->gid_index = index;
    entry->port_num  = 1;
    entry->gid_type  = port->gid_type[index];
    return true; /* netdev_ifindex 0: there is no network interface */
}

int vhca_dev_query_gid_entry(struct vhca_req *req)
{
    struct ib_uverbs_gid_entry entry;
    uint64_t index;

    /* UVERBS_METHOD_QUERY_GID_ENTRY in uverbs_std_types_device.c */
    if (vhca_req_u64(req, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0) != 0) {
        return -EOPNOTSUPP;
    }
    if (vhca_req_u64(req, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 0) != 1) {
        return -EINVAL;
    }

    index = vhca_req_u64(req, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 0);
    if (index >= VHCA_GID_TABLE) {
        return -EINVAL; /* rdma_get_gid_attr */
    }
    if (!fill_gid(req->ctx->dev, (uint32_t)index, &entry)) {
        return -ENODATA;
    }

    vhca_req_reply(req, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry,
                   sizeof(entry));
    return 0;
}

int vhca_dev_query_gid_table(struct vhca_req *req)
{
    struct ib_uverbs_gid_entry entry;
    uint64_t entry_size, num = 0;
    size_t size, copy;
    uint32_t i;
    char *out;

    if (vhca_req_u64(req, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0) != 0) {
        return -EOPNOTSUPP;
    }

    entry_size = vhca_req_u64(req, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 0);
    out        = vhca_req_out(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES,
                              &size);
    if ((entry_size == 0) || (size % entry_size != 0)) {
        return -EINVAL;
    }

    copy = (entry_size < sizeof(entry)) ? entry_size : sizeof(entry);
    for (i = 0; fill_gid(req->ctx->dev, i, &entry); ++i) {
        if ((num + 1) * entry_size > size) {
            return -EINVAL; /* rdma_query_gid_table: more than there is room */
        }
        memset(out + num * entry_size, 0, entry_size);
        memcpy(out + num * entry_size, &entry, copy);
        ++num;
    }

    vhca_req_reply(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &num,
                   sizeof(num));
    return 0;
}

static void fill_device(unsigned dev, struct ib_uverbs_query_device_resp *resp)
{
    memset(resp, 0, sizeof(*resp));
    resp->fw_ver              = FW_VERSION;
    resp->node_guid           = __builtin_bswap64(vhca_node_guid(dev));
    resp->sys_image_guid      = resp->node_guid;
    resp->max_mr_size         = ~0ull;
    resp->page_size_cap       = ~(uint64_t)(VHCA_PAGE_SIZE - 1);
    resp->vendor_id           = 0x02c9;
    resp->vendor_part_id      = 0x1019;
    resp->hw_ver              = 0;
    resp->max_qp              = 1 << VHCA_LOG_MAX_QP;
    resp->max_qp_wr           = 1 << VHCA_LOG_MAX_QP_SZ;
    resp->device_cap_flags    = IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT |
                                IB_UVERBS_DEVICE_SYS_IMAGE_GUID |
                                IB_UVERBS_DEVICE_RC_RNR_NAK_GEN;
    resp->max_sge             = 30;
    resp->max_sge_rd          = 30;
    resp->max_cq              = 1 << VHCA_LOG_MAX_QP;
    resp->max_cqe             = (1 << VHCA_LOG_MAX_CQ_SZ) - 1;
    resp->max_mr              = 1 << VHCA_LOG_MAX_MKEY;
    resp->max_pd              = 1 << VHCA_LOG_MAX_PD;
    resp->max_qp_rd_atom      = 1 << VHCA_LOG_MAX_RA;
    resp->max_res_rd_atom     = 1 << (VHCA_LOG_MAX_RA + VHCA_LOG_MAX_QP);
    resp->max_qp_init_rd_atom = 1 << VHCA_LOG_MAX_RA;
    resp->atomic_cap          = ATOMIC_HCA;
    resp->max_ah              = 1 << 20;
    resp->max_srq             = 1 << VHCA_LOG_MAX_QP;
    resp->max_srq_wr          = (1 << VHCA_LOG_MAX_SRQ_SZ) - 1;
    resp->max_srq_sge         = 31;
    resp->max_pkeys           = (uint16_t)vhca_num_pkeys(dev);
    resp->local_ca_ack_delay  = 16;
    resp->phys_port_cnt       = 1;
}

static int query_device(struct vhca_req *req)
{
    struct ib_uverbs_query_device_resp resp;

    fill_device(req->ctx->dev, &resp);
    vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
    return 0;
}

static int query_device_ex(struct vhca_req *req)
{
    struct ib_uverbs_ex_query_device in = {0};
    struct ib_uverbs_ex_query_device_resp resp;
    struct mlx5_ib_query_device_resp uhw;
    size_t len;

    (void)vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
    if ((in.comp_mask != 0) || (in.reserved != 0)) {
        return -EINVAL; /* ib_uverbs_ex_query_device */
    }

    memset(&resp, 0, sizeof(resp));
    fill_device(req->ctx->dev, &resp.base);
    resp.device_cap_flags_ex = resp.base.device_cap_flags;
    (void)vhca_req_out(req, UVERBS_ATTR_CORE_OUT, &len);
    resp.response_length = (len < sizeof(resp)) ? (uint32_t)len :
                                                  sizeof(resp);
    vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));

    memset(&uhw, 0, sizeof(uhw));
    (void)vhca_req_out(req, UVERBS_ATTR_UHW_OUT, &len);
    uhw.response_length = (len < sizeof(uhw)) ? (uint32_t)len : sizeof(uhw);
    uhw.flags           = MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;
    vhca_req_reply(req, UVERBS_ATTR_UHW_OUT, &uhw, sizeof(uhw));
    return 0;
}

static int query_port_legacy(struct vhca_req *req)
{
    struct ib_uverbs_query_port_resp resp;
    struct ib_uverbs_query_port in;

    if ((vhca_req_copy(req, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) != 0) ||
        (in.port_num != 1)) {
        return -EINVAL;
    }

    fill_port(req->ctx->dev, &resp);
    vhca_req_reply(req, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
    return 0;
}

/* The write() commands of old, carried by the ioctl */
int vhca_dev_invoke_write(struct vhca_req *req)
{
    /* libibverbs sends a command without room for its answer, once, to learn
     * whether this method exists: ENOSPC tells it so (device.c,
     * has_ioctl_write). */
    if (!vhca_req_has(req, UVERBS_ATTR_CORE_IN) &&
        !vhca_req_has(req, UVERBS_ATTR_CORE_OUT)) {
        return -ENOSPC;
    }

    if (!req->ctx->opened) {
        return -EINVAL;
    }

    switch (vhca_req_u64(req, UVERBS_ATTR_WRITE_CMD, 0)) {
    case IB_USER_VERBS_CMD_QUERY_DEVICE:
        return query_device(req);
    case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE:
        return query_device_ex(req);
    case IB_USER_VERBS_CMD_QUERY_PORT:
        return query_port_legacy(req);
    case IB_USER_VERBS_CMD_ALLOC_PD:
        return vhca_obj_alloc_pd(req);
    case IB_USER_VERBS_CMD_CREATE_AH:
        return vhca_obj_create_ah(req);
    case IB_USER_VERBS_CMD_REG_MR:
        return vhca_obj_reg_mr(req);
    case IB_USER_VERBS_CMD_REREG_MR:
        return vhca_obj_rereg_mr(req);
    case IB_USER_VERBS_CMD_RESIZE_CQ:
        return vhca_obj_cq_resize(req);
    case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
        return vhca_obj_comp_channel(req);
    case IB_USER_VERBS_CMD_QUERY_QP:
        return vhca_qp_obj_query(req);
    case IB_USER_VERBS_CMD_MODIFY_QP:
        return vhca_qp_obj_modify(req);
    case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP:
        return vhca_qp_obj_modify_ex(req);
    case IB_USER_VERBS_CMD_MODIFY_SRQ:
        return vhca_srq_obj_modify(req);
    case IB_USER_VERBS_CMD_QUERY_SRQ:
        return vhca_srq_obj_query(req);
    default:
        return -EOPNOTSUPP;
    }
}
