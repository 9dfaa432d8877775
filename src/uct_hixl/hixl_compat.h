/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every difference between the UCX versions that the transport is built for,
 * and nothing else. The rest of the transport is written against the newest
 * signatures (UCX 1.23); hixl_compat.c fits them to the version of the headers.
 */

#ifndef UCT_HIXL_COMPAT_H_
#define UCT_HIXL_COMPAT_H_

#include <uct/api/uct.h>
#include <uct/api/v2/uct_v2.h>
#include <uct/api/version.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>
#include <ucs/datastruct/mpool.h>

/* Whether the headers are of UCX 1.<minor> or newer */
#define UCT_HIXL_UCX_SINCE(_minor) (UCT_API >= UCT_VERSION(1, _minor))

/* From 1.16 UCP itself keeps registrations until the memory is unmapped; before
 * that each operation registers anew. */
#define UCT_HIXL_UCP_CACHES_REGS UCT_HIXL_UCX_SINCE(16)

#if !UCT_HIXL_UCX_SINCE(14)

enum {
    UCT_MD_MEM_REG_FIELD_FLAGS = UCS_BIT(0)
};

typedef struct uct_md_mem_reg_params {
    uint64_t field_mask;
    uint64_t flags;
} uct_md_mem_reg_params_t;

#define UCT_MD_MEM_REG_FIELD_VALUE(_params, _name, _flag, _default) \
    UCS_PARAM_VALUE(UCT_MD_MEM_REG, _params, _name, _flag, _default)

#endif

#if !UCT_HIXL_UCX_SINCE(16)

typedef struct uct_rkey_compare_params {
    uint64_t field_mask;
} uct_rkey_compare_params_t;

#endif

#if !UCT_HIXL_UCX_SINCE(19)

typedef struct uct_rkey_unpack_params {
    uint64_t field_mask;
} uct_rkey_unpack_params_t;

#endif

/* Later versions call them UCT_MD_FLAG_INVALIDATE_RMA and
 * UCT_MD_MKEY_PACK_FLAG_INVALIDATE_RMA; the values are the same. */
#define UCT_HIXL_MD_FLAG_INVALIDATE        UCS_BIT(8)
#define UCT_HIXL_MKEY_PACK_FLAG_INVALIDATE UCS_BIT(0)

/* What the memory domain says of itself: the fields of uct_md_attr_v2_t that
 * it sets; all others are zero. */
typedef struct uct_hixl_md_attr {
    uint64_t          max_alloc;
    size_t            max_reg;
    uint64_t          flags;
    uint64_t          reg_mem_types;
    uint64_t          cache_mem_types;
    uint64_t          alloc_mem_types;
    uint64_t          access_mem_types;
    ucs_linear_func_t reg_cost;
    size_t            rkey_packed_size;
    ucs_cpu_set_t     local_cpus;
} uct_hixl_md_attr_t;

/* hixl_compat.c: operations with the signatures that this UCX wants; they call
 * those that hixl_md.h declares. */
extern uct_md_ops_t uct_hixl_md_ops;

/* Likewise for the interface; they call hixl_ep.h's */
extern uct_iface_internal_ops_t uct_hixl_iface_internal_ops;

#if UCT_HIXL_UCX_SINCE(19)
#define uct_hixl_compat_rkey_unpack uct_hixl_rkey_unpack
#else
ucs_status_t uct_hixl_compat_rkey_unpack(uct_component_t *component,
                                         const void *rkey_buffer,
                                         uct_rkey_t *rkey_p, void **handle_p);
#endif

#if UCT_HIXL_UCX_SINCE(16)
#define UCT_HIXL_COMPONENT_RKEY_COMPARE .rkey_compare = uct_hixl_rkey_compare,
#else
#define UCT_HIXL_COMPONENT_RKEY_COMPARE
#endif

/* A pool without private data and chunks of one size */
static inline ucs_status_t
uct_hixl_compat_mpool_init(ucs_mpool_t *mp, size_t elem_size,
                           size_t align_offset, size_t alignment,
                           unsigned elems_per_chunk, unsigned max_elems,
                           ucs_mpool_ops_t *ops, const char *name)
{
#if UCT_HIXL_UCX_SINCE(14)
    ucs_mpool_params_t params;

    ucs_mpool_params_reset(&params);
    params.elem_size       = elem_size;
    params.align_offset    = align_offset;
    params.alignment       = alignment;
    params.elems_per_chunk = elems_per_chunk;
    params.max_elems       = max_elems;
    params.ops             = ops;
    params.name            = name;
    return ucs_mpool_init(&params, mp);
#else
    return ucs_mpool_init(mp, 0, elem_size, align_offset, alignment,
                          elems_per_chunk, max_elems, ops, name);
#endif
}

/**
 * Whether the UCX of this process is of the minor version that the transport
 * was built for, whose structs it shares; if not, says so in one line.
 */
int uct_hixl_compat_check_version(void);

#endif
