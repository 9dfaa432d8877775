/* SPDX-License-Identifier: BSD-3-Clause */

/* Capabilities of a device. */

#include "caps.h"
#include "cmd.h"

void hx_caps_decode_general(const void *cap, struct hx_caps *caps)
{
#define CAP(_fld) PRM_GET(cmd_hca_cap, cap, _fld)
    caps->log_max_uctx               = CAP(log_max_uctx);
    caps->log_max_umem               = CAP(log_max_umem);
    caps->log_max_qp_sz              = CAP(log_max_qp_sz);
    caps->log_max_cq_sz              = CAP(log_max_cq_sz);
    caps->log_max_ra_req_qp          = CAP(log_max_ra_req_qp);
    caps->log_max_ra_res_qp          = CAP(log_max_ra_res_qp);
    caps->log_max_msg                = CAP(log_max_msg);
    caps->log_max_rmp                = CAP(log_max_rmp);
    caps->cqe_version                = CAP(cqe_version);
    caps->num_ports                  = CAP(num_ports);
    caps->max_wqe_sz_sq              = CAP(max_wqe_sz_sq);
    caps->port_type_roce             = CAP(port_type) == PRM_CAP_PORT_TYPE_ETH;
    caps->atomic                     = CAP(atomic);
    caps->cq_oi                      = CAP(cq_oi);
    caps->ece                        = CAP(ece_support);
    caps->fixed_buffer_size          = CAP(fixed_buffer_size);
    caps->init2_lag_tx_port_affinity = CAP(init2_lag_tx_port_affinity);
    caps->num_lag_ports              = CAP(num_lag_ports);
    caps->roce                       = CAP(roce);
    caps->relaxed_ordering_write     = CAP(relaxed_ordering_write);
    caps->relaxed_ordering_read      = CAP(relaxed_ordering_read) ||
                                       CAP(relaxed_ordering_read_pci_enabled);
    caps->mkc_order_write_after_write_ro_only =
            CAP(mkc_order_write_after_write_ro_only);
#undef CAP
}

void hx_caps_decode_atomic(const void *cap, struct hx_caps *caps)
{
    caps->atomic_operations = PRM_GET(atomic_caps, cap, atomic_operations);
    caps->atomic_size_qp    = PRM_GET(atomic_caps, cap, atomic_size_qp);
    caps->atomic_req_8B_endianness_mode =
            PRM_GET(atomic_caps, cap, atomic_req_8B_endianness_mode) != 0;
}

void hx_caps_decode_roce(const void *cap, struct hx_caps *caps)
{
    caps->r_roce_min_src_udp_port = PRM_GET(roce_cap, cap,
                                            r_roce_min_src_udp_port);
    caps->r_roce_max_src_udp_port = PRM_GET(roce_cap, cap,
                                            r_roce_max_src_udp_port);
    caps->qp_ts_format            = PRM_GET(roce_cap, cap, qp_ts_format);
}

const char *hx_caps_missing(const struct hx_caps *caps)
{
    if (caps->log_max_uctx == 0) {
        return "DevX user contexts (log_max_uctx is 0)";
    }
    if (caps->log_max_umem == 0) {
        return "DevX umems (log_max_umem is 0)";
    }
    if (caps->log_max_rmp == 0) {
        return "receive memory pools (log_max_rmp is 0)";
    }
    if (caps->log_max_msg < HX_LOG_MAX_MSG) {
        return "messages of 1 GiB (log_max_msg is below 30)";
    }
    if (caps->cqe_version == 0) {
        return "version 1 CQEs (cqe_version is 0)";
    }
    if (caps->max_wqe_sz_sq < HX_WQE_MAX_BB * HX_BB_SIZE) {
        return "send WQEs of 256 bytes (max_wqe_sz_sq is smaller)";
    }

    return NULL;
}

uint8_t hx_caps_atomic_mode(const struct hx_caps *caps)
{
    const uint16_t sizes = 4 | 8;  /* bytes, one bit each */
    const uint16_t all   = 0xf;    /* CS, FA, and both masked */
    const uint16_t basic = 0x3;

    if (!caps->atomic || ((caps->atomic_operations & basic) != basic) ||
        !(caps->atomic_size_qp & 8)) {
        return PRM_QPC_ATOMIC_MODE_NONE;
    }

    if (((caps->atomic_operations & all) == all) &&
        ((caps->atomic_size_qp & sizes) == sizes)) {
        return PRM_QPC_ATOMIC_MODE_EXT;
    }

    return PRM_QPC_ATOMIC_MODE_IB;
}

int hx_caps_query(struct ibv_context *ibv, struct hx_caps *caps_p,
                  enum hx_log_level level)
{
    uint64_t cap[PRM_BIT_SZ(query_hca_cap_out, capability) / 64];
    struct hx_caps caps = {0};
    int ret;

    ret = hx_cmd_query_hca_cap(ibv, PRM_HCA_CAP_GENERAL, cap, level);
    if (ret != 0) {
        return ret;
    }
    hx_caps_decode_general(cap, &caps);

    if (caps.atomic) {
        ret = hx_cmd_query_hca_cap(ibv, PRM_HCA_CAP_ATOMIC, cap, level);
        if (ret != 0) {
            return ret;
        }
        hx_caps_decode_atomic(cap, &caps);
    }

    if (caps.roce) {
        ret = hx_cmd_query_hca_cap(ibv, PRM_HCA_CAP_ROCE, cap, level);
        if (ret != 0) {
            return ret;
        }
        hx_caps_decode_roce(cap, &caps);
    }

    *caps_p = caps;
    return 0;
}
