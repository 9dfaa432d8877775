/* SPDX-License-Identifier: BSD-3-Clause */

/* Unit tests: endpoints on a device that is stepped: order, moderation,
 * credits, flush, fence, failure, and what an endpoint leaves behind. */

#include "hixl_ep_fixture.h"

#include <mlx5/wqe.h>

#include <string.h>

static uint64_t words[4096];

static ucs_status_t put_word(uct_ep_h ep, uint64_t *to, uint64_t value)
{
    return uct_ep_put_short(ep, &value, sizeof(value), (uintptr_t)to,
                            TEST_RKEY);
}

/* Posts until there is no room; returns how many */
static unsigned fill_queue(uct_ep_h ep)
{
    unsigned count = 0;
    ucs_status_t status;

    while ((status = put_word(ep, &words[0], count)) == UCS_OK) {
        ++count;
    }
    assert_int_equal(status, UCS_ERR_NO_RESOURCE);
    return count;
}

static ucs_status_t req_put_word(test_req_t *req)
{
    return put_word(req->ep, req->arg, 1);
}

static size_t pack_cb(void *dest, void *arg)
{
    memcpy(dest, arg, 512);
    return 512;
}

static size_t pack_nothing_cb(void *dest UCS_V_UNUSED, void *arg UCS_V_UNUSED)
{
    return 0;
}

static void unpack_cb(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

/* ---- operations ---- */

static void put_short__many__few_ask_for_a_cqe(void **state)
{
    test_qp_t *qp;
    unsigned i;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    qp = test_ep_qp(ep);
    for (i = 0; i < 48; ++i) {
        words[i] = 0;
        assert_int_equal(put_word(ep, &words[i], i + 1), UCS_OK);
    }
    assert_int_equal(test_step(UINT_MAX), 48);
    assert_int_equal(test_cq_used(env.iface->send_cq), 2);
    assert_int_equal(qp->count[HX_WQE_OP_RDMA_WRITE], 48);
    for (i = 0; i < 48; ++i) {
        assert_int_equal(words[i], i + 1);
    }
    test_progress();
    assert_int_equal(test_cq_used(env.iface->send_cq), 0);
}

static void put_get_bcopy__data__arrives(void **state)
{
    static uint8_t from[512], to[512], back[512];
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    test_fill(from, sizeof(from), 1);
    assert_int_equal(uct_ep_put_bcopy(ep, pack_cb, from, (uintptr_t)to,
                                      TEST_RKEY), 512);
    test_comp_init(&comp);
    assert_int_equal(uct_ep_get_bcopy(ep, unpack_cb, back, sizeof(back),
                                      (uintptr_t)to, TEST_RKEY, &comp.super),
                     UCS_INPROGRESS);
    assert_int_equal(comp.calls, 0);
    test_run();
    assert_memory_equal(to, from, sizeof(from));
    assert_memory_equal(back, from, sizeof(from));
    assert_int_equal(comp.calls, 1);
    assert_int_equal(comp.status, UCS_OK);
}

static void zero_length__operations__complete_at_once(void **state)
{
    uct_iov_t iov[2] = {test_iov(words, 0), test_iov(words, 0)};
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    assert_int_equal(uct_ep_put_zcopy(ep, iov, 2, 0, TEST_RKEY, NULL), UCS_OK);
    assert_int_equal(uct_ep_get_zcopy(ep, iov, 2, 0, TEST_RKEY, NULL), UCS_OK);
    assert_int_equal(uct_ep_put_bcopy(ep, pack_nothing_cb, NULL, 0, TEST_RKEY),
                     0);
    assert_int_equal(uct_ep_get_bcopy(ep, unpack_cb, NULL, 0, 0, TEST_RKEY,
                                      NULL), UCS_OK);
    assert_int_equal(test_step(UINT_MAX), 0);
}

static void put_zcopy__several_pieces__pinned_until_done(void **state)
{
    static uint8_t from[14][100], to[1400];
    uct_iov_t iov[14];
    test_comp_t comp;
    uct_ep_h ep;
    unsigned i;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    for (i = 0; i < 14; ++i) {
        test_fill(from[i], 100, i);
        iov[i] = test_iov(from[i], (i == 3) ? 0 : 100);
    }
    test_comp_init(&comp);
    assert_int_equal(uct_ep_put_zcopy(ep, iov, 14, (uintptr_t)to, TEST_RKEY,
                                      &comp.super), UCS_INPROGRESS);
    assert_int_equal(test_pins(), 13);
    assert_int_equal(test_step(UINT_MAX), 1);
    assert_int_equal(comp.calls, 0);
    test_progress();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(test_pins(), 0);
    for (i = 0; i < 13; ++i) {
        assert_memory_equal(to + i * 100, from[i + (i >= 3)], 100);
    }
}

static void get_zcopy__some_pieces_cannot_be_bound__pins_are_undone(
        void **state)
{
    static uint8_t from[300], to[3][100];
    uct_iov_t iov[3];
    test_comp_t comp;
    uct_ep_h ep;
    unsigned i;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    test_fill(from, sizeof(from), 5);
    for (i = 0; i < 3; ++i) {
        iov[i] = test_iov(to[i], 100);
    }
    test_bindable = 2;
    test_comp_init(&comp);
    assert_int_equal(uct_ep_get_zcopy(ep, iov, 3, (uintptr_t)from, TEST_RKEY,
                                      &comp.super), UCS_INPROGRESS);
    assert_int_equal(test_pins(), 0);
    test_run();
    assert_int_equal(comp.calls, 1);
    assert_memory_equal(to, from, 300);
    assert_int_equal(test_counter("hixl.bounce_get_bytes"), 300);
}

/* ---- order ---- */

static void post__queue_full__waits_and_nothing_overtakes(void **state)
{
    test_req_t req[3];
    unsigned i;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    test_req_init(&req[0], ep, req_put_word, &words[0]);
    assert_int_equal(uct_ep_pending_add(ep, &req[0].super, 0), UCS_ERR_BUSY);
    assert_in_range(fill_queue(ep), 32, 64);
    for (i = 0; i < 3; ++i) {
        test_req_init(&req[i], ep, req_put_word, &words[i]);
        assert_int_equal(uct_ep_pending_add(ep, &req[i].super, 0), UCS_OK);
    }

    /* Room is there, but those that wait come first */
    test_step(UINT_MAX);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_ERR_NO_RESOURCE);
    assert_int_equal(req[0].calls, 0);
    test_progress();
    for (i = 0; i < 3; ++i) {
        assert_int_equal(req[i].order, i + 1);
    }
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_run();
}

static void pending__another_endpoint_progresses__is_not_forgotten(
        void **state)
{
    test_req_t req;
    uct_ep_h full, other;

    (void)state;
    test_open();
    full  = test_ep_new(NULL);
    other = test_ep_new(NULL);
    fill_queue(full);
    test_req_init(&req, full, req_put_word, &words[0]);
    assert_int_equal(uct_ep_pending_add(full, &req.super, 0), UCS_OK);

    /* It gets its turn, in vain */
    assert_int_equal(put_word(other, &words[1], 1), UCS_OK);
    assert_int_equal(uct_ep_flush(other, 0, NULL), UCS_INPROGRESS);
    test_qp_step(test_ep_qp(other), 2);
    test_progress();
    assert_int_equal(req.calls, 1);
    assert_int_equal(req.order, 0);
    test_run();
    assert_int_equal(req.order, 1);
}

static void pending__endpoint_connecting__runs_when_ready(void **state)
{
    test_req_t req;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new_to_iface();
    assert_int_equal(put_word(ep, &words[0], 1), UCS_ERR_NO_RESOURCE);
    assert_int_equal(uct_ep_flush(ep, 0, NULL), UCS_OK);
    test_req_init(&req, ep, req_put_word, &words[0]);
    assert_int_equal(uct_ep_pending_add(ep, &req.super, 0), UCS_OK);
    assert_int_equal(uct_ep_flush(ep, 0, NULL), UCS_ERR_NO_RESOURCE);
    test_run();
    assert_int_equal(req.calls, 0);
    test_ep_ready(ep, NULL);
    test_run();
    assert_int_equal(req.order, 1);
}

static void purge_cb(uct_pending_req_t *self, void *arg)
{
    test_req_t *req = ucs_container_of(self, test_req_t, super);

    req->order = ++*(unsigned*)arg;
}

static void pending_purge__several__in_order(void **state)
{
    unsigned count = 0;
    test_req_t req[3];
    uct_ep_h ep;
    unsigned i;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    fill_queue(ep);
    for (i = 0; i < 3; ++i) {
        test_req_init(&req[i], ep, req_put_word, &words[i]);
        assert_int_equal(uct_ep_pending_add(ep, &req[i].super, 0), UCS_OK);
    }
    uct_ep_pending_purge(ep, purge_cb, &count);
    assert_int_equal(count, 3);
    for (i = 0; i < 3; ++i) {
        assert_int_equal(req[i].order, i + 1);
        assert_int_equal(req[i].calls, 0);
    }
    test_run();
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
}

/* Indexes have 16 bits: several times around */
static void post__a_hundred_thousand__indexes_wrap(void **state)
{
    unsigned done = 0;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    while (done < 100000) {
        done += fill_queue(ep);
        test_run();
    }
    assert_int_equal(test_ep_qp(ep)->executed, done);
}

/* ---- credits ---- */

static void credits__many_endpoints_post__cq_never_overruns(void **state)
{
    uct_ep_h ep[20];
    unsigned posted = 0;
    unsigned round, i;

    (void)state;
    test_open();
    for (i = 0; i < 20; ++i) {
        ep[i] = test_ep_new(NULL);
    }

    /* Each leaves a tail that asks for no CQE: together all the credits */
    for (round = 0; round < 200; ++round) {
        for (i = 0; i < 20; ++i) {
            if (put_word(ep[(round + i) % 20], &words[0], 1) == UCS_OK) {
                ++posted;
            }
        }
        if (round % 3 == 0) {
            test_run();
        }
    }
    assert_true(posted > 2000);
    test_run();
    for (i = 0; i < 20; ++i) {
        assert_int_equal(put_word(ep[i], &words[0], 1), UCS_OK);
        test_run();
    }
}

static void credits__queues_flushed_with_errors__cq_never_overruns(void **state)
{
    uct_ep_h ep[8];
    unsigned i;

    (void)state;
    test_open();
    for (i = 0; i < 8; ++i) {
        ep[i] = test_ep_new(NULL);
        while (put_word(ep[i], &words[0], 1) == UCS_OK) {
        }
    }
    for (i = 0; i < 8; ++i) {
        test_ep_qp(ep[i])->error = 1;
    }
    test_step(UINT_MAX); /* a CQE a WQE; the double asserts the room */
    test_run();
    assert_int_equal(uct_iface_flush(env.tl_iface, 0, NULL), UCS_OK);
}

/* WQEs of four blocks, so that not one credit is left for a NOP */
static void credits__last_one_spent__come_back(void **state)
{
    static uint8_t data[200], to[200];
    unsigned posted = 0;
    uct_ep_h ep[20];
    unsigned i;

    (void)state;
    test_open();
    for (i = 0; i < 20; ++i) {
        ep[i] = test_ep_new(NULL);
    }
    for (i = 0; i < 80; ++i) {
        if (uct_ep_put_short(ep[i / 4], data, sizeof(data), (uintptr_t)to,
                             TEST_RKEY) == UCS_OK) {
            ++posted;
        }
    }
    assert_int_equal(posted, 56);
    assert_int_equal(env.iface->tx.cq_credits, 0);
    test_run();
    for (i = 0; i < 20; ++i) {
        assert_int_equal(put_word(ep[i], &words[0], 1), UCS_OK);
    }
    test_run();
}

static void tx_bufs__held_by_unsignaled_tails__come_back(void **state)
{
    static uint8_t from[512], to[512];
    uct_ep_h ep[2];
    unsigned i, n;

    (void)state;
    env.config.tx_mpool.max_bufs  = 8;
    env.config.tx_mpool.bufs_grow = 8;
    test_open();
    for (i = 0; i < 2; ++i) {
        ep[i] = test_ep_new(NULL);
        for (n = 0; n < 4; ++n) {
            assert_int_equal(uct_ep_put_bcopy(ep[i], pack_cb, from,
                                              (uintptr_t)to, TEST_RKEY), 512);
        }
    }
    test_run();
    assert_int_equal(uct_ep_put_bcopy(ep[0], pack_cb, from, (uintptr_t)to,
                                      TEST_RKEY), UCS_ERR_NO_RESOURCE);
    test_run();
    for (n = 0; n < 8; ++n) {
        assert_int_equal(uct_ep_put_bcopy(ep[0], pack_cb, from, (uintptr_t)to,
                                          TEST_RKEY), 512);
    }
    test_run();
}

/* ---- flush and fence ---- */

static void flush__unsignaled_tail__completes_by_a_nop(void **state)
{
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    assert_int_equal(uct_ep_flush(ep, 0, NULL), UCS_OK);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_comp_init(&comp);
    assert_int_equal(uct_ep_flush(ep, 0, &comp.super), UCS_INPROGRESS);
    assert_int_equal(uct_ep_flush(ep, 0, NULL), UCS_INPROGRESS);
    test_run();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(comp.status, UCS_OK);
    assert_int_equal(test_ep_qp(ep)->count[HX_WQE_OP_NOP], 1);
    assert_int_equal(uct_ep_flush(ep, 0, NULL), UCS_OK);
    assert_int_equal(uct_iface_flush(env.tl_iface, 0, NULL), UCS_OK);
}

static void flush__later_posts__does_not_wait_for_them(void **state)
{
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_comp_init(&comp);
    assert_int_equal(uct_ep_flush(ep, 0, &comp.super), UCS_INPROGRESS);
    assert_int_equal(put_word(ep, &words[1], 1), UCS_OK);
    assert_int_equal(test_step(2), 2); /* the first, and its NOP */
    test_progress();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(uct_iface_flush(env.tl_iface, 0, NULL), UCS_INPROGRESS);
    test_run();
}

static void flush_cancel__outstanding__all_end_and_no_error_is_told(
        void **state)
{
    static uint8_t data[64];
    uct_iov_t iov = test_iov(data, sizeof(data));
    test_comp_t put, flush;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    test_comp_init(&put);
    test_comp_init(&flush);
    assert_int_equal(uct_ep_put_zcopy(ep, &iov, 1, (uintptr_t)words, TEST_RKEY,
                                      &put.super), UCS_INPROGRESS);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    assert_int_equal(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, &flush.super),
                     UCS_INPROGRESS);
    test_run();
    assert_int_equal(test_ep_qp(ep)->executed, 0);
    assert_int_equal(put.calls, 1);
    assert_int_equal(put.status, UCS_ERR_CANCELED);
    assert_int_equal(flush.calls, 1);
    assert_int_equal(env.err_calls, 0);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_ERR_CANCELED);
    assert_int_equal(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, NULL), UCS_OK);
}

static void fence__after_a_get__only_the_next_wqe_has_it(void **state)
{
    static uint8_t data[64];
    test_qp_t *qp;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    qp = test_ep_qp(ep);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    assert_int_equal(uct_ep_fence(ep, 0), UCS_OK);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_run();
    assert_int_equal(qp->last_fm_ce_se & HX_WQE_FENCE, 0);

    assert_int_equal(uct_ep_get_bcopy(ep, unpack_cb, data, sizeof(data),
                                      (uintptr_t)words, TEST_RKEY, NULL),
                     UCS_INPROGRESS);
    assert_int_equal(uct_iface_fence(env.tl_iface, 0), UCS_OK);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_run();
    assert_int_equal(qp->last_fm_ce_se & HX_WQE_FENCE, HX_WQE_FENCE);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_run();
    assert_int_equal(qp->last_fm_ce_se & HX_WQE_FENCE, 0);
}

static void fence__while_requests_wait__holds_behind_them(void **state)
{
    test_req_t req;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    fill_queue(ep);
    test_req_init(&req, ep, req_put_word, &words[1]);
    assert_int_equal(uct_ep_pending_add(ep, &req.super, 0), UCS_OK);
    assert_int_equal(uct_ep_fence(ep, 0), UCS_OK);
    test_run();
    assert_int_equal(req.order, 1);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_run();
    assert_int_equal(test_ep_qp(ep)->last_fm_ce_se & HX_WQE_FENCE,
                     HX_WQE_FENCE);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_run();
    assert_int_equal(test_ep_qp(ep)->last_fm_ce_se & HX_WQE_FENCE, 0);
}

/* ---- failure ---- */

static void error_cqe__one_endpoint__ends_its_operations_and_no_others(
        void **state)
{
    static uint8_t data[64];
    uct_iov_t iov = test_iov(data, sizeof(data));
    test_comp_t comp[3], other;
    uct_ep_h ep, healthy;
    unsigned i;

    (void)state;
    test_open();
    ep      = test_ep_new(NULL);
    healthy = test_ep_new(NULL);
    for (i = 0; i < 3; ++i) {
        test_comp_init(&comp[i]);
        assert_int_equal(uct_ep_put_zcopy(ep, &iov, 1, (uintptr_t)words,
                                          TEST_RKEY, &comp[i].super),
                         UCS_INPROGRESS);
    }
    test_comp_init(&other);
    assert_int_equal(uct_ep_put_zcopy(healthy, &iov, 1, (uintptr_t)words,
                                      TEST_RKEY, &other.super),
                     UCS_INPROGRESS);

    test_step(1);
    test_ep_qp(ep)->fail_syndrome = MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
    test_run();
    assert_int_equal(comp[0].status, UCS_OK);
    for (i = 0; i < 3; ++i) {
        assert_int_equal(comp[i].calls, 1);
    }
    assert_int_equal(comp[1].status, UCS_ERR_ENDPOINT_TIMEOUT);
    assert_int_equal(comp[2].status, UCS_ERR_ENDPOINT_TIMEOUT);
    assert_int_equal(env.err_calls, 1);
    assert_ptr_equal(env.err_ep, ep);
    assert_int_equal(env.err_status, UCS_ERR_ENDPOINT_TIMEOUT);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_ERR_ENDPOINT_TIMEOUT);
    assert_int_equal(test_pins(), 0);

    assert_int_equal(other.calls, 1);
    assert_int_equal(other.status, UCS_OK);
    assert_int_equal(put_word(healthy, &words[0], 1), UCS_OK);
    assert_int_equal(uct_iface_flush(env.tl_iface, 0, NULL), UCS_INPROGRESS);
    test_run();
    assert_int_equal(uct_iface_flush(env.tl_iface, 0, NULL), UCS_OK);
}

static void error_cqe__requests_wait__are_kept_for_the_purge(void **state)
{
    unsigned count = 0;
    test_req_t req, late;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    fill_queue(ep);
    test_req_init(&req, ep, req_put_word, &words[0]);
    assert_int_equal(uct_ep_pending_add(ep, &req.super, 0), UCS_OK);
    test_ep_qp(ep)->fail_syndrome = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
    test_run();
    assert_int_equal(env.err_calls, 1);
    assert_int_equal(env.err_status, UCS_ERR_CONNECTION_RESET);
    assert_int_equal(req.calls, 0);
    test_req_init(&late, ep, req_put_word, &words[0]);
    assert_int_equal(uct_ep_pending_add(ep, &late.super, 0), UCS_ERR_BUSY);
    uct_ep_pending_purge(ep, purge_cb, &count);
    assert_int_equal(count, 1);
}

static void link_failed__unsignaled_tail__everything_comes_back(void **state)
{
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new_to_iface();
    test_ep_ready(ep, NULL);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_step(UINT_MAX); /* executed, and no CQE says so */
    uct_hixl_ep_link_failed(test_ep(ep), test_ep(ep)->link,
                            UCS_ERR_CONNECTION_RESET);
    assert_int_equal(env.err_calls, 1);
    assert_int_equal(env.err_status, UCS_ERR_CONNECTION_RESET);
    assert_int_equal(uct_iface_flush(env.tl_iface, 0, NULL), UCS_INPROGRESS);
    test_run();
    assert_int_equal(uct_iface_flush(env.tl_iface, 0, NULL), UCS_OK);
    uct_ep_destroy(ep);
    assert_int_equal(env.aborted, 1);
    assert_int_equal(env.err_calls, 1);
}

static void link_failed__then_flush_cancel__ends(void **state)
{
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new_to_iface();
    test_ep_ready(ep, NULL);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    uct_hixl_ep_link_failed(test_ep(ep), test_ep(ep)->link,
                            UCS_ERR_CONNECTION_RESET);
    test_comp_init(&comp);
    assert_int_equal(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, &comp.super),
                     UCS_INPROGRESS);
    test_run();
    assert_int_equal(comp.calls, 1);
    uct_ep_destroy(ep);
    assert_int_equal(env.aborted, 1);
    assert_int_equal(env.err_calls, 1);
}

static void link_failed__peer_left__is_an_error_for_who_goes_on(void **state)
{
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new_to_iface();
    test_ep_ready(ep, NULL);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    uct_hixl_ep_link_failed(test_ep(ep), test_ep(ep)->link,
                            UCS_ERR_NOT_CONNECTED);
    test_comp_init(&comp);
    assert_int_equal(uct_ep_flush(ep, 0, &comp.super), UCS_INPROGRESS);
    test_run();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(comp.status, UCS_OK);
    assert_int_equal(uct_ep_flush(ep, 0, NULL), UCS_OK);
    assert_int_equal(env.err_calls, 0);

    assert_int_equal(put_word(ep, &words[0], 1), UCS_ERR_NOT_CONNECTED);
    assert_int_equal(env.err_calls, 0); /* not from inside of a post */
    test_run();
    assert_int_equal(env.err_calls, 1);
    assert_int_equal(env.err_status, UCS_ERR_NOT_CONNECTED);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_ERR_NOT_CONNECTED);
    assert_int_equal(uct_ep_flush(ep, 0, NULL), UCS_ERR_NOT_CONNECTED);
    test_run();
    assert_int_equal(env.err_calls, 1);
    uct_ep_destroy(ep);
    assert_int_equal(env.released, 1);
}

/* A message whose sender died may hold a receive: only the error state gives it
 * back, and it holds up all that were posted behind it */
static void link_failed__nothing_outstanding__qp_is_in_error(void **state)
{
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new_to_iface();
    test_ep_ready(ep, NULL);
    uct_hixl_ep_link_failed(test_ep(ep), test_ep(ep)->link,
                            UCS_ERR_CONNECTION_RESET);
    assert_int_equal(test_ep_qp(ep)->error, 1);
    uct_ep_destroy(ep);
}

/* The handler of connections may be at work on the QP */
static void cancel__link_not_ready__qp_is_left_alone(void **state)
{
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new_to_iface();
    assert_int_equal(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, NULL), UCS_OK);
    assert_int_equal(test_ep_qp(ep)->error, 0);
    uct_ep_destroy(ep);
}

static void destroy__link_in_good_order__qp_is_in_error_first(void **state)
{
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_run();
    uct_ep_destroy(ep);
    test_run();
    assert_int_equal(env.destroyed_live, 0);
}

static unsigned logged_errors;

static ucs_log_func_rc_t count_errors(const char *file UCS_V_UNUSED,
                                      unsigned line UCS_V_UNUSED,
                                      const char *function UCS_V_UNUSED,
                                      ucs_log_level_t level,
                                      const ucs_log_component_config_t
                                              *component UCS_V_UNUSED,
                                      const char *message UCS_V_UNUSED,
                                      va_list ap UCS_V_UNUSED)
{
    logged_errors += level <= UCS_LOG_LEVEL_ERROR;
    return UCS_LOG_FUNC_RC_CONTINUE;
}

/* That a peer is gone is news for the user's handler, and no error of ours */
static void link_failed__for_the_peer_s_sake__is_no_error_in_the_log(
        void **state)
{
    static const ucs_status_t statuses[] = {
        UCS_ERR_CONNECTION_RESET, UCS_ERR_ENDPOINT_TIMEOUT,
        UCS_ERR_UNREACHABLE, UCS_ERR_REJECTED, UCS_ERR_TIMED_OUT,
        UCS_ERR_IO_ERROR /* this one is */
    };
    uct_ep_h ep;
    unsigned i;

    (void)state;
    test_open();
    logged_errors = 0;
    ucs_log_push_handler(count_errors);
    for (i = 0; i < ucs_static_array_size(statuses); ++i) {
        assert_int_equal(logged_errors, 0);
        ep = test_ep_new_to_iface();
        uct_hixl_ep_link_failed(test_ep(ep), test_ep(ep)->link, statuses[i]);
        assert_int_equal(env.err_calls, i + 1);
        assert_int_equal(env.err_status, statuses[i]);
        uct_ep_destroy(ep);
    }
    ucs_log_pop_handler();
    assert_int_equal(logged_errors, 1);
}

static void link_failed__peer_left_the_last_lost__is_reported(void **state)
{
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new_to_iface();
    test_ep_ready(ep, NULL);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_ep_qp(ep)->fail_syndrome = MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
    uct_hixl_ep_link_failed(test_ep(ep), test_ep(ep)->link,
                            UCS_ERR_NOT_CONNECTED);
    test_comp_init(&comp);
    assert_int_equal(uct_ep_flush(ep, 0, &comp.super), UCS_INPROGRESS);
    test_run();
    assert_int_equal(comp.calls, 1);
    assert_int_not_equal(comp.status, UCS_OK);
    assert_int_equal(env.err_calls, 1);
    assert_int_not_equal(uct_ep_flush(ep, 0, NULL), UCS_OK);
    uct_ep_destroy(ep);
    assert_int_equal(env.aborted, 1);
}

/* ---- what an endpoint leaves behind ---- */

static void destroy__nothing_outstanding__link_goes_back_at_once(void **state)
{
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new_to_iface();
    uct_ep_destroy(ep);
    assert_int_equal(env.released, 1);

    ep = test_ep_new_to_iface();
    test_ep_ready(ep, NULL);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    assert_int_equal(uct_ep_flush(ep, 0, NULL), UCS_INPROGRESS);
    test_run();
    uct_ep_destroy(ep);
    assert_int_equal(env.released, 2);
    assert_int_equal(env.aborted, 0);
}

static void destroy__shorts_outstanding__are_delivered(void **state)
{
    uct_ep_h ep;

    (void)state;
    test_open();
    ep       = test_ep_new_to_iface();
    words[7] = 0;
    test_ep_ready(ep, NULL);
    assert_int_equal(put_word(ep, &words[7], 7), UCS_OK);
    uct_ep_destroy(ep);
    assert_int_equal(env.released, 0);
    test_run();
    assert_int_equal(words[7], 7);
    assert_int_equal(env.released, 1);
    assert_int_equal(env.aborted, 0);
}

static void destroy__zcopy_outstanding__memory_is_left_alone(void **state)
{
    static uint8_t data[64];
    uct_iov_t iov = test_iov(data, sizeof(data));
    test_comp_t get, bcopy;
    uint8_t other[64];
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new_to_iface();
    test_ep_ready(ep, NULL);
    memset(data, 1, sizeof(data));
    memset(words, 2, sizeof(data));
    test_comp_init(&get);
    test_comp_init(&bcopy);
    assert_int_equal(uct_ep_get_zcopy(ep, &iov, 1, (uintptr_t)words, TEST_RKEY,
                                      &get.super), UCS_INPROGRESS);
    assert_int_equal(uct_ep_get_bcopy(ep, unpack_cb, other, sizeof(other),
                                      (uintptr_t)words, TEST_RKEY,
                                      &bcopy.super), UCS_INPROGRESS);
    uct_ep_destroy(ep);
    assert_int_equal(get.calls, 1);
    assert_int_equal(get.status, UCS_ERR_CANCELED);
    assert_int_equal(bcopy.calls, 1);
    test_run();
    assert_int_equal(get.calls, 1);
    assert_int_equal(bcopy.calls, 1);
    assert_int_equal(data[0], 1);
    assert_int_equal(test_pins(), 0);
    assert_int_equal(env.aborted, 1);
}

static void unpack_never_cb(void *arg UCS_V_UNUSED,
                            const void *data UCS_V_UNUSED,
                            size_t length UCS_V_UNUSED)
{
    fail_msg("unpacked after the endpoint was destroyed");
}

static void destroy__get_bcopy_outstanding__nothing_is_unpacked(void **state)
{
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    test_comp_init(&comp);
    assert_int_equal(uct_ep_get_bcopy(ep, unpack_never_cb, NULL, 64,
                                      (uintptr_t)words, TEST_RKEY,
                                      &comp.super), UCS_INPROGRESS);
    uct_ep_destroy(ep);
    assert_int_equal(comp.calls, 1);
    assert_int_equal(comp.status, UCS_ERR_CANCELED);
    test_run();
    assert_int_equal(comp.calls, 1);
}

static void close__links_still_draining__all_goes(void **state)
{
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new_to_iface();
    test_ep_ready(ep, NULL);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    uct_ep_destroy(ep);
    ep = test_ep_new(NULL);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    uct_ep_destroy(ep);
    uct_iface_close(env.tl_iface); /* the teardown looks for what is left */
    env.tl_iface = NULL;
    assert_int_equal(env.aborted, 1);
}

static void destroy_other_cb(uct_completion_t *self)
{
    test_comp_t *comp = ucs_container_of(self, test_comp_t, super);

    ++comp->calls;
    uct_ep_destroy(env.err_ep);
}

static void destroy__from_a_completion__waits_for_the_poll(void **state)
{
    static uint8_t data[64];
    uct_iov_t iov = test_iov(data, sizeof(data));
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep         = test_ep_new(NULL);
    env.err_ep = test_ep_new_to_iface();
    test_comp_init(&comp);
    comp.super.func = destroy_other_cb;
    assert_int_equal(uct_ep_put_zcopy(ep, &iov, 1, (uintptr_t)words, TEST_RKEY,
                                      &comp.super), UCS_INPROGRESS);
    test_run();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(env.released, 1);
}

static void destroy__from_its_own_completion__ends_the_rest(void **state)
{
    static uint8_t data[64];
    uct_iov_t iov = test_iov(data, sizeof(data));
    test_comp_t put, flush;
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = env.err_ep = test_ep_new_to_iface();
    test_ep_ready(ep, NULL);
    test_comp_init(&put);
    test_comp_init(&flush);
    put.super.func = destroy_other_cb;
    assert_int_equal(uct_ep_put_zcopy(ep, &iov, 1, (uintptr_t)words, TEST_RKEY,
                                      &put.super), UCS_INPROGRESS);
    assert_int_equal(uct_ep_flush(ep, 0, &flush.super), UCS_INPROGRESS);
    test_run();
    assert_int_equal(put.calls, 1);
    assert_int_equal(flush.calls, 1);
    assert_int_equal(flush.status, UCS_ERR_CANCELED);
    assert_int_equal(env.released, 1);
}

static void check__peer_is_gone__endpoint_fails(void **state)
{
    uct_ep_h ep;

    (void)state;
    test_open();
    ep = test_ep_new(NULL);
    assert_int_equal(uct_ep_check(ep, 0, NULL), UCS_OK);
    test_run();
    assert_int_equal(env.err_calls, 0);
    test_ep_qp(ep)->fail_syndrome = MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
    assert_int_equal(uct_ep_check(ep, 0, NULL), UCS_OK);
    test_run();
    assert_int_equal(env.err_calls, 1);
}

#define TEST(_name) cmocka_unit_test_setup_teardown(_name, test_setup, \
                                                    test_teardown)

static void device_gone__outstanding_and_connecting__all_fail_once(
        void **state)
{
    test_comp_t comp;
    uct_ep_h ep, young;

    (void)state;
    test_open();
    ep    = test_ep_new(NULL);
    young = test_ep_new_to_iface();
    assert_int_equal(put_word(ep, &words[0], 1), UCS_OK);
    test_comp_init(&comp);
    assert_int_equal(uct_ep_flush(ep, 0, &comp.super), UCS_INPROGRESS);

    env.iface->md->dev->gone = true;
    env.iface->cm_events     = 1;
    test_progress();
    assert_int_equal(env.err_calls, 2);
    assert_int_equal(env.err_status, UCS_ERR_ENDPOINT_TIMEOUT);
    assert_int_equal(comp.calls, 1);
    assert_int_equal(comp.status, UCS_ERR_ENDPOINT_TIMEOUT);
    assert_int_equal(put_word(ep, &words[0], 1), UCS_ERR_ENDPOINT_TIMEOUT);
    assert_int_equal(put_word(young, &words[0], 1), UCS_ERR_ENDPOINT_TIMEOUT);

    /* CQEs that were under way, and a link that was: too late */
    test_run();
    test_ep_ready(young, NULL);
    env.iface->cm_events = 1;
    test_run();
    assert_int_equal(env.err_calls, 2);
    assert_int_equal(comp.calls, 1);
    assert_int_equal(put_word(young, &words[0], 1), UCS_ERR_ENDPOINT_TIMEOUT);
    uct_ep_destroy(young);
    assert_int_equal(env.aborted, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(put_short__many__few_ask_for_a_cqe),
        TEST(put_get_bcopy__data__arrives),
        TEST(zero_length__operations__complete_at_once),
        TEST(put_zcopy__several_pieces__pinned_until_done),
        TEST(get_zcopy__some_pieces_cannot_be_bound__pins_are_undone),
        TEST(post__queue_full__waits_and_nothing_overtakes),
        TEST(pending__another_endpoint_progresses__is_not_forgotten),
        TEST(pending__endpoint_connecting__runs_when_ready),
        TEST(pending_purge__several__in_order),
        TEST(post__a_hundred_thousand__indexes_wrap),
        TEST(credits__many_endpoints_post__cq_never_overruns),
        TEST(credits__queues_flushed_with_errors__cq_never_overruns),
        TEST(credits__last_one_spent__come_back),
        TEST(tx_bufs__held_by_unsignaled_tails__come_back),
        TEST(flush__unsignaled_tail__completes_by_a_nop),
        TEST(flush__later_posts__does_not_wait_for_them),
        TEST(flush_cancel__outstanding__all_end_and_no_error_is_told),
        TEST(device_gone__outstanding_and_connecting__all_fail_once),
        TEST(fence__after_a_get__only_the_next_wqe_has_it),
        TEST(fence__while_requests_wait__holds_behind_them),
        TEST(error_cqe__one_endpoint__ends_its_operations_and_no_others),
        TEST(error_cqe__requests_wait__are_kept_for_the_purge),
        TEST(link_failed__unsignaled_tail__everything_comes_back),
        TEST(link_failed__then_flush_cancel__ends),
        TEST(link_failed__peer_left__is_an_error_for_who_goes_on),
        TEST(link_failed__nothing_outstanding__qp_is_in_error),
        TEST(cancel__link_not_ready__qp_is_left_alone),
        TEST(destroy__link_in_good_order__qp_is_in_error_first),
        TEST(link_failed__for_the_peer_s_sake__is_no_error_in_the_log),
        TEST(link_failed__peer_left_the_last_lost__is_reported),
        TEST(destroy__nothing_outstanding__link_goes_back_at_once),
        TEST(destroy__shorts_outstanding__are_delivered),
        TEST(destroy__zcopy_outstanding__memory_is_left_alone),
        TEST(destroy__get_bcopy_outstanding__nothing_is_unpacked),
        TEST(close__links_still_draining__all_goes),
        TEST(destroy__from_a_completion__waits_for_the_poll),
        TEST(destroy__from_its_own_completion__ends_the_rest),
        TEST(check__peer_is_gone__endpoint_fails)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
