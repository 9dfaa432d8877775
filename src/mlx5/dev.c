/* SPDX-License-Identifier: BSD-3-Clause */

/* Devices and their ports. */

#include "caps.h"
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* DevX fails to open where the firmware makes no user context (UCTX_EN off,
 * some virtual functions) and where the kernel has none. */
static struct ibv_context *dev_open_devx(struct ibv_device *ibv_dev)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};

    return mlx5dv_open_device(ibv_dev, &attr);
}

static bool dev_is_usable(struct ibv_device *ibv_dev)
{
    const char *name = ibv_get_device_name(ibv_dev);
    struct ibv_context *ibv;
    const char *missing;
    struct hx_caps caps;
    bool usable;

    if (!mlx5dv_is_supported(ibv_dev)) {
        return false;
    }

    ibv = dev_open_devx(ibv_dev);
    if (ibv == NULL) {
        hx_log(HX_LOG_DEBUG, "%s: does not open with DevX: %s", name,
               strerror(errno));
        return false;
    }

    usable = hx_caps_query(ibv, &caps, HX_LOG_DEBUG) == 0;
    if (usable) {
        missing = hx_caps_missing(&caps);
        usable  = missing == NULL;
        if (!usable) {
            hx_log(HX_LOG_DEBUG, "%s: lacks %s", name, missing);
        }
    }

    ibv_close_device(ibv);
    return usable;
}

int hx_dev_list(char ***names_p, unsigned *count_p)
{
    unsigned count = 0;
    struct ibv_device **list;
    char **names;
    int i, n, ret;

    list = ibv_get_device_list(&n);
    if (list == NULL) {
        /* ENOSYS: this kernel has no RDMA at all */
        if (errno != ENOSYS) {
            ret = -errno;
            hx_log(HX_LOG_ERROR, "listing RDMA devices failed: %s",
                   strerror(errno));
            return ret;
        }
        n = 0;
    }

    names = calloc((size_t)n + 1, sizeof(*names));
    if (names == NULL) {
        ret = -ENOMEM;
        goto err_free_list;
    }

    for (i = 0; i < n; ++i) {
        if (!dev_is_usable(list[i])) {
            continue;
        }

        names[count] = strdup(ibv_get_device_name(list[i]));
        if (names[count] == NULL) {
            ret = -ENOMEM;
            goto err_free_names;
        }
        ++count;
    }

    if (list != NULL) {
        ibv_free_device_list(list);
    }

    *names_p = names;
    *count_p = count;
    return 0;

err_free_names:
    while (count-- > 0) {
        free(names[count]);
    }
    free(names);
err_free_list:
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    hx_log(HX_LOG_ERROR, "no memory for the list of RDMA devices");
    return ret;
}

static struct ibv_context *dev_open_by_name(const char *name, int *ret_p)
{
    struct ibv_context *ibv = NULL;
    char hint[HX_LIMIT_HINT_MAX];
    struct ibv_device **list;
    int i, n, err;

    list = ibv_get_device_list(&n);
    if (list == NULL) {
        *ret_p = (errno == ENOSYS) ? -ENODEV : -errno;
        hx_log(HX_LOG_ERROR, "%s: listing RDMA devices failed: %s", name,
               strerror(errno));
        return NULL;
    }

    for (i = 0; i < n; ++i) {
        if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
            break;
        }
    }

    if (i == n) {
        hx_log(HX_LOG_ERROR, "%s: no such RDMA device", name);
        *ret_p = -ENODEV;
    } else if (!mlx5dv_is_supported(list[i])) {
        hx_log(HX_LOG_ERROR, "%s: not an mlx5 device", name);
        *ret_p = -EOPNOTSUPP;
    } else {
        ibv = dev_open_devx(list[i]);
        if (ibv == NULL) {
            err = errno;
            hx_log(HX_LOG_ERROR, "%s: does not open with DevX: %s%s", name,
                   strerror(err), hx_limit_hint(HX_LIMIT_OPEN, err, hint,
                                                sizeof(hint)));
            *ret_p = -EOPNOTSUPP;
        }
    }

    ibv_free_device_list(list);
    return ibv;
}

/* A UAR and an event channel, which no capability tells of */
static int dev_probe(struct hx_dev *dev)
{
    struct hx_channel *chan;
    struct hx_uar *uar;
    int ret;

    ret = hx_uar_create(dev, &uar);
    if (ret != 0) {
        return ret;
    }
    hx_uar_destroy(uar);

    ret = hx_channel_create(dev, &chan);
    if (ret != 0) {
        return ret;
    }
    hx_channel_destroy(chan);

    return 0;
}

static int dev_init_events(struct hx_dev *dev)
{
    int fd    = hx_dev_event_fd(dev);
    int flags = fcntl(fd, F_GETFL);

    if ((flags == -1) || (fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)) {
        hx_log(HX_LOG_ERROR, "%s: asynchronous events: fcntl failed: %s",
               dev->name, strerror(errno));
        return -EOPNOTSUPP;
    }
    return 0;
}

static int dev_init_pd(struct hx_dev *dev)
{
    struct mlx5dv_pd dvpd = {0};
    struct mlx5dv_obj dv  = {0};
    int ret;

    dev->pd = ibv_alloc_pd(dev->ibv);
    if (dev->pd == NULL) {
        ret = (errno > 0) ? -errno : -ENOMEM;
        hx_log(HX_LOG_ERROR, "%s: making a protection domain failed: %s",
               dev->name, strerror(-ret));
        return ret;
    }

    dv.pd.in  = dev->pd;
    dv.pd.out = &dvpd;
    ret       = mlx5dv_init_obj(&dv, MLX5DV_OBJ_PD);
    if (ret != 0) {
        hx_log(HX_LOG_ERROR, "%s: no number of the protection domain",
               dev->name);
        ibv_dealloc_pd(dev->pd);
        return -EOPNOTSUPP;
    }

    dev->pdn = dvpd.pdn;
    return 0;
}

static void dev_query_lag(struct hx_dev *dev)
{
    uint8_t state = 0;

    if (dev->caps.init2_lag_tx_port_affinity &&
        (dev->caps.num_lag_ports > 0) &&
        (hx_cmd_query_lag(dev, &state) == 0)) {
        dev->lag = state != 0;
    }
}

int hx_dev_open(const char *name, struct hx_dev **dev_p)
{
    const char *missing;
    struct hx_dev *dev;
    int ret;

    dev = calloc(1, sizeof(*dev));
    if (dev == NULL) {
        hx_log(HX_LOG_ERROR, "%s: no memory to open it", name);
        return -ENOMEM;
    }

    snprintf(dev->name, sizeof(dev->name), "%s", name);
    dev->ibv = dev_open_by_name(name, &ret);
    if (dev->ibv == NULL) {
        goto err_free;
    }

    ret = hx_caps_query(dev->ibv, &dev->caps, HX_LOG_ERROR);
    if (ret != 0) {
        goto err_close;
    }

    missing = hx_caps_missing(&dev->caps);
    if (missing != NULL) {
        hx_log(HX_LOG_ERROR, "%s: lacks %s", name, missing);
        ret = -EOPNOTSUPP;
        goto err_close;
    }

    ret = mlx5dv_devx_query_eqn(dev->ibv, 0, &dev->eqn);
    if (ret != 0) {
        hx_log(HX_LOG_ERROR, "%s: no event queue number: %s", name,
               strerror(ret));
        ret = -EOPNOTSUPP;
        goto err_close;
    }

    if ((dev_probe(dev) != 0) || (dev_init_events(dev) != 0)) {
        ret = -EOPNOTSUPP;
        goto err_close;
    }

    ret = dev_init_pd(dev);
    if (ret != 0) {
        goto err_close;
    }

    dev_query_lag(dev);
    hx_log(HX_LOG_DEBUG, "%s: opened, pdn 0x%x eqn %u lag %d", name, dev->pdn,
           dev->eqn, dev->lag);

    *dev_p = dev;
    return 0;

err_close:
    ibv_close_device(dev->ibv);
err_free:
    free(dev);
    return ret;
}

void hx_dev_close(struct hx_dev *dev)
{
    int err = ibv_dealloc_pd(dev->pd);

    if (err != 0) {
        hx_log(HX_DESTROY_LOG_LEVEL(err),
               "%s: destroying the protection domain failed: %s", dev->name,
               strerror(err));
    }

    ibv_close_device(dev->ibv);
    free(dev);
}

static bool gid_is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

/* Not set entries of the table read as an error or as zeros, by version */
static bool gid_get(struct hx_dev *dev, uint8_t port_num, uint32_t index,
                    struct ibv_gid_entry *entry)
{
    static const union ibv_gid zero;

    return (ibv_query_gid_ex(dev->ibv, port_num, index, entry, 0) == 0) &&
           (memcmp(&entry->gid, &zero, sizeof(zero)) != 0);
}

/* RoCE: v2 with an IPv4 address first, then any v2, then index 0 */
static uint32_t gid_choose(struct hx_dev *dev, uint8_t port_num, int tbl_len)
{
    uint32_t chosen = 0;
    bool found      = false;
    struct ibv_gid_entry entry;
    int i;

    for (i = 0; i < tbl_len; ++i) {
        if (!gid_get(dev, port_num, i, &entry) ||
            (entry.gid_type != IBV_GID_TYPE_ROCE_V2)) {
            continue;
        }

        if (gid_is_ipv4(&entry.gid)) {
            return i;
        }

        if (!found) {
            chosen = i;
            found  = true;
        }
    }

    return chosen;
}

int hx_port_query(struct hx_dev *dev, uint8_t port_num, uint32_t gid_index,
                  struct hx_port *port_p)
{
    struct ibv_port_attr attr  = {0};
    struct ibv_gid_entry entry = {0};
    struct hx_port port        = {.num = port_num};
    int err;

    err = ibv_query_port(dev->ibv, port_num, &attr);
    if (err != 0) {
        hx_log(HX_LOG_ERROR, "%s:%u: querying the port failed: %s", dev->name,
               port_num, strerror(err));
        return -err;
    }

    port.active       = attr.state == IBV_PORT_ACTIVE;
    port.roce         = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    port.lid          = port.roce ? 0 : attr.lid;
    port.active_mtu   = attr.active_mtu;
    port.active_speed = attr.active_speed;
    port.active_width = attr.active_width;

    if (gid_index != HX_GID_INDEX_AUTO) {
        port.gid_index = gid_index;
    } else if (port.roce) {
        port.gid_index = gid_choose(dev, port_num, attr.gid_tbl_len);
    }

    /* The address vector has 8 bits for the index */
    if ((port.gid_index > UINT8_MAX) ||
        !gid_get(dev, port_num, port.gid_index, &entry)) {
        hx_log(HX_LOG_ERROR, "%s:%u: no GID at index %u", dev->name, port_num,
               port.gid_index);
        return -ENODATA;
    }

    port.gid      = entry.gid;
    port.gid_type = entry.gid_type;
    *port_p       = port;
    return 0;
}
