/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The transport on a device that fails on demand (vhca-stat --fault, in all
 * processes at once): no keys, no queue pair, a work queue entry that fails,
 * packets that are lost. Process 1 only lets its memory be used.
 */

#include <support/bytes.h>
#include <support/peers.h>
#include <support/uct.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#define MEM_LEN (1ul << 20)
#define WITHIN  (5.0 * hxt_slower()) /* seconds: then everybody knows */

static struct hxt_uct u;

static struct hxt_failure seen;

#define WAIT_FOR(_cond, ...) \
    do { \
        double end_ = hxt_seconds() + WITHIN; \
        while (!(_cond)) { \
            HXT_CHECK(hxt_seconds() < end_, __VA_ARGS__); \
            hxt_uct_progress(&u); \
        } \
    } while (0)

static void fault_set(const char *rules)
{
    char command[600];

    snprintf(command, sizeof(command), "'%s'/vhca-stat --fault '%s'",
             getenv("HIXL_BUILD"), rules);
    HXT_CHECK(system(command) == 0, "%s", command);
}

static ucs_status_t put_short(uct_ep_h ep)
{
    ucs_status_t status;

    do {
        hxt_uct_progress(&u);
        status = uct_ep_put_short(ep, "sixteen letters", 16, u.peer_addr,
                                  u.peer_rkey.rkey);
    } while (status == UCS_ERR_NO_RESOURCE);
    return status;
}

/* Until all is done, or the endpoint has failed */
static ucs_status_t flush(uct_ep_h ep)
{
    double end = hxt_seconds() + WITHIN;
    ucs_status_t status;

    do {
        HXT_CHECK(hxt_seconds() < end, "a flush does not end");
        hxt_uct_progress(&u);
        status = uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, NULL);
    } while (status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE);
    return status;
}

static void use(uct_ep_h ep)
{
    ucs_status_t status = put_short(ep);

    HXT_CHECK(status == UCS_OK, "put: %s", ucs_status_string(status));
    status = flush(ep);
    HXT_CHECK(status == UCS_OK, "flush: %s", ucs_status_string(status));
}

static void begin(struct hxt_proc *proc)
{
    hxt_uct_on_error(hxt_uct_note_failure, &seen);
    hxt_uct_open(&u, proc, MEM_LEN, false);
    memset(&seen, 0, sizeof(seen));
    use(u.ep); /* at both ends: from here on no queue pair is in the making */
    hxt_barrier(proc);
}

/* ---- moving bytes ---- */

static void zcopy(const struct hxt_uct_mem *mem, bool is_get)
{
    uct_iov_t iov = {
        .buffer = mem->addr,
        .length = mem->len,
        .memh   = mem->memh,
        .count  = 1
    };
    struct hxt_uct_comp comp;
    ucs_status_t status;

    do {
        hxt_uct_comp_init(&comp);
        hxt_uct_progress(&u);
        status = is_get ? uct_ep_get_zcopy(u.ep, &iov, 1, u.peer_addr,
                                           u.peer_rkey.rkey, &comp.super) :
                          uct_ep_put_zcopy(u.ep, &iov, 1, u.peer_addr,
                                           u.peer_rkey.rkey, &comp.super);
    } while (status == UCS_ERR_NO_RESOURCE);
    hxt_uct_comp_wait(&u, &comp, status, is_get ? "get_zcopy" : "put_zcopy");
}

static void put_and_get_back(uint64_t key)
{
    struct hxt_uct_mem mem;

    hxt_uct_mem_reg(&u, MEM_LEN, &mem);
    hxt_fill(mem.addr, MEM_LEN, key, 0);
    zcopy(&mem, false);
    hxt_uct_flush(&u);
    memset(mem.addr, 0, MEM_LEN);
    zcopy(&mem, true);
    hxt_verify("get", mem.addr, MEM_LEN, key, 0);
    hxt_uct_mem_dereg(&u, &mem);
}

/* ---- one endpoint fails ---- */

/* The fault hits the next put, on `ep`; `other` goes on. */
static void one_fails(uct_ep_h ep, uct_ep_h other, const char *fault,
                      ucs_status_t expected)
{
    double begin = hxt_seconds();
    ucs_status_t status;

    memset(&seen, 0, sizeof(seen));
    fault_set(fault);
    status = put_short(ep);
    HXT_CHECK(status == UCS_OK, "put: %s", ucs_status_string(status));
    WAIT_FOR(seen.calls != 0, "%s: nobody was told", fault);
    HXT_CHECK(seen.ep == ep, "%s: the wrong endpoint failed", fault);
    HXT_CHECK(seen.status == expected, "%s: %s", fault,
              ucs_status_string(seen.status));
    HXT_CHECK(hxt_seconds() - begin < WITHIN, "%s: too late", fault);
    fault_set("");

    status = put_short(ep);
    HXT_CHECK(UCS_STATUS_IS_ERR(status), "%s: a put on a failed endpoint: %s",
              fault, ucs_status_string(status));
    use(other);
    HXT_CHECK(seen.calls == 1, "%s: told %u times", fault, seen.calls);
}

static void run_one_fails(struct hxt_proc *proc)
{
    uct_ep_h ep;
    unsigned i;

    static const struct {
        const char  *rules;
        ucs_status_t status;
    } faults[] = {
        { "wqe=RDMA_WRITE,syndrome=0x13", UCS_ERR_CONNECTION_RESET },
        { "wqe=RDMA_WRITE,syndrome=0x15", UCS_ERR_ENDPOINT_TIMEOUT },
        { "link=down", UCS_ERR_ENDPOINT_TIMEOUT }
    };

    begin(proc);
    for (i = 0; proc->rank == 0 && i < sizeof(faults) / sizeof(faults[0]);
         i++) {
        ep = hxt_uct_ep_new(&u);
        use(ep);
        one_fails(ep, u.ep, faults[i].rules, faults[i].status);
        uct_ep_destroy(ep);
    }
    hxt_uct_close(&u);
}

static void put_fails__injected__its_endpoint_only(void **state)
{
    static const char *const env[] = {
        "UCX_HIXL_TIMEOUT=14", NULL /* 67 ms a try */
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "one_fails", .count = 2, .deadline = 60, .env = env
    });
    assert_int_equal(hxt_stat("cqe.syndrome.0x13"), 1);
    assert_int_equal(hxt_stat("cqe.syndrome.0x15"), 2);
    assert_int_equal(hxt_stat("objects.qp"), 0);
}

/* ---- packets are lost, and come through when they are sent again ---- */

static void run_lossy(struct hxt_proc *proc)
{
    begin(proc);
    if (proc->rank == 0) {
        fault_set("link=down,nth=1,count=2;link=down,nth=20,count=1;"
                  "link=down,nth=40,count=3");
        put_and_get_back(3);
        put_and_get_back(4);
        use(u.ep);
        fault_set("");
        HXT_CHECK(seen.calls == 0, "an endpoint failed");
    }
    hxt_uct_close(&u);
}

static void packets_lost__sent_again__every_byte_arrives(void **state)
{
    static const struct hxt_expect expect[] = {
        { "fault.hits", HXT_AT_LEAST, 2 },
        { "retry.stalls", HXT_AT_LEAST, 1 },
        { "bytes.rdma_read", HXT_AT_LEAST, 2 * MEM_LEN }
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "lossy", .count = 2, .deadline = 60
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- no keys left ---- */

static void run_no_keys(struct hxt_proc *proc)
{
    uint64_t put, get;

    begin(proc);
    if (proc->rank == 0) {
        fault_set("cmd=CREATE_MKEY,count=all,status=NO_RESOURCES");
        put_and_get_back(1);
        put = hxt_proc_stat(proc, "sw.hixl.bounce_put_bytes");
        get = hxt_proc_stat(proc, "sw.hixl.bounce_get_bytes");
        HXT_CHECK(put == MEM_LEN && get == MEM_LEN,
                  "%zu and %zu bytes were bounced", put, get);
        HXT_CHECK(hxt_proc_stat(proc, "fault.hits") >= 1, "no fault");

        /* keys are there again: nothing is bounced any more */
        fault_set("");
        put_and_get_back(2);
        put = hxt_proc_stat(proc, "sw.hixl.bounce_put_bytes");
        get = hxt_proc_stat(proc, "sw.hixl.bounce_get_bytes");
        HXT_CHECK(put == MEM_LEN && get == MEM_LEN,
                  "%zu and %zu bytes were bounced", put, get);
    }
    hxt_uct_close(&u);
}

static void no_keys__zero_copy__goes_through_bounce_buffers(void **state)
{
    static const struct hxt_expect expect[] = {
        { "bytes.rdma_write", HXT_AT_LEAST, 2 * MEM_LEN },
        { "bytes.rdma_read", HXT_AT_LEAST, 2 * MEM_LEN },
        { "wqe.send", HXT_IS, 0 }
    };
    static const char *const env[] = {
        "UCX_HIXL_TX_BUFS_GROW=16", NULL /* an eighth of it at once */
    };
    static const char *const log[] = {
        "cannot make another", "CREATE_MKEY failed", NULL
    };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "no_keys", .count = 2, .deadline = 60, .env = env,
        .expect_log = log
    });
    hxt_expect(expect, sizeof(expect) / sizeof(expect[0]));
}

/* ---- no queue pair ---- */

/* An endpoint that needs a queue pair of its own. A link that the peer made is
 * there for one endpoint, which then goes to *spare_p; it may come between any
 * two of them, since its maker knows first that it is ready. */
static ucs_status_t create_with_own_qp(uct_ep_h *ep_p, uct_ep_h *spare_p)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE |
                      UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = u.iface,
        .dev_addr   = u.dev_addrs[1].data,
        .iface_addr = u.iface_addrs[1].data
    };
    uint64_t reused     = hxt_proc_stat(u.proc, "sw.hixl.cm_reused");
    ucs_status_t status = uct_ep_create(&params, ep_p);

    *spare_p = NULL;
    if (hxt_proc_stat(u.proc, "sw.hixl.cm_reused") > reused) {
        *spare_p = *ep_p;
        status   = uct_ep_create(&params, ep_p);
    }
    return status;
}

/* Made or not: it ends with an error, and u.ep goes on. */
static void connect_fails(const char *fault)
{
    uint64_t hits = hxt_proc_stat(u.proc, "fault.hits");
    ucs_status_t status;
    uct_ep_h ep, spare;

    memset(&seen, 0, sizeof(seen));
    fault_set(fault);
    status = create_with_own_qp(&ep, &spare);
    if (status == UCS_OK) {
        WAIT_FOR(seen.calls != 0, "%s: nobody was told, %lu hits", fault,
                 hxt_proc_stat(u.proc, "fault.hits"));
        HXT_CHECK(seen.ep == ep && UCS_STATUS_IS_ERR(seen.status), "%s: %s",
                  fault, ucs_status_string(seen.status));
        uct_ep_destroy(ep);
    }
    HXT_CHECK(hxt_proc_stat(u.proc, "fault.hits") > hits, "no fault");
    fault_set("");
    use(u.ep);
    ep = hxt_uct_ep_new(&u); /* and a new one is made as ever */
    use(ep);
    uct_ep_destroy(ep);
    if (spare != NULL) {
        use(spare);
        uct_ep_destroy(spare);
    }
}

static void run_no_qp_here(struct hxt_proc *proc)
{
    begin(proc);
    if (proc->rank == 0) {
        connect_fails("cmd=CREATE_QP,status=NO_RESOURCES,syndrome=0x77");
    }
    hxt_uct_close(&u);
}

static void run_no_qp_there(struct hxt_proc *proc)
{
    begin(proc);
    if (proc->rank == 0) {
        /* the first is the one here */
        connect_fails("cmd=CREATE_QP,nth=2,status=NO_RESOURCES,syndrome=0x77");
    }
    hxt_uct_close(&u);
}

static void no_qp__connecting__fails_and_says_why(void **state)
{
    static const char *const log[] = { "QP", "0x77", NULL };

    (void)state;
    hxt_run(&(struct hxt_run){
        .scenario = "no_qp_here", .count = 2, .deadline = 60,
        .expect_log = log
    });
    assert_int_equal(hxt_stat("objects.qp"), 0);
    hxt_run(&(struct hxt_run){
        .scenario = "no_qp_there", .count = 2, .deadline = 60,
        .expect_log = log
    });
    assert_int_equal(hxt_stat("objects.qp"), 0);
}

#define TEST(_name) \
    cmocka_unit_test_setup_teardown(_name, hxt_setup, hxt_teardown)

int main(int argc, char **argv)
{
    static const struct hxt_scenario scenarios[] = {
        { "no_keys", run_no_keys },
        { "no_qp_here", run_no_qp_here },
        { "no_qp_there", run_no_qp_there },
        { "one_fails", run_one_fails },
        { "lossy", run_lossy },
        { NULL, NULL }
    };
    const struct CMUnitTest tests[] = {
        TEST(no_keys__zero_copy__goes_through_bounce_buffers),
        TEST(no_qp__connecting__fails_and_says_why),
        TEST(put_fails__injected__its_endpoint_only),
        TEST(packets_lost__sent_again__every_byte_arrives)
    };

    hxt_proc_main(argc, argv, scenarios);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
