/* SPDX-License-Identifier: BSD-3-Clause */

/* The self-test of keys over umems on a device: what it finds, what it leaves
 * behind, how long it takes. HIXL_TEST_KEYS=refused: it refuses them. */

#include "mlx5/hx.h"

#include <support/stat.h>

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#define ROUNDS    100
#define KEY_WRITE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct hx_dev *dev;
static struct hx_port port;
static char notice[512];
static unsigned notices;

static void log_catch(enum hx_log_level level, const char *file, unsigned line,
                      const char *func, const char *msg)
{
    (void)file, (void)line, (void)func;
    if (level == HX_LOG_NOTICE) {
        ++notices;
        snprintf(notice, sizeof(notice), "%s", msg);
    }
}

static bool is_refused(void)
{
    const char *keys = getenv("HIXL_TEST_KEYS");

    return (keys != NULL) && (strcmp(keys, "refused") == 0);
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static uint64_t count(const char *name)
{
    static struct hxt_stats stats;
    uint64_t value = 0;

    assert_true(hxt_stats_read(&stats));
    assert_true(hxt_stats_find(&stats, name, &value) ||
                (strncmp(name, "sw.", 3) == 0));
    return value;
}

static void assert_objects(const uint64_t *expected, uint64_t *now_p)
{
    static const char *const names[] = {
        "objects.umem", "objects.mkey", "objects.cq", "objects.qp",
        "objects.uar"
    };
    unsigned i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        now_p[i] = count(names[i]);
        if ((expected != NULL) && (now_p[i] != expected[i])) {
            fail_msg("%s is %" PRIu64 " and was %" PRIu64, names[i], now_p[i],
                     expected[i]);
        }
    }
}

/* Also the first in this process: no verdict is known */
static void first_key__auto__by_the_self_test(void **state)
{
    static char memory[4096];
    enum hx_reg_mode mode = is_refused() ? HX_REG_MR : HX_REG_UMEM;
    struct hx_mkey key;
    double start;

    (void)state;
    start = now();
    assert_int_equal(hx_mkey_create(dev, memory, sizeof(memory), KEY_WRITE,
                                    &key), 0);
    print_message("the first key: %.0f us\n", (now() - start) * 1e6);

    assert_int_equal(hx_dev_reg_mode(dev), mode);
    assert_int_equal(key.mr != NULL, is_refused());
    assert_int_equal(count("mkey_remote"), !is_refused());
    assert_int_equal(count("mr_remote"), is_refused());
    assert_int_equal(notices, is_refused());
    if (is_refused()) {
        assert_non_null(strstr(notice, "CREATE_MKEY failed"));
        assert_non_null(strstr(notice, hx_dev_reg_reason(dev)));
    }

    start = now();
    hx_mkey_destroy(&key);
    assert_int_equal(hx_mkey_create(dev, memory, sizeof(memory), KEY_WRITE,
                                    &key), 0);
    print_message("another key: %.0f us\n", (now() - start) * 1e6);
    hx_mkey_destroy(&key);
}

static void selftest__many_times__same_outcome_and_nothing_left(void **state)
{
    uint64_t before[5], after[5];
    double start;
    unsigned i;

    (void)state;
    assert_objects(NULL, before);
    start = now();
    for (i = 0; i < ROUNDS; ++i) {
        assert_int_equal(hx_selftest_umem_keys(dev, &port) != 0, is_refused());
    }
    print_message("the self-test: %.0f us\n", (now() - start) / ROUNDS * 1e6);
    assert_objects(before, after);

    /* what it moved is subtracted from what all moved: nobody else did */
    assert_int_equal(count("wqe.rdma_write"), 0);
    assert_int_equal(count("wqe.rdma_read"), 0);
    assert_int_equal(count("bytes.rdma_write"), 0);
    assert_int_equal(count("bytes.rdma_read"), 0);
    assert_int_equal(count("sw.selftest.wqe.rdma_write"),
                     is_refused() ? 0 : 2 * (ROUNDS + 1));
    assert_int_equal(count("sw.selftest.wqe.rdma_read"),
                     is_refused() ? 0 : 2 * (ROUNDS + 1));
    assert_int_equal(count("cqe.error"), 0);
}

static void set_reg_mode__umem__as_the_self_test_found(void **state)
{
    struct hx_dev *other;

    (void)state;
    assert_int_equal(hx_dev_open(dev->name, &other), 0);
    assert_int_equal(hx_dev_set_reg_mode(other, HX_REG_UMEM) != 0,
                     is_refused());
    hx_dev_close(other);
}

static void set_reg_mode__mr__keys_are_mrs(void **state)
{
    static char memory[4096];
    struct hx_mkey key;

    (void)state;
    assert_int_equal(hx_dev_set_reg_mode(dev, HX_REG_MR), 0);
    assert_int_equal(hx_mkey_create(dev, memory, sizeof(memory), KEY_WRITE,
                                    &key), 0);
    assert_non_null(key.mr);
    assert_int_equal(count("mr_remote"), 1);
    assert_int_equal(count("mkey_remote"), 0);
    hx_mkey_destroy(&key);
    assert_int_equal(count("mr_remote"), 0);
}

static int open_device(void **state)
{
    unsigned num, i;
    char **names;

    (void)state;
    hx_log_set(log_catch);
    if ((hx_dev_list(&names, &num) != 0) || (num == 0)) {
        return -1;
    }
    if ((hx_dev_open(names[0], &dev) != 0) ||
        (hx_port_query(dev, 1, HX_GID_INDEX_AUTO, &port) != 0)) {
        return -1;
    }
    for (i = 0; i < num; ++i) {
        free(names[i]);
    }
    free(names);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    hx_dev_close(dev);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_key__auto__by_the_self_test),
        cmocka_unit_test(selftest__many_times__same_outcome_and_nothing_left),
        cmocka_unit_test(set_reg_mode__umem__as_the_self_test_found),
        cmocka_unit_test(set_reg_mode__mr__keys_are_mrs),
    };

    return cmocka_run_group_tests_name("selftest", tests, open_device,
                                       close_device);
}
