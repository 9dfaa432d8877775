/* SPDX-License-Identifier: BSD-3-Clause */

/* What an interface says of itself: attributes, addresses, who is reachable. */

#include "hixl_cm.h"
#include "hixl_ep.h"

#include <endian.h>
#include <string.h>
#include <ucs/sys/sys.h>

/* What a message costs, as UCX's own mlx5 transports say it */
#define UCT_HIXL_OVERHEAD       40e-9
#define UCT_HIXL_LATENCY        600e-9
#define UCT_HIXL_LATENCY_ROCE   200e-9 /* more */
#define UCT_HIXL_LATENCY_PER_EP 1e-9

double uct_hixl_port_bandwidth(uint8_t active_speed, uint8_t active_width)
{
    /* PortInfo LinkSpeedActive and LinkSpeedExtActive: Gbit/s of a lane, and
     * payload bits of the line code */
    static const struct {
        uint8_t speed;
        double  gbits;
        double  code;
    } speeds[] = {
        {1,   2.5,      8.0 / 10},  /* SDR */
        {2,   5.0,      8.0 / 10},  /* DDR */
        {4,   10.0,     8.0 / 10},  /* QDR */
        {8,   10.3125,  64.0 / 66}, /* FDR10 */
        {16,  14.0625,  64.0 / 66}, /* FDR */
        {32,  25.78125, 64.0 / 66}, /* EDR */
        {64,  53.125,   64.0 / 66}, /* HDR */
        {128, 106.25,   64.0 / 66}  /* NDR */
    };
    /* PortInfo LinkWidthActive */
    static const struct {
        uint8_t  width;
        unsigned lanes;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
    double lane    = speeds[0].gbits * speeds[0].code;
    unsigned lanes = 1;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(speeds); ++i) {
        if (speeds[i].speed == active_speed) {
            lane = speeds[i].gbits * speeds[i].code;
        }
    }
    for (i = 0; i < ucs_static_array_size(widths); ++i) {
        if (widths[i].width == active_width) {
            lanes = widths[i].lanes;
        }
    }
    return lane * lanes * 1e9 / 8;
}

ucs_status_t uct_hixl_iface_query(uct_iface_h tl_iface,
                                  uct_iface_attr_t *attr)
{
    uct_hixl_iface_t *iface = ucs_derived_of(tl_iface, uct_hixl_iface_t);
    size_t mtu              = 128ul << iface->port.active_mtu;

    uct_base_iface_query(&iface->super, attr);

    attr->device_addr_len = sizeof(uct_hixl_device_addr_t);
    attr->iface_addr_len  = uct_hixl_cm_address_length(iface);
    attr->ep_addr_len     = sizeof(uct_hixl_qp_addr_t);
    attr->cap.flags       = UCT_IFACE_FLAG_AM_BCOPY |
                            UCT_IFACE_FLAG_AM_ZCOPY |
                            UCT_IFACE_FLAG_PUT_BCOPY |
                            UCT_IFACE_FLAG_PUT_ZCOPY |
                            UCT_IFACE_FLAG_GET_BCOPY |
                            UCT_IFACE_FLAG_GET_ZCOPY |
                            UCT_IFACE_FLAG_PENDING |
                            UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                            UCT_IFACE_FLAG_CONNECT_TO_EP |
                            UCT_IFACE_FLAG_CB_SYNC |
                            UCT_IFACE_FLAG_EP_CHECK |
                            UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP |
                            UCT_IFACE_FLAG_EVENT_RECV |
                            UCT_IFACE_FLAG_EVENT_FD;
#ifdef UCT_IFACE_FLAG_INTER_NODE
    attr->cap.flags      |= UCT_IFACE_FLAG_INTER_NODE;
#endif

    attr->cap.put.max_short       = iface->config.max_put_short;
    attr->cap.put.max_bcopy       = iface->config.seg_size;
    attr->cap.put.max_zcopy       = iface->config.max_zcopy;
    attr->cap.put.max_iov         = iface->config.max_iov;
    attr->cap.put.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.put.align_mtu       = mtu;

    attr->cap.get.max_bcopy       = iface->config.seg_size;
    attr->cap.get.max_zcopy       = iface->config.max_zcopy;
    attr->cap.get.max_iov         = iface->config.max_iov;
    attr->cap.get.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.get.align_mtu       = mtu;

    attr->cap.am.max_short        = iface->config.max_am_short;
    attr->cap.am.max_bcopy        = iface->config.seg_size;
    attr->cap.am.max_zcopy        = iface->config.seg_size;
    attr->cap.am.max_hdr          = UCT_HIXL_AM_MAX_HDR;
    attr->cap.am.max_iov          = iface->config.am_max_iov;
    attr->cap.am.opt_zcopy_align  = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.am.align_mtu        = mtu;

    if (iface->config.max_put_short > 0) {
        attr->cap.flags |= UCT_IFACE_FLAG_PUT_SHORT;
    }
    if (iface->config.max_am_short > 0) {
        attr->cap.flags |= UCT_IFACE_FLAG_AM_SHORT;
    }

    attr->overhead         = UCT_HIXL_OVERHEAD;
    attr->latency.c        = UCT_HIXL_LATENCY +
                             (iface->port.roce ? UCT_HIXL_LATENCY_ROCE : 0);
    attr->latency.m        = UCT_HIXL_LATENCY_PER_EP;
    attr->bandwidth.shared = uct_hixl_port_bandwidth(iface->port.active_speed,
                                                     iface->port.active_width);
    return UCS_OK;
}

void uct_hixl_iface_fill_device_addr(const uct_hixl_iface_t *iface,
                                     uct_hixl_device_addr_t *addr)
{
    uint64_t host_id = htobe64(ucs_get_system_id());

    addr->flags  = (iface->port.roce ? UCT_HIXL_DEV_ADDR_ROCE : 0) |
                   iface->port.active_mtu << UCT_HIXL_DEV_ADDR_MTU_SHIFT;
    addr->lid[0] = iface->port.lid >> 8;
    addr->lid[1] = iface->port.lid;
    memcpy(addr->gid, iface->port.gid.raw, sizeof(addr->gid));
    memcpy(addr->host_id, &host_id, sizeof(addr->host_id));
}

ucs_status_t uct_hixl_iface_get_device_address(uct_iface_h tl_iface,
                                               uct_device_addr_t *addr)
{
    uct_hixl_iface_fill_device_addr(ucs_derived_of(tl_iface, uct_hixl_iface_t),
                                    (uct_hixl_device_addr_t*)addr);
    return UCS_OK;
}

ucs_status_t uct_hixl_iface_get_address(uct_iface_h tl_iface,
                                        uct_iface_addr_t *addr)
{
    uct_hixl_cm_get_address(ucs_derived_of(tl_iface, uct_hixl_iface_t), addr);
    return UCS_OK;
}

/* Ports of one kind reach each other: RoCE version 2 by IP, InfiniBand in one
 * subnet, whose prefix is the first half of the GID. */
int uct_hixl_iface_is_reachable(const uct_iface_h tl_iface,
                                const uct_device_addr_t *dev_addr,
                                const uct_iface_addr_t *iface_addr
                                        UCS_V_UNUSED)
{
    uct_hixl_iface_t *iface            = ucs_derived_of(tl_iface,
                                                        uct_hixl_iface_t);
    const uct_hixl_device_addr_t *addr = (const uct_hixl_device_addr_t*)
                                         dev_addr;
    const union ibv_gid *gid           = &iface->port.gid;

    if (!!(addr->flags & UCT_HIXL_DEV_ADDR_ROCE) != iface->port.roce) {
        return 0;
    }

    return iface->port.roce ||
           (memcmp(addr->gid, &gid->global.subnet_prefix,
                   sizeof(gid->global.subnet_prefix)) == 0);
}
