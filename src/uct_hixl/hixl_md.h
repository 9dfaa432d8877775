/* SPDX-License-Identifier: BSD-3-Clause */

/* The memory domain: one opened device, its registrations, its keys. */

#ifndef UCT_HIXL_MD_H_
#define UCT_HIXL_MD_H_

#include "hixl_compat.h"

#include <mlx5/hx.h>
#include <pthread.h>
#include <ucs/datastruct/list.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>

#define UCT_HIXL_NAME          "hixl"
#define UCT_HIXL_CONFIG_PREFIX "HIXL_"

/* Memory domains are named so, followed by the device's verbs name */
#define UCT_HIXL_MD_PREFIX     "hixl_"

typedef struct uct_hixl_md_config {
    uct_md_config_t  super;
    unsigned         max_regs;     /* UCX_HIXL_MAX_REGS, 1..4096 */
    size_t           max_host_mem; /* UCX_HIXL_MAX_HOST_MEM, bytes */
    enum hx_reg_mode reg_mode;     /* UCX_HIXL_REG */
} uct_hixl_md_config_t;

/* Who is to be told of the device's end; hixl_async.c */
typedef struct uct_hixl_async {
    pthread_mutex_t lock;
    ucs_list_link_t ifaces;
    int             watched;      /* the handler is there */
} uct_hixl_async_t;

typedef struct uct_hixl_md {
    uct_md_t         super;
    struct hx_dev   *dev;
    ucs_sys_device_t sys_dev;
    ucs_cpu_set_t    local_cpus;
    uct_hixl_async_t async;
} uct_hixl_md_t;

/* A packed rkey: what a peer needs, little endian on the wire */
typedef struct uct_hixl_packed_rkey {
    uint32_t key;
} UCS_S_PACKED uct_hixl_packed_rkey_t;

extern uct_component_t uct_hixl_component;
extern ucs_config_field_t uct_hixl_md_config_table[];

/* uct_rkey_t of this transport is the device's rkey itself */
static UCS_F_ALWAYS_INLINE uint32_t uct_hixl_rkey(uct_rkey_t rkey)
{
    return (uint32_t)rkey;
}

/* hixl_md.c: one MD a device that opens and registers memory as the environment
 * asks (UCX_HIXL_REG), in the order of the device list */
ucs_status_t
uct_hixl_query_md_resources(uct_component_t *component,
                            uct_md_resource_desc_t **resources_p,
                            unsigned *num_resources_p);

ucs_status_t uct_hixl_md_open(uct_component_t *component, const char *md_name,
                              const uct_md_config_t *config, uct_md_h *md_p);

/** The ports that are up, as "mlx5_0:1"; for UCT_TL_DEFINE_ENTRY. */
ucs_status_t uct_hixl_query_devices(uct_md_h tl_md,
                                    uct_tl_device_resource_t **tl_devices_p,
                                    unsigned *num_tl_devices_p);

/* The operations in their newest signatures; hixl_compat.c calls them */
void uct_hixl_md_close(uct_md_h tl_md);
ucs_status_t uct_hixl_md_query(uct_md_h tl_md, uct_hixl_md_attr_t *attr);
ucs_status_t uct_hixl_md_mem_reg(uct_md_h tl_md, void *address, size_t length,
                                 const uct_md_mem_reg_params_t *params,
                                 uct_mem_h *memh_p);
ucs_status_t uct_hixl_md_mem_dereg(uct_md_h tl_md,
                                   const uct_md_mem_dereg_params_t *params);
ucs_status_t uct_hixl_md_mem_alloc(uct_md_h tl_md, size_t *length_p,
                                   void **address_p,
                                   ucs_memory_type_t mem_type,
                                   ucs_sys_device_t sys_dev, unsigned flags,
                                   const char *alloc_name, uct_mem_h *memh_p);
ucs_status_t uct_hixl_md_mem_free(uct_md_h tl_md, uct_mem_h memh);
ucs_status_t uct_hixl_md_mkey_pack(uct_md_h tl_md, uct_mem_h memh,
                                   void *address, size_t length,
                                   const uct_md_mkey_pack_params_t *params,
                                   void *buffer);
ucs_status_t uct_hixl_rkey_unpack(uct_component_t *component,
                                  const void *rkey_buffer,
                                  const uct_rkey_unpack_params_t *params,
                                  uct_rkey_t *rkey_p, void **handle_p);
ucs_status_t uct_hixl_rkey_release(uct_component_t *component, uct_rkey_t rkey,
                                   void *handle);
ucs_status_t uct_hixl_rkey_compare(uct_component_t *component, uct_rkey_t rkey1,
                                   uct_rkey_t rkey2,
                                   const uct_rkey_compare_params_t *params,
                                   int *result);

#endif
