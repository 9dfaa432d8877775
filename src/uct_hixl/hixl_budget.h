/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Inside the registration budget: the places for regions (slots), who gets
 * one, and who must give one up. hixl_reg.c decides what is bound to them.
 *
 * Every call but those that say otherwise wants uct_hixl_budget.lock held.
 * Device calls take long, so they are made with the lock released: "drops the
 * lock" below means that what was read before must be read again.
 */

#ifndef UCT_HIXL_BUDGET_H_
#define UCT_HIXL_BUDGET_H_

#include "hixl_reg.h"

#include <pthread.h>
#include <ucs/arch/cpu.h>
#include <ucs/datastruct/list.h>

#define UCT_HIXL_MAX_REGS_MIN 1
#define UCT_HIXL_MAX_REGS_MAX 4096

typedef struct uct_hixl_slot uct_hixl_slot_t;

/* A registered range; mems of the same domain, range and rights share it,
 * unless it is one mem's own: then its key can be taken from peers without harm
 * to others (see uct_hixl_mem_expose_own()). */
typedef struct uct_hixl_range {
    const uct_hixl_md_t *md;
    uintptr_t            start;
    size_t               length;
    uint32_t             access;      /* IBV_ACCESS_* */
    int                  binding;     /* a thread makes its region just now */
    int                  own;         /* of one mem, no other finds it */
    size_t               counted;     /* bytes of host_mem */
    ucs_list_link_t      mems;
    uct_hixl_slot_t     *slot;        /* of its region; NULL: none */
} uct_hixl_range_t;

/* What a uct_hixl_mem_t really is */
typedef struct uct_hixl_mem_full uct_hixl_mem_full_t;

struct uct_hixl_mem_full {
    uct_hixl_mem_t       super;
    uct_hixl_range_t    *range;
    ucs_list_link_t      list;    /* of range->mems; of slot->invalidated */
    int                  exposed;
    int                  revocable; /* a key was given out as such */
    uct_hixl_mem_full_t *twin;    /* its key of its own; NULL: the range is */
    uct_completion_t    *comp;    /* deregistered: who waits for the key's end */
};

typedef enum {
    UCT_HIXL_SLOT_FREE,
    UCT_HIXL_SLOT_BUSY,   /* a thread makes or destroys its key, unlocked */
    UCT_HIXL_SLOT_LIVE,
    UCT_HIXL_SLOT_ORPHAN  /* its range is gone, an operation still uses it */
} uct_hixl_slot_state_t;

/* A place for a region, and the region in it. */
struct uct_hixl_slot {
    uct_hixl_region_t     super;
    uct_hixl_slot_state_t state;
    unsigned              exposed;   /* mems that are exposed through it */
    const uct_hixl_md_t  *md;
    uct_hixl_range_t     *range;     /* of a LIVE one; else NULL */
    ucs_list_link_t       invalidated; /* mems: told when the key is gone */
    struct hx_mkey        mkey;
} UCS_V_ALIGNED(UCS_SYS_CACHE_LINE_SIZE);

typedef struct uct_hixl_budget {
    pthread_mutex_t           lock;
    pthread_cond_t            cond;       /* a slot left BUSY */
    const uct_hixl_reg_ops_t *ops;
    unsigned                  num_mds;
    unsigned                  max_regs;
    size_t                    max_host_mem;
    uct_hixl_slot_t          *slots;
    unsigned                  hand;       /* of the clock */
    unsigned                  num_free;
    unsigned                  num_busy;
    unsigned                  num_orphans;
    unsigned                  num_keys;   /* live umems with a key */
    unsigned                  num_exposed;
    size_t                    host_mem;   /* bytes of all ranges */
    uint64_t                 *regions_max; /* counters, see hx_counter() */
    uint64_t                 *evictions;
    uint64_t                 *unbound_regs;
} uct_hixl_budget_t;

extern uct_hixl_budget_t uct_hixl_budget;

/** A free slot, made BUSY; gives up an idle region if there is none. NULL: none
 *  is idle. Drops the lock. */
uct_hixl_slot_t *uct_hixl_budget_take(void);
/** Puts back what was taken. */
void uct_hixl_budget_put(uct_hixl_slot_t *slot);

/** Gives up the next idle region by the clock and returns how many bytes it
 *  had; 0: none is idle. Drops the lock. */
size_t uct_hixl_budget_give_up(void);

/** Destroys orphans whose operations are done. Drops the lock. */
void uct_hixl_budget_settle(void);

/** A taken slot becomes the range's region, with this key. */
void uct_hixl_slot_publish(uct_hixl_slot_t *slot, uct_hixl_range_t *range,
                           const struct hx_mkey *mkey);
/** The range has no user any more: destroys its region, or makes it an orphan
 *  if it is not idle (a pin that is about to be taken back makes it look so).
 *  Drops the lock. */
void uct_hixl_slot_release(uct_hixl_slot_t *slot);

#endif
