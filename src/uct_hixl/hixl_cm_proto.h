/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the connection manager puts on the wire: the interface address and the
 * messages of a link's life. Pure functions over bytes: no sockets, no state,
 * no allocation, so any bytes may be given to the parsers.
 */

#ifndef UCT_HIXL_CM_PROTO_H_
#define UCT_HIXL_CM_PROTO_H_

#include "hixl_cm.h"

#define UCT_HIXL_CM_KEY_LEN 16
#define UCT_HIXL_CM_MAX_IPS 2

typedef struct uct_hixl_cm_ip {
    uint8_t is_v6;
    uint8_t bytes[16];             /* network order; IPv4: the first four */
} uct_hixl_cm_ip_t;

/* An interface address: where to connect, and the key to present there */
typedef struct uct_hixl_cm_addr {
    uint8_t          key[UCT_HIXL_CM_KEY_LEN];
    uint16_t         port;         /* host order */
    uint8_t          num_ips;
    uct_hixl_cm_ip_t ip[UCT_HIXL_CM_MAX_IPS];
} uct_hixl_cm_addr_t;

typedef enum uct_hixl_cm_msg_type {
    UCT_HIXL_CM_MSG_HELLO = 1,     /* connector: the key, and who I am */
    UCT_HIXL_CM_MSG_ACCEPT,        /* passive: my QP receives yours */
    UCT_HIXL_CM_MSG_REJECT,        /* passive: the key is right, but no */
    UCT_HIXL_CM_MSG_READY,         /* connector: my QP receives yours, too */
    UCT_HIXL_CM_MSG_BYE,           /* I do not use the link any more */
    UCT_HIXL_CM_MSG_BYE_ACK,       /* nor do I: destroy it */
    UCT_HIXL_CM_MSG_BYE_IN_USE,    /* but I do: keep it */
    UCT_HIXL_CM_MSG_LEAVE,         /* my interface closes, in good order */
    UCT_HIXL_CM_MSG_LAST
} uct_hixl_cm_msg_type_t;

typedef enum uct_hixl_cm_reject {
    UCT_HIXL_CM_REJECT_RESOURCE = 1, /* no QP could be made */
    UCT_HIXL_CM_REJECT_PATH          /* no way to that device address */
} uct_hixl_cm_reject_t;

typedef struct uct_hixl_cm_msg {
    uct_hixl_cm_msg_type_t type;
    uint8_t                key[UCT_HIXL_CM_KEY_LEN];      /* HELLO */
    uct_hixl_qp_addr_t     qp_addr;                       /* HELLO, ACCEPT */
    uct_hixl_device_addr_t dev_addr;                      /* HELLO, ACCEPT */
    uint8_t                addr_len;                      /* HELLO */
    uint8_t                addr[UCT_HIXL_IFACE_ADDR_MAX]; /* HELLO */
    uint8_t                reason;                        /* REJECT */
    uint32_t               generation;                    /* BYE* */
} uct_hixl_cm_msg_t;

#define UCT_HIXL_CM_HEADER_LEN 8

/* A HELLO with the longest interface address */
#define UCT_HIXL_CM_MSG_MAX \
    (UCT_HIXL_CM_HEADER_LEN + UCT_HIXL_CM_KEY_LEN + \
     sizeof(uct_hixl_qp_addr_t) + sizeof(uct_hixl_device_addr_t) + 1 + \
     UCT_HIXL_IFACE_ADDR_MAX)

/** buf has UCT_HIXL_IFACE_ADDR_MAX bytes; returns how many were written. */
size_t uct_hixl_cm_addr_pack(const uct_hixl_cm_addr_t *addr, void *buf);

/** Reads no byte past `max` nor past the address's own end.
 *  UCS_ERR_INVALID_ADDR: not an interface address of this version. */
ucs_status_t uct_hixl_cm_addr_parse(const void *buf, size_t max,
                                    uct_hixl_cm_addr_t *addr_p,
                                    size_t *length_p);

/** buf has UCT_HIXL_CM_MSG_MAX bytes; returns how many were written. */
size_t uct_hixl_cm_msg_pack(const uct_hixl_cm_msg_t *msg, void *buf);

/** The message at the start of buf. UCS_INPROGRESS: right so far, more bytes
 *  needed; UCS_ERR_INVALID_PARAM: no continuation makes it a message. */
ucs_status_t uct_hixl_cm_msg_parse(const void *buf, size_t length,
                                   uct_hixl_cm_msg_t *msg_p, size_t *length_p);

/** In a time that does not depend on where the keys differ. */
int uct_hixl_cm_key_equal(const uint8_t *a, const uint8_t *b);

const char *uct_hixl_cm_msg_name(uct_hixl_cm_msg_type_t type);

#endif
