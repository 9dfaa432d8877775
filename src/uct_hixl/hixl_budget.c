/* SPDX-License-Identifier: BSD-3-Clause */

/* The places for regions: taking, giving up, destroying. */

#include "hixl_budget.h"

#include <string.h>
#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <uct/base/uct_iface.h>

#define uct_hixl_for_each_slot(_slot, _budget) \
    for ((_slot) = (_budget)->slots; \
         (_slot) < (_budget)->slots + (_budget)->max_regs; ++(_slot))

static const uct_hixl_reg_ops_t uct_hixl_reg_device_ops = {
    .create  = hx_mkey_create,
    .destroy = hx_mkey_destroy
};

uct_hixl_budget_t uct_hixl_budget = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .cond = PTHREAD_COND_INITIALIZER,
    .ops  = &uct_hixl_reg_device_ops
};

void uct_hixl_reg_set_ops(const uct_hixl_reg_ops_t *ops)
{
    uct_hixl_budget.ops = (ops != NULL) ? ops : &uct_hixl_reg_device_ops;
}

static ucs_status_t uct_hixl_budget_init(const uct_hixl_md_config_t *config)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    uct_hixl_slot_t *slots;
    unsigned i;
    int ret;

    ret = ucs_posix_memalign((void**)&slots, UCS_SYS_CACHE_LINE_SIZE,
                             config->max_regs * sizeof(*slots), "hixl_slots");
    if (ret != 0) {
        ucs_error("cannot allocate %u places for registrations",
                  config->max_regs);
        return UCS_ERR_NO_MEMORY;
    }

    memset(slots, 0, config->max_regs * sizeof(*slots));
    for (i = 0; i < config->max_regs; ++i) {
        slots[i].super.pins = UCT_HIXL_REGION_GONE;
        slots[i].state      = UCT_HIXL_SLOT_FREE;
        ucs_list_head_init(&slots[i].invalidated);
    }

    budget->slots        = slots;
    budget->max_regs     = config->max_regs;
    budget->max_host_mem = config->max_host_mem;
    budget->hand         = 0;
    budget->num_free     = config->max_regs;
    budget->num_busy     = 0;
    budget->num_orphans  = 0;
    budget->num_keys     = 0;
    budget->num_exposed  = 0;
    budget->host_mem     = 0;
    budget->regions_max  = hx_counter("hixl.regions_max");
    budget->evictions    = hx_counter("hixl.evictions");
    budget->unbound_regs = hx_counter("hixl.unbound_regs");
    return UCS_OK;
}

static void uct_hixl_budget_cleanup(void)
{
    ucs_assert(uct_hixl_budget.num_free == uct_hixl_budget.max_regs);
    ucs_free(uct_hixl_budget.slots);
    uct_hixl_budget.slots = NULL;
}

static void uct_hixl_slot_set_state(uct_hixl_slot_t *slot,
                                    uct_hixl_slot_state_t state)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;

    budget->num_free    += (state == UCT_HIXL_SLOT_FREE) -
                           (slot->state == UCT_HIXL_SLOT_FREE);
    budget->num_busy    += (state == UCT_HIXL_SLOT_BUSY) -
                           (slot->state == UCT_HIXL_SLOT_BUSY);
    budget->num_orphans += (state == UCT_HIXL_SLOT_ORPHAN) -
                           (slot->state == UCT_HIXL_SLOT_ORPHAN);
    slot->state          = state;
    pthread_cond_broadcast(&budget->cond);
}

/* Whose region a mem uses. Release: a mem->region that the data path reads is
 * followed by its own acquire on the region's pins. */
static void uct_hixl_range_set_region(uct_hixl_range_t *range,
                                      uct_hixl_region_t *region)
{
    uct_hixl_mem_full_t *mem;

    ucs_list_for_each(mem, &range->mems, list) {
        __atomic_store_n(&mem->super.region, region, __ATOMIC_RELEASE);
    }
}

static void uct_hixl_slot_detach(uct_hixl_slot_t *slot)
{
    if (slot->range != NULL) {
        uct_hixl_range_set_region(slot->range, NULL);
        slot->range->slot = NULL;
        slot->range       = NULL;
    }
}

/*
 * Takes an idle region's key out of use; 0: it is not idle. On success the slot
 * is BUSY and the caller destroys the key.
 *
 * How this meets uct_hixl_mem_pin(), which holds no lock. `pins` is changed by
 * read-modify-write operations only, so they stand in one order:
 * - A pin before our 0 -> GONE makes it fail: the region is not idle, and its
 *   key lives until the unpin. (The unpin releases and our exchange acquires,
 *   so whatever the operation did with the key came before.)
 * - A pin after it and before the GONE bit is cleared sees the bit, takes its
 *   increment back, and binds again under the lock.
 * - A pin after the bit was cleared (uct_hixl_slot_publish(), the slot serves
 *   another range by then) comes from a thread that read mem->region earlier.
 *   Clearing is a release, which the pin's increment acquires, so it also sees
 *   the NULL, or the newer value, that we stored into mem->region before, and
 *   the compare in the pin fails and takes the increment back; or mem was bound
 *   to this slot again meanwhile: then the pin is a good one, and it sees the
 *   new key for the same reason.
 * An increment that is taken back can only make a region look busy for a
 * moment. That is why GONE is cleared by an atomic AND: a store would lose the
 * increment, and its decrement would then make pins wrap.
 */
static int uct_hixl_slot_unbind(uct_hixl_slot_t *slot)
{
    uint32_t idle = 0;

    if (!__atomic_compare_exchange_n(&slot->super.pins, &idle,
                                     UCT_HIXL_REGION_GONE, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
        return 0;
    }

    ucs_assert(slot->exposed == 0);
    uct_hixl_slot_detach(slot);
    uct_hixl_slot_set_state(slot, UCT_HIXL_SLOT_BUSY);
    return 1;
}

/* The other end of a region that uct_hixl_slot_unbind() took out of use. Drops
 * the lock. */
static void uct_hixl_slot_destroy(uct_hixl_slot_t *slot)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    uct_hixl_mem_full_t *mem, *tmp;

    pthread_mutex_unlock(&budget->lock);
    budget->ops->destroy(&slot->mkey);
    /* Nobody adds to a slot that is BUSY */
    ucs_list_for_each_safe(mem, tmp, &slot->invalidated, list) {
        ucs_list_del(&mem->list);
        uct_invoke_completion(mem->comp, UCS_OK);
        ucs_free(mem);
    }
    pthread_mutex_lock(&budget->lock);

    --budget->num_keys;
    uct_hixl_slot_set_state(slot, UCT_HIXL_SLOT_FREE);
}

void uct_hixl_slot_publish(uct_hixl_slot_t *slot, uct_hixl_range_t *range,
                           const struct hx_mkey *mkey)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    uint64_t live, max;

    ucs_assert(slot->state == UCT_HIXL_SLOT_BUSY);
    slot->md         = range->md;
    slot->range      = range;
    slot->exposed    = 0;
    slot->mkey       = *mkey;
    slot->super.key  = mkey->key;
    slot->super.used = 0;
    uct_hixl_slot_set_state(slot, UCT_HIXL_SLOT_LIVE);
    __atomic_fetch_and(&slot->super.pins, ~UCT_HIXL_REGION_GONE,
                       __ATOMIC_RELEASE);

    range->slot = slot;
    uct_hixl_range_set_region(range, &slot->super);

    /* The counters may be shared with other processes, the limit is not: so
     * the maximum is that of one process. */
    live = ++budget->num_keys;
    max  = __atomic_load_n(budget->regions_max, __ATOMIC_RELAXED);
    while ((live > max) &&
           !__atomic_compare_exchange_n(budget->regions_max, &max, live, 1,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

size_t uct_hixl_budget_give_up(void)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    uct_hixl_slot_t *slot;
    size_t length;
    unsigned i;

    /* In the second turn every bit that was set is clear, unless it was used
     * meanwhile. */
    for (i = 0; i < 2 * budget->max_regs; ++i) {
        slot         = &budget->slots[budget->hand];
        budget->hand = (budget->hand + 1) % budget->max_regs;

        if ((slot->state != UCT_HIXL_SLOT_LIVE) ||
            (__atomic_load_n(&slot->super.pins, __ATOMIC_RELAXED) != 0) ||
            __atomic_exchange_n(&slot->super.used, 0, __ATOMIC_RELAXED)) {
            continue;
        }

        length = slot->range->length;
        if (!uct_hixl_slot_unbind(slot)) {
            continue;
        }

        ucs_trace("giving up the region of key 0x%x", slot->super.key);
        __atomic_fetch_add(budget->evictions, 1, __ATOMIC_RELAXED);
        uct_hixl_slot_destroy(slot);
        return length;
    }

    return 0;
}

uct_hixl_slot_t *uct_hixl_budget_take(void)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    uct_hixl_slot_t *slot;

    while (budget->num_free == 0) {
        if (uct_hixl_budget_give_up() == 0) {
            return NULL;
        }
    }

    uct_hixl_for_each_slot(slot, budget) {
        if (slot->state == UCT_HIXL_SLOT_FREE) {
            uct_hixl_slot_set_state(slot, UCT_HIXL_SLOT_BUSY);
            return slot;
        }
    }

    ucs_fatal("%u free places not found", budget->num_free);
}

void uct_hixl_budget_put(uct_hixl_slot_t *slot)
{
    uct_hixl_slot_set_state(slot, UCT_HIXL_SLOT_FREE);
}

void uct_hixl_slot_release(uct_hixl_slot_t *slot)
{
    if (uct_hixl_slot_unbind(slot)) {
        uct_hixl_slot_destroy(slot);
    } else {
        uct_hixl_slot_detach(slot);
        uct_hixl_slot_set_state(slot, UCT_HIXL_SLOT_ORPHAN);
    }
}

void uct_hixl_budget_settle(void)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    uct_hixl_slot_t *slot;

    if (ucs_likely(budget->num_orphans == 0)) {
        return;
    }

    uct_hixl_for_each_slot(slot, budget) {
        if ((slot->state == UCT_HIXL_SLOT_ORPHAN) &&
            uct_hixl_slot_unbind(slot)) {
            uct_hixl_slot_destroy(slot);
        }
    }
}

static void uct_hixl_budget_purge(const uct_hixl_md_t *md)
{
    uct_hixl_budget_t *budget = &uct_hixl_budget;
    uct_hixl_slot_t *slot;
    uint32_t pins;

    uct_hixl_for_each_slot(slot, budget) {
        while (slot->state == UCT_HIXL_SLOT_BUSY) {
            pthread_cond_wait(&budget->cond, &budget->lock);
        }

        if ((slot->state == UCT_HIXL_SLOT_FREE) || (slot->md != md)) {
            continue;
        }

        if (!uct_hixl_slot_unbind(slot)) {
            pins = __atomic_load_n(&slot->super.pins, __ATOMIC_RELAXED);
            ucs_warn("%s: the region of key 0x%x is closed with %u users",
                     md->dev->name, slot->super.key, pins);
            budget->num_exposed -= (slot->exposed > 0);
            slot->exposed        = 0;
            __atomic_store_n(&slot->super.pins, 0, __ATOMIC_RELAXED);
            (void)uct_hixl_slot_unbind(slot);
        }

        uct_hixl_slot_destroy(slot);
    }
}

static void uct_hixl_reg_check_config(const uct_hixl_md_t *md,
                                      const uct_hixl_md_config_t *config)
{
    const uct_hixl_budget_t *budget = &uct_hixl_budget;

    if (config->max_regs != budget->max_regs) {
        ucs_warn("%s: UCX_" UCT_HIXL_CONFIG_PREFIX "MAX_REGS=%u is ignored: "
                 "the process's first memory domain made it %u", md->dev->name,
                 config->max_regs, budget->max_regs);
    }

    if (config->max_host_mem != budget->max_host_mem) {
        ucs_warn("%s: UCX_" UCT_HIXL_CONFIG_PREFIX "MAX_HOST_MEM=%zu is "
                 "ignored: the process's first memory domain made it %zu",
                 md->dev->name, config->max_host_mem, budget->max_host_mem);
    }
}

ucs_status_t uct_hixl_reg_open(const uct_hixl_md_t *md,
                               const uct_hixl_md_config_t *config)
{
    ucs_status_t status = UCS_OK;

    if ((config->max_regs < UCT_HIXL_MAX_REGS_MIN) ||
        (config->max_regs > UCT_HIXL_MAX_REGS_MAX)) {
        ucs_error("%s: UCX_" UCT_HIXL_CONFIG_PREFIX "MAX_REGS=%u is not in "
                  "%u..%u", md->dev->name, config->max_regs,
                  UCT_HIXL_MAX_REGS_MIN, UCT_HIXL_MAX_REGS_MAX);
        return UCS_ERR_INVALID_PARAM;
    }

    pthread_mutex_lock(&uct_hixl_budget.lock);
    if (uct_hixl_budget.num_mds == 0) {
        status = uct_hixl_budget_init(config);
    } else {
        uct_hixl_reg_check_config(md, config);
    }
    uct_hixl_budget.num_mds += (status == UCS_OK);
    pthread_mutex_unlock(&uct_hixl_budget.lock);

    return status;
}

void uct_hixl_reg_close(const uct_hixl_md_t *md)
{
    pthread_mutex_lock(&uct_hixl_budget.lock);
    uct_hixl_budget_purge(md);
    if (--uct_hixl_budget.num_mds == 0) {
        uct_hixl_budget_cleanup();
    }
    pthread_mutex_unlock(&uct_hixl_budget.lock);
}
