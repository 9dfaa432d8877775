/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Barriers and doorbells. The order is always: WQE stores, hx_dma_wmb(), the
 * doorbell record, hx_wc_start(), the UAR write, hx_wc_flush(). A UAR may be
 * mapped write combining, where stores are held back and reordered against
 * those to memory.
 *
 * On the emulated device a store to a UAR traps nothing. It exports a function
 * to call after the doorbell, looked up when a queue is made; on hardware there
 * is none.
 */

#ifndef HX_MMIO_H_
#define HX_MMIO_H_

#include <dlfcn.h>
#include <endian.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef int (*hx_ring_soft_fn)(unsigned type, uint32_t number);

/* `type` of the emulated device's doorbell; the number is a QPN, RMPN, CQN */
enum {
    HX_RING_SOFT_SQ     = 0,
    HX_RING_SOFT_RMP    = 1,
    HX_RING_SOFT_CQ_ARM = 2
};

/* NULL on hardware */
static inline hx_ring_soft_fn hx_ring_soft_lookup(void)
{
    union {
        void           *sym;
        hx_ring_soft_fn fn;
    } u = {.sym = dlsym(RTLD_DEFAULT, "vhca_doorbell")};

    return u.fn;
}

/* Stores to memory that the device reads stay before later ones */
static inline void hx_dma_wmb(void)
{
#if defined(__x86_64__)
    __asm__ volatile("" ::: "memory"); /* stores are not reordered */
#else
    __sync_synchronize();
#endif
}

static inline void hx_wc_flush(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#else
    __sync_synchronize();
#endif
}

static inline void hx_wc_start(void)
{
    hx_wc_flush();
}

/* `be` is in the device's order already */
static inline void hx_mmio_write64(void *reg, uint64_t be)
{
    *(volatile uint64_t *)reg = be;
}

#endif
