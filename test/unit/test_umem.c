/* SPDX-License-Identifier: BSD-3-Clause */

/* The page sizes that a umem may have: the page-offset rule. */

#include "golden.h"

#include "mlx5/umem.h"

static void pgsz_bitmap__table__capped_by_the_address(void **state)
{
    static const struct {
        uint64_t addr;
        uint64_t bitmap;
    } cases[] = {
        /* 4 KiB alone: pages that are aligned to nothing larger */
        {0x0000000000001000, 0x00001000},
        {0x00007f0000003000, 0x00001000},
        {0x00007f0000001fff, 0x00001000},
        /* the page that holds the address counts, not the address */
        {0x00007f0000000001, 0x7ffff000},
        {0x00007f0000200800, 0x003ff000},
        {0x00007f0000201800, 0x00001000},
        /* each alignment allows pages up to itself */
        {0x0000000000002000, 0x00003000},
        {0x0000000000004000, 0x00007000},
        {0x00007f0000010000, 0x0001f000},
        {0x00007f0000200000, 0x003ff000},
        {0x00007f0020000000, 0x3ffff000},
        /* nothing above 1 GiB */
        {0x00007f0040000000, 0x7ffff000},
        {0x00007f8000000000, 0x7ffff000},
        {0x0000000000000000, 0x7ffff000},
        {0x0000000000000fff, 0x7ffff000},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        uint64_t bitmap = hx_umem_pgsz_bitmap(cases[i].addr);

        if (bitmap != cases[i].bitmap) {
            fail_msg("0x%llx: 0x%llx, expected 0x%llx",
                     (unsigned long long)cases[i].addr,
                     (unsigned long long)bitmap,
                     (unsigned long long)cases[i].bitmap);
        }
    }
}

/* The rule itself: the first page of a umem that starts at addr holds addr at
 * (addr mod 4 KiB) when its pages are larger, so addr mod P must be that */
static void pgsz_bitmap__every_size_it_allows__rule_holds(void **state)
{
    uint64_t addr, page;

    (void)state;
    for (addr = 0x1000; addr < UINT64_C(1) << 47; addr = addr * 3 + 0x1234) {
        for (page = 0x1000; page <= 0x40000000; page *= 2) {
            if (hx_umem_pgsz_bitmap(addr) & page) {
                assert_int_equal(addr % page, addr % 0x1000);
            } else {
                assert_int_not_equal(addr % page, addr % 0x1000);
            }
        }
        assert_true(hx_umem_pgsz_bitmap(addr) & 0x1000);
        assert_int_equal(hx_umem_pgsz_bitmap(addr) & 0xfff, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pgsz_bitmap__table__capped_by_the_address),
        cmocka_unit_test(pgsz_bitmap__every_size_it_allows__rule_holds),
    };

    return cmocka_run_group_tests_name("umem", tests, NULL, NULL);
}
