/* SPDX-License-Identifier: BSD-3-Clause */

/* Random numbers with a seed, and buffers whose every byte is known. */

#include "bytes.h"

#include <string.h>

/* The finalizer of splitmix64: every input bit reaches every output bit */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ul;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebul;
    return x ^ (x >> 31);
}

uint64_t hxt_rng_next(struct hxt_rng *rng)
{
    rng->state += 0x9e3779b97f4a7c15ul;
    return mix(rng->state);
}

uint64_t hxt_rng_range(struct hxt_rng *rng, uint64_t lo, uint64_t hi)
{
    return lo + hxt_rng_next(rng) % (hi - lo + 1);
}

size_t hxt_rng_size(struct hxt_rng *rng, size_t max)
{
    unsigned bits = 64 - __builtin_clzl(max);
    size_t top    = 1ul << hxt_rng_range(rng, 0, bits - 1);

    return hxt_rng_range(rng, top, 2 * top - 1 < max ? 2 * top - 1 : max);
}

struct hxt_rng hxt_rng_derive(uint64_t seed, uint64_t a, uint64_t b,
                              uint64_t c)
{
    struct hxt_rng rng = {
        .state = mix(mix(mix(seed ^ mix(a + 1)) ^ (b + 1)) ^ (c + 1))
    };

    return rng;
}

static uint64_t word_at(uint64_t key, uint64_t index)
{
    return mix(key + index * 0x9e3779b97f4a7c15ul);
}

/* Copies bytes [skip, skip + len) of one pattern word. */
static void part_at(uint8_t *dst, uint64_t key, uint64_t index, size_t skip,
                    size_t len)
{
    uint64_t word = word_at(key, index);

    memcpy(dst, (const uint8_t*)&word + skip, len);
}

static size_t head_len(uint64_t pos, size_t len)
{
    size_t head = -pos & 7;

    return head < len ? head : len;
}

/* ThreadSanitizer would be asked for each word. Whoever looks at a buffer does
 * so by memcmp(), which it sees. */
__attribute__((no_sanitize("thread")))
void hxt_fill(void *buf, size_t len, uint64_t key, uint64_t pos)
{
    uint8_t *dst   = buf;
    size_t head    = head_len(pos, len);
    uint64_t index = pos / 8;
    uint64_t word;

    if (head != 0) {
        part_at(dst, key, index++, pos & 7, head);
        dst += head;
        len -= head;
    }
    for (; len >= 8; dst += 8, len -= 8) {
        word = word_at(key, index++);
        memcpy(dst, &word, 8);
    }
    if (len != 0) {
        part_at(dst, key, index, 0, len);
    }
}

static ptrdiff_t first_difference(const uint8_t *a, const uint8_t *b,
                                  size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (a[i] != b[i]) {
            return i;
        }
    }

    return -1;
}

ptrdiff_t hxt_differs(const void *buf, size_t len, uint64_t key, uint64_t pos)
{
    const uint8_t *src = buf;
    uint64_t expected[64];
    size_t done, part;
    ptrdiff_t bad;

    for (done = 0; done < len; done += part) {
        part = len - done < sizeof(expected) ? len - done : sizeof(expected);
        hxt_fill(expected, part, key, pos + done);
        if (memcmp(src + done, expected, part) != 0) {
            bad = first_difference(src + done, (const uint8_t*)expected, part);
            return done + bad;
        }
    }

    return -1;
}

ptrdiff_t hxt_not_all(const void *buf, size_t len, uint8_t value)
{
    const uint8_t *src = buf;
    size_t i;

    /* all are as the first: in one call, for megabytes below a sanitizer */
    if (len == 0 || (src[0] == value && memcmp(src, src + 1, len - 1) == 0)) {
        return -1;
    }
    for (i = 0; src[i] == value; i++) {
    }
    return i;
}
