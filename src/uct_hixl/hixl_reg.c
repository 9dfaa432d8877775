/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Registered memory: ranges, what is bound to which region, and the limits.
 */

#include "hixl_budget.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <ucs/datastruct/khash.h>
#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>

/* An exposure that finds no idle region looks again so often: a pin that is
 * about to be taken back makes a region look busy for a moment. */
#define UCT_HIXL_REG_EXPOSE_TRIES 16

/* Rounds of giving up idle regions when the device lacks resources */
#define UCT_HIXL_REG_RESOURCE_TRIES 3

typedef struct uct_hixl_range_key {
    const uct_hixl_md_t *md;
    uintptr_t            start;
    size_t               length;
    uint32_t             access;
} uct_hixl_range_key_t;

static inline khint32_t uct_hixl_range_key_hash(uct_hixl_range_key_t key)
{
    uint64_t h = key.start ^ (key.length * 0x9e3779b97f4a7c15ul) ^
                 ((uintptr_t)key.md >> 4) ^ ((uint64_t)key.access << 56);

    h *= 0xff51afd7ed558ccdul;
    return (khint32_t)(h >> 32);
}

static inline int uct_hixl_range_key_equal(uct_hixl_range_key_t a,
                                           uct_hixl_range_key_t b)
{
    return (a.start == b.start) && (a.length == b.length) && (a.md == b.md) &&
           (a.access == b.access);
}

KHASH_INIT(uct_hixl_ranges, uct_hixl_range_key_t, uct_hixl_range_t*, 1,
           uct_hixl_range_key_hash, uct_hixl_range_key_equal)

/* Of all domains; the budget's lock guards it */
static khash_t(uct_hixl_ranges) uct_hixl_ranges;

static uct_hixl_mem_full_t *uct_hixl_mem_full(uct_hixl_mem_t *mem)
{
    return ucs_derived_of(mem, uct_hixl_mem_full_t);
}

static void uct_hixl_reg_lock(void)
{
    pthread_mutex_lock(&uct_hixl_budget.lock);
}

static void uct_hixl_reg_unlock(void)
{
    pthread_mutex_unlock(&uct_hixl_budget.lock);
}

/* ---- messages ---- */

/* A registration that did not work, and what the device half said of it */
typedef struct uct_hixl_reg_error {
    ucs_status_t status;
    int          err;        /* errno, 0 when no device call failed */
    char         text[256];
} uct_hixl_reg_error_t;

/* The one place that says why memory cannot be given to the device. */
static void uct_hixl_reg_log_error(ucs_log_level_t level,
                                   const uct_hixl_range_t *range,
                                   const uct_hixl_reg_error_t *error)
{
    const uct_hixl_budget_t *budget = &uct_hixl_budget;
    const char *name                = range->md->dev->name;
    void *start                     = (void*)range->start;
    void *end                       = UCS_PTR_BYTE_OFFSET(start, range->length);
    char hint[HX_LIMIT_HINT_MAX];

    if (error->err == EFAULT) {
        ucs_log(level, "%s: cannot register %p..%p: the memory is not mapped, "
                "or not writable as the registration asks (%s)", name, start,
                end, error->text);
    } else if (error->err != 0) {
        hx_limit_hint(HX_LIMIT_PIN, error->err, hint, sizeof(hint));
        if (strstr(error->text, hint) != NULL) {
            hint[0] = '\0'; /* the device half said so */
        }
        ucs_log(level, "%s: cannot register %p..%p: %s (%s)%s", name, start,
                end, strerror(error->err), error->text, hint);
    } else {
        ucs_log(level, "%s: cannot give out a key for %p..%p: the process may "
                "have %u registrations (UCX_" UCT_HIXL_CONFIG_PREFIX "MAX_REGS="
                "%u), %u are exposed to peers and %u serve operations in "
                "flight; set UCX_" UCT_HIXL_CONFIG_PREFIX "MAX_REGS higher (up "
                "to %u), or unmap memory whose key is no longer needed"
#if UCT_HIXL_UCP_CACHES_REGS
                " and set UCX_RCACHE_MAX_REGIONS below it"
#endif
                , name, start, end, budget->max_regs, budget->max_regs,
                budget->num_exposed, budget->num_keys - budget->num_exposed,
                UCT_HIXL_MAX_REGS_MAX);
    }
}

/* ---- binding ---- */

static int uct_hixl_reg_is_resource_error(int err)
{
    return (err == ENOMEM) || (err == ENOSPC) || (err == EAGAIN) ||
           (err == EBUSY);
}

/* When the device lacks resources: gives up idle regions, at least one and as
 * many bytes as are wanted. Drops the lock. */
static int uct_hixl_reg_make_room(size_t length)
{
    size_t sum = 0;
    size_t given;

    do {
        given = uct_hixl_budget_give_up();
        sum  += given;
    } while ((given > 0) && (sum < length));

    return sum > 0;
}

/* Makes the key for a range, in a slot that was taken. Drops the lock. */
static int uct_hixl_reg_create_key(uct_hixl_range_t *range,
                                   struct hx_mkey *mkey_p,
                                   uct_hixl_reg_error_t *error)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    unsigned tries            = 0;
    struct hx_log_hold hold;
    int ret;

    do {
        uct_hixl_reg_unlock();
        hx_log_hold_begin(&hold, error->text, sizeof(error->text));
        ret = budget->ops->create(range->md->dev, (void*)range->start,
                                  range->length, range->access, mkey_p);
        hx_log_hold_end(&hold);
        uct_hixl_reg_lock();
    } while (uct_hixl_reg_is_resource_error(-ret) &&
             (tries++ < UCT_HIXL_REG_RESOURCE_TRIES) &&
             uct_hixl_reg_make_room(range->length));

    error->err = -ret;
    return ret;
}

/*
 * Sees to it that the range has a region. UCS_ERR_EXCEEDS_LIMIT: no place in
 * the budget, UCS_ERR_NO_RESOURCE: the device lacks something; nothing is
 * logged. Drops the lock; the caller's mem keeps the range.
 */
static ucs_status_t uct_hixl_range_bind(uct_hixl_range_t *range,
                                        uct_hixl_reg_error_t *error)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    struct hx_mkey mkey;
    uct_hixl_slot_t *slot;
    int ret;

    error->err = 0;
    uct_hixl_budget_settle();

    while (range->binding) {
        pthread_cond_wait(&budget->cond, &budget->lock);
    }

    if (range->slot != NULL) {
        return UCS_OK;
    }

    range->binding = 1;
    slot           = uct_hixl_budget_take();
    if (slot == NULL) {
        error->status = UCS_ERR_EXCEEDS_LIMIT;
        goto out;
    }

    ret = uct_hixl_reg_create_key(range, &mkey, error);
    if (ret == 0) {
        uct_hixl_slot_publish(slot, range, &mkey);
        error->status = UCS_OK;
        goto out;
    }

    uct_hixl_budget_put(slot);
    if (uct_hixl_reg_is_resource_error(error->err)) {
        error->status = UCS_ERR_NO_RESOURCE;
    } else {
        error->status = (error->err == EFAULT) ? UCS_ERR_INVALID_ADDR :
                                                 UCS_ERR_IO_ERROR;
    }

out:
    range->binding = 0;
    pthread_cond_broadcast(&budget->cond);
    return error->status;
}

uct_hixl_region_t *uct_hixl_mem_bind_pin(uct_hixl_mem_t *mem)
{
    uct_hixl_range_t *range   = uct_hixl_mem_full(mem)->range;
    uct_hixl_region_t *region = NULL;
    uct_hixl_reg_error_t error;

    uct_hixl_reg_lock();
    if (uct_hixl_range_bind(range, &error) == UCS_OK) {
        region = &range->slot->super;
        __atomic_fetch_add(&region->pins, 1, __ATOMIC_ACQUIRE);
        __atomic_store_n(&region->used, 1, __ATOMIC_RELAXED);
    }
    uct_hixl_reg_unlock();

    return region;
}

/* Exposes the range's region for mem. Drops the lock. */
static ucs_status_t uct_hixl_mem_reserve(uct_hixl_mem_full_t *mem,
                                         uct_hixl_reg_error_t *error)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    unsigned tries            = 0;
    uct_hixl_slot_t *slot;
    ucs_status_t status;

    for (;;) {
        status = uct_hixl_range_bind(mem->range, error);
        if (status != UCS_ERR_EXCEEDS_LIMIT) {
            break;
        }

        if (budget->num_exposed == budget->max_regs) {
            return status;
        } else if (budget->num_busy > 0) {
            pthread_cond_wait(&budget->cond, &budget->lock);
        } else if (tries++ < UCT_HIXL_REG_EXPOSE_TRIES) {
            uct_hixl_reg_unlock();
            sched_yield();
            uct_hixl_reg_lock();
        } else {
            return status;
        }
    }

    if (status != UCS_OK) {
        return status;
    }

    slot         = mem->range->slot;
    mem->exposed = 1;
    __atomic_fetch_add(&slot->super.pins, 1, __ATOMIC_ACQUIRE);
    if (slot->exposed++ == 0) {
        ++budget->num_exposed;
    }

    return UCS_OK;
}

static void uct_hixl_mem_unreserve(uct_hixl_mem_full_t *mem)
{
    uct_hixl_slot_t *slot = mem->range->slot;

    mem->exposed = 0;
    if (--slot->exposed == 0) {
        --uct_hixl_budget.num_exposed;
    }
    uct_hixl_region_unpin(&slot->super);
}

ucs_status_t uct_hixl_mem_expose(uct_hixl_mem_t *tl_mem, uint32_t *key_p)
{
    uct_hixl_mem_full_t *mem = uct_hixl_mem_full(tl_mem);
    ucs_status_t status      = UCS_OK;
    uct_hixl_reg_error_t error;

    uct_hixl_reg_lock();
    if (!mem->exposed) {
        status = uct_hixl_mem_reserve(mem, &error);
        if (status != UCS_OK) {
            uct_hixl_reg_log_error(UCS_LOG_LEVEL_ERROR, mem->range, &error);
        }
    }

    if (status == UCS_OK) {
        *key_p = mem->range->slot->super.key;
    }
    uct_hixl_reg_unlock();

    return status;
}

/* ---- ranges and mems ---- */

static ucs_status_t
uct_hixl_range_get(const uct_hixl_range_key_t *key, ucs_log_level_t level,
                   uct_hixl_range_t **range_p)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    uct_hixl_range_t *range;
    khiter_t iter;
    int ret;

    iter = kh_get(uct_hixl_ranges, &uct_hixl_ranges, *key);
    if (iter != kh_end(&uct_hixl_ranges)) {
        *range_p = kh_val(&uct_hixl_ranges, iter);
        return UCS_OK;
    }

    if (key->length > budget->max_host_mem - budget->host_mem) {
        ucs_log(level, "%s: cannot register %zu bytes at %p: %zu of at most "
                "%zu bytes are registered (UCX_" UCT_HIXL_CONFIG_PREFIX
                "MAX_HOST_MEM); set it higher, or deregister memory that is no "
                "longer needed", key->md->dev->name, key->length,
                (void*)key->start, budget->host_mem, budget->max_host_mem);
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    range = ucs_calloc(1, sizeof(*range), "hixl_range");
    if (range == NULL) {
        goto err_no_memory;
    }

    iter = kh_put(uct_hixl_ranges, &uct_hixl_ranges, *key, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        goto err_free;
    }

    range->md      = key->md;
    range->start   = key->start;
    range->length  = key->length;
    range->access  = key->access;
    range->counted = key->length;
    ucs_list_head_init(&range->mems);
    kh_val(&uct_hixl_ranges, iter) = range;
    budget->host_mem              += key->length;

    *range_p = range;
    return UCS_OK;

err_free:
    ucs_free(range);
err_no_memory:
    ucs_log(level, "%s: no memory to register %p", key->md->dev->name,
            (void*)key->start);
    return UCS_ERR_NO_MEMORY;
}

/* Nobody finds it any more */
static void uct_hixl_range_hide(uct_hixl_range_t *range)
{
    const uct_hixl_range_key_t key = {
        .md     = range->md,
        .start  = range->start,
        .length = range->length,
        .access = range->access
    };
    khiter_t iter;

    iter = kh_get(uct_hixl_ranges, &uct_hixl_ranges, key);
    ucs_assert(iter != kh_end(&uct_hixl_ranges));
    kh_del(uct_hixl_ranges, &uct_hixl_ranges, iter);
    range->own = 1;
}

/* The last user of a range is gone. Drops the lock. */
static void uct_hixl_range_free(uct_hixl_range_t *range)
{
    if (!range->own) {
        uct_hixl_range_hide(range);
    }
    uct_hixl_budget.host_mem -= range->counted;

    if (range->slot != NULL) {
        uct_hixl_slot_release(range->slot);
    }

    ucs_free(range);
}

static uint32_t uct_hixl_reg_access(const uct_hixl_md_t *md, uint64_t flags)
{
    uint32_t access = 0;

    if (flags & UCT_MD_MEM_ACCESS_LOCAL_WRITE) {
        access |= IBV_ACCESS_LOCAL_WRITE;
    }
    if (flags & UCT_MD_MEM_ACCESS_REMOTE_GET) {
        access |= IBV_ACCESS_REMOTE_READ;
    }
    /* Verbs' rule: who may write from afar may write here */
    if (flags & UCT_MD_MEM_ACCESS_REMOTE_PUT) {
        access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    }
    if ((flags & UCT_MD_MEM_ACCESS_REMOTE_ATOMIC) && md->dev->caps.atomic) {
        access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    }

    return access;
}

/* Drops the lock. */
static void uct_hixl_mem_free(uct_hixl_mem_full_t *mem)
{
    uct_hixl_range_t *range = mem->range;

    ucs_list_del(&mem->list);
    if (ucs_list_is_empty(&range->mems)) {
        uct_hixl_range_free(range);
    }
    ucs_free(mem);
}

/* What mem_reg owes to its flags: with HIDE_ERRORS the exposure, else a region
 * if there is one to be had. */
static ucs_status_t uct_hixl_mem_first_bind(uct_hixl_mem_full_t *mem,
                                            uint64_t flags)
{
    static int said_resource   = 0;
    uct_hixl_range_t *range    = mem->range;
    uct_hixl_reg_error_t error = {0};
    ucs_status_t status;

    if (flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) {
        status = uct_hixl_mem_reserve(mem, &error);
        if (status != UCS_OK) {
            uct_hixl_reg_log_error(UCS_LOG_LEVEL_DIAG, range, &error);
        }
        return status;
    }

    status = uct_hixl_range_bind(range, &error);
    switch (status) {
    case UCS_OK:
        return UCS_OK;
    case UCS_ERR_NO_RESOURCE:
        uct_hixl_reg_log_error(said_resource ? UCS_LOG_LEVEL_DIAG :
                                               UCS_LOG_LEVEL_WARN,
                               range, &error);
        said_resource = 1;
        /* fall through */
    case UCS_ERR_EXCEEDS_LIMIT:
        __atomic_fetch_add(uct_hixl_budget.unbound_regs, 1, __ATOMIC_RELAXED);
        return UCS_OK; /* its operations go through bounce buffers */
    default:
        uct_hixl_reg_log_error(UCS_LOG_LEVEL_ERROR, range, &error);
        return status;
    }
}

ucs_status_t uct_hixl_mem_reg(const uct_hixl_md_t *md, void *address,
                              size_t length, uint64_t flags,
                              uct_hixl_mem_t **mem_p)
{
    const uct_hixl_range_key_t key = {
        .md     = md,
        .start  = (uintptr_t)address,
        .length = length,
        .access = uct_hixl_reg_access(md, flags)
    };
    ucs_log_level_t level = uct_md_reg_log_lvl(flags);
    uct_hixl_mem_full_t *mem;
    uct_hixl_range_t *range;
    ucs_status_t status;

    if ((address == NULL) || (length == 0) ||
        (key.start + length < key.start)) {
        ucs_log(level, "%s: cannot register %zu bytes at %p: no such range",
                md->dev->name, length, address);
        return UCS_ERR_INVALID_PARAM;
    }

    mem = ucs_malloc(sizeof(*mem), "hixl_mem");
    if (mem == NULL) {
        ucs_log(level, "%s: no memory to register %p", md->dev->name, address);
        return UCS_ERR_NO_MEMORY;
    }

    uct_hixl_reg_lock();
    status = uct_hixl_range_get(&key, level, &range);
    if (status != UCS_OK) {
        uct_hixl_reg_unlock();
        ucs_free(mem);
        return status;
    }

    mem->range         = range;
    mem->exposed       = 0;
    mem->revocable     = 0;
    mem->twin          = NULL;
    mem->super.address = address;
    mem->super.length  = length;
    mem->super.region  = (range->slot == NULL) ? NULL : &range->slot->super;
    ucs_list_add_tail(&range->mems, &mem->list);

    status = uct_hixl_mem_first_bind(mem, flags);
    if (status != UCS_OK) {
        uct_hixl_mem_free(mem);
        uct_hixl_reg_unlock();
        return status;
    }
    uct_hixl_reg_unlock();

    *mem_p = &mem->super;
    return UCS_OK;
}

/* Drops the lock. */
static void uct_hixl_mem_drop(uct_hixl_mem_full_t *mem)
{
    if (mem->exposed) {
        uct_hixl_mem_unreserve(mem);
    }
    uct_hixl_mem_free(mem);
}

void uct_hixl_mem_dereg(uct_hixl_mem_t *tl_mem)
{
    uct_hixl_mem_full_t *mem = uct_hixl_mem_full(tl_mem);

    uct_hixl_reg_lock();
    if (mem->twin != NULL) {
        uct_hixl_mem_drop(mem->twin);
    }
    uct_hixl_mem_drop(mem);
    uct_hixl_budget_settle();
    uct_hixl_reg_unlock();
}

/* ---- keys that can be taken back ---- */

/* A mem of the same range that shares with nobody, exposed; NULL: no place or
 * no memory. Its bytes are counted for the range that they have in common.
 * Drops the lock. */
static uct_hixl_mem_full_t *uct_hixl_mem_make_twin(uct_hixl_mem_full_t *mem)
{
    uct_hixl_mem_full_t *twin = ucs_calloc(1, sizeof(*twin), "hixl_mem");
    uct_hixl_range_t *range   = ucs_calloc(1, sizeof(*range), "hixl_range");
    uct_hixl_reg_error_t error;

    if ((twin == NULL) || (range == NULL)) {
        goto err_free;
    }

    range->md     = mem->range->md;
    range->start  = mem->range->start;
    range->length = mem->range->length;
    range->access = mem->range->access;
    range->own    = 1;
    twin->super   = mem->super;
    twin->range   = range;
    twin->super.region = NULL;
    ucs_list_head_init(&range->mems);
    ucs_list_add_tail(&range->mems, &twin->list);
    if (uct_hixl_mem_reserve(twin, &error) == UCS_OK) {
        return twin;
    }

err_free:
    ucs_free(range);
    ucs_free(twin);
    return NULL;
}

/* The mem's key becomes its own: the range's, if nobody shares it, or another.
 * Without a place for that it stays the shared one, and its end comes with the
 * last exposure of it. Drops the lock. */
static void uct_hixl_mem_make_revocable(uct_hixl_mem_full_t *mem)
{
    uct_hixl_mem_full_t *twin;

    if (!mem->range->own && ucs_list_is_only(&mem->range->mems, &mem->list)) {
        uct_hixl_range_hide(mem->range);
    }

    if (!mem->range->own && (mem->twin == NULL)) {
        twin = uct_hixl_mem_make_twin(mem);
        if (mem->twin == NULL) {
            mem->twin = twin;
        } else if (twin != NULL) {
            uct_hixl_mem_drop(twin); /* another thread was first */
        }
    }
    mem->revocable = 1;
}

ucs_status_t uct_hixl_mem_expose_own(uct_hixl_mem_t *tl_mem, uint32_t *key_p)
{
    uct_hixl_mem_full_t *mem = uct_hixl_mem_full(tl_mem);

    uct_hixl_reg_lock();
    if (!mem->revocable) {
        uct_hixl_mem_make_revocable(mem);
    }
    mem = (mem->twin != NULL) ? mem->twin : mem;
    uct_hixl_reg_unlock();

    return uct_hixl_mem_expose(&mem->super, key_p);
}

void uct_hixl_mem_invalidate(uct_hixl_mem_t *tl_mem, uct_completion_t *comp)
{
    uct_hixl_mem_full_t *mem = uct_hixl_mem_full(tl_mem);
    uct_hixl_range_t *range  = mem->range;
    uct_hixl_mem_full_t *twin;
    uct_hixl_slot_t *slot;

    uct_hixl_reg_lock();
    twin = mem->twin;
    slot = (twin != NULL) ? twin->range->slot :
           mem->exposed ? range->slot : NULL;
    if (mem->exposed) {
        uct_hixl_mem_unreserve(mem);
    }
    ucs_list_del(&mem->list);

    /* Until the key is gone the mem itself is what waits */
    mem->comp = comp;
    if (slot != NULL) {
        ucs_list_add_tail(&slot->invalidated, &mem->list);
    }

    if (ucs_list_is_empty(&range->mems)) {
        uct_hixl_range_free(range);
    } else if ((twin == NULL) && (slot != NULL) && (slot->exposed == 0)) {
        uct_hixl_slot_release(slot); /* the others get another key */
    }
    if (twin != NULL) {
        uct_hixl_mem_drop(twin);
    }
    uct_hixl_budget_settle();
    uct_hixl_reg_unlock();

    if (slot == NULL) {
        ucs_free(mem);
        uct_invoke_completion(comp, UCS_OK); /* no peer ever had it */
    }
}
