/* SPDX-License-Identifier: BSD-3-Clause */

/* The memory domain's operations as UCX calls them, over a device that takes
 * every key. */

#include <uct_hixl/hixl_reg.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <ucs/debug/log.h>

#define KEY 0x12345678u

static struct {
    unsigned live;
    uint32_t access;
} fake;

static int fake_create(struct hx_dev *dev, void *addr, size_t len,
                       uint32_t access, struct hx_mkey *mkey_p)
{
    (void)dev;
    (void)addr;
    (void)len;
    memset(mkey_p, 0, sizeof(*mkey_p));
    mkey_p->key = KEY;
    fake.access = access;
    ++fake.live;
    return 0;
}

static void fake_destroy(struct hx_mkey *mkey)
{
    (void)mkey;
    --fake.live;
}

static const uct_hixl_reg_ops_t fake_ops = {
    .create  = fake_create,
    .destroy = fake_destroy
};

static struct hx_dev dev = {
    .name = "mlx5_0"
};

static uct_hixl_md_t md = {
    .super = {
        .ops       = &uct_hixl_md_ops,
        .component = &uct_hixl_component
    },
    .dev = &dev
};

static char memory[4096];

static void md_query__garbage_before__every_field_is_set(void **state)
{
    uct_md_attr_t attr;

    (void)state;
    memset(&attr, 0xa5, sizeof(attr));
    assert_int_equal(uct_md_query(&md.super, &attr), UCS_OK);
    assert_int_equal(attr.cap.flags,
                     UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                     UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_ALLOC |
                     UCT_MD_FLAG_INVALIDATE);
    assert_int_equal(attr.cap.reg_mem_types, UCS_BIT(UCS_MEMORY_TYPE_HOST));
    assert_int_equal(attr.cap.alloc_mem_types, UCS_BIT(UCS_MEMORY_TYPE_HOST));
    assert_int_equal(attr.cap.access_mem_types, UCS_BIT(UCS_MEMORY_TYPE_HOST));
    assert_int_equal(attr.cap.detect_mem_types, 0);
    assert_int_equal(attr.rkey_packed_size, 4);
    assert_string_equal(attr.component_name, "hixl");
}

static void mkey_pack__registered__little_endian_and_unpacks(void **state)
{
    static const uint8_t wire[] = {0x78, 0x56, 0x34, 0x12};
    uct_rkey_bundle_t rkey;
    uint8_t buffer[8];
    uct_mem_h memh;

    (void)state;
    assert_int_equal(uct_md_mem_reg(&md.super, memory, sizeof(memory),
                                    UCT_MD_MEM_ACCESS_RMA, &memh),
                     UCS_OK);
    memset(buffer, 0xee, sizeof(buffer));
    assert_int_equal(uct_md_mkey_pack(&md.super, memh, buffer), UCS_OK);
    assert_memory_equal(buffer, wire, sizeof(wire));
    assert_int_equal(buffer[4], 0xee);

    assert_int_equal(uct_rkey_unpack(&uct_hixl_component, buffer, &rkey),
                     UCS_OK);
    assert_int_equal(uct_hixl_rkey(rkey.rkey), KEY);
    assert_int_equal(uct_rkey_release(&uct_hixl_component, &rkey), UCS_OK);

    assert_int_equal(uct_md_mem_dereg(&md.super, memh), UCS_OK);
    assert_int_equal(fake.live, 0);
}

static void on_dead(uct_completion_t *comp)
{
    comp->count = 77;
}

static void mem_dereg__invalidate__key_dead_and_told(void **state)
{
    uct_md_mem_dereg_params_t params = {
        .field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                      UCT_MD_MEM_DEREG_FIELD_FLAGS,
        .flags      = UCT_MD_MEM_DEREG_FLAG_INVALIDATE
    };
    const uct_md_mkey_pack_params_t pack = {
        .field_mask = UCT_MD_MKEY_PACK_FIELD_FLAGS,
        .flags      = UCT_MD_MKEY_PACK_FLAG_INVALIDATE
    };
    uct_completion_t comp = { .func = on_dead, .count = 1 };
    uint8_t buffer[4];
    uct_mem_h memh;

    (void)state;
    assert_int_equal(uct_md_mem_reg(&md.super, memory, sizeof(memory),
                                    UCT_MD_MEM_ACCESS_RMA, &memh),
                     UCS_OK);
    params.memh = memh;
    assert_int_equal(uct_md_mkey_pack_v2(&md.super, memh, &pack, buffer),
                     UCS_OK);
    /* without anybody to tell */
    assert_int_equal(uct_md_mem_dereg_v2(&md.super, &params),
                     UCS_ERR_INVALID_PARAM);
    assert_int_equal(fake.live, 1);
    params.field_mask |= UCT_MD_MEM_DEREG_FIELD_COMPLETION;
    params.comp        = &comp;
    assert_int_equal(uct_md_mem_dereg_v2(&md.super, &params), UCS_OK);
    assert_int_equal(comp.count, 77);
    assert_int_equal(fake.live, 0);
}

static void mem_reg__each_right__least_verbs_access(void **state)
{
    static const struct {
        unsigned flags;
        uint32_t access, with_atomic;
    } cases[] = {
        {UCT_MD_MEM_ACCESS_LOCAL_READ, 0, 0},
        {UCT_MD_MEM_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE,
         IBV_ACCESS_LOCAL_WRITE},
        {UCT_MD_MEM_ACCESS_REMOTE_GET, IBV_ACCESS_REMOTE_READ,
         IBV_ACCESS_REMOTE_READ},
        {UCT_MD_MEM_ACCESS_REMOTE_PUT,
         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE},
        {UCT_MD_MEM_ACCESS_REMOTE_ATOMIC, 0,
         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC},
    };
    unsigned i, atomic;
    uct_mem_h memh;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        for (atomic = 0; atomic < 2; ++atomic) {
            dev.caps.atomic = atomic;
            assert_int_equal(uct_md_mem_reg(&md.super, memory, sizeof(memory),
                                            cases[i].flags, &memh),
                             UCS_OK);
            assert_int_equal(fake.access, atomic ? cases[i].with_atomic :
                                                   cases[i].access);
            assert_int_equal(uct_md_mem_dereg(&md.super, memh), UCS_OK);
        }
    }
    dev.caps.atomic = false;
}

static void rkey_compare__by_value__orders(void **state)
{
    int result = 7;

    (void)state;
    assert_int_equal(uct_hixl_rkey_compare(&uct_hixl_component, 1, 2, NULL,
                                           &result), UCS_OK);
    assert_true(result < 0);
    assert_int_equal(uct_hixl_rkey_compare(&uct_hixl_component, 0xffffffff, 1,
                                           NULL, &result), UCS_OK);
    assert_true(result > 0);
    assert_int_equal(uct_hixl_rkey_compare(&uct_hixl_component, 3, 3, NULL,
                                           &result), UCS_OK);
    assert_int_equal(result, 0);
}

static void compat_check_version__ucx_built_for__accepted(void **state)
{
    (void)state;
    assert_true(uct_hixl_compat_check_version());
}

static int setup(void **state)
{
    const uct_hixl_md_config_t config = {
        .max_regs = 4, .max_host_mem = 1ul << 40
    };

    (void)state;
    uct_hixl_reg_set_ops(&fake_ops);
    return (uct_hixl_reg_open(&md, &config) == UCS_OK) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    uct_hixl_reg_close(&md);
    uct_hixl_reg_set_ops(NULL);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(md_query__garbage_before__every_field_is_set),
        cmocka_unit_test(mkey_pack__registered__little_endian_and_unpacks),
        cmocka_unit_test(
                mem_dereg__invalidate__key_dead_and_told),
        cmocka_unit_test(mem_reg__each_right__least_verbs_access),
        cmocka_unit_test(rkey_compare__by_value__orders),
        cmocka_unit_test(compat_check_version__ucx_built_for__accepted),
    };

    return cmocka_run_group_tests_name("hixl_md", tests, setup, teardown);
}
