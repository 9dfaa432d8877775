/* SPDX-License-Identifier: BSD-3-Clause */

/* How links are made, shared, given back and lost, over real sockets between
 * interfaces of one process. */

#include "hixl_cm_fixture.h"

#include <string.h>
#include <unistd.h>

#define TIMEOUT 50.0

static test_node_t a, b;

static int setup(void **state)
{
    (void)state;
    test_node_open(&a, "127.0.0.1", TIMEOUT);
    test_node_open(&b, "127.0.0.1", TIMEOUT);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_node_close(&a);
    test_node_close(&b);
    return 0;
}

static test_link_t *link_of(const test_ep_t *ep)
{
    return ucs_container_of(ep->link, test_link_t, super);
}

static uint32_t peer_qpn(const test_ep_t *ep)
{
    const uint8_t *qpn = link_of(ep)->peer_qp.qpn;

    return (qpn[0] << 16) | (qpn[1] << 8) | qpn[2];
}

static uct_hixl_iface_t *peer_iface(const test_ep_t *ep)
{
    uct_hixl_iface_t *iface;

    memcpy(&iface, link_of(ep)->peer_dev.gid, sizeof(iface));
    return iface;
}

/* The passive side's application does nothing at all */
static void connect__passive_peer_never_progresses__ready(void **state)
{
    double end = test_seconds() + WAIT_SECONDS;
    test_ep_t ep;

    (void)state;
    test_connect_node(&a, &ep, &b);
    assert_false(ep.ready);
    while (!ep.ready) {
        assert_true(test_seconds() < end);
        uct_hixl_cm_progress(&a.iface);
        test_pause();
    }

    assert_int_equal(link_of(&ep)->connected, 1);
    assert_ptr_equal(peer_iface(&ep), &b.iface);
    assert_int_equal(test_node_links(&b), 1);
    assert_int_equal(__atomic_load_n(&b.iface.cm_events, __ATOMIC_RELAXED),
                     0);
    test_release(&ep);
}

static void connect__peer_made_a_link__takes_it(void **state)
{
    uint64_t reused = test_counter("hixl.cm_reused");
    test_ep_t ep_a, ep_b;

    (void)state;
    test_connect_ready(&a, &ep_a, &b);
    WAIT_FOR(test_node_idle(&b) == 1);

    test_connect_node(&b, &ep_b, &a);
    assert_true(ep_b.ready);
    assert_int_equal(link_of(&ep_b)->qpn, peer_qpn(&ep_a));
    assert_int_equal(link_of(&ep_a)->qpn, peer_qpn(&ep_b));
    assert_int_equal(test_counter("hixl.cm_reused"), reused + 1);
    assert_int_equal(test_node_links(&a), 1);
    assert_int_equal(test_node_links(&b), 1);
    test_release(&ep_a);
    test_release(&ep_b);
}

/* It says that it is somebody else: not that link */
static void connect__idle_link_of_other_address__makes_its_own(void **state)
{
    uct_hixl_cm_msg_t hello;
    test_ep_t ep;
    int fd;

    (void)state;
    fd = test_raw_link(&a, &hello);
    test_connect_ready(&a, &ep, &b);
    assert_int_equal(test_node_links(&a), 2);
    assert_int_equal(test_node_idle(&a), 1);
    test_release(&ep);
    close(fd);
}

static void connect__used_link__makes_another(void **state)
{
    test_ep_t ep1, ep2;

    (void)state;
    test_connect_ready(&a, &ep1, &b);
    test_connect_ready(&a, &ep2, &b);
    assert_ptr_not_equal(ep1.link, ep2.link);
    WAIT_FOR(test_node_idle(&b) == 2);
    test_release(&ep1);
    test_release(&ep2);
}

static void connect__both_at_once__two_links(void **state)
{
    test_ep_t ep_a, ep_b;

    (void)state;
    test_async_hold();
    test_connect_node(&a, &ep_a, &b);
    test_connect_node(&b, &ep_b, &a);
    assert_false(ep_a.ready);
    assert_false(ep_b.ready);
    test_async_let_go();

    WAIT_FOR(ep_a.ready && ep_b.ready);
    WAIT_FOR((test_node_idle(&a) == 1) && (test_node_idle(&b) == 1));
    assert_int_equal(test_node_links(&a), 2);
    assert_int_equal(test_node_links(&b), 2);
    test_release(&ep_a);
    test_release(&ep_b);
    WAIT_FOR((test_node_links(&a) == 0) && (test_node_links(&b) == 0));
}

static void connect__own_interface__both_ends_usable(void **state)
{
    test_ep_t ep1, ep2;

    (void)state;
    test_connect_ready(&a, &ep1, &a);
    WAIT_FOR(test_node_idle(&a) == 1);
    test_connect_node(&a, &ep2, &a);
    assert_true(ep2.ready);
    assert_int_equal(link_of(&ep2)->qpn, peer_qpn(&ep1));
    assert_int_equal(test_node_links(&a), 2);

    test_release(&ep1);
    WAIT_FOR(test_node_idle(&a) == 1); /* the other end is in use */
    test_release(&ep2);
    WAIT_FOR(test_node_links(&a) == 0);
}

static void connect__not_an_address__refused(void **state)
{
    uint8_t addr[UCT_HIXL_IFACE_ADDR_MAX] = {99};
    test_ep_t ep                          = {0};
    int ready;

    (void)state;
    assert_int_equal(uct_hixl_cm_connect(&a.iface, (uct_hixl_ep_t*)&ep, NULL,
                                         (uct_iface_addr_t*)addr, &ep.link,
                                         &ready), UCS_ERR_INVALID_ADDR);
    assert_null(ep.link);
    assert_int_equal(test_node_links(&a), 0);
}

static void connect__no_qp_here__its_status(void **state)
{
    uint8_t addr[UCT_HIXL_IFACE_ADDR_MAX];
    test_ep_t ep = {0};
    int ready;

    (void)state;
    uct_hixl_cm_get_address(&b.iface, (uct_iface_addr_t*)addr);
    a.fail_create = UCS_ERR_NO_MEMORY;
    assert_int_equal(uct_hixl_cm_connect(&a.iface, (uct_hixl_ep_t*)&ep, NULL,
                                         (uct_iface_addr_t*)addr, &ep.link,
                                         &ready), UCS_ERR_NO_MEMORY);
    assert_null(ep.link);
}

static void expect_failed(test_ep_t *ep, ucs_status_t status)
{
    WAIT_FOR(ep->failed);
    assert_int_equal(ep->failed, 1);
    assert_int_equal(ep->status, status);
    test_release(ep);
}

static void connect__no_qp_there__rejected(void **state)
{
    test_ep_t ep;

    (void)state;
    b.fail_create = UCS_ERR_NO_MEMORY;
    test_connect_node(&a, &ep, &b);
    expect_failed(&ep, UCS_ERR_REJECTED);
    assert_int_equal(test_node_links(&a), 0);
    assert_int_equal(test_node_links(&b), 0);
}

static void connect__no_path_there__rejected(void **state)
{
    test_ep_t ep;

    (void)state;
    b.fail_connect = UCS_ERR_UNREACHABLE;
    test_connect_node(&a, &ep, &b);
    expect_failed(&ep, UCS_ERR_REJECTED);
    WAIT_FOR(test_node_links(&b) == 0);
}

static void connect__no_path_here__its_status(void **state)
{
    test_ep_t ep;

    (void)state;
    a.fail_connect = UCS_ERR_INVALID_ADDR;
    test_connect_node(&a, &ep, &b);
    expect_failed(&ep, UCS_ERR_INVALID_ADDR);
    WAIT_FOR(test_node_links(&b) == 0);
    assert_int_equal(test_node_idle(&b), 0);
}

static void connect__nobody_listens__unreachable(void **state)
{
    uint8_t addr[UCT_HIXL_IFACE_ADDR_MAX];
    test_ep_t ep;
    int fd;

    (void)state;
    fd = test_raw_listen(addr, NULL);
    close(fd);
    test_connect(&a, &ep, addr);
    expect_failed(&ep, UCS_ERR_UNREACHABLE);
}

static void connect__silent_peer__times_out(void **state)
{
    uint8_t addr[UCT_HIXL_IFACE_ADDR_MAX];
    double start = test_seconds();
    test_node_t c;
    test_ep_t ep;
    int fd;

    (void)state;
    test_node_open(&c, "127.0.0.1", 0.2);
    fd = test_raw_listen(addr, NULL); /* the kernel accepts; nobody answers */
    test_connect(&c, &ep, addr);
    expect_failed(&ep, UCS_ERR_TIMED_OUT);
    assert_true(test_seconds() - start >= 0.2);
    close(fd);
    test_node_close(&c);
}

/* 127.0.0.2 is this host, too, and nobody listens there */
static void connect__first_ip_refuses__next_one(void **state)
{
    static const uint8_t nobody[]    = {127, 0, 0, 2};
    static const uint8_t peer_key[16] = {[0 ... 15] = 0x77};
    uct_hixl_cm_msg_t accept         = {.type = UCT_HIXL_CM_MSG_ACCEPT};
    uint8_t addr[UCT_HIXL_IFACE_ADDR_MAX];
    uct_hixl_cm_msg_t msg;
    test_ep_t ep;
    int listen_fd, fd;

    (void)state;
    listen_fd = test_raw_listen(addr, nobody);
    test_connect(&a, &ep, addr);
    fd  = test_raw_accept(listen_fd);
    msg = test_raw_hear(fd);
    assert_int_equal(msg.type, UCT_HIXL_CM_MSG_HELLO);
    assert_memory_equal(msg.key, peer_key, sizeof(peer_key));
    assert_int_equal(msg.addr_len, a.iface.cm->addr_len);
    assert_memory_equal(msg.addr, a.iface.cm->addr, msg.addr_len);
    test_raw_say(fd, &accept);
    assert_int_equal(test_raw_hear(fd).type, UCT_HIXL_CM_MSG_READY);
    WAIT_FOR(ep.ready);
    close(fd);
    close(listen_fd);
    expect_failed(&ep, UCS_ERR_CONNECTION_RESET);
}

/* As a peer that is short of places does, or somebody else with that IP */
static void connect__peer_hangs_up__tries_again_then_rejected(void **state)
{
    uint8_t addr[UCT_HIXL_IFACE_ADDR_MAX];
    test_ep_t ep;
    int listen_fd, fd, i;

    (void)state;
    listen_fd = test_raw_listen(addr, NULL);
    test_connect(&a, &ep, addr);
    for (i = 0; i < UCT_HIXL_CM_MAX_PASSES; ++i) {
        fd = test_raw_accept(listen_fd);
        assert_int_equal(test_raw_hear(fd).type, UCT_HIXL_CM_MSG_HELLO);
        close(fd);
    }

    expect_failed(&ep, UCS_ERR_REJECTED);
    close(listen_fd);
}

static void
connect__released_while_connecting__destroyed_at_once(void **state)
{
    test_ep_t ep;

    (void)state;
    test_async_hold();
    test_connect_node(&a, &ep, &b);
    test_release(&ep);
    test_async_let_go();
    assert_int_equal(test_node_links(&a), 0);
    test_connect_ready(&a, &ep, &b); /* b is through with the first one */
    assert_int_equal(test_node_links(&b), 1);
    test_release(&ep);
}

static void connect__released_after_hello__peer_learns(void **state)
{
    uint8_t addr[UCT_HIXL_IFACE_ADDR_MAX];
    test_ep_t ep;
    int listen_fd, fd;

    (void)state;
    listen_fd = test_raw_listen(addr, NULL);
    test_connect(&a, &ep, addr);
    fd = test_raw_accept(listen_fd);
    assert_int_equal(test_raw_hear(fd).type, UCT_HIXL_CM_MSG_HELLO);
    test_release(&ep);
    assert_int_equal(test_node_links(&a), 0);
    test_raw_wait_end(fd);
    close(listen_fd);
    assert_int_equal(ep.ready + ep.failed, 0);
}

static void release__ready_not_told_yet__told_no_more(void **state)
{
    test_ep_t ep;

    (void)state;
    test_connect_node(&a, &ep, &b);
    /* no progress of a: the event waits */
    while (!__atomic_load_n(&a.iface.cm_events, __ATOMIC_ACQUIRE)) {
        test_pause();
    }
    test_release(&ep);
    WAIT_FOR((test_node_links(&a) == 0) && (test_node_links(&b) == 0));
    assert_int_equal(ep.ready + ep.failed, 0);
}

static void release__peer_idle__both_ends_destroyed(void **state)
{
    test_ep_t ep;

    (void)state;
    test_connect_ready(&a, &ep, &b);
    test_release(&ep);
    WAIT_FOR((test_node_links(&a) == 0) && (test_node_links(&b) == 0));
}

static void release__peer_uses_it__kept_and_taken_again(void **state)
{
    uct_hixl_link_t *link;
    test_ep_t ep_a, ep_b;

    (void)state;
    test_connect_ready(&a, &ep_a, &b);
    WAIT_FOR(test_node_idle(&b) == 1);
    test_connect_node(&b, &ep_b, &a);
    link = ep_a.link;

    test_release(&ep_a);
    WAIT_FOR(test_node_idle(&a) == 1);
    assert_int_equal(test_node_links(&a), 1);
    assert_int_equal(ep_b.failed, 0);

    test_connect_node(&a, &ep_a, &b);
    assert_true(ep_a.ready);
    assert_ptr_equal(ep_a.link, link);

    test_release(&ep_b);
    WAIT_FOR(test_node_idle(&b) == 1);
    test_release(&ep_a);
    WAIT_FOR((test_node_links(&a) == 0) && (test_node_links(&b) == 0));
}

static void release__both_at_once__both_ends_destroyed(void **state)
{
    test_ep_t ep_a, ep_b;

    (void)state;
    test_connect_ready(&a, &ep_a, &b);
    WAIT_FOR(test_node_idle(&b) == 1);
    test_connect_node(&b, &ep_b, &a);

    test_async_hold();
    test_release(&ep_a);
    test_release(&ep_b);
    test_async_let_go();
    WAIT_FOR((test_node_links(&a) == 0) && (test_node_links(&b) == 0));
    assert_int_equal(ep_a.failed + ep_b.failed, 0);
}

static void release__no_answer__destroyed_after_timeout(void **state)
{
    uct_hixl_cm_msg_t hello, bye;
    test_ep_t ep;
    int fd;

    (void)state;
    a.iface.cm->bye_timeout = UCT_HIXL_CM_NSEC_PER_SEC / 10;
    fd                      = test_raw_link(&a, &hello);
    test_connect(&a, &ep, hello.addr);
    assert_true(ep.ready);
    test_release(&ep);
    bye = test_raw_hear(fd);
    assert_int_equal(bye.type, UCT_HIXL_CM_MSG_BYE);
    assert_int_equal(bye.generation, 1);
    WAIT_FOR(test_node_links(&a) == 0);
    test_raw_wait_end(fd);
}

static void release__answer_of_other_generation__refused(void **state)
{
    uint64_t rejected = test_counter("hixl.cm_rejected");
    uct_hixl_cm_msg_t hello, bye;
    test_ep_t ep;
    int fd;

    (void)state;
    fd = test_raw_link(&a, &hello);
    test_connect(&a, &ep, hello.addr);
    test_release(&ep);
    bye            = test_raw_hear(fd);
    bye.type       = UCT_HIXL_CM_MSG_BYE_IN_USE;
    bye.generation = 2;
    test_raw_say(fd, &bye);
    test_raw_wait_end(fd);
    WAIT_FOR(test_node_links(&a) == 0);
    assert_int_equal(test_counter("hixl.cm_rejected"), rejected + 1);
}

static void bye__link_used_here__in_use_with_its_generation(void **state)
{
    uct_hixl_cm_msg_t bye = {
        .type       = UCT_HIXL_CM_MSG_BYE,
        .generation = 0xfedcba98
    };
    uct_hixl_cm_msg_t hello, answer;
    test_ep_t ep;
    int fd;

    (void)state;
    fd = test_raw_link(&a, &hello);
    test_connect(&a, &ep, hello.addr);
    test_raw_say(fd, &bye);
    answer = test_raw_hear(fd);
    assert_int_equal(answer.type, UCT_HIXL_CM_MSG_BYE_IN_USE);
    assert_int_equal(answer.generation, bye.generation);
    assert_int_equal(ep.failed, 0);
    close(fd);
    expect_failed(&ep, UCS_ERR_CONNECTION_RESET);
}

static void abort__link_used_by_peer__peer_learns(void **state)
{
    test_ep_t ep_a, ep_b;

    (void)state;
    test_connect_ready(&a, &ep_a, &b);
    WAIT_FOR(test_node_idle(&b) == 1);
    test_connect_node(&b, &ep_b, &a);
    uct_hixl_cm_abort(ep_a.link);
    assert_int_equal(test_node_links(&a), 0);
    expect_failed(&ep_b, UCS_ERR_CONNECTION_RESET);
    assert_int_equal(test_node_links(&b), 0);
}

static void eof__idle_link__destroyed_quietly(void **state)
{
    uct_hixl_cm_msg_t hello;

    (void)state;
    close(test_raw_link(&a, &hello));
    WAIT_FOR(test_node_links(&a) == 0);
    assert_int_equal(test_node_idle(&a), 0);
}

static void peer_closes__used_link__not_connected(void **state)
{
    test_node_t c;
    test_ep_t ep;

    (void)state;
    test_node_open(&c, "127.0.0.1", TIMEOUT);
    test_connect_ready(&a, &ep, &c);
    test_node_close(&c);
    expect_failed(&ep, UCS_ERR_NOT_CONNECTED);
}

/* It goes with our BYE unread in its socket */
static void peer_closes__while_we_release__destroyed_quietly(void **state)
{
    test_node_t c;
    test_ep_t ep;

    (void)state;
    test_node_open(&c, "127.0.0.1", TIMEOUT);
    test_connect_ready(&a, &ep, &c);
    test_async_hold();
    test_release(&ep);
    test_node_close(&c);
    test_async_let_go();
    WAIT_FOR(test_node_links(&a) == 0);
    assert_int_equal(ep.failed, 0);
}

static void close__peer_does_not_answer__does_not_wait(void **state)
{
    uct_hixl_cm_msg_t hello;
    test_node_t c;
    test_ep_t ep;
    double start;
    int fd;

    (void)state;
    test_node_open(&c, "127.0.0.1", TIMEOUT);
    fd = test_raw_link(&c, &hello);
    test_connect(&c, &ep, hello.addr);
    test_release(&ep);
    start = test_seconds();
    test_node_close(&c);
    assert_true(test_seconds() - start < 5);
    assert_int_equal(test_raw_hear(fd).type, UCT_HIXL_CM_MSG_BYE);
    assert_int_equal(test_raw_hear(fd).type, UCT_HIXL_CM_MSG_LEAVE);
    test_raw_wait_end(fd);
}

#define TEST(_func) cmocka_unit_test_setup_teardown(_func, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(connect__passive_peer_never_progresses__ready),
        TEST(connect__peer_made_a_link__takes_it),
        TEST(connect__idle_link_of_other_address__makes_its_own),
        TEST(connect__used_link__makes_another),
        TEST(connect__both_at_once__two_links),
        TEST(connect__own_interface__both_ends_usable),
        TEST(connect__not_an_address__refused),
        TEST(connect__no_qp_here__its_status),
        TEST(connect__no_qp_there__rejected),
        TEST(connect__no_path_there__rejected),
        TEST(connect__no_path_here__its_status),
        TEST(connect__nobody_listens__unreachable),
        TEST(connect__silent_peer__times_out),
        TEST(connect__first_ip_refuses__next_one),
        TEST(connect__peer_hangs_up__tries_again_then_rejected),
        TEST(connect__released_while_connecting__destroyed_at_once),
        TEST(connect__released_after_hello__peer_learns),
        TEST(release__ready_not_told_yet__told_no_more),
        TEST(release__peer_idle__both_ends_destroyed),
        TEST(release__peer_uses_it__kept_and_taken_again),
        TEST(release__both_at_once__both_ends_destroyed),
        TEST(release__no_answer__destroyed_after_timeout),
        TEST(release__answer_of_other_generation__refused),
        TEST(bye__link_used_here__in_use_with_its_generation),
        TEST(abort__link_used_by_peer__peer_learns),
        TEST(eof__idle_link__destroyed_quietly),
        TEST(peer_closes__used_link__not_connected),
        TEST(peer_closes__while_we_release__destroyed_quietly),
        TEST(close__peer_does_not_answer__does_not_wait)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
