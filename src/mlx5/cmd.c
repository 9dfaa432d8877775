/* SPDX-License-Identifier: BSD-3-Clause */

/* The PRM commands: mailboxes in, object numbers out. */

#include "cmd.h"

#include <errno.h>

int hx_cmd_errno(int err, const void *out)
{
    if (err != EREMOTEIO) {
        return (err > 0) ? -err : -EIO;
    }

    switch (PRM_GET(mbox_out, out, status)) {
    case PRM_STATUS_BAD_OP:
    case PRM_STATUS_BAD_PARAM:
    case PRM_STATUS_BAD_RES:
    case PRM_STATUS_BAD_RES_STATE:
    case PRM_STATUS_IX_ERR:
    case PRM_STATUS_BAD_QP_STATE:
    case PRM_STATUS_BAD_PKT:
    case PRM_STATUS_BAD_SIZE:
        return -EINVAL;
    case PRM_STATUS_RES_BUSY:
        return -EBUSY;
    case PRM_STATUS_LIM_ERR:
        return -ENOMEM;
    case PRM_STATUS_NO_RES:
        return -EAGAIN;
    default:
        return -EIO;
    }
}

static int cmd_failed(enum hx_log_level level, struct ibv_context *ibv,
                      const char *name, int err, const void *out)
{
    int ret = hx_cmd_errno(err, out);

    hx_log(level, "%s: %s failed: %s (errno %d), status 0x%x, syndrome 0x%x",
           ibv_get_device_name(ibv->device), name, strerror(-ret), err,
           PRM_GET(mbox_out, out, status), PRM_GET(mbox_out, out, syndrome));
    return ret;
}

/* A command that makes an object. The object number stands in the low 24 bits
 * of the third dword, whatever its kind. */
static int cmd_create(struct hx_dev *dev, const char *name, const void *in,
                      size_t in_len, void *out, size_t out_len,
                      struct mlx5dv_devx_obj **obj_p)
{
    struct mlx5dv_devx_obj *obj;

    obj = mlx5dv_devx_obj_create(dev->ibv, in, in_len, out, out_len);
    if (obj == NULL) {
        return cmd_failed(HX_LOG_ERROR, dev->ibv, name, errno, out);
    }

    *obj_p = obj;
    return 0;
}

static int cmd_modify(struct hx_dev *dev, const char *name,
                      struct mlx5dv_devx_obj *obj, const void *in,
                      size_t in_len, void *out, size_t out_len)
{
    int err = mlx5dv_devx_obj_modify(obj, in, in_len, out, out_len);

    if (err != 0) {
        return cmd_failed(HX_LOG_ERROR, dev->ibv, name, err, out);
    }

    return 0;
}

static int cmd_general(struct ibv_context *ibv, const char *name,
                       const void *in, size_t in_len, void *out,
                       size_t out_len, enum hx_log_level level)
{
    int err = mlx5dv_devx_general_cmd(ibv, in, in_len, out, out_len);

    if (err != 0) {
        return cmd_failed(level, ibv, name, err, out);
    }

    return 0;
}

void hx_cmd_destroy(struct mlx5dv_devx_obj *obj, const char *what,
                    uint32_t number)
{
    int err = mlx5dv_devx_obj_destroy(obj);

    if (err != 0) {
        hx_log(HX_DESTROY_LOG_LEVEL(err), "destroying %s 0x%x failed: %s",
               what, number, strerror(err));
    }
}

void hx_cmd_fill_query_hca_cap(void *in, unsigned type)
{
    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_QUERY_HCA_CAP);
    PRM_SET(query_hca_cap_in, in, op_mod,
            (type << 1) | PRM_HCA_CAP_OPMOD_CUR);
}

int hx_cmd_query_hca_cap(struct ibv_context *ibv, unsigned type, void *cap,
                         enum hx_log_level level)
{
    PRM_MBOX(query_hca_cap_in, in);
    PRM_MBOX(query_hca_cap_out, out);
    int ret;

    hx_cmd_fill_query_hca_cap(in, type);
    ret = cmd_general(ibv, "QUERY_HCA_CAP", in, sizeof(in), out, sizeof(out),
                      level);
    if (ret != 0) {
        return ret;
    }

    memcpy(cap, PRM_ADDR_OF(query_hca_cap_out, out, capability),
           PRM_BIT_SZ(query_hca_cap_out, capability) / 8);
    return 0;
}

void hx_cmd_fill_query_lag(void *in)
{
    PRM_SET(query_lag_in, in, opcode, PRM_CMD_QUERY_LAG);
}

int hx_cmd_query_lag(struct hx_dev *dev, uint8_t *state_p)
{
    PRM_MBOX(query_lag_in, in);
    PRM_MBOX(query_lag_out, out);
    int ret;

    hx_cmd_fill_query_lag(in);
    ret = cmd_general(dev->ibv, "QUERY_LAG", in, sizeof(in), out, sizeof(out),
                      HX_LOG_DEBUG);
    if (ret != 0) {
        return ret;
    }

    *state_p = PRM_GET(query_lag_out, out, ctx.lag_state);
    return 0;
}

void hx_cmd_fill_create_mkey(void *in, const struct hx_cmd_mkey_attr *attr)
{
    void *mkc = PRM_ADDR_OF(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_CREATE_MKEY);
    PRM_SET(create_mkey_in, in, mkey_umem_valid, 1);
    PRM_SET(create_mkey_in, in, mkey_umem_id, attr->umem_id);
    /* The translation is the umem's; the size only has to be there */
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, 1);

    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, !!(attr->access & IBV_ACCESS_LOCAL_WRITE));
    PRM_SET(mkc, mkc, rr, !!(attr->access & IBV_ACCESS_REMOTE_READ));
    PRM_SET(mkc, mkc, rw, !!(attr->access & IBV_ACCESS_REMOTE_WRITE));
    PRM_SET(mkc, mkc, a, !!(attr->access & IBV_ACCESS_REMOTE_ATOMIC));
    PRM_SET(mkc, mkc, relaxed_ordering_write, attr->relaxed_write);
    PRM_SET(mkc, mkc, relaxed_ordering_read, attr->relaxed_read);
    PRM_SET(mkc, mkc, qpn, PRM_MKC_QPN_ANY);
    PRM_SET(mkc, mkc, mkey_7_0, attr->tag);
    PRM_SET(mkc, mkc, pd, attr->pdn);
    PRM_SET64(mkc, mkc, start_addr, attr->addr);
    PRM_SET64(mkc, mkc, len, attr->len);
}

int hx_cmd_create_mkey(struct hx_dev *dev, const struct hx_cmd_mkey_attr *attr,
                       struct mlx5dv_devx_obj **obj_p, uint32_t *mkey_p)
{
    PRM_MBOX(create_mkey_in, in);
    PRM_MBOX(create_mkey_out, out);
    int ret;

    hx_cmd_fill_create_mkey(in, attr);
    ret = cmd_create(dev, "CREATE_MKEY", in, sizeof(in), out, sizeof(out),
                     obj_p);
    if (ret != 0) {
        return ret;
    }

    *mkey_p = PRM_GET(create_mkey_out, out, mkey_index) << 8 | attr->tag;
    return 0;
}

void hx_cmd_fill_create_cq(void *in, const struct hx_cmd_cq_attr *attr)
{
    void *cqc = PRM_ADDR_OF(create_cq_in, in, cq_context);

    PRM_SET(create_cq_in, in, opcode, PRM_CMD_CREATE_CQ);
    PRM_SET(create_cq_in, in, cq_umem_id, attr->umem_id);
    PRM_SET(create_cq_in, in, cq_umem_valid, 1);

    PRM_SET(cqc, cqc, dbr_umem_valid, 1);
    PRM_SET(cqc, cqc, dbr_umem_id, attr->dbr_umem_id);
    PRM_SET64(cqc, cqc, dbr_addr, attr->dbr_addr);
    PRM_SET(cqc, cqc, log_cq_size, attr->log_size);
    PRM_SET(cqc, cqc, uar_page, attr->uar_page);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, attr->eqn);
}

int hx_cmd_create_cq(struct hx_dev *dev, const struct hx_cmd_cq_attr *attr,
                     struct mlx5dv_devx_obj **obj_p, uint32_t *cqn_p)
{
    PRM_MBOX(create_cq_in, in);
    PRM_MBOX(create_cq_out, out);
    int ret;

    hx_cmd_fill_create_cq(in, attr);
    ret = cmd_create(dev, "CREATE_CQ", in, sizeof(in), out, sizeof(out),
                     obj_p);
    if (ret != 0) {
        return ret;
    }

    *cqn_p = PRM_GET(create_cq_out, out, cqn);
    return 0;
}

void hx_cmd_fill_create_rmp(void *in, const struct hx_cmd_rmp_attr *attr)
{
    void *rmpc = PRM_ADDR_OF(create_rmp_in, in, ctx);
    void *wq   = PRM_ADDR_OF(rmpc, rmpc, wq);

    PRM_SET(create_rmp_in, in, opcode, PRM_CMD_CREATE_RMP);
    PRM_SET(rmpc, rmpc, state, PRM_RMPC_STATE_RDY);

    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_LINKED_LIST);
    PRM_SET(wq, wq, pd, attr->pdn);
    PRM_SET(wq, wq, log_wq_sz, attr->log_size);
    PRM_SET(wq, wq, log_wq_stride, attr->log_stride);
    PRM_SET(wq, wq, wq_umem_valid, 1);
    PRM_SET(wq, wq, wq_umem_id, attr->umem_id);
    PRM_SET(wq, wq, dbr_umem_valid, 1);
    PRM_SET(wq, wq, dbr_umem_id, attr->dbr_umem_id);
    PRM_SET64(wq, wq, dbr_addr, attr->dbr_addr);
}

int hx_cmd_create_rmp(struct hx_dev *dev, const struct hx_cmd_rmp_attr *attr,
                      struct mlx5dv_devx_obj **obj_p, uint32_t *rmpn_p)
{
    PRM_MBOX(create_rmp_in, in);
    PRM_MBOX(create_rmp_out, out);
    int ret;

    hx_cmd_fill_create_rmp(in, attr);
    ret = cmd_create(dev, "CREATE_RMP", in, sizeof(in), out, sizeof(out),
                     obj_p);
    if (ret != 0) {
        return ret;
    }

    *rmpn_p = PRM_GET(create_rmp_out, out, rmpn);
    return 0;
}

void hx_cmd_fill_create_qp(void *in, const struct hx_cmd_qp_attr *attr)
{
    void *qpc = PRM_ADDR_OF(create_qp_in, in, qpc);

    PRM_SET(create_qp_in, in, opcode, PRM_CMD_CREATE_QP);
    PRM_SET(create_qp_in, in, wq_umem_id, attr->umem_id);
    PRM_SET(create_qp_in, in, wq_umem_valid, 1);

    PRM_SET(qpc, qpc, st, PRM_QPC_ST_RC);
    PRM_SET(qpc, qpc, pm_state, PRM_QPC_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, attr->pdn);
    PRM_SET(qpc, qpc, log_sq_size, attr->log_sq_size);
    PRM_SET(qpc, qpc, ts_format, attr->ts_format);
    PRM_SET(qpc, qpc, uar_page, attr->uar_page);
    PRM_SET(qpc, qpc, user_index, attr->user_index);
    PRM_SET(qpc, qpc, cqn_snd, attr->cqn_snd);
    PRM_SET(qpc, qpc, cqn_rcv, attr->cqn_rcv);
    PRM_SET(qpc, qpc, rq_type, attr->rq_type);
    PRM_SET(qpc, qpc, srqn_rmpn_xrqn, attr->rmpn);
    PRM_SET(qpc, qpc, dbr_umem_valid, 1);
    PRM_SET(qpc, qpc, dbr_umem_id, attr->dbr_umem_id);
    PRM_SET64(qpc, qpc, dbr_addr, attr->dbr_addr);
}

int hx_cmd_create_qp(struct hx_dev *dev, const struct hx_cmd_qp_attr *attr,
                     struct mlx5dv_devx_obj **obj_p, uint32_t *qpn_p)
{
    PRM_MBOX(create_qp_in, in);
    PRM_MBOX(create_qp_out, out);
    int ret;

    hx_cmd_fill_create_qp(in, attr);
    ret = cmd_create(dev, "CREATE_QP", in, sizeof(in), out, sizeof(out),
                     obj_p);
    if (ret != 0) {
        return ret;
    }

    *qpn_p = PRM_GET(create_qp_out, out, qpn);
    return 0;
}

/* What the far end may do, for INIT and RTR alike */
static void cmd_fill_remote_access(void *qpc, uint8_t atomic_mode)
{
    PRM_SET(qpc, qpc, rre, 1);
    PRM_SET(qpc, qpc, rwe, 1);
    PRM_SET(qpc, qpc, rae, atomic_mode != PRM_QPC_ATOMIC_MODE_NONE);
    PRM_SET(qpc, qpc, atomic_mode, atomic_mode);
}

void hx_cmd_fill_rst2init_qp(void *in, uint32_t qpn,
                             const struct hx_cmd_rst2init_attr *attr)
{
    void *qpc = PRM_ADDR_OF(rst2init_qp_in, in, qpc);

    PRM_SET(rst2init_qp_in, in, opcode, PRM_CMD_RST2INIT_QP);
    PRM_SET(rst2init_qp_in, in, qpn, qpn);

    PRM_SET(qpc, qpc, pm_state, PRM_QPC_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, primary_address_path.vhca_port_num, attr->port_num);
    PRM_SET(qpc, qpc, primary_address_path.pkey_index, attr->pkey_index);
    cmd_fill_remote_access(qpc, attr->atomic_mode);
}

int hx_cmd_rst2init_qp(struct hx_dev *dev, struct mlx5dv_devx_obj *obj,
                       uint32_t qpn, const struct hx_cmd_rst2init_attr *attr)
{
    PRM_MBOX(rst2init_qp_in, in);
    PRM_MBOX(rst2init_qp_out, out);

    hx_cmd_fill_rst2init_qp(in, qpn, attr);
    return cmd_modify(dev, "RST2INIT_QP", obj, in, sizeof(in), out,
                      sizeof(out));
}

static void cmd_fill_address_path(void *qpc,
                                  const struct hx_cmd_init2rtr_attr *attr)
{
    void *ads = PRM_ADDR_OF(qpc, qpc, primary_address_path);

    PRM_SET(ads, ads, vhca_port_num, attr->port_num);
    if (attr->roce) {
        memcpy(PRM_ADDR_OF(ads, ads, rmac_47_32), attr->rmac,
               sizeof(attr->rmac));
        PRM_SET(ads, ads, eth_prio, attr->sl);
        PRM_SET(ads, ads, dscp, attr->dscp);
        PRM_SET(ads, ads, udp_sport, attr->udp_sport);
    } else {
        PRM_SET(ads, ads, rlid, attr->rlid);
        PRM_SET(ads, ads, sl, attr->sl);
        PRM_SET(ads, ads, grh, attr->grh);
        if (!attr->grh) {
            return;
        }
    }

    PRM_SET(ads, ads, src_addr_index, attr->src_addr_index);
    PRM_SET(ads, ads, hop_limit, attr->hop_limit);
    PRM_SET(ads, ads, tclass, attr->tclass);
    memcpy(PRM_ADDR_OF(ads, ads, rgid_rip), attr->rgid, sizeof(attr->rgid));
}

void hx_cmd_fill_init2rtr_qp(void *in, uint32_t qpn,
                             const struct hx_cmd_init2rtr_attr *attr)
{
    void *qpc         = PRM_ADDR_OF(init2rtr_qp_in, in, qpc);
    uint32_t opt_mask = PRM_QP_OPTPAR_RRE | PRM_QP_OPTPAR_RWE;

    if (attr->atomic_mode != PRM_QPC_ATOMIC_MODE_NONE) {
        opt_mask |= PRM_QP_OPTPAR_RAE;
    }
    if (attr->lag_tx_port != 0) {
        opt_mask |= PRM_QP_OPTPAR_LAG_TX_AFF;
    }

    PRM_SET(init2rtr_qp_in, in, opcode, PRM_CMD_INIT2RTR_QP);
    PRM_SET(init2rtr_qp_in, in, qpn, qpn);
    PRM_SET(init2rtr_qp_in, in, opt_param_mask, opt_mask);

    PRM_SET(qpc, qpc, pm_state, PRM_QPC_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, lag_tx_port_affinity, attr->lag_tx_port);
    PRM_SET(qpc, qpc, mtu, attr->mtu);
    PRM_SET(qpc, qpc, log_msg_max, attr->log_msg_max);
    PRM_SET(qpc, qpc, remote_qpn, attr->remote_qpn);
    PRM_SET(qpc, qpc, next_rcv_psn, attr->rq_psn);
    PRM_SET(qpc, qpc, log_rra_max, attr->log_rra_max);
    PRM_SET(qpc, qpc, min_rnr_nak, attr->min_rnr_nak);
    cmd_fill_remote_access(qpc, attr->atomic_mode);
    cmd_fill_address_path(qpc, attr);
}

int hx_cmd_init2rtr_qp(struct hx_dev *dev, struct mlx5dv_devx_obj *obj,
                       uint32_t qpn, const struct hx_cmd_init2rtr_attr *attr)
{
    PRM_MBOX(init2rtr_qp_in, in);
    PRM_MBOX(init2rtr_qp_out, out);

    hx_cmd_fill_init2rtr_qp(in, qpn, attr);
    return cmd_modify(dev, "INIT2RTR_QP", obj, in, sizeof(in), out,
                      sizeof(out));
}

void hx_cmd_fill_rtr2rts_qp(void *in, uint32_t qpn,
                            const struct hx_cmd_rtr2rts_attr *attr)
{
    void *qpc = PRM_ADDR_OF(rtr2rts_qp_in, in, qpc);

    PRM_SET(rtr2rts_qp_in, in, opcode, PRM_CMD_RTR2RTS_QP);
    PRM_SET(rtr2rts_qp_in, in, qpn, qpn);

    PRM_SET(qpc, qpc, pm_state, PRM_QPC_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, next_send_psn, attr->sq_psn);
    PRM_SET(qpc, qpc, log_sra_max, attr->log_sra_max);
    PRM_SET(qpc, qpc, retry_count, attr->retry_count);
    PRM_SET(qpc, qpc, rnr_retry, attr->rnr_retry);
    PRM_SET(qpc, qpc, primary_address_path.ack_timeout, attr->ack_timeout);
}

int hx_cmd_rtr2rts_qp(struct hx_dev *dev, struct mlx5dv_devx_obj *obj,
                      uint32_t qpn, const struct hx_cmd_rtr2rts_attr *attr)
{
    PRM_MBOX(rtr2rts_qp_in, in);
    PRM_MBOX(rtr2rts_qp_out, out);

    hx_cmd_fill_rtr2rts_qp(in, qpn, attr);
    return cmd_modify(dev, "RTR2RTS_QP", obj, in, sizeof(in), out,
                      sizeof(out));
}

void hx_cmd_fill_2err_qp(void *in, uint32_t qpn)
{
    PRM_SET(qp_2err_in, in, opcode, PRM_CMD_2ERR_QP);
    PRM_SET(qp_2err_in, in, qpn, qpn);
}

int hx_cmd_2err_qp(struct hx_dev *dev, struct mlx5dv_devx_obj *obj,
                   uint32_t qpn)
{
    PRM_MBOX(qp_2err_in, in);
    PRM_MBOX(qp_2err_out, out);

    hx_cmd_fill_2err_qp(in, qpn);
    return cmd_modify(dev, "2ERR_QP", obj, in, sizeof(in), out, sizeof(out));
}
