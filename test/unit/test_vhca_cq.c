/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion queues and events: wrap, overrun, arming, channels of all kinds,
 * full channels, the state machine of a QP. */

#include <pthread.h>

#include "vhca_node.h"

/* Both ends in this process */
static void self_open(struct node *n, const struct node_cfg *cfg)
{
    node_open(n, cfg);
    n->peer = node_info(n);
    node_connect(n, 0x504);
}

static void write_one(struct node *n)
{
    struct post post = post_rdma(n, 0x08, 0, 8192, 16);

    node_post(n, &post);
}

static bool readable(int fd, int ms)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };

    return poll(&pfd, 1, ms) == 1;
}

static void arm(struct node *n, uint32_t sn, uint32_t cmd)
{
    __atomic_store_n(&n->db[17], htobe32(sn << 28 | cmd |
                                         (n->ci & 0xffffff)),
                     __ATOMIC_SEQ_CST);
    assert_int_equal(vhca_doorbell(VHCA_DOORBELL_CQ_ARM, n->cqn), 0);
}

static void cq__many_wraps__owner_bit_follows(void **state)
{
    static const uint8_t sizes[] = { 64, 128 };
    unsigned k, i;

    (void)state;
    for (k = 0; k < 2; ++k) {
        struct node_cfg cfg = { .cqe_size = sizes[k], .log_cq = 2 };
        const struct cqe64 *cqe;
        struct node n;

        self_open(&n, &cfg);
        for (i = 0; i < 4 * 5 + 1; ++i) {
            assert_null(node_poll(&n));
            write_one(&n);
            cqe = node_poll(&n);
            cqe_is(cqe, 0, 0, i);
            assert_int_equal(cqe->op_own & 1, (i >> 2) & 1);
        }
        node_close(&n);
    }
}

static void cq__created__entries_are_invalid(void **state)
{
    struct node_cfg cfg = { .cqe_size = 128 };
    struct node n;
    unsigned i;

    (void)state;
    node_open(&n, &cfg);
    for (i = 0; i < 1u << NODE_LOG_CQ; ++i) {
        assert_int_equal(n.cq[i * 128 + 127], 0xf1);
    }
    node_close(&n);
}

/* As libmlx5 does: what was not read is copied one index on, up to the mark. */
static void cq__resized__old_ring_ends_with_a_mark(void **state)
{
    enum { NEW_LOG = 4 };
    struct node_cfg cfg = { .log_cq = 2 };
    struct vhca_fw fw;
    struct node n;
    uint8_t *ring;
    unsigned i;

    (void)state;
    self_open(&n, &cfg);
    ring = node_pages(64u << NEW_LOG);
    write_one(&n);
    cqe_is(node_poll(&n), 0, 0, 0);
    write_one(&n);
    write_one(&n);

    assert_true(vhca_cq_resize(n.owner, n.cqn, ring, NEW_LOG, &fw));
    cqe_is((void*)(n.cq + 1 * 64), 0, 0, 1);
    cqe_is((void*)(n.cq + 2 * 64), 0, 0, 2);
    assert_int_equal(n.cq[3 * 64 + 63], 0x50);
    for (i = 0; i < 1u << NEW_LOG; ++i) {
        assert_int_equal(ring[i * 64 + 63], 0xf1);
    }

    /* index 4, the second turn of the old ring, is the first of the new one */
    write_one(&n);
    cqe_is((void*)(ring + 4 * 64), 0, 0, 3);
    assert_int_equal(ring[4 * 64 + 63] & 1, 0);

    /* two that are unread, and the mark, do not fit into two */
    assert_false(vhca_cq_resize(n.owner, n.cqn, n.cq, 1, &fw));
    assert_int_equal(fw.status, VHCA_FW_BAD_RES_STATE);
    assert_false(vhca_cq_resize(n.owner + 1, n.cqn, n.cq, 2, &fw));
    assert_int_equal(fw.status, VHCA_FW_BAD_RESOURCE);
    node_close(&n);
    munmap(ring, 64u << NEW_LOG);
}

static void cq__set_ci_not_moved__error_event_and_qp_in_error(void **state)
{
    struct node_cfg cfg = { .no_oi = true, .log_cq = 2 };
    struct vhca_qp_info info;
    struct vhca_fw fw;
    struct node n;
    uint64_t cookie;
    uint32_t chan;
    int fd, i;

    (void)state;
    self_open(&n, &cfg);
    assert_int_equal(vhca_channel_create(n.owner, VHCA_CHANNEL_DEVX_EVENT,
                                         true, &fd, &chan), 0);
    assert_int_equal(vhca_event_subscribe(chan, 0x04, n.cqn, 0x1234), 0);
    for (i = 0; i < 4; ++i) {
        write_one(&n);
    }
    assert_false(readable(fd, 0));
    write_one(&n); /* the fifth has no place */
    assert_true(readable(fd, 1000));
    assert_int_equal(read(fd, &cookie, sizeof(cookie)), 8);
    assert_true(cookie == 0x1234);
    assert_true(vhca_qp_query(n.owner, n.qpn, &info, &fw));
    assert_int_equal(info.state, VHCA_QP_ERR);
    /* the four that fitted are whole */
    for (i = 0; i < 4; ++i) {
        cqe_is(node_poll(&n), 0, 0, i);
    }
    assert_null(node_poll(&n));
    close(fd);
    node_close(&n);
}

static void cq__oi_set__overwrites_without_error(void **state)
{
    struct node_cfg cfg = { .log_cq = 2 };
    struct node n;
    int i;

    (void)state;
    self_open(&n, &cfg);
    for (i = 0; i < 11; ++i) {
        write_one(&n);
    }
    n.ci = 10;
    cqe_is(node_poll(&n), 0, 0, 10);
    node_close(&n);
}

static void arm__before_and_after_the_cqe__one_event_each(void **state)
{
    struct node_cfg cfg = { 0 };
    uint64_t cookie;
    struct node n;
    uint32_t chan;
    int fd;

    (void)state;
    self_open(&n, &cfg);
    assert_int_equal(vhca_channel_create(n.owner, VHCA_CHANNEL_COMP, false,
                                         &fd, &chan), 0);
    assert_int_equal(vhca_event_subscribe(chan, 0, n.cqn, 77), 0);

    arm(&n, 0, 0);      /* 0 over 0 */
    assert_false(readable(fd, 0));
    write_one(&n);
    assert_int_equal(read(fd, &cookie, sizeof(cookie)), 8);
    assert_true(cookie == 77);
    write_one(&n);      /* fired: not again */
    assert_false(readable(fd, 0));

    arm(&n, 1, 0);      /* two unseen ones: at once */
    assert_true(readable(fd, 0));
    assert_int_equal(read(fd, &cookie, sizeof(cookie)), 8);
    assert_non_null(node_poll(&n));
    assert_non_null(node_poll(&n));
    arm(&n, 2, 0);      /* all seen: later */
    assert_false(readable(fd, 0));
    write_one(&n);
    assert_true(readable(fd, 0));
    close(fd);
    node_close(&n);
}

static void arm__solicited__only_a_solicited_receive_or_an_error(void **state)
{
    struct node_cfg cfg = { .rnr_retry = 7 };
    struct post post;
    struct node n;
    uint64_t cookie;
    uint32_t chan;
    int fd, i;

    (void)state;
    self_open(&n, &cfg);
    assert_int_equal(vhca_channel_create(n.owner, VHCA_CHANNEL_COMP, false,
                                         &fd, &chan), 0);
    assert_int_equal(vhca_event_subscribe(chan, 0, n.cqn, 5), 0);
    for (i = 0; i < 3; ++i) {
        node_recv(&n, n.buf + 4096, 64);
    }
    node_recv_ring(&n);
    arm(&n, 0, 1u << 24);
    post = post_send(&n, 0, 8);
    node_post(&n, &post);
    write_one(&n);
    assert_false(readable(fd, 0));
    post.fm_ce_se = 0x0a;
    node_post(&n, &post);
    assert_true(readable(fd, 0));
    assert_int_equal(read(fd, &cookie, sizeof(cookie)), 8);

    while (node_poll(&n) != NULL) {
    }
    arm(&n, 1, 1u << 24);
    post = post_rdma(&n, 0x08, 0, 0, 8);
    post.rkey ^= 1;
    node_post(&n, &post);
    assert_true(readable(fd, 0));
    close(fd);
    node_close(&n);
}

static void event__not_omitted__cookie_then_eqe(void **state)
{
    struct node_cfg cfg = { 0 };
    uint8_t data[128];
    struct node n;
    uint32_t chan, number;
    int fd;

    (void)state;
    self_open(&n, &cfg);
    assert_int_equal(vhca_channel_create(n.owner, VHCA_CHANNEL_DEVX_EVENT,
                                         false, &fd, &chan), 0);
    assert_int_equal(vhca_event_subscribe(chan, 0, n.cqn, 9), 0);
    assert_int_equal(vhca_event_subscribe(chan, 0x13, n.qpn, 10), 0);
    arm(&n, 1, 0);
    write_one(&n);
    assert_int_equal(read(fd, data, sizeof(data)), 72);
    assert_int_equal(data[8 + 1], 0);
    memcpy(&number, data + 8 + 56, 4);
    assert_int_equal(be32toh(number), n.cqn);

    /* into error: the last WQE event of a QP on an RMP */
    assert_true(node_modify(&n, 0x507, NULL));
    assert_int_equal(read(fd, data, sizeof(data)), 72);
    assert_int_equal(data[0], 10);
    assert_int_equal(data[8 + 1], 0x13);
    memcpy(&number, data + 8 + 56, 4);
    assert_int_equal(be32toh(number), n.qpn);
    close(fd);
    node_close(&n);
}

static void event__channel_is_full__nothing_blocks_nothing_is_lost(void **state)
{
    enum { N = 60 };
    struct node_cfg cfg = { 0 };
    static struct node n[N];
    bool seen[N] = { false };
    uint64_t cookie;
    uint32_t chan;
    int fd, i;

    (void)state;
    node_open(&n[0], &cfg);
    assert_int_equal(vhca_channel_create(n[0].owner, VHCA_CHANNEL_DEVX_EVENT,
                                         true, &fd, &chan), 0);
    for (i = 0; i < N; ++i) {
        if (i > 0) {
            node_open(&n[i], &cfg);
        }
        n[i].peer = node_info(&n[i]);
        node_connect(&n[i], 0x504);
        assert_int_equal(vhca_event_subscribe(chan, 0x13, n[i].qpn, i), 0);
    }
    for (i = 0; i < N; ++i) {
        assert_true(node_modify(&n[i], 0x507, NULL));
    }
    for (i = 0; i < N; ++i) {
        assert_true(readable(fd, NODE_DEADLINE * 1000));
        assert_int_equal(read(fd, &cookie, sizeof(cookie)), 8);
        assert_true(cookie < N);
        assert_false(seen[cookie]);
        seen[cookie] = true;
    }
    close(fd);
    for (i = 0; i < N; ++i) {
        node_close(&n[i]);
    }
}

static void unsubscribe__unread_events__taken_back_and_counted(void **state)
{
    struct node_cfg cfg = { 0 };
    struct vhca_event_counts counts;
    uint64_t cookie;
    struct node a, b;
    uint32_t chan;
    int fd;

    (void)state;
    self_open(&a, &cfg);
    self_open(&b, &cfg);
    assert_int_equal(vhca_channel_create(a.owner, VHCA_CHANNEL_COMP, false,
                                         &fd, &chan), 0);
    assert_int_equal(vhca_event_subscribe(chan, 0, a.cqn, 1), 0);
    assert_int_equal(vhca_event_subscribe(chan, 0, b.cqn, 2), 0);
    write_one(&a);
    assert_int_equal(read(fd, &cookie, sizeof(cookie)), 8);
    arm(&a, 1, 0);
    write_one(&b);
    counts = vhca_event_unsubscribe(a.cqn);
    assert_int_equal(counts.comp, 1);
    assert_int_equal(counts.async, 0);
    assert_int_equal(read(fd, &cookie, sizeof(cookie)), 8);
    assert_true(cookie == 2);
    assert_false(readable(fd, 0));
    close(fd);
    node_close(&a);
    node_close(&b);
}

static void event__other_process__reaches_the_channel(void **state)
{
    struct node_cfg cfg = { .rnr_retry = 7 };
    struct post post;
    uint64_t cookie;
    struct node n;
    struct peer p;
    uint32_t chan;
    int fd;

    (void)state;
    pair_open(&n, &p, &cfg);
    assert_int_equal(vhca_channel_create(n.owner, VHCA_CHANNEL_DEVX_EVENT,
                                         true, &fd, &chan), 0);
    assert_int_equal(vhca_event_subscribe(chan, 0, n.cqn, 0xdead), 0);
    node_recv(&n, n.buf, 64);
    node_recv_ring(&n);
    arm(&n, 1, 0);
    post         = (struct post) { .opcode = 0x0a, .fm_ce_se = 8, .nseg = 1 };
    post.seg[0].addr = n.peer.buf;
    post.seg[0].len  = 8;
    post.seg[0].lkey = n.peer.rkey;
    p.page->post     = post;
    peer_call(&p, PEER_POST, 0, 0, 0);
    assert_true(readable(fd, 5000));
    assert_int_equal(read(fd, &cookie, sizeof(cookie)), 8);
    assert_true(cookie == 0xdead);
    cqe_is(node_poll(&n), 2, 0, 0);
    close(fd);
    pair_close(&n, &p);
}

static void own_rq__to_error__posted_receives_flushed(void **state)
{
    struct node_cfg cfg = { .own_rq = true };
    struct post post;
    struct node n;
    unsigned i;

    (void)state;
    self_open(&n, &cfg);
    for (i = 0; i < 5; ++i) {
        node_recv(&n, n.buf + 4096, 64);
    }
    node_recv_ring(&n);
    post = post_send(&n, 0, 8);
    node_post(&n, &post);
    cqe_is(node_poll(&n), 2, 0, 0);
    cqe_is(node_poll(&n), 0, 0, 0);
    assert_true(node_modify(&n, 0x507, NULL));
    for (i = 1; i < 5; ++i) {
        cqe_is(node_poll(&n), 14, 0x05, i);
    }
    /* posted in error: the same */
    node_recv(&n, n.buf, 64);
    node_recv_ring(&n);
    cqe_is(node_poll(&n), 14, 0x05, 5);
    assert_null(node_poll(&n));
    node_close(&n);
}

static void modify__out_of_order__bad_qp_state(void **state)
{
    /* state reached, command that must fail there */
    static const uint16_t order[][2] = {
        { 0, 0x503 }, { 0, 0x504 }, { 0, 0x505 }, { 0x502, 0x502 },
        { 0x502, 0x504 }, { 0x503, 0x503 }, { 0x503, 0x502 },
        { 0x504, 0x503 }, { 0x504, 0x504 }
    };
    struct node_cfg cfg = { 0 };
    uint8_t status;
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(order) / sizeof(order[0]); ++i) {
        struct node n;

        node_open(&n, &cfg);
        n.peer = node_info(&n);
        if (order[i][0] != 0) {
            node_connect(&n, order[i][0]);
        }
        assert_false(node_modify(&n, order[i][1], &status));
        assert_int_equal(status, VHCA_FW_BAD_QP_STATE);
        node_close(&n);
    }
}

static void reset__and_connect_again__works_from_zero(void **state)
{
    struct node_cfg cfg = { .rnr_retry = 7 };
    struct node n;
    int i;

    (void)state;
    node_open(&n, &cfg);
    n.peer = node_info(&n);
    for (i = 0; i < 3; ++i) {
        node_connect(&n, 0x504);
        write_one(&n);
        cqe_is(node_poll(&n), 0, 0, 0);
        assert_true(node_modify(&n, 0x50a, NULL));
        n.pi    = 0;
        n.db[0] = 0;
        n.db[1] = 0;
    }
    node_close(&n);
}

static void destroy__while_used__refused(void **state)
{
    struct node_cfg cfg = { 0 };
    struct vhca_fw fw;
    struct node n;

    (void)state;
    node_open(&n, &cfg);
    assert_false(vhca_cq_destroy(n.owner, n.cqn, &fw));
    assert_int_equal(fw.status, VHCA_FW_BAD_RES_STATE);
    assert_false(vhca_rmp_destroy(n.owner, n.rmpn, &fw));
    assert_true(vhca_qp_destroy(n.owner, n.qpn, &fw));
    assert_int_equal(vhca_doorbell(VHCA_DOORBELL_SQ, n.qpn), -ENOENT);
    assert_true(vhca_cq_destroy(n.owner, n.cqn, &fw));
    assert_true(vhca_rmp_destroy(n.owner, n.rmpn, &fw));
    assert_false(vhca_cq_destroy(n.owner, n.cqn, &fw));
    node_close(&n);
}

/* Two threads ring for the same queue, one destroys another queue's key all
 * the time: every WQE executes once. */
struct ringer {
    struct node     *n;
    _Atomic uint32_t stop;
};

static void *ring_on(void *arg)
{
    struct ringer *r = arg;

    while (!atomic_load(&r->stop)) {
        vhca_doorbell(VHCA_DOORBELL_SQ, r->n->qpn);
    }
    return NULL;
}

static void doorbell__from_two_threads__each_wqe_once(void **state)
{
    struct node_cfg cfg = { 0 };
    struct ringer ringer;
    struct node n;
    pthread_t thread;
    uint32_t i;

    (void)state;
    self_open(&n, &cfg);
    ringer.n = &n;
    atomic_store(&ringer.stop, 0);
    assert_int_equal(pthread_create(&thread, NULL, ring_on, &ringer), 0);
    for (i = 0; i < 20000; ++i) {
        struct vhca_fw fw;
        uint32_t index;

        write_one(&n);
        cqe_is(node_wait(&n), 0, 0, (uint16_t)i);
        if (i % 16 == 0) {
            node_key(&n, n.buf, 64, 1, "lr lw rw", &index);
            assert_true(vhca_mkey_destroy(n.owner, index, &fw));
        }
    }
    atomic_store(&ringer.stop, 1);
    pthread_join(thread, NULL);
    assert_null(node_poll(&n));
    node_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cq__many_wraps__owner_bit_follows),
        cmocka_unit_test(cq__created__entries_are_invalid),
        cmocka_unit_test(cq__resized__old_ring_ends_with_a_mark),
        cmocka_unit_test(cq__set_ci_not_moved__error_event_and_qp_in_error),
        cmocka_unit_test(cq__oi_set__overwrites_without_error),
        cmocka_unit_test(arm__before_and_after_the_cqe__one_event_each),
        cmocka_unit_test(arm__solicited__only_a_solicited_receive_or_an_error),
        cmocka_unit_test(event__not_omitted__cookie_then_eqe),
        cmocka_unit_test(event__channel_is_full__nothing_blocks_nothing_is_lost),
        cmocka_unit_test(unsubscribe__unread_events__taken_back_and_counted),
        cmocka_unit_test(event__other_process__reaches_the_channel),
        cmocka_unit_test(own_rq__to_error__posted_receives_flushed),
        cmocka_unit_test(modify__out_of_order__bad_qp_state),
        cmocka_unit_test(reset__and_connect_again__works_from_zero),
        cmocka_unit_test(destroy__while_used__refused),
        cmocka_unit_test(doorbell__from_two_threads__each_wqe_once)
    };

    return cmocka_run_group_tests(tests, node_group_setup,
                                  node_group_teardown);
}
