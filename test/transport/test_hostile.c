/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Whoever reaches the port of an interface without having its key: process 0
 * has the interface, process 2 connects to it in every wrong way, and process
 * 1, which has the address, gets its link and its bytes through meanwhile.
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/ucp.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#define NUM_WRONG  12   /* connections of a single kind, below */
#define FLOOD      2000
#define FLOOD_LONG 10000
#define BRIEF      500
#define MSG_LEN    3000
#define WITHIN     30.0 /* seconds */

static const uint64_t TAG = 9;

/* The longest message of the protocol is shorter, see hixl_cm_proto.c */
static uint8_t garbage[65536];

/* ---- the one with the interface ---- */

/* A socket of this process that listens on TCP; the interface's is the last
 * one. 0: none. */
static socklen_t listening_address(struct sockaddr_storage *addr)
{
    socklen_t found = 0, len, opt_len;
    struct sockaddr_storage this;
    int fd, listens;

    for (fd = 3; fd < 256; fd++) {
        len     = sizeof(this);
        opt_len = sizeof(listens);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens,
                       &opt_len) == 0 && listens &&
            getsockname(fd, (struct sockaddr*)&this, &len) == 0 &&
            (this.ss_family == AF_INET || this.ss_family == AF_INET6)) {
            *addr = this;
            found = len;
        }
    }
    return found;
}

/* Those of TCP; the emulated device has others. They are another thread's, and
 * may come and go meanwhile. */
static unsigned count_sockets(void)
{
    unsigned count = 0;
    int fd, protocol;
    socklen_t len;

    for (fd = 0; fd < (int)sysconf(_SC_OPEN_MAX); fd++) {
        len    = sizeof(protocol);
        count += getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol,
                            &len) == 0 && protocol == IPPROTO_TCP;
    }
    return count;
}

/* ---- the hostile one ---- */

static int connect_to(const struct hxt_blob *where)
{
    int fd = socket(((const struct sockaddr*)where->data)->sa_family,
                    SOCK_STREAM, 0);

    HXT_CHECK(fd >= 0, "socket: %m");
    HXT_CHECK(connect(fd, where->data, where->len) == 0, "connect: %m");
    return fd;
}

/* Says this and waits to be thrown out; half: says nothing more, too. */
static void be_refused(const struct hxt_blob *where, const char *what,
                       const void *data, size_t len, bool half)
{
    struct timeval limit = { .tv_sec = WITHIN };
    int fd               = connect_to(where);
    char byte;
    ssize_t ret;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (len > 0) {
        (void)!send(fd, data, len, MSG_NOSIGNAL);
    }
    if (half) {
        shutdown(fd, SHUT_WR);
    }
    ret = recv(fd, &byte, 1, 0);
    HXT_CHECK(ret == 0 || (ret < 0 && errno == ECONNRESET),
              "%s: not thrown out: %zd, %m", what, ret);
    close(fd);
}

/* HELLO, as drawn in hixl_cm_proto.c, with a key that is not the right one */
static size_t hello(uint8_t *buf)
{
    static const uint8_t head[8] = { 'H', 'X', 'C', 'M', 1, 1, 0, 53 };

    memset(buf, 0x55, 61);
    memcpy(buf, head, sizeof(head));
    buf[57] = 3; /* bytes of interface address, the rest */
    return 61;
}

static void each_wrong_way(const struct hxt_blob *where, struct hxt_rng *rng)
{
    uint8_t msg[256];
    size_t len = hello(msg), i;

    be_refused(where, "wrong key", msg, len, false);
    be_refused(where, "half a message", msg, len / 2, true);
    be_refused(where, "one byte", "H", 1, true);
    be_refused(where, "nothing", "", 0, true);
    be_refused(where, "a web browser", "GET / HTTP/1.0\r\n\r\n", 18, false);
    msg[4] = 77;
    be_refused(where, "another version", msg, len, false);
    hello(msg);
    msg[5] = 6;
    be_refused(where, "another message", msg, len, false);
    hello(msg);
    msg[6] = 0xff;
    be_refused(where, "too long a message", msg, len, false);
    msg[6] = 0;
    msg[7] = 0;
    be_refused(where, "too short a message", msg, len, false);
    for (i = 0; i < sizeof(garbage); i++) {
        garbage[i] = hxt_rng_next(rng);
    }
    garbage[0] = 'x';
    be_refused(where, "garbage", garbage, sizeof(garbage), false);
    be_refused(where, "silence", "", 0, false);
    hello(msg);
    be_refused(where, "silence in the middle", msg, len - 1, false);
}

/* Many at once that say nothing. Some may be reset before they are accepted. */
static int *flood(const struct hxt_blob *where, unsigned count)
{
    int *sockets = calloc(count, sizeof(*sockets));
    unsigned i;

    HXT_CHECK(sockets != NULL, "no memory");
    for (i = 0; i < count; i++) {
        sockets[i] = socket(((const struct sockaddr*)where->data)->sa_family,
                            SOCK_STREAM | SOCK_NONBLOCK, 0);
        HXT_CHECK(sockets[i] >= 0, "socket %u: %m", i);
        HXT_CHECK(connect(sockets[i], where->data, where->len) == 0 ||
                  errno == EINPROGRESS, "connect %u: %m", i);
    }
    return sockets;
}

/* ---- all together ---- */

static void exchange(struct hxt_ucp *u, unsigned other, uint64_t key)
{
    uint8_t in[MSG_LEN], out[MSG_LEN];
    ucs_status_ptr_t send, recv;

    hxt_fill(out, sizeof(out), key + u->proc->rank, 0);
    recv = hxt_ucp_irecv(u, in, sizeof(in), TAG, NULL);
    send = hxt_ucp_isend(u, u->ep[other], out, sizeof(out), TAG, NULL);
    hxt_ucp_ok(u, "receive", recv);
    hxt_ucp_ok(u, "send", send);
    hxt_verify("message", in, sizeof(in), key + other, 0);
}

/* As many as a process may have, in which it has fewer than it wants */
static unsigned flood_count(void)
{
    unsigned count = getenv("HIXL_TEST_LONG") != NULL ? FLOOD_LONG :
                     getenv("HIXL_TEST_BRIEF") != NULL ? BRIEF : FLOOD;
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur < count + 100 ? limit.rlim_cur - 100 : count;
}

static void run_attacker(struct hxt_proc *proc)
{
    struct hxt_rng rng = hxt_rng_derive(proc->seed, proc->rank, 0, 0);
    unsigned count     = flood_count(), i;
    struct hxt_blob *where;
    int *sockets;

    free(hxt_gather(proc, "", 0)); /* UCP's addresses, which it may not know */
    where = hxt_gather(proc, "", 0);
    each_wrong_way(&where[0], &rng);
    hxt_barrier(proc);
    hxt_barrier(proc);
    sockets = flood(&where[0], count);
    hxt_barrier(proc);
    hxt_barrier(proc);
    for (i = 0; i < count; i++) {
        close(sockets[i]);
    }
    hxt_barrier(proc);
    hxt_barrier(proc); /* hxt_ucp_close() */
    hxt_barrier(proc);
    free(sockets);
    free(where);
}

static void check_rejected(struct hxt_proc *proc)
{
    uint64_t rejected = hxt_proc_stat(proc, "sw.hixl.cm_rejected");

    HXT_CHECK(rejected == NUM_WRONG, "%zu of %u were counted",
              (size_t)rejected, NUM_WRONG);
    HXT_CHECK(hxt_proc_stat(proc, "objects.qp") == 0, "a QP was made");
}

static void run_hostile(struct hxt_proc *proc)
{
    struct sockaddr_storage own = { 0 };
    unsigned before             = 0, i;
    socklen_t len               = 0;
    struct hxt_blob *addresses;
    struct hxt_ucp u;
    double end;

    if (proc->rank == 2) {
        run_attacker(proc);
        return;
    }

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG);
    addresses = hxt_ucp_gather_addresses(&u);
    if (proc->rank == 0) {
        before = count_sockets();
        len    = listening_address(&own);
        HXT_CHECK(len != 0, "no listening socket");
    }
    free(hxt_gather(proc, &own, len));
    hxt_barrier(proc);
    check_rejected(proc);
    hxt_barrier(proc);

    /* many at once, and while they are there somebody who may */
    hxt_barrier(proc);
    u.ep[1 - proc->rank] = hxt_ucp_ep(&u, addresses[1 - proc->rank].data);
    for (i = 0; i < 20; i++) {
        exchange(&u, 1 - proc->rank, i);
    }
    free(addresses);
    hxt_barrier(proc);
    hxt_barrier(proc);

    /* the link that is there takes one, or two that crossed */
    end = hxt_seconds() + WITHIN;
    while (proc->rank == 0 && count_sockets() > before + 2) {
        HXT_CHECK(hxt_seconds() < end, "%u sockets, %u before", count_sockets(),
                  before);
        hxt_ucp_progress(&u);
    }
    hxt_ucp_close(&u);
}

static void
wrong_connections__of_every_kind__counted_and_nothing_else(void **state)
{
    static const char *const env[] = { "UCX_HIXL_CM_TIMEOUT=2s", NULL };

    (void)state;
    if (hxt_foreign()) {
        skip(); /* knocks at the door of hixl */
    }
    hxt_run(&(struct hxt_run){
        .scenario = "hostile", .count = 3, .deadline = 110, .env = env
    });
    assert_true(hxt_stat("sw.hixl.cm_rejected") > NUM_WRONG);
    assert_in_range(hxt_stat("sw.hixl.cm_connected"), 1, 2);
    assert_int_equal(hxt_stat("objects.qp"), 0);
}

/* ---- no descriptors ---- */

/* What a process with few descriptors is told, and that it lives */
static void run_few_descriptors(struct hxt_proc *proc)
{
    struct rlimit limit = { 0, 0 };
    struct hxt_blob *addresses;
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
    };
    ucs_status_t status;
    struct hxt_ucp u;
    ucp_ep_h ep;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG);
    addresses = hxt_ucp_gather_addresses(&u);
    if (proc->rank == 0) {
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = 0; /* none that is new */
        setrlimit(RLIMIT_NOFILE, &limit);
        params.address = addresses[1].data;
        status         = ucp_ep_create(u.worker, &params, &ep);
        HXT_CHECK(UCS_STATUS_IS_ERR(status), "an endpoint without a socket");
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        u.ep[1] = hxt_ucp_ep(&u, addresses[1].data);
    } else {
        hxt_barrier_idle(proc);
        u.ep[0] = hxt_ucp_ep(&u, addresses[0].data);
    }
    if (proc->rank == 0) {
        hxt_barrier(proc);
    }
    free(addresses);
    exchange(&u, 1 - proc->rank, 1);
    hxt_ucp_close(&u);
}

static void no_descriptor_left__connecting__says_which_limit(void **state)
{
    static const char *const log[] = { "EMFILE", "limit", "ulimit -n", NULL };

    (void)state;
    if (hxt_foreign()) {
        skip();
    }
    hxt_run(&(struct hxt_run){
        .scenario = "few_descriptors", .count = 2, .deadline = 60,
        .expect_log = log
    });
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "hostile", run_hostile },
        { "few_descriptors", run_few_descriptors },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(wrong_connections__of_every_kind__counted_and_nothing_else),
        TEST(no_descriptor_left__connecting__says_which_limit)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
