/* SPDX-License-Identifier: BSD-3-Clause */

/* The layouts of prm_layout.h as data, and mailbox access by them. */

#include <string.h>

#include "vhca/prm_table.h"

#define FIELD(_s, _f, _offset, _width, _how) { #_f, _offset, _width, _how },
#define FIELDS(_s, _list, _bits, _full) \
    static const struct vhca_prm_field fields_##_s[] = { _list(FIELD) };
VHCA_PRM_STRUCTS(FIELDS)

#define STRUCT(_s, _list, _bits, _full)                                  \
    { #_s, fields_##_s, sizeof(fields_##_s) / sizeof(fields_##_s[0]),    \
      _bits, _full },
const struct vhca_prm_struct vhca_prm_structs[] = {
    VHCA_PRM_STRUCTS(STRUCT)
};
const unsigned vhca_prm_num_structs = VHCA_PRM_ID_LAST;

const struct vhca_prm_struct *vhca_prm_find_struct(const char *structure)
{
    unsigned i;

    for (i = 0; i < vhca_prm_num_structs; ++i) {
        if (strcmp(vhca_prm_structs[i].name, structure) == 0) {
            return &vhca_prm_structs[i];
        }
    }

    return NULL;
}

const struct vhca_prm_field *vhca_prm_find(const char *structure,
                                           const char *field)
{
    const struct vhca_prm_struct *s = vhca_prm_find_struct(structure);
    unsigned i;

    for (i = 0; (s != NULL) && (i < s->num_fields); ++i) {
        if (strcmp(s->fields[i].name, field) == 0) {
            return &s->fields[i];
        }
    }

    return NULL;
}

uint64_t vhca_prm_get(const void *base, unsigned offset, unsigned width)
{
    const uint8_t *bytes = base;
    uint64_t value       = 0;
    unsigned bit         = offset;
    unsigned take;

    while (bit < offset + width) {
        take = 8 - bit % 8;
        if (take > offset + width - bit) {
            take = offset + width - bit;
        }

        value = (value << take) |
                ((bytes[bit / 8] >> (8 - bit % 8 - take)) &
                 ((1u << take) - 1));
        bit  += take;
    }

    return value;
}

void vhca_prm_set(void *base, unsigned offset, unsigned width, uint64_t value)
{
    uint8_t *bytes = base;
    unsigned bit   = offset + width; /* one past the least significant */
    unsigned take, shift;
    uint8_t mask;

    while (bit > offset) {
        take = (bit % 8 != 0) ? bit % 8 : 8;
        if (take > bit - offset) {
            take = bit - offset;
        }

        shift                = (8 - bit % 8) % 8;
        mask                 = (uint8_t)(((1u << take) - 1) << shift);
        bytes[(bit - 1) / 8] = (uint8_t)((bytes[(bit - 1) / 8] & ~mask) |
                                         ((value << shift) & mask));
        value              >>= take;
        bit                 -= take;
    }
}

static bool bits_set(const uint8_t *bytes, unsigned offset, unsigned width)
{
    unsigned chunk;

    for (; width > 0; offset += chunk, width -= chunk) {
        chunk = (width < 32) ? width : 32;
        if (vhca_prm_get(bytes, offset, chunk) != 0) {
            return true;
        }
    }

    return false;
}

static const struct vhca_prm_field *
check_at(const struct vhca_prm_struct *s, const uint8_t *mailbox,
         unsigned base, unsigned cmd)
{
    const struct vhca_prm_field *f, *bad;
    unsigned i;

    for (i = 0; i < s->num_fields; ++i) {
        f = &s->fields[i];
        if (f->how & PRM_SUBS) {
            bad = check_at(&vhca_prm_structs[f->how & ~PRM_SUBS], mailbox,
                           base + f->offset,
                           /* the alternate path is not implemented: nothing
                            * may be in it */
                           (f->offset ==
                            PRM_OFFSET(qpc, secondary_address_path)) &&
                           (s == &vhca_prm_structs[VHCA_PRM_ID_qpc]) ?
                           0 : cmd);
            if (bad != NULL) {
                return bad;
            }
        } else if (!(f->how & (cmd | PRM_KRN | PRM_ANY)) &&
                   bits_set(mailbox, base + f->offset, f->width)) {
            return f;
        }
    }

    return NULL;
}

const struct vhca_prm_field *vhca_prm_check(enum vhca_prm_id id,
                                            const void *mailbox, unsigned cmd)
{
    return check_at(&vhca_prm_structs[id], mailbox, 0, cmd);
}
