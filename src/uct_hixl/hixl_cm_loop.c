/* SPDX-License-Identifier: BSD-3-Clause */

/* What the connection manager waits for: one epoll set in UCX's async thread,
 * one timer in it. */

#include "hixl_cm_int.h"

#include <ucs/async/async.h>
#include <ucs/debug/log.h>

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* Few at a time: each may make a QP, and the application's thread may be
 * waiting for the lock. What is left over is told again. */
#define UCT_HIXL_CM_BATCH 16

uint64_t uct_hixl_cm_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * UCT_HIXL_CM_NSEC_PER_SEC) + ts.tv_nsec;
}

/* The timer only ever moves to an earlier time here; when it fires, the next
 * one is looked for. So it may fire for a deadline that was taken back. */
static void uct_hixl_cm_timer_arm(uct_hixl_cm_t *cm, uint64_t when)
{
    struct itimerspec its = {
        .it_value = {
            .tv_sec  = when / UCT_HIXL_CM_NSEC_PER_SEC,
            .tv_nsec = when % UCT_HIXL_CM_NSEC_PER_SEC
        }
    };

    if ((cm->armed != 0) && (cm->armed <= when)) {
        return;
    }

    cm->armed = when;
    if (timerfd_settime(cm->timer_fd, TFD_TIMER_ABSTIME, &its, NULL) != 0) {
        ucs_error("hixl: timerfd_settime() failed: %m");
    }
}

void uct_hixl_cm_deadline_set(uct_hixl_cm_conn_t *conn, uint64_t deadline)
{
    uct_hixl_cm_t *cm = conn->cm;

    if ((deadline == 0) && (conn->deadline != 0)) {
        ucs_list_del(&conn->wait_list);
    } else if ((deadline != 0) && (conn->deadline == 0)) {
        ucs_list_add_tail(&cm->waiting, &conn->wait_list);
    }

    conn->deadline = deadline;
    if (deadline != 0) {
        uct_hixl_cm_timer_arm(cm, deadline);
    }
}

void uct_hixl_cm_rest(uct_hixl_cm_t *cm, uint64_t duration)
{
    if (cm->rest_until == 0) {
        uct_hixl_cm_listen_pause(cm);
    }

    cm->rest_until = uct_hixl_cm_now() + duration;
    uct_hixl_cm_timer_arm(cm, cm->rest_until);
}

static void uct_hixl_cm_timer_fired(uct_hixl_cm_t *cm)
{
    uint64_t now = uct_hixl_cm_now();
    uct_hixl_cm_conn_t *conn, *tmp;
    uint64_t count;

    if (read(cm->timer_fd, &count, sizeof(count)) != sizeof(count)) {
        return; /* it was set anew meanwhile */
    }

    cm->armed = 0;
    ucs_list_for_each_safe(conn, tmp, &cm->waiting, wait_list) {
        if (conn->deadline <= now) {
            uct_hixl_cm_deadline_set(conn, 0);
            uct_hixl_cm_conn_expired(conn);
        }
    }

    if ((cm->rest_until != 0) && (cm->rest_until <= now)) {
        cm->rest_until = 0;
        if (uct_hixl_cm_listen_resume(cm) != UCS_OK) {
            uct_hixl_cm_rest(cm, UCT_HIXL_CM_REST_NO_FD);
        }
    }

    if (cm->rest_until != 0) {
        uct_hixl_cm_timer_arm(cm, cm->rest_until);
    }
    ucs_list_for_each(conn, &cm->waiting, wait_list) {
        uct_hixl_cm_timer_arm(cm, conn->deadline);
    }
}

static void uct_hixl_cm_handler(int fd, ucs_event_set_types_t types, void *arg)
{
    uct_hixl_cm_t *cm = arg;
    struct epoll_event events[UCT_HIXL_CM_BATCH];
    uct_hixl_cm_conn_t *conn, *tmp;
    const int *listen_fd;
    int count, i;

    (void)fd;
    (void)types;

    /* The events are fetched under the lock, and no connection is freed until
     * all are looked at, so none is for a connection that is no more */
    pthread_mutex_lock(&cm->lock);
    count = epoll_wait(cm->epoll_fd, events, UCT_HIXL_CM_BATCH, 0);
    for (i = 0; i < count; ++i) {
        listen_fd = events[i].data.ptr;
        if (events[i].data.ptr == &cm->timer_fd) {
            uct_hixl_cm_timer_fired(cm);
        } else if ((listen_fd >= cm->listen_fd) &&
                   (listen_fd < cm->listen_fd + UCT_HIXL_CM_MAX_IPS)) {
            uct_hixl_cm_accept(cm, listen_fd - cm->listen_fd);
        } else {
            conn = events[i].data.ptr;
            if (conn->fd != -1) {
                uct_hixl_cm_conn_ready(conn, events[i].events);
            }
        }
    }

    ucs_list_for_each_safe(conn, tmp, &cm->dead, list) {
        uct_hixl_cm_conn_free(conn);
    }
    pthread_mutex_unlock(&cm->lock);
}

ucs_status_t uct_hixl_cm_watch(uct_hixl_cm_conn_t *conn, uint32_t events)
{
    int op                = (conn->epoll_events == 0) ? EPOLL_CTL_ADD :
                                                        EPOLL_CTL_MOD;
    struct epoll_event ev = {
        .events   = events,
        .data.ptr = conn
    };

    if (conn->epoll_events == events) {
        return UCS_OK;
    }

    if (epoll_ctl(conn->cm->epoll_fd, op, conn->fd, &ev) != 0) {
        ucs_error("hixl: epoll_ctl() failed: %m");
        return UCS_ERR_IO_ERROR;
    }

    conn->epoll_events = events;
    return UCS_OK;
}

ucs_status_t uct_hixl_cm_loop_init(uct_hixl_cm_t *cm)
{
    struct epoll_event ev = {
        .events   = EPOLLIN,
        .data.ptr = &cm->timer_fd
    };

    cm->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (cm->epoll_fd < 0) {
        uct_hixl_cm_report_no_fd(cm, "epoll_create1()", errno);
        goto err;
    }

    cm->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (cm->timer_fd < 0) {
        uct_hixl_cm_report_no_fd(cm, "timerfd_create()", errno);
        goto err_close_epoll;
    }

    if (epoll_ctl(cm->epoll_fd, EPOLL_CTL_ADD, cm->timer_fd, &ev) != 0) {
        ucs_error("hixl: epoll_ctl() failed: %m");
        goto err_close_timer;
    }

    return UCS_OK;

err_close_timer:
    close(cm->timer_fd);
err_close_epoll:
    close(cm->epoll_fd);
err:
    return UCS_ERR_IO_ERROR;
}

ucs_status_t uct_hixl_cm_loop_start(uct_hixl_cm_t *cm)
{
    return ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                       cm->epoll_fd, UCS_EVENT_SET_EVREAD,
                                       uct_hixl_cm_handler, cm, NULL);
}

void uct_hixl_cm_loop_stop(uct_hixl_cm_t *cm)
{
    ucs_async_remove_handler(cm->epoll_fd, 1);
}

void uct_hixl_cm_loop_cleanup(uct_hixl_cm_t *cm)
{
    close(cm->timer_fd);
    close(cm->epoll_fd);
}
