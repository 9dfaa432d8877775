/* SPDX-License-Identifier: BSD-3-Clause */

/* The listener: where it listens, and what it does with those who connect
 * without a right to, without a word, too many at once, or when no descriptor
 * is left. */

#include "hixl_cm_fixture.h"

#include <ucs/sys/sock.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static test_node_t node;
static uint64_t rejected_before;

static int setup(void **state)
{
    (void)state;
    test_node_open(&node, "127.0.0.1", 50.0);
    rejected_before = test_counter("hixl.cm_rejected");
    return 0;
}

static int setup_short_timeout(void **state)
{
    (void)state;
    test_node_open(&node, "127.0.0.1", 0.3);
    rejected_before = test_counter("hixl.cm_rejected");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_node_close(&node);
    return 0;
}

static uint64_t rejected(void)
{
    return test_counter("hixl.cm_rejected") - rejected_before;
}

static unsigned open_fds(void)
{
    DIR *dir       = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        ++count;
    }
    closedir(dir);
    return count;
}

/* Closed, counted once, and nothing else came of it */
static void expect_refused(int fd)
{
    test_raw_wait_end(fd);
    WAIT_FOR(rejected() == 1);
    WAIT_FOR(test_node_links(&node) == 0);
    assert_int_equal(test_node_half_open(&node), 0);
    assert_int_equal(test_node_idle(&node), 0);
}

/* ---- where ---- */

static void check_address(uct_hixl_cm_addr_t *addr_p)
{
    uint8_t addr[UCT_HIXL_IFACE_ADDR_MAX];
    size_t length = uct_hixl_cm_address_length(&node.iface);
    size_t used;

    assert_in_range(length, 1, UCT_HIXL_IFACE_ADDR_MAX);
    uct_hixl_cm_get_address(&node.iface, (uct_iface_addr_t*)addr);
    assert_int_equal(uct_hixl_cm_addr_parse(addr, length, addr_p, &used),
                     UCS_OK);
    assert_int_equal(used, length);
}

static void open__nothing_configured__reachable_address(void **state)
{
    uct_hixl_cm_addr_t addr;
    uct_hixl_cm_msg_t hello;
    unsigned i;

    (void)state;
    test_node_open(&node, "", 50.0);
    check_address(&addr);
    assert_in_range(addr.num_ips, 1, 2);
    for (i = 0; i < addr.num_ips; ++i) {
        /* loopback only if there is nothing else, and then alone */
        assert_true((addr.num_ips == 1) || addr.ip[i].is_v6 ||
                    (addr.ip[i].bytes[0] != 127));
    }

    close(test_raw_link(&node, &hello));
    test_node_close(&node);
}

static void open__two_addresses__one_port_on_both(void **state)
{
    static const uint8_t second[] = {127, 0, 0, 2};
    struct sockaddr_storage saddr;
    uct_hixl_cm_addr_t addr;
    socklen_t length;
    unsigned i;
    int fd;

    (void)state;
    test_node_open(&node, "127.0.0.1,127.0.0.2", 50.0);
    check_address(&addr);
    assert_int_equal(addr.num_ips, 2);
    assert_memory_equal(addr.ip[1].bytes, second, sizeof(second));
    for (i = 0; i < 2; ++i) {
        length = uct_hixl_cm_sockaddr(&addr.ip[i], addr.port, &saddr);
        fd     = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fd, (struct sockaddr*)&saddr, length), 0);
        close(fd);
    }

    /* and nowhere else */
    addr.ip[0].bytes[3] = 3;
    length = uct_hixl_cm_sockaddr(&addr.ip[0], addr.port, &saddr);
    fd     = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr*)&saddr, length), -1);
    close(fd);
    test_node_close(&node);
}

static void open__ipv6_address__links(void **state)
{
    uct_hixl_cm_ip_t loopback = {.is_v6 = 1, .bytes = {[15] = 1}};
    struct sockaddr_storage saddr;
    uct_hixl_cm_addr_t addr;
    test_ep_t ep;
    int fd;

    (void)state;
    fd = socket(AF_INET6, SOCK_STREAM, 0);
    if ((fd < 0) ||
        (bind(fd, (struct sockaddr*)&saddr,
              uct_hixl_cm_sockaddr(&loopback, 0, &saddr)) != 0)) {
        print_message("no ::1 on this host\n");
        skip();
    }
    close(fd);

    test_node_open(&node, "::1", 50.0);
    check_address(&addr);
    assert_int_equal(addr.num_ips, 1);
    assert_true(addr.ip[0].is_v6);
    test_connect_ready(&node, &ep, &node);
    test_release(&ep);
    test_node_close(&node);
}

static void open__every_key__another(void **state)
{
    test_node_t other;

    (void)state;
    test_node_open(&other, "127.0.0.1", 50.0);
    assert_memory_not_equal(other.iface.cm->key, node.iface.cm->key,
                            UCT_HIXL_CM_KEY_LEN);
    test_node_close(&other);
}

static void open__bad_configuration__says_so(void **state)
{
    static const char *bad[] = {
        "nonsense", "127.0.0.1,127.0.0.2,127.0.0.3", "0.0.0.0", "::", ",",
        "127.0.0.1,nonsense", "198.51.100.77" /* not of this host */
    };
    unsigned fds             = open_fds();
    uct_hixl_iface_t iface;
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        memset(&iface, 0, sizeof(iface));
        iface.config.cm_addr    = bad[i];
        iface.config.cm_timeout = 1;
        test_log_start();
        assert_true(UCS_STATUS_IS_ERR(uct_hixl_cm_open(&iface)));
        test_log_stop();
        assert_int_equal(test_log_count("UCX_HIXL_CM_ADDR"), 1);
        assert_null(iface.cm);
    }
    assert_int_equal(open_fds(), fds);
}

/* ---- who ---- */

static void hello__wrong_key__refused(void **state)
{
    uct_hixl_cm_msg_t hello = test_hello(&node);
    int fd                  = test_raw_connect(&node);

    (void)state;
    hello.key[15] ^= 1;
    test_raw_say(fd, &hello);
    expect_refused(fd);
}

static void greeting__garbage__refused(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\n\r\n";
    int fd                      = test_raw_connect(&node);

    (void)state;
    test_raw_send(fd, request, sizeof(request) - 1);
    expect_refused(fd);
}

static void greeting__one_wrong_byte__refused_at_once(void **state)
{
    int fd = test_raw_connect(&node);

    (void)state;
    test_raw_send(fd, "h", 1);
    expect_refused(fd);
}

static void greeting__half_a_message_and_end__refused(void **state)
{
    uct_hixl_cm_msg_t hello = test_hello(&node);
    int fd                  = test_raw_connect(&node);
    uint8_t buf[UCT_HIXL_CM_MSG_MAX];

    (void)state;
    uct_hixl_cm_msg_pack(&hello, buf);
    test_raw_send(fd, buf, 50);
    shutdown(fd, SHUT_WR);
    expect_refused(fd);
}

static void greeting__too_long_a_message__refused(void **state)
{
    uint8_t buf[65536] = {'H', 'X', 'C', 'M', 1, 1, 0xff, 0xff};
    int fd             = test_raw_connect(&node);

    (void)state;
    test_raw_send(fd, buf, sizeof(buf));
    expect_refused(fd);
}

static void greeting__nothing_and_end__refused(void **state)
{
    int fd = test_raw_connect(&node);

    (void)state;
    shutdown(fd, SHUT_WR);
    expect_refused(fd);
}

static void greeting__any_other_message__refused(void **state)
{
    uct_hixl_cm_msg_t msg = {.type = UCT_HIXL_CM_MSG_ACCEPT};
    int fd;

    (void)state;
    for (; msg.type < UCT_HIXL_CM_MSG_LAST; ++msg.type) {
        rejected_before = test_counter("hixl.cm_rejected");
        fd              = test_raw_connect(&node);
        test_raw_say(fd, &msg);
        expect_refused(fd);
    }
}

static void hello__more_behind_it__refused(void **state)
{
    uct_hixl_cm_msg_t hello = test_hello(&node);
    int fd                  = test_raw_connect(&node);
    uint8_t buf[2 * UCT_HIXL_CM_MSG_MAX];
    size_t length;

    (void)state;
    length = uct_hixl_cm_msg_pack(&hello, buf);
    memcpy(buf + length, "H", 1);
    test_raw_send(fd, buf, length + 1);
    expect_refused(fd);
}

static void greeting__silence__refused_after_timeout(void **state)
{
    int fd = test_raw_connect(&node);

    (void)state;
    expect_refused(fd);
}

/* A byte now and then does not make the time longer */
static void greeting__byte_by_byte__refused_after_timeout(void **state)
{
    uct_hixl_cm_msg_t hello = test_hello(&node);
    int fd                  = test_raw_connect(&node);
    uint8_t buf[UCT_HIXL_CM_MSG_MAX];
    double end              = test_seconds() + WAIT_SECONDS;
    size_t length;
    ssize_t ret;

    (void)state;
    length = uct_hixl_cm_msg_pack(&hello, buf);
    ret    = send(fd, buf, length - 40, MSG_NOSIGNAL);
    while (ret > 0) {
        /* the last byte would make it a message */
        assert_true(test_seconds() < end);
        test_pause();
        length = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
        ret    = ((ssize_t)length == 0) ? 0 : 1;
    }
    expect_refused(fd);
}

static void offered__no_ready__refused_after_timeout(void **state)
{
    uct_hixl_cm_msg_t hello = test_hello(&node);
    int fd                  = test_raw_connect(&node);

    (void)state;
    test_raw_say(fd, &hello);
    assert_int_equal(test_raw_hear(fd).type, UCT_HIXL_CM_MSG_ACCEPT);
    assert_int_equal(test_node_idle(&node), 0); /* nobody may take it yet */
    expect_refused(fd);
}

static void offered__other_message__refused(void **state)
{
    uct_hixl_cm_msg_t hello = test_hello(&node);
    int fd                  = test_raw_connect(&node);

    (void)state;
    test_raw_say(fd, &hello);
    assert_int_equal(test_raw_hear(fd).type, UCT_HIXL_CM_MSG_ACCEPT);
    test_raw_say(fd, &hello);
    expect_refused(fd);
}

static void up__second_hello__refused(void **state)
{
    uct_hixl_cm_msg_t hello;
    int fd = test_raw_link(&node, &hello);

    (void)state;
    test_raw_say(fd, &hello);
    expect_refused(fd);
}

/* Whoever holds the key and asks on and on without taking the answers */
static void up__byes_without_end__refused(void **state)
{
    uct_hixl_cm_msg_t bye = {.type = UCT_HIXL_CM_MSG_BYE};
    uint8_t buf[UCT_HIXL_CM_MSG_MAX];
    uct_hixl_cm_msg_t hello;
    size_t length;
    test_ep_t ep;
    int fd;

    (void)state;
    fd = test_raw_link(&node, &hello);
    test_connect(&node, &ep, hello.addr);
    assert_true(ep.ready);
    length = uct_hixl_cm_msg_pack(&bye, buf);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (!ep.failed) {
        while (send(fd, buf, length, MSG_NOSIGNAL) == (ssize_t)length) {
        }
        /* a part of a message at the end is as good: no message follows */
        test_progress();
        test_pause();
    }
    assert_int_equal(ep.status, UCS_ERR_CONNECTION_RESET);
    test_release(&ep);
    close(fd);
}

/* Random bytes behind a right beginning of random length */
static void greeting__random_bytes__never_a_link(void **state)
{
    unsigned seed           = time(NULL);
    uct_hixl_cm_msg_t hello = test_hello(&node);
    uint8_t buf[256];
    unsigned i, j, length;
    int fd;

    (void)state;
    print_message("seed %u\n", seed);
    hello.key[0] ^= 0x80; /* whatever comes, not the key */
    for (i = 0; i < 300; ++i) {
        uct_hixl_cm_msg_pack(&hello, buf);
        length = rand_r(&seed) % sizeof(buf);
        for (j = rand_r(&seed) % 24; j < length; ++j) {
            if ((j < 8) || (j >= 24)) {
                buf[j] = rand_r(&seed);
            }
        }
        fd = test_raw_connect(&node);
        test_raw_send(fd, buf, length);
        shutdown(fd, SHUT_WR);
        test_raw_wait_end(fd);
    }
    WAIT_FOR(rejected() == 300);
    assert_int_equal(test_node_links(&node), 0);
}

/* ---- how many ---- */

#define FLOOD 10000

static void
flood__silent_connections__bounded_and_a_right_one_passes(void **state)
{
    struct sockaddr_storage saddr;
    struct rlimit saved, limit;
    unsigned num, i, max_seen;
    uct_hixl_cm_addr_t addr;
    test_node_t other;
    socklen_t length;
    test_ep_t ep;
    int *fds;

    (void)state;
    getrlimit(RLIMIT_NOFILE, &saved);
    limit          = saved;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    num = (limit.rlim_cur > FLOOD + 2000) ? FLOOD : limit.rlim_cur / 2;
    print_message("%u connections\n", num);

    test_node_open(&other, "127.0.0.1", 50.0);
    check_address(&addr);
    length   = uct_hixl_cm_sockaddr(&addr.ip[0], addr.port, &saddr);
    fds      = test_malloc(num * sizeof(*fds));
    max_seen = 0;
    for (i = 0; i < num; ++i) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_true(fds[i] >= 0);
        assert_true((connect(fds[i], (struct sockaddr*)&saddr, length) == 0) ||
                    (errno == EINPROGRESS));
        max_seen = ucs_max(max_seen, (unsigned)test_node_half_open(&node));
    }

    test_connect_ready(&other, &ep, &node);
    max_seen = ucs_max(max_seen, (unsigned)test_node_half_open(&node));
    assert_in_range(max_seen, 2, node.iface.cm->max_half_open);
    WAIT_FOR(test_node_idle(&node) == 1);
    assert_int_equal(test_node_links(&node), 1);

    for (i = 0; i < num; ++i) {
        close(fds[i]);
    }
    test_free(fds);
    WAIT_FOR(test_node_half_open(&node) == 0);
    assert_true(rejected() > 0);
    test_release(&ep);
    WAIT_FOR(test_node_links(&node) == 0);
    test_node_close(&other);
    setrlimit(RLIMIT_NOFILE, &saved);
}

static uint64_t rest_until(void)
{
    uct_hixl_cm_t *cm = node.iface.cm;
    uint64_t value;

    pthread_mutex_lock(&cm->lock);
    value = cm->rest_until;
    pthread_mutex_unlock(&cm->lock);
    return value;
}

static double cpu_seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* Rests, says it once, does not burn the processor, and goes on */
static void accept__no_descriptor_left__named_once_and_goes_on(void **state)
{
    struct rlimit saved, limit;
    uct_hixl_cm_msg_t hello, ready = {.type = UCT_HIXL_CM_MSG_READY};
    uint64_t first_rest, last_rest = 0;
    unsigned rests = 0;
    double cpu;
    int fd;

    (void)state;
    getrlimit(RLIMIT_NOFILE, &saved);
    limit          = saved;
    limit.rlim_cur = 1; /* no new one; those that are open stay */
    test_log_start();
    test_async_hold();
    fd = test_raw_connect(&node);
    setrlimit(RLIMIT_NOFILE, &limit);
    test_async_let_go();

    WAIT_FOR(rest_until() != 0);
    first_rest = rest_until();
    cpu        = cpu_seconds();
    while (rests < 3) {
        WAIT_FOR((rest_until() != 0) && (rest_until() != last_rest));
        last_rest = rest_until();
        ++rests;
    }
    assert_true(last_rest - first_rest >= 2 * UCT_HIXL_CM_REST_NO_FD);
    assert_true(cpu_seconds() - cpu <
                0.5 * (last_rest - first_rest) / UCT_HIXL_CM_NSEC_PER_SEC);

    setrlimit(RLIMIT_NOFILE, &saved);
    hello = test_hello(&node);
    test_raw_say(fd, &hello);
    assert_int_equal(test_raw_hear(fd).type, UCT_HIXL_CM_MSG_ACCEPT);
    test_raw_say(fd, &ready);
    WAIT_FOR(test_node_idle(&node) == 1);
    test_log_stop();
    assert_int_equal(test_log_count("EMFILE"), 1);
    assert_int_equal(test_log_count("ulimit -n"), 1);
    close(fd);
}

#define TEST(_func) cmocka_unit_test_setup_teardown(_func, setup, teardown)
#define TEST_SHORT(_func) \
    cmocka_unit_test_setup_teardown(_func, setup_short_timeout, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open__nothing_configured__reachable_address),
        cmocka_unit_test(open__two_addresses__one_port_on_both),
        cmocka_unit_test(open__ipv6_address__links),
        TEST(open__every_key__another),
        cmocka_unit_test(open__bad_configuration__says_so),
        TEST(hello__wrong_key__refused),
        TEST(greeting__garbage__refused),
        TEST(greeting__one_wrong_byte__refused_at_once),
        TEST(greeting__half_a_message_and_end__refused),
        TEST(greeting__too_long_a_message__refused),
        TEST(greeting__nothing_and_end__refused),
        TEST(greeting__any_other_message__refused),
        TEST(hello__more_behind_it__refused),
        TEST_SHORT(greeting__silence__refused_after_timeout),
        TEST_SHORT(greeting__byte_by_byte__refused_after_timeout),
        TEST_SHORT(offered__no_ready__refused_after_timeout),
        TEST(offered__other_message__refused),
        TEST(up__second_hello__refused),
        TEST(up__byes_without_end__refused),
        TEST(greeting__random_bytes__never_a_link),
        TEST(flood__silent_connections__bounded_and_a_right_one_passes),
        TEST(accept__no_descriptor_left__named_once_and_goes_on)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
