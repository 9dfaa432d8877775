/* SPDX-License-Identifier: BSD-3-Clause */

/* The driver's layouts as a table; contrib/check-prm --c makes it of prm.h. */

#ifndef TEST_LAYOUTS_H_
#define TEST_LAYOUTS_H_

struct layout_field {
    const char *structure;
    const char *field;
    unsigned    parsed_offset, parsed_width;  /* bits, as check-prm reads it */
    unsigned    offset, width;                /* bits, as the compiler does */
};

extern const struct layout_field layout_driver[];
extern const unsigned            layout_driver_count;

#endif
