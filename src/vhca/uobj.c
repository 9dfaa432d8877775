/* SPDX-License-Identifier: BSD-3-Clause */

/* The objects of one open device file: handles, who uses whom, destruction.
 * The caller holds the context's lock. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vhca/kernel.h"
#include "vhca/trace.h"

static int uobj_grow(struct vhca_ctx *ctx)
{
    uint32_t num = (ctx->num_objs != 0) ? ctx->num_objs * 2 : 64;
    struct vhca_uobj **objs;

    objs = realloc(ctx->objs, num * sizeof(*objs));
    if (objs == NULL) {
        return -ENOMEM;
    }

    memset(objs + ctx->num_objs, 0, (num - ctx->num_objs) * sizeof(*objs));
    ctx->objs     = objs;
    ctx->num_objs = num;
    return 0;
}

int vhca_uobj_alloc(struct vhca_ctx *ctx, enum vhca_uobj_kind kind,
                    struct vhca_uobj **obj_p)
{
    struct vhca_uobj *obj;
    uint32_t i;
    int ret;

    for (i = ctx->free_hint; i < ctx->num_objs; ++i) {
        if (ctx->objs[i] == NULL) {
            break;
        }
    }

    if (i >= ctx->num_objs) {
        i   = ctx->num_objs;
        ret = uobj_grow(ctx);
        if (ret != 0) {
            return ret;
        }
    }

    obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        return -ENOMEM;
    }

    obj->kind      = kind;
    obj->handle    = i + 1;
    ctx->objs[i]   = obj;
    ctx->free_hint = i + 1;
    *obj_p         = obj;
    return 0;
}

void vhca_uobj_free(struct vhca_ctx *ctx, struct vhca_uobj *obj)
{
    uint32_t i = obj->handle - 1;
    unsigned u;

    for (u = 0; (u < VHCA_UOBJ_MAX_USES) && (obj->uses[u] != NULL); ++u) {
        --obj->uses[u]->users;
    }

    ctx->objs[i] = NULL;
    if (i < ctx->free_hint) {
        ctx->free_hint = i;
    }

    free(obj);
}

void vhca_uobj_use(struct vhca_uobj *obj, struct vhca_uobj *used)
{
    unsigned u;

    for (u = 0; u < VHCA_UOBJ_MAX_USES; ++u) {
        if (obj->uses[u] == NULL) {
            obj->uses[u] = used;
            ++used->users;
            return;
        }
    }

    abort(); /* a QP: PD, two umems, two CQs, an RMP; the others less */
}

struct vhca_uobj *vhca_uobj_get(struct vhca_ctx *ctx, uint32_t handle,
                                enum vhca_uobj_kind kind)
{
    struct vhca_uobj *obj;

    if ((handle == 0) || (handle > ctx->num_objs)) {
        return NULL;
    }

    obj = ctx->objs[handle - 1];
    return ((obj != NULL) && (obj->kind == kind)) ? obj : NULL;
}

struct vhca_uobj *vhca_uobj_by_number(struct vhca_ctx *ctx, uint32_t number,
                                      enum vhca_uobj_kind kind)
{
    struct vhca_uobj *obj;
    uint32_t i;

    for (i = 0; i < ctx->num_objs; ++i) {
        obj = ctx->objs[i];
        if ((obj != NULL) && (obj->kind == kind) && (obj->number == number)) {
            return obj;
        }
    }

    return NULL;
}

/* The errno the kernel makes of a status (mlx5 cmd.c, cmd_status_to_err) */
int vhca_fw_errno(const struct vhca_fw *fw)
{
    switch (fw->status) {
    case VHCA_FW_OK:
        return 0;
    case VHCA_FW_RESOURCE_BUSY:
        return -EBUSY;
    case VHCA_FW_EXCEED_LIM:
        return -ENOMEM;
    case VHCA_FW_NO_RESOURCES:
        return -EAGAIN;
    case VHCA_FW_BAD_SYS_STATE:
    case VHCA_FW_INTERNAL_ERR:
    case VHCA_FW_BAD_INPUT_LEN:
    case VHCA_FW_BAD_OUTPUT_LEN:
        return -EIO;
    default:
        return -EINVAL;
    }
}

static int uobj_device_destroy(struct vhca_ctx *ctx, struct vhca_uobj *obj,
                               struct vhca_event_counts *counts_p)
{
    struct vhca_event_counts counts = {0, 0};
    struct vhca_fw fw               = {VHCA_FW_OK, 0};
    bool ok                         = true;

    switch (obj->kind) {
    case VHCA_UOBJ_DEVX_QP:
    case VHCA_UOBJ_QP:
        counts = vhca_event_unsubscribe(obj->number);
        ok     = vhca_qp_destroy(ctx->owner, obj->number, &fw);
        break;
    case VHCA_UOBJ_DEVX_RMP:
    case VHCA_UOBJ_SRQ:
        counts = vhca_event_unsubscribe(obj->number);
        ok     = vhca_rmp_destroy(ctx->owner, obj->number, &fw);
        break;
    case VHCA_UOBJ_DEVX_CQ:
    case VHCA_UOBJ_CQ:
        counts = vhca_event_unsubscribe(obj->number);
        ok     = vhca_cq_destroy(ctx->owner, obj->number, &fw);
        break;
    case VHCA_UOBJ_DEVX_MKEY:
    case VHCA_UOBJ_MR:
        ok = vhca_mkey_destroy(ctx->owner, obj->number, &fw);
        break;
    case VHCA_UOBJ_PD:
        vhca_pd_free(ctx->owner, obj->number);
        break;
    case VHCA_UOBJ_UMEM:
        vhca_stat_add("umem", -1);
        break;
    case VHCA_UOBJ_UAR:
        vhca_stat_add("uar", -1);
        break;
    case VHCA_UOBJ_AH:
    case VHCA_UOBJ_LAST:
        break;
    }

    if (counts_p != NULL) {
        *counts_p = counts;
    }
    if (vhca_tracing()) {
        vhca_trace_destroy(obj, ok);
    }

    return ok ? 0 : vhca_fw_errno(&fw);
}

int vhca_uobj_destroy(struct vhca_ctx *ctx, struct vhca_uobj *obj,
                      struct vhca_event_counts *counts_p)
{
    int ret;

    if (obj->users != 0) {
        return -EBUSY;
    }

    ret = uobj_device_destroy(ctx, obj, counts_p);
    if (ret != 0) {
        return ret;
    }

    vhca_uobj_free(ctx, obj);
    return 0;
}

void vhca_uobj_destroy_all(struct vhca_ctx *ctx)
{
    enum vhca_uobj_kind kind;
    struct vhca_uobj *obj;
    uint32_t i;

    for (kind = 0; kind < VHCA_UOBJ_LAST; ++kind) {
        for (i = 0; i < ctx->num_objs; ++i) {
            obj = ctx->objs[i];
            if ((obj != NULL) && (obj->kind == kind)) {
                (void)uobj_device_destroy(ctx, obj, NULL);
                vhca_uobj_free(ctx, obj);
            }
        }
    }

    free(ctx->objs);
    ctx->objs     = NULL;
    ctx->num_objs = 0;
}
