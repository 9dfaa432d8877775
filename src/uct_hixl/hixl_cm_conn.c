/* SPDX-License-Identifier: BSD-3-Clause */

/* One connection of the connection manager: its socket, what is said on it, and
 * how progress learns what became of it. */

#include "hixl_cm_int.h"
#include "hixl_event.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sock.h>

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

uct_hixl_cm_conn_t *uct_hixl_cm_conn_new(uct_hixl_cm_t *cm,
                                         uct_hixl_cm_state_t state)
{
    uct_hixl_cm_conn_t *conn;

    conn = ucs_calloc(1, sizeof(*conn), "hixl_cm_conn");
    if (conn == NULL) {
        return NULL;
    }

    conn->cm    = cm;
    conn->state = state;
    conn->fd    = -1;
    ucs_list_add_tail(&cm->busy, &conn->list);
    return conn;
}

void uct_hixl_cm_conn_free(uct_hixl_cm_conn_t *conn)
{
    uct_hixl_cm_conn_close(conn);
    uct_hixl_cm_conn_cancel_event(conn);
    ucs_list_del(&conn->list);
    ucs_free(conn);
}

void uct_hixl_cm_conn_move(uct_hixl_cm_conn_t *conn, ucs_list_link_t *list)
{
    ucs_list_del(&conn->list);
    ucs_list_add_tail(list, &conn->list);
}

/* The exchange is over, one way or the other */
void uct_hixl_cm_conn_settle(uct_hixl_cm_conn_t *conn)
{
    uct_hixl_cm_deadline_set(conn, 0);
    if (conn->half_open) {
        conn->half_open = 0;
        conn->cm->half_open--;
    }
}

void uct_hixl_cm_conn_close(uct_hixl_cm_conn_t *conn)
{
    uct_hixl_cm_conn_settle(conn);
    conn->rx_len = 0;
    conn->tx_len = 0;
    if (conn->fd == -1) {
        return;
    }

    /* A forked child may hold the socket open, and it would stay in the set:
     * closing alone is not enough */
    if (conn->epoll_events != 0) {
        epoll_ctl(conn->cm->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
        conn->epoll_events = 0;
    }

    ucs_close_fd(&conn->fd);
}

void uct_hixl_cm_conn_event(uct_hixl_cm_conn_t *conn, uct_hixl_cm_event_t event)
{
    uct_hixl_cm_t *cm = conn->cm;

    if (conn->event == UCT_HIXL_CM_EVENT_NONE) {
        ucs_list_add_tail(&cm->events, &conn->event_list);
    }

    conn->event = event;
    __atomic_store_n(&cm->iface->cm_events, 1, __ATOMIC_SEQ_CST);
    uct_hixl_iface_wake(cm->iface);
}

void uct_hixl_cm_conn_cancel_event(uct_hixl_cm_conn_t *conn)
{
    if (conn->event != UCT_HIXL_CM_EVENT_NONE) {
        ucs_list_del(&conn->event_list);
        conn->event = UCT_HIXL_CM_EVENT_NONE;
    }
}

/* No socket any more; whoever is concerned learns it from progress */
void uct_hixl_cm_conn_down(uct_hixl_cm_conn_t *conn, ucs_status_t status)
{
    uct_hixl_cm_conn_close(conn);
    conn->state = UCT_HIXL_CM_DOWN;
    if (conn->link == NULL) {
        uct_hixl_cm_conn_move(conn, &conn->cm->dead);
        return;
    }

    uct_hixl_cm_conn_move(conn, &conn->cm->busy);
    if (conn->ep == NULL) {
        uct_hixl_cm_conn_event(conn, UCT_HIXL_CM_EVENT_CLOSED);
    } else {
        conn->status = status;
        uct_hixl_cm_conn_event(conn, UCT_HIXL_CM_EVENT_FAILED);
    }
}

ucs_status_t uct_hixl_cm_conn_flush(uct_hixl_cm_conn_t *conn)
{
    size_t length       = conn->tx_len;
    ucs_status_t status = UCS_OK;

    if (length > 0) {
        status = ucs_socket_send_nb(conn->fd, conn->tx, &length);
        if (status == UCS_OK) {
            conn->tx_len -= length;
            memmove(conn->tx, conn->tx + length, conn->tx_len);
        } else if (status != UCS_ERR_NO_PROGRESS) {
            return status;
        }
    }

    return uct_hixl_cm_watch(conn, (conn->tx_len > 0) ? EPOLLIN | EPOLLOUT :
                                                        EPOLLIN);
}

static ucs_status_t uct_hixl_cm_conn_queue(uct_hixl_cm_conn_t *conn,
                                           const uct_hixl_cm_msg_t *msg)
{
    uint8_t buf[UCT_HIXL_CM_MSG_MAX];
    size_t length;

    length = uct_hixl_cm_msg_pack(msg, buf);
    if (conn->tx_len + length > sizeof(conn->tx)) {
        /* asks and asks, and takes no answer */
        return UCS_ERR_REJECTED;
    }

    memcpy(conn->tx + conn->tx_len, buf, length);
    conn->tx_len += length;
    ucs_trace("hixl: connection %p says %s", conn,
              uct_hixl_cm_msg_name(msg->type));
    return UCS_OK;
}

ucs_status_t uct_hixl_cm_conn_say(uct_hixl_cm_conn_t *conn,
                                  uct_hixl_cm_msg_type_t type, uint32_t arg)
{
    uct_hixl_cm_t *cm     = conn->cm;
    uct_hixl_cm_msg_t msg = {
        .type       = type,
        .generation = arg,
        .reason     = arg
    };
    ucs_status_t status;

    if ((type == UCT_HIXL_CM_MSG_HELLO) || (type == UCT_HIXL_CM_MSG_ACCEPT)) {
        uct_hixl_link_get_addr(conn->link, &msg.qp_addr);
        uct_hixl_iface_fill_device_addr(cm->iface, &msg.dev_addr);
    }

    if (type == UCT_HIXL_CM_MSG_HELLO) {
        memcpy(msg.key, conn->target.key, sizeof(msg.key));
        msg.addr_len = cm->addr_len;
        memcpy(msg.addr, cm->addr, cm->addr_len);
    }

    status = uct_hixl_cm_conn_queue(conn, &msg);
    return (status == UCS_OK) ? uct_hixl_cm_conn_flush(conn) : status;
}
