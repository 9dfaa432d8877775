/* SPDX-License-Identifier: BSD-3-Clause */

/* The memory domain: devices, attributes, keys. */

#include "hixl_async.h"
#include "hixl_md.h"
#include "hixl_reg.h"

#include <endian.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <ucs/sys/topo/base/topo.h>

static const char *uct_hixl_reg_mode_names[] = {
    [HX_REG_AUTO] = "auto",
    [HX_REG_UMEM] = "umem",
    [HX_REG_MR]   = "mr",
    NULL
};

ucs_config_field_t uct_hixl_md_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_hixl_md_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_md_config_table)},

    {"MAX_REGS", "256",
     "Maximal number of memory regions that the process registers with the\n"
     "device at a time, 1..4096. More memory may be registered with UCX: it\n"
     "shares these places.",
     ucs_offsetof(uct_hixl_md_config_t, max_regs), UCS_CONFIG_TYPE_UINT},

    {"MAX_HOST_MEM", "1t",
     "Maximal size of memory that the process registers.",
     ucs_offsetof(uct_hixl_md_config_t, max_host_mem),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"REG", "auto",
     "How memory is registered with the device.\n"
     "  umem  A DevX umem and a key over it. A device on which such keys do not\n"
     "        work is not used.\n"
     "  mr    ibv_reg_mr.\n"
     "  auto  umem if such keys work, which is tried before the first\n"
     "        registration; else mr.",
     ucs_offsetof(uct_hixl_md_config_t, reg_mode),
     UCS_CONFIG_TYPE_ENUM(uct_hixl_reg_mode_names)},

    {NULL}
};

/* UCX cuts MD names at UCT_MD_NAME_MAX, and cut names are not unique: then the
 * device's own name, which UCX's other RDMA transports use as well. */
static void uct_hixl_md_name(const char *dev_name, char *name, size_t size)
{
    int len = snprintf(name, size, UCT_HIXL_MD_PREFIX "%s", dev_name);

    if ((size_t)len >= size) {
        ucs_strncpy_zero(name, dev_name, size);
    }
}

/* What the device half says is kept in text; the caller knows what it means. */
static ucs_status_t uct_hixl_dev_set_reg_mode(struct hx_dev *dev,
                                              enum hx_reg_mode mode, char *text,
                                              size_t size)
{
    struct hx_log_hold hold;
    int ret;

    hx_log_hold_begin(&hold, text, size);
    ret = hx_dev_set_reg_mode(dev, mode);
    hx_log_hold_end(&hold);
    return (ret == 0) ? UCS_OK : UCS_ERR_UNSUPPORTED;
}

static void uct_hixl_dev_log_no_umem_keys(ucs_log_level_t level,
                                          const char *dev_name,
                                          const char *text)
{
    ucs_log(level, "%s is not usable with UCX_" UCT_HIXL_CONFIG_PREFIX
            "REG=umem: %s; set UCX_" UCT_HIXL_CONFIG_PREFIX "REG=mr, or =auto "
            "to use umems on devices where they work", dev_name, text);
}

/* A domain that is listed but does not open disturbs others' enumeration. */
static int uct_hixl_dev_opens(const char *dev_name, enum hx_reg_mode reg_mode)
{
    struct hx_log_hold hold;
    struct hx_dev *dev;
    ucs_status_t status;
    char text[256];
    int ret;

    hx_log_hold_begin(&hold, text, sizeof(text));
    ret = hx_dev_open(dev_name, &dev);
    hx_log_hold_end(&hold);
    if (ret != 0) {
        ucs_diag("%s is not usable: %s", dev_name, text);
        return 0;
    }

    status = uct_hixl_dev_set_reg_mode(dev, reg_mode, text, sizeof(text));
    if (status != UCS_OK) {
        uct_hixl_dev_log_no_umem_keys(UCS_LOG_LEVEL_WARN, dev_name, text);
    }

    hx_dev_close(dev);
    return status == UCS_OK;
}

/* A query comes without a configuration, so it goes by the environment. Another
 * one shows when a domain is opened. */
static enum hx_reg_mode uct_hixl_env_reg_mode(uct_component_t *component)
{
    enum hx_reg_mode mode = HX_REG_AUTO;
    uct_md_config_t *config;

    if (uct_md_config_read(component, NULL, NULL, &config) == UCS_OK) {
        mode = ucs_derived_of(config, uct_hixl_md_config_t)->reg_mode;
        uct_config_release(config);
    }

    return mode;
}

static void uct_hixl_free_names(char **names, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        free(names[i]);
    }
    free(names);
}

ucs_status_t
uct_hixl_query_md_resources(uct_component_t *component,
                            uct_md_resource_desc_t **resources_p,
                            unsigned *num_resources_p)
{
    uct_md_resource_desc_t *resources;
    unsigned i, count, num_resources;
    enum hx_reg_mode reg_mode;
    char **names;
    int ret;

    ret = hx_dev_list(&names, &count);
    if (ret != 0) {
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }

    resources = ucs_calloc(ucs_max(count, 1), sizeof(*resources), "hixl_mds");
    if (resources == NULL) {
        uct_hixl_free_names(names, count);
        return UCS_ERR_NO_MEMORY;
    }

    reg_mode      = uct_hixl_env_reg_mode(component);
    num_resources = 0;
    for (i = 0; i < count; ++i) {
        if (uct_hixl_dev_opens(names[i], reg_mode)) {
            uct_hixl_md_name(names[i], resources[num_resources].md_name,
                             sizeof(resources[num_resources].md_name));
            ++num_resources;
        }
    }
    uct_hixl_free_names(names, count);

    if (num_resources == 0) {
        ucs_free(resources);
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }

    *resources_p     = resources;
    *num_resources_p = num_resources;
    return UCS_OK;
}

static ucs_status_t uct_hixl_md_open_dev(const char *md_name,
                                         struct hx_dev **dev_p)
{
    char name[UCT_MD_NAME_MAX];
    ucs_status_t status;
    unsigned i, count;
    char **names;

    if (hx_dev_list(&names, &count) != 0) {
        return UCS_ERR_NO_DEVICE;
    }

    status = UCS_ERR_NO_DEVICE;
    for (i = 0; i < count; ++i) {
        uct_hixl_md_name(names[i], name, sizeof(name));
        if (!strcmp(name, md_name)) {
            status = (hx_dev_open(names[i], dev_p) == 0) ? UCS_OK :
                                                           UCS_ERR_IO_ERROR;
            break;
        }
    }
    uct_hixl_free_names(names, count);

    if (status == UCS_ERR_NO_DEVICE) {
        ucs_error("memory domain %s: no usable mlx5 device has this name",
                  md_name);
    }

    return status;
}

/* Unknown where sysfs does not say: a device that is not on PCI */
static ucs_sys_device_t uct_hixl_find_sys_dev(const struct hx_dev *dev)
{
    ucs_sys_device_t sys_dev;
    char link[PATH_MAX];
    char path[PATH_MAX];
    const char *slash;

    ucs_snprintf_zero(link, sizeof(link), "%s/device",
                      dev->ibv->device->ibdev_path);
    if (realpath(link, path) == NULL) {
        return UCS_SYS_DEVICE_ID_UNKNOWN;
    }

    slash = strrchr(path, '/');
    if ((slash == NULL) ||
        (ucs_topo_find_device_by_bdf_name(slash + 1, &sys_dev) != UCS_OK)) {
        return UCS_SYS_DEVICE_ID_UNKNOWN;
    }

    return sys_dev;
}

/* sysfs: hexadecimal words of 32 CPUs with commas, the highest first; all CPUs
 * if it does not say */
static void uct_hixl_find_local_cpus(const struct hx_dev *dev,
                                     ucs_cpu_set_t *cpus_p)
{
    unsigned base = 0;
    char buf[1024];
    unsigned long word;
    ssize_t nread;
    unsigned bit;
    char *p;

    nread = ucs_read_file_str(buf, sizeof(buf), 1, "%s/device/local_cpus",
                              dev->ibv->device->ibdev_path);
    if (nread <= 0) {
        memset(cpus_p, 0xff, sizeof(*cpus_p));
        return;
    }

    UCS_CPU_ZERO(cpus_p);
    do {
        p    = strrchr(buf, ',');
        word = strtoul((p == NULL) ? buf : p + 1, NULL, 16);
        for (bit = 0; (bit < 32) && (base + bit < UCS_CPU_SETSIZE); ++bit) {
            if (word & UCS_BIT(bit)) {
                UCS_CPU_SET(base + bit, cpus_p);
            }
        }

        base += 32;
        if (p != NULL) {
            *p = '\0';
        }
    } while (p != NULL);
}

ucs_status_t uct_hixl_md_open(uct_component_t *component, const char *md_name,
                              const uct_md_config_t *tl_config, uct_md_h *md_p)
{
    const uct_hixl_md_config_t *config = ucs_derived_of(tl_config,
                                                        uct_hixl_md_config_t);
    ucs_status_t status;
    uct_hixl_md_t *md;
    char text[256];

    md = ucs_calloc(1, sizeof(*md), "hixl_md");
    if (md == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_hixl_md_open_dev(md_name, &md->dev);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_hixl_dev_set_reg_mode(md->dev, config->reg_mode, text,
                                       sizeof(text));
    if (status != UCS_OK) {
        uct_hixl_dev_log_no_umem_keys(UCS_LOG_LEVEL_ERROR, md->dev->name, text);
        goto err_dev_close;
    }

    status = uct_hixl_reg_open(md, config);
    if (status != UCS_OK) {
        goto err_dev_close;
    }

    md->super.ops       = &uct_hixl_md_ops;
    md->super.component = component;
    md->sys_dev         = uct_hixl_find_sys_dev(md->dev);
    uct_hixl_find_local_cpus(md->dev, &md->local_cpus);
    uct_hixl_async_init(&md->async);

    *md_p = &md->super;
    return UCS_OK;

err_dev_close:
    hx_dev_close(md->dev);
err_free:
    ucs_free(md);
    return status;
}

void uct_hixl_md_close(uct_md_h tl_md)
{
    uct_hixl_md_t *md = ucs_derived_of(tl_md, uct_hixl_md_t);

    uct_hixl_async_cleanup(&md->async);
    uct_hixl_reg_close(md);
    hx_dev_close(md->dev);
    ucs_free(md);
}

ucs_status_t uct_hixl_md_query(uct_md_h tl_md, uct_hixl_md_attr_t *attr)
{
    const uct_hixl_md_t *md = ucs_derived_of(tl_md, uct_hixl_md_t);

    attr->flags            = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                             UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_ALLOC |
                             UCT_HIXL_MD_FLAG_INVALIDATE;
    attr->max_alloc        = SIZE_MAX;
    attr->max_reg          = SIZE_MAX;
    attr->reg_mem_types    = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->cache_mem_types  = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->alloc_mem_types  = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->reg_cost         = ucs_linear_func_make(16000.0e-9, 0.06e-9);
    attr->rkey_packed_size = sizeof(uct_hixl_packed_rkey_t);
    attr->local_cpus       = md->local_cpus;
    return UCS_OK;
}

ucs_status_t uct_hixl_query_devices(uct_md_h tl_md,
                                    uct_tl_device_resource_t **tl_devices_p,
                                    unsigned *num_tl_devices_p)
{
    const uct_hixl_md_t *md = ucs_derived_of(tl_md, uct_hixl_md_t);
    uct_tl_device_resource_t *tl_devices;
    unsigned port_num, count;
    struct hx_port port;

    tl_devices = ucs_calloc(ucs_max(md->dev->caps.num_ports, 1),
                            sizeof(*tl_devices), "hixl_devices");
    if (tl_devices == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    count = 0;
    for (port_num = 1; port_num <= md->dev->caps.num_ports; ++port_num) {
        if ((hx_port_query(md->dev, port_num, HX_GID_INDEX_AUTO, &port) != 0) ||
            !port.active) {
            ucs_debug("%s:%u is not up", md->dev->name, port_num);
            continue;
        }

        ucs_snprintf_zero(tl_devices[count].name,
                          sizeof(tl_devices[count].name), "%s:%u",
                          md->dev->name, port_num);
        tl_devices[count].type       = UCT_DEVICE_TYPE_NET;
        tl_devices[count].sys_device = md->sys_dev;
        ++count;
    }

    *tl_devices_p     = tl_devices;
    *num_tl_devices_p = count;
    return UCS_OK;
}

ucs_status_t uct_hixl_md_mem_reg(uct_md_h tl_md, void *address, size_t length,
                                 const uct_md_mem_reg_params_t *params,
                                 uct_mem_h *memh_p)
{
    uint64_t flags = UCT_MD_MEM_REG_FIELD_VALUE(params, flags, FIELD_FLAGS, 0);
    uct_hixl_mem_t *mem;
    ucs_status_t status;

    status = uct_hixl_mem_reg(ucs_derived_of(tl_md, uct_hixl_md_t), address,
                              length, flags, &mem);
    if (status != UCS_OK) {
        return status;
    }

    *memh_p = mem;
    return UCS_OK;
}

ucs_status_t uct_hixl_md_mem_dereg(uct_md_h tl_md UCS_V_UNUSED,
                                   const uct_md_mem_dereg_params_t *params)
{
    UCT_MD_MEM_DEREG_CHECK_PARAMS(params, 1);

    if (UCT_MD_MEM_DEREG_FIELD_VALUE(params, flags, FIELD_FLAGS, 0) &
        UCT_MD_MEM_DEREG_FLAG_INVALIDATE) {
        uct_hixl_mem_invalidate(params->memh, params->comp);
    } else {
        uct_hixl_mem_dereg(params->memh);
    }
    return UCS_OK;
}

ucs_status_t
uct_hixl_md_mkey_pack(uct_md_h tl_md UCS_V_UNUSED, uct_mem_h memh,
                      void *address UCS_V_UNUSED, size_t length UCS_V_UNUSED,
                      const uct_md_mkey_pack_params_t *params, void *buffer)
{
    uct_hixl_packed_rkey_t *packed = buffer;
    ucs_status_t status;
    unsigned flags;
    uint32_t key;

    flags  = UCS_PARAM_VALUE(UCT_MD_MKEY_PACK_FIELD, params, flags, FLAGS, 0);
    status = (flags & UCT_HIXL_MKEY_PACK_FLAG_INVALIDATE) ?
             uct_hixl_mem_expose_own(memh, &key) :
             uct_hixl_mem_expose(memh, &key);
    if (status != UCS_OK) {
        return status;
    }

    packed->key = htole32(key);
    return UCS_OK;
}

ucs_status_t
uct_hixl_rkey_unpack(uct_component_t *component UCS_V_UNUSED,
                     const void *rkey_buffer,
                     const uct_rkey_unpack_params_t *params UCS_V_UNUSED,
                     uct_rkey_t *rkey_p, void **handle_p)
{
    const uct_hixl_packed_rkey_t *packed = rkey_buffer;

    *rkey_p   = le32toh(packed->key);
    *handle_p = NULL;
    return UCS_OK;
}

ucs_status_t uct_hixl_rkey_release(uct_component_t *component UCS_V_UNUSED,
                                   uct_rkey_t rkey UCS_V_UNUSED,
                                   void *handle UCS_V_UNUSED)
{
    return UCS_OK;
}

ucs_status_t uct_hixl_rkey_compare(
        uct_component_t *component UCS_V_UNUSED, uct_rkey_t rkey1,
        uct_rkey_t rkey2, const uct_rkey_compare_params_t *params UCS_V_UNUSED,
        int *result)
{
    *result = (rkey1 > rkey2) - (rkey1 < rkey2);
    return UCS_OK;
}
