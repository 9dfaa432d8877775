/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Reading, writing and checking mailboxes by the layouts of prm_layout.h, and
 * the same layouts as data, so that a test can compare them with another
 * transcription.
 */

#ifndef VHCA_PRM_TABLE_H_
#define VHCA_PRM_TABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vhca/prm_layout.h"

/* What a command may put into a field (see prm_layout.h) */
enum {
    PRM_NO   = 0x0000,
    PRM_CRE  = 0x0001,
    PRM_INI  = 0x0002,
    PRM_RTR  = 0x0004,
    PRM_RTS  = 0x0008,
    PRM_ALL  = PRM_CRE | PRM_INI | PRM_RTR | PRM_RTS,
    PRM_RSV  = 0x0010,
    PRM_KRN  = 0x0020,
    PRM_ANY  = 0x0040,
    PRM_OUT  = 0x0080,
    PRM_SUBS = 0x4000 /* low bits: the structure's number */
};

/* Names are inside, not pointed to: a table of pointers would have to be
 * relocated in every process that the library is loaded into. */
struct vhca_prm_field {
    char     name[42];
    uint16_t offset;      /* bits from the start of the structure */
    uint16_t width;       /* bits */
    uint16_t how;
};

struct vhca_prm_struct {
    char                         name[28];
    const struct vhca_prm_field *fields;
    uint16_t                     num_fields;
    uint16_t                     width;   /* bits, trailing list excluded */
    bool                         full;    /* the fields leave no gap */
};

extern const struct vhca_prm_struct vhca_prm_structs[];
extern const unsigned               vhca_prm_num_structs;

const struct vhca_prm_struct *vhca_prm_find_struct(const char *structure);

/** The field, or NULL. */
const struct vhca_prm_field *vhca_prm_find(const char *structure,
                                           const char *field);

/* enum vhca_prm_id: VHCA_PRM_ID_<structure> */
#define VHCA_PRM_ID_ENTRY(_s, _list, _bits, _full) VHCA_PRM_ID_##_s,
enum vhca_prm_id {
    VHCA_PRM_STRUCTS(VHCA_PRM_ID_ENTRY)
    VHCA_PRM_ID_LAST
};
#define PRM_SUB(_s) (PRM_SUBS | VHCA_PRM_ID_##_s)

/** The first field of the mailbox that holds what it must not (not zero and
 *  reserved, not implemented, or of another command than `cmd`, one of
 *  PRM_CRE..PRM_RTS or PRM_ALL); NULL if there is none. Fields the kernel
 *  fills are not looked at. */
const struct vhca_prm_field *vhca_prm_check(enum vhca_prm_id id,
                                            const void *mailbox, unsigned cmd);

/** Bits of a big endian bit string; width 1..64. */
uint64_t vhca_prm_get(const void *base, unsigned offset, unsigned width);
void vhca_prm_set(void *base, unsigned offset, unsigned width, uint64_t value);

/* Offset and width of each field as constants, VHCA_PRM_<O|W>_<structure>__
 * <field>; of each structure, VHCA_PRM_BYTES_<structure>. */
#define VHCA_PRM_CONST(_s, _f, _offset, _width, _how) \
    VHCA_PRM_O_##_s##__##_f = _offset, VHCA_PRM_W_##_s##__##_f = _width,
#define VHCA_PRM_CONSTS(_s, _list, _bits, _full) \
    _list(VHCA_PRM_CONST) VHCA_PRM_BYTES_##_s = (_bits) / 8,
enum {
    VHCA_PRM_STRUCTS(VHCA_PRM_CONSTS)
};

#define PRM_OFFSET(_s, _f) VHCA_PRM_O_##_s##__##_f
#define PRM_WIDTH(_s, _f)  VHCA_PRM_W_##_s##__##_f
#define PRM_BYTES(_s)      VHCA_PRM_BYTES_##_s
#define PRM_GET(_s, _base, _f) \
    vhca_prm_get(_base, PRM_OFFSET(_s, _f), PRM_WIDTH(_s, _f))
#define PRM_SET(_s, _base, _f, _value) \
    vhca_prm_set(_base, PRM_OFFSET(_s, _f), PRM_WIDTH(_s, _f), _value)
/* Address of a member that starts on a byte */
#define PRM_ADDR(_s, _base, _f) ((uint8_t*)(_base) + PRM_OFFSET(_s, _f) / 8)
#define PRM_CADDR(_s, _base, _f) \
    ((const uint8_t*)(_base) + PRM_OFFSET(_s, _f) / 8)

#endif
