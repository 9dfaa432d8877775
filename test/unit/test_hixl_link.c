/* SPDX-License-Identifier: BSD-3-Clause */

/* Unit tests: the table of QPs, and what an endpoint address looks like. */

#include "uct_hixl/hixl_ep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static uct_hixl_qp_table_t table;

static int teardown(void **state)
{
    (void)state;
    uct_hixl_qp_table_cleanup(&table);
    memset(&table, 0, sizeof(table));
    return 0;
}

static void qp_table_get__never_added__is_null(void **state)
{
    (void)state;
    assert_null(uct_hixl_qp_table_get(&table, 0));
    assert_null(uct_hixl_qp_table_get(&table, 0x12345));
    assert_null(uct_hixl_qp_table_get(&table, 0xffffff));
}

static void qp_table_get__neighbours__are_told_apart(void **state)
{
    static const uint32_t qpns[] = {
        0, 1, 0xfff, 0x1000, 0x1001, 0x123456, 0x123457, 0xffffff
    };
    uct_hixl_link_t links[ucs_static_array_size(qpns)];
    unsigned i;

    (void)state;
    for (i = 0; i < ucs_static_array_size(qpns); ++i) {
        assert_int_equal(uct_hixl_qp_table_add(&table, qpns[i], &links[i]),
                         UCS_OK);
    }
    for (i = 0; i < ucs_static_array_size(qpns); ++i) {
        assert_ptr_equal(uct_hixl_qp_table_get(&table, qpns[i]), &links[i]);
    }
    assert_null(uct_hixl_qp_table_get(&table, 2));
    assert_null(uct_hixl_qp_table_get(&table, 0x123458));
}

static void qp_table_del__number_used_again__finds_the_new_link(void **state)
{
    uct_hixl_link_t first, second;

    (void)state;
    assert_int_equal(uct_hixl_qp_table_add(&table, 0x4711, &first), UCS_OK);
    uct_hixl_qp_table_del(&table, 0x4711);
    assert_null(uct_hixl_qp_table_get(&table, 0x4711));
    assert_int_equal(uct_hixl_qp_table_add(&table, 0x4711, &second), UCS_OK);
    assert_ptr_equal(uct_hixl_qp_table_get(&table, 0x4711), &second);
}

static void link_get_addr__numbers__are_in_network_order(void **state)
{
    struct hx_qp qp      = {.qpn = 0x010203};
    uct_hixl_link_t link = {.qp = &qp, .local_psn = 0xa1b2c3};
    uct_hixl_qp_addr_t addr;

    (void)state;
    uct_hixl_link_get_addr(&link, &addr);
    assert_int_equal(sizeof(addr), 6);
    assert_memory_equal(&addr, "\x01\x02\x03\xa1\xb2\xc3", sizeof(addr));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(qp_table_get__never_added__is_null,
                                  teardown),
        cmocka_unit_test_teardown(qp_table_get__neighbours__are_told_apart,
                                  teardown),
        cmocka_unit_test_teardown(
                qp_table_del__number_used_again__finds_the_new_link, teardown),
        cmocka_unit_test(link_get_addr__numbers__are_in_network_order)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
