/* SPDX-License-Identifier: BSD-3-Clause */

/* What waits, goes on, or gives up: no receive, a responder that is not ready,
 * answers nothing, or is killed. */

#include "vhca_node.h"

static unsigned seed;

static void rnr__sender_returns_and_refill_resumes__in_order(void **state)
{
    struct node_cfg cfg = { .rnr_retry = 7, .min_rnr_nak = 31 /* 491 ms */ };
    struct post post;
    struct node n;
    struct peer p;
    unsigned i;

    (void)state;
    pair_open(&n, &p, &cfg);
    for (i = 0; i < 5; ++i) {
        n.buf[i] = 0x40 + i;
        post     = post_send(&n, i, 1);
        node_post(&n, &post); /* does not block */
    }
    /* behind the sends: must not overtake them */
    post = post_rdma(&n, 0x08, 0, 60000, 1);
    node_post(&n, &post);
    assert_null(node_poll(&n));

    peer_call(&p, PEER_RECV, 2, 64, 0); /* the receiver's thread executes */
    cqe_is(node_poll(&n), 0, 0, 0);
    cqe_is(node_poll(&n), 0, 0, 1);
    assert_null(node_poll(&n));
    peer_call(&p, PEER_RECV, 3, 64, 0);
    for (i = 2; i < 6; ++i) {
        cqe_is(node_poll(&n), 0, 0, i);
    }
    for (i = 0; i < 5; ++i) {
        cqe_is(peer_cqe(&p), 2, 0, i);
        peer_call(&p, PEER_GET, i * NODE_RX_SIZE, 1, 0);
        assert_int_equal(p.page->data[0], 0x40 + i);
    }
    peer_call(&p, PEER_GET, 60000, 1, 0);
    assert_int_equal(p.page->data[0], 0x40);
    pair_close(&n, &p);
}

static void rnr__refill_without_doorbell__timer_resumes(void **state)
{
    struct node_cfg cfg = { .rnr_retry = 7, .min_rnr_nak = 1 };
    struct node a, b;
    struct post post;

    (void)state;
    node_open(&a, &cfg);
    node_open(&b, &cfg);
    a.peer = node_info(&b);
    b.peer = node_info(&a);
    node_connect(&b, 0x504);
    node_connect(&a, 0x504);
    post = post_send(&a, 0, 10);
    node_post(&a, &post);
    assert_null(node_poll(&a));
    node_key(&b, b.buf, NODE_BUF, 3, "lw", &b.index);
    node_recv(&b, b.buf, 64);
    __atomic_store_n(&b.db[32], htobe32(1), __ATOMIC_SEQ_CST);
    cqe_is(node_wait(&a), 0, 0, 0);
    cqe_is(node_wait(&b), 2, 0, 0);
    node_close(&a);
    node_close(&b);
}

static void rnr__retries_used_up__rnr_error(void **state)
{
    struct node_cfg cfg = { .rnr_retry = 3, .min_rnr_nak = 20 /* 10 ms */ };
    struct post post;
    struct node n;
    struct peer p;
    double start;

    (void)state;
    pair_open(&n, &p, &cfg);
    post  = post_send(&n, 0, 10);
    start = now_s();
    node_post(&n, &post);
    assert_null(node_poll(&n));
    cqe_is(node_wait(&n), 13, 0x16, 0);
    assert_true(now_s() - start >= 0.03);
    assert_true(now_s() - start < 5);
    pair_close(&n, &p);
}

static void rnr__many_senders_one_queue__all_resume(void **state)
{
    enum { N = 20 };
    struct node_cfg cfg = { .rnr_retry = 7, .min_rnr_nak = 31 };
    static struct node s[N];
    struct peer p[N];
    struct post post;
    unsigned i;

    (void)state;
    for (i = 0; i < N; ++i) {
        pair_open(&s[i], &p[i], &cfg);
        post = post_send(&s[i], 0, 5);
        node_post(&s[i], &post);
        assert_null(node_poll(&s[i]));
    }
    for (i = 0; i < N; ++i) {
        peer_call(&p[i], PEER_RECV, 1, 64, 0);
        cqe_is(node_poll(&s[i]), 0, 0, 0);
    }
    for (i = 0; i < N; ++i) {
        pair_close(&s[i], &p[i]);
    }
}

static void not_ready__rtr_later__resumes_at_once(void **state)
{
    struct node_cfg cfg = { .retry_count = 7, .ack_timeout = 18 };
    struct post post;
    struct node n;
    struct peer p;
    double start;

    (void)state;
    peer_start(&p, &cfg);
    node_open(&n, &cfg);
    n.peer        = p.page->info;
    p.page->other = node_info(&n);
    node_connect(&n, 0x504);
    n.buf[0] = 0x77;
    post     = post_rdma(&n, 0x08, 0, 0, 1);
    node_post(&n, &post);
    assert_null(node_poll(&n));
    start = now_s();
    peer_call(&p, PEER_CONNECT, 0x503, 0, 0);
    cqe_is(node_poll(&n), 0, 0, 0);
    assert_true(now_s() - start < 1);
    peer_call(&p, PEER_GET, 0, 1, 0);
    assert_int_equal(p.page->data[0], 0x77);
    pair_close(&n, &p);
}

static void not_ready__never__retry_exceeded_after_its_time(void **state)
{
    struct node_cfg cfg = { .retry_count = 3, .ack_timeout = 13 /* 33 ms */ };
    struct post post;
    struct node n;
    struct peer p;
    double start;

    (void)state;
    peer_start(&p, &cfg);
    node_open(&n, &cfg);
    n.peer = p.page->info;
    node_connect(&n, 0x504);
    post  = post_rdma(&n, 0x08, 0, 0, 1);
    start = now_s();
    node_post(&n, &post);
    post = post_rdma(&n, 0x10, 0, 0, 1);
    node_post(&n, &post);
    cqe_is(node_wait(&n), 13, 0x15, 0);
    assert_true(now_s() - start >= 0.1);
    cqe_is(node_wait(&n), 13, 0x05, 1);
    pair_close(&n, &p);
}

enum { WRONG_GID, WRONG_QPN, WRONG_PSN, WRONG_LINK, WRONGS };

static void unreachable__each_reason__retry_exceeded(void **state)
{
    struct node_cfg cfg = { .retry_count = 0, .ack_timeout = 12 };
    int wrong;

    (void)state;
    for (wrong = 0; wrong < WRONGS; ++wrong) {
        struct vhca_qp_modify mod = {
            .opcode = 0x503, .mtu = 3, .log_msg_max = 30,
            .rgid = { 0xfe, 0x80, [15] = 1 }, .rlid = 1
        };
        struct node a, b;
        struct vhca_fw fw;
        struct post post;

        node_open(&a, &cfg);
        node_open(&b, &cfg);
        a.peer = node_info(&b);
        b.peer = node_info(&a);
        if (wrong == WRONG_QPN) {
            b.peer.qpn ^= 0x10000;
        }
        node_connect(&b, 0x504);
        mod.remote_qpn = b.qpn;
        if (wrong == WRONG_GID) {
            mod.rgid[15] = 9;
        }
        node_connect(&a, 0x502);
        assert_true(vhca_qp_modify(a.owner, a.qpn, &mod, &fw));
        mod               = (struct vhca_qp_modify) { .opcode = 0x504 };
        mod.next_send_psn = (wrong == WRONG_PSN) ? 1 : 0;
        mod.ack_timeout   = 12;
        assert_true(vhca_qp_modify(a.owner, a.qpn, &mod, &fw));
        if (wrong == WRONG_LINK) {
            assert_true(vhca_qp_destroy(b.owner, b.qpn, &fw));
        }
        post = post_rdma(&a, 0x08, 0, 0, 8);
        node_post(&a, &post);
        cqe_is(node_wait(&a), 13, 0x15, 0);
        node_close(&a);
        node_close(&b);
    }
}

static void peer_killed__idle__next_wqe_gets_retry_exceeded(void **state)
{
    struct node_cfg cfg = { .retry_count = 1, .ack_timeout = 13 };
    struct post post;
    struct node n;
    struct peer p;

    (void)state;
    pair_open(&n, &p, &cfg);
    post = post_rdma(&n, 0x08, 0, 0, 8);
    node_post(&n, &post);
    cqe_is(node_wait(&n), 0, 0, 0);
    peer_kill(&p);
    node_post(&n, &post);
    cqe_is(node_wait(&n), 13, 0x15, 1);
    node_close(&n);
}

static void
peer_killed__while_we_wait_for_receives__retry_exceeded(void **state)
{
    struct node_cfg cfg = {
        .retry_count = 1, .ack_timeout = 13, .rnr_retry = 7, .min_rnr_nak = 12
    };
    struct post post;
    struct node n;
    struct peer p;

    (void)state;
    pair_open(&n, &p, &cfg);
    post = post_send(&n, 0, 8);
    node_post(&n, &post);
    assert_null(node_poll(&n));
    peer_kill(&p);
    cqe_is(node_wait(&n), 13, 0x15, 0);
    node_close(&n);
}

/* Objects, pages and processes of the whole fabric */
static uint32_t fabric_in_use(void)
{
    uint32_t n = 0, i;

    for (i = 0; i < NIC_KINDS; ++i) {
        n += atomic_load(&NIC_FAB->hdr.table[i].live);
    }
    for (i = 0; i < atomic_load(&NIC_FAB->hdr.pool_high); ++i) {
        n += atomic_load(&NIC_FAB->page_owner[i]) != 0;
    }
    for (i = 0; i < atomic_load(&NIC_FAB->hdr.nprocs); ++i) {
        n += atomic_load(&NIC_FAB->proc[i].id) != 0;
    }
    return n;
}

/* True: a request failed. */
static bool survivor_polls(struct node *n, uint16_t *received_p,
                           unsigned *done_p)
{
    const struct cqe64 *cqe;

    while ((cqe = node_poll(n)) != NULL) {
        switch (cqe->op_own >> 4) {
        case 0:
            ++*done_p;
            break;
        case 2:
            ++*received_p;
            break;
        case 13:
            return true;
        default:
            fail_msg("CQE opcode %u", cqe->op_own >> 4);
        }
    }
    return false;
}

/* Both sides send and write without end; one is killed anywhere. The other
 * gets an error CQE and nothing it owns is stuck. */
static void peer_killed__in_the_middle__survivor_goes_on(void **state)
{
    struct node_cfg cfg = {
        .retry_count = 1, .ack_timeout = 12, .rnr_retry = 7, .min_rnr_nak = 1
    };
    const char *long_run = getenv("HIXL_TEST_KILLS");
    unsigned rounds      = long_run ? strtoul(long_run, NULL, 0) : 40, i;
    unsigned too_slow    = 0;
    uint32_t before;

    (void)state;
    assert_int_equal(vhca_fabric_attach(), 0);
    nic_sweep_all();
    before = fabric_in_use();
    for (i = 0; i < rounds; ++i) {
        struct node n, again;
        struct peer p;
        struct post post;
        double end, kill_at;
        unsigned sent = 0, done = 0;
        uint16_t received = 0;
        bool killed       = false;

        pair_open(&n, &p, &cfg);
        /* receives for what the peer sends */
        peer_call(&p, PEER_RECV, 8, 4096, 0);
        peer_tell(&p, PEER_FLOOD, 0, 0, 0);
        kill_at = now_s() + (rand_r(&seed) % 5000) * 1e-6;
        end     = now_s() + NODE_DEADLINE;
        for (;;) {
            if (!killed && (now_s() >= kill_at)) {
                peer_kill(&p);
                killed = true;
            }
            if ((uint16_t)(n.posted - received) < 8) {
                node_recv(&n, n.buf, 4096);
                node_recv_ring(&n);
            }
            if (sent - done < 16) {
                post = post_rdma(&n, 0x08, 0, 0, 1 + rand_r(&seed) % 3000);
                node_post(&n, &post);
                ++sent;
            }
            if (survivor_polls(&n, &received, &done)) {
                break;
            }
            if (now_s() > end) {
                fail_msg("no error CQE, round %u", i);
            }
        }

        /* A peer that gets no processor for longer than the retries last is
         * as good as dead, but holds what it has */
        if (!killed) {
            peer_kill(&p);
            ++too_slow;
        }

        /* nothing of ours is locked: the same again with ourselves */
        node_open(&again, &cfg);
        again.peer = node_info(&again);
        node_connect(&again, 0x504);
        post = post_rdma(&again, 0x08, 0, 4096, 100);
        node_post(&again, &post);
        cqe_is(node_poll(&again), 0, 0, 0);
        node_close(&again);
        node_close(&n);
        /* all that the dead one had is there again */
        nic_sweep_all();
        assert_int_equal(fabric_in_use(), before);
    }
    print_message("%u of %u peers were too slow to be killed\n", too_slow,
                  rounds);
    assert_in_range(too_slow, 0, rounds / 2);
}

static void peer_stopped__writes_go_on__sends_wait(void **state)
{
    struct node_cfg cfg = { .rnr_retry = 7, .min_rnr_nak = 12 };
    struct post post;
    struct node n;
    struct peer p;

    (void)state;
    pair_open(&n, &p, &cfg);
    kill(p.pid, SIGSTOP);
    post = post_rdma(&n, 0x08, 0, 0, 100000);
    node_post(&n, &post);
    cqe_is(node_wait(&n), 0, 0, 0);
    post = post_send(&n, 0, 8);
    node_post(&n, &post);
    assert_null(node_poll(&n));
    kill(p.pid, SIGCONT);
    peer_call(&p, PEER_RECV, 1, 64, 0);
    cqe_is(node_wait(&n), 0, 0, 1);
    pair_close(&n, &p);
}

static int group_setup(void **state)
{
    const char *env = getenv("HIXL_TEST_SEED");

    seed = env ? strtoul(env, NULL, 0) : (unsigned)time(NULL);
    print_message("HIXL_TEST_SEED=%u\n", seed);
    return node_group_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rnr__sender_returns_and_refill_resumes__in_order),
        cmocka_unit_test(rnr__refill_without_doorbell__timer_resumes),
        cmocka_unit_test(rnr__retries_used_up__rnr_error),
        cmocka_unit_test(rnr__many_senders_one_queue__all_resume),
        cmocka_unit_test(not_ready__rtr_later__resumes_at_once),
        cmocka_unit_test(not_ready__never__retry_exceeded_after_its_time),
        cmocka_unit_test(unreachable__each_reason__retry_exceeded),
        cmocka_unit_test(peer_killed__idle__next_wqe_gets_retry_exceeded),
        cmocka_unit_test(
                peer_killed__while_we_wait_for_receives__retry_exceeded),
        cmocka_unit_test(peer_killed__in_the_middle__survivor_goes_on),
        cmocka_unit_test(peer_stopped__writes_go_on__sends_wait)
    };

    return cmocka_run_group_tests(tests, group_setup, node_group_teardown);
}
