/* SPDX-License-Identifier: BSD-3-Clause */

/* What interfaces and endpoints call of the connection manager. The
 * application's thread; see hixl_cm_int.h for the other one. */

#include "hixl_cm_int.h"
#include "hixl_event.h"

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

/* Exchanges that a process with few descriptors may have at a time */
#define UCT_HIXL_CM_MIN_HALF_OPEN 16

ucs_status_t uct_hixl_cm_open(uct_hixl_iface_t *iface)
{
    uct_hixl_cm_addr_t addr = {0};
    ucs_status_t status;
    uct_hixl_cm_t *cm;

    cm = ucs_calloc(1, sizeof(*cm), "hixl_cm");
    if (cm == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err;
    }

    cm->iface         = iface;
    cm->timeout       = iface->config.cm_timeout * UCT_HIXL_CM_NSEC_PER_SEC;
    cm->bye_timeout   = UCT_HIXL_CM_BYE_TIMEOUT;
    cm->rejected      = hx_counter("hixl.cm_rejected");
    cm->made          = hx_counter("hixl.cm_connected");
    cm->reused        = hx_counter("hixl.cm_reused");
    cm->max_half_open = ucs_min(UCT_HIXL_CM_MAX_HALF_OPEN,
                                ucs_max(UCT_HIXL_CM_MIN_HALF_OPEN,
                                        ucs_sys_max_open_files() / 8));
    ucs_list_head_init(&cm->greeting);
    ucs_list_head_init(&cm->busy);
    ucs_list_head_init(&cm->idle);
    ucs_list_head_init(&cm->dead);
    ucs_list_head_init(&cm->waiting);
    ucs_list_head_init(&cm->events);
    pthread_mutex_init(&cm->lock, NULL);

    if (getrandom(cm->key, sizeof(cm->key), 0) != sizeof(cm->key)) {
        ucs_error("hixl: getrandom() failed: %m");
        status = UCS_ERR_IO_ERROR;
        goto err_free;
    }

    status = uct_hixl_cm_loop_init(cm);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_hixl_cm_listen_init(cm, &addr);
    if (status != UCS_OK) {
        goto err_loop_cleanup;
    }

    memcpy(addr.key, cm->key, sizeof(addr.key));
    cm->addr_len     = uct_hixl_cm_addr_pack(&addr, cm->addr);
    iface->cm_events = 0;
    iface->cm        = cm;
    status           = uct_hixl_cm_loop_start(cm);
    if (status != UCS_OK) {
        goto err_listen_cleanup;
    }

    return UCS_OK;

err_listen_cleanup:
    iface->cm = NULL;
    uct_hixl_cm_listen_cleanup(cm);
err_loop_cleanup:
    uct_hixl_cm_loop_cleanup(cm);
err_free:
    pthread_mutex_destroy(&cm->lock);
    ucs_free(cm);
err:
    return status;
}

/* Lets the peer know, if its socket takes it at once. Unread bytes in a socket
 * that is closed would make the kernel throw away what was said last. */
static void uct_hixl_cm_take_leave(uct_hixl_cm_conn_t *conn)
{
    char waste[UCT_HIXL_CM_MSG_MAX];
    unsigned i;

    switch (conn->state) {
    case UCT_HIXL_CM_OFFERED:
    case UCT_HIXL_CM_UP:
    case UCT_HIXL_CM_BYE:
        uct_hixl_cm_conn_say(conn, UCT_HIXL_CM_MSG_LEAVE, 0);
        shutdown(conn->fd, SHUT_WR);
        for (i = 0; (i < 16) && (recv(conn->fd, waste, sizeof(waste),
                                      MSG_DONTWAIT) > 0); ++i) {
        }
        break;
    default:
        break;
    }
}

static void uct_hixl_cm_close_list(ucs_list_link_t *list)
{
    uct_hixl_cm_conn_t *conn, *tmp;
    uct_hixl_link_t *link;

    ucs_list_for_each_safe(conn, tmp, list, list) {
        ucs_assertv(conn->ep == NULL, "link %p is used by ep %p", conn->link,
                    conn->ep);
        link = conn->link;
        uct_hixl_cm_take_leave(conn);
        uct_hixl_cm_conn_free(conn);
        if (link != NULL) {
            link->cm = NULL;
            uct_hixl_link_destroy(link);
        }
    }
}

void uct_hixl_cm_close(uct_hixl_iface_t *iface)
{
    uct_hixl_cm_t *cm = iface->cm;

    if (cm == NULL) {
        return;
    }

    uct_hixl_cm_loop_stop(cm);

    pthread_mutex_lock(&cm->lock);
    uct_hixl_cm_listen_cleanup(cm);
    uct_hixl_cm_close_list(&cm->greeting);
    uct_hixl_cm_close_list(&cm->busy);
    uct_hixl_cm_close_list(&cm->idle);
    pthread_mutex_unlock(&cm->lock);

    uct_hixl_cm_loop_cleanup(cm);
    pthread_mutex_destroy(&cm->lock);
    ucs_free(cm);
    iface->cm        = NULL;
    iface->cm_events = 0;
}

size_t uct_hixl_cm_address_length(const uct_hixl_iface_t *iface)
{
    return iface->cm->addr_len;
}

void uct_hixl_cm_get_address(const uct_hixl_iface_t *iface,
                             uct_iface_addr_t *addr)
{
    memcpy(addr, iface->cm->addr, iface->cm->addr_len);
}

/* A link to that very interface that nobody uses here */
static uct_hixl_link_t *
uct_hixl_cm_take_idle(uct_hixl_cm_t *cm, uct_hixl_ep_t *ep, const void *addr,
                      size_t addr_len)
{
    uct_hixl_cm_conn_t *conn;

    ucs_list_for_each(conn, &cm->idle, list) {
        if ((conn->addr_len == addr_len) &&
            (memcmp(conn->addr, addr, addr_len) == 0)) {
            conn->ep = ep;
            uct_hixl_cm_conn_move(conn, &cm->busy);
            uct_hixl_cm_count(cm->reused);
            return conn->link;
        }
    }

    return NULL;
}

static ucs_status_t
uct_hixl_cm_make_link(uct_hixl_cm_t *cm, uct_hixl_ep_t *ep, const void *addr,
                      size_t addr_len, const uct_hixl_cm_addr_t *target,
                      uct_hixl_link_t **link_p)
{
    uct_hixl_cm_conn_t *conn;
    uct_hixl_link_t *link;
    ucs_status_t status;

    status = uct_hixl_link_create(cm->iface, &link);
    if (status != UCS_OK) {
        return status;
    }

    pthread_mutex_lock(&cm->lock);
    conn = uct_hixl_cm_conn_new(cm, UCT_HIXL_CM_CONNECTING);
    if (conn == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_unlock;
    }

    conn->link     = link;
    conn->ep       = ep;
    conn->target   = *target;
    conn->give_up  = uct_hixl_cm_now() + cm->timeout;
    conn->addr_len = addr_len;
    memcpy(conn->addr, addr, addr_len);
    link->cm = conn;
    status   = uct_hixl_cm_conn_dial(conn);
    if (status != UCS_OK) {
        goto err_free_conn;
    }

    pthread_mutex_unlock(&cm->lock);
    *link_p = link;
    return UCS_OK;

err_free_conn:
    uct_hixl_cm_conn_free(conn);
    link->cm = NULL;
err_unlock:
    pthread_mutex_unlock(&cm->lock);
    uct_hixl_link_destroy(link);
    return status;
}

ucs_status_t uct_hixl_cm_connect(uct_hixl_iface_t *iface, uct_hixl_ep_t *ep,
                                 const uct_device_addr_t *dev_addr,
                                 const uct_iface_addr_t *iface_addr,
                                 uct_hixl_link_t **link_p, int *ready_p)
{
    uct_hixl_cm_t *cm = iface->cm;
    uct_hixl_cm_addr_t target;
    uct_hixl_link_t *link;
    ucs_status_t status;
    size_t addr_len;

    (void)dev_addr; /* ACCEPT says it, too */

    /* UCT gives no length; the address says its own */
    status = uct_hixl_cm_addr_parse(iface_addr, UCT_HIXL_IFACE_ADDR_MAX,
                                    &target, &addr_len);
    if (status != UCS_OK) {
        ucs_debug("hixl: not an interface address of this version");
        return status;
    }

    pthread_mutex_lock(&cm->lock);
    link = uct_hixl_cm_take_idle(cm, ep, iface_addr, addr_len);
    pthread_mutex_unlock(&cm->lock);

    if (link != NULL) {
        *link_p  = link;
        *ready_p = 1;
        return UCS_OK;
    }

    status = uct_hixl_cm_make_link(cm, ep, iface_addr, addr_len, &target,
                                   link_p);
    if (status == UCS_OK) {
        *ready_p = 0;
    }
    return status;
}

static void uct_hixl_cm_drop(uct_hixl_cm_conn_t *conn)
{
    uct_hixl_cm_t *cm     = conn->cm;
    uct_hixl_link_t *link = conn->link;

    uct_hixl_cm_conn_free(conn);
    pthread_mutex_unlock(&cm->lock);

    link->cm = NULL;
    uct_hixl_link_destroy(link);
}

void uct_hixl_cm_release(uct_hixl_link_t *link)
{
    uct_hixl_cm_conn_t *conn = link->cm;
    uct_hixl_cm_t *cm        = conn->cm;
    ucs_status_t status;

    pthread_mutex_lock(&cm->lock);
    uct_hixl_cm_conn_cancel_event(conn);
    conn->ep = NULL;
    if (conn->state != UCT_HIXL_CM_UP) {
        uct_hixl_cm_drop(conn); /* the peer cannot be using it */
        return;
    }

    conn->state = UCT_HIXL_CM_BYE;
    uct_hixl_cm_deadline_set(conn, uct_hixl_cm_now() + cm->bye_timeout);
    status = uct_hixl_cm_conn_say(conn, UCT_HIXL_CM_MSG_BYE,
                                  ++conn->generation);
    if (status != UCS_OK) {
        uct_hixl_cm_conn_lost(conn, status);
    }
    pthread_mutex_unlock(&cm->lock);
}

void uct_hixl_cm_abort(uct_hixl_link_t *link)
{
    uct_hixl_cm_conn_t *conn = link->cm;

    /* The end of the socket tells the peer that its end is dead */
    pthread_mutex_lock(&conn->cm->lock);
    uct_hixl_cm_drop(conn);
}

/* Under the lock: uct_hixl_cm_progress() clears the word there, and a wake
 * before that is seen by whoever looks after it. */
void uct_hixl_cm_wake(uct_hixl_iface_t *iface)
{
    pthread_mutex_lock(&iface->cm->lock);
    __atomic_store_n(&iface->cm_events, 1, __ATOMIC_SEQ_CST);
    uct_hixl_iface_wake(iface);
    pthread_mutex_unlock(&iface->cm->lock);
}

unsigned uct_hixl_cm_progress(uct_hixl_iface_t *iface)
{
    uct_hixl_cm_t *cm = iface->cm;
    unsigned count    = 0;
    uct_hixl_cm_event_t event;
    uct_hixl_cm_conn_t *conn;
    uct_hixl_link_t *link;
    ucs_status_t status;
    uct_hixl_ep_t *ep;

    pthread_mutex_lock(&cm->lock);
    while (!ucs_list_is_empty(&cm->events)) {
        conn   = ucs_list_head(&cm->events, uct_hixl_cm_conn_t, event_list);
        event  = conn->event;
        ep     = conn->ep;
        link   = conn->link;
        status = conn->status;
        ++count;
        uct_hixl_cm_conn_cancel_event(conn);
        if (event == UCT_HIXL_CM_EVENT_CLOSED) {
            uct_hixl_cm_drop(conn);
        } else {
            /* What is called may call connect, release and abort */
            pthread_mutex_unlock(&cm->lock);
            if (event == UCT_HIXL_CM_EVENT_READY) {
                uct_hixl_ep_link_ready(ep, link);
            } else {
                uct_hixl_ep_link_failed(ep, link, status);
            }
        }
        pthread_mutex_lock(&cm->lock);
    }

    __atomic_store_n(&iface->cm_events, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&cm->lock);
    return count;
}
