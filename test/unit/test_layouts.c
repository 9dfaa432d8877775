/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The command layouts are written down twice, for the driver and for the
 * emulated device, by different hands; a third writing is Linux' mlx5_ifc.h.
 * Every field that two of them name must lie in the same place in both.
 */

#include "layouts.h"

#include "vhca/prm_table.h"

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* So many fields were compared when this was written; fewer means that a
 * comparison has come to compare nothing. */
#define DRIVER_MIN        160
#define DRIVER_DEVICE_MIN 150
#define DRIVER_LINUX_MIN  140 /* with Linux 6.1; 157 with 6.12 */
#define DEVICE_LINUX_MIN  350 /* 358, 371 */

#define LINUX_MAX 16384

struct linux_field {
    char     structure[64];
    char     field[96];
    unsigned offset, width;
};

static struct linux_field linux_fields[LINUX_MAX];
static unsigned linux_count;

/* What Linux 6.1 has otherwise than 6.12, which both sides follow: a field that
 * has since taken the reserved bit before it, and a name that has moved on to
 * another capability. */
static const struct linux_field linux_older[] = {
    { "mkc", "log_page_size", 0x1db, 5 },
    { "cmd_hca_cap", "relaxed_ordering_read", 0xe9, 1 }
};

static bool is_older(const struct linux_field *kernel)
{
    unsigned i;

    for (i = 0; i < sizeof(linux_older) / sizeof(linux_older[0]); i++) {
        if (strcmp(linux_older[i].structure, kernel->structure) == 0 &&
            strcmp(linux_older[i].field, kernel->field) == 0 &&
            linux_older[i].offset == kernel->offset &&
            linux_older[i].width == kernel->width) {
            return true;
        }
    }
    return false;
}

static unsigned differ(const char *a, unsigned a_offset, unsigned a_width,
                       const char *b, unsigned b_offset, unsigned b_width,
                       const char *structure, const char *field)
{
    if (a_offset == b_offset && a_width == b_width) {
        return 0;
    }
    printf("%s.%s: %s has bits 0x%x + %u, %s has 0x%x + %u\n", structure,
           field, a, a_offset, a_width, b, b_offset, b_width);
    return 1;
}

static void prm_h__as_parsed__is_as_compiled(void **state)
{
    const struct layout_field *f;
    unsigned i, bad = 0;

    (void)state;
    for (i = 0; i < layout_driver_count; i++) {
        f    = &layout_driver[i];
        bad += differ("the parser", f->parsed_offset, f->parsed_width,
                      "the compiler", f->offset, f->width, f->structure,
                      f->field);
    }
    printf("%u fields compared\n", layout_driver_count);
    assert_int_equal(bad, 0);
    assert_true(layout_driver_count >= DRIVER_MIN);
}

static void prm_h__and_the_devices_table__agree(void **state)
{
    const struct vhca_prm_field *device;
    const struct layout_field *f;
    unsigned i, compared = 0, bad = 0;

    (void)state;
    for (i = 0; i < layout_driver_count; i++) {
        f      = &layout_driver[i];
        device = vhca_prm_find(f->structure, f->field);
        if (device == NULL) {
            printf("only the driver has %s.%s\n", f->structure, f->field);
            continue;
        }
        compared++;
        bad += differ("the driver", f->offset, f->width, "the device",
                      device->offset, device->width, f->structure, f->field);
    }
    printf("%u fields compared\n", compared);
    assert_int_equal(bad, 0);
    assert_true(compared >= DRIVER_DEVICE_MIN);
}

/* ---- Linux ---- */

/* Fills linux_fields; false if Debian's headers are not installed. */
static bool read_linux(void)
{
    const char *top = getenv("HIXL_TOP");
    char command[8192];
    glob_t found;
    FILE *pipe;
    struct linux_field *f;

    if (linux_count > 0) {
        return true;
    }
    assert_non_null(top);
    if (glob("/usr/src/linux-headers-*-common/include/linux/mlx5/mlx5_ifc.h", 0,
             NULL, &found) != 0) {
        return false;
    }

    printf("%s\n", found.gl_pathv[found.gl_pathc - 1]);
    snprintf(command, sizeof(command), "'%s/contrib/check-prm' --fields '%s'",
             top, found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    fflush(stdout);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    for (f = linux_fields; linux_count < LINUX_MAX &&
         fscanf(pipe, "%63s %95s %u %u", f->structure, f->field, &f->offset,
                &f->width) == 4; f++) {
        linux_count++;
    }
    assert_int_equal(pclose(pipe), 0);
    assert_true(linux_count > 0);
    return true;
}

static const struct linux_field *find_linux(const char *structure,
                                            const char *field)
{
    unsigned i;

    for (i = 0; i < linux_count; i++) {
        if (strcmp(linux_fields[i].structure, structure) == 0 &&
            strcmp(linux_fields[i].field, field) == 0) {
            return &linux_fields[i];
        }
    }
    return NULL;
}

static void prm_h__and_linux__agree(void **state)
{
    const struct linux_field *kernel;
    const struct layout_field *f;
    unsigned i, compared = 0, bad = 0;

    (void)state;
    if (!read_linux()) {
        skip();
    }
    for (i = 0; i < layout_driver_count; i++) {
        f      = &layout_driver[i];
        kernel = find_linux(f->structure, f->field);
        if (kernel == NULL || is_older(kernel)) {
            printf("Linux has no %s.%s\n", f->structure, f->field);
            continue;
        }
        compared++;
        bad += differ("the driver", f->offset, f->width, "Linux",
                      kernel->offset, kernel->width, f->structure, f->field);
    }
    printf("%u fields compared\n", compared);
    assert_int_equal(bad, 0);
    assert_true(compared >= DRIVER_LINUX_MIN);
}

static void devices_table__and_linux__agree(void **state)
{
    const struct vhca_prm_struct *s;
    const struct vhca_prm_field *f;
    const struct linux_field *kernel;
    unsigned i, j, compared = 0, bad = 0;

    (void)state;
    if (!read_linux()) {
        skip();
    }
    for (i = 0; i < vhca_prm_num_structs; i++) {
        s = &vhca_prm_structs[i];
        for (j = 0; j < s->num_fields; j++) {
            f = &s->fields[j];
            if (strncmp(f->name, "reserved_", 9) == 0) {
                continue;
            }
            kernel = find_linux(s->name, f->name);
            if (kernel == NULL || is_older(kernel)) {
                printf("Linux has no %s.%s\n", s->name, f->name);
                continue;
            }
            compared++;
            bad += differ("the device", f->offset, f->width, "Linux",
                          kernel->offset, kernel->width, s->name, f->name);
        }
    }
    printf("%u fields compared\n", compared);
    assert_int_equal(bad, 0);
    assert_true(compared >= DEVICE_LINUX_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prm_h__as_parsed__is_as_compiled),
        cmocka_unit_test(prm_h__and_the_devices_table__agree),
        cmocka_unit_test(prm_h__and_linux__agree),
        cmocka_unit_test(devices_table__and_linux__agree)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
