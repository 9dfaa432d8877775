/* SPDX-License-Identifier: BSD-3-Clause */

/* Which kind of key a device gets, over a self-test that ends as a test says */

#include "mlx5/hx.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 8

/* ---- below the file under test ---- */

static struct {
    int      ret;            /* of the self-test */
    unsigned runs;
    unsigned ports;          /* bit n - 1: port n is up */
    unsigned port;           /* the last one it ran on */
} fake;

int hx_selftest_umem_keys(struct hx_dev *dev, const struct hx_port *port)
{
    __atomic_fetch_add(&fake.runs, 1, __ATOMIC_RELAXED);
    fake.port = port->num;
    if (fake.ret != 0) {
        hx_log(HX_LOG_ERROR, "%s: CREATE_MKEY failed: status 0x3", dev->name);
        hx_log(HX_LOG_ERROR, "%s: and what followed", dev->name);
    }
    return fake.ret;
}

int hx_port_query(struct hx_dev *dev, uint8_t port_num, uint32_t gid_index,
                  struct hx_port *port_p)
{
    (void)dev, (void)gid_index;
    *port_p = (struct hx_port) {
        .num    = port_num,
        .active = fake.ports >> (port_num - 1) & 1
    };
    return 0;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return (uintptr_t)device;
}

/* ---- what is logged ---- */

static struct {
    unsigned errors, warnings, notices;
    char     text[512];                 /* of the last of these */
} logged;

static void log_catch(enum hx_log_level level, const char *file, unsigned line,
                      const char *func, const char *msg)
{
    (void)file, (void)line, (void)func;
    if (level == HX_LOG_DEBUG) {
        return;
    }

    logged.errors   += level == HX_LOG_ERROR;
    logged.warnings += level == HX_LOG_WARN;
    logged.notices  += level == HX_LOG_NOTICE;
    snprintf(logged.text, sizeof(logged.text), "%s", msg);
}

static void assert_logged(unsigned errors, unsigned notices)
{
    assert_int_equal(logged.errors, errors);
    assert_int_equal(logged.notices, notices);
    assert_int_equal(logged.warnings, 0);
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in: %s", part, text);
    }
}

/* ---- devices ---- */

/* Verdicts last as long as the process, so each test has a device of its own;
 * it may be open several times. */
struct device {
    struct ibv_device  ibv_dev;
    struct ibv_context ibv;
    struct hx_dev      open[THREADS];
};

static struct device devices[32];
static unsigned num_devices;

static struct device *device_new(void)
{
    struct device *device = &devices[num_devices++];
    unsigned i;

    device->ibv.device = &device->ibv_dev;
    for (i = 0; i < THREADS; ++i) {
        device->open[i].ibv            = &device->ibv;
        device->open[i].caps.num_ports = 2;
        strcpy(device->open[i].name, "mlx5_0");
    }
    return device;
}

static int setup(void **state)
{
    memset(&logged, 0, sizeof(logged));
    memset(&fake, 0, sizeof(fake));
    fake.ports = 1;
    *state     = device_new();
    return 0;
}

static void auto__passes__umem_and_one_try(void **state)
{
    struct device *device = *state;

    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_UMEM);
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_UMEM);
    assert_int_equal(hx_dev_reg_mode(&device->open[1]), HX_REG_UMEM);
    assert_int_equal(fake.runs, 1);
    assert_has(hx_dev_reg_reason(&device->open[1]), "passed the self-test");
    assert_logged(0, 0);
}

static void auto__fails__mr_and_one_line(void **state)
{
    struct device *device = *state;

    fake.ret = -EINVAL;
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_MR);
    assert_logged(0, 1);
    assert_has(logged.text, "ibv_reg_mr");
    assert_has(logged.text, "mlx5_0: CREATE_MKEY failed: status 0x3");

    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_MR);
    assert_int_equal(hx_dev_reg_mode(&device->open[1]), HX_REG_MR);
    assert_int_equal(fake.runs, 1);
    assert_logged(0, 1);
    assert_string_equal(hx_dev_reg_reason(&device->open[1]),
                        "mlx5_0: CREATE_MKEY failed: status 0x3");
}

/* A caller that holds messages back does not hold this one */
static void auto__fails_under_a_hold__one_line(void **state)
{
    struct device *device = *state;
    struct hx_log_hold hold;
    char text[64];

    fake.ret = -EINVAL;
    hx_log_hold_begin(&hold, text, sizeof(text));
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_MR);
    hx_log_hold_end(&hold);
    assert_string_equal(text, "");
    assert_logged(0, 1);
}

static void auto__another_device_failed__tried_itself(void **state)
{
    struct device *device = *state;
    struct device *other  = device_new();

    fake.ret = -EINVAL;
    assert_int_equal(hx_dev_reg_mode(&other->open[0]), HX_REG_MR);
    fake.ret = 0;
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_UMEM);
    assert_int_equal(fake.runs, 2);
}

static void auto__fails_for_lack_of_memory__next_one_tries(void **state)
{
    struct device *device = *state;

    fake.ret = -ENOMEM;
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_MR);
    fake.ret = 0;
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_MR);
    assert_int_equal(hx_dev_reg_mode(&device->open[1]), HX_REG_UMEM);
    assert_int_equal(fake.runs, 2);
}

static void auto__second_port_is_up__tried_there(void **state)
{
    struct device *device = *state;

    fake.ports = 2;
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_UMEM);
    assert_int_equal(fake.port, 2);
}

static void auto__no_port_is_up__mr_and_says_so(void **state)
{
    struct device *device = *state;

    fake.ports = 0;
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_MR);
    assert_int_equal(fake.runs, 0);
    assert_logged(0, 1);
    assert_has(logged.text, "no port is up");

    fake.ports = 1;
    assert_int_equal(hx_dev_reg_mode(&device->open[1]), HX_REG_UMEM);
}

static void umem__passes__tried_at_once(void **state)
{
    struct device *device = *state;

    assert_int_equal(hx_dev_set_reg_mode(&device->open[0], HX_REG_UMEM), 0);
    assert_int_equal(fake.runs, 1);
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_UMEM);
    assert_int_equal(hx_dev_set_reg_mode(&device->open[1], HX_REG_UMEM), 0);
    assert_int_equal(fake.runs, 1);
    assert_logged(0, 0);
}

static void umem__fails__error_with_the_cause_each_time(void **state)
{
    struct device *device = *state;

    fake.ret = -EINVAL;
    assert_int_equal(hx_dev_set_reg_mode(&device->open[0], HX_REG_UMEM),
                     -EINVAL);
    assert_logged(1, 0);
    assert_has(logged.text, "mlx5_0: CREATE_MKEY failed: status 0x3");
    assert_int_equal(hx_dev_set_reg_mode(&device->open[1], HX_REG_UMEM),
                     -EINVAL);
    assert_logged(2, 0);
    assert_has(logged.text, "mlx5_0: CREATE_MKEY failed: status 0x3");
    assert_int_equal(fake.runs, 1);

    /* its mode is still auto, and what was found is known */
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_MR);
    assert_int_equal(fake.runs, 1);
}

static void mr__asked_for__not_tried(void **state)
{
    struct device *device = *state;

    fake.ret = -EINVAL;
    assert_int_equal(hx_dev_set_reg_mode(&device->open[0], HX_REG_MR), 0);
    assert_int_equal(hx_dev_reg_mode(&device->open[0]), HX_REG_MR);
    assert_string_equal(hx_dev_reg_reason(&device->open[0]), "asked for");
    assert_int_equal(fake.runs, 0);
    assert_logged(0, 0);
}

static void *thread_reg_mode(void *dev)
{
    return (void *)(uintptr_t)hx_dev_reg_mode(dev);
}

static void auto__threads_at_once__one_try_and_one_line(void **state)
{
    struct device *device = *state;
    pthread_t threads[2 * THREADS];
    void *mode;
    unsigned i;

    fake.ret = -EINVAL;
    for (i = 0; i < 2 * THREADS; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, thread_reg_mode,
                                        &device->open[i % THREADS]), 0);
    }
    for (i = 0; i < 2 * THREADS; ++i) {
        assert_int_equal(pthread_join(threads[i], &mode), 0);
        assert_int_equal((uintptr_t)mode, HX_REG_MR);
    }
    assert_int_equal(fake.runs, 1);
    assert_logged(0, 1);
}

int main(void)
{
#define TEST(_test) cmocka_unit_test_setup(_test, setup)
    const struct CMUnitTest tests[] = {
        TEST(auto__passes__umem_and_one_try),
        TEST(auto__fails__mr_and_one_line),
        TEST(auto__fails_under_a_hold__one_line),
        TEST(auto__another_device_failed__tried_itself),
        TEST(auto__fails_for_lack_of_memory__next_one_tries),
        TEST(auto__second_port_is_up__tried_there),
        TEST(auto__no_port_is_up__mr_and_says_so),
        TEST(umem__passes__tried_at_once),
        TEST(umem__fails__error_with_the_cause_each_time),
        TEST(mr__asked_for__not_tried),
        TEST(auto__threads_at_once__one_try_and_one_line),
    };

    hx_log_set(log_catch);
    return cmocka_run_group_tests_name("reg_mode", tests, NULL, NULL);
}
