/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Objects by number. A number is its slot plus a generation that changes every
 * time the slot is given anew, so that the number of a destroyed object is not
 * soon somebody else's. QPs, CQs and RMPs differ in the top byte: a number
 * says what it is the number of.
 */

#include <time.h>

#include "nic.h"

struct kind_info {
    size_t   off, stride;
    uint8_t  log_slots;
    uint8_t  log_gens;
    uint32_t class;
};

#define KIND(_field, _log, _log_gens, _class) { \
        offsetof(struct nic_fabric, _field), \
        sizeof(((struct nic_fabric*)0)->_field[0]), _log, _log_gens, _class \
    }

static const struct kind_info kind_info[NIC_KINDS] = {
    [NIC_OWNER] = KIND(owner, NIC_LOG_OWNERS, 12, 0),
    [NIC_PD]    = KIND(pd, NIC_LOG_PDS, 9, 0),
    [NIC_MKEY]  = KIND(mkey, NIC_LOG_MKEYS, 6, 0),
    [NIC_CQ]    = KIND(cq, NIC_LOG_CQS, 6, 0x800000),
    [NIC_RMP]   = KIND(rmp, NIC_LOG_RMPS, 5, 0x200000),
    [NIC_QP]    = KIND(qp, NIC_LOG_QPS, 6, 0x400000),
    [NIC_CHAN]  = KIND(chan, NIC_LOG_CHANS, 10, 0),
    [NIC_SUB]   = KIND(sub, NIC_LOG_SUBS, 8, 0)
};

struct nic_obj *nic_obj_slot(enum nic_kind kind, uint32_t slot)
{
    return (struct nic_obj*)(void*)((char*)NIC_FAB + kind_info[kind].off +
                                    slot * kind_info[kind].stride);
}

uint32_t nic_obj_index(enum nic_kind kind, const struct nic_obj *obj)
{
    return ((const char*)obj - (char*)NIC_FAB - kind_info[kind].off) /
           kind_info[kind].stride;
}

/* A slot of this process, not yet to be found. Its body is whatever the last
 * object left there. */
struct nic_obj *nic_obj_alloc(enum nic_kind kind, uint32_t owner)
{
    struct nic_table *table = &NIC_FAB->hdr.table[kind];
    uint32_t slots          = 1u << kind_info[kind].log_slots;
    uint32_t window         = 64;
    uint32_t i, slot, none, high;
    struct nic_obj *obj;

    /* start at a place that moves on, but within a window that keeps the
     * number of touched pages near the number of live objects */
    while ((window < slots) && (window < 2 * atomic_load(&table->live) + 64)) {
        window *= 2;
    }
    if (window > slots) {
        window = slots;
    }

    for (i = 0; i < slots + window; ++i) {
        slot = (i < window) ? atomic_fetch_add(&table->hint, 1) % window :
                              i - window;
        obj  = nic_obj_slot(kind, slot);
        none = 0;
        if (!nic_populate(obj, kind_info[kind].stride)) {
            return NULL;
        }
        if ((atomic_load_explicit(&obj->claim, memory_order_relaxed) == 0) &&
            atomic_compare_exchange_strong(&obj->claim, &none, nic_self.id)) {
            goto found;
        }
    }

    return NULL;

found:
    obj->owner = owner;
    atomic_fetch_add(&table->live, 1);
    high = atomic_load(&table->high);
    while ((high <= slot) &&
           !atomic_compare_exchange_weak(&table->high, &high, slot + 1)) {
    }
    return obj;
}

/* From here on others find it. */
uint32_t nic_obj_publish(enum nic_kind kind, struct nic_obj *obj)
{
    const struct kind_info *info = &kind_info[kind];
    uint32_t gens                = 1u << info->log_gens;
    uint32_t slot                = nic_obj_index(kind, obj), number;

    if (obj->gen == 0) {
        obj->gen = (slot * 2654435761u) >> 16; /* slots start apart */
    }
    /* 0 is no generation: number 0 means none, and the last one is left out
     * so that 0xffffff is no object */
    obj->gen = obj->gen % (gens - 2) + 1;
    number   = info->class | obj->gen << info->log_slots | slot;
    atomic_store(&obj->number, number);
    return number;
}

void nic_obj_hide(struct nic_obj *obj)
{
    atomic_store(&obj->number, 0);
}

void nic_obj_free(enum nic_kind kind, struct nic_obj *obj)
{
    nic_obj_hide(obj);
    if (atomic_exchange(&obj->claim, 0) != 0) {
        atomic_fetch_sub(&NIC_FAB->hdr.table[kind].live, 1);
    }
}

struct nic_obj *nic_obj_find(enum nic_kind kind, uint32_t number)
{
    uint32_t mask = (1u << kind_info[kind].log_slots) - 1;
    struct nic_obj *obj;

    if (number == 0) {
        return NULL;
    }

    obj = nic_obj_slot(kind, number & mask);
    return (atomic_load(&obj->number) == number) ? obj : NULL;
}

/* Owner and process are the caller's: a fork child and another context's
 * handle are nobody here. */
bool nic_obj_mine(const struct nic_obj *obj, uint32_t owner)
{
    return (obj != NULL) && (NIC_FAB != NULL) &&
           (atomic_load(&obj->claim) == nic_self.id) && (obj->owner == owner);
}
