/* SPDX-License-Identifier: BSD-3-Clause */

/* What the queues refuse before they ask a device: a peer's path that does not
 * fit, sizes out of range. A refusal is one message that names the device. */

#include "golden.h"

#include "mlx5/hx.h"

#include <errno.h>

static unsigned logged;
static char log_text[512];

static void log_capture(enum hx_log_level level, const char *file,
                        unsigned line, const char *func, const char *msg)
{
    (void)file;
    (void)line;
    (void)func;
    if (level == HX_LOG_ERROR) {
        ++logged;
        strncpy(log_text, msg, sizeof(log_text) - 1);
    }
}

static struct hx_dev test_dev = {
    .caps = {.log_max_qp_sz = 15, .log_max_cq_sz = 20},
    .name = "mlx5_7"
};

static struct hx_qp test_qp = {.dev = &test_dev, .qpn = 0xbad};

static const struct hx_port ib_port   = {.num = 1};
static const struct hx_port roce_port = {.num = 1, .roce = true};

static struct hx_qp_path good_path(void)
{
    return (struct hx_qp_path) {
        .remote_qpn  = 0xffffff,
        .remote_psn  = 0xffffff,
        .local_psn   = 0xffffff,
        .mtu         = IBV_MTU_4096,
        .sl          = 7,
        .ack_timeout = 31,
        .retry_count = 7,
        .rnr_retry   = 7,
        .min_rnr_nak = 31
    };
}

static void assert_logged_once(void)
{
    assert_int_equal(logged, 1);
    assert_non_null(strstr(log_text, "mlx5_7"));
    logged = 0;
}

static void rtr__value_too_large__einval(void **state)
{
    struct hx_qp_path path;

    (void)state;
    logged = 0;
#define REFUSED(_port, _fld, _value) \
    path      = good_path(); \
    path._fld = _value; \
    assert_int_equal(hx_qp_rtr(&test_qp, _port, &path), -EINVAL); \
    assert_non_null(strstr(log_text, "0xbad")); \
    assert_logged_once()

    REFUSED(&ib_port, remote_qpn, 0x1000000);
    REFUSED(&ib_port, remote_psn, 0x1000000);
    REFUSED(&ib_port, mtu, 0);
    REFUSED(&ib_port, mtu, 6);
    REFUSED(&ib_port, sl, 16);
    REFUSED(&roce_port, sl, 8);
    REFUSED(&ib_port, min_rnr_nak, 32);
#undef REFUSED
}

static void rts__value_too_large__einval(void **state)
{
    struct hx_qp_path path;

    (void)state;
    logged = 0;
#define REFUSED(_fld, _value) \
    path      = good_path(); \
    path._fld = _value; \
    assert_int_equal(hx_qp_rts(&test_qp, &path), -EINVAL); \
    assert_logged_once()

    REFUSED(local_psn, 0x1000000);
    REFUSED(retry_count, 8);
    REFUSED(rnr_retry, 8);
    REFUSED(ack_timeout, 32);
#undef REFUSED
}

static void create__size_out_of_range__einval(void **state)
{
    struct hx_uar uar      = {0};
    struct hx_cq cq        = {0};
    struct hx_qp_attr attr = {.uar = &uar, .send_cq = &cq, .recv_cq = &cq};
    struct hx_qp *qp       = NULL;
    struct hx_cq *new_cq   = NULL;
    struct hx_rmp *rmp     = NULL;

    (void)state;
    logged         = 0;
    attr.log_sq_bb = 3;
    assert_int_equal(hx_qp_create(&test_dev, &attr, &qp), -EINVAL);
    assert_logged_once();
    attr.log_sq_bb = 16;
    assert_int_equal(hx_qp_create(&test_dev, &attr, &qp), -EINVAL);
    assert_logged_once();
    assert_null(qp);

    assert_int_equal(hx_cq_create(&test_dev, &uar, 21, NULL, &new_cq),
                     -EINVAL);
    assert_logged_once();
    assert_null(new_cq);

    assert_int_equal(hx_rmp_create(&test_dev, &uar, 16, &rmp), -EINVAL);
    assert_logged_once();
    assert_int_equal(hx_rmp_create(&test_dev, &uar, 0, &rmp), -EINVAL);
    assert_logged_once();
    assert_null(rmp);
}

static void mkey__no_memory__einval(void **state)
{
    struct hx_mkey mkey;
    char byte;

    (void)state;
    logged = 0;
    assert_int_equal(hx_mkey_create(&test_dev, &byte, 0, 0, &mkey), -EINVAL);
    assert_logged_once();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rtr__value_too_large__einval),
        cmocka_unit_test(rts__value_too_large__einval),
        cmocka_unit_test(create__size_out_of_range__einval),
        cmocka_unit_test(mkey__no_memory__einval),
    };

    hx_log_set(log_capture);
    return cmocka_run_group_tests_name("qp", tests, NULL, NULL);
}
