/* SPDX-License-Identifier: BSD-3-Clause */

/* The DevX event channel, and the device's asynchronous events. */

#include "hx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

int hx_channel_create(struct hx_dev *dev, struct hx_channel **chan_p)
{
    char hint[HX_LIMIT_HINT_MAX];
    struct hx_channel *chan;
    int flags, ret;

    chan = calloc(1, sizeof(*chan));
    if (chan == NULL) {
        hx_log(HX_LOG_ERROR, "%s: no memory for an event channel", dev->name);
        return -ENOMEM;
    }

    /* Without data one event of a subscription waits at most: the channel does
     * not overflow, and an event is its cookie */
    chan->dv = mlx5dv_devx_create_event_channel(
            dev->ibv, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
    if (chan->dv == NULL) {
        ret = -errno;
        hx_log(HX_LOG_ERROR, "%s: making an event channel failed: %s%s",
               dev->name, strerror(-ret),
               hx_limit_hint(HX_LIMIT_OPEN, -ret, hint, sizeof(hint)));
        goto err_free;
    }

    flags = fcntl(chan->dv->fd, F_GETFL);
    if ((flags == -1) ||
        (fcntl(chan->dv->fd, F_SETFL, flags | O_NONBLOCK) == -1)) {
        ret = -errno;
        hx_log(HX_LOG_ERROR, "%s: event channel: fcntl failed: %s", dev->name,
               strerror(errno));
        goto err_destroy;
    }

    chan->fd = chan->dv->fd;
    *chan_p  = chan;
    return 0;

err_destroy:
    mlx5dv_devx_destroy_event_channel(chan->dv);
err_free:
    free(chan);
    return ret;
}

void hx_channel_destroy(struct hx_channel *chan)
{
    mlx5dv_devx_destroy_event_channel(chan->dv);
    free(chan);
}

/* The cookie is the CQ's number and not its address: an event may still wait
 * here when its CQ is gone */
static void channel_event(struct hx_channel *chan, uint64_t cookie)
{
    struct hx_cq *cq;

    for (cq = chan->cqs; cq != NULL; cq = cq->chan_next) {
        if (cq->cqn == cookie) {
            ++cq->arm_sn;
            break;
        }
    }
}

int hx_channel_drain(struct hx_channel *chan)
{
    struct mlx5dv_devx_async_event_hdr hdr;
    int count = 0;
    ssize_t n;

    for (;;) {
        n = mlx5dv_devx_get_event(chan->dv, &hdr, sizeof(hdr));
        if (n >= (ssize_t)sizeof(hdr)) {
            channel_event(chan, hdr.cookie);
            ++count;
        } else if ((n >= 0) || (errno == EAGAIN)) {
            return count;
        } else if (errno != EINTR) {
            n = -errno;
            hx_log(HX_LOG_ERROR, "reading the event channel failed: %s",
                   strerror(errno));
            return n;
        }
    }
}

int hx_dev_event_fd(const struct hx_dev *dev)
{
    return dev->ibv->async_fd;
}

/* Objects made through DevX have no events here, only the device and its ports.
 * A kernel that has removed the device says so once, and ends the file: EIO. */
bool hx_dev_next_event(struct hx_dev *dev, struct hx_dev_event *event_p)
{
    struct ibv_async_event event;
    int ret;

    if (dev->gone) {
        return false;
    }

    do {
        ret = ibv_get_async_event(dev->ibv, &event);
    } while ((ret != 0) && (errno == EINTR));

    if (ret != 0) {
        if (errno != EIO) {
            return false;
        }
        event.event_type = IBV_EVENT_DEVICE_FATAL;
    }

    event_p->port = 0;
    event_p->text = ibv_event_type_str(event.event_type);
    switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL:
        event_p->type = HX_DEV_GONE;
        dev->gone     = true;
        break;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
        event_p->type = (event.event_type == IBV_EVENT_PORT_ERR) ?
                        HX_DEV_PORT_DOWN : HX_DEV_PORT_UP;
        event_p->port = event.element.port_num;
        break;
    default:
        event_p->type = HX_DEV_OTHER;
        break;
    }

    if (ret == 0) {
        ibv_ack_async_event(&event);
    }
    return true;
}
