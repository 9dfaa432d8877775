/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the kernel tells of a device: that it is gone, that a port is down. One
 * handler for each memory domain with an interface, in UCX's async thread; it
 * publishes, and the progress of each interface acts.
 */

#include "hixl_async.h"
#include "hixl_cm.h"

#include <ucs/async/async.h>
#include <ucs/debug/log.h>

void uct_hixl_async_init(uct_hixl_async_t *async)
{
    pthread_mutex_init(&async->lock, NULL);
    ucs_list_head_init(&async->ifaces);
    async->watched = 0;
}

void uct_hixl_async_cleanup(uct_hixl_async_t *async)
{
    pthread_mutex_destroy(&async->lock);
}

static void uct_hixl_async_gone(uct_hixl_md_t *md)
{
    uct_hixl_iface_t *iface;

    ucs_error("%s: the device was removed or has failed (%s): its endpoints "
              "fail with \"%s\", and no more can be made on it", md->dev->name,
              ibv_event_type_str(IBV_EVENT_DEVICE_FATAL),
              ucs_status_string(UCT_HIXL_GONE_STATUS));
    ucs_list_for_each(iface, &md->async.ifaces, async_list) {
        uct_hixl_cm_wake(iface);
    }
}

/* With the lock held */
static void uct_hixl_async_read(uct_hixl_md_t *md)
{
    struct hx_dev_event event;

    while (hx_dev_next_event(md->dev, &event)) {
        switch (event.type) {
        case HX_DEV_GONE:
            uct_hixl_async_gone(md);
            break;
        case HX_DEV_PORT_DOWN:
            ucs_warn("%s:%u: %s: what is posted is tried again, and fails if "
                     "the port stays down for longer than UCX_HIXL_TIMEOUT and "
                     "UCX_HIXL_RETRY_COUNT allow", md->dev->name, event.port,
                     event.text);
            break;
        case HX_DEV_PORT_UP:
            ucs_diag("%s:%u: %s", md->dev->name, event.port, event.text);
            break;
        default:
            ucs_warn("%s: %s", md->dev->name, event.text);
            break;
        }
    }
}

static void uct_hixl_async_handler(int fd, ucs_event_set_types_t types,
                                   void *arg)
{
    uct_hixl_md_t *md = arg;

    (void)types;
    pthread_mutex_lock(&md->async.lock);
    if (md->async.watched) {
        uct_hixl_async_read(md);
        if (md->dev->gone) {
            /* The kernel has closed its end: this would be called for ever */
            md->async.watched = 0;
            ucs_async_remove_handler(fd, 0);
        }
    }
    pthread_mutex_unlock(&md->async.lock);
}

ucs_status_t uct_hixl_async_watch(uct_hixl_iface_t *iface)
{
    uct_hixl_md_t *md   = iface->md;
    ucs_status_t status = UCS_OK;

    pthread_mutex_lock(&md->async.lock);
    if (md->dev->gone) {
        status = UCS_ERR_NO_DEVICE;
    } else if (!md->async.watched) {
        status = ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                             hx_dev_event_fd(md->dev),
                                             UCS_EVENT_SET_EVREAD,
                                             uct_hixl_async_handler, md, NULL);
        md->async.watched = (status == UCS_OK);
    }

    if (status == UCS_OK) {
        ucs_list_add_tail(&md->async.ifaces, &iface->async_list);
    }
    pthread_mutex_unlock(&md->async.lock);
    return status;
}

void uct_hixl_async_unwatch(uct_hixl_iface_t *iface)
{
    uct_hixl_md_t *md = iface->md;
    int remove;

    pthread_mutex_lock(&md->async.lock);
    uct_hixl_async_read(md); /* nothing that was told is lost */
    ucs_list_del(&iface->async_list);
    remove = md->async.watched && ucs_list_is_empty(&md->async.ifaces);
    if (remove) {
        md->async.watched = 0;
    }
    pthread_mutex_unlock(&md->async.lock);

    /* Waits for the handler, which may be waiting for the lock */
    if (remove) {
        ucs_async_remove_handler(hx_dev_event_fd(md->dev), 1);
    }
}
