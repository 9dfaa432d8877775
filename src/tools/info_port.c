/* SPDX-License-Identifier: BSD-3-Clause */

/* hixl_info: ports. */

#include "info.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a lane, in units of 0.1 Gb/s; widths are 1, 2, 4, 8, 12 lanes */
static unsigned port_rate(const struct ibv_port_attr *attr)
{
    static const struct {
        uint8_t  value;
        unsigned rate;
    } speeds[] = {
        {1, 25}, {2, 50}, {4, 100}, {8, 100}, {16, 140}, {32, 250}, {64, 500},
        {128, 1000}
    };
    static const unsigned lanes[] = {
        [1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2
    };
    size_t i;

    if (attr->active_width >= sizeof(lanes) / sizeof(lanes[0])) {
        return 0;
    }
    for (i = 0; i < sizeof(speeds) / sizeof(speeds[0]); ++i) {
        if (speeds[i].value == attr->active_speed) {
            return speeds[i].rate * lanes[attr->active_width];
        }
    }
    return 0;
}

static const char *port_layer(const struct ibv_port_attr *attr)
{
    switch (attr->link_layer) {
    case IBV_LINK_LAYER_ETHERNET:
        return "RoCE";
    case IBV_LINK_LAYER_INFINIBAND:
        return "InfiniBand";
    default:
        return "unknown link layer";
    }
}

/* UCX_HIXL_GID_INDEX; what is no number is UCX's to complain about */
static uint32_t port_gid_index(void)
{
    const char *text = getenv("UCX_HIXL_GID_INDEX");
    unsigned long index;
    char *end;

    if ((text == NULL) || (text[0] < '0') || (text[0] > '9')) {
        return HX_GID_INDEX_AUTO;
    }

    index = strtoul(text, &end, 0);
    return ((*end == '\0') && (index < HX_GID_INDEX_AUTO)) ?
           (uint32_t)index : HX_GID_INDEX_AUTO;
}

static void port_gid_text(const struct hx_port *port, char *text, size_t size)
{
    static const char *const types[] = {
        [IBV_GID_TYPE_IB]      = "",
        [IBV_GID_TYPE_ROCE_V1] = "RoCE v1 ",
        [IBV_GID_TYPE_ROCE_V2] = "RoCE v2 "
    };
    char gid[INET6_ADDRSTRLEN];
    const char *type = "";

    if (port->gid_type < sizeof(types) / sizeof(types[0])) {
        type = types[port->gid_type];
    }
    inet_ntop(AF_INET6, port->gid.raw, gid, sizeof(gid));
    snprintf(text, size, "gid %u %s%s", port->gid_index, type, gid);
}

static void port_add(struct info_found *found, const char *dev, unsigned num)
{
    void *ports = realloc(found->ports,
                          (found->num_ports + 1) * sizeof(*found->ports));

    if (ports == NULL) {
        return; /* it is only not compared with UCX_NET_DEVICES */
    }
    found->ports = ports;
    snprintf(found->ports[found->num_ports++], sizeof(*found->ports), "%s:%u",
             dev, num);
}

/* One line; whether the transport can use the port. dev NULL: the device does
 * not open as the transport opens it. */
static bool port_show(struct ibv_context *ibv, struct hx_dev *dev, unsigned num,
                      struct hx_port *port_p, struct info_why *why)
{
    struct ibv_port_attr attr = {0};
    char key[24], lid[16] = "", gid[96] = "", text[256];
    struct hx_log_hold hold;
    unsigned rate;
    int ret = -1;

    snprintf(key, sizeof(key), "port-%u", num);
    if (ibv_query_port(ibv, num, &attr) != 0) {
        info_line(key, "cannot be queried");
        info_why_no_port(why, false, "querying it failed");
        return false;
    }

    if (dev != NULL) {
        hx_log_hold_begin(&hold, text, sizeof(text));
        ret = hx_port_query(dev, num, port_gid_index(), port_p);
        hx_log_hold_end(&hold);
        if (ret == 0) {
            port_gid_text(port_p, gid, sizeof(gid));
        } else {
            snprintf(gid, sizeof(gid), "no GID that can be used");
        }
    }

    if (attr.link_layer != IBV_LINK_LAYER_ETHERNET) {
        snprintf(lid, sizeof(lid), ", lid %u", attr.lid);
    }
    rate = port_rate(&attr);
    info_line(key, "%s, %s, %u.%u Gb/s, mtu %u%s%s%s",
              ibv_port_state_str(attr.state), port_layer(&attr), rate / 10,
              rate % 10, 128u << attr.active_mtu, lid,
              (gid[0] != '\0') ? ", " : "", gid);

    if (attr.state != IBV_PORT_ACTIVE) {
        info_why_no_port(why, attr.link_layer == IBV_LINK_LAYER_ETHERNET,
                         ibv_port_state_str(attr.state));
    } else if ((dev != NULL) && (ret != 0)) {
        info_why_call(why, "its port has no address", text, ret, UINT64_MAX);
        if (getenv("UCX_HIXL_GID_INDEX") != NULL) {
            snprintf(why->todo, sizeof(why->todo), "unset UCX_HIXL_GID_INDEX,"
                     " or set it to an index that show_gids lists");
        }
    }
    return (ret == 0) && port_p->active;
}

bool info_ports(struct ibv_context *ibv, struct hx_dev *dev, unsigned num_ports,
                struct hx_port *port_p, struct info_found *found,
                struct info_why *why)
{
    bool usable = false;
    struct hx_port port;
    unsigned num;

    for (num = 1; num <= num_ports; ++num) {
        if (!port_show(ibv, dev, num, &port, why)) {
            continue;
        }
        port_add(found, ibv_get_device_name(ibv->device), num);
        if (!usable) {
            *port_p = port;
            usable  = true;
        }
    }

    if (usable) {
        why->why[0] = '\0'; /* of another port */
    }
    return usable;
}
