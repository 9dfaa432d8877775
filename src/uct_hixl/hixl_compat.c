/* SPDX-License-Identifier: BSD-3-Clause */

/* Fits the memory domain's operations to the UCX version of the headers. */

#include "hixl_compat.h"
#include "hixl_ep.h"
#include "hixl_md.h"
#include "hixl_vfs.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>

#if UCT_HIXL_UCX_SINCE(14)

static ucs_status_t uct_hixl_compat_query(uct_md_h md, uct_md_attr_v2_t *attr)
{
    uct_hixl_md_attr_t hixl_attr = {0};
    ucs_status_t status;

    status = uct_hixl_md_query(md, &hixl_attr);
    if (status != UCS_OK) {
        return status;
    }

    memset(attr, 0, sizeof(*attr));
    attr->max_alloc        = hixl_attr.max_alloc;
    attr->max_reg          = hixl_attr.max_reg;
    attr->flags            = hixl_attr.flags;
    attr->reg_mem_types    = hixl_attr.reg_mem_types;
    attr->cache_mem_types  = hixl_attr.cache_mem_types;
    attr->alloc_mem_types  = hixl_attr.alloc_mem_types;
    attr->access_mem_types = hixl_attr.access_mem_types;
    attr->reg_cost         = hixl_attr.reg_cost;
    attr->rkey_packed_size = hixl_attr.rkey_packed_size;
    attr->local_cpus       = hixl_attr.local_cpus;
#if UCT_HIXL_UCX_SINCE(15)
    attr->reg_alignment    = 1;
#endif
    return UCS_OK;
}

#define uct_hixl_compat_mem_reg uct_hixl_md_mem_reg

#else

static ucs_status_t uct_hixl_compat_query(uct_md_h md, uct_md_attr_t *attr)
{
    uct_hixl_md_attr_t hixl_attr = {0};
    ucs_status_t status;

    status = uct_hixl_md_query(md, &hixl_attr);
    if (status != UCS_OK) {
        return status;
    }

    memset(attr, 0, sizeof(*attr));
    attr->cap.max_alloc        = hixl_attr.max_alloc;
    attr->cap.max_reg          = hixl_attr.max_reg;
    attr->cap.flags            = hixl_attr.flags;
    attr->cap.reg_mem_types    = hixl_attr.reg_mem_types;
    attr->cap.alloc_mem_types  = hixl_attr.alloc_mem_types;
    attr->cap.access_mem_types = hixl_attr.access_mem_types;
    attr->reg_cost             = hixl_attr.reg_cost;
    attr->rkey_packed_size     = hixl_attr.rkey_packed_size;
    attr->local_cpus           = hixl_attr.local_cpus;
    return UCS_OK;
}

static ucs_status_t uct_hixl_compat_mem_reg(uct_md_h md, void *address,
                                            size_t length, unsigned flags,
                                            uct_mem_h *memh_p)
{
    const uct_md_mem_reg_params_t params = {
        .field_mask = UCT_MD_MEM_REG_FIELD_FLAGS,
        .flags      = flags
    };

    return uct_hixl_md_mem_reg(md, address, length, &params, memh_p);
}

#endif

#if UCT_HIXL_UCX_SINCE(16)

#define uct_hixl_compat_mkey_pack uct_hixl_md_mkey_pack

#else

static ucs_status_t
uct_hixl_compat_mkey_pack(uct_md_h md, uct_mem_h memh,
                          const uct_md_mkey_pack_params_t *params, void *buffer)
{
    return uct_hixl_md_mkey_pack(md, memh, NULL, SIZE_MAX, params, buffer);
}

#endif

#if UCT_HIXL_UCX_SINCE(19)

#define uct_hixl_compat_mem_alloc uct_hixl_md_mem_alloc

#else

static ucs_status_t
uct_hixl_compat_mem_alloc(uct_md_h md, size_t *length_p, void **address_p,
                          ucs_memory_type_t mem_type, unsigned flags,
                          const char *alloc_name, uct_mem_h *memh_p)
{
    return uct_hixl_md_mem_alloc(md, length_p, address_p, mem_type,
                                 UCS_SYS_DEVICE_ID_UNKNOWN, flags, alloc_name,
                                 memh_p);
}

ucs_status_t uct_hixl_compat_rkey_unpack(uct_component_t *component,
                                         const void *rkey_buffer,
                                         uct_rkey_t *rkey_p, void **handle_p)
{
    const uct_rkey_unpack_params_t params = {
        .field_mask = 0
    };

    return uct_hixl_rkey_unpack(component, rkey_buffer, &params, rkey_p,
                                handle_p);
}

#endif

uct_md_ops_t uct_hixl_md_ops = {
    .close                  = uct_hixl_md_close,
    .query                  = uct_hixl_compat_query,
    .mem_alloc              = uct_hixl_compat_mem_alloc,
    .mem_free               = uct_hixl_md_mem_free,
    .mem_advise             = (uct_md_mem_advise_func_t)
                              ucs_empty_function_return_unsupported,
    .mem_reg                = uct_hixl_compat_mem_reg,
    .mem_dereg              = uct_hixl_md_mem_dereg,
    .mem_query              = (uct_md_mem_query_func_t)
                              ucs_empty_function_return_unsupported,
    .mkey_pack              = uct_hixl_compat_mkey_pack,
#if UCT_HIXL_UCX_SINCE(15)
    .mem_attach             = (uct_md_mem_attach_func_t)
                              ucs_empty_function_return_unsupported,
#endif
#if !UCT_HIXL_UCX_SINCE(22)
    .is_sockaddr_accessible = (uct_md_is_sockaddr_accessible_func_t)
                              ucs_empty_function_return_zero_int,
#endif
    .detect_memory_type     = (uct_md_detect_memory_type_func_t)
                              ucs_empty_function_return_unsupported,
};

static ucs_status_t uct_hixl_compat_ep_invalidate(uct_ep_h tl_ep,
#if UCT_HIXL_UCX_SINCE(21)
                                                  const uct_ep_invalidate_params_t
                                                          *params UCS_V_UNUSED
#else
                                                  unsigned flags UCS_V_UNUSED
#endif
                                                  )
{
    return uct_hixl_ep_invalidate(tl_ep);
}

uct_iface_internal_ops_t uct_hixl_iface_internal_ops = {
    .iface_estimate_perf = uct_base_iface_estimate_perf,
    .iface_vfs_refresh   = uct_hixl_iface_vfs_refresh,
    .ep_query            = (uct_ep_query_func_t)
                           ucs_empty_function_return_unsupported,
    .ep_invalidate       = uct_hixl_compat_ep_invalidate,
};

typedef void (*uct_hixl_get_version_t)(unsigned *major, unsigned *minor,
                                       unsigned *release);

/* Neither libuct nor libucs tells its version; the libucp that was installed
 * beside libuct does. */
static uct_hixl_get_version_t uct_hixl_compat_find_version(void)
{
    char path[PATH_MAX];
    const char *slash;
    Dl_info info;
    void *libucp;
    size_t len;

    if (dladdr((void*)uct_md_query, &info) == 0) {
        return NULL;
    }

    slash = strrchr(info.dli_fname, '/');
    len   = (slash == NULL) ? 0 : (size_t)(slash - info.dli_fname) + 1;
    len   = (size_t)snprintf(path, sizeof(path), "%.*slibucp.so.0", (int)len,
                             info.dli_fname);
    if (len >= sizeof(path)) {
        return NULL;
    }

    /* Kept open: it belongs to the same UCX as the libuct we are bound to */
    libucp = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (libucp == NULL) {
        return NULL;
    }

    return (uct_hixl_get_version_t)dlsym(libucp, "ucp_get_version");
}

int uct_hixl_compat_check_version(void)
{
    uct_hixl_get_version_t get_version = uct_hixl_compat_find_version();
    unsigned major, minor, release;

    if (get_version == NULL) {
        ucs_error("the " UCT_HIXL_NAME " transport cannot tell the version of "
                  "this UCX (no libucp beside libuct) and is not used; it was "
                  "built for %d.%d", UCT_VERNO_MAJOR, UCT_VERNO_MINOR);
        return 0;
    }

    get_version(&major, &minor, &release);
    if ((major == UCT_VERNO_MAJOR) && (minor == UCT_VERNO_MINOR)) {
        return 1;
    }

    ucs_error("the " UCT_HIXL_NAME " transport was built for UCX %d.%d, this "
              "is UCX %u.%u; the transport is not used", UCT_VERNO_MAJOR,
              UCT_VERNO_MINOR, major, minor);
    return 0;
}
