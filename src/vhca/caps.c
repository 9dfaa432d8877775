/* SPDX-License-Identifier: BSD-3-Clause */

/* What the emulated device is: its configuration and its capability pages. */

#include <stdlib.h>
#include <string.h>

#include <rdma/ib_user_ioctl_verbs.h>

#include "vhca/kernel.h"
#include "vhca/prm_table.h"

/* Capability page numbers (enum mlx5_cap_type): op_mod >> 1 */
enum {
    CAP_GENERAL = 0,
    CAP_ATOMIC  = 3,
    CAP_ROCE    = 4,
    CAP_LAST    = 0x2f
};

/* Atomic operations (PRM atomic_caps.atomic_operations) */
enum {
    ATOMIC_CMP_SWAP         = 1 << 0,
    ATOMIC_FETCH_ADD        = 1 << 1,
    ATOMIC_MASKED_CMP_SWAP  = 1 << 2,
    ATOMIC_MASKED_FETCH_ADD = 1 << 3
};

static pthread_once_t       config_once = PTHREAD_ONCE_INIT;
static struct vhca_port_cfg config_ports[VHCA_MAX_DEVICES];
static unsigned             config_num_devices;
static char                 config_netdev[16]; /* IFNAMSIZ */

/* Device n has the address 198.18.0.n+1 (RFC 2544's range) and the locally
 * administered MAC whose last four bytes are that address. */
static const uint8_t config_ipv4[4] = {198, 18, 0, 1};

void vhca_port_mac(unsigned dev, uint8_t mac[6])
{
    mac[0] = 0x02;
    mac[1] = 0x00;
    memcpy(&mac[2], config_ipv4, 4);
    mac[5] = (uint8_t)(mac[5] + dev);
}

/* Modified EUI-64 of the MAC, as RoCE and IPv6 link-local addresses have it */
static void port_eui64(unsigned dev, uint8_t eui[8])
{
    uint8_t mac[6];

    vhca_port_mac(dev, mac);
    eui[0] = mac[0] ^ 2;
    eui[1] = mac[1];
    eui[2] = mac[2];
    eui[3] = 0xff;
    eui[4] = 0xfe;
    memcpy(&eui[5], &mac[3], 3);
}

uint64_t vhca_node_guid(unsigned dev)
{
    return 0x0002c9031f000000ull + ((uint64_t)dev << 8);
}

uint64_t vhca_port_guid(unsigned dev)
{
    return vhca_node_guid(dev) + 1;
}

static void add_gid(struct vhca_port_cfg *port, const uint8_t gid[16],
                    uint8_t type)
{
    memcpy(port->gid[port->num_gids], gid, 16);
    port->gid_type[port->num_gids] = type;
    ++port->num_gids;
}

static void config_port(struct vhca_port_cfg *port, unsigned dev, bool roce)
{
    uint8_t gid[16] = {0xfe, 0x80};
    uint8_t mac[6];
    unsigned i;

    port->roce = roce;
    port->mtu  = 5; /* 4096 bytes; RoCE's usual 1024 would be 3 */
    if (!roce) {
        port->lid = (uint16_t)(0x11 + dev);
        for (i = 0; i < 8; ++i) {
            gid[8 + i] = (uint8_t)(vhca_port_guid(dev) >> (56 - 8 * i));
        }
        add_gid(port, gid, IB_UVERBS_GID_TYPE_IB);
        return;
    }

    /* The order of a NIC with one IPv4 address: the link-local address as
     * RoCE v1 and v2, then the IPv4-mapped one as v1 and v2. */
    port_eui64(dev, &gid[8]);
    add_gid(port, gid, IB_UVERBS_GID_TYPE_ROCE_V1);
    add_gid(port, gid, IB_UVERBS_GID_TYPE_ROCE_V2);

    vhca_port_mac(dev, mac);
    memset(gid, 0, sizeof(gid));
    gid[10] = gid[11] = 0xff;
    memcpy(&gid[12], &mac[2], 4);
    add_gid(port, gid, IB_UVERBS_GID_TYPE_ROCE_V1);
    add_gid(port, gid, IB_UVERBS_GID_TYPE_ROCE_V2);
}

/* A name that the kernel would take for an interface (dev_valid_name) and that
 * may be part of a path */
static void config_netdev_init(const char *name)
{
    size_t len = (name != NULL) ? strlen(name) : 0;

    if ((len > 0) && (len < sizeof(config_netdev)) && (name[0] != '.') &&
        (strchr(name, '/') == NULL)) {
        memcpy(config_netdev, name, len + 1);
    }
}

static void config_init(void)
{
    const char *link    = getenv("VHCA_LINK");
    const char *devices = getenv("VHCA_DEVICES");
    bool roce           = (link == NULL) || (strcmp(link, "ib") != 0);
    unsigned i;

    if (roce) {
        config_netdev_init(getenv("VHCA_NETDEV"));
    }

    config_num_devices = (devices != NULL) ? (unsigned)atoi(devices) : 1;
    if ((config_num_devices < 1) || (config_num_devices > VHCA_MAX_DEVICES)) {
        config_num_devices = 1;
    }

    for (i = 0; i < VHCA_MAX_DEVICES; ++i) {
        config_port(&config_ports[i], i, roce);
    }
}

unsigned vhca_num_devices(void)
{
    pthread_once(&config_once, config_init);
    return config_num_devices;
}

const struct vhca_port_cfg *vhca_port_cfg(unsigned dev)
{
    pthread_once(&config_once, config_init);
    return (dev < config_num_devices) ? &config_ports[dev] : NULL;
}

const char *vhca_port_netdev(unsigned dev)
{
    pthread_once(&config_once, config_init);
    return ((dev == 0) && (config_netdev[0] != '\0')) ? config_netdev : NULL;
}

unsigned vhca_num_pkeys(unsigned dev)
{
    return vhca_port_cfg(dev)->roce ? 1 : 128;
}

uint32_t vhca_port_cap_flags(unsigned dev)
{
    return vhca_port_cfg(dev)->roce ?
           (IB_UVERBS_PCF_CM_SUP | IB_UVERBS_PCF_IP_BASED_GIDS) :
           (IB_UVERBS_PCF_TRAP_SUP | IB_UVERBS_PCF_AUTO_MIGR_SUP |
            IB_UVERBS_PCF_SL_MAP_SUP | IB_UVERBS_PCF_EXTENDED_SPEEDS_SUP |
            IB_UVERBS_PCF_CM_SUP | IB_UVERBS_PCF_CLIENT_REG_SUP);
}

bool vhca_gid_to_mac(const uint8_t gid[16], uint8_t mac[6])
{
    const struct vhca_port_cfg *port;
    unsigned dev, i;

    for (dev = 0; dev < vhca_num_devices(); ++dev) {
        port = vhca_port_cfg(dev);
        for (i = 0; i < port->num_gids; ++i) {
            if (memcmp(port->gid[i], gid, 16) == 0) {
                vhca_port_mac(dev, mac);
                return true;
            }
        }
    }

    return false;
}

#define CAP_SET(_page, _field, _value) PRM_SET(_page, cap, _field, _value)

static void cap_general(const struct vhca_port_cfg *port, uint8_t *cap)
{
    CAP_SET(cmd_hca_cap, log_max_srq_sz, VHCA_LOG_MAX_SRQ_SZ);
    CAP_SET(cmd_hca_cap, log_max_qp_sz, VHCA_LOG_MAX_QP_SZ);
    CAP_SET(cmd_hca_cap, log_max_qp, VHCA_LOG_MAX_QP);
    CAP_SET(cmd_hca_cap, log_max_srq, VHCA_LOG_MAX_QP);
    CAP_SET(cmd_hca_cap, log_max_cq_sz, VHCA_LOG_MAX_CQ_SZ);
    CAP_SET(cmd_hca_cap, log_max_cq, VHCA_LOG_MAX_QP);
    CAP_SET(cmd_hca_cap, log_max_eq_sz, 22);
    CAP_SET(cmd_hca_cap, relaxed_ordering_write, 1);
    CAP_SET(cmd_hca_cap, relaxed_ordering_read_pci_enabled, 1);
    CAP_SET(cmd_hca_cap, relaxed_ordering_read, 1);
    CAP_SET(cmd_hca_cap, log_max_mkey, VHCA_LOG_MAX_MKEY);
    CAP_SET(cmd_hca_cap, log_max_eq, 6);
    /* KLM and KSM keys, address translation of atomics by UMR: not here */
    CAP_SET(cmd_hca_cap, fixed_buffer_size, 0);
    CAP_SET(cmd_hca_cap, umr_modify_atomic_disabled, 1);
    CAP_SET(cmd_hca_cap, log_max_mrw_sz, 64);
    CAP_SET(cmd_hca_cap, log_max_ra_req_dc, VHCA_LOG_MAX_RA);
    CAP_SET(cmd_hca_cap, log_max_ra_res_dc, VHCA_LOG_MAX_RA);
    CAP_SET(cmd_hca_cap, log_max_ra_req_qp, VHCA_LOG_MAX_RA);
    CAP_SET(cmd_hca_cap, log_max_ra_res_qp, VHCA_LOG_MAX_RA);
    /* enum mlx5_ifc: gid_table_size 0 is 8 entries; pkey 0 is 128 */
    CAP_SET(cmd_hca_cap, gid_table_size, 0);
    CAP_SET(cmd_hca_cap, pkey_table_size, 0);
    CAP_SET(cmd_hca_cap, local_ca_ack_delay, 16);
    CAP_SET(cmd_hca_cap, port_type, port->roce ? 1 : 0);
    CAP_SET(cmd_hca_cap, num_ports, 1);
    CAP_SET(cmd_hca_cap, native_port_num, 1);
    CAP_SET(cmd_hca_cap, log_max_msg, VHCA_LOG_MAX_MSG);
    CAP_SET(cmd_hca_cap, cqe_version, 1);
    CAP_SET(cmd_hca_cap, compact_address_vector, 1);
    CAP_SET(cmd_hca_cap, roce, port->roce);
    CAP_SET(cmd_hca_cap, atomic, 1);
    CAP_SET(cmd_hca_cap, cq_oi, 1);
    CAP_SET(cmd_hca_cap, cq_resize, 1);
    CAP_SET(cmd_hca_cap, rc, 1);
    CAP_SET(cmd_hca_cap, uar_4k, 1);
    CAP_SET(cmd_hca_cap, uar_sz, 5);
    CAP_SET(cmd_hca_cap, log_pg_sz, 12);
    CAP_SET(cmd_hca_cap, bf, 1);
    CAP_SET(cmd_hca_cap, log_bf_reg_size, 9);
    CAP_SET(cmd_hca_cap, num_lag_ports, 1);
    CAP_SET(cmd_hca_cap, max_wqe_sz_sq, VHCA_MAX_WQE_SQ);
    CAP_SET(cmd_hca_cap, max_wqe_sz_rq, 1 << VHCA_LOG_MAX_STRIDE);
    CAP_SET(cmd_hca_cap, log_max_pd, VHCA_LOG_MAX_PD);
    CAP_SET(cmd_hca_cap, basic_cyclic_rcv_wqe, 1);
    CAP_SET(cmd_hca_cap, log_max_rmp, VHCA_LOG_MAX_QP);
    CAP_SET(cmd_hca_cap, log_max_wq_sz, VHCA_LOG_MAX_SRQ_SZ);
    CAP_SET(cmd_hca_cap, log_max_uctx, 16);
    CAP_SET(cmd_hca_cap, log_max_umem, 20);
    CAP_SET(cmd_hca_cap, max_num_eqs, 16);
    CAP_SET(cmd_hca_cap, num_of_uars_per_page, 1);
}

static void cap_atomic(uint8_t *cap)
{
    /* Results of 8-byte atomics come in host order (mode 1, the one x86
     * hosts set), as rdma-core's verbs users expect. */
    CAP_SET(atomic_caps, atomic_req_8B_endianness_mode, 1);
    CAP_SET(atomic_caps, atomic_operations,
            ATOMIC_CMP_SWAP | ATOMIC_FETCH_ADD | ATOMIC_MASKED_CMP_SWAP |
            ATOMIC_MASKED_FETCH_ADD);
    CAP_SET(atomic_caps, atomic_size_qp, 8);
    CAP_SET(atomic_caps, atomic_size_dc, 8);
}

static void cap_roce(uint8_t *cap)
{
    CAP_SET(roce_cap, qp_ts_format, 0); /* free running only */
    CAP_SET(roce_cap, l3_type, 0x3);    /* IPv4 and IPv6 */
    CAP_SET(roce_cap, roce_version, 0x5 /* v1 | v2 */);
    CAP_SET(roce_cap, r_roce_dest_udp_port, 4791);
    CAP_SET(roce_cap, r_roce_max_src_udp_port, 0xffff);
    CAP_SET(roce_cap, r_roce_min_src_udp_port, VHCA_MIN_UDP_SPORT);
    CAP_SET(roce_cap, roce_address_table_size, 8);
}

bool vhca_cap_page(unsigned dev, unsigned op_mod, uint8_t *cap)
{
    const struct vhca_port_cfg *port = vhca_port_cfg(dev);

    memset(cap, 0, 4096);
    switch (op_mod >> 1) {
    case CAP_GENERAL:
        cap_general(port, cap);
        return true;
    case CAP_ATOMIC:
        cap_atomic(cap);
        return true;
    case CAP_ROCE:
        if (port->roce) {
            cap_roce(cap);
        }
        return true;
    default:
        /* Pages of what the device does not have answer all zero: libmlx5
         * and UCX ask for the ODP, Ethernet and QoS pages unasked. */
        return (op_mod >> 1) <= CAP_LAST;
    }
}
