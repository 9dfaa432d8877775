/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory that the domain allocates, over a device that takes every key. */

#include <uct_hixl/hixl_reg.h>

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>

#define ACCESS ((unsigned)UCT_MD_MEM_ACCESS_ALL)

static struct {
    int      fail;
    unsigned live;
    void    *addr;
    size_t   len;
    uint32_t access;
} fake;

static int fake_create(struct hx_dev *dev, void *addr, size_t len,
                       uint32_t access, struct hx_mkey *mkey_p)
{
    (void)dev;
    if (fake.fail != 0) {
        return -fake.fail;
    }

    memset(mkey_p, 0, sizeof(*mkey_p));
    fake.addr   = addr;
    fake.len    = len;
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
    .name = "mlx5_0",
    .caps = {.atomic = true}
};
static uct_hixl_md_t md = {
    .dev = &dev
};

static ucs_log_func_rc_t
log_drop(const char *file, unsigned line, const char *function,
         ucs_log_level_t level, const ucs_log_component_config_t *config,
         const char *format, va_list ap)
{
    (void)file, (void)line, (void)function, (void)level, (void)config;
    (void)format, (void)ap;
    return UCS_LOG_FUNC_RC_STOP;
}

typedef struct mapping {
    uintptr_t start, end;
    char      perms[5];
    char      path[256];
} mapping_t;

/* The line of /proc/self/maps that has the address; 0: none */
static int find_mapping(const void *address, mapping_t *mapping_p)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    int found = 0;

    assert_non_null(file);
    while (!found && (fgets(line, sizeof(line), file) != NULL)) {
        mapping_p->path[0] = '\0';
        found = (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %255s",
                        &mapping_p->start, &mapping_p->end, mapping_p->perms,
                        mapping_p->path) >= 3) &&
                (mapping_p->start <= (uintptr_t)address) &&
                (mapping_p->end > (uintptr_t)address);
    }
    fclose(file);
    return found;
}

static void mem_alloc__any_length__shared_pages_registered(void **state)
{
    static const size_t lengths[] = {
        1, 4095, 4096, 4097, 100000, 3u << 20, (4u << 20) + 1
    };
    mapping_t mapping;
    size_t length, i;
    void *address;
    uct_mem_h memh;

    (void)state;
    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        length  = lengths[i];
        address = NULL;
        assert_int_equal(uct_hixl_md_mem_alloc(&md.super, &length, &address,
                                               UCS_MEMORY_TYPE_HOST,
                                               UCS_SYS_DEVICE_ID_UNKNOWN,
                                               ACCESS, "test", &memh),
                         UCS_OK);
        assert_true(length >= lengths[i]);
        assert_int_equal((uintptr_t)address % ucs_get_page_size(), 0);
        assert_int_equal(length % ucs_get_page_size(), 0);

        assert_ptr_equal(fake.addr, address);
        assert_int_equal(fake.len, length);
        assert_int_equal(fake.access,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

        assert_true(find_mapping(address, &mapping));
        assert_string_equal(mapping.perms, "rw-s");
        memset(address, 0x5a, length);

        assert_int_equal(uct_hixl_md_mem_free(&md.super, memh), UCS_OK);
        assert_int_equal(fake.live, 0);
        assert_false(find_mapping(address, &mapping) &&
                     (mapping.perms[3] == 's'));
    }
}

static void mem_alloc__pages__have_a_name(void **state)
{
    size_t length = 8192;
    void *address = NULL;
    mapping_t mapping;
    uct_mem_h memh;

    (void)state;
    assert_int_equal(uct_hixl_md_mem_alloc(&md.super, &length, &address,
                                           UCS_MEMORY_TYPE_HOST,
                                           UCS_SYS_DEVICE_ID_UNKNOWN, ACCESS,
                                           "test", &memh),
                     UCS_OK);
    assert_true(find_mapping(address, &mapping));
    assert_string_equal(mapping.path, "/memfd:hixl");
    assert_int_equal(uct_hixl_md_mem_free(&md.super, memh), UCS_OK);
}

static void mem_alloc__no_file_descriptor__still_works(void **state)
{
    size_t length = 8192;
    void *address = NULL;
    struct rlimit saved, none;
    ucs_status_t status;
    uct_mem_h memh;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
    none          = saved;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    status = uct_hixl_md_mem_alloc(&md.super, &length, &address,
                                   UCS_MEMORY_TYPE_HOST,
                                   UCS_SYS_DEVICE_ID_UNKNOWN, ACCESS, "test",
                                   &memh);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);

    assert_int_equal(status, UCS_OK);
    memset(address, 1, length);
    assert_int_equal(uct_hixl_md_mem_free(&md.super, memh), UCS_OK);
}

/* An address at which nothing is: ThreadSanitizer itself has the usual one, and
 * leaves 512 GiB at the bottom to the program. */
#ifdef __SANITIZE_THREAD__
#define FREE_ADDRESS 0x4000000000ul
#else
#define FREE_ADDRESS 0x200000000000ul
#endif

static void mem_alloc__registration_fails__nothing_stays_mapped(void **state)
{
    size_t length = 1u << 20;
    void *hint    = (void*)FREE_ADDRESS;
    void *address = hint;
    uct_mem_h memh = NULL;
    mapping_t mapping;

    (void)state;
    fake.fail = EIO;
    assert_int_equal(uct_hixl_md_mem_alloc(&md.super, &length, &address,
                                           UCS_MEMORY_TYPE_HOST,
                                           UCS_SYS_DEVICE_ID_UNKNOWN, ACCESS,
                                           "test", &memh),
                     UCS_ERR_IO_ERROR);
    fake.fail = 0;
    assert_null(memh);
    assert_ptr_equal(address, hint);
    assert_int_equal(length, 1u << 20);
    assert_false(find_mapping(hint, &mapping));

    /* The hint would have been taken */
    assert_int_equal(uct_hixl_md_mem_alloc(&md.super, &length, &address,
                                           UCS_MEMORY_TYPE_HOST,
                                           UCS_SYS_DEVICE_ID_UNKNOWN, ACCESS,
                                           "test", &memh),
                     UCS_OK);
    assert_ptr_equal(address, hint);
    assert_int_equal(uct_hixl_md_mem_free(&md.super, memh), UCS_OK);
}

static void mem_alloc__what_cannot_be__refused(void **state)
{
    size_t length = 4096;
    void *address = NULL;
    uct_mem_h memh = NULL;

    (void)state;
    assert_int_equal(uct_hixl_md_mem_alloc(&md.super, &length, &address,
                                           UCS_MEMORY_TYPE_CUDA,
                                           UCS_SYS_DEVICE_ID_UNKNOWN, ACCESS,
                                           "test", &memh),
                     UCS_ERR_UNSUPPORTED);
    length = SIZE_MAX;
    assert_int_equal(uct_hixl_md_mem_alloc(&md.super, &length, &address,
                                           UCS_MEMORY_TYPE_HOST,
                                           UCS_SYS_DEVICE_ID_UNKNOWN, ACCESS,
                                           "test", &memh),
                     UCS_ERR_INVALID_PARAM);
    length = 1ul << 52;
    assert_int_equal(uct_hixl_md_mem_alloc(&md.super, &length, &address,
                                           UCS_MEMORY_TYPE_HOST,
                                           UCS_SYS_DEVICE_ID_UNKNOWN, ACCESS,
                                           "test", &memh),
                     UCS_ERR_NO_MEMORY);
    assert_null(memh);
    assert_null(address);
    assert_int_equal(fake.live, 0);
}

static int setup(void **state)
{
    const uct_hixl_md_config_t config = {
        .max_regs = 4, .max_host_mem = 1ul << 40
    };

    (void)state;
    ucs_log_push_handler(log_drop);
    uct_hixl_reg_set_ops(&fake_ops);
    return (uct_hixl_reg_open(&md, &config) == UCS_OK) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    uct_hixl_reg_close(&md);
    uct_hixl_reg_set_ops(NULL);
    ucs_log_pop_handler();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mem_alloc__any_length__shared_pages_registered),
        cmocka_unit_test(mem_alloc__pages__have_a_name),
        cmocka_unit_test(mem_alloc__no_file_descriptor__still_works),
        cmocka_unit_test(mem_alloc__registration_fails__nothing_stays_mapped),
        cmocka_unit_test(mem_alloc__what_cannot_be__refused),
    };

    return cmocka_run_group_tests_name("hixl_mem", tests, setup, teardown);
}
