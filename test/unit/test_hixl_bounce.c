/* SPDX-License-Identifier: BSD-3-Clause */

/* Unit tests: zero-copy operations that go through buffers, in stretches, as
 * room comes. */

#include "hixl_ep_fixture.h"

#include <stdio.h>
#include <string.h>

static uint8_t from[3][40000], to[3][40000];

static void expect_next(uct_hixl_bounce_t *bounce, size_t max,
                        const void *addr, size_t length)
{
    void *got = NULL;

    assert_false(uct_hixl_bounce_at_end(bounce));
    assert_int_equal(uct_hixl_bounce_next(bounce, max, &got), length);
    assert_ptr_equal(got, addr);
}

static void expect_end(uct_hixl_bounce_t *bounce)
{
    void *got = NULL;

    assert_true(uct_hixl_bounce_at_end(bounce));
    assert_int_equal(uct_hixl_bounce_next(bounce, 8, &got), 0);
    assert_null(got);
}

static void bounce_next__shorter_than_buffer__comes_whole(void **state)
{
    uint8_t data[100];
    uct_iov_t iov = test_iov(data, sizeof(data));
    uct_hixl_bounce_t bounce;

    (void)state;
    uct_hixl_bounce_set_iov(&bounce, &iov, 1);
    expect_next(&bounce, 8192, data, sizeof(data));
    expect_end(&bounce);
}

static void bounce_next__multiple_of_buffer__ends_without_an_empty_one(
        void **state)
{
    uint8_t data[64];
    uct_iov_t iov = test_iov(data, sizeof(data));
    uct_hixl_bounce_t bounce;

    (void)state;
    uct_hixl_bounce_set_iov(&bounce, &iov, 1);
    expect_next(&bounce, 32, data, 32);
    expect_next(&bounce, 32, data + 32, 32);
    expect_end(&bounce);
}

static void bounce_next__several_pieces__none_crosses_a_border(void **state)
{
    uint8_t a[70], b[1], c[33];
    uct_iov_t iov[] = {
        test_iov(a, sizeof(a)), test_iov(b, sizeof(b)), test_iov(c, sizeof(c))
    };
    uct_hixl_bounce_t bounce;

    (void)state;
    uct_hixl_bounce_set_iov(&bounce, iov, 3);
    expect_next(&bounce, 32, a, 32);
    expect_next(&bounce, 32, a + 32, 32);
    expect_next(&bounce, 32, a + 64, 6);
    expect_next(&bounce, 32, b, 1);
    expect_next(&bounce, 32, c, 32);
    expect_next(&bounce, 32, c + 32, 1);
    expect_end(&bounce);
}

static void bounce_set_iov__empty_pieces__are_left_out(void **state)
{
    uint8_t a[8], b[8];
    uct_iov_t iov[] = {
        test_iov(NULL, 0), test_iov(a, sizeof(a)), test_iov(b, 0),
        test_iov(b, sizeof(b)), test_iov(NULL, 0)
    };
    uct_hixl_bounce_t bounce;

    (void)state;
    uct_hixl_bounce_set_iov(&bounce, iov, 5);
    assert_int_equal(bounce.count, 2);
    expect_next(&bounce, 32, a, sizeof(a));
    expect_next(&bounce, 32, b, sizeof(b));
    expect_end(&bounce);
}

static void bounce_set_iov__repeated_piece__has_length_times_count(void **state)
{
    uint8_t data[40];
    uct_iov_t iov = test_iov(data, 10);
    uct_hixl_bounce_t bounce;

    (void)state;
    iov.count = 4;
    uct_hixl_bounce_set_iov(&bounce, &iov, 1);
    expect_next(&bounce, 8192, data, 40);
    expect_end(&bounce);
}

static void bounce_next__buffer_sizes_vary__covers_every_byte_once(void **state)
{
    static uint8_t data[3][1000];
    static uint8_t seen[3][1000];
    uct_iov_t iov[3];
    uct_hixl_bounce_t bounce;
    size_t length, total = 0;
    unsigned seed = 1;
    ptrdiff_t at;
    void *addr;
    int i;

    (void)state;
    for (i = 0; i < 3; ++i) {
        iov[i] = test_iov(data[i], sizeof(data[i]));
    }

    uct_hixl_bounce_set_iov(&bounce, iov, 3);
    while (!uct_hixl_bounce_at_end(&bounce)) {
        length = uct_hixl_bounce_next(&bounce, 1 + rand_r(&seed) % 300, &addr);
        assert_true(length > 0);
        at = (uint8_t*)addr - &data[0][0];
        for (total += length; length > 0; --length, ++at) {
            assert_int_equal((&seen[0][0])[at]++, 0);
        }
    }
    assert_int_equal(total, sizeof(data));
}

/* ---- with an endpoint: 1 KiB buffers, a queue of 64 blocks ---- */

static uct_ep_h open_unbound(void)
{
    unsigned i;

    test_open();
    test_bindable = 0;
    memset(to, 0, sizeof(to));
    for (i = 0; i < 3; ++i) {
        test_fill(from[i], sizeof(from[i]), i);
    }
    return test_ep_new(NULL);
}

static ucs_status_t start(uct_ep_h ep, int is_get, test_comp_t *comp)
{
    uct_iov_t iov[3];
    unsigned i;

    test_comp_init(comp);
    for (i = 0; i < 3; ++i) {
        iov[i] = test_iov(is_get ? to[i] : from[i], sizeof(from[i]));
    }
    return is_get ? uct_ep_get_zcopy(ep, iov, 3, (uintptr_t)from, TEST_RKEY,
                                     &comp->super) :
                    uct_ep_put_zcopy(ep, iov, 3, (uintptr_t)to, TEST_RKEY,
                                     &comp->super);
}

static ucs_status_t put_byte(uct_ep_h ep, void *where, uint8_t value)
{
    return uct_ep_put_short(ep, &value, 1, (uintptr_t)where, TEST_RKEY);
}

static void check_longer_than_queue(int is_get)
{
    test_comp_t comp;
    unsigned rounds = 0;
    uct_ep_h ep;

    ep = open_unbound();
    assert_int_equal(start(ep, is_get, &comp), UCS_INPROGRESS);
    while (test_ep(ep)->bounce != NULL) {
        assert_int_equal(comp.calls, 0);
        assert_int_equal(put_byte(ep, to[0], 0xee), UCS_ERR_NO_RESOURCE);
        assert_int_equal(uct_ep_flush(ep, 0, NULL), UCS_ERR_NO_RESOURCE);
        test_step(UINT_MAX);
        test_progress();
        ++rounds;
    }
    test_run();
    assert_true(rounds > 1);
    assert_int_equal(comp.calls, 1);
    assert_int_equal(comp.status, UCS_OK);
    assert_memory_equal(to, from, sizeof(from));
    assert_int_equal(test_counter(is_get ? "hixl.bounce_get_bytes" :
                                  "hixl.bounce_put_bytes"), sizeof(from));
    assert_int_equal(put_byte(ep, to[0], 1), UCS_OK);
}

static void put_zcopy__unbound_longer_than_queue__goes_as_room_comes(
        void **state)
{
    (void)state;
    check_longer_than_queue(0);
}

static void get_zcopy__unbound_longer_than_queue__goes_as_room_comes(
        void **state)
{
    (void)state;
    check_longer_than_queue(1);
}

static void get_zcopy__unbound_two_buffers__is_enough(void **state)
{
    (void)state;
    env.config.tx_mpool.max_bufs  = 2;
    env.config.tx_mpool.bufs_grow = 2;
    check_longer_than_queue(1);
}

static void put_zcopy__unbound_queue_full__has_no_resource(void **state)
{
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    ep = open_unbound();
    while (put_byte(ep, to[0], 0) == UCS_OK) {
    }
    assert_int_equal(start(ep, 0, &comp), UCS_ERR_NO_RESOURCE);
    assert_null(test_ep(ep)->bounce);
    test_run();
    assert_int_equal(comp.calls, 0);
    assert_int_equal(start(ep, 0, &comp), UCS_INPROGRESS);
    test_run();
    assert_int_equal(comp.calls, 1);
}

static ucs_status_t req_start_put(test_req_t *req)
{
    ucs_status_t status = start(req->ep, 0, req->arg);

    return (status == UCS_INPROGRESS) ? UCS_OK : status;
}

/* Overwrites what the put before it writes last */
static ucs_status_t req_put_byte(test_req_t *req)
{
    return put_byte(req->ep, req->arg, 0xee);
}

static void pending__bounce_from_a_request__others_stay_behind(void **state)
{
    test_comp_t comp[2];
    test_req_t req[3];
    uint8_t *last = &to[2][sizeof(to[2]) - 1];
    uct_ep_h ep;
    unsigned i;

    (void)state;
    ep = open_unbound();
    while (put_byte(ep, to[0], 0) == UCS_OK) {
    }
    test_req_init(&req[0], ep, req_start_put, &comp[0]);
    test_req_init(&req[1], ep, req_put_byte, last);
    test_req_init(&req[2], ep, req_start_put, &comp[1]);
    for (i = 0; i < 3; ++i) {
        assert_int_equal(uct_ep_pending_add(ep, &req[i].super, 0), UCS_OK);
    }

    while (req[1].order == 0) {
        assert_int_not_equal(*last, 0xee);
        assert_int_equal(req[2].calls, 0);
        test_step(4);
        test_progress();
    }
    assert_int_equal(req[0].order, 1);
    assert_int_equal(req[1].order, 2);
    test_run();
    assert_int_equal(req[2].order, 3);
    assert_int_equal(comp[0].calls, 1);
    assert_int_equal(comp[1].calls, 1);
    assert_memory_equal(to, from, sizeof(from));
    assert_int_equal(put_byte(ep, last, 0), UCS_OK);
}

static void purge_cb(uct_pending_req_t *self UCS_V_UNUSED, void *arg)
{
    ++*(unsigned*)arg;
}

static void pending_purge__bounce_active__it_goes_on(void **state)
{
    unsigned count = 0;
    test_comp_t comp, second;
    test_req_t req[2];
    uct_ep_h ep;

    (void)state;
    ep = open_unbound();
    /* The bounce has an element of its own; and then none */
    assert_int_equal(start(ep, 0, &comp), UCS_INPROGRESS);
    test_req_init(&req[0], ep, req_start_put, &second);
    test_req_init(&req[1], ep, req_put_byte, to[0]);
    assert_int_equal(uct_ep_pending_add(ep, &req[0].super, 0), UCS_OK);
    assert_int_equal(uct_ep_pending_add(ep, &req[1].super, 0), UCS_OK);
    while (req[0].order == 0) {
        test_step(4);
        test_progress();
    }
    assert_non_null(test_ep(ep)->bounce);
    uct_ep_pending_purge(ep, purge_cb, &count);
    assert_int_equal(count, 1);
    test_run();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(second.calls, 1);
    assert_int_equal(put_byte(ep, to[0], 0), UCS_OK);
}

static void error_cqe__bounce_active__ends_once_and_copies_nothing_more(
        void **state)
{
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    ep = open_unbound();
    assert_int_equal(start(ep, 1, &comp), UCS_INPROGRESS);
    test_ep_qp(ep)->fail_syndrome = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
    test_run();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(comp.status, UCS_ERR_CONNECTION_RESET);
    assert_int_equal(env.err_calls, 1);
    assert_null(test_ep(ep)->bounce);
    assert_int_equal(to[0][1], 0);
}

static void destroy__bounce_active__completes_as_cancelled(void **state)
{
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    ep = open_unbound();
    assert_int_equal(start(ep, 1, &comp), UCS_INPROGRESS);
    uct_ep_destroy(ep);
    assert_int_equal(comp.calls, 1);
    assert_int_equal(comp.status, UCS_ERR_CANCELED);
    test_run();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(to[0][1], 0); /* it may be the user's no more */
}

static void flush_cancel__bounce_active__both_end(void **state)
{
    test_comp_t comp, flush;
    uct_ep_h ep;

    (void)state;
    ep = open_unbound();
    assert_int_equal(start(ep, 0, &comp), UCS_INPROGRESS);
    test_comp_init(&flush);
    assert_int_equal(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, &flush.super),
                     UCS_INPROGRESS);
    test_run();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(comp.status, UCS_ERR_CANCELED);
    assert_int_equal(flush.calls, 1);
    assert_int_equal(env.err_calls, 0);
}

/* ---- with no more keys than the interface had when it opened ---- */

static struct {
    unsigned errors;
    unsigned warnings; /* of a pool that cannot grow, with the reason */
} logged;

static ucs_log_func_rc_t count_log(const char *file UCS_V_UNUSED,
                                   unsigned line UCS_V_UNUSED,
                                   const char *function UCS_V_UNUSED,
                                   ucs_log_level_t level,
                                   const ucs_log_component_config_t
                                           *component UCS_V_UNUSED,
                                   const char *message, va_list ap)
{
    char text[512];

    vsnprintf(text, sizeof(text), message, ap);
    logged.errors   += level <= UCS_LOG_LEVEL_ERROR;
    logged.warnings += (level == UCS_LOG_LEVEL_WARN) &&
                       (strstr(text, "hixl_tx_desc") != NULL) &&
                       (strstr(text, "keys are refused") != NULL);
    return UCS_LOG_FUNC_RC_STOP;
}

static void check_no_keys(int is_get)
{
    test_comp_t comp;
    uct_ep_h ep;

    env.config.tx_mpool.bufs_grow = 2;
    ep              = open_unbound();
    env.refuse_keys = 1;
    memset(&logged, 0, sizeof(logged));
    ucs_log_push_handler(count_log);
    assert_int_equal(start(ep, is_get, &comp), UCS_INPROGRESS);
    test_run();
    ucs_log_pop_handler();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(comp.status, UCS_OK);
    assert_memory_equal(to, from, sizeof(from));
    assert_true(env.keys_refused > 0);
    assert_int_equal(logged.errors, 0);
}

static void put_zcopy__no_keys_since_open__is_bounced(void **state)
{
    (void)state;
    check_no_keys(0);
}

static void get_zcopy__no_keys_since_open__is_bounced(void **state)
{
    (void)state;
    check_no_keys(1);
}

static size_t pack_byte(void *dest, void *arg)
{
    *(uint8_t*)dest = *(uint8_t*)arg;
    return 1;
}

/* Posts until there is no buffer; nothing is executed */
static unsigned use_up(uct_ep_h ep)
{
    uint8_t value  = 1;
    unsigned count = 0;
    ssize_t ret;

    for (;;) {
        ret = uct_ep_put_bcopy(ep, pack_byte, &value, (uintptr_t)to[0],
                               TEST_RKEY);
        if (ret != 1) {
            assert_int_equal(ret, UCS_ERR_NO_RESOURCE);
            return count;
        }
        ++count;
    }
}

static void pool__cannot_grow__warns_once_until_it_can(void **state)
{
    unsigned first, refused;
    uct_ep_h ep;

    (void)state;
    env.config.tx_mpool.bufs_grow = 2;
    ep              = open_unbound();
    env.refuse_keys = 1;
    memset(&logged, 0, sizeof(logged));
    ucs_log_push_handler(count_log);
    first   = use_up(ep);
    refused = env.keys_refused;
    assert_true(first >= 2);
    assert_int_equal(use_up(ep), 0);
    test_run();
    assert_int_equal(use_up(ep), first);
    assert_true(env.keys_refused > refused); /* it does try */
    assert_int_equal(logged.warnings, 1);

    env.refuse_keys = 0;
    assert_int_equal(uct_ep_put_bcopy(ep, pack_byte, &env.refuse_keys,
                                      (uintptr_t)to[0], TEST_RKEY), 1);
    env.refuse_keys = 1;
    use_up(ep);
    use_up(ep);
    ucs_log_pop_handler();
    assert_int_equal(logged.warnings, 2);
    assert_int_equal(logged.errors, 0);
    test_run();
}

/* What waits for a buffer must wait: were it told to try again at once, nobody
 * would ever call progress. */
static void pending_add__pool_cannot_grow__is_queued(void **state)
{
    test_comp_t comp;
    test_req_t req;
    uct_ep_h ep;

    (void)state;
    env.config.tx_mpool.bufs_grow = 2;
    ep              = open_unbound();
    env.refuse_keys = 1;
    ucs_log_push_handler(count_log);
    use_up(ep);
    test_req_init(&req, ep, req_start_put, &comp);
    assert_int_equal(uct_ep_pending_add(ep, &req.super, 0), UCS_OK);
    test_run();
    ucs_log_pop_handler();
    assert_int_equal(req.order, 1);
    assert_int_equal(comp.calls, 1);
    assert_memory_equal(to, from, sizeof(from));
}

static void open__no_keys__fails(void **state)
{
    (void)state;
    env.refuse_keys = 1;
    memset(&logged, 0, sizeof(logged));
    ucs_log_push_handler(count_log);
    assert_int_equal(test_try_open(), UCS_ERR_NO_MEMORY);
    ucs_log_pop_handler();
    assert_true(logged.errors > 0);
    assert_null(env.tl_iface);
}

#define TEST(_name) cmocka_unit_test_setup_teardown(_name, test_setup, \
                                                    test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounce_next__shorter_than_buffer__comes_whole),
        cmocka_unit_test(
                bounce_next__multiple_of_buffer__ends_without_an_empty_one),
        cmocka_unit_test(bounce_next__several_pieces__none_crosses_a_border),
        cmocka_unit_test(bounce_set_iov__empty_pieces__are_left_out),
        cmocka_unit_test(
                bounce_set_iov__repeated_piece__has_length_times_count),
        cmocka_unit_test(
                bounce_next__buffer_sizes_vary__covers_every_byte_once),
        TEST(put_zcopy__unbound_longer_than_queue__goes_as_room_comes),
        TEST(get_zcopy__unbound_longer_than_queue__goes_as_room_comes),
        TEST(get_zcopy__unbound_two_buffers__is_enough),
        TEST(put_zcopy__unbound_queue_full__has_no_resource),
        TEST(pending__bounce_from_a_request__others_stay_behind),
        TEST(pending_purge__bounce_active__it_goes_on),
        TEST(error_cqe__bounce_active__ends_once_and_copies_nothing_more),
        TEST(destroy__bounce_active__completes_as_cancelled),
        TEST(flush_cancel__bounce_active__both_end),
        TEST(put_zcopy__no_keys_since_open__is_bounced),
        TEST(get_zcopy__no_keys_since_open__is_bounced),
        TEST(pool__cannot_grow__warns_once_until_it_can),
        TEST(pending_add__pool_cannot_grow__is_queued),
        TEST(open__no_keys__fails)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
