/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Wakeup: one descriptor that says that progress has work. Under it are the
 * device's event channel, for completions, and an eventfd, for what the
 * connection manager's handlers have queued. Both are made when somebody asks
 * for the descriptor: an interface that is only polled has none of them.
 */

#include "hixl_event.h"

#include <mlx5/cq_poll.h>

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sock.h>
#include <unistd.h>

struct uct_hixl_event {
    struct hx_channel *chan;
    int                wake_fd;
    int                epoll_fd;
    int                broken;   /* the channel cannot be read */
};

static ucs_status_t uct_hixl_event_watch(uct_hixl_event_t *event, int fd)
{
    struct epoll_event watch = {.events = EPOLLIN};

    if (epoll_ctl(event->epoll_fd, EPOLL_CTL_ADD, fd, &watch) != 0) {
        ucs_error("hixl: epoll_ctl() of the wakeup descriptor failed: %m");
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

static ucs_status_t uct_hixl_event_make_fds(uct_hixl_event_t *event)
{
    ucs_status_t status = UCS_ERR_IO_ERROR;

    event->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (event->wake_fd == -1) {
        ucs_error("hixl: eventfd() for wakeup failed: %m");
        goto err;
    }

    event->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (event->epoll_fd == -1) {
        ucs_error("hixl: epoll_create1() for wakeup failed: %m");
        goto err_close_wake;
    }

    status = uct_hixl_event_watch(event, event->chan->fd);
    if (status != UCS_OK) {
        goto err_close_epoll;
    }

    status = uct_hixl_event_watch(event, event->wake_fd);
    if (status != UCS_OK) {
        goto err_close_epoll;
    }
    return UCS_OK;

err_close_epoll:
    ucs_close_fd(&event->epoll_fd);
err_close_wake:
    ucs_close_fd(&event->wake_fd);
err:
    return status;
}

static ucs_status_t uct_hixl_event_create(uct_hixl_iface_t *iface)
{
    struct hx_dev *dev = iface->md->dev;
    uct_hixl_event_t *event;
    ucs_status_t status;

    event = ucs_calloc(1, sizeof(*event), "hixl_event");
    if (event == NULL) {
        ucs_error("%s: no memory for wakeup", dev->name);
        return UCS_ERR_NO_MEMORY;
    }

    status = UCS_ERR_IO_ERROR;
    if (hx_channel_create(dev, &event->chan) != 0) {
        goto err_free;
    }

    status = uct_hixl_event_make_fds(event);
    if (status != UCS_OK) {
        goto err_destroy_channel;
    }

    status = UCS_ERR_IO_ERROR;
    if (hx_cq_set_channel(dev, iface->send_cq, event->chan) != 0) {
        goto err_close_fds;
    }

    if (hx_cq_set_channel(dev, iface->recv_cq, event->chan) != 0) {
        goto err_unset_send_cq;
    }

    /* A handler first sets cm_events and then looks for this; who arms looks
     * at cm_events after it is there. */
    __atomic_store_n(&iface->event, event, __ATOMIC_SEQ_CST);
    return UCS_OK;

err_unset_send_cq:
    hx_cq_unset_channel(iface->send_cq);
err_close_fds:
    ucs_close_fd(&event->epoll_fd);
    ucs_close_fd(&event->wake_fd);
err_destroy_channel:
    hx_channel_destroy(event->chan);
err_free:
    ucs_free(event);
    return status;
}

void uct_hixl_event_cleanup(uct_hixl_iface_t *iface)
{
    uct_hixl_event_t *event = iface->event;

    if (event == NULL) {
        return;
    }

    iface->event = NULL;
    hx_channel_destroy(event->chan);
    ucs_close_fd(&event->epoll_fd);
    ucs_close_fd(&event->wake_fd);
    ucs_free(event);
}

ucs_status_t uct_hixl_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    uct_hixl_iface_t *iface = ucs_derived_of(tl_iface, uct_hixl_iface_t);
    ucs_status_t status;

    if (iface->event == NULL) {
        status = uct_hixl_event_create(iface);
        if (status != UCS_OK) {
            return status;
        }
    }

    *fd_p = iface->event->epoll_fd;
    return UCS_OK;
}

void uct_hixl_iface_wake(uct_hixl_iface_t *iface)
{
    uct_hixl_event_t *event = __atomic_load_n(&iface->event, __ATOMIC_SEQ_CST);
    uint64_t one            = 1;

    /* It only fails if the counter is full, and then the descriptor is
     * readable as it is. */
    if ((event != NULL) && (write(event->wake_fd, &one, sizeof(one)) == -1) &&
        (errno != EAGAIN)) {
        ucs_error("hixl: writing the wakeup eventfd failed: %m");
    }
}

/* What came since the descriptor was last looked at. A channel that cannot be
 * read, as that of a device that is gone, lets nobody sleep. */
static int uct_hixl_event_drain(uct_hixl_event_t *event)
{
    uint64_t count;
    int ret;

    if (event->broken) {
        return 1;
    }

    ret = hx_channel_drain(event->chan);
    if (ret < 0) {
        event->broken = 1;
        return 1;
    }

    return (read(event->wake_fd, &count, sizeof(count)) == sizeof(count)) ||
           (ret > 0);
}

/* Receives that progress could post: with too few of them posted no message
 * comes, and so none would wake anybody. The user may have given their buffers
 * back since. */
static int uct_hixl_event_wants_refill(uct_hixl_iface_t *iface)
{
    return (iface->rx.consumed >= iface->rx.batch) &&
           !uct_hixl_pool_is_empty(&iface->rx.pool);
}

/* What is not announced by a completion */
static int uct_hixl_event_has_work(uct_hixl_iface_t *iface)
{
    return __atomic_load_n(&iface->cm_events, __ATOMIC_SEQ_CST) ||
           (iface->tx.todo != 0) ||
           (!iface->gone && uct_hixl_event_wants_refill(iface));
}

ucs_status_t uct_hixl_iface_event_arm(uct_iface_h tl_iface, unsigned events)
{
    uct_hixl_iface_t *iface = ucs_derived_of(tl_iface, uct_hixl_iface_t);
    int send                = events & UCT_EVENT_SEND_COMP;
    int recv                = events & (UCT_EVENT_RECV | UCT_EVENT_RECV_SIG);

    ucs_assertv(iface->event != NULL, "the descriptor was never asked for");

    if (iface->gone) {
        /* No completion comes any more, and the device is left alone */
        return uct_hixl_event_has_work(iface) ? UCS_ERR_BUSY : UCS_OK;
    }

    /* An event ends an arming: read them first, or the next would be missed */
    if (uct_hixl_event_drain(iface->event) || uct_hixl_event_has_work(iface)) {
        return UCS_ERR_BUSY;
    }

    if ((send && hx_cq_is_ready(iface->send_cq)) ||
        (recv && hx_cq_is_ready(iface->recv_cq))) {
        return UCS_ERR_BUSY;
    }

    /* A completion that comes in between raises its event at once */
    if (send) {
        hx_cq_arm(iface->send_cq, false);
    }
    if (recv) {
        hx_cq_arm(iface->recv_cq, false);
    }
    return UCS_OK;
}
