/* SPDX-License-Identifier: BSD-3-Clause */

/* The connection manager's wire format: interface address and messages. */

#include "hixl_cm_proto.h"

#include <string.h>

/*
 * Interface address          Message
 *   0  version                 0  magic "HXCM"
 *   1  bit n: IP n is IPv6     4  version
 *   2  key[16]                 5  type
 *  18  port, big endian        6  length of what follows, big endian
 *  20  number of IPs           8  by type, below
 *  21  IPs, 4 or 16 bytes each
 *
 * HELLO   key[16] qp_addr[6] dev_addr[27] addr_len[1] addr[addr_len]
 * ACCEPT  qp_addr[6] dev_addr[27]
 * REJECT  reason[1]
 * BYE, BYE_ACK, BYE_IN_USE  generation[4], big endian
 * READY, LEAVE  nothing
 */

#define UCT_HIXL_CM_VERSION 1

#define UCT_HIXL_CM_ADDR_HEAD_LEN 21

static const uint8_t uct_hixl_cm_magic[4] = {'H', 'X', 'C', 'M'};

_Static_assert(UCT_HIXL_CM_ADDR_HEAD_LEN + UCT_HIXL_CM_MAX_IPS * 16 <=
               UCT_HIXL_IFACE_ADDR_MAX, "fits UCX's v1 worker address");
_Static_assert(sizeof(uct_hixl_qp_addr_t) == 6, "as drawn above");
_Static_assert(sizeof(uct_hixl_device_addr_t) == 27, "as drawn above");

enum {
    UCT_HIXL_CM_ACCEPT_LEN    = sizeof(uct_hixl_qp_addr_t) +
                                sizeof(uct_hixl_device_addr_t),
    UCT_HIXL_CM_HELLO_MIN_LEN = UCT_HIXL_CM_KEY_LEN + UCT_HIXL_CM_ACCEPT_LEN +
                                1,
    UCT_HIXL_CM_HELLO_MAX_LEN = UCT_HIXL_CM_HELLO_MIN_LEN +
                                UCT_HIXL_IFACE_ADDR_MAX
};

static const struct {
    const char *name;
    uint16_t   min_len;
    uint16_t   max_len;
} uct_hixl_cm_msg_types[UCT_HIXL_CM_MSG_LAST] = {
    [UCT_HIXL_CM_MSG_HELLO]      = {"HELLO", UCT_HIXL_CM_HELLO_MIN_LEN,
                                    UCT_HIXL_CM_HELLO_MAX_LEN},
    [UCT_HIXL_CM_MSG_ACCEPT]     = {"ACCEPT", UCT_HIXL_CM_ACCEPT_LEN,
                                    UCT_HIXL_CM_ACCEPT_LEN},
    [UCT_HIXL_CM_MSG_REJECT]     = {"REJECT", 1, 1},
    [UCT_HIXL_CM_MSG_READY]      = {"READY", 0, 0},
    [UCT_HIXL_CM_MSG_BYE]        = {"BYE", 4, 4},
    [UCT_HIXL_CM_MSG_BYE_ACK]    = {"BYE_ACK", 4, 4},
    [UCT_HIXL_CM_MSG_BYE_IN_USE] = {"BYE_IN_USE", 4, 4},
    [UCT_HIXL_CM_MSG_LEAVE]      = {"LEAVE", 0, 0}
};

static uint8_t *uct_hixl_cm_put(uint8_t *p, const void *data, size_t length)
{
    memcpy(p, data, length);
    return p + length;
}

static const uint8_t *
uct_hixl_cm_get(const uint8_t *p, void *data, size_t length)
{
    memcpy(data, p, length);
    return p + length;
}

static void uct_hixl_cm_put_be16(uint8_t *p, uint16_t value)
{
    p[0] = value >> 8;
    p[1] = value;
}

static uint16_t uct_hixl_cm_get_be16(const uint8_t *p)
{
    return (uint16_t)((p[0] << 8) | p[1]);
}

static void uct_hixl_cm_put_be32(uint8_t *p, uint32_t value)
{
    uct_hixl_cm_put_be16(p, value >> 16);
    uct_hixl_cm_put_be16(p + 2, value);
}

static uint32_t uct_hixl_cm_get_be32(const uint8_t *p)
{
    return ((uint32_t)uct_hixl_cm_get_be16(p) << 16) |
           uct_hixl_cm_get_be16(p + 2);
}

static size_t uct_hixl_cm_ip_len(int is_v6)
{
    return is_v6 ? 16 : 4;
}

size_t uct_hixl_cm_addr_pack(const uct_hixl_cm_addr_t *addr, void *buf)
{
    uint8_t *head = buf;
    uint8_t *p    = head + UCT_HIXL_CM_ADDR_HEAD_LEN;
    unsigned i;

    head[0] = UCT_HIXL_CM_VERSION;
    head[1] = 0;
    memcpy(&head[2], addr->key, UCT_HIXL_CM_KEY_LEN);
    uct_hixl_cm_put_be16(&head[18], addr->port);
    head[20] = addr->num_ips;

    for (i = 0; i < addr->num_ips; ++i) {
        head[1] |= !!addr->ip[i].is_v6 << i;
        p        = uct_hixl_cm_put(p, addr->ip[i].bytes,
                                   uct_hixl_cm_ip_len(addr->ip[i].is_v6));
    }

    return p - head;
}

ucs_status_t uct_hixl_cm_addr_parse(const void *buf, size_t max,
                                    uct_hixl_cm_addr_t *addr_p,
                                    size_t *length_p)
{
    static const uint8_t unspecified[16];
    const uint8_t *head     = buf;
    const uint8_t *p        = head + UCT_HIXL_CM_ADDR_HEAD_LEN;
    uct_hixl_cm_addr_t addr = {0};
    size_t length           = UCT_HIXL_CM_ADDR_HEAD_LEN;
    size_t ip_len;
    unsigned i;

    if ((max < length) || (head[0] != UCT_HIXL_CM_VERSION)) {
        return UCS_ERR_INVALID_ADDR;
    }

    memcpy(addr.key, &head[2], UCT_HIXL_CM_KEY_LEN);
    addr.port    = uct_hixl_cm_get_be16(&head[18]);
    addr.num_ips = head[20];
    if ((addr.port == 0) || (addr.num_ips == 0) ||
        (addr.num_ips > UCT_HIXL_CM_MAX_IPS) ||
        ((head[1] >> addr.num_ips) != 0)) {
        return UCS_ERR_INVALID_ADDR;
    }

    for (i = 0; i < addr.num_ips; ++i) {
        addr.ip[i].is_v6 = (head[1] >> i) & 1;
        ip_len           = uct_hixl_cm_ip_len(addr.ip[i].is_v6);
        length          += ip_len;
        if (length > max) {
            return UCS_ERR_INVALID_ADDR;
        }

        p = uct_hixl_cm_get(p, addr.ip[i].bytes, ip_len);
        if (memcmp(addr.ip[i].bytes, unspecified, sizeof(unspecified)) == 0) {
            return UCS_ERR_INVALID_ADDR;
        }
    }

    *addr_p   = addr;
    *length_p = length;
    return UCS_OK;
}

size_t uct_hixl_cm_msg_pack(const uct_hixl_cm_msg_t *msg, void *buf)
{
    uint8_t *head = buf;
    uint8_t *body = head + UCT_HIXL_CM_HEADER_LEN;
    uint8_t *p    = body;

    switch (msg->type) {
    case UCT_HIXL_CM_MSG_HELLO:
        p    = uct_hixl_cm_put(p, msg->key, sizeof(msg->key));
        p    = uct_hixl_cm_put(p, &msg->qp_addr, sizeof(msg->qp_addr));
        p    = uct_hixl_cm_put(p, &msg->dev_addr, sizeof(msg->dev_addr));
        *p++ = msg->addr_len;
        p    = uct_hixl_cm_put(p, msg->addr, msg->addr_len);
        break;
    case UCT_HIXL_CM_MSG_ACCEPT:
        p = uct_hixl_cm_put(p, &msg->qp_addr, sizeof(msg->qp_addr));
        p = uct_hixl_cm_put(p, &msg->dev_addr, sizeof(msg->dev_addr));
        break;
    case UCT_HIXL_CM_MSG_REJECT:
        *p++ = msg->reason;
        break;
    case UCT_HIXL_CM_MSG_BYE:
    case UCT_HIXL_CM_MSG_BYE_ACK:
    case UCT_HIXL_CM_MSG_BYE_IN_USE:
        uct_hixl_cm_put_be32(p, msg->generation);
        p += 4;
        break;
    case UCT_HIXL_CM_MSG_READY:
    case UCT_HIXL_CM_MSG_LEAVE:
    case UCT_HIXL_CM_MSG_LAST:
        break;
    }

    memcpy(head, uct_hixl_cm_magic, sizeof(uct_hixl_cm_magic));
    head[4] = UCT_HIXL_CM_VERSION;
    head[5] = msg->type;
    uct_hixl_cm_put_be16(&head[6], p - body);
    return p - head;
}

/* Whatever has come of the header must be right, so that garbage is refused
 * at its first byte and not only when a whole header has come. */
static int uct_hixl_cm_header_valid(const uint8_t *head, size_t length)
{
    uint16_t body_len;

    if (memcmp(head, uct_hixl_cm_magic,
               ucs_min(length, sizeof(uct_hixl_cm_magic))) != 0) {
        return 0;
    }

    if ((length > 4) && (head[4] != UCT_HIXL_CM_VERSION)) {
        return 0;
    }

    if ((length > 5) && ((head[5] < UCT_HIXL_CM_MSG_HELLO) ||
                         (head[5] >= UCT_HIXL_CM_MSG_LAST))) {
        return 0;
    }

    if (length < UCT_HIXL_CM_HEADER_LEN) {
        return 1;
    }

    body_len = uct_hixl_cm_get_be16(&head[6]);
    return (body_len >= uct_hixl_cm_msg_types[head[5]].min_len) &&
           (body_len <= uct_hixl_cm_msg_types[head[5]].max_len);
}

static ucs_status_t
uct_hixl_cm_hello_parse(const uint8_t *p, size_t body_len,
                        uct_hixl_cm_msg_t *msg)
{
    uct_hixl_cm_addr_t addr;
    size_t addr_len;

    p             = uct_hixl_cm_get(p, msg->key, sizeof(msg->key));
    p             = uct_hixl_cm_get(p, &msg->qp_addr, sizeof(msg->qp_addr));
    p             = uct_hixl_cm_get(p, &msg->dev_addr, sizeof(msg->dev_addr));
    msg->addr_len = *p++;
    if (msg->addr_len != body_len - UCT_HIXL_CM_HELLO_MIN_LEN) {
        return UCS_ERR_INVALID_PARAM;
    }

    if ((uct_hixl_cm_addr_parse(p, msg->addr_len, &addr, &addr_len) !=
         UCS_OK) || (addr_len != msg->addr_len)) {
        return UCS_ERR_INVALID_PARAM;
    }

    memcpy(msg->addr, p, addr_len);
    return UCS_OK;
}

ucs_status_t uct_hixl_cm_msg_parse(const void *buf, size_t length,
                                   uct_hixl_cm_msg_t *msg_p, size_t *length_p)
{
    const uint8_t *head   = buf;
    const uint8_t *p      = head + UCT_HIXL_CM_HEADER_LEN;
    uct_hixl_cm_msg_t msg = {0};
    size_t body_len;

    if (!uct_hixl_cm_header_valid(head, length)) {
        return UCS_ERR_INVALID_PARAM;
    }

    if (length < UCT_HIXL_CM_HEADER_LEN) {
        return UCS_INPROGRESS;
    }

    body_len = uct_hixl_cm_get_be16(&head[6]);
    if (length < UCT_HIXL_CM_HEADER_LEN + body_len) {
        return UCS_INPROGRESS;
    }

    msg.type = head[5];
    switch (msg.type) {
    case UCT_HIXL_CM_MSG_HELLO:
        if (uct_hixl_cm_hello_parse(p, body_len, &msg) != UCS_OK) {
            return UCS_ERR_INVALID_PARAM;
        }
        break;
    case UCT_HIXL_CM_MSG_ACCEPT:
        p = uct_hixl_cm_get(p, &msg.qp_addr, sizeof(msg.qp_addr));
        uct_hixl_cm_get(p, &msg.dev_addr, sizeof(msg.dev_addr));
        break;
    case UCT_HIXL_CM_MSG_REJECT:
        msg.reason = *p;
        break;
    case UCT_HIXL_CM_MSG_BYE:
    case UCT_HIXL_CM_MSG_BYE_ACK:
    case UCT_HIXL_CM_MSG_BYE_IN_USE:
        msg.generation = uct_hixl_cm_get_be32(p);
        break;
    case UCT_HIXL_CM_MSG_READY:
    case UCT_HIXL_CM_MSG_LEAVE:
    case UCT_HIXL_CM_MSG_LAST:
        break;
    }

    *msg_p    = msg;
    *length_p = UCT_HIXL_CM_HEADER_LEN + body_len;
    return UCS_OK;
}

int uct_hixl_cm_key_equal(const uint8_t *a, const uint8_t *b)
{
    /* volatile: the compiler must not leave the loop at the first difference */
    volatile uint8_t diff = 0;
    unsigned i;

    for (i = 0; i < UCT_HIXL_CM_KEY_LEN; ++i) {
        diff |= a[i] ^ b[i];
    }

    return diff == 0;
}

const char *uct_hixl_cm_msg_name(uct_hixl_cm_msg_type_t type)
{
    return (type < UCT_HIXL_CM_MSG_LAST) ? uct_hixl_cm_msg_types[type].name :
                                           "?";
}
