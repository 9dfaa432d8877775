/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The registration budget: at most UCX_HIXL_MAX_REGS live umems with a key
 * over user memory in the process, over all memory domains and devices.
 *
 * A uct_hixl_mem_t is what mem_reg gives out: a range, perhaps bound to a
 * region. A region is one umem and one key of exactly that range; mems of the
 * same range share it. It lives no longer than they do, and is given up before,
 * when the budget asks for its place, if it is idle: no operation in flight, no
 * exposure. All calls are thread safe.
 */

#ifndef UCT_HIXL_REG_H_
#define UCT_HIXL_REG_H_

#include "hixl_md.h"

typedef struct uct_hixl_region uct_hixl_region_t;

/* The part of a region that the data path touches. `pins` counts operations in
 * flight and exposures; UCT_HIXL_REGION_GONE is set in it while the region has
 * no key. How the two sides meet: see uct_hixl_slot_unbind(). */
struct uct_hixl_region {
    volatile uint32_t pins;
    volatile uint32_t used;       /* the clock's reference bit */
    uint32_t          key;        /* lkey and rkey */
};

#define UCT_HIXL_REGION_GONE UCS_BIT(31)

/* A memory handle of this transport points to one; the rest is hixl_reg.c's */
typedef struct uct_hixl_mem {
    uct_hixl_region_t * volatile region; /* NULL: unbound */
    void                        *address;
    size_t                       length;
} uct_hixl_mem_t;

/* Slow path of pinning: binds if the budget allows; NULL if it does not. */
uct_hixl_region_t *uct_hixl_mem_bind_pin(uct_hixl_mem_t *mem);

/*
 * Holds mem's region for one operation: its key is good until the unpin. NULL:
 * no region can be bound now, the caller uses bounce buffers. Never waits for
 * the budget. (A region struct is never freed while a mem could still point to
 * it: regions live in a pool as long as a memory domain is open.)
 */
static UCS_F_ALWAYS_INLINE uct_hixl_region_t *
uct_hixl_mem_pin(uct_hixl_mem_t *mem)
{
    uct_hixl_region_t *region = __atomic_load_n(&mem->region,
                                                __ATOMIC_RELAXED);

    if (ucs_likely(region != NULL)) {
        if (ucs_likely(!(__atomic_fetch_add(&region->pins, 1,
                                            __ATOMIC_ACQUIRE) &
                         UCT_HIXL_REGION_GONE)) &&
            ucs_likely(__atomic_load_n(&mem->region, __ATOMIC_RELAXED) ==
                       region)) {
            __atomic_store_n(&region->used, 1, __ATOMIC_RELAXED);
            return region;
        }
        __atomic_fetch_sub(&region->pins, 1, __ATOMIC_RELEASE);
    }

    return uct_hixl_mem_bind_pin(mem);
}

static UCS_F_ALWAYS_INLINE void uct_hixl_region_unpin(uct_hixl_region_t *region)
{
    __atomic_fetch_sub(&region->pins, 1, __ATOMIC_RELEASE);
}

/* ---- what the memory domain calls ---- */

/** The first domain of the process decides the limits; another value warns. */
ucs_status_t uct_hixl_reg_open(const uct_hixl_md_t *md,
                               const uct_hixl_md_config_t *config);
/** Every mem of the domain was deregistered before. */
void uct_hixl_reg_close(const uct_hixl_md_t *md);

/**
 * Registers [address, address + length) with the rights in `flags`
 * (UCT_MD_MEM_ACCESS_*). With UCT_MD_MEM_FLAG_HIDE_ERRORS the exposure is
 * reserved now, so that uct_hixl_mem_expose() cannot fail. Failures are logged
 * here.
 */
ucs_status_t uct_hixl_mem_reg(const uct_hixl_md_t *md, void *address,
                              size_t length, uint64_t flags,
                              uct_hixl_mem_t **mem_p);
/** The last mem of a range takes the range's key with it: the key is destroyed
 *  before this returns. No operation on it may be in flight; if one is, the key
 *  lives until it is done and the budget is next asked for something. */
void uct_hixl_mem_dereg(uct_hixl_mem_t *mem);

/** As uct_hixl_mem_dereg(), of a memory whose key uct_hixl_mem_expose_own()
 *  gave: comp is invoked when that key is dead, mostly before this returns.
 *  Later only if an operation on the memory is in flight, or if no place was
 *  left for a key of its own and others have exposed the one that it shares. */
void uct_hixl_mem_invalidate(uct_hixl_mem_t *mem, uct_completion_t *comp);

/** Keeps mem bound to its region until it is deregistered; the key may be given
 *  to peers. Failures are logged here. */
ucs_status_t uct_hixl_mem_expose(uct_hixl_mem_t *mem, uint32_t *key_p);
/** As uct_hixl_mem_expose(), with a key that uct_hixl_mem_invalidate() can kill
 *  without harm to other mems of the same range. */
ucs_status_t uct_hixl_mem_expose_own(uct_hixl_mem_t *mem, uint32_t *key_p);

/* How a region's key is made; the device's calls unless a test puts in its
 * own before the first domain is opened. */
typedef struct uct_hixl_reg_ops {
    int  (*create)(struct hx_dev *dev, void *addr, size_t len, uint32_t access,
                   struct hx_mkey *mkey_p);
    void (*destroy)(struct hx_mkey *mkey);
} uct_hixl_reg_ops_t;

/** NULL: the device's calls. */
void uct_hixl_reg_set_ops(const uct_hixl_reg_ops_t *ops);

#endif
