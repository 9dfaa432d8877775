/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What UCX's virtual file system shows of the transport. Whoever reads it is
 * another thread, at any time: so only words that are read at once, and what
 * has a lock.
 */

#include "hixl_vfs.h"

#include "hixl_budget.h"
#include "hixl_iface.h"

#include <ucs/vfs/base/vfs_obj.h>

typedef enum {
    UCT_HIXL_VFS_LIMIT,
    UCT_HIXL_VFS_LIVE,
    UCT_HIXL_VFS_EXPOSED,
    UCT_HIXL_VFS_BYTES,
    UCT_HIXL_VFS_BYTES_LIMIT
} uct_hixl_vfs_budget_t;

static const struct {
    const char           *name;
    uct_hixl_vfs_budget_t what;
} uct_hixl_vfs_budget_files[] = {
    {"limit", UCT_HIXL_VFS_LIMIT},
    {"live", UCT_HIXL_VFS_LIVE},
    {"exposed", UCT_HIXL_VFS_EXPOSED},
    {"bytes", UCT_HIXL_VFS_BYTES},
    {"bytes_limit", UCT_HIXL_VFS_BYTES_LIMIT}
};

static void uct_hixl_vfs_show_device(void *obj, ucs_string_buffer_t *strb,
                                     void *arg_ptr UCS_V_UNUSED,
                                     uint64_t arg_u64 UCS_V_UNUSED)
{
    const uct_hixl_md_t *md = obj;

    ucs_string_buffer_appendf(strb, "%s\n", md->dev->name);
}

/* To ask for the mode would decide it. */
static void uct_hixl_vfs_show_mode(void *obj, ucs_string_buffer_t *strb,
                                   void *arg_ptr UCS_V_UNUSED,
                                   uint64_t arg_u64 UCS_V_UNUSED)
{
    const struct hx_dev *dev = ((uct_hixl_md_t*)obj)->dev;
    enum hx_reg_mode mode    = __atomic_load_n(&dev->reg_mode,
                                               __ATOMIC_ACQUIRE);

    if (mode == HX_REG_AUTO) {
        ucs_string_buffer_appendf(strb, "auto: not decided yet\n");
    } else {
        ucs_string_buffer_appendf(strb, "%s: %s\n",
                                  (mode == HX_REG_UMEM) ? "umem" : "mr",
                                  hx_dev_reg_reason(dev));
    }
}

static size_t uct_hixl_vfs_budget_value(uct_hixl_vfs_budget_t what)
{
    const uct_hixl_budget_t *budget = &uct_hixl_budget;

    switch (what) {
    case UCT_HIXL_VFS_LIMIT:
        return budget->max_regs;
    case UCT_HIXL_VFS_LIVE:
        return budget->num_keys;
    case UCT_HIXL_VFS_EXPOSED:
        return budget->num_exposed;
    case UCT_HIXL_VFS_BYTES:
        return budget->host_mem;
    case UCT_HIXL_VFS_BYTES_LIMIT:
        return budget->max_host_mem;
    }

    return 0;
}

static void uct_hixl_vfs_show_budget(void *obj UCS_V_UNUSED,
                                     ucs_string_buffer_t *strb,
                                     void *arg_ptr UCS_V_UNUSED,
                                     uint64_t arg_u64)
{
    size_t value;

    pthread_mutex_lock(&uct_hixl_budget.lock);
    value = uct_hixl_vfs_budget_value((uct_hixl_vfs_budget_t)arg_u64);
    pthread_mutex_unlock(&uct_hixl_budget.lock);

    ucs_string_buffer_appendf(strb, "%zu\n", value);
}

void uct_hixl_md_vfs_init(uct_md_h tl_md)
{
    unsigned i;

    ucs_vfs_obj_add_ro_file(tl_md, uct_hixl_vfs_show_device, NULL, 0, "device");
    ucs_vfs_obj_add_ro_file(tl_md, uct_hixl_vfs_show_mode, NULL, 0,
                            "registration/mode");
    for (i = 0; i < ucs_static_array_size(uct_hixl_vfs_budget_files); ++i) {
        ucs_vfs_obj_add_ro_file(tl_md, uct_hixl_vfs_show_budget, NULL,
                                uct_hixl_vfs_budget_files[i].what,
                                "registration/%s",
                                uct_hixl_vfs_budget_files[i].name);
    }
}

/* ---- interfaces ---- */

static void uct_hixl_vfs_show_port(void *obj, ucs_string_buffer_t *strb,
                                   void *arg_ptr UCS_V_UNUSED,
                                   uint64_t arg_u64 UCS_V_UNUSED)
{
    const uct_hixl_iface_t *iface = obj;

    ucs_string_buffer_appendf(strb, "%s:%u\n", iface->md->dev->name,
                              iface->port.num);
}

static void uct_hixl_vfs_show_int(void *obj UCS_V_UNUSED,
                                  ucs_string_buffer_t *strb, void *arg_ptr,
                                  uint64_t arg_u64 UCS_V_UNUSED)
{
    ucs_string_buffer_appendf(strb, "%d\n",
                              __atomic_load_n((int*)arg_ptr, __ATOMIC_RELAXED));
}

static void uct_hixl_vfs_show_counter(void *obj UCS_V_UNUSED,
                                      ucs_string_buffer_t *strb, void *arg_ptr,
                                      uint64_t arg_u64 UCS_V_UNUSED)
{
    ucs_string_buffer_appendf(strb, "%lu\n",
                              __atomic_load_n((uint64_t*)arg_ptr,
                                              __ATOMIC_RELAXED));
}

void uct_hixl_iface_vfs_refresh(uct_iface_h tl_iface)
{
    uct_hixl_iface_t *iface = ucs_derived_of(tl_iface, uct_hixl_iface_t);

    ucs_vfs_obj_add_ro_file(iface, uct_hixl_vfs_show_port, NULL, 0, "port");
    ucs_vfs_obj_add_ro_file(iface, uct_hixl_vfs_show_int, &iface->num_eps, 0,
                            "endpoints");
    ucs_vfs_obj_add_ro_file(iface, uct_hixl_vfs_show_int,
                            &iface->tx.cq_credits, 0, "tx_credits");
    ucs_vfs_obj_add_ro_file(iface, uct_hixl_vfs_show_counter,
                            iface->tx.bounce_put_bytes, 0,
                            "bounced_bytes/put");
    ucs_vfs_obj_add_ro_file(iface, uct_hixl_vfs_show_counter,
                            iface->tx.bounce_get_bytes, 0,
                            "bounced_bytes/get");
    ucs_vfs_obj_add_ro_file(iface, uct_hixl_vfs_show_counter,
                            iface->tx.bounce_am_bytes, 0, "bounced_bytes/am");
}
