/* SPDX-License-Identifier: BSD-3-Clause */

/* When an interface may sleep, and what makes its descriptor readable. */

#include "hixl_ep_fixture.h"

#include <uct_hixl/hixl_event.h>

#include <poll.h>

#define ALL (UCT_EVENT_SEND_COMP | UCT_EVENT_RECV)

static uint64_t words[64];

static ucs_status_t am_cb(void *arg UCS_V_UNUSED, void *data UCS_V_UNUSED,
                          size_t length UCS_V_UNUSED,
                          unsigned flags UCS_V_UNUSED)
{
    return UCS_OK;
}

static int open_fd(void)
{
    int fd = -1, again = -1;

    test_open();
    assert_int_equal(uct_iface_event_fd_get(env.tl_iface, &fd), UCS_OK);
    assert_int_equal(uct_iface_event_fd_get(env.tl_iface, &again), UCS_OK);
    assert_int_equal(fd, again);
    return fd;
}

static int is_readable(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    return poll(&pfd, 1, 0) == 1;
}

static ucs_status_t arm(unsigned events)
{
    return uct_iface_event_arm(env.tl_iface, events);
}

/* An operation that makes a CQE when the device is stepped */
static void get_word(uct_ep_h ep, test_comp_t *comp)
{
    uct_iov_t iov = test_iov(&words[0], sizeof(words[0]));

    test_comp_init(comp);
    assert_int_equal(uct_ep_get_zcopy(ep, &iov, 1, (uintptr_t)&words[1],
                                      TEST_RKEY, &comp->super),
                     UCS_INPROGRESS);
}

static void query__event_flags__both_directions_by_descriptor(void **state)
{
    uct_iface_attr_t attr;

    (void)state;
    test_open();
    assert_int_equal(uct_iface_query(env.tl_iface, &attr), UCS_OK);
    assert_int_equal(attr.cap.event_flags, UCT_IFACE_FLAG_EVENT_SEND_COMP |
                                           UCT_IFACE_FLAG_EVENT_RECV |
                                           UCT_IFACE_FLAG_EVENT_FD);
}

static void arm__nothing_to_do__sleeps_until_a_cqe(void **state)
{
    int fd = open_fd();
    test_comp_t comp;
    uct_ep_h ep;

    (void)state;
    ep = test_ep_new(NULL);
    test_run();
    get_word(ep, &comp);
    assert_int_equal(arm(ALL), UCS_OK);
    assert_false(is_readable(fd));
    test_step(UINT_MAX);
    assert_true(is_readable(fd));

    /* the event was not read, then the CQE not taken, then all was */
    assert_int_equal(arm(ALL), UCS_ERR_BUSY);
    assert_false(is_readable(fd));
    assert_int_equal(arm(ALL), UCS_ERR_BUSY);
    test_progress();
    assert_int_equal(comp.calls, 1);
    assert_int_equal(arm(ALL), UCS_OK);
    assert_false(is_readable(fd));
}

static void arm__unseen_cqe__busy_for_its_direction_only(void **state)
{
    test_comp_t comp;
    int fd = open_fd();
    uct_ep_h ep;

    (void)state;
    ep = test_ep_new(NULL);
    test_run();
    get_word(ep, &comp);
    test_step(UINT_MAX);
    assert_int_equal(arm(UCT_EVENT_SEND_COMP), UCS_ERR_BUSY);
    assert_int_equal(arm(UCT_EVENT_RECV), UCS_OK);
    assert_false(is_readable(fd));
    test_progress();

    assert_int_equal(uct_iface_set_am_handler(env.tl_iface, 0, am_cb, NULL, 0),
                     UCS_OK);
    assert_int_equal(uct_ep_am_short(ep, 0, 0, NULL, 0), UCS_OK);
    test_step(UINT_MAX);
    assert_true(is_readable(fd));
    assert_int_equal(arm(UCT_EVENT_RECV), UCS_ERR_BUSY); /* the event */
    assert_int_equal(arm(UCT_EVENT_RECV), UCS_ERR_BUSY); /* the CQE */
    test_progress();
    assert_int_equal(arm(ALL), UCS_OK);
}

static void arm__handler_queued_something__busy_and_readable(void **state)
{
    int fd = open_fd();

    (void)state;
    assert_int_equal(arm(ALL), UCS_OK);
    __atomic_store_n(&env.iface->cm_events, 1, __ATOMIC_SEQ_CST);
    uct_hixl_iface_wake(env.iface);
    assert_true(is_readable(fd));
    assert_int_equal(arm(ALL), UCS_ERR_BUSY);
    assert_int_equal(arm(ALL), UCS_ERR_BUSY);
    test_progress();
    assert_int_equal(arm(ALL), UCS_OK);
    assert_false(is_readable(fd));
}

static void arm__progress_has_work__busy(void **state)
{
    (void)state;
    open_fd();
    assert_int_equal(arm(ALL), UCS_OK);
    env.iface->tx.todo |= UCT_HIXL_TODO_SIGNAL;
    assert_int_equal(arm(ALL), UCS_ERR_BUSY);
    test_progress();
    assert_int_equal(arm(ALL), UCS_OK);
}

static void arm__channel_fails__busy_and_not_read_again(void **state)
{
    (void)state;
    open_fd();
    test_channel_error = -EIO;
    assert_int_equal(arm(ALL), UCS_ERR_BUSY);
    assert_int_equal(arm(ALL), UCS_ERR_BUSY);
    assert_int_equal(test_channel_reads, 1);
}

static void wake__nobody_asked_for_the_descriptor__nothing(void **state)
{
    (void)state;
    test_open();
    uct_hixl_iface_wake(env.iface);
    assert_null(env.iface->event);
    assert_null(env.iface->send_cq->chan);
}

#define TEST(_func) \
    cmocka_unit_test_setup_teardown(_func, test_setup, test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(query__event_flags__both_directions_by_descriptor),
        TEST(arm__nothing_to_do__sleeps_until_a_cqe),
        TEST(arm__unseen_cqe__busy_for_its_direction_only),
        TEST(arm__handler_queued_something__busy_and_readable),
        TEST(arm__progress_has_work__busy),
        TEST(arm__channel_fails__busy_and_not_read_again),
        TEST(wake__nobody_asked_for_the_descriptor__nothing)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
