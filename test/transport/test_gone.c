/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The device is taken away from a process (vhca-stat --fault device=fatal), as
 * when a card is pulled or its driver unbound: every endpoint on it fails, what
 * is outstanding ends with an error, nothing new can be made, nothing hangs,
 * and the process goes on. Process 1 keeps its device.
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/ucp.h>
#include <support/uct.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define MEM_LEN (1ul << 20)
#define PUTS    12
#define GOES_AT 7    /* this WQE of process 0 finds no device */
#define WITHIN  10.0 /* seconds: then everybody knows */

static struct hxt_uct u;
static uct_ep_h second;
static struct hxt_ucp p;

static struct hxt_failure seen;

#define WAIT_FOR(_cond, _progress, ...) \
    do { \
        double end_ = hxt_seconds() + WITHIN; \
        while (!(_cond)) { \
            HXT_CHECK(hxt_seconds() < end_, __VA_ARGS__); \
            _progress; \
        } \
    } while (0)

static void device_set(const char *what, unsigned nth)
{
    char command[300];
    int len;

    len = snprintf(command, sizeof(command),
                   "'%s'/vhca-stat --fault 'device=%s,pid=%d",
                   getenv("HIXL_BUILD"), what, (int)getpid());
    snprintf(command + len, sizeof(command) - len, (nth != 0) ? ",nth=%u'" :
             "'", nth);
    HXT_CHECK(system(command) == 0, "%s", command);
}

/* ---- UCT: with operations outstanding, and one more endpoint ---- */

static ucs_status_t put_zcopy(uct_ep_h ep, uct_completion_t *comp)
{
    uct_iov_t iov = {
        .buffer = u.mem.addr,
        .length = 65536,
        .memh   = u.mem.memh,
        .count  = 1
    };

    return uct_ep_put_zcopy(ep, &iov, 1, u.peer_addr, u.peer_rkey.rkey, comp);
}

static void use(uct_ep_h ep)
{
    struct hxt_uct_comp comp;
    ucs_status_t status;

    do {
        hxt_uct_comp_init(&comp);
        hxt_uct_progress(&u);
        status = put_zcopy(ep, &comp.super);
    } while (status == UCS_ERR_NO_RESOURCE);
    hxt_uct_comp_wait(&u, &comp, status, "put_zcopy");
}

/* Everything new is refused, at once */
static void nothing_new(uct_ep_h ep)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = u.iface,
        .dev_addr   = u.dev_addrs[1].data,
        .iface_addr = u.iface_addrs[1].data
    };
    struct hxt_uct_comp comp;
    ucs_status_t status;
    uct_ep_h none;

    hxt_uct_comp_init(&comp);
    status = put_zcopy(ep, &comp.super);
    HXT_CHECK(status == UCS_ERR_ENDPOINT_TIMEOUT, "put: %s",
              ucs_status_string(status));
    status = uct_ep_put_short(ep, "x", 1, u.peer_addr, u.peer_rkey.rkey);
    HXT_CHECK(status == UCS_ERR_ENDPOINT_TIMEOUT, "put_short: %s",
              ucs_status_string(status));
    status = uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, NULL);
    HXT_CHECK(status == UCS_ERR_ENDPOINT_TIMEOUT, "flush: %s",
              ucs_status_string(status));
    status = uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, NULL);
    HXT_CHECK(status == UCS_OK, "cancel: %s", ucs_status_string(status));
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    status            = uct_ep_create(&params, &none);
    HXT_CHECK(status == UCS_ERR_NO_DEVICE, "ep_create: %s",
              ucs_status_string(status));
    params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR |
                         UCT_EP_PARAM_FIELD_IFACE_ADDR;
    status             = uct_ep_create(&params, &none);
    HXT_CHECK(status == UCS_ERR_NO_DEVICE, "ep_create to interface: %s",
              ucs_status_string(status));
}

static void lose_the_device(void)
{
    struct hxt_uct_comp comps[PUTS];
    ucs_status_t status[PUTS];
    unsigned i;

    second = hxt_uct_ep_new(&u);
    use(u.ep);
    use(second);
    device_set("fatal", GOES_AT);
    for (i = 0; i < PUTS; i++) {
        hxt_uct_comp_init(&comps[i]);
        status[i] = put_zcopy((i % 2) ? second : u.ep, &comps[i].super);
        HXT_CHECK(status[i] == UCS_INPROGRESS, "put %u: %s", i,
                  ucs_status_string(status[i]));
    }

    WAIT_FOR(seen.calls == 2, hxt_uct_progress(&u),
             "%u endpoints were said to fail", seen.calls);
    HXT_CHECK(seen.status == UCS_ERR_ENDPOINT_TIMEOUT, "they fail with %s",
              ucs_status_string(seen.status));
    for (i = 0; i < PUTS; i++) {
        HXT_CHECK(comps[i].called == 1, "put %u is completed %u times", i,
                  comps[i].called);
        HXT_CHECK(comps[i].super.status ==
                  ((i + 1 < GOES_AT) ? UCS_OK : UCS_ERR_ENDPOINT_TIMEOUT),
                  "put %u: %s", i, ucs_status_string(comps[i].super.status));
    }

    nothing_new(u.ep);
    nothing_new(second);
    HXT_CHECK(seen.calls == 2, "told %u times", seen.calls);
}

/* What the other one's device does not answer, RC's retries end. */
static void find_out(void)
{
    ucs_status_t status;

    do {
        hxt_uct_progress(&u);
        status = uct_ep_put_short(u.ep, "x", 1, u.peer_addr,
                                  u.peer_rkey.rkey);
    } while (status == UCS_ERR_NO_RESOURCE);
    HXT_CHECK(status == UCS_OK, "put_short: %s", ucs_status_string(status));
    WAIT_FOR(seen.calls != 0, hxt_uct_progress(&u), "nobody was told");
    HXT_CHECK(seen.ep == u.ep && seen.status == UCS_ERR_ENDPOINT_TIMEOUT,
              "%s", ucs_status_string(seen.status));
}

static void run_uct(struct hxt_proc *proc)
{
    hxt_uct_on_error(hxt_uct_note_failure, &seen);
    hxt_uct_open(&u, proc, MEM_LEN, false);
    use(u.ep);
    hxt_barrier(proc);
    if (proc->rank == 0) {
        lose_the_device();
    }
    hxt_barrier(proc);
    if (proc->rank == 1) {
        find_out();
    }
    hxt_barrier(proc);
    if (proc->rank == 0) {
        uct_ep_destroy(second);
    }
    hxt_uct_close(&u);
}

static void device_gone__uct__all_fails_and_all_ends(void **state)
{
    static const char *const env[] = { "UCX_HIXL_TIMEOUT=14", NULL };
    static const char *const log[] = { "ERROR", "mlx5_0", "was removed", NULL };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "uct", .count = 2, .deadline = 60, .env = env,
        .expect_log = log
    });
    assert_int_equal(hxt_stat("objects.qp"), 0);
    assert_int_equal(hxt_stat("objects.mkey"), 0);
}

/* ---- a port that goes down is no end ---- */

static void run_port(struct hxt_proc *proc)
{
    hxt_uct_on_error(hxt_uct_note_failure, &seen);
    hxt_uct_open(&u, proc, MEM_LEN, false);
    use(u.ep);
    hxt_barrier(proc);
    if (proc->rank == 0) {
        device_set("port_down", 0);
        use(u.ep);
        device_set("port_up", 0);
        use(u.ep);
        HXT_CHECK(seen.calls == 0, "an endpoint failed");
    }
    hxt_uct_close(&u);
}

static void port_down__told_and_goes_on(void **state)
{
    static const char *const log[] = { "WARN", "mlx5_0:1", "port", NULL };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "port", .count = 2, .deadline = 60, .expect_log = log
    });
    assert_int_equal(hxt_stat("cqe.error"), 0);
}

/* ---- UCP, error mode PEER ---- */

/* Sends that nobody receives: each waits for the other side, by rendezvous or
 * for its acknowledgement. */
static void run_ucp(struct hxt_proc *proc)
{
    void *buf = hxt_alloc(MEM_LEN);
    ucs_status_ptr_t send, receive;
    struct hxt_blob *addresses;
    ucs_status_t status;
    ucp_ep_h ep;

    hxt_ucp_open(&p, proc, HXT_UCP_FEATURES);
    addresses = hxt_ucp_gather_addresses(&p);
    ep        = hxt_ucp_ep_peer(&p, addresses[1 - proc->rank].data, &seen);
    receive   = hxt_ucp_irecv(&p, buf, 8, 1, NULL);
    hxt_ucp_ok(&p, "first send", hxt_ucp_isend(&p, ep, "letters", 8, 1, NULL));
    hxt_ucp_ok(&p, "first receive", receive);
    hxt_barrier(proc);

    if (proc->rank == 0) {
        send = hxt_ucp_isend(&p, ep, buf, MEM_LEN, 2, NULL);
        HXT_CHECK(UCS_PTR_IS_PTR(send), "a send that is done already");
        device_set("fatal", 0);
        status = hxt_ucp_within(&p, WITHIN, "a send", send);
        HXT_CHECK(UCS_STATUS_IS_ERR(status), "a send was done");
        WAIT_FOR(seen.calls != 0, hxt_ucp_progress(&p), "nobody was told");
        status = hxt_ucp_within(&p, WITHIN, "another send",
                                hxt_ucp_isend(&p, ep, buf, 8, 3, NULL));
        HXT_CHECK(UCS_STATUS_IS_ERR(status), "another send was done");
    }
    if (proc->rank == 0) {
        hxt_ucp_ep_force_close(&p, ep, WITHIN);
    }
    hxt_barrier(proc);
    if (proc->rank == 1) {
        /* its end of the link tells, at the latest when it is used */
        status = hxt_ucp_within(&p, WITHIN, "a send to it",
                                hxt_ucp_isend(&p, ep, buf, MEM_LEN, 4, NULL));
        HXT_CHECK(UCS_STATUS_IS_ERR(status), "a send to it was done");
        hxt_ucp_ep_force_close(&p, ep, WITHIN);
    }
    HXT_CHECK(seen.calls == 1 && seen.ep == ep, "told %u times", seen.calls);
    free(addresses);
    hxt_ucp_close(&p);
}

static void device_gone__ucp__error_handler_and_no_hang(void **state)
{
    static const char *const env[] = { "UCX_HIXL_TIMEOUT=14", NULL };
    static const char *const log[] = { "ERROR", "mlx5_0", "was removed", NULL };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "ucp", .count = 2, .deadline = 60, .env = env,
        .expect_log = log
    });
    assert_int_equal(hxt_stat("objects.qp"), 0);
    assert_int_equal(hxt_stat("objects.mkey"), 0);
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "port", run_port },
        { "ucp", run_ucp },
        { "uct", run_uct },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(device_gone__uct__all_fails_and_all_ends),
        TEST(port_down__told_and_goes_on),
        TEST(device_gone__ucp__error_handler_and_no_hang)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
