/* SPDX-License-Identifier: BSD-3-Clause */

/* Unit tests: active messages, sent and received, and the receive buffers. */

#include "hixl_ep_fixture.h"

#include <mlx5/cq_poll.h>

#include <string.h>

#define AM_ID       5
#define MAX_KEPT    200

/* What the handler saw last, and what it kept */
static struct {
    uint8_t  data[2048];
    size_t   length;
    void    *at;
    unsigned calls;
    uint64_t next;        /* expected first word, when checked */
    int      check_order;
    int      keep;
    void    *kept[MAX_KEPT];
    unsigned num_kept;
} got;

static ucs_status_t am_handler(void *arg UCS_V_UNUSED, void *data,
                               size_t length, unsigned flags)
{
    assert_true(flags & UCT_CB_PARAM_FLAG_DESC);
    assert_true(length <= sizeof(got.data));
    memcpy(got.data, data, length);
    got.length = length;
    got.at     = data;
    ++got.calls;
    if (got.check_order) {
        assert_memory_equal(data, &got.next, sizeof(got.next));
        ++got.next;
    }
    if (!got.keep) {
        return UCS_OK;
    }

    /* All of the headroom is the user's */
    memset(UCS_PTR_BYTE_OFFSET(data, -(ptrdiff_t)env.rx_headroom), 0xab,
           env.rx_headroom);
    assert_true(got.num_kept < MAX_KEPT);
    got.kept[got.num_kept++] = UCS_PTR_BYTE_OFFSET(
            data, -(ptrdiff_t)env.rx_headroom);
    return UCS_INPROGRESS;
}

static void release_kept(unsigned count)
{
    while (count-- > 0) {
        uct_iface_release_desc(got.kept[--got.num_kept]);
    }
}

static uct_ep_h open_with_handler(void)
{
    memset(&got, 0, sizeof(got));
    test_open();
    assert_int_equal(uct_iface_set_am_handler(env.tl_iface, AM_ID, am_handler,
                                              NULL, 0), UCS_OK);
    return test_ep_new(NULL);
}

static size_t pack_cb(void *dest, void *arg)
{
    memcpy(dest, arg, 1024);
    return 1024;
}

static void am_short__header_and_payload__arrive(void **state)
{
    uint64_t header = 0x1122334455667788;
    uint8_t payload[212];
    uct_ep_h ep;
    unsigned len;

    (void)state;
    ep = open_with_handler();
    test_fill(payload, sizeof(payload), 3);
    for (len = 0; len <= sizeof(payload); ++len) {
        assert_int_equal(uct_ep_am_short(ep, AM_ID, header, payload, len),
                         UCS_OK);
        test_run();
        assert_int_equal(got.calls, len + 1);
        assert_int_equal(got.length, sizeof(header) + len);
        assert_memory_equal(got.data, &header, sizeof(header));
        assert_memory_equal(got.data + sizeof(header), payload, len);
    }
}

static void am_short_iov__pieces__arrive_in_order(void **state)
{
    uct_iov_t iov[3];
    uint8_t data[220];
    uct_ep_h ep;

    (void)state;
    ep = open_with_handler();
    test_fill(data, sizeof(data), 4);
    iov[0] = test_iov(data, 3);
    iov[1] = test_iov(data + 3, 0);
    iov[2] = test_iov(data + 3, sizeof(data) - 3);
    assert_int_equal(uct_ep_am_short_iov(ep, AM_ID, iov, 3), UCS_OK);
    test_run();
    assert_int_equal(got.length, sizeof(data));
    assert_memory_equal(got.data, data, sizeof(data));
}

static void am_bcopy__largest__arrives(void **state)
{
    uint8_t data[1024];
    uct_ep_h ep;

    (void)state;
    ep = open_with_handler();
    test_fill(data, sizeof(data), 6);
    assert_int_equal(uct_ep_am_bcopy(ep, AM_ID, pack_cb, data, 0), 1024);
    test_run();
    assert_int_equal(got.length, sizeof(data));
    assert_memory_equal(got.data, data, sizeof(data));
}

static void check_zcopy(unsigned hdr_len, size_t iovcnt, size_t piece,
                        ucs_status_t expected)
{
    static uint8_t data[1024];
    uct_iov_t iov[10];
    test_comp_t comp;
    uct_ep_h ep;
    size_t i;

    ep = test_ep_new(NULL);
    test_fill(data, sizeof(data), hdr_len);
    for (i = 0; i < iovcnt; ++i) {
        iov[i] = test_iov(data + hdr_len + i * piece, piece);
    }
    test_comp_init(&comp);
    assert_int_equal(uct_ep_am_zcopy(ep, AM_ID, data, hdr_len, iov, iovcnt, 0,
                                     &comp.super), expected);
    test_run();
    assert_int_equal(comp.calls, expected == UCS_INPROGRESS);
    assert_int_equal(got.length, hdr_len + iovcnt * piece);
    assert_memory_equal(got.data, data, got.length);
    assert_int_equal(test_pins(), 0);
}

static void am_zcopy__headers_and_pieces__arrive(void **state)
{
    (void)state;
    open_with_handler();
    check_zcopy(0, 0, 0, UCS_INPROGRESS);
    check_zcopy(63, 0, 0, UCS_INPROGRESS);
    check_zcopy(0, 1, 1024, UCS_INPROGRESS);
    check_zcopy(1, 10, 100, UCS_INPROGRESS);
    check_zcopy(63, 10, 96, UCS_INPROGRESS);
}

static void am_zcopy__unbound__is_packed_and_done(void **state)
{
    (void)state;
    open_with_handler();
    test_bindable = 0;
    check_zcopy(63, 10, 96, UCS_OK);
    assert_int_equal(test_counter("hixl.bounce_am_bytes"), 960);
}

static void recv__payload__is_aligned_for_the_user(void **state)
{
    static const size_t headrooms[] = {0, 8, 64, 200};
    uct_ep_h ep;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(headrooms); ++i) {
        if (i > 0) {
            test_teardown(state);
            test_setup(state);
        }
        env.rx_headroom = headrooms[i];
        ep              = open_with_handler();
        got.keep        = 1;
        assert_int_equal(uct_ep_am_short(ep, AM_ID, 7, NULL, 0), UCS_OK);
        assert_int_equal(uct_ep_am_short(ep, AM_ID, 8, NULL, 0), UCS_OK);
        test_run();
        assert_int_equal(got.num_kept, 2);
        assert_int_equal((uintptr_t)got.at % UCS_SYS_CACHE_LINE_SIZE, 0);
        assert_int_equal(*(uint64_t*)got.at, 8);
        assert_int_equal(*(uint64_t*)UCS_PTR_BYTE_OFFSET(got.kept[0],
                                                         env.rx_headroom), 7);
        release_kept(2);
    }
}

static void recv__many_times_the_queue__all_in_order(void **state)
{
    uint64_t sent = 0;
    uct_ep_h ep;

    (void)state;
    ep              = open_with_handler();
    got.check_order = 1;
    while (sent < 100000) {
        while (uct_ep_am_short(ep, AM_ID, sent, NULL, 0) == UCS_OK) {
            ++sent;
        }
        test_run();
    }
    assert_int_equal(got.calls, sent);
}

/* A message whose sender is slow, or has stopped */
static void recv__one_message_lags_behind__others_do_not_wait_for_it(
        void **state)
{
    uct_ep_h ep, slow;
    unsigned sent = 0;
    unsigned i;

    (void)state;
    ep   = open_with_handler();
    slow = test_ep_new(NULL);
    test_ep_qp(slow)->hold = 1;
    assert_int_equal(uct_ep_am_short(slow, AM_ID, 0x51, NULL, 0), UCS_OK);
    test_run();
    for (i = 0; i < 200; ++i) {
        if (uct_ep_am_short(ep, AM_ID, i, NULL, 0) == UCS_OK) {
            ++sent;
        }
        test_run();
    }
    assert_true(sent > env.iface->rx.num_slots);
    assert_int_equal(got.calls, sent);

    test_deliver_held();
    test_progress();
    assert_int_equal(*(uint64_t*)got.data, 0x51);
    test_run();
    assert_int_equal(got.calls, sent + 1);
}

static void recv__user_keeps_all_buffers__sender_waits_and_goes_on(
        void **state)
{
    uint64_t sent = 0;
    uct_ep_h ep;

    (void)state;
    env.config.rx_mpool.max_bufs  = 100;
    env.config.rx_mpool.bufs_grow = 100;
    env.config.tx_queue_len       = 256;
    ep                            = open_with_handler();
    got.check_order               = 1;
    got.keep                      = 1;
    while (sent < 150) {
        assert_int_equal(uct_ep_am_short(ep, AM_ID, sent++, NULL, 0), UCS_OK);
    }
    test_run();
    assert_int_equal(got.calls, 100);
    release_kept(100);
    test_run();
    assert_int_equal(got.calls, 150);
    release_kept(50);
}

static void recv_error__own_endpoint_on_the_qp__fails(void **state)
{
    struct hx_cq *cq;
    struct hx_cqe *cqe;
    uct_ep_h ep;

    (void)state;
    ep  = open_with_handler();
    cq  = env.iface->recv_cq;
    cqe = (struct hx_cqe*)cq->ring + (cq->ci & cq->mask);
    cqe->opcode_qpn  = htobe32(test_ep_qp(ep)->super.qpn);
    cqe->wqe_counter = htobe16(test_rmp_take(env.iface->rmp));
    cqe->syndrome    = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    cqe->op_own      = HX_CQE_OP_RESP_ERR << 4;
    ++cq->arm_sn;
    test_run();
    assert_int_equal(env.err_calls, 1);
    assert_int_equal(uct_ep_am_short(ep, AM_ID, 0, NULL, 0),
                     UCS_ERR_CONNECTION_RESET);
    /* Others still receive, the buffer was not lost */
    ep = test_ep_new(NULL);
    assert_int_equal(uct_ep_am_short(ep, AM_ID, 0, NULL, 0), UCS_OK);
    test_run();
    assert_int_equal(got.calls, 1);
}

#define TEST(_name) cmocka_unit_test_setup_teardown(_name, test_setup, \
                                                    test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(am_short__header_and_payload__arrive),
        TEST(am_short_iov__pieces__arrive_in_order),
        TEST(am_bcopy__largest__arrives),
        TEST(am_zcopy__headers_and_pieces__arrive),
        TEST(am_zcopy__unbound__is_packed_and_done),
        TEST(recv__payload__is_aligned_for_the_user),
        TEST(recv__many_times_the_queue__all_in_order),
        TEST(recv__one_message_lags_behind__others_do_not_wait_for_it),
        TEST(recv__user_keeps_all_buffers__sender_waits_and_goes_on),
        TEST(recv_error__own_endpoint_on_the_qp__fails)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
