/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How links come and go, seen from UCP: peers that do not progress, that
 * connect at the same moment, to themselves, again and again, in one direction
 * only. The emulated device tells how many QPs it took.
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/ucp.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#define RECONNECTS 50
#define MANY       32
#define BIG        (300ul << 10)

static const uint64_t TAG = 5;

/* Until the device has so many QPs: closing goes on behind UCP's back. */
static void wait_qps(struct hxt_ucp *u, uint64_t count)
{
    double deadline = hxt_seconds() + 20;
    uint64_t seen;

    if (hxt_foreign()) {
        return;
    }
    while ((seen = hxt_proc_stat(u->proc, "objects.qp")) != count) {
        HXT_CHECK(hxt_seconds() < deadline,
                  "the device has %zu QPs, expected %zu",
                  seen, count);
        hxt_ucp_progress(u);
    }
}

static void check_qps(struct hxt_ucp *u, uint64_t count)
{
    uint64_t seen = hxt_proc_stat(u->proc, "objects.qp");

    HXT_CHECK(hxt_foreign() || seen == count,
              "the device has %zu QPs, expected %zu", seen, count);
}

static void send_pattern(struct hxt_ucp *u, ucp_ep_h ep, size_t len,
                         uint64_t key)
{
    uint8_t *buf = malloc(len);

    HXT_CHECK(buf != NULL, "no memory");
    hxt_fill(buf, len, key, 0);
    hxt_ucp_ok(u, "send", hxt_ucp_isend(u, ep, buf, len, TAG, NULL));
    free(buf);
}

static void recv_pattern(struct hxt_ucp *u, size_t len, uint64_t key)
{
    uint8_t *buf = malloc(len);

    HXT_CHECK(buf != NULL, "no memory");
    hxt_ucp_ok(u, "receive", hxt_ucp_irecv(u, buf, len, TAG, NULL));
    hxt_verify("message", buf, len, key, 0);
    free(buf);
}

/* ---- a peer that never progresses ---- */

static void passive_write(struct hxt_ucp *u, const struct hxt_remote *remote)
{
    uint8_t *buf = hxt_alloc(BIG);

    hxt_fill(buf, BIG, u->proc->seed, 0);
    hxt_ucp_put(u, 1, buf, 8, remote, 0, NULL);
    hxt_ucp_put(u, 1, buf + 8, BIG - 8, remote, 8, NULL);
    hxt_ucp_flush(u, u->ep[1]);
    memset(buf, 0, BIG);
    hxt_ucp_get(u, 1, buf, BIG, remote, 0, NULL);
    hxt_verify("get", buf, BIG, u->proc->seed, 0);
}

static void run_passive(struct hxt_proc *proc)
{
    struct hxt_remote remotes[HXT_MAX_PROCS];
    struct hxt_blob *addresses;
    uint8_t *target = NULL;
    ucp_mem_h memh  = NULL;
    struct hxt_ucp u;

    hxt_ucp_open(&u, proc, UCP_FEATURE_RMA);
    if (proc->rank == 1) {
        target         = hxt_alloc(BIG);
        memh           = hxt_ucp_map(&u, target, BIG);
        proc->progress = NULL; /* from here on it only waits */
    }
    addresses = hxt_ucp_gather_addresses(&u);
    if (proc->rank == 0) {
        u.ep[1] = hxt_ucp_ep(&u, addresses[1].data);
    }
    free(addresses);
    hxt_ucp_expose(&u, target, BIG, memh, remotes);

    if (proc->rank == 0) {
        passive_write(&u, &remotes[1]);
    }
    hxt_barrier(proc);
    if (proc->rank == 1) {
        hxt_verify("put", target, BIG, proc->seed, 0);
        hxt_ucp_unmap(&u, memh);
    }
    hxt_ucp_forget(remotes);
    hxt_ucp_close(&u);
}

static void passive_peer__never_progresses__is_connected(void **state)
{
    static const struct hxt_expect expect[] = {
        { "wqe_inline.rdma_write", HXT_AT_LEAST, 1 },
        { "bytes.rdma_write", HXT_IS, BIG },
        { "bytes.rdma_read", HXT_IS, BIG },
        { "wqe.send", HXT_IS, 0 }
    };

    (void)state;
    if (hxt_foreign()) {
        skip(); /* others emulate put and get in the peer's progress */
    }
    hxt_run(&(struct hxt_run){
        .scenario = "passive", .count = 2, .deadline = 40
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- both at once ---- */

/* Sends and receives at once: neither may wait for the other's turn. */
static void exchange(struct hxt_ucp *u, unsigned other, size_t len)
{
    uint8_t *in = hxt_alloc(len), *out = hxt_alloc(len);
    ucs_status_ptr_t send, recv;

    hxt_fill(out, len, u->proc->rank, 0);
    recv = hxt_ucp_irecv(u, in, len, TAG, NULL);
    send = hxt_ucp_isend(u, u->ep[other], out, len, TAG, NULL);
    hxt_ucp_ok(u, "receive", recv);
    hxt_ucp_ok(u, "send", send);
    hxt_verify("message", in, len, other, 0);
    munmap(in, len);
    munmap(out, len);
}

static void run_both_at_once(struct hxt_proc *proc)
{
    unsigned other = 1 - proc->rank, i;
    struct hxt_blob *addresses;
    struct hxt_ucp u;
    uint64_t qps;

    for (i = 0; i < 10; i++) {
        hxt_ucp_open(&u, proc, UCP_FEATURE_TAG);
        addresses = hxt_ucp_gather_addresses(&u);
        hxt_barrier(proc);
        u.ep[other] = hxt_ucp_ep(&u, addresses[other].data);
        free(addresses);
        exchange(&u, other, 100);
        exchange(&u, other, BIG);
        hxt_barrier(proc);
        /* one link, or two that crossed */
        qps = hxt_proc_stat(proc, "objects.qp");
        HXT_CHECK(hxt_foreign() || qps == 2 || qps == 4,
                  "the device has %zu QPs", qps);
        hxt_ucp_close(&u);
        hxt_barrier(proc);
    }
}

static void both_sides__connect_at_once__both_directions_work(void **state)
{
    static const struct hxt_expect expect[] = {
        { "objects.qp", HXT_IS, 0 },
        { "wqe.send", HXT_AT_LEAST, 20 }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "both_at_once",
        .count    = 2,
        .deadline = 60
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- a process and itself ---- */

static void loopback_messages(struct hxt_ucp *u, size_t len)
{
    ucs_status_ptr_t request;
    uint8_t *in = hxt_alloc(len), *out = hxt_alloc(len);

    hxt_fill(out, len, len, 0);
    request = hxt_ucp_irecv(u, in, len, TAG, NULL);
    hxt_ucp_ok(u, "send", hxt_ucp_isend(u, u->ep[0], out, len, TAG, NULL));
    hxt_ucp_ok(u, "receive", request);
    hxt_verify("loopback message", in, len, len, 0);
}

static void run_loopback(struct hxt_proc *proc)
{
    struct hxt_remote remotes[HXT_MAX_PROCS];
    uint8_t *target = hxt_alloc(BIG), *buf = hxt_alloc(BIG);
    struct hxt_ucp u;
    ucp_mem_h memh;

    hxt_ucp_open(&u, proc, HXT_UCP_FEATURES);
    hxt_ucp_connect_all(&u, true);
    memh = hxt_ucp_map(&u, target, BIG);
    hxt_ucp_expose(&u, target, BIG, memh, remotes);

    hxt_fill(buf, BIG, proc->seed, 0);
    hxt_ucp_put(&u, 0, buf, 8, &remotes[0], 0, NULL);
    hxt_ucp_put(&u, 0, buf + 8, BIG - 8, &remotes[0], 8, NULL);
    hxt_ucp_flush(&u, u.ep[0]);
    hxt_verify("loopback put", target, BIG, proc->seed, 0);
    memset(buf, 0, BIG);
    hxt_ucp_get(&u, 0, buf, BIG, &remotes[0], 0, NULL);
    hxt_verify("loopback get", buf, BIG, proc->seed, 0);

    loopback_messages(&u, 1);
    loopback_messages(&u, 5000);
    loopback_messages(&u, BIG);

    hxt_ucp_forget(remotes);
    hxt_ucp_unmap(&u, memh);
    hxt_ucp_close(&u);
}

static void loopback__all_kinds__every_byte_arrives(void **state)
{
    static const struct hxt_expect expect[] = {
        { "wqe.rdma_write", HXT_AT_LEAST, 2 },
        { "wqe.rdma_read", HXT_AT_LEAST, 1 },
        { "wqe.send", HXT_AT_LEAST, 2 }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "loopback", .count = 1, .deadline = 40
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- again and again ---- */

static void run_reconnect(struct hxt_proc *proc)
{
    struct hxt_blob *addresses;
    struct hxt_ucp u;
    unsigned i;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG);
    addresses = hxt_ucp_gather_addresses(&u);
    for (i = 0; i < RECONNECTS; i++) {
        if (proc->rank == 0) {
            u.ep[1] = hxt_ucp_ep(&u, addresses[1].data);
            send_pattern(&u, u.ep[1], 64 + i, i);
            hxt_ucp_ep_close(&u, u.ep[1]);
            u.ep[1] = NULL;
            wait_qps(&u, 0);
        } else {
            recv_pattern(&u, 64 + i, i);
        }
        hxt_barrier(proc);
    }
    free(addresses);
    hxt_ucp_close(&u);
}

static void connect_close_connect__fifty_times__leaves_no_qp(void **state)
{
    static const struct hxt_expect expect[] = {
        { "objects.qp", HXT_IS, 0 },
        { "wqe.send", HXT_AT_LEAST, RECONNECTS }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "reconnect", .count = 2, .deadline = 90
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- many ---- */

/* Endpoints have no order among each other: the length tells which it is. */
static void recv_one_of_many(struct hxt_ucp *u)
{
    ucp_request_param_t param = { .op_attr_mask = 0 };
    uint8_t buf[1000 + MANY];
    ucp_tag_message_h message;
    ucp_tag_recv_info_t info;

    while ((message = ucp_tag_probe_nb(u->worker, TAG, UINT64_MAX, 1,
                                       &info)) == NULL) {
        hxt_ucp_progress(u);
    }
    HXT_CHECK(info.length >= 1000 && info.length < 1000 + MANY,
              "a message of %zu bytes", info.length);
    hxt_ucp_ok(u, "receive", ucp_tag_msg_recv_nbx(u->worker, buf, info.length,
                                                  message, &param));
    hxt_verify("message", buf, info.length, info.length - 1000, 0);
}

static void run_many(struct hxt_proc *proc)
{
    struct hxt_blob *addresses;
    ucp_ep_h eps[MANY];
    struct hxt_ucp u;
    unsigned i;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG);
    addresses = hxt_ucp_gather_addresses(&u);
    for (i = 0; proc->rank == 0 && i < MANY; i++) {
        eps[i] = hxt_ucp_ep(&u, addresses[1].data);
    }
    for (i = 0; i < MANY; i++) {
        if (proc->rank == 0) {
            send_pattern(&u, eps[i], 1000 + i, i);
        } else {
            recv_one_of_many(&u);
        }
    }
    free(addresses);
    hxt_barrier(proc);
    check_qps(&u, 2 * MANY);
    hxt_barrier(proc);
    for (i = 0; proc->rank == 0 && i < MANY; i++) {
        hxt_ucp_ep_close(&u, eps[i]);
    }
    wait_qps(&u, 0);
    hxt_ucp_close(&u);
}

static void endpoints_32_to_one_worker__each_sends__all_arrive(void **state)
{
    static const struct hxt_expect expect[] = {
        { "wqe.send", HXT_AT_LEAST, MANY },
        { "objects.qp", HXT_IS, 0 }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "many", .count = 2, .deadline = 60
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- one direction, and then the other ---- */

static void run_one_direction(struct hxt_proc *proc)
{
    struct hxt_blob *addresses;
    struct hxt_ucp u;
    unsigned i;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG);
    addresses = hxt_ucp_gather_addresses(&u);
    if (proc->rank == 0) {
        u.ep[1] = hxt_ucp_ep(&u, addresses[1].data);
    }
    for (i = 0; i < 100; i++) {
        if (proc->rank == 0) {
            send_pattern(&u, u.ep[1], 1 + i * 100, i);
        } else {
            recv_pattern(&u, 1 + i * 100, i);
        }
    }
    hxt_barrier(proc);
    check_qps(&u, 2);
    hxt_barrier(proc);

    /* the endpoint that the receiver makes now finds the link there */
    if (proc->rank == 1) {
        u.ep[0] = hxt_ucp_ep(&u, addresses[0].data);
        send_pattern(&u, u.ep[0], BIG, 77);
        recv_pattern(&u, BIG, 78);
    } else {
        recv_pattern(&u, BIG, 77);
        send_pattern(&u, u.ep[1], BIG, 78);
    }
    hxt_barrier(proc);
    check_qps(&u, 2);
    free(addresses);
    hxt_ucp_close(&u);
}

static void endpoint_in_one_direction__then_back__one_pair_of_qps(void **state)
{
    static const struct hxt_expect expect[] = {
        { "wqe.send", HXT_AT_LEAST, 100 },
        { "objects.qp", HXT_IS, 0 }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "one_direction", .count = 2, .deadline = 40
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "passive", run_passive },
        { "both_at_once", run_both_at_once },
        { "loopback", run_loopback },
        { "reconnect", run_reconnect },
        { "many", run_many },
        { "one_direction", run_one_direction },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(passive_peer__never_progresses__is_connected),
        TEST(both_sides__connect_at_once__both_directions_work),
        TEST(loopback__all_kinds__every_byte_arrives),
        TEST(connect_close_connect__fifty_times__leaves_no_qp),
        TEST(endpoints_32_to_one_worker__each_sends__all_arrive),
        TEST(endpoint_in_one_direction__then_back__one_pair_of_qps)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
