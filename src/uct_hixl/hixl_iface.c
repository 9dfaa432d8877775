/* SPDX-License-Identifier: BSD-3-Clause */

/* The interface: configuration, attributes, addresses, opening and closing. */

#include "hixl_async.h"
#include "hixl_cm.h"
#include "hixl_ep.h"
#include "hixl_event.h"

#include <mlx5/cq_poll.h>

#include <string.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <uct/base/uct_worker.h>

/* CQEs that were taken, and whose record is not written yet: two batches */
#define UCT_HIXL_CQ_SPARE       32

#define UCT_HIXL_TX_GROW        64

#define UCT_HIXL_MAX_ZCOPY      UCS_GBYTE

extern ucs_class_t UCS_CLASS_DECL_NAME(uct_hixl_iface_t);

static UCS_CLASS_DEFINE_DELETE_FUNC(uct_hixl_iface_t, uct_iface_t);

static ucs_status_t uct_hixl_iface_flush(uct_iface_h tl_iface,
                                         unsigned flags UCS_V_UNUSED,
                                         uct_completion_t *comp)
{
    uct_hixl_iface_t *iface = ucs_derived_of(tl_iface, uct_hixl_iface_t);
    int busy                = 0;
    uct_hixl_ep_t *ep;
    ucs_status_t status;

    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    ucs_list_for_each(ep, &iface->ep_list, list) {
        if (ep->blocked & UCT_HIXL_EP_FAILED) {
            busy |= !uct_hixl_link_is_idle(ep->link);
            continue;
        }

        status = uct_hixl_ep_flush(&ep->super.super, 0, NULL);
        if ((status == UCS_INPROGRESS) || (status == UCS_ERR_NO_RESOURCE)) {
            busy = 1;
        } else if (status != UCS_OK) {
            return status;
        }
    }

    if (busy) {
        UCT_TL_IFACE_STAT_FLUSH_WAIT(&iface->super);
        return UCS_INPROGRESS;
    }

    UCT_TL_IFACE_STAT_FLUSH(&iface->super);
    return UCS_OK;
}

static ucs_status_t uct_hixl_iface_fence(uct_iface_h tl_iface,
                                         unsigned flags UCS_V_UNUSED)
{
    uct_hixl_iface_t *iface = ucs_derived_of(tl_iface, uct_hixl_iface_t);
    uct_hixl_ep_t *ep;

    ucs_list_for_each(ep, &iface->ep_list, list) {
        uct_hixl_ep_fence(&ep->super.super, 0);
    }
    UCT_TL_IFACE_STAT_FENCE(&iface->super);
    return UCS_OK;
}

void uct_hixl_iface_do_work(uct_hixl_iface_t *iface)
{
    uint32_t todo = iface->tx.todo;
    uct_hixl_link_t *link;
    uct_hixl_ep_t *ep;

    iface->tx.todo = 0;
    if (todo & UCT_HIXL_TODO_SIGNAL) {
        ucs_list_for_each(ep, &iface->ep_list, list) {
            (void)uct_hixl_link_signal_tail(ep->link);
        }
        ucs_list_for_each(link, &iface->draining, list) {
            (void)uct_hixl_link_signal_tail(link);
        }
    }

    if (todo & UCT_HIXL_TODO_DRAIN) {
        uct_hixl_iface_release_drained(iface);
    }

    if (todo & UCT_HIXL_TODO_REPORT) {
        uct_hixl_iface_report_failed(iface);
    }

    if (todo & UCT_HIXL_TODO_DISPATCH) {
        uct_hixl_iface_dispatch(iface);
    }
}

static unsigned uct_hixl_iface_progress(uct_iface_h tl_iface)
{
    uct_hixl_iface_t *iface = ucs_derived_of(tl_iface, uct_hixl_iface_t);
    unsigned count;

    count  = uct_hixl_iface_poll_recv(iface);
    count += uct_hixl_iface_poll_send(iface);
    if (ucs_unlikely(__atomic_load_n(&iface->cm_events, __ATOMIC_ACQUIRE))) {
        count += uct_hixl_cm_progress(iface);
        if (ucs_unlikely(iface->md->dev->gone)) {
            uct_hixl_iface_device_gone(iface);
        }
    }
    if (ucs_unlikely(iface->tx.todo)) {
        uct_hixl_iface_do_work(iface);
    }
    return count;
}

static uct_iface_ops_t uct_hixl_iface_ops = {
    .ep_put_short             = uct_hixl_ep_put_short,
    .ep_put_bcopy             = uct_hixl_ep_put_bcopy,
    .ep_put_zcopy             = uct_hixl_ep_put_zcopy,
    .ep_get_bcopy             = uct_hixl_ep_get_bcopy,
    .ep_get_zcopy             = uct_hixl_ep_get_zcopy,
    .ep_am_short              = uct_hixl_ep_am_short,
    .ep_am_short_iov          = uct_hixl_ep_am_short_iov,
    .ep_am_bcopy              = uct_hixl_ep_am_bcopy,
    .ep_am_zcopy              = uct_hixl_ep_am_zcopy,
    .ep_pending_add           = uct_hixl_ep_pending_add,
    .ep_pending_purge         = uct_hixl_ep_pending_purge,
    .ep_flush                 = uct_hixl_ep_flush,
    .ep_fence                 = uct_hixl_ep_fence,
    .ep_check                 = uct_hixl_ep_check,
    .ep_create                = UCS_CLASS_NEW_FUNC_NAME(uct_hixl_ep_t),
    .ep_destroy               = UCS_CLASS_DELETE_FUNC_NAME(uct_hixl_ep_t),
    .ep_get_address           = uct_hixl_ep_get_address,
    .ep_connect_to_ep         = uct_hixl_ep_connect_to_ep,
    .iface_flush              = uct_hixl_iface_flush,
    .iface_fence              = uct_hixl_iface_fence,
    .iface_progress_enable    = uct_base_iface_progress_enable,
    .iface_progress_disable   = uct_base_iface_progress_disable,
    .iface_progress           = uct_hixl_iface_progress,
    .iface_event_fd_get       = uct_hixl_iface_event_fd_get,
    .iface_event_arm          = uct_hixl_iface_event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_hixl_iface_t),
    .iface_query              = uct_hixl_iface_query,
    .iface_get_device_address = uct_hixl_iface_get_device_address,
    .iface_get_address        = uct_hixl_iface_get_address,
    .iface_is_reachable       = uct_hixl_iface_is_reachable
};

static void uct_hixl_tx_desc_init(ucs_mpool_t *mp UCS_V_UNUSED, void *obj,
                                  void *chunk)
{
    uct_hixl_tx_desc_t *desc = obj;

    desc->lkey = uct_hixl_pool_chunk_key(chunk);
}

static ucs_mpool_ops_t uct_hixl_tx_mpool_ops = {
    .chunk_alloc   = uct_hixl_pool_chunk_alloc,
    .chunk_release = uct_hixl_pool_chunk_release,
    .obj_init      = uct_hixl_tx_desc_init
};

static ucs_status_t
uct_hixl_iface_check_params(const uct_iface_params_t *params,
                            const uct_priv_worker_t *worker)
{
    UCT_CHECK_PARAM(params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE,
                    "UCT_IFACE_PARAM_FIELD_OPEN_MODE is not defined");
    if (!(params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE)) {
        ucs_error("the " UCT_HIXL_NAME " transport opens devices only");
        return UCS_ERR_UNSUPPORTED;
    }

    if (worker->thread_mode == UCS_THREAD_MODE_MULTI) {
        ucs_error("the " UCT_HIXL_NAME " transport wants its worker's calls "
                  "serialized");
        return UCS_ERR_INVALID_PARAM;
    }

    /* What makes connections takes locks, and uses sockets and the device */
    if (worker->async->mode == UCS_ASYNC_MODE_SIGNAL) {
        ucs_diag("the " UCT_HIXL_NAME " transport cannot be used with "
                 "UCX_ASYNC_MODE=signal");
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
}

static ucs_status_t uct_hixl_iface_init_port(uct_hixl_iface_t *iface,
                                             const char *dev_name,
                                             unsigned long gid_index)
{
    const char *md_name = iface->md->dev->name;
    const char *colon   = strrchr(dev_name, ':');
    unsigned long port_num;
    char *end;

    port_num = (colon == NULL) ? 0 : strtoul(colon + 1, &end, 10);
    if ((port_num == 0) || (port_num > iface->md->dev->caps.num_ports) ||
        (*end != '\0') || ((size_t)(colon - dev_name) != strlen(md_name)) ||
        (memcmp(dev_name, md_name, colon - dev_name) != 0)) {
        ucs_error("%s: there is no device %s", md_name, dev_name);
        return UCS_ERR_NO_DEVICE;
    }

    if (iface->md->dev->gone) {
        ucs_error("%s: the device is gone", dev_name);
        return UCS_ERR_NO_DEVICE;
    }

    if (hx_port_query(iface->md->dev, port_num,
                      (gid_index == UCS_ULUNITS_AUTO) ? HX_GID_INDEX_AUTO :
                      (uint32_t)gid_index, &iface->port) != 0) {
        return UCS_ERR_IO_ERROR;
    }

    if (!iface->port.active) {
        ucs_error("%s: the port is not active", dev_name);
        return UCS_ERR_UNREACHABLE;
    }
    return UCS_OK;
}

static ucs_status_t
uct_hixl_iface_init_queues(uct_hixl_iface_t *iface,
                           const uct_hixl_iface_config_t *config)
{
    struct hx_dev *dev   = iface->md->dev;
    unsigned log_send_cq = uct_hixl_config_log_tx_cq(config, &dev->caps);
    unsigned log_rmp     = uct_hixl_config_log_rx_queue(config, &dev->caps);

    if (hx_uar_create(dev, &iface->uar) != 0) {
        goto err;
    }

    if (hx_cq_create(dev, iface->uar, log_send_cq, NULL,
                     &iface->send_cq) != 0) {
        goto err_destroy_uar;
    }

    /* Errors of QPs make CQEs that took no receive */
    if (hx_cq_create(dev, iface->uar, log_rmp + 1, NULL,
                     &iface->recv_cq) != 0) {
        goto err_destroy_send_cq;
    }

    if (hx_rmp_create(dev, iface->uar, log_rmp, &iface->rmp) != 0) {
        goto err_destroy_recv_cq;
    }

    iface->tx.cq_credits = UCS_BIT(log_send_cq) - UCT_HIXL_CQ_SPARE;
    return UCS_OK;

err_destroy_recv_cq:
    hx_cq_destroy(iface->recv_cq);
err_destroy_send_cq:
    hx_cq_destroy(iface->send_cq);
err_destroy_uar:
    hx_uar_destroy(iface->uar);
err:
    return UCS_ERR_IO_ERROR;
}

static void uct_hixl_iface_cleanup_queues(uct_hixl_iface_t *iface)
{
    hx_rmp_destroy(iface->rmp);
    hx_cq_destroy(iface->recv_cq);
    hx_cq_destroy(iface->send_cq);
    hx_uar_destroy(iface->uar);
}

static ucs_status_t
uct_hixl_iface_init_tx(uct_hixl_iface_t *iface,
                       const uct_hixl_iface_config_t *config)
{
    unsigned grow = (config->tx_mpool.bufs_grow != 0) ?
                    config->tx_mpool.bufs_grow : UCT_HIXL_TX_GROW;
    ucs_status_t status;

    iface->tx.todo             = 0;
    iface->tx.polling          = 0;
    iface->tx.bounce_put_bytes = hx_counter("hixl.bounce_put_bytes");
    iface->tx.bounce_get_bytes = hx_counter("hixl.bounce_get_bytes");
    iface->tx.bounce_am_bytes  = hx_counter("hixl.bounce_am_bytes");

    status = uct_hixl_op_mpool_init(iface);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_hixl_pool_init(&iface->tx.pool, iface->md->dev,
                                sizeof(uct_hixl_tx_desc_t) +
                                iface->config.seg_size,
                                offsetof(uct_hixl_tx_desc_t, data),
                                UCS_SYS_CACHE_LINE_SIZE, grow,
                                config->tx_mpool.max_bufs,
                                &uct_hixl_tx_mpool_ops, "hixl_tx_desc");
    if (status != UCS_OK) {
        uct_hixl_op_mpool_cleanup(iface);
    }
    return status;
}

static void uct_hixl_iface_cleanup_tx(uct_hixl_iface_t *iface)
{
    uct_hixl_pool_cleanup(&iface->tx.pool);
    uct_hixl_op_mpool_cleanup(iface);
}

static UCS_CLASS_INIT_FUNC(uct_hixl_iface_t, uct_md_h tl_md,
                           uct_worker_h tl_worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config)
{
    uct_hixl_iface_config_t *config = ucs_derived_of(tl_config,
                                                     uct_hixl_iface_config_t);
    uct_priv_worker_t *worker       = ucs_derived_of(tl_worker,
                                                     uct_priv_worker_t);
    ucs_status_t status;

    status = uct_hixl_iface_check_params(params, worker);
    if (status != UCS_OK) {
        return status;
    }

    UCS_CLASS_CALL_SUPER_INIT(
            uct_base_iface_t, &uct_hixl_iface_ops,
            &uct_hixl_iface_internal_ops, tl_md, tl_worker, params,
            tl_config UCS_STATS_ARG(
                    (params->field_mask & UCT_IFACE_PARAM_FIELD_STATS_ROOT) ?
                    params->stats_root : NULL)
            UCS_STATS_ARG(params->mode.device.dev_name));

    self->md        = ucs_derived_of(tl_md, uct_hixl_md_t);
    self->cm_events = 0;
    self->cm        = NULL;
    self->gone      = 0;
    self->event     = NULL;
    memset(&self->qps, 0, sizeof(self->qps));
    ucs_list_head_init(&self->ep_list);
    self->num_eps = 0;
    ucs_list_head_init(&self->draining);
    ucs_arbiter_init(&self->arbiter);

    status = uct_hixl_iface_init_port(self, params->mode.device.dev_name,
                                      config->gid_index);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_hixl_iface_init_config(self, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_hixl_iface_init_queues(self, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_hixl_iface_init_tx(self, config);
    if (status != UCS_OK) {
        goto err_cleanup_queues;
    }

    status = uct_hixl_iface_rx_init(self, params, config);
    if (status != UCS_OK) {
        goto err_cleanup_tx;
    }

    status = uct_hixl_cm_open(self);
    if (status != UCS_OK) {
        goto err_cleanup_rx;
    }

    status = uct_hixl_async_watch(self);
    if (status != UCS_OK) {
        goto err_cm_close;
    }

    self->config.cm_addr = NULL; /* the configuration is not ours to keep */
    return UCS_OK;

err_cm_close:
    uct_hixl_cm_close(self);
err_cleanup_rx:
    uct_hixl_iface_rx_cleanup(self);
err_cleanup_tx:
    uct_hixl_iface_cleanup_tx(self);
err_cleanup_queues:
    uct_hixl_iface_cleanup_queues(self);
    return status;
}

static UCS_CLASS_CLEANUP_FUNC(uct_hixl_iface_t)
{
    uct_base_iface_progress_disable(&self->super.super,
                                    UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_hixl_async_unwatch(self);
    uct_hixl_iface_abort_draining(self);
    uct_hixl_cm_close(self);
    uct_hixl_qp_table_cleanup(&self->qps);
    ucs_arbiter_cleanup(&self->arbiter);

    /* The receive queue goes before the buffers that are posted to it */
    uct_hixl_iface_cleanup_queues(self);
    uct_hixl_event_cleanup(self);
    uct_hixl_iface_rx_cleanup(self);
    uct_hixl_iface_cleanup_tx(self);
}

UCS_CLASS_DEFINE(uct_hixl_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_hixl_iface_t, uct_iface_t, uct_md_h,
                                 uct_worker_h, const uct_iface_params_t*,
                                 const uct_iface_config_t*);

UCT_TL_DEFINE_ENTRY(&uct_hixl_component, hixl, uct_hixl_query_devices,
                    uct_hixl_iface_t, UCT_HIXL_CONFIG_PREFIX,
                    uct_hixl_iface_config_table, uct_hixl_iface_config_t);
