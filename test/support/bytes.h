/* SPDX-License-Identifier: BSD-3-Clause */

/* Random numbers with a seed, and buffers whose every byte is known. */

#ifndef HXT_BYTES_H_
#define HXT_BYTES_H_

#include <stddef.h>
#include <stdint.h>

/** A generator's state: any value is a good seed. */
struct hxt_rng {
    uint64_t state;
};

uint64_t hxt_rng_next(struct hxt_rng *rng);
/** Evenly in [lo, hi]. */
uint64_t hxt_rng_range(struct hxt_rng *rng, uint64_t lo, uint64_t hi);
/** A size in [1, max]: its logarithm is even, so that small ones occur too. */
size_t hxt_rng_size(struct hxt_rng *rng, size_t max);
/** A generator that two processes can make alike from the same numbers. */
struct hxt_rng hxt_rng_derive(uint64_t seed, uint64_t a, uint64_t b,
                              uint64_t c);

/**
 * The pattern `key` is an endless string of bytes; these write, and compare,
 * its bytes [pos, pos + len).
 */
void hxt_fill(void *buf, size_t len, uint64_t key, uint64_t pos);
/** The index of the first byte that differs, or -1 if none does. */
ptrdiff_t hxt_differs(const void *buf, size_t len, uint64_t key, uint64_t pos);
/** The index of the first byte that is not `value`, or -1. */
ptrdiff_t hxt_not_all(const void *buf, size_t len, uint8_t value);

#endif
