/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The exchange on a connection, from both sides.
 *
 *    connector                 passive
 *    CONNECTING                           QP in INIT
 *    HELLO      -- HELLO -->   GREETING   makes its QP: RTR, RTS
 *               <- ACCEPT --   OFFERED    RTR, RTS
 *    UP         -- READY -->   UP         the passive one may post only now
 *
 * From then on both ends are alike. Who does not use the link any more says
 * BYE. The other one answers BYE_IN_USE, and both keep it: an endpoint made
 * later may take it; or BYE_ACK, or has just said BYE itself, and both destroy
 * it. The end of the socket is as good as an answer.
 */

#include "hixl_cm_int.h"

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/sys/sock.h>

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

static const char *uct_hixl_cm_state_names[] = {
    [UCT_HIXL_CM_GREETING]   = "greeting",
    [UCT_HIXL_CM_OFFERED]    = "offered",
    [UCT_HIXL_CM_CONNECTING] = "connecting",
    [UCT_HIXL_CM_HELLO]      = "hello",
    [UCT_HIXL_CM_UP]         = "up",
    [UCT_HIXL_CM_BYE]        = "bye",
    [UCT_HIXL_CM_DOWN]       = "down"
};

static ucs_status_t uct_hixl_cm_conn_hello(uct_hixl_cm_conn_t *conn)
{
    conn->state = UCT_HIXL_CM_HELLO;
    return uct_hixl_cm_conn_say(conn, UCT_HIXL_CM_MSG_HELLO, 0);
}

static ucs_status_t uct_hixl_cm_conn_dial_ip(uct_hixl_cm_conn_t *conn,
                                             const uct_hixl_cm_ip_t *ip)
{
    struct sockaddr_storage saddr;
    socklen_t length;
    ucs_status_t status;

    length = uct_hixl_cm_sockaddr(ip, conn->target.port, &saddr);
    status = uct_hixl_cm_socket(conn->cm, saddr.ss_family, &conn->fd);
    if (status != UCS_OK) {
        return status;
    }

    conn->state = UCT_HIXL_CM_CONNECTING;
    if (connect(conn->fd, (struct sockaddr*)&saddr, length) == 0) {
        status = uct_hixl_cm_conn_hello(conn);
    } else if (errno == EINPROGRESS) {
        status = uct_hixl_cm_watch(conn, EPOLLOUT);
    } else {
        ucs_debug("hixl: connect() failed: %m");
        status = UCS_ERR_UNREACHABLE;
    }

    if (status != UCS_OK) {
        uct_hixl_cm_conn_close(conn);
    }
    return status;
}

ucs_status_t uct_hixl_cm_conn_dial(uct_hixl_cm_conn_t *conn)
{
    unsigned num_ips    = conn->target.num_ips;
    ucs_status_t status = UCS_ERR_UNREACHABLE;
    uint64_t now        = uct_hixl_cm_now();
    unsigned live, ip;

    while ((conn->attempt < UCT_HIXL_CM_MAX_PASSES * num_ips) &&
           (now < conn->give_up)) {
        ip = conn->attempt++ % num_ips;
        if (conn->dead_ips & UCS_BIT(ip)) {
            continue;
        }

        status = uct_hixl_cm_conn_dial_ip(conn, &conn->target.ip[ip]);
        if (status == UCS_OK) {
            /* Time is left for the others, too */
            live = num_ips - ucs_popcount(conn->dead_ips);
            uct_hixl_cm_deadline_set(conn, now + ((conn->give_up - now) /
                                                  live));
            return UCS_OK;
        }

        conn->dead_ips |= UCS_BIT(ip);
    }

    return status;
}

static void uct_hixl_cm_conn_redial(uct_hixl_cm_conn_t *conn,
                                    ucs_status_t status)
{
    ucs_status_t dial_status;

    uct_hixl_cm_conn_close(conn);
    dial_status = uct_hixl_cm_conn_dial(conn);
    if (dial_status != UCS_OK) {
        ucs_diag("hixl: no link: none of the peer's %u addresses at port %u"
                 " took the connection: %s", conn->target.num_ips,
                 conn->target.port, ucs_status_string(status));
        uct_hixl_cm_conn_down(conn, status);
    }
}

static unsigned uct_hixl_cm_conn_last_ip(const uct_hixl_cm_conn_t *conn)
{
    return (conn->attempt - 1) % conn->target.num_ips;
}

void uct_hixl_cm_conn_lost(uct_hixl_cm_conn_t *conn, ucs_status_t status)
{
    ucs_debug("hixl: connection %p (%s) lost: %s", conn,
              uct_hixl_cm_state_names[conn->state],
              ucs_status_string(status));

    switch (conn->state) {
    case UCT_HIXL_CM_GREETING:
    case UCT_HIXL_CM_OFFERED:
        uct_hixl_cm_count(conn->cm->rejected);
        uct_hixl_cm_conn_down(conn, status);
        break;
    case UCT_HIXL_CM_CONNECTING:
        conn->dead_ips |= UCS_BIT(uct_hixl_cm_conn_last_ip(conn));
        uct_hixl_cm_conn_redial(conn, (status == UCS_ERR_TIMED_OUT) ?
                                      status : UCS_ERR_UNREACHABLE);
        break;
    case UCT_HIXL_CM_HELLO:
        /* Somebody else with that IP closes the socket for the wrong key; the
         * right one closes it only when it is short of places */
        uct_hixl_cm_conn_redial(conn, (status == UCS_ERR_TIMED_OUT) ?
                                      status : UCS_ERR_REJECTED);
        break;
    case UCT_HIXL_CM_UP:
    case UCT_HIXL_CM_BYE:
        uct_hixl_cm_conn_down(conn, (status == UCS_ERR_TIMED_OUT) ?
                                    UCS_ERR_ENDPOINT_TIMEOUT :
                                    UCS_ERR_CONNECTION_RESET);
        break;
    case UCT_HIXL_CM_DOWN:
        break;
    }
}

void uct_hixl_cm_conn_refuse(uct_hixl_cm_conn_t *conn, const char *why)
{
    ucs_debug("hixl: connection %p (%s) refused: %s", conn,
              uct_hixl_cm_state_names[conn->state], why);

    if (!conn->half_open) { /* else lost() counts it */
        uct_hixl_cm_count(conn->cm->rejected);
    }
    uct_hixl_cm_conn_lost(conn, UCS_ERR_REJECTED);
}

void uct_hixl_cm_conn_expired(uct_hixl_cm_conn_t *conn)
{
    if (conn->state == UCT_HIXL_CM_HELLO) {
        conn->dead_ips |= UCS_BIT(uct_hixl_cm_conn_last_ip(conn));
    }

    uct_hixl_cm_conn_lost(conn, UCS_ERR_TIMED_OUT);
}

static void uct_hixl_cm_conn_connected(uct_hixl_cm_conn_t *conn)
{
    socklen_t length = sizeof(int);
    ucs_status_t status;
    int err;

    if ((getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &err, &length) != 0) ||
        (err != 0)) {
        uct_hixl_cm_conn_lost(conn, (err == ETIMEDOUT) ? UCS_ERR_TIMED_OUT :
                                                         UCS_ERR_UNREACHABLE);
        return;
    }

    if (!ucs_socket_is_connected(conn->fd)) {
        return; /* the event was of the socket before this one */
    }

    status = uct_hixl_cm_conn_hello(conn);
    if (status != UCS_OK) {
        uct_hixl_cm_conn_lost(conn, status);
    }
}

/* The key was right but there will be no link: the peer is told why */
static void
uct_hixl_cm_conn_reject(uct_hixl_cm_conn_t *conn, uct_hixl_cm_reject_t reason)
{
    uct_hixl_cm_conn_say(conn, UCT_HIXL_CM_MSG_REJECT, reason);
    uct_hixl_cm_conn_lost(conn, UCS_ERR_REJECTED);
}

static void uct_hixl_cm_conn_on_hello(uct_hixl_cm_conn_t *conn,
                                      const uct_hixl_cm_msg_t *msg)
{
    uct_hixl_cm_t *cm = conn->cm;
    ucs_status_t status;

    if (!uct_hixl_cm_key_equal(msg->key, cm->key)) {
        uct_hixl_cm_conn_refuse(conn, "wrong key");
        return;
    }

    status = uct_hixl_link_create(cm->iface, &conn->link);
    if (status != UCS_OK) {
        conn->link = NULL;
        uct_hixl_cm_conn_reject(conn, UCT_HIXL_CM_REJECT_RESOURCE);
        return;
    }

    conn->link->cm = conn;
    conn->addr_len = msg->addr_len;
    memcpy(conn->addr, msg->addr, msg->addr_len);
    uct_hixl_cm_conn_move(conn, &cm->busy);

    status = uct_hixl_link_connect(conn->link, &msg->dev_addr, &msg->qp_addr);
    if (status != UCS_OK) {
        uct_hixl_cm_conn_reject(conn, UCT_HIXL_CM_REJECT_PATH);
        return;
    }

    conn->state = UCT_HIXL_CM_OFFERED;
    status      = uct_hixl_cm_conn_say(conn, UCT_HIXL_CM_MSG_ACCEPT, 0);
    if (status != UCS_OK) {
        uct_hixl_cm_conn_lost(conn, status);
    }
}

static void uct_hixl_cm_conn_on_accept(uct_hixl_cm_conn_t *conn,
                                       const uct_hixl_cm_msg_t *msg)
{
    ucs_status_t status;

    status = uct_hixl_link_connect(conn->link, &msg->dev_addr, &msg->qp_addr);
    if (status != UCS_OK) {
        uct_hixl_cm_conn_down(conn, status);
        return;
    }

    uct_hixl_cm_conn_settle(conn);
    conn->state = UCT_HIXL_CM_UP;
    uct_hixl_cm_count(conn->cm->made);
    uct_hixl_cm_conn_event(conn, UCT_HIXL_CM_EVENT_READY);
    status = uct_hixl_cm_conn_say(conn, UCT_HIXL_CM_MSG_READY, 0);
    if (status != UCS_OK) {
        uct_hixl_cm_conn_lost(conn, status);
    }
}

static void uct_hixl_cm_conn_on_reject(uct_hixl_cm_conn_t *conn,
                                       const uct_hixl_cm_msg_t *msg)
{
    ucs_diag("hixl: no link: the peer %s",
             (msg->type == UCT_HIXL_CM_MSG_LEAVE) ? "closes its interface" :
             (msg->reason == UCT_HIXL_CM_REJECT_PATH) ?
             "finds no way to this device" : "could not make a queue pair");
    uct_hixl_cm_conn_down(conn, UCS_ERR_REJECTED);
}

static void uct_hixl_cm_conn_idle(uct_hixl_cm_conn_t *conn)
{
    uct_hixl_cm_conn_settle(conn);
    conn->state = UCT_HIXL_CM_UP;
    uct_hixl_cm_conn_move(conn, &conn->cm->idle);
}

static void
uct_hixl_cm_conn_on_bye(uct_hixl_cm_conn_t *conn, const uct_hixl_cm_msg_t *msg)
{
    ucs_status_t status;

    if (conn->ep == NULL) {
        uct_hixl_cm_conn_say(conn, UCT_HIXL_CM_MSG_BYE_ACK, msg->generation);
        uct_hixl_cm_conn_down(conn, UCS_OK);
        return;
    }

    status = uct_hixl_cm_conn_say(conn, UCT_HIXL_CM_MSG_BYE_IN_USE,
                                  msg->generation);
    if (status != UCS_OK) {
        uct_hixl_cm_conn_lost(conn, status);
    }
}

/* What may come when both ends are connected. 0: that may not. */
static int uct_hixl_cm_conn_on_msg_up(uct_hixl_cm_conn_t *conn,
                                      const uct_hixl_cm_msg_t *msg)
{
    switch (msg->type) {
    case UCT_HIXL_CM_MSG_BYE:
        uct_hixl_cm_conn_on_bye(conn, msg);
        return 1;
    case UCT_HIXL_CM_MSG_LEAVE:
        uct_hixl_cm_conn_down(conn, UCS_ERR_NOT_CONNECTED);
        return 1;
    default:
        return 0;
    }
}

static int uct_hixl_cm_conn_on_msg_bye(uct_hixl_cm_conn_t *conn,
                                       const uct_hixl_cm_msg_t *msg)
{
    switch (msg->type) {
    case UCT_HIXL_CM_MSG_BYE_ACK:
    case UCT_HIXL_CM_MSG_BYE_IN_USE:
        if (msg->generation != conn->generation) {
            return 0;
        }

        if (msg->type == UCT_HIXL_CM_MSG_BYE_IN_USE) {
            uct_hixl_cm_conn_idle(conn);
            return 1;
        }
        break;
    case UCT_HIXL_CM_MSG_BYE: /* they crossed: nobody uses it */
    case UCT_HIXL_CM_MSG_LEAVE:
        break;
    default:
        return 0;
    }

    uct_hixl_cm_conn_down(conn, UCS_OK);
    return 1;
}

static void uct_hixl_cm_conn_on_msg(uct_hixl_cm_conn_t *conn,
                                    const uct_hixl_cm_msg_t *msg, int is_last)
{
    int expected = 0;

    ucs_trace("hixl: connection %p (%s) hears %s", conn,
              uct_hixl_cm_state_names[conn->state],
              uct_hixl_cm_msg_name(msg->type));

    switch (conn->state) {
    case UCT_HIXL_CM_GREETING:
        /* After HELLO a connector waits */
        if ((msg->type == UCT_HIXL_CM_MSG_HELLO) && is_last) {
            uct_hixl_cm_conn_on_hello(conn, msg);
            return;
        }
        break;
    case UCT_HIXL_CM_OFFERED:
        if (msg->type == UCT_HIXL_CM_MSG_READY) {
            uct_hixl_cm_conn_idle(conn);
            return;
        }
        break;
    case UCT_HIXL_CM_HELLO:
        if (msg->type == UCT_HIXL_CM_MSG_ACCEPT) {
            uct_hixl_cm_conn_on_accept(conn, msg);
            return;
        } else if ((msg->type == UCT_HIXL_CM_MSG_REJECT) ||
                   (msg->type == UCT_HIXL_CM_MSG_LEAVE)) {
            uct_hixl_cm_conn_on_reject(conn, msg);
            return;
        }
        break;
    case UCT_HIXL_CM_UP:
        expected = uct_hixl_cm_conn_on_msg_up(conn, msg);
        break;
    case UCT_HIXL_CM_BYE:
        expected = uct_hixl_cm_conn_on_msg_bye(conn, msg);
        break;
    case UCT_HIXL_CM_CONNECTING:
    case UCT_HIXL_CM_DOWN:
        ucs_fatal("hixl: message in state %s",
                  uct_hixl_cm_state_names[conn->state]);
    }

    if (!expected) {
        uct_hixl_cm_conn_refuse(conn, uct_hixl_cm_msg_name(msg->type));
    }
}

static void uct_hixl_cm_conn_receive(uct_hixl_cm_conn_t *conn)
{
    size_t length = sizeof(conn->rx) - conn->rx_len;
    uct_hixl_cm_msg_t msg;
    ucs_status_t status;

    status = ucs_socket_recv_nb(conn->fd, conn->rx + conn->rx_len, &length);
    if (status != UCS_OK) {
        if (status != UCS_ERR_NO_PROGRESS) {
            uct_hixl_cm_conn_lost(conn, status);
        }
        return;
    }

    conn->rx_len += length;
    while (conn->rx_len > 0) { /* closing the socket sets it to 0 */
        status = uct_hixl_cm_msg_parse(conn->rx, conn->rx_len, &msg, &length);
        if (status == UCS_INPROGRESS) {
            ucs_assert(conn->rx_len < sizeof(conn->rx));
            break;
        } else if (status != UCS_OK) {
            uct_hixl_cm_conn_refuse(conn, "not a message");
            break;
        }

        conn->rx_len -= length;
        memmove(conn->rx, conn->rx + length, conn->rx_len);
        uct_hixl_cm_conn_on_msg(conn, &msg, conn->rx_len == 0);
    }
}

void uct_hixl_cm_conn_ready(uct_hixl_cm_conn_t *conn, uint32_t epoll_events)
{
    ucs_status_t status;

    if (conn->state == UCT_HIXL_CM_CONNECTING) {
        uct_hixl_cm_conn_connected(conn);
        return;
    }

    /* Read first: what the peer said before it went counts */
    if (epoll_events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        uct_hixl_cm_conn_receive(conn);
    }

    if ((epoll_events & EPOLLOUT) && (conn->fd != -1) && (conn->tx_len > 0)) {
        status = uct_hixl_cm_conn_flush(conn);
        if (status != UCS_OK) {
            uct_hixl_cm_conn_lost(conn, status);
        }
    }
}
