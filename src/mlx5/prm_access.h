/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Reading and writing fields of the layouts in prm.h, and the checks that those
 * layouts are made of.
 */

#ifndef HX_PRM_ACCESS_H_
#define HX_PRM_ACCESS_H_

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRM_BIT_OFF(_typ, _fld) offsetof(struct prm_##_typ##_bits, _fld)
#define PRM_BIT_SZ(_typ, _fld)  sizeof(((struct prm_##_typ##_bits *)0)->_fld)
#define PRM_BYTES(_typ)         (sizeof(struct prm_##_typ##_bits) / 8)

/* Defines a zeroed mailbox, aligned for any field */
#define PRM_MBOX(_typ, _name) uint64_t _name[PRM_BYTES(_typ) / 8] = {0}

#define PRM_ADDR_OF(_typ, _p, _fld) \
    ((void *)((uint8_t *)(_p) + PRM_BIT_OFF(_typ, _fld) / 8))

#define PRM_ADDR_OF_CONST(_typ, _p, _fld) \
    ((const void *)((const uint8_t *)(_p) + PRM_BIT_OFF(_typ, _fld) / 8))

/* A value that does not fit would change the field beside it: that is a bug
 * of the caller, and never sent to a device, whatever NDEBUG says. */
static inline void prm_check_value(uint64_t value, unsigned bits,
                                   const char *field)
{
    if (__builtin_expect((value >> (bits - 1)) >> 1, 0)) {
        fprintf(stderr, "PRM field %s: 0x%llx does not fit %u bits\n", field,
                (unsigned long long)value, bits);
        abort();
    }
}

static inline uint32_t prm_get32(const void *p, size_t bit_off, unsigned bits)
{
    unsigned shift = 32 - (bit_off % 32) - bits;
    uint32_t dword;

    memcpy(&dword, (const uint8_t *)p + bit_off / 32 * 4, sizeof(dword));
    return (be32toh(dword) >> shift) & (UINT32_MAX >> (32 - bits));
}

static inline void prm_set32(void *p, size_t bit_off, unsigned bits,
                             uint32_t value)
{
    uint8_t *addr  = (uint8_t *)p + bit_off / 32 * 4;
    unsigned shift = 32 - (bit_off % 32) - bits;
    uint32_t mask  = (UINT32_MAX >> (32 - bits)) << shift;
    uint32_t dword;

    memcpy(&dword, addr, sizeof(dword));
    dword = htobe32((be32toh(dword) & ~mask) | (value << shift));
    memcpy(addr, &dword, sizeof(dword));
}

static inline uint64_t prm_get64(const void *p, size_t bit_off)
{
    uint64_t qword;

    memcpy(&qword, (const uint8_t *)p + bit_off / 8, sizeof(qword));
    return be64toh(qword);
}

static inline void prm_set64(void *p, size_t bit_off, uint64_t value)
{
    uint64_t qword = htobe64(value);

    memcpy((uint8_t *)p + bit_off / 8, &qword, sizeof(qword));
}

/* A field of at most 32 bits lies in one dword, see the PRM's tables */
#define PRM_ASSERT_32(_typ, _fld) \
    _Static_assert((PRM_BIT_OFF(_typ, _fld) % 32) + \
                   PRM_BIT_SZ(_typ, _fld) <= 32, \
                   #_typ "." #_fld " is not a field within one dword")

#define PRM_SET(_typ, _p, _fld, _value) \
    do { \
        uint64_t _prm_value = (_value); \
        PRM_ASSERT_32(_typ, _fld); \
        prm_check_value(_prm_value, PRM_BIT_SZ(_typ, _fld), #_typ "." #_fld); \
        prm_set32(_p, PRM_BIT_OFF(_typ, _fld), PRM_BIT_SZ(_typ, _fld), \
                  (uint32_t)_prm_value); \
    } while (0)

#define PRM_GET(_typ, _p, _fld) \
    ({ \
        PRM_ASSERT_32(_typ, _fld); \
        prm_get32(_p, PRM_BIT_OFF(_typ, _fld), PRM_BIT_SZ(_typ, _fld)); \
    })

#define PRM_ASSERT_64(_typ, _fld) \
    _Static_assert((PRM_BIT_SZ(_typ, _fld) == 64) && \
                   ((PRM_BIT_OFF(_typ, _fld) % 32) == 0), \
                   #_typ "." #_fld " is not a field of 64 bits")

#define PRM_SET64(_typ, _p, _fld, _value) \
    do { \
        PRM_ASSERT_64(_typ, _fld); \
        prm_set64(_p, PRM_BIT_OFF(_typ, _fld), _value); \
    } while (0)

#define PRM_GET64(_typ, _p, _fld) \
    ({ \
        PRM_ASSERT_64(_typ, _fld); \
        prm_get64(_p, PRM_BIT_OFF(_typ, _fld)); \
    })

#define PRM_SIZE(_typ, _n) \
    _Static_assert(sizeof(struct prm_##_typ##_bits) == (_n), #_typ)

#define PRM_RSVD(_typ, _off) \
    _Static_assert(offsetof(struct prm_##_typ##_bits, \
                            reserved_at_##_off) == 0x##_off, \
                   #_typ ".reserved_at_" #_off)

#endif
