/* SPDX-License-Identifier: BSD-3-Clause */

/* Tests of the emulated device's layouts and of reading and writing by them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "vhca/prm_table.h"

static void structures__fields__tile_without_gap_or_overlap(void **state)
{
    const struct vhca_prm_struct *s;
    unsigned i, j, end;

    (void)state;
    assert_true(vhca_prm_num_structs > 30);
    for (i = 0; i < vhca_prm_num_structs; ++i) {
        s   = &vhca_prm_structs[i];
        end = 0;
        for (j = 0; j < s->num_fields; ++j) {
            if (s->full ? (s->fields[j].offset != end) :
                          (s->fields[j].offset < end)) {
                fail_msg("%s.%s is at 0x%x, not 0x%x", s->name,
                         s->fields[j].name, s->fields[j].offset, end);
            }
            assert_true(s->fields[j].width > 0);
            end = s->fields[j].offset + s->fields[j].width;
        }

        if (s->full ? (end != s->width) : (end > s->width)) {
            fail_msg("%s ends at 0x%x, not 0x%x", s->name, end, s->width);
        }
    }
}

static void structures__field_names__are_unique_and_whole(void **state)
{
    const struct vhca_prm_struct *s;
    unsigned i, j, k;

    (void)state;
    for (i = 0; i < vhca_prm_num_structs; ++i) {
        s = &vhca_prm_structs[i];
        assert_ptr_equal(vhca_prm_find_struct(s->name), s);
        for (j = 0; j < s->num_fields; ++j) {
            /* the initialiser of a char array may drop its terminator */
            assert_non_null(memchr(s->fields[j].name, 0,
                                   sizeof(s->fields[j].name)));
            for (k = 0; k < j; ++k) {
                if (strcmp(s->fields[j].name, s->fields[k].name) == 0) {
                    fail_msg("%s.%s twice", s->name, s->fields[j].name);
                }
            }
        }
    }
}

static void structures__inner_ones__have_their_width(void **state)
{
    const struct vhca_prm_struct *s;
    unsigned i, j, found = 0;
    uint16_t how;

    (void)state;
    for (i = 0; i < vhca_prm_num_structs; ++i) {
        s = &vhca_prm_structs[i];
        for (j = 0; j < s->num_fields; ++j) {
            how = s->fields[j].how;
            if (how & PRM_SUBS) {
                assert_true((how & ~PRM_SUBS) < (int)vhca_prm_num_structs);
                assert_int_equal(s->fields[j].width,
                                 vhca_prm_structs[how & ~PRM_SUBS].width);
                ++found;
            }
        }
    }

    assert_true(found >= 10);
}

static void reserved__name_of_the_offset__is_where_it_says(void **state)
{
    const struct vhca_prm_struct *s;
    const struct vhca_prm_field *f;
    unsigned i, j, at;

    (void)state;
    for (i = 0; i < vhca_prm_num_structs; ++i) {
        s = &vhca_prm_structs[i];
        for (j = 0; j < s->num_fields; ++j) {
            f = &s->fields[j];
            if (strncmp(f->name, "reserved_at_", 12) != 0) {
                assert_false(f->how & PRM_RSV);
                continue;
            }

            assert_int_equal(sscanf(f->name + 12, "%x", &at), 1);
            assert_int_equal(at, f->offset);
        }
    }
}

static void find__known_and_unknown__field_or_null(void **state)
{
    const struct vhca_prm_field *f = vhca_prm_find("qpc", "dbr_umem_id");

    (void)state;
    assert_non_null(f);
    assert_string_equal(f->name, "dbr_umem_id");
    assert_int_equal(f->offset, 0x720);
    assert_int_equal(f->width, 32);
    assert_null(vhca_prm_find("qpc", "no_such_field"));
    assert_null(vhca_prm_find("no_such_struct", "pd"));
}

static void get__bits_across_bytes__are_big_endian(void **state)
{
    static const uint8_t bytes[] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde,
                                    0xf0, 0x0f};

    (void)state;
    assert_int_equal(vhca_prm_get(bytes, 0, 8), 0x12);
    assert_int_equal(vhca_prm_get(bytes, 4, 8), 0x23);
    assert_int_equal(vhca_prm_get(bytes, 3, 3), 0x4);
    assert_int_equal(vhca_prm_get(bytes, 8, 24), 0x345678);
    assert_int_equal(vhca_prm_get(bytes, 63, 1), 0);
    assert_true(vhca_prm_get(bytes, 0, 64) == 0x123456789abcdef0ull);
    assert_true(vhca_prm_get(bytes, 4, 64) == 0x23456789abcdef00ull);
}

static void set__any_place__get_returns_it_and_nothing_else_changes(
        void **state)
{
    uint8_t bytes[16], before[16];
    unsigned offset, width, bit;
    uint64_t value;

    (void)state;
    for (offset = 0; offset < 33; ++offset) {
        for (width = 1; width <= 64; ++width) {
            memset(bytes, (offset & 1) ? 0xff : 0x00, sizeof(bytes));
            memcpy(before, bytes, sizeof(bytes));
            value = 0xa5c3f00f12345679ull >> (64 - width);
            vhca_prm_set(bytes, offset, width, value);
            assert_true(vhca_prm_get(bytes, offset, width) == value);
            for (bit = 0; bit < sizeof(bytes) * 8; ++bit) {
                if ((bit < offset) || (bit >= offset + width)) {
                    assert_int_equal(vhca_prm_get(bytes, bit, 1),
                                     vhca_prm_get(before, bit, 1));
                }
            }
        }
    }
}

static void check__field_of_another_step__is_refused(void **state)
{
    uint8_t in[PRM_BYTES(rst2init_qp_in)];
    const struct vhca_prm_field *bad;

    (void)state;
    memset(in, 0, sizeof(in));
    assert_null(vhca_prm_check(VHCA_PRM_ID_rst2init_qp_in, in, PRM_INI));

    /* mtu belongs to INIT2RTR */
    PRM_SET(qpc, in + PRM_OFFSET(rst2init_qp_in, qpc) / 8, mtu, 5);
    bad = vhca_prm_check(VHCA_PRM_ID_rst2init_qp_in, in, PRM_INI);
    assert_non_null(bad);
    assert_string_equal(bad->name, "mtu");
    assert_null(vhca_prm_check(VHCA_PRM_ID_init2rtr_qp_in, in, PRM_RTR));
}

static void check__alternate_path__is_refused(void **state)
{
    uint8_t in[PRM_BYTES(init2rtr_qp_in)];
    uint8_t *qpc = in + PRM_OFFSET(init2rtr_qp_in, qpc) / 8;
    const struct vhca_prm_field *bad;

    (void)state;
    memset(in, 0, sizeof(in));
    PRM_SET(ads, PRM_ADDR(qpc, qpc, primary_address_path), rlid, 7);
    assert_null(vhca_prm_check(VHCA_PRM_ID_init2rtr_qp_in, in, PRM_RTR));

    memset(in, 0, sizeof(in));
    PRM_SET(ads, PRM_ADDR(qpc, qpc, secondary_address_path), rlid, 7);
    bad = vhca_prm_check(VHCA_PRM_ID_init2rtr_qp_in, in, PRM_RTR);
    assert_non_null(bad);
    assert_string_equal(bad->name, "rlid");
}

static void check__what_the_kernel_fills__is_not_looked_at(void **state)
{
    uint8_t in[PRM_BYTES(create_qp_in)];

    (void)state;
    memset(in, 0, sizeof(in));
    PRM_SET(create_qp_in, in, uid, 0xffff);
    PRM_SET(create_qp_in, in, wq_umem_valid, 1);
    assert_null(vhca_prm_check(VHCA_PRM_ID_create_qp_in, in, PRM_CRE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structures__fields__tile_without_gap_or_overlap),
        cmocka_unit_test(structures__field_names__are_unique_and_whole),
        cmocka_unit_test(structures__inner_ones__have_their_width),
        cmocka_unit_test(reserved__name_of_the_offset__is_where_it_says),
        cmocka_unit_test(find__known_and_unknown__field_or_null),
        cmocka_unit_test(get__bits_across_bytes__are_big_endian),
        cmocka_unit_test(
                set__any_place__get_returns_it_and_nothing_else_changes),
        cmocka_unit_test(check__field_of_another_step__is_refused),
        cmocka_unit_test(check__alternate_path__is_refused),
        cmocka_unit_test(check__what_the_kernel_fills__is_not_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
