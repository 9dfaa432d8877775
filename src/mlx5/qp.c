/* SPDX-License-Identifier: BSD-3-Clause */

/* RC queue pairs, their state changes and the address vector. */

#include "caps.h"
#include "cmd.h"
#include "mmio.h"
#include "sq.h"
#include "umem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QP_LOG_SQ_MIN      4
#define QP_LOG_SQ_MAX      15 /* the log_sq_size field has 4 bits */
#define QP_DBREC_SEND      1  /* word 0 is for receives */
#define QP_HOP_LIMIT       64
#define QP_UDP_SPORT_FIRST 0xc000 /* RoCE v2 source ports start here */

static int qp_check_attr(const struct hx_dev *dev,
                         const struct hx_qp_attr *attr)
{
    unsigned log_max = dev->caps.log_max_qp_sz;

    if (log_max > QP_LOG_SQ_MAX) {
        log_max = QP_LOG_SQ_MAX;
    }

    if ((attr->log_sq_bb < QP_LOG_SQ_MIN) || (attr->log_sq_bb > log_max)) {
        hx_log(HX_LOG_ERROR, "%s: a send queue of 2^%u basic blocks, the"
               " limits are 2^%u and 2^%u", dev->name, attr->log_sq_bb,
               QP_LOG_SQ_MIN, log_max);
        return -EINVAL;
    }

    return 0;
}

int hx_qp_create(struct hx_dev *dev, const struct hx_qp_attr *attr,
                 struct hx_qp **qp_p)
{
    struct hx_cmd_qp_attr cmd = {
        .pdn         = dev->pdn,
        .uar_page    = attr->uar->page_id,
        .cqn_snd     = attr->send_cq->cqn,
        .cqn_rcv     = attr->recv_cq->cqn,
        .rq_type     = (attr->rmp != NULL) ? PRM_QPC_RQ_TYPE_SRQ :
                                             PRM_QPC_RQ_TYPE_NONE,
        .rmpn        = (attr->rmp != NULL) ? attr->rmp->rmpn : 0,
        .log_sq_size = attr->log_sq_bb,
        .ts_format   = (dev->caps.qp_ts_format != 0) ?
                               PRM_QPC_TS_FORMAT_DEFAULT :
                               PRM_QPC_TS_FORMAT_FREE_RUNNING,
        .user_index  = PRM_QPC_USER_INDEX_NONE
    };
    struct hx_qp *qp;
    size_t ring_len;
    int ret;

    ret = qp_check_attr(dev, attr);
    if (ret != 0) {
        return ret;
    }

    qp = aligned_alloc(HX_BB_SIZE, (sizeof(*qp) + HX_BB_SIZE - 1) /
                                   HX_BB_SIZE * HX_BB_SIZE);
    if (qp == NULL) {
        hx_log(HX_LOG_ERROR, "%s: no memory for a QP", dev->name);
        return -ENOMEM;
    }
    memset(qp, 0, sizeof(*qp));

    ring_len = (size_t)HX_BB_SIZE << attr->log_sq_bb;
    ret      = hx_buf_alloc(dev, ring_len + HX_DBREC_LEN, &qp->buf);
    if (ret != 0) {
        goto err_free;
    }

    cmd.umem_id     = qp->buf.umem.id;
    cmd.dbr_umem_id = qp->buf.umem.id;
    cmd.dbr_addr    = ring_len;
    ret             = hx_cmd_create_qp(dev, &cmd, &qp->obj, &qp->qpn);
    if (ret != 0) {
        goto err_free_buf;
    }

    qp->dev          = dev;
    qp->sq.ring      = qp->buf.addr;
    qp->sq.mask      = (UINT32_C(1) << attr->log_sq_bb) - 1;
    qp->sq.qpn       = qp->qpn;
    qp->sq.dbrec     = (volatile uint32_t *)((uint8_t *)qp->buf.addr +
                                             ring_len) + QP_DBREC_SEND;
    qp->sq.uar_reg   = attr->uar->reg_addr;
    qp->sq.ring_soft = hx_ring_soft_lookup();
    if (qp->sq.ring_soft != NULL) {
        /* There is nothing to send yet: this tells the emulated device that
         * it need not watch the doorbell record. */
        (void)qp->sq.ring_soft(HX_RING_SOFT_SQ, qp->qpn);
    }

    *qp_p = qp;
    return 0;

err_free_buf:
    hx_buf_free(&qp->buf);
err_free:
    free(qp);
    return ret;
}

int hx_qp_init(struct hx_qp *qp, const struct hx_port *port,
               uint16_t pkey_index)
{
    struct hx_cmd_rst2init_attr attr = {
        .port_num    = port->num,
        .pkey_index  = port->roce ? 0 : pkey_index, /* IB only */
        .atomic_mode = hx_caps_atomic_mode(&qp->dev->caps)
    };

    return hx_cmd_rst2init_qp(qp->dev, qp->obj, qp->qpn, &attr);
}

/* The path comes from the peer: what does not fit is its error, not ours */
static int qp_check_path(const struct hx_qp *qp, const struct hx_port *port,
                         const struct hx_qp_path *path)
{
    const uint32_t max_24bit = 0xffffff;

    if ((path->remote_qpn > max_24bit) || (path->remote_psn > max_24bit) ||
        (path->local_psn > max_24bit) || (path->mtu < IBV_MTU_256) ||
        (path->mtu > IBV_MTU_4096) || (path->sl > (port->roce ? 7 : 15)) ||
        (path->min_rnr_nak > 31)) {
        hx_log(HX_LOG_ERROR, "%s: QP 0x%x: invalid path: remote qpn 0x%x, psn"
               " 0x%x and 0x%x, mtu %d, sl %u, min_rnr_nak %u", qp->dev->name,
               qp->qpn, path->remote_qpn, path->remote_psn, path->local_psn,
               path->mtu, path->sl, path->min_rnr_nak);
        return -EINVAL;
    }

    return 0;
}

static uint8_t qp_log_rd_atomic(unsigned wanted, unsigned log_cap)
{
    unsigned log_max = (log_cap < 7) ? log_cap : 7; /* a field of 3 bits */
    unsigned log_wanted;

    if (wanted == 0) {
        return log_max;
    }

    log_wanted = 31 - __builtin_clz(wanted);
    return (log_wanted < log_max) ? log_wanted : log_max;
}

/* The MAC address of a GID is known to the kernel: an address handle has it */
static int qp_resolve_mac(const struct hx_qp *qp, const struct hx_port *port,
                          const struct hx_qp_path *path, uint8_t hop_limit,
                          uint8_t *mac)
{
    struct ibv_ah_attr ah_attr = {
        .grh.dgid          = path->gid,
        .grh.sgid_index    = port->gid_index,
        .grh.hop_limit     = hop_limit,
        .grh.traffic_class = path->traffic_class,
        .sl                = path->sl,
        .is_global         = 1,
        .port_num          = port->num
    };
    struct mlx5dv_ah dvah = {0};
    struct mlx5dv_obj dv  = {0};
    struct ibv_ah *ah;
    int ret;

    ah = ibv_create_ah(qp->dev->pd, &ah_attr);
    if (ah == NULL) {
        ret = (errno > 0) ? -errno : -EINVAL;
        hx_log(HX_LOG_ERROR, "%s: QP 0x%x: no route to the peer's GID: %s",
               qp->dev->name, qp->qpn, strerror(-ret));
        return ret;
    }

    dv.ah.in  = ah;
    dv.ah.out = &dvah;
    ret       = mlx5dv_init_obj(&dv, MLX5DV_OBJ_AH);
    if (ret == 0) {
        memcpy(mac, dvah.av->rmac, sizeof(dvah.av->rmac));
    } else {
        hx_log(HX_LOG_ERROR, "%s: QP 0x%x: no MAC address of the peer",
               qp->dev->name, qp->qpn);
        ret = -EOPNOTSUPP;
    }

    ibv_destroy_ah(ah);
    return ret;
}

/* Flows of different QPs take different ways through a network that hashes
 * ports, and one QP's always the same */
static uint16_t qp_udp_sport(const struct hx_qp *qp, uint32_t remote_qpn)
{
    uint16_t min = qp->dev->caps.r_roce_min_src_udp_port;
    uint16_t max = qp->dev->caps.r_roce_max_src_udp_port;

    if ((min < QP_UDP_SPORT_FIRST) || (max < min)) {
        min = QP_UDP_SPORT_FIRST;
        max = UINT16_MAX;
    }

    return min + (qp->qpn * 31 + remote_qpn) % (max - min + 1);
}

static int qp_fill_path(const struct hx_qp *qp, const struct hx_port *port,
                        const struct hx_qp_path *path,
                        struct hx_cmd_init2rtr_attr *attr)
{
    static const union ibv_gid no_gid;
    const struct hx_dev *dev = qp->dev;

    attr->port_num       = port->num;
    attr->sl             = path->sl;
    attr->roce           = port->roce;
    attr->src_addr_index = port->gid_index;
    attr->hop_limit      = (path->hop_limit != 0) ? path->hop_limit :
                                                    QP_HOP_LIMIT;
    attr->tclass         = path->traffic_class;
    memcpy(attr->rgid, path->gid.raw, sizeof(attr->rgid));

    if (!port->roce) {
        attr->rlid = path->lid;
        attr->grh  = memcmp(&path->gid, &no_gid, sizeof(no_gid)) != 0;
        return 0;
    }

    if (port->gid_type == IBV_GID_TYPE_ROCE_V2) {
        attr->dscp      = path->traffic_class >> 2;
        attr->udp_sport = qp_udp_sport(qp, path->remote_qpn);
    }

    if (dev->lag) {
        attr->lag_tx_port = 1 + qp->qpn % dev->caps.num_lag_ports;
    }

    return qp_resolve_mac(qp, port, path, attr->hop_limit, attr->rmac);
}

int hx_qp_rtr(struct hx_qp *qp, const struct hx_port *port,
              const struct hx_qp_path *path)
{
    const struct hx_caps *caps       = &qp->dev->caps;
    struct hx_cmd_init2rtr_attr attr = {
        .remote_qpn  = path->remote_qpn,
        .rq_psn      = path->remote_psn,
        .mtu         = path->mtu,
        .log_msg_max = HX_LOG_MAX_MSG,
        .log_rra_max = qp_log_rd_atomic(path->max_rd_atomic,
                                        caps->log_max_ra_res_qp),
        .min_rnr_nak = path->min_rnr_nak,
        .atomic_mode = hx_caps_atomic_mode(caps)
    };
    int ret;

    ret = qp_check_path(qp, port, path);
    if (ret != 0) {
        return ret;
    }

    ret = qp_fill_path(qp, port, path, &attr);
    if (ret != 0) {
        return ret;
    }

    return hx_cmd_init2rtr_qp(qp->dev, qp->obj, qp->qpn, &attr);
}

int hx_qp_rts(struct hx_qp *qp, const struct hx_qp_path *path)
{
    const struct hx_caps *caps      = &qp->dev->caps;
    struct hx_cmd_rtr2rts_attr attr = {
        .sq_psn      = path->local_psn,
        .log_sra_max = qp_log_rd_atomic(path->max_rd_atomic,
                                        caps->log_max_ra_req_qp),
        .retry_count = path->retry_count,
        .rnr_retry   = path->rnr_retry,
        .ack_timeout = path->ack_timeout
    };

    if ((path->local_psn > 0xffffff) || (path->retry_count > 7) ||
        (path->rnr_retry > 7) || (path->ack_timeout > 31)) {
        hx_log(HX_LOG_ERROR, "%s: QP 0x%x: invalid path: psn 0x%x, retry_count"
               " %u, rnr_retry %u, ack_timeout %u", qp->dev->name, qp->qpn,
               path->local_psn, path->retry_count, path->rnr_retry,
               path->ack_timeout);
        return -EINVAL;
    }

    return hx_cmd_rtr2rts_qp(qp->dev, qp->obj, qp->qpn, &attr);
}

int hx_qp_err(struct hx_qp *qp)
{
    if (qp->dev->gone) {
        return -EIO; /* nothing runs on it any more */
    }

    return hx_cmd_2err_qp(qp->dev, qp->obj, qp->qpn);
}

void hx_qp_destroy(struct hx_qp *qp)
{
    hx_cmd_destroy(qp->obj, "QP", qp->qpn);
    hx_buf_free(&qp->buf);
    free(qp);
}
