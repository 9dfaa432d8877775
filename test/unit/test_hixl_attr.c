/* SPDX-License-Identifier: BSD-3-Clause */

/* Unit tests: device addresses, who is reachable, what a port carries. */

#include "uct_hixl/hixl_ep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static uct_hixl_iface_t roce = {
    .port = {
        .roce       = true,
        .active_mtu = IBV_MTU_4096,
        .gid.raw    = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}
    }
};

static uct_hixl_iface_t ib = {
    .port = {
        .roce       = false,
        .lid        = 0x1234,
        .active_mtu = IBV_MTU_2048,
        .gid.raw    = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}
    }
};

static int reachable(uct_hixl_iface_t *from, const uct_hixl_iface_t *to)
{
    uct_hixl_device_addr_t addr;

    uct_hixl_iface_fill_device_addr(to, &addr);
    return uct_hixl_iface_is_reachable(&from->super.super,
                                       (const uct_device_addr_t*)&addr, NULL);
}

static void device_addr__ib_port__has_lid_gid_and_mtu(void **state)
{
    uct_hixl_device_addr_t addr;

    (void)state;
    uct_hixl_iface_fill_device_addr(&ib, &addr);
    assert_int_equal(sizeof(addr), 27);
    assert_int_equal(addr.flags, IBV_MTU_2048 << 4);
    assert_memory_equal(addr.lid, "\x12\x34", 2);
    assert_memory_equal(addr.gid, ib.port.gid.raw, 16);
}

static void device_addr__roce_port__says_so(void **state)
{
    uct_hixl_device_addr_t addr;

    (void)state;
    uct_hixl_iface_fill_device_addr(&roce, &addr);
    assert_int_equal(addr.flags, IBV_MTU_4096 << 4 | 1);
    assert_memory_equal(addr.gid, roce.port.gid.raw, 16);
}

static void is_reachable__own_address__is_true(void **state)
{
    (void)state;
    assert_true(reachable(&roce, &roce));
    assert_true(reachable(&ib, &ib));
}

static void is_reachable__other_link_type__is_false(void **state)
{
    (void)state;
    assert_false(reachable(&roce, &ib));
    assert_false(reachable(&ib, &roce));
}

static void is_reachable__ib_subnets__decide_by_prefix(void **state)
{
    uct_hixl_iface_t other = ib;

    (void)state;
    other.port.gid.raw[15] = 0xee; /* another port of the subnet */
    assert_true(reachable(&ib, &other));
    other.port.gid.raw[7] = 1;
    assert_false(reachable(&ib, &other));
}

static void port_bandwidth__known_rates__are_right_to_one_percent(void **state)
{
    static const struct {
        uint8_t speed, width;
        double  gbytes;
    } ports[] = {
        {1, 1, 0.25},   /* SDR x1 */
        {4, 2, 4.0},    /* QDR x4 */
        {32, 2, 12.5},  /* EDR x4: 100 Gbit/s */
        {64, 2, 25.76}, /* HDR x4: 200 */
        {128, 2, 51.5}, /* NDR x4: 400 */
        {64, 16, 12.88} /* HDR x2 */
    };
    unsigned i;
    double got;

    (void)state;
    for (i = 0; i < ucs_static_array_size(ports); ++i) {
        got = uct_hixl_port_bandwidth(ports[i].speed, ports[i].width) / 1e9;
        assert_true((got > ports[i].gbytes * 0.99) &&
                    (got < ports[i].gbytes * 1.01));
    }
}

static void port_bandwidth__unknown_rate__is_not_zero(void **state)
{
    (void)state;
    assert_true(uct_hixl_port_bandwidth(0, 0) > 0);
    assert_true(uct_hixl_port_bandwidth(255, 255) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_addr__ib_port__has_lid_gid_and_mtu),
        cmocka_unit_test(device_addr__roce_port__says_so),
        cmocka_unit_test(is_reachable__own_address__is_true),
        cmocka_unit_test(is_reachable__other_link_type__is_false),
        cmocka_unit_test(is_reachable__ib_subnets__decide_by_prefix),
        cmocka_unit_test(port_bandwidth__known_rates__are_right_to_one_percent),
        cmocka_unit_test(port_bandwidth__unknown_rate__is_not_zero)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
