/* SPDX-License-Identifier: BSD-3-Clause */

/* Comparing what the device would read with bytes written by hand. */

#ifndef TEST_GOLDEN_H_
#define TEST_GOLDEN_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* One big-endian dword at a byte offset */
struct golden_dword {
    unsigned off;
    uint32_t value;
};

static inline uint32_t golden_be32(const void *p)
{
    const uint8_t *b = (const uint8_t *)p;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 |
           b[3];
}

/* All `len` bytes are as the dwords say; those not named are zero */
static inline void golden_check(const void *p, size_t len,
                                const struct golden_dword *dwords, size_t n)
{
    size_t off, i;
    uint32_t expected, actual;

    for (off = 0; off < len; off += 4) {
        expected = 0;
        for (i = 0; i < n; ++i) {
            if (dwords[i].off == off) {
                expected = dwords[i].value;
            }
        }

        actual = golden_be32((const uint8_t *)p + off);
        if (actual != expected) {
            fail_msg("dword at 0x%zx: 0x%08x, expected 0x%08x", off, actual,
                     expected);
        }
    }
}

#define GOLDEN(_p, _len, ...) \
    do { \
        const struct golden_dword _golden[] = {__VA_ARGS__}; \
        golden_check(_p, _len, _golden, \
                     sizeof(_golden) / sizeof(_golden[0])); \
    } while (0)

/* Sets or clears bits, numbered as the PRM's tables do: bit 0 is the most
 * significant one of byte 0 */
static inline void golden_bits(void *p, unsigned off, unsigned n, int set)
{
    uint8_t *b = (uint8_t *)p;
    unsigned i;

    for (i = off; i < off + n; ++i) {
        if (set) {
            b[i / 8] |= 0x80 >> (i % 8);
        } else {
            b[i / 8] &= ~(0x80 >> (i % 8));
        }
    }
}

#endif
