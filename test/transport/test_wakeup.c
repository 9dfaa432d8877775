/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Waiting instead of polling: a process that is blocked in ucp_worker_wait()
 * costs nothing, and is woken by a message, by the end of its own operation,
 * and by the death of its peer.
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/ucp.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define BIG    (1ul << 20)
#define ROUNDS 200

static const uint64_t TAG = 7;

static double cpu_seconds(void)
{
    struct rusage usage;

    HXT_CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage: %m");
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* How long the other one keeps silent: what is measured is the CPU time of the
 * one that waits, so the longer the better it tells. */
static double silence(void)
{
    return (getenv("HIXL_TEST_LONG") != NULL) ? 10 : 2;
}

/* Blocked until the request is done; how often it was woken */
static unsigned wait_blocked(struct hxt_ucp *u, ucs_status_ptr_t request)
{
    unsigned wakes = 0;
    ucs_status_t status;

    HXT_CHECK(!UCS_PTR_IS_ERR(request), "%s",
              ucs_status_string(UCS_PTR_STATUS(request)));
    while ((request != NULL) &&
           (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        if (ucp_worker_progress(u->worker) != 0) {
            continue;
        }
        status = ucp_worker_wait(u->worker);
        HXT_CHECK(status == UCS_OK, "ucp_worker_wait: %s",
                  ucs_status_string(status));
        wakes++;
    }
    if (request != NULL) {
        status = ucp_request_check_status(request);
        HXT_CHECK(status == UCS_OK, "request: %s", ucs_status_string(status));
        ucp_request_free(request);
    }
    return wakes;
}

static void send_blocked(struct hxt_ucp *u, unsigned to, const void *buf,
                         size_t len)
{
    wait_blocked(u, hxt_ucp_isend(u, u->ep[to], buf, len, TAG, NULL));
}

static void recv_blocked(struct hxt_ucp *u, void *buf, size_t len)
{
    wait_blocked(u, hxt_ucp_irecv(u, buf, len, TAG, NULL));
}

/* Messages of every protocol to and fro, both sides only ever wait. */
static void run_pingpong(struct hxt_proc *proc)
{
    static const size_t sizes[] = {8, 1000, 8000, 100000, BIG};
    unsigned other = 1 - proc->rank, i;
    uint8_t *buf   = hxt_alloc(BIG);
    struct hxt_ucp u;
    size_t len;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP);
    hxt_ucp_connect_all(&u, false);
    for (i = 0; i < ROUNDS; i++) {
        len = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];
        if (i % 2 == proc->rank) {
            hxt_fill(buf, len, i, 0);
            send_blocked(&u, other, buf, len);
        } else {
            memset(buf, 0, len);
            recv_blocked(&u, buf, len);
            hxt_verify("message", buf, len, i, 0);
        }
    }
    hxt_ucp_close(&u);
}

static void pingpong__both_wait__every_message_wakes(void **state)
{
    static const struct hxt_run run = { .scenario = "pingpong", .count = 2 };

    (void)state;
    hxt_run(&run);
    if (!hxt_foreign()) {
        assert_true(hxt_stat("doorbell.arm") > 0);
    }
}

/* Rank 1 waits for a message that rank 0 sends after a silence. */
static void run_idle(struct hxt_proc *proc)
{
    uint8_t buf[64] = {0};
    double begin, cpu, limit;
    struct timespec ts;
    struct hxt_ucp u;
    unsigned wakes;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP);
    hxt_ucp_connect_all(&u, false);
    /* the links are there, and both have been at rest */
    if (proc->rank == 0) {
        send_blocked(&u, 1, buf, sizeof(buf));
        recv_blocked(&u, buf, sizeof(buf));
    } else {
        recv_blocked(&u, buf, sizeof(buf));
        send_blocked(&u, 0, buf, sizeof(buf));
    }
    while (ucp_worker_progress(u.worker) != 0) {
    }
    hxt_barrier_idle(proc);

    begin = hxt_seconds();
    if (proc->rank == 0) {
        ts.tv_sec  = silence();
        ts.tv_nsec = 0;
        nanosleep(&ts, NULL); /* the silence itself is what is tested */
        send_blocked(&u, 1, buf, sizeof(buf));
    } else {
        cpu   = cpu_seconds();
        wakes = wait_blocked(&u, hxt_ucp_irecv(&u, buf, sizeof(buf), TAG,
                                               NULL));
        cpu   = cpu_seconds() - cpu;
        limit = hxt_foreign() ? 1 : 1e-3;
        printf("woken %u times in %.3f s, %.0f us of CPU\n", wakes,
               hxt_seconds() - begin, cpu * 1e6);
        HXT_CHECK(hxt_seconds() - begin >= silence() * 0.9,
                  "nothing was waited");
        HXT_CHECK(cpu < limit, "waiting took %.0f us of CPU", cpu * 1e6);
        HXT_CHECK(wakes < 10, "woken %u times for one message", wakes);
    }
    hxt_ucp_close(&u);
}

static void wait__nothing_comes__costs_no_cpu_time(void **state)
{
    static const struct hxt_run run = { .scenario = "idle", .count = 2 };

    (void)state;
    hxt_run(&run);
}

/* Rank 1 has no link yet when it blocks: rank 0's connecting and its message
 * have to wake it. */
static void run_first(struct hxt_proc *proc)
{
    struct hxt_blob *blobs;
    struct hxt_ucp u;
    uint64_t value = 0;
    unsigned other = 1 - proc->rank;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP);
    blobs = hxt_ucp_gather_addresses(&u);
    if (proc->rank == 0) {
        u.ep[other] = hxt_ucp_ep(&u, blobs[other].data);
        value       = 42;
        send_blocked(&u, other, &value, sizeof(value));
        wait_blocked(&u, ucp_ep_flush_nbx(u.ep[other],
                                          &(ucp_request_param_t) {0}));
    } else {
        recv_blocked(&u, &value, sizeof(value));
        HXT_CHECK(value == 42, "received %lu", value);
    }
    free(blobs);
    hxt_ucp_close(&u);
}

static void wait__no_link_yet__link_and_message_wake(void **state)
{
    static const struct hxt_run run = { .scenario = "first", .count = 2 };

    (void)state;
    hxt_run(&run);
}

static unsigned failures;

static void on_failure(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    (void)status;
    failures++;
}

/* Rank 1 goes without a word while rank 0 is blocked. */
static void run_death(struct hxt_proc *proc)
{
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = on_failure
    };
    ucp_request_param_t force = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE
    };
    struct hxt_blob *blobs;
    uint64_t value = 1;
    struct hxt_ucp u;
    ucp_ep_h ep;

    hxt_ucp_open(&u, proc, UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP);
    blobs          = hxt_ucp_gather_addresses(&u);
    params.address = blobs[1 - proc->rank].data;
    HXT_CHECK(ucp_ep_create(u.worker, &params, &ep) == UCS_OK, "ucp_ep_create");
    if (proc->rank == 1) {
        recv_blocked(&u, &value, sizeof(value));
        hxt_barrier_idle(proc);
        _exit(0);
    }

    wait_blocked(&u, hxt_ucp_isend(&u, ep, &value, sizeof(value), TAG, NULL));
    wait_blocked(&u, ucp_ep_flush_nbx(ep, &(ucp_request_param_t) {0}));
    hxt_barrier_idle(proc);
    while (failures == 0) {
        if (ucp_worker_progress(u.worker) == 0) {
            HXT_CHECK(ucp_worker_wait(u.worker) == UCS_OK, "ucp_worker_wait");
        }
    }
    hxt_ucp_wait(&u, ucp_ep_close_nbx(ep, &force));
    free(blobs);
    ucp_worker_destroy(u.worker);
    ucp_cleanup(u.context);
}

static void wait__peer_dies__wakes(void **state)
{
    static const struct hxt_run run = { .scenario = "death", .count = 2,
                                        .deadline = 30 };

    (void)state;
    hxt_run(&run);
}

#define TEST(_func) \
    cmocka_unit_test_setup_teardown(_func, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "pingpong", run_pingpong },
        { "idle", run_idle },
        { "first", run_first },
        { "death", run_death },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(pingpong__both_wait__every_message_wakes),
        TEST(wait__nothing_comes__costs_no_cpu_time),
        TEST(wait__no_link_yet__link_and_message_wake),
        TEST(wait__peer_dies__wakes)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
