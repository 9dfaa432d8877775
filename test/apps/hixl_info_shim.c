/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Preloaded into hixl_info by hixl_info.sh: between it and libibverbs, makes a
 * device that works look like one that does not, as HXT_SHIM says.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

/* In a reply to QUERY_HCA_CAP, the byte with log_max_umem, whose five bits end
 * at 0x470 of the capability */
#define UMEM_BYTE (0x10 + 0x468 / 8)

#define NEXT(_name) ((__typeof__(&_name))dlsym(RTLD_NEXT, #_name))

static int is(const char *what)
{
    const char *shim = getenv("HXT_SHIM");

    return (shim != NULL) && (strcmp(shim, what) == 0);
}

static int (*query_port)(struct ibv_context *ibv, uint8_t num,
                         struct ibv_port_attr *attr, size_t len);

static int query_port_down(struct ibv_context *ibv, uint8_t num,
                           struct ibv_port_attr *attr, size_t len)
{
    int ret = query_port(ibv, num, attr, len);

    attr->state = IBV_PORT_INIT;
    return ret;
}

static struct ibv_context *opened(struct ibv_context *ibv)
{
    struct verbs_context *ctx;

    if ((ibv != NULL) && is("port-down")) {
        ctx = verbs_get_ctx(ibv);
        if (ctx->query_port != query_port_down) {
            query_port = ctx->query_port;
        }
        ctx->query_port = query_port_down;
    }
    return ibv;
}

struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
    if (is("no-access")) {
        errno = EACCES;
        return NULL;
    } else if (is("no-node")) {
        errno = ENOENT;
        return NULL;
    }
    return opened(NEXT(ibv_open_device)(dev));
}

struct ibv_context *mlx5dv_open_device(struct ibv_device *dev,
                                       struct mlx5dv_context_attr *attr)
{
    if (is("no-devx-kernel")) {
        errno = EOPNOTSUPP;
        return NULL;
    } else if (is("no-devx-firmware")) {
        errno = EINVAL;
        return NULL;
    }
    return opened(NEXT(mlx5dv_open_device)(dev, attr));
}

bool mlx5dv_is_supported(struct ibv_device *dev)
{
    return !is("not-mlx5") && NEXT(mlx5dv_is_supported)(dev);
}

struct ibv_device **ibv_get_device_list(int *num_p)
{
    if (is("not-listed")) {
        *num_p = 0;
        return calloc(1, sizeof(struct ibv_device*));
    }
    return NEXT(ibv_get_device_list)(num_p);
}

int ibv_query_device(struct ibv_context *ibv, struct ibv_device_attr *attr)
{
    int ret = NEXT(ibv_query_device)(ibv, attr);

    if (is("old")) {
        attr->vendor_part_id = 4115;
    }
    return ret;
}

int mlx5dv_devx_general_cmd(struct ibv_context *ibv, const void *in,
                            size_t in_len, void *out, size_t out_len)
{
    int ret = NEXT(mlx5dv_devx_general_cmd)(ibv, in, in_len, out, out_len);

    if ((is("old") || is("no-umems")) && (ret == 0) &&
        (out_len > UMEM_BYTE)) {
        memset((char*)out + UMEM_BYTE, 0, 1);
    }
    return ret;
}
